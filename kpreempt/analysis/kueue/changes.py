"""The smallest changes with which Kueue would admit a Workload that it leaves pending, each proved by whole cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from kpreempt.analysis.kueue.readings import Decided, queue_of, read_cycles
from kpreempt.model.kueue import ClusterQueue, ResourceQuota, Workload
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, Quantity, quantity_text
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, Shortage, Standing, infos_of
from kpreempt.schedulers.kueue.amounts import amount_text
from kpreempt.verdict.kueue import Reading, WorkloadChange, WorkloadChangeKind

# How many Workloads all proofs together may look at, and how many proofs there are at most.
_MOST_LOOKED_AT = 40_000
_MOST_PROOFS = 60
_MOST_PRIORITY = 1_000_000_000


class _ExhaustedError(Exception):
    """No more may be tried."""


class _Proofs:
    """Runs whole cycles with the one Workload queued, as often as is in bounds."""

    def __init__(self, workload: Workload, config: KueueConfiguration, now: datetime, among: int) -> None:
        self._key, self._config, self._now = workload.key, config, now
        self._left = max(2, min(_MOST_PROOFS, _MOST_LOOKED_AT // max(1, among)))

    def reading(self, objects: KueueObjects) -> Reading | None:
        """What becomes of the Workload where it is admitted, whatever chance decides."""
        if not self._left:
            raise _ExhaustedError
        self._left -= 1
        decided, said = read_cycles(objects, self._config, self._now, [self._key])
        found = Decided(decided.cycles, objects).reading(_of(objects, self._key))
        return found if found.admitted_in and not said else None


def smallest_changes(
    workload: Workload, objects: KueueObjects, config: KueueConfiguration, now: datetime
) -> tuple[list[WorkloadChange], bool]:
    """The changes of each kind that would do, and whether all were tried.

    Nominal quota and borrowing limits are raised by what is short, so that nobody is preempted for them.
    """
    name = queue_of(workload, objects)
    queue = next((each for each in objects.cluster_queues if each.name == name), None)
    if queue is None:
        return [], True
    proofs = _Proofs(workload, config, now, len(objects.workloads))
    found: list[WorkloadChange] = []
    try:
        standing = Standing(objects, infos_of(objects, config), config, now)
        for kind in (WorkloadChangeKind.NOMINAL_QUOTA, WorkloadChangeKind.BORROWING_LIMIT):
            found += _raised(workload, queue, objects, standing, proofs, kind)
        found += [each for way in (_priority, _pods) if (each := way(workload, objects, proofs))]
    except _ExhaustedError:
        return found, False
    return found, True


def _of(objects: KueueObjects, key: str) -> Workload:
    return next(each for each in objects.workloads if each.key == key)


def _with_workload(objects: KueueObjects, workload: Workload) -> KueueObjects:
    workloads = [workload if each.key == workload.key else each for each in objects.workloads]
    return msgspec.structs.replace(objects, workloads=workloads)


def _raised(
    workload: Workload,
    queue: ClusterQueue,
    objects: KueueObjects,
    standing: Standing,
    proofs: _Proofs,
    kind: WorkloadChangeKind,
) -> Iterator[WorkloadChange]:
    """More nominal quota, or a higher borrowing limit where there is one, flavor by flavor."""
    field = "nominal_quota" if kind is WorkloadChangeKind.NOMINAL_QUOTA else "borrowing_limit"
    for flavor in dict.fromkeys(each.name for group in queue.spec.resource_groups for each in group.flavors):
        short = {each.resource: each for each in standing.shortages(workload.key, flavor)}
        told: list[tuple[str, ...]] = []

        def raised(
            quota: ResourceQuota,
            short: dict[str, Shortage] = short,
            told: list[tuple[str, ...]] = told,
        ) -> ResourceQuota:
            more = short.get(quota.name)
            before: Quantity | None = getattr(quota, field)
            if more is None or before is None:
                return quota
            unit = NANO_PER_MILLI if quota.name == "cpu" else NANO_PER_UNIT
            after = Quantity(quantity_text(before.nano + more.amount * unit))
            texts = (amount_text(quota.name, each.nano // unit) for each in (before, after))
            told.append((quota.name, *texts))
            return msgspec.structs.replace(quota, **{field: after})

        changed = _with_quotas(queue, flavor, raised)
        if not told:
            continue
        queues = [changed if each.name == queue.name else each for each in objects.cluster_queues]
        reading = proofs.reading(msgspec.structs.replace(objects, cluster_queues=queues))
        if reading is not None:
            before, after = (", ".join(f"{name} {one[at]}" for name, *one in told) for at in (0, 1))
            yield _change(kind, f"ClusterQueue {queue.name}", f"{kind} of flavor {flavor}", before, after, reading)


def _with_quotas(queue: ClusterQueue, flavor: str, change: Callable[[ResourceQuota], ResourceQuota]) -> ClusterQueue:
    groups = [
        msgspec.structs.replace(
            group,
            flavors=[
                msgspec.structs.replace(each, resources=[change(one) for one in each.resources])
                if each.name == flavor
                else each
                for each in group.flavors
            ],
        )
        for group in queue.spec.resource_groups
    ]
    return msgspec.structs.replace(queue, spec=msgspec.structs.replace(queue.spec, resource_groups=groups))


def _priority(workload: Workload, objects: KueueObjects, proofs: _Proofs) -> WorkloadChange | None:
    """The least priority just above that of a Workload with quota, as halving finds it."""
    own = workload.spec.priority or 0
    priorities = {each.spec.priority or 0 for each in objects.workloads if each.status.admission is not None}
    steps = sorted(each + 1 for each in priorities if own <= each < _MOST_PRIORITY)

    def tried(step: int) -> Reading | None:
        spec = msgspec.structs.replace(workload.spec, priority=steps[step])
        return proofs.reading(_with_workload(objects, msgspec.structs.replace(workload, spec=spec)))

    found = _first(len(steps), tried)
    if found is None:
        return None
    at, reading = found
    subject = f"Workload {workload.key}"
    return _change(WorkloadChangeKind.PRIORITY, subject, "priority", str(own), str(steps[at]), reading)


def _pods(workload: Workload, objects: KueueObjects, proofs: _Proofs) -> WorkloadChange | None:
    """The most pods of a single pod set, as halving finds them."""
    if len(workload.spec.pod_sets) != 1:
        return None
    (pod_set,) = workload.spec.pod_sets

    def tried(fewer: int) -> Reading | None:
        count = pod_set.count - 1 - fewer
        less = msgspec.structs.replace(pod_set, count=count, min_count=None)
        spec = msgspec.structs.replace(workload.spec, pod_sets=[less])
        return proofs.reading(_with_workload(objects, msgspec.structs.replace(workload, spec=spec)))

    found = _first(pod_set.count - 1, tried)
    if found is None:
        return None
    at, reading = found
    after = str(pod_set.count - 1 - at)
    subject, field = f"Workload {workload.key}", f"pods of pod set {pod_set.name}"
    return _change(WorkloadChangeKind.PODS, subject, field, str(pod_set.count), after, reading)


def _first(steps: int, tried: Callable[[int], Reading | None]) -> tuple[int, Reading] | None:
    """The first of so many steps that does, where all after it do; the last is tried first."""
    if steps <= 0 or (last := tried(steps - 1)) is None:
        return None
    low, high, best = 0, steps - 1, last
    while low < high:
        middle = (low + high) // 2
        reading = tried(middle)
        if reading is None:
            low = middle + 1
        else:
            high, best = middle, reading
    return high, best


def _change(
    kind: WorkloadChangeKind, subject: str, field: str, before: str, after: str, reading: Reading
) -> WorkloadChange:
    return WorkloadChange(kind, subject, field, before, after, reading.targets)
