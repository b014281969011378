"""A plugin's check as a limit per node and an amount per pod, and the limits of the simple plugins.

A filter that ignores pods accepts or rejects a node whichever pods are evicted. NodeResourcesFit compares requests and
the number of pods with what is allocatable, NodePorts forbids pods that use a port that the pod requests, and
NodeVolumeLimits compares the volumes of each CSI driver with the node's limit. The limits of InterPodAffinity and
PodTopologySpread are in those packages (``columns.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from kpreempt.model.pod import ContainerPort, Pod
from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers, PodTable
from kpreempt.schedulers.kube.framework.node_info import (
    ANY_ADDRESS,
    DEFAULT_PROTOCOL,
    NodeInfo,
    PodInfo,
    host_ports_of,
    takes_port,
)
from kpreempt.schedulers.kube.framework.resources import PODS
from kpreempt.verdict import Code, Status, details
from kpreempt.verdict.details import Shortfall

# Limits that no sum of pods reaches, and that no sum satisfies.
ALWAYS = 2**62
NEVER = -(2**62)


class Limit(NamedTuple):
    """A sum over the pods of a node that must not exceed a limit.

    ``used`` is the sum with all pods in place and ``limit`` is its maximum, one value per node of the query;
    ``amounts`` is what each pod of the table adds. All three are integers in the same unit; ``used`` belongs to this
    query only.
    """

    used: Integers
    limit: Integers
    amounts: Integers


class Excess(NamedTuple):
    """A node on which a plugin's limits are exceeded.

    ``node`` is its position in the query, ``exceeded`` has a flag for every limit, ``sums`` has their sums at that
    moment, and ``num_pods`` is the number of pods left on the node. ``is_bare`` means that no pod of lower priority is
    among these.
    """

    node: int
    exceeded: list[bool]
    sums: list[int]
    num_pods: int
    is_bare: bool


class PluginLimits(NamedTuple):
    """All limits of one plugin; ``reject`` builds the status of a node on which some are exceeded.

    ``left_out`` marks the nodes for which the plugin cannot state its limits. The status of a bare node has all the
    details that the plugin itself would give; with ``has_detail``, every other status has, too.

    ``adds`` returns what a pod nominated to a node adds to each limit there; ``None`` if that is unknown.
    """

    plugin: str
    limits: list[Limit]
    reject: Callable[[Excess], Status]
    left_out: Booleans | None = None
    has_detail: bool = False
    adds: Callable[[PodInfo], list[int] | None] = lambda _: None


def node_limits(plugin: str, statuses: Sequence[Status], table: PodTable) -> PluginLimits:
    """Convert the filter's status for each node of the query. Errors are left to the ordinary path."""
    most = [ALWAYS if status.is_success else NEVER for status in statuses]
    nothing = np.zeros(len(table.pods), dtype=np.int64)
    return PluginLimits(
        plugin,
        [Limit(np.zeros(len(statuses), dtype=np.int64), np.array(most, dtype=np.int64), nothing)],
        lambda excess: statuses[excess.node],
        np.array([status.code == Code.ERROR for status in statuses], dtype=np.bool_),
        has_detail=True,
        adds=lambda _: [0],
    )


def _places(table: PodTable, nodes: Sequence[NodeInfo]) -> Integers:
    position = table.cluster.position
    return np.array([position[node_info.name] for node_info in nodes], dtype=np.int64)


class _Check(NamedTuple):
    resource: str
    requested: int
    allocatable: Integers


def resource_limits(
    plugin: str,
    rejection: Callable[[list[Shortfall], int], Status],
    requested: Mapping[str, int],
    table: PodTable,
    nodes: Sequence[NodeInfo],
) -> PluginLimits:
    """Return one limit per resource in ``requested``, after the one for the number of pods.

    ``rejection`` builds the status of a node with the given number of pods on which these resources are insufficient.
    """
    rows = _places(table, nodes)
    checks = [_Check(name, amount, table.allocatable(name)[rows]) for name, amount in {PODS: 1, **requested}.items()]
    limits = []
    for check in checks:
        amounts = table.resource(check.resource) if check.resource != PODS else np.ones(len(table.pods), np.int64)
        limits.append(Limit(table.total(amounts)[rows], check.allocatable - check.requested, amounts))
    # Plain integers, because reading single values of a column is slow.
    offered: list[list[int]] = [check.allocatable.tolist() for check in checks]

    def reject(excess: Excess) -> Status:
        return rejection(
            [
                Shortfall(
                    check.resource,
                    check.requested,
                    used,
                    of_nodes[excess.node],
                    exceeds_node=check.resource != PODS and check.requested > of_nodes[excess.node],
                )
                for check, of_nodes, used, is_short in zip(checks, offered, excess.sums, excess.exceeded, strict=True)
                if is_short
            ],
            excess.num_pods,
        )

    def adds(info: PodInfo) -> list[int]:
        return [1 if check.resource == PODS else info.resource.amount(check.resource) for check in checks]

    return PluginLimits(plugin, limits, reject, has_detail=True, adds=adds)


