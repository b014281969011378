"""Plays on from pods that come: the scheduler's decisions, what leaves for them, and what comes in its place.

Between decisions stand what the cluster's controllers do: a victim stops within its grace period, what manages it makes
a new pod, budgets count down and recover, and whoever found no node tries again when something changed. Pods run as
soon as they are bound, and stop when their grace period ends.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.pending_verdicts import likeness, pending_pods
from kpreempt.analysis.play.chain import Chain
from kpreempt.analysis.play.queue import Entry, Queue
from kpreempt.analysis.play.replacing import JobBackoffs, Moment, is_known_owner, moment_of
from kpreempt.analysis.play.world import World
from kpreempt.controllers.pods import JOB_FINALIZER
from kpreempt.controllers.replacement import replacement_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, AssumptionKind, Outcome, Verdict
from kpreempt.verdict.play import Play, PlayEnd, PlayStep, StepKind, Waiting

Choose = Callable[[Sequence[str]], str]


class Limits(msgspec.Struct, frozen=True):
    """When a play is broken off: after so many attempts, or so many seconds of the cluster's time."""

    attempts: int = 5000
    seconds: float = 24 * 3600.0


def play(
    cluster: ClusterSnapshot,
    arriving: Iterable[Pod],
    scheduler: Scheduler,
    *,
    now: datetime,
    limits: Limits | None = None,
    choose: Choose = lambda nodes: nodes[0],
) -> tuple[Play, list[Assumption]]:
    """What happens from the moment at which the pods come, all at once, and what had to be assumed.

    ``choose`` picks one of the nodes among which the scheduler draws. Nothing is changed.
    """
    return _Game(cluster, scheduler, now, limits or Limits(), choose).run(list(arriving))


