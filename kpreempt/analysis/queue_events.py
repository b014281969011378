"""What can happen in a cluster that a scheduling queue is played on, one record for each event."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

import msgspec

from kpreempt.errors import InputError


class EventKind(StrEnum):
    """What happened. All but the last row are changes of the cluster; those are what the scheduler does."""

    ADD_POD = "addPod"
    UPDATE_POD = "updatePod"
    DELETE_POD = "deletePod"
    BIND_POD = "bindPod"
    ADD_NODE = "addNode"
    UPDATE_NODE = "updateNode"
    DELETE_NODE = "deleteNode"
    CHANGE_OBJECT = "changeObject"
    WAIT = "wait"
    POP = "pop"
    UNSCHEDULABLE = "unschedulable"
    NOMINATE = "nominate"
    CLEAR_NOMINATION = "clearNomination"
    MOVE_ALL = "moveAll"
    ACTIVATE = "activate"


# What each kind has to say beside its time.
_NEEDS: dict[EventKind, tuple[str, ...]] = {
    EventKind.ADD_POD: ("pod",),
    EventKind.UPDATE_POD: ("pod",),
    EventKind.DELETE_POD: ("pod",),
    EventKind.BIND_POD: ("pod", "node"),
    EventKind.ADD_NODE: ("node",),
    EventKind.UPDATE_NODE: ("node",),
    EventKind.DELETE_NODE: ("node",),
    EventKind.CHANGE_OBJECT: ("resource", "action"),
    EventKind.NOMINATE: ("pod", "node"),
    EventKind.CLEAR_NOMINATION: ("pod",),
    EventKind.ACTIVATE: ("pod",),
}


class QueueEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One event as a file of events states it.

    ``time`` is that of a clock, or ``+5s`` after the event before; without it both are at once. ``pod`` and ``node``
    are names (``namespace/name``), or objects where they are added, or merge patches (RFC 7386) where they are updated.
    ``plugins`` refused the pod that is ``unschedulable``; ``pending_plugins`` wait for something of their own, and with
    ``is_error`` the attempt failed without any. ``cycle`` is that of the attempt, if it is not the pod's last one.
    """

    event: EventKind
    time: str = ""
    pod: str | dict[str, Any] | None = None
    node: str | dict[str, Any] | None = None
    plugins: list[str] = []
    pending_plugins: list[str] = []
    is_error: bool = msgspec.field(name="error", default=False)
    cycle: int | None = None
    resource: str = ""
    action: Literal["", "Add", "Update", "Delete"] = ""


class TimedEvent(msgspec.Struct, frozen=True):
    """An event at its time, and where it is written."""

    event: QueueEvent
    time: datetime
    source: str = ""
    line: int = 0

    def error(self, problem: str, *, path: str = "", hint: str = "") -> InputError:
        """An error about this event."""
        name = f"event {self.event.event}"
        return InputError(problem, source=self.source, line=self.line, object_name=name, path=path, hint=hint)

    def check(self) -> None:
        """Raise ``InputError`` where something is missing that this kind of event needs."""
        for field in _NEEDS.get(self.event.event, ()):
            if not getattr(self.event, field):
                raise self.error("is missing", path=field)


def merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The document with a merge patch (RFC 7386): mappings are merged, null removes, all else replaces."""
    result = dict(document)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = merged(before if isinstance(before, dict) else {}, value)
        else:
            result[key] = value
    return result
