"""Pod affinity as in 1.25 (``plugins/interpodaffinity``), on the lists that Volcano makes of nodes.

``plugins/util/k8s/snapshot.go`` of Volcano v1.8.0 lists the nodes that have pods with affinity once, when the session
opens. A pod that comes later to a node that had none refuses nobody there for the rest of the session, and nobody
gains from what it prefers. What the incoming pod itself wants is looked for on all nodes as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.kube.framework.interface import Handle
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.plugin import InterPodAffinity


class PodAffinity(InterPodAffinity):
    """Made when the session opens; a requirement of an existing pod adds no weight."""

    drops_namespace_selectors = True

    def __init__(self, handle: Handle) -> None:
        super().__init__({"hardPodAffinityWeight": 0}, handle)
        nodes = handle.cluster.node_infos
        self._with_affinity = [node_info for node_info in nodes if node_info.pods_with_affinity]
        self._with_anti_affinity = [node_info for node_info in nodes if node_info.pods_with_required_anti_affinity]

    def nodes_with_anti_affinity(self, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Those that had pods with required anti-affinity when the session opened."""
        return self._with_anti_affinity

    def nodes_with_affinity(self, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Those that had pods with any affinity when the session opened."""
        return self._with_affinity
