"""Karpenter's node pools, with the fields that say what their nodes are like.

They are as in ``sigs.k8s.io/karpenter`` v1.5 ``pkg/apis/v1/nodepool.go``. What a cloud offers is not in them.
"""

from __future__ import annotations

import msgspec

from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS, Few, Many
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import ResourceList
from kpreempt.model.taints import Taint

KARPENTER_GROUP = "karpenter.sh"
# The label of a node that says its pool.
NODE_POOL = "karpenter.sh/nodepool"


class NodePoolRequirement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An expression over labels that nodes of the pool have to satisfy."""

    key: str = ""
    operator: str = ""
    values: Many[str] = NO_ITEMS


class NodePoolTemplateMeta(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is on every node of the pool."""

    labels: dict[str, str] = NO_ENTRIES


class NodePoolTemplateSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What nodes of the pool may be, and the taints that they keep."""

    requirements: Few[NodePoolRequirement] = NO_ITEMS
    taints: Few[Taint] = NO_ITEMS


class NodePoolTemplate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What nodes of the pool are made from."""

    metadata: NodePoolTemplateMeta = NodePoolTemplateMeta()
    spec: NodePoolTemplateSpec = NodePoolTemplateSpec()


class NodePoolSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The template, and how much all nodes of the pool may have together."""

    template: NodePoolTemplate = NodePoolTemplate()
    limits: ResourceList = NO_ENTRIES


class NodePoolStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How much the nodes of the pool have together."""

    resources: ResourceList = NO_ENTRIES


class NodePool(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pool of nodes that Karpenter makes as pods need them."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodePoolSpec = NodePoolSpec()
    status: NodePoolStatus = NodePoolStatus()
