"""Upstream's table tests of plugins and complete cycles, replayed on a framework of the plugins that they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import (
    EXTENSION_POINTS,
    FrameworkError,
    Handle,
    NodeToStatus,
    PostFilterResult,
)
from kpreempt.schedulers.kube.framework.out_of_tree import OutOfTreePlugin
from kpreempt.schedulers.kube.framework.runner import Framework, ProfilePlugins
from kpreempt.schedulers.kube.plugin_table import REGISTRY, EnabledPlugin, Registry
from kpreempt.schedulers.kube.plugins import node_resources_fit
from kpreempt.schedulers.kube.plugins.default_preemption import DefaultPreemption, default_args
from kpreempt.schedulers.kube.preemption.evaluator import potential_nodes
from kpreempt.schedulers.kube.profile import PluginMaker, PointConfig, Profile
from kpreempt.schedulers.kube.versions import Behavior, behavior
from kpreempt.verdict import Candidate, Code, Status
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.conformance.made_up_plugins import WEIGHTS, made_up_args, registry_of
from tests.conformance.statuses import same_status, status_of
from tests.conformance.upstream_values import differ

Case = dict[str, Any]


class Bench:
    """A framework of the case's plugins over its objects, with its gates and arguments."""

    def __init__(self, case: Case) -> None:
        self.behavior: Behavior = gates_of(case.get("featureGates"))
        snapshot = cluster_of(case["objects"])
        self.cluster = ClusterState(
            snapshot, self.behavior, now=NOW, scheduler_names=frozenset(["default-scheduler", ""])
        )
        self.handle = Handle(self.cluster, self.behavior)
        profile, registry = profile_of(case)
        self.framework = Framework(PluginMaker(profile, self.behavior, registry).make(self.handle), self.cluster)
        self.handle.framework = self.framework


def profile_of(case: Case, scheduler_name: str = "") -> tuple[Profile, Registry]:
    """The case's plugins, each at the extension points that the case names, otherwise at all it has."""
    names = case.get("plugins") or []
    made_up = made_up_args(case)
    registry = registry_of(names, made_up)
    stated = (case.get("input") or {}).get("pluginExtensionPoints") or {}
    points = {
        point: PointConfig(
            [
                EnabledPlugin(name, WEIGHTS.get(name, 1))
                for name in names
                if point in (stated.get(name) or registry[name].points)
            ]
        )
        for point in EXTENSION_POINTS
    }
    args = {name: each for name, each in (case.get("config") or {}).items() if each}
    args |= {name: made_up.get(name, {}) for name in names if name not in REGISTRY}
    return Profile(scheduler_name=scheduler_name, plugins=(), points=points, plugin_args=args), registry


def unassigned(document: dict[str, Any]) -> Pod:
    """The case's pod; some have a node name that upstream's test ignores."""
    spec = {key: value for key, value in document["spec"].items() if key != "nodeName"}
    return pod_of(document | {"spec": spec})


def run_filters(case: Case) -> list[str]:
    """Run PreFilter, then Filter on every node."""
    bench = Bench(case)
    pod = pod_of(case["pod"]) if case["plugins"] == ["NodeName"] else unassigned(case["pod"])
    expect = case["expect"]
    if "preEnqueue" in expect:
        status = bench.framework.run_pre_enqueue(pod)
        return [] if same_status(expect["preEnqueue"], status) else [f"preEnqueue: {status}"]
    state = CycleState()
    node_names, status, _ = bench.framework.run_pre_filter(state, pod)
    found = _pre_filter_differences(expect, node_names, status, state, case)
    skipped = expect.get("preFilter") and expect["preFilter"]["code"] != "Success"
    if skipped or found or not status.is_success:
        return found
    for name, want in (expect.get("filter") or {}).items():
        try:
            got = bench.framework.run_filters(state, pod, bench.cluster.by_name[name])
        except FrameworkError as error:
            got = error.status
        if not same_status(want, got):
            found.append(f"{name}: want {want}, got {got}")
    if "fits" in expect:
        (node_info,) = bench.cluster.node_infos
        found += differ("fits", expect["fits"], bench.framework.run_filters(state, pod, node_info).is_success)
    return found


