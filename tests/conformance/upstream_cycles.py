"""Upstream's table cases about plugins and whole cycles, replayed on a framework of just the plugins that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.configuration.plugin_args import validate_node_resources_fit
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.features import FeatureGates
from kpreempt.schedulers.kube.framework.interface import (
    FilterPlugin,
    FrameworkError,
    Handle,
    NodeToStatus,
    PluginArgs,
    PluginError,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.plugins.default_preemption import DefaultPreemption, default_args
from kpreempt.schedulers.kube.preemption.evaluator import potential_nodes
from kpreempt.schedulers.kube.profile import Profile, build_plugins
from kpreempt.schedulers.kube.registry import REGISTRY, EnabledPlugin
from kpreempt.verdict import SUCCESS, Code, Status
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.conformance.statuses import same_status, status_of
from tests.conformance.upstream_values import differ

Case = dict[str, Any]

REASON_FAKE = "Nodes failed the fake plugin"


class FakeFilter(FilterPlugin):
    """Fails the nodes that a case names."""

    name = "FakeFilter"

    def __init__(self, codes: Mapping[str, str], pod_name: str) -> None:
        self._codes = codes
        self._pod_name = pod_name

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        code = Code(self._codes.get(node_info.name, "Success"))
        return SUCCESS if code == Code.SUCCESS else Status(code, [f"injecting failure for pod {pod.metadata.name}"])


class NamedFilter(FilterPlugin):
    """Upstream's filters that look at names only."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        fits = {
            "TrueFilter": True,
            "FalseFilter": False,
            "MatchFilter": node_info.name == pod.metadata.name,
            "NoPodsFilter": not node_info.pods,
        }[self.name]
        return SUCCESS if fits else Status(Code.UNSCHEDULABLE, [REASON_FAKE])


class FailingUpdates(PreFilterPlugin):
    """A plugin whose updates fail on nodes with the label ``error=true``."""

    name = "test-plugin"

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        if node_info.node.labels.get("error") == "true":
            raise PluginError(f"failed to add pod: {pod.metadata.name}")

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        if node_info.node.labels.get("error") == "true":
            raise PluginError(f"failed to remove pod: {pod.metadata.name}")


FAKES = {"TrueFilter", "FalseFilter", "MatchFilter", "NoPodsFilter", "FakeFilter", "test-plugin"}


def names_only_known_plugins(case: Case) -> bool:
    """Whether every plugin of the case is modelled here."""
    return all(name in REGISTRY or name in FAKES for name in case.get("plugins") or [])


class Bench:
    """A framework of the case's plugins over its objects, with its gates and arguments."""

    def __init__(self, case: Case, *, extra: Sequence[str] = ()) -> None:
        self.features: FeatureGates = gates_of(case.get("featureGates"))
        snapshot = cluster_of(case["objects"])
        self.cluster = ClusterState(
            snapshot, self.features, now=NOW, scheduler_names=frozenset(["default-scheduler", ""])
        )
        self.handle = Handle(self.cluster, self.features)
        names = [*(case.get("plugins") or []), *extra]
        args: dict[str, PluginArgs] = {name: each for name, each in (case.get("config") or {}).items() if each}
        real = [name for name in names if name in REGISTRY]
        profile = Profile(plugins=[EnabledPlugin(name) for name in real], plugin_args=args)
        plugins = build_plugins(profile, self.handle)
        for name in names:
            if name == "test-plugin":
                plugins.pre_filters.append(FailingUpdates({}, self.handle))
            elif name == "FakeFilter":
                plugins.filters.append(FakeFilter(_fake_codes(case), ""))
            elif name in FAKES:
                plugins.filters.append(NamedFilter(name))
        self.framework = Framework(plugins, self.cluster)
        self.handle.framework = self.framework


def _fake_codes(case: Case) -> Mapping[str, str]:
    given = case["input"]
    if "nodesForFakeFilter" in given:
        return dict.fromkeys(given["nodesForFakeFilter"] or [], given["fakeFilterReturnCode"])
    return (given.get("fakePlugins") or {}).get("FakeFilter", {}).get("failedNodeReturnCodeMap") or {}


def unassigned(document: dict[str, Any]) -> Pod:
    """The case's pod; some carry a node name that upstream's test ignores."""
    spec = {key: value for key, value in document["spec"].items() if key != "nodeName"}
    return pod_of(document | {"spec": spec})


def run_filters(case: Case) -> list[str]:
    """PreFilter, then Filter on every node."""
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
    """Whether the pod would fit the node if it were empty."""
    bench = Bench(case | {"plugins": ["NodeResourcesFit"]})
    state, pod = CycleState(), unassigned(case["pod"])
    bench.framework.run_pre_filter(state, pod)
    fits = [bench.framework.run_filters(state, pod, node_info).is_success for node_info in bench.cluster.node_infos]
    return differ("fits", case["expect"]["isFitOnEmptyNode"], fits == [True])


