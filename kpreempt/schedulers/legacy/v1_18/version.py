"""The rules of kube-scheduler 1.18 (v1.18.19), in the order in which a scheduling cycle comes to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import Criterion, usual_criteria
from kpreempt.schedulers.go_sort import sorted_as_before_go_1_19
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.filtering import LegacyError
from kpreempt.schedulers.legacy.base.node_info import PodInfo
from kpreempt.schedulers.legacy.base.resources import Amounts
from kpreempt.schedulers.legacy.base.version import Version, Words
from kpreempt.schedulers.legacy.base.victims import Importance
from kpreempt.schedulers.legacy.v1_18 import preemption
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, filters_of, run_pre_filters
from kpreempt.schedulers.legacy.v1_18.profile import default_plugins
from kpreempt.schedulers.legacy.v1_18.resources import accounting, requests_of
from kpreempt.schedulers.legacy.v1_18.storage import claim_problem
from kpreempt.schedulers.legacy.v1_18.volume_binding import order_assumptions
from kpreempt.verdict import Assumption, AssumptionKind, Code, Eligibility, Status

ALGORITHM = "kube-1.18"


class Version118(Version):
    """1.18: filter plugins whose status says whether evictions may help, budgets that are counted down, start times.

    ``never_preempts`` is the gate NonPreemptingPriority, without which ``preemptionPolicy: Never`` means nothing.
    Without ``stops_at_first`` (``alwaysCheckAllPredicates`` of a Policy file) all plugins tell their reasons.
    """

    algorithm = ALGORITHM
    budget_rule = staticmethod(preemption.count_budgets)
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
        self.plugins = default_plugins(counts_overhead=counts_overhead) if plugins is None else list(plugins)
        self.default_filters = filters_of(self.plugins)
        self.accounting = accounting(counts_overhead=counts_overhead)
        self.stops_at_first = stops_at_first
        self._counts_overhead = counts_overhead
        self._never_preempts = never_preempts

    def requests(self, pod: Pod) -> Amounts:
        """Containers or the largest init container, and the overhead."""
        return requests_of(pod, counts_overhead=self._counts_overhead)

    def check_pod(self, cluster: Cluster, pod: Pod) -> None:
        """Every claim must be there."""
        problem = claim_problem(pod, cluster.persistent_volume_claims)
        if problem:
            raise LegacyError(problem)

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
            return Eligibility(False, preemption.REASON_NEVER)
        return super().eligibility(cluster, pod)

    def is_waiting(self, pod: Pod) -> bool:
        """A pod that the scheduler's cache has on a node while the API server has not: it waits at Permit."""
        return any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)

    def importance(self, now: datetime) -> Importance:
        """Priority, then the earlier start."""
        return preemption.more_important(now)

    def criteria(self, now: datetime) -> Sequence[Criterion]:
        """The latest start comes last."""
        return usual_criteria(now)

    def assumptions_about(self, cluster: Cluster, pod: Pod) -> list[Assumption]:
        """The order of equal volumes, where it decides."""
        return order_assumptions(cluster, pod)

    def assumptions_about_candidates(self, cluster: Cluster, pod: PodInfo, nodes: Sequence[str]) -> list[Assumption]:
        """Nodes where the order of the budgets, which is random in 1.18, decides what counts as a violation."""
        importance = preemption.more_important(cluster.now)
        decided = []
        for node in nodes:
            lower = [info for info in cluster.by_name[node].pods if info.priority < pod.priority]
            if preemption.depends_on_order(sorted_as_before_go_1_19(lower, importance), cluster.budgets):
                decided.append(node)
        if not decided:
            return []
        message = "several cover one pod; 1.18 takes them in a random order, here in that of the input, and it decides"
        where = f"{len(decided)} nodes, {decided[0]} among them" if len(decided) > 1 else f"node {decided[0]}"
        field = "status.disruptionsAllowed"
        return [Assumption("PodDisruptionBudgets", field, f"on {where}, {message}", AssumptionKind.UNCERTAIN)]
