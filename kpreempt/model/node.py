"""Nodes, with the fields that a scheduler reads, and what autoscalers make nodes of.

Pools have the fields that describe their nodes, as in ``sigs.k8s.io/karpenter`` v1.9 ``pkg/apis/v1/nodepool.go``. The
cloud's instance types are not included. Cluster Autoscaler's node groups are in its status.
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

    @property
    def not_ready(self) -> NodeCondition | None:
        """The condition Ready, if it is there and not True."""
        ready = next((each for each in self.status.conditions if each.type == "Ready"), None)
        return None if ready is None or ready.status == "True" else ready


KARPENTER_GROUP = "karpenter.sh"
# The label of a node with the name of its pool.
NODE_POOL = "karpenter.sh/nodepool"
# The labels with the number of CPUs and the memory in Mi of a machine, by cloud.
MACHINE_SIZES = (
    ("karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/instance-memory"),
    ("karpenter.azure.com/sku-cpu", "karpenter.azure.com/sku-memory"),
)


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
    """The template, and the total resources that nodes of the pool may have.

    With ``replicas``, Karpenter keeps this number of nodes, whatever pods need.
    """

    template: NodePoolTemplate = NodePoolTemplate()
    limits: ResourceList = NO_ENTRIES
    replicas: int | None = None


class KarpenterCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A condition of a NodePool or a NodeClaim."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class NodePoolStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The total resources of the pool's nodes, and whether it is ready; ``v1beta1`` has no conditions."""

    resources: ResourceList = NO_ENTRIES
    conditions: Few[KarpenterCondition] = NO_ITEMS


class NodePool(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pool of nodes that Karpenter creates on demand."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodePoolSpec = NodePoolSpec()
    status: NodePoolStatus = NodePoolStatus()


class NodeClaimStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The progress of a NodeClaim: Launched, Registered, Initialized, Ready; and its node, once that is registered."""

    node_name: str = ""
    conditions: Few[KarpenterCondition] = NO_ITEMS


class NodeClaim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A node that Karpenter has requested (``pkg/apis/v1/nodeclaim.go``); its labels have its pool."""

    metadata: ObjectMeta = ObjectMeta()
    status: NodeClaimStatus = NodeClaimStatus()


# The annotation of the ConfigMap with Cluster Autoscaler's status, and the usual name of that ConfigMap.
STATUS_ANNOTATION = "cluster-autoscaler.kubernetes.io/last-updated"
STATUS_NAME = "cluster-autoscaler-status"
# The key in its data.
STATUS_KEY = "status"


class ConfigMap(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The ConfigMap with Cluster Autoscaler's status; no other ConfigMap is kept.

    The status is JSON here, whatever it was: YAML since 1.30, plain text before.
    """

    metadata: AnnotatedMeta = AnnotatedMeta()
    data: dict[str, str] = NO_ENTRIES


class GroupHealth(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Healthy or Unhealthy, and the size of a node group: the requested one and its limits."""

    status: str = ""
    cloud_provider_target: int | None = None
    min_size: int | None = None
    max_size: int | None = None


class BackoffInfo(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The error of the last scale-up."""

    error_code: str = ""
    error_message: str = ""


class GroupScaleUp(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """NoActivity, InProgress, Backoff or Unhealthy."""

    status: str = ""
    backoff_info: BackoffInfo = BackoffInfo()


class NodeGroupStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A node group of Cluster Autoscaler."""

    name: str = ""
    health: GroupHealth = GroupHealth()
    scale_up: GroupScaleUp = GroupScaleUp()


class ClusterHealth(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Healthy or Unhealthy."""

    status: str = ""


class ClusterWide(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The health of the whole cluster; an unhealthy one is not scaled."""

    health: ClusterHealth = ClusterHealth()


class AutoscalerStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Cluster Autoscaler's status (``clusterstate/api/types.go`` of 1.36), with the fields that are reported."""

    time: Time | None = None
    cluster_wide: ClusterWide = ClusterWide()
    node_groups: list[NodeGroupStatus] = NO_ITEMS


def status_of(config_map: ConfigMap) -> AutoscalerStatus:
    """Return the status in the ConfigMap; empty if it is not readable."""
    try:
        return msgspec.json.decode(config_map.data.get(STATUS_KEY, "{}"), type=AutoscalerStatus)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return AutoscalerStatus()
