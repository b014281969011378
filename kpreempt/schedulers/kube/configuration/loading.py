"""From a KubeSchedulerConfiguration to a scheduler (``cmd/kube-scheduler/app`` and ``pkg/scheduler``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kpreempt.errors import ConfigurationError
from kpreempt.model.wanted import Wanted, all_wanted
from kpreempt.scheduler_table import DEFAULT_VERSION
from kpreempt.schedulers.extender_protocol import (
    CURRENT,
    Connect,
    HttpExtender,
    read_settings,
    with_ignorable_last,
)
from kpreempt.schedulers.kube.configuration.decoding import decode_configuration
from kpreempt.schedulers.kube.configuration.defaults import with_defaults
from kpreempt.schedulers.kube.configuration.extension_points import Plugins, Points, check_plugins
from kpreempt.schedulers.kube.configuration.foreign_plugins import (
    FoundPlugin,
    check_asked_for,
    configuration_running,
    decoded_args,
    not_run,
    registry_with,
)
from kpreempt.schedulers.kube.configuration.schema import KIND, MULTI_POINT, PLUGIN_ARGS
from kpreempt.schedulers.kube.configuration.validation import validate_configuration
from kpreempt.schedulers.kube.feature_gates import behaviour_with
from kpreempt.schedulers.kube.framework.field_errors import aggregate
from kpreempt.schedulers.kube.plugin_table import (
    REGISTRY,
    WITHOUT_CLASS,
    EnabledPlugin,
    Registry,
    default_plugins,
    plugins_elsewhere,
    plugins_in_tree,
)
from kpreempt.schedulers.kube.plugins.node_resources_fit import NodeResourcesFit
from kpreempt.schedulers.kube.profile import (
    PointConfig,
    Profile,
    from_outside,
)
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import Behaviour
from kpreempt.verdict import Assumption
from kpreempt.verdict.records import FEATURE_GATE, SETTING_NOT_MODELLED

_SUBJECT = KIND
_FIT = NodeResourcesFit.name


def scheduler_from_configuration(
    document: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    plugins: Sequence[FoundPlugin] = (),
    connect: Connect | None = None,
    version: str = DEFAULT_VERSION,
    facts: Behaviour | None = None,
) -> KubeScheduler:
    """The scheduler that a kube-scheduler of the version with this configuration and these feature gates would be.

    ``facts`` are those of a version that there is not, which hold instead of what the version and the gates say.

    ``document`` is the configuration as plain data (``None``: without one), and is not changed. ``plugins`` are those
    from outside that it may enable; without a configuration those that are asked for run, too. ``connect`` makes calls
    to extenders; without it none is called, and each becomes an assumption, as does what is not modelled: other plugins
    outside the tree, gates. Raises ``ConfigurationError`` and, for gates, ``UsageError`` where kube-scheduler would
    refuse to start, with its reason.
    """
    version = facts.version if facts is not None else version
    registry = registry_with(plugins, version)
    behaviour, not_modelled = (facts, []) if facts is not None else behaviour_with(feature_gates or {}, version)
    assumptions = [Assumption("scheduler", f"{FEATURE_GATE}{name}", SETTING_NOT_MODELLED) for name in not_modelled]
    asked_for = [each for each in plugins if each.is_asked_for]
    if document is None and not asked_for:
        return KubeScheduler(behaviour=behaviour, assumptions=assumptions)
    decoded = decode_configuration(configuration_running(asked_for) if document is None else document, behaviour)
    check_asked_for(asked_for, decoded.get("profiles", ()))
    configuration = with_defaults(decoded, default_plugins(behaviour), behaviour)
    validate_configuration(configuration, behaviour)
    extenders = configuration["extenders"]
    _let_extenders_manage(extenders, configuration["profiles"])
    in_tree = plugins_in_tree(version)
    profiles = [_profile(profile, configuration, registry, in_tree, behaviour) for profile in configuration["profiles"]]
    for index, profile in enumerate(configuration["profiles"]):
        assumptions += _plugin_assumptions(f"profiles[{index}]", profile["plugins"], registry, in_tree)
    settings = read_settings(extenders)
    called: list[HttpExtender] = []
    if connect is None:
        assumptions += [_extender_assumption(index, extender) for index, extender in enumerate(extenders)]
    else:
        called = [HttpExtender(each, CURRENT, connect(each)) for each in with_ignorable_last(settings)]
    foreign = from_outside((name for profile in profiles for name in profile.enabled_names), registry).values()
    assumptions += [assumption for plugin in foreign for assumption in not_run(plugin)]
    wanted = all_wanted(plugin.wants for plugin in foreign)
    if called:
        # Pods are sent with their annotations, which are all that some extenders go by.
        wanted |= Wanted(pod_annotations=True)
    return KubeScheduler(
        profiles,
        behaviour,
        assumptions,
        registry=registry,
        wanted=wanted,
        extenders=called,
        extender_settings=settings,
        backoffs=(configuration["podInitialBackoffSeconds"], configuration["podMaxBackoffSeconds"]),
    )


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


def _profile(
    profile: Mapping[str, Any],
    configuration: Mapping[str, Any],
    registry: Registry,
    in_tree: Points,
    behaviour: Behaviour,
) -> Profile:
    name, plugins = profile["schedulerName"], profile["plugins"]
    args = {config["name"]: config.get("args", {}) for config in profile["pluginConfig"]}
    prefix = f"initializing profiles: creating profile for scheduler name {name}: "
    enabled = {plugin["name"] for at_point in plugins.values() for plugin in at_point["enabled"]}
    for each in sorted(enabled & REGISTRY.keys() & args.keys()):
        problems = REGISTRY[each].making_problems("", args[each], behaviour)
        aggregate(problems, f'{prefix}initializing plugin "{each}": ')
    try:
        points = {**in_tree, **{each: registry[each].points for each in registry}}
        check_plugins(plugins, name, points, plugins_elsewhere(behaviour.version).keys() - registry.keys())
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
        plugin_args=_plugin_args(args, enabled, registry),
        percentage_of_nodes_to_score=configuration["percentageOfNodesToScore"] if percentage is None else percentage,
        has_extenders=any(extender.get("filterVerb") or extender.get("prioritizeVerb") for extender in extenders),
        parallelism=configuration["parallelism"],
    )


def _plugin_args(args: Mapping[str, Any], enabled: Iterable[str], registry: Registry) -> dict[str, Any]:
    """The arguments of the plugins that take some; those out-of-tree always get some."""
    own = {name: args[name] for name in args if name in PLUGIN_ARGS}
    foreign = from_outside(enabled, registry)
    return own | {name: decoded_args(plugin, args.get(name, {})) for name, plugin in foreign.items()}


def _enabled(plugins: Sequence[Mapping[str, Any]]) -> tuple[EnabledPlugin, ...]:
    return tuple(EnabledPlugin(plugin["name"], plugin["weight"] or 1) for plugin in plugins)


def _plugin_assumptions(path: str, plugins: Plugins, registry: Registry, in_tree: Points) -> list[Assumption]:
    """Enabled plugins that are not run, each with the first place where it is enabled."""
    places: dict[str, str] = {}
    for point in (MULTI_POINT, *(point for point in plugins if point != MULTI_POINT)):
        for plugin in plugins[point]["enabled"]:
            if plugin["name"] not in registry and plugin["name"] not in WITHOUT_CLASS:
                places.setdefault(plugin["name"], f"{path}.plugins.{point}")
    return [
        Assumption(
            _SUBJECT,
            place,
            f"plugin {name} is not modelled, and left out"
            if name in in_tree
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
    return Assumption(_SUBJECT, f"extenders[{index}]", f"the extender{does} is not asked; --call-extenders allows it")
