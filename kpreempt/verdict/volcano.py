"""What a session of Volcano's scheduler did: the state it opened with, every action, and what it left behind.

Amounts are by resource: CPU and scalars in thousandths, memory in bytes; -1 is without limit. Tasks are pods, by
``namespace/name``; jobs are pod groups, by ``namespace/name``.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.records import API_VERSION, Assumption

Amounts = dict[str, float]


class JobState(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A job at one moment. ``tasks`` counts them by status.

    ``ready_num`` are tasks that hold their resources, have succeeded, or wait and ask for none; ``waiting_num`` those
    for which room is being made. ``valid`` to ``starving`` are what the plugins say of the job together.
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
    # Its dominant share as drf counts it; absent without that plugin.
    share: float | msgspec.UnsetType = msgspec.UNSET


class QueueState(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A queue with jobs at one moment, as the proportion plugin counts.

    ``share`` is the greatest part of what it deserves that it has of any resource. ``overused``: it has all that it
    deserves of every resource.
    """

    weight: int
    share: float
    deserved: Amounts
    allocated: Amounts
    request: Amounts
    overused: bool
    # What the queue may hold at most, of the cluster and by its own limit.
    capability: Amounts
    inqueue: Amounts
    elastic: Amounts


class Opening(SparseRecord, frozen=True, omit_defaults=False):
    """The state in which a session opens. ``scores`` are by pending task, then by node."""

    jobs: dict[str, JobState]
    queues: dict[str, QueueState]
    scores: dict[str, dict[str, float]]


class Eviction(SparseRecord, frozen=True):
    """A task that is evicted from its node, why, and for which task."""

    task: str
    node: str
    reason: str
    by: str


class Placement(SparseRecord, frozen=True):
    """A task and its node."""

    task: str
    node: str


class OperationKind(StrEnum):
    """What a statement did, or undid."""

    EVICT = "evict"
    PIPELINE = "pipeline"
    ALLOCATE = "allocate"
    UNEVICT = "unevict"
    UNPIPELINE = "unpipeline"
    UNALLOCATE = "unallocate"


# Kind, task, its node, and the task for whose sake.
Operation = tuple[OperationKind, str, str, str]


class Refusal(SparseRecord, frozen=True):
    """A victim that a plugin does not let go, and why not."""

    task: str
    reason: str


class VoteEffect(StrEnum):
    """What a plugin's list of victims did to the list so far.

    ``First``: it became the list. ``Kept``: what both name stays. ``Emptied``: it named none, which clears the list and
    skips the rest of its tier.
    """

    FIRST = "First"
    KEPT = "Kept"
    EMPTIED = "Emptied"


class Vote(SparseRecord, frozen=True, kw_only=True):
    """The tasks that a plugin would let go; tiers count from 1. ``left`` is the list after it."""

    tier: int
    plugin: str
    victims: list[str] = []
    refused: list[Refusal] = []
    effect: VoteEffect
    left: list[str] = []


class NodeOutcome(StrEnum):
    """What came of a task on a node.

    ``NoCandidates``: nothing on it could be asked to leave. ``NotEnough``: all victims together would not make room.
    ``StillOverused``: room was made, but the queue has all that it deserves. ``Wasted``: victims were evicted, and the
    task does not fit still. ``Pipelined``: it gets the room once that is free. ``Allocated``: it goes there at once.
    ``NoVolumes``: it was to go there, and its claims cannot be bound there.
    """

    NO_CANDIDATES = "NoCandidates"
    NOT_ENOUGH = "NotEnough"
    STILL_OVERUSED = "StillOverused"
    WASTED = "Wasted"
    PIPELINED = "Pipelined"
    ALLOCATED = "Allocated"
    NO_VOLUMES = "NoVolumes"


class NodeTried(SparseRecord, frozen=True, kw_only=True):
    """A node that was tried for a task, in the order of trying. ``missing`` is what even all victims would not free."""

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
    """What an action wanted room for."""

    ENQUEUE = "Enqueue"
    ALLOCATE = "Allocate"
    BACKFILL = "Backfill"
    PREEMPT_BETWEEN_JOBS = "PreemptBetweenJobs"
    PREEMPT_WITHIN_JOB = "PreemptWithinJob"
    RECLAIM = "Reclaim"


class AttemptOutcome(StrEnum):
    """How an attempt ended.

    ``Enqueued``/``NotEnqueued`` are of jobs, the others of tasks. ``NotAllocatable``: the task asks for more than its
    queue has left of what it deserves. ``PrePredicateFailed`` and ``NoNode``: refused before or by every node.
    ``NoVolumes``: refused by the node that was chosen, as its claims cannot be bound there; ``reason`` says why.
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
    """An attempt to find room for a task, or to let a job into its queue.

    ``refused`` is why nodes were refused, by node, in the scheduler's words; ``because`` is what its predicates said.
    ``tied`` are the nodes with the best score where there are several, of which the genuine scheduler picks one at
    random. ``vetoes`` is who kept a job out of its queue. ``nearest`` is the node that lacks least of what a task asks
    for, where that is why it found none.
    """

    purpose: Purpose
    queue: str
    job: str
    task: str = ""
    outcome: AttemptOutcome
    reason: str = ""
    refused: dict[str, str] = {}
    because: dict[str, str] = {}
    nodes: list[NodeTried] = []
    tied: list[str] = []
    nearest: NodeTried | None = None
    vetoes: list[str] = []


class StatementOutcome(StrEnum):
    """What became of a statement. ``Held``: neither; its room stays taken until the session ends, and nothing binds."""

    COMMITTED = "Committed"
    DISCARDED = "Discarded"
    HELD = "Held"


class StatementEnd(SparseRecord, frozen=True, kw_only=True):
    """How a job's statement ended, with the numbers that decided: ready and waiting tasks, and how many it needs."""

    purpose: Purpose
    job: str
    outcome: StatementOutcome
    ready: int
    waiting: int
    min_available: int
    operations: list[Operation] = []


