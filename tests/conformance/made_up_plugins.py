"""The plugins that upstream's tests make up, as out-of-tree plugins: each is known by name, and told by its arguments.

They go through the same guard as every out-of-tree plugin. What a case says of one (codes by node, statuses, the nodes
that it leaves) are its arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.plugins import (
    SUCCESS,
    CandidateScore,
    CandidateVictims,
    Code,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    Plugin,
    PluginError,
    Pod,
    PodInfo,
    PreemptionPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
    unschedulable,
)
from kpreempt.schedulers.kube.framework.in_tree import Registration
from kpreempt.schedulers.kube.framework.interface import points_of
from kpreempt.schedulers.kube.plugin_table import REGISTRY, Registry
from tests.conformance.statuses import status_of

Case = dict[str, Any]

REASON_FAKE = "Nodes failed the fake plugin"


class TrueFilter(FilterPlugin):
    """Lets every node pass."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return SUCCESS


class FalseFilter(FilterPlugin):
    """Refuses every node."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return unschedulable(REASON_FAKE)


class MatchFilter(FilterPlugin):
    """Refuses nodes that are not called like the pod."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return SUCCESS if node_info.name == pod.metadata.name else unschedulable(REASON_FAKE)


class NoPodsFilter(FilterPlugin):
    """Refuses nodes that have pods."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return unschedulable(REASON_FAKE) if node_info.pods else SUCCESS


class FakeFilter(FilterPlugin):
    """Answers with the codes of ``failedNodeReturnCodeMap``, and counts how often it is asked about a node."""

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.calls: Counter[str] = Counter()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        self.calls[node_info.name] += 1
        code = Code((self.args.get("failedNodeReturnCodeMap") or {}).get(node_info.name, "Success"))
        return SUCCESS if code == Code.SUCCESS else Status(code, [f"injecting failure for pod {pod.metadata.name}"])


class FakePreFilter(PreFilterPlugin):
    """Answers with ``result`` and ``status``."""

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        result = self.args["result"]
        return PreFilterResult(frozenset(result["nodeNames"])) if result else None, status_of(self.args["status"])


class FakePreFilterAndFilter(FakePreFilter, FilterPlugin):
    """Both of the above in one."""

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args["fakePreFilterPlugin"], handle)
        self._filter = FakeFilter(args["fakeFilterPlugin"], handle)

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return self._filter.filter(state, pod, node_info)


class FailingUpdates(PreFilterPlugin):
    """``test-plugin``: its updates fail on nodes with the label ``error=true``."""

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


class FakeUpdates(PreFilterPlugin):
    """Fails where a pod is added, unless ``addPodStatus`` is Success."""

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        if self.args["addPodStatus"] != "Success":
            raise PluginError("injected status")


class FakeStatus(FilterPlugin):
    """Answers with ``filterStatus``."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        code = Code(self.args["filterStatus"])
        return SUCCESS if code == Code.SUCCESS else Status(code, ["injected filter status"])


class TrueMap(ScorePlugin):
    """Gives every node 1."""

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return 1


class FalseMap(ScorePlugin):
    """Fails."""

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        raise PluginError("priority map encounters an error")


class NumericMap(ScorePlugin):
    """Gives a node its name as a number."""

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return int(node_info.name)


class ReverseNumericMap(NumericMap):
    """The same the other way round."""

    name = "ReverseNumericMap"

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        return [max(scores) + min(scores) - score for score in scores]


class Node2Prioritizer(ScorePlugin):
    """Prefers node2."""

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return 100 if node_info.name == "node2" else 10


