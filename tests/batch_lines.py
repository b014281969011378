"""Verdicts of ``kpreempt batch`` under the names of the other documents."""

from __future__ import annotations

from typing import Any

from kpreempt.report.batch_lines import VALUES
from kpreempt.verdict import Outcome

_KEYS = {"refusedForGood": "permanentlyUnschedulable", "untold": "omitted", "left": "remaining", "kept": "isReprieved"}
# A line does not distinguish a pod that waits for its victims from an unschedulable one.
_VALUES = {line: str(value) for value, line in VALUES.items() if value is not Outcome.WAITS_FOR_VICTIMS}


def as_document(line: Any, key: str = "") -> Any:
    """A verdict of a line as ``-o json`` writes it; extenders' calls and Volcano's sessions are left as they are."""
    if isinstance(line, dict):
        names = {**_KEYS, "wanted": "nodeName" if line.get("type") == "NodeNameMismatch" else "requested"}
        return {names.get(name, name): as_document(value, name) for name, value in line.items()}
    if isinstance(line, list):
        return [as_document(each, key) for each in line]
    return _VALUES.get(line, line) if key in ("outcome", "kind") else line
