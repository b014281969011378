"""How a Deployment that is scaled, or paused, spreads its size over its ReplicaSets.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/deployment/sync.go`` (``isScalingEvent``, ``scale``) and
``util/deployment_util.go`` (``GetReplicaSetProportion``). Departure: sizes do not overflow 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.controllers.actions import Action
from kpreempt.controllers.deployment_records import (
    DeploymentState,
    ReplicaSetState,
    allowances,
    oldest_first,
    resized,
    total_replicas,
)


def is_scaling_event(deployment: DeploymentState, new: ReplicaSetState | None, old: Sequence[ReplicaSetState]) -> bool:
    """Whether a ReplicaSet with pods has noted another size of the Deployment than it has now."""
    return any(each.desired_replicas not in (None, deployment.replicas) for each in _with_pods(new, old))


def scale(deployment: DeploymentState, new: ReplicaSetState | None, old: Sequence[ReplicaSetState]) -> list[Action]:
    """The sizes after scaling: all to the only ReplicaSet with pods, or else in proportion to their sizes.

    Raises ``SyncError`` where the strategy's amounts are no percentages.
    """
    only = _only_or_latest(new, old)
    if only is not None:
        if only.replicas == deployment.replicas:
            return []
        return [resized(deployment, only.name, deployment.replicas)]
    if _is_saturated(deployment, new):
        return [resized(deployment, each.name, 0) for each in old if each.replicas > 0]
    if deployment.strategy == "RollingUpdate":
        return _in_proportion(deployment, _with_pods(new, old))
    return []


def _with_pods(new: ReplicaSetState | None, old: Sequence[ReplicaSetState]) -> list[ReplicaSetState]:
    return [each for each in (*old, new) if each is not None and each.replicas > 0]


def _only_or_latest(new: ReplicaSetState | None, old: Sequence[ReplicaSetState]) -> ReplicaSetState | None:
    """The only ReplicaSet with pods, or where none has any the new or the youngest; ``None`` where several have."""
    active = _with_pods(new, old)
    if len(active) > 1:
        return None
    if active:
        return active[0]
    return new or (oldest_first(old)[-1] if old else None)


def _is_saturated(deployment: DeploymentState, new: ReplicaSetState | None) -> bool:
    return new is not None and new.replicas == new.desired_replicas == new.available == deployment.replicas


def _in_proportion(deployment: DeploymentState, active: list[ReplicaSetState]) -> list[Action]:
    most = deployment.replicas + allowances(deployment).surge if deployment.replicas > 0 else 0
    to_add = most - total_replicas(active)
    # The biggest first; of equals the youngest grow first, and the oldest shrink first.
    by_age = oldest_first(active)
    ordered = sorted(reversed(by_age) if to_add > 0 else by_age, key=lambda each: -each.replicas)
    sizes: list[int] = []
    added = 0
    for each in ordered:
        share = _share(deployment, each, to_add, added)
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


def _share(deployment: DeploymentState, replica_set: ReplicaSetState, to_add: int, added: int) -> int:
    """How many pods more, or fewer, the ReplicaSet gets of those that are still to be given out."""
    left = to_add - added
    if to_add == 0 or left == 0:
        return 0
    growth = _growth(deployment, replica_set)
    return min(growth, left) if to_add > 0 else max(growth, left)


def _growth(deployment: DeploymentState, replica_set: ReplicaSetState) -> int:
    """By how much it would grow if it kept its part of the Deployment's largest size."""
    if deployment.replicas == 0:
        return -replica_set.replicas
    before = replica_set.max_replicas or deployment.status_replicas
    if before == 0:
        return 0
    most = deployment.replicas + allowances(deployment).surge
    # A float, and halves away from zero, as upstream has it.
    return int(replica_set.replicas * most / before + 0.5) - replica_set.replicas
