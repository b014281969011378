"""How many nodes that fit are enough to score (``numFeasibleNodesToFind``, ``schedule_one.go``, v1.36.3)."""

from __future__ import annotations

from kpreempt.schedulers.kube.preemption.odds import order_of_map
from kpreempt.verdict import Sampling, SearchOrder

MIN_FEASIBLE_NODES = 100
MIN_PERCENTAGE = 5
_MAX_PERCENTAGE = 50
_NODES_PER_PERCENT = 125


def sampling_of(
    nodes: int, feasible: int, *, percentage: int, is_scoring: bool, is_restricted: bool = False
) -> Sampling | None:
    """The sampling of a search through ``nodes`` nodes, ``feasible`` of which fit; ``None`` where it finds them all.

    A ``percentage`` of 0 lets the number of nodes decide. Without plugins that score (``is_scoring``) the first node
    that fits is taken. Where PreFilter left some nodes only (``is_restricted``), these come in the order of a Go map.
    """
    if percentage == 0:
        percentage = max(_MAX_PERCENTAGE - nodes // _NODES_PER_PERCENT, MIN_PERCENTAGE)
    nodes_to_find = nodes if nodes < MIN_FEASIBLE_NODES else max(nodes * percentage // 100, MIN_FEASIBLE_NODES)
    if not is_scoring:
        nodes_to_find = 1
    order = order_of_map(nodes) if is_restricted else SearchOrder.LIST
    return Sampling(nodes, nodes_to_find, percentage, order) if feasible > nodes_to_find else None
