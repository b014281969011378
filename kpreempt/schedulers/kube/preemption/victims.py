"""The victims on one node (``SelectVictimsOnNode``, ``default_preemption.go``, v1.36.3).

Take every pod of lower priority off the node. If the incoming pod still does not fit, the node is out. Otherwise put
the pods back, most important first and those whose eviction violates a budget before all others, and keep each that
leaves room; the rest are the victims.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FilterRunner, FrameworkError
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex, PodWithBudgets
from kpreempt.schedulers.kube.preemption.importance import sort_by_importance
from kpreempt.verdict import SUCCESS, Code, Reprieve, Status

REASON_NO_VICTIMS = "No preemption victims found for incoming pod"


class Victims(NamedTuple):
    """The outcome on one node: Success with victims (most important first), or why preemption does not help there."""

    status: Status
    pods: list[Pod]
    num_violations: int
    steps: list[Reprieve]


def is_preemption_allowed(victim: PodInfo, preemptor: Pod) -> bool:
    """Whether ``victim`` may be evicted for ``preemptor``: only pods of lower priority may."""
    return victim.priority < preemptor.priority


def select_victims(
    framework: FilterRunner, state: CycleState, pod: Pod, node_info: NodeInfo, budgets: BudgetIndex, now: datetime
) -> Victims:
    """Find the victims on ``node_info``; neither it nor ``state`` is changed."""
    potential = [info for info in node_info.pods if is_preemption_allowed(info, pod)]
    if not potential:
        return Victims(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_NO_VICTIMS]), [], 0, [])
    state, node_info = framework.without_pods(state, pod, node_info, potential)
    status = framework.run_filters_with_nominated_pods(state, pod, node_info)
    if not status.is_success:
        return Victims(status, [], 0, [])
    counted = budgets.count(sort_by_importance(potential, now))
    violating = [each for each in counted if each.violates]
    others = [each for each in counted if not each.violates]
    steps = [_reprieve(framework, state, pod, node_info, each) for each in (*violating, *others)]
    victims = [each.pod_info for each, step in zip((*violating, *others), steps, strict=True) if not step.kept]
    if violating and others:
        victims = sort_by_importance(victims, now)
    num_violations = sum(step.violates_budget and not step.kept for step in steps)
    return Victims(SUCCESS, [info.pod for info in victims], num_violations, steps)


def _reprieve(
    framework: FilterRunner, state: CycleState, pod: Pod, node_info: NodeInfo, candidate: PodWithBudgets
) -> Reprieve:
    """Put one pod back if the incoming one still fits beside it."""
    info = candidate.pod_info
    node_info.add_pod(info)
    framework.run_pre_filter_add_pod(state, pod, info, node_info)
    try:
        status = framework.run_filters_with_nominated_pods(state, pod, node_info)
    except FrameworkError as error:
        # To upstream an error here means the same as a refusal.
        status = error.status
    if not status.is_success:
        node_info.remove_pod(info)
        framework.run_pre_filter_remove_pod(state, pod, info, node_info)
    return Reprieve(
        pod=info.key,
        priority=info.priority,
        kept=status.is_success,
        start_time=info.start,
        violates_budget=candidate.violates,
        budgets=candidate.budgets,
        blocked_by=None if status.is_success else status,
    )
