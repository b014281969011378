"""Decisions on a redacted cluster equal those on the original, byte for byte, once its tokens are replaced by names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.analysis.algorithms import AnalysisContext
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.model.cluster import REDACTED_AT, ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.report import render
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.snapshot.minimize import minimized
from kpreempt.snapshot.redact import Redaction
from kpreempt.snapshot.write import DumpHeader, dump_pieces
from kpreempt.verdict import ChangeKind, Verdict
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.factories import redaction_of
from tests.strategies import EXTENDED, Object
from tests.strategies_volumes import DRIVER
from tests.strategies_whole import FEATURES, whole_scenarios

HEADER = DumpHeader(server_version="", taken_at=datetime(2026, 11, 21, tzinfo=UTC), kpreempt_version="0")
LAW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
# A configuration names custom profiles, labels and resources, which are not in a dump.
AMONG = tuple(each for each in FEATURES if each != "config")


TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
# Names in another order than the objects, before and after those that every cluster has.
NODE_NAMES = ("zeta", "alpha-1", "alpha", "m.example.org", "10-0-0-1")
RESOURCES = (
    "example.com/gpu",
    "a.example/x",
    "ephemeral-tape.example/x",
    "zzz.example/x",
    "mykubernetes.io/x",
    "gpu.kubernetes.io/x",
)
DRIVER_NAMES = ("csi.example.com", "a.example", "zzz.example.com")


@st.composite
def renamed_scenarios(draw: st.DrawFn) -> Object:
    """A scenario with random names."""
    scenario = draw(whole_scenarios(among=AMONG))
    names = draw(st.permutations(NODE_NAMES))
    renaming = {f"n{index}": name for index, name in enumerate(names)}
    renaming[EXTENDED] = draw(st.sampled_from(RESOURCES))
    renaming[DRIVER] = draw(st.sampled_from(DRIVER_NAMES))
    # Not all at midnight, and some of them equal.
    times = sorted(set(TIME.findall(json.dumps(scenario))))
    moved = draw(st.lists(st.integers(0, 9 * 24 * 3600), min_size=len(times), max_size=len(times)))
    renaming |= {time: _before(time, seconds) for time, seconds in zip(times, moved, strict=True)}
    renamed: Object = _renamed(scenario, renaming)
    return renamed


def _before(time: str, seconds: int) -> str:
    return _written(msgspec.convert(time, datetime) - timedelta(seconds=seconds))


def _written(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


def reread(cluster: ClusterSnapshot, rewrite: Callable[[Any], Any]) -> ClusterSnapshot:
    """The cluster read back from its dump."""
    text = b"".join(dump_pieces(cluster, HEADER, rewrite, as_lines=False))
    items = msgspec.json.decode(text, type=dict[str, msgspec.Raw])["items"]
    return cluster_from_json(msgspec.json.decode(items, type=list[msgspec.Raw]), "dump")


def verdicts(cluster: ClusterSnapshot, scenario: Object, now: datetime = NOW) -> list[str]:
    """The published verdict on each pending pod of the cluster."""
    scheduler = KubeScheduler(behavior=gates_of(scenario.get("featureGates")))
    answers = []
    for pod in cluster.pods:
        if not pod.spec.node_name:
            others = [each for each in cluster.pods if each is not pod]
            without = msgspec.structs.replace(cluster, pods=others)
            answers.append(_verdict(without, pod, scheduler, now))
    return answers


def _verdict(cluster: ClusterSnapshot, pod: Pod, scheduler: KubeScheduler, now: datetime) -> str:
    answers = explain_pods(AnalysisContext(cluster, scheduler, now), [ExplainInput(pod=pod)], proposes=True)
    return render(list(map(_without_spelling, answers)), "json")


def _without_spelling(verdict: Verdict) -> Verdict:
    """The verdict without what depends on how similar two names are."""
    remedies = [
        each for each in verdict.remedies if all(change.kind is not ChangeKind.LABEL_VALUE for change in each.changes)
    ]
    causes = [
        msgspec.structs.replace(each, values={key: nodes for key, nodes in each.values.items() if nodes})
        for each in verdict.causes
    ]
    return msgspec.structs.replace(verdict, remedies=remedies, causes=causes, remedy_search=None)


def names_for_tokens(text: str, redaction: Redaction) -> str:
    """The text with every token and every time replaced by its original."""
    names = dict(redaction.pairs())
    names |= {_written(new): _written(time) for new, time in redaction.times()}
    tokens = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    return tokens.sub(lambda match: names[match[0]], text)


def unquoted(text: str) -> str:
    """The text without quotes and escapes in strings: a proposal quotes a name if needed."""
    return re.sub(r"\\[\"\\]", "", text)


def cluster_with_pod(scenario: Object) -> ClusterSnapshot:
    cluster = cluster_of(scenario["objects"])
    # Unlike a scenario, a dump does not have the scheduler's own order of pods.
    return msgspec.structs.replace(cluster, pods=[*cluster.pods, pod_of(scenario["pod"])], has_scheduler_order=False)


@LAW
@given(renamed_scenarios())
def test_decisions_on_a_redacted_cluster_equal_the_original(scenario: dict[str, Any]) -> None:
    cluster = cluster_with_pod(scenario)
    redaction = redaction_of(cluster)
    redacted = reread(cluster, redaction.record)
    answers = [names_for_tokens(unquoted(each), redaction) for each in verdicts(redacted, scenario, REDACTED_AT)]
    assert answers == list(map(unquoted, verdicts(cluster, scenario)))


@LAW
@given(whole_scenarios(among=AMONG))
def test_decisions_on_a_dump_equal_the_original(scenario: dict[str, Any]) -> None:
    cluster = cluster_with_pod(scenario)
    dumped = reread(cluster, minimized)
    assert verdicts(dumped, scenario) == verdicts(cluster, scenario)
    assert reread(dumped, minimized) == dumped
