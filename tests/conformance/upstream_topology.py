"""Upstream's table tests of pod affinity and topology spread: node verdicts, scores, and the underlying counts.

Each function takes a case and returns the differences; nothing means agreement.
"""

from __future__ import annotations

from typing import Any

from kpreempt.model.labels import LabelSelector, format_requirement
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FrameworkError
from kpreempt.schedulers.kube.framework.label_selectors import default_selector, services_of
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.plugins.inter_pod_affinity import plugin as inter_pod_affinity
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.filtering import FilterState as AffinityState
from kpreempt.schedulers.kube.plugins.pod_topology_spread import plugin as pod_topology_spread
from kpreempt.schedulers.kube.plugins.pod_topology_spread.filtering import FilterState as SpreadState
from kpreempt.schedulers.kube.plugins.pod_topology_spread.filtering import SpreadConstraint
from kpreempt.schedulers.kube.plugins.pod_topology_spread.scoring import ScoreState
from kpreempt.schedulers.lowest_counts import LowestCounts
from kpreempt.verdict import Status
from tests.conformance.cases import cluster_of, pod_of
from tests.conformance.statuses import same_status
from tests.conformance.upstream_cycles import Bench, unassigned
from tests.conformance.upstream_values import differ

Case = dict[str, Any]


def run_case(case: Case) -> list[str]:
    """Run a case of the packages ``interpodaffinity`` and ``podtopologyspread``, or of the default selector."""
    if case["test"] == "TestDefaultSelector":
        pod, cluster = pod_of(case["pod"]), cluster_of(case["objects"])
        return differ("selector", case["expect"]["selector"], selector_text(default_selector(pod, cluster)))
    if case["test"] == "TestGetPodServices":
        services = services_of(pod_of(case["pod"]), cluster_of(case["objects"]).services)
        got = sorted(service.metadata.name for service in services)
        return differ("services", sorted(case["expect"]["services"] or []), got)
    return _scoring(case) if case["suite"] == "scores" else _filtering(case)


def _filtering(case: Case) -> list[str]:
    """PreFilter with its counts, Filter on every node, and the counts after a pod was added or removed."""
    bench, pod, state, expect = Bench(case), unassigned(case["pod"]), CycleState(), case["expect"]
    _, status, _ = bench.framework.run_pre_filter(state, pod)
    (plugin,) = case["plugins"]
    found = []
    if (want := expect.get("preFilter")) is not None:
        if want["code"] == "Skip":
            return differ("skipped", {plugin}, set(state.skip_filter_plugins))
        if not same_status(want, status):
            return [f"preFilter: want {want}, got {status}"]
    for name, want in (expect.get("filter") or {}).items():
        got = _status_on(bench, state, pod, name)
        found += [] if same_status(want, got) else [f"{name}: want {want}, got {got}"]
    for name, code in (expect.get("filterCode") or {}).items():
        found += differ(name, code, _status_on(bench, state, pod, name).code)
    if plugin == "InterPodAffinity":
        return found + _affinity_counts(case, bench, state, pod)
    return found + _spread_counts(case, bench, state, pod)


def _status_on(bench: Bench, state: CycleState, pod: Pod, node_name: str) -> Status:
    try:
        return bench.framework.run_filters(state, pod, bench.cluster.by_name[node_name])
    except FrameworkError as error:
        return error.status


def _affinity_counts(case: Case, bench: Bench, state: CycleState, pod: Pod) -> list[str]:
    expect, given = case["expect"], case.get("input") or {}
    counts = state.read(inter_pod_affinity.PRE_FILTER_KEY)
    found: list[str] = []
    for key, attribute in (("affinityCounts", "affinity"), ("antiAffinityCounts", "anti_affinity")):
        if key in expect:
            found += differ(key, _pairs(expect[key]), getattr(counts, attribute, {}))
    if "addedPod" in given:
        assert isinstance(counts, AffinityState)
        before = (counts.affinity, counts.anti_affinity, counts.existing_anti_affinity)
        changed = state.clone()
        added = PodInfo(pod_of(given["addedPod"]), bench.behavior)
        node_info = bench.cluster.by_name[added.pod.spec.node_name]
        bench.framework.run_pre_filter_add_pod(changed, pod, added, node_info)
        after = changed.read(inter_pod_affinity.PRE_FILTER_KEY)
        assert isinstance(after, AffinityState)
        found += differ("affinityCountsAfterAdd", _pairs(expect["affinityCountsAfterAdd"]), after.affinity)
        found += differ("antiAffinityCountsAfterAdd", _pairs(expect["antiAffinityCountsAfterAdd"]), after.anti_affinity)
        bench.framework.run_pre_filter_remove_pod(changed, pod, added, node_info)
        found += differ("restored", before, (after.affinity, after.anti_affinity, after.existing_anti_affinity))
    return found


