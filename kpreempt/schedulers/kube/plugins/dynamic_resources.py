"""DynamicResources: whether a node has devices for the pod's claims (``plugins/dynamicresources``, v1.36.3).

All of its refusals are final: the dry run of a preemption takes no device from a victim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from kpreempt.model.devices import CLASS_RESOURCE_PREFIX, MOST_ALTERNATIVES, DeviceClass, ResourceClaim
from kpreempt.model.durations import SECOND, format_duration
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.devices.allocator import Allocator
from kpreempt.schedulers.kube.devices.extended import is_virtual, requests_for, special_claim, with_requests
from kpreempt.schedulers.kube.devices.pod_claims import NoClaimError, claims_of, has_failed_to_bind
from kpreempt.schedulers.kube.devices.search import Allocated, AllocationError, GivenUpError
from kpreempt.schedulers.kube.devices.selectors import HiddenSelectorError
from kpreempt.schedulers.kube.framework.arg_types import DURATION
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import WRITTEN, Action, is_own, on, on_node, on_pod
from kpreempt.schedulers.kube.framework.field_errors import child, invalid
from kpreempt.schedulers.kube.framework.in_tree import NodeFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    NodeToStatus,
    PluginArgs,
    PluginError,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    ScorePlugin,
    normalize_to_max,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resources import Resource, is_extended_resource, pod_requests
from kpreempt.schedulers.kube.versions import Behaviour
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.status import SKIP

REASON_NO_CLAIMS = "no new claims to deallocate"
REASON_NO_STATE = "not found"
REASON_UNAVAILABLE = "resourceclaim not available on the node"
REASON_STALE_CLAIM = "cannot schedule extended resource claim"
DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"
NOTHING_DONE = "still not schedulable"
_DEFAULT_BINDING_TIMEOUT = 600 * SECOND

_STATE_KEY = TreeKey("DynamicResources")


class FoundDevices(NamedTuple):
    """What a node has for the pod: the claims that were to be allocated, each with its devices."""

    claims: Sequence[ResourceClaim]
    devices: Sequence[Sequence[Allocated]]


class ClaimState:
    """The pod's claims, the special one for extended resources last, and what was found for them on each node.

    It has no ``clone``: as upstream, all copies of a cycle state share it. What is found on a node depends on neither
    its pods nor those nominated to it.
    """

    def __init__(
        self,
        claims: Sequence[ResourceClaim] = (),
        special: ResourceClaim | None = None,
        resources: Mapping[str, int] | None = None,
        allocator: Allocator | None = None,
    ) -> None:
        self.claims = [*claims, *([special] if special is not None else ())]
        self.has_own_claims = bool(claims)
        self.special = special
        self.resources = resources or {}
        self.allocator = allocator
        self.by_node: dict[str, Status] = {}
        self.found: dict[str, FoundDevices] = {}
        # Allocated claims that some node cannot use, by their index.
        self.unavailable: set[int] = set()
        # What PostFilter wrote.
        self.deallocated: list[str] = []
        self.deleted: list[str] = []
        # The claims of which one was taken at random to be deallocated.
        self.rivals: list[str] = []
        # A node on which the search was given up; and whether because what selects devices is hidden.
        self.given_up = ""
        self.is_hidden = False


class DynamicResources(PreFilterPlugin, NodeFilterPlugin, PostFilterPlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """Claims are allocated where their devices are, and allocated ones keep the pod where these can be reached."""

    name = "DynamicResources"
    # What is found on a node is needed for its score, and what is not there by PostFilter.
    is_local = False

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._behaviour = handle.behaviour
        timeout = args.get("bindingTimeout")
        nanoseconds = timeout if isinstance(timeout, int) else _DEFAULT_BINDING_TIMEOUT
        self._binding_timeout = timedelta(seconds=nanoseconds / SECOND)

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Collect the claims; refuse pods whose claims are not there, and skip those without any."""
        state.write(_STATE_KEY, ClaimState())
        try:
            claims = claims_of(pod, self._cluster.resource_claims)
        except NoClaimError as error:
            return None, _refusal(str(error))
        resources = self._backed_resources(pod)
        special = special_claim(pod, self._cluster.cluster.resource_claims) if resources else None
        if not claims and special is None:
            return None, SKIP
        needs_devices = special is not None and special.status.allocation is None
        for claim in claims:
            if claim.status.allocation is None:
                needs_devices = True
                refusal = self._refusal_of(claim)
                if refusal is not None:
                    return None, refusal
        allocator = Allocator(self._cluster.devices) if needs_devices else None
        state.write(_STATE_KEY, ClaimState(claims, special, resources, allocator))
        return None, SUCCESS

    def _backed_resources(self, pod: Pod) -> Mapping[str, int]:
        """The amounts of all scalar resources that the pod requests, if devices may serve one of them."""
        classes = self._cluster.classes_of_extended_resources
        if not classes or not self._behaviour.dra_extended_resource:
            return {}
        requests = pod_requests(pod)
        if not any(amount and name in classes and _may_be_served(name) for name, amount in requests.items()):
            return {}
        return Resource.from_nano(requests).scalar

    def _refusal_of(self, claim: ResourceClaim) -> Status | None:
        """Why a claim can be allocated nowhere, before nodes are looked at."""
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                stated = [(request.name, request.exactly.device_class_name)]
            elif not request.first_available:
                return _refusal(f"resource claim {claim.key}, request {request.name}: unknown request type")
            elif not self._behaviour.dra_prioritized_list:
                return _refusal(
                    f"resource claim {claim.key}, request {request.name}: has subrequests, but the DRAPrioritizedList"
                    " feature is disabled"
                )
            else:
                stated = [(f"{request.name}/{each.name}", each.device_class_name) for each in request.first_available]
            for name, class_name in stated:
                if not class_name:
                    return Status(Code.ERROR, [f"request {name}: unsupported request type"])
                if class_name not in self._cluster.devices.classes:
                    return _refusal(f"request {name}: device class {class_name} does not exist")
        return None

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Refuse the node where claims cannot be used, or there are no devices for them."""
        claims = _state_of(state)
        if not claims.claims:
            return SUCCESS
        status = claims.by_node.get(node_info.name)
        if status is None:
            status = claims.by_node[node_info.name] = self._evaluate(claims, pod, node_info)
        return status

    def _evaluate(self, claims: ClaimState, pod: Pod, node_info: NodeInfo) -> Status:
        special = claims.special
        needed = self._left_to_devices(claims, node_info)
        if isinstance(needed, str):
            return _refusal(needed)
        if not claims.has_own_claims and not needed:
            return SUCCESS
        unavailable = self._unavailable_on(claims.claims, node_info.node)
        if claims.allocator is not None:
            wanted = [
                with_requests(each, requests_for(pod, needed)) if each is special else each
                for each in claims.claims
                if each.status.allocation is None
            ]
            try:
                attempt = claims.allocator.allocate(node_info.node, wanted)
            except AllocationError as error:
                return Status(Code.ERROR, [str(error)])
            except (GivenUpError, HiddenSelectorError) as error:
                claims.given_up = claims.given_up or node_info.name
                claims.is_hidden |= isinstance(error, HiddenSelectorError)
                return _refusal(_NOT_KNOWN)
            if attempt.found is None:
                return _refusal(attempt.reason)
            claims.found[node_info.name] = FoundDevices(wanted, attempt.found)
        if unavailable:
            claims.unavailable.update(unavailable)
            return _refusal(REASON_UNAVAILABLE)
        return SUCCESS

    def _left_to_devices(self, claims: ClaimState, node_info: NodeInfo) -> dict[str, DeviceClass] | str:
        """The extended resources that devices have to serve on the node, with their classes; or why it is refused."""
        special, found = claims.special, dict[str, DeviceClass]()
        if special is None:
            return found
        if special.spec.devices.requests:
            return REASON_STALE_CLAIM
        classes = self._cluster.classes_of_extended_resources
        offered = node_info.allocatable.scalar
        for name, amount in claims.resources.items():
            if amount and _may_be_served(name):
                if name in classes and not offered.get(name):
                    found[name] = classes[name]
                elif name not in offered:
                    return "cannot fit resource"
        return found

    def _unavailable_on(self, claims: Sequence[ResourceClaim], node: Node) -> list[int]:
        """The allocated claims that the node cannot use, by their index."""
        found = []
        checks_conditions = (
            self._behaviour.dra_device_binding_conditions and self._behaviour.dra_resource_claim_device_status
        )
        for index, claim in enumerate(claims):
            allocation = claim.status.allocation
            if allocation is None:
                continue
            selector = allocation.node_selector
            is_out_of_reach = selector is not None and not selector.matches(node.name, node.labels)
            if is_out_of_reach or (
                checks_conditions and has_failed_to_bind(claim, self._cluster.now, self._binding_timeout)
            ):
                found.append(index)
        return found

    def post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Have one claim deallocated that keeps the pod off a node, if nobody else uses it."""
        claims = state.read(_STATE_KEY)
        if not isinstance(claims, ClaimState):
            return None, Status(Code.ERROR, [REASON_NO_STATE])
        told = self._behaviour.tells_claims_to_deallocate
        if not claims.claims:
            return None, Status(Code.UNSCHEDULABLE, [REASON_NO_CLAIMS] if told else [])
        special = claims.special
        idle = [
            claims.claims[index].key
            for index in sorted(claims.unavailable)
            if claims.claims[index] is not special and _is_idle(claims.claims[index], pod)
        ]
        if idle:
            claims.deallocated, claims.rivals = idle[:1], idle
            return None, Status(Code.UNSCHEDULABLE, [DEALLOCATED])
        if special is not None and not is_virtual(special):
            claims.deleted = [special.key]
            return None, Status(Code.UNSCHEDULABLE, [DELETED])
        return None, Status(Code.UNSCHEDULABLE, [NOTHING_DONE] if told else [])

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """More for the alternatives that come first; 0 where nothing had to be allocated."""
        claims = _state_of(state)
        found = claims.found.get(node_info.name)
        if found is None or not self._behaviour.dra_prioritized_list:
            return 0
        allocated = iter(found.devices)
        total = 0
        for claim in claims.claims:
            if claim.status.allocation is not None:
                names: Iterable[str] = (each.request for each in claim.status.allocation.devices.results)
            else:
                names = (each.request for each in next(allocated))
            total += _rating(claim, frozenset(names))
        return total

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """The highest score becomes 100."""
        return normalize_to_max(scores)


