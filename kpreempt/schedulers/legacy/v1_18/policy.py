"""Which filter plugins run, by the predicates of a Policy file or by default, and what 1.18 reads of its settings.

Each predicate stands for one plugin or more (``plugins/legacy_registry.go`` and ``factory.go``, v1.18.19). They run in
the order of the predicates, which is not that of the default profile: the topology spread comes before the pod
affinity. Two predicates come even where the file leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.errors import ConfigurationError
from kpreempt.schedulers.extender_protocol import V1_18
from kpreempt.schedulers.legacy.base.configuration import CONFIGURATION_GROUP, PRIORITIES, Dialect
from kpreempt.schedulers.legacy.base.policy import (
    SERVICE_AFFINITY,
    Policy,
    Predicate,
    no_service_affinity,
    type_not_found,
)
from kpreempt.schedulers.legacy.v1_18.framework import FilterPlugin
from kpreempt.schedulers.legacy.v1_18.node_filters import (
    NODE_AFFINITY,
    NODE_NAME,
    NODE_PORTS,
    TAINT_TOLERATION,
    VOLUME_RESTRICTIONS,
    NodeLabel,
    NodeResourcesFit,
    NodeUnschedulable,
)
from kpreempt.schedulers.legacy.v1_18.pod_filters import InterPodAffinity, PodTopologySpread
from kpreempt.schedulers.legacy.v1_18.volume_binding import VolumeBinding
from kpreempt.schedulers.legacy.v1_18.volume_limits import (
    AZURE_DISK_LIMITS,
    CINDER_LIMITS,
    EBS_LIMITS,
    GCE_PD_LIMITS,
    CSILimits,
    VolumeZone,
)

LABEL_PRESENCE = "CheckNodeLabelPresence"
EVEN_PODS_SPREAD = "EvenPodsSpread"
_RESOURCES = "PodFitsResources"

DIALECT = Dialect(
    algorithm="kube-1.18",
    gates={EVEN_PODS_SPREAD: True, "NonPreemptingPriority": False, "PodOverhead": True},
    api_versions=(f"{CONFIGURATION_GROUP}/v1alpha1", f"{CONFIGURATION_GROUP}/v1alpha2"),
    states_extenders=True,
    priorities=PRIORITIES | {"EvenPodsSpreadPriority", "NodeLabel", "RequestedToCapacityRatio", "ServiceAffinity"},
    priority_arguments=("serviceAntiAffinity", "labelPreference", "requestedToCapacityRatioArguments"),
    quotes='"{}"'.format,
    names_fields=True,
    protocol=V1_18,
    ignorable_last=True,
)

_UNSCHEDULABLE, _CSI_LIMITS, _POD_AFFINITY, _SPREAD = (
    NodeUnschedulable(),
    CSILimits(),
    InterPodAffinity(),
    PodTopologySpread(),
)
_VOLUME_BINDING, _VOLUME_ZONE = VolumeBinding(), VolumeZone()
# They stand for those that are made as the settings want them.
_RESOURCES_FIT, _LABELS = NodeResourcesFit(), NodeLabel()
# In the order in which they run.
_PLUGINS: dict[str, tuple[FilterPlugin, ...]] = {
    "CheckNodeUnschedulable": (_UNSCHEDULABLE,),
    "GeneralPredicates": (_RESOURCES_FIT, NODE_NAME, NODE_PORTS, NODE_AFFINITY),
    "HostName": (NODE_NAME,),
    "PodFitsHostPorts": (NODE_PORTS,),
    "MatchNodeSelector": (NODE_AFFINITY,),
    _RESOURCES: (_RESOURCES_FIT,),
    "NoDiskConflict": (VOLUME_RESTRICTIONS,),
    "PodToleratesNodeTaints": (TAINT_TOLERATION,),
    LABEL_PRESENCE: (_LABELS,),
    SERVICE_AFFINITY: (),
    "MaxEBSVolumeCount": (EBS_LIMITS,),
    "MaxGCEPDVolumeCount": (GCE_PD_LIMITS,),
    "MaxCSIVolumeCountPred": (_CSI_LIMITS,),
    "MaxAzureDiskVolumeCount": (AZURE_DISK_LIMITS,),
    "MaxCinderVolumeCount": (CINDER_LIMITS,),
    "CheckVolumeBinding": (_VOLUME_BINDING,),
    "NoVolumeZoneConflict": (_VOLUME_ZONE,),
    EVEN_PODS_SPREAD: (_SPREAD,),
    "MatchInterPodAffinity": (_POD_AFFINITY,),
}
_MANDATORY = frozenset(("PodToleratesNodeTaints", "CheckNodeUnschedulable"))
_NOT_BY_DEFAULT = frozenset(
    (
        "HostName",
        "PodFitsHostPorts",
        "MatchNodeSelector",
        _RESOURCES,
        LABEL_PRESENCE,
        SERVICE_AFFINITY,
        "MaxCinderVolumeCount",
    )
)
# An older name that is still taken.
_ALIASES = {"PodFitsPorts": "PodFitsHostPorts"}


# Those of the default profile, in its order (``algorithmprovider/registry.go``).
_BY_DEFAULT: tuple[FilterPlugin, ...] = (
    _UNSCHEDULABLE,
    _RESOURCES_FIT,
    NODE_NAME,
    NODE_PORTS,
    NODE_AFFINITY,
    VOLUME_RESTRICTIONS,
    TAINT_TOLERATION,
    EBS_LIMITS,
    GCE_PD_LIMITS,
    _CSI_LIMITS,
    AZURE_DISK_LIMITS,
    _VOLUME_BINDING,
    _VOLUME_ZONE,
    _POD_AFFINITY,
    _SPREAD,
)


def plugins_of(policy: Policy | None, gates: Mapping[str, bool], ignored: frozenset[str]) -> list[FilterPlugin]:
    """The plugins for a Policy file, or without one those of the default profile.

    Resources that are ``ignored`` are left to extenders.
    Raises ``ConfigurationError`` where the real scheduler ends at once.
    """
    labels, absent = NodeLabel(), frozenset() if gates[EVEN_PODS_SPREAD] else frozenset((EVEN_PODS_SPREAD,))
    if policy is None:
        plugins = [each for each in _BY_DEFAULT if not (absent and each is _SPREAD)]
    else:
        if policy.predicates is None:
            names = _PLUGINS.keys() - _NOT_BY_DEFAULT - absent
        else:
            names = {_name_of(each, labels, absent) for each in policy.predicates} | _MANDATORY
        plugins = [plugin for name, its in _PLUGINS.items() if name in names for plugin in its]
    for plugin in plugins:
        if plugins.count(plugin) > 1:
            raise ConfigurationError(
                f'plugin "{plugin.name}" already registered as "FilterPlugin"',
                hint="two predicates of the Policy file stand for it; GeneralPredicates stands for four",
            )
    made = {_LABELS: labels, _RESOURCES_FIT: NodeResourcesFit(counts_overhead=gates["PodOverhead"], ignored=ignored)}
    return [made.get(each, each) for each in plugins]


def _name_of(stated: Predicate, labels: NodeLabel, absent: frozenset[str]) -> str:
    """The name of the predicate that an entry asks for; its labels are added to ``labels``."""
    name = _ALIASES.get(stated.name, stated.name)
    if name in _PLUGINS and name not in absent:
        return name
    argument = stated.argument
    if argument is None:
        raise type_not_found("Predicate", DIALECT.quotes(stated.name))
    presence = argument.labels_presence
    if presence is None:
        raise no_service_affinity(stated.name)
    labels.require(presence.labels or [], present=presence.presence)
    return LABEL_PRESENCE
