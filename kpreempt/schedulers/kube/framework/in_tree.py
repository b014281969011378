"""What a plugin in the tree states beside what it does, so that nobody else need know of it."""

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
from kpreempt.schedulers.kube.versions import Behaviour

if TYPE_CHECKING:
    # They need NumPy, which is loaded for big clusters only.
    from kpreempt.schedulers.kube.bulk.limits import PluginLimits
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable

DefaultArgs = Callable[[Mapping[str, Any], Behaviour], dict[str, Any]]
ArgProblems = Callable[[str, Mapping[str, Any], Behaviour], list[str]]
Awaits = Callable[[], Sequence[Awaited]]


class Registration(NamedTuple):
    """A plugin that a profile can enable, and how it is made.

    ``points`` are the extension points that it implements, of which ``modelled`` are here. ``args`` are the
    types of its arguments, by name: empty where it takes none. ``default_args`` fills in what loading does, and
    ``arg_problems`` says what is wrong with them then, ``making_problems`` what is only when the plugin is made.
    ``awaits`` gives the events that may help a pod that it refused, which only the queue asks for; where it gives
    none, all may.

    ``plugin`` is the class of an out-of-tree one, and ``source`` says where that was found.
    """

    factory: Callable[[Any, Handle], Plugin]
    args: Mapping[str, Type] = {}
    default_args: DefaultArgs = lambda args, _: dict(args)
    arg_problems: ArgProblems = lambda *_: []
    making_problems: ArgProblems = lambda *_: []
    awaits: Awaits = tuple
    points: frozenset[str] = frozenset()
    modelled: frozenset[str] = frozenset()
    plugin: type[Plugin] | None = None
    source: str = ""


def in_tree(
    kind: type[Plugin],
    *,
    not_modelled: str = "",
    args: Mapping[str, Type] | None = None,
    default_args: DefaultArgs = lambda args, _: dict(args),
    arg_problems: ArgProblems = lambda *_: [],
    making_problems: ArgProblems = lambda *_: [],
    awaits: Awaits = tuple,
) -> Registration:
    """The registration of a plugin in the tree; ``not_modelled`` are points that upstream's has, and ``kind`` lacks."""
    modelled = points_of(kind)
    return Registration(
        factory=kind,
        args=args or {},
        default_args=default_args,
        arg_problems=arg_problems,
        making_problems=making_problems,
        awaits=awaits,
        points=modelled.union(not_modelled.split()),
        modelled=modelled,
    )


class NodeFilterPlugin(FilterPlugin, ABC):
    """A filter to which pods do not matter: what it says of a node is the same whichever are on it."""


class SparseFilterPlugin(FilterPlugin):
    """A filter that tells at a glance on which nodes it succeeds."""

    @abstractmethod
    def suspects(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Collection[NodeInfo]:
        """Those of ``nodes`` that it may refuse, after PreFilter; on all others ``filter`` succeeds."""


class BulkScorePlugin(ScorePlugin):
    """Rates many nodes in less time than one after the other.

    ``looks_at_images`` says that it may rate pods differently that differ in nothing but their images.
    """

    looks_at_images: ClassVar[bool] = False

    @abstractmethod
    def score_all(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        """What ``score`` gives for each of ``nodes``."""


def rated(plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
    """The plugin's scores before they are normalised: all in one go where it can do so."""
    if isinstance(plugin, BulkScorePlugin):
        return plugin.score_all(state, pod, nodes)
    return [plugin.score(state, pod, node_info) for node_info in nodes]


class LimitedFilterPlugin(FilterPlugin, ABC):
    """A filter that can say of many nodes at once which pods there leave room for another (``bulk``)."""

    @abstractmethod
    def limits(self, state: CycleState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits | None:
        """Its check of these nodes as limits, after PreFilter; ``None`` where it cannot state them."""
