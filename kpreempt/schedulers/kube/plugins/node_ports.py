"""NodePorts rejects nodes whose host ports are in use (``plugins/nodeports``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kpreempt.model.pod import ContainerPort, Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import Action, has_position, on_node, on_pod
from kpreempt.schedulers.kube.framework.in_tree import LimitedFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    PluginArgs,
    PluginError,
    PreFilterPlugin,
    PreFilterResult,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo, host_ports_of, takes_port
from kpreempt.verdict import SUCCESS, Code, Status, details
from kpreempt.verdict.status import SKIP

if TYPE_CHECKING:
    # These need NumPy, which is loaded only for big clusters.
    from kpreempt.schedulers.kube.bulk.limits import PluginLimits
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable

REASON_PORTS = "node(s) didn't have free ports for the requested pod ports"


_STATE_KEY = TreeKey("NodePorts")


class _PodPorts(NamedTuple):
    """The incoming pod, and the host ports that it requests."""

    pod: Pod
    ports: list[ContainerPort]


class NodePorts(PreFilterPlugin, LimitedFilterPlugin):
    """Compares the pod's host ports with those in use on the node."""

    name = "NodePorts"
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._handle = handle
        self._counts_sidecars = handle.behavior.counts_ports_of_sidecars
        # For nodes in the cluster's state, so that not every pod there needs to be read.
        self._holders: Mapping[NodeInfo, Sequence[PodInfo]] = {}

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Record the host ports; skip pods without any."""
        ports = host_ports_of(pod, counts_sidecars=self._counts_sidecars)
        if not ports:
            return None, SKIP
        state.write(_STATE_KEY, _PodPorts(pod, ports))
        tables = self._handle.tables
        if tables is not None and tables.current is not None:
            self._holders = tables.current.port_holders
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject the node at the first port that is in use."""
        requested = state.read(_STATE_KEY)
        if not isinstance(requested, _PodPorts):
            raise PluginError(f'reading "PreFilter{self.name}" from cycleState: not found')
        for port in requested.ports:
            if node_info.used_ports.conflicts(port.host_ip, port.protocol, port.host_port):
                holders = self._holders.get(node_info)
                return conflict_among(port, node_info.pods if holders is None else holders)
        return SUCCESS

    def limits(self, state: CycleState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits | None:
        """Return one limit per port, from the pods that use it."""
        from kpreempt.schedulers.kube.bulk.limits import port_limits  # noqa: PLC0415

        requested = state.read(_STATE_KEY)
        return (
            port_limits(self.name, conflict_among, *requested, table, nodes)
            if isinstance(requested, _PodPorts)
            else None
        )


def conflict_among(port: ContainerPort, pods: Sequence[PodInfo]) -> Status:
    """Return the rejection of a node on which a port is in use, listing which of ``pods`` use it."""
    detail = details.PortConflict(
        port=port.host_port,
        protocol=port.protocol,
        host_ip=port.host_ip,
        holders=[pod_info.key for pod_info in pods if takes_port(pod_info.host_ports, port)],
    )
    return Status(Code.UNSCHEDULABLE, [REASON_PORTS], detail=detail)


def frees_a_port(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """Return whether a pod was removed that used a host port that this one requests."""
    if old is None or not has_position(old):
        return False
    held = host_ports_of(old)
    return any(takes_port(held, requested) for requested in host_ports_of(pod))


PLUGIN = in_tree(NodePorts, awaits=lambda: [on_pod(Action.DELETE, frees_a_port), on_node(Action.ADD)])
