"""What chance decides: searches that stop before they have seen all nodes, and the order of equal volumes."""

from __future__ import annotations

from enum import StrEnum

from kpreempt.verdict.base import UntrackedRecord
from kpreempt.verdict.status import Outcome


class SearchOrder(StrEnum):
    """The order in which a search comes to the nodes.

    ``any``: that of a Go map of 100 nodes or more, counted as if every order were as likely: measured, no outcome is
    off by a percentage point. ``smallMap``: that of a map of fewer nodes, counted the same way, which misses by a few
    points, and by more the fewer nodes there are. ``list``: that of the scheduler's list of nodes, from one of them
    on and round.
    """

    ANY = "any"
    SMALL_MAP = "smallMap"
    LIST = "list"


class OddsOutcome(UntrackedRecord, frozen=True):
    """Nodes that are equal in all rules of the choice, and how likely it is that the search ends on one of them."""

    nodes: list[str]
    probability: float


class Odds(UntrackedRecord, frozen=True):
    """How a search for candidates that stops early decides the choice.

    It goes through the potential nodes in an order that is drawn anew for each attempt (with ``list``, each node is as
    likely a start), and ends once ``num_candidates`` candidates are found and one of them violates no budget.
    ``outcomes`` are all it can end with, the most likely first. Their probabilities add up to 1; those that all
    together are less likely than 1 in 10^12 are left out. With ``num_candidates`` 0, which a configuration can bring
    about, the real scheduler keeps no candidate at all, and there are no outcomes.

    Counted is a search that looks at one node after the other. The real one runs on ``parallelism`` workers, each of
    which takes ``chunk_size`` successive nodes at a time. In ``any`` order that changes nothing as
    long as one node takes as long to try as another: one that takes longer, since it has more pods, comes too late more
    often. Up to ``parallelism`` - 1 further candidates without violations may count where there are others with some.
    In the order of the ``list`` the workers are at several places at once, which may let other nodes win, too.
    """

    order: SearchOrder
    num_candidates: int
    outcomes: list[OddsOutcome]
    parallelism: int
    chunk_size: int


class Sampling(UntrackedRecord, frozen=True):
    """A search for nodes to score that stops before it has seen all nodes that fit.

    It ends with ``nodes_to_find`` of them, going round ``nodes`` nodes; ``percentage`` is the
    ``percentageOfNodesToScore`` that applies. In the ``order`` of the ``list``, which has the zones in turn, it starts
    where the search for the pod before ended. Only the running scheduler knows that (one that has just started begins
    with the first node), and several workers race from there. So each node that fits may be scored or not, with a
    probability that is not known. Scores that are relative to those of other nodes depend on which are scored.
    """

    nodes: int
    nodes_to_find: int
    percentage: int
    order: SearchOrder = SearchOrder.LIST


class VolumeFit(StrEnum):
    """In which orders of equal volumes the pod's claims can have theirs on a node.

    ``Unknown`` where there are too many ways to choose to follow them all.
    """

    EVERY_ORDER = "EveryOrder"
    SOME_ORDERS = "SomeOrders"
    NO_ORDER = "NoOrder"
    UNKNOWN = "Unknown"


class VolumeChoice(UntrackedRecord, frozen=True):
    """A node on which an order decides what the claims come to: whether they fit, why not, or what they are rated.

    ``claims`` compete for ``volumes``, of which those that are the same to all claims are named only as often as there
    are claims to take them.
    """

    node: str
    claims: list[str]
    volumes: list[str]
    fits: VolumeFit


class VolumeOutcome(UntrackedRecord, frozen=True, omit_defaults=True):
    """What becomes of the pod in other orders.

    ``nodes`` are those that it may land on, or be nominated to with the ``victims`` of each.
    """

    outcome: Outcome
    nodes: list[str] = []
    victims: dict[str, list[str]] = {}
    message: str = ""


class VolumeChoices(UntrackedRecord, frozen=True):
    """The nodes on which the order of equal volumes decides, and the outcomes besides the one that the verdict tells.

    The verdict's own is that of the volumes in the order of the input. Where the answer is not ``complete``, there may
    be more outcomes than these. It is ``uncertain`` what becomes of the pod where outcomes differ, or may differ, in
    more than their messages.
    """

    nodes: list[VolumeChoice]
    outcomes: list[VolumeOutcome]
    complete: bool
    uncertain: bool
