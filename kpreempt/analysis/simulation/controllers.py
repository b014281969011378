"""The controllers of the workloads that a change is about, each with what it remembers during a simulation.

What they do next, ``kpreempt/controllers`` says; here it is carried out. Pods that they make of a template are named as
the API server would name them, but by number.
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

_LONGEST_STEM = 58
_LABEL_OF_NAME = "statefulset.kubernetes.io/pod-name"
_LABEL_OF_INDEX = "apps.kubernetes.io/pod-index"
# A Job's deadline beyond this is not waited for.
_LONGEST_SECONDS = 7 * 24 * 3600


class Maker:
    """Makes pods that are like a prototype. ``stem`` begins their names."""

    def __init__(self, prototype: Pod, stem: str) -> None:
        self.prototype = prototype
        self._stem = stem[:_LONGEST_STEM]
        self._numbers = itertools.count(1)

    def make(self, *, name: str = "", labels: Mapping[str, str] | None = None) -> Pod:
        """The next pod, under a ``name`` of its own where it has one to bear."""
        number = next(self._numbers)
        name = name or f"{self._stem}-{number}"
        labels = {**self.prototype.metadata.labels, **(labels or {})}
        # Where the name is that of a pod before, the number tells them apart.
        return replace_in(self.prototype, "metadata", name=name, uid=f"{name}.{number}", labels=labels)


def _carry_out(
    actions: Iterable[Action], client: Client, namespace: str, create: Callable[[CreatePods], Iterable[Pod]]
) -> None:
    """Delete, release and create pods; ``create`` makes those of an action."""
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
    """Make or delete as many pods as upstream does at a time until ``replicas`` are active; whether it was any."""
    pods = client.cluster.controlled(client.cluster.pods_of(owner))
    actions = reconcile_replica_set(replicas, pods, related, client.cluster.now)
    _carry_out(actions, client, owner[0], lambda action: (maker.make() for _ in range(action.count)))
    return bool(actions)


class DeletionController(Controller):
    """Tells the pods of some owners of a workload that is deleted to go, as the garbage collector does."""

    def __init__(self, workload: str, owners: Sequence[OwnerKey]) -> None:
        super().__init__(owners, desired=0, workload=workload)

    def sync(self, client: Client) -> bool:
        """Whatever is left goes, and a Job that is deleted no longer holds its pods."""
        return _dismiss(client, (pod for owner in self.owners for pod in client.cluster.pods_of(owner)))

    def is_done(self, client: Client) -> bool:
        """Whether no pod is left."""
        return not any(client.cluster.pods_of(owner) for owner in self.owners)


def _dismiss(client: Client, pods: Iterable[Pod]) -> bool:
    """Tell the pods of an owner that is deleted to go, without what would hold them; whether there were any to tell."""
    did = False
    for pod in pods:
        if JOB_FINALIZER in pod.metadata.finalizers:
            client.release(pod.key)
        if pod.metadata.deletion_timestamp is None:
            client.delete(pod.key, "owner-deleted")
            did = True
    return did


class ReplicaSetController(Controller):
    """Keeps ``replicas`` pods of a ReplicaSet or ReplicationController that no Deployment manages.

    Another template changes none of those that there are.
    """

    def __init__(self, owner: OwnerKey, replicas: int, maker: Maker) -> None:
        super().__init__([owner], replicas)
        self._replicas = replicas
        self._maker = maker

    def sync(self, client: Client) -> bool:
        """``syncReplicaSet``."""
        return _keep_replicas(client, self.owners[0], self._replicas, self._maker, ())

    def is_done(self, client: Client) -> bool:
        """Whether as many are ready as there should be."""
        pods = active_pods(client.cluster.controlled(client.cluster.pods_of(self.owners[0])))
        return len(pods) == self.desired == sum(pod.is_ready for pod in pods)


class SimulatedReplicaSet(msgspec.Struct):
    """A ReplicaSet of a Deployment, as it is at the moment. ``exists`` is false for one that is yet to be made."""

    name: str
    maker: Maker
    replicas: int = 0
    created: datetime | None = None
    desired_replicas: int | None = None
    max_replicas: int | None = None
    min_ready_seconds: int = 0
    exists: bool = True


class DeploymentController(Controller):
    """Rolls its pods out as its strategy says. ``new`` has the present template."""

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
        """``syncDeployment``, then ``syncReplicaSet`` of each."""
        actions = reconcile_deployment(*self._look(client))
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
        did = bool(actions)
        related = tuple(
            pod for owner in self.owners for pod in client.cluster.controlled(client.cluster.pods_of(owner))
        )
        for each in self._sets.values():
            if each.exists:
                did |= _keep_replicas(client, self._owner(each.name), each.replicas, each.maker, related)
        return did

    def is_done(self, client: Client) -> bool:
        """Whether all pods are of the new template, as many as there should be, and available."""
        deployment, new, old = self._look(client)
        return is_complete(deployment, new, old)

    def state(self) -> object:
        """The sizes of the ReplicaSets."""
        return tuple((each.name, each.replicas) for each in self._sets.values())

    def _look(self, client: Client) -> tuple[DeploymentState, ReplicaSetState | None, list[ReplicaSetState]]:
        """The Deployment with its new and its old ReplicaSets, as they are now."""
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
    """Keeps numbered pods. ``makers`` are by the revision that they make pods of."""

    def __init__(self, owner: OwnerKey, stateful_set: StatefulSetState, makers: Mapping[str, Maker]) -> None:
        super().__init__([owner], stateful_set.replicas, stateful_set.min_ready_seconds)
        self._set = stateful_set
        self._makers = makers

    def sync(self, client: Client) -> bool:
        """``updateStatefulSet``."""

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
        """Whether all pods are ready, and those that an update reaches are of the present template."""
        pods = {ordinal_of(pod.name): pod for pod in client.cluster.controlled(client.cluster.pods_of(self.owners[0]))}
        state = self._set
        ordinals = range(state.start, state.start + state.replicas)
        reached = ordinals[max(state.partition or 0, 0) :] if state.strategy == "RollingUpdate" else ()
        return sorted(pods) == list(ordinals) and all(
            pod.is_ready
            and not pod.is_terminating
            and (ordinal not in reached or pod.revision == state.update_revision)
            for ordinal, pod in pods.items()
        )

    def state(self) -> object:
        """What its status says."""
        return self._set


def with_claims_of(pod: Pod, prototype_name: str) -> Pod:
    """The pod with its own claims, where the prototype's are named after that pod."""

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
        """``syncDaemonSet``."""

        def create(action: CreatePods) -> Iterable[Pod]:
            pod = self._maker.make(labels={REVISION_LABEL: self._set.revision})
            affinity = tied_to(pod.spec.affinity, action.node_name)
            return [replace_in(pod, "spec", affinity=affinity)]

        pods = client.cluster.controlled(client.cluster.pods_of(self.owners[0]))
        actions = reconcile_daemon_set(self._set, pods, self._nodes, client.cluster.now)
        _carry_out(actions, client, self.owners[0][0], create)
        return bool(actions)

    def is_done(self, client: Client) -> bool:
        """Whether each of its nodes has one pod, which is ready and, unless pods are to stay, of the new template."""
        pods = active_pods(client.cluster.controlled(client.cluster.pods_of(self.owners[0])))
        desired = sorted(node.name for node in self._nodes if node.should_run)
        return sorted(pod.node_name for pod in pods) == desired and all(
            pod.is_ready and (self._set.strategy == "OnDelete" or pod.revision == self._set.revision) for pod in pods
        )


