"""Strict decoding of plain data into the configuration's types, with the messages of the API machinery.

Follows ``runtime/serializer/json`` of ``k8s.io/apimachinery`` v0.36.3 and ``sigs.k8s.io/json``: the first value of a
wrong type ends it; otherwise all unknown fields are named. Keys are looked at in alphabetical order, as they come from
YAML. The decoded data holds what was given and is not null, with durations in nanoseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kpreempt.errors import ConfigurationError
from kpreempt.model.durations import parse_duration
from kpreempt.schedulers.kube import versions
from kpreempt.schedulers.kube.configuration.schema import (
    API_VERSION,
    GROUP,
    KIND,
    PLUGIN_ARGS,
    VERSION,
    args_of,
    configuration_of,
)
from kpreempt.schedulers.kube.framework.arg_types import ListOf, Scalar, Struct, Type
from kpreempt.schedulers.kube.versions import Behaviour

_INTEGER_BITS = {"int32": 32, "int64": 64}
_META_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_KINDS = frozenset((KIND, *(args.name for args in PLUGIN_ARGS.values())))


class _StrictError(Exception):
    """Fields that there are not; the rest of the data is in order."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(f"strict decoding error: {', '.join(problems)}")
        self.problems = problems


def decode_configuration(document: Mapping[str, Any], behaviour: Behaviour | None = None) -> dict[str, Any]:
    """Decode a configuration with its plugins' arguments, as the version (``None``: the usual one) has them.

    Raises ``ConfigurationError`` for a document of another kind or version, a wrong type or an unknown field.
    """
    kind, version = _kind_and_version(document)
    for value, name in ((kind, "Kind"), (version, "apiVersion")):
        if not value:
            raise ConfigurationError(f"Object '{name}' is missing")
    _check_registered(kind, version)
    if kind != KIND:
        raise ConfigurationError(f"couldn't decode as {KIND}, got {version}, Kind={kind}: ")
    behaviour = behaviour or versions.behaviour()
    problems: list[str] = []
    decoded: dict[str, Any] = _Decoder(problems).decode(document, configuration_of(behaviour))
    for profile_index, profile in enumerate(decoded.get("profiles", [])):
        for index, config in enumerate(profile.get("pluginConfig", [])):
            where = f"decoding .profiles[{profile_index}].pluginConfig[{index}]"
            name = config.get("name", "")
            try:
                _decode_args(config, name, args_of(behaviour).get(name))
            except _StrictError as strictness:
                problems.append(f"{where}: strict decoding error: decoding args for plugin {name}: {strictness}")
            except ConfigurationError as error:
                raise ConfigurationError(f"{where}: {error.message}") from error
    if problems:
        raise ConfigurationError(str(_StrictError(problems)))
    return decoded


def _decode_args(config: dict[str, Any], name: str, args_type: Struct | None) -> None:
    """Put decoded arguments in the place of the given ones, where the plugin has a type for them."""
    if args_type is None:
        return
    given = config.get("args", {})
    prefix = f"decoding args for plugin {name}: "
    problems: list[str] = []
    try:
        kind, version = _kind_and_version(given)
        kind, version = kind or args_type.name, version or API_VERSION
        _check_registered(kind, version)
        if kind == args_type.name:
            config["args"] = _Decoder(problems).decode(given, args_type)
    except ConfigurationError as error:
        raise ConfigurationError(prefix + error.message) from error
    if kind != args_type.name:
        wanted, got = f"{args_type.name}.{GROUP}", f"{kind}.{GROUP}"
        raise ConfigurationError(f"args for plugin {name} were not of type {wanted}, got {got}")
    if problems:
        raise _StrictError(problems)


def _kind_and_version(document: object) -> tuple[str, str]:
    prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    if not isinstance(document, Mapping):
        raise ConfigurationError(f"{prefix} {_json_type(document)} into Go value of type {_META_TYPE}")
    values = []
    for key in ("kind", "apiVersion"):
        value = document.get(key)
        value = "" if value is None else value
        if not isinstance(value, str):
            raise ConfigurationError(f"{prefix} {_json_type(value)} into Go struct field .{key} of type string")
        values.append(value)
    return values[0], values[1]


def _check_registered(kind: str, version: str) -> None:
    if version != f"{GROUP}/{VERSION}" or kind not in _KINDS:
        scheme = 'scheme "pkg/runtime/scheme.go:111"'
        raise ConfigurationError(f'no kind "{kind}" is registered for version "{version}" in {scheme}')


class _Decoder:
    """Decodes one document and collects its unknown fields in ``problems``."""

    def __init__(self, problems: list[str]) -> None:
        self._problems = problems

    def decode(self, value: object, wanted: Type, path: str = "", fields: str = "", struct: str = "") -> Any:
        """The value in its decoded form.

        ``path`` has indices, ``fields`` has none, and ``struct`` is the object that the value is a field of. Raises
        ``ConfigurationError`` for a wrong type.
        """
        if isinstance(wanted, Struct) and isinstance(value, Mapping):
            decoded = {}
            for key in sorted(value, key=str):
                below = f"{path}.{key}" if path else str(key)
                field_type = wanted.fields.get(key)
                if field_type is None:
                    self._problems.append(f'unknown field "{below}"')
                elif value[key] is not None:
                    joined = f"{fields}.{key}" if fields else key
                    decoded[key] = self.decode(value[key], field_type, below, joined, wanted.name)
            return decoded
        if isinstance(wanted, ListOf) and isinstance(value, list):
            return [
                _zero_of(wanted.item)
                if item is None
                else self.decode(item, wanted.item, f"{path}[{index}]", fields, struct)
                for index, item in enumerate(value)
            ]
        if isinstance(wanted, Scalar):
            return _decode_scalar(value, wanted.go_type, f"{struct}.{fields}")
        raise _wrong_type(value, f"{struct}.{fields}", wanted.go_type)


def _zero_of(wanted: Type) -> Any:
    if isinstance(wanted, Struct):
        return {}
    return [] if isinstance(wanted, ListOf) else ""


def _decode_scalar(value: Any, go_type: str, field: str) -> Any:
    if go_type == "any":
        return value
    if go_type == "duration":
        if not isinstance(value, str):
            raise _wrong_type(value, field, "string")
        duration = parse_duration(value)
        if duration is None:
            raise ConfigurationError(f"time: invalid duration {json.dumps(value, ensure_ascii=False)}")
        return duration
    if go_type in _INTEGER_BITS:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong_type(value, field, go_type)
        limit = 2 ** (_INTEGER_BITS[go_type] - 1)
        if isinstance(value, float) or not -limit <= value < limit:
            raise _wrong_type(value, field, go_type, f"number {value}")
        return value
    if go_type == "map[string]string":
        if not isinstance(value, Mapping):
            raise _wrong_type(value, field, go_type)
        for item in value.values():
            if item is not None and not isinstance(item, str):
                raise _wrong_type(item, field, "string")
        return {str(key): item or "" for key, item in value.items()}
    allowed: dict[str, type | tuple[type, ...]] = {
        "string": str,
        "bool": bool,
        "float32": (int, float),
        "[]uint8": (str, list),
    }
    if not isinstance(value, allowed[go_type]) or (isinstance(value, bool) and go_type != "bool"):
        raise _wrong_type(value, field, go_type)
    return value


def _wrong_type(value: object, field: str, go_type: str, found: str = "") -> ConfigurationError:
    return ConfigurationError(
        f"json: cannot unmarshal {found or _json_type(value)} into Go struct field {field} of type {go_type}"
    )


def _json_type(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"
