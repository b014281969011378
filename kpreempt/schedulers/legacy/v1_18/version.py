"""The rules of kube-scheduler 1.18 (v1.18.19), in the order in which a scheduling cycle comes to them.

Preemption follows ``core/generic_scheduler.go`` and ``util/utils.go``. A pod that has not started counts as starting at
the moment of each comparison: later than all that have, and of two such pods the one that is compared first is the more
important.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice, permutations
from typing import Self

from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.choice import usual_criteria
from kpreempt.schedulers.go_sort import sorted_as_before_go_1_19
from kpreempt.schedulers.legacy.base.node_info import Amounts, Cluster, PodInfo
from kpreempt.schedulers.legacy.base.policy import Policy
from kpreempt.schedulers.legacy.base.predicates import check_claims
from kpreempt.schedulers.legacy.base.version import Version, Words
from kpreempt.schedulers.legacy.base.victims import Importance, PodWithBudgets, really_taken
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, filters_of, run_pre_filters
from kpreempt.schedulers.legacy.v1_18.node_filters import accounting, requests_of
from kpreempt.schedulers.legacy.v1_18.policy import DIALECT, plugins_of
from kpreempt.schedulers.legacy.v1_18.volume_binding import order_assumptions
from kpreempt.verdict import Assumption, AssumptionKind, Code, Eligibility, Status

REASON_NEVER = "not eligible due to preemptionPolicy=Never."

# All orders of four budgets.
_MAX_ORDERS = 24


def more_important(now: datetime) -> Importance:
    """``MoreImportantPod``: the higher priority, then the earlier start."""

    def is_more_important(one: PodInfo, other: PodInfo) -> bool:
        if one.priority != other.priority:
            return one.priority > other.priority
        if one.start is None and other.start is None:
            return True
        return (one.start or now) < (other.start or now)

    return is_more_important


def count_budgets(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> list[PodWithBudgets]:
    """Which evictions violate a budget (``filterPodsWithPDBViolation``), with what they really take from which.

    Pods that a budget counts as disrupted already are not spared.
    """
    violations = _violations([budgets.selecting(info.pod) for info in pods])
    taken = really_taken(pods, budgets)
    return list(map(PodWithBudgets, pods, violations, taken))


def _violations(covering: Sequence[Sequence[PodDisruptionBudget]]) -> list[bool]:
    """For each pod, given the budgets that cover it, whether its eviction violates one.

    Each pod takes one from its budgets in turn until it comes to one of which nothing is left. That one it violates,
    and does not ask the rest.
    """
    left: dict[str, int] = {}
    violations = []
    for budgets in covering:
        violates = False
        for budget in budgets:
            remaining = left.get(budget.key, budget.allowed)
            if remaining <= 0:
                violates = True
                break
            left[budget.key] = remaining - 1
        violations.append(violates)
    return violations


def depends_on_order(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> bool:
    """Whether another order of the budgets makes other evictions violations; with five and more not all are tried."""
    covering = [budgets.selecting(info.pod) for info in pods]
    shared = list({budget.key: None for each in covering if len(each) > 1 for budget in each})
    as_given = _violations(covering) if shared else []
    for order in islice(permutations(shared), _MAX_ORDERS if shared else 0):
        # A pod under one budget has it alone in any order.
        ordered = [each if len(each) < 2 else sorted(each, key=lambda it: order.index(it.key)) for each in covering]
        if _violations(ordered) != as_given:
            return True
    return False


def assumptions_about_candidates(cluster: Cluster, pod: PodInfo, nodes: Sequence[str]) -> list[Assumption]:
    """Nodes where the order of the budgets, which is random in 1.18, decides what counts as a violation."""
    importance = more_important(cluster.now)
    decided = []
    for node in nodes:
        lower = [info for info in cluster.by_name[node].pods if info.priority < pod.priority]
        if depends_on_order(sorted_as_before_go_1_19(lower, importance), cluster.budgets):
            decided.append(node)
    if not decided:
        return []
    message = "several cover one pod; 1.18 takes them in a random order, here in that of the input, and it decides"
    where = f"{len(decided)} nodes, {decided[0]} among them" if len(decided) > 1 else f"node {decided[0]}"
    field = "status.disruptionsAllowed"
    return [Assumption("PodDisruptionBudgets", field, f"on {where}, {message}", AssumptionKind.UNCERTAIN)]


class Version118(Version):
    """1.18: filter plugins whose status says whether evictions may help, budgets that are counted down, start times.

    ``never_preempts`` is the gate NonPreemptingPriority, without which ``preemptionPolicy: Never`` means nothing.
    Without ``stops_at_first`` (``alwaysCheckAllPredicates`` of a Policy file) all plugins tell their reasons.
    """

    dialect = DIALECT
    check_pod = staticmethod(check_claims)
    budget_rule = staticmethod(count_budgets)
    importance = staticmethod(more_important)
    criteria = staticmethod(usual_criteria)
    # A pod that the scheduler's cache has on a node while the API server has not: it waits at Permit.
    is_waiting = staticmethod(
        lambda pod: any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)
    )
    assumptions_about_candidates = staticmethod(assumptions_about_candidates)
    assumptions_about = staticmethod(order_assumptions)
    words = Words(
        nomination="status.nominatedNodeName",
        preempted="Preempted by {pod} on node {node}",
        reports_failure_first=False,
        event_limit=1024,
    )

    def __init__(
        self,
        plugins: Sequence[FilterPlugin] | None = None,
        *,
        counts_overhead: bool = True,
        never_preempts: bool = False,
        stops_at_first: bool = True,
    ) -> None:
        gates = {**DIALECT.gates, "PodOverhead": counts_overhead}
        self.plugins = plugins_of(None, gates, frozenset()) if plugins is None else list(plugins)
        self.filters = filters_of(self.plugins)
        self.accounting = accounting(counts_overhead=counts_overhead)
        self.stops_at_first = stops_at_first
        self._counts_overhead = counts_overhead
        self._never_preempts = never_preempts

    @classmethod
    def configured(cls, gates: Mapping[str, bool], policy: Policy | None, ignored: frozenset[str]) -> Self:
        """With the plugins that the file's predicates stand for, or those of the default profile."""
        return cls(
            plugins_of(policy, gates, ignored),
            counts_overhead=gates["PodOverhead"],
            never_preempts=gates["NonPreemptingPriority"],
            stops_at_first=policy is None or not policy.always_check_all_predicates,
        )

    def requests(self, pod: Pod) -> Amounts:
        """Containers or the largest init container, and the overhead."""
        return requests_of(pod, counts_overhead=self._counts_overhead)

    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> CycleState:
        return run_pre_filters(self.plugins, pod, cluster)

    def extender_refusal(self, extender: str, reason: str) -> Status:
        """Unschedulable, with the extender's own words if it gives any."""
        return Status(Code.UNSCHEDULABLE, [reason] if reason else [], extender)

    def may_help(self, status: Status) -> bool:
        """All but UnschedulableAndUnresolvable."""
        return status.code != Code.UNSCHEDULABLE_AND_UNRESOLVABLE

    def eligibility(self, cluster: Cluster, pod: PodInfo) -> Eligibility:
        """``preemptionPolicy: Never`` where its gate is on, then as before."""
        if self._never_preempts and pod.pod.spec.preemption_policy == "Never":
            return Eligibility(False, REASON_NEVER)
        return super().eligibility(cluster, pod)


VERSION = Version118