def _pre_filter_differences(
    expect: dict[str, Any], node_names: frozenset[str] | None, status: Status, state: CycleState, case: Case
) -> list[str]:
    found: list[str] = []
    want = expect.get("preFilter")
    if want and want["code"] == "Skip":
        return differ("skipped", True, set(case["plugins"]) <= state.skip_filter_plugins)
    if want and not same_status(want, status):
        found.append(f"preFilter: want {want}, got {status}")
    if expect.get("preFilterNodeNames") is not None:
        found += differ("preFilterNodeNames", sorted(expect["preFilterNodeNames"]), sorted(node_names or ()))
    return found


def run_is_fit(case: Case) -> list[str]:
    """Check whether the pod would fit on the node if it were empty."""
    bench = Bench(case | {"plugins": ["NodeResourcesFit"]})
    state, pod = CycleState(), unassigned(case["pod"])
    bench.framework.run_pre_filter(state, pod)
    fits = [bench.framework.run_filters(state, pod, node_info).is_success for node_info in bench.cluster.node_infos]
    return differ("fits", case["expect"]["isFitOnEmptyNode"], fits == [True])


def run_scores(case: Case) -> list[str]:
    """Run PreScore, Score, and NormalizeScore if the case has it; or return what is wrong with the arguments."""
    if "configErrors" in case["expect"]:
        problems = node_resources_fit.arg_problems("", case["config"]["NodeResourcesFit"], behavior())
        return [
            f"no problem with {error['field']} among {problems}"
            for error in case["expect"]["configErrors"]
            if not any(problem.startswith(error["field"]) for problem in problems)
        ]
    bench = Bench(case)
    pod = unassigned(case["pod"])
    out = set(case["input"].get("filteredOutNodes") or [])
    nodes = [node_info for node_info in bench.cluster.node_infos if node_info.name not in out]
    state = CycleState()
    bench.framework.run_pre_filter(state, pod)
    want = case["expect"].get("scores") or {}
    plugin_name = (case["plugins"] or [""])[0]
    if not want and case["expect"].get("preScoreCode") == "Skip":
        got = bench.framework.run_scores(state, pod, nodes)
        return differ("scores", True, all(not scores for scores in got.values()))
    plugins = {plugin.name: plugin for plugin in bench.framework.plugins.scores}
    pre_scores = {plugin.name: plugin for plugin in bench.framework.plugins.pre_scores}
    if plugin_name in pre_scores:
        status = pre_scores[plugin_name].pre_score(state, pod, nodes)
        if status.is_skip:
            return [] if not want or set(want.values()) == {0} else [f"skipped, want {want}"]
    plugin = plugins[plugin_name]
    scores = [plugin.score(state, pod, node_info) for node_info in nodes]
    if case["input"].get("normalized"):
        scores = plugin.normalize_scores(state, pod, scores, nodes)
    return differ("scores", want, dict(zip((node_info.name for node_info in nodes), scores, strict=True)))


def run_post_filter(case: Case) -> list[str]:
    """Run DefaultPreemption after given filter results."""
    bench = Bench(case)
    state = CycleState()
    pod = pod_of(case["pod"])
    bench.framework.run_pre_filter(state, pod)
    filtered = node_to_status(case["input"]["filteredNodeStatuses"])
    result, status = DefaultPreemption(default_args({}, bench.behavior), bench.handle).post_filter(state, pod, filtered)
    found = differ("result", _expected_nomination(case["expect"]["result"]), _nomination(result))
    want = case["expect"]["status"]
    return found if same_status(want, status) else [*found, f"status: want {want}, got {status}"]


def _expected_nomination(result: dict[str, Any] | None) -> str | None:
    return None if result is None else result["nominatedNodeName"]


def _nomination(result: PostFilterResult | None) -> str | None:
    if result is None or result.nominated_node_names is None:
        return None
    return next(iter(result.nominated_node_names), "")


def node_to_status(document: dict[str, Any]) -> NodeToStatus:
    """Filter results in the format of the cases."""
    statuses = NodeToStatus()
    statuses.statuses = {name: status_of(status) for name, status in (document["nodes"] or {}).items()}
    statuses.absent = status_of(document["absentNodes"])
    return statuses


def all_refused() -> NodeToStatus:
    """Every node rejected with a status that evictions may change."""
    filtered = NodeToStatus()
    filtered.absent = Status(Code.UNSCHEDULABLE)
    return filtered


def dry_run_all(bench: Bench, pod: Pod) -> PostFilterResult:
    """A preemption on all nodes, as if each had been rejected."""
    state = CycleState()
    bench.framework.run_pre_filter(state, pod)
    filtered = all_refused()
    result, _ = DefaultPreemption(default_args({}, bench.behavior), bench.handle).post_filter(state, pod, filtered)
    assert result is not None
    return result


