"""Requests to the eviction subresource of pods: preconditions, dry runs, conflicts, and the resulting delete.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/registry/core/pod/storage/eviction.go`` (``Create``,
``addConditionAndDeletePod``); for preconditions and grace periods ``pkg/registry/core/pod/strategy.go``
(``CheckGracefulDelete``) and ``k8s.io/apiserver`` v0.36.3 ``pkg/registry/rest/delete.go`` (``BeforeDelete``). Budgets
are evaluated by the product's code.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from kpreempt.eviction.records import (
    ACCEPTED,
    DEFAULT_RULES,
    Answer,
    Cause,
    Details,
    EvictionRejectedError,
    EvictionRules,
    StoredBudget,
)
from kpreempt.eviction.subresource import (
    SEVERAL_BUDGETS,
    always_allows_unhealthy,
    answer_eviction,
    being_processed,
    budgets_of,
    granted,
    ignores_budgets,
    not_found,
)
from kpreempt.model.labels import parse_int64
from kpreempt.model.meta import later
from kpreempt.model.pod import TERMINAL_PHASES, Pod, PodCondition

CONFLICT = 409
DEFAULT_GRACE = 30
# How often the server retries after conflicts.
TRIES = 20
_OPTION = "ignoreStoreReadErrorWithClusterBreakingPotential"


class Preconditions(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What must hold for a pod that is deleted. An empty UID is none."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a pod is deleted."""

    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    dry_run: list[str] | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None

    @property
    def version(self) -> str | None:
        """The resourceVersion that the pod must have."""
        return self.preconditions.resource_version if self.preconditions is not None else None

    def with_version(self, version: str) -> DeleteOptions:
        """These options, for a pod with this resourceVersion only."""
        conditions = msgspec.structs.replace(self.preconditions or Preconditions(), resource_version=version)
        return msgspec.structs.replace(self, preconditions=conditions)


def check_preconditions(pod: Pod, options: DeleteOptions) -> None:
    """Raise ``EvictionRejectedError`` if the pod is not the intended one."""
    wanted, found = options.preconditions or Preconditions(), pod.metadata
    if wanted.uid and wanted.uid != found.uid:
        problem = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({found.uid}). "
            "The object might have been deleted and then recreated"
        )
    elif wanted.resource_version and wanted.resource_version != found.resource_version:
        problem = (
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({found.resource_version}). The object might have been modified"
        )
    else:
        return
    message = f'Operation cannot be fulfilled on Pod "{found.name}": {problem}'
    raise EvictionRejectedError(Answer(CONFLICT, "Conflict", message, Details(name=found.name, kind="Pod")))


def deleted(pod: Pod, grace_period: int | None, now: datetime, rules: EvictionRules = DEFAULT_RULES) -> Pod | None:
    """Return the pod after a delete with ``grace_period`` seconds or its own; ``None`` if it is gone."""
    metadata = pod.metadata
    generation, until = metadata.generation, metadata.deletion_timestamp
    if until is None:
        grace = grace_seconds(pod, grace_period)
        if grace == 0 and not metadata.finalizers:
            return None
        until, generation = later(now, grace), generation + 1 if generation > 0 else 0
    else:
        # It is already terminating: only a shorter time makes a difference.
        granted = metadata.deletion_grace_period_seconds
        if not granted:
            return pod if metadata.finalizers else None
        if grace_period is None or grace_period >= granted:
            return pod
        if grace_period == 0 and not metadata.finalizers:
            return None
        grace = grace_period if grace_period >= 0 else 1
        if grace >= granted:
            return pod
        until = later(until, grace - granted)
        if rules.clamps_grace_end and until < now:
            until, grace = now, min(grace, 1)
    metadata = msgspec.structs.replace(
        metadata, deletion_timestamp=until, deletion_grace_period_seconds=grace, generation=generation
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def grace_seconds(pod: Pod, requested: int | None) -> int:
    """Return the grace period of a pod that is deleted now."""
    own = pod.spec.termination_grace_period_seconds
    period = requested if requested is not None else own if own is not None else DEFAULT_GRACE
    if not pod.spec.node_name or pod.status.phase in TERMINAL_PHASES:
        return 0
    return period if period >= 0 else 1


class EvictionRequest(msgspec.Struct, frozen=True):
    """A POST to ``pods/URL_NAME/eviction``. Dry run may be set in the query and in the options."""

    url_name: str
    name: str
    options: DeleteOptions = DeleteOptions()
    query_dry_run: tuple[str, ...] = ()


class Store:
    """The API server's stored pod and budgets, with counts of its writes.

    A caller who changes them while a request is processed does so in ``before_budgets_are_read`` and in ``update``, and
    clears ``is_alone``.
    """

    def __init__(self, pod: Pod | None, budgets: list[StoredBudget]) -> None:
        self.pod = pod
        self.budgets = {each.budget.key: each for each in budgets}
        self.is_pod_written = False
        self.updates = 0
        self.update_tries = 0
        self.waits = 0
        self.is_alone = True

    def before_budgets_are_read(self) -> None:
        """What happens between reading the pod and reading the budgets."""

    def update(self, changed: StoredBudget) -> None:
        """Write a budget's status. Raises ``EvictionRejectedError``."""
        self.update_tries += 1
        self.updates += 1
        self.budgets[changed.budget.key] = changed

    def write_pod(self, pod: Pod | None) -> None:
        """Write the pod, which gets another version, or remove it."""
        if pod == self.pod:
            return
        if pod is not None:
            pod = with_next_version(pod)
        self.pod, self.is_pod_written = pod, True


def with_next_version(pod: Pod) -> Pod:
    """Return the pod as stored again: with another resourceVersion, if that is a number."""
    changed = str((parse_int64(pod.metadata.resource_version) or 0) + 1)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, resource_version=changed))