class JobController(Controller):
    """Keeps as many pods as may run side by side, and starts others after a wait where they fail.

    Its pods run for as long as the simulation says of them, unless they have to go. How long that is is guessed, so
    that a deadline ends the Job only where a pod of it has no node by then.
    """

    def __init__(
        self, owner: OwnerKey, job: JobState, maker: Maker, workload: str, strangers: frozenset[str] = frozenset()
    ) -> None:
        """``workload`` is the name of the Job, or of the CronJob that it is of.

        ``strangers`` are the keys of pods of a Job before that had the same name; they go, and do not count.
        """
        super().__init__([owner], workload=workload)
        self._strangers = strangers
        self._deadline = job.active_deadline_seconds
        self._maker = maker
        self._take(job)

    def _take(self, job: JobState) -> None:
        """Go on with another state of the Job, and as many pods as may run side by side, and are needed."""
        self._job = msgspec.structs.replace(job, active_deadline_seconds=None)
        self.desired = job.parallelism if job.completions is None else max(min(job.parallelism, job.completions), 0)
        if job.is_suspended or job.has_ended:
            self.desired = 0

    def sync(self, client: Client) -> bool:
        """``syncJob``."""

        def create(action: CreatePods) -> Iterable[Pod]:
            labels = {} if action.index is None else {COMPLETION_INDEX_LABEL: str(action.index)}
            for _ in range(action.count):
                pod = self._maker.make(labels=labels)
                finalizers = [*pod.metadata.finalizers, JOB_FINALIZER]
                yield replace_in(pod, "metadata", finalizers=list(dict.fromkeys(finalizers)))

        there = client.cluster.pods_of(self.owners[0])
        if _dismiss(client, [pod for pod in there if pod.key in self._strangers]):
            return True
        pods = self._own(client)
        job = self._job
        if any(not pod.node_name for pod in active_pods(pods)):
            job = msgspec.structs.replace(job, active_deadline_seconds=self._deadline)
        step = reconcile_job(job, pods, client.cluster.now)
        begins = self._job.start_time is None and step.job.start_time is not None
        before = self._job
        self._take(step.job)
        if begins and self._deadline is not None and self._deadline <= _LONGEST_SECONDS:
            client.call_again(self, timedelta(seconds=self._deadline))
        _carry_out(step.actions, client, self.owners[0][0], create)
        if not step.actions and step.retry_after is not None:
            client.call_again(self, step.retry_after)
        return bool(step.actions) or self._job != before

    def is_done(self, client: Client) -> bool:
        """Whether all pods that it wants at a time are ready; a Job that failed never gets there."""
        if self._job.ending == "Failed":
            return False
        pods = active_pods(self._own(client))
        return len(pods) == self.desired == sum(pod.is_ready for pod in pods)

    def state(self) -> object:
        """How many have failed, and in a row, and how many have succeeded."""
        return self._job.failed, self._job.failures_in_a_row, self._job.ending, self._job.succeeded

    def _own(self, client: Client) -> list[ControlledPod]:
        own = [pod for pod in client.cluster.pods_of(self.owners[0]) if pod.key not in self._strangers]
        return client.cluster.controlled(own)
