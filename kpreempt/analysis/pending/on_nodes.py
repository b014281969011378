"""Why pods that have a node are still pending: what their kubelet, their node, their claims and events say.

The scheduler is done with these pods, or never saw them, because ``spec.nodeName`` was set when they were created.
Follows ``pkg/kubelet`` (``kubelet_pods.go``, ``images``, ``kuberuntime``, ``volumemanager``) of v1.36.3; the status is
that of ``pkg/printers/internalversion/printers.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec

from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.model.event import KUBELET_REASONS, Event
from kpreempt.model.meta import controller_name, later
from kpreempt.model.node import Node
from kpreempt.model.pod import Container, ContainerState, ContainerStatus, Pod
from kpreempt.model.storage import SELECTED_NODE_ANNOTATION, PersistentVolumeClaim
from kpreempt.verdict.waiting import ClaimState, OnNodeCause, PendingOnNode

_PENDING = "Pending"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# The reasons of a container that waits for others, or whose creation has just begun.
_UNSPECIFIC = ("", "PodInitializing", "ContainerCreating")
_CRASH_LOOP = "CrashLoopBackOff"
_IMAGE_REASONS = (
    *("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"),
    *("RegistryUnavailable", "SignatureValidationFailed", "ImageVolumeMountFailed"),
)
# A container in one of these states shows only that its image is not pulled; the event has the error.
_BACK_OFF = "ImagePullBackOff"
_FAILED = "Failed"
_CAUSES_OF_EVENTS: Mapping[str, OnNodeCause] = {
    "FailedAttachVolume": OnNodeCause.VOLUME,
    "FailedMapVolume": OnNodeCause.VOLUME,
    "FailedMount": OnNodeCause.VOLUME,
    "FailedCreatePodSandBox": OnNodeCause.SANDBOX,
    "FailedPrepareDynamicResources": OnNodeCause.SANDBOX,
    "NetworkNotReady": OnNodeCause.SANDBOX,
}

# The fields of a ``PendingOnNode``.
_Details = dict[str, Any]


def is_pending_on_node(pod: Pod) -> bool:
    """Whether the pod has a node and its phase is Pending."""
    return bool(pod.spec.node_name) and pod.status.phase == _PENDING


class NodeReports:
    """What a cluster says about pods that have a node."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._cluster = cluster

    def pending(self) -> list[Pod]:
        """The pods that have a node and are pending, in the order of the snapshot."""
        return [pod for pod in self._cluster.pods if is_pending_on_node(pod)]

    def why(self, pod: Pod) -> PendingOnNode:
        """What keeps a pod that has a node from running."""
        found = PendingOnNode(
            pod=pod.key,
            node=pod.spec.node_name,
            owner=controller_name(pod.metadata),
            created=pod.metadata.creation_timestamp,
            status=kubectl_status(pod),
            cause=OnNodeCause.STARTING,
            since=pod.start,
            has_events=self._has_events,
        )
        for find in (_terminating, self._without_node, self._without_claim, self._in_container, self._reported):
            if details := find(pod):
                return msgspec.structs.replace(found, **details)
        if pod.status.start_time is None and not pod.status.container_statuses:
            return msgspec.structs.replace(found, cause=OnNodeCause.NOT_ACCEPTED, since=found.created)
        return found

    @cached_property
    def _has_events(self) -> bool:
        return bool(self._cluster.events) or bool(self._cluster.skipped.get("Event"))

    @cached_property
    def _nodes(self) -> Mapping[str, Node]:
        return {node.name: node for node in self._cluster.nodes}

    @cached_property
    def _claims(self) -> Mapping[str, PersistentVolumeClaim]:
        return {each.key: each for each in self._cluster.persistent_volume_claims}

    @cached_property
    def _delaying_classes(self) -> frozenset[str]:
        """The storage classes whose claims are bound when the scheduler has picked a node for a pod."""
        classes = self._cluster.storage_classes
        return frozenset(each.metadata.name for each in classes if each.volume_binding_mode == "WaitForFirstConsumer")

    @cached_property
    def _events(self) -> Mapping[str, list[Event]]:
        """The reports of kubelets by the UID of the pod, or its key."""
        found: dict[str, list[Event]] = {}
        for event in self._cluster.events:
            if event.reason in KUBELET_REASONS and event.subject.kind in ("", "Pod"):
                found.setdefault(event.subject.uid or event.subject.key, []).append(event)
        return found

    def _reports_on(self, pod: Pod) -> list[Event]:
        """The reports on a pod, the last one first."""
        keys = dict.fromkeys(filter(None, (pod.metadata.uid, pod.key)))
        events = [event for key in keys for event in self._events.get(key, ())]
        return sorted(events, key=lambda event: event.last_time or _LONG_AGO, reverse=True)

    def _without_node(self, pod: Pod) -> _Details:
        """The details of a pod whose node is missing or not ready. A node is missing only if all nodes were read."""
        node = self._nodes.get(pod.spec.node_name)
        if node is None:
            return {"cause": OnNodeCause.NODE_MISSING} if "Node" in self._cluster.listed else {}
        ready = node.not_ready
        if ready is None:
            return {}
        return {
            "cause": OnNodeCause.NODE_NOT_READY,
            "since": ready.last_transition_time,
            "reason": ready.reason,
            "message": ready.message,
        }

    def _without_claim(self, pod: Pod) -> _Details:
        """The details of the pod's first claim that is missing or not bound, if claims were read."""
        if state_of(self._cluster, "PersistentVolumeClaim") is not KindState.READ:
            return {}
        for key in _claims_of(pod):
            claim = self._claims.get(key)
            state = self._state_of(claim)
            if state is None:
                continue
            volumes = (
                each for each in self._reports_on(pod) if _CAUSES_OF_EVENTS.get(each.reason) is OnNodeCause.VOLUME
            )
            return {
                **_of_event(next(volumes, None)),
                "cause": OnNodeCause.UNBOUND_CLAIM,
                "claim": key,
                "claim_state": state,
                "storage_class": (claim.spec.storage_class_name if claim is not None else "") or "",
            }
        return {}

    def _state_of(self, claim: PersistentVolumeClaim | None) -> ClaimState | None:
        """What is wrong with a claim; ``None`` if it is bound."""
        if claim is None:
            return ClaimState.MISSING
        if claim.status.phase == "Lost":
            return ClaimState.LOST
        if claim.spec.volume_name and claim.status.phase in ("", "Bound"):
            return None
        waits = claim.spec.storage_class_name in self._delaying_classes and not claim.spec.volume_name
        is_selected = bool(claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION))
        return ClaimState.NO_NODE_SELECTED if waits and not is_selected else ClaimState.UNBOUND

    def _in_container(self, pod: Pod) -> _Details:
        """The details of the container that keeps the pod pending, if a specific reason is known."""
        details = _in_container(pod)
        if details.get("reason") == _BACK_OFF and "ErrImagePull" not in details["message"]:
            # Kubelets before 1.32 do not repeat the error.
            error = next((each for each in self._reports_on(pod) if each.reason == _FAILED and each.text), None)
            if error is not None:
                details |= {"message": error.text, "reported": error.last_time}
        return details

    def _reported(self, pod: Pod) -> _Details:
        """The details of the last report on the pod's volumes, sandbox or network."""
        event = next((each for each in self._reports_on(pod) if each.reason in _CAUSES_OF_EVENTS), None)
        return {**_of_event(event), "cause": _CAUSES_OF_EVENTS[event.reason]} if event is not None else {}


