"""Answer recorded lines: one eviction, one sync of the disruption controller, or the pods that a drain selects."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from kpreempt.controllers.disruption import ScaleOf
from kpreempt.errors import InputError
from kpreempt.eviction.kubectl_drain import DrainOptions, choose_pods
from kpreempt.eviction.records import (
    Answer,
    BudgetCondition,
    Details,
    EvictionRejectedError,
    EvictionRules,
    StoredBudget,
)
from kpreempt.eviction.selectors import SelectorError, parse_selector
from kpreempt.eviction.subresource import status_of
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.meta import Time, later
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kpreempt.snapshot.decode import decode_object
from tests.conformance.disruption import DiscoveredScales, SizedObject, synced
from tests.conformance.eviction_requests import (
    CONFLICT,
    DeleteOptions,
    EvictionRequest,
    Store,
    evict,
    with_next_version,
)

_Document = dict[str, Any]
_NOW = "<now>"
_A_WHILE = 2
# How long the server waits between two attempts.
_SECONDS_BETWEEN_TRIES = 0.5
_A_MOMENT = 1e-6
# The custom resources of the clusters in these lines, with whether they have a scale.
_SERVED = {("example.com", "v1", "Shard"): True, ("example.com", "v1", "Ring"): False}


class _Query(msgspec.Struct, frozen=True, rename="camel"):
    dry_run: list[str] | None = None


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Eviction(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _Named = _Named()
    delete_options: DeleteOptions | None = None


class _Meanwhile(msgspec.Struct, rename="camel"):
    """What others do while a request is processed."""

    pdb_status_conflicts: int = 0
    pdb_status_then: list[_Document] | None = None
    pdb_deleted: bool = False
    pod_status_changed: bool = False


class _Kinds(msgspec.Struct):
    eviction: msgspec.Raw = msgspec.Raw(b"")
    pods: msgspec.Raw = msgspec.Raw(b"")


class EvictionLine(msgspec.Struct, rename="camel"):
    """A pod, its budgets, and a request to evict it."""

    eviction: _Eviction
    url_name: str | None = None
    create_options: _Query = _Query()
    pod: _Document | None = None
    pod_disruption_budgets: list[_Document] = msgspec.field(default_factory=list)
    meanwhile: _Meanwhile | None = None


class DisruptionLine(msgspec.Struct, rename="camel"):
    """A cluster that the disruption controller syncs."""

    now: Time
    objects: list[_Document]


class DrainFilterLine(msgspec.Struct, rename="camel"):
    """A node with its pods, and the options of a drain."""

    node: str
    now: Time
    pods: list[_Document]
    options: DrainOptions = DrainOptions()
    daemon_sets: list[_Document] = msgspec.field(default_factory=list)


def answer_line(line: bytes, source: str, rules: EvictionRules) -> _Document:
    """Answer a line about evictions. Raises ``InputError``."""
    try:
        requested = msgspec.json.decode(line, type=_Kinds)
        if bytes(requested.eviction):
            return _answer_eviction(line, source, rules)
        return _answer_drain_filter(line, source) if bytes(requested.pods) else _answer_disruption(line, source)
    except msgspec.ValidationError as error:
        raise InputError(str(error).replace("Expected", "expected"), source=source) from None


class _RecordedStore(Store):
    """A store to which others write meanwhile."""

    def __init__(self, pod: Pod | None, budgets: list[StoredBudget], meanwhile: _Meanwhile) -> None:
        super().__init__(pod, budgets)
        self._meanwhile = meanwhile
        self.is_alone = meanwhile == _Meanwhile()
        self._conflicts = 0

    def before_budgets_are_read(self) -> None:
        if self._meanwhile.pod_status_changed and self.pod is not None:
            self.pod = with_next_version(self.pod)
            self.is_pod_written = True

    def update(self, changed: StoredBudget) -> None:
        key, name = changed.budget.key, changed.budget.metadata.name
        details = Details(name=name, group="policy", kind="poddisruptionbudgets")
        resource = f'poddisruptionbudgets.policy "{name}"'
        if self._meanwhile.pdb_deleted:
            self.update_tries += 1
            self.budgets.pop(key, None)
            raise EvictionRejectedError(Answer(404, "NotFound", f"{resource} not found", details))
        if self._conflicts < self._meanwhile.pdb_status_conflicts:
            then = self._meanwhile.pdb_status_then or []
            if self._conflicts < len(then):
                old = self.budgets[key]
                status = _status(then[self._conflicts])
                self.budgets[key] = StoredBudget(
                    msgspec.structs.replace(old.budget, status=status), _conditions(then[self._conflicts])
                )
            self._conflicts += 1
            self.update_tries += 1
            message = (
                f"Operation cannot be fulfilled on {resource}: the object has been modified; "
                "please apply your changes to the latest version and try again"
            )
            raise EvictionRejectedError(Answer(CONFLICT, "Conflict", message, details))
        super().update(changed)


def _answer_eviction(line: bytes, source: str, rules: EvictionRules) -> _Document:
    requested = msgspec.json.decode(line, type=EvictionLine)
    pod = decode_pod(requested.pod, source) if requested.pod is not None else None
    created = pod.metadata.creation_timestamp if pod is not None else None
    # A time that no object has, so that it is distinguishable.
    now = later(created or datetime(2000, 1, 1, tzinfo=UTC), _A_MOMENT)
    store = _RecordedStore(
        pod,
        [decode_budget(each, source) for each in requested.pod_disruption_budgets],
        requested.meanwhile or _Meanwhile(),
    )
    request = EvictionRequest(
        url_name=requested.eviction.metadata.name if requested.url_name is None else requested.url_name,
        name=requested.eviction.metadata.name,
        options=requested.eviction.delete_options or DeleteOptions(),
        query_dry_run=tuple(requested.create_options.dry_run or ()),
    )
    answer = evict(request, store, now, rules)
    after = store.pod
    verdict: _Document = {
        "status": answer.status,
        "reason": answer.reason,
        "message": answer.message,
        "details": msgspec.to_builtins(answer.details),
        "retryAfterSeconds": answer.details.retry_after_seconds if answer.details else 0,
        "pdbStatusUpdates": store.updates,
        "pdbStatusUpdateTries": store.update_tries,
        "pdbsAfter": {key: _with_token(reported_budget(each), now) for key, each in store.budgets.items()},
        "podDeleted": pod is not None and after is None,
        "podTerminating": after is not None and after.metadata.deletion_timestamp is not None,
        "podWritten": store.is_pod_written,
        "conditions": _with_token(msgspec.to_builtins(after.status.conditions), now) if after is not None else [],
    }
    seconds = int(store.waits * _SECONDS_BETWEEN_TRIES + 0.5)
    if seconds > _A_WHILE:
        verdict["tookSeconds"] = seconds
    if pod is not None and after is not None:
        verdict["generation"] = after.metadata.generation
        if after.metadata.deletion_timestamp is not None:
            verdict["deletionGracePeriodSeconds"] = after.metadata.deletion_grace_period_seconds
            verdict["deletionTimestamp"] = _deletion_time(pod, after, now)
    return verdict


def _deletion_time(before: Pod, after: Pod, now: datetime) -> str:
    was, until = before.metadata.deletion_timestamp, after.metadata.deletion_timestamp
    assert until is not None
    if was is None:
        return f"<now+{int((until - now).total_seconds())}s>"
    return "<unchanged>" if was == until else f"<was {int((until - was).total_seconds())}s>"


def _answer_disruption(line: bytes, source: str) -> _Document:
    requested = msgspec.json.decode(line, type=DisruptionLine)
    pods = [decode_pod(each, source) for each in requested.objects if each.get("kind") == "Pod"]
    budgets = [each for each in requested.objects if each.get("kind") == "PodDisruptionBudget"]
    others = [each for each in requested.objects if each.get("kind") not in ("Pod", "PodDisruptionBudget")]
    scale_of = decode_scales(others)
    answers = {}
    for document in budgets:
        stored = decode_budget(document, source)
        namespace = stored.budget.metadata.namespace
        own = [pod for pod in pods if pod.metadata.namespace == namespace]
        changed, is_written = synced(stored, own, scale_of, requested.now)
        answers[stored.budget.key] = {**reported_budget(changed), "written": is_written}
        reported = answers[stored.budget.key]
        reported["conditions"] = _with_token(reported["conditions"], requested.now)
    return answers


def _answer_drain_filter(line: bytes, source: str) -> _Document:
    requested = msgspec.json.decode(line, type=DrainFilterLine)
    try:
        selector = parse_selector(requested.options.pod_selector)
    except SelectorError as error:
        return {"pods": [], "warnings": [], "errors": [str(error)]}
    daemon_sets = {namespace_and_name(each, source) for each in requested.daemon_sets}
    pods = [decode_pod(each, source) for each in requested.pods]
    choice = choose_pods(pods, requested.node, requested.options, selector, daemon_sets, requested.now)
    return {
        "pods": [each.key for each in choice.pods],
        "warnings": choice.shown_warnings(),
        "errors": choice.shown_errors(),
    }


def decode_scales(documents: Iterable[_Document]) -> ScaleOf:
    """Return the sizes of the workloads among the documents. Raises ``msgspec.ValidationError``."""
    return DiscoveredScales((msgspec.convert(each, type=SizedObject) for each in documents), _SERVED).scale_of


def part_of(document: _Document, key: str, source: str) -> _Document:
    """Return a part of a document, empty if there is none. Raises ``InputError`` for another type."""
    part = document.get(key)
    if part is not None and not isinstance(part, dict):
        raise InputError(f"{key}: expected an object", source=source)
    return part or {}


def namespace_and_name(document: _Document, source: str) -> tuple[str, str]:
    """Return an object's namespace and name. Raises ``InputError``."""
    metadata = part_of(document, "metadata", source)
    namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
    if not isinstance(namespace, str) or not isinstance(name, str):
        raise InputError("metadata: expected a name and a namespace", source=source)
    return namespace, name


