"""A Deployment with its ReplicaSets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from kpreempt.analysis.simulation.client import Client
from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.analysis.simulation.controllers.naming import Maker
from kpreempt.analysis.simulation.controllers.replica_set import keep_replicas
from kpreempt.controllers.actions import CreateReplicaSet, ScaleReplicaSet
from kpreempt.controllers.deployment import is_complete, reconcile_deployment
from kpreempt.controllers.deployment_records import DeploymentState, ReplicaSetState
from kpreempt.controllers.pods import ControlledPod
from kpreempt.controllers.replica_set import count_replicas


class SimulatedReplicaSet(msgspec.Struct):
    """One of its ReplicaSets, as it is at the moment. ``exists`` is false for one that is yet to be made."""

    name: str
    maker: Maker
    replicas: int = 0
    created: datetime | None = None
    desired_replicas: int | None = None
    max_replicas: int | None = None
    min_ready_seconds: int = 0
    exists: bool = True


class DeploymentController:
    """Rolls its pods out as its strategy says. ``new`` has the present template."""

    def __init__(
        self,
        namespace: str,
        name: str,
        deployment: DeploymentState,
        new: SimulatedReplicaSet,
        old: Sequence[SimulatedReplicaSet],
    ) -> None:
        self.workload = f"Deployment {namespace}/{name}"
        self._name = name
        self.wanted = deployment.replicas
        self.min_ready_seconds = new.min_ready_seconds
        self._namespace = namespace
        self._deployment = deployment
        self._new = new
        self._sets = {each.name: each for each in (*old, new)}
        self.owners = tuple(self._owner(each.name) for each in self._sets.values())

    def sync(self, client: Client) -> bool:
        """``syncDeployment``, then ``syncReplicaSet`` of each."""
        return self._resize(client) | self._fill(client)

    def is_done(self, client: Client) -> bool:
        """Whether all pods are of the new template, as many as there should be, and available."""
        deployment, new, old = self._look(client)
        return is_complete(deployment, new, old)

    def state(self) -> object:
        """The sizes of the ReplicaSets."""
        return tuple((each.name, each.replicas) for each in self._sets.values())

    def _resize(self, client: Client) -> bool:
        actions = reconcile_deployment(*self._look(client))
        for action in actions:
            if isinstance(action, CreateReplicaSet):
                changed = self._new
                changed.exists, changed.created = True, client.now
            elif isinstance(action, ScaleReplicaSet):
                changed = self._sets[action.name]
            else:
                continue
            is_other_size = changed.replicas != action.replicas
            changed.replicas = action.replicas
            changed.desired_replicas, changed.max_replicas = action.desired_replicas, action.max_replicas
            if is_other_size:
                client.resize(f"{self._namespace}/{changed.name}", f"Deployment {self._name}", action.replicas)
        return bool(actions)

    def _fill(self, client: Client) -> bool:
        related = tuple(pod for owner in self.owners for pod in client.controlled(client.pods_of(owner)))
        did = False
        for each in self._sets.values():
            if each.exists:
                did |= keep_replicas(client, self._owner(each.name), each.replicas, each.maker, related)
        return did

    def _look(self, client: Client) -> tuple[DeploymentState, ReplicaSetState | None, list[ReplicaSetState]]:
        pods = {name: client.controlled(client.pods_of(self._owner(name))) for name in self._sets}
        states = {name: _state(each, pods[name], client.now) for name, each in self._sets.items() if each.exists}
        deployment = msgspec.structs.replace(
            self._deployment, status_replicas=sum(each.pods for each in states.values())
        )
        new = states.pop(self._new.name, None)
        return deployment, new, list(states.values())

    def _owner(self, name: str) -> OwnerKey:
        return (self._namespace, "ReplicaSet", name)


def _state(replica_set: SimulatedReplicaSet, pods: Sequence[ControlledPod], now: datetime) -> ReplicaSetState:
    counts = count_replicas(pods, replica_set.min_ready_seconds, now)
    return ReplicaSetState(
        name=replica_set.name,
        replicas=replica_set.replicas,
        pods=counts.replicas,
        available=counts.available,
        unfinished=sum(not pod.has_finished for pod in pods),
        created=replica_set.created,
        desired_replicas=replica_set.desired_replicas,
        max_replicas=replica_set.max_replicas,
    )
