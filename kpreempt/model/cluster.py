"""The cluster as a scheduler sees it at a point in time, and what is known about each kind of object.

A kind was read, is absent from the input, or could not be read. Live clusters and kpreempt's own snapshots record which
kinds were read, so an empty list is certain. A kubectl dump does not: if it has no objects of a kind, there may be
none, or they were not dumped. ``ClusterSnapshot.unread`` lists every kind that was not read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec

from kpreempt.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kpreempt.model.event import Event
from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS
from kpreempt.model.node import ConfigMap, Node, NodeClaim, NodePool
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

# The creation time of redacted dumps; their times are relative to it.
REDACTED_AT = datetime(2000, 1, 1, tzinfo=UTC)


class PodOrder(msgspec.Struct, frozen=True):
    """The pods of a node in the order of the scheduler's cache (``NodeInfo.Pods``), as far as it is known.

    ``places`` has keys of pods (``namespace/name``), or an empty string for an unknown one of the ``unplaced`` pods.
    """

    places: tuple[str, ...]
    unplaced: frozenset[str] = frozenset()


class ClusterSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Every object that affects scheduling, each kind in the order of the input.

    The order matters, because it breaks ties. ``has_scheduler_order`` means that pods are in the order of the
    scheduler's cache for each node, which dumps and API server lists don't show. ``is_what_if`` means that it was
    changed just now, which moves the pods in the scheduler's queue that the change helps. ``version`` is the server's
    (``v1.36.3``) or empty; ``taken_at`` is the time of the dump, if known. Only events about preemption and failed
    scheduling, and those of autoscalers, are kept. ``pod_groups`` and ``queues`` are Volcano's, ``node_pools`` and
    ``node_claims`` Karpenter's; ``config_maps`` only has Cluster Autoscaler's status. ``skipped`` counts objects of
    kinds that no scheduler reads, by kind. ``unread`` has the kinds of which the cluster may have objects that could
    not be read; the lists of all other kinds are complete. ``listed`` has the kinds that no scheduler reads but of
    which the input is complete.

    ``lacks_nodes``: pods are on nodes that the input does not have, so it has only a part of the cluster.
    ``lacks_pods``: it has no pods of some namespaces, although they run on its nodes.

    ``pod_orders`` has the known order of each node's pods, by node name. It is not updated when a what-if changes the
    pods; users of it must compare it with the actual pods.

    ``documents`` has the complete objects that plugins request (``ExtraFields``), as plain data, by ``ObjectKind.key``;
    a requested kind has its key even without objects. They are in the order of the input, without duplicates, and have
    ``apiVersion``, ``kind`` and, for namespaced kinds, ``metadata.namespace``. They are not updated when a what-if
    changes a record. They are shared and must not be modified, may hold anything, and must not appear in any output.
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
    node_claims: list[NodeClaim] = NO_ITEMS
    config_maps: list[ConfigMap] = NO_ITEMS
    events: list[Event] = NO_ITEMS
    version: str = ""
    taken_at: datetime | None = None
    skipped: dict[str, int] = NO_ENTRIES
    listed: tuple[str, ...] = ()
    has_scheduler_order: bool = False
    is_what_if: bool = False
    lacks_nodes: bool = False
    lacks_pods: bool = False
    pod_orders: dict[str, PodOrder] = NO_ENTRIES
    unread: dict[str, Unread] = NO_ENTRIES
    documents: dict[str, list[dict[str, Any]]] = NO_ENTRIES


FORBIDDEN = 403
# The status of a kind that was not requested.
ABSENT = 0


class KindState(Enum):
    """``READ``: the lists are complete. ``ABSENT``: the input has none. ``UNREADABLE``: the request was denied."""

    READ = "read"
    ABSENT = "absent"
    UNREADABLE = "unreadable"


class Unread(msgspec.Struct, frozen=True):
    """Why a kind was not read: the HTTP ``status`` of the error, 403 for a missing permission, 0 if it is absent.

    ``resource`` is the resource with its group, as for ``kubectl auth can-i list``: ``poddisruptionbudgets.policy``.
    ``namespace`` is the only namespace whose objects were read, if any were.
    """

    status: int = FORBIDDEN
    resource: str = ""
    namespace: str = ""

    @property
    def state(self) -> KindState:
        """``ABSENT`` or ``UNREADABLE``."""
        return KindState.ABSENT if self.status == ABSENT else KindState.UNREADABLE


def state_of(cluster: ClusterSnapshot, kind: str) -> KindState:
    """Return what is known about the objects of a kind that snapshots keep as records or documents."""
    unread = cluster.unread.get(kind)
    return KindState.READ if unread is None else unread.state


def may_lack_nodes(cluster: ClusterSnapshot) -> bool:
    """Return whether the cluster has nodes that are not in the input: some of them, or all."""
    return cluster.lacks_nodes or lacks_all_nodes(cluster)


def lacks_all_nodes(cluster: ClusterSnapshot) -> bool:
    """Return whether the cluster has nodes, but the input none of them."""
    return not cluster.nodes and state_of(cluster, "Node") is not KindState.READ


def cannot_simulate(cluster: ClusterSnapshot) -> bool:
    """Return whether no node was read, or not all pods, so that nothing can be said about where pods land."""
    return lacks_all_nodes(cluster) or cluster.lacks_pods or state_of(cluster, "Pod") is KindState.UNREADABLE


def is_partial(cluster: ClusterSnapshot) -> bool:
    """Return whether nodes, or pods on them, may be missing, so that no scheduling decision can be predicted."""
    return cluster.lacks_nodes or cannot_simulate(cluster)


def only_namespace(cluster: ClusterSnapshot) -> str:
    """Return the only namespace whose pods could be read, or an empty string if that is not limited."""
    pods = cluster.unread.get("Pod")
    return pods.namespace if pods is not None else ""


# The kinds of which the objects of other namespaces take part in decisions about a pod.
SHARED = ("Pod", "PodDisruptionBudget", "ResourceClaim", "PodGroup")


def within(cluster: ClusterSnapshot, namespaces: Collection[str], shared: Collection[str] = SHARED) -> ClusterSnapshot:
    """Return the cluster for a question about these namespaces; empty is the only one that could be read.

    Kinds that could be read in this one namespace count as read, except the ``shared`` ones.
    """
    about = set(namespaces) or {only_namespace(cluster)}
    unread = {
        kind: each
        for kind, each in cluster.unread.items()
        if kind in shared or not each.namespace or about != {each.namespace}
    }
    read = sorted(cluster.unread.keys() - unread.keys())
    return msgspec.structs.replace(cluster, unread=unread, listed=(*cluster.listed, *read)) if read else cluster


# The short names in ``kubectl api-resources`` of kinds that affect pods.
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
