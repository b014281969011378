"""What draining nodes would do to a cluster: whether they get empty, what blocks them, and what would help."""

from __future__ import annotations

from enum import StrEnum

from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.check import Check


class BlockReason(StrEnum):
    """Why an eviction is refused for ever.

    ``NeverAllows``: the budget wants all of the pods that there are to be. ``SingleReplica``: that is one pod.
    ``NoRoom``: pods of the budget are pending. ``NotReady``: some run and are not ready. ``TooFew``: there are fewer
    than there are to be, and nothing makes more. ``SeveralBudgets``: the API server evicts no pod with two budgets.
    ``NoScale``: the budget's controller cannot reckon how many pods there are to be. ``Terminating``: its namespace is
    on its way out. ``NotChosen``: ``kubectl drain`` refuses the node for pods that an option has to allow.
    ``TimedOut``: the pod was told to go, and is still there. ``Other``: the API server's words say it.
    """

    NEVER_ALLOWS = "NeverAllows"
    SINGLE_REPLICA = "SingleReplica"
    NO_ROOM = "NoRoom"
    NOT_READY = "NotReady"
    TOO_FEW = "TooFew"
    SEVERAL_BUDGETS = "SeveralBudgets"
    NO_SCALE = "NoScale"
    TERMINATING = "Terminating"
    NOT_CHOSEN = "NotChosen"
    TIMED_OUT = "TimedOut"
    OTHER = "Other"


class UnblockAction(StrEnum):
    """What is done: a field of a budget set, a workload scaled, an object deleted, a node added, an option given."""

    SET = "Set"
    SCALE = "Scale"
    DELETE = "Delete"
    ADD_NODE = "AddNode"
    OPTION = "Option"


class Unblock(SparseRecord, frozen=True, kw_only=True):
    """A change that lets the evictions go on, proved by simulating the drain with it.

    ``target`` is the object (``PodDisruptionBudget shop/api``), of ``AddNode`` the node that the new one is like, of
    ``Option`` the option of ``kubectl drain``. ``field`` (``maxUnavailable``) takes the place of the other one of a
    budget. ``finishes`` where the whole drain comes to its end with this change alone; ``left_pending`` pods that ran
    have no node then.
    """

    action: UnblockAction
    target: str
    field: str = ""
    value: int | str = ""
    finishes: bool = False
    left_pending: int = 0


class BlockedEviction(SparseRecord, frozen=True, kw_only=True):
    """Pods of a node that are not evicted, all for one reason.

    ``budgets`` are those that refuse, ``message`` is the API server's (or ``kubectl``'s), ``cause`` what it says of the
    budget. Of that ``healthy`` pods are counted in the end, ``desired`` wanted, ``expected`` are to be. ``pending`` are
    pods of it without a node, with the scheduler's ``pending_message``, ``unready`` those that run and are not ready.
    ``since`` is the second of the first refusal. ``remedies`` has the smallest change first; none where no single one
    that was tried helps.
    """

    node: str
    reason: BlockReason
    pods: list[str]
    budgets: list[str] = []
    workloads: list[str] = []
    message: str = ""
    cause: str = ""
    healthy: int = 0
    desired: int = 0
    expected: int = 0
    pending: list[str] = []
    pending_message: str = ""
    unready: list[str] = []
    since: float = 0.0
    remedies: list[Unblock] = []


class DrainedNode(SparseRecord, frozen=True, kw_only=True):
    """A node of the drain. ``began`` and ``ended`` are seconds, ``None`` where it does not come to that.

    It is ``drained`` where it ended without an error. ``evicted`` counts the pods that were told to go, ``left`` are
    those that should have gone and are still there; ``stays`` counts pods that a drain leaves alone, of DaemonSets and
    static ones. ``errors`` and ``warnings`` are kubectl's.
    """

    node: str
    drained: bool = False
    began: float | None = None
    ended: float | None = None
    evicted: int = 0
    left: list[str] = []
    stays: int = 0
    errors: list[str] = []
    warnings: list[str] = []


class KeepRule(StrEnum):
    """By which documented rule an autoscaler leaves the node of a pod.

    Of Cluster Autoscaler: ``NotSafeToEvict`` (the annotation ``cluster-autoscaler.kubernetes.io/safe-to-evict`` is
    false), ``NoController``, ``SystemPod`` (of kube-system, without a budget) and ``LocalStorage`` (hostPath, or
    emptyDir on disk). Of Karpenter: ``DoNotDisrupt`` (``karpenter.sh/do-not-disrupt`` is true).
    """

    NOT_SAFE_TO_EVICT = "NotSafeToEvict"
    NO_CONTROLLER = "NoController"
    SYSTEM_POD = "SystemPod"
    LOCAL_STORAGE = "LocalStorage"
    DO_NOT_DISRUPT = "DoNotDisrupt"


class Keep(SparseRecord, frozen=True, kw_only=True):
    """A pod for whose sake a node is left, and by which rule."""

    rule: KeepRule
    pod: str


class NotGoing(StrEnum):
    """Why a node cannot go beside those that go already.

    ``Blocked``: a budget keeps a pod on it. ``Pending``: a pod has no node in the end. ``Preempts``: other pods have to
    go. ``Budgets``: a budget is broken. ``NotTried``: there were too many nodes to try them all.
    """

    BLOCKED = "Blocked"
    PENDING = "Pending"
    PREEMPTS = "Preempts"
    BUDGETS = "Budgets"
    NOT_TRIED = "NotTried"


class NodeRemoval(SparseRecord, frozen=True, kw_only=True):
    """Whether a node can go (``--remove``): not where a rule ``keeps`` it, nor for ``why``. ``moves`` pods move."""

    node: str
    goes: bool = False
    keeps: list[Keep] = []
    why: NotGoing | None = None
    moves: int = 0


class DrainOrder(SparseRecord, frozen=True, kw_only=True):
    """The order of an upgrade's nodes that was found to displace least (``--best-order``), in a greedy search.

    In one run ``displaced`` pods are evicted or preempted, and ``displaced_as_given`` in the order that was given. The
    last nodes, ``unsearched`` of them, are as they were given: there were too many to try them all.
    """

    nodes: list[str]
    displaced: int = 0
    displaced_as_given: int = 0
    unsearched: int = 0


class Drain(Check, frozen=True, kw_only=True, omit_defaults=False):
    """The answer of ``kpreempt drain``: that of a check, whose change is that nodes are drained.

    ``command`` is the drain that was simulated. It ``finishes`` where every node gets empty in every run. ``moved``
    pods are evicted by the drain, ``preempted`` ones by the scheduler for those that come in their place,
    ``left_pending`` ran before and have no node in the end. ``at_least`` is how many seconds it takes at least;
    ``None`` where it never ends. ``deletes_data_of`` are pods whose emptyDir goes with them. ``untried`` counts blocked
    evictions for which no remedy was looked for, for there are many. Where it was asked which nodes can go,
    ``removals`` has each of them, and the drain is that of those that do. Where it was asked for the best ``order``,
    that is the one in which the nodes are drained.
    """

    kind: str = "Drain"
    command: str = ""
    finishes: bool = False
    moved: int = 0
    preempted: int = 0
    left_pending: int = 0
    at_least: float | None = None
    drained: list[DrainedNode] = []
    blocked: list[BlockedEviction] = []
    deletes_data_of: list[str] = []
    untried: int = 0
    removals: list[NodeRemoval] = []
    order: DrainOrder | None = None
