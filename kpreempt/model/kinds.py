"""The kinds of objects that a snapshot keeps, their API groups, and their records.

A kind counts only in its own group: a custom resource named ``Job`` is something else.
"""

from __future__ import annotations

import msgspec

from kpreempt.model.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kpreempt.model.event import RECORDED_REASONS, Event
from kpreempt.model.node import KARPENTER_GROUP, STATUS_ANNOTATION, STATUS_NAME, ConfigMap, Node, NodeClaim, NodePool
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PriorityClass
from kpreempt.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kpreempt.model.volcano import SCHEDULING_GROUP, PodGroup, Queue
from kpreempt.model.workloads import (
    DaemonSet,
    Deployment,
    Job,
    LimitRange,
    Namespace,
    ReplicaSet,
    ReplicationController,
    ResourceQuota,
    RuntimeClass,
    Service,
    StatefulSet,
)


class Kind(msgspec.Struct, frozen=True):
    """A kind that is kept: its list in ``ClusterSnapshot``, its record, and its API.

    With ``reasons``, only objects with one of these as ``reason`` are kept. If ``version`` is set, only that version of
    the group counts; otherwise all versions do, and the kind is listed as ``v1``. With ``annotation``, only objects
    that have it are kept; in a live cluster, only those of the ``usual_name`` are listed.
    """

    name: str
    field: str
    record: type[msgspec.Struct]
    groups: tuple[str, ...] = ("",)
    is_namespaced: bool = True
    version: str = ""
    reasons: frozenset[str] = frozenset()
    annotation: str = ""
    usual_name: str = ""


_WORKLOADS = ("apps", "extensions")
_STORAGE = ("storage.k8s.io",)
_DEVICES = ("resource.k8s.io",)
_VOLCANO = (SCHEDULING_GROUP,)

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("Node", "nodes", Node, is_namespaced=False),
        Kind("Pod", "pods", Pod),
        Kind("PodDisruptionBudget", "pod_disruption_budgets", PodDisruptionBudget, ("policy",)),
        Kind("PriorityClass", "priority_classes", PriorityClass, ("scheduling.k8s.io",), is_namespaced=False),
        Kind("Namespace", "namespaces", Namespace, is_namespaced=False),
        Kind("PersistentVolumeClaim", "persistent_volume_claims", PersistentVolumeClaim),
        Kind("PersistentVolume", "persistent_volumes", PersistentVolume, is_namespaced=False),
        Kind("StorageClass", "storage_classes", StorageClass, _STORAGE, is_namespaced=False),
        Kind("CSINode", "csi_nodes", CSINode, _STORAGE, is_namespaced=False),
        Kind("CSIDriver", "csi_drivers", CSIDriver, _STORAGE, is_namespaced=False),
        Kind("CSIStorageCapacity", "csi_storage_capacities", CSIStorageCapacity, _STORAGE),
        Kind("VolumeAttachment", "volume_attachments", VolumeAttachment, _STORAGE, is_namespaced=False),
        Kind("RuntimeClass", "runtime_classes", RuntimeClass, ("node.k8s.io",), is_namespaced=False),
        Kind("LimitRange", "limit_ranges", LimitRange),
        Kind("ResourceQuota", "resource_quotas", ResourceQuota),
        Kind("Service", "services", Service),
        Kind("ReplicationController", "replication_controllers", ReplicationController),
        Kind("ReplicaSet", "replica_sets", ReplicaSet, _WORKLOADS),
        Kind("StatefulSet", "stateful_sets", StatefulSet, ("apps",)),
        Kind("Deployment", "deployments", Deployment, _WORKLOADS),
        Kind("DaemonSet", "daemon_sets", DaemonSet, _WORKLOADS),
        Kind("Job", "jobs", Job, ("batch",)),
        Kind("ResourceClaim", "resource_claims", ResourceClaim, _DEVICES),
        Kind("ResourceClaimTemplate", "resource_claim_templates", ResourceClaimTemplate, _DEVICES),
        Kind("ResourceSlice", "resource_slices", ResourceSlice, _DEVICES, is_namespaced=False),
        Kind("Event", "events", Event, ("", "events.k8s.io"), reasons=RECORDED_REASONS),
        Kind("DeviceClass", "device_classes", DeviceClass, _DEVICES, is_namespaced=False),
        Kind("DeviceTaintRule", "device_taint_rules", DeviceTaintRule, _DEVICES, is_namespaced=False),
        Kind("PodGroup", "pod_groups", PodGroup, _VOLCANO, version="v1beta1"),
        Kind("Queue", "queues", Queue, _VOLCANO, is_namespaced=False, version="v1beta1"),
        Kind("NodePool", "node_pools", NodePool, (KARPENTER_GROUP,), is_namespaced=False),
        Kind("NodeClaim", "node_claims", NodeClaim, (KARPENTER_GROUP,), is_namespaced=False),
        Kind("ConfigMap", "config_maps", ConfigMap, annotation=STATUS_ANNOTATION, usual_name=STATUS_NAME),
    )
}
# Kinds that no scheduler reads, only autoscalers.
AUTOSCALER_KINDS = ("NodePool", "NodeClaim", "ConfigMap")
