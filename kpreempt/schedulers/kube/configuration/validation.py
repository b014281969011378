"""Validation of a configuration with its defaults (``apis/config/validation/validation.go``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.model.durations import format_duration
from kpreempt.schedulers.kube.configuration.schema import API_VERSION, PLUGIN_ARGS, VERSION
from kpreempt.schedulers.kube.framework.arg_types import aggregate, duplicate, invalid, required
from kpreempt.schedulers.kube.framework.label_selectors import label_key_problems
from kpreempt.schedulers.kube.framework.resources import is_extended_resource
from kpreempt.schedulers.kube.plugin_table import REGISTRY
from kpreempt.schedulers.kube.versions import Behaviour

REMOVED_PLUGINS = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))

_REMOVED = f'was invalid in version "{VERSION}" (KubeSchedulerConfiguration is version "{API_VERSION}")'
# multiPoint and the placement points are left out, as upstream does.
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


def validate_configuration(configuration: Mapping[str, Any], behaviour: Behaviour) -> None:
    """Raise ``ConfigurationError`` with everything that is wrong, in the scheduler's words."""
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
        problems += _profile(path, profile, behaviour)
        name = profile.get("schedulerName", "")
        if name in seen:
            # Upstream hands the path of the other profile over as the value, which prints as an empty object.
            problems.append(duplicate(f"{path}.schedulerName", {}))
        seen[name] = index
    problems += _common_queue_sort(profiles, behaviour)
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
    if percentage is None or 0 <= percentage <= 100:
        return []
    return [invalid(path, percentage, "not in valid range [0-100]")]


def _profile(path: str, profile: Mapping[str, Any], behaviour: Behaviour) -> list[str]:
    removed = REMOVED_PLUGINS if behaviour.refuses_in_tree_volume_limits else frozenset[str]()
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
        where, name = f"{path}.pluginConfig[{index}]", config["name"]
        if name in seen:
            problems.append(duplicate(where, name))
        seen.add(name)
        if name in removed:
            problems.append(invalid(where, name, _REMOVED))
        elif name in PLUGIN_ARGS:
            problems += REGISTRY[name].arg_problems(f"{where}.args", config["args"], behaviour)
    return problems


def _common_queue_sort(profiles: Sequence[Mapping[str, Any]], behaviour: Behaviour) -> list[str]:
    first = profiles[0]["plugins"]["queueSort"]
    words = words_of_args = "queueSort must be the same for all profiles"
    if behaviour.tells_queue_sort_has_to_match:
        words = words_of_args = "has to match for all profiles"
    elif not behaviour.names_queue_sort_twice:
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
            shown = {key.capitalize(): _shown_plugins(other[key]) for key in ("enabled", "disabled")}
            path = f"profiles[{index}].plugins.queueSort"
            problems.append(invalid(path, shown, words))
        configured = any(config["name"] == name for config in profile["pluginConfig"])
        if name and configured and _args_of(profile, name) != args:
            # The arguments of an unknown plugin are not repeated: they could hold anything.
            path = f"profiles[{index}].pluginConfig.args"
            problems.append(invalid(path, None, words_of_args))
    return problems


def _args_of(profile: Mapping[str, Any], name: str) -> object:
    return next((config.get("args") for config in reversed(profile["pluginConfig"]) if config["name"] == name), None)


def _shown_plugins(plugins: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    return [{"Name": plugin["name"], "Weight": plugin.get("weight", 0)} for plugin in plugins] or None


def _extenders(extenders: Sequence[Mapping[str, Any]]) -> list[str]:
    problems = []
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path, weight = f"extenders[{index}]", extender.get("weight", 0)
        if extender.get("prioritizeVerb") and weight <= 0:
            problems.append(invalid(f"{path}.weight", weight, "must have a positive weight applied to it"))
        for number, resource in enumerate(extender.get("managedResources", [])):
            where, name = f"{path}.managedResources[{number}].name", resource.get("name", "")
            problems += _extended_resource(where, name)
            if name in managed:
                problems.append(invalid(where, name, "duplicate extender managed resource name"))
            managed.add(name)
    binders = sum(bool(extender.get("bindVerb")) for extender in extenders)
    if binders > 1:
        shown = f"found {binders} extenders implementing bind"
        problems.append(invalid("extenders", shown, "only one extender can implement bind"))
    return problems


def _extended_resource(path: str, name: str) -> list[str]:
    problems = [invalid(path, name, problem) for problem in label_key_problems(name)]
    if problems or is_extended_resource(name):
        return problems
    return [invalid(path, name, "is an invalid extended resource name")]
