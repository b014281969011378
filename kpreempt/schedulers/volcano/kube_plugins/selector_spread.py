"""SelectorSpread, which 1.36 has no more: fewer pods of the same services and controller on a node, and in its zone.

Follows ``plugins/selectorspread`` of v1.25.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import zone_of
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.default_selector import default_selector
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE, Handle, PreScorePlugin, ScorePlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.verdict import SUCCESS, Status
from kpreempt.verdict.status import SKIP

# How much of the score is the zone's, where the node is in one.
_ZONE_PART = 2.0 / 3.0


class SelectorSpread(PreScorePlugin, ScorePlugin):
    """Pods with spread constraints of their own are left to these, and score 0."""

    name = "SelectorSpread"

    def __init__(self, handle: Handle) -> None:
        self._cluster = handle.cluster

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Find what selects the pod; Skip where it spreads by constraints."""
        if pod.spec.topology_spread_constraints:
            return SKIP
        state.write(self.name, default_selector(pod, self._cluster.cluster))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """The pods on the node that the same services and controller select."""
        selector = state.read(self.name)
        assert isinstance(selector, LabelSelector)
        if selector.is_empty():
            return 0
        return sum(
            selector.matches(other.pod.metadata.labels)
            for other in node_info.pods
            if other.pod.metadata.namespace == pod.metadata.namespace and other.pod.metadata.deletion_timestamp is None
        )

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Fewer pods are better; in floats as upstream."""
        zones = [zone_of(node_info.node) for node_info in nodes]
        by_zone: dict[tuple[str, str], int] = {}
        for zone, count in zip(zones, scores, strict=True):
            if any(zone):
                by_zone[zone] = by_zone.get(zone, 0) + count
        most, most_in_zone = max(scores, default=0), max(by_zone.values(), default=0)
        normalized = []
        for zone, count in zip(zones, scores, strict=True):
            score = _rated(count, most)
            if zone in by_zone:
                score = score * (1.0 - _ZONE_PART) + _ZONE_PART * _rated(by_zone[zone], most_in_zone)
            normalized.append(int(score))
        return normalized


def _rated(count: int, most: int) -> float:
    return MAX_NODE_SCORE * ((most - count) / most) if most > 0 else float(MAX_NODE_SCORE)
