"""In-tree volumes as the CSI volumes that replaced them.

Follows ``k8s.io/csi-translation-lib`` v0.36.3 for what affects limits and nodes: the driver, the volume handle and the
node affinity. vSphere and Azure File volumes also have a translation, but the scheduler never uses it
(``isCSIMigrationOn``, ``plugins/nodevolumelimits/utils.go`` of v1.36.3).

Common checks of pods, claims and volumes follow ``k8s.io/component-helpers`` v0.36.3 ``storage/ephemeral`` and
``storage/volume``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from kpreempt.model.affinity import NodeSelector, NodeSelectorTerm
from kpreempt.model.labels import NodeSelectorRequirement, format_requirement
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod, Volume
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec

MIGRATED_PLUGINS_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"


def claim_name_of(pod: Pod, volume: Volume) -> str | None:
    """Return the name of the claim behind one of the pod's volumes, or ``None`` if it has no claim."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def is_ephemeral(volume: Volume) -> bool:
    """Return whether the volume's claim must belong to the pod; a named claim takes precedence, as upstream."""
    return volume.persistent_volume_claim is None and volume.ephemeral is not None


def ownership_error(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Return why the claim cannot belong to the pod's ephemeral volume, or ``None`` if it does."""
    controller = controller_of(claim.metadata)
    is_own = controller is not None and controller.uid == pod.metadata.uid
    if is_own and claim.metadata.namespace == pod.metadata.namespace:
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def not_found(kind: str, name: str) -> str:
    """Format a lister's error for a missing object; ``kind`` as in ``persistentvolumeclaim``."""
    return f'{kind} "{name}" not found'


def required_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """Return the nodes that can access the volume; ``None`` for all."""
    return volume.spec.node_affinity.required if volume.spec.node_affinity else None


def is_reachable(selector: NodeSelector | None, node_labels: Mapping[str, str]) -> bool:
    """Return whether a node with these labels can access a volume with this selector.

    Upstream passes no node name here, so terms on ``metadata.name`` restrict nothing.
    """
    return selector is None or selector.matches("", node_labels)


def format_selector(selector: NodeSelector) -> str:
    """Format the selector's terms in the syntax of ``kubectl -l``; one of them must match."""
    terms = ((*term.match_expressions, *term.match_fields) for term in selector.node_selector_terms)
    formatted = (",".join(format_requirement(each.key, each.operator, each.values) for each in term) for term in terms)
    return " or ".join(each or "no node" for each in formatted) or "no node"


BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
# Separates the zones in the zone label of a volume that is in several zones.
ZONE_DELIMITER = "__"

AWS_EBS = "kubernetes.io/aws-ebs"
AZURE_DISK = "kubernetes.io/azure-disk"
CINDER = "kubernetes.io/cinder"
GCE_PD = "kubernetes.io/gce-pd"
PORTWORX = "kubernetes.io/portworx-volume"

# The drivers of the in-tree plugins whose volumes the scheduler treats as CSI volumes.
DRIVERS = {
    AWS_EBS: "ebs.csi.aws.com",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    GCE_PD: "pd.csi.storage.gke.io",
    PORTWORX: "pxd.portworx.com",
}
# All in-tree plugins with a translation, whether or not the scheduler uses it.
IN_TREE_PLUGINS = frozenset([*DRIVERS, "kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"])

_TOPOLOGY_KEYS = {
    AWS_EBS: "topology.ebs.csi.aws.com/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
    GCE_PD: "topology.gke.io/zone",
}
_UNSPECIFIED = "UNSPECIFIED"
_AWS_VOLUME = re.compile(r"vol-[^/]*")


class TranslationError(Exception):
    """The in-tree volume has no CSI equivalent; the message is upstream's."""


class CSIHandle(NamedTuple):
    """A volume as its CSI driver identifies it."""

    driver: str
    volume_handle: str


def in_tree_plugin(source: PersistentVolumeSpec | Volume) -> str | None:
    """Return the in-tree plugin of a volume that the scheduler counts for its CSI driver, or ``None``."""
    for plugin, value in (
        (AWS_EBS, source.aws_elastic_block_store),
        (AZURE_DISK, source.azure_disk),
        (CINDER, source.cinder),
        (GCE_PD, source.gce_persistent_disk),
        (PORTWORX, source.portworx_volume),
    ):
        if value is not None:
            return plugin
    return None


def translate_inline(volume: Volume) -> CSIHandle | None:
    """Translate a pod's inline volume; ``None`` if it has no driver. Raises ``TranslationError``."""
    plugin = in_tree_plugin(volume)
    return CSIHandle(DRIVERS[plugin], _handle(volume, "")) if plugin else None


def translate_volume(volume: PersistentVolume) -> CSIHandle | None:
    """Translate an in-tree persistent volume; ``None`` if it has no driver. Raises ``TranslationError``."""
    plugin, labels = in_tree_plugin(volume.spec), volume.metadata.labels
    zones = labels.get(BETA_ZONE) or labels.get(ZONE, "")
    return CSIHandle(DRIVERS[plugin], _handle(volume.spec, zones)) if plugin else None


def translated_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """Return the nodes that can access the volume, in its CSI driver's terms. Raises ``TranslationError``."""
    translate_volume(volume)
    plugin = in_tree_plugin(volume.spec)
    selector = required_nodes(volume)
    if plugin not in _TOPOLOGY_KEYS:
        return selector
    key = _TOPOLOGY_KEYS[plugin]
    terms = selector.node_selector_terms if selector is not None else []
    labels = volume.metadata.labels
    # The labels for the volume's zone and region come from its node affinity, or else from its own labels.
    keys = {each.key for term in terms for each in term.match_expressions}
    zone_keys = next((known for known in (keys, labels) if ZONE in known or BETA_ZONE in known), (ZONE,))
    zone_label, region_label = (ZONE, REGION) if ZONE in zone_keys else (BETA_ZONE, BETA_REGION)
    if selector is not None and _values(selector, zone_label):
        selector = _renamed(selector, zone_label, key)
    elif zones := {zone.strip() for zone in labels.get(zone_label, "").split(ZONE_DELIMITER)} - {""}:
        # Add a requirement to every term.
        added = NodeSelectorRequirement(key, "In", sorted(zones))
        selector = NodeSelector(
            [
                msgspec.structs.replace(term, match_expressions=[*term.match_expressions, added])
                for term in terms or [NodeSelectorTerm()]
            ]
        )
    if selector is not None and region_label == BETA_REGION and _values(selector, BETA_REGION):
        selector = _renamed(selector, BETA_REGION, REGION)
    return selector


def _handle(source: PersistentVolumeSpec | Volume, zones_label: str) -> str:
    if source.aws_elastic_block_store is not None:
        # The EBS volume of ``aws://zone/vol-id``; other texts are used unchanged.
        volume_id = source.aws_elastic_block_store.volume_id
        handle = urlsplit(volume_id).path.strip("/") if volume_id.startswith("aws://") else volume_id
        if handle is not volume_id and not _AWS_VOLUME.fullmatch(handle):
            raise TranslationError(
                f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
            )
        return handle
    if source.azure_disk is not None:
        if source.azure_disk.kind.lower() != "managed":
            raise TranslationError(f"kind({source.azure_disk.kind}) is not supported in csi migration")
        return source.azure_disk.disk_uri
    if source.gce_persistent_disk is not None:
        scope, place = _gce_place(zones_label)
        return f"projects/{_UNSPECIFIED}/{scope}/{place}/disks/{source.gce_persistent_disk.pd_name}"
    if source.cinder is not None:
        return source.cinder.volume_id
    return source.portworx_volume.volume_id if source.portworx_volume is not None else ""


def _gce_place(zones_label: str) -> tuple[Literal["zones", "regions"], str]:
    """Return the location of a disk; a disk in several zones is identified by their region."""
    zones = zones_label.split(ZONE_DELIMITER)
    if len(zones) == 1:
        return "zones", zones[0] or _UNSPECIFIED
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, "
                f"expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add(f"{parts[0]}-{parts[1]}")
    if len(regions) != 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{found}]"
        )
    return "regions", regions.pop()


def _values(selector: NodeSelector, key: str) -> set[str]:
    return {
        value
        for term in selector.node_selector_terms
        for each in term.match_expressions
        if each.key == key
        for value in each.values
    }


def _renamed(selector: NodeSelector, old: str, new: str) -> NodeSelector:
    return NodeSelector(
        [
            msgspec.structs.replace(
                term,
                match_expressions=[
                    msgspec.structs.replace(each, key=new) if each.key == old else each
                    for each in term.match_expressions
                ],
            )
            for term in selector.node_selector_terms
        ]
    )
