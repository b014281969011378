"""The whole cluster as a scheduler sees it at one moment."""

from __future__ import annotations

from datetime import datetime

import msgspec

from kpreempt.model.devices import DeviceClass, ResourceClaim, ResourceSlice
from kpreempt.model.event import Event
from kpreempt.model.node import Node
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
from kpreempt.model.workloads import (
    DaemonSet,
    Deployment,
    Job,
    LimitRange,
    Namespace,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    Service,
    StatefulSet,
)


class ClusterSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Every object that decides about scheduling, each kind in the order in which the input had it.

    Order matters: pods of equal rank keep it. ``version`` is the server's (``v1.36.3``) or empty; ``taken_at`` is when
    the dump was made, if it says so. Of events there are those about preemption and failed scheduling. ``skipped``
    counts the objects of kinds that no scheduler reads, by kind.
    """

    nodes: list[Node] = []
    pods: list[Pod] = []
    pod_disruption_budgets: list[PodDisruptionBudget] = []
    priority_classes: list[PriorityClass] = []
    namespaces: list[Namespace] = []
    persistent_volume_claims: list[PersistentVolumeClaim] = []
    persistent_volumes: list[PersistentVolume] = []
    storage_classes: list[StorageClass] = []
    csi_nodes: list[CSINode] = []
    csi_drivers: list[CSIDriver] = []
    csi_storage_capacities: list[CSIStorageCapacity] = []
    volume_attachments: list[VolumeAttachment] = []
    runtime_classes: list[RuntimeClass] = []
    limit_ranges: list[LimitRange] = []
    services: list[Service] = []
    replication_controllers: list[ReplicationController] = []
    replica_sets: list[ReplicaSet] = []
    stateful_sets: list[StatefulSet] = []
    deployments: list[Deployment] = []
    daemon_sets: list[DaemonSet] = []
    jobs: list[Job] = []
    resource_claims: list[ResourceClaim] = []
    resource_slices: list[ResourceSlice] = []
    device_classes: list[DeviceClass] = []
    events: list[Event] = []
    version: str = ""
    taken_at: datetime | None = None
    skipped: dict[str, int] = {}
