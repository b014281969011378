"""``pending`` and ``at-risk`` agree with ``explain`` on each single pod."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.at_risk import pods_at_risk
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.analysis.pod_inputs import inputs_of, pod_from_flags, pod_in_cluster
from kpreempt.analysis.what_if import Assignment, Overrides, split_assignment
from kpreempt.library.draws import DRAWS
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.report.answers import ANSWER_FORMATS, render_answer
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.documents import parse_yaml_value
from kpreempt.verdict import Verdict
from tests.conformance.cases import NOW, cluster_of, pod_of
from tests.strategies import scenarios

LAWS = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
SCHEDULER = scheduler_for()


def crowded(scenario: dict[str, Any], copies: int) -> ClusterSnapshot:
    """The scenario's cluster with its pod in it, pending, and renamed copies of that pod."""
    cluster = cluster_of(scenario["objects"])
    pod = pod_of(scenario["pod"])
    more = [_named(pod, f"copy-{number}") for number in range(copies)]
    others = [each for each in cluster.pods if each.key != pod.key]
    return msgspec.structs.replace(cluster, pods=[*others, pod, *more])


def _named(pod: Pod, name: str) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=name, uid=f"uid-{name}"))


def explained(cluster: ClusterSnapshot, key: str) -> Verdict:
    namespace, _, name = key.partition("/")
    found = pod_in_cluster(cluster, name, namespace)
    return explain_pods(AnalysisContext(found.cluster, SCHEDULER, NOW), [ExplainInput(pod=found.pod)])[0]


@LAWS
@given(scenarios(), st.integers(0, 2))
def test_pending_agrees_with_explain(scenario: dict[str, Any], copies: int) -> None:
    cluster = crowded(scenario, copies)
    answer = explain_pending(AnalysisContext(cluster, SCHEDULER, NOW, at=NOW), draws=DRAWS)
    pending = [pod.key for pod in cluster.pods if not pod.spec.node_name and not pod.is_terminal]
    assert sorted(item.pod for item in answer.items) == sorted(pending)
    for item in answer.items:
        verdict = explained(cluster, item.pod)
        assert (item.outcome, item.message, item.reason) == (verdict.outcome, verdict.message, verdict.reason)
        assert item.victims == verdict.victims
        assert item.nodes == (verdict.nominated_nodes or verdict.lands_on)
        assert item.requests == verdict.pod.requests


@LAWS
@given(scenarios(), st.integers(0, 2))
def test_every_pod_is_in_one_group_and_has_one_place(scenario: dict[str, Any], copies: int) -> None:
    answer = explain_pending(AnalysisContext(crowded(scenario, copies), SCHEDULER, NOW, at=NOW), draws=DRAWS)
    grouped = [pod for group in answer.groups for pod in group.pods]
    assert sorted(grouped) == sorted(item.pod for item in answer.items)
    places = [item.position for item in answer.items if item.position is not None]
    assert places == sorted(set(places))
    queued = [item.priority for item in answer.items if item.position is not None]
    assert queued == sorted(queued, reverse=True)
    screen = render_answer(answer, "text", RenderOptions(extent=Extent.SCREEN)).splitlines()
    assert len(screen) <= 22
    assert max(map(len, screen)) <= 80
    assert f"{len(answer.items)} pod" in screen[0] or not answer.items
    assert all(render_answer(answer, name, RenderOptions()) for name in ANSWER_FORMATS if answer.items)


def hypothetical(cluster: ClusterSnapshot, options: list[str]) -> Verdict:
    """The result of ``kpreempt explain`` with these options."""
    given_options = [each.partition("=") for each in options]
    amounts = {name.removeprefix("--"): value for name, _, value in given_options if name in ("--cpu", "--memory")}
    resources = dict(value.split("=", 1) for name, _, value in given_options if name == "--resource")
    settings_ = [split_assignment(value) for name, _, value in given_options if name == "--set"]
    overrides = Overrides(
        priority=next(int(value) for name, _, value in given_options if name == "--priority"),
        preemption_policy=next(value for name, _, value in given_options if name == "--preemption-policy"),
        assignments=[Assignment(path, parse_yaml_value(value)) for path, value in settings_],
    )
    template = pod_from_flags(**amounts, resources=resources)
    incoming = inputs_of(cluster, [template], overrides, decode_object)
    return explain_pods(AnalysisContext(incoming.cluster, SCHEDULER, NOW), incoming.inputs)[0]


def victims_of(verdict: Verdict) -> set[str]:
    return {victim.pod for victims in verdict.victims.values() for victim in victims}


def evicted_in_turn(cluster: ClusterSnapshot) -> dict[str, set[str]]:
    """The pods that each pod evicts, in any run, when the whole queue is served."""
    served = explain_pending(AnalysisContext(cluster, SCHEDULER, NOW, at=NOW), draws=DRAWS).served
    return {key: {*turn.victims, *turn.other_victims} for key, turn in served.in_turn.items()}


@LAWS
@given(scenarios(max_nodes=3, max_pods=5))
def test_every_claim_of_at_risk_is_confirmed_by_explain(scenario: dict[str, Any]) -> None:
    cluster = crowded(scenario, 1)
    answer = pods_at_risk(AnalysisContext(cluster, SCHEDULER, NOW), draws=DRAWS, is_selected=lambda _: True, limit=4)
    for item in answer.items:
        for threat in item.threats:
            victims = (
                evicted_in_turn(cluster)[threat.pod] if threat.in_turn else victims_of(explained(cluster, threat.pod))
            )
            assert item.pod in victims
        for each in item.thresholds:
            for priority, options in ((each.anywhere, each.options), (each.on_node, each.options_on_node)):
                assert (priority is None) == (not options)
                if priority is None:
                    continue
                assert item.pod in victims_of(hypothetical(cluster, options))
                # A priority lower by 1 does not.
                lower = [option.replace(f"--priority={priority}", f"--priority={priority - 1}") for option in options]
                assert item.pod not in victims_of(hypothetical(cluster, lower))


@LAWS
@given(scenarios(max_nodes=3, max_pods=5))
def test_unthreatened_pods_are_not_evicted_by_pending_pods(scenario: dict[str, Any]) -> None:
    cluster = crowded(scenario, 0)
    answer = pods_at_risk(AnalysisContext(cluster, SCHEDULER, NOW), draws=DRAWS, is_selected=lambda _: True, limit=100)
    pending = [pod.key for pod in cluster.pods if not pod.spec.node_name and not pod.is_terminal]
    alone = (victims_of(explained(cluster, key)) for key in pending)
    running = {pod.key for pod in cluster.pods if pod.spec.node_name}
    expected = set().union(*alone, *evicted_in_turn(cluster).values()) & running
    assert {item.pod for item in answer.items if item.threats} == expected
