"""Which waiting Workloads would preempt those that have quota, and for which one a Workload was preempted.

The latter comes from its conditions and events (``EvictWorkload`` of Kueue v0.19.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from kpreempt.analysis.kueue.objects import assumed_of, assumed_of_chance, assumed_of_end, assumed_of_memory
from kpreempt.analysis.kueue.pending import IsAsked
from kpreempt.analysis.kueue.readings import MOST_CYCLES, MOST_HEADS, Cycles, PodsOfWorkloads, queue_of
from kpreempt.model.kueue import Workload
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, Outcomes, Standing, infos_of, run_cycles
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.kueue import (
    BorrowedQuota,
    PreemptionsOfWorkload,
    WorkloadAtRisk,
    WorkloadPreemption,
    WorkloadsAtRisk,
    WorkloadThreat,
)

# So many are decided about alone.
_MOST_ALONE = 200


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
    is_asked: IsAsked,
    limit: int,
    assumptions: Sequence[Assumption] = (),
) -> WorkloadsAtRisk:
    """The Workloads with quota of which one ``is_asked``, at most ``limit``: the most threatened first.

    A threat is who preempts one as the only head, or with all that wait.
    """
    infos = infos_of(objects, config)
    standing = Standing(objects, infos, config, now)
    found = run_cycles(objects, config, now=now, cycles=MOST_CYCLES, heads=MOST_HEADS, infos=infos)
    known = _together(found)
    said = [*assumed_of(objects, config), *assumed_of_chance(found), *assumed_of_end(found), assumed_of_memory()]
    waiting = standing.waiting()
    for key in waiting[:_MOST_ALONE]:
        for aim in standing.aims(key):
            before = known.get((aim.target, key))
            cycle, is_certain = (before.cycle, before.is_certain) if before else (0, False)
            known[aim.target, key] = _Known(aim.reason, True, cycle, aim.is_certain or is_certain)
    if len(waiting) > _MOST_ALONE:
        message = f"{len(waiting) - _MOST_ALONE} of lower priority are looked at only with all that wait"
        said.append(Assumption("Workload list", "status", message, AssumptionKind.UNCERTAIN))
    by_key = {each.key: each for each in objects.workloads}
    threats: dict[str, list[WorkloadThreat]] = {}
    for (target, key), each in known.items():
        preemptor = by_key[key]
        priority = preemptor.spec.priority or 0
        threats.setdefault(target, []).append(WorkloadThreat(key, queue_of(preemptor, objects), priority, *each))
    asked = [each for each in objects.workloads if _has_quota(each) and is_asked(each)]
    pods = PodsOfWorkloads(objects.cluster)
    items = [_item(each, threats.get(each.key, []), standing, pods) for each in asked]
    items.sort(key=lambda each: (not each.threats, not any(one.reclaimers for one in each.borrowed), each.priority))
    return WorkloadsAtRisk(
        items=items[:limit],
        omitted=max(0, len(items) - limit),
        assumptions=list(dict.fromkeys([*said, *assumptions])),
    )


def _together(found: Outcomes) -> dict[tuple[str, str], _Known]:
    """By target and preemptor, what happens with all that wait."""
    known: dict[tuple[str, str], _Known] = {}
    ways = [_preemptions(each) for each in (found.cycles, *found.others)]
    for way in ways:
        for pair, (reason, cycle) in way.items():
            is_certain = found.are_all and all(pair in each for each in ways)
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


def _item(
    workload: Workload, threats: list[WorkloadThreat], standing: Standing, pods: PodsOfWorkloads
) -> WorkloadAtRisk:
    admission = workload.status.admission
    return WorkloadAtRisk(
        workload=workload.key,
        cluster_queue=admission.cluster_queue if admission else "",
        priority=workload.spec.priority or 0,
        pods=pods.of(workload),
        threats=sorted(threats, key=lambda each: (-each.priority, each.workload)),
        borrowed=[BorrowedQuota(*each) for each in standing.loans(workload.key)],
    )


_AT_ONCE = timedelta(minutes=1)
_SAID = re.compile(
    r"(?:Previously: )*Preempted to accommodate a workload \(UID: (?P<uid>[^,]*), JobUID: [^)]*\) due to [^;]*"
    r"(?:; preemptor path: (?P<path>[^;]*))?"
)


def who_preempted_workload(workload: Workload, objects: KueueObjects) -> PreemptionsOfWorkload:
    """What is known of the preemptions of a Workload, the last first; each is told once."""
    by_uid = {each.metadata.uid: each for each in objects.workloads if each.metadata.uid}
    found: list[WorkloadPreemption] = []
    for at, reason, message, source in _said(workload, objects):
        match = _SAID.match(message)
        uid = match["uid"] if match else ""
        preemptor = by_uid.get(uid)
        one = WorkloadPreemption(
            at=at,
            reason=reason,
            message=message,
            preemptor_uid=uid,
            preemptor=preemptor.key if preemptor else "",
            state=state_of(preemptor) if preemptor else "",
            preemptor_path=(match["path"] or "") if match else "",
            source=source,
        )
        if not any(_is_same(one, other) for other in found):
            found.append(one)
    found.sort(key=lambda each: each.at.timestamp() if each.at else 0.0, reverse=True)
    return PreemptionsOfWorkload(workload=workload.key, state=state_of(workload), preemptions=found)


def _is_same(one: WorkloadPreemption, other: WorkloadPreemption) -> bool:
    """Whether a condition and an event tell of the same preemption; both are written within seconds."""
    if one.preemptor_uid != other.preemptor_uid:
        return False
    return one.at is None or other.at is None or abs(one.at - other.at) < _AT_ONCE


def _said(workload: Workload, objects: KueueObjects) -> Iterator[tuple[datetime | None, str, str, str]]:
    for each in workload.status.conditions:
        # One that was admitted again says so, with what was before.
        if each.type == "Preempted" and _SAID.match(each.message):
            at = each.last_transition_time if each.status == "True" else None
            yield at, each.reason if each.status == "True" else "", each.message, "Condition"
    for event in objects.cluster.events:
        subject = event.subject
        named = (subject.namespace, subject.name)
        if (
            event.reason == "Preempted"
            and subject.kind == "Workload"
            and named == (workload.metadata.namespace, workload.metadata.name)
        ):
            yield event.last_time, "", event.text, "Event"


def state_of(workload: Workload) -> str:
    """How a Workload stands: the last of its conditions that counts."""
    holding = {each.type for each in workload.status.conditions if each.status == "True"}
    for kind in ("Finished", "Evicted", "Admitted", "QuotaReserved"):
        if kind in holding:
            return kind
    return "Pending"
