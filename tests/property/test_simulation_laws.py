"""Laws of every simulation, for any cluster."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings

from kpreempt.analysis.simulation.engine import SimulationStart, simulate
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict.simulation import SimulationEnd, StepKind
from tests.conformance.cases import NOW, cluster_of, pod_of
from tests.strategies import scenarios

LAWS = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@LAWS
@given(scenarios())
def test_a_simulation_ends_and_is_the_same_again(scenario: dict[str, Any]) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    before = cluster.pods[:]
    first, assumed, after = simulate(cluster, SimulationStart(arriving=[pod]), KubeScheduler(), now=NOW)
    assert simulate(cluster, SimulationStart(arriving=[pod]), KubeScheduler(), now=NOW) == (first, assumed, after)
    assert cluster.pods == before
    assert first.end is not SimulationEnd.ABORTED


@LAWS
@given(scenarios())
def test_time_never_goes_back_and_pods_terminate_before_they_are_gone(scenario: dict[str, Any]) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    found, *_ = simulate(cluster, SimulationStart(arriving=[pod]), KubeScheduler(), now=NOW)
    times = [step.at for step in found.steps]
    assert times == sorted(times)
    assert found.seconds == max(times, default=0)
    leaving: dict[str, float] = {}
    for step in found.steps:
        if step.kind is StepKind.TERMINATING:
            leaving[step.pod] = step.at
        elif step.kind is StepKind.TERMINATED and step.pod in leaving:
            assert step.at >= leaving.pop(step.pod)
    # Only an endless simulation may be stopped early.
    assert not leaving or found.end is SimulationEnd.LOOP


@LAWS
@given(scenarios())
def test_a_scheduled_pod_is_no_longer_pending(scenario: dict[str, Any]) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    found, *_ = simulate(cluster, SimulationStart(arriving=[pod]), KubeScheduler(), now=NOW)
    last: dict[str, StepKind] = {}
    for step in found.steps:
        last[step.pod] = step.kind
    assert all(last[each.pod] is not StepKind.BOUND for each in found.pending if each.pod in last)
    assert (pod.key in found.starts_at) == any(s.kind is StepKind.BOUND and s.pod == pod.key for s in found.steps)
