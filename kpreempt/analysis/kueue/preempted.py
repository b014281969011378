"""For whom a Workload was preempted: what its conditions and events say (``EvictWorkload`` of Kueue v0.19.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from kpreempt.model.kueue import Workload
from kpreempt.schedulers.kueue import KueueObjects
from kpreempt.verdict.kueue import PreemptionsOfWorkload, WorkloadPreemption

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
        if event.reason == "Preempted" and subject.kind == "Workload" and named == _name(workload):
            yield event.last_time, "", event.text, "Event"


def _name(workload: Workload) -> tuple[str, str]:
    return workload.metadata.namespace, workload.metadata.name


def state_of(workload: Workload) -> str:
    """How a Workload stands: the last of its conditions that counts."""
    holding = {each.type for each in workload.status.conditions if each.status == "True"}
    for kind in ("Finished", "Evicted", "Admitted", "QuotaReserved"):
        if kind in holding:
            return kind
    return "Pending"
