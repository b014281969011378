"""Soft spread constraints as a score (``plugins/podtopologyspread/scoring.go``, v1.36.3), in floats as upstream.

The natural logarithm is computed as in Go, to the last bit: C's logarithm, which Python uses, rounds one in a hundred
numbers differently. This is the algorithm of FreeBSD's ``e_log.c``, which Go follows: with ``x = 2^exponent * (1 +
fraction)``, ``log(1 + fraction)`` is approximated by a polynomial in ``(fraction / (2 + fraction))^2``. The result
depends on the order of the operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import compress

from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.plugins.pod_topology_spread.filtering import (
    NodeInclusion,
    SpreadConstraint,
    has_all_keys,
    is_counted,
)

HOSTNAME = "kubernetes.io/hostname"


# How many pods a selector matches on nodes, by node name: pods of one namespace that are not terminating.
SelectedPods = Callable[[str, LabelSelector], dict[str, int]]


class ScoreState:
    """What scoring needs to know about all nodes.

    ``ignored`` nodes lack a topology label and score 0. ``counts`` holds matching pods per domain of the feasible
    nodes; with the host name as topology key, the node's own pods are counted instead. ``weights`` grow with the number
    of domains, so that constraints over few domains still matter. ``selected`` counts pods.
    """

    __slots__ = ("_on_hosts", "_scores", "constraints", "counts", "ignored", "pod", "weights")

    def __init__(
        self,
        pod: Pod,
        constraints: Sequence[SpreadConstraint],
        fitting: Sequence[NodeInfo],
        selected: SelectedPods,
        *,
        requires_all_keys: bool,
        counts_by_constraint: bool = True,
    ) -> None:
        self.pod = pod
        self.constraints = constraints
        keys = [constraint.topology_key for constraint in constraints]
        first = [index if counts_by_constraint else keys.index(key) for index, key in enumerate(keys)]
        counts_of_keys: list[dict[str, int]] = [{} for _ in constraints]
        # In older versions, constraints on one topology key shared their counts, and only the first had a number of
        # domains.
        self.counts = [counts_of_keys[index] for index in first]
        labels = [node_info.node.metadata.labels for node_info in fitting]
        self.ignored: set[str] = set()
        if requires_all_keys:
            has_all = [has_all_keys(each, constraints) for each in labels]
            self.ignored = {each.name for each, is_scored in zip(fitting, has_all, strict=True) if not is_scored}
            labels = list(compress(labels, has_all))
        for key, counts in zip(keys, self.counts, strict=True):
            if key != HOSTNAME:
                counts.update(dict.fromkeys([each.get(key, "") for each in labels], 0))
        self.weights = [
            natural_log(float((len(labels) if key == HOSTNAME else len(counts_of_keys[index])) + 2))
            for index, key in enumerate(keys)
        ]
        # The pods that count for a constraint, by node name.
        self._on_hosts: list[dict[str, int]] = []
        for constraint in constraints:
            selector = constraint.selector
            if selector is None or not is_counted(constraint):
                self._on_hosts.append({})
            else:
                self._on_hosts.append(selected(pod.metadata.namespace, selector))
        # Many nodes are equally crowded.
        self._scores: dict[tuple[int | None, ...], int] = {}

    def add_all(self, by_name: Mapping[str, NodeInfo], inclusion: NodeInclusion, *, requires_all_keys: bool) -> None:
        """Count the pods of all nodes of the cluster, in the domains of the feasible nodes."""
        for constraint, counts, on_hosts in zip(self.constraints, self.counts, self._on_hosts, strict=True):
            for name, count in on_hosts.items():
                node = by_name[name].node
                domain = node.metadata.labels.get(constraint.topology_key, "")
                if domain not in counts or (requires_all_keys and not has_all_keys(node.labels, self.constraints)):
                    continue
                if inclusion.is_node_included(node) and inclusion.is_included(node, constraint):
                    counts[domain] += count

    def scores_of(self, nodes: Sequence[NodeInfo]) -> list[int]:
        """Return how crowded the domains of each node are; less is better."""
        columns = [self._column(index, nodes) for index in range(len(self.constraints))]
        found = list(zip(*columns, strict=True))
        for counts in set(found) - self._scores.keys():
            self._scores[counts] = self._score_of(counts)
        scores = list(map(self._scores.__getitem__, found))
        if not self.ignored:
            return scores
        return [0 if each.name in self.ignored else score for each, score in zip(nodes, scores, strict=True)]

    def _column(self, index: int, nodes: Sequence[NodeInfo]) -> list[int | None]:
        """Return the matching pods that count for a constraint on each node, ``None`` if it has no domain."""
        key = self.constraints[index].topology_key
        domains = [node_info.node.metadata.labels.get(key) for node_info in nodes]
        if key == HOSTNAME:
            on_hosts = self._on_hosts[index]
            return [
                None if domain is None else on_hosts.get(each.node.metadata.name, 0)
                for each, domain in zip(nodes, domains, strict=True)
            ]
        # An ignored node may be in no domain of the feasible ones.
        counts = self.counts[index]
        return [None if domain is None else counts.get(domain) for domain in domains]

    def _score_of(self, counts: Sequence[int | None]) -> int:
        """Return how crowded a node is, given the matching pods in its domain of each constraint."""
        score = 0.0
        for count, constraint, weight in zip(counts, self.constraints, self.weights, strict=True):
            if count is not None:
                score += float(count) * weight + float(constraint.max_skew - 1)
        # To the nearest integer, halves away from zero (Go's ``math.Round``); scores are never negative.
        whole = math.floor(score)
        return whole + 1 if score - whole >= 0.5 else whole

    def normalized(self, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Scale crowding to 0 to 100: the highest for the least crowded node, and 0 for ignored ones."""
        if not self.ignored:
            lowest, highest = min(scores, default=0), max(scores, default=0)
            if highest == 0:
                return [MAX_NODE_SCORE] * len(scores)
            return [MAX_NODE_SCORE * (highest + lowest - score) // highest for score in scores]
        counted = [score for score, node in zip(scores, nodes, strict=True) if node.name not in self.ignored]
        lowest, highest = min(counted, default=0), max(counted, default=0)
        if highest == 0:
            return [0 if node.name in self.ignored else MAX_NODE_SCORE for node in nodes]
        return [
            0 if node.name in self.ignored else MAX_NODE_SCORE * (highest + lowest - score) // highest
            for score, node in zip(scores, nodes, strict=True)
        ]


# log(2) in two parts, so that an exponent times the first one is exact.
_LOG2_HIGH = 6.93147180369123816490e-01
_LOG2_LOW = 1.90821492927058770002e-10

_EVEN = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)
_ODD = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)


def natural_log(number: float) -> float:
    """Return the logarithm of a positive, finite number."""
    mantissa, exponent = math.frexp(number)
    if mantissa < math.sqrt(2) / 2:
        mantissa, exponent = mantissa * 2, exponent - 1
    fraction = mantissa - 1
    ratio = fraction / (2 + fraction)
    square = ratio * ratio
    fourth = square * square
    remainder = square * _polynomial(_ODD, fourth) + fourth * _polynomial(_EVEN, fourth)
    half = 0.5 * fraction * fraction
    correction = ratio * (half + remainder) + exponent * _LOG2_LOW
    return exponent * _LOG2_HIGH - ((half - correction) - fraction)


def _polynomial(coefficients: tuple[float, ...], argument: float) -> float:
    """Return the polynomial's value, evaluated from the highest power down."""
    value = 0.0
    for coefficient in reversed(coefficients):
        value = coefficient + argument * value
    return value
