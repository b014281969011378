"""Where pods wait in a scheduling queue, what would move them, and how events moved them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption


class Place(StrEnum):
    """Where a pod is. ``InFlight``: popped, and being scheduled. ``Gone``: the queue does not know it (any more).

    ``Gated`` pods are kept among the unschedulable ones. In 1.8 a pod that backs off is in no queue at all.
    """

    ACTIVE = "Active"
    BACKOFF = "Backoff"
    UNSCHEDULABLE = "Unschedulable"
    GATED = "Gated"
    IN_FLIGHT = "InFlight"
    GONE = "Gone"


class MoverKind(StrEnum):
    """What moves a pod.

    ``Flush``: the timer that moves leftovers. ``Backoff``: its backoff ends. ``Pop``: the scheduler has nothing else to
    try. ``ClusterEvent``: a change of the cluster, of any kind where no ``events`` are named. ``MatchingPod``: a pod is
    added or updated on a node that a term of its pod affinity wants. ``OwnUpdate``: the pod itself is changed, beyond
    its status. ``GatesRemoved``: its last scheduling gate goes.
    """

    POP = "Pop"
    BACKOFF = "Backoff"
    FLUSH = "Flush"
    CLUSTER_EVENT = "ClusterEvent"
    MATCHING_POD = "MatchingPod"
    OWN_UPDATE = "OwnUpdate"
    GATES_REMOVED = "GatesRemoved"


class Mover(Record, frozen=True, omit_defaults=True):
    """Something that would move a pod, at ``at`` where the time is known.

    ``events`` are named as the scheduler's metrics name them, each with the plugins that wait for it.
    """

    kind: MoverKind
    at: datetime | None = None
    events: dict[str, list[str]] = {}


class QueuedPod(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A pod and where it waits.

    ``position`` counts from 1 within the place, in the order in which pods leave it; it is missing where there is no
    order. ``time`` is what orders pods of one priority. ``nominated_node_name`` is what the queue knows, which may
    differ from the pod's status. ``rejected_by`` are the plugins that refused the pod when it was last tried.
    ``held_by`` is the plugin, other than scheduling gates, that keeps a gated pod out. ``moved_by`` is what would move
    it.
    """

    pod: str
    priority: int = 0
    place: Place
    position: int | None = None
    time: datetime | None = None
    nominated_node_name: str = ""
    attempts: int = 0
    backoff_until: datetime | None = None
    rejected_by: list[str] = []
    held_by: str = ""
    moved_by: list[Mover] = []


class PodMove(Record, frozen=True):
    """A pod that went from one place to another."""

    pod: str
    before: Place
    after: Place


class QueueStep(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An event that was applied, or what the queue's timers did before it, and the queue afterwards.

    ``event`` is the kind of event, ``subject`` what it is about. ``popped`` is the pod that a pop gave; a pop of an
    empty queue gives none. ``nominated`` are the pods by node.
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
    """A scheduling queue: its pods in the order in which the scheduler would come to them, those that it cannot last.

    ``steps`` are there where events happened; ``items`` are the pods after the last. ``others`` counts pending pods
    that this queue does not take. A number of the cycle is ``null`` where the algorithm counts none.
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
