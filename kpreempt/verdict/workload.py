"""The outcome of all pods of a workload, scheduled in sequence, and how many more of a pod fit."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.status import Outcome


class ReplicaScope(StrEnum):
    """The pods of a workload that an answer covers.

    ``New``: all pods of a manifest, treated as new. ``Unscheduled``: the pods of a workload in the cluster that are not
    on a node. ``Additional``: pods in addition to the existing ones.
    """

    NEW = "New"
    UNSCHEDULED = "Unscheduled"
    ADDITIONAL = "Additional"


class Replica(SparseRecord, frozen=True, kw_only=True):
    """The outcome of one pod, after the previous pods were placed and their victims were evicted.

    ``node`` is where it lands, immediately or once ``victims`` are gone, of which evicting the ``violating`` ones
    violates a budget. ``ties`` are all nodes that the choice could end with, if there are several. ``message`` is that
    of a pod that finds no node.
    """

    pod: str
    outcome: Outcome
    node: str = ""
    victims: list[str] = []
    violating: list[str] = []
    ties: list[str] = []
    message: str = ""


class ReplicasOnNode(SparseRecord, frozen=True, kw_only=True):
    """The number of replicas that end up on a node, and the number of pods evicted to make room for them."""

    node: str
    replicas: int
    evictions: int = 0


class BudgetViolations(SparseRecord, frozen=True, kw_only=True):
    """The number of evictions that violate a budget, and the disruptions ``allowed`` before the first eviction."""

    budget: str
    allowed: int
    violations: int


class Pending(SparseRecord, frozen=True, kw_only=True):
    """The number of replicas pending with the same message, from the scheduler or from a quota that rejects them."""

    replicas: int
    message: str


class Totals(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The numbers of replicas that land immediately, that preempt, and that find no node.

    ``violations`` are evictions that violate a budget; ``uncertain`` are replicas with an uncertain outcome.
    ``rejected`` are not created, because a quota rejects them.
    """

    lands: int = 0
    preempts: int = 0
    evictions: int = 0
    violations: int = 0
    pending: int = 0
    uncertain: int = 0
    rejected: int = 0


class Workload(SparseRecord, frozen=True, kw_only=True):
    """The answer about ``replicas`` pods of a workload (``Deployment shop/web``), or about one pod.

    ``running`` are its pods that are already on nodes, for a workload in the cluster. ``totals`` are those of the
    scheduler's first choices, and ``others`` the different totals of other choices between tied nodes, if tried.
    ``ties`` is the number of replicas whose node is decided by chance.
    """

    workload: str
    scope: ReplicaScope
    replicas: int
    running: int | msgspec.UnsetType = msgspec.UNSET
    totals: Totals
    others: list[Totals] = []
    ties: int = 0
    nodes: list[ReplicasOnNode] = []
    budgets: list[BudgetViolations] = []
    pending: list[Pending] = []
    items: list[Replica] = []


class NodeCapacity(SparseRecord, frozen=True, kw_only=True):
    """The number of additional pods that fit on a node."""

    node: str
    pods: int


class Capacity(SparseRecord, frozen=True, kw_only=True):
    """How many more copies of a pod fit without evictions, and on which nodes.

    If ``is_bounded``, the count was stopped at ``limit`` pods, and more fit. ``is_by_choice``: the node of one pod
    affects where others fit, as with affinity, so that another choice between tied nodes could give a different number.
    ``outcome`` and ``message`` are those of the first pod that does not land, if one was requested.
    """

    pods: int
    nodes: list[NodeCapacity] = []
    limit: int = 0
    is_bounded: bool = False
    is_by_choice: bool = False
    outcome: Outcome | msgspec.UnsetType = msgspec.UNSET
    message: str = ""
