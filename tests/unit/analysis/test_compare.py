"""At which step verdicts part, and what counts as the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.compare.differences import compare_pods, differences_between, is_same_outcome
from kpreempt.analysis.explain.pods import ExplainInput
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import (
    Candidate,
    Code,
    Eligibility,
    Outcome,
    PodSummary,
    Reprieve,
    Selection,
    Status,
    TieBreakRound,
    Verdict,
)
from kpreempt.verdict.compare import Comparison
from tests.factories import NOW, make_budget, make_node, make_pod

ELIGIBLE = Eligibility(True)
FULL = Status(Code.UNSCHEDULABLE, ["Insufficient cpu"], "NodeResourcesFit")


def evicts(**changes: Any) -> Verdict:
    """A verdict that evicts ``ns/v1`` on node a rather than ``ns/w1`` on node b, with changes."""
    verdict = Verdict(
        algorithm="kube",
        outcome=Outcome.PREEMPTS,
        pod=PodSummary("ns", "p"),
        filter={"a": FULL, "b": FULL},
        eligibility=ELIGIBLE,
        potential_nodes=["a", "b"],
        candidates=[Candidate("a", ["ns/v1"]), Candidate("b", ["ns/w1"])],
        selection=Selection([TieBreakRound("highestPriority", {"a": 1, "b": 2}, ["a"])], ["a"]),
        nominated_nodes=["a"],
    )
    return msgspec.structs.replace(verdict, **changes)


def lands(*nodes: str, scores: dict[str, int] | None = None) -> Verdict:
    return evicts(
        outcome=Outcome.LANDS,
        feasible_nodes=["a", "b"],
        chosen_nodes=list(nodes),
        scores=scores or {},
        candidates=[],
        nominated_nodes=[],
        potential_nodes=[],
        selection=None,
        eligibility=None,
    )


BOTH_ROUND = TieBreakRound("highestPriority", {"a": 1, "b": 1}, ["a", "b"])


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(evicts(), [], id="the same has no differences"),
        pytest.param(
            evicts(filter={"a": FULL}, feasible_nodes=["b"]),
            [("Filter", "b", "does not fit", "fits", "NodeResourcesFit: Insufficient cpu", "")],
            id="a node that fits",
        ),
        pytest.param(
            evicts(
                outcome=Outcome.UNSCHEDULABLE,
                eligibility=Eligibility(False, "Never"),
                potential_nodes=[],
                candidates=[],
                nominated_nodes=[],
            ),
            [("Eligibility", "", "may preempt", "may not preempt", "", "Never")],
            id="a pod that may not preempt",
        ),
        pytest.param(
            evicts(potential_nodes=["b"], candidates=[Candidate("b", ["ns/w1"])], nominated_nodes=["b"]),
            [
                (
                    "PotentialNodes",
                    "a",
                    "is tried",
                    "is not tried",
                    "NodeResourcesFit: Insufficient cpu",
                    "NodeResourcesFit: Insufficient cpu",
                )
            ],
            id="a node that is not tried is no missing candidate",
        ),
        pytest.param(
            evicts(candidates=[Candidate("b", ["ns/w1"])], dry_run={"a": FULL}, nominated_nodes=["b"]),
            [("Candidates", "a", "is a candidate", "is not a candidate", "", "NodeResourcesFit: Insufficient cpu")],
            id="a node on which it does not fit either way",
        ),
        pytest.param(
            evicts(
                candidates=[
                    Candidate("a", ["ns/v2"], steps=[Reprieve("ns/v1", 1, True), Reprieve("ns/v2", 1, False)]),
                    Candidate("b", ["ns/w1"]),
                ]
            ),
            [("Victims", "a", "ns/v1", "ns/v2", "", "ns/v1 reprieved")],
            id="another victim",
        ),
        pytest.param(
            evicts(
                candidates=[Candidate("a", ["ns/v1"], 1), Candidate("b", ["ns/w1"])],
                selection=Selection([TieBreakRound("pdbViolations", {"a": 1, "b": 0}, ["b"])], ["b"]),
                nominated_nodes=["b"],
            ),
            [
                ("BudgetViolations", "a", "0", "1", "", ""),
                ("Choice", "pdbViolations", "keeps a, b", "keeps b", "not applied", "a 1, b 0"),
            ],
            id="a budget that only one of them counts",
        ),
        pytest.param(
            evicts(selection=Selection([BOTH_ROUND], ["a", "b"]), nominated_nodes=["a", "b"]),
            [("Choice", "highestPriority", "keeps a", "keeps a, b", "a 1, b 2", "a 1, b 1")],
            id="a rule of the choice",
        ),
        pytest.param(
            evicts(outcome=Outcome.NOT_SCHEDULED, reason="gated", candidates=[], nominated_nodes=[]),
            [("Attempt", "", "tries it", "does not try it", "", "gated")],
            id="a pod that is not tried differs in nothing else",
        ),
        pytest.param(
            evicts(outcome=Outcome.UNCERTAIN),
            [("Outcome", "", "Preempts", "Uncertain", "", "")],
            id="an outcome without a reason in the steps",
        ),
    ],
)
def test_differences_are_reported_in_the_order_of_the_steps(other: Verdict, expected: list[tuple[str, ...]]) -> None:
    found = [
        (each.step.value, each.subject, each.base, each.other, each.base_reason, each.other_reason)
        for each in differences_between(evicts(), other)
    ]
    assert found[: len(expected)] == expected
    assert bool(found) == bool(expected)


def test_the_example_is_a_node_that_one_of_them_ends_on() -> None:
    base = evicts(potential_nodes=["a", "b", "c"], nominated_nodes=["b"])
    other = evicts(potential_nodes=[], candidates=[], nominated_nodes=[], outcome=Outcome.UNSCHEDULABLE)
    (difference, *_) = differences_between(base, other)
    assert (difference.subject, difference.others) == ("b", 2)


@pytest.mark.parametrize(
    ("base", "other", "is_same"),
    [
        pytest.param(evicts(), evicts(outcome=Outcome.PREEMPTS_VIOLATING_BUDGETS), True, id="budgets change no fate"),
        pytest.param(evicts(), evicts(message="other words"), True, id="nor do words"),
        pytest.param(evicts(), evicts(nominated_nodes=["b"]), False, id="another node does"),
        pytest.param(lands("a", scores={"a": 1}), lands("b", scores={"b": 1}), False, id="also where it lands"),
        pytest.param(lands("a", scores={"a": 1}), lands("a", "b"), True, id="nodes without scores may be the same"),
        pytest.param(lands("a"), lands("b"), False, id="but have to be possible"),
        pytest.param(lands("a"), evicts(), False, id="landing is not evicting"),
    ],
)
def test_the_same_fate(base: Verdict, other: Verdict, is_same: bool) -> None:
    assert is_same_outcome(base, other) == is_same
    assert is_same_outcome(other, base) == is_same


class Fixed:
    """A scheduler that gives the same verdict on every pod."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.algorithm = "fixed"
        self.scheduler_names = frozenset(("default-scheduler",))

    def prepare(
        self,
        cluster: ClusterSnapshot,
        *,
        now: datetime,
        is_queued: bool = True,
        before: Any = None,
        expects_equivalent_pods: bool = False,
    ) -> Any:
        return cluster

    def decide(self, prepared: Any, pod: Pod, **_: Any) -> Verdict:
        return self.verdict

    def describe_node(self, prepared: Any, pod: Pod, node_name: str) -> Any:
        raise NotImplementedError

    def rank_victims(self, prepared: Any, node_name: str, priority: int) -> Any:
        raise NotImplementedError


