"""Who owns an object: its workload, the custom resource whose operator manages it, and its autoscaler.

What an operator manages is reverted when it is changed by hand, and an autoscaler resets the number of replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kpreempt.analysis.check.rollout.autoscalers import Autoscaler, autoscaler_of, is_autoscaler
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS, POD_OWNERS
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.simulation.cluster import Workloads
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in, mappings_in
from kpreempt.model.meta import ObjectMeta, controller_of
from kpreempt.model.pod import Pod

_OWNED = (
    ("ReplicaSet", "replica_sets"),
    ("ReplicationController", "replication_controllers"),
    ("Deployment", "deployments"),
    ("StatefulSet", "stateful_sets"),
    ("DaemonSet", "daemon_sets"),
    ("Job", "jobs"),
    ("PodDisruptionBudget", "pod_disruption_budgets"),
)
# Owners that are no operator's: built-in kinds, and the kubelet for static pods.
_BUILT_IN = frozenset({*CLUSTER_KINDS, *POD_OWNERS, "CronJob", "Node"})


class Owners:
    """The owners of a cluster's objects, by kind with ``namespace/name`` (``Deployment shop/api``)."""

    def __init__(self, cluster: ClusterSnapshot, documents: Iterable[Document] = ()) -> None:
        """``documents`` are plain objects; the HorizontalPodAutoscalers among them count."""
        self._workloads = Workloads(cluster)
        self._controllers = {
            f"{kind} {each.metadata.namespace}/{each.metadata.name}": owner
            for kind, field in _OWNED
            for each in getattr(cluster, field)
            if (owner := _owner(each.metadata))
        }
        documents = [*documents]
        self._controllers |= {
            describe(each): f"{owner['kind']} {mapping_in(each, 'metadata').get('namespace')}/{owner.get('name')}"
            for each in documents
            for owner in mappings_in(mapping_in(each, "metadata"), "ownerReferences")
            if owner.get("controller") and is_autoscaler(each)
        }
        found = filter(None, map(autoscaler_of, documents))
        self._autoscalers = {
            f"{kind} {namespace}/{name}": each for each in found for kind, namespace, name in [each.target]
        }

    def workload_of(self, pod: Pod) -> str:
        """The pod's workload; the Deployment, not its ReplicaSet, and the pod itself if nothing controls it."""
        return self._workloads.of(pod)

    def size_of(self, workload: str) -> int | None:
        """The number of its desired pods, ``None`` if the input lacks it."""
        return self._workloads.size_of(workload)

    def manager_of(self, name: str) -> str:
        """The custom resource (``Cluster db/pg``) that owns an object, directly or not; empty if there is none."""
        seen = set()
        while name and name not in seen:
            seen.add(name)
            name = self._controllers.get(name, "")
            if name and name.partition(" ")[0] not in _BUILT_IN:
                return name
        return ""

    def manager_of_pod(self, pod: Pod) -> str:
        """The custom resource that owns the pod, directly or not; empty if there is none."""
        owner = _owner(pod.metadata)
        is_custom = bool(owner) and owner.partition(" ")[0] not in _BUILT_IN
        return owner if is_custom else self.manager_of(owner) or self.manager_of(self.workload_of(pod))

    @property
    def autoscalers(self) -> Mapping[str, Autoscaler]:
        """The HorizontalPodAutoscalers by workload."""
        return self._autoscalers

    def autoscaler_of(self, workload: str) -> Autoscaler | None:
        """The HorizontalPodAutoscaler that sets the workload's replicas; it may itself have a manager (KEDA)."""
        return self._autoscalers.get(workload)

    def scaled_by(self, autoscaler: str) -> str:
        """The workload that a HorizontalPodAutoscaler scales; empty if there is none."""
        return next((workload for workload, each in self._autoscalers.items() if each.name == autoscaler), "")


def _owner(metadata: ObjectMeta) -> str:
    owner = controller_of(metadata)
    return f"{owner.kind} {metadata.namespace}/{owner.name}" if owner is not None else ""
