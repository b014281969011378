"""What kpreempt and the genuine Volcano scheduler say differently about a session."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

# The keys of a record that both write in the same way; kpreempt's own evidence stands beside them.
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
# An eviction's event on the pod comes with the deletion, which the genuine one is spared here.
NOT_COMPARED = ("Pod", "Evict")
LONGEST = 400


def volcano_differences(genuine: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """What differs between two answers, one line each, in the order of the session."""
    if "error" in genuine or "error" in ours:
        if "error" in genuine and "error" in ours:
            return []
        return [f"error: want {_short(genuine.get('error'))}, got {_short(ours.get('error'))}"]
    return list(_session(_plain(genuine["verdict"]), _plain(ours["verdict"])))


def _plain(value: Any) -> Any:
    """The value without keys that hold nothing."""
    if isinstance(value, dict):
        items = {name: _plain(item) for name, item in value.items()}
        return {name: item for name, item in items.items() if item not in (None, [], {}, "")}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _session(want: dict[str, Any], got: dict[str, Any]) -> Iterator[str]:
    if want.get("panics") or got.get("panics"):
        # Of a session that ends so, there is nothing but what it ends on.
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
        where = f"actions[{number}] {one['action']}"
        for key in ACTION_KEYS:
            yield from _differences(f"{where}.{key}", one.get(key), other.get(key))
        yield from _state(where, one, other)
    ends = (_end(want), _end(got))
    for key in FINAL_KEYS:
        yield from _differences(f"final.{key}", *(each.get(key) for each in ends))


def _state(where: str, want: dict[str, Any], got: dict[str, Any]) -> Iterator[str]:
    for kind, keys in (("jobs", JOB_KEYS), ("queues", QUEUE_KEYS)):
        yield from _differences(f"{where}.{kind}", *(_only(keys, each.get(kind)) for each in (want, got)))


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


def _differences(where: str, want: Any, got: Any) -> Iterator[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(want.keys() | got.keys()):
            yield from _differences(f"{where}.{key}", want.get(key), got.get(key))
    elif isinstance(want, list) and isinstance(got, list):
        for index in range(max(len(want), len(got))):
            one, other = (each[index] if index < len(each) else None for each in (want, got))
            if isinstance(one, list) or isinstance(other, list):
                # A step of a trace, or an event, is read as a whole.
                if one != other:
                    yield f"{where}[{index}]: want {_short(one)}, got {_short(other)}"
            else:
                yield from _differences(f"{where}[{index}]", one, other)
    elif not _same(want, got):
        yield f"{where}: want {_short(want)}, got {_short(got)}"


def _same(want: Any, got: Any) -> bool:
    if isinstance(want, int | float) and isinstance(got, int | float):
        return math.isclose(want, got, rel_tol=1e-9, abs_tol=1e-6)
    return bool(want == got)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
