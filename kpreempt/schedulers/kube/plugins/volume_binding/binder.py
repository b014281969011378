"""Whether a node can have all volumes of a pod, and which ones they would be.

Follows ``FindPodVolumes`` (``plugins/volumebinding/binder.go``, v1.36.3).

Whether a volume can be provisioned for a claim (by which class, for which nodes, from which capacity) follows
``checkVolumeProvisions`` and ``hasEnoughCapacity`` (``plugins/volumebinding/binder.go``, v1.36.3) and
``MatchTopologySelectorTerms`` (``pkg/apis/core/v1/helper/helpers.go``).

The pod's claims, sorted by whether and when they are bound, follow ``podHasPVCs`` (``volume_binding.go``) and
``GetPodVolumeClaims`` (``binder.go``) in ``plugins/volumebinding`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from kpreempt.model.labels import format_requirement, is_label_key, is_label_value
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import Quantity
from kpreempt.model.storage import (
    NO_PROVISIONER,
    SELECTED_NODE_ANNOTATION,
    STORAGE,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
    class_of_claim,
    class_of_volume,
    is_fully_bound,
    requested_storage,
)
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.csi_translation import (
    MIGRATED_PLUGINS_ANNOTATION,
    TranslationError,
    claim_name_of,
    format_selector,
    in_tree_plugin,
    is_ephemeral,
    is_reachable,
    not_found,
    ownership_error,
    required_nodes,
    translated_nodes,
)
from kpreempt.schedulers.kube.framework.interface import PluginError
from kpreempt.schedulers.kube.plugins.volume_binding.matching import ClassVolumes, SuitableVolumes
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict.details import VolumeConflict

HOSTNAME = "kubernetes.io/hostname"


class IllegalClaimError(Exception):
    """A claim with which the pod cannot be scheduled anywhere; the message is upstream's reason.

    ``claim`` is its key, and ``problem`` briefly describes what is wrong with it.
    """

    def __init__(self, reason: str, claim: str, problem: str) -> None:
        super().__init__(reason)
        self.claim = claim
        self.problem = problem


class PodClaims(NamedTuple):
    """The pod's claims: bound, to be bound for the chosen node, and those that should already be bound."""

    bound: list[PersistentVolumeClaim]
    delayed: list[PersistentVolumeClaim]
    immediate: list[PersistentVolumeClaim]


def claims_of(pod: Pod, cluster: ClusterState) -> list[PersistentVolumeClaim]:
    """Return the claims of the pod's volumes, in order. Raises ``IllegalClaimError``."""
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
                raise IllegalClaimError(waiting, key, "not created yet for this ephemeral volume")
            raise IllegalClaimError(not_found("persistentvolumeclaim", name), key, "does not exist")
        volume_name = claim.spec.volume_name
        if claim.status.phase == "Lost":
            reason = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name}"'
            raise IllegalClaimError(reason, key, f"has lost its volume {volume_name}")
        if claim.metadata.deletion_timestamp is not None:
            raise IllegalClaimError(f'persistentvolumeclaim "{name}" is being deleted', key, "is being deleted")
        problem = ownership_error(pod, claim) if is_ephemeral(volume) else None
        if problem is not None:
            raise IllegalClaimError(problem, key, "does not belong to this pod")
        claims.append(claim)
    return claims


def sort_claims(claims: list[PersistentVolumeClaim], cluster: ClusterState) -> PodClaims:
    """Sort the claims by binding. Raises ``PluginError`` if a storage class has no binding mode.

    A claim that names a volume but is not bound to it counts as one that should already be bound.
    """
    sorted_claims = PodClaims([], [], [])
    for claim in claims:
        if is_fully_bound(claim):
            sorted_claims.bound.append(claim)
        elif _waits_for_node(claim, cluster) and not claim.spec.volume_name:
            sorted_claims.delayed.append(claim)
        else:
            sorted_claims.immediate.append(claim)
    return sorted_claims


