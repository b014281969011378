"""The pods on all nodes as columns, node by node in snapshot order.

Pods are in groups of equals, so that values that depend on the group are computed once. A snapshot shares equal labels
and containers, so most pods are recognized by the identity of the shared object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import ContainerPort, Pod
from kpreempt.schedulers.equal_pods import updates_of
from kpreempt.schedulers.kube.bulk.node_amounts import Amounts, NodeAmounts
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.label_selectors import AffinityTerm
from kpreempt.schedulers.kube.framework.node_info import HostPorts, NodeInfo, PodInfo, host_ports_of
from kpreempt.schedulers.kube.framework.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PodResource,
    Resource,
    has_only_containers,
    resource_calculator,
)
from kpreempt.schedulers.kube.preemption.importance import NO_START
from kpreempt.schedulers.kube.versions import Behavior

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
_BITS = 63


def order_by(*columns: Integers) -> Integers:
    """Return the positions sorted by the columns, the first column most significant, faster than ``numpy.lexsort``.

    The sort is stable. If the columns' ranges and the positions fit into one number, that number is sorted.
    """
    size = len(columns[0])
    if not size:
        return np.zeros(0, dtype=np.int64)
    key, used = np.zeros(size, dtype=np.int64), (size - 1).bit_length()
    for column in columns:
        least = int(column.min())
        bits = (int(column.max()) - least).bit_length()
        used += bits
        if used > _BITS:
            return np.lexsort(columns[::-1])
        key = (key << bits) | (column - least)
    bits = (size - 1).bit_length()
    key = (key << bits) | np.arange(size)
    key.sort()
    order: Integers = key & ((1 << bits) - 1)
    return order


# ``numpy.unique`` loads all of ``numpy.ma``, which takes longer than a decision on a small cluster.


def distinct(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct values in ascending order."""
    ordered = np.sort(column)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def dense(column: npt.NDArray[Any]) -> Integers:
    """Return the rank of each value among the distinct values."""
    return np.searchsorted(distinct(column), column)


# For a pod that is in no group, and for one that is in none because it has no affinity at all.
NO_GROUP = -1
NO_AFFINITY = -2
# For a pod whose last update has not been read yet.
_UNREAD = -1


class Importance(NamedTuple):
    """Pods by importance: higher priority first, then earlier start.

    ``order`` has all positions, node by node, on each node the most important first, and equals in table order.
    ``rank`` gives each pod its rank, which equals share.
    """

    order: Integers
    rank: Integers


class Columns(NamedTuple):
    """What is read from each pod: priority, start, and the numbers of its groups in ``Groups``."""

    priority: Integers
    start: Floats
    labels: Integers
    resources: Integers
    anti_affinity: Integers


