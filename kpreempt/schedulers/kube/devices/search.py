"""Finds devices for claims, one after the other, by backtracking.

Follows ``structured/internal/incubating/allocator_incubating.go`` (``dynamic-resource-allocation`` v0.36.3): claims,
requests, alternatives and devices are tried in order, and the first solution wins. Within a request, a device only
follows earlier ones; each request starts over.

Constraints define what the devices of a claim must, or must not, have in common (``structured/internal/incubating``,
v0.36.3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kpreempt.model.devices import (
    MAX_RESULTS,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceId,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from kpreempt.model.node import Node
from kpreempt.schedulers.kube.devices.capacity import Consumed, InUse, UnrepresentableError, has_capacity, used_by
from kpreempt.schedulers.kube.devices.pools import Pool, PoolDevice, PoolId, is_for
from kpreempt.schedulers.kube.devices.rules import AllocatorRules
from kpreempt.schedulers.kube.devices.selectors import SelectorError, Selectors


class Constraint(ABC):
    """A constraint of one claim, with the values of the devices that were added to it."""

    def __init__(self, stated: DeviceConstraint, attribute: str) -> None:
        self._requests = frozenset(stated.requests)
        self._attribute = attribute
        self._values: list[_Value] = []

    def add(self, request: str, alternative: str, device: Device, driver: str) -> bool:
        """Add a device for a request, and return whether it satisfies the constraint together with the earlier ones."""
        if not self._concerns(request, alternative):
            return True
        # The attribute with that name; one without a domain belongs to the driver.
        attribute = device.attributes.get(self._attribute)
        if attribute is None:
            domain, slash, own = self._attribute.partition("/")
            attribute = device.attributes.get(own) if slash and domain == driver else None
        return attribute is not None and self._take(request, attribute.typed)

    def remove(self, request: str, alternative: str) -> None:
        """Remove the last device that was added, which was for this request."""
        if self._concerns(request, alternative):
            self._drop(request)

    def _concerns(self, request: str, alternative: str) -> bool:
        named = self._requests
        return not named or request in named or (bool(alternative) and f"{request}/{alternative}" in named)

    @abstractmethod
    def _take(self, request: str, value: _Value) -> bool:
        """Record a device's value if it is allowed; a value of unknown type is ``None``."""

    def _drop(self, request: str) -> None:
        self._values.pop()


# Including its type.
_Value = tuple[str, object] | None


def constraint_of(stated: DeviceConstraint, *, compares_all: bool) -> Constraint | None:
    """Return the constraint without devices; ``None`` for an unknown type.

    With ``compares_all``, a distinct attribute is compared with those of all earlier devices; up to 1.36, only with
    that of each request's last device.
    """
    if stated.match_attribute is not None:
        return _Match(stated, stated.match_attribute)
    if stated.distinct_attribute is None:
        return None
    kind = _DistinctFromAll if compares_all else _DistinctByRequest
    return kind(stated, stated.distinct_attribute)


class _Match(Constraint):
    """All devices have the same value."""

    def _take(self, request: str, value: _Value) -> bool:
        if self._values and (value is None or value != self._values[0]):
            return False
        self._values.append(value)
        return True


class _DistinctFromAll(Constraint):
    """The value differs from every device's."""

    def _take(self, request: str, value: _Value) -> bool:
        if self._values and (value is None or value in self._values):
            return False
        self._values.append(value)
        return True


class _DistinctByRequest(Constraint):
    """The value differs from that of each request's last device, which is forgotten when a device is dropped."""

    def __init__(self, stated: DeviceConstraint, attribute: str) -> None:
        super().__init__(stated, attribute)
        self._last: dict[str, _Value] = {}

    def _take(self, request: str, value: _Value) -> bool:
        if self._values and self._last and (value is None or value in self._last.values()):
            return False
        self._last[request] = value
        self._values.append(value)
        return True

    def _drop(self, request: str) -> None:
        self._last.pop(request, None)
        self._values.pop()


# Devices that are tried for one pod, over all nodes, before the search stops.
MAX_STEPS = 1_000_000
# Devices of one pod: up to three times as many calls are nested, and the interpreter allows a thousand.
_DEEPEST = 250


