"""Runs the plugins of a profile, in its order (``pkg/scheduler/framework/runtime/framework.go``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    FilterPlugin,
    FrameworkError,
    NodeToStatus,
    PluginError,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.verdict import SUCCESS, Code, Status


class ProfilePlugins:
    """The plugins of a profile at each extension point, in order, and the weights of the scoring ones."""

    __slots__ = ("filters", "post_filters", "pre_enqueues", "pre_filters", "pre_scores", "scores", "weights")

    def __init__(self) -> None:
        self.pre_enqueues: list[PreEnqueuePlugin] = []
        self.pre_filters: list[PreFilterPlugin] = []
        self.filters: list[FilterPlugin] = []
        self.post_filters: list[PostFilterPlugin] = []
        self.pre_scores: list[PreScorePlugin] = []
        self.scores: list[ScorePlugin] = []
        self.weights: dict[str, int] = {}


class Framework:
    """One profile's plugins, run against one cluster."""

    def __init__(self, plugins: ProfilePlugins, cluster: ClusterState) -> None:
        self.plugins = plugins
        self.cluster = cluster
        self._extended = [plugin for plugin in plugins.pre_filters if plugin.has_extensions]

    def run_pre_enqueue(self, pod: Pod) -> Status:
        """The first status that is not Success, named after its plugin."""
        for plugin in self.plugins.pre_enqueues:
            status = plugin.pre_enqueue(pod)
            if not status.is_success:
                return status.of_plugin(plugin.name)
        return SUCCESS

    def run_pre_filter(self, state: CycleState, pod: Pod) -> tuple[frozenset[str] | None, Status, list[str]]:
        """Run all PreFilter plugins.

        Returns the nodes that are left to look at (``None``: all), the status, and the plugins that restricted the
        nodes. An Unschedulable status lets the other plugins prepare for a preemption first.
        """
        skipped: set[str] = set()
        try:
            return self._run_pre_filter(state, pod, skipped)
        finally:
            state.skip_filter_plugins = frozenset(skipped)

    def _run_pre_filter(
        self, state: CycleState, pod: Pod, skipped: set[str]
    ) -> tuple[frozenset[str] | None, Status, list[str]]:
        node_names: frozenset[str] | None = None
        restricting: list[str] = []
        rejected = SUCCESS
        for plugin in self.plugins.pre_filters:
            result, status = plugin.pre_filter(state, pod, self.cluster.node_infos)
            if status.is_skip:
                skipped.add(plugin.name)
                continue
            if status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return None, status.of_plugin(plugin.name), []
            if status.code == Code.UNSCHEDULABLE:
                rejected = status.of_plugin(plugin.name)
                continue
            if not status.is_success:
                raise FrameworkError(_wrapped(f'running PreFilter plugin "{plugin.name}"', status, plugin.name))
            if result is not None:
                restricting.append(plugin.name)
                node_names = _merge(node_names, result)
                if not node_names:
                    return node_names, _no_node_left(restricting), sorted(restricting)
        return node_names, rejected, sorted(restricting)

    def run_pre_filter_add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Run all plugins' ``add_pod``."""
        for plugin in self._extended:
            if plugin.name not in state.skip_filter_plugins:
                try:
                    plugin.add_pod(state, pod, added, node_info)
                except PluginError as error:
                    raise FrameworkError(_failed_update("AddPod", plugin.name, error)) from error

    def run_pre_filter_remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Run all plugins' ``remove_pod``."""
        for plugin in self._extended:
            if plugin.name not in state.skip_filter_plugins:
                try:
                    plugin.remove_pod(state, pod, removed, node_info)
                except PluginError as error:
                    raise FrameworkError(_failed_update("RemovePod", plugin.name, error)) from error

    def run_filters(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """The status of the first filter that refuses the node, named after its plugin; or Success."""
        for plugin in self.plugins.filters:
            if plugin.name in state.skip_filter_plugins:
                continue
            try:
                status = plugin.filter(state, pod, node_info)
            except PluginError as error:
                status = Status(Code.ERROR, [str(error)])
            if not status.is_success:
                if not status.is_rejected:
                    raise FrameworkError(_wrapped(f'running "{plugin.name}" filter plugin', status, plugin.name))
                return status.of_plugin(plugin.name)
        return SUCCESS

    def run_filters_with_nominated_pods(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Run the filters; where pods of equal or higher priority are nominated to the node, with them and without."""
        nominated = self.nominated_pods_beside(pod, node_info.name)
        if nominated:
            state_with_nominated, with_nominated = self.with_pods(state, pod, node_info, nominated)
            status = self.run_filters(state_with_nominated, pod, with_nominated)
            if not status.is_success:
                return status
        return self.run_filters(state, pod, node_info)

    def nominated_pods_beside(self, pod: Pod, node_name: str) -> list[PodInfo]:
        """The pods nominated to the node that count when ``pod`` is tried there: of equal or higher priority."""
        return [
            info
            for info in self.cluster.nominated_pods.get(node_name, ())
            if info.priority >= pod.priority and not is_same_pod(info.pod, pod)
        ]

    def with_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, pods: Sequence[PodInfo]
    ) -> tuple[CycleState, NodeInfo]:
        """Copies of state and node to which ``pods`` are added."""
        state, node_info = state.clone(), node_info.snapshot()
        for info in pods:
            node_info.add_pod(info)
            self.run_pre_filter_add_pod(state, pod, info, node_info)
        return state, node_info

    def without_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, pods: Sequence[PodInfo]
    ) -> tuple[CycleState, NodeInfo]:
        """Copies of state and node from which ``pods`` are removed."""
        state, node_info = state.clone(), node_info.snapshot()
        for info in pods:
            node_info.remove_pod(info)
            self.run_pre_filter_remove_pod(state, pod, info, node_info)
        return state, node_info

    def run_post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Run PostFilter plugins until one succeeds, ends in an error or says that nothing can help.

        Otherwise the status is Unschedulable with all their reasons, and the result the last one that nominates.
        """
        last: PostFilterResult | None = None
        reasons: list[str] = []
        for plugin in self.plugins.post_filters:
            result, status = plugin.post_filter(state, pod, filtered)
            if status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE or not status.is_rejected:
                return result, status.of_plugin(plugin.name)
            last = result or last
            reasons.extend(status.reasons)
        return last, Status(Code.UNSCHEDULABLE, reasons)

    def run_scores(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> dict[str, dict[str, int]]:
        """Weighted, normalised scores: node to plugin to score. Skipped plugins are left out."""
        skipped = set()
        for pre_score in self.plugins.pre_scores:
            status = pre_score.pre_score(state, pod, nodes)
            if status.is_skip:
                skipped.add(pre_score.name)
            elif not status.is_success:
                raise FrameworkError(_wrapped(f'running PreScore plugin "{pre_score.name}"', status, pre_score.name))
        state.skip_score_plugins = frozenset(skipped)
        scores: dict[str, dict[str, int]] = {node_info.name: {} for node_info in nodes}
        for plugin in self.plugins.scores:
            if plugin.name in skipped:
                continue
            try:
                raw = [plugin.score(state, pod, node_info) for node_info in nodes]
                normalized = plugin.normalize_scores(state, pod, raw, nodes)
            except PluginError as error:
                doing = f'running Score plugins: plugin "{plugin.name}" failed with'
                raise FrameworkError(_wrapped(doing, Status(Code.ERROR, [str(error)]), plugin.name)) from error
            for node_info, score in zip(nodes, normalized, strict=True):
                scores[node_info.name][plugin.name] = score
        return {node: self._weighted(by_plugin) for node, by_plugin in scores.items()}

    def _weighted(self, by_plugin: dict[str, int]) -> dict[str, int]:
        """A node's scores times the plugins' weights. One that is out of range, by an overflow, ends the cycle."""
        for name, score in by_plugin.items():
            if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                reason = (
                    f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score {score},'
                    f" it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
                )
                raise FrameworkError(Status(Code.ERROR, [reason]))
        return {name: score * self.plugins.weights[name] for name, score in by_plugin.items()}


def is_same_pod(one: Pod, other: Pod) -> bool:
    """Whether two records are of the same pod: by UID, or by name where a manifest has none."""
    if one.metadata.uid and other.metadata.uid:
        return one.metadata.uid == other.metadata.uid
    return one.key == other.key


def _merge(node_names: frozenset[str] | None, result: PreFilterResult) -> frozenset[str]:
    return result.node_names if node_names is None else node_names & result.node_names


def _no_node_left(restricting: list[str]) -> Status:
    if len(restricting) == 1:
        reason = f"node(s) didn't satisfy plugin {restricting[0]}"
    else:
        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(restricting))}] simultaneously"
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason])


def _failed_update(update: str, plugin: str, error: PluginError) -> Status:
    return Status(Code.ERROR, [f'running {update} on PreFilter plugin "{plugin}": {error}'])


def _wrapped(doing: str, status: Status, plugin: str) -> Status:
    return Status(Code.ERROR, [f"{doing}: {status.message}"], plugin=plugin)
