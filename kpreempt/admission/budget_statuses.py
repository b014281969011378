"""The status of budgets that have none.

It is as the disruption controller would compute it. Departure: where the object that owns a pod is not in the input,
its size is assumed to be the number of its pods, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import failed_status, sync_budget
from kpreempt.controllers.scales import Scales
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kpreempt.verdict import Assumption, AssumptionKind


def with_statuses(cluster: ClusterSnapshot) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster with a status for every budget that has none, and a sentence for each."""
    scales = Scales(cluster)
    waiting = {each.metadata.namespace for each in cluster.pod_disruption_budgets if each.status is None}
    pods: dict[str, list[Pod]] = {namespace: [] for namespace in waiting}
    for pod in cluster.pods:
        if pod.metadata.namespace in pods:
            pods[pod.metadata.namespace].append(pod)
    assumptions: list[Assumption] = []
    budgets = []
    for budget in cluster.pod_disruption_budgets:
        if budget.status is not None:
            budgets.append(budget)
            continue
        status, message, kind = _compute(budget, pods[budget.metadata.namespace], scales)
        budgets.append(msgspec.structs.replace(budget, status=status))
        assumptions.append(Assumption(f"PodDisruptionBudget {budget.key}", "status", message, kind))
    return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets), assumptions


def _compute(
    budget: PodDisruptionBudget, candidates: Sequence[Pod], scales: Scales
) -> tuple[PodDisruptionBudgetStatus, str, AssumptionKind]:
    """The status of a budget, what is said of it, and whether it is sure; ``candidates`` are its namespace's pods."""
    try:
        sync = sync_budget(budget, candidates, scales.scale_of, None)
    except SyncError as error:
        message = (
            f"has no status, and the disruption controller could compute none ({error.message}), so 0 may be disrupted"
        )
        return failed_status(budget), message, AssumptionKind.UNCERTAIN
    status = sync.status
    message = (
        f"has no status; as the disruption controller would compute it: {status.current_healthy} of "
        f"{status.expected_pods} expected pods are ready, {status.desired_healthy} must stay, so "
        f"{status.disruptions_allowed} may be disrupted"
    )
    guessed = [f"{scale.kind} {scale.namespace}/{scale.name}" for scale in sync.scales if scale.is_guessed]
    if guessed:
        message += f" ({', '.join(guessed)} not in the input: counted by pods)"
    return status, message, AssumptionKind.UNCERTAIN if guessed else AssumptionKind.TOLD
