"""Soft spread constraints as a score (``plugins/podtopologyspread/scoring.go``, v1.36.3), in floats as upstream."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.plugins.pod_topology_spread.constraints import (
    NodeInclusion,
    SpreadConstraint,
    count_matching,
    has_all_keys,
)
from kpreempt.schedulers.kube.plugins.pod_topology_spread.logarithm import natural_log

HOSTNAME = "kubernetes.io/hostname"


class ScoreState:
    """What scoring needs to know of all nodes.

    ``ignored`` nodes lack a topology label and score 0. ``counts`` holds matching pods per domain of the nodes that
    fit; with the host name as topology key the node's own pods are counted instead. ``weights`` grow with the number
    of domains, so that constraints over few domains are not drowned.
    """

    __slots__ = ("constraints", "counts", "ignored", "pod", "requires_all_keys", "weights")

    def __init__(
        self,
        pod: Pod,
        constraints: Sequence[SpreadConstraint],
        fitting: Sequence[NodeInfo],
        *,
        requires_all_keys: bool,
    ) -> None:
        self.pod = pod
        self.constraints = constraints
        self.requires_all_keys = requires_all_keys
        self.counts: list[dict[str, int]] = [{} for _ in constraints]
        self.ignored: set[str] = set()
        for node_info in fitting:
            labels = node_info.node.labels
            if requires_all_keys and not has_all_keys(labels, constraints):
                self.ignored.add(node_info.name)
                continue
            for constraint, counts in zip(constraints, self.counts, strict=True):
                if constraint.topology_key != HOSTNAME:
                    counts[labels.get(constraint.topology_key, "")] = 0
        num_scored = len(fitting) - len(self.ignored)
        self.weights = [
            natural_log(float((num_scored if constraint.topology_key == HOSTNAME else len(counts)) + 2))
            for constraint, counts in zip(constraints, self.counts, strict=True)
        ]

    def add_all(self, nodes: Sequence[NodeInfo], inclusion: NodeInclusion) -> None:
        """Count the pods of all nodes of the cluster, in the domains of the nodes that fit."""
        namespace = self.pod.metadata.namespace
        for node_info in nodes:
            node = node_info.node
            if not inclusion.is_node_included(node):
                continue
            if self.requires_all_keys and not has_all_keys(node.labels, self.constraints):
                continue
            for constraint, counts in zip(self.constraints, self.counts, strict=True):
                domain = node.labels.get(constraint.topology_key, "")
                if domain in counts and inclusion.is_included(node, constraint):
                    counts[domain] += count_matching(node_info.pods, constraint, namespace)

    def score(self, node_info: NodeInfo) -> int:
        """How crowded the node's domains are; less is better."""
        if node_info.name in self.ignored:
            return 0
        labels = node_info.node.labels
        score = 0.0
        for constraint, counts, weight in zip(self.constraints, self.counts, self.weights, strict=True):
            domain = labels.get(constraint.topology_key)
            if domain is None:
                continue
            if constraint.topology_key == HOSTNAME:
                count = count_matching(node_info.pods, constraint, self.pod.metadata.namespace)
            else:
                count = counts[domain]
            score += float(count) * weight + float(constraint.max_skew - 1)
        return _rounded(score)

    def normalized(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Turn crowding into 0 to 100: the least crowded node has the most, ignored ones have 0."""
        counted = [score for score, node in zip(scores, nodes, strict=True) if node.name not in self.ignored]
        lowest, highest = min(counted, default=0), max(counted, default=0)
        if highest == 0:
            return [0 if node.name in self.ignored else MAX_NODE_SCORE for node in nodes]
        return [
            0 if node.name in self.ignored else MAX_NODE_SCORE * (highest + lowest - score) // highest
            for score, node in zip(scores, nodes, strict=True)
        ]


def _rounded(score: float) -> int:
    """To the nearest integer, halves away from zero (Go's ``math.Round``); scores are never negative."""
    whole = math.floor(score)
    return whole + 1 if score - whole >= 0.5 else whole