def run_dry_runs(case: Case) -> list[str]:
    """The candidates of each cycle, in which upstream tries all nodes."""
    found: list[str] = []
    pods = {document["metadata"]["name"]: pod_of(document) for document in case["input"]["testPods"]}
    for index, cycle in enumerate(case["expect"]["cycles"]):
        given = case["input"]["cycles"][index]
        bench = Bench(case)
        evidence = dry_run_all(bench, pods[given["pod"]]).evidence
        assert evidence is not None
        want = {
            each["name"] if "name" in each else each["node"]: (sorted(each["victims"]), each["numPDBViolations"])
            for each in cycle["candidates"] or []
        }
        got = {
            each.node: (sorted(victim.split("/")[-1] for victim in each.victims), each.num_pdb_violations)
            for each in evidence.candidates
        }
        # Upstream may stop early; its candidates must be found here, too.
        found += differ(f"cycle {index}", want, {node: got.get(node) for node in want})
        if given["numCandidates"] >= len(bench.cluster.node_infos):
            found += differ(f"cycle {index} nodes", sorted(want), sorted(got))
        looked_at = _looked_at_by_upstream(bench, given, evidence.candidates)
        calls = calls_of_fake_filter(bench.framework.plugins)
        found += differ(f"cycle {index} calls", cycle["numFilterCalled"], sum(calls[name] for name in looked_at))
    return found


def _looked_at_by_upstream(bench: Bench, given: dict[str, Any], candidates: Sequence[Candidate]) -> list[str]:
    """The nodes up to the last that upstream tries, if one by one; all if several at a time.

    It continues until it has the requested number of candidates, with at least one that violates no budget.
    """
    names = sorted(node_info.name for node_info in bench.cluster.node_infos)
    offset = given["offset"] % len(names)
    by_node = {each.node: each for each in candidates}
    seen: list[str] = []
    for name in (*names[offset:], *names[:offset]):
        seen.append(name)
        there = [by_node[each] for each in seen if each in by_node]
        if len(there) >= given["numCandidates"] and not all(each.num_pdb_violations for each in there):
            break
    return seen


def calls_of_fake_filter(plugins: ProfilePlugins) -> Counter[str]:
    """How often FakeFilter was called for each node."""
    (plugin,) = (each for each in plugins.filters if each.name == "FakeFilter")
    assert isinstance(plugin, OutOfTreePlugin)
    calls: Counter[str] = plugin.plugin.calls
    return calls


def run_selection(case: Case) -> list[str]:
    """The best candidate."""
    evidence = dry_run_all(Bench(case), pod_of(case["pod"])).evidence
    assert evidence is not None
    tied = evidence.selection.tied if evidence.selection else []
    return differ("nominated", sorted(case["expect"]["nominatedNodeAnyOf"]), sorted(tied))


def run_eligibility(case: Case) -> list[str]:
    """Run ``PodEligibleToPreemptOthers``."""
    bench = Bench(case)
    pod = pod_of(case["pod"])
    filtered = NodeToStatus()
    filtered.statuses = {pod.status.nominated_node_name: status_of(case["input"]["nominatedNodeStatus"])}
    got = DefaultPreemption(default_args({}, bench.behavior), bench.handle).eligibility(CycleState(), pod, filtered)
    return differ("eligible", case["expect"]["eligible"], got.eligible) + differ(
        "reason", case["observed"]["message"], got.reason
    )


def run_preempt(case: Case) -> list[str]:
    """Run a complete preemption: the node and the deleted pods."""
    result = dry_run_all(Bench(case), pod_of(case["pod"]))
    nominated = (result.nominated_node_names or [""])[0]
    want_node = (case["expect"]["result"] or {}).get("nominatedNodeName", "")
    evidence = result.evidence
    assert evidence is not None
    victims = next((each.victims for each in evidence.candidates if each.node == nominated), [])
    got = sorted(victim.split("/")[-1] for victim in victims)
    return differ("node", want_node, nominated) + differ("victims", sorted(case["expect"]["victims"] or []), got)


def run_potential_nodes(case: Case) -> list[str]:
    """The nodes with a status code that preemption may change."""
    bench = Bench(case)
    statuses = node_to_status(case["input"]["nodeStatuses"])
    got = [node_info.name for node_info in potential_nodes(bench.cluster.node_infos, statuses)]
    return differ("nodes", sorted(case["expect"]["nodes"]), sorted(got))
