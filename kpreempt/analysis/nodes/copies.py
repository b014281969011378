"""The kinds of nodes in a cluster, and copies of nodes as new nodes.

Nodes of one kind have the same allocatable resources, labels and taints. The filters on a new node show which kinds
could take a pod, cheaply and before any verdict: new nodes are evaluated in a cluster that has no others. Constraints
that involve other nodes and their pods, such as spreading and pod affinity, are left to the verdict that verifies it.

A copy has the allocatable resources, labels and taints of its original, but not what is specific to it: cordons,
condition taints, images, annotations. It gets the pods that belong to a node: DaemonSet pods and static pods. Which
DaemonSets run there follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/daemon`` as far as pods show their template:
the controller replaces the required node affinity with the pod's own node. So the pods of an existing node show which
DaemonSets its copies get; for other nodes the affinity is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count, islice
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.remedies.excluded import CONTROL_PLANE, is_set_by_controller
from kpreempt.model.affinity import tied_node_of, tied_to
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import ResourceSlice
from kpreempt.model.meta import AnnotatedMeta, ObjectMeta, controller_of, grouped, replace_in
from kpreempt.model.node import MACHINE_LABELS, Node, NodeCondition, NodeSpec
from kpreempt.model.pod import Pod, PodMeta, PodStatus
from kpreempt.model.storage import CSINode
from kpreempt.model.taints import Taint
from kpreempt.schedulers.kube.framework.resources import requests_in_units
from kpreempt.verdict import Assumption
from kpreempt.verdict.node_report import NodeKind
from kpreempt.verdict.unread import unreadable_of

HOST_NAME = "kubernetes.io/hostname"
# The last parts of label keys whose value is the node's name.
_OF_HOST = frozenset({"hostname", "host", "node", "nodename", "node-name"})
# The maximum length of a label value; the host name is one.
_LONGEST_NAME = 63


class Added(msgspec.Struct, frozen=True):
    """New nodes with the objects that belong to them, and the resulting assumptions."""

    nodes: list[Node] = []
    pods: list[Pod] = []
    csi_nodes: list[CSINode] = []
    resource_slices: list[ResourceSlice] = []
    assumptions: list[Assumption] = []

    def __add__(self, other: Added) -> Added:
        """Concatenate two additions."""
        fields = self.__struct_fields__
        return Added(**{name: [*getattr(self, name), *getattr(other, name)] for name in fields})


class DaemonPods(NamedTuple):
    """The pods of a DaemonSet: the ``newest`` one, which shows its template, and all of them by node.

    With ``requires_more``, there are nodes on which they could run and do not: the template requires more than its pods
    show, because the controller replaces the required node affinity.
    """

    newest: Pod | None = None
    by_node: Mapping[str, Pod] = {}
    requires_more: bool = False


def with_nodes(cluster: ClusterSnapshot, added: Added) -> ClusterSnapshot:
    """The cluster with the new nodes after the existing ones."""
    changes = {name: getattr(added, name) for name in ("nodes", "pods", "csi_nodes", "resource_slices")}
    return msgspec.structs.replace(
        cluster, **{name: [*getattr(cluster, name), *items] for name, items in changes.items() if items}
    )


class Copier:
    """Creates nodes for a cluster, each with a new name."""

    def __init__(self, cluster: ClusterSnapshot, *, now: datetime, taken: Iterable[str] = ()) -> None:
        """``now`` is when the nodes and their pods are created.

        ``taken`` are the names of other nodes that will be added.
        """
        self._cluster, self._now = cluster, now
        self._taken = {*(node.name for node in cluster.nodes), *taken}
        self._by_node: dict[str, list[Pod]] | None = None

    def like(self, node: Node, number: int) -> Added:
        """Copies of a node in the cluster."""
        pods = _without_duplicates(self._pods_of_nodes().get(node.name, ()))
        csi_nodes = [each for each in self._cluster.csi_nodes if each.metadata.name == node.name]
        slices = [each for each in self._cluster.resource_slices if each.spec.node_name == node.name]
        assumptions = unreadable_of(self._cluster, ["DaemonSet"])
        if any(device.node_name == node.name for each in self._cluster.resource_slices for device in each.spec.devices):
            message = "devices that are shared by some nodes are not counted for new nodes"
            assumptions.append(Assumption(f"Node {node.name}", "ResourceSlice", message))
        return self._create(node, self._names(node.name, number), pods, csi_nodes, slices, assumptions)

    def of_pattern(self, node: Node, number: int, *, keeps_name: bool = False, known: Added | None = None) -> Added:
        """Copies of a node that is not in the cluster; with ``keeps_name``, the first one keeps its name.

        ``known`` has other objects of the original. DaemonSets are derived from their pods on other nodes.
        """
        known = known or Added()
        pods, assumptions = self._daemon_pods_for(node)
        names = self._names(node.name, number, first=node.name if keeps_name else "")
        return self._create(node, names, pods, known.csi_nodes, known.resource_slices, assumptions)

    def _names(self, base: str, number: int, first: str = "") -> list[str]:
        found = [first] if first else []
        stem = base[: _LONGEST_NAME - len("-new-0000")].rstrip("-.")
        free = (name for each in count(1) if (name := f"{stem}-new-{each}") not in self._taken)
        found += islice(free, number - len(found))
        self._taken.update(found)
        return found

    def _create(
        self,
        pattern: Node,
        names: Sequence[str],
        pods: Sequence[Pod],
        csi_nodes: Sequence[CSINode],
        slices: Sequence[ResourceSlice],
        assumptions: Sequence[Assumption],
    ) -> Added:
        nodes = [_copy(pattern, name) for name in names]
        with_devices = [pod for pod in pods if pod.spec.resource_claims]
        if with_devices:
            message = f"the devices of {with_devices[0].key} are not allocated on new nodes"
            assumptions = [*assumptions, Assumption(f"Pod {with_devices[0].key}", "spec.resourceClaims", message)]
        running = [(pod, node) for node in nodes for pod in pods if not pod.spec.node_selector or may_run(pod, node)]
        return Added(
            nodes,
            [self._pod_for(pod, pattern.name, node.name) for pod, node in running],
            [
                CSINode(
                    metadata=AnnotatedMeta(name=name, annotations=each.metadata.annotations),
                    spec=msgspec.structs.replace(
                        each.spec,
                        drivers=[msgspec.structs.replace(driver, node_id=name) for driver in each.spec.drivers],
                    ),
                )
                for name in names
                for each in csi_nodes
            ],
            [_slice(each, pattern.name, name) for name in names for each in slices],
            list(assumptions),
        )

    def _pods_of_nodes(self) -> dict[str, list[Pod]]:
        """The pods that belong to a node or are created for it, by node."""
        if self._by_node is None:
            self._by_node = {}
            # Replicas share their list of owners, so each list is evaluated once.
            is_daemon: dict[int, bool] = {}
            for pod in self._cluster.pods:
                key = id(pod.metadata.owner_references)
                if key not in is_daemon:
                    owner = controller_of(pod.metadata)
                    is_daemon[key] = owner is not None and owner.kind in ("DaemonSet", "Node")
                if not is_daemon[key] or (pod.is_terminal or pod.metadata.deletion_timestamp is not None):
                    continue
                if node := pod.spec.node_name or tied_node_of(pod.spec.affinity):
                    self._by_node.setdefault(node, []).append(pod)
        return self._by_node

    def daemon_sets(self) -> dict[str, DaemonPods]:
        """The DaemonSets of the cluster (``DaemonSet kube-system/proxy``); those without pods come last."""
        newest: dict[str, Pod] = {}
        pods_of: dict[str, dict[str, Pod]] = {}
        for name, pods in self._pods_of_nodes().items():
            for pod in pods:
                owner = controller_of(pod.metadata)
                if owner is not None and owner.kind == "DaemonSet":
                    key = f"DaemonSet {pod.metadata.namespace}/{owner.name}"
                    pods_of.setdefault(key, {})[name] = pod
                    newest[key] = max(
                        newest.get(key, pod),
                        pod,
                        key=lambda each: (each.metadata.creation_timestamp or self._now, each.metadata.name),
                    )
        known = {f"DaemonSet {each.metadata.namespace}/{each.metadata.name}" for each in self._cluster.daemon_sets}
        found = {}
        for key, pod in newest.items():
            own = pods_of[key]
            requires_more = any(each.name not in own and may_run(pod, each) for each in self._cluster.nodes)
            found[key] = DaemonPods(pod, own, requires_more=requires_more)
        return {**found, **{key: DaemonPods() for key in sorted(known - newest.keys())}}

    def _daemon_pods_for(self, node: Node) -> tuple[list[Pod], list[Assumption]]:
        """A pod of each DaemonSet that runs on the node, as far as their pods on other nodes show."""
        assumptions = unreadable_of(self._cluster, ["DaemonSet"])
        found = []
        for name, daemon_set in self.daemon_sets().items():
            pod = daemon_set.newest
            if pod is None:
                message = f"has no pod in the cluster, so its pod on {node.name} is unknown"
                assumptions.append(Assumption(name, "spec.template", message))
                continue
            if not may_run(pod, node):
                continue
            found.append(pod)
            if daemon_set.requires_more:
                message = f"it is unknown whether its node affinity matches {node.name}; assumed to run there"
                assumptions.append(Assumption(name, "spec.template.spec.affinity", message))
        return found, assumptions

    def _pod_for(self, pod: Pod, old: str, new: str) -> Pod:
        """The counterpart of this pod for the new node."""
        owner = controller_of(pod.metadata)
        is_static = owner is not None and owner.kind == "Node"
        own = pod.metadata.name
        if owner is not None:
            own = f"{own.removesuffix(f'-{old}')}-{new}" if is_static else f"{owner.name}-{new}"
        metadata = PodMeta(
            name=own,
            namespace=pod.metadata.namespace,
            uid=f"{pod.metadata.namespace}/{own}",
            labels=pod.metadata.labels,
            owner_references=[
                msgspec.structs.replace(each, name=new, uid="") if each.kind == "Node" else each
                for each in pod.metadata.owner_references
            ],
            annotations=pod.metadata.annotations,
        )
        affinity = pod.spec.affinity if is_static else tied_to(pod.spec.affinity, new)
        spec = msgspec.structs.replace(pod.spec, node_name=new, affinity=affinity)
        return Pod(metadata=metadata, spec=spec, status=PodStatus(phase="Running", start_time=self._now))


def _copy(pattern: Node, name: str) -> Node:
    ready = [each for each in pattern.status.conditions if each.type == "Ready"]
    # Labels with the original's name or host name get the new name.
    labels = {
        key: name if _is_own(pattern, key, value) else value
        for key, value in pattern.labels.items()
        if key not in MACHINE_LABELS
    }
    return Node(
        metadata=AnnotatedMeta(name=name, labels=labels),
        spec=NodeSpec(taints=permanent_taints(pattern)),
        status=msgspec.structs.replace(
            pattern.status,
            conditions=[NodeCondition(type="Ready", status="True", reason="KubeletReady")] if ready else [],
            images=[],
        ),
    )


def permanent_taints(node: Node) -> list[Taint]:
    """The taints that a node of this kind starts with and keeps."""
    return [taint for taint in node.spec.taints if not is_set_by_controller(taint)]


def shared_labels(node: Node) -> dict[str, str]:
    """The labels that other nodes may share."""
    return {
        key: value for key, value in node.labels.items() if key not in MACHINE_LABELS and not _is_own(node, key, value)
    }


def _is_own(node: Node, key: str, value: str) -> bool:
    """Whether a label identifies the node: its host name, or a driver's label with that value."""
    names = (node.name, node.labels.get(HOST_NAME))
    return key == HOST_NAME or (value in names and key.rpartition("/")[2] in _OF_HOST)


