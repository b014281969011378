"""Preemption as Kubernetes 1.8 did it first (``core/generic_scheduler.go`` and ``scheduler.go``, v1.8.15).

No budgets, no nominated pods: the node is nominated by an annotation, which keeps the pod from preempting again while
its victims leave, and does nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import FEWEST_VICTIMS, LOWEST_FIRST_VICTIM, SMALLEST_SUM
from kpreempt.schedulers.extender_protocol import V1_8
from kpreempt.schedulers.legacy.base.configuration import PRIORITIES, Dialect
from kpreempt.schedulers.legacy.base.node_info import Cluster, PodInfo
from kpreempt.schedulers.legacy.base.predicates import Metadata
from kpreempt.schedulers.legacy.base.version import BY_TAINTS, PredicateVersion, Words, count_reasons
from kpreempt.schedulers.legacy.base.victims import without_budgets
from kpreempt.schedulers.legacy.v1_8 import predicates as rules
from kpreempt.verdict import Status

DIALECT = Dialect(
    algorithm="kube-1.8",
    # PodPriority was off by default, and with it preemption; to ask for this version is to turn it on.
    gates={"PodPriority": True, BY_TAINTS: False},
    assumed_gates={"PodPriority": "it is assumed to be on; by default it is off in 1.8, and nobody is preempted"},
    api_versions=("componentconfig/v1alpha1",),
    priorities=PRIORITIES,
    priority_arguments=("serviceAntiAffinity", "labelPreference"),
    extender_weight_always=True,
    has_preempt_verb=False,
    folds_case=False,
    protocol=V1_8,
)
_CONDITION = "CheckNodeCondition"


def fit_error(_: int, statuses: Mapping[str, Status]) -> str:
    """``No nodes are available that match all of the predicates: REASON (2), OTHER (3).``, sorted as text."""
    parts = sorted(f"{reason} ({count})" for reason, count in count_reasons(statuses.values()).items())
    return f"No nodes are available that match all of the predicates: {', '.join(parts)}."


class Version18(PredicateVersion):
    """1.8: every predicate runs, priorities alone decide, extenders have the last word."""

    dialect = DIALECT
    accounting = rules.ACCOUNTING
    predicates = rules.PREDICATES
    label_reason = rules.LABELS_NOT_PRESENT
    unresolvable = frozenset(
        (
            rules.SELECTOR_NOT_MATCHED,
            rules.HOST_NOT_MATCHED,
            rules.TAINTS_NOT_TOLERATED,
            rules.LABELS_NOT_PRESENT,
            rules.NODE_NOT_READY,
            rules.NODE_NETWORK_UNAVAILABLE,
            rules.NODE_UNSCHEDULABLE,
            "NodeUnknownCondition",
        )
    )
    removed: ClassVar = {True: frozenset((_CONDITION,)), False: frozenset()}
    mandatory: ClassVar = {True: ("PodToleratesNodeTaints",), False: (_CONDITION,)}
    stops_at_first = False
    counts_nominated = False
    budget_rule = staticmethod(without_budgets)
    asks_extenders_after_choice = True
    clears_nominations = False
    # The highest victim's priority, the sum, the count; then any.
    criteria = staticmethod(lambda _: (LOWEST_FIRST_VICTIM, SMALLEST_SUM, FEWEST_VICTIMS))
    message = staticmethod(fit_error)
    words = Words("annotation NominatedNodeName", "by {pod} on node {node}", reports_failure_first=True)

    def nominated_node(self, pod: Pod) -> str:
        """What the annotation says."""
        annotations = pod.metadata.annotations
        return annotations.nominated_node_name if annotations else ""

    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> Metadata:
        return rules.PodMetadata(cluster, pod, self.requests(pod.pod), self.ignored)


VERSION = Version18