def decode_pod(document: _Document, source: str) -> Pod:
    """A pod of a line. Raises ``InputError``."""
    pod = decode_object("Pod", document, source=source)
    if not isinstance(pod, Pod):
        raise InputError("expected a pod", source=source)
    return pod


def decode_budget(document: _Document, source: str) -> StoredBudget:
    """Decode a budget as stored, including selectors that the API server would not accept."""
    spec = dict(part_of(document, "spec", source))
    selector = spec.pop("selector", None)
    status = part_of(document, "status", source)
    budget = decode_object("PodDisruptionBudget", {**document, "spec": spec}, source=source)
    if not isinstance(budget, PodDisruptionBudget):
        raise InputError("expected a PodDisruptionBudget", source=source)
    if selector is not None:
        budget = msgspec.structs.replace(
            budget, spec=msgspec.structs.replace(budget.spec, selector=_selector(selector))
        )
    return StoredBudget(budget, _conditions(status))


class _Part(msgspec.Struct):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class _Selector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Part] | None = None


def _selector(document: object) -> LabelSelector:
    given = msgspec.convert(document, type=_Selector)
    return LabelSelector(
        match_labels=given.match_labels or {},
        match_expressions=[
            LabelSelectorRequirement(key=each.key, operator=each.operator, values=each.values or [])  # type: ignore[arg-type]
            for each in given.match_expressions or []
        ],
    )


def _status(document: _Document) -> PodDisruptionBudgetStatus:
    return msgspec.convert(document, type=PodDisruptionBudgetStatus)


def _conditions(status: _Document) -> tuple[BudgetCondition, ...]:
    return msgspec.convert(status.get("conditions") or (), type=tuple[BudgetCondition, ...])


def reported_budget(stored: StoredBudget) -> _Document:
    """Return a budget's complete status."""
    status = status_of(stored)
    conditions = [
        {"observedGeneration": each.observed_generation, **msgspec.to_builtins(each)} for each in stored.conditions
    ]
    return {
        "conditions": conditions,
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "disruptedPods": dict(status.disrupted_pods),
        "disruptionsAllowed": status.disruptions_allowed,
        "expectedPods": status.expected_pods,
        "observedGeneration": status.observed_generation,
    }


def _with_token(value: Any, now: datetime) -> Any:
    """Replace the current time in the value by a token."""
    if isinstance(value, dict):
        return {key: _with_token(each, now) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_token(each, now) for each in value]
    return _NOW if value == msgspec.to_builtins(now) else value
