"""What a decision may come out as: ties, and the searches that stop before they have found the best."""

from __future__ import annotations

import msgspec

from kpreempt.analysis.simulation.scheduling import branches_of
from kpreempt.verdict import (
    Alternatives,
    Candidate,
    Odds,
    OddsOutcome,
    Outcome,
    PodChoice,
    PodSummary,
    PossibleOutcome,
    SearchOrder,
    Verdict,
    Victim,
)
from kpreempt.verdict.records import BudgetUse

POD = PodSummary(name="new", namespace="shop")
EVICTS = Verdict(
    algorithm="kube-1.36",
    outcome=Outcome.PREEMPTS,
    pod=POD,
    nominated_nodes=["n1"],
    candidates=[Candidate("n1", ["shop/a", "shop/b"]), Candidate("n2", ["shop/c"])],
    victims={
        "n1": [
            Victim("shop/a", 0, budgets=[BudgetUse("shop/a", 0, -1), BudgetUse("shop/b", 1, 0)]),
            Victim("shop/b", 0, terminating=True),
        ]
    },
)


def test_a_pod_that_lands_has_a_branch_for_each_node_that_ties() -> None:
    verdict = Verdict(algorithm="kube-1.36", outcome=Outcome.LANDS, pod=POD, chosen_nodes=["n1", "n2"])
    assert [(each.node, each.leaving, each.weight) for each in branches_of(verdict, str)] == [
        ("n1", (), 1),
        ("n2", (), 1),
    ]


def test_terminating_victims_are_not_deleted_again() -> None:
    (branch,) = branches_of(EVICTS, str)
    assert (branch.node, branch.leaving, branch.violated) == ("n1", ["shop/a"], {"shop/a": ["shop/a"]})


def test_a_search_that_stops_early_may_end_on_other_candidates() -> None:
    outcomes = [OddsOutcome(["n1"], 0.7), OddsOutcome(["n2"], 0.3)]
    odds = Odds(order=SearchOrder.ANY, num_candidates=1, outcomes=outcomes, parallelism=16, chunk_size=1)
    first, other = branches_of(msgspec.structs.replace(EVICTS, odds=odds), str)
    assert (first.node, first.weight, other.node, other.weight) == ("n1", 0.7, "n2", 0.3)
    assert (other.leaving, other.violated) == (["shop/c"], None)


def equals(*outcomes: PossibleOutcome) -> Verdict:
    """A verdict whose likely victim is ``shop/a`` alone, with what other orders lead to."""
    return Verdict(
        algorithm="kube-1.36",
        outcome=Outcome.PREEMPTS,
        pod=POD,
        nominated_nodes=["n1"],
        candidates=[Candidate("n1", ["shop/a"], 0, [], list(outcomes))],
        victims={"n1": [Victim("shop/a", 0)]},
        alternatives=Alternatives(list(outcomes)),
    )


def test_equal_pods_of_one_kind_make_one_branch() -> None:
    verdict = equals(PossibleOutcome("n1", [], [PodChoice(1, ["shop/a", "shop/b", "shop/c"])]))
    assert [each.leaving for each in branches_of(verdict, lambda _: "web")] == [["shop/a"]]


def test_of_equal_pods_of_two_kinds_either_may_go() -> None:
    verdict = equals(PossibleOutcome("n1", [], [PodChoice(1, ["shop/a", "shop/b", "shop/c"])]))
    branches = branches_of(verdict, lambda pod: "web" if pod == "shop/a" else "db")
    assert [each.leaving for each in branches] == [["shop/a"], ["shop/b"]]
    assert branches[1].violated is None
    assert [round(each.weight, 3) for each in branches] == [0.333, 0.667]


def test_orders_of_equal_pods_share_the_weight_of_their_node() -> None:
    verdict = equals(
        PossibleOutcome("n1", ["shop/a"]), PossibleOutcome("n1", ["shop/b"]), PossibleOutcome("n1", ["shop/c"])
    )
    branches = branches_of(verdict, lambda pod: "db" if pod == "shop/c" else "web")
    assert [(each.leaving, round(each.weight, 3)) for each in branches] == [(["shop/a"], 0.667), (["shop/c"], 0.333)]


def test_every_outcome_that_an_order_leads_to_is_a_branch() -> None:
    verdict = equals(PossibleOutcome("n1", ["shop/a"]), PossibleOutcome("n2", ["shop/x", "shop/y"], [], 1))
    assert [(each.node, each.leaving) for each in branches_of(verdict, str)] == [
        ("n1", ["shop/a"]),
        ("n2", ["shop/x", "shop/y"]),
    ]


def test_of_very_many_ways_to_choose_some_are_looked_at_and_that_is_reported() -> None:
    pods = [f"shop/{number}" for number in range(60)]
    outcome = PossibleOutcome("n1", [], [PodChoice(30, pods)])
    verdict = msgspec.structs.replace(EVICTS, alternatives=Alternatives([outcome]))
    branches = branches_of(verdict, str)
    assert len(branches) == 64
    assert all(len(each.leaving) == 30 for each in branches[1:])
    assert all(each.is_truncated for each in branches)
