"""What draining nodes would do to a cluster: whether the drains finish, what blocks them, and how to fix it."""

from __future__ import annotations

from enum import StrEnum

from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.check import Check
from kpreempt.verdict.remedies import Remedy, RemedySearch


class BlockReason(StrEnum):
    """Why an eviction is rejected permanently.

    ``NeverAllows``: the budget requires all expected pods. ``SingleReplica``: the budget requires its only expected
    pod. ``PodsPending``: pods of the budget are pending. ``PodsNotReady``: pods of the budget are running but not
    ready. ``TooFewPods``: fewer pods exist than expected, and nothing creates more. ``MultipleBudgets``: the eviction
    API rejects pods with several budgets. ``NoScale``: the disruption controller cannot compute the number of expected
    pods. ``Terminating``: the namespace is terminating. ``OptionRequired``: ``kubectl drain`` rejects the node because
    of pods that require an option. ``TimedOut``: the pod was evicted, but is still terminating. ``Other``: the reason
    is in the API server's message.
    """

    NEVER_ALLOWS = "NeverAllows"
    SINGLE_REPLICA = "SingleReplica"
    PODS_PENDING = "PodsPending"
    PODS_NOT_READY = "PodsNotReady"
    TOO_FEW_PODS = "TooFewPods"
    MULTIPLE_BUDGETS = "MultipleBudgets"
    NO_SCALE = "NoScale"
    TERMINATING = "Terminating"
    OPTION_REQUIRED = "OptionRequired"
    TIMED_OUT = "TimedOut"
    OTHER = "Other"


class BlockedEviction(SparseRecord, frozen=True, kw_only=True):
    """A node's pods that cannot be evicted, all for the same reason.

    ``budgets`` are the budgets that reject the eviction, ``message`` is the API server's (or ``kubectl``'s), and
    ``cause`` is its detail on the budget. Of the budget's pods, ``current_healthy`` are healthy at the end,
    ``desired_healthy`` are required, and ``expected_pods`` are expected. ``pending`` are its pods without a node, with
    the scheduler's ``pending_message``, and ``unready`` those that run but are not ready. ``since`` is the second of
    the first rejection. ``manager`` is the custom resource (``Cluster db/pg``) that owns the pods: its operator may
    move them when the node is cordoned, which is not simulated, and ``advice`` is what to do with it. ``is_ahead``: the
    drain does not get this far; this would block it once everything before is out of the way. Each of the ``remedies``
    lets these pods go.
    """

    node: str
    reason: BlockReason
    pods: list[str]
    budgets: list[str] = []
    workloads: list[str] = []
    message: str = ""
    cause: str = ""
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    pending: list[str] = []
    pending_message: str = ""
    unready: list[str] = []
    since: float = 0.0
    manager: str = ""
    advice: str = ""
    is_ahead: bool = False
    remedies: list[Remedy] = []


class DrainedNode(SparseRecord, frozen=True, kw_only=True):
    """A node in the drain, and the result of draining it.

    ``began`` and ``ended`` are in seconds, ``None`` if that never happens.

    It is ``drained`` if it ended without an error. ``evicted`` counts the evicted pods, ``remaining`` are those that
    should have been evicted but remain; ``ignored`` counts the pods that a drain ignores: DaemonSet and static pods.
    ``errors`` and ``warnings`` are kubectl's.
    """

    node: str
    drained: bool = False
    began: float | None = None
    ended: float | None = None
    evicted: int = 0
    remaining: list[str] = []
    ignored: int = 0
    errors: list[str] = []
    warnings: list[str] = []


class AutoscalerRule(StrEnum):
    """The documented rule by which an autoscaler does not remove the node of a pod.

    Cluster Autoscaler: ``NotSafeToEvict`` (the annotation ``cluster-autoscaler.kubernetes.io/safe-to-evict`` is false),
    ``NoController``, ``SystemPod`` (in kube-system, without a budget) and ``LocalStorage`` (hostPath, or emptyDir on
    disk). Karpenter: ``DoNotDisrupt`` (``karpenter.sh/do-not-disrupt`` is true).
    """

    NOT_SAFE_TO_EVICT = "NotSafeToEvict"
    NO_CONTROLLER = "NoController"
    SYSTEM_POD = "SystemPod"
    LOCAL_STORAGE = "LocalStorage"
    DO_NOT_DISRUPT = "DoNotDisrupt"


class BlockingPod(SparseRecord, frozen=True, kw_only=True):
    """A pod that prevents the removal of its node, and the rule that applies."""

    rule: AutoscalerRule
    pod: str


class RemovalBlocker(StrEnum):
    """Why a node cannot be removed in addition to those already selected.

    ``Blocked``: a budget blocks an eviction. ``Pending``: a pod would have no node at the end. ``Preempts``: other pods
    would be preempted. ``Budgets``: a budget would be violated. ``NotTried``: there were too many nodes to try.
    """

    BLOCKED = "Blocked"
    PENDING = "Pending"
    PREEMPTS = "Preempts"
    BUDGETS = "Budgets"
    NOT_TRIED = "NotTried"


class NodeRemoval(SparseRecord, frozen=True, kw_only=True):
    """Whether a node can be removed (``--remove``), or what prevents it: ``blocking_pods`` or the ``blocker``.

    The ``blocker`` is caused by ``pods`` (those that are blocked, pending or preempted) and ``budgets``. ``moved`` is
    the number of pods that move.
    """

    node: str
    is_removable: bool = False
    blocking_pods: list[BlockingPod] = []
    blocker: RemovalBlocker | None = None
    pods: list[str] = []
    budgets: list[str] = []
    moved: int = 0


class DrainOrder(SparseRecord, frozen=True, kw_only=True):
    """The node order that displaces the fewest pods in an upgrade (``--best-order``), found by a greedy search.

    In one run, ``displaced`` pods are evicted or preempted, and ``displaced_in_given_order`` in the given order. The
    last ``unsearched`` nodes keep the given order, because there were too many to try.
    """

    nodes: list[str]
    displaced: int = 0
    displaced_in_given_order: int = 0
    unsearched: int = 0


class Drain(Check, frozen=True, kw_only=True, omit_defaults=False):
    """The answer of ``kpreempt drain``: a check in which the change drains nodes.

    ``command`` is the simulated drain. It ``finishes`` if every node is drained in every run. ``moved`` pods are
    evicted by the drain, ``preempted`` ones by the scheduler for their replacements, and ``pending_after`` were running
    before and have no node at the end. ``min_seconds`` is the minimum duration in seconds, ``None`` if the drain never
    ends. ``pods_losing_data`` are pods whose emptyDir is deleted with them. With each of the ``remedies``, the whole
    drain finishes; ``search`` says how thoroughly remedies were searched. If removable nodes were requested,
    ``removals`` has each node, and the drain is that of the removable ones. If the best ``order`` was requested, the
    nodes are drained in that order.
    """

    kind: str = "Drain"
    command: str = ""
    finishes: bool = False
    moved: int = 0
    preempted: int = 0
    pending_after: int = 0
    min_seconds: float | None = None
    drained: list[DrainedNode] = []
    blocked: list[BlockedEviction] = []
    pods_losing_data: list[str] = []
    remedies: list[Remedy] = []
    search: RemedySearch = RemedySearch()
    removals: list[NodeRemoval] = []
    order: DrainOrder | None = None
