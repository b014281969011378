"""What a decision may come out as: ties, and the searches that stop before they have found the best."""

from __future__ import annotations

import msgspec

from kpreempt.analysis.play.outcomes import branches_of
from kpreempt.verdict import Candidate, Odds, OddsGroup, Outcome, PodSummary, Verdict, Victim
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
    assert [(each.node, each.leaving, each.weight) for each in branches_of(verdict)] == [("n1", (), 1), ("n2", (), 1)]


def test_victims_that_go_already_are_told_to_go_no_second_time() -> None:
    (branch,) = branches_of(EVICTS)
    assert (branch.node, branch.leaving, branch.violated) == ("n1", ["shop/a"], {"shop/a": ["shop/a"]})


def test_a_search_that_stops_early_may_end_on_other_candidates() -> None:
    odds = Odds(
        starts=10,
        num_candidates=1,
        groups=[OddsGroup(3, {"n2": 3}), OddsGroup(7, {"n1": 7})],
        parallelism=16,
        chunk_size=1,
    )
    first, other = branches_of(msgspec.structs.replace(EVICTS, odds=odds))
    assert (first.node, first.weight, other.node, other.weight) == ("n1", 7, "n2", 3)
    assert (other.leaving, other.violated) == (["shop/c"], None)
