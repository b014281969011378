"""The state after AddPod and RemovePod equals the state of the changed cluster."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.interface import Handle
from kpreempt.schedulers.kube.plugins.inter_pod_affinity import plugin as inter_pod_affinity
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.filtering import FilterState as AffinityState
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kpreempt.schedulers.kube.plugins.pod_topology_spread import plugin as pod_topology_spread
from kpreempt.schedulers.kube.plugins.pod_topology_spread.filtering import FilterState as SpreadState
from kpreempt.schedulers.kube.plugins.pod_topology_spread.plugin import PodTopologySpread
from kpreempt.schedulers.kube.versions import behavior
from tests.conformance.cases import NOW, cluster_of, pod_of
from tests.strategies import affinities, scenarios, spread_constraints

GATES = behavior()
MANY = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
Plugin = InterPodAffinity | PodTopologySpread
KEYS: dict[type[Plugin], TreeKey] = {
    InterPodAffinity: inter_pod_affinity.PRE_FILTER_KEY,
    PodTopologySpread: pod_topology_spread.PRE_FILTER_KEY,
}


class Change:
    """A cluster, some pods of one of its nodes, and the incoming pod."""

    def __init__(self, cluster: ClusterSnapshot, pod: Pod, node_name: str, leaving: list[Pod]) -> None:
        deleted = {each.metadata.uid for each in leaving}
        remaining = [each for each in cluster.pods if each.metadata.uid not in deleted]
        self.pod = pod
        self.before = state_of(cluster)
        self.after = state_of(msgspec.structs.replace(cluster, pods=remaining))
        self.node_info = self.before.by_name[node_name].snapshot()
        self.leaving = [info for info in self.node_info.pods if info.pod.metadata.uid in deleted]


@st.composite
def changes(draw: st.DrawFn, *, counts_terminating: bool = True) -> Change:
    """A scenario in which some pods leave a node.

    Upstream's topology spread does not count pods that are being deleted, but removes and adds them; and an empty
    selector matches no pod in the initial count, and every pod in updates. Without ``counts_terminating`` neither
    occurs.
    """
    scenario = draw(scenarios(max_nodes=3, max_pods=4))
    spec = scenario["pod"]["spec"]
    if draw(st.booleans()):
        spec["affinity"] = spec.get("affinity", {}) | draw(affinities())
    constraints = draw(st.lists(spread_constraints(), max_size=2))
    spec["topologySpreadConstraints"] = [
        each | {"whenUnsatisfiable": "DoNotSchedule"}
        for each in constraints
        if counts_terminating or each["labelSelector"]
    ]
    cluster = cluster_of(scenario["objects"])
    node_name = draw(st.sampled_from([node.name for node in cluster.nodes]))
    there = [
        pod
        for pod in cluster.pods
        if pod.spec.node_name == node_name and (counts_terminating or pod.metadata.deletion_timestamp is None)
    ]
    assume(there)
    leaving = draw(st.lists(st.sampled_from(there), min_size=1, unique_by=lambda pod: pod.metadata.uid))
    return Change(cluster, pod_of(scenario["pod"]), node_name, leaving)


def state_of(cluster: ClusterSnapshot) -> ClusterState:
    return ClusterState(cluster, GATES, now=NOW, scheduler_names=frozenset(["default-scheduler"]))


def prepared(kind: type[Plugin], cluster: ClusterState, pod: Pod) -> tuple[Plugin, CycleState | None]:
    """The plugin and its PreFilter state; none if it skips the pod."""
    plugin, state = kind({}, Handle(cluster, GATES)), CycleState()
    _, status = plugin.pre_filter(state, pod, cluster.node_infos)
    return plugin, None if status.is_skip else state


def remove(plugin: Plugin, state: CycleState, change: Change) -> None:
    for info in change.leaving:
        change.node_info.remove_pod(info)
        plugin.remove_pod(state, change.pod, info, change.node_info)


def counts_of(state: CycleState, kind: type[Plugin]) -> Any:
    """Everything that affects a node's result, as plain data."""
    counts = state.read(KEYS[kind])
    if isinstance(counts, AffinityState):
        return counts.affinity, counts.anti_affinity, counts.existing_anti_affinity
    assert isinstance(counts, SpreadState)
    return counts.counts, [counts.minimum(index) for index in range(len(counts.constraints))]


def reasons_on_the_node(plugin: Plugin, state: CycleState | None, change: Change, cluster: ClusterState) -> list[str]:
    if state is None:
        return []
    return plugin.filter(state, change.pod, cluster.by_name[change.node_info.name]).reasons


@MANY
@given(changes())
def test_pod_affinity_after_pods_left_is_that_of_the_cluster_without_them(change: Change) -> None:
    plugin, state = prepared(InterPodAffinity, change.before, change.pod)
    assume(state is not None)
    assert state is not None
    remove(plugin, state, change)
    again, fresh = prepared(InterPodAffinity, change.after, change.pod)
    expected = counts_of(fresh, InterPodAffinity) if fresh else ({}, {}, {})
    assert counts_of(state, InterPodAffinity) == expected
    assert reasons_on_the_node(plugin, state, change, change.before) == reasons_on_the_node(
        again, fresh, change, change.after
    )


@MANY
@given(changes(counts_terminating=False))
def test_topology_spread_after_pods_left_is_that_of_the_cluster_without_them(change: Change) -> None:
    plugin, state = prepared(PodTopologySpread, change.before, change.pod)
    assume(state is not None)
    assert state is not None
    remove(plugin, state, change)
    again, fresh = prepared(PodTopologySpread, change.after, change.pod)
    assert fresh is not None
    assert counts_of(state, PodTopologySpread) == counts_of(fresh, PodTopologySpread)
    assert reasons_on_the_node(plugin, state, change, change.before) == reasons_on_the_node(
        again, fresh, change, change.after
    )


@MANY
@given(st.sampled_from([InterPodAffinity, PodTopologySpread]), changes(), st.randoms(use_true_random=False))
def test_pods_that_leave_and_come_back_restore_the_state(kind: type[Plugin], change: Change, random: Any) -> None:
    plugin, original = prepared(kind, change.before, change.pod)
    assume(original is not None)
    assert original is not None
    before = repr(counts_of(original, kind))
    state = original.clone()
    remove(plugin, state, change)
    returning = list(change.leaving)
    random.shuffle(returning)
    for info in returning:
        change.node_info.add_pod(info)
        plugin.add_pod(state, change.pod, info, change.node_info)
    assert counts_of(state, kind) == counts_of(original, kind)
    assert repr(counts_of(original, kind)) == before, "updates of the clone reached the original"
