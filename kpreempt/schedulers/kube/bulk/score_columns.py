"""Scores of all feasible nodes as columns over the nodes of the cluster, if only their sum is needed.

A local plugin's score for a node is cached from one cluster to the next, as in ``framework/decision_cache.py``, by the
node's position. ``tests/property/test_prepared_again.py`` compares the scores with those computed one by one.

Resource usage is also scored in columns, with the same results as ``framework/resource_scoring.py``. Amounts are 64-bit
integers and shares are in double precision, as there. If an amount is so big that this could make a difference, no
result is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.bulk.node_amounts import MAX_EXACT, Amounts
from kpreempt.schedulers.kube.bulk.pod_table import Floats, Integers
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.decision_cache import Changes
from kpreempt.schedulers.kube.framework.in_tree import BulkScorePlugin, rated
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE, MIN_NODE_SCORE, ScorePlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resource_scoring import (
    MAX_UTILIZATION,
    ResourceScorer,
    WeightedMean,
    balance_afterwards,
    balanced_allocation,
    least_allocated,
    most_allocated,
)
from kpreempt.schedulers.kube.framework.resources import CPU, MEMORY

# If scores differ by at most this, each possible one is normalized instead of each node's.
_MAX_SPAN = 1_000


class NumberColumn:
    """A number for each node of a cluster, by its position; numbers are computed on request.

    All of them so far are between the ``lowest`` and the ``highest``.
    """

    __slots__ = ("_changes", "_is_open", "_seen", "highest", "lowest", "numbers")

    def __init__(self, size: int, changes: Changes) -> None:
        self.numbers: Integers = np.zeros(size, np.int64)
        self._is_open = np.ones(size, np.bool_)
        self._changes = changes
        self._seen = len(changes.places)
        self.lowest, self.highest = MAX_EXACT, -MAX_EXACT

    def unknown(self, places: Integers) -> Integers:
        """Return those of ``places`` whose numbers are unknown, because they are new or their nodes changed."""
        changed = self._changes.places[self._seen :]
        if changed:
            self._is_open[changed] = True
            self._seen += len(changed)
        unknown: Integers = places[self._is_open[places]]
        return unknown

    def store(self, places: Integers, numbers: Integers) -> None:
        """Store the numbers at ``places``, at least one."""
        self.numbers[places] = numbers
        self._is_open[places] = False
        self.lowest, self.highest = min(self.lowest, int(numbers.min())), max(self.highest, int(numbers.max()))

    def at(self, places: Integers, find_out: Callable[[list[int]], Sequence[int]]) -> Integers:
        """Return the numbers at ``places``; ``find_out`` computes those that are unknown."""
        unknown = self.unknown(places)
        if len(unknown):
            self.store(unknown, np.array(find_out(unknown.tolist()), np.int64))
        numbers: Integers = self.numbers[places]
        return numbers


class ScoresAtOnce:
    """Scores ``nodes``, the ones that fit a pod, with ``plugins``; they are at the ``places`` of the state.

    Local scores that are not normalized are cached in ``all_nodes`` as one weighted sum: those of the plugins in
    ``summed``, which rate only the nodes where the sum is unknown.
    """

    def __init__(
        self,
        state: CycleState,
        pod: Pod,
        nodes: Sequence[NodeInfo],
        all_nodes: Sequence[NodeInfo],
        plugins: Sequence[ScorePlugin],
    ) -> None:
        assert state.places is not None
        self._state, self._pod, self._nodes, self._all_nodes = state, pod, nodes, all_nodes
        self._places = self._unknown = state.places
        self._findings = state.scheduling_findings or state.findings
        self.summed = [each.name for each in plugins if _is_summed(each)] if self._findings is not None else []
        self._sum: NumberColumn | None = None
        if self._findings is not None and self.summed:
            self._sum = self._findings.column(("score sum", *self.summed), len(all_nodes), NumberColumn)
            self._unknown = self._sum.unknown(self._places)
        self.running = [each for each in plugins if each.name not in self.summed or len(self._unknown)]

    def rate(self, plugin: ScorePlugin) -> Integers:
        """Return the plugin's normalized scores: one for each node, or one for all. Raises ``PluginError``."""
        state, pod, nodes = self._state, self._pod, self._nodes
        if plugin.name in self.summed:
            return np.array(self._rated_at(plugin, self._unknown.tolist()), np.int64)
        # A pod's images are not part of its scheduling key.
        scores_images = isinstance(plugin, BulkScorePlugin) and plugin.scores_images
        findings = state.findings if scores_images else self._findings
        same = plugin.score_of_every_node(state, pod) if isinstance(plugin, BulkScorePlugin) else None
        if same is not None:
            raw: Integers = np.array([same], np.int64)
        elif findings is None or not plugin.is_local:
            raw = np.array(rated(plugin, state, pod, nodes), np.int64)
        else:
            column = findings.column(("scores", plugin.name), len(self._all_nodes), NumberColumn)
            raw = column.at(self._places, partial(self._rated_at, plugin))
            if column.lowest == column.highest:
                raw = raw[:1]
        if type(plugin).normalize_scores is ScorePlugin.normalize_scores:
            return raw
        if not len(raw) or not plugin.scales_to_extremes:
            return np.array(plugin.normalize_scores(state, pod, raw.tolist(), nodes), np.int64)
        lowest, highest = int(raw.min()), int(raw.max())
        if highest - lowest > _MAX_SPAN:
            return np.array(plugin.normalize_scores(state, pod, raw.tolist(), nodes), np.int64)
        # What each score from the lowest to the highest becomes.
        scaled = np.array(plugin.normalize_scores(state, pod, list(range(lowest, highest + 1)), ()), np.int64)
        return scaled if lowest == highest else scaled[raw - lowest]

    def _rated_at(self, plugin: ScorePlugin, places: list[int]) -> Sequence[int]:
        return rated(plugin, self._state, self._pod, [self._all_nodes[place] for place in places])

    def in_sum(self, columns: Mapping[str, Integers], weights: Mapping[str, int]) -> Integers | None:
        """Return each node's weighted total; ``None`` if a score is out of range."""
        if any(scores.min() < MIN_NODE_SCORE or scores.max() > MAX_NODE_SCORE for scores in columns.values()):
            return None
        weighted = {name: scores * weights[name] for name, scores in columns.items()}
        total: Integers = np.zeros(len(self._nodes), np.int64)
        if self._sum is not None:
            if len(self._unknown):
                self._sum.store(self._unknown, np.sum([weighted.pop(name) for name in self.summed], axis=0))
            total = self._sum.numbers[self._places]
        for scores in weighted.values():
            total += scores
        return total


