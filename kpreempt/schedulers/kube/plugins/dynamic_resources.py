"""DynamicResources' place in the chain (``plugins/dynamicresources``, v1.36.3).

Allocating devices is not modelled: a pod with resource claims gets an uncertain verdict. For all other pods this plugin
does what upstream's does: it skips its filter, scores 0, and its PostFilter, which runs before DefaultPreemption's,
says that there are no claims to deallocate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.model.durations import SECOND, format_duration
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.arg_types import DURATION
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import WRITTEN, Action, is_own, on, on_node, on_pod
from kpreempt.schedulers.kube.framework.field_errors import child, invalid
from kpreempt.schedulers.kube.framework.in_tree import in_tree
from kpreempt.schedulers.kube.framework.interface import (
    FilterPlugin,
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
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.versions import Behaviour
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.status import SKIP

REASON_NO_CLAIMS = "no new claims to deallocate"
REASON_NO_STATE = "not found"


_STATE_KEY = TreeKey("DynamicResources")


class DynamicResources(PreFilterPlugin, FilterPlugin, PostFilterPlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """Claims are left out of account; what remains are the message and the zero score."""

    name = "DynamicResources"
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._tells_claims = handle.behaviour.tells_claims_to_deallocate

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Note that this point was reached; the filter has nothing to do."""
        state.write(_STATE_KEY, True)
        return None, SKIP

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Never refuses; an error where PreFilter is not enabled."""
        self._check_state(state)
        return SUCCESS

    def post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Nothing to deallocate; an error where PreFilter rejected the pod before this plugin's turn."""
        if state.read(_STATE_KEY) is None:
            return None, Status(Code.ERROR, [REASON_NO_STATE])
        return None, Status(Code.UNSCHEDULABLE, [REASON_NO_CLAIMS] if self._tells_claims else [])

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Every node is as good as any other; an error where PreFilter is not enabled."""
        self._check_state(state)
        return 0

    def _check_state(self, state: CycleState) -> None:
        if state.read(_STATE_KEY) is None:
            raise PluginError(REASON_NO_STATE)


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
