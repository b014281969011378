"""The extension points of the scheduling framework, for in-tree and out-of-tree plugins.

A plugin is a class that derives from the extension points that it implements. It is created once per profile and
cluster, and stores data about a pod only in the ``CycleState``. Follows ``k8s.io/kube-scheduler`` v0.36.3
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
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import Alternatives, Candidate, Code, Eligibility, Odds, Reprieve, Selection, Status

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.pod_table import LatestTable, PodTable
    from kpreempt.schedulers.kube.preemption.importance import BudgetIndex


MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100
DEFAULT_PARALLELISM = 16

# A plugin's arguments in a scheduler configuration, with the API's keys.
PluginArgs = Mapping[str, object]


class PluginError(Exception):
    """A plugin cannot continue; the operation ends with an Error status with this message."""


class FrameworkError(Exception):
    """A step of the scheduling cycle ended with an Error status, which names the plugin and the operation."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class Plugin:
    """Something that the scheduler's configuration can enable by ``name``, by default the class name.

    ``args_type`` is the type into which the configured arguments are decoded; without one, ``args`` are plain data.
    ``extra_fields`` lists objects and annotations that the plugin reads and that a snapshot would otherwise not keep.
    """

    name: str
    args_type: ClassVar[type[msgspec.Struct] | None] = None
    extra_fields: ClassVar[ExtraFields] = NO_EXTRAS
    # Whether the plugin's result for a node, before score normalization, depends only on this node and its pods, on the
    # pod in question without its name and status, and on objects other than pods and budgets.
    is_local: bool = False
    _states_name: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in cls.__dict__:
            cls._states_name = True
        elif not cls._states_name:
            cls.name = cls.__name__

    def __init__(self, args: Any, handle: Handle) -> None:
        """``args`` come from the configuration; ``handle`` has what the plugin may read."""
        self.args = args
        self.handle = handle


class QueueSortPlugin(Plugin, ABC):
    """Sorts the scheduling queue; there is exactly one, shared by all profiles.

    The instance created for the initial cluster is used until a simulation ends, so its ``handle.snapshot`` becomes
    outdated.
    """

    @abstractmethod
    def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        """Return whether ``one`` is tried before ``other``.

        Must not raise: without an order, there is no result at all.
        """


class PreEnqueuePlugin(Plugin, ABC):
    """Gates pods before the scheduler tries them.

    It is called when a pod is added and again after each event; a pod that it admits is not checked again at its turn.
    """

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status:
        """Return Success, or why the pod waits."""


class PreFilterResult(NamedTuple):
    """The only nodes worth evaluating."""

    node_names: frozenset[str]


class PreFilterPlugin(Plugin, ABC):
    """Evaluates the pod once, before the nodes."""

    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Prepare ``state``; Skip skips this plugin's Filter, Unschedulable rejects the pod on all nodes."""

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Update ``state`` after ``added`` was added to the node; may raise ``PluginError``."""

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Update ``state`` after ``removed`` was removed from the node; may raise ``PluginError``."""

    @property
    def has_extensions(self) -> bool:
        """Whether ``add_pod`` and ``remove_pod`` keep this plugin's state exact in a dry run."""
        kind = type(self)
        return kind.add_pod is not PreFilterPlugin.add_pod or kind.remove_pod is not PreFilterPlugin.remove_pod


class FilterPlugin(Plugin, ABC):
    """Decides whether the pod can run on a node."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Return Success, Unschedulable (evictions may help) or UnschedulableAndUnresolvable (they cannot)."""


class NodeToStatus:
    """The rejected nodes, with the status that all other nodes share (``absent``)."""

    def __init__(self) -> None:
        self.statuses: dict[str, Status] = {}
        self.absent = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def get(self, node_name: str) -> Status:
        """Return the node's status, or the shared one."""
        return self.statuses.get(node_name, self.absent)

    @property
    def num_rejected(self) -> int:
        """The number of nodes with their own status."""
        return len(self.statuses)

    @property
    def reasons(self) -> Counter[str]:
        """Count for how many of these nodes each reason is given."""
        return Counter(chain.from_iterable(map(attrgetter("reasons"), self.statuses.values())))

    def copy(self) -> NodeToStatus:
        """Return a copy that can be changed independently."""
        copy = NodeToStatus()
        copy.statuses, copy.absent = dict(self.statuses), self.absent
        return copy


class PreemptionEvidence(NamedTuple):
    """What a preemption evaluated and decided.

    ``eviction_rule`` is the plugin that decides which pods may be evicted, if priority does not.
    """

    eligibility: Eligibility
    potential_nodes: list[str]
    dry_run: dict[str, Status]
    candidates: list[Candidate]
    selection: Selection | None
    odds: Odds | None = None
    eviction_rule: str = ""
    alternatives: Alternatives | None = None
    # Whether the order of budgets that protect the same pod affects their remaining disruptions.
    depends_on_budget_order: bool = False


class PostFilterResult(NamedTuple):
    """A PostFilter's result for the pod.

    ``nominated_node_names`` are all nodes that may be chosen; an empty list clears an earlier nomination, and ``None``
    leaves it unchanged. ``reported_node`` is the one named in the message, if any.
    """

    nominated_node_names: list[str] | None
    evidence: PreemptionEvidence | None = None
    reported_node: str = ""


class PostFilterPlugin(Plugin, ABC):
    """Tries to free resources after no node was found."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Return Success with the nominated nodes, Unschedulable to let the next plugin try, or an error."""


