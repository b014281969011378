"""Binds claims of a change at once, as the volume controller and provisioners would.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/volume/persistentvolume`` (``syncUnboundClaim``, ``index.go``): a
suitable available volume, by the fewest access modes and then the smallest size, or else one that the storage class
provisions. Provisioners are assumed to create what is requested, within the topologies of the class.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from kpreempt.admission.limit_ranges import claim_out_of_bounds
from kpreempt.model.affinity import NodeSelector, NodeSelectorTerm
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import NodeSelectorRequirement
from kpreempt.model.meta import replace_in
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.storage import (
    BIND_COMPLETED_ANNOTATION,
    NO_PROVISIONER,
    STORAGE,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeAffinity,
    class_of_claim,
    class_of_volume,
    is_bound_to,
    requested_storage,
    storage_capacity,
)
from kpreempt.schedulers.interface import Settings
from kpreempt.schedulers.kube.framework.csi_translation import claim_name_of
from kpreempt.schedulers.kube.framework.interface import PluginError
from kpreempt.schedulers.kube.plugins.volume_binding.matching import ClassVolumes, SuitableVolumes
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import Assumption, AssumptionKind

_WAITS = "WaitForFirstConsumer"


class Bound(msgspec.Struct, frozen=True):
    """The cluster with bound claims, and the reason for each unbound one, by key.

    ``waiting`` claims are bound only with a pod, and have no volume that exists or could be provisioned.
    """

    cluster: ClusterSnapshot
    unbound: dict[str, str] = {}
    waiting: dict[str, str] = {}
    assumptions: list[Assumption] = []


def bind_claims(cluster: ClusterSnapshot, keys: Iterable[str], settings: Settings) -> Bound:
    """Bind the new claims with these keys (``namespace/name``) that do not wait for a pod, in the cluster's order."""
    new = set(keys)
    claims = [
        each
        for each in cluster.persistent_volume_claims
        if each.key in new and BIND_COMPLETED_ANNOTATION not in each.metadata.annotations
    ]
    return _Binder(cluster, settings).bind(claims) if claims else Bound(cluster)


def claims_of_pod(pod: Pod) -> list[str]:
    """The keys of the claims that the pod's volumes use."""
    names = (claim_name_of(pod, volume) for volume in pod.spec.volumes)
    return [f"{pod.metadata.namespace}/{name}" for name in names if name is not None]


def bind_with_pod(cluster: ClusterSnapshot, pod: Pod, node_name: str, settings: Settings) -> Bound:
    """Bind the pod's claims that wait for a pod, now that it has a node: as the scheduler's VolumeBinding chooses.

    Follows ``pkg/scheduler/framework/plugins/volumebinding/binder.go`` of v1.36.3: the smallest suitable volume that
    the node can access, or else a new one, which nodes with the same topology can access.
    """
    own = set(claims_of_pod(pod))
    claims = [
        each
        for each in cluster.persistent_volume_claims
        if each.key in own and BIND_COMPLETED_ANNOTATION not in each.metadata.annotations
    ]
    node = next((each for each in cluster.nodes if each.name == node_name), None) if claims else None
    return _Binder(cluster, settings).bind_on(claims, node) if node is not None else Bound(cluster)


