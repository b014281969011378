"""The plugins that score nodes: nodeorder and binpack of Volcano v1.8.0.

nodeorder: the scores of Kubernetes 1.25 (``plugins/nodeorder/nodeorder.go``). binpack: prefers full nodes
(``plugins/binpack/binpack.go``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.model.volcano import GPU
from kpreempt.schedulers.kube.assumptions import rounded_sizes
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE, PreScorePlugin, ScorePlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resource_scoring import (
    ResourceScorer,
    ResourceWeight,
    WeightedMean,
    balance_afterwards,
    least_allocated,
    most_allocated,
)
from kpreempt.schedulers.kube.framework.resources import CPU, MEMORY
from kpreempt.schedulers.kube.plugins.image_locality import ImageLocality
from kpreempt.schedulers.kube.plugins.node_affinity import NodeAffinity
from kpreempt.schedulers.kube.plugins.pod_topology_spread.plugin import PodTopologySpread
from kpreempt.schedulers.kube.plugins.taint_toleration import SOFT_EFFECT, TaintToleration
from kpreempt.schedulers.volcano.cache import Node, Task
from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.kube_view import BEHAVIOR, PodAffinity, SelectorSpread, without_sidecars
from kpreempt.schedulers.volcano.session import ScoreError, Session, Vote

_ROUNDS_BY_CONTAINER = BEHAVIOR.rounds_requests_by_container


class _ScoredPod(NamedTuple):
    """What per-node scores need to know of a pod: the same on all nodes."""

    pod: Pod
    # What the pod requests, per scorer.
    requests: list[list[int]]
    # Node scores for the pod's requests and images, by name, shared by all pods with the same ones.
    known: dict[str, float]
    state: CycleState
    # Why the pod's node preferences are invalid; ``None`` if it has none.
    preferences: str | None


class NodeOrder:
    """The scoring plugins with their weights."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self._view = session.view
        handle = session.view.handle
        scorers = [
            (_by_share(50, least_allocated), option.integer("leastrequested.weight", 1)),
            (_by_share(1, most_allocated), option.integer("mostrequested.weight", 0)),
            (_balanced(), option.integer("balancedresource.weight", 1)),
        ]
        self._scorers = [(scorer, weight) for scorer, weight in scorers if weight]
        self._images, self._images_weight = ImageLocality({}, handle), option.integer("imagelocality.weight", 1)
        self._affinity, self._affinity_weight = NodeAffinity({}, handle), option.integer("nodeaffinity.weight", 2)
        # With the score of all nodes if the plugin skips the pod.
        self._batch: list[tuple[ScorePlugin, int, int]] = [
            (PodAffinity(handle), option.integer("podaffinity.weight", 2), 0),
            (PodTopologySpread({}, handle), option.integer("podtopologyspread.weight", 2), MAX_NODE_SCORE),
        ]
        # The taint score of every node if no taint is PreferNoSchedule.
        self._untainted = option.integer("tainttoleration.weight", 3) * MAX_NODE_SCORE
        nodes = (node_info.node for node_info in handle.cluster.node_infos)
        if any(taint.effect == SOFT_EFFECT for node in nodes for taint in node.spec.taints):
            self._batch.append((TaintToleration({}, handle), self._untainted // MAX_NODE_SCORE, MAX_NODE_SCORE))
            self._untainted = 0
        if weight := option.integer("selectorspread.weight", 0):
            self._batch.append((SelectorSpread(handle), weight, 0))
        self._turn: tuple[Pod, _ScoredPod] | None = None
        self._known: dict[Hashable, dict[str, float]] = {}

    def score(self, task: Task, node: Node) -> float:
        """Return the per-node score; raise ``ScoreError``."""
        node_info = self._view.state.by_name[node.name]
        if self._turn is None or self._turn[0] is not task.pod:
            pod, state = without_sidecars(task.pod), CycleState()
            status = self._affinity.pre_score(state, pod, ())
            requests = [scorer.requests_of(pod) for scorer, _ in self._scorers]
            alike = (*map(tuple, requests), *self._images.images_of(pod))
            known = self._known.setdefault(alike, {})
            self._turn = task.pod, _ScoredPod(pod, requests, known, state, None if status.is_skip else status.message)
        turn = self._turn[1]
        total = turn.known.get(node.name)
        if total is None:
            total = 0.0
            if self._images_weight and node_info.image_states:
                if self._view.state.has_rounded_images and not self._images.is_certain(turn.pod, node_info):
                    self._view.assumptions[rounded_sizes(turn.pod)] = None
                total += float(self._images.score(turn.state, turn.pod, node_info)) * self._images_weight
            for (scorer, weight), requested in zip(self._scorers, turn.requests, strict=True):
                total += float(scorer.score(requested, node_info)) * weight
            turn.known[node.name] = total
        if self._affinity_weight and turn.preferences is not None:
            if turn.preferences:
                raise ScoreError(turn.preferences)
            total += float(self._affinity.score(turn.state, turn.pod, node_info)) * self._affinity_weight
        return total

    def forget(self, task: Task) -> None:
        """Drop cached scores of the task's node after a change."""
        for known in self._known.values():
            known.pop(task.node_name, None)

    def score_batch(self, task: Task, nodes: Sequence[Node]) -> dict[str, float]:
        """Return the batch scores, which compare nodes with each other; raise ``ScoreError``."""
        totals = dict.fromkeys((node.name for node in nodes), float(self._untainted))
        node_infos = [self._view.state.by_name[node.name] for node in nodes]
        pod = without_sidecars(task.pod)
        for plugin, weight, without in self._batch:
            scores = _normalized(plugin, pod, node_infos, without)
            for node_info, score in zip(node_infos, scores, strict=True):
                totals[node_info.name] += float(score * weight)
        return totals


def open_nodeorder(session: Session, option: PluginOption) -> None:
    """Register nodeorder's functions."""
    plugin = NodeOrder(session, option)
    session.register(Vote.NODE_ORDER, option.name, plugin.score)
    session.register(Vote.BATCH_NODE_ORDER, option.name, plugin.score_batch)
    session.on_change(plugin.forget, plugin.forget)


def _by_share(weight: int, rate: Callable[[int, int], int]) -> ResourceScorer:
    """Score by the shares of CPU and memory, with equal weight."""
    weights = [ResourceWeight(CPU, weight), ResourceWeight(MEMORY, weight)]
    score = WeightedMean(weights, rate)
    return ResourceScorer(
        weights, score, counts_pod_level=False, use_requested=False, rounds_by_container=_ROUNDS_BY_CONTAINER
    )


def _balanced() -> ResourceScorer:
    """Score how evenly CPU, memory and, if the pod requests any, GPUs would be used."""
    weights = [ResourceWeight(name, 1) for name in (CPU, MEMORY, GPU)]
    return ResourceScorer(
        weights,
        balance_afterwards,
        counts_pod_level=False,
        use_requested=True,
        rounds_by_container=_ROUNDS_BY_CONTAINER,
    )


def _normalized(plugin: ScorePlugin, pod: Pod, nodes: Sequence[NodeInfo], without: int) -> list[int]:
    """Return scores from 0 to 100; ``without`` is the score of all nodes if the plugin skips the pod."""
    state = CycleState()
    if isinstance(plugin, PreScorePlugin):
        status = plugin.pre_score(state, pod, nodes)
        if status.is_skip:
            return [without] * len(nodes)
        if not status.is_success:
            raise ScoreError(status.message)
    scores = [plugin.score(state, pod, node) for node in nodes]
    return plugin.normalize_scores(state, pod, scores, nodes)


_MAX_SCORE = 100


def open_binpack(session: Session, option: PluginOption) -> None:
    """Register binpack's functions."""
    weight = option.integer("binpack.weight", 1)
    weights = _weights(option)

    def node_order(task: Task, node: Node) -> float:
        return score(task, node, weights) * (_MAX_SCORE * weight)

    if weight != 0:
        session.register(Vote.NODE_ORDER, option.name, node_order)


def score(task: Task, node: Node, weights: dict[str, int]) -> float:
    """Return how full the node would be, from 0 to 1: the weighted mean over the task's requests.

    The score is 0 if the task does not fit.
    """
    total = 0.0
    weight_sum = 0
    for name in task.request.names():
        if name not in weights:
            continue
        weight, capacity = weights[name], node.allocatable.get(name)
        if capacity != 0 and weight != 0:
            used = task.request.get(name) + node.used.get(name)
            if used > capacity:
                return 0.0
            total += used * weight / capacity
        weight_sum += weight
    return total / weight_sum if weight_sum > 0 else total


def _weights(option: PluginOption) -> dict[str, int]:
    def weight(key: str) -> int:
        given = option.integer(key, 1)
        return 1 if given < 0 else given

    names = [name.strip() for name in option.text("binpack.resources").split(",")]
    weights = {name: weight(f"binpack.resources.{name}") for name in names if name}
    return {**weights, CPU: weight("binpack.cpu"), MEMORY: weight("binpack.memory")}
