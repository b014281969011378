"""What becomes of all pods of a workload, put to the scheduler one after the other; and how many more of a pod fit."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.status import Outcome


class Asked(StrEnum):
    """Which pods of a workload an answer is about.

    ``New``: all of a manifest's, as new pods. ``Missing``: those of a workload in the cluster that are not on a node.
    ``More``: some in addition to what is there.
    """

    NEW = "New"
    MISSING = "Missing"
    MORE = "More"


class Replica(SparseRecord, frozen=True, kw_only=True):
    """What becomes of one pod, in the cluster with those before it on their nodes and their victims gone.

    ``node`` is where it lands, or is nominated to and lands once ``victims`` are gone, of which ``violating`` go
    against a budget. ``ties`` are all nodes that the choice could end with, where it is not only one. ``message`` is
    that of a pod that finds no node.
    """

    pod: str
    outcome: Outcome
    node: str = ""
    victims: list[str] = []
    violating: list[str] = []
    ties: list[str] = []
    message: str = ""


class ReplicasOnNode(SparseRecord, frozen=True, kw_only=True):
    """How many replicas end on a node, and how many pods leave it for them."""

    node: str
    replicas: int
    evictions: int = 0


class BudgetViolations(SparseRecord, frozen=True, kw_only=True):
    """How many evictions violate a budget, which ``allowed`` so many disruptions before the first."""

    budget: str
    allowed: int
    violations: int


class Pending(SparseRecord, frozen=True, kw_only=True):
    """How many replicas stay pending with one message, the scheduler's or, where they are not made, a quota's."""

    replicas: int
    message: str


class Totals(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """How many replicas land at once, how many preempt how many pods, and how many find no node.

    ``violations`` are evictions that violate a budget; ``uncertain`` are replicas of which nothing certain can be said.
    ``refused`` are not created, as a quota does not let them.
    """

    lands: int = 0
    preempts: int = 0
    evictions: int = 0
    violations: int = 0
    pending: int = 0
    uncertain: int = 0
    refused: int = 0


class Workload(SparseRecord, frozen=True, kw_only=True):
    """The answer about ``replicas`` pods of a workload (``Deployment shop/web``), or of one pod.

    ``running`` are its pods that are on nodes already, of a workload in the cluster. ``totals`` are those of the
    scheduler's first choices, and ``others`` what other choices between equal nodes came to, where they were tried and
    came to something else. ``ties`` is how many replicas could have ended elsewhere by chance.
    """

    workload: str
    asked: Asked
    replicas: int
    running: int | msgspec.UnsetType = msgspec.UNSET
    totals: Totals
    others: list[Totals] = []
    ties: int = 0
    nodes: list[ReplicasOnNode] = []
    budgets: list[BudgetViolations] = []
    pending: list[Pending] = []
    items: list[Replica] = []


class Room(SparseRecord, frozen=True, kw_only=True):
    """How many more of a pod fit on a node."""

    node: str
    pods: int


class Capacity(SparseRecord, frozen=True, kw_only=True):
    """How many more of a pod fit beside what is there, without evicting anybody, and on which nodes.

    The scheduler's search was broken off at ``limit`` pods where ``is_bounded``; there are more then. ``is_by_choice``
    says that where the scheduler puts one pod decides where others fit, as with affinity, so that another of its equal
    choices could come to another number. ``outcome`` and ``message`` are those of the first pod that does not land,
    where one was asked about.
    """

    pods: int
    nodes: list[Room] = []
    limit: int = 0
    is_bounded: bool = False
    is_by_choice: bool = False
    outcome: Outcome | msgspec.UnsetType = msgspec.UNSET
    message: str = ""
