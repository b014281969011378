"""Puts the potential victims of all nodes back in lockstep: the first of every node, then the second of every node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from kpreempt.schedulers.kube.bulk.limits import Excess, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import Integers
from kpreempt.verdict import Status


class Lockstep:
    """Which pods stay beside the incoming one.

    ``victims`` are positions in the table, node by node, on each node in the order in which they are put back, and
    ``where`` is each one's node, as an index into the nodes of the question. After ``run`` ``kept`` says of each victim
    whether it stays, and ``fits`` of each node whether the incoming pod fits there without any of them. Where the steps
    are wanted, ``tried_sums`` has for each limit the sum with each victim just put back, and ``kept_before`` how many
    victims of its node had been kept by then.
    """

    def __init__(
        self,
        limits: Sequence[PluginLimits],
        victims: Integers,
        where: Integers,
        num_nodes: int,
        *,
        records_steps: bool,
    ) -> None:
        self._by_plugin = limits
        self._limits = [limit for each in limits for limit in each.limits]
        self.where = where
        # How many victims every node has, and where in ``victims`` they begin.
        self.counts = np.bincount(where, minlength=num_nodes)
        self.first = np.concatenate(([0], np.cumsum(self.counts)))
        self._amounts = [limit.amounts[victims] for limit in self._limits]
        # Sums without any lower-priority pod.
        self._bare_sums = [
            limit.used - _sum_by(self.first, amounts)
            for limit, amounts in zip(self._limits, self._amounts, strict=True)
        ]
        self.fits = np.ones(num_nodes, dtype=np.bool_)
        for limit, total in zip(self._limits, self._bare_sums, strict=True):
            self.fits &= total <= limit.limit
        self.kept = np.zeros(len(victims), dtype=np.bool_)
        self._records_steps = records_steps
        self.kept_before = np.zeros(len(victims) if records_steps else 0, dtype=np.int64)
        self.tried_sums = [np.zeros(len(self.kept_before), dtype=np.int64) for _ in self._limits]

    def run(self) -> None:
        """Decide every pod of the nodes that fit at all."""
        sums = [total.copy() for total in self._bare_sums]
        num_kept = np.zeros(len(self.counts), dtype=np.int64)
        active = np.flatnonzero(self.fits & (self.counts > 0))
        for rank in range(int(self.counts.max(initial=0))):
            active = active[self.counts[active] > rank]
            each = self.first[active] + rank
            totals = [total[active] + amounts[each] for total, amounts in zip(sums, self._amounts, strict=True)]
            stays = np.ones(len(active), dtype=np.bool_)
            for limit, total in zip(self._limits, totals, strict=True):
                stays &= total <= limit.limit[active]
            self.kept[each] = stays
            staying = active[stays]
            for mine, total in zip(sums, totals, strict=True):
                mine[staying] = total[stays]
            if self._records_steps:
                self.kept_before[each] = num_kept[active]
                num_kept[staying] += 1
                for tried, total in zip(self.tried_sums, totals, strict=True):
                    tried[each] = total

    def amounts_in(self, order: Integers) -> list[Integers]:
        """By limit, what each of these victims takes of it."""
        return [amounts[order] for amounts in self._amounts]

    def limits_beside(self, node: int) -> list[int]:
        """What every limit leaves to the victims of a node."""
        return [
            int(limit.limit[node]) - int(total[node])
            for limit, total in zip(self._limits, self._bare_sums, strict=True)
        ]

    # Plain integers, because single values of a column are slow to come by.

    @cached_property
    def _nodes(self) -> list[int]:
        return _integers(self.where)

    @cached_property
    def _limits_of_nodes(self) -> list[list[int]]:
        return [_integers(limit.limit) for limit in self._limits]

    @cached_property
    def _bare_sums_of_nodes(self) -> list[list[int]]:
        return [_integers(total) for total in self._bare_sums]

    @cached_property
    def _tried_sums_of_victims(self) -> list[list[int]]:
        return [_integers(tried) for tried in self.tried_sums]

    def refusal_without_victims(self, node: int, num_pods: int) -> Status:
        """Why the pod does not fit a node even without its lower-priority pods, of which ``num_pods`` others remain."""
        return self._refusal(node, [total[node] for total in self._bare_sums_of_nodes], num_pods, is_bare=True)

    def refusal_with(self, index: int, num_pods: int) -> Status:
        """Why the pod did not fit with the victim at ``index`` just put back, on a node of then ``num_pods`` pods."""
        sums = [tried[index] for tried in self._tried_sums_of_victims]
        return self._refusal(self._nodes[index], sums, num_pods, is_bare=False)

    def _refusal(self, node: int, sums: list[int], num_pods: int, *, is_bare: bool) -> Status:
        """The status of the first plugin of which a limit is exceeded."""
        offset = 0
        for each in self._by_plugin:
            end = offset + len(each.limits)
            mine = sums[offset:end]
            exceeded = [
                total > limit[node] for total, limit in zip(mine, self._limits_of_nodes[offset:end], strict=True)
            ]
            if any(exceeded):
                return each.refuse(Excess(node, exceeded, mine, num_pods, is_bare)).of_plugin(each.plugin)
            offset = end
        raise AssertionError("a node that fits was refused")


def _integers(column: Integers) -> list[int]:
    integers: list[int] = column.tolist()
    return integers


def _sum_by(first: Integers, amounts: Integers) -> Integers:
    """Sums over the victims of every node."""
    sums = np.zeros(len(amounts) + 1, dtype=np.int64)
    np.cumsum(amounts, out=sums[1:])
    return sums[first[1:]] - sums[first[:-1]]
