"""Which sizes a Deployment gives its ReplicaSets next.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/deployment/deployment_controller.go`` (``syncDeployment``),
``rolling.go`` and ``recreate.go``. Left out is what changes no size: the progress deadline, and the clean-up of old
ReplicaSets; and rollbacks that a client of old asks for by annotation.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.controllers.actions import Action, CreateReplicaSet
from kpreempt.controllers.deployment_records import (
    DeploymentState,
    ReplicaSetState,
    allowances,
    oldest_first,
    resized,
    total_replicas,
)
from kpreempt.controllers.deployment_scale import is_scaling_event, scale


def reconcile_deployment(
    deployment: DeploymentState, new: ReplicaSetState | None, old: Sequence[ReplicaSetState]
) -> list[Action]:
    """What the controller does next to the ReplicaSets: ``new`` has the present template, ``old`` are all others.

    Raises ``SyncError`` where the strategy's amounts are no percentages.
    """
    if deployment.paused or is_scaling_event(deployment, new, old):
        return scale(deployment, new, old)
    if deployment.strategy == "Recreate":
        return _recreate(deployment, new, old)
    return _roll(deployment, new, old)


def is_complete(deployment: DeploymentState, new: ReplicaSetState | None, old: Sequence[ReplicaSetState]) -> bool:
    """Whether the rollout has ended: all pods are of the new ReplicaSet, as many as there should be, and available."""
    every = [each for each in (*old, new) if each is not None]
    updated = new.pods if new is not None else 0
    pods, available = (sum(each.pods for each in every), sum(each.available for each in every))
    return updated == pods == available == deployment.replicas


def _recreate(deployment: DeploymentState, new: ReplicaSetState | None, old: Sequence[ReplicaSetState]) -> list[Action]:
    """Everything old goes, to its last pod, before anything new comes."""
    ending: list[Action] = [resized(deployment, each.name, 0) for each in old if each.replicas > 0]
    if ending or any(each.pods > 0 or each.unfinished > 0 for each in old):
        return ending
    if new is None:
        return [_creation(deployment, deployment.replicas)]
    return [resized(deployment, new.name, deployment.replicas)] if new.replicas != deployment.replicas else []


def _roll(deployment: DeploymentState, new: ReplicaSetState | None, old: Sequence[ReplicaSetState]) -> list[Action]:
    """First up, then down; both in one step only where the new ReplicaSet is just made."""
    actions: list[Action] = []
    if new is None:
        # Its name is the caller's affair; none of the old ones has an empty one.
        new = ReplicaSetState("")
        new = msgspec.structs.replace(new, replicas=_grown(deployment, new, old))
        actions.append(_creation(deployment, new.replicas))
    wanted = min(deployment.replicas, new.replicas)
    if new.replicas < deployment.replicas:
        wanted = _grown(deployment, new, old)
    if wanted != new.replicas:
        return [*actions, resized(deployment, new.name, wanted)]
    return [*actions, *_shrink_old(deployment, new, [each for each in old if each.replicas > 0])]


def _creation(deployment: DeploymentState, replicas: int) -> CreateReplicaSet:
    noted = resized(deployment, "", replicas)
    return CreateReplicaSet(replicas, noted.desired_replicas, noted.max_replicas)


def _grown(deployment: DeploymentState, new: ReplicaSetState, old: Sequence[ReplicaSetState]) -> int:
    """The new ReplicaSet's size once it has taken the room that the surge leaves."""
    room = deployment.replicas + allowances(deployment).surge - total_replicas((*old, new))
    return new.replicas + min(max(room, 0), deployment.replicas - new.replicas)


def _shrink_old(deployment: DeploymentState, new: ReplicaSetState, old: list[ReplicaSetState]) -> list[Action]:
    """The old ReplicaSets lose what is unhealthy, and then as much as may be missing, the oldest first."""
    least = deployment.replicas - allowances(deployment).unavailable
    most_removed = total_replicas((*old, new)) - least - (new.replicas - new.available)
    if not old or most_removed <= 0:
        return []
    ordered = oldest_first(old)
    cleaned, ended_well = _without_unhealthy(ordered, most_removed)
    # What is available is the same after the clean-up: statuses follow later.
    spare = new.available + sum(each.available for each in old) - least
    final = _reduced(cleaned, spare) if ended_well else cleaned
    return [
        resized(deployment, after.name, after.replicas)
        for before, after in zip(ordered, final, strict=True)
        if after.replicas != before.replicas
    ]


def _without_unhealthy(ordered: list[ReplicaSetState], most: int) -> tuple[list[ReplicaSetState], bool]:
    """The ReplicaSets with up to ``most`` pods fewer that are not available, and whether that went well.

    Where more are available than there should be, a smaller size has not taken effect yet, and upstream gives up.
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


def _reduced(ordered: list[ReplicaSetState], most: int) -> list[ReplicaSetState]:
    result = []
    for each in ordered:
        count = max(min(most, each.replicas), 0)
        most -= count
        result.append(msgspec.structs.replace(each, replicas=each.replicas - count))
    return result