def evict(request: EvictionRequest, store: Store, now: datetime, rules: EvictionRules = DEFAULT_RULES) -> Answer:
    """Return the server's answer; its changes are in ``store``. For a plain request, the product must match it."""
    is_plain = store.is_alone and request == EvictionRequest(
        request.name, request.name, DeleteOptions(request.options.grace_period_seconds)
    )
    plain = answer_eviction(request.name, store.pod, list(store.budgets.values()), now, rules) if is_plain else None
    answer = ACCEPTED
    try:
        options = _options(request, rules)
        if not _evict_without_budgets(request, store, options, now, rules):
            _evict_by_budget(request, store, options, now, rules)
    except EvictionRejectedError as rejection:
        answer = rejection.answer
    assert plain is None or plain == answer
    return answer


def _options(request: EvictionRequest, rules: EvictionRules) -> DeleteOptions:
    """Return how the pod is deleted. Raises ``EvictionRejectedError`` for a contradictory request."""
    if request.url_name != request.name:
        message = "name in URL does not match name in Eviction object"
        raise EvictionRejectedError(Answer(400, "BadRequest", message))
    options = request.options
    is_careless = options.ignore_store_read_error_with_cluster_breaking_potential
    if is_careless and rules.eviction_rejects_unreadable_store_option:
        problem = "Invalid value: true: can not be set for pod eviction, try after removing the option"
        field = f"deleteOptions.{_OPTION}"
        message = f'Eviction.policy "{request.url_name}" is invalid: {field}: {problem}'
        cause = Cause(reason="FieldValueInvalid", message=problem, field=field)
        details = Details(name=request.url_name, group="policy", kind="Eviction", causes=(cause,))
        raise EvictionRejectedError(Answer(422, "Invalid", message, details))
    requested, said = list(request.query_dry_run), list(options.dry_run or [])
    if requested and said and requested != said:
        shown = " and ".join(f"[{' '.join(each)}]" for each in (requested, said))
        raise EvictionRejectedError(Answer(500, "", f"Non-matching dry-run options in request and content: {shown}"))
    return msgspec.structs.replace(options, dry_run=requested or said)


def _evict_without_budgets(
    request: EvictionRequest, store: Store, options: DeleteOptions, now: datetime, rules: EvictionRules
) -> bool:
    """Return whether the pod's state allowed its eviction without its budgets."""
    for attempt in range(1, TRIES + 1):
        pod = _pod(request, store)
        if not ignores_budgets(pod):
            return False
        wanted = options
        is_to_stay_pending = pod.status.phase not in TERMINAL_PHASES and pod.metadata.deletion_timestamp is None
        if is_to_stay_pending and not options.version:
            wanted = options.with_version(pod.metadata.resource_version)
        try:
            _delete(store, pod, wanted, now, rules)
        except EvictionRejectedError as rejection:
            if rejection.answer.status != CONFLICT or options.version or attempt == TRIES:
                raise
            store.waits += 1
        else:
            return True
    return False


def _evict_by_budget(
    request: EvictionRequest, store: Store, options: DeleteOptions, now: datetime, rules: EvictionRules
) -> None:
    pod = _pod(request, store)
    store.before_budgets_are_read()
    budgets = budgets_of(pod, store.budgets.values())
    if len(budgets) > 1:
        raise EvictionRejectedError(SEVERAL_BUDGETS)
    wanted, goes_unready = options, bool(budgets) and always_allows_unhealthy(pod, budgets[0])
    if goes_unready:
        wanted = options.with_version(pod.metadata.resource_version)
    elif budgets:
        _charge(store, budgets[0], pod, now, rules, is_dry_run=bool(options.dry_run))
    try:
        _delete(store, _pod(request, store), wanted, now, rules)
    except EvictionRejectedError as rejection:
        reported_version = options.preconditions is not None and options.preconditions.resource_version is not None
        if rejection.answer.status == CONFLICT and goes_unready and not reported_version:
            raise EvictionRejectedError(being_processed(budgets[0].budget.metadata.name)) from None
        raise


def _charge(
    store: Store, stored: StoredBudget, pod: Pod, now: datetime, rules: EvictionRules, *, is_dry_run: bool
) -> None:
    """Count the pod's disruption against its budget. Raises ``EvictionRejectedError``."""
    for attempt in range(1, TRIES + 1):
        changed = granted(stored, pod.metadata.name, now, rules)
        if is_dry_run:
            return
        try:
            store.update(changed)
        except EvictionRejectedError as rejection:
            if rejection.answer.status != CONFLICT or attempt == TRIES:
                raise
            store.waits += 1
            stored = store.budgets[stored.budget.key]
        else:
            return


def _delete(store: Store, pod: Pod, options: DeleteOptions, now: datetime, rules: EvictionRules) -> None:
    check_preconditions(pod, options)
    if options.dry_run:
        return
    # The pod with the condition that marks its eviction.
    new = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
        last_transition_time=now,
    )
    conditions = list(pod.status.conditions)
    for place, old in enumerate(conditions):
        if old.type == new.type:
            since = old.last_transition_time if old.status == new.status else now
            conditions[place] = msgspec.structs.replace(new, last_transition_time=since)
            break
    else:
        conditions.append(new)
    store.write_pod(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=conditions)))
    assert store.pod is not None
    store.write_pod(deleted(store.pod, options.grace_period_seconds, now, rules))


def _pod(request: EvictionRequest, store: Store) -> Pod:
    if store.pod is None or store.pod.metadata.name != request.name:
        raise EvictionRejectedError(not_found(request.name))
    return store.pod
