"""Runs the plugins of a profile in order (``pkg/scheduler/framework/runtime/framework.go``, v1.36.3).

Filter results for all nodes are cached for pods with the same requirements, from one cluster to the next. If hundreds
of similar pods follow one another, a few nodes change between them: only their statuses are recomputed, and the totals
(reasons, feasible nodes, nodes where evictions may help) are updated incrementally.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.framework.answers import readable
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CloneError, CycleState
from kpreempt.schedulers.kube.framework.decision_cache import Changes, DecisionCache, PodCache
from kpreempt.schedulers.kube.framework.in_tree import BulkFilterPlugin, Outline, SparseFilterPlugin, rated
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
from kpreempt.verdict import SUCCESS, Code, Status, Verdict

# The plugin that rejects a node, and the code.
_Kind = tuple[str, Code]


class FilterColumn:
    """The status of each node of a cluster, in order. Valid until it is refreshed for another cluster.

    Statuses at open positions are unknown. Some of the others may be outlines until they are completed.
    """

    def __init__(self, names: Sequence[str], changes: Changes) -> None:
        self.names = names
        # 1 for each node that passes the filters.
        self.passing = bytearray(len(names))
        # 1 for each node whose rejection evictions may resolve.
        self.resolvable = bytearray(len(names))
        # Names are in insertion order.
        self.rejected: dict[_Kind, dict[str, None]] = {}
        self.reasons: Counter[str] = Counter()
        self.statuses: list[Status | None] = [None] * len(names)
        self._changes = changes
        self._seen = len(changes.places)
        self._open = set(range(len(names)))

    def refresh(self, find_out: Callable[[list[int]], Iterable[Status]], *, except_for: Collection[int] = ()) -> None:
        """Recompute the statuses at all positions that changed, except ``except_for`` some, which stay open."""
        self._open.update(self._changes.places[self._seen :], except_for)
        self._seen = len(self._changes.places)
        places = sorted(self._open.difference(except_for))
        # Nodes whose status is the same object, as most are, need not be counted again.
        for place, status in zip(places, find_out(places), strict=True):
            if status is not self.statuses[place]:
                self._set(place, status)
        for place in except_for:
            self._set(place, None)
        self._open = set(except_for)

    def complete(self, places: Iterable[int], find_out: Callable[[list[int]], Iterable[Status]]) -> None:
        """Replace the outlines at these positions by the statuses."""
        outlined = [place for place in places if isinstance(self.statuses[place], Outline)]
        if outlined:
            for place, status in zip(outlined, find_out(outlined), strict=True):
                self.statuses[place] = status

    def _set(self, place: int, status: Status | None) -> None:
        self._count(place, -1)
        self.statuses[place] = status
        self._count(place, 1)

    def _count(self, place: int, by: int) -> None:
        status = self.statuses[place]
        if status is None:
            return
        if status is SUCCESS:
            self.passing[place] = by > 0
            return
        self.resolvable[place] = by > 0 and status.code is Code.UNSCHEDULABLE
        names = self.rejected.setdefault((status.plugin, status.code), {})
        if by > 0:
            names[self.names[place]] = None
        else:
            names.pop(self.names[place], None)
        for reason in status.reasons:
            self.reasons[reason] += by


class FilteredNodes(NodeToStatus):
    """The nodes that the filters reject: a column's statuses and, at its open positions, the given ones.

    Valid until the column is refreshed. Lists are built on first use; ``find_out`` completes outlines.
    """

    def __init__(
        self,
        column: FilterColumn,
        position: Mapping[str, int],
        given: Mapping[int, Status],
        find_out: Callable[[list[int]], Iterable[Status]],
    ) -> None:
        self._find_out = find_out
        self.absent = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        self._column = column
        self._position = position
        self._given = given

    @cached_property
    def all(self) -> list[Status]:
        """Return the status of every node."""
        self._column.complete(range(len(self._column.statuses)), self._find_out)
        statuses = list(self._column.statuses)
        for place, status in self._given.items():
            statuses[place] = status
        return cast("list[Status]", statuses)

    @cached_property
    def statuses(self) -> dict[str, Status]:  # type: ignore[override]
        """The status of each rejected node."""
        return {
            name: status for name, status in zip(self._column.names, self.all, strict=True) if status is not SUCCESS
        }

    @cached_property
    def passing(self) -> bytearray:
        """1 for each node that passes the filters, and 0 for the others; valid as long as this."""
        return self._marked(self._column.passing, lambda status: status is SUCCESS)

    @property
    def resolvable(self) -> bytearray:
        """1 for each node whose rejection evictions may resolve, and 0 for the others; valid as long as this."""
        return self._marked(self._column.resolvable, lambda status: status.code is Code.UNSCHEDULABLE)

    def _marked(self, marks: bytearray, is_marked: Callable[[Status], bool]) -> bytearray:
        if not self._given:
            return marks
        marks = bytearray(marks)
        for place, status in self._given.items():
            marks[place] = is_marked(status)
        return marks

    @property
    def num_rejected(self) -> int:
        return self.passing.count(0)

    @property
    def reasons(self) -> Counter[str]:
        counts = Counter({reason: count for reason, count in self._column.reasons.items() if count})
        counts.update(reason for status in self._given.values() for reason in status.reasons)
        return counts

    @property
    def rejected(self) -> dict[_Kind, Collection[str]]:
        """The rejected nodes by plugin and code."""
        found: dict[_Kind, Collection[str]] = {kind: names for kind, names in self._column.rejected.items() if names}
        for place, status in self._given.items():
            if status is not SUCCESS:
                kind = (status.plugin, status.code)
                found[kind] = [*found.get(kind, ()), self._column.names[place]]
        return found

    @property
    def examples(self) -> dict[str, Status]:
        """Return one node, with its status, for each plugin and code."""
        return {(name := next(iter(names))): self.get(name) for names in self.rejected.values()}

    def get(self, node_name: str) -> Status:
        place = self._position.get(node_name)
        if place is not None:
            self._column.complete((place,), self._find_out)
        return self.outline_of(node_name)

    def outline_of(self, node_name: str) -> Status:
        """Return the same, or an outline of it."""
        place = self._position.get(node_name)
        status = None if place is None else self._given.get(place) or self._column.statuses[place]
        return self.absent if status is None or status is SUCCESS else status


if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.pod_table import Integers

SomeScores = TypeVar("SomeScores")
# Weights whose total is at most this cannot make a sum overflow 64 bits.
_MAX_WEIGHT = 2**48


class ProfilePlugins(NamedTuple):
    """The plugins of a profile at each extension point, in order, and the weights of score plugins."""

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
    """One profile's plugins on one cluster; ``memory`` has the results cached from earlier clusters, if any."""

    def __init__(self, plugins: ProfilePlugins, cluster: ClusterState, memory: DecisionCache | None = None) -> None:
        self.plugins = plugins
        self.cluster = cluster
        self.memory = memory
        self._behavior = cluster.behavior
        self._extended = [plugin for plugin in plugins.pre_filters if plugin.has_extensions]
        self.has_out_of_tree_plugins = plugins.has_out_of_tree
        # Whether NumPy is loaded, as it is for big clusters.
        self.rates_at_once = False
        # Verdicts on pods that found no node in this cluster, by the results that are cached for equal requirements.
        self.failures: dict[PodCache, tuple[Verdict, PostFilterResult | None]] = {}

    def run_pre_enqueue(self, pod: Pod, phases: Phases = NO_PHASES, *, is_popped: bool = False) -> Status:
        """Return the first status that is not Success, with its plugin's name.

        ``is_popped`` means that the queue called the out-of-tree plugins before it admitted the pod.
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

        Returns the nodes left to evaluate (``None``: all), the status, and the plugins that restricted the nodes. After
        an Unschedulable status, the other plugins still prepare for a preemption.
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
                    if not self._behavior.continues_after_a_rejection:
                        return None, rejected, []
                elif not status.is_success:
                    raise FrameworkError(wrapped(f'running PreFilter plugin "{plugin.name}"', status, plugin.name))
                elif result is not None:
                    restricting.append(plugin.name)
                    node_names = result.node_names if node_names is None else node_names & result.node_names
                    if not node_names:
                        names = sorted(restricting) if self._behavior.sorts_conflicting_plugins else restricting
                        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
                        if len(names) == 1:
                            reason = f"node(s) didn't satisfy plugin {names[0]}"
                        is_final = self._behavior.rules_out_conflicting_plugins
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
        """Return the status of the first filter that rejects the node, with its plugin's name; or Success."""
        skipped = state.skip_filter_plugins
        running = (plugin for plugin in self.plugins.filters if plugin.name not in skipped)
        return _first_rejection(running, state, pod, node_info)

    def run_filters_on_cluster(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[Status]:
        """Return ``run_filters_with_nominated_pods`` for each of ``nodes``, which are in the cluster's state."""
        if nodes is self.cluster.node_infos and (filtered := self.filtered_nodes(state, pod)) is not None:
            return filtered.all
        return self._with_nominated_pods(state, pod, nodes, lambda others: self._run_filters_on(state, pod, others))

    def _with_nominated_pods(
        self,
        state: CycleState,
        pod: Pod,
        nodes: Sequence[NodeInfo],
        run_on: Callable[[list[NodeInfo]], Iterable[Status]],
    ) -> list[Status]:
        """Return ``run_filters_with_nominated_pods`` for each of ``nodes``; ``run_on`` answers for others."""
        nominated = self.cluster.nominated_pods
        statuses = iter(run_on([each for each in nodes if each.name not in nominated]))
        return [
            self.run_filters_with_nominated_pods(state, pod, each) if each.name in nominated else next(statuses)
            for each in nodes
        ]

    def _run_filters_on(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[Status]:
        """Return ``run_filters`` for each of ``nodes``, skipping filters that are known to succeed.

        If there is a cache, local filters do not run again on an unchanged node.
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
        """Return the status of the first local filter that rejects each node; ``None`` without a cache.

        Also ``None`` if one of them ends with an error on a node that it might not have reached.
        """
        findings = state.scheduling_findings or state.findings
        if findings is None:
            return None
        nodes = self.cluster.node_infos
        key = ("local filters", state.skip_filter_plugins)
        column = findings.column(key, len(nodes), lambda _, changes: FilterColumn(list(self.cluster.by_name), changes))
        try:
            column.refresh(lambda places: _first_rejections(local, state, pod, [nodes[place] for place in places]))
        except FrameworkError:
            return None
        return column

    def filtered_nodes(self, state: CycleState, pod: Pod) -> FilteredNodes | None:
        """Return the same for all nodes from the cache; ``None`` without one, or if a filter is not node-local."""
        findings = state.scheduling_findings or state.findings
        memory = self.memory
        if findings is None or memory is None or not self.all_filters_are_node_local(state):
            return None
        cluster, nominated = self.cluster, self.cluster.nominated_pods

        def statuses_at(places: Iterable[int], *, in_outline: bool = False) -> list[Status]:
            nodes = [cluster.node_infos[place] for place in places]
            # No PreFilter extension runs, so that pods change only the node.
            filled = {
                each: memory.with_pods(each, others)
                for each in nodes
                if each.name in nominated and (others := self.nominated_pods_except(pod, each.name))
            }
            found = dict(zip(filled, _first_rejections(running, state, pod, list(filled.values())), strict=True))
            rest = [each for each in nodes if found.get(each, SUCCESS) is SUCCESS] if filled else nodes
            without = _first_rejections(running, state, pod, rest, in_outline=in_outline)
            if not filled:
                return without
            found.update(zip(rest, without, strict=True))
            return [found[each] for each in nodes]

        running = [plugin for plugin in self.plugins.filters if plugin.name not in state.skip_filter_plugins]

        # A nominated pod does not count itself, while equal pods count it.
        own = sorted(cluster.places_nominated_to(pod))
        key = ("filter", pod.priority, state.skip_filter_plugins)
        column = findings.column(
            key, len(cluster.by_name), lambda _, changes: FilterColumn(list(cluster.by_name), changes)
        )
        column.refresh(partial(statuses_at, in_outline=True), except_for=own)
        given = dict(zip(own, statuses_at(own), strict=True)) if own else {}
        return FilteredNodes(column, cluster.position, given, statuses_at)

    def all_filters_are_node_local(self, state: CycleState) -> bool:
        """Return whether each filter's result for a node depends only on that node and its pods.

        ``state`` is the state after PreFilter.
        """
        skipped = state.skip_filter_plugins
        return all(plugin.is_local or plugin.name in skipped for plugin in self.plugins.filters) and all(
            plugin.name in skipped for plugin in self._extended
        )

    def run_filters_with_nominated_pods(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Run the filters with the pods nominated to the node, and without them.

        Only nominated pods of equal or higher priority count.
        """
        if self.cluster.nominated_pods and (nominated := self.nominated_pods_except(pod, node_info.name)):
            with_nominated = self.with_pods(state, pod, node_info, nominated)
            status = self.run_filters(with_nominated[0], pod, with_nominated[1])
            if not status.is_success:
                return status
        return self.run_filters(state, pod, node_info)

    def nominated_pods_except(self, pod: Pod, node_name: str) -> list[PodInfo]:
        """Return the pods nominated to the node that count when ``pod`` is tried there: of equal or higher priority."""
        return [
            info
            for info in self.cluster.nominated_pods.get(node_name, ())
            if info.priority >= pod.priority and not is_same_pod(info.pod, pod)
        ]

    def with_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, pods: Sequence[PodInfo]
    ) -> tuple[CycleState, NodeInfo]:
        """Return copies of state and node to which ``pods`` are added."""
        state, node_info = cloned(state), node_info.snapshot()
        for info in pods:
            node_info.add_pod(info)
            self.run_pre_filter_add_pod(state, pod, info, node_info)
        return state, node_info

    def without_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, pods: Sequence[PodInfo]
    ) -> tuple[CycleState, NodeInfo]:
        """Return copies of state and node from which ``pods`` are removed."""
        state, node_info = cloned(state), node_info.snapshot()
        for info in pods:
            node_info.remove_pod(info)
            self.run_pre_filter_remove_pod(state, pod, info, node_info)
        return state, node_info

    def run_post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Run PostFilter plugins until one succeeds, fails with an error or reports that nothing can help.

        Otherwise, the status is Unschedulable with all their reasons, and the result is the last one that nominates.
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
        """Return weighted, normalized scores: node to plugin to score. Skipped plugins are omitted."""

        def rate(plugin: ScorePlugin) -> list[int]:
            return plugin.normalize_scores(state, pod, list(rated(plugin, state, pod, nodes)), nodes)

        columns = _rated_by(self._scoring(state, pod, nodes), rate)
        if any(
            min(scores, default=MIN_NODE_SCORE) < MIN_NODE_SCORE or max(scores, default=MAX_NODE_SCORE) > MAX_NODE_SCORE
            for scores in columns.values()
        ):
            # The error of the first node with an invalid score.
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
        # Many nodes have the same scores and share one record.
        records = {scores: dict(zip(columns, scores, strict=True)) for scores in set(by_node)}
        return {node_info.name: records[scores] for node_info, scores in zip(nodes, by_node, strict=True)}

    def run_scores_in_sum(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Integers | None:
        """Return each node's total from ``run_scores``, in order; ``None`` if only ``run_scores`` can compute it.

        Nodes whose ``places`` are in the state are scored in bulk, if no plugin is out-of-tree and no sum can overflow.
        """
        weights = self.plugins.weights
        if state.places is None or self.has_out_of_tree_plugins or sum(map(abs, weights.values())) > _MAX_WEIGHT:
            return None
        from kpreempt.schedulers.kube.bulk.score_columns import ScoresAtOnce  # noqa: PLC0415 - needs NumPy

        at_once = ScoresAtOnce(state, pod, nodes, self.cluster.node_infos, self._scoring(state, pod, nodes))
        return at_once.in_sum(_rated_by(at_once.running, at_once.rate), weights)

    def _scoring(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[ScorePlugin]:
        """Run PreScore, and return the plugins that score the nodes."""
        skipped = set()
        for pre_score in self.plugins.pre_scores:
            status = pre_score.pre_score(state, pod, nodes)
            if status.is_skip:
                skipped.add(pre_score.name)
            elif not status.is_success:
                raise FrameworkError(wrapped(f'running PreScore plugin "{pre_score.name}"', status, pre_score.name))
        return [plugin for plugin in self.plugins.scores if plugin.name not in skipped]


def _rated_by(plugins: Iterable[ScorePlugin], rate: Callable[[ScorePlugin], SomeScores]) -> dict[str, SomeScores]:
    """Return the result of ``rate`` for each plugin."""
    found: dict[str, SomeScores] = {}
    for plugin in plugins:
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


def _first_rejections(
    filters: Iterable[FilterPlugin],
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    *,
    in_outline: bool = False,
) -> list[Status]:
    """Return ``_first_rejection`` for each of ``nodes``, filter by filter; outlines of rejections will do."""
    found = dict.fromkeys(nodes, SUCCESS)
    for plugin in filters:
        outline = plugin.outline(state, pod, nodes) if in_outline and isinstance(plugin, BulkFilterPlugin) else None
        if outline is not None:
            statuses = dict(zip(nodes, outline, strict=True))
        else:
            suspects = plugin.suspects(state, pod, nodes) if isinstance(plugin, SparseFilterPlugin) else nodes
            statuses = {each: run_filter(plugin, state, pod, each) for each in suspects}
        if rejected := {each: status for each, status in statuses.items() if status is not SUCCESS}:
            found.update(rejected)
            nodes = [each for each in nodes if each not in rejected]
    return list(found.values())


def run_filter(plugin: FilterPlugin, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
    """Return the filter's status: ``SUCCESS`` itself, or a rejection with the plugin's name."""
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
    """Build the error that ends a cycle from the operation, the plugin and its status."""
    return Status(Code.ERROR, [f"{doing}: {status.message}"], plugin=plugin)


def cloned(state: CycleState) -> CycleState:
    """Return a copy of the state. Raises ``FrameworkError`` if a plugin's data cannot be copied."""
    try:
        return state.clone()
    except CloneError as error:
        message = description(error.__cause__ or error, f'state "{error.key}"')
        raise FrameworkError(Status(Code.ERROR, [f"cloning the CycleState: {readable(message)}"])) from error
