"""What the Deployment controller looks at, and what follows from it alone.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/deployment/util/deployment_util.go`` (``ResolveFenceposts``).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

import msgspec

from kpreempt.controllers.actions import ScaleReplicaSet
from kpreempt.controllers.int_or_percent import scaled_value

StrategyType = Literal["RollingUpdate", "Recreate"]
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


class DeploymentState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the controller looks at in a Deployment. ``status_replicas`` is how many pods its status says there are."""

    replicas: int = 1
    strategy: StrategyType = "RollingUpdate"
    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"
    paused: bool = False
    status_replicas: int = 0


class ReplicaSetState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the controller looks at in a ReplicaSet of the Deployment.

    ``replicas`` is the size it should have, ``pods`` how many active ones there are, ``available`` how many of them
    have been ready for long enough, and ``unfinished`` how many exist that have not ended, those on their way out
    included.
    ``desired_replicas`` and ``max_replicas`` are the Deployment's size, without and with the surge, as noted on it.
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
    """How many pods there may be beyond the Deployment's size, and how many of its size may be missing."""

    surge: int
    unavailable: int


def allowances(deployment: DeploymentState) -> Allowances:
    """Surges are rounded up and what may be missing down; where both come to nothing, one may be missing.

    Raises ``SyncError`` for amounts that are no percentage.
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
    """By creation, then by name; those that do not say when they were made come first."""
    return sorted(replica_sets, key=lambda each: (each.created or _BEFORE_ALL, each.name))


def total_replicas(replica_sets: Iterable[ReplicaSetState]) -> int:
    """How many pods they should have together."""
    return sum(each.replicas for each in replica_sets)


def resized(deployment: DeploymentState, name: str, replicas: int) -> ScaleReplicaSet:
    """The action that gives the ReplicaSet a size, and notes the Deployment's own on it."""
    surge = allowances(deployment).surge
    return ScaleReplicaSet(
        name=name,
        replicas=replicas,
        desired_replicas=deployment.replicas,
        max_replicas=deployment.replicas + surge,
    )
