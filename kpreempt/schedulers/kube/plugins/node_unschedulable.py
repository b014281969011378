"""NodeUnschedulable rejects cordoned nodes (``plugins/nodeunschedulable``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kpreempt.model.pod import Pod
from kpreempt.model.taints import Taint
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.events import Action, is_own, on_node, on_pod
from kpreempt.schedulers.kube.framework.in_tree import NodeFilterPlugin, SparseFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import Handle, PluginArgs
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.verdict import SUCCESS, Code, Status, details

REASON_UNSCHEDULABLE = "node(s) were unschedulable"
UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(NodeFilterPlugin, SparseFilterPlugin):
    """Rejects nodes with ``spec.unschedulable`` unless the pod tolerates the corresponding taint."""

    name = "NodeUnschedulable"
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._compares_numbers = handle.behavior.taint_toleration_comparison_operators

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Check the cordon and the pod's tolerations."""
        if not node_info.node.spec.unschedulable:
            return SUCCESS
        for toleration in pod.spec.tolerations:
            if toleration.tolerates(UNSCHEDULABLE_TAINT, compares_numbers=self._compares_numbers):
                return SUCCESS
        taint = UNSCHEDULABLE_TAINT
        return Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            [REASON_UNSCHEDULABLE],
            detail=details.UntoleratedTaint(taint.key, taint.value, taint.effect),
        )

    def suspects(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Collection[NodeInfo]:
        """Return the cordoned nodes."""
        return [node_info for node_info in nodes if node_info.node.spec.unschedulable]


PLUGIN = in_tree(
    NodeUnschedulable,
    awaits=lambda: [
        # The node is schedulable, and was not before.
        on_node(
            Action.ADD | Action.UPDATE_NODE_TAINT,
            lambda _, old, new: (
                new is not None and not new.spec.unschedulable and (old is None or old.spec.unschedulable)
            ),
        ),
        on_pod(Action.UPDATE_POD_TOLERATION, is_own),
    ],
)
