"""Events for scheduling queues in short form, and the queue's state after them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import queue_for
from kpreempt.analysis.queue.cluster import QueueCluster, QueueEvent, TimedEvent
from kpreempt.analysis.queue.state import QueueSimulation
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.queues import SchedulingQueue
from kpreempt.snapshot.decode import decode_object
from kpreempt.verdict.queue import QueueName, QueueStep

START = datetime(2026, 11, 21, tzinfo=UTC)
Event = dict[str, Any]


def add(
    name: str, priority: int = 0, *, labels: dict[str, str] | None = None, nominated: str = "", **spec: Any
) -> Event:
    """A pod is created; on a node if ``nodeName`` is set."""
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "labels": labels or {}}
    status = {"nominatedNodeName": nominated} if nominated else {}
    return {
        "event": "addPod",
        "pod": {"metadata": metadata, "spec": {"priority": priority, **spec}, "status": status},
    }


def update(name: str, **parts: Any) -> Event:
    """A pod is changed: ``spec``, ``status`` or ``metadata`` as merge patches."""
    metadata = {"name": name, "namespace": "ns", **parts.pop("metadata", {})}
    return {"event": "updatePod", "pod": {"metadata": metadata, **parts}}


def delete(name: str) -> Event:
    return {"event": "deletePod", "pod": f"ns/{name}"}


def bind(name: str, node: str) -> Event:
    return {"event": "bindPod", "pod": f"ns/{name}", "node": node}


def node(name: str, *, cpu: str = "4", labels: dict[str, str] | None = None, **spec: Any) -> Event:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "event": "addNode",
        "node": {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": spec,
            "status": {"allocatable": allocatable},
        },
    }


def update_node(name: str, **parts: Any) -> Event:
    return {"event": "updateNode", "node": {"metadata": {"name": name, **parts.pop("metadata", {})}, **parts}}


def change(resource: str, action: str) -> Event:
    return {"event": "changeObject", "resource": resource, "action": action}


def pop() -> Event:
    return {"event": "pop"}


def fail(*plugins: str, pod: str = "", **more: Any) -> Event:
    """The attempt of the popped pod fails; without plugins, with an error."""
    named = {"pod": f"ns/{pod}"} if pod else {}
    return {"event": "unschedulable", "plugins": list(plugins), **({} if plugins else {"error": True}), **named, **more}


def nominate(name: str, to: str) -> Event:
    return {"event": "nominate", "pod": f"ns/{name}", "node": to}


def move_all() -> Event:
    return {"event": "moveAll"}


def activate(name: str) -> Event:
    return {"event": "activate", "pod": f"ns/{name}"}


def wait(time: str) -> Event:
    return {"event": "wait", "time": time}


def at(time: str, event: Event) -> Event:
    """The event after a delay since the previous one: ``+5s``."""
    return {**event, "time": time}


def timed(events: tuple[Event, ...]) -> list[TimedEvent]:
    """The events at their times, from ``START``."""
    now, found = START, []
    for event in events:
        time = event.get("time", "+0s")
        now += timedelta(seconds=float(time.strip("+s")))
        found.append(TimedEvent(msgspec.convert(event, QueueEvent), now, "events", len(found) + 1))
    return found


def apply(algorithm: str, *events: Event, queue: SchedulingQueue | None = None) -> list[QueueStep]:
    """The steps of applying the events to an empty cluster."""
    made = queue or queue_for(algorithm, START)
    simulation = QueueSimulation(
        made, QueueCluster(ClusterSnapshot(), decode_object), frozenset(("default-scheduler",)), None
    )
    return list(simulation.apply(timed(events)))


def state(step: QueueStep) -> str:
    """The pods' positions after a step: ``active a b, backoff c, unschedulable d``."""
    parts = []
    for place in QueueName:
        names = [each.pod.removeprefix("ns/") for each in step.pods if each.queue == place]
        if names:
            parts.append(f"{place.lower()} {' '.join(names)}")
    return ", ".join(parts) or "empty"


def popped(steps: list[QueueStep]) -> str:
    """The popped pods, in order."""
    return " ".join(step.popped.removeprefix("ns/") or "-" for step in steps if step.event == "pop")
