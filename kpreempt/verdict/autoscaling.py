"""Why no node is added for pending pods, as far as autoscalers report it and their objects show it.

Nothing here predicts what an autoscaler will do.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.model.event import Autoscaler
from kpreempt.verdict.base import Record, SparseRecord


class CountedReason(Record, frozen=True):
    """A reason in an autoscaler's words, and the number of node groups that it applies to."""

    groups: int
    reason: str


class AutoscalerReport(SparseRecord, frozen=True, kw_only=True):
    """What an autoscaler reported in an event.

    ``message`` is verbatim, and ``at`` is when it was last reported, if known. ``about`` is the object, such as
    ``NodePool default``; it is empty for the pod itself. ``reasons`` are those in the message, if it counts node
    groups; ``parts`` are the problems that it lists otherwise, usually one per NodePool. ``is_outdated``: the pod has
    changed since.
    """

    autoscaler: Autoscaler
    reason: str
    message: str = ""
    at: datetime | None = None
    about: str = ""
    reasons: list[CountedReason] = []
    parts: list[str] = []
    is_outdated: bool = False


class ObstacleKind(StrEnum):
    """What is in the way of a pod on nodes of a NodePool.

    ``Requirement``: the pod, or its volume, selects nodes that the pool does not create. ``Taint``: the pod does not
    tolerate a taint. ``Limit``: the pool's limit leaves less than the pod requests. ``Size``: the pool's nodes are too
    small. Karpenter creates no nodes for pods from a pool that is ``NotReady``, ``BeingDeleted``, or ``Static`` (it has
    ``replicas``).
    """

    REQUIREMENT = "Requirement"
    TAINT = "Taint"
    LIMIT = "Limit"
    SIZE = "Size"
    NOT_READY = "NotReady"
    BEING_DELETED = "BeingDeleted"
    STATIC = "Static"


class Obstacle(SparseRecord, frozen=True, kw_only=True):
    """A requirement, taint or limit in the way of a pod.

    ``wanted`` is what the pod selects, and ``offered`` what the pool has, both as for ``kubectl -l``; ``volume`` is the
    PersistentVolume or StorageClass (``PersistentVolume pv-1``) whose requirement it is. For a limit or a size, ``key``
    is the resource, and the amounts are in the units of a verdict. ``message`` is the reason of a pool that is not
    ready.
    """

    kind: ObstacleKind
    key: str = ""
    wanted: str = ""
    offered: str = ""
    volume: str = ""
    requested: int = 0
    used: int = 0
    limit: int = 0
    message: str = ""


class PoolObstacles(Record, frozen=True):
    """What is in the way of a pod on nodes of a NodePool; without obstacles, the instance types still may be."""

    pool: str
    obstacles: list[Obstacle]


class IgnoredBecause(StrEnum):
    """Why autoscalers add no node for a pod, whatever it needs.

    ``DaemonSet``: it is for an existing node. ``Nominated``: the scheduler has preempted pods for it.
    ``LowPriority``: its priority is below the default cutoff of Cluster Autoscaler.
    """

    DAEMON_SET = "DaemonSet"
    NOMINATED = "Nominated"
    LOW_PRIORITY = "LowPriority"


class PodAutoscaling(SparseRecord, frozen=True, kw_only=True):
    """Pending pods (``namespace/name``) with the same answer: the reports about them, the latest first, and NodePools.

    The times of the reports are the latest for any of the pods. ``is_new``: the pods do not exist yet. ``is_changed``:
    they differ in this query from what the reports are about.
    """

    pods: list[str]
    is_new: bool = False
    is_changed: bool = False
    ignored: list[IgnoredBecause] = []
    reports: list[AutoscalerReport] = []
    pools: list[PoolObstacles] = []


class NodeClaimState(SparseRecord, frozen=True, kw_only=True):
    """A NodeClaim whose node is not ready: ``missing`` is the first condition that is not true, with its reason."""

    name: str
    pool: str = ""
    node: str = ""
    created: datetime | None = None
    missing: str = ""
    reason: str = ""
    message: str = ""


class NodeGroupState(SparseRecord, frozen=True, kw_only=True):
    """A node group in Cluster Autoscaler's status: its health, its requested size with the limits, its scale-up.

    Sizes are ``None`` if the status does not have them.
    """

    name: str
    health: str = ""
    size: int | None = None
    min_size: int | None = None
    max_size: int | None = None
    scale_up: str = ""
    error_code: str = ""
    error_message: str = ""


class NotRead(Record, frozen=True):
    """A kind that was not read: its name, and the HTTP status of the error, 0 if the input has no object of it."""

    kind: str
    status: int


class Autoscaling(SparseRecord, frozen=True, kw_only=True):
    """What the ``autoscalers`` of a cluster report about pending pods, and about themselves.

    ``reports`` are about node groups, NodePools, NodeClaims and nodes, the latest first. ``node_groups`` are those of
    Cluster Autoscaler's status from ``status_at``; ``is_healthy`` is missing without a status. ``not_read`` has the
    kinds that were not read, and could say more.
    """

    autoscalers: list[Autoscaler]
    pods: list[PodAutoscaling]
    reports: list[AutoscalerReport] = []
    claims: list[NodeClaimState] = []
    node_groups: list[NodeGroupState] = []
    status_at: datetime | None = None
    is_healthy: bool | None = None
    not_read: list[NotRead] = []
