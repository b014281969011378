"""The controllers of changed workloads, with their state during a simulation.

``kpreempt/controllers`` decides what they do next; here it is carried out. Pods from a template are named as the API
server would name them, but with numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from kpreempt.analysis.simulation.client import Client, Controller
from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.controllers.actions import (
    COMPLETION_INDEX_LABEL,
    JOB_FINALIZER,
    REVISION_LABEL,
    Action,
    ControlledPod,
    CreatePods,
    CreateReplicaSet,
    DeletePod,
    ReleasePod,
    ScaleReplicaSet,
    active_pods,
)
from kpreempt.controllers.daemon_set import DaemonNode, DaemonSetState, reconcile_daemon_set
from kpreempt.controllers.deployment import (
    DeploymentState,
    ReplicaSetState,
    count_replicas,
    is_complete,
    reconcile_deployment,
    reconcile_replica_set,
)
from kpreempt.controllers.job import JobState, reconcile_job
from kpreempt.controllers.stateful_set import StatefulSetState, ordinal_of, reconcile_stateful_set
from kpreempt.model.affinity import tied_to
from kpreempt.model.meta import replace_in
from kpreempt.model.pod import Pod, Volume

_MAX_STEM_LENGTH = 58
_LABEL_OF_NAME = "statefulset.kubernetes.io/pod-name"
_LABEL_OF_INDEX = "apps.kubernetes.io/pod-index"
# A longer deadline of a Job is ignored.
_MAX_DEADLINE_SECONDS = 7 * 24 * 3600


class Maker:
    """Creates copies of a prototype; their names start with ``stem``."""

    def __init__(self, prototype: Pod, stem: str) -> None:
        self.prototype = prototype
        self._stem = stem[:_MAX_STEM_LENGTH]
        self._numbers = itertools.count(1)

    def make(self, *, name: str = "", labels: Mapping[str, str] | None = None) -> Pod:
        """The next pod, with this ``name`` if set."""
        number = next(self._numbers)
        name = name or f"{self._stem}-{number}"
        labels = {**self.prototype.metadata.labels, **(labels or {})}
        # If an earlier pod had the same name, the number distinguishes them.
        return replace_in(self.prototype, "metadata", name=name, uid=f"{name}.{number}", labels=labels)


def _carry_out(
    actions: Iterable[Action], client: Client, namespace: str, create: Callable[[CreatePods], Iterable[Pod]]
) -> None:
    """Delete, release and create pods; ``create`` returns the pods of an action."""
    for action in actions:
        if isinstance(action, CreatePods):
            for pod in create(action):
                client.create(pod)
        elif isinstance(action, DeletePod):
            client.delete(f"{namespace}/{action.name}", action.reason)
        elif isinstance(action, ReleasePod):
            client.release(f"{namespace}/{action.name}")


def _keep_replicas(
    client: Client, owner: OwnerKey, replicas: int, maker: Maker, related: tuple[ControlledPod, ...]
) -> bool:
    """Create or delete pods until ``replicas`` are active, in upstream's batches; returns whether there were any."""
    pods = client.cluster.controlled(client.cluster.pods_of(owner))
    actions = reconcile_replica_set(replicas, pods, related, client.cluster.now)
    _carry_out(actions, client, owner[0], lambda action: (maker.make() for _ in range(action.count)))
    return bool(actions)


class DeletionController(Controller):
    """Deletes the pods of some owners of a deleted workload, like the garbage collector."""

    def __init__(self, workload: str, owners: Sequence[OwnerKey]) -> None:
        super().__init__(owners, desired=0, workload=workload)

    def sync(self, client: Client) -> bool:
        """Delete the remaining pods; a deleted Job no longer blocks its pods."""
        return _delete_pods(client, (pod for owner in self.owners for pod in client.cluster.pods_of(owner)))

    def is_done(self, client: Client) -> bool:
        """Whether no pod is left."""
        return not any(client.cluster.pods_of(owner) for owner in self.owners)


