"""Explains what happens to a Workload: alone, together with all pending ones, and in kube-scheduler after admission.

Also: the smallest changes with which Kueue would admit a pending Workload, each verified by full cycles, and the
comparison of several configurations of Kueue or of its queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from kpreempt.admission import apply_api_defaults, fill_priorities
from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.kueue.objects import assumed_of, assumed_of_made, assumed_of_memory
from kpreempt.analysis.kueue.readings import (
    Decided,
    IsSelected,
    is_same_outcome,
    pending_workloads,
    queue_of,
    read_cycles,
)
from kpreempt.analysis.workload.answer import Placing
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ClusterQueue, PodSet, ResourceFlavor, ResourceQuota, Workload
from kpreempt.model.meta import replace_in, with_creation_time
from kpreempt.model.pod import Pod, PodMeta
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, Quantity, quantity_text
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, SnapshotQueue, adjusted, infos_of
from kpreempt.schedulers.kueue.quota import amount_text
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.kueue import (
    AdmissionRun,
    ComparedWorkload,
    KueueAnswer,
    KueueComparison,
    PendingWorkload,
    PodSetPlacement,
    WorkloadChange,
    WorkloadChangeKind,
    WorkloadOutcome,
)

# The maximum number of pods per pod set that are scheduled.
MAX_PODS = 100


def with_workloads(workloads: Sequence[Workload], objects: KueueObjects, now: datetime) -> KueueObjects:
    """Add Workloads, replacing those with the same names; their default creation time is now."""
    timed = [msgspec.structs.replace(each, metadata=with_creation_time(each.metadata, now)) for each in workloads]
    keys = {each.key for each in workloads}
    others = [each for each in objects.workloads if each.key not in keys]
    return adjusted(msgspec.structs.replace(objects, workloads=[*others, *timed]))


def explain_workloads(
    selected: Sequence[tuple[Workload, str]],
    objects: KueueObjects,
    config: KueueConfiguration,
    scheduler: Scheduler,
    *,
    now: datetime,
) -> list[KueueAnswer]:
    """The answer for each Workload, with its origin; they replace Workloads with the same names.

    All are added to Kueue together. ``alone`` is the result without other pending Workloads; the pods of all of them
    are scheduled in one cluster.
    """
    origin_assumptions = {each.key: assumed_of_made(each, origin) for each, origin in selected}
    objects = with_workloads([each for each, _ in selected], objects, now)
    by_key = {each.key: each for each in objects.workloads[-len(selected) :]}
    infos = infos_of(objects, config)
    alone, assumptions = read_cycles(objects, config, now, by_key.keys(), infos)
    together, assumptions_together = read_cycles(objects, config, now, infos=infos)
    readings = {key: alone.reading(each) for key, each in by_key.items()}
    placements, placement_assumptions = _placements(by_key, readings, objects, scheduler, now)
    assumptions = [*assumed_of(objects, config), *assumptions, *assumptions_together, *placement_assumptions]
    answers = []
    for each, origin in selected:
        workload = by_key[each.key]
        own_assumptions = [*origin_assumptions[each.key], assumed_of_memory()]
        changes: list[WorkloadChange] = []
        # Changes are only searched for a single Workload, because several compete for the same quota.
        if len(selected) == 1 and readings[each.key].outcome is WorkloadOutcome.PENDING:
            changes, are_all = smallest_changes(workload, objects, config, now)
            if not are_all:
                untried = "not all changes were tried, because there are many Workloads"
                own_assumptions.append(Assumption("Kueue", "changes", untried, AssumptionKind.INFORMATIONAL))
        answers.append(
            KueueAnswer(
                workload=each.key,
                origin=origin,
                cluster_queue=queue_of(workload, objects),
                priority=workload.spec.priority or 0,
                alone=readings[each.key],
                together=together.reading(workload),
                placement=placements.get(each.key, []),
                changes=changes,
                assumptions=list(dict.fromkeys([*assumptions, *own_assumptions])),
            )
        )
    return answers


def _placements(
    workloads: Mapping[str, Workload],
    readings: Mapping[str, AdmissionRun],
    objects: KueueObjects,
    scheduler: Scheduler,
    now: datetime,
) -> tuple[dict[str, list[PodSetPlacement]], list[Assumption]]:
    """What the scheduler does with the pods after those of preempted Workloads are gone."""
    admitted = {key: each for key, each in readings.items() if each.admitted_in}
    if not admitted:
        return {}, []
    targets = [target for each in admitted.values() for target in each.targets]
    assumptions = [
        Assumption(
            f"Workload {each.workload}",
            "metadata.ownerReferences",
            "its pods were not found; they are assumed to stay",
            AssumptionKind.UNCERTAIN,
        )
        for each in targets
        if not each.pods
    ]
    removed = {pod for each in targets for pod in each.pods}
    pods = [pod for pod in objects.cluster.pods if pod.key not in removed]
    cluster = msgspec.structs.replace(objects.cluster, pods=pods)
    placing = Placing(cluster, scheduler, scheduler.prepare(cluster, now=now), now)
    found = {}
    for key, reading in sorted(admitted.items(), key=lambda each: each[1].admitted_in):
        found[key], more = _placement(workloads[key], objects, reading, placing)
        assumptions += more
    return found, assumptions


def _placement(
    workload: Workload, objects: KueueObjects, reading: AdmissionRun, placing: Placing
) -> tuple[list[PodSetPlacement], list[Assumption]]:
    assumptions = []
    flavors = {each.name: each for each in objects.flavors}
    specs = {each.name: each for each in workload.spec.pod_sets}
    found = []
    for pod_set in reading.pod_sets:
        count = min(pod_set.count, MAX_PODS)
        own = [flavors[name] for name in dict.fromkeys(pod_set.flavors.values()) if name in flavors]
        if any(flavor.spec.topology_name for flavor in own):
            message = "its pods are scheduled without the topology domains that Kueue assigns"
            subject = f"Workload {workload.key}"
            assumptions.append(Assumption(subject, f"podSets[{pod_set.name}]", message, AssumptionKind.UNCERTAIN))
        pods = [_pod(workload, specs[pod_set.name], own, index, objects.cluster) for index in range(count)]
        placed = list(placing.place(pods, stops_at_pending=True))
        bound = [each for each in placed if each.branch is not None]
        failed = next((each for each in placed if each.branch is None), None)
        reason = ""
        if failed is not None:
            reason = failed.rejected or (failed.verdict.message if failed.verdict else "")
        evicts = sorted({victim for each in bound for victim in each.victims})
        found.append(PodSetPlacement(pod_set.name, pod_set.count, count, len(bound), evicts, reason))
    return found, assumptions


def _pod(
    workload: Workload, pod_set: PodSet, flavors: list[ResourceFlavor], index: int, cluster: ClusterSnapshot
) -> Pod:
    """A pod as its job creates it after admission, with the node labels of its flavors."""
    spec = pod_set.template.spec
    labels = {key: value for flavor in flavors for key, value in flavor.spec.node_labels.items()}
    tolerations = [*spec.tolerations, *(each for flavor in flavors for each in flavor.spec.tolerations)]
    spec = msgspec.structs.replace(
        spec, node_selector={**spec.node_selector, **labels}, tolerations=tolerations, scheduling_gates=[]
    )
    name = f"{workload.metadata.name}-{pod_set.name}-{index}"
    meta = PodMeta(name=name, namespace=workload.metadata.namespace, labels=pod_set.template.metadata.labels)
    pod = apply_api_defaults(Pod(metadata=meta, spec=spec))
    alone, _ = fill_priorities(ClusterSnapshot(pods=[pod], priority_classes=cluster.priority_classes), [pod.key])
    return alone.pods[0]


# Limits of verification: the number of Workloads in total, and the number of runs.
_MAX_WORKLOADS = 40_000
_MAX_RUNS = 60
_MAX_PRIORITY = 1_000_000_000


class _ExhaustedError(Exception):
    """The limit of verification runs is reached."""


class _Verifier:
    """Runs full cycles with only this Workload queued, up to a limit."""

    def __init__(self, workload: Workload, config: KueueConfiguration, now: datetime, among: int) -> None:
        self._key, self._config, self._now = workload.key, config, now
        self._runs_left = max(2, min(_MAX_RUNS, _MAX_WORKLOADS // max(1, among)))

    def reading(self, objects: KueueObjects) -> AdmissionRun | None:
        """The result if the Workload is admitted for certain, else ``None``."""
        if not self._runs_left:
            raise _ExhaustedError
        self._runs_left -= 1
        decided, assumptions = read_cycles(objects, self._config, self._now, [self._key])
        found = Decided(decided.cycles, objects).reading(
            next(each for each in objects.workloads if each.key == self._key)
        )
        return found if found.admitted_in and not assumptions else None


def smallest_changes(
    workload: Workload, objects: KueueObjects, config: KueueConfiguration, now: datetime
) -> tuple[list[WorkloadChange], bool]:
    """The changes of each kind that suffice, and whether all were tried.

    Nominal quotas and borrowing limits are raised by the missing amount, so that nothing is preempted for them.
    """
    name = queue_of(workload, objects)
    queue = next((each for each in objects.cluster_queues if each.name == name), None)
    if queue is None:
        return [], True
    verifier = _Verifier(workload, config, now, len(objects.workloads))
    found: list[WorkloadChange] = []
    try:
        snapshot_queue = SnapshotQueue(objects, infos_of(objects, config), config, now)
        for kind in (WorkloadChangeKind.NOMINAL_QUOTA, WorkloadChangeKind.BORROWING_LIMIT):
            found += _raised(workload, queue, objects, snapshot_queue, verifier, kind)
        found += [each for search in (_priority, _pods) if (each := search(workload, objects, verifier))]
    except _ExhaustedError:
        return found, False
    return found, True


def _with_workload(objects: KueueObjects, workload: Workload) -> KueueObjects:
    workloads = [workload if each.key == workload.key else each for each in objects.workloads]
    return msgspec.structs.replace(objects, workloads=workloads)


def _raised(
    workload: Workload,
    queue: ClusterQueue,
    objects: KueueObjects,
    snapshot_queue: SnapshotQueue,
    verifier: _Verifier,
    kind: WorkloadChangeKind,
) -> Iterator[WorkloadChange]:
    """Raise the nominal quota, or an existing borrowing limit, flavor by flavor."""
    field = "nominal_quota" if kind is WorkloadChangeKind.NOMINAL_QUOTA else "borrowing_limit"
    for flavor in dict.fromkeys(each.name for group in queue.spec.resource_groups for each in group.flavors):
        short = snapshot_queue.shortages(workload.key, flavor)
        changes: list[tuple[str, ...]] = []

        def raised(
            quota: ResourceQuota,
            short: dict[str, int] = short,
            changes: list[tuple[str, ...]] = changes,
        ) -> ResourceQuota:
            more = short.get(quota.name)
            before: Quantity | None = getattr(quota, field)
            if more is None or before is None:
                return quota
            unit = NANO_PER_MILLI if quota.name == "cpu" else NANO_PER_UNIT
            after = Quantity(quantity_text(before.nano + more * unit))
            texts = (amount_text(quota.name, each.nano // unit) for each in (before, after))
            changes.append((quota.name, *texts))
            return msgspec.structs.replace(quota, **{field: after})

        groups = [
            msgspec.structs.replace(
                group,
                flavors=[
                    msgspec.structs.replace(each, resources=[raised(change) for change in each.resources])
                    if each.name == flavor
                    else each
                    for each in group.flavors
                ],
            )
            for group in queue.spec.resource_groups
        ]
        changed = msgspec.structs.replace(queue, spec=msgspec.structs.replace(queue.spec, resource_groups=groups))
        if not changes:
            continue
        queues = [changed if each.name == queue.name else each for each in objects.cluster_queues]
        reading = verifier.reading(msgspec.structs.replace(objects, cluster_queues=queues))
        if reading is not None:
            before, after = (", ".join(f"{name} {change[at]}" for name, *change in changes) for at in (0, 1))
            yield WorkloadChange(
                kind, f"ClusterQueue {queue.name}", f"{kind} of flavor {flavor}", before, after, reading.targets
            )


def _priority(workload: Workload, objects: KueueObjects, verifier: _Verifier) -> WorkloadChange | None:
    """The lowest priority just above that of a Workload with quota that suffices, by binary search."""
    own = workload.spec.priority or 0
    priorities = {each.spec.priority or 0 for each in objects.workloads if each.status.admission is not None}
    steps = sorted(each + 1 for each in priorities if own <= each < _MAX_PRIORITY)

    def try_step(step: int) -> AdmissionRun | None:
        return verifier.reading(_with_workload(objects, replace_in(workload, "spec", priority=steps[step])))

    found = _first(len(steps), try_step)
    if found is None:
        return None
    at, reading = found
    subject = f"Workload {workload.key}"
    return WorkloadChange(WorkloadChangeKind.PRIORITY, subject, "priority", str(own), str(steps[at]), reading.targets)


def _pods(workload: Workload, objects: KueueObjects, verifier: _Verifier) -> WorkloadChange | None:
    """The largest number of pods of a single pod set that suffices, by binary search."""
    if len(workload.spec.pod_sets) != 1:
        return None
    (pod_set,) = workload.spec.pod_sets

    def try_step(fewer: int) -> AdmissionRun | None:
        smaller = msgspec.structs.replace(pod_set, count=pod_set.count - 1 - fewer, min_count=None)
        return verifier.reading(_with_workload(objects, replace_in(workload, "spec", pod_sets=[smaller])))

    found = _first(pod_set.count - 1, try_step)
    if found is None:
        return None
    at, reading = found
    after = str(pod_set.count - 1 - at)
    subject, field = f"Workload {workload.key}", f"pods of pod set {pod_set.name}"
    return WorkloadChange(WorkloadChangeKind.PODS, subject, field, str(pod_set.count), after, reading.targets)


def _first(steps: int, try_step: Callable[[int], AdmissionRun | None]) -> tuple[int, AdmissionRun] | None:
    """The first of ``steps`` steps that suffices, assuming that all after it do, too; the last one is tried first."""
    if steps <= 0 or (last := try_step(steps - 1)) is None:
        return None
    low, high, best = 0, steps - 1, last
    while low < high:
        middle = (low + high) // 2
        reading = try_step(middle)
        if reading is None:
            low = middle + 1
        else:
            high, best = middle, reading
    return high, best


def compare_configurations(
    compared: Mapping[str, tuple[KueueObjects, KueueConfiguration]],
    *,
    now: datetime,
    is_selected: IsSelected,
    assumptions: Sequence[Assumption] = (),
) -> KueueComparison:
    """Compare what happens to the pending Workloads selected by ``is_selected``, by name of the configuration.

    They are in the order of the first configuration.
    """
    found = {name: pending_workloads(*each, now=now, is_selected=is_selected) for name, each in compared.items()}
    by_key = [{item.workload: item for item in each.items} for each in found.values()]
    items = [_compared([items[key] for items in by_key]) for key in by_key[0]]
    all_assumptions = [assumption for each in found.values() for assumption in each.assumptions]
    return KueueComparison(
        names=list(compared),
        items=items,
        differing=sum(not each.is_same for each in items),
        assumptions=list(dict.fromkeys([*all_assumptions, *assumptions])),
    )


def _compared(items: list[PendingWorkload]) -> ComparedWorkload:
    first, *others = items
    is_certain = not any(each.other_outcomes for each in items)
    return ComparedWorkload(
        workload=first.workload,
        cluster_queue=first.cluster_queue,
        priority=first.priority,
        is_same=is_certain and all(is_same_outcome(first.outcome, each.outcome) for each in others),
        outcomes=[each.outcome for each in items],
    )
