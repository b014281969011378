"""Victim selection on one node (``SelectVictimsOnNode``, ``default_preemption.go``, v1.36.3).

Remove every evictable pod from the node: by default, those of lower priority. If the incoming pod still does not fit,
the node is not a candidate. Otherwise put the pods back, the most important first and those whose eviction violates a
budget before all others, and reprieve each pod with which the incoming one still fits; the rest are the victims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.equal_pods import Outcomes, Steps
from kpreempt.schedulers.go_sort import sorted_as_in_go
from kpreempt.schedulers.kube.framework.answers import checked_status, of_type, readable
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FrameworkError, PluginError, Victims
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.read_only import read_only_node, read_only_pod
from kpreempt.schedulers.kube.framework.runner import Framework, cloned
from kpreempt.schedulers.kube.preemption.importance import (
    BudgetIndex,
    PodWithBudgets,
    have_equal_rank,
    is_more_important,
    sort_by_importance,
)
from kpreempt.schedulers.kube.preemption.rules import PreemptionRules
from kpreempt.schedulers.kube.preemption.ties import ReprieveStep, allowed_by, distinguished_by, follow_all, node_ties
from kpreempt.verdict import SUCCESS, Code, Reprieve, Status


class WithoutVictims(NamedTuple):
    """The evictable pods of a node, and copies of state and node without them."""

    potential: list[PodInfo]
    state: CycleState
    node_info: NodeInfo


def select_victims(
    framework: Framework,
    rules: PreemptionRules,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
    budgets: BudgetIndex,
    now: datetime,
    orders: Steps | None,
) -> Victims:
    """Find the victims on ``node_info``; neither it nor ``state`` is changed.

    If the order of equal pods is unknown, ``orders`` has the steps that may be used to follow all orders, and the
    victims are those of the likely order.
    """
    without = without_potential_victims(framework, rules, state, pod, node_info, now)
    if without is None:
        reason = readable(of_type(str, rules.no_victims_message(pod, read_only_node(node_info)), "no_victims_message"))
        return Victims(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason]), [], 0, [])
    behavior = rules.handle.behavior
    potential, state, node_info = without
    listed = {info.key: place for place, info in enumerate(potential)} if behavior.reads_start_times_once else None
    status = _status(framework, rules, state, pod, node_info, None)
    if not status.is_success:
        return Victims(status, [], 0, [])
    counted = budgets.count(_by_importance(rules, potential, now, orders, listed))
    violating = [each for each in counted if each.violates]
    others = [each for each in counted if not each.violates]
    steps = [_reprieve(framework, rules, state, pod, node_info, each) for each in (*violating, *others)]
    victims = [each.pod_info for each, step in zip((*violating, *others), steps, strict=True) if not step.is_reprieved]
    if violating and others and behavior.sorts_victims_again:
        # Sorting again would reverse pods without a start time again.
        gone = {info.key for info in victims}
        in_order = [each.pod_info for each in counted if each.pod_info.key in gone]
        victims = in_order if orders is not None else _by_importance(rules, victims, now, orders, listed)
    num_violations = sum(step.violates_budget and not step.is_reprieved for step in steps)
    outcomes = None
    if orders is not None:
        gone = {info.key for info in victims}
        ordered_steps = [ReprieveStep(each, each.pod_info.key not in gone) for each in counted]
        outcomes = _in_other_orders(framework, rules, without, pod, ordered_steps, budgets, num_violations, orders)
    depends_on_budget_order = any(each.has_unchecked_budgets for each in counted)
    return Victims(SUCCESS, [info.pod for info in victims], num_violations, steps, outcomes, depends_on_budget_order)


def without_potential_victims(
    framework: Framework, rules: PreemptionRules, state: CycleState, pod: Pod, node_info: NodeInfo, now: datetime
) -> WithoutVictims | None:
    """Remove all pods that may be evicted for ``pod``; ``None`` if there are none. Arguments are not changed."""
    if rules.overrides("may_evict"):
        # If the plugin decides, pods are removed one by one, because earlier removals may affect its decision.
        state, node_info = cloned(state), node_info.snapshot()
        view = read_only_node(node_info)
        potential = []
        for info in _by_rising_importance(rules, node_info.pods, now):
            if of_type(bool, rules.may_evict(state, pod, read_only_pod(info), view), "may_evict"):
                potential.append(info)
                node_info.remove_pod(info)
                framework.run_pre_filter_remove_pod(state, pod, info, node_info)
        return WithoutVictims(potential, state, node_info) if potential else None
    potential = [info for info in node_info.pods if info.priority < pod.priority]
    if rules.overrides("is_eligible_pod"):
        view = read_only_node(node_info)
        potential = [
            info
            for info in potential
            if of_type(bool, rules.is_eligible_pod(pod, read_only_pod(info), view), "is_eligible_pod")
        ]
    return WithoutVictims(potential, *framework.without_pods(state, pod, node_info, potential)) if potential else None


def _by_importance(
    rules: PreemptionRules,
    pods: Sequence[PodInfo],
    now: datetime,
    orders: Steps | None,
    listed: Mapping[str, int] | None,
) -> list[PodInfo]:
    """Sort the pods, most important first; ``listed`` has their positions on the node if start times are read once."""
    if not rules.overrides("is_more_important"):
        return sort_by_importance(
            pods, now, has_scheduler_order=orders is None, reads_starts_once=listed is not None, listed=listed
        )
    return sorted_as_in_go(pods, lambda one, other: _is_more_important(rules, one, other))


def _status(
    framework: Framework,
    rules: PreemptionRules,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
    put_back: PodInfo | None,
) -> Status:
    """Return the filters' status for the node, and then the preempting plugin's."""
    status = framework.run_filters_with_nominated_pods(state, pod, node_info)
    if status.is_success and rules.overrides("check_fit"):
        added = None if put_back is None else read_only_pod(put_back)
        result = rules.check_fit(state, pod, read_only_node(node_info), added)
        status = checked_status(result, "check_fit").of_plugin(rules.name)
    return status


def _reprieve(
    framework: Framework,
    rules: PreemptionRules,
    state: CycleState,
    pod: Pod,
    node_info: NodeInfo,
    candidate: PodWithBudgets,
) -> Reprieve:
    """Put one pod back if the incoming pod still fits with it."""
    info = candidate.pod_info
    node_info.add_pod(info)
    framework.run_pre_filter_add_pod(state, pod, info, node_info)
    try:
        status = _status(framework, rules, state, pod, node_info, info)
    except FrameworkError as error:
        # Upstream treats an error here like a rejection.
        status = error.status
    if not status.is_success:
        node_info.remove_pod(info)
        framework.run_pre_filter_remove_pod(state, pod, info, node_info)
    return Reprieve(
        pod=info.key,
        priority=info.priority,
        is_reprieved=status.is_success,
        start_time=info.start,
        violates_budget=candidate.violates,
        budgets=candidate.budgets,
        blocked_by=None if status.is_success else status,
    )


def _in_other_orders(
    framework: Framework,
    rules: PreemptionRules,
    without: WithoutVictims,
    pod: Pod,
    ordered_steps: Sequence[ReprieveStep],
    budgets: BudgetIndex,
    num_violations: int,
    orders: Steps,
) -> Outcomes[Pod] | None:
    """Return what every order of equal pods leads to; ``None`` if that is always the same."""
    is_tied = _is_tied(rules) if rules.overrides("is_more_important") else have_equal_rank
    only_uses_resources = not rules.overrides("check_fit") and not framework.has_out_of_tree_plugins
    is_alike = distinguished_by(() if framework.has_out_of_tree_plugins else without.state.skip_filter_plugins)
    found = node_ties(ordered_steps, budgets, is_tied, is_alike, only_uses_resources=only_uses_resources)
    if found is None:
        return None
    if not found.is_open:
        outcomes = found.likely_outcome(num_violations)
    else:
        trial = _Trial(
            framework, rules, without, pod, [each.counted.pod_info for each in ordered_steps if each.is_reprieved]
        )
        try:
            outcomes = follow_all(found, allowed_by(budgets, ordered_steps), trial.fits, orders)
        except (FrameworkError, PluginError):
            # The node would not be a candidate in such an order; only the likely order is known.
            return found.likely_outcome(num_violations)._replace(is_exact=False).map(_pod_of)
    # Pods are checked one by one, in an order that is also unknown.
    if rules.overrides("may_evict"):
        outcomes = outcomes._replace(is_exact=False)
    return None if outcomes.is_certain else outcomes.map(_pod_of)


def _pod_of(info: PodInfo) -> Pod:
    return info.pod


class _Trial:
    """A node without its potential victims, to which various sets of them are added back.

    It starts with the node and the state as the steps have left them, and with the pods that are ``back`` there.
    """

    def __init__(
        self,
        framework: Framework,
        rules: PreemptionRules,
        without: WithoutVictims,
        pod: Pod,
        back: Sequence[PodInfo],
    ) -> None:
        self._framework, self._rules, self._pod = framework, rules, pod
        _, self._state, self._node_info = without
        self._back = {info.key: info for info in back}

    def fits(self, staying: Sequence[PodInfo], info: PodInfo) -> bool:
        """Return whether the incoming pod fits with ``info`` and the pods in ``staying`` back on the node."""
        requested = {each.key: each for each in (*staying, info)}
        for key in [key for key in self._back if key not in requested]:
            gone = self._back.pop(key)
            self._node_info.remove_pod(gone)
            self._framework.run_pre_filter_remove_pod(self._state, self._pod, gone, self._node_info)
        for key, each in requested.items():
            if key not in self._back:
                self._back[key] = each
                self._node_info.add_pod(each)
                self._framework.run_pre_filter_add_pod(self._state, self._pod, each, self._node_info)
        try:
            return _status(self._framework, self._rules, self._state, self._pod, self._node_info, info).is_success
        except FrameworkError:
            return False


def _by_rising_importance(rules: PreemptionRules, pods: Sequence[PodInfo], now: datetime) -> list[PodInfo]:
    """Sort the pods in the order in which upstream's plugins with custom rules visit them.

    They sort by "not more important", which is true both ways for equal pods. So with more pods than insertion sort
    handles, this is not the reverse of the other order.
    """
    if not rules.overrides("is_more_important"):
        return sorted_as_in_go(pods, lambda one, other: not is_more_important(one, other, now))
    return sorted_as_in_go(pods, lambda one, other: not _is_more_important(rules, one, other))


def _is_tied(rules: PreemptionRules) -> Callable[[PodInfo, PodInfo], bool]:
    """Return a check whether a plugin's own rule considers neither of two pods, or both, more important."""
    return lambda one, other: _is_more_important(rules, one, other) == _is_more_important(rules, other, one)


def _is_more_important(rules: PreemptionRules, one: PodInfo, other: PodInfo) -> bool:
    return of_type(bool, rules.is_more_important(read_only_pod(one), read_only_pod(other)), "is_more_important")
