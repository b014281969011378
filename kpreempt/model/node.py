"""Nodes, with the fields that a scheduler reads, and Karpenter's node pools.

Pools have the fields that describe their nodes, as in ``sigs.k8s.io/karpenter`` v1.5 ``pkg/apis/v1/nodepool.go``. The
cloud's instance types are not included.
"""

from __future__ import annotations

import msgspec

from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS, Few, Many
from kpreempt.model.meta import AnnotatedMeta, ObjectMeta, Time
from kpreempt.model.pod import ResourceList
from kpreempt.model.taints import Taint

# Labels that identify a machine or its location; no two nodes share them.
MACHINE_LABELS = frozenset(
    {
        "alpha.eksctl.io/instance-id",
        "node.kubernetes.io/instance-id",
        "cloud.google.com/gce-topology-host",
        "cloud.google.com/gce-topology-subblock",
        "topology.k8s.aws/network-node-layer-3",
    }
)


class NodeSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The configuration of a node."""

    unschedulable: bool = False
    taints: Few[Taint] = NO_ITEMS


class ContainerImage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An image on a node: its names, and its size in bytes.

    Redaction rounds sizes: if ``size_bytes_up_to`` is set, which is not an API field, the size is between the two.
    """

    names: Many[str] = NO_ITEMS
    size_bytes: int = 0
    size_bytes_up_to: int = 0

    @property
    def most_bytes(self) -> int:
        """The maximum size."""
        return max(self.size_bytes, self.size_bytes_up_to)


class NodeCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One condition of a node's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class NodeSystemInfo(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Versions of the software on a node."""

    kubelet_version: str = ""


class NodeStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The resources and conditions of a node."""

    allocatable: ResourceList = NO_ENTRIES
    capacity: ResourceList = NO_ENTRIES
    conditions: list[NodeCondition] = NO_ITEMS
    images: Many[ContainerImage] = NO_ITEMS
    declared_features: Few[str] = NO_ITEMS
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A node of the cluster."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels


KARPENTER_GROUP = "karpenter.sh"
# The label of a node with the name of its pool.
NODE_POOL = "karpenter.sh/nodepool"


class NodePoolRequirement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An expression over labels that nodes of the pool must satisfy."""

    key: str = ""
    operator: str = ""
    values: Many[str] = NO_ITEMS


class NodePoolTemplateMeta(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The labels and annotations of all nodes in the pool."""

    labels: dict[str, str] = NO_ENTRIES


class NodePoolTemplateSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Requirements for nodes of the pool, and their taints."""

    requirements: Few[NodePoolRequirement] = NO_ITEMS
    taints: Few[Taint] = NO_ITEMS


class NodePoolTemplate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The template from which nodes of the pool are created."""

    metadata: NodePoolTemplateMeta = NodePoolTemplateMeta()
    spec: NodePoolTemplateSpec = NodePoolTemplateSpec()


class NodePoolSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The template, and the total resources that nodes of the pool may have."""

    template: NodePoolTemplate = NodePoolTemplate()
    limits: ResourceList = NO_ENTRIES


class NodePoolStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The total resources of the pool's nodes."""

    resources: ResourceList = NO_ENTRIES


class NodePool(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pool of nodes that Karpenter creates on demand."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodePoolSpec = NodePoolSpec()
    status: NodePoolStatus = NodePoolStatus()
