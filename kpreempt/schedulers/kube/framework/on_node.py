"""Runs filters and scores on a node, or finds in memory what they said of it."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.in_tree import BulkScorePlugin, LocalBulkScorePlugin
from kpreempt.schedulers.kube.framework.interface import FilterPlugin, FrameworkError, PluginError, ScorePlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.verdict import SUCCESS, Code, Status

# From so many nodes on they are rated at once.
_MANY = 100


class RememberedRun:
    """One run of the filters for one pod, that skips what is known of the local ones.

    ``known`` has for a node how many filters, counted over all of the profile, are done as far as they are local, and
    the status with which the last of them ended.
    """

    def __init__(
        self, filters: Sequence[FilterPlugin], state: CycleState, pod: Pod, known: dict[NodeInfo, tuple[int, Status]]
    ) -> None:
        self._state = state
        self._pod = pod
        self._known = known
        self._end = len(filters)
        self._filters = [
            (index, plugin) for index, plugin in enumerate(filters) if plugin.name not in state.skip_filter_plugins
        ]
        self._others = [(index, plugin) for index, plugin in self._filters if not plugin.is_local]

    def statuses_of(self, nodes: Sequence[NodeInfo]) -> list[Status]:
        """What ``status_of`` says of each of ``nodes``."""
        if self._others:
            return list(map(self.status_of, nodes))
        known, end = self._known, (self._end, SUCCESS)
        return [SUCCESS if known.get(each) == end else self.status_of(each) for each in nodes]

    def status_of(self, node_info: NodeInfo) -> Status:
        """What ``Framework.run_filters`` says of the node, filter by filter in the same order."""
        done, last = self._known.get(node_info, (0, SUCCESS))
        for index, plugin in self._others:
            if index >= done:
                break
            status = run_filter(plugin, self._state, self._pod, node_info)
            if status is not SUCCESS:
                return status
        if done == self._end or last is not SUCCESS:
            return last
        for index, plugin in self._filters:
            if index < done:
                continue
            status = run_filter(plugin, self._state, self._pod, node_info)
            if status is not SUCCESS:
                self._known[node_info] = (index + 1, status) if plugin.is_local else (index, SUCCESS)
                return status
        self._known[node_info] = (self._end, SUCCESS)
        return SUCCESS


def raw_scores(plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
    """The plugin's scores before they are normalised, those of local plugins from memory where there is one."""
    findings = state.shape_findings or state.findings
    if isinstance(plugin, BulkScorePlugin) or not plugin.is_local or findings is None:
        return rated(plugin, state, pod, nodes)
    known: dict[NodeInfo, int] = findings.on(f"score {plugin.name}")
    if unknown := [node_info for node_info in nodes if node_info not in known]:
        known.update(zip(unknown, rated(plugin, state, pod, unknown), strict=True))
    return list(map(known.__getitem__, nodes))


def rated(plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
    """The plugin's scores before they are normalised, all found out: at once where it can do so."""
    if isinstance(plugin, BulkScorePlugin):
        return plugin.score_all(state, pod, nodes)
    if isinstance(plugin, LocalBulkScorePlugin) and len(nodes) >= _MANY:
        scores = plugin.scores_at_once(state, pod, nodes)
        if scores is not None:
            return scores
    return [plugin.score(state, pod, node_info) for node_info in nodes]


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
