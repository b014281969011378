"""Why a pod ended: what conditions, status, events and audit logs say, and which pod preempted it and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from kpreempt.model.terminations import EndedContainer, EvidenceSource, Pressure, Termination, TerminationCause
from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption, Reprieve
from kpreempt.verdict.status import Outcome, Status


class PodPhase(StrEnum):
    """The current state of a pod.

    ``NotFound``: the pod is not in the cluster. ``Unknown``: not even its name is known. ``NotRead``: it may be in
    the cluster, because not all pods could be read.
    """

    RUNNING = "Running"
    TERMINATING = "Terminating"
    PENDING = "Pending"
    FINISHED = "Finished"
    NOT_FOUND = "NotFound"
    UNKNOWN = "Unknown"
    NOT_READ = "NotRead"


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


class EvidenceText(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One text that an answer is based on. ``reporter`` is the component that wrote it, if that is known."""

    source: EvidenceSource
    at: datetime | None = None
    reason: str = ""
    message: str = ""
    reporter: str = ""


class EvictionClient(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What requested an eviction or a deletion.

    ``name`` is a program, such as ``kubectl drain`` or ``Karpenter``, and ``detail`` the reason that it states. An
    audit log has the ``user`` and the ``user_agent``. If it ``is_likely``, only the state of the node points to it;
    ``signs`` are what it is recognized by.
    """

    name: str = ""
    detail: str = ""
    user: str = ""
    user_agent: str = ""
    is_likely: bool = False
    signs: list[str] = []


class EvictingTaint(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A NoExecute taint of the pod's node that evicts the pod, after ``toleration_seconds`` if the pod tolerates it."""

    taint: str
    toleration_seconds: int | None = None


class ObjectChange(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The last change of some ``fields`` of an object, by a field manager, such as ``kubectl-scale`` or ``argocd``."""

    object: str
    fields: list[str]
    manager: str = ""
    at: datetime | None = None


class AlikePods(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Other pods of the same ``owner`` that ended for the same reason, created between ``since`` and ``until``."""

    owner: str
    pods: int
    since: datetime | None = None
    until: datetime | None = None
    nodes: list[str] = []


class PodTermination(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a pod, or of a container of a pod that goes on.

    ``uid`` is that of the pod, which differs from another pod's of the same name. ``owner`` is the object that deleted
    the pod, or whose deletion did; ``owner_changes`` are its changes shortly before. ``message`` is the most specific
    text. ``taints`` are those that the node still has.
    """

    cause: TerminationCause
    is_eviction: bool = False
    at: datetime | None = None
    uid: str = ""
    node: str = ""
    reason: str = ""
    message: str = ""
    client: EvictionClient | None = None
    pressure: Pressure | None = None
    taints: list[EvictingTaint] = []
    container: EndedContainer | None = None
    owner: str = ""
    owner_changes: list[ObjectChange] = []
    alike: AlikePods | None = None
    preemption: Preemption | None = None
    rejected_requests: int = 0
    evidence: list[EvidenceText] = []

    @classmethod
    def of_texts(cls, says: Sequence[Termination], **known: Any) -> PodTermination:
        """What the texts say, of which the first determines the cause, completed by what else is ``known``.

        The other texts count if they say the same, or if they only have more about it.
        """
        cause = says[0].cause
        says = [each for each in says if each.cause is cause]
        times = [each.at for each in says if each.at is not None]
        pressures = [each.pressure for each in says if each.pressure is not None]
        reported = next((each for each in says if each.client), None)
        values: dict[str, Any] = {
            "at": (max if cause.ends_container_only else min)(times, default=None),
            "reason": next((each.reason for each in says if each.source is EvidenceSource.STATUS), says[0].reason),
            "message": max((each.message for each in says), key=len),
            "client": EvictionClient(name=reported.client, detail=reported.detail) if reported else None,
            "pressure": next((each for each in pressures if each.usage), next(iter(pressures), None)),
            "container": next((each.container for each in says if each.container is not None), None),
            "owner": says[0].detail if cause is TerminationCause.DELETED_BY_OWNER else "",
            "evidence": [
                EvidenceText(
                    source=each.source, at=each.at, reason=each.reason, message=each.message, reporter=each.reporter
                )
                for each in says
                if each.source is not EvidenceSource.OBJECT
            ],
        }
        return cls(cause=cause, is_eviction=cause.is_eviction, **{**values, **known})


class Sources(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What was looked at: the number of events about ends of pods, their times, and the times of the audit log.

    ``has_events`` says whether the input has any events; if they could not be read, the answer's assumptions say so.
    """

    has_events: bool = False
    events: int = 0
    events_since: datetime | None = None
    events_until: datetime | None = None
    audit_requests: int | None = None
    audit_since: datetime | None = None
    audit_until: datetime | None = None


class EvictionsOfPod(Record, frozen=True, kw_only=True):
    """What is known about the end of a pod and of earlier pods of the same name, the latest first.

    ``terminating_until`` is when the grace period of a pod that still exists ends.
    """

    api_version: str = API_VERSION
    kind: str = "EvictionsOfPod"
    victim: PodLocation
    terminating_until: datetime | None = None
    finalizers: list[str] = []
    items: list[PodTermination] = []
    sources: Sources = Sources()
    assumptions: list[Assumption] = []


class EvictedPod(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that ended or whose container did. ``is_by_name``: it is gone, and only its name shows its owner."""

    victim: PodLocation
    is_by_name: bool = False
    items: list[PodTermination] = []


class EvictedPods(Record, frozen=True, kw_only=True):
    """What happened to the pods of a workload or a namespace, the latest first.

    ``selection`` is the workload (``Deployment shop/web``) or ``namespace shop``; empty for all. ``running`` is the
    number of its pods that go on.
    """

    api_version: str = API_VERSION
    kind: str = "EvictedPods"
    selection: str = ""
    running: int = 0
    items: list[EvictedPod] = []
    sources: Sources = Sources()
    assumptions: list[Assumption] = []
