"""Where the order of equal volumes decides, which nobody knows beforehand: what may become of the pod besides."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kpreempt.verdict.outcome import Outcome


class _Record(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Base of the records."""


class VolumeFit(StrEnum):
    """In which orders of equal volumes the pod's claims can have theirs on a node.

    ``Unknown`` where there are too many ways to choose to follow them all.
    """

    EVERY_ORDER = "EveryOrder"
    SOME_ORDERS = "SomeOrders"
    NO_ORDER = "NoOrder"
    UNKNOWN = "Unknown"


class VolumeChoice(_Record, frozen=True):
    """A node on which an order decides what the claims come to: whether they fit, why not, or what they are rated.

    ``claims`` compete for ``volumes``, of which those that are the same to all claims are named only as often as there
    are claims to take them.
    """

    node: str
    claims: list[str]
    volumes: list[str]
    fits: VolumeFit


class VolumeOutcome(_Record, frozen=True, omit_defaults=True):
    """What becomes of the pod in other orders.

    ``nodes`` are those that it may land on, or be nominated to with the ``victims`` of each.
    """

    outcome: Outcome
    nodes: list[str] = []
    victims: dict[str, list[str]] = {}
    message: str = ""


class VolumeChoices(_Record, frozen=True):
    """The nodes on which the order of equal volumes decides, and the outcomes besides the one that the verdict tells.

    The verdict's own is that of the volumes in the order of the input. Where the answer is not ``complete``, there may
    be more outcomes than these. It is ``uncertain`` what becomes of the pod where outcomes differ, or may differ, in
    more than their messages.
    """

    nodes: list[VolumeChoice]
    outcomes: list[VolumeOutcome]
    complete: bool
    uncertain: bool
