"""The report on one node, the health of nodes, and kinds of nodes.

The utilization of nodes (``Occupancy``) is for formats that draw it, and not part of a verdict or its JSON.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import SparseRecord, UntrackedRecord
from kpreempt.verdict.remedies import Remedy, RemedySearch
from kpreempt.verdict.status import Status


class NodeState(StrEnum):
    """What is wrong with a node.

    ``NotReady`` and ``Unreachable``: the condition Ready is False or Unknown, or a controller has set the taint for it;
    no pod starts there. ``ShutDown`` and ``OutOfService``: the taint says so. ``BeingDeleted``: the Node object has a
    deletion timestamp. ``RemovedByClusterAutoscaler`` and ``RemovedByKarpenter``: the autoscaler's taint says that it
    removes the node. ``RemovalCandidate``: Cluster Autoscaler may remove it soon.
    """

    NOT_READY = "NotReady"
    UNREACHABLE = "Unreachable"
    SHUT_DOWN = "ShutDown"
    OUT_OF_SERVICE = "OutOfService"
    BEING_DELETED = "BeingDeleted"
    REMOVED_BY_CLUSTER_AUTOSCALER = "RemovedByClusterAutoscaler"
    REMOVED_BY_KARPENTER = "RemovedByKarpenter"
    REMOVAL_CANDIDATE = "RemovalCandidate"

    @property
    def is_down(self) -> bool:
        """Whether the kubelet may start and stop no pods."""
        return self in (NodeState.NOT_READY, NodeState.UNREACHABLE, NodeState.SHUT_DOWN, NodeState.OUT_OF_SERVICE)


class NodeHealth(SparseRecord, frozen=True, kw_only=True):
    """A node with what is wrong with it, the most severe first.

    ``reason``, ``message`` and ``since`` are those of the condition Ready, if it is not True.
    """

    node: str
    states: list[NodeState]
    reason: str = ""
    message: str = ""
    since: datetime | None = None


class NodeEvaluation(UntrackedRecord, frozen=True):
    """The result of every filter for one node; the scheduler itself stops at the first filter that rejects the pod.

    ``filters`` are the statuses with the node as it is, ``without_lower`` those without its ``lower_priority_pods``
    (empty if there are none), both in profile order; plugins with nothing to check are omitted. ``nominated_pods`` of
    equal or higher priority are counted as if they were running. ``pre_filter`` is set if the pod is rejected before
    any node is checked, and ``excluded_by`` names the plugins that exclude this node before that.
    """

    pre_filter: Status | None = None
    excluded_by: list[str] = []
    filters: list[Status] = []
    lower_priority_pods: list[str] = []
    without_lower: list[Status] = []
    nominated_pods: list[str] = []


class NodeKind(UntrackedRecord, frozen=True):
    """Nodes of the cluster with the same allocatable resources, labels and taints.

    ``like`` is one of them, ``count`` is their number. ``allocatable`` is in milli-CPU, bytes and units.
    """

    like: str
    count: int
    allocatable: dict[str, int]


class NodeReport(UntrackedRecord, frozen=True):
    """The report on one node: all filters, the node's rank in the choice, and what would make the scheduler choose it.

    ``is_chosen``: the pod ends up there, possibly as one of several tied nodes. If the node was scored, ``rank`` counts
    from 1 and ties share it. If it was a candidate that was not chosen, ``eliminated_at`` is the rule that eliminated
    it, with its ``value`` and the ``best`` one. The verdict's candidates have its steps, or the dry run why it is not a
    candidate. With each of the ``remedies``, the pod ends up on the node.
    """

    node: str
    evaluation: NodeEvaluation
    is_chosen: bool = False
    rank: int | None = None
    eliminated_at: str = ""
    value: int | str | None = None
    best: int | str | None = None
    remedies: list[Remedy] = []
    search: RemedySearch = RemedySearch()


class NodeUse(UntrackedRecord, frozen=True):
    """A node's allocatable resources and its pods' requests. ``nominated`` are pods that are nominated to it."""

    allocatable: dict[str, int]
    used: dict[str, int]
    nominated: list[str] = []


class Occupancy(UntrackedRecord, frozen=True):
    """Nodes by name, and the requests of pods that may be evicted.

    CPU in milli-CPU, memory and storage in bytes, all other resources in units; ``pods`` is the number of pods.
    """

    nodes: dict[str, NodeUse]
    requests: dict[str, dict[str, int]] = {}
