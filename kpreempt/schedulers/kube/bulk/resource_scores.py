"""Scores from how full nodes are, of many nodes at once: the numbers that ``framework/resource_scoring.py`` gives.

Amounts are counted in 64 bits and shares in double precision, as there. Where an amount is so big that this could make
a difference, nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpreempt.schedulers.kube.bulk.pod_table import Integers
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE
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

# Below it products with 100 fit into 64 bits, and doubles hold every amount.
_MOST = 2**53
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


def scores_at_once(scorer: ResourceScorer, requests: Sequence[int], nodes: Sequence[NodeInfo]) -> list[int] | None:
    """The scores of ``nodes``; ``None`` for other resources than CPU and memory, other functions and huge amounts."""
    score, names = scorer.usage_score, [name for name, _ in scorer.weights]
    if any(name not in (CPU, MEMORY) for name in names):
        return None
    allocatable, allocated, requested = [], [], []
    for name, request in zip(names, requests, strict=True):
        pairs = [scorer.on_node(name, each) for each in nodes]
        if any(not 0 <= total < _MOST or not 0 <= used + request < _MOST for total, used in pairs):
            return None
        totals, uses = np.array(pairs, dtype=np.int64).T
        allocatable.append(totals)
        allocated.append(uses)
        requested.append(uses + request)
    if isinstance(score, WeightedMean) and score.rate in (least_allocated, most_allocated):
        is_free = score.rate is least_allocated
        parts = [
            np.maximum(total - asked, 0) if is_free else np.minimum(asked, total)
            for asked, total in zip(requested, allocatable, strict=True)
        ]
        return _means(parts, allocatable, [weight for _, weight in scorer.weights])
    if score is balanced_allocation:
        half = MAX_NODE_SCORE // 2
        change = half + _balances(requested, allocatable) - _balances(allocated, allocatable)
        return _listed(half + (change / 2).astype(np.int64))
    if score is balance_afterwards:
        return _listed(_balances(requested, allocatable))
    return None


def _means(parts: Sequence[Integers], allocatable: Sequence[Integers], weights: Sequence[int]) -> list[int]:
    """The weighted means of percentages, over the resources that a node has."""
    total = np.zeros(len(parts[0]), dtype=np.int64)
    weight_sum = np.zeros_like(total)
    for part, whole, weight in zip(parts, allocatable, weights, strict=True):
        counts = whole > 0
        total += np.where(counts, part * MAX_UTILIZATION // np.where(counts, whole, 1) * weight, 0)
        weight_sum += np.where(counts, weight, 0)
    return _listed(total // np.maximum(weight_sum, 1))


def _balances(amounts: Sequence[Integers], allocatable: Sequence[Integers]) -> Integers:
    """``balance`` of each node, of one resource or of two."""
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