def _of_event(event: Event | None) -> _Details:
    return {"reason": event.reason, "message": event.text, "reported": event.last_time} if event is not None else {}


def _terminating(pod: Pod) -> _Details:
    until = pod.metadata.deletion_timestamp
    if until is None:
        return {}
    since = later(until, -(pod.metadata.deletion_grace_period_seconds or 0))
    return {"cause": OnNodeCause.TERMINATING, "since": since, "finalizers": pod.metadata.finalizers}


def _claims_of(pod: Pod) -> Iterator[str]:
    """The keys of the pod's volume claims, in the order of its volumes."""
    meta = pod.metadata
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield f"{meta.namespace}/{volume.persistent_volume_claim.claim_name}"
        elif volume.ephemeral is not None:
            yield f"{meta.namespace}/{meta.name}-{volume.name}"


def _in_container(pod: Pod) -> _Details:
    """The details of the first container that keeps the pod pending; empty if none has a specific reason."""
    containers = {each.name: each for each in (*pod.spec.init_containers, *pod.spec.containers)}
    for status in pod.status.init_container_statuses:
        if _is_past(status, containers.get(status.name)):
            continue
        details = _of_container(status, containers.get(status.name))
        state = status.state
        if not details and state.running is not None:
            details = {"cause": OnNodeCause.INIT_CONTAINER, "since": state.running.started_at}
        elif not details and state.terminated is not None:
            details = {"cause": OnNodeCause.FAILING_CONTAINER, **_ended(state)}
        return {**details, "container": status.name, "is_init_container": True} if details else {}
    found = [(status, _of_container(status, containers.get(status.name))) for status in pod.status.container_statuses]
    # A container that was started before does not keep the pod pending.
    found.sort(key=lambda each: each[1].get("reason") == _CRASH_LOOP)
    return next(({**details, "container": status.name} for status, details in found if details), {})


