"""The bulk dry run of all nodes has the same result as the plain one."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.report import RenderOptions, render
from kpreempt.schedulers.equal_pods import Outcomes, follow, unfollowed
from kpreempt.schedulers.kube import scheduler
from kpreempt.schedulers.kube.bulk import pod_table
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.preemption import ties
from kpreempt.schedulers.kube.preemption.evaluator import MAX_WITH_STEPS
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Alternatives, Verdict
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.equal_pods import PossibleResult, outcome_of, reported_outcomes
from tests.strategies import Object, scenarios
from tests.strategies_crowds import crowded_scenario
from tests.strategies_whole import whole_scenarios

EQUALITY = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def decide(
    scenario: Object,
    *,
    at_once: bool,
    of_some: bool = False,
    records_steps: bool = True,
    knows_order: bool = True,
) -> Verdict:
    """The verdict on a scenario, with columns over all pods, for ``of_some`` nodes alone, or on the plain path."""
    kube = KubeScheduler(behavior=gates_of(scenario.get("featureGates")))
    cluster = msgspec.structs.replace(cluster_of(scenario["objects"]), has_scheduler_order=knows_order)
    with (
        patch.object(scheduler, "MIN_PODS_OF_TABLE", 0 if at_once else 10**9),
        patch.object(pod_table, "_SMALL", 0 if of_some else 10**9),
    ):
        prepared = kube.prepare(cluster, now=NOW, is_queued=scenario.get("queued", False))
        return kube.decide(prepared, pod_of(scenario["pod"]), records_steps=records_steps)


def without_steps(verdict: Verdict) -> Verdict:
    """The verdict without the steps of choosing victims."""
    return msgspec.structs.replace(
        verdict, candidates=[msgspec.structs.replace(candidate, steps=[]) for candidate in verdict.candidates]
    )


def text(verdict: Verdict) -> str:
    """The terminal output."""
    return render([verdict], "text", options=RenderOptions(width=120))


def assert_equal(scenario: Object) -> None:
    """All decisions are equal on both paths, and so is the evidence, completely if the steps are requested."""
    assert_equal_of_a_dump(scenario)
    plain = decide(scenario, at_once=False)
    assert decide(scenario, at_once=True) == plain
    assert decide(scenario, at_once=True, of_some=True) == plain
    at_once = decide(scenario, at_once=True, records_steps=False)
    assert without_steps(at_once) == without_steps(plain)
    assert text(at_once) == text(plain)
    assert_best_steps(at_once, plain)


def assert_best_steps(at_once: Verdict, plain: Verdict) -> None:
    """The best candidates have the steps of the plain path."""
    steps = {candidate.node: candidate.steps for candidate in plain.candidates}
    reported = [each for each in at_once.candidates if each.steps]
    assert len(reported) >= min(len(steps), MAX_WITH_STEPS)
    assert all(each.steps == steps[each.node] for each in reported)


def assert_equal_of_a_dump(scenario: Object) -> None:
    """If the order of equal pods is unknown, the reported outcomes are equal, too, in any form.

    If they are too many to follow every order, the followed ones depend on which pods are considered equal.
    """
    followed: list[bool] = []
    with patch.object(ties, "follow", lambda *given: noted(followed, follow(*given))):
        plain = decide(scenario, at_once=False, knows_order=False)
        at_once = decide(scenario, at_once=True, knows_order=False)
    if all(followed):
        assert reported_outcomes(at_once) == reported_outcomes(plain)
        assert spelt_out(at_once) == spelt_out(plain)
        assert at_once.assumptions == plain.assumptions
    assert without_outcomes(at_once) == without_outcomes(plain)
    short = decide(scenario, at_once=True, records_steps=False, knows_order=False)
    assert decide(scenario, at_once=True, of_some=True, records_steps=False, knows_order=False) == short
    assert_best_steps(short, plain)


def noted(followed: list[bool], outcomes: Outcomes[PodInfo]) -> Outcomes[PodInfo]:
    """The outcomes; whether all orders were followed is appended to the list."""
    followed.append(outcomes.is_exact)
    return outcomes


def spelt_out(verdict: Verdict) -> dict[str, set[PossibleResult]]:
    """The expanded outcomes on each candidate that has several."""
    return {
        each.node: {reported for outcome in each.outcomes for reported in outcome_of(outcome)}
        for each in verdict.candidates
        if each.outcomes is not msgspec.UNSET
    }


def without_outcomes(verdict: Verdict) -> Verdict:
    """The verdict without the outcomes, and without the assumption that not all are known."""
    assumptions = [each for each in verdict.assumptions if each not in unfollowed(Alternatives([], exact=False))]
    candidates = [msgspec.structs.replace(each, outcomes=msgspec.UNSET) for each in verdict.candidates]
    return msgspec.structs.replace(verdict, candidates=candidates, alternatives=None, assumptions=assumptions)


@EQUALITY
@given(scenarios(rich=False, max_pods=15))
def test_requests_and_budgets_are_decided_as_on_the_plain_path(scenario: dict[str, Any]) -> None:
    assert_equal(scenario)


@EQUALITY
@given(scenarios(rich=True))
def test_affinity_and_spread_are_decided_as_on_the_plain_path(scenario: dict[str, Any]) -> None:
    assert_equal(scenario)


@EQUALITY
@given(whole_scenarios())
def test_any_mix_of_features_is_decided_as_on_the_plain_path(scenario: dict[str, Any]) -> None:
    assert_equal(scenario)


@EQUALITY
@given(st.integers(0, 2**32))
def test_crowded_nodes_are_decided_as_on_the_plain_path(seed: int) -> None:
    assert_equal(crowded_scenario(seed))
