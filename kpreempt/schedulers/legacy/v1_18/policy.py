"""The predicates of a Policy file as filter plugins (``plugins/legacy_registry.go`` and ``factory.go``, v1.18.19).

Each predicate stands for one plugin or more. They run in the order of the predicates, which is not that of the default
profile: the topology spread comes before the pod affinity. Two predicates come even where the file leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpreempt.errors import ConfigurationError
from kpreempt.schedulers.extender_protocol import V1_18
from kpreempt.schedulers.legacy.base.policy import Predicate, type_not_found
from kpreempt.schedulers.legacy.base.policy_dialect import Dialect
from kpreempt.schedulers.legacy.base.policy_predicates import SERVICE_AFFINITY, no_service_affinity
from kpreempt.schedulers.legacy.v1_18.framework import FilterPlugin
from kpreempt.schedulers.legacy.v1_18.inter_pod_affinity import InterPodAffinity
from kpreempt.schedulers.legacy.v1_18.node_filters import (
    NodeAffinity,
    NodeLabel,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
    VolumeRestrictions,
)
from kpreempt.schedulers.legacy.v1_18.resources import NodeResourcesFit
from kpreempt.schedulers.legacy.v1_18.topology_spread import PodTopologySpread
from kpreempt.schedulers.legacy.v1_18.volume_binding import VolumeBinding
from kpreempt.schedulers.legacy.v1_18.volume_limits import (
    AzureDiskLimits,
    CinderLimits,
    CSILimits,
    EBSLimits,
    GCEPDLimits,
)
from kpreempt.schedulers.legacy.v1_18.volume_zone import VolumeZone

LABEL_PRESENCE = "CheckNodeLabelPresence"
EVEN_PODS_SPREAD = "EvenPodsSpread"
_RESOURCES = "PodFitsResources"

DIALECT = Dialect(
    algorithm="kube-1.18",
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
)

# In the order in which they run.
_PLUGINS: dict[str, tuple[Callable[[], FilterPlugin], ...]] = {
    "CheckNodeUnschedulable": (NodeUnschedulable,),
    "GeneralPredicates": (NodeResourcesFit, NodeName, NodePorts, NodeAffinity),
    "HostName": (NodeName,),
    "PodFitsHostPorts": (NodePorts,),
    "MatchNodeSelector": (NodeAffinity,),
    _RESOURCES: (NodeResourcesFit,),
    "NoDiskConflict": (VolumeRestrictions,),
    "PodToleratesNodeTaints": (TaintToleration,),
    LABEL_PRESENCE: (),
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


def plugins_of_policy(
    predicates: Sequence[Predicate] | None,
    *,
    counts_overhead: bool = True,
    spreads_pods: bool = True,
    ignored: frozenset[str] = frozenset(),
) -> list[FilterPlugin]:
    """The plugins for the ``predicates`` of a Policy file, or for the default ones where it has none.

    Resources that are ``ignored`` are left to extenders.
    Raises ``ConfigurationError`` where the real scheduler ends at once.
    """
    labels = NodeLabel()
    if predicates is None:
        names = set(_PLUGINS) - _NOT_BY_DEFAULT
        if not spreads_pods:
            names.discard(EVEN_PODS_SPREAD)
    else:
        names = {_predicate(each, labels, spreads_pods) for each in predicates} | _MANDATORY
    plugins: list[FilterPlugin] = []
    for name in filter(names.__contains__, _PLUGINS):
        made = [
            NodeResourcesFit(counts_overhead=counts_overhead, ignored=ignored) if make is NodeResourcesFit else make()
            for make in _PLUGINS[name]
        ]
        plugins += [labels] if name == LABEL_PRESENCE else made
    _check_once(plugins)
    return plugins


def _predicate(stated: Predicate, labels: NodeLabel, spreads_pods: bool) -> str:
    """The name of the predicate that an entry asks for; its labels are added to ``labels``."""
    name = _ALIASES.get(stated.name, stated.name)
    if name in _PLUGINS and (spreads_pods or name != EVEN_PODS_SPREAD):
        return name
    argument = stated.argument
    if argument is None:
        raise type_not_found("Predicate", DIALECT.quotes(stated.name))
    presence = argument.labels_presence
    if presence is None:
        raise no_service_affinity(stated.name)
    labels.require(presence.labels or [], present=presence.presence)
    return LABEL_PRESENCE


def _check_once(plugins: Sequence[FilterPlugin]) -> None:
    names = [plugin.name for plugin in plugins]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(
                f'plugin "{name}" already registered as "FilterPlugin"',
                hint="two predicates of the Policy file stand for it; GeneralPredicates stands for four",
            )