def _without_duplicates(pods: Iterable[Pod]) -> list[Pod]:
    """One pod of each DaemonSet, and all static pods."""
    found: dict[tuple[str, ...], Pod] = {}
    for pod in pods:
        owner = controller_of(pod.metadata)
        is_daemon = owner is not None and owner.kind == "DaemonSet"
        name = owner.name if owner is not None and is_daemon else pod.metadata.name
        found.setdefault((pod.metadata.namespace, str(is_daemon), name), pod)
    return list(found.values())


def may_run(pod: Pod, node: Node, *, is_running: bool = False) -> bool:
    """Whether the controller would create the pod for the node, as far as the pod shows its template.

    If it ``is_running`` there, whether the controller would keep it.
    """
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind != "DaemonSet":
        return True
    from kpreempt.admission.daemon_sets import daemon_nodes  # noqa: PLC0415 - rarely needed

    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        untied = msgspec.structs.replace(affinity.node_affinity, required=None)
        affinity = msgspec.structs.replace(affinity, node_affinity=untied)
    [found] = daemon_nodes(replace_in(pod, "spec", node_name="", affinity=affinity), [node])
    return found.may_stay if is_running else found.should_run


def _slice(each: ResourceSlice, old: str, new: str) -> ResourceSlice:
    """The node's own devices; their pools are usually named after the node."""
    name = each.spec.pool.name
    pool = msgspec.structs.replace(each.spec.pool, name=new if name == old else f"{name}-{new}")
    spec = msgspec.structs.replace(each.spec, node_name=new, pool=pool)
    return msgspec.structs.replace(each, metadata=ObjectMeta(name=f"{each.metadata.name}-{new}"), spec=spec)


