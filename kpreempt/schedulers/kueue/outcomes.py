"""What a cycle does to Workloads: conditions, events and admissions, with Kueue's words."""

from __future__ import annotations

from typing import Any, NamedTuple

from kpreempt.schedulers.kueue import configuration as gates
from kpreempt.schedulers.kueue.amounts import pod_requests_of
from kpreempt.schedulers.kueue.cluster_queues import Queue
from kpreempt.schedulers.kueue.configuration import KueueConfiguration
from kpreempt.schedulers.kueue.entries import ASSUMED, Entry
from kpreempt.schedulers.kueue.preemption import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
    Target,
)
from kpreempt.schedulers.kueue.records import written_pod_set
from kpreempt.schedulers.kueue.topology import DomainPods
from kpreempt.schedulers.kueue.workloads import (
    ADMITTED,
    EVICTED,
    PREEMPTED,
    QUOTA_RESERVED,
    REQUEUED,
    Cond,
    Info,
    PodSetRequests,
)

_WORDS = {
    IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    IN_COHORT_RECLAMATION: "reclamation within the cohort",
    IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}
_PENDING = "Pending"
_MOST_EVENT = 1024
_MOST_CONDITION = 32 * 1024


class Event(NamedTuple):
    """An event about a Workload."""

    object: str
    type: str
    reason: str
    message: str


def _cut(message: str, most: int) -> str:
    encoded = message.encode()
    return message if len(encoded) <= most else encoded[: most - 4].decode(errors="ignore") + " ..."


