"""The types of a KubeSchedulerConfiguration and of plugin arguments, their names in messages, and their defaults.

Follows ``k8s.io/kube-scheduler`` v0.36.3 ``config/v1`` and ``k8s.io/component-base`` v0.36.3 ``config/v1alpha1``, and
the defaults that loading sets: ``apis/config/v1/defaults.go`` and ``default_plugins.go``, v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from kpreempt.model.durations import SECOND
from kpreempt.schedulers.kube.framework.arg_types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT32,
    INT32,
    INT64,
    STRING,
    ListOf,
    Scalar,
    Struct,
    Type,
)
from kpreempt.schedulers.kube.plugin_table import REGISTRY, EnabledPlugin
from kpreempt.schedulers.kube.versions import Behavior

GROUP = "kubescheduler.config.k8s.io"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "KubeSchedulerConfiguration"

# Decoded separately, by the plugin's name.
ANY = Scalar("any")

_TYPE_META: dict[str, Type] = {"apiVersion": STRING, "kind": STRING}

_PLUGIN = Struct("Plugin", {"name": STRING, "weight": INT32})
_PLUGIN_SET = Struct("PluginSet", {"enabled": ListOf(_PLUGIN), "disabled": ListOf(_PLUGIN)})

# Extension points in the order in which the framework fills them, with the interface that a plugin implements for each.
EXTENSION_POINTS: dict[str, str] = {
    point: f"{point[0].upper()}{point[1:]}Plugin"
    for point in (
        *("preFilter", "filter", "postFilter", "reserve", "preScore", "score", "preBind", "bind", "postBind", "permit"),
        *("preEnqueue", "queueSort", "placementGenerate", "placementScore", "podGroupPostFilter"),
    )
}
MULTI_POINT = "multiPoint"


def _profile_with(points: Iterable[str]) -> Struct:
    return Struct(
        "KubeSchedulerProfile",
        {
            "schedulerName": STRING,
            "percentageOfNodesToScore": INT32,
            "plugins": Struct("Plugins", dict.fromkeys((*points, MULTI_POINT), _PLUGIN_SET)),
            "pluginConfig": ListOf(Struct("PluginConfig", {"name": STRING, "args": ANY})),
        },
    )


_EXTENDER = Struct(
    "Extender",
    {
        "urlPrefix": STRING,
        "filterVerb": STRING,
        "preemptVerb": STRING,
        "prioritizeVerb": STRING,
        "weight": INT64,
        "bindVerb": STRING,
        "enableHTTPS": BOOL,
        "tlsConfig": Struct(
            "ExtenderTLSConfig",
            {
                "insecure": BOOL,
                "serverName": STRING,
                "certFile": STRING,
                "keyFile": STRING,
                "caFile": STRING,
                "certData": BYTES,
                "keyData": BYTES,
                "caData": BYTES,
            },
        ),
        "httpTimeout": DURATION,
        "nodeCacheCapable": BOOL,
        "managedResources": ListOf(
            Struct("ExtenderManagedResource", {"name": STRING, "ignoredByScheduler": BOOL}),
        ),
        "ignorable": BOOL,
    },
)

_CONFIGURATION = Struct(
    KIND,
    {
        **_TYPE_META,
        "parallelism": INT32,
        "leaderElection": Struct(
            "LeaderElectionConfiguration",
            {
                "leaderElect": BOOL,
                "leaseDuration": DURATION,
                "renewDeadline": DURATION,
                "retryPeriod": DURATION,
                "resourceLock": STRING,
                "resourceName": STRING,
                "resourceNamespace": STRING,
            },
        ),
        "clientConnection": Struct(
            "ClientConnectionConfiguration",
            {
                "kubeconfig": STRING,
                "acceptContentTypes": STRING,
                "contentType": STRING,
                "qps": FLOAT32,
                "burst": INT32,
            },
        ),
        "enableProfiling": BOOL,
        "enableContentionProfiling": BOOL,
        "percentageOfNodesToScore": INT32,
        "podInitialBackoffSeconds": INT64,
        "podMaxBackoffSeconds": INT64,
        "profiles": ListOf(_profile_with(EXTENSION_POINTS)),
        "extenders": ListOf(_EXTENDER),
        "delayCacheUntilActive": BOOL,
    },
)

# Arguments by plugin name; other plugins have none or are out-of-tree.
PLUGIN_ARGS: dict[str, Struct] = {
    name: Struct(f"{name}Args", {**_TYPE_META, **each.args}) for name, each in REGISTRY.items() if each.args
}


@cache
def configuration_of(behavior: Behavior) -> Struct:
    """Return the configuration's type in a version."""
    points = dict.fromkeys(EXTENSION_POINTS)
    if not behavior.has_placement_points:
        del points["placementGenerate"], points["placementScore"]
    if not behavior.has_pod_group_points:
        del points["podGroupPostFilter"]
    return _CONFIGURATION._replace(fields={**_CONFIGURATION.fields, "profiles": ListOf(_profile_with(points))})


