"""Victims, budgets, the choice between candidates, and what the scheduler then does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import PodCondition, PodMeta, PodSchedulingGate
from kpreempt.schedulers.choice import CandidateVictims, default_criteria, default_rank, rank_of, select_nodes
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import Outcome
from tests.factories import NOW, decide, make_budget, make_node, make_pod

DAY = datetime(2026, 11, 1, tzinfo=UTC)


def victims(*pods: tuple[int, int | None], violations: int = 0) -> CandidateVictims:
    """Victims given as priority and the day of November on which they started."""
    records = [
        make_pod(str(index), priority=priority, started=None if day is None else DAY + timedelta(days=day - 1))
        for index, (priority, day) in enumerate(pods)
    ]
    return CandidateVictims(records, violations)


@pytest.mark.parametrize(
    ("a", "b", "winners", "rule"),
    [
        pytest.param(victims((9, 1)), victims((0, 1), violations=1), ["a"], "pdbViolations", id="fewest violations"),
        pytest.param(victims((9, 1)), victims((1, 1), (1, 1)), ["b"], "highestPriority", id="lowest top priority"),
        pytest.param(victims((9, 1), (1, 1)), victims((9, 1), (0, 1)), ["b"], "prioritySum", id="lowest sum"),
        pytest.param(
            victims((9, 1)), victims((9, 1), (-(2**31), 1)), ["a"], "victims", id="fewest victims where sums are equal"
        ),
        pytest.param(victims((9, 1)), victims((9, 2)), ["b"], "latestStart", id="latest start"),
        pytest.param(victims((9, 2)), victims((9, None)), ["b"], "latestStart", id="no start time counts as now"),
        pytest.param(
            victims((9, 5), (9, 1)), victims((9, 3), (9, 3)), ["b"], "latestStart", id="the earliest of the top victims"
        ),
        pytest.param(victims((9, 2)), victims((9, 2)), ["a", "b"], "latestStart", id="equal in all rules"),
    ],
)
def test_the_rule_that_decides_between_two_nodes(
    a: CandidateVictims, b: CandidateVictims, winners: list[str], rule: str
) -> None:
    selection = select_nodes({"a": a, "b": b}, default_criteria(NOW))
    assert selection.tied == winners
    assert selection.rounds[-1].criterion == rule
    # In one pass as rule by rule.
    assert all(default_rank(each, NOW) == rank_of("", each, default_criteria(NOW)) for each in (a, b))


def test_a_single_candidate_is_chosen_without_a_round() -> None:
    assert select_nodes({"a": victims((1, 1))}, default_criteria(NOW)).rounds == []


def test_every_budget_of_a_pod_is_decremented_even_after_one_is_violated() -> None:
    budgets = BudgetIndex([make_budget("none", {"app": "web"}, 0), make_budget("one", {"tier": "x"}, 1)])
    pods = [PodInfo(make_pod(name, labels={"app": "web", "tier": "x"}), behavior()) for name in "ab"]
    first, second = budgets.count(pods)
    assert [(use.budget, use.remaining) for use in first.budgets] == [("shop/none", -1), ("shop/one", 0)]
    assert [(use.budget, use.remaining) for use in second.budgets] == [("shop/none", -2), ("shop/one", -1)]
    assert first.violates and second.violates


@pytest.mark.parametrize(
    "budget",
    [
        pytest.param(make_budget("b", {}, 0), id="an empty selector protects nothing"),
        pytest.param(make_budget("b", {"app": "web"}, 0, namespace="other"), id="another namespace"),
        pytest.param(make_budget("b", {"app": "web"}, 0, disrupted=["a"]), id="a pod that is disrupted already"),
        pytest.param(make_budget("b", {"app": "not a label value!"}, 0), id="a broken selector"),
    ],
)
def test_budgets_that_do_not_count_a_pod(budget: object) -> None:
    (counted,) = BudgetIndex([budget]).count([PodInfo(make_pod("a", labels={"app": "web"}), behavior())])  # type: ignore[list-item]  # the table's column is of one type
    assert counted.budgets == []


def cluster(**parts: object) -> ClusterSnapshot:
    """Node ``a`` with 4 CPUs: ``web`` (priority 10) and ``batch`` (priority 0) take 2 each."""
    pods = [
        make_pod("web", node="a", cpu="2", priority=10, labels={"app": "web"}, started=DAY),
        make_pod("batch", node="a", cpu="2", priority=0, labels={"app": "batch"}, started=DAY),
    ]
    return ClusterSnapshot(**{"nodes": [make_node("a")], "pods": pods, **parts})  # type: ignore[arg-type]  # parts are fields


def test_the_less_important_pod_is_the_victim() -> None:
    verdict = decide(cluster(), make_pod("api", cpu="2", priority=100))
    assert verdict.outcome == Outcome.PREEMPTS
    assert verdict.candidates[0].victims == ["shop/batch"]
    assert [(step.pod, step.is_reprieved) for step in verdict.candidates[0].steps] == [
        ("shop/web", True),
        ("shop/batch", False),
    ]


def test_a_pod_whose_budget_is_spent_is_put_back_first() -> None:
    spent = [make_budget("batch", {"app": "batch"}, 0)]
    verdict = decide(cluster(pod_disruption_budgets=spent), make_pod("api", cpu="2", priority=100))
    assert verdict.candidates[0].victims == ["shop/web"]
    assert [step.violates_budget for step in verdict.candidates[0].steps] == [True, False]


def test_a_budget_is_violated_only_where_nothing_else_helps() -> None:
    spent = [make_budget("batch", {"app": "batch"}, 0)]
    verdict = decide(cluster(pod_disruption_budgets=spent), make_pod("api", cpu="4", priority=100))
    assert verdict.outcome == Outcome.PREEMPTS_VIOLATING_BUDGETS
    assert verdict.candidates[0].num_pdb_violations == 1
    assert verdict.candidates[0].victims == ["shop/web", "shop/batch"]


def test_pods_of_equal_priority_are_no_victims() -> None:
    verdict = decide(cluster(), make_pod("api", cpu="2", priority=0))
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert verdict.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_pod_with_preemption_policy_never_only_waits() -> None:
    verdict = decide(cluster(), make_pod("api", cpu="2", priority=100, preemption_policy="Never"))
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert verdict.eligibility is not None
    assert verdict.eligibility.reason == "not eligible due to preemptionPolicy=Never."


def test_victims_that_are_still_leaving_hold_back_another_preemption() -> None:
    leaving = make_pod("batch", node="a", cpu="2")
    leaving = msgspec.structs.replace(
        leaving,
        metadata=msgspec.structs.replace(leaving.metadata, deletion_timestamp=DAY),
        status=msgspec.structs.replace(
            leaving.status,
            conditions=[PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")],
        ),
    )
    taken = make_pod("web", node="a", cpu="2", priority=10)
    waiting = make_pod("api", cpu="4", priority=100, nominated="a")
    verdict = decide(cluster(pods=[taken, leaving]), waiting)
    assert verdict.eligibility is not None
    assert verdict.eligibility.reason == "not eligible due to a terminating pod on the nominated node."
    assert [effect.action for effect in verdict.effects][-1] == "keepNomination"


def test_a_nominated_pod_of_equal_priority_keeps_its_room() -> None:
    nominated = make_pod("first", cpu="2", priority=100, nominated="a")
    pods = [make_pod("web", node="a", cpu="2", priority=200), nominated]
    assert decide(cluster(pods=pods), make_pod("api", cpu="2", priority=100)).outcome == Outcome.UNSCHEDULABLE
    assert decide(cluster(pods=pods), make_pod("api", cpu="2", priority=101)).outcome == Outcome.LANDS


def test_a_pod_lands_on_its_nominated_node_without_regard_to_scores() -> None:
    nodes = [make_node("small", cpu="2"), make_node("large", cpu="64")]
    verdict = decide(ClusterSnapshot(nodes=nodes), make_pod("api", cpu="1", nominated="small"))
    assert verdict.chosen_nodes == ["large"]
    assert verdict.lands_on == ["small"]


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(
            make_pod("api", scheduling_gates=[PodSchedulingGate("example.com/wait"), PodSchedulingGate("b")]),
            "waiting for scheduling gates: [example.com/wait b]",
            id="gated",
        ),
        pytest.param(
            make_pod("api", scheduler_name="mine"),
            'no profile for scheduler name "mine" (known: default-scheduler)',
            id="another scheduler's",
        ),
        pytest.param(make_pod("api", phase="Succeeded"), "the pod has finished (phase Succeeded)", id="finished"),
        pytest.param(
            make_pod("api", node="a"),
            'the pod is already assigned to node "a"; the scheduler ignores it',
            id="assigned",
        ),
        pytest.param(
            msgspec.structs.replace(
                make_pod("api"), metadata=PodMeta(name="api", namespace="shop", deletion_timestamp=DAY)
            ),
            "skip schedule deleting pod: shop/api",
            id="being deleted",
        ),
    ],
)
def test_pods_that_the_scheduler_does_not_look_at(pod: object, reason: str) -> None:
    verdict = decide(cluster(), pod)  # type: ignore[arg-type]  # the table's column is of one type
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_SCHEDULED, reason)


def test_finished_pods_and_pods_on_unknown_nodes_take_no_room() -> None:
    pods = [
        make_pod("done", node="a", cpu="4", phase="Succeeded"),
        make_pod("lost", node="gone", cpu="4"),
    ]
    assert decide(cluster(pods=pods), make_pod("api", cpu="4")).outcome == Outcome.LANDS


def test_without_nodes_the_message_says_so() -> None:
    assert decide(ClusterSnapshot(), make_pod("api")).message == "no nodes available to schedule pods"


def test_the_effects_of_a_preemption_in_order() -> None:
    lower = make_pod("later", cpu="1", priority=1, nominated="a")
    pods = [*cluster().pods, lower]
    verdict = decide(cluster(pods=pods), make_pod("api", cpu="4", priority=100))
    assert [(effect.action, effect.target) for effect in verdict.effects] == [
        ("clearNomination", "pod shop/later"),
        ("setCondition", "pod shop/web"),
        ("delete", "pod shop/web"),
        ("event", "pod shop/web"),
        ("setCondition", "pod shop/batch"),
        ("delete", "pod shop/batch"),
        ("event", "pod shop/batch"),
        ("event", "pod shop/api"),
        ("setCondition", "pod shop/api"),
        ("nominate", "pod shop/api"),
    ]
    texts = {(effect.action, effect.target): effect.text for effect in verdict.effects}
    assert texts["event", "pod shop/web"] == "Normal Preempted: Preempted by pod uid-shop-api on node a"
    assert texts["nominate", "pod shop/api"] == "status.nominatedNodeName=a"
    assert texts["setCondition", "pod shop/web"] == (
        "DisruptionTarget=True PreemptionByScheduler: "
        "default-scheduler: preempting to accommodate a higher priority pod"
    )


def test_a_nomination_that_no_longer_helps_is_cleared() -> None:
    verdict = decide(cluster(), make_pod("api", cpu="8", priority=100, nominated="a"))
    assert verdict.effects[-1].action == "clearNomination"
