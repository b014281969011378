"""Nodes as a drain leaves them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kpreempt.analysis.explain.overrides import cordoned_node
from kpreempt.model.node import Node


def cordoned(nodes: Iterable[Node], names: Collection[str]) -> list[Node]:
    """The nodes, of which those of these names take no pods; the very same records where they took none before."""
    return [cordoned_node(each) if each.name in names else each for each in nodes]
