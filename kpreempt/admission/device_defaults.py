"""What the API server fills in to claims for devices (``pkg/apis/resource/v1/defaults.go``, v1.36.3)."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kpreempt.model.devices import (
    EXACT_COUNT,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)

_Stated = TypeVar("_Stated", ExactDeviceRequest, DeviceSubRequest)


def with_claim_defaults(claim: ResourceClaim) -> ResourceClaim:
    """The claim as the API server has it; the very same one where nothing is missing."""
    spec = _completed_spec(claim.spec)
    return claim if spec is claim.spec else msgspec.structs.replace(claim, spec=spec)


def with_template_defaults(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    """The template as the API server has it; the very same one where nothing is missing."""
    spec = _completed_spec(template.spec.spec)
    if spec is template.spec.spec:
        return template
    return msgspec.structs.replace(template, spec=msgspec.structs.replace(template.spec, spec=spec))


def _completed_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = [_completed_request(each) for each in spec.devices.requests]
    if all(new is old for new, old in zip(requests, spec.devices.requests, strict=True)):
        return spec
    return msgspec.structs.replace(spec, devices=msgspec.structs.replace(spec.devices, requests=requests))


def _completed_request(request: DeviceRequest) -> DeviceRequest:
    exactly = None if request.exactly is None else _completed(request.exactly)
    alternatives = [_completed(each) for each in request.first_available]
    if exactly is request.exactly and all(
        new is old for new, old in zip(alternatives, request.first_available, strict=True)
    ):
        return request
    return msgspec.structs.replace(request, exactly=exactly, first_available=alternatives)


def _completed(stated: _Stated) -> _Stated:
    mode = stated.allocation_mode or EXACT_COUNT
    count = 1 if mode == EXACT_COUNT and not stated.count else stated.count
    if mode == stated.allocation_mode and count == stated.count:
        return stated
    return msgspec.structs.replace(stated, allocation_mode=mode, count=count)
