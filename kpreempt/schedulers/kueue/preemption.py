"""Whom a Workload preempts: what both ways of choosing share (``pkg/scheduler/preemption`` of Kueue v0.19.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from kpreempt.model.quantity import MAX_INT64
from kpreempt.schedulers.kueue import configuration as gates
from kpreempt.schedulers.kueue.amounts import FlavorResource
from kpreempt.schedulers.kueue.chance import Chance
from kpreempt.schedulers.kueue.cluster_queues import Queue
from kpreempt.schedulers.kueue.configuration import KueueConfiguration
from kpreempt.schedulers.kueue.quota import Amounts
from kpreempt.schedulers.kueue.topology_requests import ByFlavor, failure_of, place_all
from kpreempt.schedulers.kueue.workloads import Info

IN_CLUSTER_QUEUE = "InClusterQueue"
IN_COHORT_RECLAMATION = "InCohortReclamation"
IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"

_LOWER_PRIORITY = "LowerPriority"
_LOWER_OR_NEWER = "LowerOrNewerEqualPriority"
_ANY = "Any"
_TIMESTAMP_BUFFER = 5 * 60 * 1000


class Target(NamedTuple):
    """A Workload that is to go, and by which rule."""

    info: Info
    reason: str


class Need(NamedTuple):
    """What a Workload needs: all it asks for, and that of which quota is short."""

    info: Info
    queue: Queue
    short: frozenset[FlavorResource]
    quota: Amounts
    topology: ByFlavor


class Stage:
    """The ClusterQueues in a cycle, of which Workloads are taken away on trial and given back."""

    def __init__(
        self, queues: Mapping[str, Queue], config: KueueConfiguration, now: int, chance: Chance | None = None
    ) -> None:
        self.queues = queues
        self.chance = chance or Chance()
        self.config = config
        self.now = now
        self.by_node = {each.node: each for each in queues.values()}

    def queue_of(self, info: Info) -> Queue:
        return self.queues[info.cluster_queue]

    def remove(self, info: Info) -> None:
        """Take a Workload's usage away."""
        self.queue_of(info).free(info.usage, info.topology_usage)

    def restore(self, info: Info) -> None:
        """Give it back."""
        self.queue_of(info).use(info.usage, info.topology_usage)

    @contextmanager
    def without(self, infos: Iterable[Info]) -> Iterator[None]:
        """As if Workloads were gone for good: neither is their quota used, nor can they be preempted."""
        gone = list(infos)
        for each in gone:
            self.remove(each)
            self.queue_of(each).let_go(each)
        yield
        for each in gone:
            self.restore(each)
            self.queue_of(each).let_in(each)

    def others(self, queue: Queue) -> Iterable[Queue]:
        """The active ClusterQueues of the whole tree but ``queue``."""
        for node in queue.node.root.all_queues():
            found = self.by_node.get(node)
            if found is not None and found is not queue:
                yield found

    def candidates(self, policy: str, need: Need, queue: Queue) -> Iterator[Info]:
        """Those of a ClusterQueue whom a policy lets a Workload preempt, who goes first before the others."""
        most = MAX_INT64 if policy == _ANY else need.info.effective_priority
        if policy == _LOWER_PRIORITY:
            most -= 1
        for each in queue.in_order(need.short):
            if each.effective_priority > most:
                # Only who is evicted already comes before those of lower priority.
                if not each.is_evicted:
                    return
            elif self.satisfies(policy, need.info, each):
                yield each

    def satisfies(self, policy: str, info: Info, candidate: Info) -> bool:
        """Whether a policy lets ``info`` preempt ``candidate``."""
        is_lower = info.effective_priority > candidate.effective_priority
        if policy == _LOWER_PRIORITY or (policy == _LOWER_OR_NEWER and is_lower):
            return is_lower
        if policy == _LOWER_OR_NEWER:
            ahead = candidate.queued_since - info.queued_since
            enough = _TIMESTAMP_BUFFER if self.config.has(gates.TIMESTAMP_BUFFER) else 0
            return info.effective_priority == candidate.effective_priority and ahead > enough
        return policy == _ANY

    def fits(self, need: Need, *, may_borrow: bool) -> bool:
        """Whether a Workload would fit now."""
        node = need.queue.node
        for fr, amount in need.quota.items():
            if (not may_borrow and node.borrows_with(fr, amount)) or amount > max(0, node.available(fr)):
                return False
        return not need.topology or failure_of(place_all(need.topology, need.queue)) is None

    def fill_back(self, need: Need, targets: list[Target], *, may_borrow: bool) -> list[Target]:
        """Give back who need not go. All are given back in the end.

        The last one stays, and takes the place of each that is given back.
        """
        for index in range(len(targets) - 2, -1, -1):
            self.restore(targets[index].info)
            if self.fits(need, may_borrow=may_borrow):
                targets[index] = targets[-1]
                targets.pop()
            else:
                self.remove(targets[index].info)
        self.restore_all(targets)
        return targets

    def restore_all(self, targets: Iterable[Target]) -> None:
        """Give all back."""
        for each in targets:
            self.restore(each.info)
