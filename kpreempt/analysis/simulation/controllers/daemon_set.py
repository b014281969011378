"""A DaemonSet."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.analysis.simulation.client import Client
from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.analysis.simulation.controllers.naming import Maker
from kpreempt.controllers.actions import CreatePods, DeletePod
from kpreempt.controllers.daemon_set import DaemonNode, DaemonSetState, reconcile_daemon_set
from kpreempt.controllers.pods import REVISION_LABEL, active_pods
from kpreempt.model.affinity import tied_to


class DaemonSetController:
    """Keeps a pod on each of its nodes; the nodes do not change in a simulation."""

    def __init__(self, owner: OwnerKey, daemon_set: DaemonSetState, maker: Maker, nodes: Sequence[DaemonNode]) -> None:
        namespace, kind, name = owner
        self.workload = f"{kind} {namespace}/{name}"
        self.owners = (owner,)
        self.min_ready_seconds = daemon_set.min_ready_seconds
        self.wanted = sum(node.should_run for node in nodes)
        self._set = daemon_set
        self._maker = maker
        self._nodes = nodes

    def sync(self, client: Client) -> bool:
        """``syncDaemonSet``."""
        pods = client.controlled(client.pods_of(self.owners[0]))
        actions = reconcile_daemon_set(self._set, pods, self._nodes, client.now)
        for action in actions:
            if isinstance(action, CreatePods):
                self._create(client, action.node_name)
            elif isinstance(action, DeletePod):
                client.delete(f"{self.owners[0][0]}/{action.name}", action.reason)
        return bool(actions)

    def is_done(self, client: Client) -> bool:
        """Whether each of its nodes has one pod, which is ready and, unless pods are to stay, of the new template."""
        pods = active_pods(client.controlled(client.pods_of(self.owners[0])))
        wanted = sorted(node.name for node in self._nodes if node.should_run)
        return sorted(pod.node_name for pod in pods) == wanted and all(
            pod.is_ready and (self._set.strategy == "OnDelete" or pod.revision == self._set.revision) for pod in pods
        )

    def state(self) -> object:
        return None

    def _create(self, client: Client, node_name: str) -> None:
        pod = self._maker.make(labels={REVISION_LABEL: self._set.revision})
        affinity = tied_to(pod.spec.affinity, node_name)
        client.create(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity)))
