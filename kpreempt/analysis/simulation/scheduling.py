"""The scheduler's part in a simulation: its queue, its decisions, and what it remembers of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import timedelta

from kpreempt.analysis.algorithms import Scheduler, has_queue, likeness_to, queue_for
from kpreempt.analysis.queue.cluster import refused
from kpreempt.analysis.queue.state import UNKNOWN_PLUGIN, rejecting_plugins
from kpreempt.analysis.simulation.chance import FINDS_A_NODE, Branch, Choose, branches_of
from kpreempt.analysis.simulation.cluster import SimulatedCluster
from kpreempt.controllers.actions import is_ready
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.scheduler_table import DEFAULT_ALGORITHM
from kpreempt.schedulers.queues import Attempt
from kpreempt.verdict import Assumption, AssumptionKind, Verdict

# As long as the longest backoff: a pod that waits since before the start may be tried at once.
_SINCE_LAST_TRY = timedelta(seconds=10)
_NOT_ALL_FOUND = Assumption(
    "scheduler",
    "percentageOfNodesToScore",
    "on so many nodes the search for room stops early, and only the scheduler knows where it starts: any is drawn",
    AssumptionKind.TOLD,
)


class Scheduling:
    """Which pod is tried next, and what comes of it. Times are in seconds from the start.

    ``choose`` picks one of the ways in which a decision may come out. Of pods that are ``waiting`` since before nobody
    knows which plugins refused them. A plugin that orders the queue sees the cluster of the
    start, one that holds pods back that of the moment.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        scheduler: Scheduler,
        choose: Choose,
        waiting: Iterable[Pod],
    ) -> None:
        self._cluster = cluster
        self._scheduler = scheduler
        self._choose = choose
        start = cluster.started
        settings = scheduler.settings
        # For a scheduler whose own is not modelled that of today, which callers tell.
        self.queue = queue_for(
            scheduler.algorithm if has_queue(scheduler.algorithm) else DEFAULT_ALGORITHM,
            start - _SINCE_LAST_TRY,
            feature_gates=settings.gates,
            initial_backoff=settings.initial_backoff,
            max_backoff=settings.max_backoff,
            rules=scheduler.queue_rules(cluster.prepared),
        )
        self.attempts = 0
        self.draws = 0
        self.assumptions: dict[Assumption, None] = {}
        # The version of the cluster at which each pod was tried last.
        self._tried_at: dict[str, int] = {}
        # Failed attempts since the last change, by what the scheduler sees of the pod.
        self._failed: dict[bytes, Verdict] = {}
        self._failed_at = -1
        # By name, what makes pods alike here, each with the record that it is of; and the number of each kind.
        self._kinds: dict[str, tuple[Pod, int | None]] = {}
        self._kind_numbers: dict[Hashable, int] = {}
        for pod in waiting:
            self.queue.restore(pod, Attempt(plugins=frozenset((UNKNOWN_PLUGIN,))), start - _SINCE_LAST_TRY)
        self.queue.advance(start)

    def next_pod(self) -> Pod | None:
        """The pod that the scheduler takes now, if there is one."""
        now = self._cluster.now
        self.queue.advance(now)
        pod = self.queue.pop(now)
        if pod is None:
            return None
        self.attempts += 1
        self._tried_at[pod.key] = self._cluster.version
        return self._cluster.pods[pod.key]

    def next_timer(self) -> float | None:
        """When the queue next moves a pod by itself, as long as a try could come to something new."""
        timer = self.queue.next_timer()
        if timer is None or not self._may_come_to_something():
            return None
        return (timer - self._cluster.started).total_seconds()

    def decide(self, pod: Pod) -> Verdict:
        """The scheduler's decision; one that failed counts for equal pods, too, until something changes."""
        if self._failed_at != self._cluster.version:
            self._failed, self._failed_at = {}, self._cluster.version
        key = likeness_to(self._scheduler, pod) if self._failed else b""
        if key in self._failed:
            return self._failed[key]
        verdict = self._scheduler.decide(
            self._cluster.prepared(),
            pod,
            records_steps=False,
            records_scores=False,
            records_nodes=False,
            is_popped=True,
        )
        if verdict.outcome not in FINDS_A_NODE:
            self._failed[key or likeness_to(self._scheduler, pod)] = verdict
        self.assumptions.update(dict.fromkeys(verdict.assumptions))
        if verdict.sampling is not None:
            self.assumptions[_NOT_ALL_FOUND] = None
        return verdict

    def draw(self, verdict: Verdict) -> tuple[Branch, list[str]]:
        """How a decision comes out, and the nodes between which it was drawn, none where nothing was."""
        branches = branches_of(verdict, self._kind_of)
        if len(branches) > 1:
            branches = [each for each in branches if self._may_come(each, verdict)] or branches
        if len(branches) == 1:
            return branches[0], []
        self.draws += 1
        return self._choose(branches), list(dict.fromkeys(branch.node for branch in branches))

    def _kind_of(self, key: str) -> Hashable:
        """What equal pods of a node share where it makes no difference to the simulation which of them goes.

        ``None`` for those that go already, which is no difference to it at all.
        """
        pod = self._cluster.pods.get(key)
        if pod is None:
            return key
        known = self._kinds.get(key)
        if known is None or known[0] is not pod:
            metadata = pod.metadata
            number = None
            if metadata.deletion_timestamp is None:
                kind = metadata.namespace, controller_name(metadata), frozenset(metadata.labels.items()), is_ready(pod)
                number = self._kind_numbers.setdefault(kind, len(self._kind_numbers))
            known = self._kinds[key] = pod, number
        return known[1]

    def _may_come(self, branch: Branch, verdict: Verdict) -> bool:
        """Whether nobody goes before a like pod told to go in the simulation, which put it behind its equals."""
        told = self._cluster.told_on(branch.node)
        if not told:
            return True
        gone = set(branch.leaving)
        if branch.violated is not None:
            gone.update(victim.pod for victim in verdict.victims.get(branch.node, ()))
        pods = self._cluster.pods
        spared = [pod for key, pod in told.items() if key not in gone]
        going = [pods[key] for key in gone if key in pods and key not in told]
        return not any(_are_alike(one, other) for one in spared for other in going)

    def landed(self, pod: Pod, bound: Pod) -> None:
        """The attempt came to a node; ``bound`` is the pod as it is on it."""
        now = self._cluster.now
        self.queue.assigned_pod_changed(None, bound, now)
        self.queue.delete(pod, now, is_bound=True)
        self.queue.done(pod, now)

    def not_landed(self, key: str, verdict: Verdict) -> None:
        """The attempt came to no node, or to one where victims have to go first."""
        plugins = rejecting_plugins(verdict) or frozenset((UNKNOWN_PLUGIN,))
        now = self._cluster.now
        pod = self._cluster.store(refused(self._cluster.pods[key], now, is_error=False))
        self.queue.add_unschedulable(pod, Attempt(self.queue.scheduling_cycle or 0, plugins), now)

    def held_by(self) -> dict[str, str]:
        """The out-of-tree plugins that keep pods out of the queue, by the pod's name."""
        return {each.pod: each.held_by for each in self.queue.pods() if each.held_by}

    def _may_come_to_something(self) -> bool:
        """Whether anything has changed since a pod of the queue was tried."""
        waiting = map(self._cluster.pods.get, self.queue.names())
        return any(
            pod is not None
            and not pod.spec.scheduling_gates
            and self._tried_at.get(pod.key, 0) != self._cluster.version
            for pod in waiting
        )


def _are_alike(one: Pod, other: Pod) -> bool:
    """Whether neither filters nor budgets nor their importance tell two pods apart."""
    mine, its = one.metadata, other.metadata
    return (
        (mine.namespace, mine.labels) == (its.namespace, its.labels)
        and one.status.start_time == other.status.start_time
        and one.spec == other.spec
    )