class PreScorePlugin(Plugin, ABC):
    """Evaluates the pod and the feasible nodes once, before scoring."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Prepare ``state``; Skip skips this plugin's Score."""


class ScorePlugin(Plugin, ABC):
    """Scores a node."""

    # Whether a normalized score depends only on the score before, and on the lowest and the highest one.
    scales_to_extremes: ClassVar[bool] = False

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the node's score, 0 to 100 unless ``normalize_scores`` scales it."""

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Return all nodes' scores scaled to 0..100, in the order of ``nodes``."""
        return scores


class ReservePlugin(Plugin):
    """Reserves something for a pod on its node; recognized but not run in a what-if."""


class PermitPlugin(Plugin):
    """Delays a pod's binding; recognized but not run in a what-if."""


class PreBindPlugin(Plugin):
    """Prepares a pod's binding; recognized but not run in a what-if."""


class BindPlugin(Plugin):
    """Binds a pod; recognized but not run in a what-if."""


class PostBindPlugin(Plugin):
    """Is notified that a pod was bound; recognized but not run in a what-if."""


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
# The points that come after a node is chosen.
NOT_RUN = ("reserve", "permit", "preBind", "bind", "postBind")


def points_of(kind: type[Plugin]) -> frozenset[str]:
    """Return the extension points that a plugin implements."""
    return frozenset(point for point, interface in EXTENSION_POINTS.items() if issubclass(kind, interface))


class Victims(NamedTuple):
    """The outcome on one node: Success with victims (most important first), or why preemption does not help there."""

    status: Status
    pods: list[Pod]
    num_violations: int
    steps: list[Reprieve]
    # What every order of equal pods leads to, if the order is unknown and may change the victims.
    outcomes: Outcomes[Pod] | None = None
    # Whether the order of budgets that protect the same pod affects their remaining disruptions.
    depends_on_budget_order: bool = False


class HelpfulNode(NamedTuple):
    """A node where preemption helps: the number of violations, the priority of the first victim, and the victims."""

    num_violations: int
    priority: int
    victims: Callable[[], Victims]


class BriefDryRun(NamedTuple):
    """The nodes where preemption helps and where it does not, by name, without the reasons.

    ``selected`` is how many evictable pods each budget, given by its position, selects on helpful nodes. On ``timed``
    nodes, one lacks a start time, so that the current time is used.
    """

    helpful: dict[str, HelpfulNode]
    useless: list[str]
    selected: dict[int, dict[str, int]]
    timed: list[str]


class BulkDryRun(NamedTuple):
    """The victims on many nodes, and a function that lists the steps on one node.

    It returns ``None`` if only the ordinary path can list them. ``brief`` is the result instead if no more is needed.
    """

    victims: dict[str, Victims]
    steps_of: Callable[[str], list[Reprieve] | None] = lambda _: None
    brief: BriefDryRun = BriefDryRun({}, [], {}, [])


# Finds the victims on those of many nodes that can be evaluated in bulk (``kpreempt.schedulers.kube.bulk``).
# The last argument is whether a brief result is enough if preemption helps on some of them.
DryRunAtOnce = Callable[[CycleState, Pod, Sequence[NodeInfo], "BudgetIndex", Steps | None, bool], BulkDryRun]


class Handle:
    """What a plugin may read: the cluster, the gates, the number of workers, and the framework that runs it.

    ``snapshot`` is for out-of-tree plugins; in-tree plugins read ``cluster``, which it wraps, and the columns.
    """

    def __init__(self, cluster: ClusterState, behavior: Behavior, parallelism: int = DEFAULT_PARALLELISM) -> None:
        self.cluster = cluster
        self.behavior = behavior
        self.parallelism = parallelism
        # The ``Framework`` that runs the plugin (``runner.py``), which a preemption calls back.
        self.framework: object = None
        # Columns over all pods and bulk dry runs, if the cluster is big enough to benefit.
        self.tables: LatestTable | None = None
        self.dry_run_at_once: DryRunAtOnce | None = None

    @cached_property
    def snapshot(self) -> SnapshotView:
        """A read-only view of the cluster."""
        return SnapshotView(self.cluster)

    @property
    def pod_table(self) -> PodTable | None:
        """Columns over all pods, if the cluster is big enough to benefit."""
        return self.tables.table if self.tables is not None else None


def normalize_to_max(scores: list[int], *, reverse: bool = False) -> list[int]:
    """Scale scores so that the highest becomes 100, or 0 with ``reverse`` (``plugins/helper/normalize_score.go``)."""
    highest = max(scores, default=0)
    if highest <= 0:
        return [MAX_NODE_SCORE] * len(scores) if reverse else scores
    scaled = [MAX_NODE_SCORE * score // highest for score in scores]
    return [MAX_NODE_SCORE - score for score in scaled] if reverse else scaled


NO_NODES = "no nodes available to schedule pods"


def no_node_message(num_nodes: int, statuses: NodeToStatus, *, pre_filter: str = "", post_filter: str = "") -> str:
    """Format ``0/N nodes are available: …``.

    Reasons are counted over the nodes, written as ``count reason`` and sorted as text. If PreFilter rejected the pod,
    its message replaces them. ``post_filter`` is appended unchanged.
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
        # Go sorts by bytes; UTF-8 preserves the order of code points, which Python uses.
        reasons = sorted(f"{count} {reason}" for reason, count in counts.items())
        if reasons:
            message += f" {', '.join(reasons)}."
    return f"{message} {post_filter}" if post_filter else message
