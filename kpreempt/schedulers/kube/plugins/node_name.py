"""NodeName restricts a pod with ``spec.nodeName`` to that node (``plugins/nodename``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.events import Action, on_node
from kpreempt.schedulers.kube.framework.in_tree import NodeFilterPlugin, SparseFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.verdict import SUCCESS, Code, Status, details

REASON_NODE_NAME = "node(s) didn't match the requested node name"


class NodeName(NodeFilterPlugin, SparseFilterPlugin):
    """Compares ``spec.nodeName`` with the node's name."""

    name = "NodeName"
    is_local = True

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject every node except the one that the pod names, if it names one."""
        requested = pod.spec.node_name
        if not requested or requested == node_info.name:
            return SUCCESS
        return Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_NODE_NAME], detail=details.NodeNameMismatch(requested)
        )

    def suspects(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Collection[NodeInfo]:
        """Return all nodes if the pod names one, otherwise none."""
        return nodes if pod.spec.node_name else ()


PLUGIN = in_tree(NodeName, awaits=lambda: [on_node(Action.ADD)])
