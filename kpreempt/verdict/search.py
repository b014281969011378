"""Searches that stop before they have seen all nodes, and what chance makes of them."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class _Record(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Base of the records."""


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


class OddsOutcome(_Record, frozen=True):
    """Nodes that are equal in all rules of the choice, and how likely it is that the search ends on one of them."""

    nodes: list[str]
    probability: float


class Odds(_Record, frozen=True):
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


class Sampling(_Record, frozen=True):
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
