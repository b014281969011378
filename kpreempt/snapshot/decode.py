"""One object to its typed record: fast where it is right, with one exact message where it is wrong.

Claims, slices and classes of older API versions become what the API server has in ``resource.k8s.io/v1``, after
``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/resource/v1beta1/conversion.go``; what drivers say to each other is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import is_
from typing import Any, Protocol

import msgspec

from kpreempt.errors import InputError
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
from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.pod import with_annotations
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.wanted import Wanted
from kpreempt.snapshot.kinds import KINDS, Kind
from kpreempt.snapshot.wire_types import FieldError, to_quantity, with_zero_values

Json = bytes | bytearray | memoryview | msgspec.Raw
Record = Any

# An object of the API has a few megabytes at most.
_LARGEST_OBJECT = 24 * 2**20
_LONGEST_NAME = 253
_LONGEST_VERSION = 20
_OF_DEVICES = frozenset((ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass))
_V1BETA1_EMPTY_SELECTOR = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"


class _AnnotatedMeta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = NO_ENTRIES


class _Annotated(msgspec.Struct, frozen=True):
    """An object of which only the annotations are read."""

    metadata: _AnnotatedMeta = _AnnotatedMeta()


_ANNOTATED = msgspec.json.Decoder(_Annotated)


class Decode(Protocol):
    """Makes the record of an object that is plain data."""

    def __call__(self, kind: str, document: dict[str, Any], *, source: str = "", line: int = 0) -> Record:
        """Decode one object."""


class BadObjectError(Exception):
    """An object that cannot be its kind's record; where it came from is not known here."""

    def __init__(self, object_name: str, path: str, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.object_name = object_name
        self.path = path
        self.problem = problem
        self.hint = hint

    def at(self, source: str, line: int) -> InputError:
        """The error for the user, with its place."""
        return InputError(
            self.problem, source=source, line=line, object_name=self.object_name, path=self.path, hint=self.hint
        )


@cache
def decoder_of(record: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    """The decoder of a record. Numbers with a point reach quantities as the text that the input has."""
    return msgspec.json.Decoder(record, dec_hook=to_quantity, float_hook=str)


def record_of(kind: Kind, json: Json, decode: Callable[[Json], Record] | None = None) -> Record:
    """The record of an object, by its own ``decode`` if it has one. Raises ``BadObjectError``."""
    try:
        return (decode or decoder_of(kind.record).decode)(json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode_carefully(kind, json)


def decode_carefully(kind: Kind, json: Json) -> Record:
    """The record of an object that its decoder refused: for a ``null``, or because it is wrong.

    Raises ``BadObjectError``.
    """
    return _convert(kind.name, kind.record, parse_json(json))


def parse_json(json: Json) -> Any:
    """Plain data. Raises ``BadObjectError``."""
    check_size(json)
    try:
        return msgspec.json.decode(json)
    except UnicodeDecodeError:
        raise BadObjectError("", "", "is not UTF-8") from None
    except msgspec.ValidationError:
        raise BadObjectError("", "", "has a number that is too long") from None
    except msgspec.DecodeError:
        raise BadObjectError("", "", "is not JSON") from None
    except RecursionError:
        raise BadObjectError("", "", "is nested too deeply") from None


def check_size(json: Json) -> None:
    """Raise ``BadObjectError`` for what is larger than any object is, and would take many times as much memory."""
    if memoryview(json).nbytes > _LARGEST_OBJECT:
        raise BadObjectError("", "", f"is larger than {_LARGEST_OBJECT >> 20} MiB, which no object is")


def decode_object(kind: str, document: dict[str, Any], *, source: str = "", line: int = 0) -> Record:
    """The record of an object that is plain data, which stays as it is. ``kind`` is one of ``KINDS``.

    Raises ``InputError`` that names ``source`` and ``line`` and the field that is wrong.
    """
    try:
        return as_served(_convert(kind, KINDS[kind].record, document))
    except BadObjectError as error:
        raise error.at(source, line) from None


def decode_document(kind: str, record: type[msgspec.Struct], document: dict[str, Any], *, source: str = "") -> Record:
    """A record of a kind that snapshots keep as plain data only. Raises ``InputError`` as ``decode_object`` does."""
    try:
        return _convert(kind, record, document)
    except BadObjectError as error:
        raise error.at(source, 0) from None


def object_decoder(wanted: Wanted) -> Decode:
    """``decode_object``, or where the annotations of pods are wanted what keeps them as well."""
    return _decode_annotated_object if wanted.pod_annotations else decode_object


def annotations_in(json: Json) -> dict[str, str]:
    """All annotations of a pod. Raises ``BadObjectError``."""
    try:
        return _ANNOTATED.decode(json).metadata.annotations
    except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        found: _Annotated = _convert("Pod", _Annotated, parse_json(json))
        return found.metadata.annotations


def is_later(record: Record, than: Record) -> bool:
    """Whether both have a numeric ``resourceVersion`` and that of ``record`` is the higher one."""
    mine, other = record.metadata.resource_version, than.metadata.resource_version
    are_numbers = all(each.isascii() and each.isdecimal() and len(each) <= _LONGEST_VERSION for each in (mine, other))
    return are_numbers and int(mine) > int(other)


def _decode_annotated_object(kind: str, document: dict[str, Any], *, source: str = "", line: int = 0) -> Record:
    record = decode_object(kind, document, source=source, line=line)
    if kind != "Pod":
        return record
    try:
        found: _Annotated = _convert(kind, _Annotated, document)
    except BadObjectError as error:
        raise error.at(source, line) from None
    return with_annotations(record, found.metadata.annotations)


def _convert(kind: str, record: type[msgspec.Struct], document: Any) -> Record:
    try:
        return msgspec.convert(with_zero_values(document, record), record, dec_hook=to_quantity)
    except FieldError as error:
        raise BadObjectError(describe(kind, document), error.path, error.problem, error.hint) from None
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$.")
        raise BadObjectError(
            describe(kind, document), path.rstrip("`"), problem.replace("Expected", "expected")
        ) from None
    except RecursionError:
        raise BadObjectError(describe(kind, document), "", "is nested too deeply") from None


def describe(kind: str, document: Any) -> str:
    """``Pod shop/api-7f9``, as far as the object says it."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(metadata, dict):
        return kind
    parts = [metadata.get("namespace"), metadata.get("name") or metadata.get("generateName")]
    name = "/".join(part[:_LONGEST_NAME] for part in parts if isinstance(part, str) and part)
    return f"{kind} {name}".rstrip()


def as_served(record: Record, api_version: str = "") -> Record:
    """The record as the newest version that is kept has it; the very same one where nothing differs."""
    if api_version == "policy/v1beta1":
        return _as_served_budget(record)
    if type(record) in _OF_DEVICES:
        # A record about devices as ``v1`` has it, by its shape; the very same one where nothing differs.
        convert = _CONVERSIONS.get(type(record))
        return convert(record) if convert else record
    return record


def _as_served_budget(record: Record) -> Record:
    """A record of ``policy/v1beta1`` as the API server has it in ``policy/v1``.

    In ``policy/v1beta1`` an empty selector selects no pod, in ``policy/v1`` every pod (upstream
    ``pkg/apis/policy/v1beta1/conversion.go``, v1.36.3).
    """
    selector = record.spec.selector if isinstance(record, PodDisruptionBudget) else None
    if selector is None:
        return record
    expressions = [each for each in selector.match_expressions if each.key != _V1BETA1_EMPTY_SELECTOR]
    if selector.is_empty():
        expressions = [LabelSelectorRequirement(_V1BETA1_EMPTY_SELECTOR, "Exists")]
    elif len(expressions) == len(selector.match_expressions):
        return record
    converted = LabelSelector(match_labels=selector.match_labels, match_expressions=expressions)
    return msgspec.structs.replace(record, spec=msgspec.structs.replace(record.spec, selector=converted))


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
    if config is spec.devices.config and all(map(is_, requests, spec.devices.requests)):
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


_CONVERSIONS: dict[type[msgspec.Struct], Callable[[Any], Any]] = {
    ResourceClaim: _claim,
    ResourceClaimTemplate: _template,
    ResourceSlice: _slice,
    DeviceClass: _class,
}