def hosts_of(bound: Iterable[PersistentVolumeClaim], cluster: ClusterState) -> frozenset[str] | None:
    """Return the hostnames of bound local volumes, treated as node names; ``None`` for any node.

    Follows ``GetEligibleNodes`` (``binder.go``) and ``GetLocalPersistentVolumeNodeNames`` of v1.29.6. If a volume does
    not exist, nothing is restricted.
    """
    hosts: frozenset[str] | None = None
    for claim in bound:
        volume = cluster.persistent_volumes.get(claim.spec.volume_name)
        if volume is None:
            return None
        selector = required_nodes(volume)
        names: set[str] = set()
        for term in selector.node_selector_terms if selector is not None else ():
            requested = [each for each in term.match_expressions if each.key == HOSTNAME and each.operator == "In"]
            if requested:
                names |= set.intersection(*(set(each.values) for each in requested))
        if names:
            hosts = frozenset(names) if hosts is None else hosts & names
    return hosts


def _waits_for_node(claim: PersistentVolumeClaim, cluster: ClusterState) -> bool:
    class_name = class_of_claim(claim)
    storage_class = cluster.storage_classes.get(class_name) if class_name else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise PluginError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    return storage_class.volume_binding_mode == "WaitForFirstConsumer"


def problem_of_immediate(claim: PersistentVolumeClaim, cluster: ClusterState) -> str:
    """Return why a claim that should be bound is not, as far as can be determined."""
    if claim.spec.volume_name:
        return f"names volume {claim.spec.volume_name} but is not bound to it yet"
    class_name = class_of_claim(claim)
    if not class_name:
        return "not bound and has no storage class"
    if class_name not in cluster.storage_classes:
        return f"not bound and its storage class {class_name} does not exist"
    return f"not bound yet, although its storage class {class_name} binds immediately"


REASON_NODE_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
REASON_NODE_AFFINITY_OLD = "node(s) had volume node affinity conflict"
REASON_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
REASON_NO_SPACE = "node(s) did not have enough free storage"
REASON_VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
# The order in which upstream reports them.
_REASONS = (REASON_NODE_AFFINITY, REASON_NODE_AFFINITY_OLD, REASON_NO_VOLUME, REASON_NO_SPACE, REASON_VOLUME_MISSING)


class Binding(NamedTuple):
    """A claim and the existing volume to which it would be bound."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


class Provision(NamedTuple):
    """A claim for which a volume would be provisioned, and the pool that would provide it, if known."""

    claim: PersistentVolumeClaim
    pool: CSIStorageCapacity | None


class PodVolumes(NamedTuple):
    """What a node can give the pod, and the conflicts if it cannot, by reason."""

    bindings: list[Binding]
    provisions: list[Provision]
    conflicts: dict[str, VolumeConflict]

    @property
    def reasons(self) -> list[str]:
        """Return the reasons why the node cannot have the pod, in upstream's order."""
        return [reason for reason in _REASONS if reason in self.conflicts]


class ClaimMatches:
    """The volumes that suit each claim of one pod, found once for all nodes.

    Volumes in ``order`` come first, in that order, and the rest in input order.
    """

    def __init__(self, claims: PodClaims, order: Sequence[str] = ()) -> None:
        self.claims = claims
        self._rank = {name: rank for rank, name in enumerate(order)}
        # Smaller claims choose first, which leaves the larger volumes to the others.
        self.to_match = sorted(
            (claim for claim in claims.delayed if SELECTED_NODE_ANNOTATION not in claim.metadata.annotations),
            key=lambda claim: requested_storage(claim).nano,
        )
        self._suitable: dict[str, SuitableVolumes] = {}
        self._classes: dict[str, ClassVolumes] = {}

    def suitable(self, claim: PersistentVolumeClaim, binder: VolumeBinder) -> SuitableVolumes:
        """Return the volumes that suit the claim. Raises ``PluginError`` as ``SuitableVolumes`` does."""
        if claim.key not in self._suitable:
            name = class_of_claim(claim)
            if not self._rank:
                volumes = binder.class_volumes(name)
            else:
                if name not in self._classes:
                    last, rank = len(self._rank), self._rank
                    in_input = binder.volumes_by_class.get(name, [])
                    self._classes[name] = ClassVolumes(
                        sorted(in_input, key=lambda volume: rank.get(volume.metadata.name, last))
                    )
                volumes = self._classes[name]
            self._suitable[claim.key] = SuitableVolumes(claim, volumes, binder.behavior)
        return self._suitable[claim.key]


