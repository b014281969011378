"""What every filter says of one node: more than the scheduler looks at, which stops at the first that refuses.

The filters run as in a scheduling cycle, and once more without the pods of lower priority, as a dry run of preemption
begins (``SelectVictimsOnNode``, ``plugins/defaultpreemption/default_preemption.go``, v1.36.3).
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FilterPlugin, FrameworkError, PluginError
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.runner import Framework, is_same_pod
from kpreempt.schedulers.kube.preemption.victims import is_preemption_allowed
from kpreempt.verdict import Code, NodeEvaluation, Status


def evaluate_node(framework: Framework, pod: Pod, node_info: NodeInfo) -> NodeEvaluation:
    """All filters on the node, as it is and without its pods of lower priority; nothing that is passed in is changed.

    Where a PreFilter refuses the pod on all nodes, the filters are not prepared, and none is evaluated.
    """
    state = CycleState()
    try:
        node_names, pre_filter, restricting = framework.run_pre_filter(state, pod)
    except FrameworkError as error:
        return NodeEvaluation(pre_filter=error.status)
    if not pre_filter.is_success:
        return NodeEvaluation(pre_filter=pre_filter)
    nominated = [
        info
        for info in framework.cluster.nominated_pods.get(node_info.name, ())
        if info.priority >= pod.priority and not is_same_pod(info.pod, pod)
    ]
    lower = [info for info in node_info.pods if is_preemption_allowed(info, pod)]
    return NodeEvaluation(
        left_out_by=restricting if node_names is not None and node_info.name not in node_names else [],
        filters=_run_filters(framework, state, pod, node_info, nominated),
        lower_priority_pods=[info.key for info in lower],
        without_lower=_run_without(framework, state, pod, node_info, lower, nominated) if lower else [],
        nominated_pods=[info.key for info in nominated],
    )


def _run_without(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
    lower: Sequence[PodInfo],
    nominated: Sequence[PodInfo],
) -> list[Status]:
    node_info, state = node_info.snapshot(), state.clone()
    try:
        for info in lower:
            node_info.remove_pod(info)
            framework.run_pre_filter_remove_pod(state, pod, info, node_info)
    except FrameworkError as error:
        return [error.status]
    return _run_filters(framework, state, pod, node_info, nominated)


def _run_filters(
    framework: Framework, state: CycleState, pod: Pod, node_info: NodeInfo, nominated: Sequence[PodInfo]
) -> list[Status]:
    """Each filter's status; where nominated pods count, a refusal beside them comes before one without them."""
    runs = [(state, node_info)]
    if nominated:
        crowded, crowded_state = node_info.snapshot(), state.clone()
        try:
            for info in nominated:
                crowded.add_pod(info)
                framework.run_pre_filter_add_pod(crowded_state, pod, info, crowded)
        except FrameworkError as error:
            return [error.status]
        runs.insert(0, (crowded_state, crowded))
    statuses = []
    for plugin in framework.plugins.filters:
        if plugin.name not in state.skip_filter_plugins:
            answers = [_run_filter(plugin, run_state, pod, run_node) for run_state, run_node in runs]
            refusals = (status for status in answers if not status.is_success)
            statuses.append(next(refusals, answers[-1]).of_plugin(plugin.name))
    return statuses


def _run_filter(plugin: FilterPlugin, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
    try:
        return plugin.filter(state, pod, node_info)
    except PluginError as error:
        return Status(Code.ERROR, [str(error)])
