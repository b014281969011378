"""What a reader needs to know of the victims of a candidate: owner, start, grace period, budgets."""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.model.meta import controller_name
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex
from kpreempt.verdict import Candidate, Victim


def victims_by_node(
    candidates: Iterable[Candidate], cluster: ClusterState, before: SelectingBudgets | None = None
) -> dict[str, list[Victim]]:
    """Each candidate's victims, most important first, with what their evictions really take from the budgets.

    ``before`` are budgets of which it is known already what they select.
    """
    budgets = BudgetIndex(cluster.cluster.pod_disruption_budgets, before)
    return {candidate.node: _victims_of(candidate, cluster, budgets) for candidate in candidates}


def _victims_of(candidate: Candidate, cluster: ClusterState, budgets: BudgetIndex) -> list[Victim]:
    on_node = {info.key: info for info in cluster.by_name[candidate.node].pods}
    infos = [on_node[key] for key in candidate.victims]
    return [
        Victim(
            pod=counted.pod_info.key,
            priority=counted.pod_info.priority,
            owner=controller_name(counted.pod_info.pod.metadata),
            start_time=counted.pod_info.start,
            grace_period_seconds=counted.pod_info.pod.spec.grace_seconds,
            terminating=counted.pod_info.pod.metadata.deletion_timestamp is not None,
            budgets=counted.budgets,
        )
        for counted in budgets.count(infos)
    ]
