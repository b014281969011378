"""The words of a FailedScheduling event, and of errors (``FitError``, ``core/generic_scheduler.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kpreempt.verdict import Status

NO_NODES = "no nodes available to schedule pods"


def count_reasons(statuses: Iterable[Status]) -> dict[str, int]:
    """How many nodes have each reason. A reason that a node has twice counts twice, as upstream counts."""
    counts: dict[str, int] = {}
    for status in statuses:
        for reason in status.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    return counts


def numbered_message(num_nodes: int, statuses: Mapping[str, Status]) -> str:
    """``0/N nodes are available: 2 REASON, 3 OTHER.``, of 1.13 and 1.18. The parts are sorted as text."""
    parts = sorted(f"{count} {reason}" for reason, count in count_reasons(statuses.values()).items())
    return f"0/{num_nodes} nodes are available: {', '.join(parts)}."


def aggregate(errors: Iterable[str]) -> str:
    """Several errors as one (``CreateAggregateFromMessageCountMap``): each once, with its number; several as a list."""
    counts: dict[str, int] = {}
    for error in errors:
        counts[error] = counts.get(error, 0) + 1
    messages = [error if count == 1 else f"{error} (repeated {count} times)" for error, count in counts.items()]
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
