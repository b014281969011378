"""Which kinds that were not read may change what becomes of a pod.

Every scheduler asks here about the kinds that it reads. A kind counts only if something of the pod, or of its outcome,
depends on such objects: a pod without claims doesn't need volumes, and a pod that evicts none doesn't need PDBs. If the
input has none of a kind, an object must be missing that the pod refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from itertools import chain
from operator import attrgetter

from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.verdict import Assumption, AssumptionKind, Outcome
from kpreempt.verdict.unread import unread_of

_PREEMPTS = (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)
# Where one of these is missing, filters refuse what they might let in; whoever lands nevertheless does land.
_MISSED_BY_FILTERS = frozenset(
    (
        *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSIStorageCapacity", "Namespace"),
        *("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "Node"),
    )
)


class Seen:
    """A pod, and what a scheduler made of it in a cluster of which not all could be read.

    ``choices`` is among how many nodes scores decided. ``spreads_by_default`` says that default constraints refuse
    nodes, too. ``with_affinity`` gives the pods whose affinity filters look at, by default all of the cluster.
    """

    def __init__(
        self,
        pod: Pod,
        cluster: ClusterSnapshot,
        outcome: Outcome,
        *,
        choices: int = 0,
        spreads_by_default: bool = False,
        with_affinity: Callable[[], Iterable[Pod]] | None = None,
    ) -> None:
        self.pod = pod
        self.cluster = cluster
        self.outcome = outcome
        # Whether a pod has to go, and whether this one has claims for devices.
        self.preempts = outcome in _PREEMPTS
        self.has_devices = bool(pod.spec.resource_claims)
        self._choices = choices
        self._spreads_by_default = spreads_by_default
        self.with_affinity = with_affinity or (lambda: cluster.pods)

    @cached_property
    def claims(self) -> frozenset[str]:
        """The pod's claims for volumes, by ``namespace/name``."""
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
        """Whether a claim still has to be bound, as far as is known."""
        return not self.claims <= {each.key for each in self._own_claims if each.spec.volume_name}

    def lacks(self, kind: str) -> bool:
        """Whether the cluster lacks a claim of the pod's, a volume of these, or a class of those still to be bound."""
        if kind == "PersistentVolumeClaim":
            return not self.claims <= {each.key for each in self._own_claims}
        if kind == "PersistentVolume":
            volumes = {each.spec.volume_name for each in self._own_claims} - {""}
            return bool(volumes) and not volumes <= {each.metadata.name for each in self.cluster.persistent_volumes}
        # A claim that names none gets the default one, if there is any.
        classes = {each.spec.storage_class_name for each in self._own_claims if not each.spec.volume_name}
        return not classes <= {*(each.metadata.name for each in self.cluster.storage_classes), ""}

    @cached_property
    def _own_claims(self) -> list[PersistentVolumeClaim]:
        if not self.claims:
            return []
        return [each for each in self.cluster.persistent_volume_claims if each.key in self.claims]

    @property
    def attaches(self) -> bool:
        """Whether volumes count that a node can take only so many of."""
        return bool(self.claims) or any(volume.csi is not None for volume in self.pod.spec.volumes)

    @property
    def has_extended_resources(self) -> bool:
        """Whether the pod requests what is no resource of Kubernetes' own."""
        containers = (*self.pod.spec.containers, *self.pod.spec.init_containers)
        return any("/" in name for each in containers for name in {*each.resources.requests, *each.resources.limits})

    def is_spread_by(self, kind: str = "") -> bool:
        """Whether default spreading counts, by the services or by a controller of this kind."""
        if self.pod.spec.topology_spread_constraints or not (self._spreads_by_default or self._choices > 1):
            return False
        owner = controller_of(self.pod.metadata)
        return owner is not None and owner.kind == kind if kind else bool(self.pod.metadata.labels)


def _selects_namespaces(seen: Seen) -> bool:
    """Whether terms of the pod, or of pods that are there, select namespaces by their labels."""
    affinities = map(attrgetter("spec.affinity"), chain((seen.pod,), seen.with_affinity()))
    return any(term.namespace_selector is not None for each in filter(None, affinities) for term in each.pod_terms)


_MATTERS: Mapping[str, Callable[[Seen], bool]] = {
    "Node": lambda seen: not seen.cluster.nodes,
    "Pod": lambda _: True,
    "PodDisruptionBudget": lambda seen: seen.preempts,
    "Namespace": _selects_namespaces,
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
# The same of kinds that the input has none of, if another question is asked of them.
_MATTERS_IF_ABSENT: Mapping[str, Callable[[Seen], bool]] = {
    "PersistentVolumeClaim": lambda seen: seen.lacks("PersistentVolumeClaim"),
    "PersistentVolume": lambda seen: seen.lacks("PersistentVolume"),
    "StorageClass": lambda seen: seen.lacks("StorageClass"),
    # Most extended resources are a device plugin's.
    "DeviceClass": lambda seen: seen.has_devices,
}
READ_BY_TODAYS = tuple(_MATTERS)
# The old schedulers' own: they knew neither device classes nor namespaceSelector, and their scores are not computed.
READ_BY_OLD = (
    "Node",
    "Pod",
    "PodDisruptionBudget",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
)
# What places a task in a session; budgets do not count there.
_READ_BY_SESSIONS = (
    *("Namespace", "PersistentVolumeClaim", "PersistentVolume", "StorageClass"),
    *("CSIDriver", "CSIStorageCapacity", "CSINode", "VolumeAttachment"),
)


def judged(seen: Seen, kinds: Collection[str]) -> tuple[Outcome, list[Assumption]]:
    """The outcome, uncertain if those of ``kinds`` that were not read may hide another, and an assumption for each."""
    if not seen.cluster.unread:
        return seen.outcome, []
    found = unread_of(seen.cluster, [kind for kind in kinds if _matters(kind, seen)])
    # Of kinds that most clusters have none of, none is missed.
    missed = {each.subject for each in found if each.kind is not AssumptionKind.NOTE}
    is_hidden = not _MISSED_BY_FILTERS.isdisjoint(missed) and (seen.preempts or seen.outcome is Outcome.UNSCHEDULABLE)
    return Outcome.UNCERTAIN if is_hidden else seen.outcome, found


def unread_in_session(cluster: ClusterSnapshot, pods: Iterable[Pod]) -> list[Assumption]:
    """What could not be read, and may change a session of Volcano's that has these pods to place."""
    if not cluster.unread:
        return []
    seen = [Seen(pod, cluster, Outcome.UNSCHEDULABLE) for pod in pods]
    others = [kind for kind in _READ_BY_SESSIONS if any(_matters(kind, each) for each in seen)]
    jobs = ("PodGroup", "Queue", "PriorityClass") if seen or cluster.pod_groups else ()
    return unread_of(cluster, [*jobs, *others])


def _matters(kind: str, seen: Seen) -> bool:
    state = state_of(seen.cluster, kind)
    if state is KindState.READ:
        return False
    asked = _MATTERS_IF_ABSENT.get(kind) if state is KindState.ABSENT else None
    return (asked or _MATTERS[kind])(seen)
