"""Volumes, claims, storage classes, and the information that CSI drivers report about nodes."""

from __future__ import annotations

from typing import Literal

import msgspec

from kpreempt.model.affinity import NodeSelector
from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS, Few, Many
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import AnnotatedMeta, Keyed, ObjectMeta
from kpreempt.model.pod import (
    AWSElasticBlockStore,
    AzureDisk,
    CinderVolume,
    GCEPersistentDisk,
    PortworxVolume,
    ResourceList,
    VolumeResources,
    VsphereVolume,
)
from kpreempt.model.quantity import Quantity, quantity


class PersistentVolumeClaimSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The content of a claim, and the volume it is bound to. ``storage_class_name`` None means the default class."""

    access_modes: Few[str] = NO_ITEMS
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whether a claim is bound."""

    phase: str = ""


class PersistentVolumeClaim(Keyed, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class CSIPersistentVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The CSI driver's handle of a volume."""

    driver: str = ""
    volume_handle: str = ""


class ObjectReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A reference to a namespaced object."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The properties of a volume, and the claim that it belongs to."""

    capacity: ResourceList = NO_ENTRIES
    access_modes: Few[str] = NO_ITEMS
    storage_class_name: str = ""
    volume_mode: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None


class PersistentVolumeStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    phase: str = ""


class PersistentVolume(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorLabelRequirement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A node label and the values it may have."""

    key: str
    values: Many[str] = NO_ITEMS


class TopologySelectorTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Label requirements that must all hold."""

    match_label_expressions: Few[TopologySelectorLabelRequirement] = NO_ITEMS


class StorageClass(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How volumes of a class are provisioned, when their claims are bound, and whether these can grow."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    provisioner: str = ""
    volume_binding_mode: Literal["Immediate", "WaitForFirstConsumer"] | None = "Immediate"
    allowed_topologies: Few[TopologySelectorTerm] = NO_ITEMS
    allow_volume_expansion: bool | None = None


class VolumeNodeResources(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The maximum number of a driver's volumes on a node; ``None`` is no limit."""

    count: int | None = None


class CSINodeDriver(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A CSI driver on a node."""

    name: str
    node_id: str = msgspec.field(name="nodeID", default="")
    allocatable: VolumeNodeResources | None = None
    topology_keys: Few[str] = NO_ITEMS


class CSINodeSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The CSI drivers of a node."""

    drivers: Few[CSINodeDriver] = NO_ITEMS


class CSINode(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The information that CSI drivers report about the node of the same name."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The capabilities of a CSI driver."""

    storage_capacity: bool = False
    attach_required: bool | None = None
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How much storage of a class is left for the nodes of a topology."""

    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which volume is attached to which node, and by which driver."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A volume attached to a node, or to be attached."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


BETA_STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED_ANNOTATION = "pv.kubernetes.io/bind-completed"
SELECTED_NODE_ANNOTATION = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
STORAGE = "storage"


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Return the storage class that the claim requests, or an empty string."""
    annotated = claim.metadata.annotations.get(BETA_STORAGE_CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    """Return the storage class of the volume."""
    return volume.metadata.annotations.get(BETA_STORAGE_CLASS_ANNOTATION, volume.spec.storage_class_name)


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    """Return the amount of storage that the claim requests, or 0."""
    return claim.spec.resources.requests.get(STORAGE) or quantity("0")


def storage_capacity(volume: PersistentVolume) -> Quantity:
    """Return the capacity of the volume, or 0."""
    return volume.spec.capacity.get(STORAGE) or quantity("0")


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim has a volume and binding is complete."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED_ANNOTATION in claim.metadata.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether the volume is reserved for the claim; a UID counts only if the volume's reference has one."""
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    if (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not reference.uid or reference.uid == claim.metadata.uid
