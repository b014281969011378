"""The example plugins keep their counts exact in a dry run."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.plugins import Plugin
from kpreempt.plugins.examples.capacity_scheduling import CapacityScheduling
from kpreempt.plugins.examples.elastic_quota import NOTHING, Usage, plus, usage_of
from kpreempt.plugins.examples.rack_colocation import RackColocation
from kpreempt.verdict import Status
from tests.factories import make_node, make_pod
from tests.unit.plugins.running import PluginRun, cluster_of, decide_with

QUOTAS = "ElasticQuota.scheduling.x-k8s.io"
NODES = [
    make_node(name, cpu="2", labels={"example.com/rack": rack} if rack else {})
    for name, rack in (("a1", "r1"), ("a2", "r1"), ("b1", "r2"), ("c1", ""))
]
NAMES = [node.metadata.name for node in NODES]
few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


# Most are in the two namespaces that may have quotas.
namespaces = st.sampled_from(("ns1", "ns1", "ns2", "ns2", "ns3"))


@st.composite
def pods(draw: st.DrawFn) -> list[Pod]:
    """Pods of a few groups and namespaces on the nodes."""
    return [
        make_pod(
            f"p{index}",
            node=draw(st.sampled_from(NAMES)),
            cpu="1",
            priority=draw(st.sampled_from((0, 5, 50))),
            namespace=draw(namespaces),
            labels={"example.com/group": draw(st.sampled_from(("ring", "star")))} if draw(st.booleans()) else {},
        )
        for index in range(draw(st.integers(2, 10)))
    ]


@st.composite
def incoming(draw: st.DrawFn) -> Pod:
    """The incoming pod, which usually has a group."""
    labels = {"example.com/group": draw(st.sampled_from(("ring", "star")))} if draw(st.integers(0, 3)) else {}
    return make_pod("new", cpu=draw(st.sampled_from("12")), priority=10, namespace=draw(namespaces), labels=labels)


arguments = st.fixed_dictionaries({"maxPods": st.integers(0, 3)})


@st.composite
def quotas(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Small quotas of some namespaces."""
    found = []
    for namespace in draw(st.sets(st.sampled_from(("ns1", "ns2")), min_size=1)):
        spec = {"min": {"cpu": draw(st.integers(1, 9))}}
        if draw(st.booleans()):
            spec["max"] = {"cpu": draw(st.integers(4, 10))}
        found.append({"metadata": {"name": "q", "namespace": namespace}, "spec": spec})
    return found


def shown(usage: Usage) -> dict[str, Any]:
    """Comparable usage, without zero amounts."""
    amounts = {**usage.used, "all": usage.total}
    return {name: (each.milli_cpu, each.memory) for name, each in amounts.items()}


def rejection(status: Status) -> tuple[object, ...]:
    return status.code, status.reasons


@few
@given(pods(), incoming(), arguments, st.data())
def test_removing_and_adding_restores_the_state(
    there: list[Pod], request: Pod, args: dict[str, int], data: st.DataObject
) -> None:
    setting = PluginRun(RackColocation, cluster_of(NODES, there), request, args)
    framework, state = setting.framework, setting.state
    node_info = framework.cluster.by_name[data.draw(st.sampled_from(NAMES))]
    before = framework.run_filters(state, request, node_info)
    away = data.draw(st.permutations(node_info.pods))
    changed, without = framework.without_pods(state, request, node_info, away)
    assert rejection(framework.run_filters(state, request, node_info)) == rejection(before)
    changed, again = framework.with_pods(changed, request, without, data.draw(st.permutations(away)))
    members, members_before = (each.read("RackColocation/members") for each in (changed, state))
    assert getattr(members, "in_rack", None) == getattr(members_before, "in_rack", None)
    assert rejection(framework.run_filters(changed, request, again)) == rejection(before)


@few
@given(pods(), incoming(), arguments, st.data())
def test_a_dry_run_counts_as_if_the_pods_never_existed(
    there: list[Pod], request: Pod, args: dict[str, int], data: st.DataObject
) -> None:
    setting = PluginRun(RackColocation, cluster_of(NODES, there), request, args)
    node_info = setting.framework.cluster.by_name[data.draw(st.sampled_from(NAMES))]
    away = [info for info in node_info.pods if data.draw(st.booleans())]
    state, without = setting.framework.without_pods(setting.state, request, node_info, away)
    deleted = {info.key for info in away}
    fresh = PluginRun(
        RackColocation, cluster_of(NODES, [pod for pod in there if pod.key not in deleted]), request, args
    )
    fresh_node = fresh.framework.cluster.by_name[node_info.name]
    in_dry_run = setting.framework.run_filters(state, request, without)
    assert in_dry_run == fresh.framework.run_filters(fresh.state, request, fresh_node)


def held_against_a_cluster_without_victims(
    plugin: type[Plugin], on: ClusterSnapshot, request: Pod, args: dict[str, int] | None
) -> None:
    """Without the victims of a candidate the pod fits on its node; with any one of them it does not."""
    verdict = decide_with(plugin, on, request, args)
    for candidate in verdict.candidates:
        for kept in (None, *candidate.victims):
            deleted = set(candidate.victims) - {kept}
            rest = msgspec.structs.replace(on, pods=[pod for pod in on.pods if pod.key not in deleted])
            fits = candidate.node in decide_with(plugin, rest, request, args).feasible_nodes
            assert fits == (kept is None), (candidate.node, kept)


@few
@given(pods(), incoming(), arguments)
def test_victims_for_a_group_are_sufficient_and_minimal(there: list[Pod], request: Pod, args: dict[str, int]) -> None:
    held_against_a_cluster_without_victims(RackColocation, cluster_of(NODES, there), request, args)


@few
@given(pods(), incoming(), quotas())
def test_victims_under_quotas_are_sufficient_and_minimal(
    there: list[Pod], request: Pod, limits: list[dict[str, Any]]
) -> None:
    on = cluster_of(NODES, there, documents={QUOTAS: limits})
    held_against_a_cluster_without_victims(CapacityScheduling, on, request, None)


@given(pods(), quotas(), st.data())
def test_a_quota_counts_the_current_pods(there: list[Pod], limits: list[dict[str, Any]], data: st.DataObject) -> None:
    usage = usage_of(limits, there)
    at_first = shown(usage)
    copy = usage.clone()
    away = [pod for pod in there if data.draw(st.booleans())]
    for pod in away:
        copy.count(pod, -1)
    assert shown(copy) == shown(usage_of(limits, [pod for pod in there if pod not in away]))
    for pod in data.draw(st.permutations(away)):
        copy.count(pod, 1)
    assert shown(copy) == at_first == shown(usage)
    assert plus(NOTHING, copy.total).milli_cpu == copy.total.milli_cpu
