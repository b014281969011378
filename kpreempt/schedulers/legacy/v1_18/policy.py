"""Which filter plugins run, by the predicates of a Policy file or by default, and what 1.18 reads of its settings.

Each predicate stands for one plugin or more (``plugins/legacy_registry.go`` and ``factory.go``, v1.18.19). They run in
the order of the predicates, which is not that of the default profile: the topology spread comes before the pod
affinity. Two predicates come even where the file leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.errors import ConfigurationError
from kpreempt.schedulers.extender_protocol import V1_18
from kpreempt.schedulers.legacy.base.configuration import CONFIGURATION_GROUP, Dialect
from kpreempt.schedulers.legacy.base.policy import (
    SERVICE_AFFINITY,
    Policy,
    Predicate,
    no_service_affinity,
    type_not_found,
)
from kpreempt.schedulers.legacy.v1_18.framework import FilterPlugin
from kpreempt.schedulers.legacy.v1_18.node_filters import (
    NodeAffinity,
    NodeLabel,
    NodeName,
    NodePorts,
    NodeResourcesFit,
    NodeUnschedulable,
    TaintToleration,
    VolumeRestrictions,
)
from kpreempt.schedulers.legacy.v1_18.pod_filters import InterPodAffinity, PodTopologySpread
from kpreempt.schedulers.legacy.v1_18.volume_binding import VolumeBinding
from kpreempt.schedulers.legacy.v1_18.volume_limits import (
    AzureDiskLimits,
    CinderLimits,
    CSILimits,
    EBSLimits,
    GCEPDLimits,
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
    priorities=frozenset(
        (
            "BalancedResourceAllocation",
            "EqualPriority",
            "EvenPodsSpreadPriority",
            "ImageLocalityPriority",
            "InterPodAffinityPriority",
            "LeastRequestedPriority",
            "MostRequestedPriority",
            "NodeAffinityPriority",
            "NodeLabel",
            "NodePreferAvoidPodsPriority",
            "RequestedToCapacityRatio",
            "SelectorSpreadPriority",
            "ServiceAffinity",
            "ServiceSpreadingPriority",
            "TaintTolerationPriority",
        )
    ),
    priority_arguments=("serviceAntiAffinity", "labelPreference", "requestedToCapacityRatioArguments"),
    quotes='"{}"'.format,
    names_fields=True,
    protocol=V1_18,
    ignorable_last=True,
)

# In the order in which they run.
_PLUGINS: dict[str, tuple[type[FilterPlugin], ...]] = {
    "CheckNodeUnschedulable": (NodeUnschedulable,),
    "GeneralPredicates": (NodeResourcesFit, NodeName, NodePorts, NodeAffinity),
    "HostName": (NodeName,),
    "PodFitsHostPorts": (NodePorts,),
    "MatchNodeSelector": (NodeAffinity,),
    _RESOURCES: (NodeResourcesFit,),
    "NoDiskConflict": (VolumeRestrictions,),
    "PodToleratesNodeTaints": (TaintToleration,),
    LABEL_PRESENCE: (NodeLabel,),
    SERVICE_AFFINITY: (),
    "MaxEBSVolumeCount": (EBSLimits,),
    "MaxGCEPDVolumeCount": (GCEPDLimits,),
    "MaxCSIVolumeCountPred": (CSILimits,),
    "MaxAzureDiskVolumeCount": (AzureDiskLimits,),
    "MaxCinderVolumeCount": (CinderLimits,),
    "CheckVolumeBinding": (VolumeBinding,),
    "NoVolumeZoneConflict": (VolumeZone,),
    EVEN_PODS_SPREAD: (PodTopologySpread,),
    "MatchInterPodAffinity": (InterPodAffinity,),
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
_BY_DEFAULT: tuple[type[FilterPlugin], ...] = (
    NodeUnschedulable,
    NodeResourcesFit,
    NodeName,
    NodePorts,
    NodeAffinity,
    VolumeRestrictions,
    TaintToleration,
    EBSLimits,
    GCEPDLimits,
    CSILimits,
    AzureDiskLimits,
    VolumeBinding,
    VolumeZone,
    InterPodAffinity,
    PodTopologySpread,
)


def plugins_of(policy: Policy | None, gates: Mapping[str, bool], ignored: frozenset[str]) -> list[FilterPlugin]:
    """The plugins for a Policy file, or without one those of the default profile.

    Resources that are ``ignored`` are left to extenders.
    Raises ``ConfigurationError`` where the real scheduler ends at once.
    """
    labels, absent = NodeLabel(), frozenset() if gates[EVEN_PODS_SPREAD] else frozenset((EVEN_PODS_SPREAD,))
    if policy is None:
        kinds = [each for each in _BY_DEFAULT if not (absent and each is PodTopologySpread)]
    else:
        if policy.predicates is None:
            names = _PLUGINS.keys() - _NOT_BY_DEFAULT - absent
        else:
            names = {_name_of(each, labels, absent) for each in policy.predicates} | _MANDATORY
        kinds = [kind for name, its in _PLUGINS.items() if name in names for kind in its]
    for kind in kinds:
        if kinds.count(kind) > 1:
            raise ConfigurationError(
                f'plugin "{kind.name}" already registered as "FilterPlugin"',
                hint="two predicates of the Policy file stand for it; GeneralPredicates stands for four",
            )
    given = {
        NodeLabel: labels,
        NodeResourcesFit: NodeResourcesFit(counts_overhead=gates["PodOverhead"], ignored=ignored),
    }
    return [given.get(kind) or kind() for kind in kinds]


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