class VolumeBinder:
    """Finds volumes for the claims of pods in one cluster."""

    def __init__(self, cluster: ClusterState, behavior: Behavior) -> None:
        self._cluster = cluster
        self.behavior = behavior
        self._classes: dict[str, ClassVolumes] = {}
        is_old = behavior.reports_volume_node_affinity_conflict
        self._reason_node_affinity = REASON_NODE_AFFINITY_OLD if is_old else REASON_NODE_AFFINITY
        self._capacities = StorageCapacities(cluster)

    @cached_property
    def volumes_by_class(self) -> dict[str, list[PersistentVolume]]:
        """The volumes of each storage class, in input order."""
        by_class: dict[str, list[PersistentVolume]] = {}
        for volume in self._cluster.cluster.persistent_volumes:
            by_class.setdefault(class_of_volume(volume), []).append(volume)
        return by_class

    def class_volumes(self, name: str) -> ClassVolumes:
        """Return the volumes of a storage class, indexed for claims."""
        if name not in self._classes:
            self._classes[name] = ClassVolumes(self.volumes_by_class.get(name, []))
        return self._classes[name]

    def find_pod_volumes(
        self, matches: ClaimMatches, node: Node, picks: Sequence[PersistentVolume | None] | None = None
    ) -> PodVolumes:
        """Check the bound claims, and choose volumes for the others or check that they can be provisioned.

        If ``picks`` has what each of ``matches.to_match`` takes, nothing is chosen. Raises ``PluginError`` if upstream
        ends with an error.
        """
        found = PodVolumes([], [], {})
        self._check_bound(matches.claims.bound, node, found.conflicts)
        to_provision = []
        for claim in matches.claims.delayed:
            selected = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
            if selected is None:
                continue
            if selected != node.name:
                problem = f"its volume is being provisioned for node {selected}"
                found.conflicts[REASON_NO_VOLUME] = VolumeConflict(claim=claim.key, problem=problem)
                return found
            to_provision.append(claim)
        if picks is None:
            picks = []
            chosen: set[str] = set()
            for claim in matches.to_match:
                volume = matches.suitable(claim, self).on_node(node.labels, chosen)
                if volume is not None:
                    chosen.add(volume.metadata.name)
                picks.append(volume)
        for claim, volume in zip(matches.to_match, picks, strict=True):
            if volume is None:
                to_provision.append(claim)
            else:
                found.bindings.append(Binding(claim, volume))
        for claim in to_provision:
            if not self._provision(claim, matches, node.labels, found):
                found.provisions.clear()
                break
        return found

    def _check_bound(
        self, claims: list[PersistentVolumeClaim], node: Node, conflicts: dict[str, VolumeConflict]
    ) -> None:
        """Stop at the first claim whose volume is missing or not accessible from the node."""
        for claim in claims:
            volume = self._cluster.persistent_volumes.get(claim.spec.volume_name)
            if volume is None:
                missing = VolumeConflict(claim.key, claim.spec.volume_name, "the volume does not exist")
                conflicts[REASON_VOLUME_MISSING] = missing
                return
            selector = required_nodes(volume)
            plugin = in_tree_plugin(volume.spec)
            # The in-tree plugins whose volumes count as CSI volumes on the node.
            csi_node = self._cluster.csi_nodes.get(node.name)
            migrated = csi_node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "") if csi_node else ""
            if plugin is not None and plugin in migrated.split(","):
                try:
                    selector = translated_nodes(volume)
                except TranslationError as error:
                    raise PluginError(f"could not translate pv: {error}") from error
            if selector is not None and not is_reachable(selector, node.labels):
                problem = f"accessible only from {format_selector(selector)}"
                conflicts[self._reason_node_affinity] = VolumeConflict(claim.key, volume.metadata.name, problem)
                return

    def _provision(
        self, claim: PersistentVolumeClaim, matches: ClaimMatches, node_labels: Mapping[str, str], found: PodVolumes
    ) -> bool:
        """Check whether a volume can be provisioned for the claim; otherwise add the conflict."""
        class_name = class_of_claim(claim)
        if not class_name:
            raise PluginError(f'no class for claim "{claim.key}"')
        storage_class = self._cluster.storage_classes.get(class_name)
        if storage_class is None:
            raise PluginError(f'failed to find storage class "{class_name}"')
        if storage_class.provisioner in ("", NO_PROVISIONER):
            requested = f"{requested_storage(claim)} of storage class {class_name}"
            suitable = matches.suitable(claim, self).number
            if not suitable:
                problem = f"no available volume matches ({requested})"
            else:
                count = "1 volume matches" if suitable == 1 else f"{suitable} volumes match"
                problem = f"{count} ({requested}), but none accessible from the node is free"
            found.conflicts[REASON_NO_VOLUME] = VolumeConflict(claim=claim.key, problem=problem)
            return False
        if not admits_node(storage_class.allowed_topologies, node_labels):
            # Allowed topologies in the syntax of ``kubectl -l``; one of them must match.
            allowed = " or ".join(
                ",".join(format_requirement(each.key, "In", each.values) for each in term.match_label_expressions)
                for term in storage_class.allowed_topologies
            )
            problem = f"storage class {class_name} provisions volumes only for {allowed}"
            found.conflicts[REASON_NO_VOLUME] = VolumeConflict(claim=claim.key, problem=problem)
            return False
        is_sufficient, pool = self._capacities.check(claim, storage_class, node_labels)
        if not is_sufficient:
            largest = self._capacities.largest_in_reach(class_name, node_labels)
            has = f"at most {largest} is free on the node" if largest is not None else "the node has no pool for it"
            problem = f"requests {requested_storage(claim)} of storage class {class_name}; {has}"
            found.conflicts[REASON_NO_SPACE] = VolumeConflict(claim=claim.key, problem=problem)
            return False
        found.provisions.append(Provision(claim, pool))
        return True


