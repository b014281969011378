"""What a plugin checks, as a limit per node and an amount per pod; and how the simple plugins state theirs.

A filter that looks at a node without its pods lets a pod pass, or it does not, whoever goes. NodeResourcesFit holds
requests and the number of pods against what is allocatable, NodePorts wants none of the pods there that hold a port
that the pod wants, and NodeVolumeLimits holds the volumes of each CSI driver against what it takes on a node. What
InterPodAffinity and PodTopologySpread state is beside them (``columns.py``).
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

# Limits that no sum of pods reaches, and that none keeps to.
ALWAYS = 2**62
NEVER = -(2**62)


class Limit(NamedTuple):
    """A sum over the pods of a node that must not go beyond a limit.

    ``used`` is the sum with all pods in place and ``limit`` the most it may be, one value per node of the question;
    ``amounts`` is what each pod of the table adds. All three are integers in the same unit; ``used`` is of this
    question alone.
    """

    used: Integers
    limit: Integers
    amounts: Integers


class Excess(NamedTuple):
    """A node on which limits of a plugin are exceeded.

    ``node`` is its position in the question, ``exceeded`` says of every limit whether it is exceeded there, ``sums``
    has their sums at that moment, and ``num_pods`` is the number of pods that are left on the node. ``is_bare`` says
    that no pod of lower priority is among these.
    """

    node: int
    exceeded: list[bool]
    sums: list[int]
    num_pods: int
    is_bare: bool


class PluginLimits(NamedTuple):
    """All limits of one plugin; ``refuse`` makes the status of a node on which some are exceeded.

    ``left_out`` marks the nodes about which the plugin cannot state its limits. The status of a bare node has all the
    detail that the plugin itself would give; ``tells_detail`` says that every other has, too.

    ``adds`` gives what a pod that is nominated to a node adds to each limit there; ``None`` where that is not to be
    said.
    """

    plugin: str
    limits: list[Limit]
    refuse: Callable[[Excess], Status]
    left_out: Booleans | None = None
    tells_detail: bool = False
    adds: Callable[[PodInfo], list[int] | None] = lambda _: None


def node_limits(plugin: str, statuses: Sequence[Status], table: PodTable) -> PluginLimits:
    """What the filter says of each node of the question. Errors are left to the plain path."""
    most = [ALWAYS if status.is_success else NEVER for status in statuses]
    nothing = np.zeros(len(table.pods), dtype=np.int64)
    return PluginLimits(
        plugin,
        [Limit(np.zeros(len(statuses), dtype=np.int64), np.array(most, dtype=np.int64), nothing)],
        lambda excess: statuses[excess.node],
        np.array([status.code == Code.ERROR for status in statuses], dtype=np.bool_),
        tells_detail=True,
        adds=lambda _: [0],
    )


def _places(table: PodTable, nodes: Sequence[NodeInfo]) -> Integers:
    position = table.cluster.position
    return np.array([position[node_info.name] for node_info in nodes], dtype=np.int64)


class _Check(NamedTuple):
    resource: str
    wanted: int
    allocatable: Integers


def resource_limits(
    plugin: str,
    refusal: Callable[[list[Shortfall], int], Status],
    wanted: Mapping[str, int],
    table: PodTable,
    nodes: Sequence[NodeInfo],
) -> PluginLimits:
    """One limit per resource that is ``wanted``, after that of the number of pods.

    ``refusal`` makes the status of a node with so many pods on which these resources are short.
    """
    asked = _places(table, nodes)
    checks = [_Check(name, amount, table.allocatable(name)[asked]) for name, amount in {PODS: 1, **wanted}.items()]
    limits = []
    for check in checks:
        amounts = table.resource(check.resource) if check.resource != PODS else np.ones(len(table.pods), np.int64)
        limits.append(Limit(table.total(amounts)[asked], check.allocatable - check.wanted, amounts))
    # Plain integers, because single values of a column are slow to come by.
    offered: list[list[int]] = [check.allocatable.tolist() for check in checks]

    def refuse(excess: Excess) -> Status:
        return refusal(
            [
                Shortfall(
                    check.resource,
                    check.wanted,
                    used,
                    of_nodes[excess.node],
                    exceeds_node=check.resource != PODS and check.wanted > of_nodes[excess.node],
                )
                for check, of_nodes, used, is_short in zip(checks, offered, excess.sums, excess.exceeded, strict=True)
                if is_short
            ],
            excess.num_pods,
        )

    def adds(info: PodInfo) -> list[int]:
        return [1 if check.resource == PODS else info.resource.amount(check.resource) for check in checks]

    return PluginLimits(plugin, limits, refuse, tells_detail=True, adds=adds)


def port_limits(
    plugin: str,
    refusal: Callable[[ContainerPort, Sequence[PodInfo]], Status],
    pod: Pod,
    wanted: Sequence[ContainerPort],
    table: PodTable,
    nodes: Sequence[NodeInfo],
) -> PluginLimits:
    """One limit per port. Left out are nodes on which two pods hold one port: it counts as free once one of them goes.

    ``pod`` is the one in question, and ``refusal`` makes the status of a node where a port is taken by some of these.
    """
    behaviour = table.cluster.behaviour
    limits, clashing = [], np.zeros(len(table.pods), dtype=np.bool_)
    asked = _places(table, nodes)
    nothing = np.zeros(len(nodes), dtype=np.int64)
    for port in wanted:
        amounts = table.per_host_ports(partial(_num_taken, port))
        clashing |= amounts > 0
        limits.append(Limit(table.total(amounts)[asked], nothing, amounts))
    holders: Counter[tuple[int, str, str, int]] = Counter()
    for index in np.flatnonzero(clashing).tolist():
        held = host_ports_of(table.pods[index], counts_sidecars=behaviour.counts_ports_of_sidecars)
        node = int(table.node[index])
        holders.update(
            {(node, each.host_ip or ANY_ADDRESS, each.protocol or DEFAULT_PROTOCOL, each.host_port) for each in held}
        )
    is_shared = np.zeros(len(table.cluster.node_infos), dtype=np.bool_)
    is_shared[[node for (node, *_), count in holders.items() if count > 1]] = True

    def refuse(excess: Excess) -> Status:
        port = wanted[excess.exceeded.index(True)]
        # Where others are left there, they are not told here.
        left = [info for info in nodes[excess.node].pods if not excess.is_bare or info.priority >= pod.priority]
        return refusal(port, left)

    def adds(info: PodInfo) -> list[int]:
        return [int(takes_port(info.host_ports, port)) for port in wanted]

    return PluginLimits(plugin, limits, refuse, is_shared[asked], adds=adds)


def _num_taken(wanted: ContainerPort, held: Sequence[ContainerPort]) -> int:
    return sum(takes_port([each], wanted) for each in held)


class RoomForVolumes(NamedTuple):
    """What drivers say of a node: volumes by unique name with their drivers, and how many each driver takes.

    ``new`` are those of the pod, ``attached`` those that are attached there, with a pod or without.
    """

    new: Mapping[str, str]
    attached: Mapping[str, str]
    limits: Mapping[str, int]


def volume_limits(
    plugin: str,
    rooms: Sequence[RoomForVolumes | None],
    volumes_of: Callable[[Pod, NodeInfo], Mapping[str, str] | None],
    may_have: Callable[[Pod], bool],
    refusal: Callable[[details.VolumeLimitExceeded], Status],
    table: PodTable,
    nodes: Sequence[NodeInfo],
) -> PluginLimits:
    """One limit per driver of the pod's volumes.

    ``rooms`` are those of each node of the question, ``None`` for one to leave out. So are nodes of whose pods two have
    one volume, or one has a volume of the incoming pod's: it counts once. ``volumes_of`` gives the volumes of a pod on
    a node (``None``: not to be said) if it ``may_have`` any.
    """
    drivers = list(dict.fromkeys(driver for room in rooms if room for driver in room.new.values()))
    is_left_out = np.array([room is None for room in rooms], dtype=np.bool_)
    amounts = {driver: np.zeros(len(table.pods), dtype=np.int64) for driver in drivers}
    used = {driver: np.zeros(len(nodes), dtype=np.int64) for driver in drivers}
    most = {driver: np.full(len(nodes), ALWAYS, dtype=np.int64) for driver in drivers}
    holders: dict[int, list[int]] = {}
    for place in [place for place, pod in enumerate(table.pods) if may_have(pod)]:
        holders.setdefault(int(table.node[place]), []).append(place)
    wanted: list[Mapping[str, int]] = []
    for index, (room, node_info) in enumerate(zip(rooms, nodes, strict=True)):
        asked = list(room.new.values()) if room else []
        wanted.append({driver: asked.count(driver) for driver in dict.fromkeys(asked)})
        limited = [driver for driver in wanted[-1] if room and driver in room.limits]
        if room is None or not limited:
            continue
        for driver in limited:
            most[driver][index] = room.limits[driver] - wanted[-1][driver]
            used[driver][index] = sum(each == driver for each in room.attached.values())
        seen = set(room.new)
        for place in holders.get(table.cluster.position[node_info.name], ()):
            volumes = volumes_of(table.pods[place], node_info)
            if volumes is None or not seen.isdisjoint(volumes):
                is_left_out[index] = True
                break
            seen |= volumes.keys()
            for name, driver in volumes.items():
                if driver in limited and name not in room.attached:
                    amounts[driver][place] += 1
                    used[driver][index] += 1

    def refuse(excess: Excess) -> Status:
        room = rooms[excess.node]
        assert room is not None
        driver = next(
            driver for driver in wanted[excess.node] if driver in room.limits and excess.exceeded[drivers.index(driver)]
        )
        count = excess.sums[drivers.index(driver)]
        return refusal(details.VolumeLimitExceeded(driver, count, wanted[excess.node][driver], room.limits[driver]))

    def adds(info: PodInfo) -> list[int] | None:
        return None if may_have(info.pod) else [0] * len(drivers)

    limits = [Limit(used[driver], most[driver], amounts[driver]) for driver in drivers]
    return PluginLimits(plugin, limits, refuse, is_left_out, tells_detail=True, adds=adds)
