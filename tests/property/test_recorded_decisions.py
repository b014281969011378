"""Preemptions in recordings: each victim belongs to the decision that evicted it, and times never go back."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpreempt.model.meta import ObjectName
from kpreempt.snapshot.kinds import RECORDED
from kpreempt.snapshot.recording.changes import ChangeType
from kpreempt.snapshot.recording.journal import history_of
from kpreempt.snapshot.recording.recorder import Stream, Watched, WatchReport
from kpreempt.snapshot.recording.runs import runs_of
from kpreempt.verdict.history import HistoryEventType
from kpreempt.verdict.verify import DecisionKind
from tests.unit.snapshot.recording.making import Document, Making, a_node, a_pod

NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."
NOT_ELIGIBLE = f"{NO_ROOM} preemption: not eligible due to a terminating pod on the nominated node."


class Watches(Making):
    """A recording whose watches are not equally fast: events arrive up to ``delay`` seconds after other changes.

    Events have versions of their own if they are in another store (``separate``).
    """

    def __init__(self, folder: Path, objects: dict[str, list[Document]], delay: float, *, separate: bool) -> None:
        self._event_versions = iter(range(1, 10_000)) if separate else None
        self._delay = timedelta(seconds=delay)
        self._reports: list[WatchReport] = []
        super().__init__(folder, objects)

    def happens(self, what: str, kind: str, document: Document, seconds: float) -> None:
        """Change an object; the recorder gets it later."""
        self.change(what, kind, document, reported=False, seconds=seconds)
        version = self.version
        if kind == "Event" and self._event_versions is not None:
            version = next(self._event_versions)
        metadata = {**document["metadata"], "resourceVersion": str(version)}
        whole = {"apiVersion": "v1", "kind": kind, **document, "metadata": metadata}
        received = self.now + (self._delay if kind == "Event" else timedelta())
        news = Watched(ChangeType(what), json.dumps(whole).encode(), "v1")
        self._reports.append(WatchReport(received, Stream(RECORDED[kind]), news))

    def record(self) -> None:
        """Record all changes in the order in which they arrive."""
        for report in sorted(self._reports, key=lambda each: each.received):
            self.recorder.take(report)
            self.now = max(self.now, report.received)
        self.recorder.flush(self.now)


class Cluster:
    """Pods that come, are bound, preempt one another and are deleted, as the real components write it."""

    def __init__(self, watches: Watches, draw: Any) -> None:
        self.watches = watches
        self._draw = draw
        self._numbers = iter(range(1000))
        # Pods by name, and the node of each; empty if it waits.
        self.pods: dict[str, Document] = {}
        self.node: dict[str, str] = {}
        self.taken: list[tuple[str, str, list[str]]] = []

    def _seconds(self) -> float:
        return float(self._draw(st.sampled_from([0.001, 0.01, 0.2, 1.5])))

    def _write(self, what: str, name: str, **changes: Any) -> None:
        pod = self.pods[name]
        self.pods[name] = {part: {**pod[part], **changes.get(part, {})} for part in ("metadata", "spec", "status")}
        self.watches.happens(what, "Pod", self.pods[name], self._seconds())

    def _event(self, reason: str, about: str, message: str) -> None:
        at = self.watches.now + timedelta(microseconds=500)
        event = {
            "metadata": {"namespace": "shop", "name": f"{about}.{next(self._numbers)}"},
            "reason": reason,
            "type": "Warning" if reason == "FailedScheduling" else "Normal",
            "regarding": {"kind": "Pod", "namespace": "shop", "name": about, "uid": f"uid-{about}"},
            "note": message,
            "eventTime": at.isoformat(),
        }
        self.watches.happens("ADDED", "Event", event, 0.001)

    def create(self, priority: int) -> str:
        name = f"p{next(self._numbers)}"
        self.pods[name], self.node[name] = a_pod(name, priority=priority), ""
        self._write("ADDED", name)
        return name

    def bind(self, name: str, node: str) -> None:
        self.node[name] = node
        self._write("MODIFIED", name, spec={"nodeName": node}, status={"phase": "Running", "nominatedNodeName": ""})

    def delete(self, name: str) -> None:
        self.watches.happens("DELETED", "Pod", self.pods[name], self._seconds())
        del self.pods[name], self.node[name]

    def _reject(self, name: str, message: str, node: str) -> None:
        """Write the condition, unless it is the same already."""
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        status = {"conditions": [condition], "nominatedNodeName": node}
        if any(self.pods[name]["status"].get(key) != value for key, value in status.items()):
            self._write("MODIFIED", name, status=status)

    def preempt(self, name: str, node: str, victims: list[str]) -> None:
        """Try a pod, which evicts ``victims``; its status is written before, between or after them."""
        self.watches.now += timedelta(milliseconds=10)
        self._event("FailedScheduling", name, NO_ROOM)
        turn = self._draw(st.integers(0, len(victims)))
        for number, victim in enumerate(victims):
            if number == turn:
                self._reject(name, NO_ROOM, node)
            target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
            self._write("MODIFIED", victim, status={"conditions": [target]})
            self._write("MODIFIED", victim, metadata={"deletionTimestamp": self.watches.now.isoformat()})
            self._event("Preempted", victim, f"Preempted by pod uid-{name} on node {node}")
        if turn == len(victims):
            self._reject(name, NO_ROOM, node)
        self.taken.append((f"shop/{name}", node, sorted(f"shop/{each}" for each in victims)))
        if self._draw(st.booleans()):
            self.watches.now += timedelta(milliseconds=10)
            self._event("FailedScheduling", name, NOT_ELIGIBLE)
            self._reject(name, NOT_ELIGIBLE, node)
        for victim in victims:
            self.delete(victim)


def _happen(cluster: Cluster, draw: Any) -> list[str]:
    """Let a few things happen, and return the names of all pods."""
    names, preemptors = list[str](), list[str]()
    for _ in range(draw(st.integers(3, 12))):
        action = draw(st.sampled_from(["low", "low", "high", "again", "again", "bind"]))
        low = {
            node: [name for name, where in cluster.node.items() if where == node and name not in preemptors]
            for node in ("n1", "n2")
        }
        if action == "low":
            names.append(cluster.create(0))
            cluster.bind(names[-1], draw(st.sampled_from(["n1", "n2"])))
        elif action == "high":
            names.append(cluster.create(100))
            preemptors.append(names[-1])
        elif waiting := [name for name in preemptors if not cluster.node[name]]:
            name = draw(st.sampled_from(waiting))
            nominated = cluster.pods[name]["status"].get("nominatedNodeName", "")
            node = nominated or draw(st.sampled_from(["n1", "n2"]))
            if action == "bind":
                cluster.bind(name, node)
            elif low[node]:
                victims = draw(st.lists(st.sampled_from(low[node]), min_size=1, max_size=3, unique=True))
                cluster.preempt(name, node, victims)
    return names


@given(st.data())
@settings(deadline=None)
def test_every_victim_belongs_to_the_decision_that_evicted_it(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path, delay = f"{folder}/rec", data.draw(st.sampled_from([0, 0.05, 2]))
        nodes = {"Node": [a_node("n1"), a_node("n2")]}
        with closing(Watches(Path(path), nodes, delay, separate=data.draw(st.booleans()))) as watches:
            cluster = Cluster(watches, data.draw)
            names = _happen(cluster, data.draw)
            watches.wait(30)
            watches.record()
        expected = cluster.taken
        traces = [trace for run in runs_of(path) for trace in run.traces]
        found = [
            (each.decision.pod, each.decision.node, each.decision.victims)
            for each in traces
            if each.decision.decision is DecisionKind.NOMINATED
        ]
        assert sorted(found) == sorted(expected)
        for name in names:
            steps = history_of(path, ObjectName("Pod", "shop", name)).items
            times, types = [each.at for each in steps], [each.type for each in steps]
            assert times == sorted(times)
            assert types[0] is HistoryEventType.ADDED
            for step in steps:
                if step.type is HistoryEventType.PREEMPTED:
                    assert HistoryEventType.BOUND in types[: types.index(step.type)]
                    assert (step.preemptor, step.node) in [
                        (pod, node) for pod, node, victims in expected if f"shop/{name}" in victims
                    ]
        for node in ("n1", "n2"):
            times = [each.at for each in history_of(path, ObjectName("Node", "", node)).items]
            assert times == sorted(times)


@pytest.mark.parametrize("name", ["recording", "recording-again"])
def test_the_histories_of_recordings_are_consistent(name: str) -> None:
    path = f"fixtures/{name}"
    for run in runs_of(path):
        victims = [victim for trace in run.traces for victim in trace.marks.items()]
        assert len(victims) == len(set(victims))
        for pod in {trace.decision.pod for trace in run.traces}:
            steps = history_of(path, ObjectName("Pod", *pod.split("/"))).items
            times, types = [each.at for each in steps], [each.type for each in steps]
            assert times == sorted(times)
            assert types[0] is HistoryEventType.ADDED
