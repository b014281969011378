"""Simulates what follows when pods are created: scheduling decisions, evictions, and the replacements of victims.

The scheduler takes pods from its own queue, one by one. Between its attempts, controllers act: those of changed
workloads are simulated in full (``controllers``); for other workloads, a new pod replaces an evicted one
(``replacing``). Victims terminate within their grace period, budgets are used up and recover, and pods without a node
are retried when the queue says so. Pods run as soon as they are bound, are ready once the scheduler has nothing left to
try at that moment, and terminate when their grace period ends.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any

import msgspec

from kpreempt.admission import admit_priority
from kpreempt.analysis.algorithms import Scheduler, eviction_rules_of, pending_pods
from kpreempt.analysis.queue.waiting import Waiting, waiting_pods
from kpreempt.analysis.simulation.client import Controller, ControllerManager, Operator, PodEndings, RunTime, Stage
from kpreempt.analysis.simulation.cluster import OwnerKey, SimulatedCluster, Workloads, owner_key
from kpreempt.analysis.simulation.kubelet import Attachments, admit_pod
from kpreempt.analysis.simulation.result import Chain, Ended, result_of
from kpreempt.analysis.simulation.scheduling import (
    AT_ONCE,
    Choose,
    Pace,
    Scheduling,
    first_branch,
    in_whole_seconds,
)
from kpreempt.analysis.unread import unread_in_simulation
from kpreempt.controllers.actions import JOB_FINALIZER, SyncError
from kpreempt.controllers.disruption import Scales
from kpreempt.controllers.job import FIRST_BACKOFF, LONGEST_BACKOFF
from kpreempt.controllers.replacement import (
    MAX_DOUBLINGS,
    ORPHANED_SECONDS,
    ReplacementTiming,
    is_of_node,
    is_replaced,
    replacement_of,
    timing_of,
)
from kpreempt.errors import InputError, NotFoundError
from kpreempt.eviction.records import CREATED, Answer
from kpreempt.eviction.subresource import answer_eviction, being_terminated
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_name, controller_of, replace_in
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, AssumptionKind, Outcome, Verdict
from kpreempt.verdict.simulation import (
    ATTACHED_ELSEWHERE,
    COMPLETED,
    DRAINED,
    NOT_ADMITTED,
    Simulation,
    SimulationEnd,
    SimulationStep,
    StepKind,
)

# A priority class name, a priority and a preemption policy.
_Priority = tuple[str, int | None, str | None]


# A kubelet deletes a pod within seconds of the end of its grace period, or it is gone.
_OVERDUE_SECONDS = 120


def _times_in(cluster: ClusterSnapshot) -> Iterator[datetime]:
    """Times at which something happened in a cluster."""
    for pod in cluster.pods:
        times = (pod.metadata.creation_timestamp, pod.status.start_time)
        yield from (time for time in times if time is not None)


class Limits(msgspec.Struct, frozen=True):
    """A simulation is aborted after this many attempts, or seconds of the cluster's time.

    If controllers create more than ``pods`` pods, the simulation is an error.
    """

    attempts: int = 5000
    seconds: float = 24 * 3600.0
    pods: int = 40_000


class SimulationStart(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a simulation: plain pods that are created or deleted, and changed workloads with their controllers.

    ``lost_nodes`` are deleted nodes, of which the cluster has only the pods. ``missing_owners`` do not exist, so
    nothing recreates their pods, and new pods of ``failing_owners`` never become ready. ``later`` has further stages;
    the first one starts once ``controllers`` and ``arriving`` are done if these are ``is_awaited``, else at once.
    ``waiting`` are the pods in the queue, by default as the cluster shows it; ``observed`` are the keys of those whose
    start is reported like that of arriving ones. ``run_times`` are for pods that end, by owner; all others keep
    running. ``operator`` works on the nodes meanwhile. ``choose`` picks one of the possible results of a decision
    (``None``: the likely one, without finding the others), ``pace`` the duration of each action.
    """

    arriving: Sequence[Pod] = ()
    leaving: Sequence[str] = ()
    lost_nodes: Sequence[str] = ()
    missing_owners: Collection[OwnerKey] = ()
    failing_owners: Collection[OwnerKey] = ()
    controllers: Sequence[Controller] = ()
    is_awaited: bool = True
    later: Sequence[Stage] = ()
    run_times: Mapping[OwnerKey, RunTime] = {}
    choose: Choose | None = first_branch
    pace: Pace = AT_ONCE
    operator: Operator | None = None
    waiting: Sequence[Waiting] | None = None
    observed: Sequence[str] = ()


