"""New nodes help if their options are applied, and no kind that helps is missed."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.nodes.changes import with_changed_nodes
from kpreempt.analysis.nodes.copies import kinds_of
from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.library.draws import DRAWS
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import ChangeKind, Outcome, Verdict
from kpreempt.verdict.pending import MoreNodes
from tests.conformance.cases import NOW, cluster_of, pod_of
from tests.strategies import scenarios

LAWS = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
SCHEDULER = scheduler_for()
MAX_REMEDIES = 6
SEARCHED = (Outcome.UNSCHEDULABLE, Outcome.WAITS_FOR_VICTIMS, Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)


def explain(cluster: ClusterSnapshot, pod: Pod, **wanted: Any) -> Verdict:
    return explain_pods(AnalysisContext(cluster, SCHEDULER, NOW), [ExplainInput(pod=pod)], **wanted)[0]


def with_nodes(cluster: ClusterSnapshot, *texts: str) -> ClusterSnapshot:
    return with_changed_nodes(cluster, added=texts, read_file=lambda _: cluster, now=NOW)[0]


@LAWS
@given(scenarios())
def test_a_new_node_is_a_remedy_if_and_only_if_a_kind_places_the_pod(scenario: dict[str, Any]) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    verdict = explain(cluster, pod, proposes=True)
    search = verdict.remedy_search
    assert (search is not None) is (verdict.outcome in SEARCHED and bool(cluster.nodes))
    if search is None:
        return
    lands = {}
    for kind in kinds_of(cluster):
        name = kind.like.name
        after = explain(with_nodes(cluster, name), pod)
        if after.outcome is Outcome.LANDS and after.volume_choices is None:
            lands[name] = after.lands_on
    assert search.kinds == len(kinds_of(cluster))
    found = [each for each in verdict.remedies if each.changes[0].kind is ChangeKind.ADD_NODE]
    for remedy in found:
        # Kinds are in the order of their size.
        assert remedy.changes[0].subject == next(iter(lands))
        assert remedy.nodes == lands[remedy.changes[0].subject]
    # Up to six remedies are shown.
    assert bool(found) is bool(lands) or len(verdict.remedies) == MAX_REMEDIES


@LAWS
@given(scenarios(), st.integers(0, 3))
def test_a_new_node_only_affects_topology_counts_on_others(scenario: dict[str, Any], number: int) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    after = with_nodes(cluster, cluster.nodes[number % len(cluster.nodes)].name)
    before, now = explain(cluster, pod).filter, explain(after, pod).filter
    for name, status in before.items():
        if name in now and status != now[name]:
            assert {status.plugin, now[name].plugin} & {"PodTopologySpread", "InterPodAffinity"}


@LAWS
@given(scenarios(rich=False), st.integers(1, 4))
def test_the_new_nodes_fit_all_pending_pods(scenario: dict[str, Any], number: int) -> None:
    pods = [pod_of(scenario["pod"]) for _ in range(number)]
    waiting = [
        msgspec.structs.replace(
            pod, metadata=msgspec.structs.replace(pod.metadata, name=f"w-{place}", uid=f"w-{place}")
        )
        for place, pod in enumerate(pods)
        if not pod.status.nominated_node_name
    ]
    cluster = cluster_of(scenario["objects"])
    cluster = msgspec.structs.replace(cluster, pods=[*cluster.pods, *waiting])
    more = explain_pending(AnalysisContext(cluster, SCHEDULER, NOW, at=NOW), draws=DRAWS, seeks_nodes=True).more_nodes
    if not isinstance(more, MoreNodes) or not more.nodes:
        return
    after = with_nodes(cluster, *(option.removeprefix("--add-node=") for option in more.options))
    outcomes = {
        item.pod: item.outcome
        for item in explain_pending(AnalysisContext(after, SCHEDULER, NOW, at=NOW), draws=DRAWS).items
    }
    # Each pod is evaluated alone here; if it fits with the others, it fits alone, unless its affinity requires others.
    assert all(outcomes[key] is Outcome.LANDS for key in more.pods)
