"""A session: the cluster when it opened, the functions that plugins registered, and how their votes combine.

Follows ``pkg/scheduler/framework/session.go``, ``session_plugins.go`` and ``framework.go`` of Volcano v1.8.0.

``Vote`` lists the decisions that plugins take part in, by the switch that enables them
(``pkg/scheduler/framework/session_plugins.go``). ``Recorder`` keeps what happens while the session runs: operations,
attempts, and what was sent to the cluster.

``Order`` is the order in which Go maps are iterated, and the choice among equals. Volcano iterates over Go maps and
picks at random among nodes with the same score, so two sessions on the same cluster may differ. By default the order is
by key and the choice is the first; with a ``Chance``, both are random. The priority queue of the actions moves items
exactly like Go's ``container/heap`` (``pkg/scheduler/util/priority_queue.go`` of Volcano v1.8.0): the order may change
while items wait (shares and readiness do) and need not be strict, so the first item depends on these moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kpreempt.schedulers.volcano.cache import Cache, Job, Node, Queue, Task, TaskStatus
from kpreempt.schedulers.volcano.configuration import VolcanoConfiguration, parse_int
from kpreempt.schedulers.volcano.kube_view import KubeView
from kpreempt.schedulers.volcano.resources import Resource
from kpreempt.schedulers.volcano.volumes import SessionVolumes
from kpreempt.verdict.status import Status
from kpreempt.verdict.volcano import (
    Attempt,
    Eviction,
    Operation,
    OperationKind,
    Placement,
    SessionEvent,
    Skip,
    StatementEnd,
    VictimRejection,
    VoteEffect,
)
from kpreempt.verdict.volcano import Vote as VoteEvidence

Item = TypeVar("Item")


class Chance(Protocol):
    """A source of randomness, such as ``random.Random``."""

    def shuffle(self, x: Any, /) -> None:
        """Shuffle a list in place."""

    def choice(self, seq: Any, /) -> Any:
        """Choose an element of a sequence."""


class Order:
    """One resolution of all random choices."""

    def __init__(self, chance: Chance | None = None) -> None:
        self._chance = chance

    def walk(self, items: Iterable[Item]) -> list[Item]:
        """Return the items of a map in iteration order; they are given in key order."""
        walked = list(items)
        if self._chance is not None:
            self._chance.shuffle(walked)
        return walked

    def pick(self, items: list[Item]) -> Item:
        """Choose one of several equal items; raise ``IndexError`` if there is none."""
        if self._chance is None:
            return items[0]
        picked: Item = self._chance.choice(items)
        return picked


class PriorityQueue(Generic[Item]):
    """Items ordered by ``is_before``."""

    def __init__(self, is_before: Callable[[Item, Item], bool], items: Iterable[Item] = ()) -> None:
        self._orders_before = is_before
        self._items: list[Item] = []
        for item in items:
            self.push(item)

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: Item) -> None:
        items = self._items
        items.append(item)
        index = len(items) - 1
        while index > 0 and self._orders_before(items[index], items[parent := (index - 1) // 2]):
            items[index], items[parent] = items[parent], items[index]
            index = parent

    def pop(self) -> Item:
        """Remove and return the first item; raise ``IndexError`` if there is none."""
        items = self._items
        last = len(items) - 1
        items[0], items[last] = items[last], items[0]
        index = 0
        while (child := 2 * index + 1) < last:
            if child + 1 < last and self._orders_before(items[child + 1], items[child]):
                child += 1
            if not self._orders_before(items[child], items[index]):
                break
            items[index], items[child] = items[child], items[index]
            index = child
        return items.pop()


TaskHandler = Callable[[Task], None]

PERMIT, ABSTAIN, REJECT = 1, 0, -1


class PredicateError(Exception):
    """A predicate returned an error, which is the message."""


class ScoreError(Exception):
    """A plugin could not compute a score, for the reason in the message."""


class Victims(NamedTuple):
    """The tasks that may be evicted (``None`` if no tier decided), and all votes up to the decision."""

    tasks: list[Task]
    votes: list[VoteEvidence]
    deciding_tier: int


class Session:
    """The state that actions and plugins read and change."""

    def __init__(self, cache: Cache, configuration: VolcanoConfiguration, order: Order, recorder: Recorder) -> None:
        self.configuration = configuration
        self.order = order
        self.recorder = recorder
        # All by key.
        self.jobs: dict[str, Job] = {job.uid: job for job in sorted(cache.jobs, key=lambda job: job.uid)}
        self.nodes: dict[str, Node] = {node.name: node for node in sorted(cache.nodes, key=lambda node: node.name)}
        self.queues: dict[str, Queue] = {queue.name: queue for queue in sorted(cache.queues, key=lambda q: q.name)}
        self.total = Resource()
        for node in self.nodes.values():
            # From here on, the session's state diverges from the cache.
            node.cached_idle = node.idle.clone()
            self.total.add(node.allocatable)
        self.view = KubeView(cache.cluster, self.nodes.values(), cache.now)
        self.volumes = SessionVolumes(cache.cluster, cache.now)
        self.job_is_before: Callable[[Job, Job], bool] = partial(self._orders_before, Vote.JOB_ORDER)
        self.queue_is_before: Callable[[Queue, Queue], bool] = partial(self._orders_before, Vote.QUEUE_ORDER)
        self._registered: dict[Vote, dict[str, Any]] = {vote: {} for vote in Vote}
        # Query results, valid until another function is registered.
        self._tiers: dict[Vote, list[list[tuple[str, Any]]]] = {}
        self._functions: dict[Vote, list[tuple[str, Any]]] = {}
        self._allocate_handlers: list[TaskHandler] = []
        self._deallocate_handlers: list[TaskHandler] = []

    def register(self, vote: Vote, plugin: str, function: Any) -> None:
        """Register a function of a plugin; a second function of the same plugin replaces the first."""
        self._registered[vote][plugin] = function
        self._tiers.clear()
        self._functions.clear()

    def on_change(self, allocate: TaskHandler, deallocate: TaskHandler) -> None:
        """Register handlers that are called whenever a task is allocated or deallocated."""
        self._allocate_handlers.append(allocate)
        self._deallocate_handlers.append(deallocate)

    def tiers(self, vote: Vote) -> list[list[tuple[str, Any]]]:
        """Return the enabled plugins with their functions, tier by tier."""
        if vote not in self._tiers:
            registered, switch = self._registered[vote], vote.switch
            self._tiers[vote] = [
                [
                    (option.name, registered[option.name])
                    for option in tier
                    if option.name in registered and (not switch or option.switches[switch])
                ]
                for tier in self.configuration.tiers
            ]
        return self._tiers[vote]

    def functions(self, vote: Vote) -> list[tuple[str, Any]]:
        """Return the enabled plugins with their functions, without tiers."""
        if vote not in self._functions:
            self._functions[vote] = [named for tier in self.tiers(vote) for named in tier]
        return self._functions[vote]

    def walk_jobs(self) -> list[Job]:
        """Return all jobs in map order."""
        return self.order.walk(self.jobs.values())

    def walk_pending(self, job: Job) -> list[Task]:
        """Return the pending tasks of a job in map order."""
        return self.order.walk(job.with_status(TaskStatus.PENDING))

    # Orders.

    def _orders_before(self, vote: Vote, left: Job | Queue, right: Job | Queue) -> bool:
        """Compare by the first plugin that distinguishes them, then by creation time, then by name."""
        for _, compare in self.functions(vote):
            if result := compare(left, right):
                return bool(result < 0)
        if left.created == right.created:
            return left.uid < right.uid
        return _is_before(left.created, right.created)

    def task_is_before(self, left: Task, right: Task) -> bool:
        """Compare by the first plugin that distinguishes them, then by the index in the name, then by creation time.

        The order is not strict: of two equal tasks, neither comes before the other (``pkg/controllers/job/helpers``).
        """
        for _, compare in self.functions(Vote.TASK_ORDER):
            if result := compare(left, right):
                return bool(result < 0)
        left_index, right_index = _index_in_name(left), _index_in_name(right)
        if left_index is None or right_index is None or left_index == right_index:
            return _is_before(left.pod.metadata.creation_timestamp, right.pod.metadata.creation_timestamp)
        return left_index < right_index

    # Votes.

    def evictable(self, vote: Vote, evictor: Task, candidates: Sequence[Task]) -> Victims:
        """Return the candidates that plugins let a task evict; the first tier that names a victim decides.

        Once a plugin has named victims, later ones can only remove some, also in later tiers. A plugin that names none
        skips the rest of its tier, and leaves the decision to the next tier.
        """
        if not candidates:
            # Without candidates, no plugin can name a victim.
            return Victims([], [], 0)
        votes: list[VoteEvidence] = []
        victims: list[Task] | None = None
        is_first = True
        for number, tier in enumerate(self.tiers(vote), 1):
            for plugin, judge in tier:
                reasons = judge(evictor, candidates)
                named = [task for task, reason in zip(candidates, reasons, strict=True) if not reason]
                if not named:
                    victims, effect = None, VoteEffect.EMPTIED
                elif is_first:
                    victims, is_first, effect = named, False, VoteEffect.FIRST
                else:
                    kept = {task.uid for task in named}
                    victims, effect = (
                        [task for task in victims or () if task.uid in kept] or None,
                        VoteEffect.INTERSECTED,
                    )
                refused = [
                    VictimRejection(t.key, reason) for t, reason in zip(candidates, reasons, strict=True) if reason
                ]
                votes.append(
                    VoteEvidence(
                        tier=number,
                        plugin=plugin,
                        victims=[task.key for task in named],
                        rejected=refused,
                        effect=effect,
                        remaining=[task.key for task in victims or ()],
                    )
                )
                if not named:
                    break
            if victims is not None:
                return Victims(victims, votes, number)
        return Victims([], votes, 0)

    def is_overused(self, queue: Queue) -> bool:
        """Return whether any plugin considers the queue overused."""
        return any(function(queue) for _, function in self.functions(Vote.OVERUSED))

    def is_allocatable(self, queue: Queue, task: Task) -> bool:
        """Return whether all plugins allow the queue to have what the task requests."""
        return all(function(queue, task) for _, function in self.functions(Vote.ALLOCATABLE))

    def is_ready(self, job: Job) -> bool:
        """Return whether all plugins consider the job ready."""
        return all(function(job) for _, function in self.functions(Vote.JOB_READY))

    def is_pipelined(self, job: Job) -> bool:
        """Return whether the job can run once resources are free: any plugin may reject, the first permit decides."""
        return not self.rejecting(Vote.JOB_PIPELINED, job)

    def rejecting(self, vote: Vote, job: Job) -> list[str]:
        """Return the plugin that rejects the job before any tier permits it; empty if none does."""
        for tier in self.tiers(vote):
            has_permit = False
            for plugin, function in tier:
                result = function(job)
                if result < ABSTAIN:
                    return [plugin]
                has_permit |= result > ABSTAIN
            if has_permit:
                return []
        return []

    def is_starving(self, job: Job) -> bool:
        """Return whether the job is starving: all plugins in the first tier with a vote agree."""
        for tier in self.tiers(Vote.JOB_STARVING):
            if tier:
                return all(function(job) for _, function in tier)
        return False

    def invalid_reason(self, job: Job) -> tuple[str, str] | None:
        """Return reason and message of the first plugin that finds a job invalid."""
        for _, function in self.functions(Vote.JOB_VALID):
            if (result := function(job)) is not None:
                reason, message = result
                return reason, message
        return None

    # Nodes.

    def pre_predicate(self, task: Task) -> None:
        """Prepare predicates for a task; raise ``PredicateError`` if it fits on no node."""
        self.recorder.current_task = task.key
        for _, function in self.functions(Vote.PRE_PREDICATE):
            function(task)

    def predicate(self, task: Task, node: Node) -> list[Status]:
        """Return the predicate statuses of a node; raise ``PredicateError``."""
        return [status for _, function in self.functions(Vote.PREDICATE) for status in function(task, node)]

    def scores(self, task: Task, nodes: Sequence[Node]) -> dict[str, float]:
        """Return the score of each node, by name, in the order of ``nodes`` (``PrioritizeNodes``).

        If a plugin cannot score a node, no per-node plugin counts for that node. If a batch plugin fails, no node has a
        score.
        """
        if not nodes:
            return {}
        by_node: dict[str, float] = {}
        for node in nodes:
            total = 0.0
            try:
                for _, function in self.functions(Vote.NODE_ORDER):
                    total += function(task, node)
            except ScoreError:
                total = 0.0
            by_node[node.name] = total
        batches: dict[str, float] = {}
        for _, function in self.functions(Vote.BATCH_NODE_ORDER):
            try:
                found = function(task, nodes)
            except ScoreError:
                return {}
            for name, score in found.items():
                batches[name] = batches.get(name, 0.0) + score
        return {name: score + batches.get(name, 0.0) for name, score in by_node.items()}

    # Changes, made by both statements and the session itself.

    def evict(self, task: Task) -> None:
        """Mark a running task as releasing."""
        self._change(task, TaskStatus.RELEASING, self._deallocate_handlers, OperationKind.EVICT)

    def unevict(self, task: Task) -> None:
        """Undo an eviction."""
        self._change(task, TaskStatus.RUNNING, self._allocate_handlers, OperationKind.UNEVICT)

    def pipeline(self, task: Task, node: Node) -> None:
        """Reserve capacity for a task on a node, to be used once it is free."""
        self._place(task, node, TaskStatus.PIPELINED)
        self.recorder.operation(OperationKind.PIPELINE, task)

    def allocate(self, task: Task, node: Node) -> None:
        """Place a task on a node, with its volumes; raise ``VolumeError`` if these are not available."""
        self.volumes.take(task, node)
        self._place(task, node, TaskStatus.ALLOCATED)

    def unplace(self, task: Task, kind: OperationKind) -> None:
        """Undo a pipelined or allocated placement."""
        self.volumes.give_back(task)
        self._move(task, TaskStatus.PENDING)
        node = self.nodes.get(task.node_name)
        if node is not None:
            node.remove(task.key)
        self._notify(self._deallocate_handlers, task)
        self.recorder.operation(kind, task)
        task.node_name = ""

    def bind(self, task: Task) -> str:
        """Bind a task to its node; on failure, return the reason and leave the task as it was."""
        node = self.nodes[task.node_name]
        if lacking := task.request.exceeding(node.cached_idle):
            return (
                f"node {node.name} resources [{' '.join(lacking)}] are not enough to put task <{task.key}>, "
                f"idle: {node.cached_idle}, req: {task.request}"
            )
        node.cached_idle.sub_unchecked(task.request)
        self._move(task, TaskStatus.BINDING)
        self.recorder.record.binds.append(Placement(task.key, task.node_name))
        return ""

    def _place(self, task: Task, node: Node, status: TaskStatus) -> None:
        self._move(task, status)
        task.node_name = node.name
        node.add(task)
        self._notify(self._allocate_handlers, task)

    def _move(self, task: Task, status: TaskStatus) -> None:
        job = self.jobs.get(task.job_id)
        if job is not None:
            job.move(task, status)

    def _change(self, task: Task, status: TaskStatus, handlers: Sequence[TaskHandler], kind: OperationKind) -> None:
        self._move(task, status)
        node = self.nodes.get(task.node_name)
        if node is not None:
            node.remove(task.key)
            node.add(task)
        self._notify(handlers, task)
        self.recorder.operation(kind, task)

    def _notify(self, handlers: Sequence[TaskHandler], task: Task) -> None:
        for handler in handlers:
            handler(task)


def _is_before(left: Any, right: Any) -> bool:
    """Compare like ``metav1.Time.Before``: a missing time is before any other, and no time is before a missing one."""
    if left is None or right is None:
        return left is None and right is not None
    return bool(left < right)


def _index_in_name(task: Task) -> int | None:
    parts = task.pod.metadata.name.split("-")
    return parse_int(parts[-1]) if len(parts) >= 3 else None


class Vote(Enum):
    """A decision that plugins vote on; the value is the switch, empty if there is none."""

    JOB_ORDER = "enableJobOrder"
    QUEUE_ORDER = "enableQueueOrder"
    TASK_ORDER = "enableTaskOrder"
    PREEMPTABLE = "enablePreemptable"
    RECLAIMABLE = "enableReclaimable"
    OVERUSED = "enabledOverused"
    ALLOCATABLE = "enabledAllocatable"
    JOB_READY = "enableJobReady"
    JOB_PIPELINED = "enableJobPipelined"
    JOB_STARVING = "enableJobStarving"
    JOB_VALID = ""
    # The three votes that share a switch with another one have a suffix.
    JOB_ENQUEUEABLE = "enableJobEnqueued"
    JOB_ENQUEUED = "enableJobEnqueued#after"
    PREDICATE = "enablePredicate"
    PRE_PREDICATE = "enablePredicate#before"
    NODE_ORDER = "enableNodeOrder"
    BATCH_NODE_ORDER = "enableNodeOrder#batch"

    @property
    def switch(self) -> str:
        """The switch as spelled in the configuration, or an empty string."""
        return self.value.partition("#")[0]


class ActionRecord:
    """What an action has done so far."""

    def __init__(self, action: str) -> None:
        self.action = action
        self.evictions: list[Eviction] = []
        self.binds: list[Placement] = []
        self.enqueued: list[str] = []
        self.trace: list[Operation] = []
        self.skipped: list[Skip] = []
        self.attempts: list[Attempt] = []
        self.statements: list[StatementEnd] = []


class Recorder:
    """Records what happens, action by action. ``current_task`` is the task on whose behalf it happens."""

    def __init__(self) -> None:
        self.current_task = ""
        self.record = ActionRecord("")
        self.events: list[SessionEvent] = []

    def begin(self, action: str) -> ActionRecord:
        """Start an action."""
        self.current_task = ""
        self.record = ActionRecord(action)
        return self.record

    def operation(self, kind: OperationKind, task: Task) -> None:
        """Record an operation on a task on its node, or its reversal."""
        self.record.trace.append((kind, task.key, task.node_name, self.current_task))

    def evicted(self, task: Task, reason: str, by: str) -> None:
        """Record the eviction of a task."""
        self.record.evictions.append(Eviction(task.key, task.node_name, reason, by))
        self.events.append(SessionEvent("Pod", task.key, "Warning", "Evict", f"Pod is evicted, because of {reason}"))
        self.events.append(SessionEvent("PodGroup", task.job_id, "Normal", "Evict", reason))

    def skipped(self, subject: str, reason: str) -> None:
        """Record that an action skipped a job or queue."""
        self.record.skipped.append(Skip(subject, reason))
