"""The steps of choosing victims as evidence, from what the lockstep search has noted down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpreempt.schedulers.kube.bulk.budgets import BudgetUses
from kpreempt.schedulers.kube.bulk.lockstep import Lockstep
from kpreempt.schedulers.kube.bulk.pod_table import Integers, PodTable
from kpreempt.verdict import Reprieve


class StepsOfNodes:
    """Makes the steps on one node, in the order in which they were taken.

    ``victims`` are those of ``search``, and ``num_others`` says how many pods stay on each node in any case; ``tried``
    gives for each victim its index in the order in which budgets were counted.
    """

    def __init__(
        self,
        table: PodTable,
        search: Lockstep,
        victims: Integers,
        uses: BudgetUses,
        tried: Integers,
        num_others: Sequence[int],
    ) -> None:
        self._search = search
        self._num_others = num_others
        self._pods = [table.pods[position] for position in victims.tolist()]
        self._uses = uses.by_victim()
        self._counted = tried.tolist()
        self._violates = uses.violates[tried].tolist()
        self._kept = search.kept.tolist()
        self._kept_before = search.kept_before.tolist()
        self._first = np.asarray(search.first).tolist()

    def of_node(self, node: int) -> list[Reprieve]:
        """The steps on a node of the question."""
        begin, end = self._first[node], self._first[node + 1]
        return [self._step(index, self._num_others[node]) for index in range(begin, end)]

    def _step(self, index: int, num_others: int) -> Reprieve:
        pod, is_kept = self._pods[index], self._kept[index]
        num_pods = num_others + self._kept_before[index] + 1
        return Reprieve(
            pod=pod.key,
            priority=pod.priority,
            kept=is_kept,
            start_time=pod.start,
            violates_budget=self._violates[index],
            budgets=self._uses(self._counted[index]),
            blocked_by=None if is_kept else self._search.refusal_with(index, num_pods),
        )