def simulate(
    cluster: ClusterSnapshot,
    start: SimulationStart,
    scheduler: Scheduler,
    *,
    now: datetime,
    limits: Limits | None = None,
    prepared: Any = None,
) -> tuple[Simulation, list[Assumption], ClusterSnapshot]:
    """Run a simulation in which the changes in ``start`` happen at once.

    Returns the simulation, its assumptions, and the cluster at the end. ``prepared`` is the prepared cluster, if
    available. The input is not modified, except for the controllers, which cannot be reused. Raises ``InputError`` if
    the controllers create too many pods.
    """
    run = _Run(cluster, start, scheduler, now, limits or Limits(), prepared)
    found, assumptions = run.run()
    after = run.cluster
    snapshot = msgspec.structs.replace(
        after.snapshot, pods=list(after.pods.values()), pod_disruption_budgets=after.budgets.now
    )
    return found if start.pace.is_at_once else in_whole_seconds(found), assumptions, snapshot


class _Run:
    """The simulation (``client.Client``), in which the scheduler and the controllers act in turn."""

    def __init__(
        self,
        cluster: ClusterSnapshot,
        start: SimulationStart,
        scheduler: Scheduler,
        now: datetime,
        limits: Limits,
        prepared: Any,
    ) -> None:
        self._initial = cluster
        self.cluster = SimulatedCluster(cluster, scheduler, now, prepared)
        self._start = start
        self._limits = limits
        self._classes = ClusterSnapshot(priority_classes=cluster.priority_classes, unread=cluster.unread)
        # The priority fields of a new pod, by those in the spec of its template.
        self._admitted: dict[_Priority, _Priority] = {}
        self._chain = Chain(start.missing_owners)
        self._steps: list[SimulationStep] = []
        self._messages: dict[str, str] = {}
        self._uncertain: dict[str, None] = {}
        # Future events: the time, a number that keeps events in order, and the function.
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        # The number of consecutive pod failures by Job, and the time of its next attempt.
        self._backoffs: dict[OwnerKey | None, tuple[int, float]] = {}
        self._order = itertools.count()
        self._assumptions: dict[Assumption, None] = {}
        self._made = 0
        self._num_created = 0
        self._pace = start.pace
        self._operator = start.operator
        self._eviction_rules = eviction_rules_of(scheduler.settings)
        self._terminating = {each.metadata.name for each in cluster.namespaces if each.metadata.deletion_timestamp}
        # When the scheduler learns of the pod that was created last.
        self._known_at = 0.0
        self.mutations = 0
        self._workloads = Workloads(cluster)
        # Pods without a simulated controller that a quota rejects, with the pod each replaces and the quota's message.
        self._rejected_pods: dict[str, tuple[Pod, str, str]] = {}
        self._starts_at: dict[str, float] = {}
        self._attachments = Attachments(cluster)
        # The pods that wait for a volume, by key with their UIDs, and those that no kubelet admits.
        self._without_volume: dict[str, str] = {}
        self._not_admitted: set[str] = set()
        self._first = list(start.observed)
        self._postponed: dict[str, Pod] = {}
        first = Stage(controllers=start.controllers, arriving=start.arriving, is_awaited=start.is_awaited)
        # The stage that started last, and the stages that have not started.
        self._stage, self._pending_stages = first, list(start.later)
        self._endings = PodEndings(start.run_times)
        self._all_controllers = [controller for stage in (first, *start.later) for controller in stage.controllers]
        self._manager = ControllerManager(start.controllers)
        self._waited_before = {pod.key for pod in pending_pods(cluster)}
        self._still_waiting = set(self._waited_before)
        waiting = start.waiting
        if waiting is None:
            waiting = waiting_pods(cluster, scheduler, self.cluster.prepared, now)
        self._scheduling = Scheduling(self.cluster, scheduler, start.choose, waiting)
        self._queue = self._scheduling.queue
        for pod in cluster.pods:
            until = pod.metadata.deletion_timestamp
            if until is not None and (pod.spec.node_name or not pod.is_terminal):
                if self._is_stuck(pod, until):
                    continue
                self._do_later(max((until - now).total_seconds(), 0.0), partial(self._terminated, pod.key))
            elif pod.spec.node_name and not pod.is_terminal:
                self._end_later(pod)

    def run(self) -> tuple[Simulation, list[Assumption]]:
        """Run the simulation until nothing more happens."""
        for key in self._start.leaving:
            self.delete(key, "deleted")
        for node in self._start.lost_nodes:
            self._delete_node(node)
        self._arrive_all(self._start.arriving)
        kinds = {(kind, name) for controller in self._all_controllers for _, kind, name in controller.owners}
        self.cluster.budgets.recompute_all(kinds, Scales(self.cluster.snapshot))
        self._act()
        end = self._run_loop()
        # The workloads of stages that never started wait for the first workload of the last stage.
        awaited = next(self._awaited(self._stage), "")
        ended = Ended(
            end=end,
            first=self._first,
            starts_at=self._starts_at,
            messages=self._messages,
            uncertain=frozenset(self._uncertain),
            waited_before=frozenset(self._waited_before),
            held_by=self._scheduling.held_by(),
            draws=self._scheduling.draws,
            attempts=self._scheduling.attempts,
            rejected=list(self._rejected_pods.values()),
            done={controller.workload: controller.is_done(self) for controller in self._all_controllers},
            held={each.workload: awaited for stage in self._pending_stages for each in stage.controllers},
        )
        assumptions = {
            **self._scheduling.assumptions,
            **self._manager.assumptions,
            **self.cluster.assumptions,
            **self._assumptions,
        }
        found = result_of(self.cluster, self._chain, self._steps, self._all_controllers, ended)
        arriving = [*self._start.arriving, *(pod for stage in self._start.later for pod in stage.arriving)]
        return found, list(dict.fromkeys([*unread_in_simulation(self._initial, found, arriving), *assumptions]))

    def _run_loop(self) -> SimulationEnd:
        seen = {self._state_key()}
        evictions = self._chain.evictions
        while True:
            if self._scheduling.attempts > self._limits.attempts:
                return SimulationEnd.ABORTED
            if self.cluster.quotas.has_capacity:
                self._retry()
                self._act()
            pod = self._scheduling.next_pod()
            if pod is not None:
                self._attempt(pod)
                if duration := self._pace.seconds("attempt"):
                    self._pass_until(self.cluster.at + duration)
                self._act()
                continue
            if self._pending_stages and not (self._stage.is_awaited and any(self._awaited(self._stage))):
                self._stage = self._pending_stages.pop(0)
                self._manager.add(self._stage.controllers)
                self._arrive_all(self._stage.arriving)
                self._act()
                continue
            # A state that recurs after an eviction recurs forever.
            state_key, evictions_now = self._state_key(), self._chain.evictions
            if evictions_now > evictions and state_key in seen:
                return SimulationEnd.LOOP
            seen.add(state_key)
            evictions = evictions_now
            # The time of the next event, for a pod or in the queue.
            times = [self._later[0][0]] if self._later else []
            timer = self._scheduling.next_timer()
            if timer is not None:
                times.append(timer)
            due = self._operator.due(self) if self._operator is not None else None
            if due is not None:
                times.append(due)
            at = max(self.cluster.at, min(times)) if times else None
            if at is None:
                return SimulationEnd.SETTLED
            if at > self._limits.seconds:
                return SimulationEnd.ABORTED
            self._pass_until(at)
            self._act()

    def _pass_until(self, end: float) -> None:
        """Advance the time, and run the events until then."""
        while self._later and self._later[0][0] <= end:
            at, _, event = heapq.heappop(self._later)
            self.cluster.at = max(self.cluster.at, at)
            event()
        self.cluster.at = end

    def _act(self) -> None:
        """Let controllers with pending work act, now or after their delay."""
        if self._operator is not None:
            due = self._operator.due(self)
            if due is not None and due <= self.cluster.at:
                self._operator.act(self)
        if self._pace.is_at_once:
            self._manager.act(self)
            return
        for controller in self._manager.controllers_due():
            self._do_later(self.cluster.at + self._pace.seconds("answer"), partial(self._step, controller))

    def _step(self, controller: Controller) -> None:
        self._manager.step(controller, self)
        self._act()

    def _state_key(self) -> tuple[int, tuple[object, ...]]:
        worked = self._operator.state() if self._operator is not None else None
        return self.cluster.fingerprint, (worked, *(controller.state() for controller in self._all_controllers))

    @cached_property
    def _seen_at(self) -> datetime:
        """The time of the input; if it does not say, the latest time in it, because it may be old."""
        now = self.cluster.started
        return now if self._initial.taken_at is not None else min(now, max(_times_in(self._initial), default=now))

    def _is_stuck(self, pod: Pod, until: datetime) -> bool:
        """Whether a terminating pod stays: it should be gone, and something that the input does not show delays it."""
        held_by = [finalizer for finalizer in pod.metadata.finalizers if finalizer != JOB_FINALIZER]
        overdue = ((self.cluster.started if held_by else self._seen_at) - until).total_seconds()
        if overdue < (1 if held_by else _OVERDUE_SECONDS):
            return False
        why = f"held by finalizer {held_by[0]}" if held_by else "as if its kubelet were gone"
        message = f"is {int(overdue):,}s past its grace period, {why}; assumed to stay"
        stays = Assumption(f"Pod {pod.key}", "metadata.deletionTimestamp", message, AssumptionKind.INFORMATIONAL)
        self._assumptions[stays] = None
        return True

    # Stages.

    def _arrive_all(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            # A name is only available once its previous pod is gone.
            if pod.key in self.cluster.pods:
                self._postponed[pod.key] = pod
            else:
                self._create_uncontrolled(pod, "")

    def _awaited(self, stage: Stage) -> Iterator[str]:
        """The workloads and plain pods that the next stage waits for."""
        for controller in stage.controllers:
            pods = (pod for owner in controller.owners for pod in self.cluster.pods_of(owner))
            if not controller.is_done(self) or any(self._endings.is_running(pod.key) for pod in pods):
                yield controller.workload
        for each in stage.arriving:
            pod = self.cluster.pods.get(each.key)
            is_ready = each.key in self.cluster.ready and self._endings.of(each) is None
            if pod is None or not (pod.is_terminal or is_ready):
                yield f"Pod {each.key}"

    def _end_later(self, pod: Pod) -> None:
        """Schedule the end of a running pod, if it ends."""
        seconds = self._endings.begin(pod)
        if seconds is not None:
            self._do_later(self.cluster.at + seconds, partial(self._end, pod.key, pod.metadata.uid))

    def _end(self, key: str, uid: str) -> None:
        pod = self.cluster.pods.get(key)
        if pod is None or pod.metadata.uid != uid or pod.metadata.deletion_timestamp is not None:
            return
        # Pods that were tried, have no node, and do not wait for victims.
        attempted = (self.cluster.pods.get(other) for other in self._messages if other not in self._waited_before)
        waiting = [
            each
            for each in attempted
            if each is not None and not each.spec.node_name and not each.status.nominated_node_name
        ]
        self._endings.end(pod, waiting, self._chain.is_replacement)
        self._note(StepKind.TERMINATED, pod, node=pod.spec.node_name, reason=COMPLETED)
        self._queue.assigned_pod_changed(self.cluster.end(key, "Succeeded"), None, self.cluster.now)
        self._release_volumes(pod)
        self._manager.enqueue(self._manager.of(pod))

    # Actions of controllers.

    def create(self, pod: Pod) -> None:
        """Create a pod for a controller, as the replacement of an evicted pod of the same owner, if there is one.

        Raises ``SyncError`` if a StatefulSet, which chooses names itself, finds a pod that is not its own.
        """
        owner = owner_key(pod)
        if pod.key in self.cluster.pods and owner is not None and owner[1] == "StatefulSet":
            raise SyncError(f'pods "{pod.metadata.name}" already exists')
        self._num_created += 1
        if self._num_created > self._limits.pods:
            owner_name = f"{controller_name(pod.metadata)} in namespace {pod.metadata.namespace}"
            raise InputError(f"{owner_name}: the simulation creates more than {self._limits.pods:,} pods")
        pod = self._with_free_name(self._readmit(pod))
        if self._quota_rejection(pod):
            return
        self.mutations += 1
        replaced = self._manager.take_lost(pod)
        if replaced is None:
            self._first.append(self._create(pod, cause=""))
            return
        self._chain.replaced(replaced.key, pod.key)
        self._create(pod, cause=replaced.key)

    def _readmit(self, pod: Pod) -> Pod:
        """The pod with the priority of a new one; its template comes from an existing pod.

        A template without a priority class gets the current default, not the one from when the existing pod was
        created: if a default was added since, a replacement can have a higher priority than the evicted pod. A pod
        without a class whose priority is not 0 was not admitted this way, and keeps its priority.
        """
        spec = pod.spec
        key = (spec.priority_class_name, spec.priority, spec.preemption_policy)
        if key not in self._admitted:
            self._admitted[key] = key
            bare = msgspec.structs.replace(spec, priority=None, preemption_policy=None)
            if spec.priority_class_name or pod.priority == 0:
                with suppress(NotFoundError):
                    new = admit_priority(msgspec.structs.replace(pod, spec=bare), self._classes).pod.spec
                    self._admitted[key] = (new.priority_class_name, new.priority, new.preemption_policy)
        name, priority, policy = self._admitted[key]
        if (name, priority, policy) == key:
            return pod
        return replace_in(pod, "spec", priority_class_name=name, priority=priority, preemption_policy=policy)

    def _with_free_name(self, pod: Pod) -> Pod:
        """The pod with a name that no other pod has; a StatefulSet's pod keeps its own."""
        name = pod.metadata.name
        for number in itertools.count(2):
            if f"{pod.metadata.namespace}/{name}" not in self.cluster.pods:
                break
            name = f"{pod.metadata.name}-{number}"
        return pod if name == pod.metadata.name else replace_in(pod, "metadata", name=name)

    def delete(self, key: str, reason: str) -> None:
        """Request the deletion of a pod, for a controller or for the change itself."""
        pod = self.cluster.pods.get(key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        self._note(StepKind.TERMINATING, pod, node=pod.spec.node_name, reason=reason)
        self.mutations += 1
        self._terminate(pod)

    def release(self, key: str) -> None:
        """Remove a Job's finalizer from a pod; if the pod has ended, it is then gone."""
        self.mutations += 1
        pod = self.cluster.pods.get(key)
        # A pod without a node is gone as soon as its deletion is requested.
        if pod is None:
            return
        self.cluster.release(key, JOB_FINALIZER)
        if pod.is_terminal and pod.metadata.deletion_timestamp is not None:
            self._remove(key)

    def resize(self, name: str, owner: str, replicas: int) -> None:
        """Resize a ReplicaSet for a Deployment."""
        self.mutations += 1
        self._steps.append(
            SimulationStep(at=self.cluster.at, kind=StepKind.SCALED, pod=name, owner=owner, replicas=replicas)
        )

    def call_again(self, controller: Controller, after: timedelta) -> None:
        """Call the controller again later."""
        self._do_later(self.cluster.at + after.total_seconds(), lambda: self._manager.enqueue(controller))

    def _quota_rejection(self, pod: Pod) -> str:
        """Why a quota rejects the pod, empty if none does; the first rejection for a workload is recorded as a step."""
        quota, message = self.cluster.quotas.admit(pod)
        if quota is not None and self.cluster.quotas.reject(self._workloads.of(pod), quota, message, self.cluster.at):
            self._note(StepKind.REJECTED, pod, message=message)
        return message

    def _retry(self) -> None:
        """Retry rejected pods in namespaces whose quotas have capacity again."""
        while self.cluster.quotas.has_capacity:
            namespace = self.cluster.quotas.has_capacity.pop()
            self.cluster.quotas.begin()
            self._manager.call_rejected(namespace)
            for key, (pod, cause, _) in list(self._rejected_pods.items()):
                if pod.metadata.namespace == namespace:
                    del self._rejected_pods[key]
                    self._create_uncontrolled(pod, cause)

    def _create_uncontrolled(self, pod: Pod, cause: str) -> None:
        """Create a pod without a simulated controller, replacing ``cause`` if set, unless a quota rejects it."""
        if message := self._quota_rejection(pod):
            self._rejected_pods[pod.key] = (pod, cause, message)
            return
        if cause:
            self._chain.replaced(cause, pod.key)
            self._create(pod, cause=cause)
        else:
            self._first.append(self._create(pod, cause=""))

    # Actions of the scheduler.

    def _attempt(self, pod: Pod) -> None:
        verdict = self._scheduling.decide(pod)
        if verdict.outcome is Outcome.LANDS:
            self._schedule(pod, verdict)
            return
        if verdict.outcome.finds_node:
            self._evict(pod, verdict)
        else:
            message = verdict.message or verdict.reason
            if verdict.outcome is Outcome.UNCERTAIN:
                self._uncertain[pod.key] = None
            if self._messages.get(pod.key) != message:
                self._messages[pod.key] = message
                # A pod that was pending before the simulation is not a new event.
                if pod.key not in self._still_waiting:
                    self._note(StepKind.PENDING, pod, message=message)
        self._scheduling.unbound(pod.key, verdict)
        is_refused = verdict.eligibility is not None and not verdict.eligibility.eligible
        if pod.status.nominated_node_name and verdict.outcome is Outcome.UNSCHEDULABLE and not is_refused:
            # No candidate for a preemption was found (``Preempt``).
            old, new = self.cluster.clear_nomination(pod.key)
            self._queue.update(old, new, self.cluster.now)

    def _schedule(self, pod: Pod, verdict: Verdict) -> None:
        branch, tied = self._scheduling.draw(verdict)
        node = branch.node
        self._messages.pop(pod.key, None)
        # Some pods are only scheduled after another one has ended, at an unknown time.
        ended = self._endings.reserve_found(pod.key)
        if ended is not None:
            message = "the run time of its pods is unknown, and other pods stay pending until they end"
            subject = self._workloads.of(ended)
            self._assumptions[Assumption(subject, "spec.activeDeadlineSeconds", message, AssumptionKind.UNCERTAIN)] = (
                None
            )
        self._still_waiting.discard(pod.key)
        volumes = self.cluster.snapshot.persistent_volumes
        bound = self.cluster.bind(pod.key, node, verdict.devices.get(node, ()))
        if self.cluster.snapshot.persistent_volumes is not volumes:
            for kind in ("PersistentVolume", "PersistentVolumeClaim"):
                self._queue.object_changed(kind, "Update", self.cluster.now)
        self._starts_at.setdefault(pod.key, self.cluster.at)
        self._chain.bound(pod.key, node)
        self._note(StepKind.BOUND, pod, node=node, tied=tied)
        self._scheduling.bound(pod, bound)
        self._start_on_node(bound)

    def _start_on_node(self, pod: Pod) -> None:
        """Start a pod that has a node, unless one of its volumes is attached to another node until then."""
        self._attachments.use(pod)
        ready_at = self.cluster.at + self._pace.seconds("readiness")
        self._do_later(ready_at, partial(self._become_ready, pod.key, pod.metadata.uid))

    def _become_ready(self, key: str, uid: str) -> None:
        pod = self.cluster.pods.get(key)
        if pod is None or pod.metadata.uid != uid or pod.metadata.deletion_timestamp is not None:
            return
        holders = self._attachments.bound_elsewhere(pod)
        if holders is not None:
            if self._without_volume.get(key) != uid:
                self._without_volume[key] = uid
                pods = ", ".join(holders.pods)
                message = (
                    f"volume {holders.volume} can be attached to only one node, and is attached to {holders.node} for"
                    f" {pods}"
                )
                self._note(StepKind.BLOCKED, pod, node=pod.spec.node_name, reason=ATTACHED_ELSEWHERE, message=message)
            return
        self._without_volume.pop(key, None)
        if owner_key(pod) in self._start.failing_owners:
            return
        self.cluster.become_ready(key)
        self._end_later(pod)
        controller = self._manager.of(pod)
        self._manager.enqueue(controller)
        if controller is not None and controller.min_ready_seconds:
            self._do_later(self.cluster.at + controller.min_ready_seconds, lambda: self._manager.enqueue(controller))

    def _release_volumes(self, pod: Pod) -> None:
        """Note that the containers of a pod have ended; pods that wait for one of its volumes start."""
        if self._attachments.release(pod):
            ready_at = self.cluster.at + self._pace.seconds("readiness")
            for key, uid in self._without_volume.items():
                self._do_later(ready_at, partial(self._become_ready, key, uid))

    def _admit(self, pod: Pod) -> None:
        """Let the kubelet start a pod that bypassed the scheduler, reject it, or evict others for it."""
        name = pod.spec.node_name
        node = next((each for each in self.cluster.snapshot.nodes if each.name == name), None)
        others = [each for each in self.cluster.pods_on(name) if each.key not in self._not_admitted]
        problem, victims = admit_pod(pod, node, others)
        if problem:
            # A controller would create the next one over and over, so one stands for all.
            self._not_admitted.add(pod.key)
            self._note(StepKind.BLOCKED, pod, node=name, reason=NOT_ADMITTED, message=problem)
            return
        violated = self.cluster.budgets.broken_by(victims)
        for victim in victims:
            if victim.metadata.deletion_timestamp is None:
                self._evicted(victim.key, pod.key, violated.get(victim.key, ()))
        self._start_on_node(pod)

    def _evict(self, pod: Pod, verdict: Verdict) -> None:
        branch, tied = self._scheduling.draw(verdict)
        node = branch.node
        self._messages[pod.key] = verdict.message
        self._still_waiting.discard(pod.key)
        self._note(StepKind.NOMINATED, pod, node=node, tied=tied)
        for old, new in self.cluster.nominate(pod.key, node):
            if old.key != pod.key:
                self._queue.update(old, new, self.cluster.now)
        self._queue.nominate(self.cluster.pods[pod.key], node, self.cluster.now)
        leaving = [self.cluster.pods[key] for key in branch.leaving]
        violated = self.cluster.budgets.broken_by(leaving) if branch.violated is None else branch.violated
        for victim in leaving:
            if victim.metadata.deletion_timestamp is None:
                self._evicted(victim.key, pod.key, violated.get(victim.key, ()))

    def _evicted(self, key: str, cause: str, violated: Sequence[str]) -> None:
        pod = self.cluster.pods[key]
        self.cluster.budgets.violated(violated)
        self._chain.evicted(pod, cause, violated)
        self._note(StepKind.TERMINATING, pod, node=pod.spec.node_name, cause=cause, violated=list(violated))
        self.cluster.mark_preempted(key)
        self._displace(pod)

    def _displace(self, pod: Pod, grace: int | None = None) -> None:
        """Delete a pod that its controller will replace."""
        self._note_unknowns(pod)
        self._terminate(pod, grace)
        if self._manager.of(pod) is not None:
            self._manager.pod_lost(pod)
        else:
            self._replace_soon(pod)

    def _replace_soon(self, pod: Pod) -> None:
        """Replace a pod without a simulated controller, now or after a backoff."""
        moment = timing_of(pod) if self._chain.is_recreated(pod) else None
        if moment is ReplacementTiming.AT_ONCE:
            self._soon(lambda: self._replace(pod))
        elif moment is ReplacementTiming.AFTER_BACKOFF:
            failures, _ = self._backoffs.get(owner_key(pod), (0, 0.0))
            wait: timedelta = min(FIRST_BACKOFF * 2 ** min(failures, MAX_DOUBLINGS), LONGEST_BACKOFF)
            end = self.cluster.at + wait.total_seconds()
            self._backoffs[owner_key(pod)] = (failures + 1, end)
            self._do_later(end, partial(self._replace_after_backoff, pod))

    def _note_unknowns(self, pod: Pod) -> None:
        """Record the unknown consequences of a pod's deletion."""
        found = {}
        # The Job controller removes its own finalizer when it counts the pod.
        held_by = [finalizer for finalizer in pod.metadata.finalizers if finalizer != JOB_FINALIZER]
        if held_by:
            found["metadata.finalizers"] = (
                f"blocked by finalizer {held_by[0]}; assumed to be deleted when its grace period ends"
            )
        owner = controller_name(pod.metadata)
        if controller_of(pod.metadata) is not None and not is_replaced(pod):
            found["metadata.ownerReferences"] = (
                f"it is unknown how {owner} replaces its pods; the simulation does not replace the pod"
            )
        for field, message in found.items():
            self._assumptions[Assumption(f"Pod {pod.key}", field, message, AssumptionKind.UNCERTAIN)] = None

    # Actions of an operator on nodes.

    def evict(self, key: str, grace: int | None, node: str) -> Answer:
        """The API server's response to an eviction, which is carried out if allowed."""
        namespace, _, name = key.partition("/")
        if namespace in self._terminating:
            return being_terminated(namespace, name)
        stored = self.cluster.as_stored(key)
        budgets = self.cluster.budgets.of(stored) if stored is not None else []
        answer = answer_eviction(name, stored, budgets, self.cluster.now, self._eviction_rules)
        if answer.status == CREATED:
            self._drain(key, grace, node, [])
        return answer

    def kill(self, key: str, grace: int | None, node: str) -> None:
        """Delete a pod without checking its budgets."""
        pod = self.cluster.pods.get(key)
        if pod is not None:
            violated = self.cluster.budgets.broken_by([pod])[key] if key in self.cluster.ready else []
            self.cluster.budgets.violated(violated)
            self._drain(key, grace, node, violated)

    def _drain(self, key: str, grace: int | None, node: str, violated: Sequence[str]) -> None:
        pod = self.cluster.pods[key]
        if pod.metadata.deletion_timestamp is not None:
            return
        cause = f"Node {node}"
        self._note(StepKind.TERMINATING, pod, node=node, cause=cause, reason=DRAINED, violated=list(violated))
        if pod.is_terminal:
            self.cluster.leave(key, 0)
            self._remove(key)
            return
        self._chain.evicted(pod, cause, violated, is_drained=True)
        self._displace(pod, grace)

    def place_bound(self, pods: Sequence[Pod]) -> None:
        """Add pods that already have a node."""
        for pod in pods:
            self._create(self._with_free_name(pod), cause="", is_admitted=True)

    def set_nodes(self, nodes: Sequence[Node]) -> None:
        """Replace the nodes of the cluster; pods on removed nodes are deleted with them."""
        before = {each.name: each for each in self.cluster.snapshot.nodes}
        after = {each.name for each in nodes}
        for name in before:
            if name not in after:
                for pod in self.cluster.pods_on(name):
                    self.cluster.leave(pod.key, 0)
                    self._remove(pod.key)
        self.cluster.set_nodes(list(nodes))
        for node in nodes:
            old = before.get(node.name)
            if old is None:
                self._queue.node_changed(None, node, self.cluster.now)
            elif old is not node:
                self._queue.node_changed(old, node, self.cluster.now)
        for name, old in before.items():
            if name not in after:
                self._queue.node_changed(old, None, self.cluster.now)

    # Deleted nodes.

    def _delete_node(self, name: str) -> None:
        """Handle the deletion of a node: its pods stop serving without a budget check, and PodGC deletes them later."""
        node = f"Node {name}"
        for pod in [
            each for each in self.cluster.pods.values() if each.spec.node_name == name and not each.is_terminal
        ]:
            budgets = self.cluster.budgets
            is_counted = pod.key in self.cluster.ready and not is_of_node(pod)
            violated = budgets.broken_by([pod])[pod.key] if is_counted else []
            self._note(StepKind.TERMINATING, pod, node=name, cause=node, reason="node-deleted", violated=list(violated))
            self.cluster.pod_lost(pod.key)
            if not is_of_node(pod):
                budgets.violated(violated)
                self._chain.evicted(pod, node, violated, is_with_node=True)
                self._note_unknowns(pod)
            self._do_later(self.cluster.at + ORPHANED_SECONDS, partial(self._collect, pod))

    def _collect(self, pod: Pod) -> None:
        """PodGC deletes a pod whose node is gone, without a grace period."""
        current = self.cluster.pods.get(pod.key)
        if current is None or current.metadata.uid != pod.metadata.uid:
            return
        self.cluster.leave(pod.key)
        has_controller = self._manager.of(pod) is not None
        if has_controller and not is_of_node(pod):
            self._manager.pod_lost(pod)
        self._terminated(pod.key)
        if not has_controller and not is_of_node(pod):
            self._replace_soon(pod)

    # State changes of pods.

    def _create(self, pod: Pod, *, cause: str, is_admitted: bool = False) -> str:
        """Create a pod, and return its key; with a node, it runs if ``is_admitted`` or if the kubelet admits it."""
        pod = self.cluster.create(pod)
        if not cause:
            self._chain.created(pod.key)
        self._note(StepKind.CREATED, pod, cause=cause)
        if pod.spec.node_name:
            self._queue.assigned_pod_changed(None, pod, self.cluster.now)
            (self._start_on_node if is_admitted else self._admit)(pod)
        elif self._pace.is_at_once:
            self._queue.add(pod, self.cluster.now)
        else:
            self._known_at = max(self._known_at, self.cluster.at) + self._pace.seconds("creation")
            self._do_later(self._known_at, partial(self._enqueue, pod.key, pod.metadata.uid))
        return pod.key

    def _terminate(self, pod: Pod, grace: int | None = None) -> None:
        """Request the deletion of a pod; one without a node is gone at once."""
        deleted_at = self.cluster.leave(pod.key, grace)
        self._manager.enqueue(self._manager.of(pod))
        if not pod.spec.node_name:
            self._remove(pod.key)
            return
        self._queue.assigned_pod_changed(pod, self.cluster.pods[pod.key], self.cluster.now)
        self._do_later(deleted_at + self._pace.seconds("answer"), partial(self._terminated, pod.key))

    def _enqueue(self, key: str, uid: str) -> None:
        """Let the scheduler learn of a pod, if it still exists."""
        pod = self.cluster.pods.get(key)
        if pod is not None and pod.metadata.uid == uid:
            self._queue.add(pod, self.cluster.now)

    def _soon(self, event: Callable[[], None]) -> None:
        """Run an event now, or after a controller's delay."""
        if self._pace.is_at_once:
            event()
        else:
            self._do_later(self.cluster.at + self._pace.seconds("answer"), event)

    def _do_later(self, at: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._later, (at, next(self._order), event))

    def _terminated(self, key: str) -> None:
        pod = self.cluster.pods.get(key)
        if pod is None:
            return
        controller = self._manager.of(pod)
        if controller is not None and JOB_FINALIZER in pod.metadata.finalizers:
            # It no longer uses resources, and remains until the Job has counted it.
            self._queue.assigned_pod_changed(self.cluster.end(key, "Failed"), None, self.cluster.now)
            self._release_volumes(pod)
            self._manager.enqueue(controller)
            return
        self._remove(key)

    def _remove(self, key: str) -> None:
        pod = self.cluster.remove(key)
        self._release_volumes(pod)
        self._not_admitted.discard(key)
        self._without_volume.pop(key, None)
        self._messages.pop(key, None)
        controller = self._manager.of(pod)
        self._manager.enqueue(controller)
        if pod.spec.node_name:
            self._note(StepKind.TERMINATED, pod, node=pod.spec.node_name)
            if not pod.is_terminal:
                self._queue.assigned_pod_changed(pod, None, self.cluster.now)
            if (
                self._chain.was_evicted(key)
                and controller is None
                and timing_of(pod) is ReplacementTiming.AFTER_DELETION
                and self._chain.is_recreated(pod)
            ):
                self._soon(lambda: self._replace(pod))
        else:
            self._queue.delete(pod, self.cluster.now)
        # Create a plain pod that waited for its name to be available.
        if key in self._postponed:
            self._create_uncontrolled(self._postponed.pop(key), "")

    def _replace_after_backoff(self, pod: Pod) -> None:
        _, end = self._backoffs[owner_key(pod)]
        if end > self.cluster.at:
            # Another pod of the Job failed meanwhile.
            self._do_later(end, partial(self._replace_after_backoff, pod))
        else:
            self._replace(pod)

    def _replace(self, pod: Pod) -> None:
        self._made += 1
        name = f"new-{self._made}"
        replacement = replacement_of(pod, suffix=name, uid=name, now=self.cluster.now, rules=self.cluster.rules)
        if replacement is None:
            return
        replacement = self._with_free_name(self._readmit(replacement))
        self._create_uncontrolled(replacement, pod.key)

    def _note(self, kind: StepKind, pod: Pod, **details: Any) -> None:
        """Add a step about a pod; ``details`` are other fields of the step."""
        step = SimulationStep(
            at=self.cluster.at,
            kind=kind,
            pod=pod.key,
            priority=pod.priority,
            owner=controller_name(pod.metadata),
            **details,
        )
        self._steps.append(step)
