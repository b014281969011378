"""Why a task fits on no node, node by node (``pkg/scheduler/api/unschedule_info.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


def histogram(counts: Mapping[str, int]) -> list[str]:
    """``3 Insufficient cpu`` for each, sorted as texts."""
    return sorted(f"{count} {text}" for text, count in counts.items())


class FitErrors:
    """The reason that each node gave, or one message for all."""

    def __init__(self, message: str = "") -> None:
        self._message = message
        self.by_node: dict[str, str] = {}

    def __str__(self) -> str:
        message = self._message or f"0/{len(self.by_node)} nodes are unavailable"
        if not self.by_node:
            return message
        return f"{message}: {', '.join(histogram(Counter(self.by_node.values())))}."
