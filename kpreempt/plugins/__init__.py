"""The stable API for custom plugins of the current scheduler.

A plugin is a class that derives from the extension points that it implements::

    from kpreempt.plugins import SUCCESS, FilterPlugin, unschedulable

    class OneTeamPerNode(FilterPlugin):
        def filter(self, state, pod, node_info):
            team = node_info.node.labels.get("example.com/team")
            if team in (None, pod.metadata.labels.get("example.com/team")):
                return SUCCESS
            return unschedulable("node(s) belonged to another team", team=team)

The extension points are those of the scheduling framework (``k8s.io/kube-scheduler`` v0.36.3
``framework/interface.go``), with the same names; docs/writing-plugins.md describes them. Within this version of
kpreempt's interface, names may be added, but are never removed.
"""

from kpreempt.model.extra_fields import ExtraFields, ObjectKind
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, annotations_of
from kpreempt.model.quantity import Quantity
from kpreempt.schedulers.choice import CandidateVictims
from kpreempt.schedulers.interface import QueuedPodInfo
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    BindPlugin,
    FilterPlugin,
    Handle,
    NodeToStatus,
    PermitPlugin,
    Plugin,
    PluginError,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    normalize_to_max,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.read_only import SnapshotView
from kpreempt.schedulers.kube.framework.resources import Resource
from kpreempt.schedulers.kube.preemption.evaluator import PreemptionPlugin
from kpreempt.schedulers.kube.preemption.rules import CandidateScore
from kpreempt.verdict import SUCCESS, Candidate, Code, Eligibility, Status
from kpreempt.verdict.details import PluginFinding
from kpreempt.verdict.status import SKIP

Fact = str | int | float | bool


def unschedulable(reason: str, summary: str = "", /, **facts: Fact) -> Status:
    """Reject a node, or the pod on all nodes, when evictions could help.

    ``reason`` is the same for all nodes, so that the scheduler's message can count them. ``summary`` and ``facts`` are
    details of this node, which the report shows next to it.
    """
    return _rejection(Code.UNSCHEDULABLE, reason, summary, facts)


def unresolvable(reason: str, summary: str = "", /, **facts: Fact) -> Status:
    """Reject a node, or the pod on all nodes, when no eviction can help. Takes ``unschedulable``'s arguments."""
    return _rejection(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason, summary, facts)


def _rejection(code: Code, reason: str, summary: str, facts: dict[str, Fact]) -> Status:
    return Status(code, [reason], detail=PluginFinding(summary, facts) if summary or facts else None)


__all__ = [
    "MAX_NODE_SCORE",
    "MIN_NODE_SCORE",
    "SKIP",
    "SUCCESS",
    "BindPlugin",
    "Candidate",
    "CandidateScore",
    "CandidateVictims",
    "Code",
    "CycleState",
    "Eligibility",
    "ExtraFields",
    "FilterPlugin",
    "Handle",
    "Node",
    "NodeInfo",
    "NodeToStatus",
    "ObjectKind",
    "PermitPlugin",
    "Plugin",
    "PluginError",
    "PluginFinding",
    "Pod",
    "PodInfo",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "PreemptionPlugin",
    "Quantity",
    "QueueSortPlugin",
    "QueuedPodInfo",
    "ReservePlugin",
    "Resource",
    "ScorePlugin",
    "SnapshotView",
    "Status",
    "annotations_of",
    "normalize_to_max",
    "unresolvable",
    "unschedulable",
]
