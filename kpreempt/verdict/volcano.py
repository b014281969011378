"""A session of Volcano's scheduler: its initial state, every action, and its results.

Amounts are by resource: CPU and scalars in thousandths, memory in bytes; -1 means no limit. Tasks are pods and jobs are
pod groups, both as ``namespace/name``.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.records import API_VERSION, Assumption
from kpreempt.verdict.remedies import Remedy, RemedySearch

Amounts = dict[str, float]


class JobState(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A job at a point in time. ``tasks`` counts them by status.

    ``ready_num`` tasks hold their resources, have succeeded, or are pending without requests; ``waiting_num`` tasks
    wait for resources that are being freed. ``valid`` to ``starving`` are the combined results of the plugins.
    """

    queue: str
    priority: int
    min_available: int
    phase: str
    tasks: dict[str, int]
    ready_num: int
    waiting_num: int
    valid: bool
    ready: bool
    pipelined: bool
    starving: bool
    allocated: Amounts
    # Its dominant share as computed by drf; missing without that plugin.
    share: float | msgspec.UnsetType = msgspec.UNSET


class QueueState(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A queue with jobs at a point in time, as computed by the proportion plugin.

    ``share`` is the largest fraction of its deserved amount that it uses of any resource. ``overused``: it uses all
    that it deserves of every resource.
    """

    weight: int
    share: float
    deserved: Amounts
    allocated: Amounts
    request: Amounts
    overused: bool
    # The maximum the queue may use, limited by the cluster and its own capability.
    capability: Amounts
    inqueue: Amounts
    elastic: Amounts


class Opening(SparseRecord, frozen=True, omit_defaults=False):
    """The state at the start of a session. ``scores`` are by pending task, then by node."""

    jobs: dict[str, JobState]
    queues: dict[str, QueueState]
    scores: dict[str, dict[str, float]]


class Eviction(SparseRecord, frozen=True):
    """An evicted task with its node, the reason, and the task for which it is evicted."""

    task: str
    node: str
    reason: str
    by: str


class Placement(SparseRecord, frozen=True):
    """A task and its node."""

    task: str
    node: str


class OperationKind(StrEnum):
    """An operation of a statement, or its reversal."""

    EVICT = "evict"
    PIPELINE = "pipeline"
    ALLOCATE = "allocate"
    UNEVICT = "unevict"
    UNPIPELINE = "unpipeline"
    UNALLOCATE = "unallocate"


# Kind, task, node, and the task it is done for.
Operation = tuple[OperationKind, str, str, str]


class VictimRejection(SparseRecord, frozen=True):
    """A task that a plugin does not accept as a victim, and why."""

    task: str
    reason: str


class VoteEffect(StrEnum):
    """The effect of a plugin's list of victims on the list so far.

    ``First``: the plugin's list is the first list. ``Intersected``: only the victims that are in both lists remain.
    ``Emptied``: the plugin named no victims, which clears the list and skips the rest of its tier.
    """

    FIRST = "First"
    INTERSECTED = "Intersected"
    EMPTIED = "Emptied"


class Vote(SparseRecord, frozen=True, kw_only=True):
    """The tasks that a plugin accepts as victims; tiers are numbered from 1.

    ``remaining`` is the list after the vote.
    """

    tier: int
    plugin: str
    victims: list[str] = []
    rejected: list[VictimRejection] = []
    effect: VoteEffect
    remaining: list[str] = []


class NodeOutcome(StrEnum):
    """The result for a task on a node.

    ``NoCandidates``: no task on the node could be a victim. ``NotEnough``: all victims together would not free enough.
    ``StillOverused``: enough was freed, but the queue already uses all its deserved resources. ``Wasted``: victims were
    evicted, but the task still does not fit. ``Pipelined``: the task waits for the resources that are being freed.
    ``Allocated``: the task is placed on the node immediately. ``NoVolumes``: the node was selected, but the task's
    claims cannot be bound there.
    """

    NO_CANDIDATES = "NoCandidates"
    NOT_ENOUGH = "NotEnough"
    STILL_OVERUSED = "StillOverused"
    WASTED = "Wasted"
    PIPELINED = "Pipelined"
    ALLOCATED = "Allocated"
    NO_VOLUMES = "NoVolumes"


class NodeAttempt(SparseRecord, frozen=True, kw_only=True):
    """A node that was tried for a task; nodes are listed in order.

    ``missing`` is what even evicting all victims would not free.
    """

    node: str
    outcome: NodeOutcome
    score: float | None = None
    candidates: list[str] = []
    votes: list[Vote] = []
    deciding_tier: int = 0
    victims: list[str] = []
    evicted: list[str] = []
    missing: Amounts = {}


class Purpose(StrEnum):
    """What an action tried to achieve."""

    ENQUEUE = "Enqueue"
    ALLOCATE = "Allocate"
    BACKFILL = "Backfill"
    PREEMPT_BETWEEN_JOBS = "PreemptBetweenJobs"
    PREEMPT_WITHIN_JOB = "PreemptWithinJob"
    RECLAIM = "Reclaim"


class AttemptOutcome(StrEnum):
    """How an attempt ended.

    ``Enqueued``/``NotEnqueued`` apply to jobs, the others to tasks. ``NotAllocatable``: the task requests more than the
    remaining deserved resources of its queue. ``PrePredicateFailed`` and ``NoNode``: rejected before or by every node.
    ``NoVolumes``: the selected node rejects the task, because the task's claims cannot be bound there; ``reason`` says
    why.
    """

    ENQUEUED = "Enqueued"
    NOT_ENQUEUED = "NotEnqueued"
    ALLOCATED = "Allocated"
    PIPELINED = "Pipelined"
    NOT_ALLOCATABLE = "NotAllocatable"
    PRE_PREDICATE_FAILED = "PrePredicateFailed"
    NO_NODE = "NoNode"
    NO_VOLUMES = "NoVolumes"


class Attempt(SparseRecord, frozen=True, kw_only=True):
    """An attempt to place a task, or to enqueue a job.

    ``rejected`` is why nodes were rejected, by node, in the scheduler's words; ``explanations`` is the predicates' own
    reason. ``tied`` are the nodes with the best score if there are several; the real scheduler picks one at random.
    ``vetoes`` are the plugins that rejected a job. ``nearest`` is the node that lacks the least of a task's request, if
    that is why the task found no node.
    """

    purpose: Purpose
    queue: str
    job: str
    task: str = ""
    outcome: AttemptOutcome
    reason: str = ""
    rejected: dict[str, str] = {}
    explanations: dict[str, str] = {}
    nodes: list[NodeAttempt] = []
    tied: list[str] = []
    nearest: NodeAttempt | None = None
    vetoes: list[str] = []


class StatementOutcome(StrEnum):
    """The result of a statement.

    ``Held``: the statement is neither committed nor discarded; its resources stay allocated but unbound until the
    session ends.
    """

    COMMITTED = "Committed"
    DISCARDED = "Discarded"
    HELD = "Held"


class StatementEnd(SparseRecord, frozen=True, kw_only=True):
    """How a job's statement ended, with the deciding numbers: ready, waiting and required tasks."""

    purpose: Purpose
    job: str
    outcome: StatementOutcome
    ready: int
    waiting: int
    min_available: int
    operations: list[Operation] = []


class Skip(SparseRecord, frozen=True):
    """A job or a queue that an action skipped, and why."""

    subject: str
    reason: str


class ActionEvidence(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """What an action of Volcano did, and the state after the action.

    ``allocated`` are tasks that hold resources but are not bound.
    """

    action: str
    evictions: list[Eviction]
    pipelined: list[Placement]
    binds: list[Placement]
    allocated: list[Placement]
    enqueued: list[str] | None
    trace: list[Operation]
    skipped: list[Skip]
    attempts: list[Attempt]
    statements: list[StatementEnd]
    jobs: dict[str, JobState]
    queues: dict[str, QueueState]


class PodGroupCondition(SparseRecord, frozen=True, omit_defaults=False):
    """A condition of a pod group."""

    type: str
    status: str
    reason: str
    message: str


class PodGroupEnd(SparseRecord, frozen=True, omit_defaults=False):
    """The phase and conditions of a pod group after the session."""

    phase: str
    conditions: list[PodGroupCondition]


class SessionEvent(SparseRecord, frozen=True):
    """An event that the scheduler records on a pod or pod group."""

    kind: str
    subject: str
    type: str
    reason: str
    message: str


class PodMessage(SparseRecord, frozen=True):
    """The PodScheduled condition of a pod after the session."""

    reason: str
    message: str


class Closing(SparseRecord, frozen=True, omit_defaults=False):
    """What users see after a session: pod groups, the reasons why tasks fit on no node, conditions, and events.

    ``fit_errors`` are by job, then by task.
    """

    pod_groups: dict[str, PodGroupEnd]
    fit_errors: dict[str, dict[str, str]]
    pods: dict[str, PodMessage]
    events: list[SessionEvent]


class Panic(SparseRecord, frozen=True):
    """A panic of the real scheduler: the action (empty while a session opens or closes), the task, and the message.

    ``on`` is the object that causes it: a node, a queue, a job.
    """

    action: str
    subject: str
    message: str
    on: str = ""


class SessionVerdict(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A complete session of Volcano's scheduler.

    After a panic, only what happened before it is listed, and the last action may be incomplete.

    ``ignored`` are pod groups that Volcano does not consider, with the reason.
    """

    api_version: str = API_VERSION
    kind: str = "VolcanoSessionVerdict"
    algorithm: str = "volcano-1.8"
    configured_actions: list[str]
    panics: bool = False
    panic: Panic | None = None
    opening: Opening | None = None
    actions: list[ActionEvidence] = []
    final: Closing | None = None
    ignored: dict[str, str] = {}
    assumptions: list[Assumption] = []


class SampledOutcome(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """One possible outcome of a session, and the number of runs with this outcome.

    Two runs have the same outcome if the same tasks are evicted, pipelined, bound and enqueued, on the same nodes.
    """

    times: int
    evicted: list[str]
    pipelined: list[Placement]
    binds: list[Placement]
    enqueued: list[str]
    panics: bool


class Sample(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """Runs of a session with different random choices; the most frequent outcome comes first."""

    runs: int
    seed: int
    outcomes: list[SampledOutcome]
    # How often each task was evicted.
    evicted: dict[str, int]


class SessionAnswer(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The answer of ``kpreempt volcano``: a session with objects in name order, and a sample if requested."""

    api_version: str = API_VERSION
    kind: str = "VolcanoSession"
    session: SessionVerdict
    sample: Sample | None = None


class GangOutcome(StrEnum):
    """The outcome of a job that is submitted.

    ``Rejected``: Volcano's webhook rejects the job, or Volcano's controller does not accept it. ``NotEnqueued``: the
    job is not enqueued, and its pods are not even created. ``Invalid``: the job can never run as it is. ``Ignored``:
    Volcano does not consider the job. ``Bound``: enough of the job's tasks are bound immediately. ``Pipelined``: enough
    of the job's tasks wait for resources of victims, and a later session places them. ``NotPlaced``: the job stays
    pending. ``Panic``: the scheduler panics before it decides about the job.
    """

    REJECTED = "Rejected"
    NOT_ENQUEUED = "NotEnqueued"
    INVALID = "Invalid"
    IGNORED = "Ignored"
    BOUND = "Bound"
    PIPELINED = "Pipelined"
    NOT_PLACED = "NotPlaced"
    PANIC = "Panic"


class GangVictim(SparseRecord, frozen=True, kw_only=True):
    """A task that is evicted for the job in question: its node, queue and job, and the action that evicts it."""

    task: str
    node: str
    job: str
    queue: str
    action: str
    by: str


class GangTask(SparseRecord, frozen=True, kw_only=True):
    """A task of the job in question: its final status, its node, and its pod's message."""

    task: str
    status: str
    node: str = ""
    message: str = ""


class GangAnswer(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The predicted outcome of a job that is submitted now.

    ``sessions``: for a job whose pods are only created once it is enqueued, the session that enqueues it, then the one
    with its pods; otherwise one session. ``tasks`` and ``victims`` are of the last one. ``reason`` says why the job is
    rejected, invalid or ignored, or why the scheduler panics. ``next_session`` is the session after that, once victims
    and all terminating pods are gone: a task is pipelined for one session only, and another job may take the resources.
    ``remedies`` would each get the job bound, if it is not, and ``search`` is ``None`` if none were searched.
    """

    api_version: str = API_VERSION
    kind: str = "VolcanoJobVerdict"
    algorithm: str = "volcano-1.8"
    job: str
    origin: str
    queue: str
    min_available: int
    outcome: GangOutcome
    reason: str
    tasks: list[GangTask]
    victims: list[GangVictim]
    sessions: list[SessionVerdict]
    next_session: SessionVerdict | None = None
    # What a task without a node lacks on the node that is closest to fitting it.
    missing: Amounts = {}
    missing_for: str = ""
    missing_on: str = ""
    # The number of its tasks that the session afterwards binds.
    bound_in_next_session: int = 0
    remedies: list[Remedy] = []
    search: RemedySearch | None = None
    sample: Sample | None = None
    assumptions: list[Assumption] = []


class GangAnswers(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The predicted outcomes of several jobs that are submitted together."""

    api_version: str = API_VERSION
    kind: str = "VolcanoJobVerdicts"
    items: list[GangAnswer]
