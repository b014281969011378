"""Which pods a verdict says may be evicted, where the order of equal pods decides."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ToldSet:
    """On ``node`` all of ``certain`` go, and of each of ``choices`` so many of its pods."""

    node: str
    certain: frozenset[str]
    choices: tuple[tuple[int, frozenset[str]], ...] = ()

    @property
    def size(self) -> int:
        """How many pods go."""
        return len(self.certain) + sum(count for count, _ in self.choices)

    def has(self, victims: Collection[str]) -> bool:
        """Whether just these may be the victims."""
        left = set(victims) - self.certain
        fits = all(len(left & pods) == count for count, pods in self.choices)
        return self.certain <= set(victims) and fits and left <= set().union(*(pods for _, pods in self.choices))


def told_victim_sets(document: dict[str, Any]) -> list[ToldSet]:
    """All that the verdict says may be evicted, without pods that are on their way out already."""
    likely = [victim for of_node in document.get("victims", {}).values() for victim in of_node]
    leaving = {victim["pod"] for victim in likely if victim.get("terminating")}
    if alternatives := document.get("alternatives"):
        return [
            ToldSet(
                node=each["node"],
                certain=frozenset(each["victims"]) - leaving,
                choices=tuple((choice["count"], frozenset(choice["pods"])) for choice in each.get("choices", [])),
            )
            for each in alternatives["outcomes"]
        ]
    return [
        ToldSet(node, frozenset(victim["pod"] for victim in document["victims"].get(node, [])) - leaving)
        for node in document.get("nominatedNodes", [])
    ]


def is_told(document: dict[str, Any], node: str, victims: Collection[str]) -> bool:
    """Whether the verdict says that just these may be evicted from the node."""
    return any(each.node == node and each.has(victims) for each in told_victim_sets(document))
