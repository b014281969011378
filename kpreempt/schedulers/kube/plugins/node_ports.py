"""NodePorts refuses nodes whose host ports are taken (``plugins/nodeports``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import ContainerPort, Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import Action, has_place, on_node, on_pod
from kpreempt.schedulers.kube.framework.host_ports import HostPorts, host_ports_of
from kpreempt.schedulers.kube.framework.in_tree import in_tree
from kpreempt.schedulers.kube.framework.interface import (
    FilterPlugin,
    Handle,
    PluginArgs,
    PluginError,
    PreFilterPlugin,
    PreFilterResult,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.verdict import SUCCESS, Code, Status, details
from kpreempt.verdict.status import SKIP

REASON_PORTS = "node(s) didn't have free ports for the requested pod ports"


_STATE_KEY = TreeKey("NodePorts")


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Compares the pod's host ports with those in use on the node."""

    name = "NodePorts"
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._counts_sidecars = handle.behaviour.counts_ports_of_sidecars

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Keep the host ports; skip pods that take none."""
        ports = host_ports_of(pod, counts_sidecars=self._counts_sidecars)
        if not ports:
            return None, SKIP
        state.write(_STATE_KEY, ports)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Refuse the node at the first port that is taken."""
        ports = state.read(_STATE_KEY)
        if not isinstance(ports, list):
            raise PluginError(f'reading "PreFilter{self.name}" from cycleState: not found')
        for port in ports:
            if node_info.used_ports.conflicts(port.host_ip, port.protocol, port.host_port):
                return Status(Code.UNSCHEDULABLE, [REASON_PORTS], detail=_conflict(port, node_info))
        return SUCCESS


def _conflict(port: ContainerPort, node_info: NodeInfo) -> details.PortConflict:
    return details.PortConflict(
        port=port.host_port,
        protocol=port.protocol,
        host_ip=port.host_ip,
        holders=[pod_info.key for pod_info in node_info.pods if _takes(pod_info.host_ports, port)],
    )


def _takes(held: list[ContainerPort], wanted: ContainerPort) -> bool:
    ports = HostPorts()
    for port in held:
        ports.add(port.host_ip, port.protocol, port.host_port)
    return ports.conflicts(wanted.host_ip, wanted.protocol, wanted.host_port)


def frees_a_port(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """Whether a pod left that held a host port that this one wants."""
    if old is None or not has_place(old):
        return False
    held = host_ports_of(old)
    return any(_takes(held, wanted) for wanted in host_ports_of(pod))


PLUGIN = in_tree(NodePorts, awaits=lambda: [on_pod(Action.DELETE, frees_a_port), on_node(Action.ADD)])
