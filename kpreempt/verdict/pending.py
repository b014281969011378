"""The pods that wait to be scheduled: their order, why they are pending, and the outcome of each."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from kpreempt.verdict.autoscaling import Autoscaling
from kpreempt.verdict.base import Record
from kpreempt.verdict.node_report import NodeKind
from kpreempt.verdict.records import API_VERSION, Alternatives, Assumption, ClusterSummary, Victim
from kpreempt.verdict.rejections import RejectedNodes
from kpreempt.verdict.remedies import Cause, Remedy, RemedySearch
from kpreempt.verdict.served import InTurn, ServedQueue
from kpreempt.verdict.status import Outcome
from kpreempt.verdict.waiting import PendingOnNode, PendingResize, PendingState, TerminatingPod
from kpreempt.verdict.workload import MissingPods, PreemptionsBetween, Replacement

# The states that say more about a pod than its outcome.
SHOWN_STATES = (
    PendingState.BEING_DELETED,
    PendingState.NO_SCHEDULER,
    PendingState.GATED,
    PendingState.HELD,
    PendingState.WAITS_FOR_VICTIMS,
)


class QueueTimeSource(StrEnum):
    """The source of the time that orders pods of one priority.

    The scheduler uses the last attempt. ``Event`` is the last reported one. ``Condition`` is when attempts started to
    fail, ``Creation`` when the pod was created: both may be earlier than the last attempt.
    """

    EVENT = "Event"
    CONDITION = "Condition"
    CREATION = "Creation"
    NONE = "None"


class Agreement(StrEnum):
    """How the scheduler's last message compares with the predicted one.

    ``SameReasonsDifferentCounts``: the same reasons with different node counts. ``None``: one of the two messages is
    missing.
    """

    SAME = "Same"
    SAME_REASONS_DIFFERENT_COUNTS = "SameReasonsDifferentCounts"
    DIFFERENT = "Different"
    NONE = "None"


class PendingPod(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that has no node yet.

    ``position`` counts from 1 in the order in which the queue would attempt the pods; it is missing for pods that are
    not in the queue. ``since`` is when the state began, ``until`` when it ends at the latest, if known.
    ``last_attempt`` is the last reported attempt. ``cause`` groups pods with the same state or the same reasons.
    ``held_by`` is the plugin that holds it back. ``in_turn`` is what becomes of it when the whole queue is served. The
    verdict is on this pod alone, as if it were next: ``nodes`` are those it can end up on, and ``victims`` are given
    for each; ``permanently_unschedulable`` is as in a verdict. ``scheduler_message`` is the scheduler's last message,
    ``message`` the predicted one.

    ``reasons`` counts the nodes that reject it by reason, most frequent first; ``rejections`` are the same nodes with
    what they lack, if it stays pending; ``claims`` are those that keep it from a
    node (``PersistentVolumeClaim shop/data``). ``causes`` are facts behind the rejections. ``remedies`` are changes
    with which an unschedulable pod lands, in an expert's order, and ``remedy_search`` says how thorough the search was;
    it is missing if there was none. ``replaces`` is the preempted pod that it replaces.
    """

    pod: str
    priority: int = 0
    priority_class_name: str = ""
    owner: str = ""
    requests: dict[str, int] = {}
    created: datetime | None = None
    position: int | None = None
    queue_time: datetime | None = None
    queue_time_source: QueueTimeSource = QueueTimeSource.NONE
    state: PendingState
    since: datetime | None = None
    until: datetime | None = None
    last_attempt: datetime | None = None
    gates: list[str] = []
    held_by: str = ""
    scheduler_name: str = ""
    nominated_node_name: str = ""
    waiting_for: list[TerminatingPod] = []
    in_turn: InTurn | None = None
    cause: str = ""
    outcome: Outcome
    permanently_unschedulable: bool = False
    reason: str = ""
    nodes: list[str] = []
    victims: dict[str, list[Victim]] = {}
    num_pdb_violations: int = msgspec.field(name="numPDBViolations", default=0)
    alternatives: Alternatives | None = None
    reasons: dict[str, int] = {}
    rejections: list[RejectedNodes] = []
    claims: list[str] = []
    causes: list[Cause] = []
    remedies: list[Remedy] = []
    remedy_search: RemedySearch | None = None
    message: str = ""
    scheduler_message: str = ""
    agreement: Agreement = Agreement.NONE
    replaces: Replacement | None = None