_CPU, _MEMORY, _PODS = "cpu", "memory", "pods"
# The memory of machines of one type differs slightly, so only this many leading bits count.
_BITS = 6
_COMMON_RESOURCES = (_CPU, _MEMORY, _PODS, "ephemeral-storage")
# The maximum number of kinds.
MAX_KINDS = 40
# Plugins and predicates that also consider pods on other nodes, in all versions.
_OF_MANY_NODES = frozenset(
    {
        *("InterPodAffinity", "PodTopologySpread", "MatchInterPodAffinity", "EvenPodsSpread"),
        *("CheckServiceAffinity", "ServiceAffinity"),
    }
)


class Kind(msgspec.Struct, frozen=True):
    """Nodes that are alike; ``like`` is an example, a schedulable one if possible.

    ``allocatable`` is that node's, in milli-CPU, bytes and units.
    """

    like: Node
    number: int
    allocatable: dict[str, int]


def kinds_of(cluster: ClusterSnapshot) -> list[Kind]:
    """The kinds of the cluster's nodes, the smallest first: by number of device types, then CPU, then memory.

    Control plane nodes are left out if there are others. Zones distinguish kinds, because they can matter.
    """
    kinds = []
    for nodes in grouped(cluster.nodes, _kind_key).values():
        like = min(
            nodes, key=lambda node: (node.spec.unschedulable, len(node.spec.taints) - len(permanent_taints(node)))
        )
        kinds.append(Kind(like, len(nodes), allocatable_of(like)))
    workers = [kind for kind in kinds if not any(label in kind.like.labels for label in CONTROL_PLANE)]
    return sorted(workers or kinds, key=_size)


