"""What pods belong to in the end: the workload that people know."""

from __future__ import annotations

from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.controllers.pods import deployment_told_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod


class Workloads:
    """Workloads by the names under which they are told of: ``Deployment shop/api``."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._above: dict[OwnerKey, str] = {}
        self._sizes: dict[str, int | None] = {}
        owned = [("ReplicaSet", each.metadata) for each in cluster.replica_sets]
        owned += [("Job", each.metadata) for each in cluster.jobs]
        for kind, metadata in owned:
            owner = controller_of(metadata)
            if owner is not None:
                self._above[metadata.namespace, kind, metadata.name] = f"{owner.kind} {metadata.namespace}/{owner.name}"
        for kind, objects in (
            ("ReplicaSet", cluster.replica_sets),
            ("Deployment", cluster.deployments),
            ("StatefulSet", cluster.stateful_sets),
            ("ReplicationController", cluster.replication_controllers),
        ):
            for each in objects:
                size = 1 if each.spec.replicas is None else each.spec.replicas
                self._sizes[f"{kind} {each.metadata.namespace}/{each.metadata.name}"] = size

    @property
    def above(self) -> dict[str, str]:
        """What owns what owns pods: ``Deployment shop/api`` by ``ReplicaSet shop/api-7f9c``."""
        return {f"{kind} {namespace}/{name}": above for (namespace, kind, name), above in self._above.items()}

    def of(self, pod: Pod) -> str:
        """The pod's workload; of a ReplicaSet that is not in the input, the Deployment that its name tells of."""
        owner = controller_of(pod.metadata)
        namespace = pod.metadata.namespace
        if owner is None:
            return f"Pod {pod.key}"
        above = self._above.get((namespace, owner.kind, owner.name))
        if above is not None:
            return above
        deployment = deployment_told_of(pod, owner.name) if owner.kind == "ReplicaSet" else ""
        if deployment:
            return f"Deployment {namespace}/{deployment}"
        return f"{owner.kind} {namespace}/{owner.name}"

    def size_of(self, name: str) -> int | None:
        """How many pods it should have at the start, where the input says so."""
        return self._sizes.get(name)
