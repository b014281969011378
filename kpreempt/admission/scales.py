"""How many pods the owners of a set of pods want to have together.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/disruption/disruption.go`` (``getExpectedScale`` and its
finders): a ReplicaSet counts as its Deployment where it has one; pods without an owner count nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import OwnerReference, controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet

_Workload = ReplicaSet | Deployment | StatefulSet | ReplicationController
_Key = tuple[str, str, str]

# Owners that have no size: upstream refuses to compute with them.
_WITHOUT_SCALE = frozenset({("apps", "DaemonSet"), ("batch", "Job"), ("batch", "CronJob"), ("", "Node"), ("", "Pod")})


class ScaleError(Exception):
    """The controller cannot tell how many pods are expected; the message says why."""


class Scales:
    """The sizes of a cluster's workloads, found by the pods that they own."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._cluster = cluster

    def expected(self, pods: Sequence[Pod]) -> tuple[int, list[str]]:
        """The sum of the sizes of all owners of ``pods``, and the names of owners whose size had to be guessed.

        Raises ``ScaleError`` for a pod whose owner has no size.
        """
        sizes: dict[_Key, int] = {}
        guessed: list[str] = []
        seen: set[_Key] = set()
        for pod in pods:
            owner = controller_of(pod.metadata)
            if owner is None:
                continue
            namespace = pod.metadata.namespace
            key = (namespace, owner.kind, owner.name)
            if key in seen:
                continue
            seen.add(key)
            if (_group(owner), owner.kind) in _WITHOUT_SCALE:
                raise ScaleError(f"pod {pod.key} belongs to {owner.kind} {owner.name}, which has no scale")
            found = self._size(namespace, owner)
            if found is None:
                guessed.append(f"{owner.kind} {namespace}/{owner.name}")
                sizes[key] = self._pods_by_owner[key]
            else:
                sizes[found[0]] = found[1]
        return sum(sizes.values()), guessed

    def _size(self, namespace: str, owner: OwnerReference) -> tuple[_Key, int] | None:
        workload = self._find((namespace, owner.kind, owner.name), owner.uid)
        if workload is None:
            return None
        above = controller_of(workload.metadata)
        if owner.kind == "ReplicaSet" and above is not None and above.kind == "Deployment":
            deployment = self._find((namespace, above.kind, above.name), above.uid)
            if deployment is not None:
                return (namespace, above.kind, above.name), _replicas(deployment)
        return (namespace, owner.kind, owner.name), _replicas(workload)

    def _find(self, key: _Key, uid: str) -> _Workload | None:
        workload = self._workloads.get(key)
        return workload if workload is not None and workload.metadata.uid == uid else None

    @cached_property
    def _workloads(self) -> dict[_Key, _Workload]:
        cluster = self._cluster
        kinds: tuple[tuple[str, Iterable[_Workload]], ...] = (
            ("ReplicaSet", cluster.replica_sets),
            ("Deployment", cluster.deployments),
            ("StatefulSet", cluster.stateful_sets),
            ("ReplicationController", cluster.replication_controllers),
        )
        return {(each.metadata.namespace, kind, each.metadata.name): each for kind, group in kinds for each in group}

    @cached_property
    def _pods_by_owner(self) -> Counter[_Key]:
        owners = ((pod.metadata.namespace, controller_of(pod.metadata)) for pod in self._cluster.pods)
        return Counter((namespace, owner.kind, owner.name) for namespace, owner in owners if owner is not None)


def _group(owner: OwnerReference) -> str:
    return owner.api_version.rpartition("/")[0]


def _replicas(workload: _Workload) -> int:
    return 1 if workload.spec.replicas is None else workload.spec.replicas