def port_limits(
    plugin: str,
    rejection: Callable[[ContainerPort, Sequence[PodInfo]], Status],
    pod: Pod,
    requested: Sequence[ContainerPort],
    table: PodTable,
    nodes: Sequence[NodeInfo],
) -> PluginLimits:
    """Return one limit per port.

    Nodes on which two pods use the same port are left out: it counts as free once one of them is removed. ``pod`` is
    the incoming pod, and ``rejection`` builds the status of a node on which some of these pods use a port.
    """
    behavior = table.cluster.behavior
    limits, clashing = [], np.zeros(len(table.pods), dtype=np.bool_)
    rows = _places(table, nodes)
    nothing = np.zeros(len(nodes), dtype=np.int64)
    for port in requested:
        amounts = table.per_host_ports(partial(_num_used, port))
        clashing |= amounts > 0
        limits.append(Limit(table.total(amounts)[rows], nothing, amounts))
    holders: Counter[tuple[int, str, str, int]] = Counter()
    for index in np.flatnonzero(clashing).tolist():
        held = host_ports_of(table.pods[index], counts_sidecars=behavior.counts_ports_of_sidecars)
        node = int(table.node[index])
        holders.update(
            {(node, each.host_ip or ANY_ADDRESS, each.protocol or DEFAULT_PROTOCOL, each.host_port) for each in held}
        )
    is_shared = np.zeros(len(table.cluster.node_infos), dtype=np.bool_)
    is_shared[[node for (node, *_), count in holders.items() if count > 1]] = True

    def reject(excess: Excess) -> Status:
        port = requested[excess.exceeded.index(True)]
        # If other users of the port remain, they are not listed here.
        left = [info for info in nodes[excess.node].pods if not excess.is_bare or info.priority >= pod.priority]
        return rejection(port, left)

    def adds(info: PodInfo) -> list[int]:
        return [int(takes_port(info.host_ports, port)) for port in requested]

    return PluginLimits(plugin, limits, reject, is_shared[rows], adds=adds)


def _num_used(requested: ContainerPort, held: Sequence[ContainerPort]) -> int:
    return sum(takes_port([each], requested) for each in held)


class VolumeCapacity(NamedTuple):
    """Volume capacity of a node: volumes by unique name with their drivers, and each driver's limit.

    ``new`` are the pod's volumes, ``attached`` the volumes attached to the node, whether or not a pod uses them.
    """

    new: Mapping[str, str]
    attached: Mapping[str, str]
    limits: Mapping[str, int]


def volume_limits(
    plugin: str,
    capacities: Sequence[VolumeCapacity | None],
    volumes_of: Callable[[Pod, NodeInfo], Mapping[str, str] | None],
    may_have: Callable[[Pod], bool],
    rejection: Callable[[details.VolumeLimitExceeded], Status],
    table: PodTable,
    nodes: Sequence[NodeInfo],
) -> PluginLimits:
    """Return one limit per driver of the pod's volumes.

    ``capacities`` has the volume capacity of each node of the query, ``None`` to leave a node out. Also left out are
    nodes on which two pods share a volume, or a pod shares one with the incoming pod, because it counts once.
    ``volumes_of`` returns the volumes of a pod on a node (``None``: unknown) if it ``may_have`` any.
    """
    drivers = list(dict.fromkeys(driver for capacity in capacities if capacity for driver in capacity.new.values()))
    is_omitted = np.array([capacity is None for capacity in capacities], dtype=np.bool_)
    amounts = {driver: np.zeros(len(table.pods), dtype=np.int64) for driver in drivers}
    used = {driver: np.zeros(len(nodes), dtype=np.int64) for driver in drivers}
    most = {driver: np.full(len(nodes), ALWAYS, dtype=np.int64) for driver in drivers}
    holders: dict[int, list[int]] = {}
    for place in [place for place, pod in enumerate(table.pods) if may_have(pod)]:
        holders.setdefault(int(table.node[place]), []).append(place)
    requested: list[Mapping[str, int]] = []
    for index, (capacity, node_info) in enumerate(zip(capacities, nodes, strict=True)):
        new_volumes = list(capacity.new.values()) if capacity else []
        requested.append({driver: new_volumes.count(driver) for driver in dict.fromkeys(new_volumes)})
        limited = [driver for driver in requested[-1] if capacity and driver in capacity.limits]
        if capacity is None or not limited:
            continue
        for driver in limited:
            most[driver][index] = capacity.limits[driver] - requested[-1][driver]
            used[driver][index] = sum(each == driver for each in capacity.attached.values())
        seen = set(capacity.new)
        for place in holders.get(table.cluster.position[node_info.name], ()):
            volumes = volumes_of(table.pods[place], node_info)
            if volumes is None or not seen.isdisjoint(volumes):
                is_omitted[index] = True
                break
            seen |= volumes.keys()
            for name, driver in volumes.items():
                if driver in limited and name not in capacity.attached:
                    amounts[driver][place] += 1
                    used[driver][index] += 1

    def reject(excess: Excess) -> Status:
        capacity = capacities[excess.node]
        assert capacity is not None
        driver = next(
            driver
            for driver in requested[excess.node]
            if driver in capacity.limits and excess.exceeded[drivers.index(driver)]
        )
        count = excess.sums[drivers.index(driver)]
        return rejection(
            details.VolumeLimitExceeded(driver, count, requested[excess.node][driver], capacity.limits[driver])
        )

    def adds(info: PodInfo) -> list[int] | None:
        return None if may_have(info.pod) else [0] * len(drivers)

    limits = [Limit(used[driver], most[driver], amounts[driver]) for driver in drivers]
    return PluginLimits(plugin, limits, reject, is_omitted, has_detail=True, adds=adds)
