"""What the volume plugins all ask about pods, claims and volumes.

Follows ``k8s.io/component-helpers`` v0.36.3 ``storage/ephemeral`` and ``storage/volume``.
"""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.model.affinity import NodeSelector, NodeSelectorTerm
from kpreempt.model.labels import format_requirement
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod, Volume
from kpreempt.model.quantity import Quantity, quantity
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim

BETA_STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED_ANNOTATION = "pv.kubernetes.io/bind-completed"
SELECTED_NODE_ANNOTATION = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"

NO_PROVISIONER = "kubernetes.io/no-provisioner"
STORAGE = "storage"


def claim_name_of(pod: Pod, volume: Volume) -> str | None:
    """The name of the claim behind one of the pod's volumes, or ``None`` where it is no claim's."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def is_ephemeral(volume: Volume) -> bool:
    """Whether the volume's claim must be the pod's own; a claim that is named comes first, as upstream."""
    return volume.persistent_volume_claim is None and volume.ephemeral is not None


def ownership_error(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Why the claim cannot be the one of the pod's ephemeral volume, or ``None`` where it is."""
    controller = controller_of(claim.metadata)
    is_own = controller is not None and controller.uid == pod.metadata.uid
    if is_own and claim.metadata.namespace == pod.metadata.namespace:
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def not_found(kind: str, name: str) -> str:
    """The error of a lister that has no such object; ``kind`` as in ``persistentvolumeclaim``."""
    return f'{kind} "{name}" not found'


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The storage class that the claim asks for; empty where it names none."""
    annotated = claim.metadata.annotations.get(BETA_STORAGE_CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    """The storage class of the volume."""
    return volume.metadata.annotations.get(BETA_STORAGE_CLASS_ANNOTATION, volume.spec.storage_class_name)


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    """How much the claim asks for; 0 where it says nothing."""
    return claim.spec.resources.requests.get(STORAGE) or quantity("0")


def storage_capacity(volume: PersistentVolume) -> Quantity:
    """How large the volume is; 0 where it says nothing."""
    return volume.spec.capacity.get(STORAGE) or quantity("0")


def required_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """The nodes from which the volume can be reached; ``None`` for all."""
    return volume.spec.node_affinity.required if volume.spec.node_affinity else None


def is_reachable(selector: NodeSelector | None, node_labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels reaches a volume with this selector.

    Upstream hands over no node name here, so terms over ``metadata.name`` do not restrict anything.
    """
    return selector is None or selector.matches("", node_labels)


def format_selector(selector: NodeSelector) -> str:
    """The selector's terms in the syntax of ``kubectl -l``, one of which must hold."""
    return " or ".join(map(_format_term, selector.node_selector_terms)) or "no node"


def _format_term(term: NodeSelectorTerm) -> str:
    requirements = (*term.match_expressions, *term.match_fields)
    return ",".join(format_requirement(each.key, each.operator, each.values) for each in requirements) or "no node"