class FakePreScoreAndScore(PreScorePlugin, ScorePlugin):
    """Answers with ``preScoreStatus``, ``score`` and ``scoreStatus``."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        return status_of(self.args["preScoreStatus"])

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        status = status_of(self.args["scoreStatus"])
        if not status.is_success:
            raise PluginError(status.message)
        return int(self.args["score"])


class ChosenVictims(PreemptionPlugin):
    """Lets nothing but the pods of ``eligibleVictims`` go."""

    def is_eligible_pod(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        return victim.pod.metadata.name in self.args["eligibleVictims"]


class ChosenImportance(PreemptionPlugin):
    """Orders pods as ``importanceOrder`` names them."""

    def is_more_important(self, one: PodInfo, other: PodInfo) -> bool:
        order = self.args["importanceOrder"]
        return bool(order.index(one.pod.metadata.name) < order.index(other.pod.metadata.name))


class FirstPodGoes(PreemptionPlugin):
    """Upstream's selector that has the first pod of each node as the only victim, whether the pod would fit or not."""

    def may_evict(self, state: CycleState, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        return victim.key == self._first(node_info.name)

    def check_fit(self, state: CycleState, pod: Pod, node_info: NodeInfo, put_back: PodInfo | None) -> Status:
        is_there = any(each.key == self._first(node_info.name) for each in node_info.pods)
        return unschedulable("the first pod is still there") if is_there else SUCCESS

    def _first(self, node: str) -> str:
        node_info = self.handle.snapshot.node(node)
        assert node_info is not None
        return node_info.pods[0].key


class FewestContainers(FirstPodGoes):
    """The same, and the node is best whose victims have the fewest containers."""

    name = "FewestContainers"

    def ordered_score_functions(self, candidates: Mapping[str, CandidateVictims]) -> Sequence[CandidateScore]:
        def score(node: str) -> int:
            specs = [victim.spec for victim in candidates[node].pods]
            return -sum(len(spec.containers) + len(spec.init_containers) for spec in specs)

        return [CandidateScore("fewestContainers", score)]


_KINDS: dict[str, type[Plugin]] = {
    "FakeFilter": FakeFilter,
    "FakePreFilter": FakePreFilter,
    "FakePreScoreAndScorePlugin": FakePreScoreAndScore,
    "FalseFilter": FalseFilter,
    "FalseMap": FalseMap,
    "EqualPrioritizerPlugin": TrueMap,
    "MatchFilter": MatchFilter,
    "NoPodsFilter": NoPodsFilter,
    "Node2Prioritizer": Node2Prioritizer,
    "NumericMap": NumericMap,
    "ReverseNumericMap": ReverseNumericMap,
    "TrueFilter": TrueFilter,
    "TrueMap": TrueMap,
    "test-plugin": FailingUpdates,
}
# Scores that count more than once; the cases do not say so.
WEIGHTS = {"ReverseNumericMap": 2}


def made_up_args(case: Case) -> dict[str, Mapping[str, Any]]:
    """What a case says of its plugins, by their names."""
    given = case.get("input") or {}
    args: dict[str, Mapping[str, Any]] = dict(given.get("fakePlugins") or {})
    if given.get("nodesForFakeFilter"):
        codes = dict.fromkeys(given["nodesForFakeFilter"], given["fakeFilterReturnCode"])
        args["FakeFilter"] = {"failedNodeReturnCodeMap": codes}
    return args


def made_up_kind(name: str, args: Mapping[str, Any]) -> type[Plugin] | None:
    """The class of a plugin; some names have numbers at the end."""
    if "fakePreFilterPlugin" in args:
        return FakePreFilterAndFilter
    return _KINDS.get(name) or _KINDS.get(name.rstrip("0123456789"))


def registered(name: str, kind: type[Plugin]) -> Registration:
    """A class as a plugin of that name."""
    plugin: type[Plugin] = type(kind.__name__, (kind,), {"name": name})
    return Registration(factory=plugin, points=points_of(plugin), plugin=plugin, source="upstream's tests")


def registry_of(names: Sequence[str], args: Mapping[str, Mapping[str, Any]]) -> Registry:
    """The plugins in the tree, and those of ``names`` that are made up."""
    kinds = {name: made_up_kind(name, args.get(name, {})) for name in names if name not in REGISTRY}
    return {**REGISTRY, **{name: registered(name, kind) for name, kind in kinds.items() if kind is not None}}
