"""Scores of all nodes that fit at once, as columns over the nodes of the cluster, where only their sum is wanted.

What a local plugin gives a node is kept from one cluster to the next that follows it, as ``framework/memory.py`` has
it, by the node's place. Held equal to the scores one by one by ``tests/property/test_prepared_again.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.bulk.pod_table import Integers
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.in_tree import (
    BulkScorePlugin,
    ColumnScorePlugin,
    EvenScorePlugin,
)
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE, MIN_NODE_SCORE, ScorePlugin
from kpreempt.schedulers.kube.framework.memory import Changes
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.on_node import rated


class NumberColumn:
    """A number for each node of a cluster, by its place; those are found out that are asked for."""

    __slots__ = ("_changes", "_is_open", "_numbers", "_seen")

    def __init__(self, size: int, changes: Changes) -> None:
        self._numbers = np.zeros(size, np.int64)
        self._is_open = np.ones(size, np.bool_)
        self._changes = changes
        self._seen = len(changes.places)

    def at(self, places: Integers, find_out: Callable[[list[int]], Sequence[int]]) -> Integers:
        """The numbers at ``places``; ``find_out`` is asked for those where anything has changed since."""
        changed = self._changes.places[self._seen :]
        if changed:
            self._is_open[changed] = True
            self._seen += len(changed)
        unknown = places[self._is_open[places]]
        if len(unknown):
            self._numbers[unknown] = find_out(unknown.tolist())
            self._is_open[unknown] = False
        numbers: Integers = self._numbers[places]
        return numbers


class ScoresAtOnce:
    """Rates ``nodes``, those that fit a pod, which are at the ``places`` of the state in ``all_nodes``."""

    def __init__(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], all_nodes: Sequence[NodeInfo]) -> None:
        assert state.places is not None
        self._state, self._pod, self._nodes, self._all_nodes = state, pod, nodes, all_nodes
        self._places = state.places

    def rate(self, plugin: ScorePlugin) -> Integers:
        """The normalised scores that the plugin gives. Raises ``PluginError``."""
        if isinstance(plugin, ColumnScorePlugin):
            scores = plugin.normalized_column(self._state)
            if scores is not None:
                return scores
        return self._normalized(plugin, self._raw(plugin))

    def in_sum(self, columns: Mapping[str, Integers], weights: Mapping[str, int]) -> list[int] | None:
        """The weighted scores of each node in all; ``None`` where one is out of range."""
        total = np.zeros(len(self._nodes), np.int64)
        for name, scores in columns.items():
            if scores.min() < MIN_NODE_SCORE or scores.max() > MAX_NODE_SCORE:
                return None
            total += scores * weights[name]
        sums: list[int] = total.tolist()
        return sums

    def _raw(self, plugin: ScorePlugin) -> Integers:
        state, pod = self._state, self._pod
        # Which images a pod has is not part of its shape, and plugins that rate all at once may look at them.
        findings = state.findings if isinstance(plugin, BulkScorePlugin) else state.shape_findings or state.findings
        if findings is None or not plugin.is_local:
            return np.array(rated(plugin, state, pod, self._nodes), np.int64)

        def find_out(places: list[int]) -> Sequence[int]:
            return rated(plugin, state, pod, [self._all_nodes[place] for place in places])

        column = findings.column(("scores", plugin.name), len(self._all_nodes), NumberColumn)
        return column.at(self._places, find_out)

    def _normalized(self, plugin: ScorePlugin, raw: Integers) -> Integers:
        state, pod, nodes = self._state, self._pod, self._nodes
        if type(plugin).normalize_scores is ScorePlugin.normalize_scores:
            return raw
        if not isinstance(plugin, EvenScorePlugin):
            return np.array(plugin.normalize_scores(state, pod, raw.tolist(), nodes), np.int64)
        if raw.min() == raw.max():
            return np.full(len(raw), plugin.normalize_scores(state, pod, raw[:1].tolist(), nodes[:1])[0], np.int64)
        kinds, first, kind_of = np.unique(raw, return_index=True, return_inverse=True)
        of_kinds = plugin.normalize_scores(state, pod, kinds.tolist(), [nodes[place] for place in first.tolist()])
        normalized: Integers = np.array(of_kinds, np.int64)[kind_of]
        return normalized
