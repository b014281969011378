"""The devices that claims have (``plugins/dynamicresources/allocateddevices.go``, v1.36.3).

Every allocation counts, whether or not anybody uses the claim, but for devices that were given for administration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kpreempt.model.devices import DeviceId, DeviceResult, ResourceClaim
from kpreempt.model.quantity import Quantity

# How much of each capacity is taken, in nano.
Consumed = dict[str, int]


class InUse(NamedTuple):
    """Devices that are allocated as a whole, those that are shared, and what the shares take of their capacity."""

    devices: frozenset[DeviceId]
    shared: frozenset[DeviceId]
    consumed: Mapping[DeviceId, Consumed]

    def is_taken(self, device: DeviceId) -> bool:
        """Whether any claim has the device, or a share of it."""
        return device in self.devices or device in self.shared or device in self.consumed


def devices_in_use(claims: Iterable[ResourceClaim], *, shares: bool) -> InUse:
    """What ``claims`` have. Where devices are not to be shared (``shares``), shares count as whole devices."""
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
                add_consumed(consumed.setdefault(result.id, {}), result.consumed_capacity)
    return InUse(frozenset(devices), frozenset(shared), consumed)


def results_of(claim: ResourceClaim) -> Iterable[DeviceResult]:
    """The devices that were allocated for the claim."""
    return claim.status.allocation.devices.results if claim.status.allocation is not None else ()


def add_consumed(consumed: Consumed, more: Mapping[str, Quantity]) -> None:
    """Count ``more`` as consumed."""
    for name, amount in more.items():
        consumed[name] = consumed.get(name, 0) + amount.nano
