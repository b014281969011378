"""The API server's response to an eviction, and the effect on the PodDisruptionBudgets it checks.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/registry/core/pod/storage/eviction.go`` (``Create``, ``checkAndDecrement``),
``pkg/controller/disruption/disruption.go`` (``updatePdbStatus``, ``failSafe``) and the helpers of
``pkg/apis/policy/poddisruptionbudget`` for the condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from kpreempt.controllers.actions import SyncError, is_ready
from kpreempt.eviction.records import (
    ACCEPTED,
    ALLOWED_CONDITION,
    DEFAULT_RULES,
    TOO_MANY_REQUESTS,
    Answer,
    BudgetCondition,
    Cause,
    Details,
    EvictionRejectedError,
    EvictionRules,
    StoredBudget,
    with_condition,
)
from kpreempt.eviction.selectors import problem_of
from kpreempt.model.pod import TERMINAL_PHASES, Pod
from kpreempt.model.policy import PodDisruptionBudgetStatus

MAX_DISRUPTED_PODS = 2000
CAUSE = "DisruptionBudget"
SEVERAL_BUDGETS = Answer(
    500, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
_SYNC_FAILED = "SyncFailed"


def answer_eviction(
    name: str, pod: Pod | None, budgets: Iterable[StoredBudget], now: datetime, rules: EvictionRules = DEFAULT_RULES
) -> Answer:
    """Return the response to the eviction of the pod ``name``; ``pod`` is ``None`` if it does not exist."""
    if pod is None:
        return not_found(name)
    if ignores_budgets(pod):
        return ACCEPTED
    # A name identifies only one budget.
    own = budgets_of(pod, {each.budget.key: each for each in budgets}.values())
    if len(own) > 1:
        return SEVERAL_BUDGETS
    try:
        if own and not always_allows_unhealthy(pod, own[0]):
            granted(own[0], name, now, rules)
    except EvictionRejectedError as rejection:
        return rejection.answer
    return ACCEPTED


def ignores_budgets(pod: Pod) -> bool:
    """Return whether the pod is evicted regardless of budgets: terminating, finished or pending (``canIgnorePDB``)."""
    is_over = pod.status.phase in TERMINAL_PHASES or pod.status.phase == "Pending"
    return is_over or pod.metadata.deletion_timestamp is not None


def not_found(name: str) -> Answer:
    """Return the rejection for a pod that does not exist."""
    return Answer(404, "NotFound", f'pods "{name}" not found', Details(name=name, kind="pods"))


def being_terminated(namespace: str, name: str) -> Answer:
    """Return the rejection for every eviction in a terminating namespace."""
    message = (
        f'pods "{name}" is forbidden: unable to create new content in namespace {namespace} '
        "because it is being terminated"
    )
    cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
    return Answer(403, "Forbidden", message, Details(name=name, kind="pods", causes=(cause,)))


def is_of_terminating_namespace(answer: Answer) -> bool:
    """Return whether a rejection is that of ``being_terminated``."""
    causes = answer.details.causes if answer.details is not None else ()
    return any(each.reason == "NamespaceTerminating" for each in causes)


def budgets_of(pod: Pod, budgets: Iterable[StoredBudget]) -> list[StoredBudget]:
    """Return the budgets that select the pod; a missing or invalid selector selects none."""
    return [
        each
        for each in budgets
        if each.budget.metadata.namespace == pod.metadata.namespace
        and each.budget.spec.selector is not None
        and not problem_of(each.budget.spec.selector)
        and each.budget.spec.selector.matches(pod.metadata.labels)
    ]


def always_allows_unhealthy(pod: Pod, stored: StoredBudget) -> bool:
    """Return whether the pod may be evicted because it is not ready, without using the budget."""
    if is_ready(pod):
        return False
    if stored.budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = status_of(stored)
    return status.current_healthy >= status.desired_healthy > 0


def granted(stored: StoredBudget, pod_name: str, now: datetime, rules: EvictionRules = DEFAULT_RULES) -> StoredBudget:
    """Return the budget after it allowed an eviction. Raises ``EvictionRejectedError`` if it does not allow it."""
    metadata, status = stored.budget.metadata, status_of(stored)
    if status.observed_generation < metadata.generation:
        raise EvictionRejectedError(being_processed(metadata.name))
    if status.disruptions_allowed < 0:
        raise EvictionRejectedError(_forbidden(metadata.name, "pdb disruptions allowed is negative", "", rules))
    if len(status.disrupted_pods) > MAX_DISRUPTED_PODS:
        problem = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        cause = "too many pending evictions not confirmed by PDB controller"
        raise EvictionRejectedError(_forbidden(metadata.name, problem, cause, rules))
    if status.disruptions_allowed == 0:
        raise EvictionRejectedError(_violated(why_shut(stored, rules)))
    time = msgspec.to_builtins(now)
    left = msgspec.structs.replace(
        status,
        disruptions_allowed=status.disruptions_allowed - 1,
        disrupted_pods={**status.disrupted_pods, pod_name: time},
    )
    changed = StoredBudget(msgspec.structs.replace(stored.budget, status=left), stored.conditions)
    return with_allowed_condition(changed, now) if left.disruptions_allowed == 0 else changed


def why_shut(stored: StoredBudget, rules: EvictionRules = DEFAULT_RULES) -> str:
    """Return why a budget allows no disruptions, in the API server's words."""
    name, status, condition = stored.budget.metadata.name, status_of(stored), stored.allowed_condition
    needs = f"needs {status.desired_healthy} healthy pods and has {status.current_healthy} currently"
    rejecting = condition if condition is not None and condition.status == "False" and condition.message else None
    if not rules.eviction_rejections_have_reason:
        return f"The disruption budget {name} {needs}"
    if rejecting is not None and rejecting.reason == _SYNC_FAILED:
        why = f"does not allow evicting pods currently because it failed sync: {rejecting.message}"
    elif status.current_healthy <= status.desired_healthy:
        why = needs
    elif rejecting is not None:
        why = f"does not allow evicting pods currently ({rejecting.reason}): {rejecting.message}"
    else:
        why = "does not allow evicting pods currently"
    return f"The disruption budget {name} {why}"


