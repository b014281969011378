"""Read recorded scenarios and upstream's table tests, and convert their objects to records."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PriorityClass
from kpreempt.model.quantity import Quantity, quantity
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
    Namespace,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from kpreempt.schedulers.kube.versions import Behavior, behavior

T = TypeVar("T")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "conformance" / "kube-1.36"
UPSTREAM = FIXTURES / "upstream"
NOW = datetime(2026, 11, 21, tzinfo=UTC)

KINDS: dict[str, tuple[type, str]] = {
    "Node": (Node, "nodes"),
    "Pod": (Pod, "pods"),
    "PodDisruptionBudget": (PodDisruptionBudget, "pod_disruption_budgets"),
    "PriorityClass": (PriorityClass, "priority_classes"),
    "Namespace": (Namespace, "namespaces"),
    "PersistentVolumeClaim": (PersistentVolumeClaim, "persistent_volume_claims"),
    "PersistentVolume": (PersistentVolume, "persistent_volumes"),
    "StorageClass": (StorageClass, "storage_classes"),
    "CSINode": (CSINode, "csi_nodes"),
    "CSIDriver": (CSIDriver, "csi_drivers"),
    "CSIStorageCapacity": (CSIStorageCapacity, "csi_storage_capacities"),
    "VolumeAttachment": (VolumeAttachment, "volume_attachments"),
    "Service": (Service, "services"),
    "ReplicationController": (ReplicationController, "replication_controllers"),
    "ReplicaSet": (ReplicaSet, "replica_sets"),
    "StatefulSet": (StatefulSet, "stateful_sets"),
    "ResourceClaim": (ResourceClaim, "resource_claims"),
    "ResourceSlice": (ResourceSlice, "resource_slices"),
    "DeviceClass": (DeviceClass, "device_classes"),
    "DeviceTaintRule": (DeviceTaintRule, "device_taint_rules"),
}


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def without_nulls(value: Any) -> Any:
    """Go reads null as the zero value, like a missing field."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


def record(document: dict[str, Any], kind: type[T]) -> T:
    """Convert ``document`` to a record; unlike the snapshot reader, accept objects without a name."""
    return msgspec.convert(without_nulls(document), kind, dec_hook=_decode_quantity)


def pod_of(document: dict[str, Any]) -> Pod:
    """A pod."""
    return record(document, Pod)


def cluster_of(objects: list[dict[str, Any]]) -> ClusterSnapshot:
    """A cluster of the objects, in order."""
    lists: dict[str, list[Any]] = {}
    for document in objects:
        kind, field = KINDS[document["kind"]]
        lists.setdefault(field, []).append(record(document, kind))
    return ClusterSnapshot(has_scheduler_order=True, **lists)


def gates_of(settings: dict[str, bool] | None) -> Behavior:
    """Feature gates, with defaults for those that are not set; unknown ones are omitted."""
    return behavior(gates=settings)


def _decode_quantity(kind: type, value: Any) -> Any:
    if kind is Quantity:
        return quantity(str(value))
    raise NotImplementedError
