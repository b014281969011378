"""Upstream's table tests of customized preemption: eligible victims, their order, and the best candidate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpreempt.model.pod import Pod
from kpreempt.plugins import PreemptionPlugin
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import Handle, PreemptionEvidence
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.plugin_table import REGISTRY, EnabledPlugin
from kpreempt.schedulers.kube.profile import PluginMaker, Profile
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.conformance.made_up_plugins import (
    ChosenImportance,
    ChosenVictims,
    FewestContainers,
    FirstPodGoes,
    registered,
)
from tests.conformance.upstream_cycles import all_refused
from tests.conformance.upstream_values import differ

Case = dict[str, Any]

_NAME = "MadeUpPreemption"


def run_custom_selection(case: Case) -> list[str]:
    """The victims if a build allows only some pods to be evicted."""
    evidence = preempted(case, ChosenVictims, pod_of(case["pod"]))
    return differ("victims", case["expect"]["victimsByNode"], _victims(evidence))


def run_custom_ordering(case: Case) -> list[str]:
    """The victims, in order, if a build has a custom pod order."""
    (victims,) = _victims(preempted(case, ChosenImportance, pod_of(case["pod"]))).values()
    return differ("victims", case["expect"]["victims"], victims)


def run_first_pods(case: Case) -> list[str]:
    """The candidates if the first pod of a node is its victim."""
    found = []
    for document, cycle in zip(case["input"]["testPods"], case["expect"]["cycles"], strict=True):
        want = {each["node"]: each["victims"] for each in cycle["candidates"]}
        found += differ("candidates", want, _victims(preempted(case, FirstPodGoes, pod_of(document))))
    return found


def run_best_candidate(case: Case) -> list[str]:
    """The best node if a build has custom rules for the choice."""
    selection = preempted(case, FewestContainers, pod_of(case["pod"])).selection
    assert selection is not None
    return differ("nominated", case["expect"]["nominatedNodeAnyOf"], selection.tied)


def preempted(case: Case, kind: type[PreemptionPlugin], pod: Pod) -> PreemptionEvidence:
    """The result of a preemption by that plugin, as if every node had been rejected."""
    features = gates_of(case.get("featureGates"))
    cluster = ClusterState(
        cluster_of(case["objects"]), features, now=NOW, scheduler_names=frozenset(["default-scheduler", ""])
    )
    handle = Handle(cluster, features)
    enabled = [EnabledPlugin(name) for name in (*(case.get("plugins") or ()), _NAME)]
    args: Mapping[str, Any] = {_NAME: case["input"]}
    profile, registry = Profile(plugins=enabled, plugin_args=args), {**REGISTRY, _NAME: registered(_NAME, kind)}
    plugins = PluginMaker(profile, features, registry).make(handle)
    framework = handle.framework = Framework(plugins, cluster)
    state = CycleState()
    framework.run_pre_filter(state, pod)
    result, _ = framework.run_post_filter(state, pod, all_refused())
    assert result is not None and result.evidence is not None
    return result.evidence


def _victims(evidence: PreemptionEvidence) -> dict[str, list[str]]:
    return {each.node: [victim.split("/")[-1] for victim in each.victims] for each in evidence.candidates}
