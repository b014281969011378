"""The sizes of a Deployment's ReplicaSets, and the pods these create or delete next.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/deployment/deployment_controller.go`` (``syncDeployment``),
``rolling.go`` and ``recreate.go``. Omitted are parts that change no size (the progress deadline, cleaning up old
ReplicaSets), and rollbacks that old clients request by annotation. How a scaled or paused Deployment distributes its
size over its ReplicaSets follows ``sync.go`` (``isScalingEvent``, ``scale``) and ``util/deployment_util.go``
(``GetReplicaSetProportion``, ``ResolveFenceposts``). Difference: sizes do not overflow 32 bits.

ReplicaSets and ReplicationControllers follow ``pkg/controller/replicaset/replica_set.go`` (``manageReplicas``) and
``replica_set_utils.go`` (``calculateStatus``), and the deletion order follows ``pkg/controller/controller_utils.go``
(``ActivePods``, ``ActivePodsWithRanks``). A step creates or deletes at most as many pods as upstream does at a time.
Difference: pods that no rule distinguishes stay in input order, while upstream's order depends on its cache.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cmp_to_key
from typing import Literal

import msgspec

from kpreempt.controllers.actions import (
    Action,
    ControlledPod,
    CreatePods,
    CreateReplicaSet,
    DeletePod,
    ScaleReplicaSet,
    active_pods,
    scaled_value,
)

StrategyType = Literal["RollingUpdate", "Recreate"]
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


class DeploymentState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a Deployment that the controller reads. ``status_replicas`` is its number of pods by its status."""

    replicas: int = 1
    strategy: StrategyType = "RollingUpdate"
    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"
    paused: bool = False
    status_replicas: int = 0


class ReplicaSetState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a Deployment's ReplicaSet that the controller reads.

    ``replicas`` is its desired size, ``pods`` the number of active pods, ``available`` how many of them have been ready
    for long enough, and ``unfinished`` the number of pods that have not finished, including terminating ones.
    ``desired_replicas`` and ``max_replicas`` are its annotations: the Deployment's size, without and with the surge.
    """

    name: str
    replicas: int = 0
    pods: int = 0
    available: int = 0
    unfinished: int = 0
    created: datetime | None = None
    desired_replicas: int | None = None
    max_replicas: int | None = None


class Allowances(msgspec.Struct, frozen=True):
    """How many pods may exist beyond the Deployment's size, and how many of its size may be unavailable."""

    surge: int
    unavailable: int


def reconcile_deployment(
    deployment: DeploymentState, new: ReplicaSetState | None, old: Sequence[ReplicaSetState]
) -> list[Action]:
    """Return the controller's next actions: ``new`` has the current template, ``old`` are all other ReplicaSets.

    Raises ``SyncError`` if the strategy's amounts are not percentages.
    """
    with_pods = [each for each in (*old, new) if each is not None and each.replicas > 0]
    # Whether a ReplicaSet with pods is annotated with another size of the Deployment.
    is_scaled = any(each.desired_replicas not in (None, deployment.replicas) for each in with_pods)
    if deployment.paused or is_scaled:
        return _scale(deployment, new, old, with_pods)
    if deployment.strategy == "Recreate":
        # Recreate: all old pods terminate before new ones are created.
        ending: list[Action] = [resized(deployment, each.name, 0) for each in old if each.replicas > 0]
        if ending or any(each.pods > 0 or each.unfinished > 0 for each in old):
            return ending
        if new is None:
            return [_creation(deployment, deployment.replicas)]
        return [resized(deployment, new.name, deployment.replicas)] if new.replicas != deployment.replicas else []
    # First up, then down; both in one step only if the new ReplicaSet was just created.
    actions: list[Action] = []
    if new is None:
        # The caller chooses its name; none of the old ones has an empty name.
        new = ReplicaSetState("")
        new = msgspec.structs.replace(new, replicas=_grown(deployment, new, old))
        actions.append(_creation(deployment, new.replicas))
    desired = min(deployment.replicas, new.replicas)
    if new.replicas < deployment.replicas:
        desired = _grown(deployment, new, old)
    if desired != new.replicas:
        return [*actions, resized(deployment, new.name, desired)]
    return [*actions, *_shrink_old(deployment, new, [each for each in old if each.replicas > 0])]


def is_complete(deployment: DeploymentState, new: ReplicaSetState | None, old: Sequence[ReplicaSetState]) -> bool:
    """Return whether the rollout is complete: all pods are of the new ReplicaSet, complete in number, and available."""
    every = [each for each in (*old, new) if each is not None]
    updated = new.pods if new is not None else 0
    pods, available = (sum(each.pods for each in every), sum(each.available for each in every))
    return updated == pods == available == deployment.replicas


def _creation(deployment: DeploymentState, replicas: int) -> CreateReplicaSet:
    noted = resized(deployment, "", replicas)
    return CreateReplicaSet(replicas, noted.desired_replicas, noted.max_replicas)


