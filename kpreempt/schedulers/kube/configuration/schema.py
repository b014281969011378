"""The types of a KubeSchedulerConfiguration and of the plugins' arguments, with the names that messages give them.

Follows ``k8s.io/kube-scheduler`` v0.36.3 ``config/v1`` and ``k8s.io/component-base`` v0.36.3 ``config/v1alpha1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from kpreempt.schedulers.kube.versions import Behaviour

GROUP = "kubescheduler.config.k8s.io"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "KubeSchedulerConfiguration"


class Scalar(NamedTuple):
    """A plain value; ``go_type`` is also what it may hold."""

    go_type: str


class ListOf(NamedTuple):
    """A list of values of one type."""

    item: Type

    @property
    def go_type(self) -> str:
        """The name in messages."""
        return f"[]{self.item.go_type}"


class Struct(NamedTuple):
    """An object with known fields."""

    name: str
    fields: dict[str, Type]

    @property
    def go_type(self) -> str:
        """The name in messages."""
        return f"v1.{self.name}"


Type = Scalar | ListOf | Struct

STRING = Scalar("string")
BOOL = Scalar("bool")
INT32 = Scalar("int32")
INT64 = Scalar("int64")
FLOAT32 = Scalar("float32")
DURATION = Scalar("duration")
BYTES = Scalar("[]uint8")
STRING_MAP = Scalar("map[string]string")
# Decoded on its own, by the name of the plugin.
ANY = Scalar("any")

_STRINGS = ListOf(STRING)
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

_REQUIREMENT: dict[str, Type] = {"key": STRING, "operator": STRING, "values": _STRINGS}
_NODE_REQUIREMENTS = ListOf(Struct("NodeSelectorRequirement", _REQUIREMENT))
_NODE_TERM = Struct("NodeSelectorTerm", {"matchExpressions": _NODE_REQUIREMENTS, "matchFields": _NODE_REQUIREMENTS})
_NODE_AFFINITY = Struct(
    "NodeAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Struct(
            "NodeSelector", {"nodeSelectorTerms": ListOf(_NODE_TERM)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
            Struct("PreferredSchedulingTerm", {"weight": INT32, "preference": _NODE_TERM})
        ),
    },
)
_SPREAD_CONSTRAINT = Struct(
    "TopologySpreadConstraint",
    {
        "maxSkew": INT32,
        "topologyKey": STRING,
        "whenUnsatisfiable": STRING,
        "labelSelector": Struct(
            "LabelSelector",
            {"matchLabels": STRING_MAP, "matchExpressions": ListOf(Struct("LabelSelectorRequirement", _REQUIREMENT))},
        ),
        "minDomains": INT32,
        "nodeAffinityPolicy": STRING,
        "nodeTaintsPolicy": STRING,
        "matchLabelKeys": _STRINGS,
    },
)
_RESOURCES = ListOf(Struct("ResourceSpec", {"name": STRING, "weight": INT64}))
_SHAPE = ListOf(Struct("UtilizationShapePoint", {"utilization": INT32, "score": INT32}))

# Arguments by the name of the plugin; other plugins take none, or are not in the tree.
_ARGS_FIELDS: dict[str, dict[str, Type]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": INT32, "minCandidateNodesAbsolute": INT32},
    "DynamicResources": {"filterTimeout": DURATION, "bindingTimeout": DURATION},
    "InterPodAffinity": {"hardPodAffinityWeight": INT32, "ignorePreferredTermsOfExistingPods": BOOL},
    "NodeAffinity": {"addedAffinity": _NODE_AFFINITY},
    "NodeResourcesBalancedAllocation": {"resources": _RESOURCES},
    "NodeResourcesFit": {
        "ignoredResources": _STRINGS,
        "ignoredResourceGroups": _STRINGS,
        "scoringStrategy": Struct(
            "ScoringStrategy",
            {
                "type": STRING,
                "resources": _RESOURCES,
                "requestedToCapacityRatio": Struct("RequestedToCapacityRatioParam", {"shape": _SHAPE}),
            },
        ),
    },
    "PodTopologySpread": {"defaultConstraints": ListOf(_SPREAD_CONSTRAINT), "defaultingType": STRING},
    "VolumeBinding": {"bindTimeoutSeconds": INT64, "shape": _SHAPE},
}
PLUGIN_ARGS: dict[str, Struct] = {
    name: Struct(f"{name}Args", {**_TYPE_META, **fields}) for name, fields in _ARGS_FIELDS.items()
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
