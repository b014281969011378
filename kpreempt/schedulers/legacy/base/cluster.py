"""The cluster as an old scheduler's cache and queue hold it when a pod's turn comes.

Finished pods are not seen, and pods on nodes that do not exist take no node's room. Unassigned pods count only where
they are nominated to a node and are of this scheduler; unlike today's, it knows them in full.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cached_property

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.equal_pods import update_of
from kpreempt.schedulers.legacy.base.node_info import Accounting, NodeInfo, PodInfo


class Cluster:
    """Nodes with their pods, nominated pods by node in the order of the input, and look-ups. Not to be changed.

    ``nominated_node`` says which node a pod is nominated to, or nothing.
    """

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        accounting: Accounting,
        nominated_node: Callable[[Pod], str],
        *,
        now: datetime,
        scheduler_names: frozenset[str],
    ) -> None:
        self.snapshot = snapshot
        self.accounting = accounting
        self.now = now
        assigned: dict[str, list[Pod]] = {node.metadata.name: [] for node in snapshot.nodes}
        self.nominated_pods: dict[str, list[PodInfo]] = {}
        for pod in snapshot.pods:
            if pod.is_terminal:
                continue
            if pod.spec.node_name:
                if pod.spec.node_name in assigned:
                    assigned[pod.spec.node_name].append(pod)
            elif pod.spec.scheduler_name in scheduler_names and (node := nominated_node(pod)):
                self.nominated_pods.setdefault(node, []).append(PodInfo(pod, accounting))
        if not snapshot.has_scheduler_order:
            # The likely order: an update puts a pod at the end of its node's list.
            assigned = {node: sorted(pods, key=update_of) for node, pods in assigned.items()}
        self.node_infos = [NodeInfo(node, assigned[node.metadata.name], accounting) for node in snapshot.nodes]
        self.by_name = {node_info.name: node_info for node_info in self.node_infos}
        self.num_pods = sum(map(len, assigned.values()))

    @cached_property
    def budgets(self) -> SelectingBudgets:
        return SelectingBudgets(self.snapshot.pod_disruption_budgets)

    @cached_property
    def persistent_volume_claims(self) -> dict[str, PersistentVolumeClaim]:
        """Claims by ``namespace/name``."""
        return {claim.key: claim for claim in self.snapshot.persistent_volume_claims}

    @cached_property
    def persistent_volumes(self) -> dict[str, PersistentVolume]:
        """Volumes by name."""
        return {volume.metadata.name: volume for volume in self.snapshot.persistent_volumes}

    @cached_property
    def storage_classes(self) -> dict[str, StorageClass]:
        """Storage classes by name."""
        return {storage_class.metadata.name: storage_class for storage_class in self.snapshot.storage_classes}

    @cached_property
    def csi_nodes(self) -> dict[str, CSINode]:
        """What CSI drivers say of nodes, by node name."""
        return {csi_node.metadata.name: csi_node for csi_node in self.snapshot.csi_nodes}


def is_same_pod(one: Pod, other: Pod) -> bool:
    """Whether the UIDs are equal, as upstream compares; pods without any are the same where their names are."""
    if one.metadata.uid or other.metadata.uid:
        return one.metadata.uid == other.metadata.uid
    return one.key == other.key
