"""The cluster as it changes in a simulation, and the workloads that its pods belong to."""

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
from kpreempt.analysis.simulation.claims import bind_claims
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

# A century: no simulation is that long, and the calendar ends some time.
_LONGEST_GRACE_SECONDS = 100 * 365 * 24 * 3600
_HASH_MASK = 2**64 - 1
_DISRUPTION_TARGET = "DisruptionTarget"
_PREEMPTED = "PreemptionByScheduler"

# Namespace, kind and name of what manages a pod.
OwnerKey = tuple[str, str, str]


class Readiness(NamedTuple):
    """A pod becomes ready (1), or is so no more (-1), so many seconds from the start."""

    at: float
    pod: Pod
    by: int


class SimulatedCluster:
    """Pods by key in the order in which they came, and the budgets, ``at`` seconds after ``started``.

    ``prepared`` is the cluster as the scheduler has it already, if it has.
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
        # Those that were told to go since the start, and are still there, by their node.
        self._told: dict[str, dict[str, None]] = {}
        self.budgets = Budgets(cluster, self.ready)
        self.quotas = Quotas(cluster)
        self._owned: dict[OwnerKey, dict[str, None]] = {}
        self._controlled: dict[str, tuple[Pod, ControlledPod]] = {}
        self._shapes: Counter[tuple[OwnerKey, str, str, bool]] = Counter()
        # What is where, whatever it is called, as a number: how many pods of each owner are on a node, wait, or leave.
        # It is the same for the same, and another one for anything else as far as 64 bits can tell.
        self.shape = 0
        self._prepared = prepared
        self._is_stale = prepared is None
        # The pods that have changed, by key, as they were when the cluster was prepared last, if that was here.
        self._since: dict[str, Pod | None] | None = None
        self._order = itertools.count()
        self._rank = dict(zip(self.pods, self._order, strict=False))
        # Changes when what the scheduler looks at does.
        self.version = 0
        # The pods that wait for room on a node, by its name.
        self._nominated: dict[str, set[str]] = {}
        self._on_nodes: dict[str, set[str]] = {}
        for pod in cluster.pods:
            self._count(pod, 1)
            if (key := owner_key(pod)) is not None:
                self._owned.setdefault(key, {})[pod.key] = None

    @property
    def now(self) -> datetime:
        """The time of day."""
        return self.started + timedelta(seconds=self.at)

    def prepared(self) -> Any:
        """The cluster as it is now, ready for the scheduler."""
        if self._is_stale:
            cluster = msgspec.structs.replace(
                self.snapshot, pods=_PodsOfMoment(self), pod_disruption_budgets=self.budgets.now
            )
            changes = None
            if self._since is not None:
                changes = PodChanges([(old, self.pods.get(key)) for key, old in self._since.items()], self._rank)
            self._prepared = self._scheduler.prepare(cluster, now=self.now, before=self._prepared, changes=changes)
            self._is_stale, self._since = False, {}
        return self._prepared

    def pods_of(self, owner: OwnerKey) -> list[Pod]:
        """The pods of an owner, in the order in which they came, those on their way out included."""
        return [self.pods[key] for key in self._owned.get(owner, ())]

    def pods_on(self, node: str) -> list[Pod]:
        """The pods of a node, in the order of all pods."""
        return [self.pods[key] for key in sorted(self._on_nodes.get(node, ()), key=self._rank.__getitem__)]

    def controlled(self, pods: Iterable[Pod]) -> list[ControlledPod]:
        """The pods as controllers see them."""
        seen = []
        for pod in pods:
            known = self._controlled.get(pod.key)
            if known is None or known[0] is not pod:
                made = controlled_pod(pod, self.rules)
                if pod.key in self.ready and made.ready_since is None:
                    # No snapshot keeps since when: at the latest since a little after it started.
                    since = pod.status.start_time or pod.metadata.creation_timestamp
                    made = msgspec.structs.replace(made, is_ready=True, ready_since=since)
                known = self._controlled[pod.key] = (pod, made)
            seen.append(known[1])
        return seen

    def is_there(self, pod: Pod) -> bool:
        """Whether this very pod has not gone yet."""
        there = self.pods.get(pod.key)
        return there is not None and there.metadata.uid == pod.metadata.uid

    def observed_on(self, node: str) -> Mapping[str, Pod]:
        """The pods of a node that were told to go since the start, and are still there."""
        return {key: self.pods[key] for key in self._told.get(node, ())}

    def create(self, pod: Pod) -> Pod:
        """A pod is made; returns it as it is stored."""
        if pod.metadata.creation_timestamp is None:
            pod = replace_in(pod, "metadata", creation_timestamp=self.now)
        # The claims of its ephemeral volumes are made with a pod, and bound where they do not wait for its node.
        if claims := list(_ephemeral_claims(pod)):
            there = self.snapshot.persistent_volume_claims
            known = {claim.key for claim in there}
            if new := [admit_claim(claim, self.snapshot) for claim in claims if claim.key not in known]:
                cluster = msgspec.structs.replace(self.snapshot, persistent_volume_claims=[*there, *new])
                bound = bind_claims(cluster, [claim.key for claim in new], self._scheduler.settings)
                self.snapshot = bound.cluster
                self.assumptions.update(dict.fromkeys(bound.assumptions))
                # What was prepared may be built upon only where pods and budgets alone have changed.
                self._prepared = None
                self._changed()
        if pod.spec.resource_claims:
            claimed = self.snapshot.resource_claims
            templates = self.snapshot.resource_claim_templates
            pod, made = with_generated_claims(pod, templates, {claim.key for claim in claimed})
            if made:
                self._change_claims([*claimed, *made])
        self._put(pod)
        if (key := owner_key(pod)) is not None:
            self._owned.setdefault(key, {})[pod.key] = None
        self.budgets.join(pod)
        self.quotas.count(pod, 1)
        return pod

    def bind(self, key: str, node: str, devices: Sequence[AllocatedDevice] = ()) -> Pod:
        """A pod is bound, with these devices for its claims, and runs at once; returns it as it is then."""
        pod = self.pods[key]
        if pod.spec.resource_claims or devices:
            claims, slices = self.snapshot.resource_claims, self.snapshot.resource_slices
            self._change_claims(allocated(claims, pod, devices, node, slices))
        labels = self._labels_of_nodes.get(node) if self.rules.pod_topology_labels_admission else None
        if labels:
            pod = replace_in(pod, "metadata", labels={**pod.metadata.labels, **labels})
        status = msgspec.structs.replace(
            pod.status, phase="Running", start_time=self.now, nominated_node_name="", conditions=[]
        )
        bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node), status=status)
        self._put(bound)
        if labels:
            self.budgets.join(bound)
        return bound

    def become_ready(self, key: str) -> None:
        """A pod that runs is ready."""
        pod = self.pods[key]
        condition = PodCondition(type="Ready", status="True", last_transition_time=self.now)
        pod = self.store(replace_in(pod, "status", conditions=[*pod.status.conditions, condition]))
        self.ready.add(key)
        self.readiness.append(Readiness(self.at, pod, 1))
        self.budgets.change(pod, 1)

    def as_stored(self, key: str) -> Pod | None:
        """A pod as the API server has it: one that is taken to be ready says so."""
        pod = self.pods.get(key)
        if pod is None or key not in self.ready or ready_condition(pod) is not None:
            return pod
        ready = PodCondition(type="Ready", status="True")
        return replace_in(pod, "status", conditions=[*pod.status.conditions, ready])

    def nominate(self, key: str, node: str) -> list[tuple[Pod, Pod]]:
        """A pod waits for room on a node; lower ones that did lose their nomination. What changed, old and new."""
        pod = self.pods[key]
        changed = [(pod, replace_in(pod, "status", nominated_node_name=node))]
        lower = {other for other in self._nominated.get(node, ()) if self.pods[other].priority < pod.priority}
        # In the order in which they came.
        losing = [self.pods[other] for other in filter(lower.__contains__, self.pods)] if lower else []
        changed += [(other, replace_in(other, "status", nominated_node_name="")) for other in losing]
        for _, new in changed:
            self._put(new)
        return changed

    def mark_preempted(self, key: str) -> None:
        """The scheduler says on a pod that it evicts it; a preemptor waits for victims that carry this."""
        pod = self.pods[key]
        others = [each for each in pod.status.conditions if each.type != _DISRUPTION_TARGET]
        condition = PodCondition(
            type=_DISRUPTION_TARGET, status="True", reason=_PREEMPTED, last_transition_time=self.now
        )
        self.store(replace_in(pod, "status", conditions=[*others, condition]))

    def lose(self, key: str) -> None:
        """A pod serves no more, though nobody has told it to go."""
        pod = self.pods[key]
        if key in self.ready:
            self.ready.discard(key)
            self.readiness.append(Readiness(self.at, pod, -1))
            self.budgets.change(pod, -1)

    def leave(self, key: str, grace: int | None = None) -> float:
        """A pod is told to go, within ``grace`` seconds or its own; returns when it is gone."""
        pod = self.pods[key]
        self._told.setdefault(pod.spec.node_name, {})[key] = None
        # One that is on no node, or has ended, is gone at once; any other within a century.
        seconds = 0
        if pod.spec.node_name and not pod.is_terminal:
            seconds = min(max(pod.spec.grace_seconds if grace is None else grace, 0), _LONGEST_GRACE_SECONDS)
        deleted_at = self.at + seconds
        self._put(replace_in(pod, "metadata", deletion_timestamp=self.started + timedelta(seconds=deleted_at)))
        self.lose(key)
        return deleted_at

    def end(self, key: str, phase: str) -> Pod:
        """The containers of a pod have ended; it holds no room any more, and something keeps the object. Returns it."""
        pod = self.pods[key]
        self.lose(key)
        ended = replace_in(pod, "status", phase=phase)
        self._put(ended)
        self.quotas.count(ended, 1)
        self.quotas.count(pod, -1)
        return ended

    def release(self, key: str, finalizer: str) -> None:
        """A finalizer is taken off a pod."""
        pod = self.pods[key]
        finalizers = [each for each in pod.metadata.finalizers if each != finalizer]
        self.store(replace_in(pod, "metadata", finalizers=finalizers))

    def remove(self, key: str) -> Pod:
        """A pod is gone; returns it as it was."""
        pod = self.pods[key]
        self._take_out(pod)
        self._told.get(pod.spec.node_name, {}).pop(key, None)
        self._count(pod, -1)
        if (owner := owner_key(pod)) is not None:
            del self._owned[owner][key]
        self._controlled.pop(key, None)
        self.budgets.part(pod)
        self.quotas.count(pod, -1)
        self._change_claims(released(self.snapshot.resource_claims, [pod]))
        self._changed()
        return pod

    @property
    def changes(self) -> tuple[int, int]:
        """Changes when a pod does, or whether it is ready."""
        return self.version, len(self.readiness)

    def set_nodes(self, nodes: list[Node]) -> None:
        """The cluster has other nodes from now on."""
        self.snapshot = msgspec.structs.replace(self.snapshot, nodes=nodes)
        self._labels_of_nodes = _copied_labels(nodes)
        # What was prepared may be built upon only where pods and budgets alone have changed.
        self._prepared = None
        self._changed()

    def _change_claims(self, claims: list[ResourceClaim]) -> None:
        if claims is not self.snapshot.resource_claims:
            self.snapshot = msgspec.structs.replace(self.snapshot, resource_claims=claims)
            self._changed()

    def _put(self, pod: Pod) -> None:
        old = self.pods.get(pod.key)
        if old is not None:
            self._count(old, -1)
            if self.snapshot.has_scheduler_order:
                # A pod that changes goes behind the others of its node.
                self._take_out(old)
        self.store(pod)
        self._count(pod, 1)
        self._changed()

    def store(self, pod: Pod) -> Pod:
        """A pod is another one; where only its conditions are, which no scheduler reads, nothing is prepared again."""
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

    def _count(self, pod: Pod, by: int) -> None:
        """Count a pod as it is from now on (1), or is no more (-1)."""
        owner = owner_key(pod) or (pod.metadata.namespace, "", pod.metadata.name)
        is_leaving = pod.metadata.deletion_timestamp is not None
        kind = (owner, pod.spec.node_name, pod.status.nominated_node_name, is_leaving)
        if pod.status.nominated_node_name and not pod.spec.node_name:
            waiting = self._nominated.setdefault(pod.status.nominated_node_name, set())
            (waiting.add if by > 0 else waiting.discard)(pod.key)
        on_node = self._on_nodes.setdefault(pod.spec.node_name, set())
        (on_node.add if by > 0 else on_node.discard)(pod.key)
        count = self._shapes[kind]
        self.shape ^= _mixed(kind, count) ^ _mixed(kind, count + by)
        self._shapes[kind] = count + by

    def _changed(self) -> None:
        self._is_stale = True
        self.version += 1


class _PodsOfMoment(Sequence[Pod]):
    """All pods, listed once somebody looks: where their changes are told, most decisions need no list of all.

    To be looked at before they change again.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._version = cluster.version

    @cached_property
    def _listed(self) -> list[Pod]:
        if self._cluster.version != self._version:
            raise RuntimeError("the pods of an earlier moment are gone")
        return list(self._cluster.pods.values())

    def __getitem__(self, index: Any) -> Any:
        return self._listed[index]

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._listed)


