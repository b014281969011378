"""Which pods would evict a running pod, and in which order it would go."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption, BudgetUse, ClusterSummary
from kpreempt.verdict.status import Outcome


class Threat(Record, frozen=True):
    """A pending pod that would evict the pod in question.

    ``is_certain`` is false where several nodes tie, or equal pods. ``position`` is its place in the scheduling queue.
    """

    pod: str
    priority: int
    node: str
    position: int | None = None
    is_certain: bool = True


class SizeName(StrEnum):
    """Where a size comes from: the median of what pods request, the pod itself, its room.

    Its room is what is free on its node and what it asks for itself, together: as much as a pod gets there for which it
    alone goes.
    """

    TYPICAL = "typical"
    OWN = "own"
    ROOM = "room"


class Threshold(Record, frozen=True, kw_only=True):
    """From which priority on a new pod of one size would evict the pod in question.

    ``requests`` are in milli-CPU, bytes and units. ``anywhere`` is the lowest priority at which a pod that may go to
    any node evicts it, ``on_node`` the same for a pod that has to go to its node; ``None`` where no priority does.
    At ``highest`` the outcomes are those named, and ``nodes`` the ones that a pod that may go anywhere ends on.
    ``options`` make ``kpreempt explain`` ask about the pod of the lowest priority found, ``options_on_node`` about the
    other.
    """

    size: SizeName
    requests: dict[str, int]
    anywhere: int | None = None
    on_node: int | None = None
    highest: int = 0
    outcome: Outcome | None = None
    outcome_on_node: Outcome | None = None
    nodes: list[str] = []
    options: list[str] = []
    options_on_node: list[str] = []


class Standing(Record, frozen=True):
    """A pod's place on its node: ``place`` 1 goes first. ``violates_budget`` puts it behind all that violate none.

    Where it has equals, whose order nothing tells, it may have any place from ``place`` to ``last_place``.
    ``budgets`` is what its eviction takes from each budget when every more important pod of the node goes too.
    """

    pod: str
    priority: int
    place: int
    start_time: datetime | None = None
    violates_budget: bool = False
    budgets: list[BudgetUse] = []
    last_place: int | msgspec.UnsetType = msgspec.UNSET


class PodAtRisk(Record, frozen=True, kw_only=True):
    """A running pod: who would evict it now, from which priority on others would, and its place in the order."""

    pod: str
    node: str
    priority: int = 0
    owner: str = ""
    requests: dict[str, int] = {}
    is_terminating: bool = False
    threats: list[Threat] = []
    thresholds: list[Threshold] = []
    standing: Standing | None = None


class NodeOrder(Record, frozen=True):
    """In which order a node's pods would go for one that is more important than all of them; the first goes first.

    It is the reverse of the order in which victim selection puts pods back. ``priority`` is that of the incoming pod;
    pods of that priority and above stay, and are not listed.
    """

    node: str
    priority: int
    pods: list[Standing]


class PodsAtRisk(Record, frozen=True, kw_only=True):
    """Running pods, those that a pending pod would evict first, then by how low a priority would.

    ``matching`` counts all pods that were asked about, ``items`` may be fewer.
    """

    api_version: str = API_VERSION
    kind: str = "PodsAtRisk"
    algorithm: str = ""
    cluster: ClusterSummary = ClusterSummary()
    at: datetime | None = None
    matching: int = 0
    threatened: int = 0
    pending: int = 0
    items: list[PodAtRisk] = []
    nodes: list[NodeOrder] = []
    assumptions: list[Assumption] = []
