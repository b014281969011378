"""Results that a scheduler caches if one cluster follows another with other pods on a few of the nodes.

Hundreds of equal pods may follow one another. A plugin's results for one node are the same for all of them as long as
the node's pods are. So they are cached by the pod's equivalence key and by the node with its pods: a ``NodeInfo`` of a
cluster is immutable, and the node with other pods is a different object. Nothing needs to be invalidated, and missing
results are computed as without a cache.

Everything else that a result may depend on stays the same: the cache serves one profile of one scheduler, and clusters
that differ only in pods and budgets (``KubeScheduler.prepare``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from itertools import compress, count
from operator import is_not
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from kpreempt.model.pod import Pod, Volume, annotations_of
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.framework.cluster_state import ClusterState

Answer = TypeVar("Answer")
SomeColumn = TypeVar("SomeColumn")

# How many kinds of pods are cached: the most recent ones, up to this number of kinds or of nodes with results.
MIN_KEYS = 8
MAX_ON_NODES = 50_000
# The same for pods with the same requirements on a node, whatever else differs.
MAX_SHAPES = 256
# How many nodes of earlier clusters may stay cached in addition to the current ones.
MAX_OUTDATED = 100
# They are counted again after this many changes.
_TRIMMED_AFTER = MAX_OUTDATED // 2
# How many nodes with the pods nominated to them are cached.
MAX_WITH_PODS = 5_000


class Changes:
    """The nodes that differed from one cluster to the next, by their positions in the list of nodes."""

    __slots__ = ("_nodes", "_nominated", "places")

    def __init__(self) -> None:
        # It only grows.
        self.places: list[int] = []
        self._nodes: Sequence[NodeInfo] = ()
        self._nominated: Mapping[str, Sequence[PodInfo]] = {}

    def follow(self, cluster: ClusterState) -> None:
        """Advance to a cluster with the same nodes as the previous one, possibly with other pods."""
        nodes, nominated = cluster.node_infos, cluster.nominated_pods
        if nodes is self._nodes:
            return
        if cluster.nodes_before is self._nodes:
            names: Collection[str] = cluster.changed_since
        else:
            # Clusters in between were not used for any decision.
            self.places.extend(compress(count(), map(is_not, nodes, self._nodes)))
            before = self._nominated
            others = compress(nominated, map(is_not, nominated.values(), map(before.get, nominated)))
            names = {*others, *(before.keys() - nominated.keys())}
        self.places.extend(cluster.position[name] for name in names if name in cluster.position)
        self._nodes, self._nominated = nodes, nominated


class PodCache:
    """Cached results for equivalent pods, by query and node. Results are immutable."""

    __slots__ = ("_answers", "_changes", "_given", "_kept")

    def __init__(self, changes: Changes) -> None:
        self._answers: dict[str, dict[NodeInfo, Any]] = {}
        self._given: dict[str, object] = {}
        self._changes = changes
        self._kept: dict[Hashable, Any] = {}

    def column(self, key: Hashable, size: int, make: Callable[[int, Changes], SomeColumn]) -> SomeColumn:
        """Return the results of all nodes for one query; ``size`` is their number."""
        return self.cached(("column", key), lambda: make(size, self._changes))

    def cached(self, key: Hashable, find_out: Callable[[], Answer]) -> Answer:
        """Return the result of a query that depends only on the nodes, not on their pods."""
        if key not in self._kept:
            self._kept[key] = find_out()
        answer: Answer = self._kept[key]
        return answer

    def on(self, key: str, given: object = None) -> dict[NodeInfo, Any]:
        """Return the results of one query, to read and add to; they are dropped if another value is ``given``."""
        if self._given.get(key) != given:
            self._answers.pop(key, None)
        self._given[key] = given
        return self._answers.setdefault(key, {})

    def trim(self, nodes: Sequence[NodeInfo]) -> None:
        """Drop nodes that no longer exist, once there are many."""
        for key, known in self._answers.items():
            if len(known) > len(nodes) + MAX_OUTDATED - _TRIMMED_AFTER:
                self._answers[key] = {node_info: known[node_info] for node_info in nodes if node_info in known}


class DecisionCache:
    """Cached results for the most recent kinds of pods.

    The first pod of a kind is only recorded, unless the cache ``expects_equivalent_pods`` ones to follow.
    """

    def __init__(self, *, expects_equivalent_pods: bool = False) -> None:
        self._expects_equivalent_pods = expects_equivalent_pods
        self._changes = Changes()
        self._max_keys = MIN_KEYS
        # How many changes there were when the results were trimmed last.
        self._trimmed_at = 0
        self._with_pods: dict[tuple[object, ...], NodeInfo] = {}
        # The nodes of the cluster used last.
        self.budgets: SelectingBudgets | None = None
        # Most recent last.
        self._findings: dict[bytes, PodCache | None] = {}
        self._shapes: dict[bytes, PodCache | None] = {}

    def follow(self, cluster: ClusterState) -> None:
        """Use this cluster from now on."""
        self._changes.follow(cluster)
        self._max_keys = max(MIN_KEYS, MAX_ON_NODES // max(len(cluster.node_infos), 1))

    def of(self, pod: Pod) -> PodCache | None:
        """Return the results for pods equivalent to this one; ``None`` if it is the first and nothing is cached."""
        return self._latest(self._findings, equivalence_key(pod), self._max_keys)

    def of_scheduling_key(self, pod: Pod) -> PodCache | None:
        """Return the results for pods with the same requirements on a node, for in-tree plugins that read no more.

        ``None`` if it is the first one, and for pods whose volumes or claims matter.
        """
        key = shape(pod)
        return self._latest(self._shapes, key, MAX_SHAPES) if key is not None else None

    def _latest(self, findings: dict[bytes, PodCache | None], key: bytes, most: int) -> PodCache | None:
        has_come = key in findings or self._expects_equivalent_pods
        known = findings.pop(key, None)
        if has_come and known is None:
            known = PodCache(self._changes)
        findings[key] = known
        if len(findings) > most:
            del findings[next(iter(findings))]
        return known

    def with_pods(self, node_info: NodeInfo, pods: Sequence[PodInfo]) -> NodeInfo:
        """Return the node of the cluster with more pods; callers must not change it."""
        key = (node_info, *pods)
        found = self._with_pods.get(key)
        if found is None:
            if len(self._with_pods) > MAX_WITH_PODS:
                self._with_pods.clear()
            found = self._with_pods[key] = node_info.snapshot()
            for info in pods:
                found.add_pod(info)
        return found

    def trim(self, nodes: Sequence[NodeInfo]) -> None:
        """Drop most of the nodes other than these, once there are many."""
        if len(self._changes.places) - self._trimmed_at < _TRIMMED_AFTER:
            return
        self._trimmed_at = len(self._changes.places)
        for known in (*self._findings.values(), *self._shapes.values()):
            if known is not None:
                known.trim(nodes)


def equivalence_key(pod: Pod) -> bytes:
    """Return a key that is equal for pods that no plugin can distinguish while it filters and scores.

    A pod's identity matters if claims are named after it. Its status does not, because the pod has none yet.
    """
    metadata, spec = pod.metadata, pod.spec
    is_named = bool(spec.resource_claims) or any(volume.ephemeral is not None for volume in spec.volumes)
    identity = (metadata.name, metadata.uid) if is_named else ()
    parts = (metadata.namespace, metadata.labels, annotations_of(pod), metadata.owner_references, identity, spec)
    return msgspec.json.encode(parts, enc_hook=str)


def shape(pod: Pod) -> bytes | None:
    """Return a key that is equal for pods that no in-tree plugin can distinguish on a node, except by their images.

    ``None`` if the pod's volumes or claims matter, too.
    """
    spec = pod.spec
    has_sources = any(each != Volume(each.name, each.empty_dir, each.host_path) for each in spec.volumes)
    if spec.resource_claims or has_sources:
        return None
    containers = [msgspec.structs.replace(each, name="", image="") for each in spec.containers]
    init_containers = [msgspec.structs.replace(each, name="", image="") for each in spec.init_containers]
    bare = msgspec.structs.replace(spec, containers=containers, init_containers=init_containers, volumes=[])
    return msgspec.json.encode(bare, enc_hook=str)


def answers_on(
    known: dict[NodeInfo, Answer],
    nodes: Sequence[NodeInfo],
    find_out: Callable[[NodeInfo], Answer],
) -> list[Answer]:
    """Return the result for each of ``nodes``; missing ones are computed in order and added to ``known``."""
    with suppress(KeyError):
        return list(map(known.__getitem__, nodes))
    for node_info in nodes:
        if node_info not in known:
            known[node_info] = find_out(node_info)
    return list(map(known.__getitem__, nodes))
