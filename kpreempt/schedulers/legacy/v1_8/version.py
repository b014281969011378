"""Preemption as Kubernetes 1.8 did it first (``core/generic_scheduler.go`` and ``scheduler.go``, v1.8.15).

No budgets, no nominated pods: the node is nominated by an annotation, which keeps the pod from preempting again while
its victims leave, and does nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import FEWEST_VICTIMS, LOWEST_FIRST_VICTIM, SMALLEST_SUM, Criterion
from kpreempt.schedulers.legacy.base.budgets import without_budgets
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.filtering import State
from kpreempt.schedulers.legacy.base.messages import count_reasons
from kpreempt.schedulers.legacy.base.node_info import PodInfo
from kpreempt.schedulers.legacy.base.resources import Amounts, largest_request
from kpreempt.schedulers.legacy.base.version import Version, Words
from kpreempt.schedulers.legacy.v1_8 import predicates
from kpreempt.verdict import Status

# The failures that no eviction mends (``nodesWherePreemptionMightHelp``), by their reasons.
UNRESOLVABLE = frozenset(
    (
        predicates.SELECTOR_NOT_MATCHED,
        predicates.HOST_NOT_MATCHED,
        predicates.TAINTS_NOT_TOLERATED,
        predicates.LABELS_NOT_PRESENT,
        predicates.NODE_NOT_READY,
        predicates.NODE_NETWORK_UNAVAILABLE,
        predicates.NODE_UNSCHEDULABLE,
        "NodeUnknownCondition",
    )
)


def fit_error(_: int, statuses: Mapping[str, Status]) -> str:
    """``No nodes are available that match all of the predicates: REASON (2), OTHER (3).``, sorted as text."""
    parts = sorted(f"{reason} ({count})" for reason, count in count_reasons(statuses.values()).items())
    return f"No nodes are available that match all of the predicates: {', '.join(parts)}."


class Version18(Version):
    """1.8: every predicate runs, priorities alone decide, extenders have the last word."""

    algorithm = "kube-1.8"
    accounting = predicates.ACCOUNTING
    default_filters = predicates.DEFAULT_PREDICATES
    stops_at_first = False
    counts_nominated = False
    budget_rule = staticmethod(without_budgets)
    asks_extenders_after_choice = True
    clears_nominations = False
    message = staticmethod(fit_error)
    words = Words("annotation NominatedNodeName", "by {pod} on node {node}", reports_failure_first=True)

    def nominated_node(self, pod: Pod) -> str:
        """What the annotation says."""
        annotations = pod.metadata.annotations
        return annotations.nominated_node_name if annotations else ""

    def requests(self, pod: Pod) -> Amounts:
        """All containers, or an init container that asks for more."""
        return largest_request(pod, predicates.is_counted)

    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> State:
        return predicates.metadata(cluster, pod)

    def may_help(self, status: Status) -> bool:
        """Whether none of the reasons is on the list."""
        return UNRESOLVABLE.isdisjoint(status.reasons)

    def criteria(self, now: datetime) -> Sequence[Criterion]:
        """The highest victim's priority, the sum, the count; then any."""
        return LOWEST_FIRST_VICTIM, SMALLEST_SUM, FEWEST_VICTIMS
