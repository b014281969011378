"""The pod's claims, told apart by whether and when they are bound.

Follows ``podHasPVCs`` (``volume_binding.go``) and ``GetPodVolumeClaims`` (``binder.go``) in ``plugins/volumebinding``
of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.interface import PluginError
from kpreempt.schedulers.kube.framework.volumes import (
    BIND_COMPLETED_ANNOTATION,
    claim_name_of,
    class_of_claim,
    is_ephemeral,
    not_found,
    ownership_error,
    required_nodes,
)

HOSTNAME = "kubernetes.io/hostname"


class IllegalClaimError(Exception):
    """A claim with which the pod cannot be scheduled anywhere; the message is upstream's reason.

    ``claim`` is its key and ``problem`` what is wrong with it, in short.
    """

    def __init__(self, reason: str, claim: str, problem: str) -> None:
        super().__init__(reason)
        self.claim = claim
        self.problem = problem


class PodClaims(NamedTuple):
    """The pod's claims: bound, to be bound for the chosen node, and those that should have been bound already."""

    bound: list[PersistentVolumeClaim]
    delayed: list[PersistentVolumeClaim]
    immediate: list[PersistentVolumeClaim]


def claims_of(pod: Pod, cluster: ClusterState) -> list[PersistentVolumeClaim]:
    """The claims of the pod's volumes, in their order; raises ``IllegalClaimError``."""
    claims = []
    for volume in pod.spec.volumes:
        name = claim_name_of(pod, volume)
        if name is None:
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = cluster.persistent_volume_claims.get(key)
        if claim is None:
            if is_ephemeral(volume):
                waiting = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
                raise IllegalClaimError(waiting, key, "not made yet for this ephemeral volume")
            raise IllegalClaimError(not_found("persistentvolumeclaim", name), key, "does not exist")
        _check(claim)
        problem = ownership_error(pod, claim) if is_ephemeral(volume) else None
        if problem is not None:
            raise IllegalClaimError(problem, key, "belongs to another pod, or to none")
        claims.append(claim)
    return claims


def _check(claim: PersistentVolumeClaim) -> None:
    name, volume = claim.metadata.name, claim.spec.volume_name
    if claim.status.phase == "Lost":
        reason = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        raise IllegalClaimError(reason, claim.key, f"has lost its volume {volume}")
    if claim.metadata.deletion_timestamp is not None:
        raise IllegalClaimError(f'persistentvolumeclaim "{name}" is being deleted', claim.key, "is being deleted")


def sort_claims(claims: list[PersistentVolumeClaim], cluster: ClusterState) -> PodClaims:
    """Tell the claims apart; raises ``PluginError`` where a storage class does not say when it binds.

    A claim that names a volume but is not bound to it counts as one that should have been bound.
    """
    sorted_claims = PodClaims([], [], [])
    for claim in claims:
        if claim.spec.volume_name and BIND_COMPLETED_ANNOTATION in claim.metadata.annotations:
            sorted_claims.bound.append(claim)
        elif _waits_for_node(claim, cluster) and not claim.spec.volume_name:
            sorted_claims.delayed.append(claim)
        else:
            sorted_claims.immediate.append(claim)
    return sorted_claims


def hosts_of(bound: Iterable[PersistentVolumeClaim], cluster: ClusterState) -> frozenset[str] | None:
    """The hostnames to which local volumes of bound claims are tied, taken for names of nodes; ``None`` for any node.

    Follows ``GetEligibleNodes`` (``binder.go``) and ``GetLocalPersistentVolumeNodeNames`` of v1.29.6. Where a volume
    does not exist, nothing is restricted.
    """
    hosts: frozenset[str] | None = None
    for claim in bound:
        volume = cluster.persistent_volumes.get(claim.spec.volume_name)
        if volume is None:
            return None
        names = _hosts_of_volume(volume)
        if names:
            hosts = names if hosts is None else hosts & names
    return hosts


def _hosts_of_volume(volume: PersistentVolume) -> frozenset[str]:
    selector = required_nodes(volume)
    hosts: set[str] = set()
    for term in selector.node_selector_terms if selector is not None else ():
        named = [set(each.values) for each in term.match_expressions if each.key == HOSTNAME and each.operator == "In"]
        if named:
            hosts |= set.intersection(*named)
    return frozenset(hosts)


def _waits_for_node(claim: PersistentVolumeClaim, cluster: ClusterState) -> bool:
    class_name = class_of_claim(claim)
    storage_class = cluster.storage_classes.get(class_name) if class_name else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise PluginError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    return storage_class.volume_binding_mode == "WaitForFirstConsumer"


def problem_of_immediate(claim: PersistentVolumeClaim, cluster: ClusterState) -> str:
    """Why a claim that should be bound is not, as far as it can be told."""
    if claim.spec.volume_name:
        return f"names volume {claim.spec.volume_name}, but is not bound to it yet"
    class_name = class_of_claim(claim)
    if not class_name:
        return "not bound, and has no storage class"
    if class_name not in cluster.storage_classes:
        return f"not bound, and its storage class {class_name} does not exist"
    return f"not bound yet, though its storage class {class_name} binds at once"