@cache
def args_of(behavior: Behavior) -> Mapping[str, Struct]:
    """Return the types of plugin arguments in a version, by plugin."""
    args = dict(PLUGIN_ARGS)
    devices = args.pop("DynamicResources")
    if behavior.takes_args_of_dynamic_resources:
        left_out = () if behavior.takes_binding_timeout else ("bindingTimeout",)
        fields = {name: each for name, each in devices.fields.items() if name not in left_out}
        args["DynamicResources"] = devices._replace(fields=fields)
    return args


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
    decoded: Mapping[str, Any], default_plugins: tuple[EnabledPlugin, ...], behavior: Behavior
) -> dict[str, Any]:
    """Return the decoded configuration with all defaults set; ``decoded`` is not changed.

    Each profile's ``plugins`` then has lists ``enabled`` and ``disabled`` for every extension point and for multiPoint,
    and its ``pluginConfig`` has the arguments of all plugins that take some.
    """
    profiles = [dict(profile) for profile in decoded.get("profiles", [])] or [{}]
    if len(profiles) == 1:
        profiles[0].setdefault("schedulerName", DEFAULT_SCHEDULER_NAME)
    for profile in profiles:
        given = profile.get("plugins", {})
        profile["plugins"] = {
            point: _merged_set(default_plugins if point == MULTI_POINT else (), given.get(point, {}))
            for point in (*EXTENSION_POINTS, MULTI_POINT)
        }
        profile["pluginConfig"] = _plugin_config(profile, behavior)
    # Zero values of these count as unset.
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


def _plugin_config(profile: Mapping[str, Any], behavior: Behavior) -> list[dict[str, Any]]:
    """Return the given arguments with their defaults, then those of enabled plugins that were given none."""
    configs = [
        {"name": "", **config, "args": REGISTRY[config["name"]].default_args(config.get("args", {}), behavior)}
        if config.get("name") in PLUGIN_ARGS
        else {"name": "", **config}
        for config in profile.get("pluginConfig", [])
    ]
    configured = {config["name"] for config in configs}
    enabled = {plugin["name"] for plugins in profile["plugins"].values() for plugin in plugins["enabled"]}
    configs += [
        {"name": name, "args": REGISTRY[name].default_args({}, behavior)}
        for name in sorted(enabled)
        if name in PLUGIN_ARGS and name not in configured
    ]
    return configs


def _merged_set(defaults: Iterable[EnabledPlugin], given: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the default plugins that are not disabled, with given ones replaced in place, then all others.

    If a plugin is given twice, the last one replaces the default; the others follow, and are rejected later.
    """
    own = [{"name": "", "weight": 0, **plugin} for plugin in given.get("enabled", [])]
    disabled = [{"name": plugin.get("name", "")} for plugin in given.get("disabled", [])]
    names = {plugin["name"] for plugin in disabled}
    last_given = {plugin["name"]: index for index, plugin in enumerate(own)}
    kept = [each._asdict() for each in defaults if ALL not in names and each.name not in names]
    replacing = {last_given[plugin["name"]] for plugin in kept if plugin["name"] in last_given}
    enabled = [own[last_given[plugin["name"]]] if plugin["name"] in last_given else plugin for plugin in kept]
    enabled += [plugin for index, plugin in enumerate(own) if index not in replacing]
    return {"enabled": enabled, "disabled": disabled}