def _grown(deployment: DeploymentState, new: ReplicaSetState, old: Sequence[ReplicaSetState]) -> int:
    """Return the new ReplicaSet's size after using what the surge allows."""
    max_added = deployment.replicas + allowances(deployment).surge - sum(each.replicas for each in (*old, new))
    return new.replicas + min(max(max_added, 0), deployment.replicas - new.replicas)


def _shrink_old(deployment: DeploymentState, new: ReplicaSetState, old: list[ReplicaSetState]) -> list[Action]:
    """Shrink the old ReplicaSets: first unhealthy pods, then as many as may be unavailable, oldest first."""
    min_available = deployment.replicas - allowances(deployment).unavailable
    max_removed = sum(each.replicas for each in (*old, new)) - min_available - (new.replicas - new.available)
    if not old or max_removed <= 0:
        return []
    ordered = oldest_first(old)
    cleaned, ended_well = _without_unhealthy(ordered, max_removed)
    # Availability is unchanged after the cleanup: statuses follow later.
    spare = new.available + sum(each.available for each in old) - min_available
    actions: list[Action] = []
    for before, after in zip(ordered, cleaned, strict=True):
        count = max(min(spare, after.replicas), 0) if ended_well else 0
        spare -= count
        if after.replicas - count != before.replicas:
            actions.append(resized(deployment, after.name, after.replicas - count))
    return actions


def _without_unhealthy(ordered: list[ReplicaSetState], most: int) -> tuple[list[ReplicaSetState], bool]:
    """Remove up to ``most`` unavailable pods from the ReplicaSets, and return whether that succeeded.

    If more are available than desired, a scale-down has not taken effect yet, and upstream gives up.
    """
    result = list(ordered)
    for index, each in enumerate(ordered):
        unhealthy = each.replicas - each.available
        if most <= 0:
            break
        if unhealthy < 0:
            return result, False
        count = min(most, unhealthy)
        most -= count
        result[index] = msgspec.structs.replace(each, replicas=each.replicas - count)
    return result, True


def _scale(
    deployment: DeploymentState,
    new: ReplicaSetState | None,
    old: Sequence[ReplicaSetState],
    active: list[ReplicaSetState],
) -> list[Action]:
    """Return the sizes after scaling: all to the only ReplicaSet with pods, otherwise in proportion to their sizes.

    Raises ``SyncError`` if the strategy's amounts are not percentages.
    """
    # The only one with pods or, if none has any, the new or the youngest one.
    only = active[0] if active else new or (oldest_first(old)[-1] if old else None)
    if only is not None and len(active) <= 1:
        return [] if only.replicas == deployment.replicas else [resized(deployment, only.name, deployment.replicas)]
    if new is not None and new.replicas == new.desired_replicas == new.available == deployment.replicas:
        return [resized(deployment, each.name, 0) for each in old if each.replicas > 0]
    return _in_proportion(deployment, active) if deployment.strategy == "RollingUpdate" else []


def _in_proportion(deployment: DeploymentState, active: list[ReplicaSetState]) -> list[Action]:
    most = deployment.replicas + allowances(deployment).surge if deployment.replicas > 0 else 0
    to_add = most - sum(each.replicas for each in active)
    # The biggest first; of equal ones the youngest grows first, and the oldest shrinks first.
    by_age = oldest_first(active)
    ordered = sorted(reversed(by_age) if to_add > 0 else by_age, key=lambda each: -each.replicas)
    sizes: list[int] = []
    added = 0
    for each in ordered:
        # How many of the remaining pods to add or remove in this ReplicaSet.
        left, share = to_add - added, 0
        if to_add and left:
            growth = _growth(deployment, each)
            share = min(growth, left) if to_add > 0 else max(growth, left)
        sizes.append(each.replicas + share)
        added += share
    if sizes and to_add != 0:
        sizes[0] = max(sizes[0] + to_add - added, 0)
    actions: list[Action] = []
    for each, size in zip(ordered, sizes, strict=True):
        action = resized(deployment, each.name, size)
        noted = (each.replicas, each.desired_replicas, each.max_replicas)
        if noted != (action.replicas, action.desired_replicas, action.max_replicas):
            actions.append(action)
    return actions


def _growth(deployment: DeploymentState, replica_set: ReplicaSetState) -> int:
    """Return by how much the ReplicaSet would grow to keep its share of the Deployment's maximum size."""
    if deployment.replicas == 0:
        return -replica_set.replicas
    before = replica_set.max_replicas or deployment.status_replicas
    if before == 0:
        return 0
    most = deployment.replicas + allowances(deployment).surge
    # A float, rounding halves away from zero, like upstream.
    return int(replica_set.replicas * most / before + 0.5) - replica_set.replicas