class AllocationError(Exception):
    """A claim or a class is invalid, which ends the attempt; ``str`` is upstream's text."""


class SearchLimitError(Exception):
    """The search takes too long: whether there are devices is unknown."""


class _TooManyResultsError(Exception):
    """A claim would exceed the maximum number of results; another alternative may need fewer."""


class Wish(NamedTuple):
    """A request, or an alternative of one, with its class. ``devices`` are all devices that the mode All requests."""

    request: ExactDeviceRequest | DeviceSubRequest
    name: str
    alternative: str
    device_class: DeviceClass
    number: int
    devices: Sequence[tuple[Pool, PoolDevice]] | None = None

    @property
    def full_name(self) -> str:
        """``request`` or ``request/alternative``."""
        return f"{self.name}/{self.alternative}" if self.alternative else self.name

    @property
    def own_name(self) -> str:
        """The name in errors: the alternative's, if there are several."""
        return self.alternative or self.name


class ClaimWishes(NamedTuple):
    """A claim's requests, each with its alternatives (one if exact), and its constraints without devices."""

    key: str
    requests: Sequence[Sequence[Wish]]
    constraints: Sequence[Constraint]


class Allocated(NamedTuple):
    """A device found for a request; ``consumed`` is the capacity that a share uses."""

    request: str
    pool: Pool
    device: PoolDevice
    is_share: bool
    consumed: Consumed


class Steps:
    """The number of devices that may still be tried."""

    __slots__ = ("remaining",)

    def __init__(self) -> None:
        self.remaining = MAX_STEPS


