"""The pods in a scheduling queue, what would move them, and how events moved them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption


class QueueName(StrEnum):
    """The subqueue of a pod.

    ``InFlight``: the pod was popped, and is being scheduled. ``NotQueued``: the pod is not in the queue.

    ``Gated`` pods are stored among the unschedulable ones. In 1.8, a pod in backoff is in no queue at all.
    """

    ACTIVE = "Active"
    BACKOFF = "Backoff"
    UNSCHEDULABLE = "Unschedulable"
    GATED = "Gated"
    IN_FLIGHT = "InFlight"
    NOT_QUEUED = "NotQueued"


class MoverKind(StrEnum):
    """What moves a pod.

    ``Flush``: the timer that retries pods that have waited too long. ``Backoff``: the pod's backoff ends. ``Pop``: the
    scheduler has nothing else to attempt. ``ClusterEvent``: a change in the cluster, of any kind if ``events`` is
    empty. ``MatchingPod``: another pod that matches one of the pod's affinity terms is added or updated on a node.
    ``OwnUpdate``: the pod itself changes, not only its status. ``GatesRemoved``: the pod's last scheduling gate is
    removed.
    """

    POP = "Pop"
    BACKOFF = "Backoff"
    FLUSH = "Flush"
    CLUSTER_EVENT = "ClusterEvent"
    MATCHING_POD = "MatchingPod"
    OWN_UPDATE = "OwnUpdate"
    GATES_REMOVED = "GatesRemoved"


class Mover(Record, frozen=True, omit_defaults=True):
    """Something that would move a pod to another subqueue; ``at`` is its time, if known.

    ``events`` are named as in the scheduler's metrics, each with the plugins that wait for it.
    """

    kind: MoverKind
    at: datetime | None = None
    events: dict[str, list[str]] = {}


class QueuedPod(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A pod in the queue.

    ``position`` counts from 1 within the subqueue, in the order in which pods leave it; it is missing if there is no
    order. ``time`` orders pods of one priority. ``nominated_node_name`` is the queue's value, which may differ from the
    pod's status. ``rejected_by`` are the plugins that rejected the pod in its last attempt. ``held_by`` is the plugin,
    other than scheduling gates, that keeps a gated pod out. ``moved_by`` is what would move it.
    """

    pod: str
    priority: int = 0
    queue: QueueName
    position: int | None = None
    time: datetime | None = None
    nominated_node_name: str = ""
    attempts: int = 0
    backoff_until: datetime | None = None
    rejected_by: list[str] = []
    held_by: str = ""
    moved_by: list[Mover] = []


class PodMove(Record, frozen=True):
    """A pod that moved from one subqueue to another."""

    pod: str
    before: QueueName
    after: QueueName


class QueueStep(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An event that was applied, or the effect of the queue's timers before the event, and the queue afterwards.

    ``event`` is the kind of event, and ``subject`` its object. ``popped`` is the pod that a pop returned; a pop of an
    empty queue returns none. ``nominated`` are the nominated pods by node.
    """

    number: int
    time: datetime
    event: str
    subject: str = ""
    popped: str = ""
    moves: list[PodMove] = []
    pods: list[QueuedPod] = []
    nominated: dict[str, list[str]] = {}
    scheduling_cycle: int | None = None
    move_request_cycle: int | None = None


class SchedulingQueueState(Record, frozen=True, kw_only=True):
    """A scheduling queue: its pods in the order in which the scheduler would attempt them, ineligible ones last.

    ``steps`` is set if events were applied; ``items`` are the pods after the last one. ``others`` counts pending pods
    that this queue does not accept. Cycle numbers are ``null`` if the algorithm does not count them.
    """

    api_version: str = API_VERSION
    kind: str = "SchedulingQueue"
    algorithm: str
    at: datetime | None = None
    items: list[QueuedPod] = []
    nominated: dict[str, list[str]] = {}
    scheduling_cycle: int | None = None
    move_request_cycle: int | None = None
    others: int = 0
    steps: list[QueueStep] = []
    assumptions: list[Assumption] = []
