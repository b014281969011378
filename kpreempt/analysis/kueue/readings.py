"""Reads Kueue's cycles: when a Workload gets quota, what it preempts, or why it gets none.

For pending Workloads: the order in which Kueue tries them, and which ones would preempt Workloads with quota. For a
preempted Workload: its preemptor, from conditions and events (``EvictWorkload`` of Kueue v0.19.2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from kpreempt.analysis.kueue.objects import assumed_of, assumed_of_memory, assumed_of_outcomes
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ADMISSION_GATED_BY, Workload
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kueue import (
    Info,
    KueueConfiguration,
    KueueObjects,
    Outcomes,
    SnapshotQueue,
    infos_of,
    run_cycles,
)
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.kueue import (
    AdmissionOutcome,
    AdmissionRun,
    AdmittedPodSet,
    BorrowedQuota,
    PendingWorkload,
    PendingWorkloads,
    PreemptedWorkload,
    PreemptionsOfWorkload,
    WorkloadAtRisk,
    WorkloadOutcome,
    WorkloadPreemption,
    WorkloadsAtRisk,
    WorkloadThreat,
)

MAX_CYCLES = 200
# A cycle has one head per ClusterQueue.
MAX_HEADS = 2_000

_NEVER_HEAD = "it never reaches the head: other Workloads are ahead of it, or one with the same requests did not fit"

Cycles = list[dict[str, Any]]


def queue_of(workload: Workload, objects: KueueObjects) -> str:
    """The ClusterQueue of its LocalQueue; empty if there is no such LocalQueue."""
    key = (workload.metadata.namespace, workload.spec.queue_name)
    for each in objects.local_queues:
        if (each.metadata.namespace, each.metadata.name) == key:
            return each.spec.cluster_queue
    return ""


def read_cycles(
    objects: KueueObjects,
    config: KueueConfiguration,
    now: datetime,
    only: Collection[str] = (),
    infos: Sequence[Info] | None = None,
) -> tuple[Decided, list[Assumption]]:
    """Run Kueue's cycles with all pending Workloads, or only with those with these keys."""
    found = run_cycles(objects, config, now=now, cycles=MAX_CYCLES, only=only, heads=MAX_HEADS, infos=infos)
    return Decided(found.cycles, objects, len(found.alternatives)), assumed_of_outcomes(found)


class Decided:
    """Cycles, indexed by the Workloads that were heads in them."""

    def __init__(self, cycles: Cycles, objects: KueueObjects, other_outcomes: int = 0) -> None:
        self._other_outcomes = other_outcomes
        self.cycles = cycles
        self._objects = objects
        self._by_key = {each.key: each for each in objects.workloads}
        # In the order in which each was first at the head.
        self.entries: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
        for cycle in cycles:
            for entry in (*cycle["entries"], *cycle["inadmissible"]):
                self.entries.setdefault(entry["workload"], []).append((cycle, entry))

    def reading(self, workload: Workload) -> AdmissionRun:
        """What happens to a Workload, and whether it is evicted again after its admission."""
        entries = self.entries.get(workload.key, [])
        admitted_in = next((cycle["cycle"] for cycle, _ in entries if workload.key in cycle["admissions"]), 0)
        targets = [
            target
            for cycle, entry in entries
            if entry["requeueReason"] == "PendingPreemption" and (not admitted_in or cycle["cycle"] < admitted_in)
            for target in entry["final"]["targets"]
        ]
        waits = bool(admitted_in) and not _is_admitted(workload, self.cycles[admitted_in - 1])
        message = entries[-1][1]["message"] if entries else why_not_queued(workload, self._objects, self.cycles)
        later = self.cycles[admitted_in:] if admitted_in else []
        pod_sets = []
        if entries and "final" in entries[-1][1]:
            entry_of_admission = next(
                (entry for cycle, entry in entries if cycle["cycle"] == admitted_in), entries[-1][1]
            )
            counts = {each.name: each.count for each in workload.spec.pod_sets}
            pod_sets = [
                AdmittedPodSet(
                    each["name"], each["count"], counts[each["name"]], each["api"]["flavors"], each["message"]
                )
                for each in entry_of_admission["final"]["podSets"]
            ]
        return AdmissionRun(
            outcome=_outcome(bool(entries) or message == _NEVER_HEAD, admitted_in, bool(targets), waits),
            message=message,
            admitted_in=admitted_in,
            waits_for_checks=waits,
            evicted_in=next((each["cycle"] for each in later if workload.key in each["requeued"]), 0),
            targets=[
                PreemptedWorkload(key, each["clusterQueue"], each["reason"], self._pods.of(self._by_key[key]))
                for each in targets
                for key in [each["workload"]]
            ],
            pod_sets=pod_sets,
            cycles=self.cycles,
            other_outcomes=self._other_outcomes,
        )

    @cached_property
    def _pods(self) -> PodsOfWorkloads:
        return PodsOfWorkloads(self._objects.cluster)