def _is_summed(plugin: ScorePlugin) -> bool:
    """Return whether the score for a node depends only on it and on the pod's scheduling key."""
    if isinstance(plugin, BulkScorePlugin) and (
        plugin.scores_images or type(plugin).score_of_every_node is not BulkScorePlugin.score_of_every_node
    ):
        return False
    return bool(plugin.is_local) and type(plugin).normalize_scores is ScorePlugin.normalize_scores


def scores_at_once(scorer: ResourceScorer, requests: Sequence[int], amounts: Amounts | None) -> list[int] | None:
    """Return the scores of the nodes with these ``amounts``.

    ``None`` without these, for resources other than CPU and memory, for other functions, and for huge amounts.
    """
    score, names = scorer.usage_score, [name for name, _ in scorer.weights]
    if amounts is None or any(name not in (CPU, MEMORY) for name in names):
        return None
    allocatable, allocated, requested = [], [], []
    for name, request in zip(names, requests, strict=True):
        totals, uses = scorer.in_columns(name, amounts)
        if request + int(uses.max(initial=0)) >= MAX_EXACT:
            return None
        allocatable.append(totals)
        allocated.append(uses)
        requested.append(uses + request)
    if isinstance(score, WeightedMean) and score.rate in (least_allocated, most_allocated):
        is_free = score.rate is least_allocated
        parts = [
            np.maximum(total - amount, 0) if is_free else np.minimum(amount, total)
            for amount, total in zip(requested, allocatable, strict=True)
        ]
        return _means(parts, allocatable, [weight for _, weight in scorer.weights])
    if score is balanced_allocation:
        half = MAX_NODE_SCORE // 2
        change = half + _balances(requested, allocatable) - _balances(allocated, allocatable)
        return _listed(half + (change / 2).astype(np.int64))
    return _listed(_balances(requested, allocatable)) if score is balance_afterwards else None


def _means(parts: Sequence[Integers], allocatable: Sequence[Integers], weights: Sequence[int]) -> list[int]:
    """Return the weighted means of percentages, over the resources that a node has."""
    total = np.zeros(len(parts[0]), dtype=np.int64)
    weight_sum = np.zeros_like(total)
    for part, whole, weight in zip(parts, allocatable, weights, strict=True):
        counts = whole > 0
        total += np.where(counts, part * MAX_UTILIZATION // np.where(counts, whole, 1) * weight, 0)
        weight_sum += np.where(counts, weight, 0)
    return _listed(total // np.maximum(weight_sum, 1))


def _balances(amounts: Sequence[Integers], allocatable: Sequence[Integers]) -> Integers:
    """Return ``balance`` of each node, for one resource or two."""
    shares: list[Floats] = []
    counted = []
    for amount, whole in zip(amounts, allocatable, strict=True):
        counted.append(whole > 0)
        shares.append(np.minimum(amount / np.where(whole > 0, whole, 1), 1.0))
    deviation: Floats = np.zeros(len(shares[0]))
    if len(shares) == 2:
        deviation = np.where(counted[0] & counted[1], np.abs((shares[0] - shares[1]) / 2), 0.0)
    return ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)


def _listed(scores: Integers) -> list[int]:
    found: list[int] = scores.tolist()
    return found
