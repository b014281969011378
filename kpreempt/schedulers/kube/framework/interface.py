"""The extension points of the scheduling framework, for plugins in-tree and out-of-tree.

A plugin is a class that derives from the extension points that it implements; it is made once per profile and cluster,
and holds no state of a pod (that goes into the ``CycleState``). Follows ``k8s.io/kube-scheduler`` v0.36.3
``framework/interface.go``.

Also the text of a FailedScheduling event (``FitError``, ``pkg/scheduler/framework/types.go``, v1.36.3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from kpreempt.model.extra_fields import NO_EXTRAS, ExtraFields
from kpreempt.model.pod import Pod
from kpreempt.schedulers.equal_pods import Outcomes, Steps
from kpreempt.schedulers.interface import QueuedPodInfo
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.read_only import SnapshotView
from kpreempt.schedulers.kube.versions import Behaviour
from kpreempt.verdict import Alternatives, Candidate, Code, Eligibility, Odds, Reprieve, Selection, Status

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.pod_table import LatestTable, PodTable
    from kpreempt.schedulers.kube.preemption.importance import BudgetIndex


MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100
DEFAULT_PARALLELISM = 16

# Arguments of a plugin as a scheduler configuration gives them, keys as in the API.
PluginArgs = Mapping[str, object]


class PluginError(Exception):
    """A plugin cannot go on; what it was doing then ends in an Error status with this message."""


class FrameworkError(Exception):
    """A step of the scheduling cycle ended in an Error status, which names the plugin and what it was doing."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class Plugin:
    """Something that the scheduler's configuration can enable, by ``name``: that of the class, if it states none.

    ``args_type`` is a record into which the arguments of the configuration are decoded; without one ``args`` are plain
    data. ``wants`` are objects and annotations that the plugin reads, and that a snapshot would not keep otherwise.
    """

    name: str
    args_type: ClassVar[type[msgspec.Struct] | None] = None
    wants: ClassVar[ExtraFields] = NO_EXTRAS
    # Whether what the plugin says of a node, before scores are normalised, is due to nothing but this node and the pods
    # on it, the pod in question without its name and status, and objects that are neither pods nor budgets.
    is_local: bool = False
    _states_name: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in cls.__dict__:
            cls._states_name = True
        elif not cls._states_name:
            cls.name = cls.__name__

    def __init__(self, args: Any, handle: Handle) -> None:
        """``args`` are those of the configuration, ``handle`` is what the plugin may look at."""
        self.args = args
        self.handle = handle


class QueueSortPlugin(Plugin, ABC):
    """Orders the scheduling queue; there is one, and it is the same in all profiles.

    The one that was made for the cluster of the start is asked to the end of a simulation: its ``handle.snapshot`` is
    old.
    """

    @abstractmethod
    def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        """Whether ``one`` is tried before ``other``. Raise nothing: without an order there is no answer at all."""


class PreEnqueuePlugin(Plugin, ABC):
    """Holds pods back before the scheduler looks at them.

    It is asked when a pod comes, and again after each event; what it lets in is not asked about when its turn comes.
    """

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status:
        """Success, or why the pod waits."""


class PreFilterResult(NamedTuple):
    """The only nodes that are worth looking at."""

    node_names: frozenset[str]


class PreFilterPlugin(Plugin, ABC):
    """Looks at the pod once, before the nodes."""

    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Prepare ``state``; Skip leaves this plugin's Filter out, Unschedulable refuses the pod on all nodes."""

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Bring ``state`` up to date after ``added`` was put on the node; may raise ``PluginError``."""

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Bring ``state`` up to date after ``removed`` was taken off the node; may raise ``PluginError``."""

    @property
    def has_extensions(self) -> bool:
        """Whether ``add_pod`` and ``remove_pod`` keep this plugin's state exact in a dry run."""
        kind = type(self)
        return kind.add_pod is not PreFilterPlugin.add_pod or kind.remove_pod is not PreFilterPlugin.remove_pod


class FilterPlugin(Plugin, ABC):
    """Says whether the pod can run on a node."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Success, Unschedulable (evictions may help) or UnschedulableAndUnresolvable (they cannot)."""


class NodeToStatus:
    """The nodes that were refused, with the status that all the others share (``absent``)."""

    def __init__(self) -> None:
        self.statuses: dict[str, Status] = {}
        self.absent = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def get(self, node_name: str) -> Status:
        """The node's status, or the shared one."""
        return self.statuses.get(node_name, self.absent)

    @property
    def num_rejected(self) -> int:
        """How many nodes have a status of their own."""
        return len(self.statuses)

    @property
    def reasons(self) -> Counter[str]:
        """How many of these nodes each reason is given for."""
        return Counter(chain.from_iterable(map(attrgetter("reasons"), self.statuses.values())))

    def copy(self) -> NodeToStatus:
        """The same, to be changed without changing this one."""
        copy = NodeToStatus()
        copy.statuses, copy.absent = dict(self.statuses), self.absent
        return copy


class PreemptionEvidence(NamedTuple):
    """What a preemption looked at and decided.

    ``eviction_rule`` is the plugin that says who may be evicted, where that is not decided by priority.
    """

    eligibility: Eligibility
    potential_nodes: list[str]
    dry_run: dict[str, Status]
    candidates: list[Candidate]
    selection: Selection | None
    odds: Odds | None = None
    eviction_rule: str = ""
    alternatives: Alternatives | None = None
    # Whether the order of budgets that protect one pod decides what is left of them.
    hangs_on_budget_order: bool = False


