"""The quota tree: cohorts and ClusterQueues, what they have, lend, borrow and use.

Follows ``pkg/cache/scheduler/resource_node.go`` and ``clusterqueue_snapshot.go`` of Kueue v0.19.2. All amounts are by
flavor and resource. Usage moves; quotas stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from kpreempt.model.kueue import ResourceGroup
from kpreempt.schedulers.kueue.amounts import UNLIMITED, FlavorResource, quota_amount

Amounts = dict[FlavorResource, int]


class Quota:
    """What a node has of a flavor's resource itself. Limits that are ``None`` do not limit."""

    __slots__ = ("borrowing_limit", "lending_limit", "nominal")

    def __init__(self, nominal: int = 0, borrowing_limit: int | None = None, lending_limit: int | None = None) -> None:
        self.nominal = nominal
        self.borrowing_limit = borrowing_limit
        self.lending_limit = lending_limit


_NONE = Quota()


def quotas_of(groups: Iterable[ResourceGroup]) -> dict[FlavorResource, Quota]:
    """The quotas of resource groups."""
    found: dict[FlavorResource, Quota] = {}
    for group in groups:
        for flavor in group.flavors:
            for each in flavor.resources:
                limits = (
                    None if limit is None else quota_amount(each.name, limit)
                    for limit in (each.borrowing_limit, each.lending_limit)
                )
                found[flavor.name, each.name] = Quota(quota_amount(each.name, each.nominal_quota), *limits)
    return found


