"""The columns over the pods of a cluster that may follow another, or have other nodes than that."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.kube.bulk.pod_table import PodTable
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.node_info import NodeInfo

# A table of such a part of the nodes is made for these alone.
_SMALL = 4
# So many are made from one table before that is made anew: ever more nodes have other pods.
_MOST_MADE_FROM = 64
# And so many from that of the cluster itself: then it is worth putting all of its pods in order.
_MOST_MADE_HERE = 2


class LatestTable:
    """The ``table`` of a cluster: at once for one whose totals it brings, else when it is first asked for.

    It brings those of a first cluster, and of one with other nodes than those ``before``.

    Decisions that end in a node that fits mostly need no table, and one that skips some clusters costs no more than one
    for each: it takes from the latest that was made what is the same.
    """

    def __init__(self, cluster: ClusterState, before: LatestTable | None = None) -> None:
        self._cluster = cluster
        latest = before._latest if before is not None else None
        follows = latest is not None and cluster.has_nodes_of(latest.cluster)
        self._latest: PodTable = latest if latest is not None and follows else PodTable(cluster, latest)

    def table_of(self, nodes: Sequence[NodeInfo]) -> PodTable:
        """The columns over the pods of these nodes, or of more: of few nodes they are made for these alone.

        Only what looks at each node by itself may ask for it.
        """
        latest = self._latest
        is_small = len(nodes) * _SMALL < len(self._cluster.node_infos)
        is_here = latest.cluster is self._cluster
        most = _MOST_MADE_HERE if is_here else _MOST_MADE_FROM
        if not is_small or latest.num_made_from >= most or (is_here and latest.is_ordered):
            return self.table
        latest.num_made_from += 1
        return PodTable(self._cluster, latest, nodes)

    @property
    def current(self) -> PodTable | None:
        """The same, if it was asked for already."""
        return self._latest if self._latest.cluster is self._cluster else None

    @property
    def table(self) -> PodTable:
        """The columns over the pods of this cluster."""
        if self._latest.cluster is not self._cluster:
            self._latest = PodTable(self._cluster, self._latest)
        return self._latest