def _delete_pods(client: Client, pods: Iterable[Pod]) -> bool:
    """Delete the pods of a deleted owner, without their blocking finalizer; returns whether there were any."""
    has_deleted = False
    for pod in pods:
        if JOB_FINALIZER in pod.metadata.finalizers:
            client.release(pod.key)
        if pod.metadata.deletion_timestamp is None:
            client.delete(pod.key, "owner-deleted")
            has_deleted = True
    return has_deleted


class ReplicaSetController(Controller):
    """Keeps ``replicas`` pods of a ReplicaSet or ReplicationController without a Deployment.

    A changed template does not affect existing pods.
    """

    def __init__(self, owner: OwnerKey, replicas: int, maker: Maker) -> None:
        super().__init__([owner], replicas)
        self._replicas = replicas
        self._maker = maker

    def sync(self, client: Client) -> bool:
        """Follows ``syncReplicaSet``."""
        return _keep_replicas(client, self.owners[0], self._replicas, self._maker, ())

    def is_done(self, client: Client) -> bool:
        """Whether the desired number of pods is ready."""
        pods = active_pods(client.cluster.controlled(client.cluster.pods_of(self.owners[0])))
        return len(pods) == self.desired == sum(pod.is_ready for pod in pods)


class SimulatedReplicaSet(msgspec.Struct):
    """The current state of a Deployment's ReplicaSet; ``exists`` is false until it is created."""

    name: str
    maker: Maker
    replicas: int = 0
    created: datetime | None = None
    desired_replicas: int | None = None
    max_replicas: int | None = None
    min_ready_seconds: int = 0
    exists: bool = True


class DeploymentController(Controller):
    """Rolls out pods according to the strategy; ``new`` has the current template."""

    def __init__(
        self,
        namespace: str,
        name: str,
        deployment: DeploymentState,
        new: SimulatedReplicaSet,
        old: Sequence[SimulatedReplicaSet],
    ) -> None:
        self._name = name
        self._namespace = namespace
        self._deployment = deployment
        self._new = new
        self._sets = {each.name: each for each in (*old, new)}
        owners = [self._owner(each) for each in self._sets]
        super().__init__(owners, deployment.replicas, new.min_ready_seconds, f"Deployment {namespace}/{name}")

    def sync(self, client: Client) -> bool:
        """Follows ``syncDeployment``, then ``syncReplicaSet`` for each ReplicaSet."""
        actions = reconcile_deployment(*self._states(client))
        for action in actions:
            if isinstance(action, CreateReplicaSet):
                changed = self._new
                changed.exists, changed.created = True, client.cluster.now
            elif isinstance(action, ScaleReplicaSet):
                changed = self._sets[action.name]
            else:
                continue
            is_other_size = changed.replicas != action.replicas
            changed.replicas = action.replicas
            changed.desired_replicas, changed.max_replicas = action.desired_replicas, action.max_replicas
            if is_other_size:
                client.resize(f"{self._namespace}/{changed.name}", f"Deployment {self._name}", action.replicas)
        has_acted = bool(actions)
        related = tuple(
            pod for owner in self.owners for pod in client.cluster.controlled(client.cluster.pods_of(owner))
        )
        for each in self._sets.values():
            if each.exists:
                has_acted |= _keep_replicas(client, self._owner(each.name), each.replicas, each.maker, related)
        return has_acted

    def is_done(self, client: Client) -> bool:
        """Whether all desired pods have the new template and are available."""
        deployment, new, old = self._states(client)
        return is_complete(deployment, new, old)

    def state(self) -> object:
        """The sizes of the ReplicaSets."""
        return tuple((each.name, each.replicas) for each in self._sets.values())

    def _states(self, client: Client) -> tuple[DeploymentState, ReplicaSetState | None, list[ReplicaSetState]]:
        """The current state of the Deployment, its new ReplicaSet and its old ones."""
        states: dict[str, ReplicaSetState] = {}
        for name, each in self._sets.items():
            if each.exists:
                pods = client.cluster.controlled(client.cluster.pods_of(self._owner(name)))
                counts = count_replicas(pods, each.min_ready_seconds, client.cluster.now)
                states[name] = ReplicaSetState(
                    name=each.name,
                    replicas=each.replicas,
                    pods=counts.replicas,
                    available=counts.available,
                    unfinished=sum(not pod.has_finished for pod in pods),
                    created=each.created,
                    desired_replicas=each.desired_replicas,
                    max_replicas=each.max_replicas,
                )
        total = sum(each.pods for each in states.values())
        deployment = msgspec.structs.replace(self._deployment, status_replicas=total)
        return deployment, states.pop(self._new.name, None), list(states.values())

    def _owner(self, name: str) -> OwnerKey:
        return (self._namespace, "ReplicaSet", name)


