"""Laws of controllers: they reach their goal step by step, and stay within limits on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.controllers.actions import (
    DEFAULT_RULES,
    ControlledPod,
    CreatePods,
    CreateReplicaSet,
    DeletePod,
    ReleasePod,
    ScaleReplicaSet,
    scaled_value,
)
from kpreempt.controllers.daemon_set import DaemonNode, DaemonSetState, reconcile_daemon_set
from kpreempt.controllers.deployment import (
    DeploymentState,
    ReplicaSetState,
    allowances,
    in_deletion_order,
    in_ranked_deletion_order,
    is_complete,
    reconcile_deployment,
    reconcile_replica_set,
)
from kpreempt.controllers.disruption import Candidates, Scale, sync_budget
from kpreempt.controllers.job import JobState, reconcile_job
from kpreempt.controllers.stateful_set import StatefulSetState, ordinal_of, reconcile_stateful_set
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import ObjectMeta, OwnerReference
from kpreempt.model.pod import Pod, PodCondition, PodMeta, PodStatus
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
# Far more steps than any of these takes; endless loops are detected here.
MAX_STEPS = 400
AMOUNTS = st.integers(0, 12) | st.integers(0, 120).map(lambda percent: f"{percent}%")


@given(st.integers(0, 10**9), st.integers(-1000, 10**6))
def test_percentages_are_rounded_exactly(total: int, percent: int) -> None:
    exact = Fraction(percent * total, 100)
    assert scaled_value(f"{percent}%", total, round_up=True) == ceil(exact)
    assert scaled_value(f"{percent}%", total, round_up=False) == floor(exact)
    assert scaled_value(percent, total, round_up=True) == percent


class Rollout:
    """A Deployment whose ReplicaSets are scaled at once, and whose new pods become available a few at a time."""

    def __init__(self, deployment: DeploymentState, old: list[tuple[int, int]], unready: int) -> None:
        self.deployment = deployment
        self.unready = unready
        self.new: ReplicaSetState | None = None
        self.old = [
            ReplicaSetState(f"v{number}", size, size, available, desired_replicas=deployment.replicas)
            for number, (size, available) in enumerate(old)
        ]

    def every(self) -> list[ReplicaSetState]:
        return [*self.old, *([self.new] if self.new is not None else [])]

    def step(self) -> bool:
        """Return whether there was anything to do."""
        actions = reconcile_deployment(self.deployment, self.new, self.old)
        for action in actions:
            assert isinstance(action, CreateReplicaSet | ScaleReplicaSet)
            if isinstance(action, CreateReplicaSet):
                assert self.new is None
                self.new = ReplicaSetState("new", desired_replicas=action.desired_replicas)
            name = "new" if isinstance(action, CreateReplicaSet) or action.name == "" else action.name
            self._resize(name, action)
        if self.new is not None:
            # A few of the new pods become available, until all are.
            available = min(self.new.replicas, self.new.available + self.unready)
            self.new = msgspec.structs.replace(self.new, available=available)
        return bool(actions)

    def _resize(self, name: str, action: CreateReplicaSet | ScaleReplicaSet) -> None:
        def resized(each: ReplicaSetState) -> ReplicaSetState:
            return msgspec.structs.replace(
                each,
                replicas=action.replicas,
                pods=action.replicas,
                # Unavailable pods are deleted first.
                available=min(each.available, action.replicas),
                desired_replicas=action.desired_replicas,
                max_replicas=action.max_replicas,
            )

        if self.new is not None and name == "new":
            self.new = resized(self.new)
        else:
            self.old = [resized(each) if each.name == name else each for each in self.old]


OLD_SETS = st.lists(st.integers(0, 9).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size))), max_size=4)


@given(OLD_SETS, AMOUNTS, AMOUNTS, st.integers(1, 5))
def test_a_rolling_update_finishes_within_its_limits(
    old: list[tuple[int, int]], surge: int | str, unavailable: int | str, unready: int
) -> None:
    replicas = sum(size for size, _ in old)
    deployment = DeploymentState(replicas, max_surge=surge, max_unavailable=unavailable)
    rollout = Rollout(deployment, old, unready)
    allowed = allowances(deployment)
    # Initially broken pods are not caused by the update.
    least = min(replicas - allowed.unavailable, sum(each.available for each in rollout.old))
    for _ in range(MAX_STEPS):
        rollout.step()
        assert sum(each.replicas for each in rollout.every()) <= replicas + allowed.surge
        assert sum(each.available for each in rollout.every()) >= least
        if is_complete(deployment, rollout.new, rollout.old) and not rollout.step():
            break
    assert is_complete(deployment, rollout.new, rollout.old)
    assert [each.replicas for each in rollout.old] == [0] * len(old)


@given(OLD_SETS, AMOUNTS, st.integers(0, 12), st.booleans())
def test_a_deployment_scaled_during_a_rollout_finishes(
    old: list[tuple[int, int]], surge: int | str, replicas: int, recreate: bool
) -> None:
    before = sum(size for size, _ in old)
    deployment = DeploymentState(before, "Recreate" if recreate else "RollingUpdate", max_surge=surge)
    rollout = Rollout(deployment, old, 1)
    rollout.step()
    rollout.deployment = deployment = msgspec.structs.replace(deployment, replicas=replicas)
    for _ in range(MAX_STEPS):
        if rollout.step():
            continue
        if is_complete(deployment, rollout.new, rollout.old) or waits_for_ever(rollout):
            return
    raise AssertionError("still not there")


def waits_for_ever(rollout: Rollout) -> bool:
    """Whether the real controller would wait, too, until the Deployment is scaled again.

    It considers an outdated size annotation on a ReplicaSet as a sign of scaling, and updates it only if something
    changes. Nothing changes if the only ReplicaSet with pods happens to have the new size; nor, with Recreate, if
    several have pods.
    """
    active = [each for each in rollout.every() if each.replicas > 0]
    wanted = rollout.deployment.replicas
    is_noticed = any(each.desired_replicas != wanted for each in active)
    by_chance = len(active) == 1 and active[0].replicas == wanted
    return is_noticed and (by_chance or (len(active) > 1 and rollout.deployment.strategy == "Recreate"))


READY = {"phase": "Running", "is_ready": True, "node_name": "n", "ready_since": NOW - timedelta(hours=1)}


@given(
    st.integers(0, 6),
    st.integers(0, 3),
    st.booleans(),
    st.none() | st.integers(0, 7),
    st.sets(st.integers(0, 9)),
    st.integers(1, 3),
    st.booleans(),
)
def test_a_stateful_set_finishes_without_duplicate_ordinals(
    replicas: int, start: int, parallel: bool, partition: int | None, there: set[int], most: int, gated: bool
) -> None:
    state = StatefulSetState(
        "db",
        replicas,
        start,
        parallel,
        partition=partition,
        max_unavailable=most,
        rules=DEFAULT_RULES._replace(max_unavailable_stateful_set=gated),
        current_revision="old",
        update_revision="new",
        current_replicas=len(there),
    )
    pods = {f"db-{ordinal}": ControlledPod(f"db-{ordinal}", revision="old", **READY) for ordinal in there}
    wanted = {f"db-{start + number}" for number in range(replicas)}
    was_whole = set(pods) == wanted
    for _ in range(MAX_STEPS):
        step = reconcile_stateful_set(state, list(pods.values()), NOW)
        state = step.stateful_set
        for action in step.actions:
            if isinstance(action, CreatePods):
                assert action.count == 1
                assert action.name not in pods
                assert action.name in wanted
                pods[action.name] = ControlledPod(action.name, revision=action.revision)
            else:
                assert isinstance(action, DeletePod)
                assert not pods[action.name].is_terminating
                pods[action.name] = msgspec.structs.replace(pods[action.name], is_terminating=True)
                kept = partition or 0
                assert action.reason != "update" or ordinal_of(action.name) >= start + kept or partition is None
        assert parallel or len(step.actions) <= (most if gated else 1)
        unavailable = sum(pod.is_terminating or not pod.is_ready for pod in pods.values()) + len(wanted - set(pods))
        assert not was_whole or unavailable <= (most if gated else 1)
        if not step.actions and all(pod.is_ready and not pod.is_terminating for pod in pods.values()):
            break
        # Deleted pods are gone, and new ones are ready, before the controller's next sync.
        pods = {name: msgspec.structs.replace(pod, **READY) for name, pod in pods.items() if not pod.is_terminating}
    assert set(pods) == wanted
    for name, pod in pods.items():
        if ordinal_of(name) >= start + (partition or 0):
            assert pod.revision == "new"
    if not partition:
        assert state.current_revision == "new"


NODES = st.dictionaries(st.sampled_from("abcdefg"), st.sampled_from(["run", "stay", "gone"]))


@given(NODES, st.sets(st.sampled_from("abcdefg")), AMOUNTS, AMOUNTS)
def test_a_daemon_set_finishes_within_its_limits(
    kinds: dict[str, str], there: set[str], surge: int | str, unavailable: int | str
) -> None:
    nodes = [DaemonNode(name, kind == "run", kind != "gone") for name, kind in kinds.items()]
    wanted = {node.name for node in nodes if node.should_run}
    state = DaemonSetState("new", max_surge=surge, max_unavailable=unavailable)
    pods = [ControlledPod(name, revision="old", **{**READY, "node_name": name}) for name in sorted(there & set(kinds))]
    was_whole = {pod.node_name for pod in pods} == wanted
    most_surging = scaled_value(surge, len(wanted), round_up=True)
    most_missing = scaled_value(unavailable, len(wanted), round_up=True) or 1
    made = 0
    for _ in range(MAX_STEPS):
        actions = reconcile_daemon_set(state, pods, nodes, NOW)
        for action in actions:
            if isinstance(action, CreatePods):
                made += 1
                pods.append(ControlledPod(f"{action.node_name}{made}", tied_to=action.node_name, revision="new"))
            else:
                assert isinstance(action, DeletePod)
                pods = [
                    msgspec.structs.replace(pod, is_terminating=True) if pod.name == action.name else pod
                    for pod in pods
                ]
        served = {pod.target_node for pod in pods if pod.is_ready and not pod.is_terminating}
        crowded = Counter(pod.target_node for pod in pods if not pod.is_terminating)
        if was_whole:
            assert len(wanted - served) <= (0 if most_surging else most_missing)
            assert sum(count > 1 for count in crowded.values()) <= most_surging
        if not actions and all(pod.is_ready and not pod.is_terminating for pod in pods):
            break
        pods = [
            msgspec.structs.replace(pod, **{**READY, "node_name": pod.target_node})
            for pod in pods
            if not pod.is_terminating
        ]
    on_wanted = [pod for pod in pods if pod.node_name in wanted]
    assert sorted(pod.node_name for pod in on_wanted) == sorted(wanted)
    assert {pod.revision for pod in on_wanted} <= {"new"}
    assert {kinds[pod.node_name] for pod in pods} <= {"run", "stay"}


@given(
    st.integers(1, 4),
    st.none() | st.integers(0, 8),
    st.booleans(),
    st.booleans(),
    st.integers(0, 4),
    st.lists(st.sampled_from(["Succeeded", "Failed", "preempted", "Running"]), max_size=60),
)
def test_a_job_ends_and_counts_every_pod_once(
    parallelism: int, completions: int | None, indexed: bool, waits: bool, limit: int, fates: list[str]
) -> None:
    job = JobState(
        parallelism,
        completions,
        is_indexed=indexed and completions is not None,
        backoff_limit=limit,
        replaces_failed_only=waits,
    )
    pods: dict[str, ControlledPod] = {}
    made, now = 0, NOW
    outcomes = iter(fates)
    for _ in range(MAX_STEPS):
        step = reconcile_job(job, list(pods.values()), now)
        job = step.job
        for action in step.actions:
            if isinstance(action, CreatePods):
                for _ in range(action.count):
                    made += 1
                    pods[f"p{made}"] = ControlledPod(f"p{made}", index=action.index, is_tracked=True)
            elif isinstance(action, DeletePod):
                pods[action.name] = msgspec.structs.replace(pods[action.name], is_terminating=True)
            else:
                assert isinstance(action, ReleasePod)
                assert pods[action.name].is_tracked
                pods[action.name] = msgspec.structs.replace(pods[action.name], is_tracked=False)
        active = [pod for pod in pods.values() if pod.is_active]
        assert len(active) <= parallelism
        if job.is_indexed:
            assert len({pod.index for pod in active}) == len(active)
        assert job.succeeded + job.failed <= made
        if job.has_ended:
            break
        now += step.retry_after or timedelta(seconds=1)
        pods = {name: lived(pod, outcomes, now) for name, pod in pods.items() if pod.is_tracked or pod.is_active}
    assert job.has_ended
    assert not [pod for pod in pods.values() if pod.is_active]
    if job.ending == "Complete":
        assert job.succeeded >= (1 if completions is None else completions)
    else:
        assert (job.reason, job.failed > limit) == ("BackoffLimitExceeded", True)


def lived(pod: ControlledPod, outcomes: Iterator[str], now: datetime) -> ControlledPod:
    """The pod a while later; it succeeds after all drawn events."""
    if pod.has_finished:
        return pod
    if pod.is_terminating:
        return msgspec.structs.replace(pod, phase="Failed", finished_at=now)
    fate = next(outcomes, "Succeeded")
    if fate == "preempted":
        return msgspec.structs.replace(pod, is_terminating=True, finished_at=now)
    return msgspec.structs.replace(pod, phase=fate, finished_at=now)


TIMES = st.none() | st.integers(-5, 10**6).map(lambda seconds: NOW - timedelta(seconds=seconds))
PODS = st.lists(
    st.builds(
        ControlledPod,
        name=st.integers(0, 10**6).map(str),
        uid=st.text("abc", max_size=3),
        phase=st.sampled_from(["", "Pending", "Unknown", "Running", "Failed", "Succeeded"]),
        node_name=st.sampled_from(["", "n1", "n2"]),
        is_ready=st.booleans(),
        ready_since=TIMES,
        created=TIMES,
        is_terminating=st.booleans(),
        deletion_cost=st.integers(-2, 2),
        restarts=st.integers(0, 2),
    ),
    max_size=12,
    unique_by=lambda pod: pod.name,
)


@given(PODS, st.integers(0, 15))
def test_a_replica_set_is_right_after_one_step(pods: list[ControlledPod], replicas: int) -> None:
    active = {pod.name: pod for pod in pods if pod.is_active}
    actions = reconcile_replica_set(replicas, pods, pods, NOW)
    made = sum(action.count for action in actions if isinstance(action, CreatePods))
    deleted = [action.name for action in actions if isinstance(action, DeletePod)]
    assert len(set(deleted)) == len(deleted)
    assert set(deleted) <= set(active)
    assert len(active) + made - len(deleted) == replicas
    assert not (made and deleted)
    # A pod on a node is deleted only once all without a node are gone.
    if any(active[name].node_name for name in deleted):
        assert all(pod.node_name for name, pod in active.items() if name not in deleted)


@given(PODS)
def test_an_order_of_deletion_only_orders(pods: list[ControlledPod]) -> None:
    for ordered in (in_deletion_order(pods), in_ranked_deletion_order(pods, pods, NOW)):
        assert sorted(pod.name for pod in ordered) == sorted(pod.name for pod in pods)
    # The plain order has no cycles: two pods are ordered the same way alone and among others.
    plain = in_deletion_order(pods)
    for first, then in pairwise(plain):
        assert in_deletion_order([first, then]) == [first, then]


@given(st.lists(st.booleans(), max_size=12), st.integers(0, 12), AMOUNTS, st.booleans())
def test_what_a_budget_allows_leaves_enough(
    ready: list[bool], scale: int, amount: int | str, is_unavailable: bool
) -> None:
    owner = OwnerReference("ReplicaSet", "web", controller=True)
    pods = [
        Pod(
            PodMeta(name=str(number), owner_references=[owner]),
            status=PodStatus(conditions=[PodCondition("Ready", str(is_ready))]),
        )
        for number, is_ready in enumerate(ready)
    ]
    rule = {"max_unavailable" if is_unavailable else "min_available": amount}
    budget = PodDisruptionBudget(ObjectMeta(), PodDisruptionBudgetSpec(selector=LabelSelector(), **rule))
    status = sync_budget(
        budget, Candidates(pods).of(budget), lambda namespace, owner: Scale("", "", "", scale), NOW
    ).status
    assert status.current_healthy == sum(ready)
    assert 0 <= status.disruptions_allowed <= sum(ready)
    assert status.disruptions_allowed == 0 or sum(ready) - status.disruptions_allowed == max(status.desired_healthy, 0)
