"""Strict decoding and validation of a KubeSchedulerConfiguration, with upstream's messages.

Decoding follows ``runtime/serializer/json`` of ``k8s.io/apimachinery`` v0.36.3 and ``sigs.k8s.io/json``: the first
value of a wrong type ends it; otherwise all unknown fields are listed. Keys are processed in alphabetical order, as
they are after conversion from YAML. The decoded data has the non-null values that were given, with durations in
nanoseconds.

Validation expects a configuration with defaults (``apis/config/validation/validation.go``, v1.36.3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from kpreempt.errors import ConfigurationError
from kpreempt.model.durations import format_duration, parse_duration
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
from kpreempt.schedulers.kube.framework.arg_types import (
    ListOf,
    Scalar,
    Struct,
    Type,
    aggregate,
    duplicate,
    invalid,
    required,
)
from kpreempt.schedulers.kube.framework.label_selectors import label_key_problems
from kpreempt.schedulers.kube.framework.resources import is_extended_resource
from kpreempt.schedulers.kube.plugin_table import REGISTRY
from kpreempt.schedulers.kube.versions import Behavior

_INTEGER_BITS = {"int32": 32, "int64": 64}
_META_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_KINDS = frozenset((KIND, *(args.name for args in PLUGIN_ARGS.values())))


class _StrictError(Exception):
    """Unknown fields; the rest of the data is valid."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(f"strict decoding error: {', '.join(problems)}")
        self.problems = problems


def decode_configuration(document: Mapping[str, Any], behavior: Behavior | None = None) -> dict[str, Any]:
    """Decode a configuration and its plugins' arguments as the version does (``None``: the default version).

    Raises ``ConfigurationError`` for another kind or API version, a wrong type, or an unknown field.
    """
    kind, version = _kind_and_version(document)
    for value, name in ((kind, "Kind"), (version, "apiVersion")):
        if not value:
            raise ConfigurationError(f"Object '{name}' is missing")
    _check_registered(kind, version)
    if kind != KIND:
        raise ConfigurationError(f"couldn't decode as {KIND}, got {version}, Kind={kind}: ")
    behavior = behavior or versions.behavior()
    problems: list[str] = []
    decoded: dict[str, Any] = _decoded(document, configuration_of(behavior), problems)
    for profile_index, profile in enumerate(decoded.get("profiles", [])):
        for index, config in enumerate(profile.get("pluginConfig", [])):
            context = f"decoding .profiles[{profile_index}].pluginConfig[{index}]"
            name = config.get("name", "")
            try:
                _decode_args(config, name, args_of(behavior).get(name))
            except _StrictError as strictness:
                problems.append(f"{context}: strict decoding error: decoding args for plugin {name}: {strictness}")
            except ConfigurationError as error:
                raise ConfigurationError(f"{context}: {error.message}") from error
    if problems:
        raise ConfigurationError(str(_StrictError(problems)))
    return decoded


def _decode_args(config: dict[str, Any], name: str, args_type: Struct | None) -> None:
    """Replace a plugin's arguments with decoded ones, if the plugin has an argument type."""
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
            config["args"] = _decoded(given, args_type, problems)
    except ConfigurationError as error:
        raise ConfigurationError(prefix + error.message) from error
    if kind != args_type.name:
        requested, got = f"{args_type.name}.{GROUP}", f"{kind}.{GROUP}"
        raise ConfigurationError(f"args for plugin {name} were not of type {requested}, got {got}")
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
    if version != API_VERSION or kind not in _KINDS:
        scheme = f'for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise ConfigurationError(f'no kind "{kind}" is registered {scheme}')


def _decoded(
    value: object, requested: Type, problems: list[str], path: str = "", fields: str = "", struct: str = ""
) -> Any:
    """Decode a value; unknown fields are added to ``problems``.

    ``path`` has indices, ``fields`` does not, and ``struct`` is the object that contains the field. Raises
    ``ConfigurationError`` for a wrong type.
    """
    if isinstance(requested, Struct) and isinstance(value, Mapping):
        decoded = {}
        for key in sorted(value, key=str):
            below = f"{path}.{key}" if path else str(key)
            field_type = requested.fields.get(key)
            if field_type is None:
                problems.append(f'unknown field "{below}"')
            elif value[key] is not None:
                joined = f"{fields}.{key}" if fields else key
                decoded[key] = _decoded(value[key], field_type, problems, below, joined, requested.name)
        return decoded
    if isinstance(requested, ListOf) and isinstance(value, list):
        zero: Any = {} if isinstance(requested.item, Struct) else [] if isinstance(requested.item, ListOf) else ""
        return [
            copy(zero) if item is None else _decoded(item, requested.item, problems, f"{path}[{index}]", fields, struct)
            for index, item in enumerate(value)
        ]
    if isinstance(requested, Scalar):
        return _decode_scalar(value, requested.go_type, f"{struct}.{fields}")
    raise _wrong_type(value, f"{struct}.{fields}", requested.go_type)


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


REMOVED_PLUGINS = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))

_REMOVED = f'was invalid in version "{VERSION}" (KubeSchedulerConfiguration is version "{API_VERSION}")'
# As upstream does, omit multiPoint and the placement points.
_CHECKED_POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)


