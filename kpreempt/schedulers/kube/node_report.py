"""Run every filter on one node; the scheduler itself stops at the first rejection.

The filters run as in a scheduling cycle, and again without the pods of lower priority, as a dry run of preemption
starts (``SelectVictimsOnNode``, ``plugins/defaultpreemption/default_preemption.go``, v1.36.3).

``fits_on`` is the check that a scheduling queue without queueing hints runs on an added or updated node. It follows
``preCheckForNode`` and ``AdmissionCheck`` in ``pkg/scheduler/eventhandlers.go`` of v1.31.14: pods that do not fit on
the node as it is stay unschedulable, whatever plugin rejected them. It ignores the profile's configuration and
nominated pods.

``capacity_of_nodes`` is the number of identical pods that still fit on each node as it is, if results for a node depend
on that node only. ``is_permanently_unschedulable`` checks whether no state of these nodes could hold a pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kpreempt.model.frozen import frozen
from kpreempt.model.pod import Pod
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.in_tree import Outline
from kpreempt.schedulers.kube.framework.interface import FrameworkError, PluginError
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo, host_ports_of
from kpreempt.schedulers.kube.framework.out_of_tree import attributed_to
from kpreempt.schedulers.kube.framework.resources import Resource, pod_requests
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.plugins.node_affinity import NodeAffinity
from kpreempt.schedulers.kube.plugins.node_resources_fit import NodeResourcesFit
from kpreempt.schedulers.kube.preemption.evaluator import preemption_rules
from kpreempt.schedulers.kube.preemption.victims import without_potential_victims
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import Code, NodeEvaluation, Status
from kpreempt.verdict.status import is_permanent


def evaluate_node(framework: Framework, pod: Pod, node_info: NodeInfo) -> NodeEvaluation:
    """Run all filters on the node, as it is and without its pods of lower priority; arguments are not changed.

    If a PreFilter plugin rejects the pod on all nodes, filters are not prepared and none is evaluated.
    """
    state = CycleState()
    try:
        node_names, pre_filter, restricting = framework.run_pre_filter(state, pod)
    except FrameworkError as error:
        return NodeEvaluation(pre_filter=error.status)
    if not pre_filter.is_success:
        return NodeEvaluation(pre_filter=pre_filter)
    nominated = framework.nominated_pods_except(pod, node_info.name)
    lower, without_lower = _without_evictable(framework, state, pod, node_info, nominated)
    return NodeEvaluation(
        excluded_by=restricting if node_names is not None and node_info.name not in node_names else [],
        filters=_run_filters(framework, state, pod, node_info, nominated),
        lower_priority_pods=[info.key for info in lower],
        without_lower=without_lower,
        nominated_pods=[info.key for info in nominated],
    )


def _without_evictable(
    framework: Framework, state: CycleState, pod: Pod, node_info: NodeInfo, nominated: Sequence[PodInfo]
) -> tuple[list[PodInfo], list[Status]]:
    """Return the evictable pods (by priority if no plugin preempts), and each filter's status without them."""
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
    """Return each filter's status; if nominated pods count, a rejection with them takes precedence."""
    runs = [(state, node_info)]
    if nominated:
        try:
            runs.insert(0, framework.with_pods(state, pod, node_info, nominated))
        except FrameworkError as error:
            return [error.status]
    statuses = []
    for plugin in framework.plugins.filters:
        if plugin.name not in state.skip_filter_plugins:
            answers = []
            for run_state, run_node in runs:
                try:
                    answers.append(plugin.filter(run_state, pod, run_node))
                except PluginError as error:
                    answers.append(Status(Code.ERROR, [str(error)]))
            rejections = (status for status in answers if not status.is_success)
            statuses.append(next(rejections, answers[-1]).of_plugin(plugin.name))
    return statuses


_REPELLING = frozenset(("NoSchedule",))


def fits_on(pod: Pod, node_info: NodeInfo, behavior: Behavior) -> bool:
    """Check resources, required node affinity, node name, host ports and taints."""
    node = node_info.node
    return (
        _fits(pod, node_info, behavior)
        and pod.spec.selects(node.name, node.labels)
        and pod.spec.node_name in ("", node.name)
        and not any(
            node_info.used_ports.conflicts(port.host_ip, port.protocol, port.host_port)
            for port in host_ports_of(pod, counts_sidecars=behavior.counts_ports_of_sidecars)
        )
        and find_untolerated_taint(node.spec.taints, pod.spec.tolerations, _REPELLING) is None
    )


def _fits(pod: Pod, node_info: NodeInfo, behavior: Behavior) -> bool:
    requested = Resource.from_nano(pod_requests(pod, pod_level=behavior.pod_level_resources))
    total, used = node_info.allocatable, node_info.requested
    amounts = [
        (requested.milli_cpu, used.milli_cpu, total.milli_cpu),
        (requested.memory, used.memory, total.memory),
        (requested.ephemeral_storage, used.ephemeral_storage, total.ephemeral_storage),
        *((want, used.scalar.get(name, 0), total.scalar.get(name, 0)) for name, want in requested.scalar.items()),
    ]
    return node_info.num_pods < total.allowed_pod_number and all(
        want == 0 or want <= whole - there for want, there, whole in amounts
    )


def capacity_of_nodes(framework: Framework, pod: Pod, most: int) -> Mapping[str, int] | None:
    """Return how many such pods fit on each node, up to ``most``; ``None`` if pods on other nodes may matter.

    The pods are added one by one. If all filters that run only read the node itself, the order of nodes does not
    matter.
    """
    if pod.spec.resource_claims or any(each.ephemeral or each.persistent_volume_claim for each in pod.spec.volumes):
        # Either each pod has its own claims, or all pods share a claim that may allow only one of them.
        return None
    state = CycleState(records_steps=False)
    try:
        names, status, _ = framework.run_pre_filter(state, pod)
        if not framework.all_filters_are_node_local(state):
            return None
        if not status.is_success:
            return {}
        cluster = framework.cluster
        info = PodInfo(pod, cluster.behavior)
        found = {}
        for node_info in cluster.node_infos:
            if names is not None and node_info.name not in names:
                continue
            count = 0
            if framework.run_filters_with_nominated_pods(state, pod, node_info).is_success:
                filled = node_info.snapshot()
                while count < most:
                    count += 1
                    filled.add_pod(info)
                    if not framework.run_filters_with_nominated_pods(state, pod, filled).is_success:
                        break
            if count:
                found[node_info.name] = count
    except FrameworkError:
        return None
    return found


def _is_permanent(status: Status) -> bool:
    return status.is_permanent if isinstance(status, Outline) else is_permanent(status)


def is_permanently_unschedulable(
    framework: Framework, state: CycleState, pod: Pod, status_of: Callable[[str], Status], pre_filter: Status | None
) -> bool:
    """Return whether each node rejects the pod whatever runs there, including filters that were not reached.

    ``status_of`` returns a node's status, or an outline of it, by name; ``state`` is the state after PreFilter, and
    ``pre_filter`` is PreFilter's status if it rejects the pod.
    """
    if pre_filter is not None:
        # The pod's node requirements contradict each other; any other rejection here may be resolved later.
        return pre_filter.plugin == NodeAffinity.name
    filters = [
        plugin
        for plugin in framework.plugins.filters
        if isinstance(plugin, NodeResourcesFit | NodeAffinity) and plugin.name not in state.skip_filter_plugins
    ]
    try:
        return all(
            _is_permanent(status_of(node_info.name))
            or any(is_permanent(plugin.filter(state, pod, node_info)) for plugin in filters)
            for node_info in framework.cluster.node_infos
        )
    except PluginError:
        return False
