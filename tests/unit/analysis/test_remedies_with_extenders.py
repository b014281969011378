"""How often the search for remedies calls extenders: each is a real system, and each verdict calls it again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kpreempt.analysis.algorithms import AnalysisContext
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.extender_protocol import FilterAnswer
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Verdict
from kpreempt.verdict.remedies import RemedySearch
from tests.conformance.made_up_extenders import PREDICATES, AsObject, MadeUp
from tests.factories import NOW, make_node, make_pod

REFUSES = MadeUp("e", [PREDICATES["FalsePredicateExtender"]])
FAILS = MadeUp("e", [PREDICATES["ErrorPredicateExtender"]])


class Counting(AsObject):
    """An extender that counts its calls."""

    def __init__(self, made_up: MadeUp) -> None:
        super().__init__(made_up)
        self.count = 0

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer:
        self.count += 1
        return super().filter(pod, nodes)


def searched(*extenders: Counting, node: str = "", pods: Sequence[Pod] = ()) -> tuple[Verdict, RemedySearch, int]:
    """The verdict on a pod, the search for remedies, and the number of extender calls for both."""
    scheduler = KubeScheduler(extenders=extenders)
    cluster = ClusterSnapshot(nodes=[make_node("n")], pods=list(pods))
    inputs = [ExplainInput(pod=make_pod("p", cpu="1", labels={"app": "p"}, node_selector={"disk": "ssd"}))]
    (verdict,) = explain_pods(AnalysisContext(cluster, scheduler, NOW), inputs, proposes=True, node_name=node)
    search = verdict.node_report.search if verdict.node_report else verdict.remedy_search
    assert search is not None
    return verdict, search, sum(each.count for each in extenders)


@pytest.mark.parametrize("node", ["", "n"], ids=["anywhere", "for one node"])
def test_calls_for_remedies_are_counted(node: str) -> None:
    verdict, search, count = searched(Counting(REFUSES), node=node)
    assert search.extender_calls == count - len(verdict.extender_calls) > 0


def test_without_calls_nothing_is_counted() -> None:
    _, search, _ = searched(node="n")
    assert not search.extender_calls


@pytest.mark.parametrize("node", ["", "n"], ids=["anywhere", "for one node"])
def test_nothing_is_searched_if_an_extender_fails(node: str) -> None:
    extender = Counting(FAILS)
    scheduler = KubeScheduler(extenders=[extender])
    inputs = [ExplainInput(pod=make_pod("p", cpu="1"))]
    cluster = ClusterSnapshot(nodes=[make_node("n")])
    (verdict,) = explain_pods(AnalysisContext(cluster, scheduler, NOW), inputs, proposes=True, node_name=node)
    search = verdict.node_report.search if verdict.node_report else verdict.remedy_search
    assert search is not None
    assert (search.extender, search.reason, search.tried) == ("e", "extender", 0)
    assert extender.count == 1


def test_one_that_fails_and_is_ignored_is_waited_for_a_few_times_only() -> None:
    failing = Counting(FAILS._replace(name="f", ignorable=True))
    refusing = Counting(REFUSES)
    scheduler = KubeScheduler(extenders=[failing, refusing])
    nodes = [make_node(f"n{number}") for number in range(5)]
    full = [make_pod(f"high-{number}", node=f"n{number}", cpu="3", priority=10) for number in range(1, 5)]
    explain_input = ExplainInput(pod=make_pod("p", cpu="2"))
    cluster = ClusterSnapshot(nodes=nodes, pods=full)
    (verdict,) = explain_pods(AnalysisContext(cluster, scheduler, NOW), [explain_input], proposes=True)
    assert verdict.extender_calls[0].error
    assert failing.count <= 1 + 4
