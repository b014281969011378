"""Runs the plugins of a profile, in its order (``pkg/scheduler/framework/runtime/framework.go``, v1.36.3).

What the filters say of all nodes is kept for pods of one shape from one cluster to the next. Where hundreds of like
pods come one after the other, a few nodes change from one to the next. Their statuses are found out anew, and what they
come to in all (reasons, nodes that fit, nodes where evictions may help) is brought up to date by difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import NamedTuple, TypeVar, cast

from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.framework.answers import readable
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CloneError, CycleState
from kpreempt.schedulers.kube.framework.decision_cache import Changes, Memory
from kpreempt.schedulers.kube.framework.in_tree import SparseFilterPlugin, rated
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
    PreScorePlugin,
    QueueSortPlugin,
    ScorePlugin,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo, is_same_pod
from kpreempt.schedulers.kube.framework.out_of_tree import OutOfTreePlugin, description
from kpreempt.verdict import SUCCESS, Code, Status

# The plugin that refuses a node, and how.
_Kind = tuple[str, Code]


class FilterColumn:
    """The status of each node of a cluster, in their order. To be read until it is renewed for another cluster.

    Of a place that is open nothing is known.
    """

    def __init__(self, names: Sequence[str], changes: Changes) -> None:
        self.names = names
        self.feasible: set[int] = set()
        # Names are in the order in which they came.
        self.refused: dict[_Kind, dict[str, None]] = {}
        self.reasons: Counter[str] = Counter()
        self.statuses: list[Status | None] = [None] * len(names)
        self._changes = changes
        self._seen = len(changes.places)
        self._open = set(range(len(names)))

    def renew(self, find_out: Callable[[int], Status], *, but_at: Collection[int] = ()) -> None:
        """Have the statuses at all places found out where something has changed, ``but_at`` some, which stay open."""
        for place in {*self._changes.places[self._seen :], *but_at} - self._open:
            self._count(place, -1)
            self.statuses[place] = None
            self._open.add(place)
        self._seen = len(self._changes.places)
        for place in sorted(self._open.difference(but_at)):
            self.statuses[place] = find_out(place)
            self._count(place, 1)
            self._open.discard(place)

    def _count(self, place: int, by: int) -> None:
        status = self.statuses[place]
        assert status is not None
        if status is SUCCESS:
            (self.feasible.add if by > 0 else self.feasible.discard)(place)
            return
        names = self.refused.setdefault((status.plugin, status.code), {})
        if by > 0:
            names[self.names[place]] = None
        else:
            names.pop(self.names[place], None)
        for reason in status.reasons:
            self.reasons[reason] += by


class FilteredNodes(NodeToStatus):
    """The nodes that the filters refuse: those of a column, and at its open places those that are given.

    To be read before the column is renewed. What is not asked for is not listed.
    """

    def __init__(self, column: FilterColumn, position: Mapping[str, int], given: Mapping[int, Status]) -> None:
        self.absent = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        self._column = column
        self._position = position
        self._given = given

    @cached_property
    def all(self) -> list[Status]:
        """The status of every node."""
        statuses = list(self._column.statuses)
        for place, status in self._given.items():
            statuses[place] = status
        return cast("list[Status]", statuses)

    @cached_property
    def statuses(self) -> dict[str, Status]:  # type: ignore[override]
        """The status of each node that is refused."""
        return {
            name: status for name, status in zip(self._column.names, self.all, strict=True) if status is not SUCCESS
        }

    @property
    def feasible(self) -> list[int]:
        """The places of the nodes that fit."""
        return sorted([*self._column.feasible, *(place for place, each in self._given.items() if each is SUCCESS)])

    @property
    def num_rejected(self) -> int:
        return len(self._column.names) - len(self.feasible)

    @property
    def reasons(self) -> Counter[str]:
        counts = Counter({reason: count for reason, count in self._column.reasons.items() if count})
        counts.update(reason for status in self._given.values() for reason in status.reasons)
        return counts

    @property
    def refused(self) -> dict[_Kind, Collection[str]]:
        """The nodes that are refused, by the plugin and how."""
        found: dict[_Kind, Collection[str]] = {kind: names for kind, names in self._column.refused.items() if names}
        for place, status in self._given.items():
            if status is not SUCCESS:
                kind = (status.plugin, status.code)
                found[kind] = [*found.get(kind, ()), self._column.names[place]]
        return found

    @property
    def examples(self) -> dict[str, Status]:
        """Of the nodes that a plugin refuses in one way one, with its status."""
        return {(name := next(iter(names))): self.get(name) for names in self.refused.values()}

    def get(self, node_name: str) -> Status:
        place = self._position.get(node_name)
        status = None if place is None else self._given.get(place) or self._column.statuses[place]
        return self.absent if status is None or status is SUCCESS else status


SomeScores = TypeVar("SomeScores")
# Weights that all together are no more than this cannot make a sum that 64 bits do not hold.
_MOST_WEIGHT = 2**48


class ProfilePlugins(NamedTuple):
    """The plugins of a profile at each extension point, in order, and the weights of the scoring ones."""

    queue_sorts: list[QueueSortPlugin]
    pre_enqueues: list[PreEnqueuePlugin]
    pre_filters: list[PreFilterPlugin]
    filters: list[FilterPlugin]
    post_filters: list[PostFilterPlugin]
    pre_scores: list[PreScorePlugin]
    scores: list[ScorePlugin]
    weights: dict[str, int]

    @property
    def has_out_of_tree(self) -> bool:
        """Whether an out-of-tree plugin is among them."""
        points = (self.pre_enqueues, self.pre_filters, self.filters, self.post_filters, self.pre_scores, self.scores)
        return any(isinstance(plugin, OutOfTreePlugin) for at_point in points for plugin in at_point)


class Framework:
    """One profile's plugins, run against one cluster; ``memory`` is what clusters before it left, if there were any."""

    def __init__(self, plugins: ProfilePlugins, cluster: ClusterState, memory: Memory | None = None) -> None:
        self.plugins = plugins
        self.cluster = cluster
        self.memory = memory
        self._behaviour = cluster.behavior
        self._extended = [plugin for plugin in plugins.pre_filters if plugin.has_extensions]
        self.has_out_of_tree_plugins = plugins.has_out_of_tree
        # Whether there is NumPy, as there is for big clusters.
        self.rates_at_once = False

    def run_pre_enqueue(self, pod: Pod, phases: Phases = NO_PHASES, *, is_popped: bool = False) -> Status:
        """The first status that is not Success, named after its plugin.

        ``is_popped`` says that the queue has asked the out-of-tree plugins before it let the pod in.
        """
        for plugin in self.plugins.pre_enqueues:
            is_out_of_tree = isinstance(plugin, OutOfTreePlugin)
            if is_out_of_tree and is_popped:
                continue
            with phases.part(plugin.name) if is_out_of_tree else nullcontext():
                status = plugin.pre_enqueue(pod)
            if status.code == Code.ERROR:
                return wrapped(f'running PreEnqueue plugin "{plugin.name}"', status, plugin.name)
            if not status.is_success:
                return status.of_plugin(plugin.name)
        return SUCCESS

    def run_pre_filter(self, state: CycleState, pod: Pod) -> tuple[frozenset[str] | None, Status, list[str]]:
        """Run all PreFilter plugins.

        Returns the nodes that are left to look at (``None``: all), the status, and the plugins that restricted the
        nodes. An Unschedulable status lets the other plugins prepare for a preemption first.
        """
        skipped: set[str] = set()
        node_names: frozenset[str] | None = None
        restricting: list[str] = []
        rejected = SUCCESS
        try:
            for plugin in self.plugins.pre_filters:
                result, status = plugin.pre_filter(state, pod, self.cluster.node_infos)
                if status.is_skip:
                    skipped.add(plugin.name)
                elif status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    return None, status.of_plugin(plugin.name), []
                elif status.code == Code.UNSCHEDULABLE:
                    rejected = status.of_plugin(plugin.name)
                    if not self._behaviour.continues_after_a_rejection:
                        return None, rejected, []
                elif not status.is_success:
                    raise FrameworkError(wrapped(f'running PreFilter plugin "{plugin.name}"', status, plugin.name))
                elif result is not None:
                    restricting.append(plugin.name)
                    node_names = result.node_names if node_names is None else node_names & result.node_names
                    if not node_names:
                        names = sorted(restricting) if self._behaviour.sorts_conflicting_plugins else restricting
                        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
                        if len(names) == 1:
                            reason = f"node(s) didn't satisfy plugin {names[0]}"
                        is_final = self._behaviour.rules_out_conflicting_plugins
                        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if is_final else Code.UNSCHEDULABLE
                        return node_names, Status(code, [reason]), sorted(restricting)
            return node_names, rejected, sorted(restricting)
        finally:
            state.skip_filters(skipped)

    def run_pre_filter_add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        for plugin in self._extended:
            if plugin.name not in state.skip_filter_plugins:
                try:
                    plugin.add_pod(state, pod, added, node_info)
                except PluginError as error:
                    raise FrameworkError(
                        Status(Code.ERROR, [f'running AddPod on PreFilter plugin "{plugin.name}": {error}'])
                    ) from error

    def run_pre_filter_remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        for plugin in self._extended:
            if plugin.name not in state.skip_filter_plugins:
                try:
                    plugin.remove_pod(state, pod, removed, node_info)
                except PluginError as error:
                    raise FrameworkError(
                        Status(Code.ERROR, [f'running RemovePod on PreFilter plugin "{plugin.name}": {error}'])
                    ) from error

    def run_filters(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """The status of the first filter that refuses the node, named after its plugin; or Success."""
        skipped = state.skip_filter_plugins
        running = (plugin for plugin in self.plugins.filters if plugin.name not in skipped)
        return _first_rejection(running, state, pod, node_info)

    def run_filters_on_cluster(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[Status]:
        """What ``run_filters_with_nominated_pods`` says of each of ``nodes``, which are as they are in the cluster."""
        if nodes is self.cluster.node_infos and (filtered := self.filtered_nodes(state, pod)) is not None:
            return filtered.all
        nominated = self.cluster.nominated_pods
        statuses = iter(self._run_filters_on(state, pod, [each for each in nodes if each.name not in nominated]))
        return [
            self.run_filters_with_nominated_pods(state, pod, each) if each.name in nominated else next(statuses)
            for each in nodes
        ]

    def _run_filters_on(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[Status]:
        """``run_filters`` for each of ``nodes``, without those that succeed for sure.

        Where there is a memory, local filters do not run again on a node that is as it was.
        """
        running = [plugin for plugin in self.plugins.filters if plugin.name not in state.skip_filter_plugins]
        column = self._local_column(state, pod, [plugin for plugin in running if plugin.is_local])
        known = [SUCCESS] * len(nodes)
        if column is not None:
            position = self.cluster.position
            known = [column.statuses[position[each.name]] or SUCCESS for each in nodes]
        filters: list[tuple[int, FilterPlugin, Container[NodeInfo]]] = []
        for rank, plugin in enumerate(running):
            if column is None or not plugin.is_local:
                suspects = plugin.suspects(state, pod, nodes) if isinstance(plugin, SparseFilterPlugin) else nodes
                if suspects:
                    filters.append((rank, plugin, frozenset(suspects)))
        ranks = {plugin.name: rank for rank, plugin in enumerate(running)}

        def status_of(node_info: NodeInfo, of_local: Status) -> Status:
            end = len(running) if of_local is SUCCESS else ranks[of_local.plugin]
            for rank, plugin, suspects in filters:
                if rank > end:
                    break
                if node_info in suspects and (status := run_filter(plugin, state, pod, node_info)) is not SUCCESS:
                    return status
            return of_local

        return list(map(status_of, nodes, known))

    def _local_column(self, state: CycleState, pod: Pod, local: Sequence[FilterPlugin]) -> FilterColumn | None:
        """What the first of the local filters that refuses a node says of each; ``None`` without a memory.

        Also where one of them ends in an error on some node, which it need not be asked about.
        """
        findings = state.shape_findings or state.findings
        if findings is None:
            return None
        cluster, names = self.cluster, list(self.cluster.by_name)
        question = ("local filters", state.skip_filter_plugins)
        column = findings.column(question, len(names), lambda _, changes: FilterColumn(names, changes))
        try:
            column.renew(lambda place: _first_rejection(local, state, pod, cluster.node_infos[place]))
        except FrameworkError:
            return None
        return column

    def filtered_nodes(self, state: CycleState, pod: Pod) -> FilteredNodes | None:
        """The same of all nodes, from memory; ``None`` where there is none, or a filter looks at more than one node."""
        findings = state.shape_findings or state.findings
        if findings is None or not self.all_filters_are_node_local(state):
            return None
        cluster = self.cluster

        def status_at(place: int) -> Status:
            return self.run_filters_with_nominated_pods(state, pod, cluster.node_infos[place])

        # Of equal pods the one that is nominated itself does not count itself.
        own = cluster.places_nominated_to(pod)
        question = ("filter", pod.priority, state.skip_filter_plugins)
        names = list(cluster.by_name)
        column = findings.column(question, len(names), lambda _, changes: FilterColumn(names, changes))
        column.renew(status_at, but_at=own)
        return FilteredNodes(column, cluster.position, {place: status_at(place) for place in sorted(own)})

    def all_filters_are_node_local(self, state: CycleState) -> bool:
        """Whether what each filter that runs says of a node hangs on that node and its pods only.

        ``state`` is the one after PreFilter.
        """
        skipped = state.skip_filter_plugins
        return all(plugin.is_local or plugin.name in skipped for plugin in self.plugins.filters) and all(
            plugin.name in skipped for plugin in self._extended
        )

    def run_filters_with_nominated_pods(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Run the filters; where pods of equal or higher priority are nominated to the node, with them and without."""
        if self.cluster.nominated_pods and (nominated := self.nominated_pods_except(pod, node_info.name)):
            with_nominated = self.with_pods(state, pod, node_info, nominated)
            status = self.run_filters(with_nominated[0], pod, with_nominated[1])
            if not status.is_success:
                return status
        return self.run_filters(state, pod, node_info)

    def nominated_pods_except(self, pod: Pod, node_name: str) -> list[PodInfo]:
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
        state, node_info = cloned(state), node_info.snapshot()
        for info in pods:
            node_info.add_pod(info)
            self.run_pre_filter_add_pod(state, pod, info, node_info)
        return state, node_info

    def without_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, pods: Sequence[PodInfo]
    ) -> tuple[CycleState, NodeInfo]:
        """Copies of state and node from which ``pods`` are removed."""
        state, node_info = cloned(state), node_info.snapshot()
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

        def rate(plugin: ScorePlugin) -> list[int]:
            return plugin.normalize_scores(state, pod, list(rated(plugin, state, pod, nodes)), nodes)

        columns = self._rated(state, pod, nodes, rate)
        if any(
            min(scores, default=MIN_NODE_SCORE) < MIN_NODE_SCORE or max(scores, default=MAX_NODE_SCORE) > MAX_NODE_SCORE
            for scores in columns.values()
        ):
            # The error of the first node that has an invalid score.
            name, score = next(
                (name, score)
                for scores in zip(*columns.values(), strict=True)
                for name, score in zip(columns, scores, strict=True)
                if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE
            )
            reason = (
                f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score {score},'
                f" it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
            )
            raise FrameworkError(Status(Code.ERROR, [reason]))
        weighted = [[score * self.plugins.weights[name] for score in scores] for name, scores in columns.items()]
        by_node = list(zip(*weighted, strict=True)) if weighted else [()] * len(nodes)
        # Many nodes have the same scores: one record does for them.
        records = {scores: dict(zip(columns, scores, strict=True)) for scores in set(by_node)}
        return {node_info.name: records[scores] for node_info, scores in zip(nodes, by_node, strict=True)}

    def run_scores_in_sum(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[int] | None:
        """What ``run_scores`` gives each of ``nodes`` in all, in their order; ``None`` where only that can tell.

        Nodes whose ``places`` the state has are rated at once, if no plugin is out-of-tree and no sum can overflow.
        """
        weights = self.plugins.weights
        if state.places is None or self.has_out_of_tree_plugins or sum(map(abs, weights.values())) > _MOST_WEIGHT:
            return None
        from kpreempt.schedulers.kube.bulk.score_columns import ScoresAtOnce  # noqa: PLC0415 - it needs NumPy

        at_once = ScoresAtOnce(state, pod, nodes, self.cluster.node_infos)
        return at_once.in_sum(self._rated(state, pod, nodes, at_once.rate), weights)

    def _rated(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], rate: Callable[[ScorePlugin], SomeScores]
    ) -> dict[str, SomeScores]:
        """What ``rate`` gives for each plugin that scores, once all have looked at the nodes."""
        skipped = set()
        for pre_score in self.plugins.pre_scores:
            status = pre_score.pre_score(state, pod, nodes)
            if status.is_skip:
                skipped.add(pre_score.name)
            elif not status.is_success:
                raise FrameworkError(wrapped(f'running PreScore plugin "{pre_score.name}"', status, pre_score.name))
        found: dict[str, SomeScores] = {}
        for plugin in self.plugins.scores:
            if plugin.name in skipped:
                continue
            try:
                found[plugin.name] = rate(plugin)
            except PluginError as error:
                doing = f'running Score plugins: plugin "{plugin.name}" failed with'
                raise FrameworkError(wrapped(doing, Status(Code.ERROR, [str(error)]), plugin.name)) from error
        return found


def _first_rejection(filters: Iterable[FilterPlugin], state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
    for plugin in filters:
        status = run_filter(plugin, state, pod, node_info)
        if status is not SUCCESS:
            return status
    return SUCCESS


def run_filter(plugin: FilterPlugin, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
    """The filter's status: ``SUCCESS`` itself, or a refusal named after the plugin."""
    try:
        status = plugin.filter(state, pod, node_info)
    except PluginError as error:
        status = Status(Code.ERROR, [str(error)])
    if status is SUCCESS or status.is_success:
        return SUCCESS
    if not status.is_rejected:
        raise FrameworkError(wrapped(f'running "{plugin.name}" filter plugin', status, plugin.name))
    return status.of_plugin(plugin.name)


def wrapped(doing: str, status: Status, plugin: str) -> Status:
    """The error that ends a cycle: what a plugin was doing, and the status that it ended in."""
    return Status(Code.ERROR, [f"{doing}: {status.message}"], plugin=plugin)


def cloned(state: CycleState) -> CycleState:
    """A copy of the state. Raises ``FrameworkError`` where a plugin's own cannot be copied."""
    try:
        return state.clone()
    except CloneError as error:
        said = description(error.__cause__ or error, f'state "{error.key}"')
        raise FrameworkError(Status(Code.ERROR, [f"cloning the CycleState: {readable(said)}"])) from error
