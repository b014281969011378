"""The whole cluster as a scheduler sees it at one moment, and what is known of each kind of object.

A kind was read, the input has none, or it could not be read. A live cluster and kpreempt's own snapshots say which
kinds were read, so that an empty list is a fact. A dump of kubectl's doesn't: a kind it has no object of was not
dumped, or there is none. ``ClusterSnapshot.unread`` has every kind that is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec

from kpreempt.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kpreempt.model.event import Event
from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS
from kpreempt.model.node import Node, NodePool
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
from kpreempt.model.volcano import PodGroup, Queue
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

# When redacted dumps say that they were taken: their times count back from then.
REDACTED_AT = datetime(2000, 1, 1, tzinfo=UTC)


class PodOrder(msgspec.Struct, frozen=True):
    """The pods of a node as the scheduler's cache has them, in the order of ``NodeInfo.Pods``, as far as it is known.

    ``places`` are keys of pods (``namespace/name``), empty where it is not known which of the ``unplaced`` is there.
    """

    places: tuple[str, ...]
    unplaced: frozenset[str] = frozenset()


class ClusterSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Every object that decides about scheduling, each kind in the order in which the input had it.

    Order matters: between equals it decides. ``has_scheduler_order`` says that pods stand in the order in which the
    scheduler's cache has those of each node; a dump's or an API server's list does not show that. ``version`` is the
    server's (``v1.36.3``) or empty; ``taken_at`` is when the dump was made, if it says so. Of events there are those
    about preemption and failed scheduling. ``pod_groups`` and ``queues`` are Volcano's, ``node_pools`` Karpenter's.
    ``skipped`` counts the objects of kinds that no scheduler reads, by kind. ``unread`` are the kinds of which the
    cluster may have objects that could not be read; of all others the lists are all there is in the input. ``listed``
    are those kinds that no scheduler reads of which the input has all that there are.

    ``pod_orders`` has what is known of the order of each node's pods, by the node's name. It is as it was seen, also
    where a what-if has changed the pods; who reads it compares it with the pods that are there.

    ``documents`` are the objects that plugins want whole (``ExtraFields``), as plain data, by ``ObjectKind.key``; a
    kind that is wanted has its key also where there are none. They are in the order of the input, each object once,
    with its ``apiVersion``, ``kind`` and, where its kind has one, ``metadata.namespace``. They are as the input has
    them, also where a what-if has changed a record. They are shared and must be left as they are, may hold anything,
    and belong into no output.
    """

    nodes: list[Node] = NO_ITEMS
    pods: list[Pod] = NO_ITEMS
    pod_disruption_budgets: list[PodDisruptionBudget] = NO_ITEMS
    priority_classes: list[PriorityClass] = NO_ITEMS
    namespaces: list[Namespace] = NO_ITEMS
    persistent_volume_claims: list[PersistentVolumeClaim] = NO_ITEMS
    persistent_volumes: list[PersistentVolume] = NO_ITEMS
    storage_classes: list[StorageClass] = NO_ITEMS
    csi_nodes: list[CSINode] = NO_ITEMS
    csi_drivers: list[CSIDriver] = NO_ITEMS
    csi_storage_capacities: list[CSIStorageCapacity] = NO_ITEMS
    volume_attachments: list[VolumeAttachment] = NO_ITEMS
    runtime_classes: list[RuntimeClass] = NO_ITEMS
    limit_ranges: list[LimitRange] = NO_ITEMS
    resource_quotas: list[ResourceQuota] = NO_ITEMS
    services: list[Service] = NO_ITEMS
    replication_controllers: list[ReplicationController] = NO_ITEMS
    replica_sets: list[ReplicaSet] = NO_ITEMS
    stateful_sets: list[StatefulSet] = NO_ITEMS
    deployments: list[Deployment] = NO_ITEMS
    daemon_sets: list[DaemonSet] = NO_ITEMS
    jobs: list[Job] = NO_ITEMS
    resource_claims: list[ResourceClaim] = NO_ITEMS
    resource_claim_templates: list[ResourceClaimTemplate] = NO_ITEMS
    resource_slices: list[ResourceSlice] = NO_ITEMS
    device_classes: list[DeviceClass] = NO_ITEMS
    device_taint_rules: list[DeviceTaintRule] = NO_ITEMS
    pod_groups: list[PodGroup] = NO_ITEMS
    queues: list[Queue] = NO_ITEMS
    node_pools: list[NodePool] = NO_ITEMS
    events: list[Event] = NO_ITEMS
    version: str = ""
    taken_at: datetime | None = None
    skipped: dict[str, int] = NO_ENTRIES
    listed: tuple[str, ...] = ()
    has_scheduler_order: bool = False
    pod_orders: dict[str, PodOrder] = NO_ENTRIES
    unread: dict[str, Unread] = NO_ENTRIES
    documents: dict[str, list[dict[str, Any]]] = NO_ENTRIES


FORBIDDEN = 403
# The status of a kind that no request was made for.
ABSENT = 0


class KindState(Enum):
    """``READ``: the lists are all there is. ``ABSENT``: the input has none. ``UNREADABLE``: reading was refused."""

    READ = "read"
    ABSENT = "absent"
    UNREADABLE = "unreadable"


class Unread(msgspec.Struct, frozen=True):
    """Why a kind was not read: the HTTP ``status`` of the refusal, 403 where a right is missing, 0 if it is absent.

    ``resource`` is what would have been listed, with its group, as ``kubectl auth can-i list`` takes it:
    ``poddisruptionbudgets.policy``.
    """

    status: int = FORBIDDEN
    resource: str = ""

    @property
    def state(self) -> KindState:
        """``ABSENT`` or ``UNREADABLE``."""
        return KindState.ABSENT if self.status == ABSENT else KindState.UNREADABLE


def state_of(cluster: ClusterSnapshot, kind: str) -> KindState:
    """What is known of the objects of a kind of which a snapshot has records or documents."""
    unread = cluster.unread.get(kind)
    return KindState.READ if unread is None else unread.state


# What ``kubectl api-resources`` lists as short names, of kinds that decide about pods.
SHORT_NAMES: Mapping[str, str] = {
    "Node": "no",
    "Pod": "po",
    "PodDisruptionBudget": "pdb",
    "PriorityClass": "pc",
    "Namespace": "ns",
    "PersistentVolumeClaim": "pvc",
    "PersistentVolume": "pv",
    "StorageClass": "sc",
    "LimitRange": "limits",
    "ResourceQuota": "quota",
    "Service": "svc",
    "ReplicationController": "rc",
    "ReplicaSet": "rs",
    "StatefulSet": "sts",
    "Deployment": "deploy",
    "DaemonSet": "ds",
    "Event": "ev",
    "CronJob": "cj",
    "HorizontalPodAutoscaler": "hpa",
}
