"""Unreadable kinds that may change a pod's outcome.

Every scheduler checks the kinds that it reads here. A kind counts only if the pod or its outcome depends on objects of
that kind: a pod without claims doesn't need volumes, and a pod that evicts none doesn't need PDBs. If the input has no
objects of a kind, it counts only if the pod refers to an object that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property

from kpreempt.model.cluster import ClusterSnapshot, KindState, is_partial, state_of
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod, has_namespace_selector
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.verdict import Assumption, AssumptionKind, Outcome
from kpreempt.verdict.unread import unread_of

# If one of these is missing, filters may reject too much, but a pod that lands does land.
_MISSED_BY_FILTERS = frozenset(
    (
        *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSIStorageCapacity", "Namespace"),
        *("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "Node"),
    )
)


class DecidedPod:
    """A pod, and a scheduler's decision about it in a cluster that could not be read completely.

    ``choices`` is the number of nodes between which scores decided. ``spreads_by_default`` means that default
    constraints also reject nodes. ``selects_namespaces`` returns whether affinity terms of the pods that filters check
    select namespaces by their labels; by default, those of all pods of the cluster.
    """

    def __init__(
        self,
        pod: Pod,
        cluster: ClusterSnapshot,
        outcome: Outcome,
        *,
        choices: int = 0,
        spreads_by_default: bool = False,
        selects_namespaces: Callable[[], bool] | None = None,
    ) -> None:
        self.pod = pod
        self.cluster = cluster
        self.outcome = outcome
        # Whether a pod must be evicted, and whether this pod has claims for devices.
        self.preempts = outcome.preempts
        self.has_devices = bool(pod.spec.resource_claims)
        self._choices = choices
        self._spreads_by_default = spreads_by_default
        self.others_select_namespaces = selects_namespaces or (lambda: any(map(has_namespace_selector, cluster.pods)))

    @cached_property
    def claims(self) -> frozenset[str]:
        """The pod's volume claims, as ``namespace/name``."""
        meta = self.pod.metadata
        named = (
            volume.persistent_volume_claim.claim_name
            if volume.persistent_volume_claim is not None
            else f"{meta.name}-{volume.name}"
            for volume in self.pod.spec.volumes
            if volume.persistent_volume_claim is not None or volume.ephemeral is not None
        )
        return frozenset(f"{meta.namespace}/{name}" for name in named)

    @cached_property
    def has_unbound_claims(self) -> bool:
        """Whether a known claim still has to be bound."""
        return not self.claims <= {each.key for each in self._own_claims if each.spec.volume_name}

    def lacks(self, kind: str) -> bool:
        """Return whether a claim of the pod, one of its volumes, or the class of an unbound claim is missing."""
        if kind == "PersistentVolumeClaim":
            return not self.claims <= {each.key for each in self._own_claims}
        if kind == "PersistentVolume":
            volumes = {each.spec.volume_name for each in self._own_claims} - {""}
            return bool(volumes) and not volumes <= {each.metadata.name for each in self.cluster.persistent_volumes}
        # A claim that names none gets the default class, if there is one.
        classes = {each.spec.storage_class_name for each in self._own_claims if not each.spec.volume_name}
        return not classes <= {*(each.metadata.name for each in self.cluster.storage_classes), ""}

    @cached_property
    def _own_claims(self) -> list[PersistentVolumeClaim]:
        if not self.claims:
            return []
        return [each for each in self.cluster.persistent_volume_claims if each.key in self.claims]

    @property
    def attaches(self) -> bool:
        """Whether it uses volumes whose number on a node is limited."""
        return bool(self.claims) or any(volume.csi is not None for volume in self.pod.spec.volumes)

    @property
    def has_extended_resources(self) -> bool:
        """Whether the pod requests a resource that is not Kubernetes' own."""
        containers = (*self.pod.spec.containers, *self.pod.spec.init_containers)
        return any("/" in name for each in containers for name in {*each.resources.requests, *each.resources.limits})

    def is_spread_by(self, kind: str = "") -> bool:
        """Return whether default spreading applies, through services or a controller of this kind."""
        if self.pod.spec.topology_spread_constraints or not (self._spreads_by_default or self._choices > 1):
            return False
        owner = controller_of(self.pod.metadata)
        return owner is not None and owner.kind == kind if kind else bool(self.pod.metadata.labels)


