"""Taints as in 1.25 (``plugins/tainttoleration``), which names the taint in its reason."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import Handle
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.plugins.taint_toleration import SOFT_EFFECT, TaintToleration
from kpreempt.verdict import Status
from kpreempt.verdict.details import UntoleratedTaint
from kpreempt.verdict.status import SKIP


class Taints(TaintToleration):
    """The filter of 1.36 in other words."""

    def __init__(self, handle: Handle) -> None:
        super().__init__({}, handle)
        nodes = (node_info.node for node_info in handle.cluster.node_infos)
        self._has_soft = any(taint.effect == SOFT_EFFECT for node in nodes for taint in node.spec.taints)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Keep the tolerations that can cover soft taints; Skip where no node of the session has any."""
        return super().pre_score(state, pod, nodes) if self._has_soft else SKIP

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Refuse the node for its first taint that is not tolerated."""
        status = super().filter(state, pod, node_info)
        if not isinstance(status.detail, UntoleratedTaint):
            return status
        taint = status.detail
        return Status(status.code, [f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"], detail=taint)
