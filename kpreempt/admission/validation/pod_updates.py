"""Validate what changes in the spec of a pod.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidatePodUpdate``). Resources and
ephemeral containers can be changed only with subresources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kpreempt.admission.defaults import template_with_defaults
from kpreempt.admission.validation.pod_parts import elements
from kpreempt.admission.validation.problems import Document, Problems, forbidden, invalid
from kpreempt.admission.validation.values import MAX_INT32, amount
from kpreempt.model.documents import Path, mapping_in

_DEADLINE = "activeDeadlineSeconds"
# Checked on their own, or set by the API server: ``serviceAccount`` is another name of ``serviceAccountName``.
_NOT_COMPARED = (_DEADLINE, "tolerations", "schedulingGates", "serviceAccount")
# Admission takes these from the old pod if they are missing.
_KEPT = ("priority", "preemptionPolicy")
_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, "
    "`spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations), "
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_AMOUNTS = frozenset({"limits", "requests", "overhead"})
_AMOUNT = frozenset({"sizeLimit", "divisor"})
# Fields of the API's types that have no way to be missing: zero and ``false`` are the same as that.
_ZERO_IF_MISSING = frozenset(
    {
        *("hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "readOnly"),
        *("hostPort", "containerPort", "port", "seconds", "weight", "partition"),
        *("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"),
    }
)
# Admission adds these tolerations if they are missing.
_DEFAULT_TOLERATIONS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS = "nodeSelectorTerms"


def check_spec_update(spec: Document, old: Document, path: Path) -> Problems:
    """Validate the update of a pod's spec, which has all defaults."""
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(old.get(field) or ()):
            yield forbidden((*path, field), "pod updates may not add or remove containers")
            return
    yield from _deadline(spec.get(_DEADLINE), old.get(_DEADLINE), (*path, _DEADLINE))
    yield from _tolerations(spec, old, (*path, "tolerations"))
    gates = {each.get("name") for each, _ in elements(old, "schedulingGates", path)}
    for gate, at in elements(spec, "schedulingGates", path):
        if (name := gate.get("name")) not in gates:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden((*at, "name"), detail)
    if gates:
        yield from _node_selection(spec, old, path)
    new, before = (_comparable(each, is_gated=bool(gates)) for each in (spec, old))
    _complete(new, before)
    for at in _differences(new, before):
        yield forbidden((*path, *at), _IMMUTABLE)
        return


def _complete(spec: dict[str, Any], old: dict[str, Any]) -> None:
    """Take what is missing in a spec, and the API server sets, from the old one."""
    for field in _KEPT:
        if field not in spec and field in old:
            spec[field] = old[field]
    for field, amounts in mapping_in(old, "resources").items():
        if "resources" in spec and field in _AMOUNTS:
            spec["resources"][field] = {**amounts, **spec["resources"].get(field, {})}


def _deadline(new: int | None, old: int | None, path: Path) -> Problems:
    if new is None:
        if old is not None:
            yield invalid(path, new, "must not update from a positive integer to nil value")
    elif not 0 <= new <= MAX_INT32:
        yield invalid(path, new, f"must be between 0 and {MAX_INT32}, inclusive")
    elif old is not None and old < new:
        yield invalid(path, new, "must be less than or equal to previous value")


def _tolerations(spec: Document, old: Document, path: Path) -> Problems:
    new = [_without_seconds(each) for each, _ in elements(spec, "tolerations", path)]
    for each, _ in elements(old, "tolerations", path):
        if _without_seconds(each) not in new and not _is_default_toleration(each):
            yield forbidden(path, "existing toleration can not be modified except its tolerationSeconds")
            return


def _without_seconds(toleration: Document) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value}


def _is_default_toleration(toleration: Document) -> bool:
    rest = {key: value for key, value in _without_seconds(toleration).items() if key != "key"}
    return toleration.get("key") in _DEFAULT_TOLERATIONS and rest == {"operator": "Exists", "effect": "NoExecute"}


def _node_selection(spec: Document, old: Document, path: Path) -> Problems:
    """Validate that the nodes of a gated pod are only narrowed."""
    new_labels = mapping_in(spec, "nodeSelector")
    if any(new_labels.get(key) != value for key, value in mapping_in(old, "nodeSelector").items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid((*path, "nodeSelector"), new_labels, detail)
    old_terms, new_terms = _node_terms(old), _node_terms(spec)
    at = (*path, "affinity", "nodeAffinity", _REQUIRED, _TERMS)
    if old_terms and len(old_terms) != len(new_terms):
        yield invalid(at, new_terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (old_term, term) in enumerate(zip(old_terms, new_terms, strict=False)):
        if not _has_only_additions(term, old_term):
            yield invalid((*at, index), term, "only additions are allowed (no mutations or deletions)")


def _node_terms(spec: Document) -> Sequence[Document]:
    terms: Sequence[Document] = mapping_in(spec, "affinity", "nodeAffinity", _REQUIRED).get(_TERMS) or ()
    return terms


def _has_only_additions(term: Document, old: Document) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        return not any(term.get(field) for field in fields)
    return all((term.get(field) or [])[: len(old[field])] == old[field] for field in fields if old.get(field))


def _comparable(spec: Document, *, is_gated: bool) -> dict[str, Any]:
    """Return a pod's spec without what may change, in a form in which equal specs are equal."""
    complete = template_with_defaults({"spec": dict(spec)}, is_pod=True)["spec"]
    result: dict[str, Any] = _normal({key: value for key, value in complete.items() if key not in _NOT_COMPARED})
    for name in ("containers", "initContainers"):
        for container in result.get(name, ()):
            container.pop("image", None)
    if is_gated:
        result.pop("nodeSelector", None)
        affinity = result.get("affinity", {})
        affinity.pop("nodeAffinity", None)
        if not affinity:
            result.pop("affinity", None)
    return result


def _normal(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        if key in _AMOUNTS:
            return {name: _nano(each) for name, each in value.items()}
        parts = {name: _normal(each, name) for name, each in value.items()}
        return {name: each for name, each in parts.items() if not _is_missing(name, each)}
    if isinstance(value, list):
        return [_normal(each) for each in value]
    return _nano(value) if key in _AMOUNT else value


def _nano(value: Any) -> Any:
    try:
        return amount(value).nano
    except ValueError:
        # A label may have the name of such a field.
        return value


def _is_missing(key: str, value: Any) -> bool:
    return value in (None, "", [], {}) or (key in _ZERO_IF_MISSING and not value)


def _differences(new: Any, old: Any, at: Path = ()) -> Iterator[Path]:
    """Yield the paths of the values that differ."""
    if new == old:
        return
    if isinstance(new, dict) and isinstance(old, dict):
        for key in sorted(new.keys() | old.keys()):
            yield from _differences(new.get(key), old.get(key), (*at, key))
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for index, pair in enumerate(zip(new, old, strict=True)):
            yield from _differences(*pair, (*at, index))
    else:
        yield at
