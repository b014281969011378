"""VolumeBinding: the claims' volumes must be within the node's reach, or be found or made there.

Follows ``FindPodVolumes`` (``pkg/controller/volume/scheduling/scheduler_binder.go``, v1.18.19). Volumes of one size are
taken in the order of the input, where upstream takes them in the random order of an index, which it reads again for
each claim and node, also in the dry run; where that decides, an assumption says so. The other volume plugins ask the
same about claims and storage classes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import Quantity, quantity
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm
from kpreempt.schedulers.go_sort import sorted_as_before_go_1_19
from kpreempt.schedulers.legacy.base.node_info import Cluster, NodeInfo
from kpreempt.schedulers.legacy.base.predicates import LegacyError, class_of_claim, class_of_volume, is_reachable
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, refused, selector_error
from kpreempt.schedulers.volume_orders import Wishes, results_of_orders
from kpreempt.verdict import SUCCESS, Assumption, AssumptionKind, Code, Status
from kpreempt.verdict.details import VolumeConflict

REASON_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
REASON_NODE_CONFLICT = "node(s) had volume node affinity conflict"
REASON_BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
REASON_NO_VOLUME = "pvc(s) bound to non-existent pv(s)"

_FILESYSTEM = "Filesystem"


class VolumeBinding(FilterPlugin):
    """Refuses nodes, for good, on which the pod's claims cannot have their volumes."""

    name = "VolumeBinding"

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Look at the claims that have a volume first, then at those that wait for their first consumer."""
        binder = _Binder(state.cluster)
        claims = [binder.claim(key) for key, _ in claim_keys(state.pod.pod)]
        reasons = binder.reasons_against(claims, node_info.node)
        if not reasons:
            return SUCCESS
        detail = VolumeConflict(claim=", ".join(claim.key for claim in claims))
        return refused(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, *reasons, detail=detail)


def order_assumptions(cluster: Cluster, pod: Pod) -> list[Assumption]:
    """That the random order of equal volumes decides whether a node can have the pod's."""
    binder = _Binder(cluster)
    keys = [key for key, _ in claim_keys(pod)]
    try:
        claims = [claim for key in keys if not is_fully_bound(claim := binder.claim(key))]
        nodes = [info.name for info in cluster.node_infos if binder.is_left_to_order(claims, info.node)]
    except LegacyError:
        # So ends the cycle, too, in every order.
        return []
    if not nodes:
        return []
    where = f"{len(nodes)} nodes, {nodes[0]} among them" if len(nodes) > 1 else f"node {nodes[0]}"
    message = (
        f"on {where}, the order of equal volumes decides whether the claims"
        f" {', '.join(dict.fromkeys(claim.key for claim in claims))} find theirs; 1.18 takes them in a random order,"
        " here in that of the input"
    )
    return [Assumption(f"Pod {pod.key}", "spec.volumes", message, AssumptionKind.UNCERTAIN)]


