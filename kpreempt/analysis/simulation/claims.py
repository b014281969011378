"""Claims of a change that are bound at once, as the controller of volumes and the provisioners would.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/volume/persistentvolume`` (``syncUnboundClaim``, ``index.go``):
an available volume that suits, the one with the fewest access modes and then the smallest, else one that the storage
class makes. What a provisioner does is assumed: it makes what is asked for, within the topologies of the class.
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
    """The cluster with the claims bound, and why others are not, by their keys.

    ``waiting`` are bound only with a pod, for which no volume is there or can be made either.
    """

    cluster: ClusterSnapshot
    unbound: dict[str, str] = {}
    waiting: dict[str, str] = {}
    assumptions: list[Assumption] = []


def bind_claims(cluster: ClusterSnapshot, keys: Iterable[str], settings: Settings) -> Bound:
    """Bind the new claims of these keys (``namespace/name``) that do not wait for a pod, in the cluster's order."""
    new = set(keys)
    claims = [
        each
        for each in cluster.persistent_volume_claims
        if each.key in new and BIND_COMPLETED_ANNOTATION not in each.metadata.annotations
    ]
    return _Binder(cluster, settings).bind(claims) if claims else Bound(cluster)


def claims_of_pod(pod: Pod) -> list[str]:
    """The keys of the claims that the pod's volumes name."""
    names = (claim_name_of(pod, volume) for volume in pod.spec.volumes)
    return [f"{pod.metadata.namespace}/{name}" for name in names if name is not None]


class _Binder:
    def __init__(self, cluster: ClusterSnapshot, settings: Settings) -> None:
        self._cluster = cluster
        has_attributes = settings.facts.get("volume_attributes_class") is True
        self._behaviour = behavior()._replace(volume_attributes_class=has_attributes)
        self._classes = {each.metadata.name: each for each in cluster.storage_classes}
        self._volumes = {each.metadata.name: each for each in cluster.persistent_volumes}
        # As they are at the start, by class.
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
                        self._unbound[claim.key] = f"it names volume {name}, which does not exist"
                    elif volume.spec.claim_ref is not None and not is_bound_to(volume, claim):
                        self._unbound[claim.key] = f"it names volume {name}, which is bound to another claim"
                    elif volume.spec.claim_ref is None and not _satisfies(volume, claim):
                        self._unbound[claim.key] = f"it names volume {name}, whose size, class or modes do not suit it"
                    else:
                        self._take(claim, volume)
                elif storage_class is not None and storage_class.volume_binding_mode == _WAITS:
                    # Whether a claim that waits for a pod could be bound at all, wherever that lands.
                    if storage_class.provisioner in ("", NO_PROVISIONER):
                        suitable = self._suitable(claim)
                        if not suitable.prebound and not self._left(suitable):
                            self._waiting[claim.key] = self._why_not(claim, storage_class)
                elif not self._take_suitable(claim):
                    self._provision(claim, storage_class)
            except PluginError as error:
                self._unbound[claim.key] = str(error)
        there = self._cluster.persistent_volume_claims
        cluster = msgspec.structs.replace(
            self._cluster,
            persistent_volume_claims=[self._bound.get(each.key, each) for each in there],
            persistent_volumes=list(self._volumes.values()),
        )
        return Bound(cluster if self._bound else self._cluster, self._unbound, self._waiting, self._assumptions)

    def _suitable(self, claim: PersistentVolumeClaim) -> SuitableVolumes:
        name = class_of_claim(claim)
        if name not in self._ready:
            self._ready[name] = ClassVolumes(self._by_class[name])
        return SuitableVolumes(claim, self._ready[name], self._behaviour)

    def _left(self, suitable: SuitableVolumes) -> list[PersistentVolume]:
        """Those that are bound to no claim, nor to one that came before."""
        return [each for each in suitable.available if each.metadata.name not in self._taken]

    def _take_suitable(self, claim: PersistentVolumeClaim) -> bool:
        """Take an existing volume; whether there is one."""
        suitable = self._suitable(claim)
        available = [] if suitable.prebound else self._left(suitable)
        found = suitable.prebound[0] if suitable.prebound else min(available, key=_rank, default=None)
        if found is None:
            return False
        self._take(claim, found)
        equal = [each for each in available if _rank(each) == _rank(found)]
        if any(each.spec.node_affinity != found.spec.node_affinity for each in equal):
            message = f"{len(equal):,} volumes suit alike, within reach of different nodes; one of them was taken"
            self._assume(claim, "spec.volumeName", message, AssumptionKind.UNCERTAIN)
        return True

    def _take(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
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
        """The storage class makes a volume, if it can."""
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            self._unbound[claim.key] = self._why_not(claim, storage_class)
            return
        spec = PersistentVolumeSpec(
            capacity={STORAGE: requested_storage(claim)},
            access_modes=claim.spec.access_modes,
            storage_class_name=storage_class.metadata.name,
            volume_mode=claim.spec.volume_mode,
            volume_attributes_class_name=claim.spec.volume_attributes_class_name,
            node_affinity=_within(storage_class),
        )
        made = PersistentVolume(spec=spec)
        name = f"pvc-{claim.metadata.namespace}-{claim.metadata.name}"
        made = replace_in(made, "metadata", name=name)
        self._take(claim, made)
        by = f"{storage_class.provisioner} (storage class {storage_class.metadata.name})"
        self._assume(claim, "spec.volumeName", f"taken to be provisioned at once by {by}", AssumptionKind.INFORMATIONAL)
        # The topology segments of its driver in one of which the volume is made.
        segments = set()
        labels = {each.name: each.labels for each in self._cluster.nodes}
        for csi_node in self._cluster.csi_nodes:
            for driver in csi_node.spec.drivers:
                own = labels.get(csi_node.metadata.name)
                if driver.name == storage_class.provisioner and driver.topology_keys and own is not None:
                    segments.add(tuple((key, own.get(key, "")) for key in driver.topology_keys))
        if len(segments) > 1:
            message = (
                f"{by} puts its volume into one of {len(segments):,} topologies before its pod has a node; "
                "any was taken"
            )
            self._assume(claim, "spec.storageClassName", message, AssumptionKind.UNCERTAIN)

    def _why_not(self, claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> str:
        name = class_of_claim(claim)
        if not name:
            return "no volume suits it, it names no storage class, and there is no default one"
        if storage_class is None:
            lacks = " (the dump has none; kubectl get storageclasses -o json adds them)" if not self._classes else ""
            return f"its storage class {name} does not exist{lacks}"
        there = len(self._by_class[name])
        desired = requested_storage(claim)
        return f"storage class {name} provisions no volumes, and none of its {there:,} has {desired} and is free for it"

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
    """The nodes that volumes of the class may be reached from; ``None`` for all."""
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
