# ruff: noqa: E501 - a row of the table is one case
"""Which controllers lack pods, and why they have not created them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kpreempt.analysis.missing_pods import MissingPodsFinder, unread_owners
from kpreempt.model.cluster import ABSENT, ClusterSnapshot, Unread
from kpreempt.model.event import CreationStep, Event, EventSeries, ObjectReference
from kpreempt.model.meta import ObjectMeta, OwnerReference
from kpreempt.model.pod import Pod, PodCondition, PodMeta, PodSpec, PodStatus
from kpreempt.model.workloads import (
    DaemonSet,
    DaemonSetStatus,
    Deployment,
    DeploymentSpec,
    Job,
    JobSpec,
    JobStatus,
    Namespace,
    NamespaceStatus,
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    StatefulSet,
    StatefulSetSpec,
    WorkloadCondition,
    WorkloadSpec,
    WorkloadStatus,
)
from kpreempt.verdict.workload import MissingPods, MissingReason

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
QUOTA = 'pods "web-1-x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3'
ACCOUNT = 'pods "web-1-" is forbidden: error looking up service account shop/sa: serviceaccount "sa" not found'


def meta(name: str, *, owner: tuple[str, str] | None = None, generation: int = 1, **labels: str) -> ObjectMeta:
    owners = [OwnerReference(*owner, controller=True)] if owner else []
    return ObjectMeta(
        name=name, namespace="shop", owner_references=owners, generation=generation, labels=labels, uid=f"u-{name}"
    )


def pod(name: str, kind: str, owner: str, *, ready: bool = True, phase: str = "Running", **changes: Any) -> Pod:
    return Pod(
        metadata=PodMeta(
            name=name, namespace="shop", owner_references=[OwnerReference(kind, owner, controller=True)], **changes
        ),
        spec=PodSpec(node_name="n1"),
        status=PodStatus(phase=phase, conditions=[PodCondition(type="Ready", status="True" if ready else "False")]),
    )


def replica_set(
    *, replicas: int = 3, failure: str = "", observed_generation: int = 1, status_replicas: int = 0
) -> ReplicaSet:
    condition = WorkloadCondition("ReplicaFailure", "True", "FailedCreate", failure, NOW - HOUR)
    return ReplicaSet(
        metadata=meta("web-1", owner=("Deployment", "web")),
        spec=WorkloadSpec(replicas=replicas),
        status=WorkloadStatus(observed_generation, status_replicas, [condition] if failure else []),
    )


def failed(kind: str, name: str, text: str, *, ago: timedelta = HOUR / 2, **more: Any) -> Event:
    return Event(
        metadata=ObjectMeta(name="e", namespace="shop"),
        reason="FailedCreate",
        involved_object=ObjectReference(kind=kind, namespace="shop", name=name, uid=more.pop("uid", "")),
        message=text,
        last_timestamp=NOW - ago,
        **more,
    )


def web(**spec: Any) -> Deployment:
    return Deployment(metadata=meta("web"), spec=DeploymentSpec(**{"replicas": 3, **spec}))


def only(cluster: ClusterSnapshot) -> MissingPods:
    [found] = MissingPodsFinder(cluster).all()
    return found


def none(cluster: ClusterSnapshot) -> bool:
    return MissingPodsFinder(cluster).all() == []


def test_a_replica_set_reports_the_last_message_and_how_often_it_failed() -> None:
    cluster = ClusterSnapshot(
        deployments=[web()],
        replica_sets=[replica_set(failure=QUOTA)],
        pods=[pod("web-1-a", "ReplicaSet", "web-1")],
        events=[
            failed("ReplicaSet", "web-1", f"Error creating: {QUOTA}", ago=HOUR * 2, count=9),
            failed("ReplicaSet", "web-1", f"Error creating: {QUOTA}", ago=HOUR / 2),
            failed(
                "ReplicaSet",
                "web-1",
                f"(combined from similar events): Error creating: {ACCOUNT}",
                ago=HOUR / 4,
                count=4,
            ),
            failed("ReplicaSet", "web-1", f"Error creating: {ACCOUNT}", ago=HOUR / 3, series=EventSeries(count=2)),
        ],
    )
    found = only(cluster)
    assert (found.workload, found.controller) == ("Deployment shop/web", "ReplicaSet shop/web-1")
    assert (found.reason, found.desired, found.missing) == (MissingReason.FAILED_CREATE, 3, 2)
    assert found.failure is not None
    assert (found.failure.step, found.failure.object) == (CreationStep.SERVICE_ACCOUNT, "ServiceAccount shop/sa")
    assert (found.failure.message, found.failure.attempts) == (ACCOUNT, 6)
    assert (found.failure.last_attempt, found.failure.since) == (NOW - HOUR / 4, NOW - HOUR)


def test_without_events_the_condition_has_the_first_message() -> None:
    found = only(ClusterSnapshot(replica_sets=[replica_set(failure=QUOTA)]))
    assert found.workload == "ReplicaSet shop/web-1"
    assert found.failure is not None
    assert (found.failure.message, found.failure.object, found.failure.attempts) == (QUOTA, "ResourceQuota shop/q", 0)


@pytest.mark.parametrize(
    ("record", "events"),
    [
        pytest.param(replica_set(), [failed("ReplicaSet", "web-1", QUOTA)], id="the last sync succeeded"),
        pytest.param(replica_set(replicas=0, failure=QUOTA), [], id="it wants none"),
        pytest.param(replica_set(failure=QUOTA, replicas=1), [], id="it has all"),
        pytest.param(replica_set(observed_generation=0), [failed("ReplicaSet", "web-1", QUOTA, uid="old")], id="an event of an earlier one"),
        pytest.param(replica_set(), [], id="nothing says why"),
    ],
)  # fmt: skip
def test_without_evidence_nothing_is_claimed(record: ReplicaSet, events: list[Event]) -> None:
    record = ReplicaSet(metadata=meta("web-1", generation=0), spec=record.spec, status=record.status)
    pods = [pod("web-1-a", "ReplicaSet", "web-1")]
    assert none(ClusterSnapshot(replica_sets=[record], events=events, pods=pods))


def test_pods_that_are_not_in_the_input_are_counted_by_the_status() -> None:
    assert none(ClusterSnapshot(replica_sets=[replica_set(failure=QUOTA, status_replicas=3)]))
    assert only(ClusterSnapshot(replica_sets=[replica_set(failure=QUOTA, status_replicas=1)])).missing == 2


def test_a_replication_controller_reports_as_a_replica_set_does() -> None:
    record = ReplicationController(
        metadata=meta("old"), spec=ReplicationControllerSpec(replicas=2), status=replica_set(failure=QUOTA).status
    )
    found = only(ClusterSnapshot(replication_controllers=[record]))
    assert (found.controller, found.missing) == ("ReplicationController shop/old", 2)


def test_a_rollout_whose_new_pods_cannot_be_created_lacks_them_although_the_old_ones_run() -> None:
    old = ReplicaSet(metadata=meta("web-0", owner=("Deployment", "web")), spec=WorkloadSpec(replicas=3))
    pods = [pod(f"web-0-{each}", "ReplicaSet", "web-0") for each in "abc"]
    new = replica_set(replicas=1, failure=QUOTA)
    found = only(ClusterSnapshot(deployments=[web()], replica_sets=[old, new], pods=pods))
    assert (found.workload, found.controller, found.missing) == ("Deployment shop/web", "ReplicaSet shop/web-1", 1)


def test_a_deployment_may_fail_to_create_its_replica_set() -> None:
    text = 'Failed to create new replica set "web-1": admission webhook "w" denied the request: no'
    condition = WorkloadCondition("Progressing", "False", "ReplicaSetCreateError", text, NOW)
    record = Deployment(
        metadata=meta("web"), spec=DeploymentSpec(replicas=2), status=WorkloadStatus(1, conditions=[condition])
    )
    found = only(ClusterSnapshot(deployments=[record]))
    assert (found.controller, found.missing) == ("Deployment shop/web", 2)
    assert found.failure is not None
    assert found.failure.message == 'admission webhook "w" denied the request: no'


def test_without_replica_sets_the_condition_of_the_deployment_counts() -> None:
    condition = WorkloadCondition("ReplicaFailure", "True", "FailedCreate", QUOTA, NOW)
    record = Deployment(
        metadata=meta("web"), spec=DeploymentSpec(replicas=2), status=WorkloadStatus(1, conditions=[condition])
    )
    unread = {"ReplicaSet": Unread(ABSENT)}
    assert only(ClusterSnapshot(deployments=[record], unread=unread)).missing == 2
    assert none(ClusterSnapshot(deployments=[web()], unread=unread))


@pytest.mark.parametrize(
    ("observed", "workload", "missing"),
    [(0, "Deployment shop/web", 2), (1, "ReplicaSet shop/web-5d8f", 0)],
    ids=["a Deployment without a status", "a Deployment that reports no failure"],
)
def test_events_about_replica_sets_that_are_not_in_the_input(observed: int, workload: str, missing: int) -> None:
    record = Deployment(
        metadata=meta("web"), spec=DeploymentSpec(replicas=2), status=WorkloadStatus(observed_generation=observed)
    )
    unread = {"ReplicaSet": Unread(ABSENT)}
    events = [
        failed("ReplicaSet", "web-5d8f", f"Error creating: {QUOTA}", count=3),
        failed("ReplicaSet", "web-api-5d8f", f"Error creating: {ACCOUNT}"),
    ]
    found = MissingPodsFinder(ClusterSnapshot(deployments=[record], unread=unread, events=events)).all()
    # What the input does not have may want any number of pods.
    numbers = [(each.workload, each.desired, each.missing) for each in found]
    assert numbers == [(workload, missing, missing), ("ReplicaSet shop/web-api-5d8f", 0, 0)]
    assert found[0].failure is not None
    assert (found[0].failure.message, found[0].failure.attempts) == (QUOTA, 3)
    # A pod that was created later shows that the failure is over.
    later = pod("a", "ReplicaSet", "web-api-5d8f", creation_timestamp=NOW)
    cluster = ClusterSnapshot(deployments=[record], unread=unread, events=events, pods=[later])
    assert [each.workload for each in MissingPodsFinder(cluster).all()] == [workload]


def test_a_paused_deployment_creates_no_first_replica_set() -> None:
    assert only(ClusterSnapshot(deployments=[web(paused=True)])).reason is MissingReason.PAUSED
    cluster = ClusterSnapshot(
        deployments=[web(paused=True)],
        replica_sets=[replica_set()],
        pods=[pod(f"web-1-{each}", "ReplicaSet", "web-1") for each in "abc"],
    )
    assert none(cluster)
    [found] = MissingPodsFinder(cluster).of("Deployment", "shop", "web")
    assert (found.reason, found.missing) == (MissingReason.PAUSED, 0)


@pytest.mark.parametrize(
    ("phase", "generation", "reason"),
    [("Terminating", 1, MissingReason.NAMESPACE_TERMINATING), ("Active", 2, MissingReason.NOT_OBSERVED)],
    ids=["a namespace that is being deleted", "a controller that does not run"],
)
def test_what_no_controller_reports(phase: str, generation: int, reason: MissingReason) -> None:
    record = ReplicaSet(
        metadata=meta("web-1", generation=generation), spec=WorkloadSpec(replicas=1), status=WorkloadStatus(1)
    )
    namespaces = [Namespace(metadata=meta("shop"), status=NamespaceStatus(phase))]
    assert only(ClusterSnapshot(replica_sets=[record], namespaces=namespaces)).reason is reason


def store(*, policy: str = "", replicas: int = 4) -> StatefulSet:
    spec = StatefulSetSpec(replicas=replicas, pod_management_policy=policy)
    return StatefulSet(metadata=meta("store"), spec=spec, status=WorkloadStatus(1))


@pytest.mark.parametrize(
    ("states", "waits_for"),
    [
        ({0: True, 1: False}, "shop/store-1"),
        ({0: False, 1: False}, "shop/store-0"),
        ({0: True, 1: True, 3: False}, None),
        ({1: False, 2: True}, None),
    ],
    ids=["the last one is not ready", "the first of two", "a later one does not matter", "the first one is missing"],
)
def test_a_stateful_set_waits_for_the_first_pod_that_is_not_ready(
    states: dict[int, bool], waits_for: str | None
) -> None:
    pods = [pod(f"store-{number}", "StatefulSet", "store", ready=ready) for number, ready in states.items()]
    found = MissingPodsFinder(ClusterSnapshot(stateful_sets=[store()], pods=pods)).all()
    assert [each.waits_for and each.waits_for.pod for each in found] == ([waits_for] if waits_for else [])
    parallel = ClusterSnapshot(stateful_sets=[store(policy="Parallel")], pods=pods)
    assert none(parallel)


def test_a_stateful_set_of_any_size_is_read_at_once() -> None:
    huge = store(replicas=2**31 - 1)
    ready, unready = (pod("store-0", "StatefulSet", "store", ready=each) for each in (True, False))
    assert none(ClusterSnapshot(stateful_sets=[huge], pods=[ready]))
    assert only(ClusterSnapshot(stateful_sets=[huge], pods=[unready])).missing == 2**31 - 2


def test_an_event_of_a_stateful_set_counts_until_its_pod_exists() -> None:
    event = failed("StatefulSet", "store", f"create Pod store-1 in StatefulSet store failed error: {QUOTA}")
    pods = [pod("store-0", "StatefulSet", "store")]
    found = only(ClusterSnapshot(stateful_sets=[store(replicas=3)], pods=pods, events=[event]))
    assert found.failure is not None
    assert (found.missing, found.failure.pod, found.failure.message) == (2, "shop/store-1", QUOTA)
    pods.append(pod("store-1", "StatefulSet", "store"))
    assert none(ClusterSnapshot(stateful_sets=[store(replicas=3)], pods=pods, events=[event]))


@pytest.mark.parametrize(("created", "number"), [(NOW, 0), (NOW - HOUR, 1)], ids=["a newer pod", "no newer pod"])
def test_an_event_of_a_daemon_set_is_outdated_once_a_pod_was_created(created: datetime, number: int) -> None:
    agent = DaemonSet(metadata=meta("agent"), status=DaemonSetStatus(1, desired_number_scheduled=2))
    pods = [pod("agent-a", "DaemonSet", "agent", creation_timestamp=created)]
    event = failed("DaemonSet", "agent", f"Error creating: {QUOTA}")
    cluster = ClusterSnapshot(daemon_sets=[agent], pods=pods, events=[event])
    assert [each.missing for each in MissingPodsFinder(cluster).all()] == [1] * number


def job(*, labels: dict[str, str] | None = None, status: JobStatus | None = None, **spec: Any) -> Job:
    return Job(metadata=meta("load", **(labels or {})), spec=JobSpec(**spec), status=status or JobStatus())


ENDED = [WorkloadCondition("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")]


@pytest.mark.parametrize(
    ("record", "reason", "missing"),
    [
        (job(suspend=True, parallelism=3, completions=5), MissingReason.SUSPENDED, 3),
        (job(suspend=True, parallelism=3, completions=5, status=JobStatus(succeeded=4)), MissingReason.SUSPENDED, 1),
        (job(status=JobStatus(failed=3)), MissingReason.BACKING_OFF, 1),
        (job(suspend=True, managed_by="kueue.x-k8s.io/multikueue"), None, 0),
        (job(status=JobStatus(conditions=ENDED)), MissingReason.FAILED, 0),
        (job(), None, 0),
    ],
    ids=["suspended", "partly done", "in backoff", "of another controller", "failed", "just created"],
)
def test_a_job_that_creates_no_pods(record: Job, reason: MissingReason | None, missing: int) -> None:
    found = MissingPodsFinder(ClusterSnapshot(jobs=[record])).of("Job", "shop", "load")
    assert [(each.reason, each.missing) for each in found] == ([(reason, missing)] if reason else [])


def test_a_job_of_kueue_is_resumed_by_kueue() -> None:
    record = job(suspend=True, labels={"kueue.x-k8s.io/queue-name": "team"})
    assert only(ClusterSnapshot(jobs=[record])).manager == "Kueue"


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 10), (2, 20), (4, 80), (7, 600), (40, 600)]
)  # fmt: skip
def test_the_delay_after_a_failure_doubles_up_to_ten_minutes(failures: int, seconds: int) -> None:
    assert only(ClusterSnapshot(jobs=[job(status=JobStatus(failed=failures))])).longest_delay_seconds == seconds


def test_kinds_that_were_not_read_are_named() -> None:
    kinds = ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"]
    assert unread_owners(ClusterSnapshot(unread={kind: Unread(ABSENT) for kind in kinds})) == kinds
    assert unread_owners(ClusterSnapshot(unread={"Job": Unread(403), "ReplicaSet": Unread(ABSENT)})) == ["Job"]
    assert unread_owners(ClusterSnapshot()) == []
