"""What becomes of a Workload: alone in its cycles, with all that waits, and what the kube-scheduler then says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.admission import apply_api_defaults, fill_priorities
from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.kueue.assumed import assumed_of, assumed_of_chance
from kpreempt.analysis.workload.placing import Placed, Placing
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ADMISSION_GATED_BY, PodSet, ResourceFlavor, Workload
from kpreempt.model.meta import with_creation_time
from kpreempt.model.pod import Pod, PodMeta
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, adjusted, run_cycles
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.kueue import (
    AdmittedPodSet,
    KueueAnswer,
    PodSetLanding,
    PreemptedWorkload,
    Reading,
    WorkloadOutcome,
)

MOST_CYCLES = 200
# So many pods of a pod set are put to the scheduler, one after the other.
MOST_PODS = 100


def explain_workload(
    workload: Workload,
    objects: KueueObjects,
    config: KueueConfiguration,
    scheduler: Scheduler,
    *,
    now: datetime,
    origin: str = "",
) -> KueueAnswer:
    """The answer for a Workload, which takes the place of one of its name, and comes now if it does not say when."""
    meta = with_creation_time(workload.metadata, now)
    is_new = workload.metadata.creation_timestamp is None
    workload = msgspec.structs.replace(workload, metadata=meta)
    others = [each for each in objects.workloads if each.key != workload.key]
    objects = adjusted(msgspec.structs.replace(objects, workloads=[*others, workload]))
    workload = objects.workloads[-1]
    alone, said = _reading(workload, objects, config, now, only=workload.key)
    together, said_together = _reading(workload, objects, config, now)
    landing, said_of_pods = _landing(workload, objects, alone, scheduler, now)
    assumptions = [*assumed_of(objects, config), *said, *said_together, *said_of_pods]
    if is_new:
        message = "it is taken to come now, after all of its priority; of equals in a second the UID decides"
        assumptions.append(Assumption(f"Workload {workload.key}", "metadata.uid", message, AssumptionKind.TOLD))
    memory = (
        "which flavors were tried, who preempts and what is parked is in the manager's memory: it is taken to start"
    )
    assumptions.append(Assumption("Kueue", "memory", memory, AssumptionKind.TOLD))
    return KueueAnswer(
        workload=workload.key,
        origin=origin,
        cluster_queue=_queue_of(workload, objects),
        priority=workload.spec.priority or 0,
        alone=alone,
        together=together,
        landing=landing,
        assumptions=list(dict.fromkeys(assumptions)),
    )


def _queue_of(workload: Workload, objects: KueueObjects) -> str:
    asked = (workload.metadata.namespace, workload.spec.queue_name)
    for each in objects.local_queues:
        if (each.metadata.namespace, each.metadata.name) == asked:
            return each.spec.cluster_queue
    return ""


def _reading(
    workload: Workload, objects: KueueObjects, config: KueueConfiguration, now: datetime, only: str = ""
) -> tuple[Reading, list[Assumption]]:
    found = run_cycles(objects, config, now=now, cycles=MOST_CYCLES, only=only)
    entries = [
        (cycle, entry)
        for cycle in found.cycles
        for entry in (*cycle["entries"], *cycle["inadmissible"])
        if entry["workload"] == workload.key
    ]
    admitted_in = next((cycle["cycle"] for cycle in found.cycles if workload.key in cycle["admissions"]), 0)
    targets = [
        target
        for cycle, entry in entries
        if entry["requeueReason"] == "PendingPreemption" and (not admitted_in or cycle["cycle"] < admitted_in)
        for target in entry["final"]["targets"]
    ]
    waits = bool(admitted_in) and not _is_admitted(workload, found.cycles[admitted_in - 1])
    reading = Reading(
        outcome=_outcome(bool(entries), admitted_in, bool(targets), waits),
        message=entries[-1][1]["message"] if entries else _why_not_queued(workload, objects, found.cycles),
        admitted_in=admitted_in,
        waits_for_checks=waits,
        targets=[_preempted(each, objects) for each in targets],
        pod_sets=_pod_sets(entries, admitted_in),
        cycles=found.cycles,
        other_outcomes=len(found.others),
    )
    return reading, assumed_of_chance(found)


def _is_admitted(workload: Workload, cycle: dict[str, Any]) -> bool:
    """Whether a cycle that gives it quota admits it, too."""
    told = [each["status"] for each in cycle["conditions"].get(workload.key, ()) if each["type"] == "Admitted"]
    before = [each.status for each in workload.status.conditions if each.type == "Admitted"]
    return [*before, *told][-1:] == ["True"]


def _outcome(is_head: bool, admitted_in: int, preempts: bool, waits: bool) -> WorkloadOutcome:
    if not is_head:
        return WorkloadOutcome.NOT_QUEUED
    if preempts:
        return WorkloadOutcome.PREEMPTS
    if waits:
        return WorkloadOutcome.QUOTA_RESERVED
    return WorkloadOutcome.ADMITTED if admitted_in else WorkloadOutcome.PENDING


def _why_not_queued(workload: Workload, objects: KueueObjects, cycles: list[dict[str, Any]]) -> str:
    queue = _queue_of(workload, objects)
    if not queue:
        return f"there is no LocalQueue {workload.spec.queue_name!r} in namespace {workload.metadata.namespace}"
    if queue not in {each.name for each in objects.cluster_queues}:
        return f"there is no ClusterQueue {queue}"
    inactive = cycles[0]["inactive"].get(queue, "") if cycles else ""
    if inactive:
        return str(inactive).rpartition("|")[2]
    holding = {each.type for each in workload.status.conditions if each.status == "True"}
    for is_so, reason in (
        ("Finished" in holding, "it has finished"),
        ("QuotaReserved" in holding, "it has quota already"),
        (not workload.spec.active, "its spec.active is false"),
        (bool(workload.metadata.annotations.get(ADMISSION_GATED_BY)), f"it has the annotation {ADMISSION_GATED_BY}"),
        (_is_held(workload, objects), f"its LocalQueue {workload.spec.queue_name} is stopped"),
        (workload.status.requeue_state is not None, "it waits until its requeueState lets it back"),
    ):
        if is_so:
            return reason
    return "others are before it in every cycle"


def _is_held(workload: Workload, objects: KueueObjects) -> bool:
    asked = (workload.metadata.namespace, workload.spec.queue_name)
    return any(
        (each.metadata.namespace, each.metadata.name) == asked and each.spec.stop_policy != "None"
        for each in objects.local_queues
    )


def _pod_sets(entries: list[tuple[dict[str, Any], dict[str, Any]]], admitted_in: int) -> list[AdmittedPodSet]:
    if not entries or "final" not in entries[-1][1]:
        return []
    told = next((entry for cycle, entry in entries if cycle["cycle"] == admitted_in), entries[-1][1])
    return [
        AdmittedPodSet(each["name"], each["count"], each["api"]["flavors"], each["message"])
        for each in told["final"]["podSets"]
    ]


def _preempted(target: dict[str, str], objects: KueueObjects) -> PreemptedWorkload:
    workload = next(each for each in objects.workloads if each.key == target["workload"])
    pods = sorted(pod.key for pod in _pods_of(workload, objects.cluster))
    return PreemptedWorkload(target["workload"], target["clusterQueue"], target["reason"], pods)


def _pods_of(workload: Workload, cluster: ClusterSnapshot) -> Iterator[Pod]:
    """The pods of a Workload: its owner, if that is a pod, or those that its owner controls."""
    uids = {each.uid for each in workload.metadata.owner_references if each.uid}
    named = {(each.kind, each.name) for each in workload.metadata.owner_references}
    for pod in cluster.pods:
        if pod.metadata.namespace != workload.metadata.namespace or pod.is_terminal:
            continue
        owners = pod.metadata.owner_references
        is_owned = any(each.uid in uids if each.uid else (each.kind, each.name) in named for each in owners)
        if is_owned or pod.metadata.uid in uids or ("Pod", pod.metadata.name) in named:
            yield pod


def _landing(
    workload: Workload, objects: KueueObjects, reading: Reading, scheduler: Scheduler, now: datetime
) -> tuple[list[PodSetLanding], list[Assumption]]:
    """What the scheduler does with the pods once those of the preempted Workloads are gone."""
    if not reading.admitted_in:
        return [], []
    gone = {pod for each in reading.targets for pod in each.pods}
    lost = [each.workload for each in reading.targets if not each.pods]
    assumptions = [
        Assumption(
            f"Workload {each}",
            "metadata.ownerReferences",
            "its pods were not found; they are taken to stay",
            AssumptionKind.UNCERTAIN,
        )
        for each in lost
    ]
    cluster = msgspec.structs.replace(
        objects.cluster, pods=[pod for pod in objects.cluster.pods if pod.key not in gone]
    )
    flavors = {each.name: each for each in objects.flavors}
    specs = {each.name: each for each in workload.spec.pod_sets}
    placing = Placing(cluster, scheduler, scheduler.prepare(cluster, now=now), now)
    found = []
    for each in reading.pod_sets:
        count = min(each.count, MOST_PODS)
        own = [flavors[name] for name in dict.fromkeys(each.flavors.values()) if name in flavors]
        if any(flavor.spec.topology_name for flavor in own):
            message = "its pods are put to the scheduler without the domains that Kueue ties them to"
            subject = f"Workload {workload.key}"
            assumptions.append(Assumption(subject, f"podSets[{each.name}]", message, AssumptionKind.UNCERTAIN))
        pods = [_pod(workload, specs[each.name], own, index, cluster) for index in range(count)]
        placed = list(placing.place(pods, stops_at_pending=True))
        found.append(_landed(each, count, placed))
    return found, assumptions


def _landed(pod_set: AdmittedPodSet, tried: int, placed: list[Placed]) -> PodSetLanding:
    landed = [each for each in placed if each.branch is not None]
    failed = next((each for each in placed if each.branch is None), None)
    reason = ""
    if failed is not None:
        reason = failed.refused or (failed.verdict.message if failed.verdict else "")
    evicts = sorted({victim for each in landed for victim in each.victims})
    return PodSetLanding(pod_set.name, pod_set.count, tried, len(landed), evicts, reason)


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
