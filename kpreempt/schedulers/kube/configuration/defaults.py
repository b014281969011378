"""What loading fills into a configuration (``apis/config/v1/defaults.go``, ``default_plugins.go``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpreempt.model.durations import SECOND
from kpreempt.schedulers.kube.configuration.schema import EXTENSION_POINTS, MULTI_POINT, PLUGIN_ARGS
from kpreempt.schedulers.kube.plugin_table import REGISTRY, EnabledPlugin
from kpreempt.schedulers.kube.versions import Behaviour

DEFAULT_SCHEDULER_NAME = "default-scheduler"
ALL = "*"

_LEADER_ELECTION = {
    "leaderElect": True,
    "leaseDuration": 15 * SECOND,
    "renewDeadline": 10 * SECOND,
    "retryPeriod": 2 * SECOND,
    "resourceLock": "leases",
    "resourceName": "kube-scheduler",
    "resourceNamespace": "kube-system",
}


def with_defaults(
    decoded: Mapping[str, Any], default_plugins: tuple[EnabledPlugin, ...], behaviour: Behaviour
) -> dict[str, Any]:
    """The decoded configuration with everything that it leaves open; ``decoded`` is not changed.

    Each profile's ``plugins`` then hold, for every extension point and for all of them, lists ``enabled`` and
    ``disabled``, and its ``pluginConfig`` the arguments of all plugins that take some.
    """
    profiles = [dict(profile) for profile in decoded.get("profiles", [])] or [{}]
    if len(profiles) == 1:
        profiles[0].setdefault("schedulerName", DEFAULT_SCHEDULER_NAME)
    for profile in profiles:
        profile["plugins"] = _merged_plugins(default_plugins, profile.get("plugins", {}))
        profile["pluginConfig"] = _plugin_config(profile, behaviour)
    # Zero values of these count as not given.
    leader_election = {key: value for key, value in decoded.get("leaderElection", {}).items() if value not in ("", 0)}
    if decoded.get("leaderElection", {}).get("leaderElect") is False:
        leader_election["leaderElect"] = False
    return {
        "parallelism": 16,
        "percentageOfNodesToScore": 0,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        "extenders": [],
        **decoded,
        "leaderElection": _LEADER_ELECTION | leader_election,
        "profiles": profiles,
    }


def _default_args(name: str, args: Mapping[str, Any], behaviour: Behaviour) -> dict[str, Any]:
    return REGISTRY[name].default_args(args, behaviour)


def _plugin_config(profile: Mapping[str, Any], behaviour: Behaviour) -> list[dict[str, Any]]:
    """The given arguments with their defaults, then those of the plugins that are enabled without any."""
    given = profile.get("pluginConfig", [])
    configs = [
        {"name": "", **config, "args": _default_args(config["name"], config.get("args", {}), behaviour)}
        if config.get("name") in PLUGIN_ARGS
        else {"name": "", **config}
        for config in given
    ]
    configured = {config["name"] for config in configs}
    enabled = {plugin["name"] for plugins in profile["plugins"].values() for plugin in plugins["enabled"]}
    configs += [
        {"name": name, "args": _default_args(name, {}, behaviour)}
        for name in sorted(enabled)
        if name in PLUGIN_ARGS and name not in configured
    ]
    return configs


def _merged_plugins(
    default_plugins: tuple[EnabledPlugin, ...], given: Mapping[str, Any]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    enabled = [plugin._asdict() for plugin in default_plugins]
    return {
        point: _merged_set(enabled if point == MULTI_POINT else [], given.get(point, {}))
        for point in (*EXTENSION_POINTS, MULTI_POINT)
    }


def _merged_set(defaults: list[dict[str, Any]], given: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The default plugins that are not disabled, each replaced in its place where it is given again, then all others.

    Of a plugin that is given twice, the last one replaces; the others follow, and are refused later.
    """
    own = [{"name": "", "weight": 0, **plugin} for plugin in given.get("enabled", [])]
    disabled = [{"name": plugin.get("name", "")} for plugin in given.get("disabled", [])]
    names = {plugin["name"] for plugin in disabled}
    last_given = {plugin["name"]: index for index, plugin in enumerate(own)}
    kept = [] if ALL in names else [plugin for plugin in defaults if plugin["name"] not in names]
    replacing = {last_given[plugin["name"]] for plugin in kept if plugin["name"] in last_given}
    enabled = [own[last_given[plugin["name"]]] if plugin["name"] in last_given else plugin for plugin in kept]
    enabled += [plugin for index, plugin in enumerate(own) if index not in replacing]
    return {"enabled": enabled, "disabled": disabled}
