"""Taints as in 1.25 (``plugins/tainttoleration``), which names the taint in its reason."""

from __future__ import annotations

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.plugins.taint_toleration import TaintToleration
from kpreempt.verdict import Status
from kpreempt.verdict.details import UntoleratedTaint


class Taints(TaintToleration):
    """The filter of 1.36 in other words."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Refuse the node for its first taint that is not tolerated."""
        status = super().filter(state, pod, node_info)
        if not isinstance(status.detail, UntoleratedTaint):
            return status
        taint = status.detail
        return Status(status.code, [f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"], detail=taint)
