"""The cluster as it changes in a simulation, and the workloads of its pods."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from kpreempt.admission import admit_claim
from kpreempt.analysis.algorithms import Scheduler, controller_rules
from kpreempt.analysis.simulation.budgets import Budgets, Quotas
from kpreempt.analysis.simulation.claims import bind_claims, bind_with_pod
from kpreempt.controllers.actions import ControlledPod, controlled_pod, deployment_of, ready_condition
from kpreempt.controllers.replacement import NODE_LABELS
from kpreempt.controllers.resource_claims import allocated, released, with_generated_claims
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import ResourceClaim
from kpreempt.model.meta import AnnotatedMeta, OwnerReference, controller_of, replace_in
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.model.storage import PersistentVolumeClaim, PersistentVolumeClaimSpec
from kpreempt.schedulers.interface import PodChanges
from kpreempt.verdict import AllocatedDevice, Assumption

# A century: no simulation is that long, and a longer time would exceed the calendar.
_MAX_GRACE_SECONDS = 100 * 365 * 24 * 3600
_HASH_MASK = 2**64 - 1
_DISRUPTION_TARGET = "DisruptionTarget"
_PREEMPTED = "PreemptionByScheduler"

# Namespace, kind and name of a pod's owner.
OwnerKey = tuple[str, str, str]


class Readiness(NamedTuple):
    """A pod becomes ready (1) or stops being ready (-1), ``at`` seconds from the start."""

    at: float
    pod: Pod
    by: int


class SimulatedCluster:
    """Pods by key in order of creation, and budgets, ``at`` seconds after ``started``.

    ``prepared`` is the prepared cluster, if available.
    """

    def __init__(self, cluster: ClusterSnapshot, scheduler: Scheduler, started: datetime, prepared: Any = None) -> None:
        self.snapshot = cluster
        self._scheduler = scheduler
        self.started = started
        self.at = 0.0
        self.rules = controller_rules(scheduler.settings)
        self.pods: dict[str, Pod] = {pod.key: pod for pod in cluster.pods}
        self.ready = {pod.key for pod in cluster.pods if is_serving(pod)}
        self.at_start = cluster.pods
        self._labels_of_nodes = _copied_labels(cluster.nodes)
        self.ready_at_start = frozenset(self.ready)
        self.readiness: list[Readiness] = []
        self.assumptions: dict[Assumption, None] = {}
        # Pods that are terminating since the simulation started, by node.
        self._terminating: dict[str, dict[str, None]] = {}
        self.budgets = Budgets(cluster, self.ready)
        self.quotas = Quotas(cluster)
        self._owned: dict[OwnerKey, dict[str, None]] = {}
        self._controlled: dict[str, tuple[Pod, ControlledPod]] = {}
        self._shapes: Counter[tuple[OwnerKey, str, str, bool]] = Counter()
        # A hash of the state without names: the number of pods of each owner that are on a node, pending, or
        # terminating. Equal states have equal hashes, and different states have different ones, as far as 64 bits
        # allow.
        self.fingerprint = 0
        self._prepared = prepared
        self._is_stale = prepared is None
        # The pods that changed since the last preparation, by key, with their previous state; ``None`` before the first
        # one.
        self._since: dict[str, Pod | None] | None = None
        self._order = itertools.count()
        self._rank = dict(zip(self.pods, self._order, strict=False))
        # Changes whenever anything that the scheduler reads changes.
        self.version = 0
        # The pods nominated to a node, by its name.
        self._nominated: dict[str, set[str]] = {}
        self._on_nodes: dict[str, set[str]] = {}
        for key, pod in self.pods.items():
            owner = owner_key(pod)
            self._count(pod, 1, key, owner)
            if owner is not None:
                self._owned.setdefault(owner, {})[key] = None

    @property
    def now(self) -> datetime:
        """The current time."""
        return self.started + timedelta(seconds=self.at)

    def prepared(self) -> Any:
        """The current cluster, prepared for the scheduler."""
        if self._is_stale:
            cluster = msgspec.structs.replace(
                self.snapshot, pods=_LazyPods(self), pod_disruption_budgets=self.budgets.now
            )
            changes = None
            if self._since is not None:
                changes = PodChanges([(old, self.pods.get(key)) for key, old in self._since.items()], self._rank)
            self._prepared = self._scheduler.prepare(
                cluster, now=self.now, before=self._prepared, changes=changes, expects_equivalent_pods=True
            )
            self._is_stale, self._since = False, {}
        return self._prepared

    def pods_of(self, owner: OwnerKey) -> list[Pod]:
        """The pods of an owner in order of creation, including terminating ones."""
        return [self.pods[key] for key in self._owned.get(owner, ())]

    def pods_on(self, node: str) -> list[Pod]:
        """The pods on a node, in the order of all pods."""
        return [self.pods[key] for key in sorted(self._on_nodes.get(node, ()), key=self._rank.__getitem__)]

    def controlled(self, pods: Iterable[Pod]) -> list[ControlledPod]:
        """The pods from the controllers' perspective."""
        found = []
        for pod in pods:
            known = self._controlled.get(pod.key)
            if known is None or known[0] is not pod:
                record = controlled_pod(pod, self.rules)
                if pod.key in self.ready and record.ready_since is None:
                    # Snapshots do not record when it became ready: at the latest shortly after its start.
                    since = pod.status.start_time or pod.metadata.creation_timestamp
                    record = msgspec.structs.replace(record, is_ready=True, ready_since=since)
                known = self._controlled[pod.key] = (pod, record)
            found.append(known[1])
        return found

    def is_running(self, pod: Pod) -> bool:
        """Whether this pod (by UID) still exists."""
        current = self.pods.get(pod.key)
        return current is not None and current.metadata.uid == pod.metadata.uid

    def observed_on(self, node: str) -> Mapping[str, Pod]:
        """The pods on a node that are terminating since the simulation started."""
        return {key: self.pods[key] for key in self._terminating.get(node, ())}

    def create(self, pod: Pod) -> Pod:
        """Create a pod; returns it as stored."""
        if pod.metadata.creation_timestamp is None:
            pod = replace_in(pod, "metadata", creation_timestamp=self.now)
        # The claims of ephemeral volumes are created with the pod, and bound unless they wait for its node.
        if claims := list(_ephemeral_claims(pod)):
            existing = self.snapshot.persistent_volume_claims
            known = {claim.key for claim in existing}
            if new := [admit_claim(claim, self.snapshot) for claim in claims if claim.key not in known]:
                cluster = msgspec.structs.replace(self.snapshot, persistent_volume_claims=[*existing, *new])
                bound = bind_claims(cluster, [claim.key for claim in new], self._scheduler.settings)
                self.snapshot = bound.cluster
                self.assumptions.update(dict.fromkeys(bound.assumptions))
                # Earlier preparation can only be reused if nothing but pods and budgets changed.
                self._prepared = None
                self._changed()
        if pod.spec.resource_claims:
            claimed = self.snapshot.resource_claims
            templates = self.snapshot.resource_claim_templates
            pod, new_claims = with_generated_claims(pod, templates, {claim.key for claim in claimed})
            if new_claims:
                self._change_claims([*claimed, *new_claims])
        self._replace(pod)
        if (key := owner_key(pod)) is not None:
            self._owned.setdefault(key, {})[pod.key] = None
        self.budgets.join(pod)
        self.quotas.count(pod, 1)
        return pod

    def bind(self, key: str, node: str, devices: Sequence[AllocatedDevice] = ()) -> Pod:
        """Bind a pod, with these devices for its claims; returns it as running."""
        pod = self.pods[key]
        if pod.spec.resource_claims or devices:
            claims, slices = self.snapshot.resource_claims, self.snapshot.resource_slices
            self._change_claims(allocated(claims, pod, devices, node, slices))
        if any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.spec.volumes):
            volumes_bound = bind_with_pod(self.snapshot, pod, node, self._scheduler.settings).cluster
            if volumes_bound is not self.snapshot:
                self.snapshot = volumes_bound
                # Earlier preparation can only be reused if nothing but pods and budgets changed.
                self._prepared = None
        labels = self._labels_of_nodes.get(node) if self.rules.pod_topology_labels_admission else None
        if labels:
            pod = replace_in(pod, "metadata", labels={**pod.metadata.labels, **labels})
        status = msgspec.structs.replace(
            pod.status, phase="Running", start_time=self.now, nominated_node_name="", conditions=[]
        )
        bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node), status=status)
        self._replace(bound)
        if labels:
            self.budgets.join(bound)
        return bound

    def become_ready(self, key: str) -> None:
        """Mark a running pod as ready."""
        pod = self.pods[key]
        condition = PodCondition(type="Ready", status="True", last_transition_time=self.now)
        pod = self.store(replace_in(pod, "status", conditions=[*pod.status.conditions, condition]))
        self.ready.add(key)
        self.readiness.append(Readiness(self.at, pod, 1))
        self.budgets.change(pod, 1)

    def as_stored(self, key: str) -> Pod | None:
        """A pod as the API server stores it, with a Ready condition if it is assumed to be ready."""
        pod = self.pods.get(key)
        if pod is None or key not in self.ready or ready_condition(pod) is not None:
            return pod
        ready = PodCondition(type="Ready", status="True")
        return replace_in(pod, "status", conditions=[*pod.status.conditions, ready])

    def nominate(self, key: str, node: str) -> list[tuple[Pod, Pod]]:
        """Nominate a pod to a node, and clear lower-priority nominations; returns the changes as old and new."""
        pod = self.pods[key]
        is_new = pod.status.nominated_node_name != node
        changed = [(pod, replace_in(pod, "status", nominated_node_name=node))] if is_new else []
        lower = {other for other in self._nominated.get(node, ()) if self.pods[other].priority < pod.priority}
        # In order of creation.
        losing = [self.pods[other] for other in filter(lower.__contains__, self.pods)] if lower else []
        changed += [(other, replace_in(other, "status", nominated_node_name="")) for other in losing]
        for _, new in changed:
            self._replace(new)
        return changed

    def clear_nomination(self, key: str) -> tuple[Pod, Pod]:
        """Clear the nomination of a pod; returns it as it was and as it is."""
        old = self.pods[key]
        new = replace_in(old, "status", nominated_node_name="")
        self._replace(new)
        return old, new

    def mark_preempted(self, key: str) -> None:
        """Add the scheduler's eviction condition to a pod; a preemptor waits for victims that have it."""
        pod = self.pods[key]
        others = [each for each in pod.status.conditions if each.type != _DISRUPTION_TARGET]
        condition = PodCondition(
            type=_DISRUPTION_TARGET, status="True", reason=_PREEMPTED, last_transition_time=self.now
        )
        self.store(replace_in(pod, "status", conditions=[*others, condition]))

    def pod_lost(self, key: str) -> None:
        """Mark a pod as not serving, without deleting it."""
        pod = self.pods[key]
        if key in self.ready:
            self.ready.discard(key)
            self.readiness.append(Readiness(self.at, pod, -1))
            self.budgets.change(pod, -1)

    def leave(self, key: str, grace: int | None = None) -> float:
        """Request the deletion of a pod within ``grace`` seconds, or its own grace period; returns when it is gone."""
        pod = self.pods[key]
        self._terminating.setdefault(pod.spec.node_name, {})[key] = None
        # A pod that has no node or has ended is gone at once, any other within a century.
        seconds = 0
        if pod.spec.node_name and not pod.is_terminal:
            seconds = min(max(pod.spec.grace_seconds if grace is None else grace, 0), _MAX_GRACE_SECONDS)
        deleted_at = self.at + seconds
        self._replace(replace_in(pod, "metadata", deletion_timestamp=self.started + timedelta(seconds=deleted_at)))
        self.pod_lost(key)
        return deleted_at

    def end(self, key: str, phase: str) -> Pod:
        """Mark a pod as ended; it no longer uses resources, but its object remains. Returns it."""
        pod = self.pods[key]
        self.pod_lost(key)
        ended = replace_in(pod, "status", phase=phase)
        self._replace(ended)
        self.quotas.count(ended, 1)
        self.quotas.count(pod, -1)
        return ended

    def release(self, key: str, finalizer: str) -> None:
        """Remove a finalizer from a pod."""
        pod = self.pods[key]
        finalizers = [each for each in pod.metadata.finalizers if each != finalizer]
        self.store(replace_in(pod, "metadata", finalizers=finalizers))

    def remove(self, key: str) -> Pod:
        """Delete a pod; returns its last state."""
        pod = self.pods[key]
        self._take_out(pod)
        self._terminating.get(pod.spec.node_name, {}).pop(key, None)
        owner = owner_key(pod)
        self._count(pod, -1, key, owner)
        if owner is not None:
            del self._owned[owner][key]
        self._controlled.pop(key, None)
        self.budgets.part(pod)
        self.quotas.count(pod, -1)
        self._change_claims(released(self.snapshot.resource_claims, [pod]))
        self._changed()
        return pod

    @property
    def changes(self) -> tuple[int, int]:
        """Changes whenever a pod or its readiness changes."""
        return self.version, len(self.readiness)

    def set_nodes(self, nodes: list[Node]) -> None:
        """Replace the nodes of the cluster."""
        self.snapshot = msgspec.structs.replace(self.snapshot, nodes=nodes)
        self._labels_of_nodes = _copied_labels(nodes)
        # Earlier preparation can only be reused if nothing but pods and budgets changed.
        self._prepared = None
        self._changed()

    def _change_claims(self, claims: list[ResourceClaim]) -> None:
        if claims is not self.snapshot.resource_claims:
            self.snapshot = msgspec.structs.replace(self.snapshot, resource_claims=claims)
            self._changed()

    def _replace(self, pod: Pod) -> None:
        old = self.pods.get(pod.key)
        if old is not None:
            self._count(old, -1, old.key, owner_key(old))
            if self.snapshot.has_scheduler_order:
                # A pod that changes moves behind the others on its node.
                self._take_out(old)
        self.store(pod)
        self._count(pod, 1, pod.key, owner_key(pod))
        self._changed()

    def store(self, pod: Pod) -> Pod:
        """Store a pod; if only its conditions changed, which no scheduler reads, the prepared cluster stays valid."""
        if self._since is not None:
            self._since.setdefault(pod.key, self.pods.get(pod.key))
        if pod.key not in self._rank:
            self._rank[pod.key] = next(self._order)
        self.pods[pod.key] = pod
        return pod

    def _take_out(self, pod: Pod) -> None:
        if self._since is not None:
            self._since.setdefault(pod.key, pod)
        del self.pods[pod.key], self._rank[pod.key]

    def _count(self, pod: Pod, by: int, key: str, owner: OwnerKey | None) -> None:
        """Add (1) or remove (-1) a pod with this key and owner in the counts."""
        is_leaving = pod.metadata.deletion_timestamp is not None
        owner = owner or (pod.metadata.namespace, "", pod.metadata.name)
        kind = (owner, pod.spec.node_name, pod.status.nominated_node_name, is_leaving)
        if pod.status.nominated_node_name and not pod.spec.node_name:
            waiting = self._nominated.setdefault(pod.status.nominated_node_name, set())
            (waiting.add if by > 0 else waiting.discard)(key)
        on_node = self._on_nodes.setdefault(pod.spec.node_name, set())
        (on_node.add if by > 0 else on_node.discard)(key)
        count = self._shapes[kind]
        self.fingerprint ^= _mixed(kind, count) ^ _mixed(kind, count + by)
        self._shapes[kind] = count + by

    def _changed(self) -> None:
        self._is_stale = True
        self.version += 1


