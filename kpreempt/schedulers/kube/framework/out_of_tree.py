"""Run out-of-tree plugins: they get read-only views, are timed, and their exceptions become errors.

The runner handles plugin errors as upstream does. This module turns everything that a Go plugin could not do to the
scheduler into such an error: any exception, and results with types other than the extension points'.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from kpreempt.model.frozen import frozen
from kpreempt.model.pod import Pod
from kpreempt.phases import Phases
from kpreempt.schedulers.interface import QueuedPodInfo
from kpreempt.schedulers.kube.framework.answers import (
    CODES_OF_FILTER,
    CODES_OF_PRE_FILTER,
    CODES_OF_PRE_SCORE,
    NonsenseError,
    checked_evidence,
    checked_status,
    integer,
    names_of_nodes,
    of_type,
    pair_with_status,
    readable,
    scores_of,
    shown,
    text_of,
)
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
    QueueSortPlugin,
    ScorePlugin,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.read_only import read_only_node, read_only_nodes, read_only_pod
from kpreempt.verdict import Candidate, Code, Eligibility, Status

_LONGEST_MESSAGE = 300


class OutOfTreePlugin(
    QueueSortPlugin, PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, PostFilterPlugin, PreScorePlugin, ScorePlugin
):
    """An out-of-tree plugin at the extension points where it is enabled; ``plugin`` is the wrapped object."""

    def __init__(self, name: str, plugin: Plugin, cluster: ClusterState) -> None:
        """``name`` is its name in the configuration. Raises whatever ``plugin`` raises when its attributes are read."""
        if plugin.name != name:
            raise PluginError(f"it is enabled as {name}, but its name is {shown(plugin.name)}")
        self.plugin: Any = plugin
        self.name = name
        self.is_local = of_type(bool, plugin.is_local, "is_local")
        self._cluster = cluster
        self._has_extensions = isinstance(plugin, PreFilterPlugin) and bool(plugin.has_extensions)
        self._latest: tuple[Pod, Pod] | None = None

    @property
    def has_extensions(self) -> bool:
        return self._has_extensions

    def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        """Return whether ``one`` is tried before ``other``. Raises ``FrameworkError``."""
        try:
            with attributed_to(self.name):
                return of_type(bool, self.plugin.less(one, other), "less")
        except PluginError as error:
            reason = f'comparing pods by QueueSort plugin "{self.name}": {error}'
            raise FrameworkError(Status(Code.ERROR, [reason], plugin=self.name)) from error

    def pre_enqueue(self, pod: Pod) -> Status:
        """Return the plugin's status, or the error."""
        return self._status(lambda: self.plugin.pre_enqueue(self._shown(pod)), "pre_enqueue", CODES_OF_FILTER)

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Return the plugin's PreFilter result and status for the pod."""
        try:
            with self._at_work(state.phases):
                answer = self.plugin.pre_filter(state, self._shown(pod), read_only_nodes(nodes))
                result, status = pair_with_status(answer, "pre_filter", CODES_OF_PRE_FILTER)
                if result is not None:
                    names = names_of_nodes(of_type(PreFilterResult, result, "pre_filter").node_names, "pre_filter")
                    result = PreFilterResult(frozenset(names))
                return result, status
        except PluginError as error:
            return None, Status(Code.ERROR, [str(error)])

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Make the plugin update its state."""
        with self._at_work(state.phases):
            self.plugin.add_pod(state, self._shown(pod), read_only_pod(added), read_only_node(node_info))

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Make the plugin update its state."""
        with self._at_work(state.phases):
            self.plugin.remove_pod(state, self._shown(pod), read_only_pod(removed), read_only_node(node_info))

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Return the plugin's status for the node."""
        with self._at_work(state.phases):
            answer = self.plugin.filter(state, self._shown(pod), read_only_node(node_info))
            return checked_status(answer, "filter", CODES_OF_FILTER)

    def post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Return the plugin's PostFilter result and status, or the error."""
        try:
            with self._at_work(state.phases):
                answer = self.plugin.post_filter(state, self._shown(pod), filtered.copy())
                result, status = pair_with_status(answer, "post_filter", CODES_OF_FILTER)
                if result is not None:
                    result = self._checked(of_type(PostFilterResult, result, "post_filter"))
                return result, status
        except PluginError as error:
            return None, Status(Code.ERROR, [f'running PostFilter plugin "{self.name}": {error}'])

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Return the plugin's status, or the error."""
        with state.phases.part(self.name):
            return self._status(
                lambda: self.plugin.pre_score(state, self._shown(pod), read_only_nodes(nodes)),
                "pre_score",
                CODES_OF_PRE_SCORE,
            )

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the plugin's score for the node."""
        with self._at_work(state.phases):
            return integer(self.plugin.score(state, self._shown(pod), read_only_node(node_info)), "score")

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Return the plugin's scores for all nodes."""
        with self._at_work(state.phases):
            found = self.plugin.normalize_scores(state, self._shown(pod), list(scores), read_only_nodes(nodes))
            return scores_of(found, len(nodes), "normalize_scores")

    def _shown(self, pod: Pod) -> Pod:
        """Return the pod as the plugin sees it; the plugin is called for one pod many times."""
        if self._latest is None or self._latest[0] is not pod:
            self._latest = (pod, frozen(pod))
        return self._latest[1]

    @contextmanager
    def _at_work(self, phases: Phases) -> Iterator[None]:
        with phases.part(self.name), attributed_to(self.name):
            yield

    def _status(self, call: Callable[[], object], point: str, codes: Collection[Code]) -> Status:
        try:
            with attributed_to(self.name):
                return checked_status(call(), point, codes)
        except PluginError as error:
            return Status(Code.ERROR, [str(error)])

    def _checked(self, result: PostFilterResult) -> PostFilterResult:
        """Check that the result's nodes and victims exist, and that every nominated node has a candidate."""
        nodes = self._cluster.by_name
        evidence = None if result.evidence is None else checked_evidence(result.evidence, nodes)
        if result.nominated_node_names is None:
            return PostFilterResult(None, evidence)
        names = names_of_nodes(result.nominated_node_names, "post_filter")
        for name in names:
            if name not in nodes:
                raise PluginError(f"post_filter nominates {shown(name)}, which is not a node")
        evidence = evidence or PreemptionEvidence(Eligibility(True), list(names), {}, [], None)
        known = {candidate.node for candidate in evidence.candidates}
        candidates = [*evidence.candidates, *(Candidate(name, [], 0, []) for name in names if name not in known)]
        return PostFilterResult(names, evidence._replace(candidates=list(map(self._checked_candidate, candidates))))

    def _checked_candidate(self, candidate: Candidate) -> Candidate:
        node_info = self._cluster.by_name.get(candidate.node)
        if node_info is None:
            raise PluginError(f"post_filter evidence names {shown(candidate.node)}, which is not a node")
        there = {pod_info.key for pod_info in node_info.pods}
        strangers = [victim for victim in candidate.victims if victim not in there]
        if strangers:
            raise PluginError(f"post_filter evicts {shown(strangers[0])}, which is not on node {candidate.node}")
        return msgspec.structs.replace(candidate, victims=list(dict.fromkeys(candidate.victims)))


@contextmanager
def attributed_to(plugin: str) -> Iterator[None]:
    """Convert whatever a plugin raises into a ``PluginError`` with the plugin's name and the line in its code.

    A ``PluginError`` that the plugin raises stays unchanged. The user's interrupt is not a plugin failure.
    """
    try:
        yield
    except (FrameworkError, NonsenseError, KeyboardInterrupt):
        raise
    except PluginError as error:
        raise PluginError(text_of(error)) from error
    except BaseException as error:
        raise PluginError(description(error, plugin)) from error


def description(error: BaseException, plugin: str) -> str:
    """Describe an exception: ``RackColocation raised KeyError: 'rack' (rack.py, line 12)``."""
    frames = [
        (frame.f_code.co_filename.replace("\\", "/"), line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    # The first frames belong to kpreempt; the last one may be in a library that the plugin uses.
    own = [frame for frame in frames if "/kpreempt/schedulers/" not in frame[0]]
    place = f" ({own[0][0].rpartition('/')[2]}, line {own[0][1]})" if own else ""
    message = " ".join(text_of(error)[:_LONGEST_MESSAGE].split())
    return f"{plugin} raised {type(error).__name__}{f': {message}' if message else ''}{readable(place)}"