def _is_admitted(workload: Workload, cycle: dict[str, Any]) -> bool:
    """Whether the cycle that gives it quota also admits it."""
    after = [each["status"] for each in cycle["conditions"].get(workload.key, ()) if each["type"] == "Admitted"]
    before = [each.status for each in workload.status.conditions if each.type == "Admitted"]
    return [*before, *after][-1:] == ["True"]


def _outcome(is_queued: bool, admitted_in: int, preempts: bool, waits: bool) -> WorkloadOutcome:
    if not is_queued:
        return WorkloadOutcome.NOT_QUEUED
    if preempts:
        return WorkloadOutcome.PREEMPTS
    if waits:
        return WorkloadOutcome.QUOTA_RESERVED
    return WorkloadOutcome.ADMITTED if admitted_in else WorkloadOutcome.PENDING


def why_not_queued(workload: Workload, objects: KueueObjects, cycles: Cycles) -> str:
    """Why Kueue did not try a Workload."""
    queue = queue_of(workload, objects)
    if not queue:
        return f"LocalQueue {workload.spec.queue_name!r} does not exist in namespace {workload.metadata.namespace}"
    if queue not in {each.name for each in objects.cluster_queues}:
        return f"ClusterQueue {queue} does not exist"
    inactive = cycles[0]["inactive"].get(queue, "") if cycles else ""
    if inactive:
        return str(inactive).rpartition("|")[2]
    holding = {each.type for each in workload.status.conditions if each.status == "True"}
    queue_key = (workload.metadata.namespace, workload.spec.queue_name)
    for applies, reason in (
        ("Finished" in holding, "it has finished"),
        ("QuotaReserved" in holding, "it already has quota"),
        (not workload.spec.active, "its spec.active is false"),
        (bool(workload.metadata.annotations.get(ADMISSION_GATED_BY)), f"it has the annotation {ADMISSION_GATED_BY}"),
        (
            (
                any(
                    (each.metadata.namespace, each.metadata.name) == queue_key and each.spec.stop_policy != "None"
                    for each in objects.local_queues
                )
            ),
            f"its LocalQueue {workload.spec.queue_name} is stopped",
        ),
        (workload.status.requeue_state is not None, "it waits for its requeueState"),
    ):
        if applies:
            return reason
    return _NEVER_HEAD


class PodsOfWorkloads:
    """The running pods of a cluster by owner."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        # By namespace, and by the UID or kind and name of an owner or of the pod itself.
        self._pods: dict[tuple[str, str | tuple[str, str]], list[Pod]] = {}
        for pod in cluster.pods:
            if pod.is_terminal:
                continue
            metadata = pod.metadata
            owners = {each.uid or (each.kind, each.name) for each in metadata.owner_references}
            for key in {metadata.uid, ("Pod", metadata.name), *owners}:
                self._pods.setdefault((metadata.namespace, key), []).append(pod)

    def of(self, workload: Workload) -> list[str]:
        """The names of a Workload's pods: its owner, if that is a pod, or the pods of its owner."""
        namespace, found = workload.metadata.namespace, set[str]()
        for owner in workload.metadata.owner_references:
            for key in (owner.uid, (owner.kind, owner.name)):
                found.update(pod.key for pod in self._pods.get((namespace, key), ()) if key)
        return sorted(found)


IsSelected = Callable[[Workload], bool]


def waits(workload: Workload) -> bool:
    """Whether a Workload has no quota, and has not finished."""
    holding = {each.type for each in workload.status.conditions if each.status == "True"}
    return not holding & {"QuotaReserved", "Finished"}


def pending_workloads(
    objects: KueueObjects,
    config: KueueConfiguration,
    *,
    now: datetime,
    is_selected: IsSelected,
    assumptions: Sequence[Assumption] = (),
) -> PendingWorkloads:
    """The pending Workloads selected by ``is_selected``, with all of them queued.

    They are in the order in which they are first at the head; those that never are come last, by position in the queue.
    """
    found = run_cycles(objects, config, now=now, cycles=MAX_CYCLES, heads=MAX_HEADS)
    outcomes = [Decided(each, objects) for each in (found.cycles, *found.alternatives)]
    heads = {key: number for number, key in enumerate(outcomes[0].entries)}
    order = found.cycles[0]["queueOrder"] if found.cycles else {}
    positions = {key: position for keys in order.values() for position, key in enumerate(keys, 1)}
    selected = [each for each in objects.workloads if waits(each) and is_selected(each)]
    selected.sort(
        key=lambda each: (heads.get(each.key, len(heads)), positions.get(each.key, len(positions) + 1), each.key)
    )
    items = [_item(each, outcomes, objects, positions.get(each.key, 0)) for each in selected]
    all_assumptions = [*assumed_of(objects, config), *assumed_of_outcomes(found), assumed_of_memory()]
    return PendingWorkloads(
        items=items, cycles=len(found.cycles), assumptions=list(dict.fromkeys([*all_assumptions, *assumptions]))
    )


