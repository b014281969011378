"""What becomes of a Workload: alone in its cycles, with all that waits, and what the kube-scheduler then says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from kpreempt.admission import apply_api_defaults, fill_priorities
from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.kueue.assumed import assumed_of, assumed_of_made, assumed_of_memory
from kpreempt.analysis.kueue.changes import smallest_changes
from kpreempt.analysis.kueue.readings import queue_of, read_cycles
from kpreempt.analysis.workload.placing import Placed, Placing
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import PodSet, ResourceFlavor, Workload
from kpreempt.model.meta import with_creation_time
from kpreempt.model.pod import Pod, PodMeta
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, adjusted, infos_of
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.kueue import (
    AdmittedPodSet,
    KueueAnswer,
    PodSetLanding,
    Reading,
    WorkloadChange,
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
    together, said_together = read_cycles(objects, config, now, infos=infos)
    readings = {key: alone.reading(each) for key, each in by_key.items()}
    landings, said_of_pods = _landings(by_key, readings, objects, scheduler, now)
    said = [*assumed_of(objects, config), *said, *said_together, *said_of_pods]
    answers = []
    for each, origin in asked:
        workload = by_key[each.key]
        said_of_it = [*made[each.key], assumed_of_memory()]
        changes: list[WorkloadChange] = []
        # Several are not changed one by one: what one gets, another may lack.
        if len(asked) == 1 and readings[each.key].outcome is WorkloadOutcome.PENDING:
            changes, are_all = smallest_changes(workload, objects, config, now)
            if not are_all:
                untried = "not all changes were tried, as there are many Workloads"
                said_of_it.append(Assumption("Kueue", "changes", untried, AssumptionKind.TOLD))
        answers.append(
            KueueAnswer(
                workload=each.key,
                origin=origin,
                cluster_queue=queue_of(workload, objects),
                priority=workload.spec.priority or 0,
                alone=readings[each.key],
                together=together.reading(workload),
                landing=landings.get(each.key, []),
                changes=changes,
                assumptions=list(dict.fromkeys([*said, *said_of_it])),
            )
        )
    return answers


def _landings(
    workloads: Mapping[str, Workload],
    readings: Mapping[str, Reading],
    objects: KueueObjects,
    scheduler: Scheduler,
    now: datetime,
) -> tuple[dict[str, list[PodSetLanding]], list[Assumption]]:
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
    workload: Workload, objects: KueueObjects, reading: Reading, placing: Placing
) -> tuple[list[PodSetLanding], list[Assumption]]:
    assumptions = []
    flavors = {each.name: each for each in objects.flavors}
    specs = {each.name: each for each in workload.spec.pod_sets}
    found = []
    for each in reading.pod_sets:
        count = min(each.count, MOST_PODS)
        own = [flavors[name] for name in dict.fromkeys(each.flavors.values()) if name in flavors]
        if any(flavor.spec.topology_name for flavor in own):
            message = "its pods are put to the scheduler without the domains that Kueue ties them to"
            subject = f"Workload {workload.key}"
            assumptions.append(Assumption(subject, f"podSets[{each.name}]", message, AssumptionKind.UNCERTAIN))
        pods = [_pod(workload, specs[each.name], own, index, objects.cluster) for index in range(count)]
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
