"""A cluster that goes on while its nodes are drained: pods end, controllers replace them, budgets follow.

What is modelled of Kubernetes 1.36: the eviction subresource, the disruption controller, which looks at a budget when
a pod of its changes, and the controllers of ReplicaSets, ReplicationControllers, StatefulSets and Jobs, as far as they
make pods in the place of others. A kubelet needs ``Pace`` to start and to stop a pod. Where a pod lands is asked of a
scheduler.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from kpreempt.controllers.pods import JOB_FINALIZER
from kpreempt.controllers.replacement import replacement_of
from kpreempt.controllers.scales import ScaleOf
from kpreempt.eviction.budgets import budgets_of, synced
from kpreempt.eviction.deletion import DeleteOptions, deleted, later
from kpreempt.eviction.drain_filter import DrainPod
from kpreempt.eviction.records import Answer, StoredBudget
from kpreempt.eviction.rules import USUAL, EvictionRules
from kpreempt.eviction.subresource import EvictionRequest, Store, being_terminated, evict
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import TERMINAL_PHASES, Pod, PodCondition


class Pace(NamedTuple):
    """Seconds that things take: until a new pod is bound, then ready, and until one stops that was told to.

    Then a Job takes its finalizer off (``to_release``), and makes another pod once it has backed off from the failure.
    """

    to_bind: float = 0.1
    to_be_ready: float = 0.4
    to_stop: float = 0.5
    to_stop_slowly: float = 3.0
    to_release: float = 1.0
    to_back_off: float = 10.0


USUAL_PACE = Pace()


class Placement(NamedTuple):
    """Where a pod lands, and the keys of the pods that are deleted for it first."""

    node: str
    victims: tuple[str, ...] = ()


# Asked with all pods, the nodes that are cordoned, and the pod; ``None`` where it stays pending.
Place = Callable[[Sequence[Pod], Collection[str], Pod], Placement | None]


class World:
    """Pods, budgets and nodes at a time, in seconds since the start; whoever waits is called when it has come.

    ``play`` says of a pod, by the name of its owner or else its own, that it is ``stuck`` (never stops), ``slow``,
    ``unready`` (a new one never gets ready) or ``done`` (finishes by itself). ``owners`` are the UIDs of the workloads
    that there are.
    """

    def __init__(
        self,
        pods: Sequence[DrainPod],
        budgets: Sequence[StoredBudget],
        *,
        start: datetime,
        scale_of: ScaleOf,
        place: Place,
        play: dict[str, str],
        owners: Collection[str],
        cordoned: Collection[str] = (),
        terminating_namespaces: Collection[str] = (),
        only_failed_are_replaced: Collection[str] = (),
        rules: EvictionRules = USUAL,
        pace: Pace = USUAL_PACE,
    ) -> None:
        self.pods = {each.pod.key: each for each in pods}
        self.budgets = {each.budget.key: each for each in budgets}
        self.cordoned = set(cordoned)
        self.seconds = 0.0
        self._start, self._scale_of = start, scale_of
        self._place, self._play = place, play
        self._terminating, self._late_jobs = terminating_namespaces, only_failed_are_replaced
        self._owners, self._rules, self._pace = owners, rules, pace
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._made = 0
        self._charged: dict[str, float] = {}
        for each in pods:
            if each.pod.metadata.deletion_timestamp is not None:
                self._ending(each.pod)

    @property
    def now(self) -> datetime:
        """The time of day."""
        return later(self._start, self.seconds)

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        """Have ``what`` done so much later; what is due at the same time goes in the order in which it was asked."""
        self._made += 1
        heapq.heappush(self._queue, (round(self.seconds + seconds, 6), self._made, what))

    def step(self) -> bool:
        """Do what is due next, and say whether there was anything."""
        if not self._queue:
            return False
        self.seconds, _, what = heapq.heappop(self._queue)
        what()
        return True

    def collides(self, pod: Pod) -> bool:
        """Whether another eviction has just written the pod's budget, so that this one has to try again."""
        return any(self._charged.get(each.budget.key) == self.seconds for each in self._budgets_of(pod))

    def evict(self, key: str, grace: int | None, *, is_dry_run: bool = False) -> Answer:
        """The API server's answer to the eviction of a pod, and what comes of it."""
        namespace, _, name = key.partition("/")
        if namespace in self._terminating:
            return being_terminated(namespace, name)
        drained = self.pods.get(key)
        store = Store(drained.pod if drained is not None else None, list(self.budgets.values()))
        options = DeleteOptions(grace_period_seconds=grace, dry_run=["All"] if is_dry_run else None)
        answer = evict(EvictionRequest(name, name, options), store, self.now, self._rules)
        for budget_key, changed in store.budgets.items():
            if changed != self.budgets[budget_key]:
                self._charged[budget_key] = self.seconds
        self.budgets = store.budgets
        if drained is not None and store.is_pod_written:
            self._changed(drained, store.pod)
        return answer

    def delete(self, key: str, grace: int | None = None, *, is_dry_run: bool = False) -> bool:
        """Delete a pod without asking its budgets, and say whether there was one."""
        drained = self.pods.get(key)
        if drained is not None and not is_dry_run:
            self._changed(drained, deleted(drained.pod, grace, self.now, self._rules))
        return drained is not None

    def _changed(self, drained: DrainPod, pod: Pod | None) -> None:
        """A pod has been told to end, or is gone."""
        if pod is None:
            self._gone(drained)
            return
        self.pods[pod.key] = msgspec.structs.replace(drained, pod=pod)
        if drained.pod.metadata.deletion_timestamp is None:
            self._ending(pod)
        self._sync(pod)
        self._replace(drained, is_gone=False)

    def _ending(self, pod: Pod) -> None:
        """A kubelet stops a pod that was told to end, within its grace period."""
        takes = {"stuck": None, "slow": self._pace.to_stop_slowly}.get(self.play_of(pod), self._pace.to_stop)
        if takes is not None and pod.spec.node_name:
            self.after(min(takes, pod.metadata.deletion_grace_period_seconds or 0), lambda: self._stopped(pod))

    def _stopped(self, pod: Pod) -> None:
        """Its kubelet confirms that a pod has ended; a Job takes its finalizer off a moment later."""
        found = self.pods.get(pod.key)
        if found is None or found.pod.metadata.uid != pod.metadata.uid:
            return
        finalizers = found.pod.metadata.finalizers
        if not finalizers:
            self._gone(found)
        elif list(finalizers) == [JOB_FINALIZER]:
            self.after(self._pace.to_release, lambda: self._gone(found))

    def _gone(self, drained: DrainPod) -> None:
        found = self.pods.get(drained.pod.key)
        if found is None or found.pod.metadata.uid != drained.pod.metadata.uid:
            return
        del self.pods[drained.pod.key]
        self._sync(drained.pod)
        was_told = drained.pod.metadata.deletion_timestamp is not None
        self._replace(drained, is_gone=True, was_told=was_told)
        for each in list(self.pods.values()):
            if not each.pod.spec.node_name and each.pod.status.phase == "Pending":
                self._soon_bound(each.pod)

    def _replace(self, drained: DrainPod, *, is_gone: bool, was_told: bool = False) -> None:
        """Its controller makes a pod in its place: once it is told to end, or only once it is gone."""
        pod = drained.pod
        owner = controller_of(pod.metadata)
        if owner is None or owner.uid not in self._owners or pod.status.phase in TERMINAL_PHASES:
            return
        waits = owner.kind in ("StatefulSet", "DaemonSet") or (
            owner.kind == "Job" and f"{pod.metadata.namespace}/{owner.name}" in self._late_jobs
        )
        is_first_told = not is_gone and pod.metadata.deletion_timestamp is None
        if not (is_gone if waits else is_first_told or (is_gone and not was_told)):
            return
        # A Job counts the pod as failed, and backs off.
        if owner.kind == "Job":
            self.after(self._pace.to_back_off, lambda: self._make(drained))
        else:
            self._make(drained)

    def _make(self, old: DrainPod) -> None:
        """Make a pod in the place of an old one."""
        self._made += 1
        fresh = replacement_of(old.pod, suffix=f"new{self._made}", uid=f"new-{self._made}", now=self.now)
        if fresh is None:
            return
        self.pods[fresh.key] = DrainPod(fresh, has_empty_dir=old.has_empty_dir)
        self._sync(fresh)
        self._soon_bound(fresh)

    def _soon_bound(self, pod: Pod) -> None:
        self.after(self._pace.to_bind, lambda: self._bind(pod))

    def _bind(self, pod: Pod) -> None:
        found = self.pods.get(pod.key)
        if found is None or found.pod.metadata.uid != pod.metadata.uid or found.pod.spec.node_name:
            return
        placed = self._place([each.pod for each in self.pods.values()], self.cordoned, found.pod)
        if placed is None:
            return
        if placed.victims:
            for victim in placed.victims:
                self.delete(victim)
            return
        bound = msgspec.structs.replace(found.pod, spec=msgspec.structs.replace(found.pod.spec, node_name=placed.node))
        self.pods[pod.key] = msgspec.structs.replace(found, pod=bound)
        self.after(self._pace.to_be_ready, lambda: self._started(bound))

    def _started(self, pod: Pod) -> None:
        found = self.pods.get(pod.key)
        if found is None or found.pod.metadata.uid != pod.metadata.uid or found.pod.metadata.deletion_timestamp:
            return
        play = self.play_of(pod)
        ready = "False" if play in ("unready", "done") else "True"
        conditions = [
            PodCondition(type="Ready", status=ready, last_transition_time=self.now),
            PodCondition(type="PodScheduled", status="True", last_transition_time=self.now),
        ]
        status = msgspec.structs.replace(
            found.pod.status, phase="Succeeded" if play == "done" else "Running", conditions=conditions
        )
        self.pods[pod.key] = msgspec.structs.replace(found, pod=msgspec.structs.replace(found.pod, status=status))
        self._sync(pod)

    def _sync(self, pod: Pod) -> None:
        """The disruption controller looks at the budgets of a pod that has changed."""
        own = [each.pod for each in self.pods.values() if each.pod.metadata.namespace == pod.metadata.namespace]
        for each in self._budgets_of(pod)[:1]:
            self.budgets[each.budget.key], _ = synced(each, own, self._scale_of, self.now)

    def play_of(self, pod: Pod) -> str:
        """How the pod plays its part."""
        owner = controller_of(pod.metadata)
        return self._play.get(f"{pod.metadata.namespace}/{owner.name}" if owner is not None else pod.key, "")

    def _budgets_of(self, pod: Pod) -> list[StoredBudget]:
        return budgets_of(pod, self.budgets.values())
