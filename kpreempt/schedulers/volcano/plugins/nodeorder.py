"""nodeorder: the scores of Kubernetes 1.25 (``plugins/nodeorder/nodeorder.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE, PreScorePlugin, ScorePlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resource_scoring import (
    ResourceScorer,
    ResourceWeight,
    Usage,
    balance,
    least_allocated,
    most_allocated,
    weighted,
)
from kpreempt.schedulers.kube.plugins.image_locality import ImageLocality
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kpreempt.schedulers.kube.plugins.node_affinity import NodeAffinity
from kpreempt.schedulers.kube.plugins.pod_topology_spread.plugin import PodTopologySpread
from kpreempt.schedulers.kube.plugins.taint_toleration import TaintToleration
from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.session import Session
from kpreempt.schedulers.volcano.task import Task
from kpreempt.schedulers.volcano.votes import Vote

NAME = "nodeorder"
_CPU_AND_MEMORY = [ResourceWeight("cpu", 50), ResourceWeight("memory", 50)]
_MOST_WEIGHTS = [ResourceWeight("cpu", 1), ResourceWeight("memory", 1)]
_BALANCED = [ResourceWeight("cpu", 1), ResourceWeight("memory", 1), ResourceWeight("nvidia.com/gpu", 1)]


class NodeOrder:
    """The scoring plugins with their weights."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self._view = session.view
        handle = session.view.handle
        self._weights = {
            "leastrequested": option.integer("leastrequested.weight", 1),
            "mostrequested": option.integer("mostrequested.weight", 0),
            "balancedresource": option.integer("balancedresource.weight", 1),
        }
        self._least = _scorer(_CPU_AND_MEMORY, least=True)
        self._most = _scorer(_MOST_WEIGHTS, least=False)
        self._balanced = ResourceScorer(_BALANCED, _balanced_score, counts_pod_level=False, use_requested=True)
        self._single: list[tuple[ScorePlugin, int]] = [
            (ImageLocality({}, handle), option.integer("imagelocality.weight", 1)),
            (NodeAffinity({}, handle), option.integer("nodeaffinity.weight", 2)),
        ]
        self._batch: list[tuple[ScorePlugin, int, int]] = [
            (InterPodAffinity({"hardPodAffinityWeight": 0}, handle), option.integer("podaffinity.weight", 2), 0),
            (TaintToleration({}, handle), option.integer("tainttoleration.weight", 3), MAX_NODE_SCORE),
            (
                PodTopologySpread({"defaultingType": "System"}, handle),
                option.integer("podtopologyspread.weight", 2),
                MAX_NODE_SCORE,
            ),
        ]

    def score(self, task: Task, node: Node) -> float:
        """What a node scores by itself."""
        node_info = self._view.node_info(node.name)
        total = 0.0
        for name, scorer in (
            ("leastrequested", self._least),
            ("mostrequested", self._most),
            ("balancedresource", self._balanced),
        ):
            if weight := self._weights[name]:
                total += float(scorer.score(scorer.requests_of(task.pod), node_info)) * weight
        state = CycleState()
        for plugin, weight in self._single:
            if weight:
                total += float(plugin.score(state, task.pod, node_info)) * weight
        return total

    def score_batch(self, task: Task, nodes: Sequence[Node]) -> dict[str, float]:
        """What nodes score beside each other."""
        totals = dict.fromkeys((node.name for node in nodes), 0.0)
        node_infos = [self._view.node_info(node.name) for node in nodes]
        for plugin, weight, without in self._batch:
            for node_info, score in zip(node_infos, _normalized(plugin, task, node_infos, without), strict=True):
                totals[node_info.name] += float(score * weight)
        return totals


def open_session(session: Session, option: PluginOption) -> None:
    """Register what nodeorder has a say in."""
    plugin = NodeOrder(session, option)
    session.register(Vote.NODE_ORDER, NAME, plugin.score)
    session.register(Vote.BATCH_NODE_ORDER, NAME, plugin.score_batch)


def _normalized(plugin: ScorePlugin, task: Task, nodes: Sequence[NodeInfo], without: int) -> list[int]:
    """Scores from 0 to 100; ``without`` for all nodes where the pod states nothing that the plugin looks at."""
    state = CycleState()
    if isinstance(plugin, PreScorePlugin) and plugin.pre_score(state, task.pod, nodes).is_skip:
        return [without] * len(nodes)
    scores = [plugin.score(state, task.pod, node) for node in nodes]
    return plugin.normalize_scores(state, task.pod, scores, nodes)


def _scorer(weights: list[ResourceWeight], *, least: bool) -> ResourceScorer:
    rate = least_allocated if least else most_allocated
    return ResourceScorer(weights, weighted(weights, rate), counts_pod_level=False, use_requested=False)


def _balanced_score(usages: Sequence[Usage]) -> int:
    """How evenly resources would be used: 100 where all shares are equal."""
    return balance([usage.requested / usage.allocatable for usage in usages if usage.allocatable])
