"""What ended a pod is recorded, and read again after the pod and its events are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpreempt.analysis.evictions.queries import evictions_of_pod
from kpreempt.model.meta import ObjectName
from kpreempt.model.terminations import TerminationCause
from kpreempt.report import history as history_report
from kpreempt.report.blocks import Sentence, text_of
from kpreempt.report.options import RenderOptions
from kpreempt.snapshot.load import load_snapshot
from kpreempt.snapshot.recording.as_of import time_of_eviction
from kpreempt.snapshot.recording.journal import history_of
from kpreempt.snapshot.recording.runs import runs_of
from kpreempt.verdict.history import HistoryEventType
from kpreempt.verdict.verify import DecisionKind
from tests.unit.snapshot.recording.making import Document, Making, a_node, a_pod

LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. "


def target(reason: str, message: str) -> Document:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    return {"conditions": [{**condition, "lastTransitionTime": "2026-11-21T03:00:10Z"}]}


def an_event(reason: str, text: str, reporter: str, *, kind: str = "Normal", about: str = "web") -> Document:
    return {
        "metadata": {"namespace": "shop", "name": f"{about}.{reason.lower()}"},
        "type": kind,
        "reason": reason,
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": about, "uid": f"uid-{about}"},
        "message": text,
        "reportingComponent": reporter,
        "lastTimestamp": "2026-11-21T03:00:10Z",
    }


CASES = [
    pytest.param(
        target("EvictionByEvictionAPI", "Eviction API: evicting"),
        None,
        TerminationCause.EVICTION_API,
        "evicted by a client of the Eviction API on n1",
        id="an eviction",
    ),
    pytest.param(
        target("EvictionByEvictionAPI", "Eviction API: evicting"),
        an_event("Evicted", "Evicted pod: Underutilized", "karpenter"),
        TerminationCause.EVICTION_API,
        "evicted by Karpenter on n1",
        id="an eviction whose client reports it",
    ),
    pytest.param(
        {**target("TerminationByKubelet", LOW), "phase": "Failed", "reason": "Evicted", "message": LOW},
        None,
        TerminationCause.NODE_PRESSURE,
        "evicted by the kubelet: node was low on memory on n1",
        id="node pressure",
    ),
]


@pytest.mark.parametrize(("status", "event", "cause", "words"), CASES)
def test_an_eviction_is_known_when_the_pod_is_gone(
    status: dict[str, Any], event: Document | None, cause: TerminationCause, words: str, tmp_path: Path
) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")], "Pod": [a_pod("web", "n1"), a_pod("other", "n1")]})
    making.change("MODIFIED", "Pod", a_pod("web", "n1", **status))
    if event is not None:
        making.change("ADDED", "Event", event)
    making.change("DELETED", "Pod", a_pod("web", "n1"))
    if event is not None:
        making.change("DELETED", "Event", event)
    making.end()
    at = time_of_eviction(making.folder, "shop", "web")
    assert at is not None
    answer = evictions_of_pod(load_snapshot([making.folder], at=at).cluster, "shop", "web")
    assert [each.cause for each in answer.items] == [cause]
    assert time_of_eviction(making.folder, "shop", "other") is None
    steps = history_report.report(history_of(making.folder, ObjectName("Pod", "shop", "web")), RenderOptions())
    blocks = [each for section in steps.sections for each in section.blocks]
    lines = [text_of(each.words) for each in blocks if isinstance(each, Sentence)]
    assert any(each.endswith(words) for each in lines), lines


def test_events_that_nothing_reads_are_not_recorded(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")], "Pod": [a_pod("web", "n1")]})
    making.change("ADDED", "Event", an_event("Unhealthy", "Readiness probe failed", "kubelet", kind="Warning"))
    making.change("ADDED", "Event", an_event("Killing", "Container c failed liveness probe", "kubelet"))
    making.relist("Event")
    making.end()
    cluster = load_snapshot([making.folder]).cluster
    assert [each.reason for each in cluster.events] == ["Killing"]


def test_a_second_preemption_on_the_same_node_is_a_decision_of_its_own(tmp_path: Path) -> None:
    def waiting(message: str) -> dict[str, Any]:
        scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        return {"conditions": [scheduled], "nominatedNodeName": "n1"}

    def preempted(name: str) -> Document:
        return an_event("Preempted", "Preempted by pod uid-high on node n1", "default-scheduler", about=name)

    leaving = {"deletionTimestamp": "2026-11-21T03:01:00Z"}
    pods = [a_pod("low-1", "n1"), a_pod("low-2", "n1"), a_pod("high", priority=10)]
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")], "Pod": pods})
    refusal = "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to a terminating pod."

    def leaves(name: str) -> Document:
        victim = a_pod(name, "n1")
        return {**victim, "metadata": {**victim["metadata"], **leaving}}

    making.change("MODIFIED", "Pod", a_pod("high", priority=10, **waiting("0/1 nodes are available: 1 of 2.")))
    making.change("MODIFIED", "Pod", leaves("low-1"), seconds=0.3)
    # Refused soon after, without another preemption.
    making.change("MODIFIED", "Pod", a_pod("high", priority=10, **waiting(refusal)))
    making.wait(20)
    making.change("MODIFIED", "Pod", leaves("low-2"))
    making.change("MODIFIED", "Pod", a_pod("high", priority=10, **waiting("0/1 nodes are available: 2 of 2.")))
    making.wait(20)
    for name in ("low-1", "low-2"):
        making.change("ADDED", "Event", preempted(name))
    making.end()
    (run,) = runs_of(making.folder)
    taken = [(each.decision.decision, each.decision.node, each.decision.victims) for each in run.traces]
    assert taken == [
        (DecisionKind.NOMINATED, "n1", ["shop/low-1"]),
        (DecisionKind.UNSCHEDULABLE, "", []),
        (DecisionKind.NOMINATED, "n1", ["shop/low-2"]),
    ]
    steps = history_of(making.folder, ObjectName("Pod", "shop", "high")).items
    assert [(each.type, each.victims) for each in steps if each.victims] == [
        (HistoryEventType.NOMINATED, ["shop/low-1"]),
        (HistoryEventType.NOMINATED, ["shop/low-2"]),
    ]
