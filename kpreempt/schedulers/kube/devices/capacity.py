"""The device capacity that a request uses, and whether that much is left.

Follows ``structured/internal/incubating/consumable_capacity.go`` (``dynamic-resource-allocation`` v0.36.3, and v0.37.1
for fractions). Amounts are in 1e-9 units.

Also the devices that claims have (``plugins/dynamicresources/allocateddevices.go``, v1.36.3). Every allocation counts,
whether or not a pod uses the claim, except devices allocated with admin access.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kpreempt.model.devices import (
    CapacityPolicy,
    CapacityRange,
    CapacityRequirements,
    Device,
    DeviceCapacity,
    DeviceId,
    DeviceResult,
    ResourceClaim,
)
from kpreempt.model.quantity import MAX_INT64, NANO_PER_MILLI, NANO_PER_UNIT, Quantity

# How much of each capacity is used, in 1e-9 units.
Consumed = dict[str, int]


class InUse(NamedTuple):
    """Devices that are allocated exclusively, devices that are shared, and the capacity that the shares use."""

    devices: frozenset[DeviceId]
    shared: frozenset[DeviceId]
    consumed: Mapping[DeviceId, Consumed]

    def is_taken(self, device: DeviceId) -> bool:
        """Return whether any claim has the device, or a share of it."""
        return device in self.devices or device in self.shared or device in self.consumed


def devices_in_use(claims: Iterable[ResourceClaim], *, shares: bool) -> InUse:
    """Return what ``claims`` have. Unless devices may be shared (``shares``), shares count as whole devices."""
    devices: set[DeviceId] = set()
    shared: set[DeviceId] = set()
    consumed: dict[DeviceId, Consumed] = {}
    for claim in claims:
        for result in results_of(claim):
            if result.admin_access:
                continue
            if not shares or result.share_id is None:
                devices.add(result.id)
                continue
            shared.add(result.id)
            if result.consumed_capacity:
                of_device = consumed.setdefault(result.id, {})
                for name, amount in result.consumed_capacity.items():
                    of_device[name] = of_device.get(name, 0) + amount.nano
    return InUse(frozenset(devices), frozenset(shared), consumed)


def results_of(claim: ResourceClaim) -> Iterable[DeviceResult]:
    """Return the devices that were allocated to the claim."""
    return claim.status.allocation.devices.results if claim.status.allocation is not None else ()


_NOTHING: Mapping[str, int] = {}


class UnrepresentableError(Exception):
    """A request, or its rounded value, does not fit int64; ``str`` is upstream's text."""


def used_by(request: CapacityRequirements | None, device: Device, *, fractions: bool = False) -> Consumed:
    """Return what the request uses of each of the device's capacities. Raises ``UnrepresentableError``."""
    requested = request.requests if request is not None else {}
    return {
        name: _rounded_up(requested.get(name), capacity, fractions=fractions)
        for name, capacity in device.capacity.items()
    }


def has_capacity(
    request: CapacityRequirements | None,
    device: Device,
    consumed: Mapping[str, int] = _NOTHING,
    allocating: Mapping[str, int] = _NOTHING,
    *,
    fractions: bool = False,
) -> bool:
    """Return whether the device has all requested capacities, and enough left of each.

    ``consumed`` is what other claims have, ``allocating`` what this search has allocated. Raises
    ``UnrepresentableError`` if ``fractions`` are possible.
    """
    # An ordinary device, which is allocated exclusively.
    has_policy = any(capacity.request_policy is not None for capacity in device.capacity.values())
    if request is None and not consumed and not allocating and not has_policy:
        return True
    if request is not None and not request.requests.keys() <= device.capacity.keys():
        return False
    for name, amount in used_by(request, device, fractions=fractions).items():
        capacity = device.capacity[name]
        if _violates(amount, capacity.request_policy, fractions=fractions):
            return False
        if consumed.get(name, 0) + allocating.get(name, 0) + amount > capacity.value.nano:
            return False
    return True


def _rounded_up(requested: Quantity | None, capacity: DeviceCapacity, *, fractions: bool) -> int:
    """Return the amount used for ``requested``, rounded up as the policy says; by default everything."""
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy is not None else None
        return (default if default is not None else capacity.value).nano
    if policy is None:
        return requested.nano
    if policy.valid_range is not None and policy.valid_range.min is not None:
        # The next step from the minimum.
        if requested.nano < policy.valid_range.min.nano:
            return policy.valid_range.min.nano
        if policy.valid_range.step is None:
            return requested.nano
        unit = NANO_PER_MILLI if fractions and _is_in_milli(policy.valid_range) else NANO_PER_UNIT
        step = _in(unit, policy.valid_range.step)
        if not step:
            return requested.nano
        if fractions:
            # From 1.37 on, a request that does not fit int64 in this unit ends the attempt.
            if unit == NANO_PER_MILLI:
                if requested.nano % unit or abs(requested.nano // unit) > MAX_INT64:
                    raise UnrepresentableError(
                        f"{_UNREPRESENTABLE}: request {requested} is not a representable milli value"
                    )
            elif requested.nano > MAX_INT64 * NANO_PER_UNIT:
                raise UnrepresentableError(f"{_UNREPRESENTABLE}: request {requested} exceeds MaxInt64")
        base = _in(unit, policy.valid_range.min)
        rounded = base - (base - _in(unit, requested)) // step * step
        if fractions and rounded > MAX_INT64:
            passes = "the milli-value range" if unit == NANO_PER_MILLI else "MaxInt64"
            raise UnrepresentableError(
                f"{_UNREPRESENTABLE}: rounding request {requested} up to the next step passes {passes}"
            )
        return rounded * unit
    return next((valid.nano for valid in policy.valid_values if requested.nano <= valid.nano), requested.nano)


_UNREPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"


def _is_in_milli(valid: CapacityRange) -> bool:
    """Return whether all values of the range are multiples of one thousandth."""
    amounts = [each for each in (valid.min, valid.max, valid.step) if each is not None]
    fits = all(not each.nano % NANO_PER_MILLI and abs(each.nano // NANO_PER_MILLI) <= MAX_INT64 for each in amounts)
    return fits and (valid.step is None or valid.step.nano >= NANO_PER_MILLI)


def _in(unit: int, amount: Quantity) -> int:
    return amount.milli_value if unit == NANO_PER_MILLI else amount.value


def _violates(amount: int, policy: CapacityPolicy | None, *, fractions: bool) -> bool:
    if policy is None or (policy.default is not None and policy.default.nano == amount):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > valid.max.nano:
            return True
        if valid.step is None or valid.min is None:
            return False
        unit = NANO_PER_MILLI if fractions and _is_in_milli(valid) else NANO_PER_UNIT
        step = _in(unit, valid.step)
        return bool(step) and (-(-amount // unit) - _in(unit, valid.min)) % step != 0
    return bool(policy.valid_values) and all(each.nano != amount for each in policy.valid_values)
