"""Why a pod ended, in the words of the components that end pods: its conditions, its status, and events about it.

The texts are those of v1.29 to v1.36.3: ``pkg/kubelet/eviction/helpers.go``, ``pkg/kubelet/preemption/preemption.go``,
``pkg/kubelet/nodeshutdown``, ``pkg/kubelet/lifecycle/predicate.go``, ``pkg/kubelet/kubelet.go`` (``rejectPod``),
``pkg/controller/tainteviction``, ``pkg/controller/devicetainteviction``, ``pkg/controller/podgc``,
``pkg/controller/controller_utils.go``, ``pkg/registry/core/pod/storage/eviction.go``; and those of Karpenter
(``terminator/events``), the descheduler (``evictions.go``), Cluster Autoscaler and the Vertical Pod Autoscaler.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

import msgspec

from kpreempt.model.event import KILLING, OUT_OF, PREEMPTED, REJECTION_REASONS, SUCCESSFUL_DELETE, Event
from kpreempt.model.pod import ContainerStatus, Pod, PodCondition

DISRUPTION = "DisruptionTarget"


class TerminationCause(StrEnum):
    """Why a pod, or a container of a pod that stays, ended.

    Evictions: ``Preemption`` (by a scheduler), ``CriticalPod`` (the kubelet made room for a critical pod),
    ``NodePressure``, ``LocalStorageLimit`` (the pod used more local storage than its limit), ``NodeShutdown``,
    ``NoExecuteTaint``, ``DeviceTaint``, ``EvictionAPI``, ``NodeGone`` (PodGC, because the node no longer exists),
    ``OtherDisruption`` (a condition with an unknown reason).

    No evictions: ``RejectedByKubelet`` (it never ran), ``DeadlineExceeded``, ``OOMKilled``, ``FailedProbe`` (liveness
    or startup; these two restart a container), ``ContainersExited`` (the pod finished), ``DeletedByOwner``,
    ``OwnerDeleted`` (garbage collection), ``DeletedByClient`` (a user, or a program that is not the owner),
    ``Deleted`` (nothing shows by what).
    """

    PREEMPTION = "Preemption"
    CRITICAL_POD = "CriticalPod"
    NODE_PRESSURE = "NodePressure"
    LOCAL_STORAGE_LIMIT = "LocalStorageLimit"
    NODE_SHUTDOWN = "NodeShutdown"
    NO_EXECUTE_TAINT = "NoExecuteTaint"
    DEVICE_TAINT = "DeviceTaint"
    EVICTION_API = "EvictionAPI"
    NODE_GONE = "NodeGone"
    OTHER_DISRUPTION = "OtherDisruption"
    REJECTED = "RejectedByKubelet"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    OOM_KILLED = "OOMKilled"
    FAILED_PROBE = "FailedProbe"
    CONTAINERS_EXITED = "ContainersExited"
    DELETED_BY_OWNER = "DeletedByOwner"
    OWNER_DELETED = "OwnerDeleted"
    DELETED_BY_CLIENT = "DeletedByClient"
    DELETED = "Deleted"

    @property
    def is_eviction(self) -> bool:
        """Whether something evicted the pod."""
        return self in _EVICTIONS

    @property
    def ends_container_only(self) -> bool:
        """Whether the pod itself stays, and its container is restarted."""
        return self in (TerminationCause.OOM_KILLED, TerminationCause.FAILED_PROBE)


_EVICTIONS = frozenset(
    (
        TerminationCause.PREEMPTION,
        TerminationCause.CRITICAL_POD,
        TerminationCause.NODE_PRESSURE,
        TerminationCause.LOCAL_STORAGE_LIMIT,
        TerminationCause.NODE_SHUTDOWN,
        TerminationCause.NO_EXECUTE_TAINT,
        TerminationCause.DEVICE_TAINT,
        TerminationCause.EVICTION_API,
        TerminationCause.NODE_GONE,
        TerminationCause.OTHER_DISRUPTION,
    )
)


class EvidenceSource(StrEnum):
    """Where a text comes from: the pod's ``Condition``, ``Status`` or ``Container`` status, an ``Event``, or else."""

    CONDITION = "Condition"
    STATUS = "Status"
    CONTAINER = "Container"
    EVENT = "Event"
    AUDIT_LOG = "AuditLog"
    OBJECT = "Object"


