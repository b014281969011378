"""Differences between kpreempt and the real Volcano scheduler on a session."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

# The keys of a record that both write in the same format; kpreempt adds its own evidence.
JOB_KEYS = (
    "queue",
    "priority",
    "minAvailable",
    "phase",
    "tasks",
    "readyNum",
    "waitingNum",
    "valid",
    "ready",
    "pipelined",
    "starving",
    "allocated",
)
QUEUE_KEYS = ("weight", "share", "deserved", "allocated", "request", "overused")
ACTION_KEYS = ("trace", "evictions", "pipelined", "binds", "allocated", "enqueued")
FINAL_KEYS = ("podGroups", "fitErrors", "pods", "events")
# The event of an eviction on the pod comes with the deletion, which the real scheduler is spared here.
NOT_COMPARED = ("Pod", "Evict")
LONGEST = 400


def volcano_differences(real: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """The differences between two results, one line each, in session order."""
    if "error" in real or "error" in ours:
        if "error" in real and "error" in ours:
            return []
        return [f"error: want {_short(real.get('error'))}, got {_short(ours.get('error'))}"]
    return list(_session(_plain(real["verdict"]), _plain(ours["verdict"])))


def _plain(value: Any) -> Any:
    """The value without empty keys."""
    if isinstance(value, dict):
        items = {name: _plain(item) for name, item in value.items()}
        return {name: item for name, item in items.items() if item not in (None, [], {}, "")}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _session(want: dict[str, Any], got: dict[str, Any]) -> Iterator[str]:
    if want.get("panics") or got.get("panics"):
        # A session that panics has only the object it panics on.
        if bool(want.get("panics")) != bool(got.get("panics")):
            yield f"panics: want {want.get('panic')!r}, got {_short(got.get('panic'))}"
        return
    opening = (want.get("opening") or {}, got.get("opening") or {})
    yield from _state("opening", *opening)
    yield from _differences("opening.scores", *(each.get("scores") for each in opening))
    theirs, own = want.get("actions") or [], got.get("actions") or []
    if [each["action"] for each in theirs] != [each["action"] for each in own]:
        yield f"actions: want {[each['action'] for each in theirs]}, got {[each['action'] for each in own]}"
        return
    for number, (one, other) in enumerate(zip(theirs, own, strict=True)):
        location = f"actions[{number}] {one['action']}"
        for key in ACTION_KEYS:
            yield from _differences(f"{location}.{key}", one.get(key), other.get(key))
        yield from _state(location, one, other)
    ends = (_end(want), _end(got))
    for key in FINAL_KEYS:
        yield from _differences(f"final.{key}", *(each.get(key) for each in ends))


def _state(location: str, want: dict[str, Any], got: dict[str, Any]) -> Iterator[str]:
    for kind, keys in (("jobs", JOB_KEYS), ("queues", QUEUE_KEYS)):
        yield from _differences(f"{location}.{kind}", *(_only(keys, each.get(kind)) for each in (want, got)))


def _only(keys: tuple[str, ...], records: dict[str, Any] | None) -> dict[str, Any]:
    return {name: {key: record.get(key) for key in keys} for name, record in (records or {}).items()}


def _end(verdict: dict[str, Any]) -> dict[str, Any]:
    end = verdict.get("final") or {}
    fields = ("kind", "subject", "type", "reason", "message")
    events = [[event.get(field, "") for field in fields] for event in end.get("events") or []]
    return end | {
        "fitErrors": _plain(end.get("fitErrors") or {}),
        "events": sorted(event for event in events if (event[0], event[3]) != NOT_COMPARED),
    }


def _differences(location: str, want: Any, got: Any) -> Iterator[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(want.keys() | got.keys()):
            yield from _differences(f"{location}.{key}", want.get(key), got.get(key))
    elif isinstance(want, list) and isinstance(got, list):
        for index in range(max(len(want), len(got))):
            one, other = (each[index] if index < len(each) else None for each in (want, got))
            if isinstance(one, list) or isinstance(other, list):
                # A step of a trace, or an event, is compared as one value.
                if one != other:
                    yield f"{location}[{index}]: want {_short(one)}, got {_short(other)}"
            else:
                yield from _differences(f"{location}[{index}]", one, other)
    elif not _same(want, got):
        yield f"{location}: want {_short(want)}, got {_short(got)}"


def _same(want: Any, got: Any) -> bool:
    if isinstance(want, int | float) and isinstance(got, int | float):
        return math.isclose(want, got, rel_tol=1e-9, abs_tol=1e-6)
    return bool(want == got)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
