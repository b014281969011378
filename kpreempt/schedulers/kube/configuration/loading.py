"""Create a scheduler from a KubeSchedulerConfiguration (``cmd/kube-scheduler/app`` and ``pkg/scheduler``, v1.36.3).

Checks that a profile's plugins exist and may be enabled at a point as ``framework/runtime/framework.go`` does. For
out-of-tree plugins, only the names, the arguments and the points that do not run are handled here.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.errors import ConfigurationError
from kpreempt.model.extra_fields import ExtraFields, all_extras
from kpreempt.model.quantity import MAX_INT64, wrap_int64
from kpreempt.scheduler_table import DEFAULT_VERSION
from kpreempt.schedulers.extender_protocol import CURRENT, Connect, HttpExtender, read_settings, with_ignorable_last
from kpreempt.schedulers.kube.configuration.decoding import decode_configuration, validate_configuration
from kpreempt.schedulers.kube.configuration.schema import (
    ALL,
    API_VERSION,
    EXTENSION_POINTS,
    KIND,
    MULTI_POINT,
    PLUGIN_ARGS,
    with_defaults,
)
from kpreempt.schedulers.kube.framework.arg_types import aggregate
from kpreempt.schedulers.kube.framework.in_tree import Registration
from kpreempt.schedulers.kube.framework.interface import NOT_RUN, Plugin, points_of
from kpreempt.schedulers.kube.plugin_table import (
    REGISTRY,
    WITHOUT_CLASS,
    EnabledPlugin,
    Registry,
    default_plugins,
    plugins_elsewhere,
    plugins_in_tree,
    registry_of,
)
from kpreempt.schedulers.kube.plugins.node_resources_fit import NodeResourcesFit
from kpreempt.schedulers.kube.preemption.evaluator import PreemptionPlugin
from kpreempt.schedulers.kube.profile import PointConfig, Profile, out_of_tree_names
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import Behavior, behavior_with
from kpreempt.verdict import Assumption
from kpreempt.verdict.records import FEATURE_GATE, SETTING_UNMODELED

_SUBJECT = KIND
_FIT = NodeResourcesFit.name


def scheduler_from_configuration(
    document: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    plugins: Sequence[FoundPlugin] = (),
    connect: Connect | None = None,
    version: str = DEFAULT_VERSION,
    facts: Behavior | None = None,
) -> KubeScheduler:
    """Create the scheduler that kube-scheduler would be with this configuration and these feature gates.

    ``facts`` replace those of the version and the gates, for a version that does not exist.

    ``document`` is the configuration as plain data (``None``: no configuration), and is not changed. ``plugins`` are
    the out-of-tree plugins that it may enable; without a configuration, the requested ones also run. ``connect``
    enables extender calls; without it, no extender is called and each becomes an assumption, as does everything
    unmodeled: other out-of-tree plugins, and gates. Raises ``ConfigurationError`` and, for gates, ``UsageError`` if
    kube-scheduler would refuse to start, with its reason.
    """
    version = facts.version if facts is not None else version
    registry = registry_with(plugins, version)
    behavior, unmodeled = (facts, []) if facts is not None else behavior_with(feature_gates or {}, version)
    assumptions = [Assumption("scheduler", f"{FEATURE_GATE}{name}", SETTING_UNMODELED) for name in unmodeled]
    requested = [each for each in plugins if each.is_requested]
    if document is None and not requested:
        return KubeScheduler(behavior=behavior, assumptions=assumptions)
    decoded = decode_configuration(configuration_running(requested) if document is None else document, behavior)
    check_requested(requested, decoded.get("profiles", ()))
    configuration = with_defaults(decoded, default_plugins(behavior), behavior)
    validate_configuration(configuration, behavior)
    extenders = configuration["extenders"]
    _let_extenders_manage(extenders, configuration["profiles"])
    in_tree = plugins_in_tree(version)
    profiles = [_profile(profile, configuration, registry, in_tree, behavior) for profile in configuration["profiles"]]
    for index, profile in enumerate(configuration["profiles"]):
        assumptions += _plugin_assumptions(f"profiles[{index}]", profile["plugins"], registry, in_tree)
    settings = read_settings(extenders)
    called: list[HttpExtender] = []
    if connect is None:
        for index, extender in enumerate(extenders):
            verbs = [each for each in ("filter", "prioritize", "preempt", "bind") if extender.get(f"{each}Verb")]
            does = f" ({', '.join(verbs)})" if verbs else ""
            message = f"the extender{does} is not called; use --call-extenders to call it"
            assumptions.append(Assumption(_SUBJECT, f"extenders[{index}]", message))
    else:
        called = [HttpExtender(each, CURRENT, connect(each)) for each in with_ignorable_last(settings)]
    out_of_tree = out_of_tree_names((name for profile in profiles for name in profile.enabled_names), registry).values()
    assumptions += [assumption for plugin in out_of_tree for assumption in not_run(plugin)]
    extra_fields = all_extras(plugin.extra_fields for plugin in out_of_tree)
    if called:
        # Pods are sent with their annotations, which some extenders depend on.
        extra_fields |= ExtraFields(pod_annotations=True)
    return KubeScheduler(
        profiles,
        behavior,
        assumptions,
        registry=registry,
        extra_fields=extra_fields,
        extenders=called,
        extender_settings=settings,
        backoffs=(configuration["podInitialBackoffSeconds"], configuration["podMaxBackoffSeconds"]),
    )


def _let_extenders_manage(extenders: Sequence[Mapping[str, Any]], profiles: Sequence[Mapping[str, Any]]) -> None:
    """Add the resources that extenders manage to the ones that NodeResourcesFit is configured to ignore."""
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
    behavior: Behavior,
) -> Profile:
    name, plugins = profile["schedulerName"], profile["plugins"]
    args = {config["name"]: config.get("args", {}) for config in profile["pluginConfig"]}
    prefix = f"initializing profiles: creating profile for scheduler name {name}: "
    enabled = {plugin["name"] for at_point in plugins.values() for plugin in at_point["enabled"]}
    for each in sorted(enabled & REGISTRY.keys() & args.keys()):
        aggregate(REGISTRY[each].making_problems("", args[each], behavior), f'{prefix}initializing plugin "{each}": ')
    try:
        points = {**in_tree, **{each: registry[each].points for each in registry}}
        check_plugins(plugins, name, points, plugins_elsewhere(behavior.version).keys() - registry.keys())
    except ConfigurationError as error:
        raise ConfigurationError(prefix + error.message) from error
    # Decode arguments for in-tree plugins that take some, and for every out-of-tree plugin.
    plugin_args = {each: args[each] for each in args if each in PLUGIN_ARGS}
    for each, plugin in out_of_tree_names(enabled, registry).items():
        plugin_args[each] = decoded_args(plugin, args.get(each, {}))
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
        plugin_args=plugin_args,
        percentage_of_nodes_to_score=configuration["percentageOfNodesToScore"] if percentage is None else percentage,
        has_extenders=any(extender.get("filterVerb") or extender.get("prioritizeVerb") for extender in extenders),
        parallelism=configuration["parallelism"],
    )


def _enabled(plugins: Sequence[Mapping[str, Any]]) -> tuple[EnabledPlugin, ...]:
    return tuple(EnabledPlugin(plugin["name"], plugin["weight"] or 1) for plugin in plugins)


def _plugin_assumptions(path: str, plugins: Plugins, registry: Registry, in_tree: Points) -> list[Assumption]:
    """List enabled plugins that do not run, each with the first place where it is enabled."""
    places: dict[str, str] = {}
    for point in (MULTI_POINT, *(point for point in plugins if point != MULTI_POINT)):
        for plugin in plugins[point]["enabled"]:
            if plugin["name"] not in registry and plugin["name"] not in WITHOUT_CLASS:
                places.setdefault(plugin["name"], f"{path}.plugins.{point}")
    return [
        Assumption(
            _SUBJECT,
            place,
            f"plugin {name} is not modeled and was omitted"
            if name in in_tree
            else f"plugin {name} is not an in-tree plugin and was omitted",
        )
        for name, place in places.items()
    ]


_MAX_SCORE = 100

Plugins = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
Points = Mapping[str, frozenset[str]]


def check_plugins(plugins: Plugins, scheduler_name: str, points: Points, elsewhere: Container[str] = ()) -> None:
    """Check the points at which a profile enables plugins; ``points`` has the extension points that each implements.

    Plugins not in ``points`` are assumed to be compiled in and to implement the points at which they are enabled,
    except for plugins that exist ``elsewhere``, in other versions only. Raises ``ConfigurationError`` for what the
    framework rejects.
    """
    enabled = {point: [plugin["name"] for plugin in plugins[point]["enabled"]] for point in EXTENSION_POINTS}
    for point, names in enabled.items():
        for index, name in enumerate(names):
            _check_exists(name, point, elsewhere)
            if name in points and point not in points[name]:
                raise ConfigurationError(f'plugin "{name}" does not extend {EXTENSION_POINTS[point]} plugin')
            if name in names[:index]:
                raise _registered_twice(name, point)
    for point, names in enabled.items():
        names.extend(_expanded(plugins, point, points, elsewhere))
    for_profile = f'for profile with scheduler name "{scheduler_name}"'
    may_be_more = any(plugin["name"] not in points for plugin in plugins[MULTI_POINT]["enabled"])
    sorters = len(enabled["queueSort"])
    if sorters > 1 or (sorters == 0 and not may_be_more):
        raise ConfigurationError(f"only one queue sort plugin required {for_profile}, but got {sorters}")
    if not enabled["bind"] and not may_be_more:
        raise ConfigurationError(f"at least one bind plugin is needed {for_profile}")
    if len(enabled["placementGenerate"]) > 1:
        raise ConfigurationError(f"at most one placement generate plugin is allowed {for_profile}")
    for point, kind in (("score", "score"), ("placementScore", "placement score")):
        _check_weights([*plugins[point]["enabled"], *plugins[MULTI_POINT]["enabled"]], point, kind, points)


def _expanded(plugins: Plugins, point: str, points: Points, elsewhere: Container[str]) -> list[str]:
    """Return the plugins that multiPoint adds to those enabled at the point itself."""
    own = {plugin["name"] for plugin in plugins[point]["enabled"]}
    disabled = {plugin["name"] for plugin in plugins[point]["disabled"]}
    added: list[str] = []
    if ALL in disabled:
        return added
    for plugin in plugins[MULTI_POINT]["enabled"]:
        name = plugin["name"]
        _check_exists(name, point, elsewhere)
        if point not in points.get(name, ()) or name in disabled or name in own:
            continue
        if name in added:
            raise _registered_twice(name, point)
        added.append(name)
    return added


def _check_exists(name: str, point: str, elsewhere: Container[str]) -> None:
    if not name or name in elsewhere:
        raise ConfigurationError(f'{EXTENSION_POINTS[point]} "{name}" does not exist')


def _registered_twice(name: str, point: str) -> ConfigurationError:
    return ConfigurationError(f'plugin "{name}" already registered as "{EXTENSION_POINTS[point]}"')


def _check_weights(enabled: Sequence[Mapping[str, Any]], point: str, kind: str, points: Points) -> None:
    """Check that the sum of all scores fits 64 bits; upstream's own check wraps around for negative weights."""
    total = 0
    seen = set()
    for plugin in enabled:
        name = plugin["name"]
        if name in seen or point not in points.get(name, ()):
            continue
        seen.add(name)
        highest = (plugin["weight"] or 1) * _MAX_SCORE
        if highest > wrap_int64(MAX_INT64 - total):
            raise ConfigurationError(f"{kind} plugins: total score of Score plugins could overflow")
        total = wrap_int64(total + highest)