class PodTable:
    """Columns over the assigned pods of a cluster.

    ``node``, ``priority`` and ``start`` (seconds since the epoch, exact to the microsecond, or ``NO_START``) have a
    value for each pod in ``pods``; the pods of node n are those from ``first[n]`` up to ``first[n + 1]``.
    ``label_groups`` numbers pods with equal namespace and labels, and has one pod of each group.

    ``before`` is the table of the state that ``cluster`` was made from, or of one with other nodes. Columns of nodes
    with the same pods are copied from it, and so are the groups, some of which may be empty now. ``nodes`` are the
    nodes whose pods it has, if not all; what other nodes offer and hold is then unknown.
    """

    def __init__(
        self, cluster: ClusterState, before: PodTable | None = None, nodes: Iterable[NodeInfo] | None = None
    ) -> None:
        self.cluster = cluster
        # How many tables of a few nodes were derived from this one.
        self.num_made_from = 0
        names = [node_info.name for node_info in (cluster.node_infos if nodes is None else nodes)]
        by_node = sorted((cluster.position[name], name, cluster.pods_on(name)) for name in names)
        sizes = np.zeros(len(cluster.node_infos), dtype=np.int64)
        sizes[[place for place, _, _ in by_node]] = [len(pods) for _, _, pods in by_node]
        self.pods: list[Pod] = list(chain.from_iterable(pods for _, _, pods in by_node))
        self.first: Integers = np.concatenate(([0], np.cumsum(sizes)))
        self.node: Integers = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        follows = before is not None and cluster.has_nodes_of(before.cluster)
        self._updates: Integers = np.full(len(self.pods), _UNREAD, dtype=np.int64)
        self._allocatable: dict[str, Integers] = before._allocatable if before is not None and follows else {}
        self._groups: Groups = before._groups if before is not None else Groups(cluster.behavior)
        if before is None:
            self._take(self._read(self.pods))
        else:
            self._read_changed(before, by_node)
        if not follows:
            self._fill_requested()

    def _read(self, pods: Sequence[Pod]) -> Columns:
        """Read the columns of pods in one pass, because fetching each pod's parts from memory is slow."""
        groups = self._groups
        priorities, starts, labels, resources, anti_affinity = [], [], [], [], []
        for pod in pods:
            spec = pod.spec
            priorities.append(spec.priority or 0)
            start = pod.start
            starts.append(NO_START if start is None else start.timestamp())
            resources.append(groups.resources.number(pod))
            group = groups.labels.number(pod)
            labels.append(group)
            anti_affinity.append(NO_AFFINITY if spec.affinity is None else groups.anti_affinity.number(pod, group))
        return Columns(
            np.array(priorities, dtype=np.int64),
            np.array(starts, dtype=np.float64),
            np.array(labels, dtype=np.int64),
            np.array(resources, dtype=np.int64),
            np.array(anti_affinity, dtype=np.int64),
        )

    def _read_changed(self, before: PodTable, by_node: Sequence[tuple[int, str, Sequence[Pod]]]) -> None:
        """Copy the columns of nodes with unchanged pods from the previous table, and read those of the others.

        ``by_node`` has the position, the name and the pods of each node of this table.
        """
        position, cluster = before.cluster.position, before.cluster
        is_changed = np.zeros(len(self.first) - 1, dtype=np.bool_)
        # The position of each node in the previous table, if it has the node.
        there = np.zeros(len(self.first) - 1, dtype=np.int64)
        for index, name, pods in by_node:
            then = cluster.pods_on(name) if name in position else None
            is_changed[index] = bool(pods) and then is not pods and then != pods
            there[index] = position.get(name, 0)
        first = before.first[there]
        # The position of each pod in the previous table, if it is there; -1 if it is not.
        place = np.arange(len(self.pods), dtype=np.int64) + (first - self.first[:-1])[self.node]
        for index in np.flatnonzero(is_changed).tolist():
            begin, end = int(self.first[index]), int(self.first[index + 1])
            start = int(first[index])
            then = before.pods[start : int(before.first[there[index] + 1])]
            old = dict(zip(map(id, then), range(start, start + len(then)), strict=True))
            place[begin:end] = [old.get(id(pod), -1) for pod in self.pods[begin:end]]
        is_read = place < 0
        read = self._read([self.pods[position] for position in np.flatnonzero(is_read).tolist()])

        def merged(old: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
            column = old[place] if len(old) else np.zeros(len(self.pods), dtype=new.dtype)
            column[is_read] = new
            return column

        self._take(Columns(*map(merged, before._columns, read)))

    def _take(self, columns: Columns) -> None:
        self._columns = columns
        self.priority, self.start = columns.priority, columns.start
        self.label_groups: tuple[Integers, list[Pod]] = columns.labels, self._groups.labels.representatives

    @cached_property
    def importance(self) -> Importance:
        """Return the order of importance of pods on their node."""
        # Numbers in the order of the start times: seconds if all are whole, as they are in Kubernetes.
        has_started = self.start != NO_START
        if not has_started.any():
            whole_seconds = np.zeros(len(self.start), dtype=np.int64)
        else:
            seconds = np.where(has_started, self.start, self.start[has_started].max() + 1)
            whole = seconds.astype(np.int64)
            whole_seconds = whole if (whole == seconds).all() else dense(seconds)
        order = order_by(self.node, -dense(self.priority), whole_seconds)
        sorted_node, sorted_priority, sorted_start = self.node[order], self.priority[order], self.start[order]
        is_other = np.ones(len(order), dtype=np.bool_)
        is_other[1:] = (
            (sorted_node[1:] != sorted_node[:-1])
            | (sorted_priority[1:] != sorted_priority[:-1])
            | (sorted_start[1:] != sorted_start[:-1])
        )
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.cumsum(is_other)
        return Importance(order, rank)

    def in_likely_order(self, ordered: Integers) -> Integers:
        """Sort pods by importance, with equals in the likely order if the table's order is not the cache's.

        This is the order of ``sort_by_importance``.
        """
        if self.cluster.cluster.has_scheduler_order or not len(ordered):
            return ordered
        rank = self.importance.rank[ordered]
        is_equal = np.concatenate(([False], rank[1:] == rank[:-1], [False]))
        # The ranks of pods that have equals: consecutive for each rank.
        places = np.flatnonzero(is_equal[1:] | is_equal[:-1])
        tied = np.sort(ordered[places])
        turn = np.empty(len(tied), dtype=np.int64)
        # The result of ``update_of`` for these pods, read once.
        unread = tied[self._updates[tied] == _UNREAD]
        self._updates[unread] = updates_of([self.pods[pod].metadata.resource_version for pod in unread.tolist()])
        turn[np.argsort(self._updates[tied], kind="stable")] = np.arange(len(tied))
        if not self.cluster.behavior.reads_start_times_once:
            turn = np.where(self.start[tied] == NO_START, -turn, turn)
        result = ordered.copy()
        result[places] = tied[order_by(self.importance.rank[tied], turn)]
        return result

    def resource(self, name: str) -> Integers:
        """Return how much of a resource every pod uses: milli-CPU, bytes or units."""
        return self._amounts_of(lambda value: value.resource.amount(name))

    def _amounts_of(self, amount: Callable[[PodResource], int]) -> Integers:
        amounts = [amount(value) for value in self._groups.resources.values]
        ids = self._columns.resources
        return np.array(amounts, dtype=np.int64)[ids] if amounts else ids

    def total(self, amounts: Integers) -> Integers:
        """Return the sum of a column over the pods of every node, in snapshot order."""
        sums = np.zeros(len(amounts) + 1, dtype=np.int64)
        np.cumsum(amounts, out=sums[1:])
        return sums[self.first[1:]] - sums[self.first[:-1]]

    def allocatable(self, name: str) -> Integers:
        """Return how much of a resource every node offers to pods, in snapshot order."""
        known = self._allocatable.get(name)
        if known is None:
            amounts = [node_info.allocatable.amount(name) for node_info in self.cluster.node_infos]
            known = self._allocatable[name] = np.array(amounts, dtype=np.int64)
        return known

    def _fill_requested(self) -> None:
        """Give every node of the cluster its sum of requested resources, without reading each pod."""
        cpu, memory, storage = (self.total(self.resource(name)).tolist() for name in (CPU, MEMORY, EPHEMERAL_STORAGE))
        # Those that a pod uses, or has used.
        names = sorted({name for value in self._groups.resources.values for name in value.resource.scalar})
        others = {name: self.total(self.resource(name)).tolist() for name in names}
        non_zero_cpu = self.total(self._amounts_of(lambda value: value.non_zero_milli_cpu)).tolist()
        non_zero_memory = self.total(self._amounts_of(lambda value: value.non_zero_memory)).tolist()
        for index, node_info in enumerate(self.cluster.node_infos):
            requested = Resource()
            requested.milli_cpu, requested.memory = cpu[index], memory[index]
            requested.ephemeral_storage = storage[index]
            requested.scalar = {name: amounts[index] for name, amounts in others.items() if amounts[index]}
            node_info.requested = requested
            node_info.non_zero_milli_cpu, node_info.non_zero_memory = non_zero_cpu[index], non_zero_memory[index]

    def count_matching(self, is_match: Callable[[Pod], bool], *, skips_terminating: bool = False) -> list[int]:
        """Count each node's matching pods; ``is_match`` may read only the namespace and labels."""
        _, representatives = self.label_groups
        amounts = self.per_group([int(is_match(pod)) for pod in representatives])
        if skips_terminating:
            amounts = np.where(self._is_terminating, 0, amounts)
        counts: list[int] = self.total(amounts).tolist()
        return counts

    @cached_property
    def _is_terminating(self) -> Booleans:
        return np.array([pod.metadata.deletion_timestamp is not None for pod in self.pods], dtype=np.bool_)

    def selected_pods(self, namespace: str, selector: LabelSelector) -> dict[str, int]:
        """Do the same as ``ClusterState.selected_pods``."""
        counts = self.count_matching(
            lambda pod: pod.metadata.namespace == namespace and selector.matches(pod.metadata.labels),
            skips_terminating=True,
        )
        return {each.name: count for each, count in zip(self.cluster.node_infos, counts, strict=True) if count}

    @cached_property
    def nodes_with_affinity(self) -> list[NodeInfo]:
        """Return the nodes with pods that have any affinity, to nodes or to pods."""
        counts = self.total((self._columns.anti_affinity != NO_AFFINITY).astype(np.int64)).tolist()
        return list(compress(self.cluster.node_infos, counts))

    def count_anti_affinity(self, is_match: Callable[[AffinityTerm], bool]) -> dict[str, Integers]:
        """Return by topology key how many matching terms of required anti-affinity each pod has; no key without any."""
        representatives = self._groups.anti_affinity.representatives
        positions = np.flatnonzero(self._columns.anti_affinity >= 0)
        numbers = self._columns.anti_affinity[positions]
        by_key: dict[str, Integers] = {}
        for number in distinct(numbers).tolist():
            for term in PodInfo(representatives[number], self.cluster.behavior).required_anti_affinity_terms:
                if is_match(term):
                    counts = by_key.setdefault(term.topology_key, np.zeros(len(representatives), dtype=np.int64))
                    counts[number] += 1
        result = {}
        for key, counts in by_key.items():
            result[key] = np.zeros(len(self.pods), dtype=np.int64)
            result[key][positions] = counts[numbers]
        return result

    @cached_property
    def port_holders(self) -> dict[NodeInfo, list[PodInfo]]:
        """Return the pods that use host ports, by node; as a side effect, every node of the cluster gets its ports."""
        ids, held = self._host_ports
        node_infos = self.cluster.node_infos
        holders: dict[NodeInfo, list[PodInfo]] = {node_info: [] for node_info in node_infos}
        used = [HostPorts() for _ in node_infos]
        positions = np.flatnonzero(ids != NO_GROUP)
        for position, node, number in zip(
            positions.tolist(), self.node[positions].tolist(), ids[positions].tolist(), strict=True
        ):
            holders[node_infos[node]].append(PodInfo(self.pods[position], self.cluster.behavior))
            for port in held[number]:
                used[node].add(port.host_ip, port.protocol, port.host_port)
        for node_info, ports in zip(node_infos, used, strict=True):
            node_info.used_ports = ports
        return holders

    def per_host_ports(self, amount: Callable[[list[ContainerPort]], int]) -> Integers:
        """Return a column of ``amount`` applied to the host ports of each pod."""
        ids, held = self._host_ports
        return np.array([0, *map(amount, held)], dtype=np.int64)[ids + 1]

    @cached_property
    def _host_ports(self) -> tuple[Integers, list[list[ContainerPort]]]:
        """The number of each pod's group in ``Groups.ports``, and these groups. Few queries involve ports."""
        ports = self._groups.ports
        return np.array(list(map(ports.number, self.pods)), dtype=np.int64), ports.values

    def per_group(self, amounts: list[int]) -> Integers:
        """Expand one amount per group of ``label_groups`` to a column."""
        ids, _ = self.label_groups
        return np.array(amounts, dtype=np.int64)[ids] if amounts else ids


class LabelGroups:
    """Pods with equal namespace and labels; ``representatives`` has one of each group."""

    def __init__(self) -> None:
        self.representatives: list[Pod] = []
        # By the identity of labels: the namespace in which they were last seen, and the group.
        self._last: dict[int, tuple[str, int]] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        # Objects known by their identity must stay alive.
        self._kept: list[object] = []

    def number(self, pod: Pod) -> int:
        """Return the number of the pod's group."""
        metadata = pod.metadata
        labels, namespace = metadata.labels, metadata.namespace
        last = self._last.get(id(labels))
        if last is not None and last[0] == namespace:
            return last[1]
        # Equal labels in another order form another group, which costs little and is harmless.
        number = self._numbers.setdefault((namespace, *labels.items()), len(self._numbers))
        if number == len(self.representatives):
            self.representatives.append(pod)
        if last is None:
            self._kept.append(labels)
        self._last[id(labels)] = namespace, number
        return number


class ResourceGroups:
    """Pods that use the same resources; ``values`` has what the pods of each group use."""

    def __init__(self, behavior: Behavior) -> None:
        self.values: list[PodResource] = []
        self._calculate = resource_calculator(behavior).of
        self._by_containers: dict[int, int] = {}
        self._by_value: dict[int, int] = {}
        # Objects known by their identity must stay alive; ``values`` holds the others.
        self._kept: list[object] = []

    def number(self, pod: Pod) -> int:
        """Return the number of the pod's group."""
        is_plain = has_only_containers(pod)
        known = self._by_containers.get(id(pod.spec.containers)) if is_plain else None
        if known is not None:
            return known
        value = self._calculate(pod)
        number = self._by_value.setdefault(id(value), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        if is_plain:
            self._kept.append(pod.spec.containers)
            self._by_containers[id(pod.spec.containers)] = number
        return number


class PortGroups:
    """Pods that share their containers use the same host ports; ``values`` has those of each group."""

    def __init__(self, behavior: Behavior) -> None:
        self.values: list[list[ContainerPort]] = []
        self._counts_sidecars = behavior.counts_ports_of_sidecars
        self._by_containers: dict[tuple[int, int], int] = {}
        # Objects known by their identity must stay alive.
        self._kept: list[object] = []

    def number(self, pod: Pod) -> int:
        """Return the number of the pod's group, ``NO_GROUP`` if it uses no port."""
        spec = pod.spec
        key = id(spec.containers), id(spec.init_containers)
        number = self._by_containers.get(key)
        if number is None:
            ports = host_ports_of(pod, counts_sidecars=self._counts_sidecars)
            number = len(self.values) if ports else NO_GROUP
            if ports:
                self.values.append(ports)
            self._by_containers[key] = number
            self._kept += spec.containers, spec.init_containers
        return number


class AntiAffinityGroups:
    """Pods with equal namespace, labels and required anti-affinity.

    ``representatives`` has one pod of each group.
    """

    def __init__(self) -> None:
        self.representatives: list[Pod] = []
        self._alike: dict[int, list[tuple[list[PodAffinityTerm], int]]] = {}

    def number(self, pod: Pod, label_group: int) -> int:
        """Return the number of the pod's group, ``NO_GROUP`` if it has no required anti-affinity."""
        affinity = pod.spec.affinity
        if affinity is None or affinity.pod_anti_affinity is None or not affinity.pod_anti_affinity.required:
            return NO_GROUP
        mine = affinity.pod_anti_affinity.required
        alike = self._alike.setdefault(label_group, [])
        number = next((number for terms, number in alike if terms == mine), None)
        if number is None:
            number = len(self.representatives)
            alike.append((mine, number))
            self.representatives.append(pod)
        return number


class Groups:
    """The groups of all pods that a table and those derived from it have seen. They only grow."""

    def __init__(self, behavior: Behavior) -> None:
        self.labels = LabelGroups()
        self.resources = ResourceGroups(behavior)
        self.ports = PortGroups(behavior)
        self.anti_affinity = AntiAffinityGroups()


# A table of at most this share of the nodes is made for these only.
_SMALL = 4
# This many tables are derived from one before it is rebuilt, because more and more nodes have other pods.
_MAX_DERIVED_FROM = 64
# And this many from the cluster's own table; then sorting all of its pods is worthwhile.
_MAX_DERIVED_HERE = 2


class LatestTable:
    """The ``table`` of a cluster: built immediately if the cluster uses its totals, otherwise on first use.

    Totals are used for a first cluster, and for one whose nodes differ from those ``before``.

    A decision that finds a feasible node usually needs no table. A table that skips some clusters costs no more than
    one for each: it copies what is unchanged from the latest one.
    """

    def __init__(self, cluster: ClusterState, before: LatestTable | None = None) -> None:
        self._cluster = cluster
        self._amounts: NodeAmounts = before._amounts if before is not None else NodeAmounts()
        latest = before._latest if before is not None else None
        follows = latest is not None and cluster.has_nodes_of(latest.cluster)
        self._latest: PodTable = latest if latest is not None and follows else PodTable(cluster, latest)

    def table_of(self, nodes: Sequence[NodeInfo]) -> PodTable:
        """Return columns over the pods of these nodes, or of more: for few nodes they are built for these only.

        Callers must evaluate each node separately.
        """
        latest = self._latest
        is_small = len(nodes) * _SMALL < len(self._cluster.node_infos)
        is_here = latest.cluster is self._cluster
        most = _MAX_DERIVED_HERE if is_here else _MAX_DERIVED_FROM
        # Whether the order of importance is already known.
        is_ordered = is_here and "importance" in latest.__dict__
        if not is_small or latest.num_made_from >= most or is_ordered:
            return self.table
        latest.num_made_from += 1
        return PodTable(self._cluster, latest, nodes)

    def amounts_of(self, nodes: Sequence[NodeInfo]) -> Amounts | None:
        """Return the amounts of these nodes of the cluster; ``None`` for a few nodes, or if an amount is huge."""
        return self._amounts.on(self._cluster, nodes)

    @property
    def current(self) -> PodTable | None:
        """Return the same if it already exists."""
        return self._latest if self._latest.cluster is self._cluster else None

    @property
    def table(self) -> PodTable:
        """The columns over the pods of this cluster."""
        if self._latest.cluster is not self._cluster:
            self._latest = PodTable(self._cluster, self._latest)
        return self._latest
