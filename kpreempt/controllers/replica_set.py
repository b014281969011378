"""How many pods a ReplicaSet or ReplicationController makes or deletes, and which.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/replicaset/replica_set.go`` (``manageReplicas``) and
``replica_set_utils.go`` (``calculateStatus``). A step makes or deletes at most as many pods as upstream does at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from kpreempt.controllers.actions import Action, CreatePods, DeletePod
from kpreempt.controllers.deletion_order import in_ranked_deletion_order
from kpreempt.controllers.pods import ControlledPod, active_pods

BURST = 500


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
