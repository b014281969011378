"""Topology spread as in 1.25 (``plugins/podtopologyspread``)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import Handle, PluginError, PreFilterResult
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.plugins.pod_topology_spread.constraints import Action, SpreadConstraint
from kpreempt.schedulers.kube.plugins.pod_topology_spread.plugin import PodTopologySpread
from kpreempt.verdict import Code, Status


class TopologySpread(PodTopologySpread):
    """``minDomains`` does not count, and a selector that is empty counts all pods of the namespace."""

    def __init__(self, handle: Handle) -> None:
        super().__init__({"defaultingType": "System"}, handle)

    def constraints_of(self, pod: Pod, action: Action) -> list[SpreadConstraint]:
        """The pod's constraints, or the system's; raises ``PluginError``."""
        return [each._replace(min_domains=1, counts_all=True) for each in super().constraints_of(pod, action)]

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Count matching pods per domain; an error where a selector cannot be parsed."""
        try:
            self.constraints_of(pod, "DoNotSchedule")
        except PluginError as error:
            return None, Status(Code.ERROR, [str(error)])
        return super().pre_filter(state, pod, nodes)
