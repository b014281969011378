"""Soft spread constraints as a score (``plugins/podtopologyspread/scoring.go``, v1.36.3), in floats as upstream."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from itertools import chain

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE
from kpreempt.schedulers.kube.framework.memory import Findings, answers_on
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
    of domains, so that constraints over few domains are not drowned. What is counted on a node is read from and
    added to ``findings``, where there are any.
    """

    __slots__ = ("_findings", "_scores", "constraints", "counts", "ignored", "pod", "requires_all_keys", "weights")

    def __init__(
        self,
        pod: Pod,
        constraints: Sequence[SpreadConstraint],
        fitting: Sequence[NodeInfo],
        *,
        requires_all_keys: bool,
        counts_by_constraint: bool = True,
        findings: Findings | None = None,
    ) -> None:
        self.pod = pod
        self.constraints = constraints
        self.requires_all_keys = requires_all_keys
        keys = [constraint.topology_key for constraint in constraints]
        first = [index if counts_by_constraint else keys.index(key) for index, key in enumerate(keys)]
        counts_of_keys: list[dict[str, int]] = [{} for _ in constraints]
        # Of old, constraints on one topology key shared their counts, and only the first had a number of domains.
        self.counts = [counts_of_keys[index] for index in first]
        self.ignored: set[str] = set()
        self._findings = findings
        # Many nodes are equally crowded.
        self._scores: dict[tuple[int | None, ...], int] = {}
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
            natural_log(float((num_scored if constraint.topology_key == HOSTNAME else len(counts_of_keys[index])) + 2))
            for index, constraint in enumerate(constraints)
        ]

    def add_all(self, nodes: Sequence[NodeInfo], inclusion: NodeInclusion) -> None:
        """Count the pods of all nodes of the cluster, in the domains of the nodes that fit."""
        if self._findings is not None:
            # What is remembered must not hang on which nodes fit this time.
            known = self._findings.on("spread score")
            counted = answers_on(known, nodes, lambda node_info: list(self._counts_on(node_info, inclusion)))
            for index, domain, count in chain.from_iterable(counted):
                if domain in self.counts[index]:
                    self.counts[index][domain] += count
            return
        namespace = self.pod.metadata.namespace
        for node_info in nodes:
            if not node_info.num_pods or namespace not in node_info.labels_by_namespace:
                continue
            for index, domain, count in self._counts_on(node_info, inclusion, self.counts):
                self.counts[index][domain] += count

    def _counts_on(
        self, node_info: NodeInfo, inclusion: NodeInclusion, domains: Sequence[Container[str]] | None = None
    ) -> Iterator[tuple[int, str, int]]:
        """The constraints for which a node counts, by index, each with the node's domain and its matching pods.

        Only ``domains``, those of each constraint, are looked at where they are given.
        """
        node = node_info.node
        if not inclusion.is_node_included(node):
            return
        if self.requires_all_keys and not has_all_keys(node.labels, self.constraints):
            return
        for index, constraint in enumerate(self.constraints):
            domain = node.labels.get(constraint.topology_key, "")
            is_wanted = constraint.topology_key != HOSTNAME if domains is None else domain in domains[index]
            if is_wanted and inclusion.is_included(node, constraint):
                yield index, domain, count_matching(node_info, constraint, self.pod.metadata.namespace)

    def _count_on_host(self, node_info: NodeInfo, index: int) -> int:
        """The node's own pods that match a constraint."""
        constraint = self.constraints[index]
        if self._findings is None:
            return count_matching(node_info, constraint, self.pod.metadata.namespace)
        known = self._findings.on(f"spread host {index}")
        count: int | None = known.get(node_info)
        if count is None:
            count = known[node_info] = count_matching(node_info, constraint, self.pod.metadata.namespace)
        return count

    def score(self, node_info: NodeInfo) -> int:
        """How crowded the node's domains are; less is better."""
        if node_info.name in self.ignored:
            return 0
        labels = node_info.node.labels
        found: list[int | None] = []
        for index, constraint in enumerate(self.constraints):
            domain = labels.get(constraint.topology_key)
            if domain is None:
                found.append(None)
            elif constraint.topology_key == HOSTNAME:
                found.append(self._count_on_host(node_info, index))
            else:
                found.append(self.counts[index][domain])
        counts = tuple(found)
        score = self._scores.get(counts)
        if score is None:
            score = self._scores[counts] = self._score_of(counts)
        return score

    def _score_of(self, counts: Sequence[int | None]) -> int:
        """How crowded a node is with so many matching pods in the domain of each constraint that it has one of."""
        score = 0.0
        for count, constraint, weight in zip(counts, self.constraints, self.weights, strict=True):
            if count is not None:
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
