"""Statuses as upstream's table cases write them."""

from __future__ import annotations

from typing import Any

from kpreempt.verdict import Code, Status


def status_of(document: dict[str, Any] | None) -> Status:
    """A status; a missing one is Success."""
    if document is None:
        return Status(Code.SUCCESS)
    return Status(Code(document["code"]), document.get("reasons") or [], document.get("plugin", ""))


def same_status(want: dict[str, Any], got: Status) -> bool:
    """Whether code and reasons agree; the order of reasons does not matter."""
    expected = status_of(want)
    return expected.code == got.code and sorted(expected.reasons) == sorted(got.reasons)