class ResourceUsage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a container, or the pod (if ``container`` is empty), used and requested, in the kubelet's notation."""

    container: str = ""
    used: str = ""
    requested: str = ""


class Pressure(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The resource that a node was short of, or the limit that the pod exceeded.

    ``threshold`` is the kubelet's eviction threshold and ``available`` what was left. ``usage`` has the containers that
    used more than they requested. ``limit`` is the exceeded limit, of ``subject`` if that is a container or a volume.
    """

    resource: str = ""
    threshold: str = ""
    available: str = ""
    usage: list[ResourceUsage] = []
    limit: str = ""
    subject: str = ""


class EndedContainer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A container that ended, with its exit code, its number of restarts, and the probe that failed, if one did."""

    name: str = ""
    exit_code: int | None = None
    restarts: int = 0
    probe: str = ""


class Termination(NamedTuple):
    """What one text says about the end of a pod. ``client`` is the program that requested it, ``detail`` its reason."""

    cause: TerminationCause
    source: EvidenceSource
    at: datetime | None = None
    reason: str = ""
    message: str = ""
    reporter: str = ""
    client: str = ""
    detail: str = ""
    pressure: Pressure | None = None
    container: EndedContainer | None = None


# How a status message of a rejected pod begins.
_REJECTED = "Pod was rejected: "

DRAIN, DESCHEDULER, KARPENTER, CLUSTER_AUTOSCALER, VPA = (
    "kubectl drain",
    "descheduler",
    "Karpenter",
    "Cluster Autoscaler",
    "Vertical Pod Autoscaler",
)

_CONDITIONS = {
    "PreemptionByScheduler": TerminationCause.PREEMPTION,
    "PreemptionByKubeScheduler": TerminationCause.PREEMPTION,
    "DeletionByTaintManager": TerminationCause.NO_EXECUTE_TAINT,
    "DeletionByDeviceTaintManager": TerminationCause.DEVICE_TAINT,
    "EvictionByEvictionAPI": TerminationCause.EVICTION_API,
    "DeletionByPodGC": TerminationCause.NODE_GONE,
}
_TERMINATED_BY_KUBELET = "TerminationByKubelet"
_KUBELET_TEXTS = {
    "Preempted in order to admit critical pod": TerminationCause.CRITICAL_POD,
    "Pod was preempted by Kubelet to accommodate a critical pod.": TerminationCause.CRITICAL_POD,
    "Pod was terminated in response to imminent node shutdown.": TerminationCause.NODE_SHUTDOWN,
}

_NAME = r"[\w.-]{1,253}"
_RESOURCE = r"(?P<resource>[\w./-]{1,317}?)"
_LOW = re.compile(rf"The node was low on resource: {_RESOURCE}\. ?")
_THRESHOLD = re.compile(r"Threshold quantity: (?P<threshold>[\w.]+), available: (?P<available>[\w.-]+)\. ?")
_USAGE = re.compile(
    rf"(?:Container (?P<container>{_NAME})|Pod (?P<pod>{_NAME})) was using (?P<used>[\w.]+), request is "
    rf"(?P<requested>[\w.]+), has larger consumption of {_RESOURCE}\. ?"
)
_NODE_CONDITION = re.compile(r"The node had condition: \[(?P<conditions>[\w ]*)\]\. ?")
_LIMITS = (
    re.compile(
        rf"Container (?P<container>{_NAME}) exceeded its local ephemeral storage limit \"(?P<limit>[\w.]*)\"\. ?"
    ),
    re.compile(r"Pod ephemeral local storage usage exceeds the total limit of containers (?P<limit>[\w.]+)\. ?"),
    re.compile(rf"Usage of EmptyDir volume \"(?P<volume>{_NAME})\" exceeds the limit \"(?P<limit>[\w.]*)\"\. ?"),
)
_PROBE = re.compile(
    rf"(?:Init container|Container) (?P<container>{_NAME}) failed (?P<probe>liveness|startup) probe(?:, .*)?"
)
_MARKED = re.compile(rf"Marking for deletion(?: Pod (?:(?P<namespace>{_NAME})/)?(?P<pod>{_NAME}?))?(?: from .*)?")
_DELETED_BY_OWNER = re.compile(
    rf"Deleted pod: (?P<pod>{_NAME})|delete Pod (?P<of_set>{_NAME}) in StatefulSet (?P<set>{_NAME}) successful"
)
_BY_DESCHEDULER = re.compile(rf"pod (?:eviction|evicted) from (?P<node>{_NAME})? ?node by sigs\.k8s\.io/descheduler")
_BY_KARPENTER = re.compile(r"Evicted pod: (?P<detail>.*)")

# The owners that delete pods and report it.
_OWNER_KINDS = ("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")


def is_rejection(reason: str) -> bool:
    """Whether a kubelet rejects pods with this reason."""
    return reason.startswith(OUT_OF) or reason in REJECTION_REASONS


def pressure_of(message: str) -> Pressure | None:
    """The resource, threshold, usage or limit in a kubelet's message about an eviction, or ``None``."""
    for each in _LIMITS:
        if match := each.match(message):
            found = match.groupdict()
            subject = next((f"{kind} {found[kind]}" for kind in ("container", "volume") if found.get(kind)), "")
            return Pressure(resource="ephemeral-storage", limit=found["limit"], subject=subject)
    low = _LOW.match(message)
    if low is None:
        return None
    threshold = _THRESHOLD.match(message, low.end())
    usage = [
        ResourceUsage(
            container=match["container"] or "",
            used=match["used"],
            requested=match["requested"],
        )
        for match in _USAGE.finditer(message)
    ]
    return Pressure(
        resource=low["resource"],
        threshold=threshold["threshold"] if threshold else "",
        available=threshold["available"] if threshold else "",
        usage=usage,
    )


_PIECES = (
    _LOW,
    _THRESHOLD,
    _USAGE,
    _NODE_CONDITION,
    *_LIMITS,
    *(re.compile(re.escape(text)) for text in (_REJECTED, *_KUBELET_TEXTS)),
    *(
        re.compile(re.escape(text))
        for text in (
            "Eviction API: evicting",
            "Taint manager: deleting due to NoExecute taint",
            "Device Taint manager: deleting due to NoExecute taint",
            "PodGC: node no longer exists",
            "Pod was active on the node longer than the specified deadline",
            "Pod was rejected as the node is shutting down.",
            "Pod Scope Resources cannot be allocated with Topology locality",
            "Resources cannot be allocated with Topology locality",
            "Pod was evicted by VPA Updater to apply resource recommendation.",
            "deleting pod for node scale down",
            "marked the node as toBeDeleted/unschedulable",
        )
    ),
    re.compile(rf"Node didn't have enough resource: {_RESOURCE}, requested: \d+, used: \d+, capacity: \d+"),
    re.compile(
        r"Predicate \w+ failed: node\(s\) (?:had untolerated taint\(s\)|didn't match Pod's node affinity/selector"
        r"|didn't match the requested node name|didn't have free ports for the requested pod ports)"
    ),
    re.compile(
        rf"(?:Init container|Container) (?P<container>{_NAME}) failed (?:liveness|startup) probe"
        r"(?:, will be restarted)?"
    ),
    re.compile(rf"Stopping container (?P<container>{_NAME})"),
    re.compile(
        r"(?:Marking for deletion|Cancel(?:l)ing deletion)(?: of)?"
        rf"(?: Pod (?:(?P<namespace>{_NAME})/)?(?P<pod>{_NAME}))?"
        rf"(?: from Node (?P<node>{_NAME}))?"
    ),
    re.compile(rf"Deleted pod: (?P<pod>{_NAME})"),
    re.compile(rf"delete Pod (?P<pod>{_NAME}) in StatefulSet (?P<set>{_NAME}) successful"),
    _BY_DESCHEDULER,
    re.compile(r"(?:Evicted pod|Disrupting Node): \w{1,60}"),
)
_NAMES = ("container", "pod", "namespace", "node", "resource", "volume", "set")


def with_names(text: str, rename: Callable[[str, str], str]) -> str:
    """Return the text with each name replaced; ``rename`` gets the kind of the name (``pod``, ``node``), and the name.

    Empty if part of the text is none of the known ones, which consist of fixed words, names and amounts.
    """
    parts, at = [], 0
    while at < len(text):
        match = max((each.match(text, at) for each in _PIECES), key=lambda each: each.end() if each else 0)
        if match is None or match.end() == at:
            return ""
        found = match.groupdict()
        for start, end, kind in sorted((*match.span(kind), kind) for kind in _NAMES if found.get(kind)):
            parts += [text[at:start], rename(kind, text[start:end])]
            at = end
        parts.append(text[at : match.end()])
        at = match.end()
    return "".join(parts)


def is_known_text(text: str) -> bool:
    """Whether all of the text are fixed words of Kubernetes, with names and amounts, so that it reveals no secrets."""
    return bool(with_names(text, lambda _kind, name: name))


def terminations_of(pod: Pod) -> Iterator[Termination]:
    """What the pod's own condition and status say about its end, the most specific first; nothing if it goes on."""
    status = pod.status
    condition = next((each for each in status.conditions if each.type == DISRUPTION and each.status == "True"), None)
    by_status = _by_status(pod)
    if condition is not None:
        yield _by_condition(condition, by_status)
    if by_status is not None:
        yield by_status
    for each in (*status.container_statuses, *status.init_container_statuses):
        yield from _by_container(each)


def _by_condition(condition: PodCondition, by_status: Termination | None) -> Termination:
    cause = _CONDITIONS.get(condition.reason)
    pressure = None
    if condition.reason == _TERMINATED_BY_KUBELET:
        pressure = pressure_of(condition.message)
        cause = _KUBELET_TEXTS.get(condition.message.strip()) or (by_status.cause if by_status is not None else None)
        if cause is None and pressure is not None:
            cause = _cause_of(pressure)
    return Termination(
        cause or TerminationCause.OTHER_DISRUPTION,
        EvidenceSource.CONDITION,
        condition.last_transition_time,
        condition.reason,
        condition.message.strip(),
        pressure=pressure,
    )


def _cause_of(pressure: Pressure) -> TerminationCause:
    return TerminationCause.LOCAL_STORAGE_LIMIT if pressure.limit else TerminationCause.NODE_PRESSURE


def _by_status(pod: Pod) -> Termination | None:
    """What the reason of a failed pod's status says; a kubelet writes it when it ends the pod."""
    status = pod.status
    if status.phase != "Failed" or not status.reason:
        return None
    pressure = pressure_of(status.message)
    if status.message.startswith(_REJECTED) or is_rejection(status.reason):
        cause: TerminationCause | None = TerminationCause.REJECTED
        pressure = None
    elif status.reason == "Evicted":
        # Without the message, both are possible; a node under pressure is far more common.
        cause = _cause_of(pressure) if pressure is not None else TerminationCause.NODE_PRESSURE
        if _NODE_CONDITION.match(status.message):
            cause = TerminationCause.REJECTED
    else:
        cause = {
            "Preempting": TerminationCause.CRITICAL_POD,
            "Terminated": TerminationCause.NODE_SHUTDOWN,
            "Shutdown": TerminationCause.NODE_SHUTDOWN,
            "DeadlineExceeded": TerminationCause.DEADLINE_EXCEEDED,
        }.get(status.reason)
    if cause is None:
        return None
    message = status.message.strip().removeprefix(_REJECTED)
    return Termination(cause, EvidenceSource.STATUS, None, status.reason, message, pressure=pressure)


def _by_container(status: ContainerStatus) -> Iterator[Termination]:
    """A kill for lack of memory, now or before the last restart."""
    for state in (status.state, status.last_state):
        ended = state.terminated
        if ended is not None and ended.reason == "OOMKilled":
            yield Termination(
                TerminationCause.OOM_KILLED,
                EvidenceSource.CONTAINER,
                ended.finished_at,
                ended.reason,
                container=EndedContainer(status.name, ended.exit_code, status.restart_count),
            )
            return


def exits_of(pod: Pod) -> Iterator[Termination]:
    """The containers of a finished pod that ended by themselves, those that failed first."""
    statuses = [*pod.status.init_container_statuses, *pod.status.container_statuses]
    ended = [(each, each.state.terminated) for each in statuses if each.state.terminated is not None]
    for status, state in sorted(ended, key=lambda each: not (each[1] and each[1].exit_code)):
        assert state is not None
        yield Termination(
            TerminationCause.CONTAINERS_EXITED,
            EvidenceSource.CONTAINER,
            state.finished_at,
            state.reason,
            container=EndedContainer(status.name, state.exit_code, status.restart_count),
        )


def termination_in(event: Event) -> Termination | None:
    """What an event about a pod says about its end, or ``None``; the scheduler's are read elsewhere."""
    text, reporter = event.text.strip(), event.reporter
    found = _cause_in(event, text, reporter)
    if found is None:
        return None
    cause, client, detail = found
    container = None
    if probe := _PROBE.fullmatch(text):
        container = EndedContainer(probe["container"], probe=probe["probe"])
    return Termination(
        cause,
        EvidenceSource.EVENT,
        event.last_time,
        event.reason,
        text,
        reporter,
        client,
        detail,
        pressure_of(text) if cause is not TerminationCause.REJECTED else None,
        container,
    )


def _cause_in(event: Event, text: str, reporter: str) -> tuple[TerminationCause, str, str] | None:
    """The cause, the client and its reason."""
    reason = event.reason
    if _BY_DESCHEDULER.fullmatch(text):
        strategy = "" if reason in ("Descheduled", "NotSet") else reason
        return TerminationCause.EVICTION_API, DESCHEDULER, strategy
    if reason == "Evicted":
        if reporter == "karpenter" or (match := _BY_KARPENTER.fullmatch(text)):
            match = _BY_KARPENTER.fullmatch(text)
            return TerminationCause.EVICTION_API, KARPENTER, match["detail"] if match else ""
        if _NODE_CONDITION.match(text):
            return TerminationCause.REJECTED, "", ""
        pressure = pressure_of(text)
        is_of_kubelet = pressure is not None or reporter in ("", "kubelet")
        cause = _cause_of(pressure) if pressure is not None else TerminationCause.NODE_PRESSURE
        return (cause, "", "") if is_of_kubelet else (TerminationCause.EVICTION_API, reporter, "")
    if reason == KILLING:
        return (TerminationCause.FAILED_PROBE, "", "") if _PROBE.fullmatch(text) else None
    if reason in ("TaintManagerEviction", "DeviceTaintManagerEviction"):
        is_device = reason.startswith("Device")
        taint = TerminationCause.DEVICE_TAINT if is_device else TerminationCause.NO_EXECUTE_TAINT
        return (taint, "", "") if not text or _MARKED.fullmatch(text) else None
    if is_rejection(reason):
        return (TerminationCause.REJECTED, "", "") if reporter in ("", "kubelet") else None
    simple = {
        "Preempting": (TerminationCause.CRITICAL_POD, "", ""),
        "NodeControllerEviction": (TerminationCause.NO_EXECUTE_TAINT, "", ""),
        "Disrupted": (TerminationCause.DELETED_BY_CLIENT, KARPENTER, ""),
        "EvictedByVPA": (TerminationCause.EVICTION_API, VPA, ""),
        "ScaleDown": (TerminationCause.EVICTION_API, CLUSTER_AUTOSCALER, ""),
    }
    return simple.get(reason)


def is_canceled(event: Event) -> bool:
    """Whether the event takes an announced eviction back."""
    return event.reason in ("TaintManagerEviction", "DeviceTaintManagerEviction") and event.text.startswith("Cancel")


def pod_deleted_by(event: Event) -> str:
    """The key of the pod that the event's subject, its owner, deleted, or an empty text."""
    if event.reason != SUCCESSFUL_DELETE or event.subject.kind not in _OWNER_KINDS:
        return ""
    match = _DELETED_BY_OWNER.fullmatch(event.text.strip())
    return f"{event.subject.namespace}/{match['pod'] or match['of_set']}" if match else ""


def is_about_end(event: Event) -> bool:
    """Whether the event is about the end of a pod, of any kind."""
    return event.reason == PREEMPTED or termination_in(event) is not None or bool(pod_deleted_by(event))