class PostFilterResult(NamedTuple):
    """What a PostFilter made of the pod.

    ``nominated_node_names`` are all nodes that the choice can end with; empty clears an earlier nomination, and
    ``None`` leaves it alone. ``reported_node`` is the one that the message names, if it names one.
    """

    nominated_node_names: list[str] | None
    evidence: PreemptionEvidence | None = None
    reported_node: str = ""


class PostFilterPlugin(Plugin, ABC):
    """Tries to make room after no node was found."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Success with the nominated nodes, Unschedulable to let the next plugin try, or an error."""


class PreScorePlugin(Plugin, ABC):
    """Looks at the pod and the nodes that fit, once, before scoring."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Prepare ``state``; Skip leaves this plugin's Score out."""


class ScorePlugin(Plugin, ABC):
    """Rates a node."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """The node's score, 0 to 100 unless ``normalize_scores`` brings it there."""

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """All nodes' scores brought to 0..100, in the order of ``nodes``."""
        return scores


class ReservePlugin(Plugin):
    """Keeps something for a pod on its node; recognised, and not run in a what-if."""


class PermitPlugin(Plugin):
    """Holds a pod back before it is bound; recognised, and not run in a what-if."""


class PreBindPlugin(Plugin):
    """Prepares the binding of a pod; recognised, and not run in a what-if."""


class BindPlugin(Plugin):
    """Binds a pod; recognised, and not run in a what-if."""


class PostBindPlugin(Plugin):
    """Told that a pod was bound; recognised, and not run in a what-if."""


# By their names in a configuration, in the order of a scheduling cycle.
EXTENSION_POINTS: dict[str, type[Plugin]] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}
# Those that come after the choice of a node.
NOT_RUN = ("reserve", "permit", "preBind", "bind", "postBind")


def points_of(kind: type[Plugin]) -> frozenset[str]:
    """The extension points that a plugin implements."""
    return frozenset(point for point, interface in EXTENSION_POINTS.items() if issubclass(kind, interface))


class Victims(NamedTuple):
    """The outcome on one node: Success with victims (most important first), or why preemption does not help there."""

    status: Status
    pods: list[Pod]
    num_violations: int
    steps: list[Reprieve]
    # What every order of equal pods leads to, where it is not known and may lead to other victims.
    outcomes: Outcomes[Pod] | None = None
    # Whether the order of budgets that protect one pod decides what is left of them.
    hangs_on_budget_order: bool = False


class AtOnce(NamedTuple):
    """The victims on many nodes, and what tells the steps on one of them; ``None`` where the plain path alone does."""

    victims: dict[str, Victims]
    steps_of: Callable[[str], list[Reprieve] | None] = lambda _: None


# Finds the victims on those of many nodes that can be answered in one go (``kpreempt.schedulers.kube.bulk``).
DryRunAtOnce = Callable[[CycleState, Pod, Sequence[NodeInfo], "BudgetIndex", Steps | None], AtOnce]


class Handle:
    """What a plugin may look at: the cluster, the gates, the number of workers, and the framework that runs it.

    ``snapshot`` is for out-of-tree plugins; those in the tree look at ``cluster``, which it shows, and at the columns.
    """

    def __init__(self, cluster: ClusterState, behavior: Behaviour, parallelism: int = DEFAULT_PARALLELISM) -> None:
        self.cluster = cluster
        self.behavior = behavior
        self.parallelism = parallelism
        # The ``Framework`` that runs the plugin (``runner.py``), which a preemption calls back.
        self.framework: object = None
        # Columns over all pods and dry runs on them, where the cluster is big enough for these to pay.
        self.tables: LatestTable | None = None
        self.dry_run_at_once: DryRunAtOnce | None = None

    @cached_property
    def snapshot(self) -> SnapshotView:
        """The cluster, to look at only."""
        return SnapshotView(self.cluster)

    @property
    def pod_table(self) -> PodTable | None:
        """Columns over all pods, where the cluster is big enough for these to pay."""
        return self.tables.table if self.tables is not None else None


def normalize_to_max(scores: list[int], *, reverse: bool = False) -> list[int]:
    """Scale scores so that the highest becomes 100, or with ``reverse`` 0 (``plugins/helper/normalize_score.go``)."""
    highest = max(scores, default=0)
    if highest <= 0:
        return [MAX_NODE_SCORE] * len(scores) if reverse else scores
    scaled = [MAX_NODE_SCORE * score // highest for score in scores]
    return [MAX_NODE_SCORE - score for score in scaled] if reverse else scaled


NO_NODES = "no nodes available to schedule pods"


def no_node_message(num_nodes: int, statuses: NodeToStatus, *, pre_filter: str = "", post_filter: str = "") -> str:
    """``0/N nodes are available: …``.

    Reasons are counted over the nodes, written as ``count reason`` and sorted as text. Where PreFilter refused the pod,
    its message stands in their place. ``post_filter`` is appended as it is.
    """
    message = f"0/{num_nodes} nodes are available:"
    if pre_filter:
        message += f" {pre_filter}."
    else:
        counts = statuses.reasons
        absent = num_nodes - statuses.num_rejected
        if absent > 0:
            for reason in statuses.absent.reasons:
                counts[reason] += absent
        # Go sorts by bytes; UTF-8 keeps the order of code points, which is Python's.
        reasons = sorted(f"{count} {reason}" for reason, count in counts.items())
        if reasons:
            message += f" {', '.join(reasons)}."
    return f"{message} {post_filter}" if post_filter else message
