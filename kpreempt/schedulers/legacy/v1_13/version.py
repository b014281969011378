"""Preemption as Kubernetes 1.13 does it (``core/generic_scheduler.go`` and ``scheduler.go``, v1.13.12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.choice import (
    FEWEST_VICTIMS,
    FEWEST_VIOLATIONS,
    LOWEST_FIRST_VICTIM,
    SMALLEST_SUM,
)
from kpreempt.schedulers.extender_protocol import V1_13
from kpreempt.schedulers.legacy.base.configuration import CONFIGURATION_GROUP, PRIORITIES, Dialect
from kpreempt.schedulers.legacy.base.node_info import Cluster, PodInfo
from kpreempt.schedulers.legacy.base.policy import SERVICE_AFFINITY
from kpreempt.schedulers.legacy.base.predicates import Metadata, check_claims
from kpreempt.schedulers.legacy.base.version import BY_TAINTS, PredicateVersion, Words
from kpreempt.schedulers.legacy.base.victims import PodWithBudgets
from kpreempt.schedulers.legacy.v1_13 import predicates as rules
from kpreempt.verdict import BudgetUse

DIALECT = Dialect(
    algorithm="kube-1.13",
    gates={"PodPriority": True, BY_TAINTS: True},
    api_versions=(f"{CONFIGURATION_GROUP}/v1alpha1",),
    priorities=PRIORITIES | {"RequestedToCapacityRatioPriority"},
    priority_arguments=("serviceAntiAffinity", "labelPreference", "requestedToCapacityRatioArguments"),
    protocol=V1_13,
)
_TAINTS = "PodToleratesNodeTaints"
_CONDITION = "CheckNodeCondition"
_UNSCHEDULABLE = "CheckNodeUnschedulable"
_NAMES = [each.name for each in rules.PREDICATES]
_BEHIND_TAINTS = _NAMES.index(_TAINTS) + 1


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


class Version113(PredicateVersion):
    """1.13: the first failing predicate decides, budgets count, and nominated pods keep their room."""

    dialect = DIALECT
    accounting = rules.ACCOUNTING
    predicates = rules.PREDICATES
    label_reason = rules.LABELS_NOT_PRESENT
    unresolvable = frozenset(
        (
            rules.SELECTOR_NOT_MATCHED,
            rules.AFFINITY_NOT_MATCHED,
            rules.HOST_NOT_MATCHED,
            rules.TAINTS_NOT_TOLERATED,
            rules.LABELS_NOT_PRESENT,
            rules.NODE_NOT_READY,
            rules.NODE_NETWORK_UNAVAILABLE,
            rules.UNDER_DISK_PRESSURE,
            rules.UNDER_PID_PRESSURE,
            rules.UNDER_MEMORY_PRESSURE,
            rules.NODE_OUT_OF_DISK,
            rules.NODE_UNSCHEDULABLE,
            "node(s) had unknown conditions",
            rules.ZONE_CONFLICT,
            rules.NODE_AFFINITY_CONFLICT,
            "node(s) didn't find available persistent volumes to bind",
        )
    )
    # By default taints stand for conditions, which then no predicate looks at.
    removed: ClassVar = {
        True: frozenset((_CONDITION, "CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure")),
        False: frozenset((_UNSCHEDULABLE,)),
    }
    mandatory: ClassVar = {True: (_UNSCHEDULABLE, _TAINTS), False: (_CONDITION,)}
    # Those of one's own labels and services come behind the taints.
    ordering = (
        *_NAMES[:_BEHIND_TAINTS],
        "PodToleratesNodeNoExecuteTaints",
        "CheckNodeLabelPresence",
        SERVICE_AFFINITY,
        *_NAMES[_BEHIND_TAINTS:],
    )
    check_pod = staticmethod(check_claims)
    budget_rule = staticmethod(mark_violations)
    # Budgets, the first victim's priority, the sum, the count; then any.
    criteria = staticmethod(lambda _: (FEWEST_VIOLATIONS, LOWEST_FIRST_VICTIM, SMALLEST_SUM, FEWEST_VICTIMS))
    assumptions_about = staticmethod(rules.claim_assumptions)
    words = Words("status.nominatedNodeName", "by {pod} on node {node}", reports_failure_first=True)

    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> Metadata:
        return rules.PodMetadata(cluster, pod, self.requests(pod.pod), self.ignored)


VERSION = Version113
