"""What chance decides: searches that stop before they have checked all nodes, and the order of equal volumes."""

from __future__ import annotations

from enum import StrEnum

from kpreempt.verdict.base import UntrackedRecord
from kpreempt.verdict.status import Outcome


class SearchOrder(StrEnum):
    """The order in which a search visits the nodes.

    ``any``: the order of a Go map with at least 100 nodes, computed as if every order were equally likely; measured
    errors are below one percentage point. ``smallMap``: the order of a map with fewer nodes, computed in the same way;
    errors are a few percentage points, and larger for fewer nodes. ``list``: the order of the scheduler's node list,
    from some node to the end and then from the start.
    """

    ANY = "any"
    SMALL_MAP = "smallMap"
    LIST = "list"


class OddsOutcome(UntrackedRecord, frozen=True):
    """Nodes that are tied under all rules of the choice, and the probability that the search picks one of them."""

    nodes: list[str]
    probability: float


class Odds(UntrackedRecord, frozen=True):
    """The possible results of the choice if the search for candidate nodes stops early.

    It visits the potential nodes in an order that is random for each attempt (with ``list``, every node is equally
    likely to be the start), and ends once ``num_candidates`` candidates are found and one of them violates no budget.
    ``outcomes`` are all possible results, most likely first. Their probabilities add up to 1; outcomes that in total
    are less likely than 1 in 10^12 are omitted. If ``num_candidates`` is 0, which a configuration can cause, the real
    scheduler keeps no candidates at all, and there are no outcomes.

    The probabilities assume a search that visits one node after the other. The real one has ``parallelism`` workers,
    each of which takes ``chunk_size`` successive nodes at a time. In ``any`` order that makes no difference as long as
    all nodes take equally long; a node that takes longer, because it has more pods, is late more often. Up to
    ``parallelism`` - 1 further candidates without violations may count if other candidates have some. In ``list`` order
    the workers start at several places, so other nodes may win, too.
    """

    order: SearchOrder
    num_candidates: int
    outcomes: list[OddsOutcome]
    parallelism: int
    chunk_size: int


class Sampling(UntrackedRecord, frozen=True):
    """A search for nodes to score that stops before it has checked all nodes.

    It ends once ``nodes_to_find`` of ``nodes`` nodes fit; ``percentage`` is the effective ``percentageOfNodesToScore``.
    In ``list`` order, which alternates between zones, it starts where the search for the previous pod ended. Only the
    running scheduler knows that position (a scheduler that has just started begins with the first node), and several
    workers race from there. So each node that fits may be scored or not, with unknown probability. Scores that are
    relative to those of other nodes depend on which nodes are scored.
    """

    nodes: int
    nodes_to_find: int
    percentage: int
    order: SearchOrder = SearchOrder.LIST


class VolumeFit(StrEnum):
    """The orders of equal volumes in which the pod's claims can be satisfied on a node.

    ``Unknown`` if there are too many combinations to check them all.
    """

    EVERY_ORDER = "EveryOrder"
    SOME_ORDERS = "SomeOrders"
    NO_ORDER = "NoOrder"
    UNKNOWN = "Unknown"


class VolumeChoice(UntrackedRecord, frozen=True):
    """A node on which the order of volumes affects the claims: whether they fit, why not, or the node's score.

    ``claims`` compete for ``volumes``; volumes that are the same for all claims are listed only as often as there are
    claims for them.
    """

    node: str
    claims: list[str]
    volumes: list[str]
    fits: VolumeFit


class VolumeOutcome(UntrackedRecord, frozen=True, omit_defaults=True):
    """An outcome of the pod in other orders of the volumes.

    ``nodes`` are those that it may land on, or be nominated to with the ``victims`` of each.
    """

    outcome: Outcome
    nodes: list[str] = []
    victims: dict[str, list[str]] = {}
    message: str = ""


class VolumeChoices(UntrackedRecord, frozen=True):
    """The nodes on which the order of equal volumes matters, and the outcomes other than the verdict's.

    The verdict uses the order of the input. If the answer is not ``complete``, there may be more outcomes than these.
    It is ``uncertain`` if outcomes differ, or may differ, in more than their messages.
    """

    nodes: list[VolumeChoice]
    outcomes: list[VolumeOutcome]
    complete: bool
    uncertain: bool
