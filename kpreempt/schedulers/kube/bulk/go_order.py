"""Equal pods of many nodes in the order in which Go's sort leaves them, where the scheduler's own order is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kpreempt.schedulers.go_sort import sorted_as_in_go
from kpreempt.schedulers.kube.bulk.pod_table import Integers, PodTable
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.preemption.importance import NO_START, sort_by_importance

# Up to here Go's sort keeps the order of equals.
MAX_STABLE = 12


class GoOrder:
    """Sorts the potential victims of nodes, and those who go, as the scheduler does.

    ``victims`` are positions in the table, node by node, on each node most important first and equals as they stand
    there; ``where`` is the node of each, one of ``num_nodes``.
    """

    def __init__(self, table: PodTable, victims: Integers, where: Integers, num_nodes: int) -> None:
        self._table = table
        self._first = np.searchsorted(where, np.arange(num_nodes + 1)).tolist()
        self._rank: list[int] = table.importance.rank.tolist()
        rank = table.importance.rank[victims]
        self._is_tied = np.zeros(num_nodes, dtype=np.bool_)
        self._is_tied[where[1:][rank[1:] == rank[:-1]]] = True
        # Missing start times count as now, by a clock that moves on while it is read.
        self._lacks_start = np.zeros(num_nodes, dtype=np.bool_)
        self._lacks_start[where[table.start[victims] == NO_START]] = True
        self._listed: dict[int, dict[str, int]] = {}

    def sort(self, victims: Integers) -> Integers:
        """All potential victims, by importance."""
        ordered = victims.copy()
        for node, begin, end in self._decided(self._first):
            # They stand on the node in the order of the table.
            ordered[begin:end] = self._sorted(node, np.sort(victims[begin:end]).tolist())
        return ordered

    def sort_again(self, goes: Integers, first: Sequence[int], is_sorted_again: Callable[[int], bool]) -> Integers:
        """Those who go, by importance.

        ``goes`` are positions in the table in the order in which they were put back, those of node n from ``first[n]``
        up to ``first[n + 1]``. Only where it ``is_sorted_again`` are those of a node in another order than they were.
        """
        ordered = goes[np.argsort(self._table.importance.rank[goes], kind="stable")]
        for node, begin, end in self._decided(first):
            positions = goes[begin:end].tolist()
            ordered[begin:end] = self._sorted(node, positions) if is_sorted_again(node) else positions
        return ordered

    def _decided(self, first: Sequence[int]) -> list[tuple[int, int, int]]:
        """The nodes of which the sort decides the order, and where their pods begin and end."""
        begins, ends = np.array(first[:-1], dtype=np.int64), np.array(first[1:], dtype=np.int64)
        nodes = np.flatnonzero(self._lacks_start | (self._is_tied & (ends - begins > MAX_STABLE))).tolist()
        return [(node, first[node], first[node + 1]) for node in nodes]

    def _sorted(self, node: int, positions: Sequence[int]) -> list[int]:
        if not self._lacks_start[node]:
            rank = self._rank
            return sorted_as_in_go(positions, lambda one, other: rank[one] < rank[other])
        cluster = self._table.cluster
        infos = {PodInfo(self._table.pods[position], cluster.behaviour): position for position in positions}
        # The first time it is asked about all that may go.
        listed = self._listed.setdefault(node, {info.key: place for place, info in enumerate(infos)})
        reads_once = cluster.behaviour.reads_start_times_once
        in_order = sort_by_importance(
            list(infos), cluster.now, has_scheduler_order=True, reads_starts_once=reads_once, listed=listed
        )
        return [infos[info] for info in in_order]