def _item(workload: Workload, outcomes: Sequence[Decided], objects: KueueObjects, position: int) -> PendingWorkload:
    entries = outcomes[0].entries.get(workload.key)
    outcome, *others = _outcomes(workload, outcomes)
    return PendingWorkload(
        workload=workload.key,
        cluster_queue=queue_of(workload, objects),
        queue=workload.spec.queue_name,
        priority=workload.spec.priority or 0,
        position=position,
        head_in=entries[0][0]["cycle"] if entries else 0,
        outcome=outcome,
        other_outcomes=others,
    )


def _outcomes(workload: Workload, outcomes: Sequence[Decided]) -> list[AdmissionOutcome]:
    """The possible outcomes of a Workload, the likely one first; outcomes that differ only in time are merged."""
    found: list[AdmissionOutcome] = []
    for each in outcomes:
        reading = each.reading(workload)
        outcome = AdmissionOutcome(
            outcome=reading.outcome,
            message="" if reading.admitted_in else reading.message,
            admitted_in=reading.admitted_in,
            evicted_in=reading.evicted_in,
            flavors={each.name: each.flavors for each in reading.pod_sets if each.flavors},
            targets=reading.targets,
        )
        if not any(is_same_outcome(outcome, other) for other in found):
            found.append(outcome)
    return found


def is_same_outcome(one: AdmissionOutcome, other: AdmissionOutcome) -> bool:
    """Whether a Workload gets the same quota and preempts the same Workloads, regardless of time."""

    def key(outcome: AdmissionOutcome) -> tuple[object, ...]:
        targets = sorted((each.workload, each.reason) for each in outcome.targets)
        return outcome.outcome, outcome.flavors if outcome.admitted_in else None, targets, bool(outcome.evicted_in)

    return key(one) == key(other)


# The maximum number of Workloads that are tried alone.
_MAX_ALONE = 200


class _Known(NamedTuple):
    reason: str
    alone: bool
    cycle: int
    is_certain: bool


def workloads_at_risk(
    objects: KueueObjects,
    config: KueueConfiguration,
    *,
    now: datetime,
    is_selected: IsSelected,
    limit: int,
    assumptions: Sequence[Assumption] = (),
) -> WorkloadsAtRisk:
    """The Workloads with quota selected by ``is_selected``, at most ``limit``, the most threatened first.

    A threat is a Workload that preempts another one as the only head, or with all pending ones.
    """
    infos = infos_of(objects, config)
    snapshot_queue = SnapshotQueue(objects, infos, config, now)
    found = run_cycles(objects, config, now=now, cycles=MAX_CYCLES, heads=MAX_HEADS, infos=infos)
    known = _together(found)
    all_assumptions = [*assumed_of(objects, config), *assumed_of_outcomes(found), assumed_of_memory()]
    waiting = snapshot_queue.waiting()
    for key in waiting[:_MAX_ALONE]:
        for aim in snapshot_queue.aims(key):
            previous = known.get((aim.target, key))
            cycle, is_certain = (previous.cycle, previous.is_certain) if previous else (0, False)
            known[aim.target, key] = _Known(aim.reason, True, cycle, aim.is_certain or is_certain)
    if len(waiting) > _MAX_ALONE:
        message = f"{len(waiting) - _MAX_ALONE} of lower priority are only tried together with all pending Workloads"
        all_assumptions.append(Assumption("Workload list", "status", message, AssumptionKind.UNCERTAIN))
    by_key = {each.key: each for each in objects.workloads}
    threats: dict[str, list[WorkloadThreat]] = {}
    for (target, key), each in known.items():
        preemptor = by_key[key]
        priority = preemptor.spec.priority or 0
        threats.setdefault(target, []).append(WorkloadThreat(key, queue_of(preemptor, objects), priority, *each))
    selected = [each for each in objects.workloads if _has_quota(each) and is_selected(each)]
    pods = PodsOfWorkloads(objects.cluster)
    items = [_threatened(each, threats.get(each.key, []), snapshot_queue, pods) for each in selected]
    items.sort(key=lambda each: (not each.threats, not any(loan.reclaimers for loan in each.borrowed), each.priority))
    return WorkloadsAtRisk(
        items=items[:limit],
        omitted=max(0, len(items) - limit),
        assumptions=list(dict.fromkeys([*all_assumptions, *assumptions])),
    )


