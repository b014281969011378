"""The predicates of a Policy file as filter plugins (``plugins/legacy_registry.go`` and ``factory.go``, v1.18.19).

Each predicate stands for one plugin or more. They run in the order of the predicates, which is not that of the default
profile: the topology spread comes before the pod affinity. Two predicates come even where the file leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kpreempt.errors import ConfigurationError
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
from kpreempt.verdict import Assumption

LABEL_PRESENCE = "CheckNodeLabelPresence"
SERVICE_AFFINITY = "CheckServiceAffinity"
EVEN_PODS_SPREAD = "EvenPodsSpread"
_RESOURCES = "PodFitsResources"

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
    predicates: Sequence[Mapping[str, Any]] | None, *, counts_overhead: bool = True, spreads_pods: bool = True
) -> tuple[list[FilterPlugin], list[Assumption]]:
    """The plugins for the ``predicates`` of a Policy file, or for the default ones where it has none.

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
            NodeResourcesFit(counts_overhead=counts_overhead) if make is NodeResourcesFit else make()
            for make in _PLUGINS[name]
        ]
        plugins += [labels] if name == LABEL_PRESENCE else made
    _check_once(plugins)
    assumptions = []
    if SERVICE_AFFINITY in names:
        problem = "this predicate is not modelled for kube-1.18, and left out"
        assumptions.append(Assumption("Policy", f"predicate {SERVICE_AFFINITY}", problem))
    return plugins, assumptions


def _predicate(stated: Mapping[str, Any], labels: NodeLabel, spreads_pods: bool) -> str:
    """The name of the predicate that an entry asks for; its labels are added to ``labels``."""
    name = _ALIASES.get(str(stated.get("name")), str(stated.get("name")))
    if name in _PLUGINS and (spreads_pods or name != EVEN_PODS_SPREAD):
        return name
    argument = stated.get("argument") or {}
    if argument.get("serviceAffinity") is not None:
        return SERVICE_AFFINITY
    presence = argument.get("labelsPresence")
    if presence is None:
        raise ConfigurationError(f'Invalid configuration: Predicate type not found for "{name}"')
    labels.require(presence.get("labels") or [], present=bool(presence.get("presence")))
    return LABEL_PRESENCE


def _check_once(plugins: Sequence[FilterPlugin]) -> None:
    names = [plugin.name for plugin in plugins]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(
                f'plugin "{name}" already registered as "FilterPlugin"',
                hint="two predicates of the Policy file stand for it; GeneralPredicates stands for four",
            )
