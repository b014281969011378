"""DynamicResources: whether a node has devices for the pod's claims (``plugins/dynamicresources``, v1.36.3).

The code for pods with claims is in ``kpreempt/schedulers/kube/devices``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.arg_types import DURATION, child, invalid
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import WRITTEN, Action, is_own, on, on_node, on_pod
from kpreempt.schedulers.kube.framework.in_tree import BulkScorePlugin, NodeFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    NodeToStatus,
    PluginArgs,
    PluginError,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    normalize_to_max,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.status import SKIP

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.devices.pod_devices import PodDevices

REASON_NO_CLAIMS = "no new claims to deallocate"
REASON_NO_STATE = "not found"
# In nanoseconds, like the arguments.
_SECOND = 10**9
_DEFAULT_BINDING_TIMEOUT = 600 * _SECOND

_CLAIMS = frozenset(("ResourceClaim", "ResourceClaimTemplate"))
_STATE_KEY = TreeKey("DynamicResources")


class _State:
    """Shows that PreFilter ran, and holds the claims of a pod that has any."""

    __slots__ = ("devices",)

    def __init__(self, devices: PodDevices | None = None) -> None:
        self.devices = devices


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    NodeFilterPlugin,
    PostFilterPlugin,
    BulkScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """Rejects nodes that cannot use the pod's allocated claims, or lack devices for the others."""

    name = "DynamicResources"
    scales_to_extremes = True
    # Scores need the devices found on a node, and PostFilter the claims without devices.
    is_local = False

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._reports_claims = handle.behavior.reports_claims_to_deallocate
        timeout = args.get("bindingTimeout")
        nanoseconds = timeout if isinstance(timeout, int) else _DEFAULT_BINDING_TIMEOUT
        self._binding_timeout = timedelta(seconds=nanoseconds / _SECOND)

    def pre_enqueue(self, pod: Pod) -> Status:
        """Gate a pod while a claim that it names is missing or being deleted; only a running scheduler has a queue."""
        if not pod.spec.resource_claims or not self._cluster.is_queued:
            return SUCCESS
        if not _CLAIMS.isdisjoint(self._cluster.cluster.unread):
            # The claim may exist; the cycle reports what is unknown about it.
            return SUCCESS
        from kpreempt.schedulers.kube.devices.pod_devices import missing_claim  # noqa: PLC0415 - few pods have devices

        return missing_claim(pod, self._cluster) or SUCCESS

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Collect the claims; reject pods whose claims are missing, and skip pods without any."""
        state.write(_STATE_KEY, _State())
        if not pod.spec.resource_claims and not self._cluster.classes_of_extended_resources:
            return None, SKIP
        from kpreempt.schedulers.kube.devices.pod_devices import devices_of  # noqa: PLC0415 - few pods have devices

        devices = devices_of(pod, self._cluster, self._binding_timeout)
        if devices is None:
            return None, SKIP
        if isinstance(devices, Status):
            return None, devices
        state.write(_STATE_KEY, _State(devices))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject the node if claims cannot be used there, or there are no devices for them."""
        devices = _state_of(state).devices
        return SUCCESS if devices is None else devices.status_on(node_info)

    def post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Deallocate one claim that keeps the pod off a node; an error if an earlier plugin rejected the node."""
        own = state.read(_STATE_KEY)
        if not isinstance(own, _State):
            return None, Status(Code.ERROR, [REASON_NO_STATE])
        if own.devices is None:
            return None, Status(Code.UNSCHEDULABLE, [REASON_NO_CLAIMS] if self._reports_claims else [])
        message = own.devices.deallocate_claims()
        is_reported = self._reports_claims or own.devices.deallocated or own.devices.deleted
        return None, Status(Code.UNSCHEDULABLE, [message] if is_reported else [])

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return a higher score for earlier alternatives; an error if PreFilter is not enabled."""
        devices = _state_of(state).devices
        return 0 if devices is None else devices.score_on(node_info.name)

    def score_of_every_node(self, state: CycleState, pod: Pod) -> int | None:
        """Return 0 for a pod without claims."""
        return 0 if _state_of(state).devices is None else None

    def score_all(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
        """Return the score of each node."""
        return [self.score(state, pod, node_info) for node_info in nodes]

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Scale the highest score to 100."""
        return normalize_to_max(scores)


def pod_devices(state: CycleState) -> PodDevices | None:
    """Return the pod's claims after a cycle with this state, if it has any and they exist."""
    own = state.read(_STATE_KEY)
    return own.devices if isinstance(own, _State) else None


def _state_of(state: CycleState) -> _State:
    """Return the state; an error if PreFilter is not enabled."""
    own = state.read(_STATE_KEY)
    if not isinstance(own, _State):
        raise PluginError(REASON_NO_STATE)
    return own


def arg_problems(path: str, args: Mapping[str, Any], behavior: Behavior) -> list[str]:
    """List problems of the arguments at ``path`` (``apis/config/validation/validation_pluginargs.go``)."""
    problems: list[str] = []
    if not behavior.takes_args_of_dynamic_resources:
        return problems
    from kpreempt.model.durations import format_duration  # noqa: PLC0415 - few configure this plugin

    filter_timeout, binding_timeout = args.get("filterTimeout"), args.get("bindingTimeout")
    if filter_timeout is not None and filter_timeout < 0:
        shown = format_duration(filter_timeout)
        problems.append(invalid(child(path, "filterTimeout"), shown, "must be zero or positive"))
    if binding_timeout is not None and binding_timeout < _SECOND:
        shown = format_duration(binding_timeout)
        problems.append(invalid(child(path, "bindingTimeout"), shown, "must be at least 1 second"))
    return problems


PLUGIN = in_tree(
    DynamicResources,
    unmodeled="preEnqueue",
    args={"filterTimeout": DURATION, "bindingTimeout": DURATION},
    arg_problems=arg_problems,
    awaits=lambda: [
        on_node(Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        on("ResourceClaim", WRITTEN),
        on_pod(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, is_own, is_modeled=False),
        on("DeviceClass", WRITTEN, is_modeled=True),
        on("ResourceSlice", WRITTEN, is_modeled=True),
    ],
)
