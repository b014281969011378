"""The requests with which a pod that preempts would land without evictions."""

from __future__ import annotations

import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.model.affinity import Affinity, PodAffinityTerm, PodAntiAffinity
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.model.taints import Taint
from kpreempt.verdict import Change, ChangeKind, Outcome, Verdict
from tests.factories import NOW, make_node, make_pod


def explain(cluster: ClusterSnapshot, pod: Pod, *, proposes: bool = True) -> Verdict:
    return explain_pods(AnalysisContext(cluster, scheduler_for(), NOW), [ExplainInput(pod=pod)], proposes=proposes)[0]


def low(name: str, node: str, cpu: str) -> Pod:
    return make_pod(name, node=node, cpu=cpu, priority=10)


AWAY_FROM_X = Affinity(
    pod_anti_affinity=PodAntiAffinity(
        required=[
            PodAffinityTerm(
                topology_key="kubernetes.io/hostname", label_selector=LabelSelector(match_labels={"app": "x"})
            )
        ]
    )
)
ROOMY = ClusterSnapshot(
    nodes=[
        make_node("a", cpu="4"),
        make_node("b", cpu="4"),
        make_node("tainted", cpu="4", taints=[Taint("gpu", "", "NoSchedule")]),
    ],
    pods=[low("x", "a", "3"), low("y", "b", "2500m")],
)


def test_the_smallest_cut_of_all_nodes_is_proposed_and_brings_what_it_says() -> None:
    verdict = explain(ROOMY, make_pod("new", cpu="2", priority=1000))
    assert verdict.outcome == Outcome.PREEMPTS
    (proposal,) = verdict.proposals
    assert proposal.changes == [Change(ChangeKind.REQUEST, "cpu", 2000, 1500)]
    assert proposal.options == ["--set=spec.containers[0].resources.requests.cpu=1500m"]
    assert (proposal.outcome, proposal.nodes, proposal.victims) == (Outcome.LANDS, ["b"], [])
    assert verdict.proposal_search is None
    lowered = explain(ROOMY, make_pod("new", cpu="1500m", priority=1000))
    assert (lowered.outcome, lowered.lands_on, lowered.proposals) == (Outcome.LANDS, ["b"], [])


@pytest.mark.parametrize(
    ("cluster", "pod"),
    [
        pytest.param(
            ClusterSnapshot(nodes=[make_node("a", cpu="4")], pods=[low("x", "a", "3500m")]),
            make_pod("new", cpu="2", priority=1000),
            id="the pod would be cut by more than half",
        ),
        pytest.param(
            ClusterSnapshot(nodes=[make_node("a", cpu="4")], pods=[low("x", "a", "4")]),
            make_pod("new", cpu="2", priority=1000),
            id="nothing is free",
        ),
        pytest.param(
            ClusterSnapshot(nodes=[make_node("a", cpu="4", pods="1")], pods=[low("x", "a", "3")]),
            make_pod("new", cpu="2", priority=1000),
            id="there is no slot for it",
        ),
        pytest.param(
            ClusterSnapshot(
                nodes=[make_node("a", cpu="4")],
                pods=[make_pod("x", node="a", cpu="3", priority=10, labels={"app": "x"})],
            ),
            make_pod("new", cpu="2", priority=1000, affinity=AWAY_FROM_X),
            id="something else stands in the way, too",
        ),
    ],
)
def test_nothing_is_proposed_where(cluster: ClusterSnapshot, pod: Pod) -> None:
    verdict = explain(cluster, pod)
    assert (verdict.outcome, verdict.proposals) == (Outcome.PREEMPTS, [])


def test_it_is_not_sought_unless_changes_are_requested() -> None:
    assert explain(ROOMY, make_pod("new", cpu="2", priority=1000), proposes=False).proposals == []
