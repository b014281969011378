"""The cluster of a recorded ``kubectl drain`` with simulated kubelets, which continues while nodes are drained.

Modeled for Kubernetes 1.36: the eviction subresource, the disruption controller, which syncs a budget when one of its
pods changes, and the controllers of ReplicaSets, ReplicationControllers, StatefulSets and Jobs, as far as they replace
pods. The simulated kubelet takes fixed times to start and stop a pod. A scheduler places pods.

``kpreempt drain`` has none of this: it simulates a drain with ``kpreempt.analysis.simulation``, in which seconds do not
matter. Here every line of kubectl is compared, with its second.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from kpreempt.controllers.actions import JOB_FINALIZER
from kpreempt.controllers.disruption import ScaleOf
from kpreempt.controllers.replacement import replacement_of
from kpreempt.eviction.records import Answer, EvictionRules, StoredBudget
from kpreempt.eviction.subresource import being_terminated, budgets_of
from kpreempt.model.meta import controller_of, later
from kpreempt.model.pod import TERMINAL_PHASES, Pod, PodCondition
from tests.conformance.disruption import synced
from tests.conformance.eviction_requests import DeleteOptions, EvictionRequest, Store, deleted, evict

# Seconds until a new pod is bound, then ready, and until a pod that is being deleted stops.
_TO_BIND = 0.1
_TO_BE_READY = 0.4
_TO_STOP = 0.5
_TO_STOP_SLOWLY = 3.0
# Until a Job removes its finalizer from such a pod, and then creates another one after its backoff.
_TO_RELEASE = 1.0
_TO_BACK_OFF = 10.0


class Placement(NamedTuple):
    """The node of a pod, and the keys of the pods that are deleted for it first."""

    node: str
    victims: tuple[str, ...] = ()


# Called with all pods, the cordoned nodes, and the pod; ``None`` if it stays pending.
Place = Callable[[Sequence[Pod], Collection[str], Pod], Placement | None]


class Surroundings(NamedTuple):
    """The constants of a run.

    ``play`` marks a pod, by the name of its owner or otherwise its own, as ``stuck`` (never stops), ``slow``,
    ``unready`` (a new one never becomes ready) or ``done`` (finishes by itself). ``owners`` are the UIDs of the
    workloads that exist.
    """

    start: datetime
    scale_of: ScaleOf
    place: Place
    rules: EvictionRules
    play: dict[str, str]
    owners: Collection[str]
    terminating_namespaces: Collection[str]
    only_failed_are_replaced: Collection[str]


class ReplayedCluster:
    """Pods, budgets and nodes at a time, in seconds since the start; callbacks run when their time has come."""

    def __init__(
        self,
        pods: Sequence[Pod],
        budgets: Sequence[StoredBudget],
        around: Surroundings,
        *,
        cordoned: Collection[str],
        seconds: float,
    ) -> None:
        self.pods = {each.key: each for each in pods}
        self.budgets = {each.budget.key: each for each in budgets}
        self.cordoned = set(cordoned)
        self.seconds = 0.0
        self._around = around
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._made = 0
        self._charged: dict[str, float] = {}
        for each in pods:
            if each.metadata.deletion_timestamp is not None:
                self._ending(each)
        self.seconds = seconds

    @property
    def now(self) -> datetime:
        """The current time of day."""
        return later(self._around.start, self.seconds)

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        """Schedule ``what`` after a delay; callbacks due at the same time run in order of registration."""
        self._made += 1
        heapq.heappush(self._queue, (round(self.seconds + seconds, 6), self._made, what))

    def step(self) -> bool:
        """Run what is due next, and return whether there was anything."""
        if not self._queue:
            return False
        self.seconds, _, what = heapq.heappop(self._queue)
        what()
        return True

    def collides(self, pod: Pod) -> bool:
        """Return whether another eviction has just written the pod's budget, which forces a retry."""
        return any(self._charged.get(each.budget.key) == self.seconds for each in self._budgets_of(pod))

    def evict(self, key: str, grace: int | None, *, is_dry_run: bool = False) -> Answer:
        """Evict a pod: the API server's answer, and its effects."""
        namespace, _, name = key.partition("/")
        if namespace in self._around.terminating_namespaces:
            return being_terminated(namespace, name)
        pod = self.pods.get(key)
        store = Store(pod, list(self.budgets.values()))
        options = DeleteOptions(grace_period_seconds=grace, dry_run=["All"] if is_dry_run else None)
        answer = evict(EvictionRequest(name, name, options), store, self.now, self._around.rules)
        for budget_key, changed in store.budgets.items():
            if changed != self.budgets[budget_key]:
                self._charged[budget_key] = self.seconds
        self.budgets = store.budgets
        if pod is not None and store.is_pod_written:
            self._changed(pod, store.pod)
        return answer

    def delete(self, key: str, grace: int | None = None, *, is_dry_run: bool = False) -> bool:
        """Delete a pod without checking budgets, and return whether it existed."""
        pod = self.pods.get(key)
        if pod is not None and not is_dry_run:
            self._changed(pod, deleted(pod, grace, self.now, self._around.rules))
        return pod is not None

    def _changed(self, old: Pod, pod: Pod | None) -> None:
        """Handle a pod that is terminating or gone."""
        if pod is None:
            self._gone(old)
            return
        self.pods[pod.key] = pod
        if old.metadata.deletion_timestamp is None:
            self._ending(pod)
        self._sync(pod)
        self._replace(old, is_deleted=False)

    def _ending(self, pod: Pod) -> None:
        """Let a kubelet stop a terminating pod within its grace period."""
        takes = {"stuck": None, "slow": _TO_STOP_SLOWLY}.get(self.play_of(pod), _TO_STOP)
        if takes is not None and pod.spec.node_name:
            self.after(min(takes, pod.metadata.deletion_grace_period_seconds or 0), lambda: self._stopped(pod))

    def _stopped(self, pod: Pod) -> None:
        """Confirm that a pod has ended; a Job removes its finalizer a moment later."""
        found = self.pods.get(pod.key)
        if found is None or found.metadata.uid != pod.metadata.uid:
            return
        finalizers = found.metadata.finalizers
        if not finalizers:
            self._gone(found)
        elif list(finalizers) == [JOB_FINALIZER]:
            self.after(_TO_RELEASE, lambda: self._gone(found))

    def _gone(self, pod: Pod) -> None:
        found = self.pods.get(pod.key)
        if found is None or found.metadata.uid != pod.metadata.uid:
            return
        del self.pods[pod.key]
        self._sync(pod)
        was_reported = pod.metadata.deletion_timestamp is not None
        self._replace(pod, is_deleted=True, was_reported=was_reported)
        for each in list(self.pods.values()):
            if not each.spec.node_name and each.status.phase == "Pending":
                self._soon_bound(each)

    def _replace(self, pod: Pod, *, is_deleted: bool, was_reported: bool = False) -> None:
        """Let its controller create a replacement: when it is deleted, or only once it is gone."""
        owner = controller_of(pod.metadata)
        if owner is None or owner.uid not in self._around.owners or pod.status.phase in TERMINAL_PHASES:
            return
        waits = owner.kind in ("StatefulSet", "DaemonSet") or (
            owner.kind == "Job" and f"{pod.metadata.namespace}/{owner.name}" in self._around.only_failed_are_replaced
        )
        is_first_reported = not is_deleted and pod.metadata.deletion_timestamp is None
        if not (is_deleted if waits else is_first_reported or (is_deleted and not was_reported)):
            return
        # A Job counts the pod as failed, and backs off.
        if owner.kind == "Job":
            self.after(_TO_BACK_OFF, lambda: self._make(pod))
        else:
            self._make(pod)

    def _make(self, old: Pod) -> None:
        """Create a pod to replace an old one."""
        self._made += 1
        fresh = replacement_of(old, suffix=f"new{self._made}", uid=f"new-{self._made}", now=self.now)
        if fresh is None:
            return
        self.pods[fresh.key] = fresh
        self._sync(fresh)
        self._soon_bound(fresh)

    def _soon_bound(self, pod: Pod) -> None:
        self.after(_TO_BIND, lambda: self._bind(pod))

    def _bind(self, pod: Pod) -> None:
        found = self.pods.get(pod.key)
        if found is None or found.metadata.uid != pod.metadata.uid or found.spec.node_name:
            return
        placed = self._around.place(list(self.pods.values()), self.cordoned, found)
        if placed is None:
            return
        if placed.victims:
            for victim in placed.victims:
                self.delete(victim)
            return
        bound = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, node_name=placed.node))
        self.pods[pod.key] = bound
        self.after(_TO_BE_READY, lambda: self._started(bound))

    def _started(self, pod: Pod) -> None:
        found = self.pods.get(pod.key)
        if found is None or found.metadata.uid != pod.metadata.uid or found.metadata.deletion_timestamp:
            return
        play = self.play_of(pod)
        ready = "False" if play in ("unready", "done") else "True"
        conditions = [
            PodCondition(type="Ready", status=ready, last_transition_time=self.now),
            PodCondition(type="PodScheduled", status="True", last_transition_time=self.now),
        ]
        status = msgspec.structs.replace(
            found.status, phase="Succeeded" if play == "done" else "Running", conditions=conditions
        )
        self.pods[pod.key] = msgspec.structs.replace(found, status=status)
        self._sync(pod)

    def _sync(self, pod: Pod) -> None:
        """Sync the budgets of a pod that has changed, as the disruption controller does."""
        own = [each for each in self.pods.values() if each.metadata.namespace == pod.metadata.namespace]
        for each in self._budgets_of(pod)[:1]:
            self.budgets[each.budget.key], _ = synced(each, own, self._around.scale_of, self.now)

    def play_of(self, pod: Pod) -> str:
        """Return the pod's ``play``."""
        owner = controller_of(pod.metadata)
        return self._around.play.get(f"{pod.metadata.namespace}/{owner.name}" if owner is not None else pod.key, "")

    def _budgets_of(self, pod: Pod) -> list[StoredBudget]:
        return budgets_of(pod, self.budgets.values())
