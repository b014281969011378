"""Claims, volumes and CSINodes for tests, with only the fields a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from kpreempt.model.affinity import NodeSelector, NodeSelectorTerm
from kpreempt.model.labels import NodeSelectorRequirement
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.pod import PersistentVolumeClaimVolume, Volume
from kpreempt.model.quantity import quantity
from kpreempt.model.storage import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolume,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    VolumeNodeResources,
    VolumeResources,
)

ZONE = "topology.kubernetes.io/zone"
DRIVER = "csi.example.com"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def uses(*claims: str) -> list[Volume]:
    """A pod's volumes from claims in its namespace."""
    return [Volume(name=claim, persistent_volume_claim=PersistentVolumeClaimVolume(claim)) for claim in claims]


def make_claim(
    name: str,
    *,
    size: str = "1Gi",
    volume: str = "",
    storage_class: str | None = "slow",
    modes: Sequence[str] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
    phase: str = "",
    **metadata: Any,
) -> PersistentVolumeClaim:
    """A claim in ``shop``, bound to ``volume`` if given."""
    bound = {BIND_COMPLETED: "yes"} if volume else {}
    return PersistentVolumeClaim(
        metadata=AnnotatedMeta(
            name=name, namespace="shop", uid=f"uid-{name}", annotations={**bound, **(annotations or {})}, **metadata
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=list(modes),
            storage_class_name=storage_class,
            volume_name=volume,
            resources=VolumeResources({"storage": quantity(size)}),
        ),
        status=PersistentVolumeClaimStatus(phase),
    )


def make_volume(
    name: str,
    *,
    size: str = "1Gi",
    zone: str = "",
    modes: Sequence[str] = ("ReadWriteOnce",),
    labels: Mapping[str, str] | None = None,
    phase: str = "Available",
    **spec: Any,
) -> PersistentVolume:
    """A CSI volume of class ``slow``, reachable from everywhere or from one zone."""
    if zone:
        spec["node_affinity"] = VolumeNodeAffinity(in_zone(zone))
    if not any(key in spec for key in ("csi", "gce_persistent_disk", "aws_elastic_block_store", "azure_disk")):
        spec["csi"] = CSIPersistentVolume(DRIVER, f"handle-{name}")
    spec.setdefault("storage_class_name", "slow")
    return PersistentVolume(
        metadata=AnnotatedMeta(name=name, labels=dict(labels or {})),
        spec=PersistentVolumeSpec(capacity={"storage": quantity(size)}, access_modes=list(modes), **spec),
        status=PersistentVolumeStatus(phase),
    )


def in_zone(zone: str, key: str = ZONE) -> NodeSelector:
    """Nodes of one zone."""
    return NodeSelector([NodeSelectorTerm([NodeSelectorRequirement(key, "In", [zone])])])


def make_class(
    name: str = "slow",
    *,
    provisioner: str = "kubernetes.io/no-provisioner",
    binds: Literal["Immediate", "WaitForFirstConsumer"] = "WaitForFirstConsumer",
    zones: Sequence[str] = (),
) -> StorageClass:
    """A storage class that binds for its first consumer, to existing volumes unless it has a provisioner."""
    topologies = [TopologySelectorTerm([TopologySelectorLabelRequirement(ZONE, list(zones))])] if zones else []
    return StorageClass(AnnotatedMeta(name=name), provisioner, binds, topologies)


def make_csi_node(
    name: str, limits: Mapping[str, int | None] | None = None, annotations: Mapping[str, str] | None = None
) -> CSINode:
    """A CSINode: how many volumes of each driver the node takes, ``None`` for any number."""
    drivers = [
        CSINodeDriver(driver, name, None if limit is None else VolumeNodeResources(limit))
        for driver, limit in (limits or {}).items()
    ]
    return CSINode(AnnotatedMeta(name=name, annotations=dict(annotations or {})), CSINodeSpec(drivers))
