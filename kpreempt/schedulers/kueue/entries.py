"""A head with what is decided about it in a cycle, and the order in which heads are dealt with.

Follows ``makeClassicalIterator`` and ``fair_sharing_iterator.go`` of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from kpreempt.schedulers.kueue import configuration as gates
from kpreempt.schedulers.kueue.assignment import Assignment
from kpreempt.schedulers.kueue.chance import Chance
from kpreempt.schedulers.kueue.cluster_queues import Queue
from kpreempt.schedulers.kueue.configuration import KueueConfiguration
from kpreempt.schedulers.kueue.preemption import Target
from kpreempt.schedulers.kueue.quota import Amounts, Node
from kpreempt.schedulers.kueue.shares import Share, share_of
from kpreempt.schedulers.kueue.topology import TopologyUsage
from kpreempt.schedulers.kueue.workloads import Info

ASSUMED = "assumed"
SKIPPED = "skipped"


@dataclass(slots=True, eq=False)
class Entry:
    """A head. ``nominated`` is the evidence of what was decided before any other head was dealt with."""

    info: Info
    queue: Queue
    is_preemptor: bool
    assignment: Assignment = field(default_factory=Assignment)
    targets: list[Target] = field(default_factory=list)
    nominated: object = None
    final: object = None
    # The shares that decided its turn, by cohort and workload.
    tournament: list[tuple[str, str, Share]] = field(default_factory=list)
    is_recomputed: bool = False
    status: str = ""
    requeue_reason: str = ""
    quota_reason: str = ""
    message: str = ""
    admission: object = None

    @property
    def quota(self) -> Amounts:
        """The quota that it takes; none if it has some."""
        return {} if self.info.has_quota else self.assignment.usage

    @property
    def topology(self) -> TopologyUsage:
        """The domains that it takes."""
        return self.assignment.topology_usage

    def skip(self, message: str, config: KueueConfiguration) -> None:
        """Leave it for a later cycle."""
        self.status, self.message = SKIPPED, message
        if not config.has(gates.KEEP_SCAN_PROGRESS):
            self.info.memory = None


def turns(entries: list[Entry], config: KueueConfiguration, chance: Chance) -> Iterator[Entry]:
    """Heads in their turn. Under fair sharing each turn depends on what those before have taken."""
    if config.fair_sharing is None:
        in_order = sorted(entries, key=lambda each: _classical(each, config))
        for _, equals in groupby(in_order, key=lambda each: _classical(each, config)):
            yield from _in_any_order(list(equals), chance)
        return
    by_root: dict[Node, list[Entry]] = {}
    for each in entries:
        by_root.setdefault(each.queue.node.root, []).append(each)
    # Trees do not touch each other; which comes first is chance.
    for root in sorted(by_root, key=lambda node: node.name):
        yield from _Tournament(root, by_root[root], config, chance)


def _in_any_order(equals: list[Entry], chance: Chance) -> Iterator[Entry]:
    """Heads that nothing tells apart. Which of them is first matters only where they share quota or nodes."""
    sharing: dict[Node | None, list[Entry]] = {}
    for each in equals:
        sharing.setdefault(None if each.queue.topologies else each.queue.node.root, []).append(each)
    for some in sharing.values():
        yield from chance.shuffled(some)


def _classical(entry: Entry, config: KueueConfiguration) -> tuple[bool, bool, int, int, int]:
    info = entry.info
    return (
        not info.has_quota,
        config.has(gates.PRIORITIZE_PREEMPTORS) and not entry.is_preemptor,
        entry.assignment.borrowing,
        -info.effective_priority if config.has(gates.PRIORITY_SORTING) else 0,
        info.queued_since,
    )


class _Tournament:
    """The heads of one tree: at every cohort the one wins whose side would have the least share."""

    def __init__(self, root: Node, entries: list[Entry], config: KueueConfiguration, chance: Chance) -> None:
        self._root = root
        self._chance = chance
        self._left = {each.queue.node: each for each in entries}
        self._config = config
        self._shares: dict[tuple[Node, Entry], Share] = {}

    def __iter__(self) -> Iterator[Entry]:
        while self._left:
            if not self._root.is_cohort:
                yield self._left.pop(self._root)
                continue
            self._compute()
            winner = self._winner(self._root)
            assert winner is not None
            winner.tournament = sorted(
                ((cohort.name, entry.info.key, share) for (cohort, entry), share in self._shares.items()),
                key=lambda each: each[:2],
            )
            del self._left[winner.queue.node]
            yield winner

    def _compute(self) -> None:
        """The shares on every head's way to the root, if it alone were admitted."""
        self._shares = {}
        for node, entry in self._left.items():
            node.add(entry.quota)
            share = share_of(node)
            for cohort in node.ancestors:
                self._shares[cohort, entry] = share
                share = share_of(cohort)
            node.remove(entry.quota)

    def _winner(self, cohort: Node) -> Entry | None:
        below = (self._winner(child) for child in cohort.cohorts)
        runners = [each for each in (*below, *(self._left.get(node) for node in cohort.queues)) if each is not None]
        if not runners:
            return None
        best = min(self._key(each, cohort) for each in runners)
        return self._chance.pick([each for each in runners if self._key(each, cohort) == best])

    def _key(self, entry: Entry, cohort: Node) -> tuple[bool, bool, tuple[int, float], int, int]:
        config, info, share = self._config, entry.info, self._shares[cohort, entry]
        return (
            config.has(gates.PRIORITIZE_PREEMPTORS) and not entry.is_preemptor,
            config.has(gates.PRIORITIZE_NON_BORROWING) and share.borrows(entry.quota),
            share.rank,
            -info.effective_priority if config.has(gates.PRIORITY_SORTING) else 0,
            info.queued_since,
        )
