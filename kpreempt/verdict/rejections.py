"""The nodes that reject a pod, in groups: what a verdict says about each node, in short."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.meta import grouped
from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.details import InsufficientResources, UntoleratedTaint, missing_share
from kpreempt.verdict.node_report import NodeState
from kpreempt.verdict.records import Verdict
from kpreempt.verdict.status import Code, Status, is_permanent

_MOST_NAMED = 3


class RejectedNodes(SparseRecord, frozen=True, kw_only=True):
    """Nodes that reject a pod for the same reason.

    ``nodes`` are up to three of the ``count`` nodes, those that lack the least first; ``status`` is that of the first.
    ``excluded_by`` are the plugins that excluded the nodes before any filter ran. ``state`` is set if something is
    wrong with the nodes themselves (``ClusterSummary.unhealthy``), and is not already the reason for the rejection.
    """

    count: int
    nodes: list[str]
    status: Status
    excluded_by: list[str] = []
    state: NodeState | None = None


def rejected_nodes(verdict: Verdict) -> list[RejectedNodes]:
    """The nodes that reject the pod, by reason, the largest group first."""
    rejected = {node: status for node, status in verdict.filter.items() if not status.is_success}
    states = {each.node: each.states[0] for each in verdict.cluster.unhealthy or ()}

    def key(node: str) -> tuple[object, ...]:
        status = rejected[node]
        detail = status.detail
        seen: object = status.message
        if isinstance(detail, UntoleratedTaint):
            seen = (detail.key, detail.value, detail.effect)
        elif isinstance(detail, InsufficientResources):
            # A node without a resource differs from one with too little of it.
            seen = tuple((each.resource, bool(each.allocatable)) for each in detail.shortfalls)
        return status.code, status.plugin, is_permanent(status), seen, states.get(node)

    groups = []
    for nodes in grouped(rejected, key).values():
        nearest = sorted(nodes, key=lambda node: missing_share(rejected[node].detail))
        status = rejected[nearest[0]]
        is_excluded = not status.plugin and status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        groups.append(
            RejectedNodes(
                count=len(nodes),
                nodes=nearest[:_MOST_NAMED],
                status=status,
                excluded_by=verdict.restricted_by if is_excluded else [],
                state=None if _is_about_state(status) else states.get(nearest[0]),
            )
        )
    return sorted(groups, key=lambda group: -group.count)


def _is_about_state(status: Status) -> bool:
    """Whether a taint already says what is wrong with the node; the taint of a cordon does not."""
    return isinstance(status.detail, UntoleratedTaint) and status.plugin != "NodeUnschedulable"


def pins(group: RejectedNodes) -> bool:
    """Whether the pod itself selects other nodes."""
    return group.status.plugin in _SELECTING or bool(group.excluded_by)


_SELECTING = ("NodeAffinity", "NodeName")


def only_nodes(groups: Sequence[RejectedNodes]) -> list[RejectedNodes]:
    """The groups of nodes that the pod may run on, if its own fields select only some; else an empty list."""
    others = [group for group in groups if not pins(group)]
    return others if len(others) < len(groups) else []
