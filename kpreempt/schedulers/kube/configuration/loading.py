"""From a KubeSchedulerConfiguration to a scheduler (``cmd/kube-scheduler/app`` and ``pkg/scheduler``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.errors import ConfigurationError
from kpreempt.schedulers.kube.configuration.decoding import decode_configuration
from kpreempt.schedulers.kube.configuration.defaults import with_defaults
from kpreempt.schedulers.kube.configuration.extension_points import IN_TREE, Plugins, check_plugins
from kpreempt.schedulers.kube.configuration.field_errors import aggregate
from kpreempt.schedulers.kube.configuration.plugin_args import validate_node_resources_fit
from kpreempt.schedulers.kube.configuration.schema import KIND, MULTI_POINT, PLUGIN_ARGS
from kpreempt.schedulers.kube.configuration.validation import validate_configuration
from kpreempt.schedulers.kube.framework.features import feature_gates as gates_with
from kpreempt.schedulers.kube.profile import PointConfig, Profile, default_plugins
from kpreempt.schedulers.kube.registry import REGISTRY, EnabledPlugin
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Assumption

_SUBJECT = KIND
_FIT = "NodeResourcesFit"
# Enabled by default, for the queue's order and the binding, in which a what-if takes no part.
_QUEUE_SORT = EnabledPlugin("PrioritySort")
_BINDER = EnabledPlugin("DefaultBinder")
_NO_PART = frozenset((_QUEUE_SORT.name, _BINDER.name))


def scheduler_from_configuration(
    document: Mapping[str, Any] | None = None, feature_gates: Mapping[str, bool] | None = None
) -> KubeScheduler:
    """The scheduler that a kube-scheduler with this configuration and these feature gates would be.

    ``document`` is the configuration as plain data (``None``: without one), and is not changed. What is not modelled
    becomes an assumption: plugins outside the tree, extenders, gates. Raises ``ConfigurationError`` and, for gates,
    ``UsageError`` where kube-scheduler would refuse to start, with its reason.
    """
    features, not_modelled = gates_with(feature_gates or {})
    assumptions = [
        Assumption("scheduler", f"feature gate {name}", "this setting is not modelled; the default is")
        for name in not_modelled
    ]
    if document is None:
        return KubeScheduler(features=features, assumptions=assumptions)
    decoded = decode_configuration(document)
    all_default = _with_queue_sort_and_binder(default_plugins(features))
    configuration = with_defaults(decoded, all_default, features)
    validate_configuration(configuration, features)
    extenders = configuration["extenders"]
    _let_extenders_manage(extenders, configuration["profiles"])
    profiles = [_profile(profile, configuration) for profile in configuration["profiles"]]
    for index, profile in enumerate(configuration["profiles"]):
        assumptions += _plugin_assumptions(f"profiles[{index}]", profile["plugins"])
    assumptions += [_extender_assumption(index, extender) for index, extender in enumerate(extenders)]
    return KubeScheduler(profiles, features, assumptions)


def _with_queue_sort_and_binder(plugins: tuple[EnabledPlugin, ...]) -> tuple[EnabledPlugin, ...]:
    """The default plugins with the two that take no part, in upstream's order."""
    gated = [plugin for plugin in plugins if plugin.name == "NodeDeclaredFeatures"]
    others = [plugin for plugin in plugins if plugin.name != "NodeDeclaredFeatures"]
    return (others[0], _QUEUE_SORT, *others[1:], _BINDER, *gated)


def _let_extenders_manage(extenders: Sequence[Mapping[str, Any]], profiles: Sequence[Mapping[str, Any]]) -> None:
    """Resources that extenders manage take the place of those that NodeResourcesFit is told to ignore."""
    ignored = [
        resource.get("name", "")
        for extender in extenders
        for resource in extender.get("managedResources", [])
        if resource.get("ignoredByScheduler")
    ]
    if not ignored:
        return
    for profile in profiles:
        config = next((config for config in profile["pluginConfig"] if config["name"] == _FIT), None)
        if config is None:
            raise ConfigurationError("couldn't build extenders: can't find NodeResourcesFitArgs in plugin config")
        config["args"] = {**config["args"], "ignoredResources": ignored}


def _profile(profile: Mapping[str, Any], configuration: Mapping[str, Any]) -> Profile:
    name, plugins = profile["schedulerName"], profile["plugins"]
    args = {config["name"]: config.get("args", {}) for config in profile["pluginConfig"]}
    prefix = f"initializing profiles: creating profile for scheduler name {name}: "
    enabled = {plugin["name"] for at_point in plugins.values() for plugin in at_point["enabled"]}
    if _FIT in enabled:
        aggregate(validate_node_resources_fit("", args[_FIT]), f'{prefix}initializing plugin "{_FIT}": ')
    try:
        check_plugins(plugins, name)
    except ConfigurationError as error:
        raise ConfigurationError(prefix + error.message) from error
    percentage = profile.get("percentageOfNodesToScore")
    extenders = configuration["extenders"]
    return Profile(
        scheduler_name=name,
        plugins=_enabled(plugins[MULTI_POINT]["enabled"]),
        points={
            point: PointConfig(
                _enabled(at_point["enabled"]), frozenset(plugin["name"] for plugin in at_point["disabled"])
            )
            for point, at_point in plugins.items()
            if point != MULTI_POINT
        },
        plugin_args={plugin: args[plugin] for plugin in args if plugin in REGISTRY and plugin in PLUGIN_ARGS},
        percentage_of_nodes_to_score=configuration["percentageOfNodesToScore"] if percentage is None else percentage,
        has_extenders=any(extender.get("filterVerb") or extender.get("prioritizeVerb") for extender in extenders),
        parallelism=configuration["parallelism"],
    )


def _enabled(plugins: Sequence[Mapping[str, Any]]) -> tuple[EnabledPlugin, ...]:
    return tuple(EnabledPlugin(plugin["name"], plugin["weight"] or 1) for plugin in plugins)


def _plugin_assumptions(path: str, plugins: Plugins) -> list[Assumption]:
    """Enabled plugins that are not run, each with the first place where it is enabled."""
    places: dict[str, str] = {}
    for point in (MULTI_POINT, *(point for point in plugins if point != MULTI_POINT)):
        for plugin in plugins[point]["enabled"]:
            if plugin["name"] not in REGISTRY and plugin["name"] not in _NO_PART:
                places.setdefault(plugin["name"], f"{path}.plugins.{point}")
    return [
        Assumption(
            _SUBJECT,
            place,
            f"plugin {name} is not modelled, and left out"
            if name in IN_TREE
            else f"plugin {name} is not one of kube-scheduler's own, and left out",
        )
        for name, place in places.items()
    ]


def _extender_assumption(index: int, extender: Mapping[str, Any]) -> Assumption:
    verbs = [
        verb.removesuffix("Verb")
        for verb in ("filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb")
        if extender.get(verb)
    ]
    does = f" ({', '.join(verbs)})" if verbs else ""
    return Assumption(_SUBJECT, f"extenders[{index}]", f"the extender{does} is not asked")