class _LazyPods(Sequence[Pod]):
    """All pods, listed on first use: if their changes are known, most decisions need no list.

    It must be used before the pods change again.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._version = cluster.version

    @cached_property
    def _listed(self) -> list[Pod]:
        if self._cluster.version != self._version:
            raise RuntimeError("the pods have changed since")
        return list(self._cluster.pods.values())

    def __getitem__(self, index: Any) -> Any:
        return self._listed[index]

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._listed)


def owner_key(pod: Pod) -> OwnerKey | None:
    """The owner of a pod, if any."""
    owner = controller_of(pod.metadata)
    return (pod.metadata.namespace, owner.kind, owner.name) if owner is not None else None


def is_serving(pod: Pod) -> bool:
    """Whether a pod is ready and not terminating; a running pod without conditions is assumed to be ready."""
    if pod.metadata.deletion_timestamp is not None or pod.is_terminal or not pod.spec.node_name:
        return False
    ready = ready_condition(pod)
    if ready is None:
        return not pod.status.conditions and pod.status.phase in ("Running", "")
    return ready.status == "True"


def is_failing(pod: Pod) -> bool:
    """Whether the pod is not ready although its containers were restarted, so that one like it would fail, too."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    is_running = bool(pod.spec.node_name) and pod.is_active
    return is_running and not is_serving(pod) and any(each.restart_count for each in statuses)


