"""What extenders were asked, and what came of it."""

from __future__ import annotations

import msgspec


class ExtenderCall(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One call of an extender, in the order in which they were made.

    ``extender`` is its address without a user's name and password; ``verb`` is ``filter``, ``prioritize`` or
    ``preempt``, and ``asked`` the number of nodes that it was asked about. ``without_victims`` says that this was a
    node that was chosen for preemption, without the victims there (1.8).

    What it did: ``refused`` nodes, each with its reason or an empty text, of which no eviction mends ``unresolvable``;
    ``let_in`` are nodes that it was not asked about. With ``returns_nodes`` it sent whole nodes back, which today's
    scheduler scores as if there were no pods on them. Of candidates it ``dropped`` some, and ``changed`` the victims of
    others to these; ``violations`` are the numbers of violated budgets that it gave instead of those that it was told.
    ``scores`` are those that it gave, before its weight. ``error`` is how the call failed, which was passed over where
    it was ``ignored``.
    """

    extender: str
    verb: str
    asked: int = 0
    without_victims: bool = False
    refused: dict[str, str] = {}
    unresolvable: list[str] = []
    let_in: list[str] = []
    returns_nodes: bool = False
    dropped: list[str] = []
    changed: dict[str, list[str]] = {}
    violations: dict[str, int] = {}
    scores: dict[str, int] = {}
    error: str = ""
    ignored: bool = False
