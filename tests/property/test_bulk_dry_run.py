"""The dry run of all nodes at once decides as the plain one does."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
from hypothesis import HealthCheck, given, settings

from kpreempt.schedulers.kube import KubeScheduler, scheduler
from kpreempt.verdict import Status, Verdict
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.equal_pods import told_outcomes
from tests.strategies import Object, scenarios
from tests.strategies_whole import whole_scenarios

EQUALITY = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def decide(scenario: Object, *, at_once: bool, records_steps: bool = True, knows_order: bool = True) -> Verdict:
    """The verdict on a scenario, on columns over all pods or on the plain path."""
    kube = KubeScheduler(features=gates_of(scenario.get("featureGates")))
    cluster = msgspec.structs.replace(cluster_of(scenario["objects"]), has_scheduler_order=knows_order)
    with patch.object(scheduler, "MIN_PODS_OF_TABLE", 0 if at_once else 10**9):
        prepared = kube.prepare(cluster, now=NOW, is_queued=scenario.get("queued", False))
        return kube.decide(prepared, pod_of(scenario["pod"]), records_steps=records_steps)


def without_evidence(verdict: Verdict) -> Verdict:
    """The verdict without the steps of choosing victims, and without what plugins saw in dry runs."""
    return msgspec.structs.replace(
        verdict,
        candidates=[msgspec.structs.replace(candidate, steps=[]) for candidate in verdict.candidates],
        dry_run={node: msgspec.structs.replace(status, detail=None) for node, status in verdict.dry_run.items()},
    )


def assert_equal(scenario: Object) -> None:
    """All decisions are equal on both paths, and so is the evidence: all of it where the steps are asked for."""
    assert_equal_of_a_dump(scenario)
    plain = decide(scenario, at_once=False)
    assert decide(scenario, at_once=True) == plain
    at_once = decide(scenario, at_once=True, records_steps=False)
    assert without_evidence(at_once) == without_evidence(plain)
    steps = {candidate.node: candidate.steps for candidate in plain.candidates}
    assert all(not each.steps or each.steps == steps[each.node] for each in at_once.candidates)
    assert all(is_evidence_equal(status, plain.dry_run[node]) for node, status in at_once.dry_run.items())


def assert_equal_of_a_dump(scenario: Object) -> None:
    """Where the order of equal pods is not known, what is told of them is equal, too, however it is put."""
    plain = decide(scenario, at_once=False, knows_order=False)
    at_once = decide(scenario, at_once=True, knows_order=False)
    assert told_outcomes(at_once) == told_outcomes(plain)
    plain, at_once = (msgspec.structs.replace(each, alternatives=None) for each in (plain, at_once))
    assert at_once == plain


def is_evidence_equal(at_once: Status, plain: Status) -> bool:
    """Whether what the plugin saw is the same, or not told."""
    return at_once.detail is None or at_once.detail == plain.detail


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
