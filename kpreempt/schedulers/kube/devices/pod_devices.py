"""The devices of one pod in a scheduling cycle (``plugins/dynamicresources/dynamicresources.go``, v1.36.3).

All rejections are final: the dry run of a preemption frees no device of a victim.

The claims of a pod, and whether allocated ones can be used on a node, follow ``dynamic-resource-allocation`` v0.36.3
``resourceclaim/resourceclaim.go`` and ``plugins/dynamicresources/dynamicresources.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from kpreempt.model.devices import (
    CLASS_RESOURCE_PREFIX,
    MAX_ALTERNATIVES,
    AllocationResult,
    DeviceClass,
    ResourceClaim,
)
from kpreempt.model.meta import controller_of
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, PodResourceClaim
from kpreempt.schedulers.kube.devices.allocator import NOT_ALLOCATED, Allocator
from kpreempt.schedulers.kube.devices.extended import is_virtual, requests_for, special_claim, with_requests
from kpreempt.schedulers.kube.devices.search import Allocated, AllocationError, SearchLimitError
from kpreempt.schedulers.kube.devices.selectors import HiddenSelectorError
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resources import Resource, is_extended_resource, pod_requests
from kpreempt.verdict import SUCCESS, Code, Detail, Status

REASON_UNAVAILABLE = "resourceclaim not available on the node"
REASON_STALE_CLAIM = "cannot schedule extended resource claim"
DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"
NOTHING_DONE = "still not schedulable"


class FoundDevices(NamedTuple):
    """What a node has for the pod: the claims to be allocated, each with its devices."""

    claims: Sequence[ResourceClaim]
    devices: Sequence[Sequence[Allocated]]


def devices_of(pod: Pod, cluster: ClusterState, binding_timeout: timedelta) -> PodDevices | Status | None:
    """Return the pod's claims, ready for filters; why it is rejected on all nodes; or ``None`` if it has none."""
    claims = _claims(pod, cluster)
    if isinstance(claims, Status):
        return claims
    resources = _backed_resources(pod, cluster)
    special = special_claim(pod, cluster.cluster.resource_claims) if resources else None
    if not claims and special is None:
        return None
    for claim in claims:
        if claim.status.allocation is None and (rejection := _rejection_of(claim, cluster)) is not None:
            return rejection
    return PodDevices(pod, cluster, binding_timeout, claims, special, resources)


def missing_claim(pod: Pod, cluster: ClusterState) -> Status | None:
    """Return the rejection of a pod whose claim does not exist, is being deleted, or belongs to another pod."""
    claims = _claims(pod, cluster)
    return claims if isinstance(claims, Status) else None


def _claims(pod: Pod, cluster: ClusterState) -> Sequence[ResourceClaim] | Status:
    try:
        kind = "Pod" if cluster.behavior.capitalizes_owners_of_claims else "pod"
        return claims_of(pod, cluster.resource_claims, kind=kind)
    except NoClaimError as error:
        return _rejection(str(error))


def _backed_resources(pod: Pod, cluster: ClusterState) -> Mapping[str, int]:
    """Return the amounts of all scalar resources that the pod requests, if devices may provide one of them."""
    classes = cluster.classes_of_extended_resources
    if not classes or not cluster.behavior.dra_extended_resource:
        return {}
    requests = pod_requests(pod)
    if not any(amount and name in classes and _may_be_served(name) for name, amount in requests.items()):
        return {}
    return Resource.from_nano(requests).scalar


def _rejection_of(claim: ResourceClaim, cluster: ClusterState) -> Status | None:
    """Return why a claim cannot be allocated anywhere, before nodes are evaluated."""
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            stated = [(request.name, request.exactly.device_class_name)]
        elif not request.first_available:
            return _rejection(f"resource claim {claim.key}, request {request.name}: unknown request type")
        elif not cluster.behavior.dra_prioritized_list:
            return _rejection(
                f"resource claim {claim.key}, request {request.name}: has subrequests, but the DRAPrioritizedList"
                " feature is disabled"
            )
        else:
            stated = [(f"{request.name}/{each.name}", each.device_class_name) for each in request.first_available]
        for name, class_name in stated:
            if not class_name:
                return Status(Code.ERROR, [f"request {name}: unsupported request type"])
            if class_name not in cluster.devices.classes:
                return _rejection(f"request {name}: device class {class_name} does not exist")
    return None