class Skip(SparseRecord, frozen=True):
    """A job or a queue that an action passed over, and why."""

    subject: str
    reason: str


class ActionEvidence(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """What an action did, and the state after it. ``allocated`` are tasks that hold room but are not bound."""

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
    """Phase and conditions that a session leaves a pod group with."""

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
    """The PodScheduled condition that a pod is left with."""

    reason: str
    message: str


class Closing(SparseRecord, frozen=True, omit_defaults=False):
    """What users see after the session: pod groups, why tasks fit nowhere (by job, then task), conditions, events."""

    pod_groups: dict[str, PodGroupEnd]
    fit_errors: dict[str, dict[str, str]]
    pods: dict[str, PodMessage]
    events: list[SessionEvent]


class Panic(SparseRecord, frozen=True):
    """Where the genuine scheduler dies: in which action (empty: opening or closing), for which task, saying what.

    ``on`` is what it dies on: a node, a queue, a job.
    """

    action: str
    subject: str
    message: str
    on: str = ""


class SessionVerdict(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A whole session. After a panic there is nothing but what had happened until then, the last action in part.

    ``ignored`` are pod groups that Volcano does not look at, with the reason.
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
    """One of the ways in which a session can end, and in how many of the runs it did.

    Two runs end alike where the same tasks are evicted, promised room, bound and let in, on the same nodes.
    """

    times: int
    evicted: list[str]
    pipelined: list[Placement]
    binds: list[Placement]
    enqueued: list[str]
    panics: bool


class Sample(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """Runs of a session in which all that is left to chance was drawn anew; the most frequent end comes first."""

    runs: int
    seed: int
    outcomes: list[SampledOutcome]
    # How often each task was evicted.
    evicted: dict[str, int]


class SessionAnswer(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """What ``kpreempt volcano`` answers: a session by name order and, where it was asked for, a sample."""

    api_version: str = API_VERSION
    kind: str = "VolcanoSession"
    session: SessionVerdict
    sample: Sample | None = None


class GangOutcome(StrEnum):
    """What becomes of a job that is submitted.

    ``Refused``: Volcano's webhook does not accept it, or its controller makes nothing of it.
    ``NotEnqueued``: it is not let into its queue, and its pods are not even made. ``Invalid``: it can never run as it
    is. ``Ignored``: Volcano does not look at it. ``Bound``: enough of its tasks are bound at once. ``Pipelined``:
    enough get room that victims give up, and a later session places them. ``NotPlaced``: it waits.
    ``Panic``: the scheduler dies first.
    """

    REFUSED = "Refused"
    NOT_ENQUEUED = "NotEnqueued"
    INVALID = "Invalid"
    IGNORED = "Ignored"
    BOUND = "Bound"
    PIPELINED = "Pipelined"
    NOT_PLACED = "NotPlaced"
    PANIC = "Panic"


class GangVictim(SparseRecord, frozen=True, kw_only=True):
    """A task that is evicted for the job in question: from which node, queue and job, by which action."""

    task: str
    node: str
    job: str
    queue: str
    action: str
    by: str


class GangTask(SparseRecord, frozen=True, kw_only=True):
    """A task of the job in question: its status at the end, its node, and what its pod is told."""

    task: str
    status: str
    node: str = ""
    message: str = ""


class GangAnswer(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """What becomes of a job that is submitted now.

    ``sessions``: for a job whose pods are made only once it is let in, the session that lets it in, then the one
    with its pods; else one. ``tasks`` and ``victims`` are of the last. ``reason`` says why it is not let in, invalid or
    ignored, or on what the scheduler dies. ``afterwards`` is the session after that, once victims and all pods that
    were leaving are gone: a promise of room lasts one session only, and another job may take it.
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
    afterwards: SessionVerdict | None = None
    # What a task that found no node lacks, on the node that comes nearest.
    missing: Amounts = {}
    missing_for: str = ""
    missing_on: str = ""
    # How many of its tasks the session afterwards binds.
    bound_afterwards: int = 0
    sample: Sample | None = None
    assumptions: list[Assumption] = []


class GangAnswers(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """What becomes of several jobs that are submitted together."""

    api_version: str = API_VERSION
    kind: str = "VolcanoJobVerdicts"
    items: list[GangAnswer]
