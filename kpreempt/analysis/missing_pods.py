"""Finds workloads with fewer pods than they want, and why their controllers have not created them.

The sources are conditions and events of the controllers. A ReplicaSet's condition ReplicaFailure stays until a sync
succeeds, and keeps the message of the first failure (``k8s.io/kubernetes`` v1.36.3
``pkg/controller/replicaset/replica_set_utils.go``, ``calculateStatus``); events have the last one. StatefulSets,
DaemonSets and Jobs only record events, so one that is older than the workload's newest pod proves nothing. Without
evidence, nothing is reported: the controller may just not have finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from kpreempt.analysis.simulation.cluster import is_serving
from kpreempt.controllers.actions import deployment_of
from kpreempt.controllers.job import FIRST_BACKOFF, LONGEST_BACKOFF
from kpreempt.controllers.stateful_set import ordinal_of
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.model.creation_failures import CreationFailure, parse_failure
from kpreempt.model.event import FAILED_CREATE, FAILED_CREATION, FAILED_REPLICA_SET, CreationStep, Event
from kpreempt.model.kueue import QUEUE_LABEL
from kpreempt.model.meta import ObjectMeta, ObjectName, grouped, owner_name
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import DaemonSet, Deployment, Job, StatefulSet, WorkloadCondition
from kpreempt.verdict.pending import PendingPods
from kpreempt.verdict.workload import AwaitedPod, FailedCreation, MissingPods, MissingReason

OWNERS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
_JOB_CONTROLLER = "kubernetes.io/job-controller"
_MOST_DOUBLED = 10
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
# The kinds of the objects that messages name, and whether they are in the namespace of the pod.
_OBJECTS = {
    CreationStep.SERVICE_ACCOUNT: ("ServiceAccount", True),
    CreationStep.QUOTA: ("ResourceQuota", True),
    CreationStep.PRIORITY_CLASS: ("PriorityClass", False),
    CreationStep.RUNTIME_CLASS: ("RuntimeClass", False),
    CreationStep.POLICY: ("ValidatingAdmissionPolicy", False),
    CreationStep.NAMESPACE: ("Namespace", False),
    CreationStep.WEBHOOK: ("webhook", False),
    CreationStep.WEBHOOK_CALL: ("webhook", False),
}


def unread_owners(cluster: ClusterSnapshot) -> list[str]:
    """The kinds of controllers that could not be read, or all of them if the input has no object of any."""
    states = {kind: state_of(cluster, kind) for kind in OWNERS}
    if all(state is KindState.ABSENT for state in states.values()):
        return list(OWNERS)
    return [kind for kind, state in states.items() if state is KindState.UNREADABLE]


def with_missing_pods(pending: PendingPods, cluster: ClusterSnapshot) -> PendingPods:
    """The answer with the workloads of its namespace that have not created their pods."""
    start = f"{pending.namespace}/" if pending.namespace else ""
    found = [each for each in MissingPodsFinder(cluster).all() if each.workload.partition(" ")[2].startswith(start)]
    return replace(pending, missing_pods=found, unread_owners=unread_owners(cluster))


class MissingPodsFinder:
    """The controllers of a cluster, with their pods and failures."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._cluster = cluster
        self._pods = grouped(
            (pod for pod in cluster.pods if pod.metadata.owner_references), lambda pod: owner_name(pod.metadata)
        )
        failures = (event for event in cluster.events if event.reason in FAILED_CREATION)
        self._failures = grouped(failures, _subject_of)
        self._terminating = {each.metadata.name for each in cluster.namespaces if each.is_terminating}
        # ReplicaSets that are not in the input, and whose failures are reported with their Deployment.
        self._reported: set[ObjectName] = set()
        sets = (each for each in cluster.replica_sets if each.metadata.owner_references)
        self._replica_sets = grouped(sets, lambda each: owner_name(each.metadata))

    def all(self) -> list[MissingPods]:
        """The controllers that lack pods, those that failed first, then those with most missing pods."""
        found = [*(each for each in self._each() if each.missing), *self._of_unread()]
        return sorted(found, key=lambda each: (each.reason is not MissingReason.FAILED_CREATE, -each.missing))

    def _each(self) -> Iterator[MissingPods]:
        cluster = self._cluster
        for deployment in cluster.deployments:
            yield from self._of_deployment(deployment)
        for replica_set in cluster.replica_sets:
            owner = owner_name(replica_set.metadata)
            if owner is None or owner.kind != "Deployment" or not self._has_deployment(owner):
                yield from self._of_replicas("ReplicaSet", replica_set)
        for controller in cluster.replication_controllers:
            yield from self._of_replicas("ReplicationController", controller)
        for stateful_set in cluster.stateful_sets:
            yield from self._of_stateful_set(stateful_set)
        for daemon_set in cluster.daemon_sets:
            yield from self._of_daemon_set(daemon_set)
        for job in cluster.jobs:
            yield from self._of_job(job)

    def _of_unread(self) -> Iterator[MissingPods]:
        """The failures of controllers that are not in the input, so that their size is unknown."""
        for name in self._failures:
            if name.kind in OWNERS and state_of(self._cluster, name.kind) is not KindState.READ:
                failure = self._failure(name, None, self._pods.get(name, ()), None)
                if failure is not None and name not in self._reported:
                    yield self._failed(name, "", 0, 0, failure)

    def of(self, kind: str, namespace: str, name: str) -> list[MissingPods]:
        """Why one workload has fewer pods than it wants, or creates none; a CronJob's Jobs are its workloads."""
        found: list[MissingPods] = []
        for record, find in self._records(kind, ObjectName(kind, namespace, name)):
            found += find(record)
        return found

    def _records(self, kind: str, name: ObjectName) -> Iterator[tuple[Any, Any]]:
        cluster = self._cluster
        by_kind: dict[str, tuple[Iterable[Any], Any]] = {
            "Deployment": (cluster.deployments, lambda each: self._of_deployment(each, is_in_full=True)),
            "ReplicaSet": (cluster.replica_sets, lambda each: self._of_replicas("ReplicaSet", each)),
            "ReplicationController": (
                cluster.replication_controllers,
                lambda each: self._of_replicas("ReplicationController", each),
            ),
            "StatefulSet": (cluster.stateful_sets, self._of_stateful_set),
            "DaemonSet": (cluster.daemon_sets, self._of_daemon_set),
            "Job": (cluster.jobs, self._of_job),
        }
        records, find = by_kind.get(kind, ((), None))
        yield from ((each, find) for each in records if ObjectName.of(kind, each.metadata) == name)

    def _of_deployment(self, deployment: Deployment, *, is_in_full: bool = False) -> Iterator[MissingPods]:
        """The failures of its ReplicaSets, or why it has none; ``is_in_full`` also reports a paused rollout."""
        name = ObjectName.of("Deployment", deployment.metadata)
        desired = _replicas(deployment.spec.replicas)
        own = self._replica_sets.get(name, [])
        lacking = [each for each in own if self._lacks(ObjectName.of("ReplicaSet", each.metadata), each)]
        reported = _condition(deployment.status.conditions, "ReplicaFailure")
        for each in own:
            # The Deployment copies the condition of its new ReplicaSet, or of another one.
            copied = reported if lacking == [each] else None
            yield from self._of_replicas("ReplicaSet", each, str(name), copied)
        if not own and state_of(self._cluster, "ReplicaSet") is not KindState.READ:
            # The input lacks ReplicaSets, whose names begin with the Deployment's.
            pods = [
                pod
                for owner, pods in self._pods.items()
                if owner is not None and owner.kind == "ReplicaSet" and owner.namespace == name.namespace
                for pod in pods
                if deployment_of(pod, owner.name) == name.name
            ]
            missing = desired - (sum(pod.is_active for pod in pods) or deployment.status.replicas)
            sets = [each for each in self._failures if _is_of_deployment(each, name)]
            newest = max(sets, key=lambda each: max(map(_time_of, self._failures[each])), default=name)
            failure = None
            if missing > 0 and (reported is not None or not deployment.status.observed_generation):
                failure = self._failure(newest, None, pods, reported)
            if failure is not None:
                self._reported.update(sets)
                yield self._failed(name, str(name), desired, missing, failure)
            return
        is_rejected = _condition(deployment.status.conditions, "Progressing", status="False", reason=FAILED_REPLICA_SET)
        active = sum(pod.is_active for each in own for pod in self._pods_of("ReplicaSet", each.metadata))
        missing = max(desired - (active or deployment.status.replicas), 0)
        if is_rejected is not None and (missing or is_in_full):
            failure = self._failure(name, deployment, (), is_rejected)
            yield self._failed(name, str(name), desired, missing, failure)
        elif deployment.spec.paused and desired and (is_in_full or not own):
            yield MissingPods(
                workload=str(name),
                controller=str(name),
                reason=MissingReason.PAUSED,
                desired=desired,
                missing=0 if own else missing,
            )
        elif not own and missing:
            yield from self._unexplained(name, deployment, desired, missing)

    def _has_deployment(self, name: ObjectName) -> bool:
        if not hasattr(self, "_deployments"):
            self._deployments = {ObjectName.of("Deployment", each.metadata) for each in self._cluster.deployments}
        return name in self._deployments

    def _pods_of(self, kind: str, metadata: ObjectMeta) -> list[Pod]:
        return self._pods.get(ObjectName.of(kind, metadata), [])

    def _lacks(self, name: ObjectName, record: Any) -> int:
        """The number of pods that a ReplicaSet or ReplicationController lacks."""
        desired = _replicas(record.spec.replicas)
        if not desired:
            return 0
        active = sum(pod.is_active for pod in self._pods.get(name, ()))
        # Without any of its pods, the input may not have them.
        return max(desired - (active or record.status.replicas), 0)

    def _of_replicas(
        self, kind: str, record: Any, workload: str = "", copied: WorkloadCondition | None = None
    ) -> Iterator[MissingPods]:
        name = ObjectName.of(kind, record.metadata)
        missing, desired = self._lacks(name, record), _replicas(record.spec.replicas)
        if not missing:
            return
        condition = _condition(record.status.conditions, "ReplicaFailure") or copied
        failure = None
        if condition is not None or not record.status.observed_generation:
            failure = self._failure(name, record, self._pods.get(name, ()), condition)
        if failure is not None:
            yield self._failed(name, workload, desired, missing, failure)
        else:
            yield from self._unexplained(name, record, desired, missing, workload)

    def _failed(
        self, name: ObjectName, workload: str, desired: int, missing: int, failure: FailedCreation | None
    ) -> MissingPods:
        return MissingPods(
            workload=workload or str(name),
            controller=str(name),
            reason=MissingReason.FAILED_CREATE,
            desired=desired,
            missing=missing,
            failure=failure,
        )

    def _unexplained(
        self, name: ObjectName, record: Any, desired: int, missing: int, workload: str = ""
    ) -> Iterator[MissingPods]:
        """Reasons that no controller reports: a terminating namespace, and a controller that is not running."""
        reason = None
        if name.namespace in self._terminating:
            reason = MissingReason.NAMESPACE_TERMINATING
        elif record.metadata.generation > record.status.observed_generation:
            reason = MissingReason.NOT_OBSERVED
        if reason is not None:
            yield MissingPods(
                workload=workload or str(name), controller=str(name), reason=reason, desired=desired, missing=missing
            )

    def _failure(
        self, name: ObjectName, record: Any, pods: Iterable[Pod], condition: WorkloadCondition | None
    ) -> FailedCreation | None:
        """The last failed try; without a condition, only if no pod was created since.

        ``record`` is the object, or ``None`` if the input lacks it.
        """
        events = [
            event
            for event in self._failures.get(name, ())
            if record is None
            or not event.subject.uid
            or not record.metadata.uid
            or event.subject.uid == record.metadata.uid
        ]
        if condition is None:
            created = max((pod.metadata.creation_timestamp or _BEFORE_ALL for pod in pods), default=_BEFORE_ALL)
            events = [event for event in events if _time_of(event) >= created]
            if not events:
                return None
        elif condition.last_transition_time is not None:
            # Earlier events belong to a failure that is over.
            start = condition.last_transition_time - _TOLERANCE
            events = [event for event in events if _time_of(event) >= start]
        parsed = [(event, parse_failure(event.text)) for event in events]
        last: tuple[Event, CreationFailure] | None = max(parsed, key=lambda each: _time_of(each[0]), default=None)
        text = condition.message if condition is not None else ""
        failure = last[1] if last is not None and last[1].message else parse_failure(text)
        kind, is_namespaced = _OBJECTS.get(failure.step, ("", False))
        place = f"{name.namespace}/" if is_namespaced else ""
        same = [event for event, each in parsed if (each.step, each.name) == (failure.step, failure.name)]
        return FailedCreation(
            step=failure.step,
            message=failure.message,
            object=f"{kind} {place}{failure.name}" if kind and failure.name else "",
            attempts=sum(event.times_seen for event in same),
            last_attempt=last[0].last_time if last is not None else None,
            since=condition.last_transition_time if condition is not None else None,
            pod=f"{name.namespace}/{failure.pod}" if failure.pod else "",
            claim=f"{name.namespace}/{failure.claim}" if failure.claim else "",
        )

    def _of_stateful_set(self, stateful_set: StatefulSet) -> Iterator[MissingPods]:
        name = ObjectName.of("StatefulSet", stateful_set.metadata)
        desired = _replicas(stateful_set.spec.replicas)
        pods = self._pods.get(name, [])
        by_ordinal = {ordinal_of(pod.metadata.name): pod for pod in pods if _is_named_after(pod, name.name)}
        is_known = len(by_ordinal) == len(pods)
        start = stateful_set.spec.ordinals.start if stateful_set.spec.ordinals is not None else 0
        wanted = range(start, start + desired)
        existing = sum(ordinal in wanted for ordinal in by_ordinal) if is_known else len(pods)
        missing = desired - (existing if pods else stateful_set.status.replicas)
        if missing <= 0:
            return
        if stateful_set.spec.pod_management_policy != "Parallel" and is_known and pods:
            # The controller stops at the first pod that is missing or not ready.
            first = next(ordinal for ordinal in wanted if ordinal not in by_ordinal)
            earlier = (by_ordinal[ordinal] for ordinal in range(start, first))
            blocking = next((pod for pod in earlier if not is_serving(pod)), None)
            if blocking is not None:
                yield MissingPods(
                    workload=str(name),
                    controller=str(name),
                    reason=MissingReason.WAITS_FOR_POD,
                    desired=desired,
                    missing=missing,
                    waits_for=AwaitedPod(
                        pod=blocking.key,
                        node=blocking.spec.node_name,
                        phase=blocking.status.phase,
                        terminating=blocking.metadata.deletion_timestamp is not None,
                    ),
                )
                return
        failure = self._failure(name, stateful_set, (), None)
        if failure is not None and failure.pod.rpartition("/")[2] in {pod.metadata.name for pod in pods}:
            failure = None
        if failure is not None:
            yield self._failed(name, "", desired, missing, failure)
        else:
            yield from self._unexplained(name, stateful_set, desired, missing)

    def _of_daemon_set(self, daemon_set: DaemonSet) -> Iterator[MissingPods]:
        name = ObjectName.of("DaemonSet", daemon_set.metadata)
        pods = self._pods.get(name, [])
        desired = daemon_set.status.desired_number_scheduled
        missing = desired - (sum(pod.is_active for pod in pods) or daemon_set.status.current_number_scheduled)
        failure = self._failure(name, daemon_set, pods, None) if missing > 0 else None
        if failure is not None:
            yield self._failed(name, "", desired, missing, failure)

    def _of_job(self, job: Job) -> Iterator[MissingPods]:
        name, spec, status = ObjectName.of("Job", job.metadata), job.spec, job.status
        for condition, reason in (("Failed", MissingReason.FAILED), ("Complete", MissingReason.COMPLETE)):
            ended = _condition(status.conditions, condition)
            if ended is not None:
                message = ": ".join(filter(None, (ended.reason, ended.message))) if condition == "Failed" else ""
                yield MissingPods(
                    workload=str(name), controller=str(name), reason=reason, message=message, failed=status.failed
                )
                return
        if spec.managed_by not in ("", _JOB_CONTROLLER):
            return
        pods = self._pods.get(name, [])
        desired = 1 if spec.parallelism is None else spec.parallelism
        if spec.completions is not None:
            desired = min(desired, max(spec.completions - status.succeeded, 0))
        active = sum(pod.is_active for pod in pods)
        missing = desired - (active if pods or state_of(self._cluster, "Pod") is KindState.READ else status.active)
        if missing <= 0:
            return
        known = MissingPods(
            workload=str(name),
            controller=str(name),
            reason=MissingReason.SUSPENDED,
            desired=desired,
            missing=missing,
            failed=status.failed,
            manager="Kueue" if QUEUE_LABEL in job.metadata.labels else "",
        )
        if spec.suspend:
            yield known
            return
        failure = self._failure(name, job, pods, None)
        if failure is not None:
            yield self._failed(name, "", desired, missing, failure)
        elif (backoff := self._backoff(known, pods)) is not None:
            yield backoff
        elif name.namespace in self._terminating:
            yield from self._unexplained(name, job, desired, missing)

    def _backoff(self, job: MissingPods, pods: Sequence[Pod]) -> MissingPods | None:
        """The Job with the longest possible delay of its next pod; the input does not show when pods failed."""
        failed = [pod for pod in pods if pod.status.phase == "Failed"]
        number = max(job.failed, len(failed))
        if not number:
            return None
        longest = min(FIRST_BACKOFF * 2 ** min(number - 1, _MOST_DOUBLED), LONGEST_BACKOFF)
        return replace(
            job,
            reason=MissingReason.BACKING_OFF,
            failed=number,
            longest_delay_seconds=int(longest.total_seconds()),
            manager="",
        )


