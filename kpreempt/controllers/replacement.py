"""The pod that a controller makes in the place of one that is gone.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/controller_utils.go`` (``GetPodFromTemplate``),
``pkg/controller/statefulset/stateful_set_utils.go``, ``pkg/controller/daemon/util/daemonset_util.go``
(``ReplaceDaemonSetPodNodeNameNodeAffinity``) and ``pkg/controller/job/indexed_job_utils.go``. The template is read off
the pod that was: what the API server, the scheduler and the kubelet put on it is taken off again.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from kpreempt.controllers.actions import USUAL, ControllerRules
from kpreempt.controllers.pods import COMPLETION_INDEX_LABEL, JOB_FINALIZER, tied_node
from kpreempt.model.affinity import tied_to
from kpreempt.model.meta import OwnerReference, controller_of
from kpreempt.model.pod import Pod, PodMeta, PodStatus

# The controllers that make pods anew, by the group and kind of what owns the pod.
REPLACING_OWNERS = frozenset(
    {
        ("apps", "ReplicaSet"),
        ("", "ReplicationController"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("batch", "Job"),
    }
)
# What binding copies from the node to its pods (admission plugin PodTopologyLabels).
NODE_LABELS = frozenset({"topology.kubernetes.io/zone", "topology.kubernetes.io/region"})
_LONGEST_STEM = 58


def is_replaced(pod: Pod) -> bool:
    """Whether a controller of Kubernetes would make another pod in its place."""
    owner = controller_of(pod.metadata)
    return owner is not None and (owner.api_version.rpartition("/")[0], owner.kind) in REPLACING_OWNERS


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
