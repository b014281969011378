"""One object to its typed record: fast if it is valid, with one exact message if it is not.

Claims, slices and classes of older API versions are converted to ``resource.k8s.io/v1`` like the API server does, after
``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/resource/v1beta1/conversion.go``; driver-specific data is left out.

``PodDecoder`` makes pods small: the common parts of replicas are decoded and kept once, and data that nothing reads is
dropped. A dump of 150,000 pods repeats a few hundred specs and label sets. They are recognized by their texts, which is
faster than decoding them, and shared, which takes a third of the memory; records are frozen, so the sharing is
invisible. This runs for every pod, so it leaves as much as possible to msgspec.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from operator import is_
from typing import Any, Protocol

import msgspec
from msgspec.structs import astuple, force_setattr, replace

from kpreempt.errors import InputError
from kpreempt.model.devices import (
    Device,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kpreempt.model.extra_fields import ExtraFields
from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS
from kpreempt.model.kinds import KINDS, Kind
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.node import ConfigMap
from kpreempt.model.pod import (
    NO_STATE,
    AllAnnotations,
    Container,
    ContainerState,
    ContainerStatus,
    Pod,
    PodAnnotations,
    PodCondition,
    PodMeta,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Volume,
    all_annotations,
    with_annotations,
)
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.snapshot.wire_types import FieldError, to_quantity, with_zero_values

Json = bytes | bytearray | memoryview | msgspec.Raw
Record = Any

# Objects of the API have a few megabytes at most.
_LARGEST_OBJECT = 24 * 2**20
_LONGEST_NAME = 253
_LONGEST_VERSION = 20
_V1BETA1_EMPTY_SELECTOR = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"


class _AnnotatedMeta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = NO_ENTRIES


class _Annotated(msgspec.Struct, frozen=True):
    """An object of which only the annotations are read."""

    metadata: _AnnotatedMeta = _AnnotatedMeta()


_ANNOTATED = msgspec.json.Decoder(_Annotated)


class Decode(Protocol):
    """Makes the record of an object given as plain data."""

    def __call__(self, kind: str, document: dict[str, Any], *, source: str = "", line: int = 0) -> Record:
        """Decode one object."""


class BadObjectError(Exception):
    """An object that does not match its kind's record; its source is not known here."""

    def __init__(self, object_name: str, path: str, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.object_name = object_name
        self.path = path
        self.problem = problem
        self.hint = hint

    def at(self, source: str, line: int) -> InputError:
        """Build the error for the user, with the object's location."""
        return InputError(
            self.problem, source=source, line=line, object_name=self.object_name, path=self.path, hint=self.hint
        )


@cache
def decoder_of(record: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    """Build the decoder of a record. Numbers with a decimal point reach quantities as the text in the input."""
    return msgspec.json.Decoder(record, dec_hook=to_quantity, float_hook=str)


def record_of(kind: Kind, json: Json, decode: Callable[[Json], Record] | None = None) -> Record:
    """Decode the record of an object, with its own ``decode`` if it has one. Raises ``BadObjectError``."""
    try:
        return (decode or decoder_of(kind.record).decode)(json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode_carefully(kind, json)


def decode_carefully(kind: Kind, json: Json) -> Record:
    """Decode an object that the fast decoder rejected, because of a ``null`` or because it is invalid.

    Raises ``BadObjectError``.
    """
    return _convert(kind.name, kind.record, parse_json(json))


def parse_json(json: Json) -> Any:
    """Parse JSON to plain data. Raises ``BadObjectError``."""
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


def parse_json_of(json: Json, source: str, line: int) -> Any:
    """Parse JSON to plain data. Raises ``InputError`` with its location."""
    try:
        return parse_json(json)
    except BadObjectError as error:
        raise error.at(source, line) from None


def check_size(json: Json) -> None:
    """Raise ``BadObjectError`` for text larger than any object, which would take many times its size in memory."""
    if memoryview(json).nbytes > _LARGEST_OBJECT:
        raise BadObjectError("", "", f"is larger than {_LARGEST_OBJECT >> 20} MiB, which no object is")


def decode_object(kind: str, document: dict[str, Any], *, source: str = "", line: int = 0) -> Record:
    """Decode an object given as plain data, which is not modified. ``kind`` is one of ``KINDS``.

    Raises ``InputError`` with ``source``, ``line`` and the invalid field.
    """
    return as_served(decode_document(kind, KINDS[kind].record, document, source=source, line=line))


def decode_document(
    kind: str, record: type[msgspec.Struct], document: dict[str, Any], *, source: str = "", line: int = 0
) -> Record:
    """Decode a record of a kind that snapshots keep only as plain data.

    Raises ``InputError`` like ``decode_object``.
    """
    try:
        return _convert(kind, record, document)
    except BadObjectError as error:
        raise error.at(source, line) from None


def object_decoder(extra_fields: ExtraFields) -> Decode:
    """Return ``decode_object``, or a variant that also keeps the annotations of pods if they are wanted."""
    return _decode_annotated_object if extra_fields.pod_annotations else decode_object


def annotations_in(json: Json) -> dict[str, str]:
    """Return all annotations of a pod. Raises ``BadObjectError``."""
    try:
        return _ANNOTATED.decode(json).metadata.annotations
    except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        found: _Annotated = _convert("Pod", _Annotated, parse_json(json))
        return found.metadata.annotations


def is_later(record: Record, than: Record) -> bool:
    """Return whether both have a numeric ``resourceVersion`` and that of ``record`` is higher."""
    mine, other = record.metadata.resource_version, than.metadata.resource_version
    are_numbers = all(each.isascii() and each.isdecimal() and len(each) <= _LONGEST_VERSION for each in (mine, other))
    return are_numbers and int(mine) > int(other)


def _decode_annotated_object(kind: str, document: dict[str, Any], *, source: str = "", line: int = 0) -> Record:
    record = decode_object(kind, document, source=source, line=line)
    if kind != "Pod":
        return record
    found: _Annotated = decode_document(kind, _Annotated, document, source=source, line=line)
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
    """Return ``Pod shop/api-7f9``, as far as the object states it."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(metadata, dict):
        return kind
    parts = [metadata.get("namespace"), metadata.get("name") or metadata.get("generateName")]
    name = "/".join(part[:_LONGEST_NAME] for part in parts if isinstance(part, str) and part)
    return f"{kind} {name}".rstrip()


def as_served(record: Record, api_version: str = "") -> Record:
    """Convert the record to the newest version that is kept; returns the same record if nothing differs."""
    if api_version == "policy/v1beta1":
        return _as_served_budget(record)
    # Records about devices are converted to ``v1`` by their shape.
    convert = _CONVERSIONS.get(type(record))
    return convert(record) if convert else record


def _as_served_budget(record: Record) -> Record:
    """Convert a record of ``policy/v1beta1`` to ``policy/v1`` like the API server.

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
    """Move the fields that ``v1beta1`` has in the request itself to ``exactly``."""
    if request.exactly is not None or request.first_available or not request.device_class_name:
        return request
    fields = [name for name in ExactDeviceRequest.__struct_fields__ if name in DeviceRequest.__struct_fields__]
    exactly = ExactDeviceRequest(**{name: getattr(request, name) for name in fields})
    return DeviceRequest(name=request.name, exactly=exactly)


def _claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = list(map(_request, spec.devices.requests))
    # Nothing reads it, so no dump needs it.
    config = NO_ITEMS if spec.devices.config else spec.devices.config
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
        status = _replace(status, devices=[_replace(each, data=None, network_data=None) for each in status.devices])
    return claim if spec is claim.spec and status is claim.status else _replace(claim, spec=spec, status=status)


def _template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    inner = template.spec
    spec = _claim_spec(inner.spec)
    if spec is inner.spec and inner.metadata is None:
        return template
    return _replace(template, spec=_replace(inner, metadata=None, spec=spec))


def _slice(record: ResourceSlice) -> ResourceSlice:
    """Move the fields that ``v1beta1`` has in ``basic`` to the device."""
    if all(device.basic is None for device in record.spec.devices):
        return record
    devices = [
        Device(name=device.name, **{name: getattr(basic, name) for name in basic.__struct_fields__})
        if (basic := device.basic) is not None
        else device
        for device in record.spec.devices
    ]
    return _replace(record, spec=_replace(record.spec, devices=devices))


def _status(config_map: ConfigMap) -> ConfigMap:
    """Keep only Cluster Autoscaler's status; few inputs have one."""
    from kpreempt.snapshot.autoscaler_status import with_json_status  # noqa: PLC0415

    return with_json_status(config_map)


_CONVERSIONS: dict[type[msgspec.Struct], Callable[[Any], Any]] = {
    ResourceClaim: _claim,
    ResourceClaimTemplate: _template,
    ResourceSlice: _slice,
    ConfigMap: _status,
    DeviceClass: lambda record: (
        _replace(record, spec=_replace(record.spec, config=NO_ITEMS)) if record.spec.config else record
    ),
}


# Conditions that are read: for budgets (Ready), evictions in progress, resizes. No one reads the others.
_CONDITIONS = frozenset(("Ready", "DisruptionTarget", "PodResizePending", "PodResizeInProgress", "PodScheduled"))
# The number of texts cached per part. Most clusters have fewer; in others, replicas are close to each other.
_MAX_PARTS = 20_000
_ENCODER = msgspec.json.Encoder(enc_hook=str)


def _written(record: type[msgspec.Struct], *names: str, **kinds: Any) -> Any:
    """Return a variant of the record with raw texts in the named fields, and other types in ``kinds``."""
    kinds = {**dict.fromkeys(names, msgspec.Raw), **kinds}
    fields = [
        (each.name, kinds.get(each.name, each.type), msgspec.field(name=each.encode_name, default=each.default))
        for each in msgspec.structs.fields(record)
    ]
    return msgspec.defstruct(f"_Written{record.__name__}", fields, omit_defaults=True, gc=False)


# Few fields of containers are read, and replicas differ in the others, such as names of mounts. The fields that are
# read form the text by which a spec is recognized.
_WrittenContainers: Any = list[_written(Container, *Container.__struct_fields__)]  # type: ignore[misc]
_WrittenSpec = _written(
    PodSpec,
    *(name for name in PodSpec.__struct_fields__ if name not in ("node_name", "volumes")),
    containers=_WrittenContainers,
    init_containers=_WrittenContainers,
)
_OF_META = ("labels", "owner_references")
_WrittenMeta = _written(PodMeta, *_OF_META)
_WrittenPod = msgspec.defstruct(
    "_WrittenPod",
    [
        ("metadata", _WrittenMeta, msgspec.field(default_factory=_WrittenMeta)),
        ("spec", _WrittenSpec, msgspec.field(default_factory=_WrittenSpec)),
        ("status", PodStatus, PodStatus()),
    ],
    gc=False,
)
_POD = decoder_of(_WrittenPod)
_LABELS, _OWNERS, _ANNOTATIONS = map(PodMeta.__struct_fields__.index, (*_OF_META, "annotations"))


class _Parts(dict[bytes, Any]):
    """Values by their texts, each decoded on first use."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self._decode = decoder_of(kind).decode

    def __missing__(self, json: bytes) -> Any:
        if len(self) == _MAX_PARTS:
            self.clear()
        part = self[json] = self._decode(json)
        return part


class PodDecoder:
    """Decodes pods, sharing parts that it has seen before; ``keeps_conditions`` leaves conditions unchanged."""

    def __init__(self, *, keeps_conditions: bool = False) -> None:
        self._keeps_conditions = keeps_conditions
        self._specs = _Parts(PodSpec)
        self._labels, self._owners = (_Parts(_kind_of(PodMeta, name)) for name in _OF_META)
        self._affinities = _Parts(_kind_of(PodSpec, "affinity"))
        self._node_names: dict[str, str] = {}
        self._annotations: dict[PodAnnotations, PodAnnotations | None] = {PodAnnotations(): None}
        self._all_annotations: dict[Hashable, AllAnnotations | None] = {(): None}
        self._lists: dict[Hashable, list[Any]] = {}
        self._statuses: dict[Hashable, list[ContainerStatus]] = {}
        self._conditions: dict[tuple[str, str, str], PodCondition] = {}

    def decode(self, json: Json) -> Pod:
        """Decode a pod. Raises msgspec's errors."""
        written = _POD.decode(json)
        status = written.status
        if status.conditions or status.container_statuses or status.init_container_statuses:
            if status.conditions and not self._keeps_conditions:
                conditions = [self._condition(each) for each in status.conditions if each.type in _CONDITIONS]
                force_setattr(status, "conditions", self._lists.setdefault(tuple(conditions), conditions))
            if status.phase != "Pending":
                for name in ("container_statuses", "init_container_statuses"):
                    if statuses := getattr(status, name):
                        force_setattr(status, name, self._relevant(statuses))
        values = [*astuple(written.metadata)]
        if type(labels := values[_LABELS]) is msgspec.Raw:
            values[_LABELS] = self._labels[bytes(labels)]
        if type(owners := values[_OWNERS]) is msgspec.Raw:
            values[_OWNERS] = self._owners[bytes(owners)]
        if (annotations := values[_ANNOTATIONS]) is not None:
            values[_ANNOTATIONS] = self._annotations.setdefault(annotations, annotations)
        return Pod(PodMeta(*values), self._spec(written.spec), status)

    def shared(self, pod: Pod) -> Pod:
        """Return a pod that was decoded in another way, with parts shared."""
        return self.decode(_ENCODER.encode(pod))

    def annotate(self, pod: Pod, annotations: dict[str, str]) -> None:
        """Set all annotations of a pod that was just decoded."""
        key = tuple(annotations.items())
        if key not in self._all_annotations:
            made = all_annotations(annotations)
            self._all_annotations[key] = made if made.everything else None
        force_setattr(pod.metadata, "annotations", self._all_annotations[key])

    def _spec(self, written: Any) -> PodSpec:
        """Return the spec that all replicas share, with the parts of each: node, volumes, a DaemonSet's affinity."""
        node_name, volumes, affinity = written.node_name, written.volumes, written.affinity
        written.node_name = ""
        if volumes or affinity is not None:
            # All share the same empty list.
            written.volumes, written.affinity = NO_ITEMS if volumes else volumes, None
        spec: PodSpec = replace(
            self._specs[_ENCODER.encode(written)], node_name=self._node_names.setdefault(node_name, node_name)
        )
        if volumes:
            # Most volumes have sources that no scheduler reads, so only their name is kept.
            volumes = [volume for volume in volumes if volume != Volume(name=volume.name)]
            force_setattr(spec, "volumes", volumes or NO_ITEMS)
        if affinity is not None:
            force_setattr(spec, "affinity", self._affinities[bytes(affinity)])
        return spec

    def _condition(self, condition: PodCondition) -> PodCondition:
        """Return the condition without time and message if only its status matters.

        The scheduler's messages about unschedulable pods are kept.
        """
        is_rejection = condition.type == "PodScheduled" and condition.status != "True"
        if is_rejection or condition.type not in ("Ready", "PodScheduled"):
            return condition
        key = (condition.type, condition.status, condition.reason)
        known = self._conditions.get(key)
        if known is None:
            known = self._conditions[key] = PodCondition(*key)
        return known

    def _relevant(self, statuses: list[ContainerStatus]) -> list[ContainerStatus]:
        """Return the statuses with allocated resources, restarts or failures; the others are not read."""
        relevant = [
            each
            for each in (
                replace(each, state=_failed(each.state), last_state=_failed(each.last_state))
                if each.state is not NO_STATE or each.last_state is not NO_STATE
                else each
                for each in statuses
            )
            if each.restart_count or each.resources is not None or each.allocated_resources or each.state != NO_STATE
        ]
        if not relevant:
            return NO_ITEMS
        key = tuple(
            (
                each.name,
                each.restart_count,
                *each.allocated_resources,
                *map(id, each.allocated_resources.values()),
                _key(each.resources),
                each.state,
                each.last_state,
            )
            for each in relevant
        )
        return self._statuses.setdefault(key, relevant)


def _failed(state: ContainerState) -> ContainerState:
    """Return the state of a container that failed, without its own message, which may be private."""
    ended = state.terminated
    if ended is None or not (ended.exit_code or ended.reason == "OOMKilled"):
        return NO_STATE
    return ContainerState(terminated=replace(ended, message="", started_at=None))


def _key(resources: ResourceRequirements | None) -> Hashable:
    """Return a key of resource amounts: names, and the identities of the quantities, since equal texts share an object.

    Equal amounts in different notations (1000m, 1) have different keys: reports show the notation.
    """
    if resources is None:
        return None
    requests, limits = resources.requests, resources.limits
    if not limits and not resources.claims:
        return (*requests, *map(id, requests.values()))
    return tuple(requests), *map(id, requests.values()), tuple(limits), *map(id, limits.values()), *resources.claims


def _kind_of(record: type[msgspec.Struct], name: str) -> Any:
    return next(each.type for each in msgspec.structs.fields(record) if each.name == name)