class StatefulSetController(Controller):
    """Keeps numbered pods; ``makers`` are by revision."""

    def __init__(self, owner: OwnerKey, stateful_set: StatefulSetState, makers: Mapping[str, Maker]) -> None:
        super().__init__([owner], stateful_set.replicas, stateful_set.min_ready_seconds)
        self._set = stateful_set
        self._makers = makers

    def sync(self, client: Client) -> bool:
        """Follows ``updateStatefulSet``."""

        def create(action: CreatePods) -> Iterable[Pod]:
            maker = self._makers.get(action.revision) or self._makers[self._set.update_revision]
            labels = {
                _LABEL_OF_NAME: action.name,
                _LABEL_OF_INDEX: str(ordinal_of(action.name)),
                REVISION_LABEL: action.revision,
            }
            return [with_claims_of(maker.make(name=action.name, labels=labels), maker.prototype.metadata.name)]

        step = reconcile_stateful_set(
            self._set, client.cluster.controlled(client.cluster.pods_of(self.owners[0])), client.cluster.now
        )
        self._set = step.stateful_set
        _carry_out(step.actions, client, self.owners[0][0], create)
        return bool(step.actions)

    def is_done(self, client: Client) -> bool:
        """Whether all pods are ready, and those that the update reaches have the current template."""
        pods = {ordinal_of(pod.name): pod for pod in client.cluster.controlled(client.cluster.pods_of(self.owners[0]))}
        state = self._set
        ordinals = range(state.start, state.start + state.replicas)
        updated_ordinals = ordinals[max(state.partition or 0, 0) :] if state.strategy == "RollingUpdate" else ()
        return sorted(pods) == list(ordinals) and all(
            pod.is_ready
            and not pod.is_terminating
            and (ordinal not in updated_ordinals or pod.revision == state.update_revision)
            for ordinal, pod in pods.items()
        )

    def state(self) -> object:
        """Its status."""
        return self._set


def with_claims_of(pod: Pod, prototype_name: str) -> Pod:
    """The pod with its own claims, if the prototype's claims are named after the prototype."""

    def own(volume: Volume) -> Volume:
        claim = volume.persistent_volume_claim
        if claim is None or claim.claim_name != f"{volume.name}-{prototype_name}":
            return volume
        claim = msgspec.structs.replace(claim, claim_name=f"{volume.name}-{pod.metadata.name}")
        return msgspec.structs.replace(volume, persistent_volume_claim=claim)

    volumes = [own(volume) for volume in pod.spec.volumes]
    return replace_in(pod, "spec", volumes=volumes)


