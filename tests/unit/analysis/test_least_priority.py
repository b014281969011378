"""The least priority over all nodes with which a pod lands, and how far proposals reach."""

from __future__ import annotations

import msgspec
import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain import node_report
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.explain.single_edits import first_reaching
from kpreempt.model.affinity import Affinity, PodAffinity, PodAffinityTerm
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.model.taints import Taint
from kpreempt.verdict import ChangeKind, Verdict
from tests.factories import NOW, make_node, make_pod

TAINT = Taint("dedicated", "gpu", "NoSchedule")
HOSTNAME = "kubernetes.io/hostname"


def explain(cluster: ClusterSnapshot, pod: Pod) -> Verdict:
    return explain_pods(AnalysisContext(cluster, scheduler_for(), NOW), [ExplainInput(pod=pod)], proposes=True)[0]


def options(cluster: ClusterSnapshot, pod: Pod) -> list[list[str]]:
    return [each.options for each in explain(cluster, pod).proposals]


def full(*priorities: int, cpu: str = "2") -> ClusterSnapshot:
    """A node for each priority, which one pod of that priority fills."""
    return ClusterSnapshot(
        nodes=[make_node(f"n{index}", cpu=cpu) for index in range(len(priorities))],
        pods=[make_pod(f"p{index}", node=f"n{index}", cpu=cpu, priority=each) for index, each in enumerate(priorities)],
    )


@pytest.mark.parametrize(
    ("cluster", "pod", "wanted"),
    [
        pytest.param(full(10_000, 10), make_pod("new", cpu="2", priority=10), 11, id="from the node where it is least"),
        pytest.param(
            full(*range(1000, 1040), 7), make_pod("new", cpu="2"), 8, id="not only from the nodes that are looked at"
        ),
        pytest.param(
            msgspec.structs.replace(full(50, 60), nodes=[make_node("n0", taints=[TAINT]), make_node("n1", cpu="2")]),
            make_pod("new", cpu="2"),
            61,
            id="not from a node that refuses the pod at every priority",
        ),
        pytest.param(
            ClusterSnapshot(
                nodes=[make_node("a", cpu="4"), make_node("b", cpu="4")],
                pods=[
                    *(make_pod(f"a{each}", node="a", cpu="1", priority=each) for each in (1, 2, 3, 40)),
                    *(make_pod(f"b{each}", node="b", cpu="2", priority=each) for each in (4, 30)),
                ],
            ),
            make_pod("new", cpu="4"),
            31,
            id="as high as all have to be that must go from the best node",
        ),
        pytest.param(
            ClusterSnapshot(
                nodes=[make_node("a", cpu="2")], pods=[make_pod("first", cpu="2", priority=5, nominated="a")]
            ),
            make_pod("new", cpu="2", priority=3, preemption_policy="Never"),
            6,
            id="above a nominated pod, for one that may not evict",
        ),
    ],
)
def test_the_least_priority_is_proposed(cluster: ClusterSnapshot, pod: Pod, wanted: int) -> None:
    assert [f"--priority={wanted}"] in options(cluster, pod)
    assert sum(any("--priority" in option for option in each) for each in options(cluster, pod)) == 1


@pytest.mark.parametrize("priority", [999_999_999, 1_000_000_000])
def test_no_priority_is_proposed_that_users_may_not_give(priority: int) -> None:
    reported = options(full(priority), make_pod("new", cpu="2"))
    assert (["--priority=1000000000"] in reported) == (priority == 999_999_999)
    assert ["--priority=1000000001"] not in reported


def test_priorities_are_tried_one_by_one_if_pods_required_by_affinity_may_be_evicted() -> None:
    company = Affinity(
        pod_affinity=PodAffinity(required=[PodAffinityTerm(HOSTNAME, LabelSelector(match_labels={"app": "db"}))])
    )
    cluster = ClusterSnapshot(
        nodes=[make_node("a", cpu="3")],
        pods=[
            make_pod("low", node="a", cpu="2", priority=5),
            make_pod("db", node="a", cpu="1", priority=9, labels={"app": "db"}),
        ],
    )
    assert options(cluster, make_pod("new", cpu="2", affinity=company))[0] == ["--priority=6"]


def test_in_a_pair_the_priority_is_the_least_too() -> None:
    cluster = full(10_000, 10)
    may_not = make_pod("new", cpu="2", priority=10, preemption_policy="Never", node_selector={"disk": "ssd"})
    labelled = [
        msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels={"disk": "ssd"}))
        for node in cluster.nodes
    ]
    reported = options(msgspec.structs.replace(cluster, nodes=labelled), may_not)
    raised = [each for each in reported if any("--priority" in option for option in each)]
    assert all("--priority=11" in each for each in raised)


def test_pods_of_the_system_are_outranked_last() -> None:
    cluster = full(10)
    system = [make_pod("dns", node="n0", cpu="2", priority=10, namespace="kube-system")]
    pod = make_pod("new", cpu="2", priority=10)
    assert options(cluster, pod)[0] == ["--priority=11"]
    last = explain(msgspec.structs.replace(cluster, pods=system), pod).proposals
    kinds = [each.changes[0].kind for each in last]
    assert kinds.index(ChangeKind.REQUEST) < kinds.index(ChangeKind.PRIORITY)


def test_on_a_very_big_cluster_only_the_priority_is_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_report, "MAX_NODES_SEARCHED", 1)
    verdict = explain(full(10_000, 10), make_pod("new", cpu="2", priority=10))
    assert [each.options for each in verdict.proposals] == [["--priority=11"]]
    assert verdict.proposal_search is not None
    assert (verdict.proposal_search.is_skipped, verdict.proposal_search.is_complete) == (True, False)


@pytest.mark.parametrize("only_grows", [True, False])
@pytest.mark.parametrize("number", range(1, 9))
def test_the_search_finds_the_first_that_answers(number: int, only_grows: bool) -> None:
    verdict = explain(full(1), make_pod("new"))
    for first in range(number + 1):
        found = first_reaching(
            range(number), lambda each, first=first: verdict if each >= first else None, only_grows=only_grows
        )
        assert (None if found is None else found[0]) == (first if first < number else None)
