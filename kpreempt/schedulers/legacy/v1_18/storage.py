"""What the volume plugins of 1.18 ask about claims, volumes and storage classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kpreempt.model.pod import Pod
from kpreempt.model.quantity import Quantity, quantity
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim

BIND_COMPLETED_ANNOTATION = "pv.kubernetes.io/bind-completed"
SELECTED_NODE_ANNOTATION = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAITS_FOR_CONSUMER = "WaitForFirstConsumer"
_STORAGE = "storage"


def claim_keys(pod: Pod) -> Iterator[tuple[str, str]]:
    """The keys (``namespace/name``) and names of the claims that the pod uses."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            yield f"{pod.metadata.namespace}/{name}", name


def claim_problem(pod: Pod, claims: Mapping[str, PersistentVolumeClaim]) -> str:
    """The claim that is missing or going, without which no node is looked at (``podPassesBasicChecks``), or nothing."""
    for key, name in claim_keys(pod):
        claim = claims.get(key)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
    return ""


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    """How much the claim asks for; 0 where it says nothing."""
    return claim.spec.resources.requests.get(_STORAGE) or quantity("0")


def storage_capacity(volume: PersistentVolume) -> Quantity:
    """How large the volume is; 0 where it says nothing."""
    return volume.spec.capacity.get(_STORAGE) or quantity("0")


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume, and the binding is done."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED_ANNOTATION in claim.metadata.annotations