def _together(found: Outcomes) -> dict[tuple[str, str], _Known]:
    """Preemptions with all pending Workloads, by target and preemptor."""
    known: dict[tuple[str, str], _Known] = {}
    all_preemptions = [_preemptions(each) for each in (found.cycles, *found.alternatives)]
    for preemptions in all_preemptions:
        for pair, (reason, cycle) in preemptions.items():
            is_certain = found.are_all and all(pair in each for each in all_preemptions)
            known.setdefault(pair, _Known(reason, False, cycle, is_certain))
    return known


def _preemptions(cycles: Cycles) -> dict[tuple[str, str], tuple[str, int]]:
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for cycle in cycles:
        for entry in cycle["entries"]:
            if entry["requeueReason"] == "PendingPreemption":
                for each in entry["final"]["targets"]:
                    found.setdefault((each["workload"], entry["workload"]), (each["reason"], cycle["cycle"]))
    return found


def _has_quota(workload: Workload) -> bool:
    holding = {each.type for each in workload.status.conditions if each.status == "True"}
    return "QuotaReserved" in holding and "Finished" not in holding


def _threatened(
    workload: Workload, threats: list[WorkloadThreat], snapshot_queue: SnapshotQueue, pods: PodsOfWorkloads
) -> WorkloadAtRisk:
    admission = workload.status.admission
    return WorkloadAtRisk(
        workload=workload.key,
        cluster_queue=admission.cluster_queue if admission else "",
        priority=workload.spec.priority or 0,
        pods=pods.of(workload),
        threats=sorted(threats, key=lambda each: (-each.priority, each.workload)),
        borrowed=[BorrowedQuota(*each) for each in snapshot_queue.loans(workload.key)],
    )


_SAME_EVENT = timedelta(minutes=1)
_PREEMPTED_TEXT = re.compile(
    r"(?:Previously: )*Preempted to accommodate a workload \(UID: (?P<uid>[^,]*), JobUID: [^)]*\) due to [^;]*"
    r"(?:; preemptor path: (?P<path>[^;]*))?"
)


def who_evicted_workload(workload: Workload, objects: KueueObjects) -> PreemptionsOfWorkload:
    """The known preemptions of a Workload, the last first, without duplicates."""
    by_uid = {each.metadata.uid: each for each in objects.workloads if each.metadata.uid}
    found: list[WorkloadPreemption] = []
    for at, reason, message, source in _evidence(workload, objects):
        match = _PREEMPTED_TEXT.match(message)
        uid = match["uid"] if match else ""
        preemptor = by_uid.get(uid)
        preemption = WorkloadPreemption(
            at=at,
            reason=reason,
            message=message,
            preemptor_uid=uid,
            preemptor=preemptor.key if preemptor else "",
            state=state_of(preemptor) if preemptor else "",
            preemptor_path=(match["path"] or "") if match else "",
            source=source,
        )
        # A condition and an event may report the same preemption; both are written within seconds.
        if not any(
            preemption.preemptor_uid == other.preemptor_uid
            and (preemption.at is None or other.at is None or abs(preemption.at - other.at) < _SAME_EVENT)
            for other in found
        ):
            found.append(preemption)
    found.sort(key=lambda each: each.at.timestamp() if each.at else 0.0, reverse=True)
    return PreemptionsOfWorkload(workload=workload.key, state=state_of(workload), preemptions=found)


def _evidence(workload: Workload, objects: KueueObjects) -> Iterator[tuple[datetime | None, str, str, str]]:
    for each in workload.status.conditions:
        # A Workload that was admitted again keeps the previous message.
        if each.type == "Preempted" and _PREEMPTED_TEXT.match(each.message):
            at = each.last_transition_time if each.status == "True" else None
            yield at, each.reason if each.status == "True" else "", each.message, "Condition"
    for event in objects.cluster.events:
        subject = event.subject
        key = (subject.namespace, subject.name)
        if (
            event.reason == "Preempted"
            and subject.kind == "Workload"
            and key == (workload.metadata.namespace, workload.metadata.name)
        ):
            yield event.last_time, "", event.text, "Event"


def state_of(workload: Workload) -> str:
    """The state of a Workload: the most relevant of its conditions."""
    holding = {each.type for each in workload.status.conditions if each.status == "True"}
    for kind in ("Finished", "Evicted", "Admitted", "QuotaReserved"):
        if kind in holding:
            return kind
    return "Pending"
