"""The kinds of object that a change can be about: where the cluster keeps them, and which of them have pods.

The same table as ``snapshot.kinds`` has; a test holds the two equal.
"""

from __future__ import annotations

import msgspec

from kpreempt.analysis.document_reader import Document


class ClusterKind(msgspec.Struct, frozen=True):
    """A kind that a snapshot holds: the field of ``ClusterSnapshot``, its groups, and whether it has a namespace."""

    name: str
    field: str
    groups: tuple[str, ...] = ("",)
    is_namespaced: bool = True


# Owners of pods, in the groups that Kubernetes' own controllers look at.
POD_OWNERS: dict[str, tuple[str, ...]] = {
    "Deployment": ("apps", "extensions"),
    "StatefulSet": ("apps",),
    "DaemonSet": ("apps", "extensions"),
    "ReplicaSet": ("apps", "extensions"),
    "ReplicationController": ("",),
    "Job": ("batch",),
    "CronJob": ("batch",),
}

_STORAGE = ("storage.k8s.io",)
_DEVICES = ("resource.k8s.io",)
_VOLCANO = ("scheduling.volcano.sh",)

CLUSTER_KINDS: dict[str, ClusterKind] = {
    kind.name: kind
    for kind in (
        ClusterKind("Node", "nodes", is_namespaced=False),
        ClusterKind("Pod", "pods"),
        ClusterKind("PodDisruptionBudget", "pod_disruption_budgets", ("policy",)),
        ClusterKind("PriorityClass", "priority_classes", ("scheduling.k8s.io",), is_namespaced=False),
        ClusterKind("Namespace", "namespaces", is_namespaced=False),
        ClusterKind("PersistentVolumeClaim", "persistent_volume_claims"),
        ClusterKind("PersistentVolume", "persistent_volumes", is_namespaced=False),
        ClusterKind("StorageClass", "storage_classes", _STORAGE, is_namespaced=False),
        ClusterKind("CSINode", "csi_nodes", _STORAGE, is_namespaced=False),
        ClusterKind("CSIDriver", "csi_drivers", _STORAGE, is_namespaced=False),
        ClusterKind("CSIStorageCapacity", "csi_storage_capacities", _STORAGE),
        ClusterKind("VolumeAttachment", "volume_attachments", _STORAGE, is_namespaced=False),
        ClusterKind("RuntimeClass", "runtime_classes", ("node.k8s.io",), is_namespaced=False),
        ClusterKind("LimitRange", "limit_ranges"),
        ClusterKind("ResourceQuota", "resource_quotas"),
        ClusterKind("Service", "services"),
        ClusterKind("ReplicationController", "replication_controllers", POD_OWNERS["ReplicationController"]),
        ClusterKind("ReplicaSet", "replica_sets", POD_OWNERS["ReplicaSet"]),
        ClusterKind("StatefulSet", "stateful_sets", POD_OWNERS["StatefulSet"]),
        ClusterKind("Deployment", "deployments", POD_OWNERS["Deployment"]),
        ClusterKind("DaemonSet", "daemon_sets", POD_OWNERS["DaemonSet"]),
        ClusterKind("Job", "jobs", POD_OWNERS["Job"]),
        ClusterKind("ResourceClaim", "resource_claims", _DEVICES),
        ClusterKind("ResourceSlice", "resource_slices", _DEVICES, is_namespaced=False),
        ClusterKind("Event", "events", ("", "events.k8s.io")),
        ClusterKind("DeviceClass", "device_classes", _DEVICES, is_namespaced=False),
        ClusterKind("PodGroup", "pod_groups", _VOLCANO),
        ClusterKind("Queue", "queues", _VOLCANO, is_namespaced=False),
    )
}

# Kinds beyond those that have no namespace; all others that are not known have one, as most custom resources do.
_OTHER_CLUSTER_WIDE = frozenset(
    {
        "APIService",
        "CertificateSigningRequest",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "FlowSchema",
        "IngressClass",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "PriorityLevelConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttributesClass",
    }
)


def plural_of(kind: str) -> str:
    """The kind in the plural, in lower case, as resources are called: ``priorityclasses``."""
    word = kind.lower()
    if word.endswith("s"):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def group_of(document: Document) -> str:
    """The API group of an object; the core group is an empty text."""
    api_version = document.get("apiVersion")
    return api_version.rpartition("/")[0] if isinstance(api_version, str) else ""


def is_pod_owner(document: Document) -> bool:
    """Whether the object is a workload of Kubernetes' own; without a version the kind decides alone."""
    groups = POD_OWNERS.get(str(document.get("kind")))
    return groups is not None and (not document.get("apiVersion") or group_of(document) in groups)


def cluster_kind_of(document: Document) -> ClusterKind | None:
    """The kind of the object where a snapshot holds such objects, or ``None``."""
    kind = CLUSTER_KINDS.get(str(document.get("kind")))
    if kind is None or (document.get("apiVersion") and group_of(document) not in kind.groups):
        return None
    return kind


def is_namespaced(document: Document) -> bool:
    """Whether objects of this kind are in namespaces."""
    kind = cluster_kind_of(document)
    return kind.is_namespaced if kind is not None else document.get("kind") not in _OTHER_CLUSTER_WIDE
