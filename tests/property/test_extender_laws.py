"""Laws of extenders that hold on every cluster."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.schedulers.extender_protocol import CURRENT, ExtenderSettings, HttpExtender
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Verdict
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.strategies import scenarios
from tests.strategies_whole import whole_scenarios

LAWS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def agreeing(url: str, body: bytes) -> bytes:
    """An extender that accepts everything, scores nothing, and returns candidates unchanged."""
    incoming = json.loads(body)
    verb = url.rpartition("/")[2]
    if verb == "preempt":
        return json.dumps({"NodeNameToMetaVictims": incoming["NodeNameToMetaVictims"]}).encode()
    if verb == "prioritize":
        return json.dumps([{"Host": name, "Score": 0} for name in incoming["NodeNames"]]).encode()
    return json.dumps({"NodeNames": incoming["NodeNames"]}).encode()


AGREES = ExtenderSettings(
    url_prefix="http://x",
    filter_verb="filter",
    prioritize_verb="prioritize",
    preempt_verb="preempt",
    weight=1,
    node_cache_capable=True,
)


def decide(scenario: dict[str, Any], *, is_queued: bool, extenders: list[HttpExtender]) -> Verdict:
    """The verdict on a scenario."""
    kube = KubeScheduler(behavior=gates_of(scenario.get("featureGates")), extenders=extenders)
    prepared = kube.prepare(cluster_of(scenario["objects"]), now=NOW, is_queued=is_queued)
    return kube.decide(prepared, pod_of(scenario["pod"]))


def without_the_extender(verdict: Verdict) -> Verdict:
    """The verdict without the extender calls."""
    scores = {
        node: {name: score for name, score in by_plugin.items() if name != "http://x"}
        for node, by_plugin in verdict.plugin_scores.items()
    }
    return msgspec.structs.replace(verdict, extender_calls=[], odds=None, plugin_scores=scores)


def assert_nothing_changes(scenario: dict[str, Any], *, is_queued: bool) -> None:
    plain = decide(scenario, is_queued=is_queued, extenders=[])
    incoming = decide(scenario, is_queued=is_queued, extenders=[HttpExtender(AGREES, CURRENT, agreeing)])
    assert not any(call.error for call in incoming.extender_calls)
    if is_queued and plain.lands_on == [plain.pod.nominated_node_name]:
        # It is called with this node alone, so nothing is known of other nodes.
        assert (incoming.outcome, incoming.lands_on, incoming.effects) == (plain.outcome, plain.lands_on, plain.effects)
        return
    assert without_the_extender(incoming) == msgspec.structs.replace(plain, odds=None)
    assert bool(incoming.extender_calls) is bool(plain.feasible_nodes or plain.candidates)


@LAWS
@given(scenarios(), st.booleans())
def test_an_extender_that_agrees_changes_nothing(scenario: dict[str, Any], is_queued: bool) -> None:
    assert_nothing_changes(scenario, is_queued=is_queued)


@LAWS
@given(whole_scenarios(), st.booleans())
def test_an_extender_that_agrees_changes_nothing_of_any_mix_of_features(
    scenario: dict[str, Any], is_queued: bool
) -> None:
    assert_nothing_changes(scenario, is_queued=is_queued)