class Search:
    """One search for all claims on one node. ``reached`` is the farthest request reached, by its indices."""

    def __init__(
        self,
        node: Node,
        pools: Sequence[Pool],
        claims: Sequence[ClaimWishes],
        in_use: InUse,
        selectors: Selectors,
        rules: AllocatorRules,
        counters: Counters,
        steps: Steps,
    ) -> None:
        self._node = node
        self._pools = [pool for pool in pools if not pool.invalid or rules.fails_at_invalid_pools]
        self._claims = claims
        self._in_use = in_use
        self._selectors = selectors
        self._rules = rules
        self._counters = counters
        self._steps = steps
        # The allocated devices, in order of allocation.
        self._path: list[PoolDevice] = []
        self.found: list[list[Allocated]] = [[] for _ in claims]
        self.reached = (0, 0)
        # The claims, by index, for which this search has allocated a device, with the capacity if it is shared.
        self._taken: dict[DeviceId, set[int]] = {}
        self._shares: dict[DeviceId, list[Consumed]] = {}

    def run(self) -> bool:
        """Return whether there are devices for all claims, which are then in ``found``. Raises ``AllocationError``."""
        try:
            return self._request(0, 0)
        except _TooManyResultsError:
            raise AllocationError("allocation max size exceeded") from None

    def _request(self, claim: int, index: int) -> bool:
        """Handle the requests of a claim from this one on, and then the later claims."""
        if claim == len(self._claims):
            return True
        requests = self._claims[claim].requests
        if index == len(requests):
            # After the first claim, too many results are a dead end, not an error.
            try:
                return self._request(claim + 1, 0)
            except _TooManyResultsError:
                return False
        self.reached = max(self.reached, (claim, index))
        if not requests[index][0].alternative:
            return self._devices(claim, index, requests[index][0], 0)
        exceeds = True
        for wish in requests[index]:
            try:
                if self._devices(claim, index, wish, 0):
                    return True
            except _TooManyResultsError:
                continue
            exceeds = False
        if exceeds:
            raise _TooManyResultsError
        return False

    def _devices(self, claim: int, request: int, wish: Wish, taken: int, start: tuple[int, int] = (0, 0)) -> bool:
        """Allocate the devices of a request after the first ``taken``, and everything that follows."""
        if wish.devices is not None and not wish.devices:
            return False
        if taken >= wish.number:
            return self._request(claim, request + 1)
        if len(self.found[claim]) + wish.number - taken > MAX_RESULTS:
            raise _TooManyResultsError
        if len(self._path) > _DEEPEST:
            raise SearchLimitError
        leaves = wish.devices is not None and self._rules.leaves_alternatives
        following = self._claims[claim].requests[request][0] if leaves else wish
        for pool, device, after in self._candidates(claim, wish, taken, start):
            undo = self._take(claim, wish, pool, device)
            if undo is None:
                continue
            is_done = False
            self._path.append(device)
            try:
                is_done = self._devices(claim, request, following, taken + 1, after)
            finally:
                self._path.pop()
                if not is_done:
                    self.found[claim].pop()
                    if undo.is_shared:
                        self._shares[device.id].pop()
                    else:
                        self._taken[device.id].discard(claim)
                    self._give_back_parts(claim, wish, pool, device, undo)
            if is_done:
                return True
        return False

    def _candidates(
        self, claim: int, wish: Wish, taken: int, start: tuple[int, int]
    ) -> Iterator[tuple[Pool, PoolDevice, tuple[int, int]]]:
        """Yield the devices that may come next, from ``start`` on, and the position at which to continue after each."""
        if wish.devices is not None:
            self._count_step()
            yield *wish.devices[taken], (0, 0)
            return
        begin = start[1]
        for pool_index in range(start[0], len(self._pools)):
            pool = self._pools[pool_index]
            if pool.invalid:
                raise AllocationError(f"pool {pool.id[1]} is invalid: {pool.invalid}")
            for index in range(begin, len(pool.devices)):
                device = pool.devices[index]
                self._count_step()
                if (
                    self._is_free(claim, wish, device)
                    and is_selected(wish, device, self._node, self._selectors, self._claims[claim].key, self._rules)
                    and self._fits(claim, wish, device)
                ):
                    yield pool, device, (pool_index, index + 1)
            begin = 0

    def _count_step(self) -> None:
        self._steps.remaining -= 1
        if self._steps.remaining < 0:
            raise SearchLimitError

    def _is_free(self, claim: int, wish: Wish, device: PoolDevice) -> bool:
        taken = self._taken.get(device.id)
        if wish.request.admin_access:
            return not taken or claim not in taken
        return not taken and device.id not in self._in_use.devices

    def _fits(self, claim: int, wish: Wish, device: PoolDevice) -> bool:
        if not self._rules.shares or not (device.device.capacity or wish.request.capacity):
            return True
        allocating: Consumed = {}
        for share in self._shares.get(device.id, ()):
            for name, amount in share.items():
                allocating[name] = allocating.get(name, 0) + amount
        consumed = self._in_use.consumed.get(device.id, {})
        try:
            return has_capacity(
                wish.request.capacity, device.device, consumed, allocating, fractions=self._rules.fractions
            )
        except UnrepresentableError as error:
            context = f"claim {self._claims[claim].key}, request {wish.own_name}: checking capacity for device"
            raise AllocationError(f"{context} {'/'.join(device.id)}: {error}") from None

    def _take(self, claim: int, wish: Wish, pool: Pool, device: PoolDevice) -> _Undo | None:
        """Allocate the device if possible; return what to undo to release it."""
        stated = device.device
        is_shared = self._rules.shares and bool(stated.allow_multiple_allocations)
        is_admin = bool(wish.request.admin_access)
        if not (is_admin and is_shared) and not self._is_free(claim, wish, device):
            return None
        if stated.consumes_counters and not self._rules.pools.partitions:
            return None
        # A device that is already shared uses no more of its counters.
        is_counted = device.id in self._in_use.consumed or bool(self._shares.get(device.id))
        is_counted |= self._rules.counts_every_share and device.id in self._in_use.shared
        counts = bool(stated.consumes_counters) and not (is_shared and is_counted)
        if counts and not self._counters.reserve(pool, device):
            return None
        undo = _Undo(counts, 0, is_shared)
        constraints = self._claims[claim].constraints
        if self._rules.taints and not tolerates_taints(wish, device):
            self._give_back_parts(claim, wish, pool, device, undo)
            return None
        for number, constraint in enumerate(constraints):
            if not constraint.add(wish.name, wish.alternative, stated, device.slice.driver):
                self._give_back_parts(claim, wish, pool, device, undo._replace(constraints=number))
                if wish.devices is not None:
                    raise AllocationError(
                        f"claim {self._claims[claim].key}, request {wish.own_name}: cannot add device"
                        f" {'/'.join(device.id)} because a claim constraint would not be satisfied"
                    )
                return None
        undo = undo._replace(constraints=len(constraints))
        if not self._fits(claim, wish, device):
            self._give_back_parts(claim, wish, pool, device, undo)
            return None
        consumed: Consumed = {}
        if is_shared:
            consumed = used_by(wish.request.capacity, stated, fractions=self._rules.fractions)
            self._shares.setdefault(device.id, []).append(consumed)
        else:
            self._taken.setdefault(device.id, set()).add(claim)
        self.found[claim].append(Allocated(wish.full_name, pool, device, is_shared, consumed))
        return undo

    def _give_back_parts(self, claim: int, wish: Wish, pool: Pool, device: PoolDevice, undo: _Undo) -> None:
        for constraint in reversed(self._claims[claim].constraints[: undo.constraints]):
            constraint.remove(wish.name, wish.alternative)
        if undo.counts:
            self._counters.release(pool, device)


