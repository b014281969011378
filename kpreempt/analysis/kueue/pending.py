"""All Workloads that wait for quota: in which order Kueue decides about them, and what becomes of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from kpreempt.analysis.kueue.objects import assumed_of, assumed_of_chance, assumed_of_end, assumed_of_memory
from kpreempt.analysis.kueue.readings import MOST_CYCLES, MOST_HEADS, Decided, queue_of
from kpreempt.model.kueue import Workload
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, run_cycles
from kpreempt.verdict import Assumption
from kpreempt.verdict.kueue import PendingWorkload, PendingWorkloads, Reading, WorkloadFate

IsAsked = Callable[[Workload], bool]


def waits(workload: Workload) -> bool:
    """Whether a Workload has no quota, and has not finished."""
    holding = {each.type for each in workload.status.conditions if each.status == "True"}
    return not holding & {"QuotaReserved", "Finished"}


def fate_of(reading: Reading) -> WorkloadFate:
    """A reading in short."""
    return WorkloadFate(
        outcome=reading.outcome,
        message="" if reading.admitted_in else reading.message,
        admitted_in=reading.admitted_in,
        evicted_in=reading.evicted_in,
        flavors={each.name: each.flavors for each in reading.pod_sets if each.flavors},
        targets=reading.targets,
    )


def pending_workloads(
    objects: KueueObjects,
    config: KueueConfiguration,
    *,
    now: datetime,
    is_asked: IsAsked,
    assumptions: Sequence[Assumption] = (),
) -> PendingWorkloads:
    """The Workloads without quota of which one ``is_asked``, all of them being queued.

    They come in the order in which they are first heads; those that never are come last, by their place in the queue.
    """
    found = run_cycles(objects, config, now=now, cycles=MOST_CYCLES, heads=MOST_HEADS)
    ways = [Decided(each, objects) for each in (found.cycles, *found.others)]
    heads = {key: number for number, key in enumerate(ways[0].entries)}
    order = found.cycles[0]["queueOrder"] if found.cycles else {}
    places = {key: place for keys in order.values() for place, key in enumerate(keys, 1)}
    asked = [each for each in objects.workloads if waits(each) and is_asked(each)]
    asked.sort(key=lambda each: (heads.get(each.key, len(heads)), places.get(each.key, len(places) + 1), each.key))
    items = [_item(each, ways, objects, places.get(each.key, 0)) for each in asked]
    said = [*assumed_of(objects, config), *assumed_of_chance(found), *assumed_of_end(found), assumed_of_memory()]
    return PendingWorkloads(
        items=items, cycles=len(found.cycles), assumptions=list(dict.fromkeys([*said, *assumptions]))
    )


def _item(workload: Workload, ways: Sequence[Decided], objects: KueueObjects, position: int) -> PendingWorkload:
    entries = ways[0].entries.get(workload.key)
    fate, *others = _fates(workload, ways)
    return PendingWorkload(
        workload=workload.key,
        cluster_queue=queue_of(workload, objects),
        queue=workload.spec.queue_name,
        priority=workload.spec.priority or 0,
        position=position,
        head_in=entries[0][0]["cycle"] if entries else 0,
        fate=fate,
        others=others,
    )


def _fates(workload: Workload, ways: Sequence[Decided]) -> list[WorkloadFate]:
    """What may become of a Workload, the likely first; ways that differ in nothing but when are one."""
    found: list[WorkloadFate] = []
    for each in ways:
        fate = fate_of(each.reading(workload))
        if not any(is_same_fate(fate, other) for other in found):
            found.append(fate)
    return found


def is_same_fate(one: WorkloadFate, other: WorkloadFate) -> bool:
    """Whether a Workload gets the same, and preempts the same ones, whenever that is."""

    def told(fate: WorkloadFate) -> tuple[object, ...]:
        gone = sorted((each.workload, each.reason) for each in fate.targets)
        return fate.outcome, fate.flavors if fate.admitted_in else None, gone, bool(fate.evicted_in)

    return told(one) == told(other)
