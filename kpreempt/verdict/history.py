"""The history of a pod, a node or a budget in a recording."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption
from kpreempt.verdict.who_evicted import PodTermination
from kpreempt.verdict.workload import PreemptionsBetween


class HistoryEventType(StrEnum):
    """The type of a step.

    ``Added``, ``Changed``, ``Deleted``: the object itself, or a pod on the node, was added, changed or deleted.
    ``Unschedulable``, ``Nominated``, ``Bound``: decisions of the pod's scheduler. ``Preempted``: a pod was evicted for
    another pod. ``Terminating``: the pod was deleted, or evicted for the reason in ``message``. ``Finished``: all
    containers of the pod have ended. ``WatchGap``: nothing was recorded until the time in ``until``.
    """

    ADDED = "Added"
    CHANGED = "Changed"
    UNSCHEDULABLE = "Unschedulable"
    NOMINATED = "Nominated"
    BOUND = "Bound"
    PREEMPTED = "Preempted"
    TERMINATING = "Terminating"
    FINISHED = "Finished"
    DELETED = "Deleted"
    WATCH_GAP = "WatchGap"


class HistoryEvent(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One event; ``at`` is its time. ``pod`` is ``namespace/name``, empty if the event is not about a pod.

    ``termination`` is what ended a pod, if anything shows it. ``victims`` were evicted for a nomination, and
    ``already_evicted`` selected for it too, although an earlier preemption had evicted them. ``preemptor`` is the pod
    that another one was evicted for. ``command`` are the words after ``kpreempt`` that explain the decision,
    if there was one.
    """

    at: datetime
    type: HistoryEventType
    pod: str = ""
    node: str = ""
    message: str = ""
    termination: PodTermination | None = None
    victims: list[str] = []
    already_evicted: list[str] = []
    preemptor: str = ""
    until: datetime | None = None
    command: list[str] = []


class History(Record, frozen=True, kw_only=True):
    """What happened to ``subject`` (``pod shop/api``) in a recording from ``begins`` to ``ends``, oldest first.

    ``preemptions`` are those by and of the workloads of its pods, if at least two pods were evicted. ``assumptions``
    are about kinds of which the recording lacks objects.
    """

    api_version: str = API_VERSION
    kind: str = "History"
    subject: str
    begins: datetime
    ends: datetime
    items: list[HistoryEvent] = []
    preemptions: list[PreemptionsBetween] = []
    assumptions: list[Assumption] = []
