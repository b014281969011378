"""The dry run on one node, and the choice between nodes (``core/generic_scheduler.go`` of v1.8.15, v1.13.12, v1.18.19).

``selectVictimsOnNode``: take every pod of lower priority off a copy of the node. If the pod does not fit then, the node
is out. Otherwise put the pods back, those whose eviction violates a budget first, each part most important first; what
leaves no room goes again and becomes a victim. A node without victims stays a candidate. Whether a budget makes a
pod's eviction a violation differs between versions (``BudgetRule``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kpreempt.schedulers.budgets import SelectingBudgets, taken_in_turn
from kpreempt.schedulers.choice import FEWEST_VICTIMS, CandidateVictims, Criterion, select_nodes
from kpreempt.schedulers.go_sort import sorted_as_before_go_1_19
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.predicates import FilterRun, LegacyError, State
from kpreempt.verdict import BudgetUse, Code, Reprieve, Selection, Status

# Whether the first pod is put back before the second.
Importance = Callable[[PodInfo, PodInfo], bool]


class Victims(NamedTuple):
    """The victims on a node in the order in which they were found, and how many of them violate a budget."""

    pods: list[PodInfo]
    num_violations: int
    steps: list[Reprieve]
    # All that were put back, in that order.
    tried: Sequence[PodInfo] = ()


class DryRun(NamedTuple):
    """What the dry runs of one version share: the filters, and who goes first."""

    fits: FilterRun
    is_more_important: Importance
    rule: BudgetRule
    budgets: SelectingBudgets

    def select_victims(self, state: State, node_info: NodeInfo) -> Victims | Status:
        """The victims on the node, or why preemption does not help there; nothing that is passed in is changed."""
        state, node_info = state.clone(), node_info.clone()
        potential = [info for info in node_info.pods if info.priority < self.fits.pod.priority]
        for info in potential:
            node_info.remove_pod(info)
            state.remove_pod(info, node_info)
        status = self._status(state, node_info)
        if not status.is_success:
            return status
        ordered = put_back_order(sorted_as_before_go_1_19(potential, self.is_more_important), self.rule, self.budgets)
        steps = [self._reprieve(state, node_info, each) for each in ordered]
        return Victims(
            [each.pod_info for each, step in zip(ordered, steps, strict=True) if not step.kept],
            sum(step.violates_budget and not step.kept for step in steps),
            steps,
            [each.pod_info for each in ordered],
        )

    def _reprieve(self, state: State, node_info: NodeInfo, each: PodWithBudgets) -> Reprieve:
        info = each.pod_info
        node_info.add_pod(info)
        state.add_pod(info, node_info)
        status = self._status(state, node_info)
        if not status.is_success:
            node_info.remove_pod(info)
            state.remove_pod(info, node_info)
        return Reprieve(
            pod=info.key,
            priority=info.priority,
            kept=status.is_success,
            start_time=info.start,
            violates_budget=each.violates,
            budgets=each.budgets,
            blocked_by=None if status.is_success else status,
        )

    def _status(self, state: State, node_info: NodeInfo) -> Status:
        """What the filters say; to a dry run an error means the same as a refusal."""
        try:
            return self.fits(state, node_info)
        except LegacyError as error:
            return Status(Code.ERROR, [str(error)])


def put_back_order(pods: list[PodInfo], rule: BudgetRule, budgets: SelectingBudgets) -> list[PodWithBudgets]:
    """Pods that come most important first, in the order in which they are put back."""
    counted = rule(pods, budgets)
    return [*(each for each in counted if each.violates), *(each for each in counted if not each.violates)]


def choose(candidates: Mapping[str, Victims], criteria: Sequence[Criterion]) -> Selection:
    """The choice by a version's rules (``pickOneNodeForPreemption``); a candidate without victims wins at once."""
    if any(not victims.pods for victims in candidates.values()):
        criteria = [FEWEST_VICTIMS]
    victims_of = {
        node: CandidateVictims([info.pod for info in victims.pods], victims.num_violations)
        for node, victims in candidates.items()
    }
    return select_nodes(victims_of, criteria)


class PodWithBudgets(NamedTuple):
    """A pod that may be evicted, whether that would violate a budget, and what it takes from which."""

    pod_info: PodInfo
    violates: bool
    budgets: list[BudgetUse]


# Marks the pods, which come most important first, whose eviction would violate a budget.
BudgetRule = Callable[[Sequence[PodInfo], SelectingBudgets], list[PodWithBudgets]]


def without_budgets(pods: Sequence[PodInfo], _: SelectingBudgets) -> list[PodWithBudgets]:
    """The rule of a version that asks no budget."""
    return [PodWithBudgets(info, False, []) for info in pods]


def really_taken(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> list[list[BudgetUse]]:
    """What each eviction in turn takes from the pod's budgets, whatever the scheduler makes of that."""
    return taken_in_turn(budgets.selecting(info.pod) for info in pods)
