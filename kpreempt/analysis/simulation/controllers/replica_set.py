"""A ReplicaSet or ReplicationController that no Deployment manages."""

from __future__ import annotations

from kpreempt.analysis.simulation.client import Client
from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.analysis.simulation.controllers.naming import Maker
from kpreempt.controllers.actions import CreatePods, DeletePod
from kpreempt.controllers.pods import ControlledPod, active_pods
from kpreempt.controllers.replica_set import reconcile_replica_set


class ReplicaSetController:
    """Keeps ``replicas`` pods; another template changes none of those that there are."""

    def __init__(self, owner: OwnerKey, replicas: int, maker: Maker) -> None:
        namespace, kind, name = owner
        self.workload = f"{kind} {namespace}/{name}"
        self.owners = (owner,)
        self.wanted = replicas
        self.min_ready_seconds = 0
        self._maker = maker

    def sync(self, client: Client) -> bool:
        """``syncReplicaSet``."""
        return keep_replicas(client, self.owners[0], self.wanted, self._maker, ())

    def is_done(self, client: Client) -> bool:
        """Whether as many are ready as there should be."""
        pods = active_pods(client.controlled(client.pods_of(self.owners[0])))
        return len(pods) == self.wanted == sum(pod.is_ready for pod in pods)

    def state(self) -> object:
        return None


def keep_replicas(
    client: Client, owner: OwnerKey, replicas: int, maker: Maker, related: tuple[ControlledPod, ...]
) -> bool:
    """Make or delete as many pods as upstream does at a time until ``replicas`` are active; whether it was any."""
    pods = client.controlled(client.pods_of(owner))
    actions = reconcile_replica_set(replicas, pods, related, client.now)
    for action in actions:
        if isinstance(action, CreatePods):
            for _ in range(action.count):
                client.create(maker.make())
        elif isinstance(action, DeletePod):
            client.delete(f"{owner[0]}/{action.name}", action.reason)
    return bool(actions)
