"""What becomes of a Workload: alone in its cycles, with all that waits, and what kube-scheduler then says.

Also the smallest changes with which Kueue would admit a Workload that it leaves pending, each proven by whole cycles,
and several configurations of Kueue, or of its queues, side by side.
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
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, Standing, adjusted, infos_of
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

# So many pods of a pod set are put to the scheduler, one after the other.
MOST_PODS = 100


def with_workloads(workloads: Sequence[Workload], objects: KueueObjects, now: datetime) -> KueueObjects:
    """The objects with Workloads in the place of those of their names; they come now if they do not say when."""
    timed = [msgspec.structs.replace(each, metadata=with_creation_time(each.metadata, now)) for each in workloads]
    keys = {each.key for each in workloads}
    others = [each for each in objects.workloads if each.key not in keys]
    return adjusted(msgspec.structs.replace(objects, workloads=[*others, *timed]))


def explain_workloads(
    asked: Sequence[tuple[Workload, str]],
    objects: KueueObjects,
    config: KueueConfiguration,
    scheduler: Scheduler,
    *,
    now: datetime,
) -> list[KueueAnswer]:
    """The answer for each Workload, with what it was made from; they take the place of those of their names.

    They are put to Kueue together: ``alone`` says that nobody else waits, and pods land beside those of the others.
    """
    made = {each.key: assumed_of_made(each, origin) for each, origin in asked}
    objects = with_workloads([each for each, _ in asked], objects, now)
    by_key = {each.key: each for each in objects.workloads[-len(asked) :]}
    infos = infos_of(objects, config)
    alone, said = read_cycles(objects, config, now, by_key.keys(), infos)
    together, joint_assumptions = read_cycles(objects, config, now, infos=infos)
    readings = {key: alone.reading(each) for key, each in by_key.items()}
    landings, pod_assumptions = _landings(by_key, readings, objects, scheduler, now)
    said = [*assumed_of(objects, config), *said, *joint_assumptions, *pod_assumptions]
    answers = []
    for each, origin in asked:
        workload = by_key[each.key]
        own_assumptions = [*made[each.key], assumed_of_memory()]
        changes: list[WorkloadChange] = []
        # Several are not changed one by one: what one gets, another may lack.
        if len(asked) == 1 and readings[each.key].outcome is WorkloadOutcome.PENDING:
            changes, are_all = smallest_changes(workload, objects, config, now)
            if not are_all:
                untried = "not all changes were tried, as there are many Workloads"
                own_assumptions.append(Assumption("Kueue", "changes", untried, AssumptionKind.INFORMATIONAL))
        answers.append(
            KueueAnswer(
                workload=each.key,
                origin=origin,
                cluster_queue=queue_of(workload, objects),
                priority=workload.spec.priority or 0,
                alone=readings[each.key],
                together=together.reading(workload),
                placement=landings.get(each.key, []),
                changes=changes,
                assumptions=list(dict.fromkeys([*said, *own_assumptions])),
            )
        )
    return answers


def _landings(
    workloads: Mapping[str, Workload],
    readings: Mapping[str, AdmissionRun],
    objects: KueueObjects,
    scheduler: Scheduler,
    now: datetime,
) -> tuple[dict[str, list[PodSetPlacement]], list[Assumption]]:
    """What the scheduler does with the pods once those of the preempted Workloads are gone."""
    admitted = {key: each for key, each in readings.items() if each.admitted_in}
    if not admitted:
        return {}, []
    targets = [target for each in admitted.values() for target in each.targets]
    assumptions = [
        Assumption(
            f"Workload {each.workload}",
            "metadata.ownerReferences",
            "its pods were not found; they are taken to stay",
            AssumptionKind.UNCERTAIN,
        )
        for each in targets
        if not each.pods
    ]
    gone = {pod for each in targets for pod in each.pods}
    pods = [pod for pod in objects.cluster.pods if pod.key not in gone]
    cluster = msgspec.structs.replace(objects.cluster, pods=pods)
    placing = Placing(cluster, scheduler, scheduler.prepare(cluster, now=now), now)
    found = {}
    for key, reading in sorted(admitted.items(), key=lambda each: each[1].admitted_in):
        found[key], said = _landing(workloads[key], objects, reading, placing)
        assumptions += said
    return found, assumptions


def _landing(
    workload: Workload, objects: KueueObjects, reading: AdmissionRun, placing: Placing
) -> tuple[list[PodSetPlacement], list[Assumption]]:
    assumptions = []
    flavors = {each.name: each for each in objects.flavors}
    specs = {each.name: each for each in workload.spec.pod_sets}
    found = []
    for pod_set in reading.pod_sets:
        count = min(pod_set.count, MOST_PODS)
        own = [flavors[name] for name in dict.fromkeys(pod_set.flavors.values()) if name in flavors]
        if any(flavor.spec.topology_name for flavor in own):
            message = "its pods are put to the scheduler without the domains that Kueue ties them to"
            subject = f"Workload {workload.key}"
            assumptions.append(Assumption(subject, f"podSets[{pod_set.name}]", message, AssumptionKind.UNCERTAIN))
        pods = [_pod(workload, specs[pod_set.name], own, index, objects.cluster) for index in range(count)]
        placed = list(placing.place(pods, stops_at_pending=True))
        landed = [each for each in placed if each.branch is not None]
        failed = next((each for each in placed if each.branch is None), None)
        reason = ""
        if failed is not None:
            reason = failed.refused or (failed.verdict.message if failed.verdict else "")
        evicts = sorted({victim for each in landed for victim in each.victims})
        found.append(PodSetPlacement(pod_set.name, pod_set.count, count, len(landed), evicts, reason))
    return found, assumptions


def _pod(
    workload: Workload, pod_set: PodSet, flavors: list[ResourceFlavor], index: int, cluster: ClusterSnapshot
) -> Pod:
    """A pod as the job makes it once it is let in: tied to the nodes of its flavors."""
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

    def reading(self, objects: KueueObjects) -> AdmissionRun | None:
        """What becomes of the Workload where it is admitted, whatever chance decides."""
        if not self._left:
            raise _ExhaustedError
        self._left -= 1
        decided, said = read_cycles(objects, self._config, self._now, [self._key])
        found = Decided(decided.cycles, objects).reading(
            next(each for each in objects.workloads if each.key == self._key)
        )
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
        short = standing.shortages(workload.key, flavor)
        told: list[tuple[str, ...]] = []

        def raised(
            quota: ResourceQuota,
            short: dict[str, int] = short,
            told: list[tuple[str, ...]] = told,
        ) -> ResourceQuota:
            more = short.get(quota.name)
            before: Quantity | None = getattr(quota, field)
            if more is None or before is None:
                return quota
            unit = NANO_PER_MILLI if quota.name == "cpu" else NANO_PER_UNIT
            after = Quantity(quantity_text(before.nano + more * unit))
            texts = (amount_text(quota.name, each.nano // unit) for each in (before, after))
            told.append((quota.name, *texts))
            return msgspec.structs.replace(quota, **{field: after})

        groups = [
            msgspec.structs.replace(
                group,
                flavors=[
                    msgspec.structs.replace(each, resources=[raised(one) for one in each.resources])
                    if each.name == flavor
                    else each
                    for each in group.flavors
                ],
            )
            for group in queue.spec.resource_groups
        ]
        changed = msgspec.structs.replace(queue, spec=msgspec.structs.replace(queue.spec, resource_groups=groups))
        if not told:
            continue
        queues = [changed if each.name == queue.name else each for each in objects.cluster_queues]
        reading = proofs.reading(msgspec.structs.replace(objects, cluster_queues=queues))
        if reading is not None:
            before, after = (", ".join(f"{name} {one[at]}" for name, *one in told) for at in (0, 1))
            yield WorkloadChange(
                kind, f"ClusterQueue {queue.name}", f"{kind} of flavor {flavor}", before, after, reading.targets
            )


def _priority(workload: Workload, objects: KueueObjects, proofs: _Proofs) -> WorkloadChange | None:
    """The least priority just above that of a Workload with quota, as halving finds it."""
    own = workload.spec.priority or 0
    priorities = {each.spec.priority or 0 for each in objects.workloads if each.status.admission is not None}
    steps = sorted(each + 1 for each in priorities if own <= each < _MOST_PRIORITY)

    def tried(step: int) -> AdmissionRun | None:
        return proofs.reading(_with_workload(objects, replace_in(workload, "spec", priority=steps[step])))

    found = _first(len(steps), tried)
    if found is None:
        return None
    at, reading = found
    subject = f"Workload {workload.key}"
    return WorkloadChange(WorkloadChangeKind.PRIORITY, subject, "priority", str(own), str(steps[at]), reading.targets)


def _pods(workload: Workload, objects: KueueObjects, proofs: _Proofs) -> WorkloadChange | None:
    """The most pods of a single pod set, as halving finds them."""
    if len(workload.spec.pod_sets) != 1:
        return None
    (pod_set,) = workload.spec.pod_sets

    def tried(fewer: int) -> AdmissionRun | None:
        less = msgspec.structs.replace(pod_set, count=pod_set.count - 1 - fewer, min_count=None)
        return proofs.reading(_with_workload(objects, replace_in(workload, "spec", pod_sets=[less])))

    found = _first(pod_set.count - 1, tried)
    if found is None:
        return None
    at, reading = found
    after = str(pod_set.count - 1 - at)
    subject, field = f"Workload {workload.key}", f"pods of pod set {pod_set.name}"
    return WorkloadChange(WorkloadChangeKind.PODS, subject, field, str(pod_set.count), after, reading.targets)


def _first(steps: int, tried: Callable[[int], AdmissionRun | None]) -> tuple[int, AdmissionRun] | None:
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


def compare_configurations(
    compared: Mapping[str, tuple[KueueObjects, KueueConfiguration]],
    *,
    now: datetime,
    is_selected: IsSelected,
    assumptions: Sequence[Assumption] = (),
) -> KueueComparison:
    """What becomes of the Workloads that wait, of which one ``is_selected``, by the name of a configuration.

    They come in the order of the first configuration.
    """
    found = {name: pending_workloads(*each, now=now, is_selected=is_selected) for name, each in compared.items()}
    by_key = [{item.workload: item for item in each.items} for each in found.values()]
    items = [_compared([items[key] for items in by_key]) for key in by_key[0]]
    said = [assumption for each in found.values() for assumption in each.assumptions]
    return KueueComparison(
        names=list(compared),
        items=items,
        differing=sum(not each.is_same for each in items),
        assumptions=list(dict.fromkeys([*said, *assumptions])),
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
