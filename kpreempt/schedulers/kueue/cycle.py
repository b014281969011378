"""One scheduling cycle: nominate the heads, and process them in order (``schedule`` of Kueue v0.19.2).

The effects on Workloads are conditions, events and admissions, in Kueue's own words. The evidence is plain data: quota
trees, assignments, targets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from kpreempt.schedulers.kueue.assignment import WAITING_FOR_QUOTA, Assignment, Mode, PodSetAssignment
from kpreempt.schedulers.kueue.chance import Chance
from kpreempt.schedulers.kueue.cluster_queues import (
    ADMITTED,
    EVICTED,
    PREEMPTED,
    QUOTA_RESERVED,
    REQUEUED,
    Cond,
    Info,
    PodSetRequests,
    Queue,
)
from kpreempt.schedulers.kueue.nomination import (
    ASSUMED,
    NAMESPACE_MESSAGE,
    SKIPPED,
    Entry,
    Nominator,
    resource_problem,
    turns,
)
from kpreempt.schedulers.kueue.objects import Gate, KueueConfiguration
from kpreempt.schedulers.kueue.preemption import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
    Target,
)
from kpreempt.schedulers.kueue.quota import Amounts, FlavorResource, Node, amount_text, pod_requests_of, share_of
from kpreempt.schedulers.kueue.state import (
    FAILED_AFTER_NOMINATION,
    NAMESPACE_MISMATCH,
    NO_FIT,
    PENDING_PREEMPTION,
    PREEMPTION_NO_CANDIDATES,
    State,
)
from kpreempt.schedulers.kueue.topology import DomainPods, written

MISCONFIGURED = "Misconfigured"
PENDING_EVALUATION = "PendingEvaluation"
WAITING_FOR_PREEMPTED = "WaitingForPreemptedWorkloads"
OVERLAPS = "Workload has overlapping preemption targets with another workload"
NO_LONGER_FITS = "Workload no longer fits after processing another workload"
_WILL_FIT = f"{OVERLAPS}, but will fit after these preemptions complete"


class Cycle:
    """A cycle, from popping the heads to requeueing them."""

    def __init__(self, state: State, number: int, now: int, chance: Chance) -> None:
        self.state = state
        self.number = number
        self.now = now
        self.config = state.config
        self.entries: list[Entry] = []
        self.inadmissible: list[Entry] = []
        self.skipped_preemptions: Counter[str] = Counter()
        self.stage = state.stage(now, chance)
        self.outcomes = Outcomes(state.config, now)
        self._taken: dict[str, Info] = {}
        self._nominator = Nominator(self.stage, state.flavors, number)

    def heads(self) -> list[Entry]:
        """Pop one Workload from each active ClusterQueue, by queue name."""
        found = []
        for name, queue in self.state.active.items():
            pending = self.state.pending[name]
            info = pending.pop()
            if info is not None:
                found.append(Entry(info, queue, pending.preemptor == info.key))
        return sorted(found, key=lambda each: each.info.key)

    def run(self, heads: list[Entry]) -> None:
        """Process the heads."""
        nominated = [each for each in heads if self._nominate(each)]
        for entry in turns(nominated, self.config, self.stage.chance):
            self.entries.append(entry)
            self._process(entry)
            entry.final = described(entry.assignment, entry.targets, observes=self.config.has(Gate.OBSERVABILITY))
        for entry in (*self.entries, *self.inadmissible):
            if entry.admission is not None:
                continue
            if entry.status == SKIPPED and not entry.requeue_reason:
                entry.requeue_reason = FAILED_AFTER_NOMINATION
            self.state.pending[entry.queue.name].requeue(entry.info, entry.requeue_reason, self.now)
            self.outcomes.leave_pending(entry)

    def _nominate(self, entry: Entry) -> bool:
        info, queue = entry.info, entry.queue
        if {"Retry", "Rejected"} & set(info.check_states):
            entry.message, entry.quota_reason = "The workload has failed admission checks", PENDING_EVALUATION
        elif not self.state.namespace_matches(queue, info):
            entry.message, entry.quota_reason = NAMESPACE_MESSAGE, MISCONFIGURED
            entry.requeue_reason = NAMESPACE_MISMATCH
        elif problem := resource_problem(info, self.state.limit_ranges.get(info.namespace, [])):
            entry.message, entry.quota_reason = problem, MISCONFIGURED
        else:
            self._assign(entry)
            entry.nominated = described(entry.assignment, entry.targets, observes=self.config.has(Gate.OBSERVABILITY))
            return True
        self.inadmissible.append(entry)
        return False

    def _assign(self, entry: Entry, only: dict[str, dict[str, str]] | None = None) -> None:
        entry.assignment, entry.targets = self._nominator.nominate(entry.info, entry.queue, only)
        entry.message = entry.assignment.message

    def _process(self, entry: Entry) -> None:
        queue = entry.queue
        # Check whether the entry still fits. If not, it may be nominated again with the same flavors.
        has_quota, fits_topology = self._fits(entry)
        new_for_targets = self._overlaps(entry) and self.config.has(Gate.OVERLAP_RECOMPUTE)
        new_for_capacity = has_quota and not fits_topology and self.config.has(Gate.TOPOLOGY_RECOMPUTE)
        if not (new_for_targets or new_for_capacity):
            fits = has_quota and fits_topology
        else:
            entry.is_recomputed = True
            entry.info.memory = None
            only = {
                given.name: {resource: each.name for resource, each in given.flavors.items()}
                for given in entry.assignment.pod_sets
            }
            with self.stage.without(self._taken.values() if new_for_targets else ()):
                self._assign(entry, only)
            if new_for_targets and entry.assignment.mode is Mode.FIT:
                entry.assignment.set_mode(Mode.DEFERRED_FIT)
            fits = all(self._fits(entry))
        mode = entry.assignment.mode
        if mode is Mode.NO_FIT:
            entry.requeue_reason, entry.quota_reason = NO_FIT, entry.assignment.no_fit_reason
        elif mode is Mode.PREEMPT and not entry.targets:
            entry.requeue_reason, entry.quota_reason = PREEMPTION_NO_CANDIDATES, WAITING_FOR_QUOTA
            self._reserve(entry)
        elif mode is Mode.DEFERRED_FIT:
            entry.message, entry.quota_reason = _WILL_FIT, WAITING_FOR_PREEMPTED
            entry.requeue_reason, entry.info.memory = PENDING_PREEMPTION, None
            queue.use(entry.quota, entry.topology)
        elif self._overlaps(entry):
            entry.skip(OVERLAPS, self.config)
            entry.quota_reason = WAITING_FOR_QUOTA
            self.skipped_preemptions[queue.name] += 1
        elif not fits:
            entry.skip(NO_LONGER_FITS, self.config)
            entry.quota_reason = WAITING_FOR_QUOTA
            if mode is Mode.PREEMPT:
                self.skipped_preemptions[queue.name] += 1
        else:
            self._taken.update((each.info.key, each.info) for each in entry.targets)
            queue.use(entry.quota, entry.topology)
            if mode is Mode.PREEMPT:
                entry.quota_reason = WAITING_FOR_PREEMPTED
                for each in entry.targets:
                    self.outcomes.evict(entry, each, self.state.queues[each.info.cluster_queue])
                entry.info.memory = None
                entry.message += f". Pending the preemption of {len(entry.targets)} workload(s)"
                entry.requeue_reason = PENDING_PREEMPTION
            else:
                self.outcomes.admit(entry)

    def _overlaps(self, entry: Entry) -> bool:
        return any(each.info.key in self._taken for each in entry.targets)

    def _fits(self, entry: Entry) -> tuple[bool, bool]:
        """Return whether the quota and the domains suffice once all targets so far, including its own, are evicted."""
        gone_infos = {**self._taken, **{each.info.key: each.info for each in entry.targets}}.values()
        for each in gone_infos:
            self.stage.remove(each)
        node = entry.queue.node
        has_quota = all(max(0, node.available(fr)) >= amount for fr, amount in entry.quota.items())
        fits_topology = has_quota and all(
            entry.queue.topologies[flavor].fits(pods) for flavor, pods in entry.topology.items()
        )
        for each in gone_infos:
            self.stage.restore(each)
        return has_quota, fits_topology

    def _reserve(self, entry: Entry) -> None:
        """Reserve quota for a Workload that waits without targets, if it could not be reclaimed from others."""
        can_reclaim = entry.queue.preemption.reclaim_within_cohort == "Any"
        is_preemptor = self.config.has(Gate.PRIORITIZE_PREEMPTORS) and entry.is_preemptor
        if can_reclaim and not is_preemptor:
            return
        node = entry.queue.node
        reserved: Amounts = {}
        for fr, amount in entry.quota.items():
            quota, used = node.quota(fr), node.usage.get(fr, 0)
            if entry.assignment.borrowing == 0:
                reserved[fr] = max(0, min(amount, quota.nominal - used))
            elif quota.borrowing_limit is None:
                reserved[fr] = amount
            else:
                reserved[fr] = min(amount, quota.nominal + quota.borrowing_limit - used)
        entry.queue.use(reserved, entry.topology)


_WORDS = {
    IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    IN_COHORT_RECLAMATION: "reclamation within the cohort",
    IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}
_PENDING = "Pending"
_MAX_EVENT_LENGTH = 1024
_MAX_CONDITION_LENGTH = 32 * 1024


class Event(NamedTuple):
    """An event on a Workload."""

    object: str
    type: str
    reason: str
    message: str


def _cut(message: str, most: int) -> str:
    encoded = message.encode()
    return message if len(encoded) <= most else encoded[: most - 4].decode(errors="ignore") + " ..."


class Outcomes:
    """Collects the effects of a cycle; Workloads change only when the cycle is over."""

    def __init__(self, config: KueueConfiguration, now: int) -> None:
        self._config, self._now = config, now
        self.events: list[Event] = []
        self.conditions: dict[str, dict[str, Cond]] = {}
        self.admissions: dict[str, dict[str, Any]] = {}
        self.evicted: list[Info] = []
        self.admitted: list[tuple[Info, Queue, list[PodSetRequests]]] = []
        self._changed: list[tuple[Info, str, Cond]] = []

    def apply(self) -> None:
        """Update the conditions and usage of the Workloads."""
        for info, kind, condition in self._changed:
            info.conditions[kind] = condition
        for info, queue, requests in self.admitted:
            info.take(requests, queue.name)

    def _set(self, info: Info, kind: str, status: str, reason: str, message: str) -> None:
        before = info.conditions.get(kind)
        at = before.at if before is not None and before.status == status else self._now
        condition = Cond(status, reason, _cut(message, _MAX_CONDITION_LENGTH), at)
        if before is None or before[:3] != condition[:3]:
            self.conditions.setdefault(info.key, {})[kind] = condition
        self._changed.append((info, kind, condition))

    def leave_pending(self, entry: Entry) -> None:
        """Record a head that was not admitted."""
        info = entry.info
        reason = entry.quota_reason if self._config.has(Gate.OBSERVABILITY) else _PENDING
        self._set(info, QUOTA_RESERVED, "False", reason, entry.message)
        self._sync_admitted(info, has_quota=False)
        self.events.append(Event(info.key, "Warning", reason, _cut(entry.message, _MAX_EVENT_LENGTH)))

    def _sync_admitted(self, info: Info, *, has_quota: bool, is_delayed: bool = False) -> None:
        ready = all(each == "Ready" for each in info.check_states)
        observes = self._config.has(Gate.OBSERVABILITY)
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
        """Record a head that gets quota."""
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
        requested = queue.checks_for(each.name for pod_requests in given for each in pod_requests.flavors.values())
        has_checks = requested <= {each.name for each in info.workload.status.admission_checks}
        if has_checks:
            self._sync_admitted(info, has_quota=True, is_delayed=any(each.is_delayed for each in given))
        self._record_admission(entry, has_checks=has_checks)
        self.admitted.append((info, queue, _taken(entry)))

    def _record_admission(self, entry: Entry, *, has_checks: bool) -> None:
        info, name = entry.info, entry.queue.name
        since = info.conditions[REQUEUED].at if REQUEUED in info.conditions else info.created
        if not info.has_quota:
            waited = round((self._now - since) / 1000)
            considered = entry.assignment.considered
            text = f"Quota reserved in ClusterQueue {name}, wait time since queued was {waited}s"
            text += f"; Flavors considered: {considered}" if considered else ""
            self.events.append(Event(info.key, "Normal", QUOTA_RESERVED, _cut(text, _MAX_EVENT_LENGTH)))
        admitted = self.conditions.get(info.key, {}).get(ADMITTED, info.conditions.get(ADMITTED))
        if has_checks and admitted is not None and admitted.is_true:
            text = f"Admitted by ClusterQueue {name}, wait time since reservation was 0s"
            self.events.append(Event(info.key, "Normal", ADMITTED, text))

    def evict(self, entry: Entry, target: Target, queue: Queue) -> None:
        """Record a Workload that is preempted, unless it is already evicted."""
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
        self.events.append(Event(info.key, "Normal", "EvictedDueToPreempted", _cut(message, _MAX_EVENT_LENGTH)))
        priorities = f"preemptor effective priority: {own}; preemptee effective priority: {other}"
        self.events.append(Event(info.key, "Normal", PREEMPTED, f"{message}; {priorities}"))
        preempted = f"Preempted workload {info.key} (UID: {info.uid}) in ClusterQueue {queue.name}"
        self.events.append(Event(preemptor.key, "Normal", "PreemptedWorkload", f"{preempted}; {priorities}"))


def _priority(info: Info) -> str:
    return f"{info.effective_priority} (base: {info.priority}, boost: {info.boost})"


def _taken(entry: Entry) -> list[PodSetRequests]:
    """Return what the Workload uses from now on."""
    specs = {each.name: each.template.spec for each in entry.info.pod_sets}
    found = []
    for given in entry.assignment.pod_sets:
        flavors = {resource: each.name for resource, each in given.flavors.items()}
        requests = {resource: given.requests.get(resource, 0) for resource in flavors}
        domains = None
        if given.placed is not None:
            pod_requests = pod_requests_of(specs[given.name])
            domains = tuple(DomainPods(values, pod_requests, count) for values, count in given.placed)
        found.append(PodSetRequests(given.name, requests, given.count, flavors, domains))
    return found


Json = dict[str, Any]


def share_text(share: float) -> str:
    """Format a share as Go formats a float."""
    return "+Inf" if math.isinf(share) else format(Decimal(repr(share)), "f").removesuffix(".0")


def reported_amounts(amounts: Mapping[FlavorResource, int]) -> dict[str, str]:
    """Amounts by ``flavor/resource``."""
    return {f"{flavor}/{resource}": amount_text(resource, each) for (flavor, resource), each in sorted(amounts.items())}


def reported_node(node: Node) -> Json:
    """Describe a ClusterQueue or a cohort in the quota tree."""
    share = share_of(node)
    frs = list(node.subtree)
    return {
        "kind": "Cohort" if node.is_cohort else "ClusterQueue",
        "name": node.name,
        "parent": node.parent.name if node.parent else "",
        "fairWeight": int(node.weight) if node.weight.is_integer() else node.weight,
        "share": share_text(share.weighted),
        "roundedShare": share.rounded,
        "dominant": share.resource,
        "borrowing": share.is_borrowing,
        "subtreeQuota": reported_amounts(node.subtree),
        "usage": reported_amounts(node.usage),
        "available": reported_amounts({fr: node.available(fr) for fr in frs}),
        "potential": reported_amounts({fr: node.potential(fr) for fr in frs}),
    }


def described(assignment: Assignment, targets: list[Target], *, observes: bool) -> Json:
    """Describe an assignment and its preemption targets."""
    result: Json = {
        "mode": str(assignment.mode),
        "borrowing": assignment.borrowing,
        "message": assignment.message,
        "considered": assignment.considered,
        "usage": reported_amounts(assignment.usage),
        "podSets": [_pod_set(each) for each in assignment.pod_sets],
        "targets": [
            {"workload": each.info.key, "clusterQueue": each.info.cluster_queue, "reason": each.reason}
            for each in targets
        ],
    }
    if observes:
        result["noFitReason"] = assignment.no_fit_reason
    return result


def _pod_set(given: PodSetAssignment) -> Json:
    return {
        "name": given.name,
        "count": given.count,
        "mode": str(given.mode),
        "flavors": {
            resource: {"name": each.name, "mode": str(each.mode), "triedFlavorIdx": each.next_flavor}
            for resource, each in sorted(given.flavors.items())
        },
        "api": written_pod_set(given),
        "message": given.message,
        "attempts": [
            {
                "flavor": each.flavor,
                "mode": str(each.mode),
                "borrow": each.borrow,
                "preemption": each.possibility.word if each.possibility is not None else "",
                "reasons": each.reasons,
                "noFitReason": each.no_fit_reason,
            }
            for each in given.attempts
        ],
    }


def written_pod_set(given: PodSetAssignment) -> Json:
    """Describe the assignment of a pod set as in a Workload's admission."""
    result: Json = {
        "name": given.name,
        "flavors": {resource: each.name for resource, each in sorted(given.flavors.items())},
        "resourceUsage": {
            resource: amount_text(resource, given.requests.get(resource, 0)) for resource in sorted(given.flavors)
        },
        "count": given.count,
    }
    if given.placed is not None:
        result["topologyAssignment"] = written(given.levels, given.placed)
    if given.is_delayed:
        result["delayedTopologyRequest"] = "Pending"
    return result
