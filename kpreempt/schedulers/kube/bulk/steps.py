"""The steps of choosing victims as evidence, from what the lockstep search has noted down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.bulk.budgets import BudgetUses
from kpreempt.schedulers.kube.bulk.lockstep import Lockstep
from kpreempt.schedulers.kube.bulk.pod_table import Integers, PodTable
from kpreempt.verdict import BudgetUse, Reprieve, Status


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
        self._table = table
        self._search = search
        self._victims = victims
        self._uses = uses
        self._tried = tried
        self._num_others = num_others

    @cached_property
    def _of_budgets(self) -> Callable[[int, int], list[list[BudgetUse]]]:
        return self._uses.by_victim()

    def of_node(self, node: int) -> list[Reprieve]:
        """The steps on a node of the question."""
        begin, end = int(self._search.first[node]), int(self._search.first[node + 1])
        # Budgets were counted on the same node, in another order.
        uses = self._of_budgets(begin, end)
        tried = self._tried[begin:end]
        refusals = self._search.refusals_on(node, self._num_others[node])
        steps = zip(
            self._victims[begin:end].tolist(),
            (tried - begin).tolist(),
            self._uses.violates[tried].tolist(),
            refusals,
            strict=True,
        )
        return [
            _step(self._table.pods[position], uses[place], refusal, violates=violates)
            for position, place, violates, refusal in steps
        ]


def _step(pod: Pod, uses: list[BudgetUse], refusal: Status | None, *, violates: bool) -> Reprieve:
    return Reprieve(
        pod=pod.key,
        priority=pod.priority,
        kept=refusal is None,
        start_time=pod.start,
        violates_budget=violates,
        budgets=uses,
        blocked_by=refusal,
    )
