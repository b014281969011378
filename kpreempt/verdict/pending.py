"""The pods that wait to be scheduled: in which order, why still, and what becomes of each."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Alternatives, Assumption, ClusterSummary, Victim
from kpreempt.verdict.status import Outcome
from kpreempt.verdict.story import NodeKind, Proposal, ProposalSearch


class PendingState(StrEnum):
    """Why a pod is still pending.

    ``Held`` is by a plugin other than scheduling gates. ``Nominated``: the node that the pod is nominated to still
    helps, though none of its victims there is terminating. ``StaleNomination``: it no longer helps. ``BackingOff``:
    tried moments ago. ``WaitsForChange``: tried, and not again before something changes. ``FitsNow``: tried, and it
    would land if it were tried now.
    """

    BEING_DELETED = "BeingDeleted"
    NO_SCHEDULER = "NoScheduler"
    GATED = "Gated"
    HELD = "Held"
    WAITS_FOR_VICTIMS = "WaitsForVictims"
    NOMINATED = "Nominated"
    STALE_NOMINATION = "StaleNomination"
    NEVER_TRIED = "NeverTried"
    BACKING_OFF = "BackingOff"
    FITS_NOW = "FitsNow"
    WAITS_FOR_CHANGE = "WaitsForChange"


# Those that say more of a pod than what would become of it.
TELLING_STATES = (
    PendingState.BEING_DELETED,
    PendingState.NO_SCHEDULER,
    PendingState.GATED,
    PendingState.HELD,
    PendingState.WAITS_FOR_VICTIMS,
)


class QueueTimeSource(StrEnum):
    """What the time comes from by which pods of one priority are ordered.

    The scheduler takes the last attempt. ``Event`` is the last one that was reported. ``Condition`` is when attempts
    began to fail, ``Creation`` when the pod was made: both may be earlier than the last attempt.
    """

    EVENT = "Event"
    CONDITION = "Condition"
    CREATION = "Creation"
    NONE = "None"


class Agreement(StrEnum):
    """How the scheduler's last message compares with the one that is expected now.

    ``Counts``: the same reasons, on other numbers of nodes. ``None``: one of the two says nothing.
    """

    SAME = "Same"
    COUNTS = "Counts"
    DIFFERENT = "Different"
    NONE = "None"


class Leaving(Record, frozen=True):
    """A pod that is on its way out.

    ``since`` is when its deletion began, ``until`` when its grace period ends. ``finalizers`` keep the object even
    after that. ``is_preempted`` says that a scheduler evicted it; the scheduler itself waits for no others.
    """

    pod: str
    priority: int
    since: datetime | None = None
    until: datetime | None = None
    finalizers: list[str] = []
    is_preempted: bool = True


class PendingPod(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that has no node yet.

    ``position`` counts from 1 in the order in which the queue would try the pods; it is missing for those that are not
    in the queue. ``since`` is when the state began, ``until`` when it ends at the latest, as far as that is known.
    ``last_tried`` is the last attempt that was reported. ``cause`` puts pods together: the same state or the same
    reasons. ``held_by`` is the plugin that holds it back. The verdict is on this pod alone, as if it came next:
    ``nodes`` are those it can end on, ``victims`` are given for each; ``refused_for_good`` is as in a verdict.
    ``scheduler_message`` is what the scheduler said last, ``message`` what it is expected to say now.

    ``reasons`` counts the nodes that refuse it for each reason, the most frequent first; ``claims`` are those that keep
    it from a node (``PersistentVolumeClaim shop/data``). ``proposals`` are changes with which a pod lands that is
    unschedulable, the least intrusive first, and ``proposal_search`` says how far they were sought; it is missing where
    they were not.
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
    last_tried: datetime | None = None
    gates: list[str] = []
    held_by: str = ""
    scheduler_name: str = ""
    nominated_node_name: str = ""
    waiting_for: list[Leaving] = []
    cause: str = ""
    outcome: Outcome
    refused_for_good: bool = False
    reason: str = ""
    nodes: list[str] = []
    victims: dict[str, list[Victim]] = {}
    num_pdb_violations: int = msgspec.field(name="numPDBViolations", default=0)
    alternatives: Alternatives | None = None
    reasons: dict[str, int] = {}
    claims: list[str] = []
    proposals: list[Proposal] = []
    proposal_search: ProposalSearch | None = None
    message: str = ""
    scheduler_message: str = ""
    agreement: Agreement = Agreement.NONE


class PendingGroup(Record, frozen=True):
    """Pending pods of one cause, by name, in the order of the queue.

    ``state`` is there where it says more than the outcome: the pods of the group share it, and ``refused_for_good``.
    """

    cause: str
    outcome: Outcome
    state: PendingState | None
    pods: list[str]
    refused_for_good: bool = False


class PendingChangeKind(StrEnum):
    """What became of a pod since an earlier look. ``Gone``: deleted or finished without a look at it on a node."""

    LANDED = "Landed"
    GONE = "Gone"
    NEW = "New"
    CHANGED = "Changed"


class PendingChange(Record, frozen=True, omit_defaults=True):
    """A pod of which something else is to say than before.

    ``node`` is where it landed; ``outcome`` and ``state`` are those before, of one that is still pending.
    """

    pod: str
    change: PendingChangeKind
    node: str = ""
    outcome: Outcome | None = None
    state: PendingState | None = None


class PendingChanges(Record, frozen=True):
    """What changed since an earlier look, which was ``since``."""

    since: datetime | None
    items: list[PendingChange]


class NodesOfKind(Record, frozen=True):
    """So many new nodes of a kind."""

    kind: NodeKind
    count: int


class MoreNodes(Record, frozen=True, omit_defaults=True):
    """How many new nodes, and of which kinds, place pods that wait, all in one run and without an eviction.

    ``pods`` are those that they place, in the order of the queue; ``unplaced`` fit on no new node of any kind that was
    tried. Of ``num_kinds`` there are, ``untried`` were left out. ``options`` make ``kpreempt pending`` add the nodes.
    ``not_sought`` says why nothing was sought, or that the search gave up; ``assumed`` what this rests on besides.
    """

    nodes: list[NodesOfKind] = []
    pods: list[str] = []
    unplaced: list[str] = []
    options: list[str] = []
    num_kinds: int = 0
    untried: int = 0
    not_sought: str = ""
    assumed: list[str] = []


class PendingPods(Record, frozen=True, kw_only=True):
    """Every pending pod that was asked about, in the order in which the queue would try them.

    ``groups`` are the same pods by cause, those with the first pod of the queue first. ``in_queue`` counts the whole
    queue, also pods that were not asked about. ``at`` is the time that the answer is for. ``namespace`` is the one that
    was asked about, empty for all; ``has_namespace`` says whether there is one of that name, as far as that is known.
    ``not_asked`` counts the other pending pods by namespace. ``changes`` are there where this is one of several looks.
    ``more_nodes`` says how many nodes like those of the cluster would place the pods that wait; it is missing where
    none waits for a node.
    """

    api_version: str = API_VERSION
    kind: str = "PendingPods"
    algorithm: str = ""
    at: datetime | None = None
    cluster: ClusterSummary = ClusterSummary()
    in_queue: int = 0
    namespace: str = ""
    has_namespace: bool | None = None
    not_asked: dict[str, int] = {}
    groups: list[PendingGroup] = []
    items: list[PendingPod] = []
    more_nodes: MoreNodes | msgspec.UnsetType = msgspec.UNSET
    assumptions: list[Assumption] = []
    changes: PendingChanges | msgspec.UnsetType = msgspec.UNSET
