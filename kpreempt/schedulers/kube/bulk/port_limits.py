"""NodePorts as limits: of the pods that hold a host port that the pod wants there must be none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np

from kpreempt.model.pod import ContainerPort, Pod
from kpreempt.schedulers.kube.bulk.limits import Excess, Limit, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import PodTable
from kpreempt.schedulers.kube.framework.host_ports import ANY_ADDRESS, DEFAULT_PROTOCOL, host_ports_of, takes_port
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.node_ports import conflict_among
from kpreempt.verdict import Status


def port_limits(
    plugin: str, pod: Pod, wanted: Sequence[ContainerPort], table: PodTable, nodes: Sequence[NodeInfo]
) -> PluginLimits:
    """One limit per port. Left out are nodes on which two pods hold one port: it counts as free once one of them goes.

    ``pod`` is the one in question.
    """
    behaviour = table.cluster.behaviour
    limits, clashing = [], np.zeros(len(table.pods), dtype=np.bool_)
    position = table.cluster.position
    asked = np.array([position[node_info.name] for node_info in nodes], dtype=np.int64)
    nothing = np.zeros(len(nodes), dtype=np.int64)
    for port in wanted:
        amounts = table.per_host_ports(partial(_num_taken, port))
        clashing |= amounts > 0
        limits.append(Limit(table.total(amounts)[asked], nothing, amounts))
    holders: Counter[tuple[int, str, str, int]] = Counter()
    for index in np.flatnonzero(clashing).tolist():
        held = host_ports_of(table.pods[index], counts_sidecars=behaviour.counts_ports_of_sidecars)
        holders.update({(int(table.node[index]), *_identity(each)) for each in held})
    is_shared = np.zeros(len(table.cluster.node_infos), dtype=np.bool_)
    is_shared[[node for (node, *_), count in holders.items() if count > 1]] = True

    def refuse(excess: Excess) -> Status:
        port = wanted[excess.exceeded.index(True)]
        # Where others are left there, they are not told here.
        left = [info for info in nodes[excess.node].pods if not excess.is_bare or info.priority >= pod.priority]
        return conflict_among(port, left)

    def adds(info: PodInfo) -> list[int]:
        return [int(takes_port(info.host_ports, port)) for port in wanted]

    return PluginLimits(plugin, limits, refuse, is_shared[asked], adds=adds)


def _num_taken(wanted: ContainerPort, held: Sequence[ContainerPort]) -> int:
    return sum(takes_port([each], wanted) for each in held)


def _identity(port: ContainerPort) -> tuple[str, str, int]:
    return port.host_ip or ANY_ADDRESS, port.protocol or DEFAULT_PROTOCOL, port.host_port
