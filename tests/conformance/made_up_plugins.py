"""The fake plugins of upstream's tests as out-of-tree plugins, identified by name and configured by arguments.

They go through the same guard as every out-of-tree plugin. A case's specification (codes by node, statuses, the
remaining nodes) becomes their arguments.
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
    """Accepts every node."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return SUCCESS


class FalseFilter(FilterPlugin):
    """Rejects every node."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return unschedulable(REASON_FAKE)


class MatchFilter(FilterPlugin):
    """Rejects nodes whose name differs from the pod's."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return SUCCESS if node_info.name == pod.metadata.name else unschedulable(REASON_FAKE)


class NoPodsFilter(FilterPlugin):
    """Rejects nodes that have pods."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        return unschedulable(REASON_FAKE) if node_info.pods else SUCCESS


class FakeFilter(FilterPlugin):
    """Returns the codes of ``failedNodeReturnCodeMap``, and counts the calls per node."""

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.calls: Counter[str] = Counter()

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        self.calls[node_info.name] += 1
        code = Code((self.args.get("failedNodeReturnCodeMap") or {}).get(node_info.name, "Success"))
        return SUCCESS if code == Code.SUCCESS else Status(code, [f"injecting failure for pod {pod.metadata.name}"])


class FakePreFilter(PreFilterPlugin):
    """Returns ``result`` and ``status``."""

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
    """Fails when a pod is added, unless ``addPodStatus`` is Success."""

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        if self.args["addPodStatus"] != "Success":
            raise PluginError("injected status")


class FakeStatus(FilterPlugin):
    """Returns ``filterStatus``."""

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        code = Code(self.args["filterStatus"])
        return SUCCESS if code == Code.SUCCESS else Status(code, ["injected filter status"])


class TrueMap(ScorePlugin):
    """Scores every node 1."""

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return 1


class FalseMap(ScorePlugin):
    """Fails."""

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        raise PluginError("priority map encounters an error")


class NumericMap(ScorePlugin):
    """Scores a node by its name as a number."""

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return int(node_info.name)


class ReverseNumericMap(NumericMap):
    """Like NumericMap, but reversed."""

    name = "ReverseNumericMap"

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        return [max(scores) + min(scores) - score for score in scores]


class Node2Prioritizer(ScorePlugin):
    """Prefers node2."""

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return 100 if node_info.name == "node2" else 10


class FakePreScoreAndScore(PreScorePlugin, ScorePlugin):
    """Returns ``preScoreStatus``, ``score`` and ``scoreStatus``."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        return status_of(self.args["preScoreStatus"])

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        status = status_of(self.args["scoreStatus"])
        if not status.is_success:
            raise PluginError(status.message)
        return int(self.args["score"])


class ChosenVictims(PreemptionPlugin):
    """Allows only the pods of ``eligibleVictims`` to be evicted."""

    def is_eligible_pod(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        return victim.pod.metadata.name in self.args["eligibleVictims"]


class ChosenImportance(PreemptionPlugin):
    """Orders pods as in ``importanceOrder``."""

    def is_more_important(self, one: PodInfo, other: PodInfo) -> bool:
        order = self.args["importanceOrder"]
        return bool(order.index(one.pod.metadata.name) < order.index(other.pod.metadata.name))


class FirstPodGoes(PreemptionPlugin):
    """Upstream's selector whose only victim is the first pod of each node, whether or not the pod would fit."""

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
    """Like FirstPodGoes, preferring the node whose victims have the fewest containers."""

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
# Scores with a weight above 1, which the cases do not specify.
WEIGHTS = {"ReverseNumericMap": 2}


def made_up_args(case: Case) -> dict[str, Mapping[str, Any]]:
    """Return a case's specification of its plugins, by name."""
    given = case.get("input") or {}
    args: dict[str, Mapping[str, Any]] = dict(given.get("fakePlugins") or {})
    if given.get("nodesForFakeFilter"):
        codes = dict.fromkeys(given["nodesForFakeFilter"], given["fakeFilterReturnCode"])
        args["FakeFilter"] = {"failedNodeReturnCodeMap": codes}
    return args


def made_up_kind(name: str, args: Mapping[str, Any]) -> type[Plugin] | None:
    """Return the class of a plugin; some names end in a number."""
    if "fakePreFilterPlugin" in args:
        return FakePreFilterAndFilter
    return _KINDS.get(name) or _KINDS.get(name.rstrip("0123456789"))


def registered(name: str, kind: type[Plugin]) -> Registration:
    """Register a class as a plugin of that name."""
    plugin: type[Plugin] = type(kind.__name__, (kind,), {"name": name})
    return Registration(factory=plugin, points=points_of(plugin), plugin=plugin, source="upstream's tests")


def registry_of(names: Sequence[str], args: Mapping[str, Mapping[str, Any]]) -> Registry:
    """Return the in-tree plugins, and the fake ones among ``names``."""
    kinds = {name: made_up_kind(name, args.get(name, {})) for name in names if name not in REGISTRY}
    return {**REGISTRY, **{name: registered(name, kind) for name, kind in kinds.items() if kind is not None}}
