"""Whom a pod was evicted for: what events and conditions say, and a reconstruction from before."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption, Reprieve
from kpreempt.verdict.status import Outcome, Status


class PodPhase(StrEnum):
    """Where a pod is now. ``Gone``: it is not in the cluster; ``Unknown``: not even its name is known."""

    RUNNING = "Running"
    TERMINATING = "Terminating"
    PENDING = "Pending"
    FINISHED = "Finished"
    GONE = "Gone"
    UNKNOWN = "Unknown"


class Whereabouts(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A pod, and where it is now. ``pod`` is empty where only its UID is known."""

    pod: str = ""
    uid: str = ""
    phase: PodPhase = PodPhase.UNKNOWN
    node: str = ""
    nominated_node_name: str = ""
    priority: int | None = None
    owner: str = ""


class Evidence(StrEnum):
    """What is known of an eviction.

    ``Event``: the scheduler's event names the preemptor. ``AnonymousEvent``: an older scheduler's names none.
    ``Condition``: the event is gone, and only the pod itself says that it was preempted. ``None``: nothing says so.
    """

    EVENT = "Event"
    ANONYMOUS_EVENT = "AnonymousEvent"
    CONDITION = "Condition"
    NONE = "None"


class ReconstructionResult(StrEnum):
    """How far the earlier snapshot explains the eviction.

    ``Confirmed``: the victim is among the preemptor's victims there. ``OtherVictims``: it evicts others there.
    ``NoPreemption``: it evicts nobody. ``NoVictim``, ``NoPreemptor``: the pod is not there.
    """

    CONFIRMED = "Confirmed"
    OTHER_VICTIMS = "OtherVictims"
    NO_PREEMPTION = "NoPreemption"
    NO_VICTIM = "NoVictim"
    NO_PREEMPTOR = "NoPreemptor"


class Reconstruction(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The preemptor explained in an earlier snapshot.

    ``nodes`` are those it can be nominated to there, ``victims`` the pods that go from the victim's node. ``step`` is
    how the victim fared there when pods were put back. ``refusal`` is why the preemptor did not fit on that node as it
    was. ``is_preemptor_laid_over`` says that the preemptor was not in that snapshot yet, and was added to it.
    """

    result: ReconstructionResult
    algorithm: str = ""
    taken_at: datetime | None = None
    outcome: Outcome | None = None
    node: str = ""
    nodes: list[str] = []
    victims: list[str] = []
    step: Reprieve | None = None
    refusal: Status | None = None
    is_preemptor_laid_over: bool = False


class Preemption(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One eviction of the victim.

    ``at`` is when the event was last seen or the condition was set, ``message`` its words. ``suspects`` are pods that
    are nominated to the node, where nothing names the preemptor. ``also`` were evicted for the same one.
    """

    evidence: Evidence
    at: datetime | None = None
    message: str = ""
    node: str = ""
    is_pod_group: bool = False
    preemptor: Whereabouts | None = None
    suspects: list[Whereabouts] = []
    also: list[str] = []
    reconstruction: Reconstruction | None = None


class PreemptionsOfPod(Record, frozen=True, kw_only=True):
    """Whom a pod was evicted for: each eviction that is known, the latest first.

    ``disruption`` is what the pod's DisruptionTarget condition says, reason and message, empty without one.
    ``leaving_until`` is when the grace period of a victim that is still there ends. ``has_events`` says whether the
    snapshot holds any event at all; that they could not be read is among the ``assumptions``.
    """

    api_version: str = API_VERSION
    kind: str = "PreemptionsOfPod"
    victim: Whereabouts
    has_events: bool = False
    leaving_until: datetime | None = None
    finalizers: list[str] = []
    disruption: str = ""
    preemptions: list[Preemption] = []
    assumptions: list[Assumption] = []
