"""Nodes as a drain leaves them and as an upgrade brings them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from kpreempt.analysis.explain.overrides import cordoned_node, uncordoned_node
from kpreempt.controllers.replacement import tied_to
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod

HOST_NAME = "kubernetes.io/hostname"


def cordoned(nodes: Iterable[Node], names: Collection[str]) -> list[Node]:
    """The nodes, of which those of these names take no pods; the very same records where they took none before."""
    return [cordoned_node(each) if each.name in names else each for each in nodes]


class NewNode(NamedTuple):
    """A node that is like another one, and the pods that DaemonSets have on it."""

    node: Node
    pods: list[Pod]


def node_like(node: Node, name: str, cluster: ClusterSnapshot, kubelet_version: str = "") -> NewNode:
    """A node of another name, with nothing on it but what DaemonSets run on the one that it is like."""
    labels = {key: name if key == HOST_NAME else value for key, value in node.labels.items()}
    metadata = msgspec.structs.replace(node.metadata, name=name, uid=f"new-{name}", labels=labels)
    status = node.status
    if kubelet_version:
        info = msgspec.structs.replace(status.node_info, kubelet_version=kubelet_version)
        status = msgspec.structs.replace(status, node_info=info)
    made = uncordoned_node(msgspec.structs.replace(node, metadata=metadata, status=status))
    return NewNode(made, [_of_daemon_set(pod, name) for pod in cluster.pods if _runs_of_daemon_set(pod, node.name)])


def with_storage_limits(cluster: ClusterSnapshot, names: Mapping[str, str]) -> ClusterSnapshot:
    """The cluster with the CSINodes of nodes to come, each (by its name) as that of the one that it is like."""
    known = {each.metadata.name: each for each in cluster.csi_nodes}
    made = [
        msgspec.structs.replace(known[old], metadata=msgspec.structs.replace(known[old].metadata, name=new))
        for new, old in names.items()
        if old in known and new not in known
    ]
    return msgspec.structs.replace(cluster, csi_nodes=[*cluster.csi_nodes, *made]) if made else cluster


def _runs_of_daemon_set(pod: Pod, node: str) -> bool:
    owner = controller_of(pod.metadata)
    return pod.spec.node_name == node and owner is not None and owner.kind == "DaemonSet" and not pod.is_terminal


def _of_daemon_set(pod: Pod, node: str) -> Pod:
    """The pod as the DaemonSet has it on another node."""
    name = f"{pod.metadata.name}-{node}"
    metadata = msgspec.structs.replace(pod.metadata, name=name, uid=f"new-{name}", deletion_timestamp=None)
    spec = msgspec.structs.replace(pod.spec, node_name=node, affinity=tied_to(pod.spec.affinity, node))
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)