class _Game:
    def __init__(
        self, cluster: ClusterSnapshot, scheduler: Scheduler, now: datetime, limits: Limits, choose: Choose
    ) -> None:
        self._world = World(cluster, scheduler, now)
        self._scheduler = scheduler
        self._limits = limits
        self._choose = choose
        self._queue = Queue()
        self._chain = Chain()
        self._steps: list[PlayStep] = []
        self._messages: dict[str, str] = {}
        # What happens later: the time, a number that keeps equal times in order, what is done then.
        self._later: list[tuple[float, int, Callable[[float], None]]] = []
        self._job_backoffs = JobBackoffs()
        self._order = itertools.count()
        self._assumptions: dict[Assumption, None] = {}
        self._made = 0
        self._attempts = 0
        # Failed attempts since the last change, by what the scheduler sees of the pod.
        self._failed: dict[bytes, Verdict] = {}
        self._failed_at = -1
        self._starts_at: dict[str, float] = {}
        for pod in pending_pods(cluster):
            self._queue.add(pod, 0.0, is_active=False)
        for pod in cluster.pods:
            if pod.metadata.deletion_timestamp is not None and pod.spec.node_name:
                self._will_be_gone(pod.key, self._world.seconds_until_gone(pod))

    def run(self, arriving: list[Pod]) -> tuple[Play, list[Assumption]]:
        """Play until nothing more happens."""
        first = [self._arrive(pod, 0.0, cause="") for pod in arriving]
        end, at = PlayEnd.SETTLED, 0.0
        seen = {self._world.shape()}
        evictions = 0
        while True:
            entry = self._queue.pop(at)
            if entry is not None:
                if self._attempts >= self._limits.attempts:
                    end = PlayEnd.BROKEN_OFF
                    break
                self._attempts += 1
                self._attempt(entry, at)
                continue
            # A state that comes back after somebody had to go comes back for ever.
            shape, gone = self._world.shape(), self._chain.evictions
            if gone > evictions and shape in seen:
                end = PlayEnd.LOOP
                break
            seen.add(shape)
            evictions = gone
            times = [event[0] for event in self._later[:1]]
            if (next_try := self._queue.next_try()) is not None:
                times.append(next_try)
            if not times:
                break
            at = max(at, min(times))
            if at > self._limits.seconds:
                end = PlayEnd.BROKEN_OFF
                break
            while self._later and self._later[0][0] <= at:
                heapq.heappop(self._later)[2](at)
        return self._result(end, first), list(self._assumptions)

    def _result(self, end: PlayEnd, first: list[str]) -> Play:
        pods = self._world.pods
        waiting = [
            Waiting(
                pod=key,
                priority=pods[key].priority,
                owner=controller_name(pods[key].metadata),
                message=self._messages.get(key, ""),
                was_running=self._chain.is_replacement(key),
            )
            for key in self._queue.waiting()
            if key in self._messages
        ]
        displaced = self._chain.displaced(first)
        return Play(
            end=end,
            seconds=max((step.at for step in self._steps), default=0.0),
            depth=max((each.depth for each in displaced), default=0),
            starts_at={key: self._starts_at[key] for key in first if key in self._starts_at},
            displaced=displaced,
            waiting=waiting,
            budgets=self._world.budgets.lows(),
            steps=self._steps,
        )

    def _arrive(self, pod: Pod, at: float, *, cause: str) -> str:
        pod = self._world.create(pod, at)
        self._queue.add(pod, at)
        self._note(at, StepKind.ARRIVES, pod, cause=cause)
        return pod.key

    def _attempt(self, entry: Entry, at: float) -> None:
        pod = self._world.pods[entry.key]
        verdict = self._decide(pod, at)
        if verdict.outcome is Outcome.LANDS:
            self._land(pod, verdict, at)
        elif verdict.outcome in (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS):
            self._evict(pod, verdict, at)
        else:
            message = verdict.message or verdict.reason
            if self._messages.get(pod.key) != message:
                self._messages[pod.key] = message
                self._note(at, StepKind.WAITS, pod, message=message)

    def _decide(self, pod: Pod, at: float) -> Verdict:
        """The scheduler's decision; one that failed counts for equal pods, too, until something changes."""
        if self._failed_at != self._world.version:
            self._failed, self._failed_at = {}, self._world.version
        key = likeness(pod)
        if key in self._failed:
            return self._failed[key]
        verdict = self._scheduler.decide(self._world.prepared(at), pod, records_steps=False)
        if verdict.outcome not in (Outcome.LANDS, Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS):
            self._failed[key] = verdict
        self._assumptions.update(dict.fromkeys(verdict.assumptions))
        return verdict

    def _land(self, pod: Pod, verdict: Verdict, at: float) -> None:
        nodes = verdict.lands_on or verdict.chosen_nodes
        node = self._choose(nodes)
        self._queue.remove(pod.key)
        self._messages.pop(pod.key, None)
        self._world.bind(pod.key, node, at)
        self._starts_at.setdefault(pod.key, at)
        self._chain.landed(pod.key, node)
        self._note(at, StepKind.LANDS, pod, node=node, tied=nodes if len(nodes) > 1 else [])
        self._queue.wake(for_a_new_pod=True)

    def _evict(self, pod: Pod, verdict: Verdict, at: float) -> None:
        nodes = verdict.nominated_nodes
        node = self._choose(nodes)
        self._messages[pod.key] = verdict.message
        self._world.nominate(pod.key, node)
        self._note(at, StepKind.NOMINATED, pod, node=node, tied=nodes if len(nodes) > 1 else [])
        for victim in verdict.victims.get(node, []):
            if victim.terminating:
                continue
            violated = [use.budget for use in victim.budgets if use.left < 0]
            self._leave(victim.pod, pod.key, violated, at)

    def _leave(self, key: str, cause: str, violated: list[str], at: float) -> None:
        pod = self._world.pods[key]
        self._world.budgets.violated(violated)
        gone_at = self._world.leave(key, at)
        self._chain.evicted(pod, cause, violated)
        self._note(at, StepKind.LEAVES, pod, node=pod.spec.node_name, cause=cause, violated=violated)
        self._will_be_gone(key, gone_at)
        # The Job controller takes its own off when it counts the pod.
        held_by = [finalizer for finalizer in pod.metadata.finalizers if finalizer != JOB_FINALIZER]
        if held_by:
            message = f"held by finalizer {held_by[0]}; taken to be gone when its grace period ends"
            self._assume(key, "metadata.finalizers", message)
        if not is_known_owner(pod):
            owner = controller_name(pod.metadata)
            message = f"what {owner} does when a pod of it goes is not known; nothing takes its place here"
            self._assume(key, "metadata.ownerReferences", message)
        moment = moment_of(pod)
        if moment is Moment.AT_ONCE:
            self._replace(pod, at)
        elif moment is Moment.AFTER_BACKOFF:
            self._at(self._job_backoffs.failed(pod, at), partial(self._replace_after_backoff, pod))

    def _assume(self, key: str, field: str, message: str) -> None:
        self._assumptions[Assumption(f"Pod {key}", field, message, AssumptionKind.UNCERTAIN)] = None

    def _will_be_gone(self, key: str, at: float) -> None:
        self._at(at, partial(self._gone, key))

    def _at(self, at: float, event: Callable[[float], None]) -> None:
        heapq.heappush(self._later, (at, next(self._order), event))

    def _gone(self, key: str, at: float) -> None:
        pod = self._world.remove(key)
        self._note(at, StepKind.GONE, pod, node=pod.spec.node_name)
        if self._chain.was_evicted(key) and moment_of(pod) is Moment.ONCE_GONE:
            self._replace(pod, at)
        self._queue.wake()

    def _replace_after_backoff(self, pod: Pod, at: float) -> None:
        end = self._job_backoffs.end(pod)
        if end > at:
            # Another pod of the Job failed meanwhile.
            self._at(end, partial(self._replace_after_backoff, pod))
        else:
            self._replace(pod, at)

    def _replace(self, pod: Pod, at: float) -> None:
        self._made += 1
        name = f"new-{self._made}"
        made = replacement_of(pod, suffix=name, uid=name, now=self._world.time(at))
        if made is None:
            return
        self._chain.replaced(pod.key, made.key)
        self._arrive(made, at, cause=pod.key)

    def _note(
        self,
        at: float,
        kind: StepKind,
        pod: Pod,
        *,
        node: str = "",
        cause: str = "",
        violated: Sequence[str] = (),
        tied: Sequence[str] = (),
        message: str = "",
    ) -> None:
        self._steps.append(
            PlayStep(
                at=at,
                kind=kind,
                pod=pod.key,
                priority=pod.priority,
                owner=controller_name(pod.metadata),
                node=node,
                cause=cause,
                violated=list(violated),
                tied=list(tied),
                message=message,
            )
        )
