"""Explains what happens to a Workload: alone, together with all pending ones, and in kube-scheduler after admission.

Also: remedies for a Workload that is not admitted, and the comparison of several configurations of Kueue or of its
queues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from kpreempt.admission import apply_api_defaults, fill_priorities
from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.kueue.objects import DecodeDocument, assumed_of, assumed_of_made, assumed_of_memory
from kpreempt.analysis.kueue.readings import (
    IsSelected,
    is_same_outcome,
    pending_workloads,
    queue_of,
    read_cycles,
    waits,
)
from kpreempt.analysis.kueue.remedies import Problem, find_remedies
from kpreempt.analysis.kueue.requester import Requester
from kpreempt.analysis.workload.placing import Placing
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import PodSet, ResourceFlavor, Workload
from kpreempt.model.meta import with_creation_time
from kpreempt.model.pod import Pod, PodMeta
from kpreempt.schedulers.kueue import Info, KueueConfiguration, KueueObjects, SnapshotQueue, adjusted, infos_of
from kpreempt.schedulers.kueue.quota import amount_text
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.kueue import (
    AdmissionRun,
    ComparedWorkload,
    KueueAnswer,
    KueueComparison,
    PendingWorkload,
    PodSetPlacement,
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


class SelectedWorkload(NamedTuple):
    """A Workload, the object that it is created for, and the object with which it is changed."""

    workload: Workload
    origin: str
    requester: Requester


def explain_workloads(
    selected: Sequence[SelectedWorkload],
    objects: KueueObjects,
    config: KueueConfiguration,
    scheduler: Scheduler,
    *,
    now: datetime,
    decode: DecodeDocument,
    has_time: Callable[[], bool],
) -> list[KueueAnswer]:
    """The answer for each Workload; they replace Workloads with the same names.

    All are added to Kueue together. ``alone`` is the result without other pending Workloads; the pods of all of them
    are scheduled in one cluster.
    """
    origin_assumptions = {each.workload.key: assumed_of_made(each.workload, each.origin) for each in selected}
    objects = with_workloads([each.workload for each in selected], objects, now)
    by_key = {each.key: each for each in objects.workloads[-len(selected) :]}
    infos = infos_of(objects, config)
    alone, assumptions = read_cycles(objects, config, now, by_key.keys(), infos)
    together, assumptions_together = read_cycles(objects, config, now, infos=infos)
    readings = {key: alone.reading(each) for key, each in by_key.items()}
    placements, placement_assumptions = _placements(by_key, readings, objects, scheduler, now)
    assumptions = [*assumed_of(objects, config), *assumptions, *assumptions_together, *placement_assumptions]
    answers = []
    for each in selected:
        workload = by_key[each.workload.key]
        reading, in_queue = readings[workload.key], together.reading(workload)
        own_assumptions = [*origin_assumptions[workload.key], assumed_of_memory()]
        answer = KueueAnswer(
            workload=workload.key,
            origin=each.origin,
            cluster_queue=queue_of(workload, objects),
            priority=workload.spec.priority or 0,
            alone=reading,
            together=in_queue,
            placement=placements.get(workload.key, []),
            no_preemption=_why_no_preemption(workload, reading, objects, config, infos, now),
            assumptions=list(dict.fromkeys([*assumptions, *own_assumptions])),
        )
        is_admitted = reading.admitted_in and in_queue.admitted_in and not in_queue.evicted_in
        # Remedies are only searched for a single Workload, because several compete for the same quota.
        if len(selected) == 1 and waits(workload) and not is_admitted:
            place = partial(_places, scheduler=scheduler, now=now)
            problem = Problem(
                workload=workload,
                requester=each.requester,
                objects=objects,
                config=config,
                now=now,
                decode=decode,
                place=place,
                has_time=has_time,
            )
            remedies, search = find_remedies(problem)
            answer = msgspec.structs.replace(answer, remedies=remedies, search=search)
        answers.append(answer)
    return answers


def _places(
    workload: Workload, reading: AdmissionRun, objects: KueueObjects, *, scheduler: Scheduler, now: datetime
) -> tuple[int, int]:
    """How many of an admitted Workload's pods are placed, and how many were tried; none without nodes."""
    if not objects.cluster.nodes:
        return 0, 0
    placements, _ = _placements({workload.key: workload}, {workload.key: reading}, objects, scheduler, now)
    found = placements.get(workload.key, [])
    return sum(each.placed for each in found), sum(each.tried for each in found)


def _why_no_preemption(
    workload: Workload,
    reading: AdmissionRun,
    objects: KueueObjects,
    config: KueueConfiguration,
    infos: Sequence[Info],
    now: datetime,
) -> list[str]:
    """Why a pending Workload preempts nothing, for each flavor whose unused quota is too small.

    Follows ``fitsResourceQuota`` in ``pkg/scheduler/flavorassigner/flavorassigner.go`` of Kueue v0.19.2.
    """
    entries = [entry for cycle in reading.cycles for entry in cycle["entries"] if entry["workload"] == workload.key]
    queue = next((each for each in objects.cluster_queues if each.name == queue_of(workload, objects)), None)
    if reading.outcome is not WorkloadOutcome.PENDING or queue is None or not entries:
        return []
    snapshot_queue = SnapshotQueue(objects, infos, config, now)
    policies = queue.spec.preemption
    attempts = {each["flavor"]: each for of_set in entries[0]["nominated"]["podSets"] for each in of_set["attempts"]}
    found = []
    for flavor, attempt in attempts.items():
        if not any(each.startswith("insufficient unused quota") for each in attempt["reasons"]):
            continue
        if attempt["preemption"]:
            within, reclaim = policies.within_cluster_queue, policies.reclaim_within_cohort
            in_cohort = f", and reclaimWithinCohort is {reclaim}" if queue.cohort else ""
            cause = f"withinClusterQueue is {within}{in_cohort}"
            found.append(f"preemption in flavor {flavor} has no candidates that would free enough: {cause}")
            continue
        policy = "reclaimWithinCohort" if config.fair_sharing is not None else "borrowWithinCohort"
        for resource, quota in snapshot_queue.quota_of(workload.key, flavor).items():
            if max(quota.nominal, quota.available) < quota.requested <= quota.potential:
                more = amount_text(resource, quota.requested - quota.nominal)
                nominal = amount_text(resource, quota.nominal)
                beyond = f"it needs {more} {resource} beyond the nominal quota of {nominal}"
                found.append(f"preemption in flavor {flavor} is not tried: {beyond}, and {policy} is Never")
    return found


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
