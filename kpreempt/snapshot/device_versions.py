"""Claims, slices and classes of older API versions as the API server has them in ``resource.k8s.io/v1``.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/resource/v1beta1/conversion.go``. What drivers say to each other is
left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kpreempt.model.devices import (
    Device,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    Opaque,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kpreempt.model.empty import NO_ITEMS

_replace = msgspec.structs.replace


def _request(request: DeviceRequest) -> DeviceRequest:
    """``v1beta1`` has the fields of ``exactly`` in the request itself."""
    if request.exactly is not None or request.first_available or not request.device_class_name:
        return request
    fields = [name for name in ExactDeviceRequest.__struct_fields__ if name in DeviceRequest.__struct_fields__]
    exactly = ExactDeviceRequest(**{name: getattr(request, name) for name in fields})
    return DeviceRequest(name=request.name, exactly=exactly)


def _claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = list(map(_request, spec.devices.requests))
    config = _without(spec.devices.config)
    if config is spec.devices.config and all(map(_is, requests, spec.devices.requests)):
        return spec
    return _replace(spec, devices=_replace(spec.devices, requests=requests, config=config))


def _claim(claim: ResourceClaim) -> ResourceClaim:
    spec, status = _claim_spec(claim.spec), claim.status
    allocation = status.allocation
    if allocation is not None and allocation.devices.config:
        devices = _replace(allocation.devices, config=NO_ITEMS)
        status = _replace(status, allocation=_replace(allocation, devices=devices))
    if any(each.data is not None or each.network_data is not None for each in status.devices):
        told = [_replace(each, data=None, network_data=None) for each in status.devices]
        status = _replace(status, devices=told)
    return claim if spec is claim.spec and status is claim.status else _replace(claim, spec=spec, status=status)


def _template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    inner = template.spec
    spec = _claim_spec(inner.spec)
    if spec is inner.spec and inner.metadata is None:
        return template
    return _replace(template, spec=_replace(inner, metadata=None, spec=spec))


def _device(device: Device) -> Device:
    """``v1beta1`` has all of a device but its name in ``basic``."""
    if device.basic is None:
        return device
    return Device(name=device.name, **{name: getattr(device.basic, name) for name in device.basic.__struct_fields__})


def _slice(record: ResourceSlice) -> ResourceSlice:
    if all(device.basic is None for device in record.spec.devices):
        return record
    return _replace(record, spec=_replace(record.spec, devices=list(map(_device, record.spec.devices))))


def _class(record: DeviceClass) -> DeviceClass:
    return _replace(record, spec=_replace(record.spec, config=NO_ITEMS)) if record.spec.config else record


def _without(config: list[Opaque]) -> list[Opaque]:
    """What nothing reads, and no dump need have."""
    return NO_ITEMS if config else config


def _is(one: object, other: object) -> bool:
    return one is other


_CONVERSIONS: dict[type[msgspec.Struct], Callable[[Any], Any]] = {
    ResourceClaim: _claim,
    ResourceClaimTemplate: _template,
    ResourceSlice: _slice,
    DeviceClass: _class,
}


def as_v1(record: Any) -> Any:
    """A record about devices as ``v1`` has it, by its shape; the very same one where nothing differs."""
    convert = _CONVERSIONS.get(type(record))
    return convert(record) if convert else record