class _Undo(NamedTuple):
    """What allocating a device changed: counters, the number of constraints, and a share or the whole device."""

    counts: bool
    constraints: int
    is_shared: bool


class Counters:
    """The counters of pools: what allocated devices leave, and what this search uses."""

    def __init__(self, in_use: InUse, available: dict[PoolId, dict[tuple[str, str], int]]) -> None:
        """``available`` is shared by all nodes and filled in here."""
        self._in_use = in_use
        self._available = available
        self._consumed: dict[PoolId, dict[tuple[str, str], int]] = {}

    def reserve(self, pool: Pool, device: PoolDevice) -> bool:
        """Add what the device consumes, unless that exceeds a counter of the pool."""
        available = self._available.get(pool.id)
        if available is None:
            available = self._available[pool.id] = self._left(pool)
        consumed = self._consumed.setdefault(pool.id, {})
        _add_counters(consumed, device, 1)
        if all(left >= consumed.get(name, 0) for name, left in available.items()):
            return True
        _add_counters(consumed, device, -1)
        return False

    def release(self, pool: Pool, device: PoolDevice) -> None:
        """Release what ``reserve`` added."""
        _add_counters(self._consumed[pool.id], device, -1)

    def _left(self, pool: Pool) -> dict[tuple[str, str], int]:
        left = {
            (each.name, name): counter.value.nano
            for each in pool.counters.values()
            for name, counter in each.counters.items()
        }
        for device in (*pool.devices, *pool.elsewhere):
            if self._in_use.is_taken(device.id):
                for consumption in device.device.consumes_counters:
                    for name, counter in consumption.counters.items():
                        if (consumption.counter_set, name) in left:
                            left[consumption.counter_set, name] -= counter.value.nano
        return left


def _add_counters(consumed: dict[tuple[str, str], int], device: PoolDevice, sign: int) -> None:
    for consumption in device.device.consumes_counters:
        for name, counter in consumption.counters.items():
            key = (consumption.counter_set, name)
            consumed[key] = consumed.get(key, 0) + sign * counter.value.nano


def is_selected(
    wish: Wish, device: PoolDevice, node: Node, selectors: Selectors, claim: str, rules: AllocatorRules
) -> bool:
    """Return whether class and request match the device and the node can access it. Raises ``AllocationError``."""
    if not rules.binding_conditions and device.device.binding_conditions:
        return False
    device_class = wish.device_class
    whose = f"class {device_class.metadata.name}"
    try:
        if not selectors.select(device_class.spec.selectors, device):
            return False
        whose = f"claim {claim}"
        if not selectors.select(wish.request.selectors, device):
            return False
    except SelectorError as error:
        raise AllocationError(f"{whose}: {error}") from None
    return not device.slice.spec.per_device_node_selection or is_for(node, device.device)


def tolerates_taints(wish: Wish, device: PoolDevice) -> bool:
    """Return whether the request tolerates all taints of the device."""
    return all(
        any(each.tolerates(taint) for each in wish.request.tolerations)
        for taint in device.device.taints
        if taint.effect in ("NoSchedule", "NoExecute")
    )
