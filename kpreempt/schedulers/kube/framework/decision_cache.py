"""What a scheduler remembers where one cluster follows another, with other pods on a few of the nodes.

Hundreds of equal pods may come one after the other. What a plugin says of one node, or counts on it, is the same for
all of them as long as the pods of that node are. So it is remembered by the likeness of the pod and by the node with
the pods on it: a ``NodeInfo`` of a cluster is never changed, and one with other pods is another object. Nothing has to
be declared stale, and what is not known is found out as if there were no memory.

What else an answer may hang on is outside the memory: it serves one profile of one scheduler, and clusters that differ
in nothing but pods and budgets (``KubeScheduler.prepare``).
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

# Kinds of pods that are remembered: those that came last, so many of them or what is known of so many nodes.
MIN_KEYS = 8
MOST_ON_NODES = 50_000
# And those that ask the same of a node, whatever else they are.
MAX_SHAPES = 256
# Nodes of clusters before that may stay in memory besides those that are there.
MOST_OUTDATED = 100


class Changes:
    """The nodes that were other ones from one cluster to the next, by their places in the list of nodes."""

    __slots__ = ("_nodes", "_nominated", "places")

    def __init__(self) -> None:
        # Only ever longer.
        self.places: list[int] = []
        self._nodes: Sequence[NodeInfo] = ()
        self._nominated: Mapping[str, Sequence[PodInfo]] = {}

    def follow(self, cluster: ClusterState) -> None:
        """Go on to a cluster, which has the same nodes as the one before, perhaps with other pods."""
        nodes, nominated = cluster.node_infos, cluster.nominated_pods
        if nodes is self._nodes:
            return
        if cluster.nodes_before is self._nodes:
            names: Collection[str] = cluster.changed_since
        else:
            # Others were between them, of which nothing was asked.
            self.places.extend(compress(count(), map(is_not, nodes, self._nodes)))
            before = self._nominated
            others = compress(nominated, map(is_not, nominated.values(), map(before.get, nominated)))
            names = {*others, *(before.keys() - nominated.keys())}
        self.places.extend(cluster.position[name] for name in names if name in cluster.position)
        self._nodes, self._nominated = nodes, nominated


class Findings:
    """What is known about pods of one likeness, by question and node. Answers are never changed."""

    __slots__ = ("_answers", "_changes", "_given", "_kept")

    def __init__(self, changes: Changes) -> None:
        self._answers: dict[str, dict[NodeInfo, Any]] = {}
        self._given: dict[str, object] = {}
        self._changes = changes
        self._kept: dict[Hashable, Any] = {}

    def column(self, question: Hashable, size: int, make: Callable[[int, Changes], SomeColumn]) -> SomeColumn:
        """The answers of all nodes to one question, of which there are so many."""
        return self.kept(("column", question), lambda: make(size, self._changes))

    def kept(self, question: Hashable, find_out: Callable[[], Answer]) -> Answer:
        """The answer to a question that hangs on the nodes alone, and not on any pods of theirs."""
        if question not in self._kept:
            self._kept[question] = find_out()
        answer: Answer = self._kept[question]
        return answer

    def on(self, question: str, given: object = None) -> dict[NodeInfo, Any]:
        """The answers to one question, to read and to add to; none are left where something else was ``given``."""
        if self._given.get(question) != given:
            self._answers.pop(question, None)
        self._given[question] = given
        return self._answers.setdefault(question, {})

    def trim(self, nodes: Sequence[NodeInfo]) -> None:
        """Forget the nodes that are not there any more, once they are many."""
        for question, known in self._answers.items():
            if len(known) > len(nodes) + MOST_OUTDATED:
                self._answers[question] = {node_info: known[node_info] for node_info in nodes if node_info in known}


class Memory:
    """The findings about the pods that came last.

    One that comes for the first time is only noted, unless the memory ``expects_alike``: others like it.
    """

    def __init__(self, *, expects_alike: bool = False) -> None:
        self._expects_alike = expects_alike
        self._changes = Changes()
        self._max_keys = MIN_KEYS
        # Those of the cluster that was asked about last.
        self.budgets: SelectingBudgets | None = None
        # The latest last.
        self._findings: dict[bytes, Findings | None] = {}
        self._shapes: dict[bytes, Findings | None] = {}

    def follow(self, cluster: ClusterState) -> None:
        """What is asked from now on is asked about this cluster."""
        self._changes.follow(cluster)
        self._max_keys = max(MIN_KEYS, MOST_ON_NODES // max(len(cluster.node_infos), 1))

    def of(self, pod: Pod) -> Findings | None:
        """What is known about pods like this one; ``None`` where none came before, and nothing need be kept."""
        return self._latest(self._findings, equivalence_key(pod), self._max_keys)

    def of_shape(self, pod: Pod) -> Findings | None:
        """What is known about pods that ask the same of a node, for plugins in the tree that look at no more.

        ``None`` where none came before, and for pods whose volumes or claims have a part in it.
        """
        key = shape(pod)
        return self._latest(self._shapes, key, MAX_SHAPES) if key is not None else None

    def _latest(self, findings: dict[bytes, Findings | None], key: bytes, most: int) -> Findings | None:
        has_come = key in findings or self._expects_alike
        known = findings.pop(key, None)
        if has_come and known is None:
            known = Findings(self._changes)
        findings[key] = known
        if len(findings) > most:
            del findings[next(iter(findings))]
        return known

    def trim(self, nodes: Sequence[NodeInfo]) -> None:
        """Keep little of nodes other than these."""
        for known in (*self._findings.values(), *self._shapes.values()):
            if known is not None:
                known.trim(nodes)


def equivalence_key(pod: Pod) -> bytes:
    """Equal for pods that no plugin can tell apart while it filters and scores.

    Who a pod is matters where claims are named after it. Its status does not: the pod has nothing yet.
    """
    metadata, spec = pod.metadata, pod.spec
    is_named = bool(spec.resource_claims) or any(volume.ephemeral is not None for volume in spec.volumes)
    identity = (metadata.name, metadata.uid) if is_named else ()
    parts = (metadata.namespace, metadata.labels, annotations_of(pod), metadata.owner_references, identity, spec)
    return msgspec.json.encode(parts, enc_hook=str)


def shape(pod: Pod) -> bytes | None:
    """Equal for pods that no plugin in the tree can tell apart on a node by itself, but for their images.

    ``None`` where more has a part in it: what the pod's volumes or claims are.
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
    """The answer on each of ``nodes``; those that are not in ``known`` are found out, in their order, and put there."""
    with suppress(KeyError):
        return list(map(known.__getitem__, nodes))
    for node_info in nodes:
        if node_info not in known:
            known[node_info] = find_out(node_info)
    return list(map(known.__getitem__, nodes))
