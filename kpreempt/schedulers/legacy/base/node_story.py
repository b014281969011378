"""What every filter says of one node: more than the scheduler looks at, which may stop at the first that refuses."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.filtering import Filter, FilterRun, LegacyError, State
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.version import Version
from kpreempt.verdict import Code, NodeEvaluation, Status


def evaluate_node(
    version: Version, filters: Sequence[Filter], cluster: Cluster, pod: Pod, node_info: NodeInfo
) -> NodeEvaluation:
    """All filters on the node, as it is and without its pods of lower priority; nothing passed in is changed."""
    info = PodInfo(pod, cluster.accounting)
    try:
        version.check_pod(cluster, pod)
        state = version.prepare_pod(cluster, info)
    except LegacyError as error:
        return NodeEvaluation(pre_filter=Status(Code.ERROR, [str(error)]))
    run = FilterRun(
        filters, cluster, info, stops_at_first=version.stops_at_first, counts_nominated=version.counts_nominated
    )
    lower = [each for each in node_info.pods if each.priority < info.priority]
    return NodeEvaluation(
        filters=_statuses(run, state, node_info),
        lower_priority_pods=[each.key for each in lower],
        without_lower=_without(run, state, node_info, lower) if lower else [],
        nominated_pods=[each.key for each in run.nominated_pods(node_info.name)],
    )


def _without(run: FilterRun, state: State, node_info: NodeInfo, lower: Sequence[PodInfo]) -> list[Status]:
    state, node_info = state.clone(), node_info.clone()
    for info in lower:
        node_info.remove_pod(info)
        state.remove_pod(info, node_info)
    return _statuses(run, state, node_info)


def _statuses(run: FilterRun, state: State, node_info: NodeInfo) -> list[Status]:
    """Each filter's status; where nominated pods count, a refusal beside them comes before one without them."""
    situations = run.situations(state, node_info)
    statuses = []
    for each in run.filters:
        answers = [_status(each, *situation) for situation in situations]
        refusals = (status for status in answers if not status.is_success)
        statuses.append(next(refusals, answers[-1]).of_plugin(each.name))
    return statuses


def _status(each: Filter, state: State, node_info: NodeInfo) -> Status:
    try:
        return each.check(state, node_info)
    except LegacyError as error:
        return Status(Code.ERROR, [str(error)])