class _Binder:
    def __init__(self, cluster: ClusterSnapshot, settings: Settings) -> None:
        self._cluster = cluster
        has_attributes = settings.facts.get("volume_attributes_class") is True
        self._behavior = behavior()._replace(volume_attributes_class=has_attributes)
        self._classes = {each.metadata.name: each for each in cluster.storage_classes}
        self._volumes = {each.metadata.name: each for each in cluster.persistent_volumes}
        # The initial volumes, by class.
        self._by_class: defaultdict[str, list[PersistentVolume]] = defaultdict(list)
        for each in cluster.persistent_volumes:
            self._by_class[class_of_volume(each)].append(each)
        self._ready: dict[str, ClassVolumes] = {}
        self._taken: set[str] = set()
        self._bound: dict[str, PersistentVolumeClaim] = {}
        self._unbound: dict[str, str] = {}
        self._waiting: dict[str, str] = {}
        self._assumptions: list[Assumption] = []

    def bind(self, claims: Iterable[PersistentVolumeClaim]) -> Bound:
        for claim in claims:
            storage_class = self._classes.get(class_of_claim(claim))
            try:
                if rejection := claim_out_of_bounds(claim, self._cluster):
                    self._unbound[claim.key] = rejection
                elif claim.spec.volume_name:
                    name = claim.spec.volume_name
                    volume = self._volumes.get(name)
                    if volume is None:
                        self._unbound[claim.key] = f"its volume {name} does not exist"
                    elif volume.spec.claim_ref is not None and not is_bound_to(volume, claim):
                        self._unbound[claim.key] = f"its volume {name} is bound to another claim"
                    elif volume.spec.claim_ref is None and not _satisfies(volume, claim):
                        self._unbound[claim.key] = f"its volume {name} does not match in size, class or modes"
                    else:
                        self._bind_volume(claim, volume)
                elif storage_class is not None and storage_class.volume_binding_mode == _WAITS:
                    # Whether a claim that waits for a pod could be bound at all, on any node.
                    if storage_class.provisioner in ("", NO_PROVISIONER):
                        suitable = self._suitable(claim)
                        if not suitable.prebound and not self._unclaimed(suitable):
                            self._waiting[claim.key] = self._reason_unbound(claim, storage_class)
                elif not self._bind_existing(claim):
                    self._provision(claim, storage_class)
            except PluginError as error:
                self._unbound[claim.key] = str(error)
        return self._bound_cluster()

    def bind_on(self, claims: Iterable[PersistentVolumeClaim], node: Node) -> Bound:
        """Bind claims that wait for a pod, which is on this node."""
        for claim in claims:
            storage_class = self._classes.get(class_of_claim(claim))
            if storage_class is None or storage_class.volume_binding_mode != _WAITS:
                continue
            volume = self._suitable(claim).on_node(node.labels, self._taken)
            if volume is not None:
                self._bind_volume(claim, volume)
            elif storage_class.provisioner not in ("", NO_PROVISIONER):
                self._provision_on(claim, storage_class, node)
        return self._bound_cluster()

    def _provision_on(self, claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node) -> None:
        """Provision a volume that nodes with the same topology as this one can access."""
        drivers = (
            driver
            for each in self._cluster.csi_nodes
            if each.metadata.name == node.name
            for driver in each.spec.drivers
            if driver.name == storage_class.provisioner
        )
        keys = [key for driver in drivers for key in driver.topology_keys if key in node.labels]
        reachable = _within(storage_class)
        if keys:
            requirements = [NodeSelectorRequirement(key=key, operator="In", values=[node.labels[key]]) for key in keys]
            terms = [NodeSelectorTerm(match_expressions=requirements)]
            reachable = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
        self._bind_volume(claim, self._new_volume(claim, storage_class, reachable))

    def _new_volume(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, reachable: VolumeNodeAffinity | None
    ) -> PersistentVolume:
        spec = PersistentVolumeSpec(
            capacity={STORAGE: requested_storage(claim)},
            access_modes=claim.spec.access_modes,
            storage_class_name=storage_class.metadata.name,
            volume_mode=claim.spec.volume_mode,
            volume_attributes_class_name=claim.spec.volume_attributes_class_name,
            node_affinity=reachable,
        )
        name = f"pvc-{claim.metadata.namespace}-{claim.metadata.name}"
        return replace_in(PersistentVolume(spec=spec), "metadata", name=name)

    def _bound_cluster(self) -> Bound:
        claims_before = self._cluster.persistent_volume_claims
        cluster = msgspec.structs.replace(
            self._cluster,
            persistent_volume_claims=[self._bound.get(each.key, each) for each in claims_before],
            persistent_volumes=list(self._volumes.values()),
        )
        return Bound(cluster if self._bound else self._cluster, self._unbound, self._waiting, self._assumptions)

    def _suitable(self, claim: PersistentVolumeClaim) -> SuitableVolumes:
        name = class_of_claim(claim)
        if name not in self._ready:
            self._ready[name] = ClassVolumes(self._by_class[name])
        return SuitableVolumes(claim, self._ready[name], self._behavior)

    def _unclaimed(self, suitable: SuitableVolumes) -> list[PersistentVolume]:
        """The volumes that are not bound to this or an earlier claim."""
        return [each for each in suitable.available if each.metadata.name not in self._taken]

    def _bind_existing(self, claim: PersistentVolumeClaim) -> bool:
        """Bind an existing volume; returns whether there is one."""
        suitable = self._suitable(claim)
        available = [] if suitable.prebound else self._unclaimed(suitable)
        found = suitable.prebound[0] if suitable.prebound else min(available, key=_rank, default=None)
        if found is None:
            return False
        self._bind_volume(claim, found)
        equal = [each for each in available if _rank(each) == _rank(found)]
        if any(each.spec.node_affinity != found.spec.node_affinity for each in equal):
            message = (
                f"{len(equal):,} volumes match equally and are accessible from different nodes; one was picked"
                " arbitrarily"
            )
            self._assume(claim, "spec.volumeName", message, AssumptionKind.UNCERTAIN)
        return True

    def _bind_volume(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        metadata = claim.metadata
        reference = ObjectReference(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)
        self._taken.add(volume.metadata.name)
        self._volumes[volume.metadata.name] = msgspec.structs.replace(
            volume,
            spec=msgspec.structs.replace(volume.spec, claim_ref=reference),
            status=msgspec.structs.replace(volume.status, phase="Bound"),
        )
        annotations = {**metadata.annotations, BIND_COMPLETED_ANNOTATION: "yes"}
        self._bound[claim.key] = msgspec.structs.replace(
            claim,
            metadata=msgspec.structs.replace(metadata, annotations=annotations),
            spec=msgspec.structs.replace(claim.spec, volume_name=volume.metadata.name),
            status=msgspec.structs.replace(claim.status, phase="Bound"),
        )

    def _provision(self, claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> None:
        """Provision a volume with the storage class, if possible."""
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            self._unbound[claim.key] = self._reason_unbound(claim, storage_class)
            return
        self._bind_volume(claim, self._new_volume(claim, storage_class, _within(storage_class)))
        by = f"{storage_class.provisioner} (storage class {storage_class.metadata.name})"
        self._assume(
            claim, "spec.volumeName", f"assumed to be provisioned immediately by {by}", AssumptionKind.INFORMATIONAL
        )
        # The topology segments of its driver in which the volume may be created.
        segments = set()
        labels = {each.name: each.labels for each in self._cluster.nodes}
        for csi_node in self._cluster.csi_nodes:
            for driver in csi_node.spec.drivers:
                own = labels.get(csi_node.metadata.name)
                if driver.name == storage_class.provisioner and driver.topology_keys and own is not None:
                    segments.add(tuple((key, own.get(key, "")) for key in driver.topology_keys))
        if len(segments) > 1:
            message = (
                f"{by} creates its volume in one of {len(segments):,} topologies before its pod has a node; "
                "one was picked arbitrarily"
            )
            self._assume(claim, "spec.storageClassName", message, AssumptionKind.UNCERTAIN)

    def _reason_unbound(self, claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> str:
        name = class_of_claim(claim)
        if not name:
            return "no volume matches, the claim has no storage class, and the cluster has no default class"
        if storage_class is None:
            hint = " (the dump has none; kubectl get storageclasses -o json adds them)" if not self._classes else ""
            return f"its storage class {name} does not exist{hint}"
        available = len(self._by_class[name])
        requested = requested_storage(claim)
        return (
            f"storage class {name} provisions no volumes, and none of its {available:,} is available with {requested}"
        )

    def _assume(self, claim: PersistentVolumeClaim, field: str, message: str, kind: AssumptionKind) -> None:
        self._assumptions.append(Assumption(f"PersistentVolumeClaim {claim.key}", field, message, kind))


def _rank(volume: PersistentVolume) -> tuple[int, int]:
    return len(set(volume.spec.access_modes)), storage_capacity(volume).nano


def _satisfies(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """``checkVolumeSatisfyClaim``."""
    return (
        storage_capacity(volume).nano >= requested_storage(claim).nano
        and class_of_volume(volume) == class_of_claim(claim)
        and (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _within(storage_class: StorageClass) -> VolumeNodeAffinity | None:
    """The nodes from which volumes of the class are accessible; ``None`` for all."""
    terms = [
        NodeSelectorTerm(
            match_expressions=[
                NodeSelectorRequirement(key=each.key, operator="In", values=each.values)
                for each in term.match_label_expressions
            ]
        )
        for term in storage_class.allowed_topologies
    ]
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms)) if terms else None
