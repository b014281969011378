"""What every filter says of one node: more than the scheduler looks at, which stops at the first that refuses.

The filters run as in a scheduling cycle, and once more without the pods of lower priority, as a dry run of preemption
begins (``SelectVictimsOnNode``, ``plugins/defaultpreemption/default_preemption.go``, v1.36.3).
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.frozen import frozen
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.foreign import attributed_to
from kpreempt.schedulers.kube.framework.interface import FilterPlugin, FrameworkError, PluginError
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.preemption.plugin import preemption_rules
from kpreempt.schedulers.kube.preemption.victims import without_potential_victims
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
    nominated = framework.nominated_pods_beside(pod, node_info.name)
    lower, without_lower = _without_evictable(framework, state, pod, node_info, nominated)
    return NodeEvaluation(
        left_out_by=restricting if node_names is not None and node_info.name not in node_names else [],
        filters=_run_filters(framework, state, pod, node_info, nominated),
        lower_priority_pods=[info.key for info in lower],
        without_lower=without_lower,
        nominated_pods=[info.key for info in nominated],
    )


def _without_evictable(
    framework: Framework, state: CycleState, pod: Pod, node_info: NodeInfo, nominated: Sequence[PodInfo]
) -> tuple[list[PodInfo], list[Status]]:
    """The pods that may be evicted, by priority where no plugin preempts, and each filter's status without them."""
    rules = preemption_rules(framework.plugins)
    try:
        if rules is None:
            potential = [info for info in node_info.pods if info.priority < pod.priority]
            if not potential:
                return [], []
            state, node_info = framework.without_pods(state, pod, node_info, potential)
        else:
            with attributed_to(rules.name):
                without = without_potential_victims(
                    framework, rules, state, frozen(pod), node_info, framework.cluster.now
                )
            if without is None:
                return [], []
            potential, state, node_info = without
    except FrameworkError as error:
        return [], [error.status]
    except PluginError as error:
        return [], [Status(Code.ERROR, [str(error)])]
    return potential, _run_filters(framework, state, pod, node_info, nominated)


def _run_filters(
    framework: Framework, state: CycleState, pod: Pod, node_info: NodeInfo, nominated: Sequence[PodInfo]
) -> list[Status]:
    """Each filter's status; where nominated pods count, a refusal beside them comes before one without them."""
    runs = [(state, node_info)]
    if nominated:
        try:
            runs.insert(0, framework.with_pods(state, pod, node_info, nominated))
        except FrameworkError as error:
            return [error.status]
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
