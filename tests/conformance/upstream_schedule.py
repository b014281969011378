"""Upstream's table tests of complete scheduling cycles, with their fake plugins."""

from __future__ import annotations

from typing import Any

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FrameworkError, Handle
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.plugin_table import REGISTRY, EnabledPlugin
from kpreempt.schedulers.kube.profile import PluginMaker, Profile
from kpreempt.schedulers.kube.scheduler import KubeScheduler, Prepared
from kpreempt.verdict import Verdict
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.conformance.made_up_plugins import FakeStatus, FakeUpdates, registered
from tests.conformance.statuses import same_status
from tests.conformance.upstream_cycles import Bench, calls_of_fake_filter, profile_of, unassigned
from tests.conformance.upstream_values import differ

Case = dict[str, Any]


def decided(case: Case, pod: Pod) -> tuple[Verdict, Prepared]:
    """The verdict of a scheduler with the case's plugins, and its view of the cluster."""
    profile, registry = profile_of(case, pod.spec.scheduler_name)
    scheduler = KubeScheduler([profile], gates_of(case.get("featureGates")), registry=registry)
    prepared = scheduler.prepare(cluster_of([_as_listed(each) for each in case["objects"]]), now=NOW)
    return scheduler.decide(prepared, pod), prepared


def _as_listed(document: dict[str, Any]) -> dict[str, Any]:
    """A claim as upstream's test lists it: bound, by an annotation that the case's objects lack.

    Go writes the zero time as null; so a null deletion time means that deletion has begun.
    """
    if document["kind"] != "PersistentVolumeClaim":
        return document
    metadata = {**document["metadata"], "annotations": {"pv.kubernetes.io/bind-completed": "true"}}
    if "deletionTimestamp" in metadata:
        metadata["deletionTimestamp"] = metadata["deletionTimestamp"] or "0001-01-01T00:00:00Z"
    return {**document, "metadata": metadata}


def run_schedule_pod(case: Case) -> list[str]:
    """The chosen node and the number of evaluated nodes, or why there is none."""
    expect, observed = case["expect"], case.get("observed") or {}
    verdict, _ = decided(case, unassigned(case["pod"]))
    if "suggestedHostAnyOf" in expect:
        # Without scores, upstream takes the first node that it finds.
        found = differ("hosts", sorted(expect["suggestedHostAnyOf"]), sorted(verdict.chosen_nodes))
    elif "fitError" in expect:
        found = fit_error_differences(expect["fitError"]["diagnosis"], verdict)
        found += differ("nodes", expect["fitError"]["numAllNodes"], verdict.cluster.nodes)
    else:
        found = differ("hosts", [host for host in [observed["suggestedHost"]] if host], verdict.chosen_nodes)
    found += differ("message", observed.get("error", ""), verdict.message)
    if "evaluatedNodes" in expect:
        found += differ("evaluated", expect["evaluatedNodes"], _evaluated(verdict))
    return found


def _evaluated(verdict: Verdict) -> int:
    """How many nodes upstream evaluates: it stops once it has found enough, and skips those PreFilter excludes.

    With sampling, it is the sample size if all evaluated nodes fit.
    """
    if verdict.sampling is not None:
        return verdict.sampling.nodes_to_find
    return sum(bool(status.is_success or status.plugin) for status in verdict.filter.values())


def run_fit_error(case: Case) -> list[str]:
    """Run a cycle in which no node fits."""
    verdict, _ = decided(case, unassigned(case["pod"]))
    found = fit_error_differences(case["expect"]["diagnosis"], verdict)
    return found + differ("message", case["observed"]["message"], verdict.message)


def fit_error_differences(want: dict[str, Any], verdict: Verdict) -> list[str]:
    """Where the statuses of nodes differ from the expected ones."""
    statuses = want["nodeToStatus"]
    found = differ("feasible", [], verdict.feasible_nodes)
    found += differ("preFilter", want["preFilterMsg"], verdict.pre_filter.message if verdict.pre_filter else "")
    for name, got in verdict.filter.items():
        expected = (statuses["nodes"] or {}).get(name, statuses["absentNodes"])
        if not same_status(expected, got) or expected.get("plugin", "") != got.plugin:
            found.append(f"{name}: want {expected}, got {got}")
    return found + [f"{name}: missing" for name in statuses["nodes"] or () if name not in verdict.filter]


def run_call_counts(case: Case) -> list[str]:
    """How often a filter is called.

    Here every node is evaluated once. Upstream first evaluates the pod's nominated node alone, and takes it if it fits.
    """
    pod = pod_of(case["pod"])
    given = case["input"]
    if "nominatedPod" in given:
        document = given["nominatedPod"]
        nominated = {
            **document,
            "kind": "Pod",
            "metadata": {"name": "nominated", **document["metadata"]},
            "status": {"nominatedNodeName": given["nominatedNode"]},
        }
        case = {**case, "objects": [*case["objects"], nominated]}
    verdict, prepared = decided(case, pod)
    calls = calls_of_fake_filter(prepared.frameworks[pod.spec.scheduler_name].plugins)
    found = differ("nodes that are asked about", sorted(verdict.filter), sorted(calls))
    preferred = pod.status.nominated_node_name
    if preferred in verdict.feasible_nodes:
        found += differ("lands on", [preferred], verdict.lands_on)
        return found + differ("calls", case["expect"]["numFilterCalled"], calls[preferred])
    again = calls[preferred] if preferred else 0
    return found + differ("calls", case["expect"]["numFilterCalled"], again + calls.total())


def run_nominated(case: Case) -> list[str]:
    """Run filters on a node to which another pod is nominated."""
    given = case["input"]
    made_up = {
        each["name"]: (kind, each)
        for key, kind in (("fakePreFilterPlugin", FakeUpdates), ("fakeFilterPlugin", FakeStatus))
        if (each := given.get(key))
    }
    registry = {**REGISTRY, **{name: registered(name, kind) for name, (kind, _) in made_up.items()}}
    profile = Profile(
        plugins=[EnabledPlugin(name) for name in made_up],
        plugin_args={name: each for name, (_, each) in made_up.items()},
    )
    nominated = {**given["nominatedPod"], "status": {"nominatedNodeName": given["nominatedNode"]}}
    features, names = gates_of(None), frozenset(["", "default-scheduler"])
    cluster = ClusterState(cluster_of([*case["objects"], nominated]), features, now=NOW, scheduler_names=names)
    handle = Handle(cluster, features)
    framework = handle.framework = Framework(PluginMaker(profile, features, registry).make(handle), cluster)
    pod, state = pod_of(case["pod"]), CycleState()
    framework.run_pre_filter(state, pod)
    try:
        status = framework.run_filters_with_nominated_pods(state, pod, cluster.by_name[given["nominatedNode"]])
    except FrameworkError as error:
        status = error.status
    want = case["expect"]["status"]
    return [] if same_status(want, status) else [f"want {want}, got {status}"]


def run_prioritize(case: Case) -> list[str]:
    """The weighted scores of every plugin, and their sums."""
    bench = Bench(case)
    state, pod = CycleState(), unassigned(case["pod"])
    bench.framework.run_pre_filter(state, pod)
    scores = bench.framework.run_scores(state, pod, bench.cluster.node_infos)
    totals = {node: sum(by_plugin.values()) for node, by_plugin in scores.items()}
    expect = case["expect"]
    return differ("scores", expect["pluginScores"], scores) + differ("totals", expect["totalScores"], totals)
