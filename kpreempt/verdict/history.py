"""The history of a pod, a node or a budget in a recording."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION


class Happening(StrEnum):
    """The type of a step.

    ``Came``, ``Changed``, ``Gone``: the object itself, or a pod on the node, was added, changed or deleted.
    ``Refused``, ``Nominated``, ``Bound``: decisions of the pod's scheduler. ``Preempted``: a pod was evicted for
    another. ``Leaving``: it was deleted, or evicted for another reason, which is the ``message``. ``Finished``: all its
    containers have ended. ``Unwatched``: nothing was recorded until ``until``.
    """

    CAME = "Came"
    CHANGED = "Changed"
    REFUSED = "Refused"
    NOMINATED = "Nominated"
    BOUND = "Bound"
    PREEMPTED = "Preempted"
    LEAVING = "Leaving"
    FINISHED = "Finished"
    GONE = "Gone"
    UNWATCHED = "Unwatched"


class HistoryStep(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One event, ``at`` a time. ``pod`` is ``namespace/name``, empty if the event is not about a pod.

    ``victims`` were evicted for a nomination; ``preemptor`` is the pod that another one was evicted for. ``command``
    are the words after ``kpreempt`` that explain the decision, if there was one.
    """

    at: datetime
    what: Happening
    pod: str = ""
    node: str = ""
    message: str = ""
    victims: list[str] = []
    preemptor: str = ""
    until: datetime | None = None
    command: list[str] = []


class History(Record, frozen=True, kw_only=True):
    """What happened to ``subject`` (``pod shop/api``), oldest first, in a recording from ``begins`` to ``ends``."""

    api_version: str = API_VERSION
    kind: str = "History"
    subject: str
    begins: datetime
    ends: datetime
    items: list[HistoryStep] = []