class _Binder:
    """Looks for volumes in a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def reasons_against(self, claims: Sequence[PersistentVolumeClaim], node: Node) -> list[str]:
        """Why the claims cannot have their volumes on the node; empty if they can."""
        bound = [claim for claim in claims if is_fully_bound(claim)]
        unbound = [claim for claim in claims if not is_fully_bound(claim)]
        if not all(map(self._waits_for_consumer, unbound)):
            return [REASON_UNBOUND_IMMEDIATE]
        conflict = self._check_bound(bound, node)
        reasons = [conflict] if conflict == REASON_NODE_CONFLICT else []
        if unbound and not self._can_bind(unbound, node):
            reasons.append(REASON_BIND_CONFLICT)
        if conflict == REASON_NO_VOLUME:
            reasons.append(conflict)
        return reasons

    def claim(self, key: str) -> PersistentVolumeClaim:
        """The claim of that key; raises ``LegacyError`` where there is none."""
        claim = self._cluster.persistent_volume_claims.get(key)
        if claim is None:
            raise LegacyError(f'error getting PVC "{key}": could not find v1.PersistentVolumeClaim "{key}"')
        return claim

    def _waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the scheduler is to bind the claim; one with a volume that is not done yet is left to others."""
        class_name = class_of_claim(claim)
        storage_class = self._cluster.storage_classes.get(class_name) if class_name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            raise LegacyError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        return storage_class.volume_binding_mode == WAITS_FOR_CONSUMER and not claim.spec.volume_name

    def _check_bound(self, claims: Sequence[PersistentVolumeClaim], node: Node) -> str:
        """Why one of the volumes cannot be used on the node, the first that cannot; empty if all can."""
        for claim in claims:
            volume = self._cluster.persistent_volumes.get(claim.spec.volume_name)
            if volume is None:
                return REASON_NO_VOLUME
            if not is_reachable(volume, node.labels):
                return REASON_NODE_CONFLICT
        return ""

    def _can_bind(self, claims: Sequence[PersistentVolumeClaim], node: Node) -> bool:
        """Whether each claim finds a volume or can have one made; one whose node is chosen already has to be here."""
        to_provision, to_match = [], []
        for claim in claims:
            selected = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
            if selected is None:
                to_match.append(claim)
            elif selected == node.name:
                to_provision.append(claim)
            else:
                return False
        to_provision += self._without_match(to_match, node)
        return all(self._can_provision(claim, node) for claim in to_provision)

    def is_left_to_order(self, claims: Sequence[PersistentVolumeClaim], node: Node) -> bool:
        """Whether the order of equal volumes decides if the claims can be bound here; so, too, if nobody can say."""
        to_match = _smallest_first(
            [each for each in claims if SELECTED_NODE_ANNOTATION not in each.metadata.annotations]
        )
        if not to_match or not all(map(self._waits_for_consumer, claims)):
            return False
        numbers: dict[str, int] = {}
        lost: set[int] = set()
        tiers = []
        for claim in to_match:
            serving = [each for each in self._cluster.persistent_volumes.values() if self._serves(claim, each)]
            kept = [each for each in serving if each.spec.claim_ref is not None]
            by_size: dict[int, list[PersistentVolume]] = {}
            for volume in serving:
                is_free = volume.spec.claim_ref is None and _is_available(volume, claim)
                if is_free and is_reachable(volume, node.labels):
                    by_size.setdefault(storage_capacity(volume).nano, []).append(volume)
            ranked = [kept, *(by_size[size] for size in sorted(by_size))]
            tiers.append(
                tuple(tuple(numbers.setdefault(each.metadata.name, len(numbers)) for each in tier) for tier in ranked)
            )
            lost |= {numbers[each.metadata.name] for each in kept if not is_reachable(each, node.labels)}
        if len(to_match) == 1 and all(len(tier) < 2 for tier in tiers[0][:1]):
            return False
        found = results_of_orders([Wishes(tuple(tiers), frozenset(lost))], [0] * len(numbers))
        if found is None:
            return True
        ends = {
            all(
                pick is not None or self._can_provision(claim, node)
                for claim, pick in zip(to_match, result.picks[0], strict=True)
            )
            for result in found.results
        }
        return len(ends) > 1

    def _serves(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
        """Whether the volume is of the claim's class, large enough, and kept for no other claim."""
        # The index is by the field alone, whatever the annotation says.
        return volume.spec.storage_class_name == class_of_claim(claim) and _may_serve(volume, claim)

    def _without_match(self, claims: Sequence[PersistentVolumeClaim], node: Node) -> list[PersistentVolumeClaim]:
        """The claims, smallest first, for which there is no volume on the node that none before it has taken."""
        taken: set[str] = set()
        left = []
        for claim in _smallest_first(claims):
            volume = self._match(claim, node, taken)
            if volume is None:
                left.append(claim)
            else:
                taken.add(volume.metadata.name)
        return left

    def _match(self, claim: PersistentVolumeClaim, node: Node, taken: Collection[str]) -> PersistentVolume | None:
        """``FindMatchingVolume``: the volume that is kept for the claim, or else the smallest that suits."""
        error = selector_error(claim.spec.selector)
        if error:
            raise LegacyError(f"error creating internal label selector for claim: {claim.key}: {error}")
        smallest: PersistentVolume | None = None
        for volume in self._cluster.persistent_volumes.values():
            if volume.metadata.name in taken or not self._serves(claim, volume):
                continue
            if volume.spec.claim_ref is not None:
                return volume if is_reachable(volume, node.labels) else None
            if (
                _is_available(volume, claim)
                and is_reachable(volume, node.labels)
                and (smallest is None or storage_capacity(smallest).nano > storage_capacity(volume).nano)
            ):
                smallest = volume
        return smallest

    def _can_provision(self, claim: PersistentVolumeClaim, node: Node) -> bool:
        class_name = class_of_claim(claim)
        storage_class = self._cluster.storage_classes.get(class_name)
        if storage_class is None:
            what = f'failed to find storage class "{class_name}"' if class_name else f'no class for claim "{claim.key}"'
            raise LegacyError(what)
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return False
        terms = storage_class.allowed_topologies
        return not terms or any(_matches(term, node) for term in terms)


def _smallest_first(claims: Sequence[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    return sorted_as_before_go_1_19(claims, lambda one, two: requested_storage(one).nano < requested_storage(two).nano)


def _may_serve(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """What even a volume that is kept for the claim must fulfil; one that is kept for another never serves."""
    reference = volume.spec.claim_ref
    if reference is not None:
        if (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
            return False
        if reference.uid and reference.uid != claim.metadata.uid:
            return False
    return (
        storage_capacity(volume).nano >= requested_storage(claim).nano
        and (claim.spec.volume_mode or _FILESYSTEM) == (volume.spec.volume_mode or _FILESYSTEM)
        and volume.metadata.deletion_timestamp is None
    )


def _is_available(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.status.phase == "Available"
        and (claim.spec.selector is None or claim.spec.selector.matches(volume.metadata.labels))
        and class_of_volume(volume) == class_of_claim(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _matches(term: TopologySelectorTerm, node: Node) -> bool:
    requirements = term.match_label_expressions
    return bool(requirements) and all(node.labels.get(each.key) in each.values for each in requirements)


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


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    """How much the claim asks for; 0 where it says nothing."""
    return claim.spec.resources.requests.get(_STORAGE) or quantity("0")


def storage_capacity(volume: PersistentVolume) -> Quantity:
    """How large the volume is; 0 where it says nothing."""
    return volume.spec.capacity.get(_STORAGE) or quantity("0")


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume, and the binding is done."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED_ANNOTATION in claim.metadata.annotations