def _copied_labels(nodes: Iterable[Node]) -> dict[str, dict[str, str]]:
    """The labels that a pod gets from its node, by node name."""
    return {each.name: {key: value for key, value in each.labels.items() if key in NODE_LABELS} for each in nodes}


def _mixed(kind: tuple[OwnerKey, str, str, bool], count: int) -> int:
    return hash((kind, count)) & _HASH_MASK if count else 0


def _ephemeral_claims(pod: Pod) -> Iterable[PersistentVolumeClaim]:
    """The claims of ephemeral volumes, as in ``pkg/controller/volume/ephemeral`` of v1.36.3."""
    for volume in pod.spec.volumes:
        template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
        if template is None:
            continue
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
        )
        yield PersistentVolumeClaim(
            metadata=AnnotatedMeta(
                name=f"{pod.metadata.name}-{volume.name}", namespace=pod.metadata.namespace, owner_references=[owner]
            ),
            spec=PersistentVolumeClaimSpec(
                access_modes=template.spec.access_modes,
                storage_class_name=template.spec.storage_class_name,
                volume_mode=template.spec.volume_mode,
                selector=template.spec.selector,
                resources=template.spec.resources,
                volume_attributes_class_name=template.spec.volume_attributes_class_name,
            ),
        )


class Workloads:
    """Workloads by their display names: ``Deployment shop/api``."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._above: dict[OwnerKey, str] = {}
        self._sizes: dict[str, int | None] = {}
        owned = [("ReplicaSet", each.metadata) for each in cluster.replica_sets]
        owned += [("Job", each.metadata) for each in cluster.jobs]
        for kind, metadata in owned:
            owner = controller_of(metadata)
            if owner is not None:
                self._above[metadata.namespace, kind, metadata.name] = f"{owner.kind} {metadata.namespace}/{owner.name}"
        for kind, objects in (
            ("ReplicaSet", cluster.replica_sets),
            ("Deployment", cluster.deployments),
            ("StatefulSet", cluster.stateful_sets),
            ("ReplicationController", cluster.replication_controllers),
        ):
            for each in objects:
                size = 1 if each.spec.replicas is None else each.spec.replicas
                self._sizes[f"{kind} {each.metadata.namespace}/{each.metadata.name}"] = size

    @property
    def above(self) -> dict[str, str]:
        """The owner of each owner of pods: ``Deployment shop/api`` by ``ReplicaSet shop/api-7f9c``."""
        return {f"{kind} {namespace}/{name}": above for (namespace, kind, name), above in self._above.items()}

    def of(self, pod: Pod) -> str:
        """The pod's workload; for a ReplicaSet that is not in the input, the Deployment according to its name."""
        owner = controller_of(pod.metadata)
        namespace = pod.metadata.namespace
        if owner is None:
            return f"Pod {pod.key}"
        above = self._above.get((namespace, owner.kind, owner.name))
        if above is not None:
            return above
        deployment = deployment_of(pod, owner.name) if owner.kind == "ReplicaSet" else ""
        if deployment:
            return f"Deployment {namespace}/{deployment}"
        return f"{owner.kind} {namespace}/{owner.name}"

    def size_of(self, name: str) -> int | None:
        """The number of its desired pods at the start, if the input has it."""
        return self._sizes.get(name)