class PodDevices:
    """The pod's claims, the one for extended resources last, and the devices found for them on each node.

    It has no ``clone``: as upstream, all copies of a cycle state share it. The result on a node depends neither on its
    pods nor on pods nominated to it.
    """

    def __init__(
        self,
        pod: Pod,
        cluster: ClusterState,
        binding_timeout: timedelta,
        claims: Sequence[ResourceClaim],
        special: ResourceClaim | None,
        resources: Mapping[str, int],
    ) -> None:
        self._pod = pod
        self._cluster = cluster
        self._behavior = cluster.behavior
        self._binding_timeout = binding_timeout
        self._resources = resources
        self._has_own_claims = bool(claims)
        self._special = special
        self.claims = [*claims, *([special] if special is not None else ())]
        needs_devices = any(claim.status.allocation is None for claim in self.claims)
        self.allocator = Allocator(cluster.devices) if needs_devices else None
        self._statuses: dict[str, Status] = {}
        self.found: dict[str, FoundDevices] = {}
        # Allocated claims that some node cannot use, by their index.
        self._unavailable: set[int] = set()
        # PostFilter's message; if there are several ``rivals``, it picks one at random.
        self.deallocated: list[str] = []
        self.deleted: list[str] = []
        self.rivals: list[str] = []
        # A node on which the search was stopped, and whether it was stopped because a device selector is redacted.
        self.gave_up_on = ""
        self.is_hidden = False

    def status_on(self, node_info: NodeInfo) -> Status:
        """Return whether the node can use the allocated claims and has devices for the others."""
        status = self._statuses.get(node_info.name)
        if status is None:
            status = self._statuses[node_info.name] = self._evaluate(node_info)
        return status

    def fails_by_order(self, node_info: NodeInfo) -> bool:
        """Return whether the order of the node's pools decides if the search ends with an error."""
        if self.allocator is None or node_info.name not in self._statuses:
            return False
        requested = [each for each in self.claims if each.status.allocation is None and each is not self._special]
        try:
            return self.allocator.fails_by_order(node_info.node, requested)
        except HiddenSelectorError:
            return False

    def _evaluate(self, node_info: NodeInfo) -> Status:
        needed = self._handled_by_devices(node_info)
        if isinstance(needed, str):
            return _rejection(needed)
        if not self._has_own_claims and not needed:
            return SUCCESS
        unavailable = self._unavailable_on(node_info.node)
        if self.allocator is not None:
            rejection = self._allocate(self.allocator, needed, node_info)
            if rejection is not None:
                return rejection
        if unavailable:
            from kpreempt.schedulers.kube.devices import evidence  # noqa: PLC0415 - only rejections need it

            self._unavailable.update(unavailable)
            detail = evidence.unavailable((self.claims[index] for index in unavailable), node_info)
            return _rejection(REASON_UNAVAILABLE, detail)
        return SUCCESS

    def _allocate(self, allocator: Allocator, needed: Mapping[str, DeviceClass], node_info: NodeInfo) -> Status | None:
        """Find devices on the node; return the rejection if there are none."""
        # The claim for extended resources requests what the node does not offer.
        requested = [
            with_requests(each, requests_for(self._pod, needed))
            if self._special is not None and each is self._special
            else each
            for each in self.claims
            if each.status.allocation is None
        ]
        try:
            attempt = allocator.allocate(node_info.node, requested)
        except AllocationError as error:
            return Status(Code.ERROR, [str(error)])
        except (SearchLimitError, HiddenSelectorError) as error:
            self.gave_up_on = self.gave_up_on or node_info.name
            self.is_hidden |= isinstance(error, HiddenSelectorError)
            return _rejection(NOT_ALLOCATED)
        if attempt.found is None:
            from kpreempt.schedulers.kube.devices import evidence  # noqa: PLC0415 - only rejections need it

            detail = evidence.shortage(allocator, requested, attempt, node_info, self._pod.priority)
            return _rejection(attempt.reason, detail)
        self.found[node_info.name] = FoundDevices(requested, attempt.found)
        return None

    def _handled_by_devices(self, node_info: NodeInfo) -> dict[str, DeviceClass] | str:
        """Return the extended resources that devices must provide, with their classes, or why the node is rejected."""
        found: dict[str, DeviceClass] = {}
        if self._special is None:
            return found
        if self._special.spec.devices.requests:
            return REASON_STALE_CLAIM
        classes = self._cluster.classes_of_extended_resources
        offered = node_info.allocatable.scalar
        for name, amount in self._resources.items():
            if amount and _may_be_served(name):
                if name in classes and not offered.get(name):
                    found[name] = classes[name]
                elif name not in offered:
                    return "cannot fit resource"
        return found

    def _unavailable_on(self, node: Node) -> list[int]:
        """Return the indices of the allocated claims that the node cannot use."""
        found = []
        behavior = self._behavior
        checks_conditions = behavior.dra_device_binding_conditions and behavior.dra_resource_claim_device_status
        for index, claim in enumerate(self.claims):
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

    def deallocate_claims(self) -> str:
        """Deallocate a claim that keeps the pod off a node, if no other pod uses it; return PostFilter's message."""
        special = self._special
        idle = [
            self.claims[index].key
            for index in sorted(self._unavailable)
            if self.claims[index] is not special
            # The claim is reserved for no other pod.
            and [user.uid for user in self.claims[index].status.reserved_for] in ([], [self._pod.metadata.uid])
        ]
        if idle:
            self.deallocated, self.rivals = idle[:1], idle
            return DEALLOCATED
        if special is not None and not is_virtual(special):
            self.deleted = [special.key]
            return DELETED
        return NOTHING_DONE

    def score_on(self, node_name: str) -> int:
        """Return a higher score for earlier alternatives; 0 if nothing had to be allocated."""
        found = self.found.get(node_name)
        if found is None or not self._behavior.dra_prioritized_list:
            return 0
        allocated = iter(found.devices)
        total = 0
        for claim in self.claims:
            if claim.status.allocation is not None:
                names: Iterable[str] = (each.request for each in claim.status.allocation.devices.results)
            else:
                names = (each.request for each in next(allocated))
            requests = frozenset(names)
            total += sum(
                MAX_ALTERNATIVES - index
                for request in claim.spec.devices.requests
                if request.exactly is None
                for index, each in enumerate(request.first_available)
                if f"{request.name}/{each.name}" in requests
            )
        return total


