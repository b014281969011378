"""The pod that a controller creates to replace another, and when it does.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/controller_utils.go`` (``GetPodFromTemplate``),
``pkg/controller/statefulset/stateful_set_utils.go``, ``pkg/controller/daemon/util/daemonset_util.go``
(``ReplaceDaemonSetPodNodeNameNodeAffinity``) and ``pkg/controller/job/indexed_job_utils.go``. The template is derived
from the previous pod: what the API server, the scheduler and the kubelet added is removed.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum

import msgspec

from kpreempt.controllers.actions import (
    COMPLETION_INDEX_LABEL,
    DEFAULT_RULES,
    JOB_FINALIZER,
    ControllerRules,
    tied_node,
)
from kpreempt.model.affinity import tied_to
from kpreempt.model.meta import OwnerReference, controller_of
from kpreempt.model.pod import Pod, PodMeta, PodStatus

# Labels that binding copies from the node to its pods (admission plugin PodTopologyLabels).
NODE_LABELS = frozenset({"topology.kubernetes.io/zone", "topology.kubernetes.io/region"})
_LONGEST_STEM = 58
# How long pods of a deleted node stay: ``quarantineTime`` of ``pkg/controller/podgc`` in v1.36.3, which checks up to 20
# seconds later. Assuming that their containers end at once with the node is the worst case.
ORPHANED_SECONDS = 40.0
# Doublings of the first backoff of a Job that are certain to reach the maximum.
MAX_DOUBLINGS = 10


class ReplacementTiming(Enum):
    """When the replacement is created."""

    AT_ONCE = "as soon as the deletion of the old pod begins"
    AFTER_BACKOFF = "after the Job's backoff; the deletion counts as a failure"
    AFTER_DELETION = "once the old pod is gone"


# The controllers that recreate pods, by group and kind of the pod's owner. ReplicaSets count only active pods;
# StatefulSets and DaemonSets have one pod per name or node.
_TIMINGS = {
    ("apps", "ReplicaSet"): ReplacementTiming.AT_ONCE,
    ("", "ReplicationController"): ReplacementTiming.AT_ONCE,
    ("batch", "Job"): ReplacementTiming.AFTER_BACKOFF,
    ("apps", "StatefulSet"): ReplacementTiming.AFTER_DELETION,
    ("apps", "DaemonSet"): ReplacementTiming.AFTER_DELETION,
}


def timing_of(pod: Pod) -> ReplacementTiming | None:
    """Return when a Kubernetes controller replaces the pod, or ``None`` if none does."""
    owner = controller_of(pod.metadata)
    return _TIMINGS.get((owner.api_version.rpartition("/")[0], owner.kind)) if owner is not None else None


def is_replaced(pod: Pod) -> bool:
    """Return whether a Kubernetes controller would replace the pod."""
    return timing_of(pod) is not None


def replacement_of(
    pod: Pod,
    *,
    suffix: str,
    uid: str,
    now: datetime,
    node_name: str = "",
    rules: ControllerRules = DEFAULT_RULES,
) -> Pod | None:
    """Return the pod that replaces ``pod``, new and pending, or ``None`` if no controller creates one.

    ``suffix`` ends its name where the API server would generate one; a StatefulSet's pod keeps its name. A DaemonSet's
    pod is tied to ``node_name``, by default the node of the previous pod. Labels, priority and other template fields
    stay; ``rules`` are those of the version in which the pod was bound.
    """
    owner = controller_of(pod.metadata)
    if owner is None or not is_replaced(pod):
        return None
    affinity = pod.spec.affinity
    if owner.kind == "DaemonSet":
        affinity = tied_to(affinity, node_name or pod.spec.node_name or tied_node(pod))
    return Pod(
        metadata=_fresh_metadata(pod, owner, suffix, uid, now, rules),
        spec=msgspec.structs.replace(pod.spec, node_name="", affinity=affinity),
        status=PodStatus(phase="Pending"),
    )


def _fresh_metadata(
    pod: Pod, owner: OwnerReference, suffix: str, uid: str, now: datetime, rules: ControllerRules
) -> PodMeta:
    old = pod.metadata
    finalizers = old.finalizers
    if owner.kind == "Job" and JOB_FINALIZER not in finalizers:
        # A Job removes it when it has counted the pod.
        finalizers = [*finalizers, JOB_FINALIZER]
    # The template's annotations, as far as known: the deletion cost is usually set on the pod alone.
    annotations = old.annotations and old.annotations.changed(nominated_node_name="", deletion_cost="")
    without = NODE_LABELS if rules.pod_topology_labels_admission else frozenset()
    name = old.name
    if owner.kind != "StatefulSet":
        index = pod.metadata.labels.get(COMPLETION_INDEX_LABEL) if owner.kind == "Job" else None
        tail = "-" if index is None else f"-{index}-"
        # An index is kept intact when the name is truncated; a dash alone is not.
        stem = f"{owner.name}{tail}" if index is None else f"{owner.name[: max(_LONGEST_STEM - len(tail), 0)]}{tail}"
        name = f"{stem[:_LONGEST_STEM]}{suffix}"
    return PodMeta(
        name=name,
        namespace=old.namespace,
        uid=uid,
        labels={key: value for key, value in old.labels.items() if key not in without},
        owner_references=old.owner_references,
        finalizers=finalizers,
        creation_timestamp=now,
        annotations=annotations,
    )


def is_of_node(pod: Pod) -> bool:
    """Return whether the pod belongs to its node and needs no replacement without it: DaemonSet and static pods."""
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind in ("DaemonSet", "Node")
