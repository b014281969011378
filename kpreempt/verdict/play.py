"""What happens after a scheduler's decision: who leaves when, who comes in their place, who is displaced in turn."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class _Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of the records."""


class StepKind(StrEnum):
    """What happens in a step.

    ``Arrives``: a pod is created. ``Lands``: it is bound. ``Nominated``: victims are told to go, and it waits for their
    room. ``Leaves``: a pod is told to go, and stops. ``Gone``: it has stopped. ``Waits``: no node for it, and nobody
    whose going would help.
    """

    ARRIVES = "Arrives"
    LANDS = "Lands"
    NOMINATED = "Nominated"
    LEAVES = "Leaves"
    GONE = "Gone"
    WAITS = "Waits"


class PlayStep(_Record, frozen=True, kw_only=True):
    """A step, ``at`` seconds from the start.

    ``owner`` is what manages the pod (``ReplicaSet api``). ``cause`` is the pod for whose sake a victim leaves, or in
    whose place a pod is made. ``violated`` are budgets that the leaving of a victim breaks. ``tied`` are the nodes
    among which the scheduler draws. ``message`` is the scheduler's, of a pod that waits.
    """

    at: float
    kind: StepKind
    pod: str
    priority: int = 0
    owner: str = ""
    node: str = ""
    cause: str = ""
    violated: list[str] = []
    tied: list[str] = []
    message: str = ""


class Displaced(_Record, frozen=True, kw_only=True):
    """A pod that had to go, and what came of it.

    ``replacement`` is the pod that is made in its place, if one is; ``lands_on`` is where that ends, empty where it
    waits still; ``victims`` are those that had to go for it in turn.
    """

    pod: str
    priority: int
    node: str
    owner: str = ""
    violated: list[str] = []
    replacement: str = ""
    lands_on: str = ""
    victims: list[Displaced] = []


class Waiting(_Record, frozen=True, kw_only=True):
    """A pod that has no node in the end, with the scheduler's last message.

    ``was_running`` where it took the place of one that ran.
    """

    pod: str
    priority: int
    owner: str = ""
    message: str = ""
    was_running: bool = False


class BudgetLow(_Record, frozen=True, kw_only=True):
    """A budget that the play touches: the disruptions that it allows before, at least, and in the end.

    ``violations`` counts the victims that it did not allow to go.
    """

    budget: str
    before: int
    least: int
    after: int
    violations: int = 0


class PlayEnd(StrEnum):
    """How a play ends: nothing more happens, the same happens over and over, or it is broken off."""

    SETTLED = "Settled"
    LOOP = "Loop"
    BROKEN_OFF = "BrokenOff"


class Play(_Record, frozen=True, kw_only=True, omit_defaults=False):
    """A play from its start to its end.

    ``seconds`` is when the last thing happens. ``displaced`` are the victims of the pods that came first, each with
    what follows from it; ``depth`` is the length of the longest such chain. ``starts_at`` is when each of the pods that
    came first is bound, in seconds; those that never are, are missing.
    """

    end: PlayEnd
    seconds: float
    depth: int
    starts_at: dict[str, float]
    displaced: list[Displaced]
    waiting: list[Waiting]
    budgets: list[BudgetLow]
    steps: list[PlayStep]
