"""What the nodes of a cluster offer and how much of it is in use, in columns that follow from cluster to cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, count
from operator import attrgetter, is_not
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.node_info import NodeInfo

Integers = npt.NDArray[np.int64]
# From this many nodes on, columns are faster than reading each node.
MIN_NODES = 16
# Below this, products with 100 fit into 64 bits, and doubles represent every amount exactly.
MAX_EXACT = 2**53


class Amounts(NamedTuple):
    """Amounts of nodes, from 0 up to ``MAX_EXACT``: milli-CPU, bytes and pods, allocatable and requested.

    ``non_zero_milli_cpu`` and ``non_zero_memory`` count containers without requests, too.
    """

    milli_cpu: Integers
    memory: Integers
    ephemeral_storage: Integers
    pods: Integers
    used_milli_cpu: Integers
    used_memory: Integers
    used_ephemeral_storage: Integers
    num_pods: Integers
    non_zero_milli_cpu: Integers
    non_zero_memory: Integers


_READ = attrgetter(
    *(f"allocatable.{name}" for name in ("milli_cpu", "memory", "ephemeral_storage", "allowed_pod_number")),
    *(f"requested.{name}" for name in ("milli_cpu", "memory", "ephemeral_storage")),
    *("num_pods", "non_zero_milli_cpu", "non_zero_memory"),
)


def amounts_of(nodes: Iterable[NodeInfo]) -> Integers:
    """Return the amounts of nodes, one row per node; they are cut to 64 bits."""
    rows = list(map(_READ, nodes))
    try:
        return np.array(rows, np.int64).reshape(len(rows), len(Amounts._fields))
    except OverflowError:
        return np.array([[min(max(each, -1), MAX_EXACT) for each in row] for row in rows], np.int64)


def columns_of(rows: Integers) -> Amounts | None:
    """Return the columns of these rows; ``None`` if an amount is out of range."""
    if len(rows) and (rows.min() < 0 or rows.max() >= MAX_EXACT):
        return None
    return Amounts(*rows.T)


class NodeAmounts:
    """The amounts of all nodes of the cluster that was used last."""

    def __init__(self) -> None:
        self._nodes: Sequence[NodeInfo] = ()
        self._rows = amounts_of(())

    def on(self, cluster: ClusterState, nodes: Sequence[NodeInfo]) -> Amounts | None:
        """Return the amounts of these nodes of the cluster; ``None`` for a few nodes, or if an amount is huge."""
        if len(nodes) < MIN_NODES:
            return None
        self._follow(cluster)
        if nodes is cluster.node_infos:
            return columns_of(self._rows)
        position = cluster.position
        return columns_of(self._rows[[position[node_info.name] for node_info in nodes]])

    def _follow(self, cluster: ClusterState) -> None:
        nodes, before = cluster.node_infos, self._nodes
        if nodes is before:
            return
        if len(nodes) != len(before):
            self._rows = amounts_of(nodes)
        else:
            names = cluster.changed_since if cluster.nodes_before is before else None
            places = (
                list(compress(count(), map(is_not, nodes, before)))
                if names is None
                else [cluster.position[name] for name in names if name in cluster.position]
            )
            self._rows[places] = amounts_of(nodes[place] for place in places)
        self._nodes = nodes
