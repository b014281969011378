"""Fair sharing: the dominant resource share of ClusterQueues and cohorts (``pkg/cache/scheduler/fair_sharing.go``)."""

from __future__ import annotations

import math
from typing import NamedTuple

from kpreempt.model.kueue import FairSharing
from kpreempt.model.quantity import MAX_INT64, NANO_PER_UNIT
from kpreempt.schedulers.kueue.amounts import FlavorResource
from kpreempt.schedulers.kueue.quota import Amounts, Node


def weight_of(fair_sharing: FairSharing) -> float:
    """The weight, 1 where there is none."""
    return 1.0 if fair_sharing.weight is None else fair_sharing.weight.nano / NANO_PER_UNIT


class Share(NamedTuple):
    """What a node borrows, in thousandths of what it could borrow, for the resource of which that is most.

    It ``is_borrowing`` also of what nobody lends, which is a ``ratio`` of 0.
    """

    ratio: float
    weight: float
    resource: str = ""
    is_borrowing: bool = False
    borrowed: tuple[FlavorResource, ...] = ()

    @property
    def weighted(self) -> float:
        """The share: infinite where there is no weight."""
        if self.ratio == 0:
            return 0.0
        return math.inf if self.weight == 0 else self.ratio / self.weight

    @property
    def rank(self) -> tuple[int, float]:
        """What shares are compared by: nodes of weight 0 that borrow are above all others."""
        return (1, self.ratio) if self.weight == 0 and self.ratio != 0 else (0, self.weighted)

    @property
    def rounded(self) -> int:
        """The share as a status has it."""
        return MAX_INT64 if self.weight == 0 and self.ratio != 0 else math.ceil(self.weighted)

    def borrows(self, amounts: Amounts) -> bool:
        """Whether something is borrowed of which ``amounts`` has any."""
        return any(amounts.get(fr, 0) > 0 for fr in self.borrowed)


# Below every share.
NEGATIVE = Share(-1.0, 1.0)


def share_of(node: Node) -> Share:
    """The share of a node as it is used now."""
    if node.parent is None:
        return Share(0.0, node.weight)
    usage = node.usage
    over = {fr: usage.get(fr, 0) - quota for fr, quota in node.subtree.items() if usage.get(fr, 0) > quota}
    if not over:
        return Share(0.0, node.weight)
    by_resource: dict[str, int] = {}
    for (_, resource), amount in over.items():
        by_resource[resource] = by_resource.get(resource, 0) + amount
    lendable = _lendable(node.parent)
    ratio, dominant = 0.0, ""
    for resource, amount in by_resource.items():
        most = lendable.get(resource, 0)
        if most > 0:
            found = min(amount, MAX_INT64) * 1000.0 / float(min(most, MAX_INT64))
            if found > ratio or (found == ratio and resource < dominant):
                ratio, dominant = found, resource
    return Share(ratio, node.weight, dominant, True, tuple(over))


def _lendable(node: Node) -> dict[str, int]:
    """What a child of the node could use at most, by resource."""
    found = node.lendable
    if found is None:
        found = {}
        for fr in node.root.subtree:
            found[fr[1]] = found.get(fr[1], 0) + node.potential(fr)
        node.lendable = found
    return found