class PendingGroup(Record, frozen=True):
    """The names of pending pods with the same cause, in queue order.

    ``state`` is set if it says more than the outcome; the pods of the group share it, and
    ``permanently_unschedulable``.
    """

    cause: str
    outcome: Outcome
    state: PendingState | None
    pods: list[str]
    permanently_unschedulable: bool = False


class PendingChangeKind(StrEnum):
    """The change to a pod since an earlier poll.

    ``Removed``: the pod was deleted or finished, and was never seen on a node.
    """

    LANDED = "Landed"
    REMOVED = "Removed"
    NEW = "New"
    CHANGED = "Changed"


class PendingChange(Record, frozen=True, omit_defaults=True):
    """A pod whose state changed.

    ``node`` is where it landed; ``outcome`` and ``state`` are the earlier ones of a pod that is still pending.
    """

    pod: str
    change: PendingChangeKind
    node: str = ""
    outcome: Outcome | None = None
    state: PendingState | None = None


class PendingChanges(Record, frozen=True):
    """The changes since an earlier poll; ``since`` is the time of that poll."""

    since: datetime | None
    items: list[PendingChange]


class NodesOfKind(Record, frozen=True):
    """The number of new nodes of a kind."""

    kind: NodeKind
    count: int


class MoreNodes(Record, frozen=True, omit_defaults=True):
    """The numbers and kinds of new nodes on which the pending pods would land, all in one run and without evictions.

    ``pods`` are those that they place, in queue order; ``unplaced`` fit on no tested kind of new node. Of ``num_kinds``
    kinds, ``untried`` were not tested. ``options`` make ``kpreempt pending`` add the nodes. ``not_searched`` says why
    nothing was searched, or that the search was stopped; ``assumed`` are additional assumptions.
    """

    nodes: list[NodesOfKind] = []
    pods: list[str] = []
    unplaced: list[str] = []
    options: list[str] = []
    num_kinds: int = 0
    untried: int = 0
    not_searched: str = ""
    assumed: list[str] = []


class WorkloadCounts(Record, frozen=True):
    """Kueue's Workloads that are not finished: without and with admission."""

    pending: int
    admitted: int


class PendingPods(Record, frozen=True, kw_only=True):
    """All requested pending pods, in the order in which the scheduler would attempt them.

    ``groups`` are the same pods by cause, the group with the first pod of the queue first. ``in_queue`` counts the
    whole queue, including pods that were not requested. ``at`` is the time of the answer. ``namespace`` is the
    requested one, empty for all; ``has_namespace`` says whether it exists, if known. ``other_namespaces`` counts the
    other pending pods by namespace. ``served`` is the whole queue, served in its order. ``changes`` is set if this is
    one of several polls. ``more_nodes`` says how many nodes like those of the cluster would place the pending pods; it
    is missing if none waits for a node. ``on_nodes`` are the requested pods that have a node and are still pending,
    which the scheduler does not wait for; ``resizes`` are running ones whose in-place resize is pending. ``workloads``
    counts Kueue's Workloads, if there are any. ``autoscaling`` is what node autoscalers report about the unschedulable
    pods, if there are any.

    ``preemptions`` are as in ``PodsAtRisk``.
    ``missing_pods`` are the controllers that want pods and have not created them, and why; ``unread_owners`` the kinds
    of controllers that are not in the input, so that their missing pods are unknown.
    """

    api_version: str = API_VERSION
    kind: str = "PendingPods"
    algorithm: str = ""
    at: datetime | None = None
    cluster: ClusterSummary = ClusterSummary()
    in_queue: int = 0
    namespace: str = ""
    has_namespace: bool | None = None
    other_namespaces: dict[str, int] = {}
    groups: list[PendingGroup] = []
    items: list[PendingPod] = []
    on_nodes: list[PendingOnNode] = []
    workloads: WorkloadCounts | msgspec.UnsetType = msgspec.UNSET
    served: ServedQueue = ServedQueue()
    more_nodes: MoreNodes | msgspec.UnsetType = msgspec.UNSET
    autoscaling: Autoscaling | msgspec.UnsetType = msgspec.UNSET
    resizes: list[PendingResize] = []
    preemptions: list[PreemptionsBetween] = []
    missing_pods: list[MissingPods] = []
    unread_owners: list[str] = []
    assumptions: list[Assumption] = []
    changes: PendingChanges | msgspec.UnsetType = msgspec.UNSET