class DaemonSetController(Controller):
    """Keeps a pod on each of its nodes; the nodes do not change in a simulation."""

    def __init__(self, owner: OwnerKey, daemon_set: DaemonSetState, maker: Maker, nodes: Sequence[DaemonNode]) -> None:
        super().__init__([owner], sum(node.should_run for node in nodes), daemon_set.min_ready_seconds)
        self._set = daemon_set
        self._maker = maker
        self._nodes = nodes

    def sync(self, client: Client) -> bool:
        """Follows ``syncDaemonSet``."""

        def create(action: CreatePods) -> Iterable[Pod]:
            pod = self._maker.make(labels={REVISION_LABEL: self._set.revision})
            affinity = tied_to(pod.spec.affinity, action.node_name)
            return [replace_in(pod, "spec", affinity=affinity)]

        pods = client.cluster.controlled(client.cluster.pods_of(self.owners[0]))
        actions = reconcile_daemon_set(self._set, pods, self._nodes, client.cluster.now)
        _carry_out(actions, client, self.owners[0][0], create)
        return bool(actions)

    def is_done(self, client: Client) -> bool:
        """Whether each of its nodes has one ready pod, with the new template unless the strategy is OnDelete."""
        pods = active_pods(client.cluster.controlled(client.cluster.pods_of(self.owners[0])))
        node_names = sorted(node.name for node in self._nodes if node.should_run)
        return sorted(pod.node_name for pod in pods) == node_names and all(
            pod.is_ready and (self._set.strategy == "OnDelete" or pod.revision == self._set.revision) for pod in pods
        )


class JobController(Controller):
    """Keeps the allowed number of pods running in parallel, and replaces failed ones after a backoff.

    Its pods run for the simulated run time, unless they are evicted. That time is a guess, so a deadline only ends the
    Job if one of its pods has no node by then.
    """

    def __init__(
        self, owner: OwnerKey, job: JobState, maker: Maker, workload: str, strangers: frozenset[str] = frozenset()
    ) -> None:
        """``workload`` is the name of the Job or its CronJob.

        ``strangers`` are the keys of pods of an earlier Job with the same name; they are deleted and do not count.
        """
        super().__init__([owner], workload=workload)
        self._strangers = strangers
        self._deadline = job.active_deadline_seconds
        self._maker = maker
        self._set_state(job)

    def _set_state(self, job: JobState) -> None:
        """Continue with another state of the Job, and the number of pods to run in parallel."""
        self._job = msgspec.structs.replace(job, active_deadline_seconds=None)
        self.desired = job.parallelism if job.completions is None else max(min(job.parallelism, job.completions), 0)
        if job.is_suspended or job.has_ended:
            self.desired = 0

    def sync(self, client: Client) -> bool:
        """Follows ``syncJob``."""

        def create(action: CreatePods) -> Iterable[Pod]:
            labels = {} if action.index is None else {COMPLETION_INDEX_LABEL: str(action.index)}
            for _ in range(action.count):
                pod = self._maker.make(labels=labels)
                finalizers = [*pod.metadata.finalizers, JOB_FINALIZER]
                yield replace_in(pod, "metadata", finalizers=list(dict.fromkeys(finalizers)))

        pods_of_owner = client.cluster.pods_of(self.owners[0])
        if _delete_pods(client, [pod for pod in pods_of_owner if pod.key in self._strangers]):
            return True
        pods = self._own(client)
        job = self._job
        if any(not pod.node_name for pod in active_pods(pods)):
            job = msgspec.structs.replace(job, active_deadline_seconds=self._deadline)
        step = reconcile_job(job, pods, client.cluster.now)
        is_starting = self._job.start_time is None and step.job.start_time is not None
        before = self._job
        self._set_state(step.job)
        if is_starting and self._deadline is not None and self._deadline <= _MAX_DEADLINE_SECONDS:
            client.call_again(self, timedelta(seconds=self._deadline))
        _carry_out(step.actions, client, self.owners[0][0], create)
        if not step.actions and step.retry_after is not None:
            client.call_again(self, step.retry_after)
        return bool(step.actions) or self._job != before

    def is_done(self, client: Client) -> bool:
        """Whether all pods that run in parallel are ready; a failed Job is never done."""
        if self._job.ending == "Failed":
            return False
        pods = active_pods(self._own(client))
        return len(pods) == self.desired == sum(pod.is_ready for pod in pods)

    def state(self) -> object:
        """The numbers of failed pods, consecutive failures and successes, and how it ended."""
        return self._job.failed, self._job.failures_in_a_row, self._job.ending, self._job.succeeded

    def _own(self, client: Client) -> list[ControlledPod]:
        own = [pod for pod in client.cluster.pods_of(self.owners[0]) if pod.key not in self._strangers]
        return client.cluster.controlled(own)
