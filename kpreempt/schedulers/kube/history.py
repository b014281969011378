"""What changed from each minor version to the next, in sentences for documents and for ``kpreempt algorithms``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kpreempt.schedulers.kube.changes import CHANGES
from kpreempt.schedulers.kube.gates import MODELLED, NOT_MODELLED
from kpreempt.schedulers.kube.plugin_table import default_plugins, plugins_in_tree
from kpreempt.schedulers.kube.versions import (
    RELEASES,
    Gate,
    behaviour,
    gates_of,
    minor_of,
)

_FEATURES = "pkg/features/kube_features.go"
_DEFAULT_PLUGINS = "pkg/scheduler/apis/config/v1/default_plugins.go"
_PLUGINS = "pkg/scheduler/framework/plugins"
_HOLDING = "SchedulingGates"

# What the gates that are modelled do where they are on.
EFFECTS: Mapping[str, str] = {
    "CSIMigrationPortworx": "in-tree volumes of Portworx count as CSI volumes",
    "DRAExtendedResource": "devices may serve extended resources on nodes that do not offer them",
    "DynamicResourceAllocation": "resource claims decide where a pod fits",
    "InPlacePodLevelResourcesVerticalScaling": "a resize of a pod's own resources counts while it is under way",
    "InPlacePodVerticalScaling": "a resize of a running pod counts while it is under way",
    "MatchLabelKeysInPodTopologySpread": "matchLabelKeys of spread constraints count",
    "MaxUnavailableStatefulSet": "maxUnavailable of a StatefulSet counts",
    "MinDomainsInPodTopologySpread": "minDomains of spread constraints counts",
    "NodeDeclaredFeatures": "a pod goes only to nodes that declare the features it needs",
    "NodeInclusionPolicyInPodTopologySpread": "nodeAffinityPolicy and nodeTaintsPolicy of spread constraints count",
    "PodDisruptionConditions": "victims get the condition DisruptionTarget, and a pod waits for such victims alone",
    "PodLevelResources": "requests of a pod as a whole take the place of its containers'",
    "SchedulerAsyncPreemption": "victims are deleted in the background, and lower nominations cleared before",
    "SchedulerPopFromBackoffQ": "a scheduler with nothing to do takes pods that back off",
    "SchedulerQueueingHints": "plugins are asked whether an event helps the pods that they refused",
    "SidecarContainers": "pods with sidecars are scheduled",
    "StorageCapacityScoring": "VolumeBinding rates nodes, those with more storage left higher",
    "TaintTolerationComparisonOperators": "tolerations may compare numbers (Lt, Gt)",
    "VolumeAttributesClass": "a claim binds only to volumes of its VolumeAttributesClass",
    "VolumeCapacityPriority": "VolumeBinding rates nodes, those whose volumes would be fuller higher",
    "VolumeLimitScaling": "nodes without a volume's CSI driver are refused",
}


class ToldChange(NamedTuple):
    """One change in a sentence, and where it is seen; ``also_in`` are older releases to which it was carried back."""

    sentence: str
    source: str
    also_in: tuple[str, ...] = ()


def changes_in(minor: str) -> list[ToldChange]:
    """What is otherwise in ``minor`` than in the version before it: rules, gates' defaults, default plugins.

    Nothing for the first of ``RELEASES``; raises ``ValueError`` for one that is not among them.
    """
    minors = list(RELEASES)
    place = minors.index(minor)
    if place == 0:
        return []
    before = minors[place - 1]
    return [*_rules(minor), *_gates(before, minor), *_plugins(before, minor)]


def _rules(minor: str) -> Iterator[ToldChange]:
    for change in CHANGES.values():
        source = change.source if change.source.startswith(("pkg/", "k8s.io/")) else f"{_PLUGINS}/{change.source}"
        for bound, sentence in ((change.since, change.came), (change.until, change.went)):
            *backports, main = bound.split() or [""]
            if sentence and minor_of(main) == minor:
                yield ToldChange(sentence, source, tuple(backports))


def _gates(before: str, minor: str) -> Iterator[ToldChange]:
    was = {**gates_of(before, NOT_MODELLED), **gates_of(before, MODELLED)}
    for name, gate in sorted({**gates_of(minor, NOT_MODELLED), **gates_of(minor, MODELLED)}.items()):
        if gate.default == was.get(name, Gate("", False)).default:
            continue
        effect = f": {EFFECTS[name]}" if name in EFFECTS else ""
        yield ToldChange(f"{name} is {'on' if gate.default else 'off'} by default{effect}.", _FEATURES)


def _plugins(before: str, minor: str) -> Iterator[ToldChange]:
    then = {each.name: each.weight for each in default_plugins(behaviour(before))}
    now = {each.name: each.weight for each in default_plugins(behaviour(minor))}
    for name in now.keys() - then.keys():
        yield ToldChange(f"{name} is a default plugin.", _DEFAULT_PLUGINS)
    gone = [name for name in then if name not in now]
    if gone:
        is_one = len(gone) == 1
        yield ToldChange(
            f"{', '.join(gone)} {'is no default plugin' if is_one else 'are no default plugins'} any more.",
            _DEFAULT_PLUGINS,
        )
    removed = sorted(plugins_in_tree(before).keys() - plugins_in_tree(minor).keys())
    if removed:
        yield ToldChange(f"There {'is' if len(removed) == 1 else 'are'} no {', '.join(removed)}.", _PLUGINS)
    # The place of the first has no effect: it holds pods back before they are tried.
    kept = [name for name in then if name in now and name != _HOLDING]
    if kept != [name for name in now if name in then and name != _HOLDING]:
        yield ToldChange("The default plugins run in another order.", _DEFAULT_PLUGINS)