class FoundPlugin(msgspec.Struct, frozen=True):
    """A plugin's class and a description of its source, such as ``--plugin rack:RackColocation``.

    ``is_requested`` means that it must run even if no configuration enables it.
    """

    plugin: type[Plugin]
    source: str
    is_requested: bool = False

    @property
    def name(self) -> str:
        """The name by which a configuration enables it."""
        return self.plugin.name


def registry_with(found: Iterable[FoundPlugin], version: str) -> Registry:
    """Return the version's in-tree plugins and these. Raises ``ConfigurationError`` for a name that is in use."""
    registry = dict(registry_of(version))
    in_tree = plugins_in_tree(version)
    for each in found:
        known = registry.get(each.name)
        if known is not None or each.name in in_tree:
            other = known.source if known is not None and known.source else "kube-scheduler itself"
            raise ConfigurationError(
                f"a plugin named {each.name} is already registered: by {other}, and now by {each.source}",
                hint=f'set a different name = "..." in class {each.plugin.__name__}',
            )
        points = points_of(each.plugin)
        if not points:
            raise ConfigurationError(
                f"{each.source} implements no extension point", hint="class MyPlugin(FilterPlugin): ..."
            )
        registry[each.name] = Registration(factory=each.plugin, points=points, plugin=each.plugin, source=each.source)
    return registry