_NOT_KNOWN = "cannot allocate all claims"


def claim_state(state: CycleState) -> ClaimState | None:
    """The pod's claims after a cycle with this state, where the plugin ran."""
    claims = state.read(_STATE_KEY)
    return claims if isinstance(claims, ClaimState) else None


def _state_of(state: CycleState) -> ClaimState:
    """An error where PreFilter is not enabled."""
    claims = claim_state(state)
    if claims is None:
        raise PluginError(REASON_NO_STATE)
    return claims


def _refusal(reason: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason])


def _may_be_served(resource: str) -> bool:
    """Whether the name is one that devices may stand for (``pkg/scheduler/util/utils.go``)."""
    return is_extended_resource(resource) or resource.startswith(CLASS_RESOURCE_PREFIX)


def _is_idle(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether no other pod has the claim reserved."""
    users = claim.status.reserved_for
    return not users or (len(users) == 1 and users[0].uid == pod.metadata.uid)


def _rating(claim: ResourceClaim, allocated: frozenset[str]) -> int:
    return sum(
        MOST_ALTERNATIVES - index
        for request in claim.spec.devices.requests
        if request.exactly is None
        for index, each in enumerate(request.first_available)
        if f"{request.name}/{each.name}" in allocated
    )


def arg_problems(path: str, args: Mapping[str, Any], behaviour: Behaviour) -> list[str]:
    """What is wrong with the arguments at ``path`` (``apis/config/validation/validation_pluginargs.go``)."""
    problems: list[str] = []
    if not behaviour.takes_args_of_dynamic_resources:
        return problems
    filter_timeout, binding_timeout = args.get("filterTimeout"), args.get("bindingTimeout")
    if filter_timeout is not None and filter_timeout < 0:
        shown = format_duration(filter_timeout)
        problems.append(invalid(child(path, "filterTimeout"), shown, "must be zero or positive"))
    if binding_timeout is not None and binding_timeout < SECOND:
        shown = format_duration(binding_timeout)
        problems.append(invalid(child(path, "bindingTimeout"), shown, "must be at least 1 second"))
    return problems


PLUGIN = in_tree(
    DynamicResources,
    not_modelled="preEnqueue",
    args={"filterTimeout": DURATION, "bindingTimeout": DURATION},
    arg_problems=arg_problems,
    awaits=lambda: [
        on_node(Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        on("ResourceClaim", WRITTEN),
        on_pod(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, is_own, is_modelled=False),
        on("DeviceClass", WRITTEN, is_modelled=True),
        on("ResourceSlice", WRITTEN, is_modelled=True),
    ],
)