def _pairs(counts: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    return {(each["topologyKey"], each["topologyValue"]): each["count"] for each in counts}


def _spread_counts(case: Case, bench: Bench, state: CycleState, pod: Pod) -> list[str]:
    expect, given = case["expect"], case.get("input") or {}
    found = _spread_state_differences(expect["preFilterState"], state) if "preFilterState" in expect else []
    if "addedPod" in given:
        node_info = bench.cluster.by_name[given["addedToNode"]]
        added = PodInfo(pod_of(given["addedPod"]), bench.behavior)
        bench.framework.run_pre_filter_add_pod(state, pod, added, node_info)
        found += _spread_state_differences(expect["preFilterStateAfterAdd"], state)
    if "removedPod" in given:
        node_info = bench.cluster.by_name[given["removedFromNode"]]
        removed = PodInfo(pod_of(given["removedPod"]), bench.behavior)
        bench.framework.run_pre_filter_remove_pod(state, pod, removed, node_info)
        found += _spread_state_differences(expect["preFilterStateAfterRemove"], state)
    return found


def _spread_state_differences(want: dict[str, Any], state: CycleState) -> list[str]:
    got = state.read(pod_topology_spread.PRE_FILTER_KEY)
    assert isinstance(got, SpreadState)
    found = differ("constraints", want["constraints"], [_constraint(each) for each in got.constraints])
    found += differ("counts", want["tpValueToMatchNum"], got.counts)
    for paths, lowest in zip(want["criticalPaths"], got.lowest, strict=True):
        found += differ("lowest counts", [path["matchNum"] for path in paths], _numbers(lowest))
    return found


def _numbers(lowest: LowestCounts) -> list[int]:
    """The counts alone: which of several equal domains comes first does not matter."""
    return [lowest.first[1], lowest.second[1]]


def _constraint(constraint: SpreadConstraint) -> dict[str, Any]:
    return {
        "maxSkew": constraint.max_skew,
        "minDomains": constraint.min_domains,
        "nodeAffinityPolicy": "Honor" if constraint.honors_node_affinity else "Ignore",
        "nodeTaintsPolicy": "Honor" if constraint.honors_taints else "Ignore",
        "selector": selector_text(constraint.selector),
        "topologyKey": constraint.topology_key,
    }


def _scoring(case: Case) -> list[str]:
    """PreScore with its state, Score, and NormalizeScore if the case has it."""
    bench, pod, state, expect = Bench(case), unassigned(case["pod"]), CycleState(), case["expect"]
    given = case.get("input") or {}
    out = set(given.get("filteredOutNodes") or [])
    nodes = [node_info for node_info in bench.cluster.node_infos if node_info.name not in out]
    (plugin,) = bench.framework.plugins.scores
    (pre_score,) = bench.framework.plugins.pre_scores
    status = pre_score.pre_score(state, pod, nodes)
    found = []
    want_code = expect.get("preScoreCode") or (expect.get("preScore") or {}).get("code")
    if want_code is not None:
        found += differ("preScore", want_code, str(status.code))
    if expect.get("preScoreMessageContains", "") not in status.message:
        found.append(f"preScore: {status.message!r} lacks {expect['preScoreMessageContains']!r}")
    if "preScoreState" in expect:
        found += _score_state_differences(expect["preScoreState"], state)
    if not status.is_success or "scores" not in expect:
        return found
    scores = [plugin.score(state, pod, node_info) for node_info in nodes]
    if given.get("normalized"):
        scores = plugin.normalize_scores(state, pod, scores, nodes)
    names = (node_info.name for node_info in nodes)
    return found + differ("scores", expect["scores"], dict(zip(names, scores, strict=True)))


def _score_state_differences(want: dict[str, Any], state: CycleState) -> list[str]:
    got = state.read(pod_topology_spread.PRE_SCORE_KEY)
    assert isinstance(got, ScoreState)
    return (
        differ("constraints", want["constraints"], [_constraint(each) for each in got.constraints])
        + differ("ignored", sorted(want["ignoredNodes"]), sorted(got.ignored))
        + differ("counts", want["topologyValueToPodCounts"], got.counts)
        + differ("weights", want["topologyNormalizingWeight"], got.weights)
    )


def selector_text(selector: LabelSelector | None) -> str:
    """A selector as Go prints it, in key order. One that matches nothing and one that matches all are empty."""
    if selector is None:
        return ""
    parts = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    parts += [
        (each.key, format_requirement(each.key, each.operator, each.values)) for each in selector.match_expressions
    ]
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))
