"""The kinds of nodes that a cluster has, those that are alike in what they offer, in labels and in taints.

Which of them could take a pod a new node's own filters say, cheaply and before any verdict: new nodes are looked at in
a cluster where only they are. What other nodes and their pods have to say, about spreading and about the company of
pods, is left to the verdict that proves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.nodes.copies import Added, Copier, lasting_taints, shared_labels, with_nodes
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.resources import requests_in_units
from kpreempt.verdict import Assumption
from kpreempt.verdict.story import NodeKind

_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_CPU, _MEMORY, _PODS = "cpu", "memory", "pods"
# Machines of one type differ by a little in what their kernels leave of bytes; so many leading bits count.
_BITS = 6
_USUAL = (_CPU, _MEMORY, _PODS, "ephemeral-storage")
# More kinds than this are not looked at.
MOST_KINDS = 40
# Who looks at pods of other nodes, too, in the words of all versions.
_OF_MANY_NODES = frozenset(
    {
        *("InterPodAffinity", "PodTopologySpread", "MatchInterPodAffinity", "EvenPodsSpread"),
        *("CheckServiceAffinity", "ServiceAffinity"),
    }
)


class Kind(msgspec.Struct, frozen=True):
    """Nodes that are alike, of which ``like`` is one that is open to pods if any is.

    ``allocatable`` is that node's, in milli-CPU, bytes and units.
    """

    like: Node
    number: int
    allocatable: dict[str, int]


def kinds_of(cluster: ClusterSnapshot) -> list[Kind]:
    """The kinds of the cluster's nodes, the smallest first: with fewer kinds of devices, then less CPU, then memory.

    Nodes of the control plane are left out where there are others. Zones tell kinds apart, as they may decide.
    """
    groups: dict[object, list[Node]] = {}
    for node in cluster.nodes:
        groups.setdefault(_likeness(node), []).append(node)
    kinds = [_kind(nodes) for nodes in groups.values()]
    workers = [kind for kind in kinds if not any(label in kind.like.labels for label in _CONTROL_PLANE)]
    return sorted(workers or kinds, key=_size)


def _kind(nodes: list[Node]) -> Kind:
    like = min(nodes, key=lambda node: (node.spec.unschedulable, len(node.spec.taints) - len(lasting_taints(node))))
    return Kind(like, len(nodes), _allocatable(like))


def _likeness(node: Node) -> object:
    amounts = sorted((name, _roughly(name, amount)) for name, amount in _allocatable(node).items())
    taints = sorted((taint.key, taint.value, taint.effect) for taint in lasting_taints(node))
    features = sorted(node.status.declared_features)
    return tuple(amounts), tuple(sorted(shared_labels(node).items())), tuple(taints), tuple(features)


def _allocatable(node: Node) -> dict[str, int]:
    return requests_in_units({name: amount.nano for name, amount in node.status.allocatable.items()})


def _roughly(name: str, amount: int) -> int:
    if name in (_CPU, _PODS):
        return amount
    shift = max(amount.bit_length() - _BITS, 0)
    return amount + (1 << shift >> 1) >> shift << shift


def _size(kind: Kind) -> tuple[int, int, int]:
    return _devices(kind.allocatable), kind.allocatable.get(_CPU, 0), kind.allocatable.get(_MEMORY, 0)


def _devices(names: Iterable[str]) -> int:
    """How many kinds of devices there are among resources, which cost most of a node."""
    return sum(name not in _USUAL and not name.startswith("hugepages-") for name in names)


class Sample(NamedTuple):
    """A kind, and one new node of it."""

    kind: Kind
    added: Added

    @property
    def name(self) -> str:
        """The new node's."""
        return self.added.nodes[0].name


class NewNodes:
    """New nodes of each kind of a cluster, alone in a cluster that the scheduler has prepared."""

    def __init__(self, cluster: ClusterSnapshot, scheduler: Scheduler, *, now: datetime) -> None:
        kinds = kinds_of(cluster)
        self.num_kinds = len(kinds)
        self.untried = max(len(kinds) - MOST_KINDS, 0)
        self.copier = Copier(cluster, now=now)
        self.samples = [Sample(kind, self.copier.like(kind.like, 1)) for kind in kinds[:MOST_KINDS]]
        self._scheduler = scheduler
        self._cluster = cluster
        self._now = now
        self._prepared: Any = None

    def alone(self, added: Added) -> ClusterSnapshot:
        """The cluster with nothing but these nodes and their pods; what belongs to no node stays."""
        empty = msgspec.structs.replace(self._cluster, nodes=[], pods=[], csi_nodes=[])
        return with_nodes(empty, added)

    def taking(self, pod: Pod) -> list[Sample]:
        """The kinds of which nothing on a new node itself keeps the pod away, the smallest first."""
        if self._prepared is None:
            together = sum((sample.added for sample in self.samples), Added())
            self._prepared = self._scheduler.prepare(self.alone(together), now=self._now)
        return [sample for sample in self.samples if self._takes(pod, sample.name)]

    def _takes(self, pod: Pod, node_name: str) -> bool:
        told = self._scheduler.tell_node(self._prepared, pod, node_name)
        refusals = [status for status in (told.pre_filter, *told.filters) if status is not None]
        return not told.left_out_by and all(status.is_success or status.plugin in _OF_MANY_NODES for status in refusals)


def told_kind(kind: Kind) -> NodeKind:
    """The kind as it is told."""
    return NodeKind(kind.like.name, kind.number, kind.allocatable)


def told_assumptions(assumptions: Sequence[Assumption]) -> list[str]:
    """Each in a sentence, once."""
    return list(dict.fromkeys(f"{each.subject}: {each.field}: {each.message}" for each in assumptions))
