"""The status of budgets that have none.

It is as the disruption controller would compute it. Departure: where the object that owns a pod is not in the input,
its size is assumed to be the number of its pods, and that is said.
"""

from __future__ import annotations

import msgspec

from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import Candidates, Selected, failed_status, sync_budget
from kpreempt.controllers.scales import Scales
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kpreempt.verdict import Assumption, AssumptionKind


def with_statuses(cluster: ClusterSnapshot) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster with a status for every budget that has none, and a sentence for each."""
    scales = Scales(cluster)
    candidates = Candidates(cluster.pods)
    assumptions: list[Assumption] = []
    budgets = []
    for budget in cluster.pod_disruption_budgets:
        if budget.status is not None:
            budgets.append(budget)
            continue
        status, message, kind = _compute(budget, candidates.of(budget), scales)
        budgets.append(msgspec.structs.replace(budget, status=status))
        assumptions.append(Assumption(f"PodDisruptionBudget {budget.key}", "status", message, kind))
    return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets), assumptions


def _compute(
    budget: PodDisruptionBudget, selected: Selected, scales: Scales
) -> tuple[PodDisruptionBudgetStatus, str, AssumptionKind]:
    """The status of a budget, what is said of it, and whether it is sure; and the pods that it ``selected``."""
    try:
        sync = sync_budget(budget, selected, scales.scale_of, None)
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
