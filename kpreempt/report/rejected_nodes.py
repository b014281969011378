"""The nodes that reject a pod in words, by reason: how many there are, and what they lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.report.amounts import agree, name_all
from kpreempt.report.evidence import describe, describe_shortage, in_plural, join_names, rejection_of
from kpreempt.verdict.details import InsufficientDevices, InsufficientResources, VolumeConflict
from kpreempt.verdict.node_report import NodeState
from kpreempt.verdict.rejections import RejectedNodes, only_nodes, pins

# What nodes in each state are, as clauses about a node.
NODE_STATES = {
    NodeState.NOT_READY: "is not ready",
    NodeState.UNREACHABLE: "is unreachable",
    NodeState.SHUT_DOWN: "is shut down",
    NodeState.OUT_OF_SERVICE: "is out of service",
    NodeState.BEING_DELETED: "is being deleted",
    NodeState.REMOVED_BY_CLUSTER_AUTOSCALER: "is being removed by Cluster Autoscaler",
    NodeState.REMOVED_BY_KARPENTER: "is being removed by Karpenter",
    NodeState.REMOVAL_CANDIDATE: "may be removed by Cluster Autoscaler",
}
# Why a pod can only run on some nodes, by the plugin that excludes the others.
_SELECTED_BY = {
    "NodeAffinity": "node affinity",
    "NodeName": "spec.nodeName",
    "VolumeBinding": "its volumes",
    "DynamicResources": "its devices",
}
_MAX_SELECTED = 3


class _Clause(NamedTuple):
    """A clause on one node, and on several."""

    one: str
    several: str

    def of(self, number: int) -> str:
        return self.one if number == 1 else self.several


def _clause(group: RejectedNodes) -> _Clause:
    """Why nodes reject the pod, and before that what is wrong with the nodes: ``is not ready and is too full``."""
    parts = [rejection_of(group.status, group.excluded_by)]
    if group.state is not None:
        parts.insert(0, NODE_STATES[group.state])
    return _Clause(" and ".join(parts), " and ".join(map(in_plural, parts)))


def rejections_in_words(groups: Sequence[RejectedNodes], kinds: int) -> str:
    """``of 3 nodes, 2 are too full and 1 is cordoned``: nodes by clause, at most ``kinds`` of them.

    The most frequent clauses come first; the nodes of the others are counted. If the pod itself selects only a few
    nodes, the others are not mentioned: ``it can only run on n9 (node affinity), which is too full``.
    """
    numbers: Counter[_Clause] = Counter()
    for group in groups:
        numbers[_clause(group)] += group.count
    total = sum(numbers.values())
    selected = only_nodes(groups)
    clauses = {_clause(group) for group in selected}
    if len(clauses) == 1 and (number := sum(group.count for group in selected)) <= _MAX_SELECTED:
        names = join_names([name for group in selected for name in group.nodes]).replace(" and ", " or ")
        by = dict.fromkeys(
            _SELECTED_BY.get(plugin, plugin)
            for group in groups
            if pins(group)
            for plugin in (group.excluded_by or [group.status.plugin])
        )
        [clause] = clauses
        return f"it can only run on {names} ({join_names([*by])}), which {clause.of(number)}"
    ranked = numbers.most_common()
    if total == 1:
        return f"the only node {ranked[0][0].one}"
    if len(ranked) == 1:
        return _all_rejected(total, ranked[0][0])
    parts = [f"{number:,} {clause.of(number)}" for clause, number in ranked[:kinds]]
    if rest := sum(number for _, number in ranked[kinds:]):
        parts.append(f"{rest:,} more {agree(rest, 'rejects')} it")
    return f"of {total:,} nodes, {join_names(parts, limit=len(parts))}"


def nodes_in_words(groups: Sequence[RejectedNodes], kinds: int) -> list[str]:
    """``3 are too full: n1 needs 1 more cpu``: what the nodes of each group lack, at most ``kinds`` of them.

    Nodes that the pod does not select are left out if it selects others.
    """
    shown = only_nodes(groups) or groups
    texts = []
    for group in shown[:kinds]:
        more = group.count - len(group.nodes)
        names = join_names([*group.nodes, *([f"{more:,} more"] if more else [])], limit=len(group.nodes) + 1)
        listed = f" ({names})" if groups[1:] else ""
        detail, clause = group.status.detail, _clause(group).of(group.count)
        # Clauses about taints, labels, devices and other pods say enough.
        is_brief = not isinstance(detail, InsufficientResources) or clause.startswith("offer")
        shortage = "" if is_brief else describe_shortage(group.status)
        if isinstance(detail, VolumeConflict | InsufficientDevices):
            texts.append(f"{describe(detail)}{listed}")
        elif group.count == 1:
            texts.append(f"{names} {clause}{f': {shortage}' if shortage else ''}")
        else:
            # What matters comes first: long lists of names are cut.
            texts.append(f"{group.count:,} {clause}{f': {group.nodes[0]} {shortage}' if shortage else listed}")
    if rest := sum(group.count for group in shown[kinds:]):
        texts.append(f"{rest:,} more {agree(rest, 'rejects')} it")
    return texts


def _all_rejected(total: int, clause: _Clause) -> str:
    """``all 3 nodes are cordoned``; ``none of the 3 nodes offers a`` for ``offers no a``."""
    none = "neither node" if total == 2 else f"none of the {total:,} nodes"
    if clause.one.startswith("does not match "):
        return f"{none} matches {clause.one.removeprefix('does not match ')}"
    if clause.one.startswith("offers no "):
        return f"{none} offers {clause.one.removeprefix('offers no ')}"
    if clause.one.startswith("is not ") and " and " not in clause.one:
        return f"{none} is {clause.one.removeprefix('is not ')}"
    return f"{name_all(total)} {clause.several}"