def compared(**verdicts: Verdict) -> Comparison:
    schedulers = {name: Fixed(verdict) for name, verdict in verdicts.items()}
    inputs = [ExplainInput(pod=make_pod(name)) for name in ("p", "q")]
    return compare_pods(ClusterSnapshot(), inputs, schedulers, now=NOW)


def test_every_pair_is_counted() -> None:
    comparison = compared(x=evicts(), y=evicts(nominated_nodes=["b"]), z=evicts(nominated_nodes=["b"]))
    assert comparison.algorithms == ["x", "y", "z"]
    assert comparison.differing == 2
    assert [(each.base, each.other, each.differing) for each in comparison.pairs] == [
        ("x", "y", 2),
        ("x", "z", 2),
        ("y", "z", 0),
    ]
    (x, y, z) = comparison.items[0].decisions
    assert (x.differs_from, y.differs_from, z.differs_from) == (["y", "z"], ["x"], ["x"])
    assert not x.differences


def test_a_pod_is_the_same_only_where_all_agree() -> None:
    comparison = compared(x=evicts(), y=evicts(), z=lands("a"))
    assert [item.is_same for item in comparison.items] == [False, False]
    assert [item.is_same for item in compared(x=evicts(), y=evicts()).items] == [True, True]


def test_budgets_are_counted_otherwise_by_each_version() -> None:
    """One budget that allows one disruption, and two victims: 1.8 counts none, 1.13 each alone, the others all."""
    cluster = ClusterSnapshot(
        nodes=[make_node("a", cpu="2"), make_node("b", cpu="2")],
        pods=[
            *(make_pod(f"web-{each}", node="a", cpu="1", priority=1, labels={"app": "web"}) for each in (1, 2)),
            *(make_pod(f"job-{each}", node="b", cpu="1", priority=2) for each in (1, 2)),
        ],
        pod_disruption_budgets=[make_budget("web", {"app": "web"}, 1)],
    )
    names = ("kube-1.13", "kube-1.18", "kube-1.36")
    comparison = compare_pods(
        cluster,
        [ExplainInput(pod=make_pod("api", cpu="2", priority=10))],
        {name: scheduler_for(name) for name in names},
        now=NOW,
    )
    decisions = comparison.items[0].decisions
    assert [each.nodes for each in decisions] == [["a"], ["b"], ["b"]]
    assert decisions[1].differences[0].step == "BudgetViolations"
    assert (decisions[1].differences[0].base, decisions[1].differences[0].other) == ("0", "1")
