"""Which of an owner's pods go first when there are too many.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/controller_utils.go`` (``ActivePods``, ``ActivePodsWithRanks``).
Departure: pods that no rule tells
apart stay in the order in which they come, where upstream's depends on its cache.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key

from kpreempt.controllers.pods import ControlledPod

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_MICROSECOND = timedelta(microseconds=1)


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
