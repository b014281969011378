"""A state of a workload for the real controller and ours, and shared parts of its objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.parity.reference import Answer

Object = dict[str, Any]

NAMESPACE = "shop"


@dataclass(frozen=True)
class Compared:
    """Both results for one state. ``outcome`` is a word for what happens, for a count."""

    real: object
    ours: object
    outcome: str


@dataclass(frozen=True)
class State:
    """The ``request`` for the program with the real controllers, and the comparison of its result with ours.

    ``may_fail`` means that ``compare`` handles failures of the real controller.
    """

    request: Object
    compare: Callable[[Answer], Compared]
    may_fail: bool = False

    def compared(self, answer: Answer) -> Compared:
        """Compare the real ``answer`` with our result."""
        if "error" in answer and not self.may_fail:
            return Compared(answer, None, "fails")
        return self.compare(answer)


# Draws a state at the given time.
Draw = Callable[[Random, datetime], State]


def text_of(time: datetime) -> str:
    """The time in the API's format."""
    return time.isoformat().replace("+00:00", "Z")


def metadata(name: str, **more: Any) -> Object:
    """The metadata of an object whose uid is its name."""
    return {"name": name, "namespace": NAMESPACE, "uid": name, **more}


def owner(kind: str, name: str) -> Object:
    """A reference to the controller of that name, whose uid is its name."""
    return {"kind": kind, "name": name, "uid": name, "apiVersion": "apps/v1", "controller": True}


def ready_condition(is_ready: bool, since: datetime | None) -> Object:
    """The Ready condition; without a time it has no transition time."""
    condition = {"type": "Ready", "status": str(is_ready)}
    return condition if since is None else condition | {"lastTransitionTime": text_of(since)}


def chance(random: Random, probability: float) -> bool:
    """Return true with that probability."""
    return random.random() < probability


def seconds_ago(random: Random, now: datetime, *choices: int) -> datetime:
    """Draw an age."""
    return now - timedelta(seconds=random.choice(choices))
