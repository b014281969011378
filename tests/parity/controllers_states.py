"""A state of a workload, to be put to the genuine controller and to ours, and what the objects in it share."""

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
    """What both answers to one state say. ``outcome`` is a word for what happens, for a count of all."""

    genuine: object
    ours: object
    outcome: str


@dataclass(frozen=True)
class State:
    """The ``question`` for the program of genuine controllers, and what compares its answer with ours.

    ``may_fail`` is whether ``compare`` knows what it means that the genuine controller fails.
    """

    question: Object
    compare: Callable[[Answer], Compared]
    may_fail: bool = False

    def compared(self, answer: Answer) -> Compared:
        """What the genuine ``answer`` says, beside what ours does."""
        if "error" in answer and not self.may_fail:
            return Compared(answer, None, "fails")
        return self.compare(answer)


# Draws a state at a time of day that is given.
Draw = Callable[[Random, datetime], State]


def text_of(time: datetime) -> str:
    """The time as the API writes it."""
    return time.isoformat().replace("+00:00", "Z")


def metadata(name: str, **more: Any) -> Object:
    """The metadata of an object whose uid is its name."""
    return {"name": name, "namespace": NAMESPACE, "uid": name, **more}


def owner(kind: str, name: str) -> Object:
    """A reference to the controller of that name, whose uid is its name."""
    return {"kind": kind, "name": name, "uid": name, "apiVersion": "apps/v1", "controller": True}


def ready_condition(is_ready: bool, since: datetime | None) -> Object:
    """The condition Ready; without a time it does not say since when it is what it is."""
    condition = {"type": "Ready", "status": str(is_ready)}
    return condition if since is None else condition | {"lastTransitionTime": text_of(since)}


def chance(random: Random, probability: float) -> bool:
    """Whether something of that probability happens."""
    return random.random() < probability


def seconds_ago(random: Random, now: datetime, *choices: int) -> datetime:
    """One of some times ago."""
    return now - timedelta(seconds=random.choice(choices))