class Outcomes:
    """Collects what happens; Workloads are changed once the cycle is over."""

    def __init__(self, config: KueueConfiguration, now: int) -> None:
        self._config = config
        self._now = now
        self.events: list[Event] = []
        self.conditions: dict[str, dict[str, Cond]] = {}
        self.admissions: dict[str, dict[str, Any]] = {}
        self.evicted: list[Info] = []
        self.admitted: list[tuple[Info, Queue, list[PodSetRequests]]] = []
        self._changed: list[tuple[Info, str, Cond]] = []

    def apply(self) -> None:
        """Change the Workloads: their conditions, and what they have."""
        for info, kind, condition in self._changed:
            info.conditions[kind] = condition
        for info, queue, requests in self.admitted:
            info.take(requests, queue.name)

    def _set(self, info: Info, kind: str, status: str, reason: str, message: str) -> None:
        before = info.conditions.get(kind)
        at = before.at if before is not None and before.status == status else self._now
        condition = Cond(status, reason, _cut(message, _MOST_CONDITION), at)
        if before is None or before[:3] != condition[:3]:
            self.conditions.setdefault(info.key, {})[kind] = condition
        self._changed.append((info, kind, condition))

    def _tell(self, info: Info, kind: str, reason: str, message: str) -> None:
        self.events.append(Event(info.key, kind, reason, message))

    def leave_pending(self, entry: Entry) -> None:
        """A head that was not admitted."""
        info = entry.info
        reason = entry.quota_reason if self._config.has(gates.OBSERVABILITY) else _PENDING
        self._set(info, QUOTA_RESERVED, "False", reason, entry.message)
        self._sync_admitted(info, has_quota=False)
        self._tell(info, "Warning", reason, _cut(entry.message, _MOST_EVENT))

    def _sync_admitted(self, info: Info, *, has_quota: bool, is_delayed: bool = False) -> None:
        ready = all(each == "Ready" for each in info.check_states)
        observes = self._config.has(gates.OBSERVABILITY)
        if not observes and info.is_true(ADMITTED) == (has_quota and ready and not is_delayed):
            return
        if not has_quota:
            both = not ready and not observes
            reason = "NoReservationUnsatisfiedChecks" if both else "NoReservation"
            message = f"The workload has no reservation{' and not all checks ready' if both else ''}"
            self._set(info, ADMITTED, "False", reason, message)
        elif not ready:
            reason = "UnsatisfiedAdmissionChecks" if observes else "UnsatisfiedChecks"
            self._set(info, ADMITTED, "False", reason, "The workload has not all checks ready")
        elif is_delayed:
            message = "There are pending delayed topology requests"
            self._set(info, ADMITTED, "False", "PendingDelayedTopologyRequests", message)
        else:
            self._set(info, ADMITTED, "True", ADMITTED, "The workload is admitted")

    def admit(self, entry: Entry) -> None:
        """A head that gets quota."""
        info, queue = entry.info, entry.queue
        entry.status = ASSUMED
        given = entry.assignment.pod_sets
        admission = {"clusterQueue": queue.name, "podSetAssignments": [written_pod_set(each) for each in given]}
        entry.admission = self.admissions[info.key] = admission
        self._set(info, QUOTA_RESERVED, "True", QUOTA_RESERVED, f"Quota reserved in ClusterQueue {queue.name}")
        for kind in (EVICTED, PREEMPTED):
            before = info.conditions.get(kind)
            if before is not None and before.is_true:
                self._set(info, kind, "False", QUOTA_RESERVED, f"Previously: {before.message}")
        wanted = queue.checks_for(each.name for one in given for each in one.flavors.values())
        has_checks = wanted <= {each.name for each in info.workload.status.admission_checks}
        if has_checks:
            self._sync_admitted(info, has_quota=True, is_delayed=any(each.is_delayed for each in given))
        self._tell_admission(entry, has_checks=has_checks)
        self.admitted.append((info, queue, _taken(entry)))

    def _tell_admission(self, entry: Entry, *, has_checks: bool) -> None:
        info, name = entry.info, entry.queue.name
        since = info.conditions[REQUEUED].at if REQUEUED in info.conditions else info.created
        if not info.has_quota:
            waited = round((self._now - since) / 1000)
            considered = entry.assignment.considered
            told = f"Quota reserved in ClusterQueue {name}, wait time since queued was {waited}s"
            told += f"; Flavors considered: {considered}" if considered else ""
            self._tell(info, "Normal", QUOTA_RESERVED, _cut(told, _MOST_EVENT))
        admitted = self.conditions.get(info.key, {}).get(ADMITTED, info.conditions.get(ADMITTED))
        if has_checks and admitted is not None and admitted.is_true:
            told = f"Admitted by ClusterQueue {name}, wait time since reservation was 0s"
            self._tell(info, "Normal", ADMITTED, told)

    def evict(self, entry: Entry, target: Target, queue: Queue) -> None:
        """A Workload that is preempted; one that is evicted already is left as it is."""
        info, preemptor = target.info, entry.info
        if info.is_evicted:
            return
        words = _WORDS.get(target.reason, "UNKNOWN")
        message = (
            f"Preempted to accommodate a workload (UID: {preemptor.uid or 'UNKNOWN'}, "
            f"JobUID: {preemptor.job_uid or 'UNKNOWN'}) due to {words}; "
            f"preemptor path: {entry.queue.node.path}; preemptee path: {queue.node.path}"
        )
        self._set(info, PREEMPTED, "True", target.reason, message)
        self._set(info, EVICTED, "True", PREEMPTED, message)
        self.evicted.append(info)
        own, other = _priority(preemptor), _priority(info)
        self._tell(info, "Normal", "EvictedDueToPreempted", _cut(message, _MOST_EVENT))
        told = f"preemptor effective priority: {own}; preemptee effective priority: {other}"
        self._tell(info, "Normal", PREEMPTED, f"{message}; {told}")
        gone = f"Preempted workload {info.key} (UID: {info.uid}) in ClusterQueue {queue.name}"
        self._tell(preemptor, "Normal", "PreemptedWorkload", f"{gone}; {told}")


def _priority(info: Info) -> str:
    return f"{info.effective_priority} (base: {info.priority}, boost: {info.boost})"


def _taken(entry: Entry) -> list[PodSetRequests]:
    """What the Workload uses from now on."""
    specs = {each.name: each.template.spec for each in entry.info.pod_sets}
    found = []
    for given in entry.assignment.pod_sets:
        flavors = {resource: each.name for resource, each in given.flavors.items()}
        requests = {resource: given.requests.get(resource, 0) for resource in flavors}
        domains = None
        if given.placed is not None:
            one = pod_requests_of(specs[given.name])
            domains = tuple(DomainPods(values, one, count) for values, count in given.placed)
        found.append(PodSetRequests(given.name, requests, given.count, flavors, domains))
    return found
