"""Facts that an in-tree plugin declares along with its behavior so that other modules need not know them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.arg_types import Type
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.events import Awaited
from kpreempt.schedulers.kube.framework.interface import FilterPlugin, Handle, Plugin, ScorePlugin, points_of
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import Status

if TYPE_CHECKING:
    # These need NumPy, which is loaded only for big clusters.
    from kpreempt.schedulers.kube.bulk.limits import PluginLimits
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable

DefaultArgs = Callable[[Mapping[str, Any], Behavior], dict[str, Any]]
ArgProblems = Callable[[str, Mapping[str, Any], Behavior], list[str]]
Awaits = Callable[[], Sequence[Awaited]]


class Registration(NamedTuple):
    """A plugin that a profile can enable, and how to create it.

    ``points`` are the extension points that it implements; ``is_modeled`` are the ones implemented here. ``args`` are
    the types of its arguments, by name; empty if it has none. ``default_args`` sets defaults as loading does,
    ``arg_problems`` validates the result, and ``making_problems`` returns problems found only when the plugin is
    created. ``awaits`` returns the events that may help a pod that it rejected, used only by the queue; if it returns
    none, every event may help.

    ``plugin`` is the class of an out-of-tree plugin, and ``source`` is where it was found.
    """

    factory: Callable[[Any, Handle], Plugin]
    args: Mapping[str, Type] = {}
    default_args: DefaultArgs = lambda args, _: dict(args)
    arg_problems: ArgProblems = lambda *_: []
    making_problems: ArgProblems = lambda *_: []
    awaits: Awaits = tuple
    points: frozenset[str] = frozenset()
    is_modeled: frozenset[str] = frozenset()
    plugin: type[Plugin] | None = None
    source: str = ""


def in_tree(
    kind: type[Plugin],
    *,
    unmodeled: str = "",
    args: Mapping[str, Type] | None = None,
    default_args: DefaultArgs = lambda args, _: dict(args),
    arg_problems: ArgProblems = lambda *_: [],
    making_problems: ArgProblems = lambda *_: [],
    awaits: Awaits = tuple,
) -> Registration:
    """Register an in-tree plugin; ``unmodeled`` are points that upstream's plugin has and ``kind`` lacks."""
    modeled = points_of(kind)
    return Registration(
        factory=kind,
        args=args or {},
        default_args=default_args,
        arg_problems=arg_problems,
        making_problems=making_problems,
        awaits=awaits,
        points=modeled.union(unmodeled.split()),
        is_modeled=modeled,
    )


class NodeFilterPlugin(FilterPlugin, ABC):
    """A filter that ignores pods: its status for a node is the same whichever pods are on it."""


class SparseFilterPlugin(FilterPlugin):
    """A filter that can quickly determine the nodes on which it succeeds."""

    @abstractmethod
    def suspects(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Collection[NodeInfo]:
        """Return those of ``nodes`` that it may reject, after PreFilter; on all others ``filter`` succeeds."""


class Outline(Status, frozen=True, gc=False):
    """A rejection without its details, which nodes share that are rejected for the same reasons."""

    is_permanent: bool = False


class BulkFilterPlugin(SparseFilterPlugin):
    """A filter that can compare many nodes with a pod faster than one by one."""

    @abstractmethod
    def outline(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[Status] | None:
        """Return ``SUCCESS`` or an ``Outline`` of the rejection for each of ``nodes``, which are the cluster's.

        ``None`` if ``filter`` has to be called, as for a few nodes.
        """


class BulkScorePlugin(ScorePlugin):
    """Scores many nodes faster than one by one.

    ``scores_images`` means that pods that differ only in their images may get different scores.
    """

    scores_images: ClassVar[bool] = False

    def score_of_every_node(self, state: CycleState, pod: Pod) -> int | None:
        """Return the score of all nodes of the cluster, if it is known that they have the same."""
        return None

    @abstractmethod
    def score_all(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        """Return what ``score`` returns for each of ``nodes``."""


def rated(plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
    """Return the plugin's scores before normalization, in bulk if possible."""
    if isinstance(plugin, BulkScorePlugin):
        same = plugin.score_of_every_node(state, pod)
        return plugin.score_all(state, pod, nodes) if same is None else [same] * len(nodes)
    return [plugin.score(state, pod, node_info) for node_info in nodes]


class LimitedFilterPlugin(FilterPlugin, ABC):
    """A filter that can compute for many nodes at once which pods may stay with another pod (``bulk``)."""

    @abstractmethod
    def limits(self, state: CycleState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits | None:
        """Express its check of these nodes as limits, after PreFilter; ``None`` if it cannot."""