def allowances(deployment: DeploymentState) -> Allowances:
    """Round surges up and unavailable pods down; if both are zero, one pod may be unavailable.

    Raises ``SyncError`` for amounts that are not percentages.
    """
    if deployment.strategy != "RollingUpdate":
        return Allowances(surge=0, unavailable=0)
    replicas = deployment.replicas
    surge = scaled_value(deployment.max_surge, replicas, round_up=True)
    unavailable = scaled_value(deployment.max_unavailable, replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Allowances(surge=surge, unavailable=min(unavailable, replicas))


def oldest_first(replica_sets: Iterable[ReplicaSetState]) -> list[ReplicaSetState]:
    """Sort by creation time, then by name; those without a creation time come first."""
    return sorted(replica_sets, key=lambda each: (each.created or _BEFORE_ALL, each.name))


def resized(deployment: DeploymentState, name: str, replicas: int) -> ScaleReplicaSet:
    """Return the action that scales the ReplicaSet and updates its annotations."""
    surge = allowances(deployment).surge
    return ScaleReplicaSet(
        name=name,
        replicas=replicas,
        desired_replicas=deployment.replicas,
        max_replicas=deployment.replicas + surge,
    )


BURST = 500

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_MICROSECOND = timedelta(microseconds=1)


class ReplicaCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """A ReplicaSet's status: its active pods and, in ``terminating``, the terminating ones."""

    replicas: int = 0
    ready: int = 0
    available: int = 0
    terminating: int = 0


def reconcile_replica_set(
    replicas: int, pods: Sequence[ControlledPod], related: Sequence[ControlledPod], now: datetime
) -> list[Action]:
    """Return the actions that bring the number of active ``pods`` to ``replicas``.

    Finished and terminating pods do not count, so an evicted pod is replaced at once, during its grace period.
    ``related`` are the pods of all ReplicaSets of the same Deployment (none without a Deployment): pods on nodes with
    the most of them are deleted first.
    """
    active = active_pods(pods)
    surplus = len(active) - replicas
    if surplus < 0:
        return [CreatePods(count=min(-surplus, BURST))]
    count = min(surplus, BURST)
    first = in_ranked_deletion_order(active, related, now)[:count] if 0 < count < len(active) else active[:count]
    return [DeletePod(pod.name, "scale-down") for pod in first]


def count_replicas(pods: Sequence[ControlledPod], min_ready_seconds: int, now: datetime) -> ReplicaCounts:
    """Return the status of a ReplicaSet with ``pods``; a pod is available after ``min_ready_seconds``."""
    active = active_pods(pods)
    return ReplicaCounts(
        replicas=len(active),
        ready=sum(pod.is_ready for pod in active),
        available=sum(pod.is_available(min_ready_seconds, now) for pod in active),
        terminating=sum(pod.is_terminating and not pod.has_finished for pod in pods),
    )


def in_deletion_order(pods: Iterable[ControlledPod]) -> list[ControlledPod]:
    """Sort ``pods`` in deletion order, by the plain rules that Jobs use."""
    return sorted(pods, key=cmp_to_key(_compare_plainly))


def in_ranked_deletion_order(
    pods: Sequence[ControlledPod], related: Iterable[ControlledPod], now: datetime
) -> list[ControlledPod]:
    """Sort ``pods`` in deletion order, by the rules of ReplicaSets.

    ``related`` are the pods of all ReplicaSets of one Deployment: pods on nodes with more of these active are deleted
    first. Ages are compared by powers of two, and equal ones by uid, which is effectively random.
    """
    on_node = Counter(pod.node_name for pod in related if pod.is_active)

    def compare(left: ControlledPod, right: ControlledPod) -> int:
        return (
            _compare_progress(left, right)
            or left.deletion_cost - right.deletion_cost
            or on_node[right.node_name] - on_node[left.node_name]
            or (_compare_ages(left.ready_since, right.ready_since, left, right, now) if left.is_ready else 0)
            or right.restarts - left.restarts
            or right.sidecar_restarts - left.sidecar_restarts
            or _compare_ages(left.created, right.created, left, right, now)
        )

    return sorted(pods, key=cmp_to_key(compare))


def _compare_plainly(left: ControlledPod, right: ControlledPod) -> int:
    return (
        _compare_progress(left, right)
        or (_compare_times(left.ready_since, right.ready_since) if left.is_ready else 0)
        or right.restarts - left.restarts
        or right.sidecar_restarts - left.sidecar_restarts
        or _compare_times(left.created, right.created)
    )


def _compare_progress(left: ControlledPod, right: ControlledPod) -> int:
    """Order unassigned before assigned, earlier phases before later ones, not ready before ready."""
    return (
        bool(left.node_name) - bool(right.node_name)
        or _PHASES.get(left.phase, 0) - _PHASES.get(right.phase, 0)
        or left.is_ready - right.is_ready
    )


def _compare_times(left: datetime | None, right: datetime | None) -> int:
    """Order missing times first, then later before earlier."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    return (left < right) - (left > right)


def _compare_ages(
    left: datetime | None, right: datetime | None, left_pod: ControlledPod, right_pod: ControlledPod, now: datetime
) -> int:
    """Order missing times first, then younger by powers of two, then by uid; 0 only for equal times or uids."""
    if left is None or right is None or left == right:
        return _compare_times(left, right)
    ranks = _magnitude(now - left) - _magnitude(now - right)
    return ranks or (left_pod.uid > right_pod.uid) - (left_pod.uid < right_pod.uid)


def _magnitude(age: timedelta) -> int:
    nanoseconds = age // _MICROSECOND * 1000
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1