class StorageCapacities:
    """The pools from which CSI drivers provision volumes, by storage class."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    @cached_property
    def _by_class(self) -> dict[str, list[CSIStorageCapacity]]:
        by_class: dict[str, list[CSIStorageCapacity]] = {}
        for capacity in self._cluster.cluster.csi_storage_capacities:
            by_class.setdefault(capacity.storage_class_name, []).append(capacity)
        return by_class

    def check(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, node_labels: Mapping[str, str]
    ) -> tuple[bool, CSIStorageCapacity | None]:
        """Return whether a pool accessible from the node is large enough, and the pool if pools are tracked.

        Drivers that do not publish capacity, and claims without a size, always have enough.
        """
        requested = claim.spec.resources.requests.get(STORAGE)
        driver = self._cluster.csi_drivers.get(storage_class.provisioner)
        if requested is None or driver is None or not driver.spec.storage_capacity:
            return True, None
        for pool in self._by_class.get(storage_class.metadata.name, ()):
            limit = largest_volume(pool)
            if limit is not None and limit.value >= requested.value and _is_in_reach(pool, node_labels):
                return True, pool
        return False, None

    def largest_in_reach(self, class_name: str, node_labels: Mapping[str, str]) -> Quantity | None:
        """Return the largest volume that could be provisioned for the node; ``None`` if it can access no pool."""
        limits = [
            limit
            for pool in self._by_class.get(class_name, ())
            if _is_in_reach(pool, node_labels) and (limit := largest_volume(pool)) is not None
        ]
        return max(limits, key=lambda limit: limit.nano, default=None)


def largest_volume(pool: CSIStorageCapacity) -> Quantity | None:
    """Return the largest volume that the pool can provide; ``None`` if it does not say."""
    return pool.maximum_volume_size if pool.maximum_volume_size is not None else pool.capacity


def _is_in_reach(pool: CSIStorageCapacity, node_labels: Mapping[str, str]) -> bool:
    topology = pool.node_topology
    return topology is not None and topology.is_valid() and topology.matches(node_labels)


def admits_node(terms: Sequence[TopologySelectorTerm], node_labels: Mapping[str, str]) -> bool:
    """Return whether a storage class's allowed topologies include the node; no terms include every node."""
    # An empty term, or one that is not a valid selector, matches no node.
    return not terms or any(
        bool(term.match_label_expressions)
        and all(
            is_label_key(each.key)
            and all(map(is_label_value, each.values))
            and node_labels.get(each.key) in each.values
            for each in term.match_label_expressions
        )
        for term in terms
    )