def _rejection(reason: str, detail: Detail | None = None) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason], detail=detail)


def _may_be_served(resource: str) -> bool:
    """Return whether devices may provide a resource with this name (``pkg/scheduler/util/utils.go``)."""
    return is_extended_resource(resource) or resource.startswith(CLASS_RESOURCE_PREFIX)


REASON_NOT_CREATED = "ResourceClaim not created yet"


class NoClaimError(Exception):
    """A claim is missing or belongs to another pod; ``str`` is upstream's text, ``claim`` its key, if known."""

    def __init__(self, message: str, claim: str = "") -> None:
        super().__init__(message)
        self.claim = claim


def claim_name_of(pod: Pod, reference: PodResourceClaim) -> str | None:
    """Return the name of the claim; ``None`` if none is created for it. Raises ``NoClaimError``."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    if reference.resource_claim_template_name is None:
        raise NoClaimError(
            f'pod "{pod.key}", spec.resourceClaim "{reference.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise NoClaimError(f'pod "{pod.key}": {REASON_NOT_CREATED}')


def claims_of(pod: Pod, claims: Mapping[str, ResourceClaim], *, kind: str = "Pod") -> list[ResourceClaim]:
    """Return the pod's claims in its order, from ``claims`` by ``namespace/name``. Raises ``NoClaimError``.

    ``kind`` is how the version spells Pod in the message about a claim created for another pod.
    """
    found = []
    for reference in pod.spec.resource_claims:
        name = claim_name_of(pod, reference)
        if name is None:
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = claims.get(key)
        if claim is None:
            raise NoClaimError(f'could not find ResourceClaim "{key}"', key)
        if claim.metadata.deletion_timestamp is not None:
            raise NoClaimError(f'resourceclaim "{name}" is being deleted', key)
        if reference.resource_claim_name is None:
            owner = controller_of(claim.metadata)
            if owner is None or owner.uid != pod.metadata.uid:
                message = f"ResourceClaim {key} was not created for {kind} {pod.key} ({kind} is not owner)"
                raise NoClaimError(message, key)
        found.append(claim)
    return found


def has_failed_to_bind(claim: ResourceClaim, now: datetime, timeout: timedelta) -> bool:
    """Return whether the devices of an allocated claim failed to become ready, or did not within ``timeout``."""
    allocation = claim.status.allocation
    assert allocation is not None
    is_ready = _is_ready(claim, allocation)
    if is_ready is None:
        return True
    since = allocation.allocation_timestamp
    if is_ready or since is None:
        return False
    return any(each.binding_conditions for each in allocation.devices.results) and since + timeout < now


def _is_ready(claim: ResourceClaim, allocation: AllocationResult) -> bool | None:
    """Return whether the drivers have made all devices ready; ``None`` if one failed. The first unready one decides."""
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        status = next(
            (each for each in claim.status.devices if (each.driver, each.pool, each.device) == result.id), None
        )
        if status is None:
            return False
        holding = {each.type for each in status.conditions if each.status == "True"}
        if not holding.isdisjoint(result.binding_failure_conditions):
            return None
        if not holding.issuperset(result.binding_conditions):
            return False
    return True
