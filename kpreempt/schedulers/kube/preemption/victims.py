"""The victims on one node (``SelectVictimsOnNode``, ``default_preemption.go``, v1.36.3).

Take every pod that may go off the node: by the usual rules those of lower priority. If the incoming pod still does not
fit, the node is out. Otherwise put the pods back, most important first and those whose eviction violates a budget
before all others, and keep each that leaves room; the rest are the victims.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.answers import checked_status, of_type, readable
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FilterRunner, FrameworkError
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.read_only import read_only_node, read_only_pod
from kpreempt.schedulers.kube.framework.runner import cloned
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex, PodWithBudgets
from kpreempt.schedulers.kube.preemption.importance import is_more_important, sort_by_importance, sorted_as_in_go
from kpreempt.schedulers.kube.preemption.rules import PreemptionRules
from kpreempt.verdict import SUCCESS, Code, Reprieve, Status


class Victims(NamedTuple):
    """The outcome on one node: Success with victims (most important first), or why preemption does not help there."""

    status: Status
    pods: list[Pod]
    num_violations: int
    steps: list[Reprieve]


class WithoutVictims(NamedTuple):
    """The pods of a node that may go, and copies of state and node from which they are gone."""

    potential: list[PodInfo]
    state: CycleState
    node_info: NodeInfo


def without_potential_victims(
    framework: FilterRunner, rules: PreemptionRules, state: CycleState, pod: Pod, node_info: NodeInfo, now: datetime
) -> WithoutVictims | None:
    """Take all pods off the node that may go for ``pod``; ``None`` where there are none. Nothing passed in changes."""
    if rules.overrides("may_evict"):
        return _without_those_that_may_go(framework, rules, state, pod, node_info, now)
    potential = [info for info in node_info.pods if info.priority < pod.priority]
    if rules.overrides("is_eligible_pod"):
        view = read_only_node(node_info)
        potential = [
            info
            for info in potential
            if of_type(bool, rules.is_eligible_pod(pod, read_only_pod(info), view), "is_eligible_pod")
        ]
    return WithoutVictims(potential, *framework.without_pods(state, pod, node_info, potential)) if potential else None


def _without_those_that_may_go(
    framework: FilterRunner, rules: PreemptionRules, state: CycleState, pod: Pod, node_info: NodeInfo, now: datetime
) -> WithoutVictims | None:
    """Where the plugin decides: one after the other, as what is gone may matter to it."""
    state, node_info = cloned(state), node_info.snapshot()
    view = read_only_node(node_info)
    potential = []
    for info in _least_important_first(rules, node_info.pods, now):
        if of_type(bool, rules.may_evict(state, pod, read_only_pod(info), view), "may_evict"):
            potential.append(info)
            node_info.remove_pod(info)
            framework.run_pre_filter_remove_pod(state, pod, info, node_info)
    return WithoutVictims(potential, state, node_info) if potential else None


def select_victims(
    framework: FilterRunner,
    rules: PreemptionRules,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
    budgets: BudgetIndex,
    now: datetime,
) -> Victims:
    """Find the victims on ``node_info``; neither it nor ``state`` is changed."""
    without = without_potential_victims(framework, rules, state, pod, node_info, now)
    if without is None:
        message = rules.no_victims_message(pod, read_only_node(node_info))
        reason = readable(of_type(str, message, "no_victims_message"))
        return Victims(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason]), [], 0, [])
    potential, state, node_info = without
    status = _status(framework, rules, state, pod, node_info, None)
    if not status.is_success:
        return Victims(status, [], 0, [])
    counted = budgets.count(_by_importance(rules, potential, now))
    violating = [each for each in counted if each.violates]
    others = [each for each in counted if not each.violates]
    steps = [_reprieve(framework, rules, state, pod, node_info, each) for each in (*violating, *others)]
    victims = [each.pod_info for each, step in zip((*violating, *others), steps, strict=True) if not step.kept]
    if violating and others:
        victims = _by_importance(rules, victims, now)
    num_violations = sum(step.violates_budget and not step.kept for step in steps)
    return Victims(SUCCESS, [info.pod for info in victims], num_violations, steps)


def _by_importance(rules: PreemptionRules, pods: Sequence[PodInfo], now: datetime) -> list[PodInfo]:
    """The pods, most important first."""
    if not rules.overrides("is_more_important"):
        return sort_by_importance(pods, now)
    return sorted_as_in_go(pods, lambda one, other: _is_more_important(rules, one, other))


def _least_important_first(rules: PreemptionRules, pods: Sequence[PodInfo], now: datetime) -> list[PodInfo]:
    """The pods in the order in which upstream's plugins with rules of their own look at them.

    They sort by "not more important", which of two equal pods holds both ways: so this is not the other order turned
    round where there are more pods than insertion sort is used for.
    """
    if not rules.overrides("is_more_important"):
        return sorted_as_in_go(pods, lambda one, other: not is_more_important(one, other, now))
    return sorted_as_in_go(pods, lambda one, other: not _is_more_important(rules, one, other))


def _is_more_important(rules: PreemptionRules, one: PodInfo, other: PodInfo) -> bool:
    return of_type(bool, rules.is_more_important(read_only_pod(one), read_only_pod(other)), "is_more_important")


def _status(
    framework: FilterRunner,
    rules: PreemptionRules,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
    put_back: PodInfo | None,
) -> Status:
    """What the filters say of the node, and then the plugin that preempts."""
    status = framework.run_filters_with_nominated_pods(state, pod, node_info)
    if status.is_success and rules.overrides("check_fit"):
        beside = None if put_back is None else read_only_pod(put_back)
        said = rules.check_fit(state, pod, read_only_node(node_info), beside)
        status = checked_status(said, "check_fit").of_plugin(rules.name)
    return status


def _reprieve(
    framework: FilterRunner,
    rules: PreemptionRules,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
    candidate: PodWithBudgets,
) -> Reprieve:
    """Put one pod back if the incoming one still fits beside it."""
    info = candidate.pod_info
    node_info.add_pod(info)
    framework.run_pre_filter_add_pod(state, pod, info, node_info)
    try:
        status = _status(framework, rules, state, pod, node_info, info)
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
