"""Why a pod was evicted: what events and conditions say, and a reconstruction from an earlier snapshot."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption, Reprieve
from kpreempt.verdict.status import Outcome, Status


class PodPhase(StrEnum):
    """The current state of a pod.

    ``NotFound``: the pod is not in the cluster. ``Unknown``: not even the pod's name is known.
    """

    RUNNING = "Running"
    TERMINATING = "Terminating"
    PENDING = "Pending"
    FINISHED = "Finished"
    NOT_FOUND = "NotFound"
    UNKNOWN = "Unknown"


class PodLocation(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A pod and its current location. ``pod`` is empty if only its UID is known."""

    pod: str = ""
    uid: str = ""
    phase: PodPhase = PodPhase.UNKNOWN
    node: str = ""
    nominated_node_name: str = ""
    priority: int | None = None
    owner: str = ""


class Evidence(StrEnum):
    """The evidence for an eviction.

    ``Event``: the scheduler's event names the preemptor. ``AnonymousEvent``: an older scheduler's event does not name
    the preemptor. ``Condition``: the event has expired, and only the pod's condition says that the pod was preempted.
    ``None``: no evidence.
    """

    EVENT = "Event"
    ANONYMOUS_EVENT = "AnonymousEvent"
    CONDITION = "Condition"
    NONE = "None"


class ReconstructionResult(StrEnum):
    """How far the earlier snapshot confirms the eviction.

    ``Confirmed``: the victim is among the preemptor's victims. ``OtherVictims``: the preemptor evicts other pods.
    ``NoPreemption``: the preemptor does not evict any pods. ``NoVictim``: the victim is not in the snapshot.
    ``NoPreemptor``: the preemptor is not in the snapshot.
    """

    CONFIRMED = "Confirmed"
    OTHER_VICTIMS = "OtherVictims"
    NO_PREEMPTION = "NoPreemption"
    NO_VICTIM = "NoVictim"
    NO_PREEMPTOR = "NoPreemptor"


class Reconstruction(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The preemptor's decision, recomputed from an earlier snapshot.

    ``nodes`` are those it can be nominated to, ``victims`` the pods evicted from the victim's node. ``step`` is the
    victim's reprieve step. ``rejection`` is why the preemptor did not fit on that node as it was.
    ``is_preemptor_overlaid``: the preemptor did not exist in that snapshot yet, and was added to it.
    """

    result: ReconstructionResult
    algorithm: str = ""
    taken_at: datetime | None = None
    outcome: Outcome | None = None
    node: str = ""
    nodes: list[str] = []
    victims: list[str] = []
    step: Reprieve | None = None
    rejection: Status | None = None
    is_preemptor_overlaid: bool = False


class Preemption(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One eviction of the victim.

    ``at`` is when the event was last seen or the condition was set, ``message`` is its text. ``possible_preemptors``
    are pods nominated to the node, if nothing names the preemptor. ``other_victims`` are other pods evicted for the
    same one.
    """

    evidence: Evidence
    at: datetime | None = None
    message: str = ""
    node: str = ""
    is_pod_group: bool = False
    preemptor: PodLocation | None = None
    possible_preemptors: list[PodLocation] = []
    other_victims: list[str] = []
    reconstruction: Reconstruction | None = None


class PreemptionsOfPod(Record, frozen=True, kw_only=True):
    """The known evictions of a pod, latest first.

    ``disruption`` is the reason and message of the pod's DisruptionTarget condition, empty without one.
    ``terminating_until`` is when the grace period of a victim that still exists ends. ``has_events`` says whether the
    snapshot has any events; if they could not be read, the ``assumptions`` say so.
    """

    api_version: str = API_VERSION
    kind: str = "PreemptionsOfPod"
    victim: PodLocation
    has_events: bool = False
    terminating_until: datetime | None = None
    finalizers: list[str] = []
    disruption: str = ""
    preemptions: list[Preemption] = []
    assumptions: list[Assumption] = []
