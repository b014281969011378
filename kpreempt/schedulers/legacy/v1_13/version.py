"""Preemption as Kubernetes 1.13 does it (``core/generic_scheduler.go`` and ``scheduler.go``, v1.13.12)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kpreempt.model.pod import Pod
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.choice import (
    FEWEST_VICTIMS,
    FEWEST_VIOLATIONS,
    LOWEST_FIRST_VICTIM,
    SMALLEST_SUM,
    Criterion,
)
from kpreempt.schedulers.legacy.base.budgets import PodWithBudgets
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.filtering import State
from kpreempt.schedulers.legacy.base.node_info import PodInfo
from kpreempt.schedulers.legacy.base.resources import Amounts, largest_request
from kpreempt.schedulers.legacy.base.version import Version, Words
from kpreempt.schedulers.legacy.v1_13 import affinity, predicates, volumes
from kpreempt.verdict import Assumption, BudgetUse, Status

# The failures that no eviction mends (``nodesWherePreemptionMightHelp``), by their reasons.
UNRESOLVABLE = frozenset(
    (
        predicates.SELECTOR_NOT_MATCHED,
        affinity.AFFINITY_NOT_MATCHED,
        predicates.HOST_NOT_MATCHED,
        predicates.TAINTS_NOT_TOLERATED,
        predicates.LABELS_NOT_PRESENT,
        predicates.NODE_NOT_READY,
        predicates.NODE_NETWORK_UNAVAILABLE,
        predicates.UNDER_DISK_PRESSURE,
        predicates.UNDER_PID_PRESSURE,
        predicates.UNDER_MEMORY_PRESSURE,
        predicates.NODE_OUT_OF_DISK,
        predicates.NODE_UNSCHEDULABLE,
        "node(s) had unknown conditions",
        volumes.ZONE_CONFLICT,
        volumes.NODE_AFFINITY_CONFLICT,
        "node(s) didn't find available persistent volumes to bind",
    )
)


def mark_violations(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> list[PodWithBudgets]:
    """Which evictions violate a budget (``filterPodsWithPDBViolation``): where one of the pod's allows none now.

    Nothing is counted: a budget that allows one disruption is violated by no number of them.
    """
    marked = []
    for info in pods:
        matching = budgets.selecting(info.pod)
        uses = [BudgetUse(budget.key, budget.allowed, budget.allowed - 1) for budget in matching]
        marked.append(PodWithBudgets(info, any(use.allowed <= 0 for use in uses), uses))
    return marked


class Version113(Version):
    """1.13: the first failing predicate decides, budgets count, and nominated pods keep their room."""

    algorithm = "kube-1.13"
    accounting = predicates.ACCOUNTING
    default_filters = predicates.default_predicates()
    budget_rule = staticmethod(mark_violations)
    words = Words("status.nominatedNodeName", "by {pod} on node {node}", reports_failure_first=True)
    # Resources that extenders look after, and no predicate.
    ignored_resources: frozenset[str] = frozenset()

    def requests(self, pod: Pod) -> Amounts:
        """All containers, or an init container that asks for more."""
        return largest_request(pod, predicates.is_counted)

    def check_pod(self, cluster: Cluster, pod: Pod) -> None:
        """The pod's claims are all there."""
        volumes.check_claims(cluster, pod)

    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> State:
        return predicates.metadata(cluster, pod, self.ignored_resources)

    def may_help(self, status: Status) -> bool:
        """Whether none of the reasons is on the list."""
        return UNRESOLVABLE.isdisjoint(status.reasons)

    def criteria(self, now: datetime) -> Sequence[Criterion]:
        """Budgets, the first victim's priority, the sum, the count; then any."""
        return FEWEST_VIOLATIONS, LOWEST_FIRST_VICTIM, SMALLEST_SUM, FEWEST_VICTIMS

    def assumptions_about(self, cluster: Cluster, pod: Pod) -> list[Assumption]:
        """Claims for which a volume is assumed to be found."""
        return volumes.claim_assumptions(cluster, pod)
