"""Minimizes records for a dump: only what a scheduler, admission or a request about the cluster reads is kept.

The records have little more than that. The parts removed here may contain anything, including secrets: free text in
conditions, and annotations of other programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kpreempt.model.creation_failures import without_quotations
from kpreempt.model.devices import EXTENDED_RESOURCE_CLAIM, ResourceClaim
from kpreempt.model.event import FAILED_CREATION, KUBELET_REASONS, PREEMPTED_TEXT, Event, autoscaler_of
from kpreempt.model.meta import AnnotatedMeta, replace_in
from kpreempt.model.node import STATUS_ANNOTATION, ConfigMap, Node, NodeCondition
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.model.storage import (
    BETA_STORAGE_CLASS_ANNOTATION,
    BIND_COMPLETED_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kpreempt.model.terminations import DISRUPTION, is_known_text
from kpreempt.model.volcano import (
    HIERARCHY,
    HIERARCHY_WEIGHTS,
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    OFFLINE_JOB_EVICTING,
    OLD_SLA_WAITING_TIME,
    OVERSUBSCRIPTION_CPU,
    OVERSUBSCRIPTION_MEMORY,
    PREEMPTABLE,
    QUEUE_NAME,
    REVOCABLE_ZONE,
    SLA_WAITING_TIME,
    PodGroup,
    Queue,
)
from kpreempt.model.workloads import Deployment, Job, Namespace, ReplicaSet, ReplicationController, StatefulSet
from kpreempt.snapshot.decode import Record

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")

_OF_POD_GROUPS = (
    PREEMPTABLE,
    REVOCABLE_ZONE,
    JDB_MIN_AVAILABLE,
    JDB_MAX_UNAVAILABLE,
    SLA_WAITING_TIME,
    OLD_SLA_WAITING_TIME,
)

# The annotations that are read, by kind; schedulers/kube/framework/volumes.py and admission/claims.py read them, and
# Volcano's scheduler reads those of nodes, pod groups and queues.
ANNOTATIONS: dict[type[msgspec.Struct], frozenset[str]] = {
    Node: frozenset((OVERSUBSCRIPTION_CPU, OVERSUBSCRIPTION_MEMORY, OFFLINE_JOB_EVICTING)),
    Namespace: frozenset((QUEUE_NAME,)),
    PodGroup: frozenset(_OF_POD_GROUPS),
    Queue: frozenset((HIERARCHY, HIERARCHY_WEIGHTS)),
    PersistentVolumeClaim: frozenset(
        (BETA_STORAGE_CLASS_ANNOTATION, SELECTED_NODE_ANNOTATION, BIND_COMPLETED_ANNOTATION)
    ),
    PersistentVolume: frozenset((BETA_STORAGE_CLASS_ANNOTATION,)),
    StorageClass: frozenset(_DEFAULT_CLASS),
    CSINode: frozenset((MIGRATED_PLUGINS,)),
    ConfigMap: frozenset((STATUS_ANNOTATION,)),
    ResourceClaim: frozenset((EXTENDED_RESOURCE_CLAIM,)),
}
# Only its presence matters.
_PRESENCE = "yes"
# The only condition whose message is the scheduler's own: why the pod is still pending.
_SCHEDULERS_CONDITION = "PodScheduled"


def minimized(record: Record) -> Record:
    """Return the record without what nothing reads, or the same record if there is nothing to remove."""
    trim = _TRIMMERS.get(type(record))
    return trim(record) if trim else record


def _trim_pod(pod: Pod) -> Pod:
    annotations = pod.metadata.annotations
    if annotations is not None and annotations.config_mirror:
        # Only its presence matters; the value is the static pod's hash.
        metadata = msgspec.structs.replace(pod.metadata, annotations=annotations.changed(config_mirror=""))
        pod = msgspec.structs.replace(pod, metadata=metadata)
    status = pod.status
    if status.message and not is_known_text(status.message):
        status = msgspec.structs.replace(status, message="")
    if any(map(_has_unknown_message, status.conditions)):
        trimmed = [
            msgspec.structs.replace(each, message="") if _has_unknown_message(each) else each
            for each in status.conditions
        ]
        status = msgspec.structs.replace(status, conditions=trimmed)
    return pod if status is pod.status else msgspec.structs.replace(pod, status=status)


def _has_unknown_message(condition: PodCondition) -> bool:
    if not condition.message or condition.type == _SCHEDULERS_CONDITION:
        return False
    return condition.type != DISRUPTION or not is_known_text(condition.message)


def _trim_annotations(record: Record) -> Record:
    meta: AnnotatedMeta = record.metadata
    if not meta.annotations:
        return record
    read = ANNOTATIONS[type(record)]
    remaining = {
        key: _PRESENCE if key == BIND_COMPLETED_ANNOTATION else value
        for key, value in meta.annotations.items()
        if key in read
    }
    if remaining == meta.annotations:
        return record
    return msgspec.structs.replace(record, metadata=msgspec.structs.replace(meta, annotations=remaining))


def _trim_node(node: Node) -> Node:
    """Keep the message and the time of a condition only if the node is not ready."""
    node = _trim_annotations(node)
    conditions = node.status.conditions
    if not any(map(_has_unread_text, conditions)):
        return node
    trimmed = [
        NodeCondition(each.type, each.status, each.reason) if _has_unread_text(each) else each for each in conditions
    ]
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=trimmed))


def _has_unread_text(condition: NodeCondition) -> bool:
    is_read = condition.type == "Ready" and condition.status != "True"
    return not is_read and bool(condition.message or condition.last_transition_time)


def _trim_event(event: Event) -> Event:
    """Keep reports of kubelets, autoscalers and controllers, and known texts about ends of pods."""
    if event.reason in KUBELET_REASONS or autoscaler_of(event) is not None:
        return event
    if event.reason in FAILED_CREATION:
        note, message = map(without_quotations, (event.note, event.message))
    else:
        note, message = (text if _is_read(text) else "" for text in (event.note, event.message))
    if (note, message) == (event.note, event.message):
        return event
    return msgspec.structs.replace(event, message=message, note=note)


def _is_read(text: str) -> bool:
    return PREEMPTED_TEXT.fullmatch(text.strip()) is not None or is_known_text(text)


def _trim_workload(workload: Record) -> Record:
    conditions = [
        msgspec.structs.replace(each, message=without_quotations(each.message) if each.explains_missing_pods else "")
        for each in workload.status.conditions
    ]
    if conditions == workload.status.conditions:
        return workload
    return replace_in(workload, "status", conditions=conditions)


_TRIMMERS: dict[type[msgspec.Struct], Callable[[Any], Any]] = {
    Pod: _trim_pod,
    Event: _trim_event,
    **dict.fromkeys((Deployment, ReplicaSet, ReplicationController, StatefulSet, Job), _trim_workload),
    **dict.fromkeys(ANNOTATIONS, _trim_annotations),
    Node: _trim_node,
}