def run_scores(case: Case) -> list[str]:
    """PreScore, Score, and where the case asks for it NormalizeScore; or what is wrong with the arguments."""
    if "configErrors" in case["expect"]:
        problems = validate_node_resources_fit("", case["config"]["NodeResourcesFit"])
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
    """DefaultPreemption after given filter results."""
    bench = Bench(case)
    state = CycleState()
    pod = pod_of(case["pod"])
    bench.framework.run_pre_filter(state, pod)
    filtered = node_to_status(case["input"]["filteredNodeStatuses"])
    result, status = DefaultPreemption(default_args(), bench.handle).post_filter(state, pod, filtered)
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
    """Filter results as the cases write them."""
    statuses = NodeToStatus()
    statuses.statuses = {name: status_of(status) for name, status in (document["nodes"] or {}).items()}
    statuses.absent = status_of(document["absentNodes"])
    return statuses


def dry_run_all(bench: Bench, pod: Pod) -> PostFilterResult:
    """A preemption on all nodes, as if each had been refused."""
    state = CycleState()
    bench.framework.run_pre_filter(state, pod)
    filtered = NodeToStatus()
    filtered.absent = Status(Code.UNSCHEDULABLE)
    result, _ = DefaultPreemption(default_args(), bench.handle).post_filter(state, pod, filtered)
    assert result is not None
    return result


def run_dry_runs(case: Case) -> list[str]:
    """Candidates of each cycle, where upstream looks at all nodes."""
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
        # Upstream may stop early; what it found must be what is found here.
        found += differ(f"cycle {index}", want, {node: got.get(node) for node in want})
        if given["numCandidates"] >= len(bench.cluster.node_infos):
            found += differ(f"cycle {index} nodes", sorted(want), sorted(got))
    return found


def run_selection(case: Case) -> list[str]:
    """The best candidate."""
    evidence = dry_run_all(Bench(case), pod_of(case["pod"])).evidence
    assert evidence is not None
    tied = evidence.selection.tied if evidence.selection else []
    return differ("nominated", sorted(case["expect"]["nominatedNodeAnyOf"]), sorted(tied))


def run_eligibility(case: Case) -> list[str]:
    """``PodEligibleToPreemptOthers``."""
    bench = Bench(case)
    pod = pod_of(case["pod"])
    filtered = NodeToStatus()
    filtered.statuses = {pod.status.nominated_node_name: status_of(case["input"]["nominatedNodeStatus"])}
    got = DefaultPreemption(default_args(), bench.handle).eligibility(CycleState(), pod, filtered)
    return differ("eligible", case["expect"]["eligible"], got.eligible) + differ(
        "reason", case["observed"]["message"], got.reason
    )


def run_preempt(case: Case) -> list[str]:
    """A whole preemption: the node and the pods that are deleted."""
    result = dry_run_all(Bench(case), pod_of(case["pod"]))
    nominated = (result.nominated_node_names or [""])[0]
    want_node = (case["expect"]["result"] or {}).get("nominatedNodeName", "")
    evidence = result.evidence
    assert evidence is not None
    victims = next((each.victims for each in evidence.candidates if each.node == nominated), [])
    got = sorted(victim.split("/")[-1] for victim in victims)
    return differ("node", want_node, nominated) + differ("victims", sorted(case["expect"]["victims"] or []), got)


def run_potential_nodes(case: Case) -> list[str]:
    """The nodes whose status has the code that preemption may mend."""
    bench = Bench(case)
    statuses = node_to_status(case["input"]["nodeStatuses"])
    got = [node_info.name for node_info in potential_nodes(bench.cluster.node_infos, statuses)]
    return differ("nodes", sorted(case["expect"]["nodes"]), sorted(got))


def run_fit_error(case: Case) -> list[str]:
    """A cycle in which no node fits, or that some node wins."""
    bench = Bench(case)
    pod = unassigned(case["pod"])
    state = CycleState()
    _, status, _ = bench.framework.run_pre_filter(state, pod)
    got: dict[str, Status] = {}
    for node_info in bench.cluster.node_infos if status.is_success else []:
        got[node_info.name] = bench.framework.run_filters_with_nominated_pods(state, pod, node_info)
    fitting = [name for name, each in got.items() if each.is_success]
    if "fitError" not in case["expect"]:
        missing = [host for host in case["expect"].get("suggestedHostAnyOf") or [] if host not in fitting]
        return differ("hosts that do not fit", [], missing)
    want = case["expect"]["fitError"]["diagnosis"]["nodeToStatus"]["nodes"] or {}
    return differ("fitting", [], fitting) + [
        f"{name}: want {each}, got {got.get(name)}"
        for name, each in want.items()
        if name not in got or not same_status(each, got[name])
    ]
