"""Label selectors of workloads and the labels that they must select, and equality as the API server sees it.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/apis/meta/v1/helpers.go`` (``LabelSelectorAsSelector``) and
``pkg/api/equality/semantic.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.admission.validation.metadata import check_label_selector
from kpreempt.admission.validation.problems import Document, Problems, invalid
from kpreempt.admission.validation.values import amount
from kpreempt.model.documents import Path
from kpreempt.model.labels import matches_requirement

# Fields whose values are quantities.
_AMOUNTS = frozenset({"capacity", "divisor", "limits", "overhead", "requests", "sizeLimit"})


def is_valid_selector(selector: Document | None) -> bool:
    """Whether a label selector can be evaluated."""
    return not any(check_label_selector(selector, ()))


def matches(selector: Document | None, labels: Mapping[str, str]) -> bool:
    """Whether a valid selector selects an object with ``labels``: nothing if missing, everything if empty."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        matches_requirement(each.get("key", ""), each.get("operator", ""), each.get("values") or [], labels)
        for each in selector.get("matchExpressions") or []
    )


def is_empty(selector: Document) -> bool:
    """Whether a selector selects everything."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def check_selector_form(selector: Document | None, old: Document | None, path: Path) -> Problems:
    """Validate a selector's form; on update its old problems are tolerated."""
    known = set(check_label_selector(old, path))
    yield from (each for each in check_label_selector(selector, path) if each not in known)


def check_selected(selector: Document | None, template: Document, path: Path) -> Problems:
    """Validate that a selector selects the pods of a template at ``path``."""
    metadata = template.get("metadata") or {}
    labels = metadata.get("labels") or {}
    if is_valid_selector(selector) and not matches(selector, labels):
        yield invalid((*path, "metadata", "labels"), labels, "`selector` does not match template `labels`")


def is_same(new: Any, old: Any, *, is_amount: bool = False) -> bool:
    """Whether two values of a field are equal: quantities by their amount, and missing ones like empty ones."""
    if new == old:
        return True
    if isinstance(new or old, Mapping) and isinstance(old or new, Mapping):
        left, right = new or {}, old or {}
        keys = left.keys() | right.keys()
        return all(is_same(left.get(key), right.get(key), is_amount=is_amount or key in _AMOUNTS) for key in keys)
    if not new or not old:
        return not new and not old
    if _is_list(new) and _is_list(old):
        return len(new) == len(old) and all(map(is_same, new, old))
    return is_amount and _is_same_amount(new, old)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_same_amount(new: object, old: object) -> bool:
    try:
        return amount(new) == amount(old)
    except ValueError:
        return False
