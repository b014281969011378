"""Amounts of quota, the tree of cohorts and ClusterQueues that lend, borrow and use it, and their fair shares.

Follows ``pkg/resources`` and ``pkg/cache/scheduler/{resource_node,clusterqueue_snapshot,fair_sharing}.go`` of Kueue
v0.19.2. CPU is in thousandths of a core, everything else in whole units, rounded up; quota that exceeds int64 is
unlimited. All amounts are by flavor and resource. Usage changes; quotas do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from kpreempt.model.kueue import FairSharing, ResourceGroup
from kpreempt.model.pod import Pod, PodSpec, ResourceList
from kpreempt.model.quantity import MAX_INT64, NANO_PER_MILLI, NANO_PER_UNIT, Quantity
from kpreempt.schedulers.kube.framework.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY, pod_requests

# Greater than any bounded amount, and stays so when amounts are added or subtracted.
UNLIMITED = 1 << 100
_BEYOND = 1 << 90

FlavorResource = tuple[str, str]
Requests = dict[str, int]

_BINARY = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))
_DECIMAL = ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"))
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


@cache
def hash_of(resource: str) -> int:
    """The 64-bit FNV-1a hash of a resource's name, which determines the order of requests."""
    found = _FNV_OFFSET
    for byte in resource.encode():
        found = ((found ^ byte) * _FNV_PRIME) % 2**64
    return found


def in_order(resources: Requests) -> list[str]:
    """Return the resources in Kueue's iteration order."""
    return sorted(resources, key=lambda name: (hash_of(name), name))