def configuration_running(plugins: Sequence[FoundPlugin]) -> dict[str, Any]:
    """Return the configuration that adds plugins to the default profile.

    A plugin that sorts the queue or preempts replaces PrioritySort or DefaultPreemption; all others are appended.
    """
    disabled: dict[str, list[dict[str, str]]] = {}
    if any("queueSort" in points_of(each.plugin) for each in plugins):
        disabled["queueSort"] = [{"name": "PrioritySort"}]
    if any(issubclass(each.plugin, PreemptionPlugin) for each in plugins):
        disabled["postFilter"] = [{"name": "DefaultPreemption"}]
    points = {
        MULTI_POINT: {"enabled": [{"name": each.name} for each in plugins]},
        **{point: {"disabled": names} for point, names in disabled.items()},
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": points}]}


def check_requested(plugins: Iterable[FoundPlugin], profiles: Iterable[Mapping[str, Any]]) -> None:
    """Raise ``ConfigurationError`` for a requested plugin that the configuration does not mention."""
    mentioned = {
        plugin.get("name")
        for profile in profiles
        for at_point in profile.get("plugins", {}).values()
        for plugin in (*at_point.get("enabled", ()), *at_point.get("disabled", ()))
    }
    for each in plugins:
        if each.is_requested and each.name not in mentioned:
            raise ConfigurationError(
                f"{each.source}: no profile of the configuration enables {each.name}",
                hint=f"plugins.multiPoint.enabled: [{{name: {each.name}}}]",
            )


def decoded_args(plugin: type[Plugin], args: object) -> Any:
    """Decode an out-of-tree plugin's arguments into its own type. Raises ``ConfigurationError``.

    The type is the plugin's own code, so it may raise anything.
    """
    prefix = f"decoding args for plugin {plugin.name}: "
    if not isinstance(args, Mapping):
        raise ConfigurationError(f"{prefix}expected an object")
    own = {key: value for key, value in args.items() if key not in ("apiVersion", "kind")}
    if plugin.args_type is None:
        return own
    try:
        return msgspec.convert(own, plugin.args_type)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{prefix}{error}") from None
    except Exception as error:
        raise ConfigurationError(f"{prefix}{type(error).__name__}: {error}") from None


def not_run(plugin: type[Plugin]) -> list[Assumption]:
    """List the points of the plugin that come after the choice of a node, if any."""
    implemented = points_of(plugin)
    points = [point for point in NOT_RUN if point in implemented]
    if not points:
        return []
    message = f"{', '.join(points)} {'is' if len(points) == 1 else 'are'} recognized but not run in a what-if"
    return [Assumption(f"plugin {plugin.name}", "extension points", message)]