_MATTERS: Mapping[str, Callable[[DecidedPod], bool]] = {
    "Node": lambda seen: not seen.cluster.nodes,
    "Pod": lambda _: True,
    "PodDisruptionBudget": lambda seen: seen.preempts,
    "Namespace": lambda seen: has_namespace_selector(seen.pod) or seen.others_select_namespaces(),
    "PersistentVolumeClaim": lambda seen: bool(seen.claims),
    "PersistentVolume": lambda seen: bool(seen.claims),
    "StorageClass": lambda seen: seen.has_unbound_claims,
    "CSIDriver": lambda seen: seen.has_unbound_claims,
    "CSIStorageCapacity": lambda seen: seen.has_unbound_claims,
    "CSINode": lambda seen: seen.attaches,
    "VolumeAttachment": lambda seen: seen.attaches,
    "ResourceClaim": lambda seen: seen.has_devices,
    "ResourceSlice": lambda seen: seen.has_devices,
    "ResourceClaimTemplate": lambda seen: any(
        each.resource_claim_template_name for each in seen.pod.spec.resource_claims
    ),
    "DeviceTaintRule": lambda seen: seen.has_devices,
    "DeviceClass": lambda seen: seen.has_devices or seen.has_extended_resources,
    "Service": lambda seen: seen.is_spread_by(),
    "ReplicationController": lambda seen: seen.is_spread_by("ReplicationController"),
    "ReplicaSet": lambda seen: seen.is_spread_by("ReplicaSet"),
    "StatefulSet": lambda seen: seen.is_spread_by("StatefulSet"),
}
# The same for kinds with no objects in the input, if a different condition applies.
_MATTERS_IF_ABSENT: Mapping[str, Callable[[DecidedPod], bool]] = {
    "PersistentVolumeClaim": lambda seen: seen.lacks("PersistentVolumeClaim"),
    "PersistentVolume": lambda seen: seen.lacks("PersistentVolume"),
    "StorageClass": lambda seen: seen.lacks("StorageClass"),
    # Most extended resources belong to device plugins.
    "DeviceClass": lambda seen: seen.has_devices,
}
READ_BY_TODAYS = tuple(_MATTERS)
# For the old schedulers: they had no device classes or namespaceSelector, and their scores are not computed.
READ_BY_OLD = (
    "Node",
    "Pod",
    "PodDisruptionBudget",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
)
# For tasks of a session, in which budgets do not count.
_READ_BY_SESSIONS = (
    *("Namespace", "PersistentVolumeClaim", "PersistentVolume", "StorageClass"),
    *("CSIDriver", "CSIStorageCapacity", "CSINode", "VolumeAttachment"),
)


def judged(seen: DecidedPod, kinds: Collection[str]) -> tuple[Outcome, list[Assumption]]:
    """Make the outcome uncertain if one of the unread ``kinds`` may change it, and add an assumption for each.

    If the input lacks nodes, every outcome is uncertain: another node may fit, be better, or be preempted on. So it is
    if some pods could not be read: nodes are fuller than they seem.
    """
    if is_partial(seen.cluster) and seen.outcome is not Outcome.NOT_SCHEDULED:
        return Outcome.UNCERTAIN, unread_of(seen.cluster, [kind for kind in kinds if _matters(kind, seen)])
    if not seen.cluster.unread:
        return seen.outcome, []
    unread = seen.cluster.unread
    found = unread_of(seen.cluster, [kind for kind in kinds if kind in unread and _matters(kind, seen)])
    # Kinds that most clusters do not use are not missed.
    missed = {each.subject for each in found if each.kind is not AssumptionKind.NOTE}
    is_hidden = not _MISSED_BY_FILTERS.isdisjoint(missed) and (seen.preempts or seen.outcome.stays_pending)
    return Outcome.UNCERTAIN if is_hidden else seen.outcome, found


def unread_in_session(cluster: ClusterSnapshot, pods: Iterable[Pod]) -> list[Assumption]:
    """List what could not be read and may change a Volcano session that places these pods."""
    if not cluster.unread:
        return []
    seen = [DecidedPod(pod, cluster, Outcome.UNSCHEDULABLE) for pod in pods]
    others = [kind for kind in _READ_BY_SESSIONS if any(_matters(kind, each) for each in seen)]
    jobs = ("PodGroup", "Queue", "PriorityClass") if seen or cluster.pod_groups else ()
    return unread_of(cluster, [*jobs, *others])


def _matters(kind: str, seen: DecidedPod) -> bool:
    state = state_of(seen.cluster, kind)
    if state is KindState.READ:
        return False
    if_absent = _MATTERS_IF_ABSENT.get(kind) if state is KindState.ABSENT else None
    return (if_absent or _MATTERS[kind])(seen)
