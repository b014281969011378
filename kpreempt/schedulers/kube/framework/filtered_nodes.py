"""What the filters say of all nodes, for pods of one shape from one cluster to the next, and what that comes to.

Where hundreds of like pods come one after the other, a few nodes change from one to the next. Their statuses are found
out anew, and what they come to in all (reasons, nodes that fit, nodes where evictions may help) is brought up to date
by difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import cast

from kpreempt.schedulers.kube.framework.interface import NodeToStatus
from kpreempt.schedulers.kube.framework.memory import Changes
from kpreempt.verdict import Code, Status
from kpreempt.verdict.status import SUCCESS

# The plugin that refuses a node, and how.
_Kind = tuple[str, Code]


class FilterColumn:
    """The status of each node of a cluster, in their order. To be read until it is renewed for another cluster.

    Of a place that is open nothing is known.
    """

    def __init__(self, names: Sequence[str], changes: Changes) -> None:
        self.names = names
        self.feasible: set[int] = set()
        # Names are in the order in which they came.
        self.refused: dict[_Kind, dict[str, None]] = {}
        self.reasons: Counter[str] = Counter()
        self.statuses: list[Status | None] = [None] * len(names)
        self._changes = changes
        self._seen = len(changes.places)
        self._open = set(range(len(names)))

    def renew(self, find_out: Callable[[int], Status], *, but_at: Collection[int] = ()) -> None:
        """Have the statuses at all places found out where something has changed, ``but_at`` some, which stay open."""
        for place in {*self._changes.places[self._seen :], *but_at} - self._open:
            self._count(place, -1)
            self.statuses[place] = None
            self._open.add(place)
        self._seen = len(self._changes.places)
        for place in sorted(self._open.difference(but_at)):
            self.statuses[place] = find_out(place)
            self._count(place, 1)
            self._open.discard(place)

    def _count(self, place: int, by: int) -> None:
        status = self.statuses[place]
        assert status is not None
        if status is SUCCESS:
            (self.feasible.add if by > 0 else self.feasible.discard)(place)
            return
        names = self.refused.setdefault((status.plugin, status.code), {})
        if by > 0:
            names[self.names[place]] = None
        else:
            names.pop(self.names[place], None)
        for reason in status.reasons:
            self.reasons[reason] += by


class FilteredNodes(NodeToStatus):
    """The nodes that the filters refuse: those of a column, and at its open places those that are given.

    To be read before the column is renewed. What is not asked for is not listed.
    """

    def __init__(self, column: FilterColumn, position: Mapping[str, int], given: Mapping[int, Status]) -> None:
        self.absent = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        self._column = column
        self._position = position
        self._given = given

    @cached_property
    def all(self) -> list[Status]:
        """The status of every node."""
        statuses = list(self._column.statuses)
        for place, status in self._given.items():
            statuses[place] = status
        return cast("list[Status]", statuses)

    @cached_property
    def statuses(self) -> dict[str, Status]:  # type: ignore[override]
        """The status of each node that is refused."""
        return {
            name: status for name, status in zip(self._column.names, self.all, strict=True) if status is not SUCCESS
        }

    @property
    def feasible(self) -> list[int]:
        """The places of the nodes that fit."""
        return sorted([*self._column.feasible, *(place for place, each in self._given.items() if each is SUCCESS)])

    @property
    def num_refused(self) -> int:
        return len(self._column.names) - len(self.feasible)

    @property
    def reasons(self) -> Counter[str]:
        counts = Counter({reason: count for reason, count in self._column.reasons.items() if count})
        counts.update(reason for status in self._given.values() for reason in status.reasons)
        return counts

    @property
    def refused(self) -> dict[_Kind, Collection[str]]:
        """The nodes that are refused, by the plugin and how."""
        found: dict[_Kind, Collection[str]] = {kind: names for kind, names in self._column.refused.items() if names}
        for place, status in self._given.items():
            if status is not SUCCESS:
                kind = (status.plugin, status.code)
                found[kind] = [*found.get(kind, ()), self._column.names[place]]
        return found

    @property
    def examples(self) -> dict[str, Status]:
        """Of the nodes that a plugin refuses in one way one, with its status."""
        return {(name := next(iter(names))): self.get(name) for names in self.refused.values()}

    def get(self, node_name: str) -> Status:
        place = self._position.get(node_name)
        status = None if place is None else self._given.get(place) or self._column.statuses[place]
        return self.absent if status is None or status is SUCCESS else status
