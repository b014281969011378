"""A filter succeeds on all nodes that its quick check accepts."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.in_tree import SparseFilterPlugin
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import SUCCESS
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.strategies import Object, scenarios
from tests.strategies_whole import whole_scenarios


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.one_of(scenarios(), whole_scenarios()))
def test_every_node_accepted_by_the_quick_check_passes(scenario: Object) -> None:
    pod = pod_of(scenario["pod"])
    prepared = KubeScheduler(behavior=gates_of(scenario.get("featureGates"))).prepare(
        cluster_of(scenario["objects"]), now=NOW
    )
    for framework in prepared.frameworks.values():
        state, nodes = CycleState(), framework.cluster.node_infos
        _, status, _ = framework.run_pre_filter(state, pod)
        if not status.is_success:
            continue
        for plugin in framework.plugins.filters:
            if isinstance(plugin, SparseFilterPlugin) and plugin.name not in state.skip_filter_plugins:
                suspects = set(plugin.suspects(state, pod, nodes))
                assert all(plugin.filter(state, pod, each) is SUCCESS for each in nodes if each not in suspects)
        expected = [framework.run_filters_with_nominated_pods(state, pod, each) for each in nodes]
        assert framework.run_filters_on_cluster(state, pod, nodes) == expected
