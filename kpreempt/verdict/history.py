"""What happened to a pod, a node or a budget while it was recorded."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION


class Happening(StrEnum):
    """What a step is.

    ``Came``, ``Changed``, ``Gone``: of the object itself, or of a pod on the node. ``Refused``, ``Nominated``,
    ``Bound``: its scheduler's decisions on a pod. ``Preempted``: a pod was evicted for another. ``Leaving``: it was
    deleted, or evicted for another reason, which is the ``message``. ``Finished``: all its containers have ended.
    ``Unwatched``: nothing was recorded up to ``until``.
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
    """One thing that happened, ``at`` a time. ``pod`` is ``namespace/name``, empty where it is about no pod.

    ``victims`` were evicted for a nomination, ``preemptor`` is for whom a pod was. ``command`` are the words after
    ``kpreempt`` that explain it, where something decided.
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
    """What happened to ``subject`` (``pod shop/api``), the oldest first, in a recording from ``begins`` to ``ends``."""

    api_version: str = API_VERSION
    kind: str = "History"
    subject: str
    begins: datetime
    ends: datetime
    items: list[HistoryStep] = []
