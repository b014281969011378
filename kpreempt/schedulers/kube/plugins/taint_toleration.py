"""TaintToleration rejects tainted nodes, and prefers those with fewer PreferNoSchedule taints.

Follows ``plugins/tainttoleration`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import Action, is_own, on_node, on_pod
from kpreempt.schedulers.kube.framework.in_tree import (
    BulkScorePlugin,
    NodeFilterPlugin,
    SparseFilterPlugin,
    in_tree,
)
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    PluginArgs,
    PluginError,
    PreScorePlugin,
    normalize_to_max,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.verdict import SUCCESS, Code, Status, details

REASON_UNTOLERATED_TAINT = "node(s) had untolerated taint(s)"
REJECTING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
SOFT_EFFECT = "PreferNoSchedule"


_STATE_KEY = TreeKey("TaintToleration")


class TaintToleration(NodeFilterPlugin, SparseFilterPlugin, PreScorePlugin, BulkScorePlugin):
    """NoSchedule and NoExecute taints reject; PreferNoSchedule taints reduce the score."""

    name = "TaintToleration"
    scales_to_extremes = True
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._compares_numbers = handle.behavior.taint_toleration_comparison_operators
        self._names_taint = handle.behavior.names_untolerated_taint

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject the node for its first untolerated taint."""
        taints = node_info.node.spec.taints
        if not taints:
            return SUCCESS
        taint = find_untolerated_taint(
            taints, pod.spec.tolerations, REJECTING_EFFECTS, compares_numbers=self._compares_numbers
        )
        if taint is None:
            return SUCCESS
        reason = REASON_UNTOLERATED_TAINT
        if self._names_taint:
            reason = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
        detail = details.UntoleratedTaint(taint.key, taint.value, taint.effect)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason], detail=detail)

    def suspects(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Collection[NodeInfo]:
        """Return the nodes with taints."""
        return [node_info for node_info in nodes if node_info.node.spec.taints]

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Record the tolerations that apply to PreferNoSchedule taints."""
        state.write(
            _STATE_KEY, [toleration for toleration in pod.spec.tolerations if toleration.effect in ("", SOFT_EFFECT)]
        )
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the number of PreferNoSchedule taints that the pod does not tolerate."""
        tolerations = state.read(_STATE_KEY)
        if not isinstance(tolerations, list):
            raise PluginError(f'failed to read "PreScore{self.name}" from cycleState: not found')
        return sum(
            taint.effect == SOFT_EFFECT
            and not any(each.tolerates(taint, compares_numbers=self._compares_numbers) for each in tolerations)
            for taint in node_info.node.spec.taints
        )

    def score_all(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
        """Return the same for many nodes, few of which have taints."""
        has_searched = isinstance(state.read(_STATE_KEY), list)
        return [self.score(state, pod, each) if each.node.spec.taints or not has_searched else 0 for each in nodes]

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Prefer fewer taints."""
        return normalize_to_max(scores, reverse=True)


def is_tolerated_now(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Return whether the pod tolerates the node's taints now, and did not before."""
    return new is not None and _tolerates(pod, new) and (old is None or not _tolerates(pod, old))


def _tolerates(pod: Pod, node: Node) -> bool:
    return find_untolerated_taint(node.spec.taints, pod.spec.tolerations, REJECTING_EFFECTS) is None


PLUGIN = in_tree(
    TaintToleration,
    awaits=lambda: [
        on_node(Action.ADD | Action.UPDATE_NODE_TAINT, is_tolerated_now),
        on_pod(Action.UPDATE_POD_TOLERATION, is_own),
    ],
)
