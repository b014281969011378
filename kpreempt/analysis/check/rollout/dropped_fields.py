"""Fields of a pod template that the cluster's API server is seen to drop, as their feature gate is off.

Follows ``dropDisabledFields`` in ``k8s.io/kubernetes`` v1.36.3 ``pkg/api/pod/util.go``, for the fields that
``kpreempt/admission/admit.py`` knows.
"""

from __future__ import annotations

from typing import Any

from kpreempt.analysis.check.rollout.differences import last_applied
from kpreempt.analysis.document_reader import Document, mapping_in

_KEYS = frozenset({"matchLabelKeys", "mismatchLabelKeys"})
_HOLDERS = ("affinity", "topologySpreadConstraints")


def without_dropped(document: Document, live: Document) -> Document:
    """The manifest without what was applied just so before, and is not in ``live``."""
    last = last_applied(live)
    if last is None:
        return document
    wanted, before, there = _pod_spec(document), _pod_spec(last), _pod_spec(live)
    spec = dict(wanted)
    if "resources" in spec and spec["resources"] == before.get("resources") and there and "resources" not in there:
        del spec["resources"]
    for holder in _HOLDERS:
        given = spec.get(holder)
        if given == before.get(holder) and _has_keys(given) and holder in there and not _has_keys(there[holder]):
            spec[holder] = _without_keys(given)
    if spec == wanted:
        return document
    template = {**mapping_in(mapping_in(document, "spec"), "template"), "spec": spec}
    return {**document, "spec": {**document["spec"], "template": template}}


def _pod_spec(document: Document) -> Document:
    return mapping_in(mapping_in(mapping_in(document, "spec"), "template"), "spec")


def _has_keys(value: Any) -> bool:
    return bool(value != _without_keys(value))


def _without_keys(value: Any) -> Any:
    """The terms and constraints without their keys; selectors, whose labels may have any name, as they are."""
    if isinstance(value, list):
        return [_without_keys(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: each if key.endswith("Selector") else _without_keys(each)
        for key, each in value.items()
        if key not in _KEYS
    }
