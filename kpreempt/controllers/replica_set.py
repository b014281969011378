"""How many pods a ReplicaSet or ReplicationController makes or deletes, and which.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/replicaset/replica_set.go`` (``manageReplicas``) and
``replica_set_utils.go`` (``calculateStatus``), and for which pods go first ``pkg/controller/controller_utils.go``
(``ActivePods``, ``ActivePodsWithRanks``). A step makes or deletes at most as many pods as upstream does at a time.
Departure: pods that no rule tells apart stay in the order in which they come, where upstream's depends on its cache.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key

import msgspec

from kpreempt.controllers.actions import Action, ControlledPod, CreatePods, DeletePod, active_pods

BURST = 500

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_MICROSECOND = timedelta(microseconds=1)


class ReplicaCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a ReplicaSet's status says of its active pods, and, in ``terminating``, of those on their way out."""

    replicas: int = 0
    ready: int = 0
    available: int = 0
    terminating: int = 0


def reconcile_replica_set(
    replicas: int, pods: Sequence[ControlledPod], related: Sequence[ControlledPod], now: datetime
) -> list[Action]:
    """What is done so that ``replicas`` of the set's ``pods`` are active.

    Pods that have finished or were told to end do not count, so that an evicted pod is replaced at once, while it still
    has its grace period. ``related`` are the pods of all ReplicaSets of the same Deployment, and none where there is no
    Deployment: of pods on the same node it deletes the most crowded first.
    """
    active = active_pods(pods)
    surplus = len(active) - replicas
    if surplus < 0:
        return [CreatePods(count=min(-surplus, BURST))]
    count = min(surplus, BURST)
    first = in_ranked_deletion_order(active, related, now)[:count] if 0 < count < len(active) else active[:count]
    return [DeletePod(pod.name, "scale-down") for pod in first]


def count_replicas(pods: Sequence[ControlledPod], min_ready_seconds: int, now: datetime) -> ReplicaCounts:
    """The status of a ReplicaSet with ``pods``; a pod is available once it has been ready for ``min_ready_seconds``."""
    active = active_pods(pods)
    return ReplicaCounts(
        replicas=len(active),
        ready=sum(pod.is_ready for pod in active),
        available=sum(pod.is_available(min_ready_seconds, now) for pod in active),
        terminating=sum(pod.is_terminating and not pod.has_finished for pod in pods),
    )


def in_deletion_order(pods: Iterable[ControlledPod]) -> list[ControlledPod]:
    """``pods``, of which the first go first, by the plain rules that Jobs use."""
    return sorted(pods, key=cmp_to_key(_compare_plainly))


def in_ranked_deletion_order(
    pods: Sequence[ControlledPod], related: Iterable[ControlledPod], now: datetime
) -> list[ControlledPod]:
    """``pods``, of which the first go first, by the rules of ReplicaSets.

    ``related`` are the pods of all ReplicaSets of one Deployment: a pod goes the earlier the more of them are active on
    its node. Ages count by powers of two, so that equal ones are told apart by uid, which is as good as chance.
    """
    on_node = Counter(pod.node_name for pod in related if pod.is_active)

    def compare(left: ControlledPod, right: ControlledPod) -> int:
        return (
            _compare_progress(left, right)
            or left.deletion_cost - right.deletion_cost
            or on_node[right.node_name] - on_node[left.node_name]
            or (_compare_ages(left.ready_since, right.ready_since, left, right, now) if left.is_ready else 0)
            or _compare_restarts(left, right)
            or _compare_ages(left.created, right.created, left, right, now)
        )

    return sorted(pods, key=cmp_to_key(compare))


def _compare_plainly(left: ControlledPod, right: ControlledPod) -> int:
    return (
        _compare_progress(left, right)
        or (_compare_times(left.ready_since, right.ready_since) if left.is_ready else 0)
        or _compare_restarts(left, right)
        or _compare_times(left.created, right.created)
    )


def _compare_progress(left: ControlledPod, right: ControlledPod) -> int:
    """Unassigned before assigned, earlier phases before later ones, not ready before ready."""
    return (
        bool(left.node_name) - bool(right.node_name)
        or _PHASES.get(left.phase, 0) - _PHASES.get(right.phase, 0)
        or left.is_ready - right.is_ready
    )


def _compare_restarts(left: ControlledPod, right: ControlledPod) -> int:
    return right.restarts - left.restarts or right.sidecar_restarts - left.sidecar_restarts


def _compare_times(left: datetime | None, right: datetime | None) -> int:
    """No time before any, later before earlier."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    return (left < right) - (left > right)


def _compare_ages(
    left: datetime | None, right: datetime | None, left_pod: ControlledPod, right_pod: ControlledPod, now: datetime
) -> int:
    """No time before any, younger before older by powers of two, then by uid; 0 only for equal times or uids."""
    if left is None or right is None or left == right:
        return _compare_times(left, right)
    ranks = _magnitude(now - left) - _magnitude(now - right)
    return ranks or (left_pod.uid > right_pod.uid) - (left_pod.uid < right_pod.uid)


def _magnitude(age: timedelta) -> int:
    nanoseconds = age // _MICROSECOND * 1000
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1
