"""An object as it is once a manifest is applied: laid over what the cluster has, as ``kubectl apply`` would.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/util/strategicpatch`` (``CreateThreeWayMergePatch``).
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.rollout.field_rules import merge_keys

# Of these only the fields of the manifest stay: a volume has one source, a strategy the part of its type.
_ONE_OF = frozenset({"volumes", "strategy"})


def applied(wanted: Document, live: Document, last: Document) -> Document:
    """``live`` with ``wanted`` laid over it, and without what ``last`` has and ``wanted`` has no more."""
    result: Document = {}
    for key, value in live.items():
        if key in wanted:
            if wanted[key] is not None:
                result[key] = _field(key, wanted[key], value, last.get(key))
        elif last.get(key) is None:
            result[key] = deepcopy(value)
    result.update({key: deepcopy(value) for key, value in wanted.items() if key not in live and value is not None})
    return result


def _field(key: str, wanted: Any, live: Any, last: Any) -> Any:
    if isinstance(wanted, dict) and isinstance(live, dict):
        return _mapping(key, wanted, live, last)
    if isinstance(wanted, list) and isinstance(live, list):
        return _list(key, wanted, live, last)
    return deepcopy(wanted)


def _mapping(key: str, wanted: Document, live: Document, last: Any) -> Document:
    if key in _ONE_OF:
        live = {name: value for name, value in live.items() if name in wanted}
    return applied(wanted, live, last if isinstance(last, dict) else {})


def _list(key: str, wanted: list[Any], live: list[Any], last: Any) -> list[Any]:
    lasts = last if isinstance(last, list) else []
    keys, live_keys, last_keys = merge_keys(key, wanted), merge_keys(key, live), merge_keys(key, lasts)
    if not keys or live_keys is None or last_keys is None:
        return deepcopy(wanted)
    there, before = dict(zip(live_keys, live, strict=True)), dict(zip(last_keys, lasts, strict=True))
    merged = [
        _mapping(key, each, there[name], before.get(name)) if name in there else deepcopy(each)
        for name, each in zip(keys, wanted, strict=True)
    ]
    gone = {*keys, *before}
    kept = [deepcopy(there[name]) for name in live_keys if name not in gone]
    return [*merged, *kept]