class Node:
    """A cohort, or the quota of a ClusterQueue, in a tree that is complete once ``settle`` was called on its root."""

    def __init__(self, name: str, quotas: dict[FlavorResource, Quota], weight: float, *, is_cohort: bool) -> None:
        self.name = name
        self.quotas = quotas
        self.weight = weight
        self.is_cohort = is_cohort
        self.parent: Node | None = None
        self.cohorts: list[Node] = []
        self.queues: list[Node] = []
        # ClusterQueues that are not active: only their quota and usage count.
        self.inactive: list[Node] = []
        self.subtree: Amounts = {}
        self.usage: Amounts = {}
        # What the parent never sees, where it is anything.
        self._local: Amounts = {}
        self._potential: Amounts = {}
        # By resource; who asks for it first fills it in.
        self.lendable: dict[str, int] | None = None

    def __repr__(self) -> str:
        return f"{'Cohort' if self.is_cohort else 'ClusterQueue'} {self.name}"

    def settle(self) -> None:
        """Sum up quota and usage of everything below, from the leaves."""
        if self.is_cohort:
            self.usage = {}
        self.subtree = {fr: quota.nominal for fr, quota in self.quotas.items()}
        for child in (*self.cohorts, *self.queues, *self.inactive):
            child.settle()
            for fr, amount in child.subtree.items():
                self.subtree[fr] = min(UNLIMITED, self.subtree.get(fr, 0) + amount - child.local_quota(fr))
            for fr, amount in child.usage.items():
                self.usage[fr] = self.usage.get(fr, 0) + max(0, amount - child.local_quota(fr))
        self._potential, self.lendable = {}, None
        self._local = {
            fr: self.subtree.get(fr, 0) - quota.lending_limit
            for fr, quota in self.quotas.items()
            if quota.lending_limit is not None and self.subtree.get(fr, 0) > quota.lending_limit
        }

    def quota(self, fr: FlavorResource) -> Quota:
        """What the node has itself."""
        return self.quotas.get(fr, _NONE)

    @cached_property
    def ancestors(self) -> tuple[Node, ...]:
        """The cohorts above, from the parent to the root."""
        return () if self.parent is None else (self.parent, *self.parent.ancestors)

    @property
    def root(self) -> Node:
        """The top of the tree, which may be the node itself."""
        return self.ancestors[-1] if self.ancestors else self

    @cached_property
    def height(self) -> int:
        """The longest way down to a leaf."""
        return max((1 if self.queues or self.cohorts else 0, *(each.height + 1 for each in self.cohorts)))

    @property
    def path(self) -> str:
        """The way from the root, as in messages."""
        return "/" + "/".join(each.name for each in (*reversed(self.ancestors), self))

    def all_queues(self) -> Iterator[Node]:
        """The ClusterQueues of the subtree."""
        yield from self.queues
        for cohort in self.cohorts:
            yield from cohort.all_queues()

    def local_quota(self, fr: FlavorResource) -> int:
        """What is never lent to the parent."""
        return self._local.get(fr, 0)

    def local_available(self, fr: FlavorResource) -> int:
        """What is left of that."""
        return max(0, self._local.get(fr, 0) - self.usage.get(fr, 0)) if self._local else 0

    def available(self, fr: FlavorResource) -> int:
        """What is left here and above, within the borrowing limits. Below 0 where more is used than there is."""
        if self.parent is None:
            return self.subtree.get(fr, 0) - self.usage.get(fr, 0)
        above = self.parent.available(fr)
        limit = self.quota(fr).borrowing_limit
        local = self.local_quota(fr)
        if limit is not None:
            stored = self.subtree.get(fr, 0) - local
            above = min(above, stored - max(0, self.usage.get(fr, 0) - local) + limit)
        return self.local_available(fr) + above

    def potential(self, fr: FlavorResource) -> int:
        """What would be available if nothing were used."""
        found = self._potential.get(fr)
        if found is None:
            found = self.subtree.get(fr, 0)
            if self.parent is not None:
                limit = self.quota(fr).borrowing_limit
                whole = self.local_quota(fr) + self.parent.potential(fr)
                found = whole if limit is None else min(whole, found + limit)
            self._potential[fr] = found
        return found

    def borrows_with(self, fr: FlavorResource, amount: int = 0) -> bool:
        """Whether it borrows once ``amount`` more is used."""
        own = self.subtree.get(fr, 0) if self.is_cohort else self.quota(fr).nominal
        return own < self.usage.get(fr, 0) + amount

    def is_within_nominal(self, frs: Iterable[FlavorResource]) -> bool:
        """Whether no more is used of any of them than the subtree has."""
        subtree, usage = self.subtree, self.usage
        # It is asked very often, and a generator takes twice as long.
        for fr in frs:  # noqa: SIM110
            if subtree.get(fr, 0) < usage.get(fr, 0):
                return False
        return True

    def add(self, amounts: Mapping[FlavorResource, int]) -> None:
        """Use more, here and in the cohorts that it is borrowed from."""
        for fr, amount in amounts.items():
            self._add(fr, amount)

    def _add(self, fr: FlavorResource, amount: int) -> None:
        local = self.local_available(fr)
        self.usage[fr] = self.usage.get(fr, 0) + amount
        if self.parent is not None and amount > local:
            self.parent._add(fr, amount - local)

    def remove(self, amounts: Mapping[FlavorResource, int]) -> None:
        """Use less."""
        for fr, amount in amounts.items():
            self._remove(fr, amount)

    def _remove(self, fr: FlavorResource, amount: int) -> None:
        stored = self.usage.get(fr, 0) - self.local_quota(fr)
        self.usage[fr] = self.usage.get(fr, 0) - amount
        if self.parent is not None and stored > 0:
            self.parent._remove(fr, min(amount, stored))


def lowest_that_fits(queue: Node, fr: FlavorResource, amount: int) -> tuple[int, bool]:
    """How high the lowest subtree is that has room for ``amount``, and whether there is a parent to reclaim from.

    0 is the ClusterQueue itself.
    """
    if queue.parent is None or not queue.borrows_with(fr, amount):
        return 0, queue.parent is not None
    rest = amount - queue.local_available(fr)
    for cohort in queue.ancestors:
        if not cohort.borrows_with(fr, rest):
            return cohort.height, cohort.parent is not None
        rest -= cohort.local_available(fr)
    return queue.root.height, False


def fits_in_quota(node: Node, amounts: Mapping[FlavorResource, int]) -> tuple[bool, Amounts]:
    """Whether all fits into what the subtree has, and what is left for the parent to give."""
    fits = all(node.subtree.get(fr, 0) >= node.usage.get(fr, 0) + amount for fr, amount in amounts.items())
    return fits, {fr: max(0, amount - node.local_available(fr)) for fr, amount in amounts.items()}
