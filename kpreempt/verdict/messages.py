"""What messages about pods say, part by part: the scheduler's about a pod without a node, and those of other programs.

Nothing here is a verdict: a message is all that is known, without the cluster.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.model.meta import slashed
from kpreempt.verdict.autoscaling import AutoscalerReport
from kpreempt.verdict.base import Record, SparseRecord
from kpreempt.verdict.records import API_VERSION, Assumption
from kpreempt.verdict.waiting import SchedulerMessage
from kpreempt.verdict.who_evicted import PodTermination
from kpreempt.verdict.workload import FailedCreation


class EventTopic(StrEnum):
    """What an event is about: whose message it is, or what happened. ``Other`` is not about scheduling."""

    SCHEDULING = "Scheduling"
    OTHER_SCHEDULER = "OtherScheduler"
    SCHEDULED = "Scheduled"
    PREEMPTED = "Preempted"
    AUTOSCALER = "Autoscaler"
    CREATION = "Creation"
    KUBELET = "Kubelet"
    RESIZE = "Resize"
    TERMINATION = "Termination"
    OTHER = "Other"


class ExplainedEvent(SparseRecord, frozen=True, kw_only=True):
    """An event, or a condition or status of a pod (``reason`` is then the condition's), and what it says.

    ``at`` is when it was last seen; pasted text has an age instead, which counts from when kubectl printed it.
    ``times`` is how often it was seen. Only the fields of its ``topic`` are set: ``scheduling`` for a scheduler's
    message, ``preemptor`` or only ``preemptor_uid`` for a preemption, ``node`` for that and for a pod that was
    scheduled, ``autoscaler``, ``creation`` for a failed creation, and ``termination`` for the end of a pod, or its
    rejection by a kubelet.
    """

    topic: EventTopic
    reason: str = ""
    message: str = ""
    reporter: str = ""
    at: datetime | None = None
    age_seconds: int | None = None
    times: int = 1
    scheduling: SchedulerMessage | None = None
    preemptor: str = ""
    preemptor_uid: str = ""
    node: str = ""
    autoscaler: AutoscalerReport | None = None
    creation: FailedCreation | None = None
    termination: PodTermination | None = None


class ExplainedObject(SparseRecord, frozen=True, kw_only=True):
    """An object and its events, the latest first; ``namespace`` and ``name`` are empty if the input lacks them.

    ``node``, ``nominated_node`` and ``priority`` are those of a pod, if it is described. ``other_events`` is the number
    of its events about something else, which are not listed.
    """

    kind: str = ""
    namespace: str = ""
    name: str = ""
    node: str = ""
    nominated_node: str = ""
    priority: int | None = None
    events: list[ExplainedEvent] = []
    other_events: int = 0

    @property
    def key(self) -> str:
        """``namespace/name``, as far as they are known."""
        return slashed(self.namespace, self.name)


class ExplainedEvents(Record, frozen=True, kw_only=True):
    """What pasted events say, by object, the one with the latest event first.

    Objects without events about scheduling, or about the end or the creation of pods, are left out; ``other_objects``
    is their number.
    """

    api_version: str = API_VERSION
    kind: str = "ExplainedEvents"
    items: list[ExplainedObject] = []
    other_objects: int = 0
    assumptions: list[Assumption] = []