def being_processed(name: str) -> Answer:
    """Return the rejection while the controller has not observed the latest budget."""
    return _violated(f"The disruption budget {name} is still being processed by the server.", retry_after=10)


def failed_conditions(stored: StoredBudget, error: SyncError, now: datetime | None) -> tuple[BudgetCondition, ...]:
    """Return the budget's conditions after its controller failed to compute its status."""
    condition = BudgetCondition(
        type=ALLOWED_CONDITION,
        status="False",
        reason=_SYNC_FAILED,
        message=error.controllers_words,
        message_one_of=error.any_of,
        observed_generation=status_of(stored).observed_generation,
    )
    return with_condition(stored.conditions, condition, now)


def with_allowed_condition(stored: StoredBudget, now: datetime | None) -> StoredBudget:
    """Return the budget with the condition that matches its status."""
    status = status_of(stored)
    is_open = status.disruptions_allowed > 0
    condition = BudgetCondition(
        type=ALLOWED_CONDITION,
        status="True" if is_open else "False",
        reason="SufficientPods" if is_open else "InsufficientPods",
        observed_generation=status.observed_generation,
    )
    return msgspec.structs.replace(stored, conditions=with_condition(stored.conditions, condition, now))


def status_of(stored: StoredBudget) -> PodDisruptionBudgetStatus:
    """Return the status; all zeros if no controller has seen the budget."""
    return stored.budget.status or PodDisruptionBudgetStatus()


def _violated(why: str, retry_after: int = 0) -> Answer:
    details = Details(causes=(Cause(reason=CAUSE, message=why),), retry_after_seconds=retry_after)
    return Answer(TOO_MANY_REQUESTS, "TooManyRequests", _VIOLATED, details)


def _forbidden(name: str, problem: str, cause: str, rules: EvictionRules) -> Answer:
    causes: tuple[Cause, ...] = ()
    if rules.forbidden_evictions_have_reason:
        cause_text = f"The disruption budget {name} does not allow evicting pods currently: {cause or problem}"
        causes = (Cause(reason=CAUSE, message=cause_text),)
    details = Details(name=name, group="policy", kind="poddisruptionbudget", causes=causes)
    return Answer(403, "Forbidden", f'poddisruptionbudget.policy "{name}" is forbidden: {problem}', details)
