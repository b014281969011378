"""What a decision may come out as: ties, and the searches that stop before they have found the best."""

from __future__ import annotations

import msgspec

from kpreempt.analysis.play.outcomes import branches_of
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


def odds(nodes: dict[str, float]) -> Odds:
    """A search that ends on each of the nodes so often."""
    outcomes = [OddsOutcome([node], probability) for node, probability in nodes.items()]
    return Odds(SearchOrder.ANY, num_candidates=1, outcomes=outcomes, parallelism=16, chunk_size=1)


def test_a_pod_that_lands_has_a_branch_for_each_node_that_ties() -> None:
    verdict = Verdict(algorithm="kube-1.36", outcome=Outcome.LANDS, pod=POD, chosen_nodes=["n1", "n2"])
    assert [(each.node, each.leaving, each.weight) for each in branches_of(verdict)] == [("n1", (), 1), ("n2", (), 1)]


def test_victims_that_go_already_are_told_to_go_no_second_time() -> None:
    (branch,) = branches_of(EVICTS)
    assert (branch.node, branch.leaving, branch.violated) == ("n1", ["shop/a"], {"shop/a": ["shop/a"]})


def test_a_search_that_stops_early_may_end_on_other_candidates() -> None:
    first, other = branches_of(msgspec.structs.replace(EVICTS, odds=odds({"n1": 0.7, "n2": 0.3})))
    assert (first.node, first.weight, other.node, other.weight) == ("n1", 0.7, "n2", 0.3)
    assert (other.leaving, other.violated) == (["shop/c"], None)


def test_what_any_order_of_equal_pods_comes_to_is_a_branch_the_likely_first() -> None:
    victims = {"n1": [Victim("shop/b", 0)]}
    alternatives = Alternatives(
        [PossibleOutcome("n1", ["shop/c", "shop/d"]), PossibleOutcome("n1", [], [PodChoice(1, ["shop/a", "shop/b"])])]
    )
    verdict = msgspec.structs.replace(EVICTS, victims=victims, alternatives=alternatives)
    likely, other = branches_of(verdict)
    assert (likely.leaving, likely.choices) == ([], [PodChoice(1, ["shop/b", "shop/a"])])
    assert (other.leaving, likely.weight, other.weight) == (["shop/c", "shop/d"], 0.5, 0.5)


def test_a_node_that_wins_by_another_order_alone_weighs_less_than_any_other() -> None:
    alternatives = Alternatives([PossibleOutcome("n1", ["shop/a"]), PossibleOutcome("n3", ["shop/e"])])
    likely = odds({"n1": 0.7, "n2": 0.3})
    verdict = msgspec.structs.replace(EVICTS, odds=likely, alternatives=alternatives)
    assert [(each.node, each.weight) for each in branches_of(verdict)] == [("n1", 0.7), ("n3", 0.3)]