# Events are recorded before the status is updated.
_TOLERANCE = timedelta(minutes=1)


def _subject_of(event: Event) -> ObjectName:
    subject = event.subject
    return ObjectName(subject.kind, subject.namespace or event.metadata.namespace, subject.name)


def _is_of_deployment(replica_set: ObjectName, deployment: ObjectName) -> bool:
    """Whether a ReplicaSet is named after the Deployment and a template's hash, which has no dash."""
    start, _, template_hash = replica_set.name.rpartition("-")
    return (replica_set.namespace, replica_set.kind, start) == (
        deployment.namespace,
        "ReplicaSet",
        deployment.name,
    ) and (template_hash.isalnum())


def _is_named_after(pod: Pod, stateful_set: str) -> bool:
    return pod.metadata.name.rpartition("-")[0] == stateful_set and ordinal_of(pod.metadata.name) >= 0


def _replicas(replicas: int | None) -> int:
    return 1 if replicas is None else max(replicas, 0)


def _time_of(event: Event) -> datetime:
    return event.last_time or _BEFORE_ALL


def _condition(
    conditions: Iterable[WorkloadCondition], kind: str, *, status: str = "True", reason: str = ""
) -> WorkloadCondition | None:
    """The condition of that type and status; a failure to delete pods is none to create them."""
    return next(
        (
            each
            for each in conditions
            if (each.type, each.status) == (kind, status)
            and (not reason or each.reason == reason)
            and not (kind == "ReplicaFailure" and each.reason not in ("", FAILED_CREATE))
        ),
        None,
    )