def _is_past(status: ContainerStatus, container: Container | None) -> bool:
    """Whether an init container has completed, or is a sidecar that runs."""
    terminated = status.state.terminated
    if terminated is not None:
        return terminated.exit_code == 0
    is_sidecar = container is not None and container.restart_policy == "Always"
    return is_sidecar and status.state.running is not None


def _of_container(status: ContainerStatus, container: Container | None) -> _Details:
    """The details of a container that waits for a specific reason."""
    waiting = status.state.waiting
    if waiting is None or waiting.reason in _UNSPECIFIC:
        return {}
    details: _Details = {
        "reason": waiting.reason,
        "message": waiting.message,
        "image": container.image if container is not None else "",
        "restarts": status.restart_count,
    }
    if waiting.reason == _CRASH_LOOP:
        return {**details, "cause": OnNodeCause.FAILING_CONTAINER, **_ended(status.last_state)}
    is_image = waiting.reason in _IMAGE_REASONS
    return {**details, "cause": OnNodeCause.IMAGE if is_image else OnNodeCause.CONTAINER}


def _ended(state: ContainerState) -> _Details:
    """How a container ended last."""
    ended = state.terminated
    if ended is None:
        return {}
    message = {"message": ended.message} if ended.message else {}
    return {"exit_code": ended.exit_code, "since": ended.finished_at, **message}


def kubectl_status(pod: Pod) -> str:
    """The pod's status in the output of ``kubectl get pods``."""
    if pod.metadata.deletion_timestamp is not None and not pod.is_terminal:
        return "Terminating"
    init_containers = {each.name: each for each in pod.spec.init_containers}
    for index, status in enumerate(pod.status.init_container_statuses):
        if _is_past(status, init_containers.get(status.name)):
            continue
        reason = _reason_of(status.state)
        is_specific = reason not in ("", "PodInitializing")
        return f"Init:{reason}" if is_specific else f"Init:{index}/{len(init_containers)}"
    reasons = (_reason_of(status.state) for status in pod.status.container_statuses)
    return next(filter(None, reasons), pod.status.phase)


def _reason_of(state: ContainerState) -> str:
    """Why a container waits, or how it ended; empty if it runs."""
    if state.waiting is not None:
        return state.waiting.reason
    ended = state.terminated
    if ended is None:
        return ""
    return ended.reason or (f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exit_code}")
