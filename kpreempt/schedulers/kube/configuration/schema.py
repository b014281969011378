"""The types of a KubeSchedulerConfiguration and of the plugins' arguments, with the names that messages give them.

Follows ``k8s.io/kube-scheduler`` v0.36.3 ``config/v1`` and ``k8s.io/component-base`` v0.36.3 ``config/v1alpha1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

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
from kpreempt.schedulers.kube.plugin_table import REGISTRY
from kpreempt.schedulers.kube.versions import Behaviour

GROUP = "kubescheduler.config.k8s.io"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "KubeSchedulerConfiguration"

# Decoded on its own, by the name of the plugin.
ANY = Scalar("any")

_TYPE_META: dict[str, Type] = {"apiVersion": STRING, "kind": STRING}

_PLUGIN = Struct("Plugin", {"name": STRING, "weight": INT32})
_PLUGIN_SET = Struct("PluginSet", {"enabled": ListOf(_PLUGIN), "disabled": ListOf(_PLUGIN)})

# Extension points in the order in which the framework fills them, each with the interface that a plugin implements.
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

# Arguments by the name of the plugin; other plugins take none, or are not in the tree.
PLUGIN_ARGS: dict[str, Struct] = {
    name: Struct(f"{name}Args", {**_TYPE_META, **each.args}) for name, each in REGISTRY.items() if each.args
}


@cache
def configuration_of(behaviour: Behaviour) -> Struct:
    """The configuration's type in a version."""
    points = dict.fromkeys(EXTENSION_POINTS)
    if not behaviour.has_placement_points:
        del points["placementGenerate"], points["placementScore"]
    if not behaviour.has_pod_group_points:
        del points["podGroupPostFilter"]
    return _CONFIGURATION._replace(fields={**_CONFIGURATION.fields, "profiles": ListOf(_profile_with(points))})


@cache
def args_of(behaviour: Behaviour) -> Mapping[str, Struct]:
    """The types of the arguments in a version, by plugin."""
    args = dict(PLUGIN_ARGS)
    devices = dict(args["DynamicResources"].fields)
    if not behaviour.takes_binding_timeout:
        del devices["bindingTimeout"]
    args["DynamicResources"] = args["DynamicResources"]._replace(fields=devices)
    if not behaviour.takes_args_of_dynamic_resources:
        del args["DynamicResources"]
    return args
