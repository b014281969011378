"""Taints that rules put on devices (``dynamic-resource-allocation`` v0.36.3 ``resourceslice/tracker/tracker.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kpreempt.model.devices import Device, DeviceTaintRule, DeviceTaintSelector, ResourceSlice


def with_taints(
    slices: Iterable[ResourceSlice], rules: Sequence[DeviceTaintRule], *, needs_selector: bool
) -> Iterator[ResourceSlice]:
    """The slices, their devices with the taints of all rules that mean them after their own.

    A rule without a selector means all devices, or none where it ``needs_selector``.
    """
    rules = [each for each in rules if each.spec.device_selector is not None] if needs_selector else rules
    for record in slices:
        spec = record.spec
        devices = [_tainted(device, record, rules) for device in spec.devices]
        if any(new is not old for new, old in zip(devices, spec.devices, strict=True)):
            yield msgspec.structs.replace(record, spec=msgspec.structs.replace(spec, devices=devices))
        else:
            yield record


def _tainted(device: Device, record: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> Device:
    taints = [each.spec.taint for each in rules if _means(each.spec.device_selector, device, record)]
    return msgspec.structs.replace(device, taints=[*device.taints, *taints]) if taints else device


def _means(selector: DeviceTaintSelector | None, device: Device, record: ResourceSlice) -> bool:
    if selector is None:
        return True
    pairs = (
        (selector.driver, record.spec.driver),
        (selector.pool, record.spec.pool.name),
        (selector.device, device.name),
    )
    return all(wanted in (None, own) for wanted, own in pairs)