def validate_configuration(configuration: Mapping[str, Any], behavior: Behavior) -> None:
    """Raise ``ConfigurationError`` with all problems, in the scheduler's words."""
    profiles = configuration["profiles"]
    burst = configuration.get("clientConnection", {}).get("burst", 0)
    problems = [invalid("clientConnection.burst", burst, "must be non-negative")] if burst < 0 else []
    problems += _leader_election(configuration["leaderElection"])
    if configuration["parallelism"] <= 0:
        detail = "should be an integer value greater than zero"
        problems.append(invalid("parallelism", configuration["parallelism"], detail))
    seen: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        problems += _profile(path, profile, behavior)
        name = profile.get("schedulerName", "")
        if name in seen:
            # Upstream passes the other profile's path as the value, which prints as an empty object.
            problems.append(duplicate(f"{path}.schedulerName", {}))
        seen[name] = index
    problems += _common_queue_sort(profiles, behavior)
    problems += _percentage("percentageOfNodesToScore", configuration["percentageOfNodesToScore"])
    initial, longest = configuration["podInitialBackoffSeconds"], configuration["podMaxBackoffSeconds"]
    if initial <= 0:
        problems.append(invalid("podInitialBackoffSeconds", initial, "must be greater than 0"))
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        problems.append(invalid("podMaxBackoffSeconds", longest, detail))
    problems += _extenders(configuration["extenders"])
    aggregate(problems)


def _leader_election(election: Mapping[str, Any]) -> list[str]:
    if not election["leaderElect"]:
        return []
    problems = [
        invalid(f"leaderElection.{field}", format_duration(election[field]), "must be greater than zero")
        for field in ("leaseDuration", "renewDeadline", "retryPeriod")
        if election[field] <= 0
    ]
    if election["leaseDuration"] <= election["renewDeadline"]:
        shown = format_duration(election["renewDeadline"])
        problems.append(invalid("leaderElection.leaseDuration", shown, "must be greater than `RenewDeadline`"))
    if election["resourceLock"] != "leases":
        detail = 'resourceLock value must be "leases"'
        problems.append(invalid("leaderElection.resourceLock", election["resourceLock"], detail))
    return problems


def _percentage(path: str, percentage: int | None) -> list[str]:
    is_valid = percentage is None or 0 <= percentage <= 100
    return [] if is_valid else [invalid(path, percentage, "not in valid range [0-100]")]


def _profile(path: str, profile: Mapping[str, Any], behavior: Behavior) -> list[str]:
    removed = REMOVED_PLUGINS if behavior.rejects_in_tree_volume_limits else frozenset[str]()
    problems = [] if profile.get("schedulerName") else [required(f"{path}.schedulerName")]
    problems += _percentage(f"{path}.percentageOfNodesToScore", profile.get("percentageOfNodesToScore"))
    problems += [
        invalid(f"{path}.plugins.{point}.enabled[{index}]", plugin["name"], _REMOVED)
        for point in _CHECKED_POINTS
        for index, plugin in enumerate(profile["plugins"][point]["enabled"])
        if plugin["name"] in removed
    ]
    seen: set[str] = set()
    for index, config in enumerate(profile["pluginConfig"]):
        location, name = f"{path}.pluginConfig[{index}]", config["name"]
        if name in seen:
            problems.append(duplicate(location, name))
        seen.add(name)
        if name in removed:
            problems.append(invalid(location, name, _REMOVED))
        elif name in PLUGIN_ARGS:
            problems += REGISTRY[name].arg_problems(f"{location}.args", config["args"], behavior)
    return problems


def _common_queue_sort(profiles: Sequence[Mapping[str, Any]], behavior: Behavior) -> list[str]:
    first = profiles[0]["plugins"]["queueSort"]
    words = words_of_args = "queueSort must be the same for all profiles"
    if behavior.reports_queue_sort_mismatch:
        words = words_of_args = "has to match for all profiles"
    elif not behavior.names_queue_sort_twice:
        words = "must be the same for all profiles"
    problems = []
    if len(first["enabled"]) > 1:
        detail = "only one queue sort plugin can be enabled"
        problems.append(invalid("profiles[0].plugins.queueSort.Enabled", len(first["enabled"]), detail))
    name = first["enabled"][0]["name"] if first["enabled"] else ""
    args = _args_of(profiles[0], name)
    for index, profile in enumerate(profiles[1:], start=1):
        other = profile["plugins"]["queueSort"]
        if other != first:
            shown = {
                key.capitalize(): [{"Name": each["name"], "Weight": each.get("weight", 0)} for each in other[key]]
                or None
                for key in ("enabled", "disabled")
            }
            path = f"profiles[{index}].plugins.queueSort"
            problems.append(invalid(path, shown, words))
        configured = any(config["name"] == name for config in profile["pluginConfig"])
        if name and configured and _args_of(profile, name) != args:
            # Do not repeat the arguments of an unknown plugin: they could contain anything.
            path = f"profiles[{index}].pluginConfig.args"
            problems.append(invalid(path, None, words_of_args))
    return problems


def _args_of(profile: Mapping[str, Any], name: str) -> object:
    return next((config.get("args") for config in reversed(profile["pluginConfig"]) if config["name"] == name), None)


def _extenders(extenders: Sequence[Mapping[str, Any]]) -> list[str]:
    problems = []
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path, weight = f"extenders[{index}]", extender.get("weight", 0)
        if extender.get("prioritizeVerb") and weight <= 0:
            problems.append(invalid(f"{path}.weight", weight, "must have a positive weight applied to it"))
        for number, resource in enumerate(extender.get("managedResources", [])):
            location, name = f"{path}.managedResources[{number}].name", resource.get("name", "")
            about_name = label_key_problems(name)
            if not about_name and not is_extended_resource(name):
                about_name = ["is an invalid extended resource name"]
            problems += [invalid(location, name, problem) for problem in about_name]
            if name in managed:
                problems.append(invalid(location, name, "duplicate extender managed resource name"))
            managed.add(name)
    binders = sum(bool(extender.get("bindVerb")) for extender in extenders)
    if binders > 1:
        shown = f"found {binders} extenders implementing bind"
        problems.append(invalid("extenders", shown, "only one extender can implement bind"))
    return problems
