"""Runs plugins from outside: they see views, whatever they raise or return ends in an Error, and their time is told.

What upstream does with a plugin's error is done by the runner; here everything becomes such an error that a plugin in
Go could not have done to the scheduler: any exception, and results of other types than the extension points have.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from kpreempt.model.pod import Pod
from kpreempt.phases import Phases
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import (
    FilterPlugin,
    FrameworkError,
    NodeToStatus,
    Plugin,
    PluginError,
    PostFilterPlugin,
    PostFilterResult,
    PreemptionEvidence,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueuedPodInfo,
    QueueSortPlugin,
    ScorePlugin,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.read_only import read_only_node, read_only_nodes, read_only_pod
from kpreempt.verdict import Candidate, Code, Eligibility, Status

_T = TypeVar("_T")

_LONGEST_MESSAGE = 300


class ForeignPlugin(
    QueueSortPlugin, PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, PostFilterPlugin, PreScorePlugin, ScorePlugin
):
    """A plugin from outside, at whichever extension points it is enabled; ``plugin`` is the plugin itself."""

    def __init__(self, plugin: Plugin, cluster: ClusterState) -> None:
        self.plugin: Any = plugin
        self.name = plugin.name
        self.is_local = plugin.is_local
        self._cluster = cluster

    @property
    def has_extensions(self) -> bool:
        """Whether the plugin has any."""
        return bool(self.plugin.has_extensions)

    def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        """Whether ``one`` is tried before ``other``; raises ``FrameworkError``."""
        try:
            with speaking(self.name):
                return _of_type(bool, self.plugin.less(one, other), "less")
        except PluginError as error:
            reason = f'comparing pods by QueueSort plugin "{self.name}": {error}'
            raise FrameworkError(Status(Code.ERROR, [reason], plugin=self.name)) from error

    def pre_enqueue(self, pod: Pod) -> Status:
        """The plugin's status, or the Error that it ends in."""
        return self._status(lambda: self.plugin.pre_enqueue(pod), "pre_enqueue")

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """What the plugin says of the pod."""
        try:
            with self._at_work(state.phases):
                result, status = _pair(self.plugin.pre_filter(state, pod, read_only_nodes(nodes)), "pre_filter")
                if result is not None:
                    names = _of_type(PreFilterResult, result, "pre_filter").node_names
                    result = PreFilterResult(frozenset(_of_type(str, name, "pre_filter") for name in names))
                return result, status
        except PluginError as error:
            return None, Status(Code.ERROR, [str(error)])

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Have the plugin bring its state up to date."""
        with self._at_work(state.phases):
            self.plugin.add_pod(state, pod, read_only_pod(added), read_only_node(node_info))

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Have the plugin bring its state up to date."""
        with self._at_work(state.phases):
            self.plugin.remove_pod(state, pod, read_only_pod(removed), read_only_node(node_info))

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """What the plugin says of the node."""
        with self._at_work(state.phases):
            return _of_type(Status, self.plugin.filter(state, pod, read_only_node(node_info)), "filter")

    def post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """What the plugin makes of the pod, or the Error that it ends in."""
        try:
            with self._at_work(state.phases):
                result, status = _pair(self.plugin.post_filter(state, pod, filtered), "post_filter")
                if result is not None:
                    result = self._checked(_of_type(PostFilterResult, result, "post_filter"))
                return result, status
        except PluginError as error:
            return None, Status(Code.ERROR, [f'running PostFilter plugin "{self.name}": {error}'])

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """The plugin's status, or the Error that it ends in."""
        with state.phases.part(self.name):
            return self._status(lambda: self.plugin.pre_score(state, pod, read_only_nodes(nodes)), "pre_score")

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """The plugin's score of the node."""
        with self._at_work(state.phases):
            return _integer(self.plugin.score(state, pod, read_only_node(node_info)), "score")

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """The plugin's scores of all nodes."""
        with self._at_work(state.phases):
            found = self.plugin.normalize_scores(state, pod, list(scores), read_only_nodes(nodes))
            if not isinstance(found, Sequence) or len(found) != len(nodes):
                raise PluginError(f"normalize_scores gave {_shown(found)}, not a score for each of {len(nodes)} nodes")
            return [_integer(score, "normalize_scores") for score in found]

    @contextmanager
    def _at_work(self, phases: Phases) -> Iterator[None]:
        with phases.part(self.name), speaking(self.name):
            yield

    def _status(self, ask: Callable[[], object], point: str) -> Status:
        try:
            with speaking(self.name):
                return _of_type(Status, ask(), point)
        except PluginError as error:
            return Status(Code.ERROR, [str(error)])

    def _checked(self, result: PostFilterResult) -> PostFilterResult:
        """The result, whose nodes and victims there are, and with a candidate for each node that it nominates."""
        names = result.nominated_node_names
        if names is None:
            return result
        evidence = result.evidence or PreemptionEvidence(Eligibility(True), list(names), {}, [], None)
        known = {candidate.node for candidate in evidence.candidates}
        candidates = [*evidence.candidates, *(Candidate(name, [], 0, []) for name in names if name not in known)]
        for candidate in candidates:
            node_info = self._cluster.by_name.get(candidate.node)
            if node_info is None:
                raise PluginError(f"post_filter nominates {_shown(candidate.node)}, which is not a node")
            there = {pod_info.key for pod_info in node_info.pods}
            strangers = [victim for victim in candidate.victims if victim not in there]
            if strangers:
                raise PluginError(f"post_filter evicts {_shown(strangers[0])}, which is not on node {candidate.node}")
        return PostFilterResult(list(names), evidence._replace(candidates=candidates))


@contextmanager
def speaking(plugin: str) -> Iterator[None]:
    """Turn whatever a plugin raises into a ``PluginError`` with its name and the line in its own code."""
    try:
        yield
    except (PluginError, FrameworkError):
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(_description(error, plugin)) from error


def _description(error: BaseException, plugin: str) -> str:
    """``RackColocation raised KeyError: 'rack' (rack.py, line 12)``."""
    frames = traceback.extract_tb(error.__traceback__)
    place = ""
    # The first frames are ours; the last one may be in a library that the plugin uses.
    own = [frame for frame in frames if "/kpreempt/schedulers/" not in frame.filename.replace("\\", "/")]
    if own:
        name = own[0].filename.replace("\\", "/").rpartition("/")[2]
        place = f" ({name}, line {own[0].lineno})"
    said = " ".join(str(error).split())
    said = f": {said[:_LONGEST_MESSAGE]}" if said else ""
    return f"{plugin} raised {type(error).__name__}{said}{place}"


def _pair(value: object, point: str) -> tuple[Any, Status]:
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Status):
        return value[0], value[1]
    raise PluginError(f"{point} gave {_shown(value)}, not a result and a Status")


def _of_type(kind: type[_T], value: object, point: str) -> _T:
    if isinstance(value, kind):
        return value
    raise PluginError(f"{point} gave {_shown(value)}, not a {kind.__name__}")


def _integer(value: object, point: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise PluginError(f"{point} gave {_shown(value)}, not an integer")


def _shown(value: object) -> str:
    """A value in few words: its type, and text itself."""
    if value is None:
        return "nothing"
    return repr(value[:_LONGEST_MESSAGE]) if isinstance(value, str) else f"a {type(value).__name__}"