def _kind_key(node: Node) -> object:
    amounts = []
    for name, amount in sorted(allocatable_of(node).items()):
        shift = 0 if name in (_CPU, _PODS) else max(amount.bit_length() - _BITS, 0)
        amounts.append((name, amount + (1 << shift >> 1) >> shift << shift))
    taints = sorted((taint.key, taint.value, taint.effect) for taint in permanent_taints(node))
    features = sorted(node.status.declared_features)
    return tuple(amounts), tuple(sorted(shared_labels(node).items())), tuple(taints), tuple(features)


def allocatable_of(node: Node) -> dict[str, int]:
    """The allocatable resources of a node, in milli-CPU, bytes and units."""
    return requests_in_units({name: amount.nano for name, amount in node.status.allocatable.items()})


def _size(kind: Kind) -> tuple[int, int, int]:
    # Devices are most of a node's cost.
    devices = sum(name not in _COMMON_RESOURCES and not name.startswith("hugepages-") for name in kind.allocatable)
    return devices, kind.allocatable.get(_CPU, 0), kind.allocatable.get(_MEMORY, 0)


Requests = Mapping[str, int]


def _covers(kind: Kind, requests: Requests) -> bool:
    """Whether a node of the kind has at least what a pod requests, in the same units."""
    return all(kind.allocatable.get(resource, 0) >= amount for resource, amount in requests.items() if amount)


class Sample(NamedTuple):
    """A kind with one new node of it."""

    kind: Kind
    added: Added

    @property
    def name(self) -> str:
        """The name of the new node."""
        return self.added.nodes[0].name


class NewNodes:
    """New nodes of each kind of a cluster, prepared by the scheduler without other nodes."""

    def __init__(
        self, cluster: ClusterSnapshot, scheduler: Scheduler, *, now: datetime, requests: Iterable[Requests] = ({},)
    ) -> None:
        """``requests`` are those of the pods in question; kinds that are too small for all of them need no test."""
        kinds, all_requests = kinds_of(cluster), list(requests)
        large_enough = [kind for kind in kinds if any(_covers(kind, each) for each in all_requests)]
        self.num_kinds = len(kinds)
        self.untried = max(len(large_enough) - MAX_KINDS, 0)
        self.copier = Copier(cluster, now=now)
        self.samples = [Sample(kind, self.copier.like(kind.like, 1)) for kind in large_enough[:MAX_KINDS]]
        self._scheduler, self._cluster, self._now = scheduler, cluster, now
        self._prepared: Any = None

    def only_new(self, added: Added) -> ClusterSnapshot:
        """The cluster with only these nodes and their pods; objects that belong to no node are kept."""
        return with_nodes(msgspec.structs.replace(self._cluster, nodes=[], pods=[], csi_nodes=[]), added)

    def taking(self, pod: Pod) -> list[Sample]:
        """The kinds whose new node could take the pod, ignoring constraints on other nodes, the smallest first."""
        if self._prepared is None:
            additions = sum((sample.added for sample in self.samples), Added())
            self._prepared = self._scheduler.prepare(self.only_new(additions), now=self._now)
        found = []
        for sample in self.samples:
            evaluation = self._scheduler.describe_node(self._prepared, pod, sample.name)
            rejections = [status for status in (evaluation.pre_filter, *evaluation.filters) if status is not None]
            if not evaluation.excluded_by and all(
                each.is_success or each.plugin in _OF_MANY_NODES for each in rejections
            ):
                found.append(sample)
        return found


def informational_kind(kind: Kind) -> NodeKind:
    """The kind as a record of the result."""
    return NodeKind(kind.like.name, kind.number, kind.allocatable)


def informational_assumptions(assumptions: Sequence[Assumption]) -> list[str]:
    """Each assumption as one sentence, without duplicates."""
    return list(dict.fromkeys(f"{each.subject}: {each.field}: {each.message}" for each in assumptions))
