"""The minimum count over domains, for pod topology spread (``criticalPaths``, ``plugins/podtopologyspread``)."""

from __future__ import annotations

# The count of a constraint for which no node is eligible (MaxInt32).
NO_COUNT = 2**31 - 1


class LowestCounts:
    """The two domains with the fewest matching pods.

    Two are enough to know the minimum while the counts of only one domain change, which is true in a dry run: all pods
    are on the same node.
    """

    __slots__ = ("first", "second")

    def __init__(
        self, first: tuple[str | None, int] = (None, NO_COUNT), second: tuple[str | None, int] = (None, NO_COUNT)
    ) -> None:
        self.first = first
        self.second = second

    def update(self, domain: str, count: int) -> None:
        """Record a new or changed count of a domain."""
        if domain == self.first[0]:
            self.first = (domain, count)
        elif domain == self.second[0]:
            self.second = (domain, count)
        elif count < self.first[1]:
            self.first, self.second = (domain, count), self.first
        elif count < self.second[1]:
            self.second = (domain, count)
        if self.second[1] < self.first[1]:
            self.first, self.second = self.second, self.first