def quota_amount(resource: str, quantity: Quantity) -> int:
    """Convert a quantity to an amount of quota."""
    unit = NANO_PER_MILLI if resource == CPU else NANO_PER_UNIT
    # CPU is compared in whole cores before it is converted to thousandths.
    most = MAX_INT64 // 1000 * NANO_PER_UNIT if resource == CPU else MAX_INT64 * NANO_PER_UNIT
    return UNLIMITED if quantity.nano >= most else -(-quantity.nano // unit)


def requests_of(quantities: ResourceList) -> Requests:
    """Convert a resource list to amounts, clamped to int64."""
    return {name: _request(name, each.nano) for name, each in quantities.items()}


def pod_requests_of(spec: PodSpec) -> Requests:
    """Return the requests of a pod."""
    return {name: _request(name, nano) for name, nano in pod_requests(Pod(spec=spec)).items()}


def _request(resource: str, nano: int) -> int:
    amount = -(-nano // (NANO_PER_MILLI if resource == CPU else NANO_PER_UNIT))
    return max(-(2**63), min(amount, MAX_INT64))


@lru_cache(maxsize=1 << 16)
def amount_text(resource: str, amount: int) -> str:
    """Format an amount as in Kueue's messages."""
    if abs(amount) >= _BEYOND:
        return "<unlimited>" if amount > 0 else str(-(2**63))
    if resource == CPU:
        whole, rest = divmod(amount, 1000)
        return f"{amount}m" if rest else _decimal(whole)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES_PREFIX):
        if -1024 < amount < 1024:
            return _decimal(amount)
        for exponent, suffix in _BINARY:
            if not amount % 2**exponent:
                return f"{amount >> exponent}{suffix}"
        return str(amount)
    return _decimal(amount)


def _decimal(amount: int) -> str:
    for exponent, suffix in _DECIMAL:
        if amount and not amount % 10**exponent:
            return f"{amount // 10**exponent}{suffix}"
    return str(amount)


Amounts = dict[FlavorResource, int]


class Quota(NamedTuple):
    """A node's own quota of a flavor's resource. A limit of ``None`` means no limit."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


_NONE = Quota()


def quotas_of(groups: Iterable[ResourceGroup]) -> dict[FlavorResource, Quota]:
    """Return the quotas of resource groups."""
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
    """A cohort or the quota of a ClusterQueue in a tree, which is ready after ``settle`` on its root."""

    def __init__(self, name: str, quotas: dict[FlavorResource, Quota], weight: float, *, is_cohort: bool) -> None:
        self.name = name
        self.quotas = quotas
        self.weight = weight
        self.is_cohort = is_cohort
        self.parent: Node | None = None
        self.cohorts: list[Node] = []
        self.queues: list[Node] = []
        # Inactive ClusterQueues: only their quota and usage count.
        self.inactive: list[Node] = []
        self.subtree: Amounts = {}
        self.usage: Amounts = {}
        # Amounts that are never lent to the parent, if any.
        self._local: Amounts = {}
        self._potential: Amounts = {}
        # By resource, computed on first use.
        self.lendable: dict[str, int] | None = None

    def __repr__(self) -> str:
        return f"{'Cohort' if self.is_cohort else 'ClusterQueue'} {self.name}"

    def settle(self) -> None:
        """Sum the quota and usage of the subtree, from the leaves up."""
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
        """Return the node's own quota."""
        return self.quotas.get(fr, _NONE)

    @cached_property
    def ancestors(self) -> tuple[Node, ...]:
        """The cohorts above, from the parent to the root."""
        return () if self.parent is None else (self.parent, *self.parent.ancestors)

    @property
    def root(self) -> Node:
        """The root of the tree, which may be the node itself."""
        return self.ancestors[-1] if self.ancestors else self

    @cached_property
    def height(self) -> int:
        """The length of the longest path to a leaf."""
        return max((1 if self.queues or self.cohorts else 0, *(each.height + 1 for each in self.cohorts)))

    @property
    def path(self) -> str:
        """The path from the root, as in messages."""
        return "/" + "/".join(each.name for each in (*reversed(self.ancestors), self))

    def all_queues(self) -> Iterator[Node]:
        """Yield the ClusterQueues of the subtree."""
        yield from self.queues
        for cohort in self.cohorts:
            yield from cohort.all_queues()

    def local_quota(self, fr: FlavorResource) -> int:
        """Return the quota that is never lent to the parent."""
        return self._local.get(fr, 0)

    def local_available(self, fr: FlavorResource) -> int:
        """Return the unused part of the local quota."""
        return max(0, self._local.get(fr, 0) - self.usage.get(fr, 0)) if self._local else 0

    def available(self, fr: FlavorResource) -> int:
        """Return what is available here and above, within borrowing limits. Negative if usage exceeds quota."""
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
        """Return what would be available if nothing were used."""
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
        """Return whether the node borrows once ``amount`` more is used."""
        own = self.subtree.get(fr, 0) if self.is_cohort else self.quota(fr).nominal
        return own < self.usage.get(fr, 0) + amount

    def is_within_nominal(self, frs: Iterable[FlavorResource]) -> bool:
        """Return whether usage is within the nominal quota of the subtree for all of them."""
        subtree, usage = self.subtree, self.usage
        # This is called very often, and a generator takes twice as long.
        for fr in frs:  # noqa: SIM110
            if subtree.get(fr, 0) < usage.get(fr, 0):
                return False
        return True

    def add(self, amounts: Mapping[FlavorResource, int]) -> None:
        """Add usage, here and in the cohorts it is borrowed from."""
        for fr, amount in amounts.items():
            self._add(fr, amount)

    def _add(self, fr: FlavorResource, amount: int) -> None:
        local = self.local_available(fr)
        self.usage[fr] = self.usage.get(fr, 0) + amount
        if self.parent is not None and amount > local:
            self.parent._add(fr, amount - local)

    def remove(self, amounts: Mapping[FlavorResource, int]) -> None:
        """Remove usage."""
        for fr, amount in amounts.items():
            self._remove(fr, amount)

    def _remove(self, fr: FlavorResource, amount: int) -> None:
        stored = self.usage.get(fr, 0) - self.local_quota(fr)
        self.usage[fr] = self.usage.get(fr, 0) - amount
        if self.parent is not None and stored > 0:
            self.parent._remove(fr, min(amount, stored))


def lowest_that_fits(queue: Node, fr: FlavorResource, amount: int) -> tuple[int, bool]:
    """Return the height of the lowest subtree that can hold ``amount``, and whether it has a parent to reclaim from.

    A height of 0 is the ClusterQueue itself.
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
    """Return whether the amounts fit in the quota of the subtree, and what the parent has to provide."""
    fits = all(node.subtree.get(fr, 0) >= node.usage.get(fr, 0) + amount for fr, amount in amounts.items())
    return fits, {fr: max(0, amount - node.local_available(fr)) for fr, amount in amounts.items()}


def weight_of(fair_sharing: FairSharing) -> float:
    """Return the weight, by default 1."""
    return 1.0 if fair_sharing.weight is None else fair_sharing.weight.nano / NANO_PER_UNIT


class Share(NamedTuple):
    """What a node borrows, in thousandths of what it could borrow, for the resource with the greatest ratio.

    ``is_borrowing`` is also true for resources that no queue lends, with a ``ratio`` of 0.
    """

    ratio: float
    weight: float
    resource: str = ""
    is_borrowing: bool = False
    borrowed: tuple[FlavorResource, ...] = ()

    @property
    def weighted(self) -> float:
        """The weighted share; infinite if the weight is 0."""
        if self.ratio == 0:
            return 0.0
        return math.inf if self.weight == 0 else self.ratio / self.weight

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key of a share: borrowing nodes of weight 0 come after all others."""
        return (1, self.ratio) if self.weight == 0 and self.ratio != 0 else (0, self.weighted)

    @property
    def rounded(self) -> int:
        """The share as in a status."""
        return MAX_INT64 if self.weight == 0 and self.ratio != 0 else math.ceil(self.weighted)

    def borrows(self, amounts: Amounts) -> bool:
        """Return whether any resource in ``amounts`` is borrowed."""
        return any(amounts.get(fr, 0) > 0 for fr in self.borrowed)


# Less than any other share.
NEGATIVE = Share(-1.0, 1.0)


def share_of(node: Node) -> Share:
    """Return the share of a node at its current usage."""
    if node.parent is None:
        return Share(0.0, node.weight)
    usage = node.usage
    over = {fr: usage.get(fr, 0) - quota for fr, quota in node.subtree.items() if usage.get(fr, 0) > quota}
    if not over:
        return Share(0.0, node.weight)
    by_resource: dict[str, int] = {}
    for (_, resource), amount in over.items():
        by_resource[resource] = by_resource.get(resource, 0) + amount
    # What a child of the parent could use at most, by resource.
    lendable = node.parent.lendable
    if lendable is None:
        lendable = node.parent.lendable = {}
        for fr in node.parent.root.subtree:
            lendable[fr[1]] = lendable.get(fr[1], 0) + node.parent.potential(fr)
    ratio, dominant = 0.0, ""
    for resource, amount in by_resource.items():
        most = lendable.get(resource, 0)
        if most > 0:
            found = min(amount, MAX_INT64) * 1000.0 / float(min(most, MAX_INT64))
            if found > ratio or (found == ratio and resource < dominant):
                ratio, dominant = found, resource
    return Share(ratio, node.weight, dominant, True, tuple(over))
