"""Which filters run by default, in which order (``algorithmprovider/registry.go``, v1.18.19)."""

from __future__ import annotations

from kpreempt.schedulers.legacy.v1_18.framework import FilterPlugin
from kpreempt.schedulers.legacy.v1_18.inter_pod_affinity import InterPodAffinity
from kpreempt.schedulers.legacy.v1_18.node_filters import (
    NodeAffinity,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
    VolumeRestrictions,
)
from kpreempt.schedulers.legacy.v1_18.resources import NodeResourcesFit
from kpreempt.schedulers.legacy.v1_18.topology_spread import PodTopologySpread
from kpreempt.schedulers.legacy.v1_18.volume_binding import VolumeBinding
from kpreempt.schedulers.legacy.v1_18.volume_limits import AzureDiskLimits, CSILimits, EBSLimits, GCEPDLimits
from kpreempt.schedulers.legacy.v1_18.volume_zone import VolumeZone


def default_plugins(
    *, counts_overhead: bool = True, spreads_pods: bool = True, ignored: frozenset[str] = frozenset()
) -> list[FilterPlugin]:
    """The default profile. The gates PodOverhead and EvenPodsSpread, both on by default, take something out of it.

    Resources that are ``ignored`` are left to extenders.
    """
    plugins: list[FilterPlugin] = [
        NodeUnschedulable(),
        NodeResourcesFit(counts_overhead=counts_overhead, ignored=ignored),
        NodeName(),
        NodePorts(),
        NodeAffinity(),
        VolumeRestrictions(),
        TaintToleration(),
        EBSLimits(),
        GCEPDLimits(),
        CSILimits(),
        AzureDiskLimits(),
        VolumeBinding(),
        VolumeZone(),
        InterPodAffinity(),
    ]
    return [*plugins, PodTopologySpread()] if spreads_pods else plugins
