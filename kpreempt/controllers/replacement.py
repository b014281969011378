"""The pod that a controller makes in the place of one that is gone, and when it does.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/controller_utils.go`` (``GetPodFromTemplate``),
``pkg/controller/statefulset/stateful_set_utils.go``, ``pkg/controller/daemon/util/daemonset_util.go``
(``ReplaceDaemonSetPodNodeNameNodeAffinity``) and ``pkg/controller/job/indexed_job_utils.go``. The template is read off
the pod that was: what the API server, the scheduler and the kubelet put on it is taken off again.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum

import msgspec

from kpreempt.controllers.actions import COMPLETION_INDEX_LABEL, JOB_FINALIZER, USUAL, ControllerRules, tied_node
from kpreempt.model.affinity import tied_to
from kpreempt.model.meta import OwnerReference, controller_of
from kpreempt.model.pod import Pod, PodMeta, PodStatus

# What binding copies from the node to its pods (admission plugin PodTopologyLabels).
NODE_LABELS = frozenset({"topology.kubernetes.io/zone", "topology.kubernetes.io/region"})
_LONGEST_STEM = 58
# How long the pods of a node that is gone stay: ``quarantineTime`` of ``pkg/controller/podgc`` in v1.36.3, which looks
# again up to 20 seconds later. That their containers end with the node at once is the worse of what may happen.
ORPHANED_SECONDS = 40.0
# Doublings of the first backoff of a Job after which it is the longest for sure.
MOST_DOUBLINGS = 10


class Moment(Enum):
    """When the next pod is made."""

    AT_ONCE = "as soon as the old one is being deleted"
    AFTER_BACKOFF = "a backoff after the last failure, as which its deletion counts"
    ONCE_GONE = "once the old one is gone"


# The controllers that make pods again, by the group and kind of what owns the pod. ReplicaSets count active pods only;
# StatefulSets and DaemonSets have one pod per name or node.
_MOMENTS = {
    ("apps", "ReplicaSet"): Moment.AT_ONCE,
    ("", "ReplicationController"): Moment.AT_ONCE,
    ("batch", "Job"): Moment.AFTER_BACKOFF,
    ("apps", "StatefulSet"): Moment.ONCE_GONE,
    ("apps", "DaemonSet"): Moment.ONCE_GONE,
}


def moment_of(pod: Pod) -> Moment | None:
    """When a controller of Kubernetes makes another pod in its place, or ``None`` where none would."""
    owner = controller_of(pod.metadata)
    return _MOMENTS.get((owner.api_version.rpartition("/")[0], owner.kind)) if owner is not None else None


def is_replaced(pod: Pod) -> bool:
    """Whether a controller of Kubernetes would make another pod in its place."""
    return moment_of(pod) is not None


def replacement_of(
    pod: Pod,
    *,
    suffix: str,
    uid: str,
    now: datetime,
    node_name: str = "",
    rules: ControllerRules = USUAL,
) -> Pod | None:
    """The pod that takes the place of ``pod``, fresh and pending, or ``None`` where no controller makes one.

    ``suffix`` ends its name, where the API server would make one up; the pod of a StatefulSet has the name again. A
    DaemonSet's is tied to ``node_name``, or else to the node of the one before. Labels, priority and all that the
    template says stay; ``rules`` are those of the version in which the pod was bound.
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
        # A Job takes it off when it has counted the pod.
        finalizers = [*finalizers, JOB_FINALIZER]
    # Those of the template, as far as it can be told: what a pod costs is usually noted on the pod alone.
    annotations = old.annotations and old.annotations.changed(nominated_node_name="", deletion_cost="")
    without = NODE_LABELS if rules.pod_topology_labels_admission else frozenset()
    name = old.name
    if owner.kind != "StatefulSet":
        index = pod.metadata.labels.get(COMPLETION_INDEX_LABEL) if owner.kind == "Job" else None
        tail = "-" if index is None else f"-{index}-"
        # An index stays whole when the name is cut; a dash alone does not.
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
    """Whether the pod is there for its node, and is not missed where that is gone: of a DaemonSet, or static."""
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind in ("DaemonSet", "Node")
