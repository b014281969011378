"""The volumes that a session assumes for the tasks it places.

Follows ``defaultVolumeBinder`` (``pkg/scheduler/cache/cache.go``) and ``capabilities/volumebinding/binder.go`` of
Volcano v1.8.0. No predicate checks whether a pod's claims can be bound: this happens when a task is allocated to a
node, and the allocation fails if they cannot. The capacity of storage pools is ignored, because the option
``--csi-storage`` is off by default.

If the input has no claims, volumes or storage classes, all claims count as bound, as in the scheduler's own tests.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, TypeVar

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.storage import (
    SELECTED_NODE_ANNOTATION,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    storage_capacity,
)
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.csi_translation import claim_name_of, is_ephemeral, ownership_error
from kpreempt.schedulers.kube.framework.interface import PluginError
from kpreempt.schedulers.kube.plugins.volume_binding.binder import (
    ClaimMatches,
    PodClaims,
    PodVolumes,
    VolumeBinder,
    sort_claims,
)
from kpreempt.schedulers.volcano.cache import Node, Task
from kpreempt.schedulers.volcano.kube_view import BEHAVIOR
from kpreempt.verdict import Assumption, AssumptionKind

_Claimed = TypeVar("_Claimed", PersistentVolumeClaim, PersistentVolume)

_MAX_LISTED = 4

REASON_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class VolumeError(Exception):
    """A task's volumes are not available on a node; the message is upstream's."""


class _TaskVolumes(NamedTuple):
    """What a task uses: volumes by name, and keys of claims for which volumes will be provisioned."""

    volumes: list[str]
    claims: list[str]


class SessionVolumes:
    """Claims and volumes in a session: those of the cluster, with some in use by tasks."""

    def __init__(self, cluster: ClusterSnapshot, now: datetime) -> None:
        self._cluster = cluster
        self._now = now
        self._volumes: dict[str, PersistentVolume] = {}
        self._claims: dict[str, PersistentVolumeClaim] = {}
        self._by_task: dict[str, _TaskVolumes] = {}
        self._known: tuple[ClusterState, VolumeBinder] | None = None
        # The assumptions of the session, in order of occurrence.
        self.assumptions: dict[Assumption, None] = {}
        self._has_storage_objects = bool(
            cluster.persistent_volume_claims or cluster.persistent_volumes or cluster.storage_classes
        )

    def take(self, task: Task, node: Node) -> None:
        """Assume the volumes that a task needs on a node; raise ``VolumeError``."""
        if not self._has_storage_objects or not any(
            claim_name_of(task.pod, volume) is not None for volume in task.pod.spec.volumes
        ):
            return
        cluster, binder = self._look()
        try:
            claims = _claims_of(task.pod, cluster)
            if claims.immediate:
                raise VolumeError(REASON_IMMEDIATE)
            matches = ClaimMatches(claims)
            found = binder.find_pod_volumes(matches, node.node)
            self._record_order(task, matches, binder, found, node)
        except PluginError as error:
            raise VolumeError(str(error)) from error
        if found.conflicts:
            raise VolumeError(",".join(found.reasons))
        if not claims.delayed:
            return
        for claim, volume in found.bindings:
            reference = ObjectReference(claim.metadata.namespace, claim.metadata.name, claim.metadata.uid)
            spec = msgspec.structs.replace(volume.spec, claim_ref=reference)
            self._volumes[volume.metadata.name] = msgspec.structs.replace(volume, spec=spec)
        for claim, _ in found.provisions:
            annotations = {**claim.metadata.annotations, SELECTED_NODE_ANNOTATION: node.name}
            metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
            self._claims[claim.key] = msgspec.structs.replace(claim, metadata=metadata)
        self._by_task[task.key] = _TaskVolumes(
            [volume.metadata.name for _, volume in found.bindings], [claim.key for claim, _ in found.provisions]
        )
        self._known = None

    def _record_order(
        self, task: Task, matches: ClaimMatches, binder: VolumeBinder, found: PodVolumes, node: Node
    ) -> None:
        """Add an assumption if a claim could bind to an equal volume that other claims do not see as equal."""
        taken: set[str] = set()
        for claim, volume in found.bindings:
            equals = matches.suitable(claim, binder).equals_of(volume, node.node.labels, taken)
            taken.add(volume.metadata.name)
            if len(set(map(_use, equals))) < 2:
                continue
            names = [each.metadata.name for each in equals]
            named = ", ".join(names[:_MAX_LISTED]) + (
                f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
            )
            message = (
                f"its claim {claim.key} binds one of the tied volumes {named} on {node.name}; the scheduler picks one"
                " at random (here: the first in the input), which may affect what is left for other claims"
            )
            assumption = Assumption(f"Pod {task.key}", "spec.volumes", message, AssumptionKind.UNCERTAIN)
            self.assumptions[assumption] = None

    def give_back(self, task: Task) -> None:
        """Return a task's volumes to their state in the cluster, even if another task needs them, too."""
        taken = self._by_task.pop(task.key, None)
        if taken is None:
            return
        for name in taken.volumes:
            self._volumes.pop(name, None)
        for key in taken.claims:
            self._claims.pop(key, None)
        self._known = None

    def _look(self) -> tuple[ClusterState, VolumeBinder]:
        """Return the current claims and volumes."""
        if self._known is None:
            claims = [self._claims.get(claim.key, claim) for claim in self._cluster.persistent_volume_claims]
            volumes = [self._volumes.get(each.metadata.name, each) for each in self._cluster.persistent_volumes]
            seen = msgspec.structs.replace(
                self._cluster,
                nodes=[],
                pods=[],
                csi_drivers=[],
                persistent_volume_claims=[_without_attributes(claim) for claim in claims],
                persistent_volumes=[_without_attributes(volume) for volume in volumes],
            )
            cluster = ClusterState(seen, BEHAVIOR, now=self._now, scheduler_names=frozenset())
            self._known = cluster, VolumeBinder(cluster, BEHAVIOR)
        return self._known


def _use(volume: PersistentVolume) -> bytes:
    """A key that is equal for volumes of one class and size that serve the same claims on the same nodes."""
    spec = volume.spec
    return msgspec.json.encode(
        (
            sorted(spec.access_modes),
            sorted(volume.metadata.labels.items()),
            spec.volume_mode or "Filesystem",
            spec.node_affinity,
            storage_capacity(volume).nano,
        )
    )


def _without_attributes(each: _Claimed) -> _Claimed:
    """Return a claim or volume as 1.25 reads it, without volume attributes classes."""
    if not each.spec.volume_attributes_class_name:
        return each
    spec = msgspec.structs.replace(each.spec, volume_attributes_class_name=None)
    return msgspec.structs.replace(each, spec=spec)


def _claims_of(pod: Pod, cluster: ClusterState) -> PodClaims:
    """Return the pod's claims by kind (``GetPodVolumes``); raise ``PluginError`` at the first invalid one."""
    found = PodClaims([], [], [])
    for volume in pod.spec.volumes:
        name = claim_name_of(pod, volume)
        if name is None:
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = cluster.persistent_volume_claims.get(key)
        if claim is None:
            missing = f'could not find v1.PersistentVolumeClaim "{key}"'
            raise PluginError(f'error getting PVC "{key}": {missing}')
        if is_ephemeral(volume) and (problem := ownership_error(pod, claim)) is not None:
            raise PluginError(problem)
        for known, new in zip(found, sort_claims([claim], cluster), strict=True):
            known.extend(new)
    return found