def owner_key(pod: Pod) -> OwnerKey | None:
    """What manages the pod, if anything does."""
    owner = controller_of(pod.metadata)
    return (pod.metadata.namespace, owner.kind, owner.name) if owner is not None else None


def is_serving(pod: Pod) -> bool:
    """Whether a pod is ready and stays. One that runs and has no conditions at all is assumed to be ready."""
    if pod.metadata.deletion_timestamp is not None or pod.is_terminal or not pod.spec.node_name:
        return False
    ready = ready_condition(pod)
    if ready is None:
        return not pod.status.conditions and pod.status.phase in ("Running", "")
    return ready.status == "True"


def _copied_labels(nodes: Iterable[Node]) -> dict[str, dict[str, str]]:
    """The labels that a pod gets from its node, by the node's name."""
    return {each.name: {key: value for key, value in each.labels.items() if key in NODE_LABELS} for each in nodes}


def _mixed(kind: tuple[OwnerKey, str, str, bool], count: int) -> int:
    return hash((kind, count)) & _HASH_MASK if count else 0


def _ephemeral_claims(pod: Pod) -> Iterable[PersistentVolumeClaim]:
    """Follows ``pkg/controller/volume/ephemeral`` of v1.36.3."""
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
    """Workloads by the names under which they are told of: ``Deployment shop/api``."""

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
        """What owns what owns pods: ``Deployment shop/api`` by ``ReplicaSet shop/api-7f9c``."""
        return {f"{kind} {namespace}/{name}": above for (namespace, kind, name), above in self._above.items()}

    def of(self, pod: Pod) -> str:
        """The pod's workload; of a ReplicaSet that is not in the input, the Deployment that its name tells of."""
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
        """How many pods it should have at the start, where the input says so."""
        return self._sizes.get(name)
