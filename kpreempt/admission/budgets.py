"""The status of PodDisruptionBudgets that no controller has seen yet.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/disruption/disruption.go`` (``trySync``). Departure: where the
object that owns a pod is not in the input, its size is taken to be the number of its pods, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.admission.scales import ScaleError, Scales
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kpreempt.verdict import Assumption


def fill_budget_statuses(cluster: ClusterSnapshot) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster with a status for every budget that has none, and a sentence for each.

    The very same cluster comes back where all budgets have one.
    """
    if all(budget.status is not None for budget in cluster.pod_disruption_budgets):
        return cluster, []
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
        status, message = _compute(budget, pods[budget.metadata.namespace], scales)
        budgets.append(msgspec.structs.replace(budget, status=status))
        assumptions.append(Assumption(f"PodDisruptionBudget {budget.key}", "status", message))
    return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets), assumptions


def _compute(
    budget: PodDisruptionBudget, candidates: Sequence[Pod], scales: Scales
) -> tuple[PodDisruptionBudgetStatus, str]:
    """The status of a budget, and what is said of it; ``candidates`` are the pods of its namespace."""
    selector = budget.spec.selector
    if selector is not None and not selector.is_valid():
        return _failed("its selector is invalid")
    pods = [pod for pod in candidates if selector is not None and selector.matches(pod.metadata.labels)]
    try:
        expected, desired, guessed = _expected_and_desired(budget, pods, scales)
    except ScaleError as error:
        return _failed(str(error))
    healthy = sum(1 for pod in pods if pod.metadata.deletion_timestamp is None and _is_ready(pod))
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status = PodDisruptionBudgetStatus(
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        observed_generation=budget.metadata.generation,
    )
    message = (
        f"has no status; as the disruption controller would compute it: {healthy} of {expected} expected pods are "
        f"ready, {desired} must stay, so {allowed} may be disrupted"
    )
    if guessed:
        message += f" ({', '.join(guessed)} not in the input: counted by pods)"
    return status, message


def _failed(reason: str) -> tuple[PodDisruptionBudgetStatus, str]:
    message = f"has no status, and the disruption controller could compute none ({reason}), so 0 may be disrupted"
    return PodDisruptionBudgetStatus(), message


def _expected_and_desired(
    budget: PodDisruptionBudget, pods: Sequence[Pod], scales: Scales
) -> tuple[int, int, list[str]]:
    """How many pods there should be, how many must stay, and the owners whose size was guessed."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        expected, guessed = scales.expected(pods)
        return expected, max(expected - _scaled(spec.max_unavailable, expected), 0), guessed
    if isinstance(spec.min_available, str):
        expected, guessed = scales.expected(pods)
        return expected, _scaled(spec.min_available, expected), guessed
    if spec.min_available is not None:
        return len(pods), spec.min_available, []
    return 0, 0, []


def _scaled(amount: int | str, total: int) -> int:
    """A number as it is, or a percentage of ``total`` rounded up."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    if digits == amount or not digits.removeprefix("-").removeprefix("+").isdecimal() or not digits.isascii():
        raise ScaleError(f'"{amount}" is not a percentage')
    return -(-int(digits) * total // 100)


def _is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)
