"""Plugins for the golden lists of plugins, which never run."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.plugins import (
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PermitPlugin,
    Pod,
    PreemptionPlugin,
    PreFilterPlugin,
    PreFilterResult,
    ScorePlugin,
    Status,
)


class RackAware(PreFilterPlugin, FilterPlugin, ScorePlugin, PermitPlugin):
    """At four extension points, one of which comes after the choice."""

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return 0


class Evicting(PreemptionPlugin):
    """Replaces DefaultPreemption."""
