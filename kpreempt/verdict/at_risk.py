"""The pods that would evict a running pod, and the order in which running pods would be evicted."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption, BudgetUse, ClusterSummary
from kpreempt.verdict.status import Outcome
from kpreempt.verdict.workload import PreemptionsBetween


class Threat(Record, frozen=True):
    """A pending pod that would evict the pod in question.

    ``in_turn``: it does so when the whole queue is served, each pod in its turn; otherwise only if it were next.
    ``is_certain`` is false if the result depends on how tied nodes or pods are ordered, or on the order of the queue.
    ``position`` is the pod's position in the scheduling queue.
    """

    pod: str
    priority: int
    node: str
    position: int | None = None
    is_certain: bool = True
    in_turn: bool = False


class SizeName(StrEnum):
    """The source of a size: the median request of all pods, the pod itself, or the capacity available to it.

    The last one is the pod's own request plus what is free on its node: what another pod can get there by evicting only
    this one.
    """

    TYPICAL = "typical"
    OWN = "own"
    OWN_PLUS_FREE = "ownPlusFree"


class Threshold(Record, frozen=True, kw_only=True):
    """The lowest priority at which a new pod of a given size would evict the pod in question.

    ``requests`` are in milli-CPU, bytes and units. ``anywhere`` is the lowest priority at which a pod that may schedule
    on any node evicts it, and ``on_node`` the same for a pod pinned to its node; ``None`` if no priority does.
    ``outcome`` and ``outcome_on_node`` are the outcomes at priority ``highest``, and ``nodes`` are the nodes that a pod
    that may schedule anywhere ends up on. ``options`` make ``kpreempt explain`` evaluate the pod with the lowest
    priority found, and ``options_on_node`` the pinned one.
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


class RankedVictim(Record, frozen=True):
    """A pod's rank on its node: the pod at ``rank`` 1 is preempted first. ``violates_budget`` moves it to the end.

    If it is tied with other pods, its rank can be anything from ``rank`` to ``last_rank``. ``budgets`` is the effect
    of its eviction on each budget if every more important pod of the node is evicted, too.
    """

    pod: str
    priority: int
    rank: int
    start_time: datetime | None = None
    violates_budget: bool = False
    budgets: list[BudgetUse] = []
    last_rank: int | msgspec.UnsetType = msgspec.UNSET


class PodAtRisk(Record, frozen=True, kw_only=True):
    """A running pod, the pending pods that would evict it, the priorities at which new pods would, and its rank.

    ``evicted_runs`` counts the runs in which it is evicted when the queue is served, for any pod.
    """

    pod: str
    node: str
    priority: int = 0
    owner: str = ""
    requests: dict[str, int] = {}
    is_terminating: bool = False
    evicted_runs: int = 0
    threats: list[Threat] = []
    thresholds: list[Threshold] = []
    eviction_order: RankedVictim | None = None


class NodeOrder(Record, frozen=True):
    """The order in which a pod more important than all of a node's pods would preempt them, first victim first.

    It is the reverse of the order in which victim selection reprieves pods. ``priority`` is that of the incoming pod;
    pods of that priority and above stay, and are not listed.
    """

    node: str
    priority: int
    pods: list[RankedVictim]


class PodsAtRisk(Record, frozen=True, kw_only=True):
    """The running pods that could be preempted, most threatened first.

    Pods that are evicted when the queue is served come first, ``threatened`` of all requested pods, then those that a
    pending pod would evict if it were next. The other pods follow, sorted by the lowest priority at which a new
    pod would evict them. ``matching`` counts all requested pods; ``items`` may be fewer. ``more_threatened`` are the
    other pods that are evicted when the queue is served, with only the pods that evict them. ``runs`` counts how often
    the queue was served. ``preemptions`` are those of which the input has events, by and of the
    workloads of the requested pods, if at least two pods were evicted or the evictions were for nothing.
    """

    api_version: str = API_VERSION
    kind: str = "PodsAtRisk"
    algorithm: str = ""
    cluster: ClusterSummary = ClusterSummary()
    at: datetime | None = None
    matching: int = 0
    threatened: int = 0
    pending: int = 0
    runs: int = 0
    items: list[PodAtRisk] = []
    more_threatened: list[PodAtRisk] = []
    nodes: list[NodeOrder] = []
    preemptions: list[PreemptionsBetween] = []
    assumptions: list[Assumption] = []
