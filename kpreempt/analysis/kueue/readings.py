"""What cycles make of a Workload: when it gets quota, whom it preempts for that, or why it gets none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from kpreempt.analysis.kueue.objects import assumed_of_chance, assumed_of_end
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ADMISSION_GATED_BY, Workload
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kueue import Info, KueueConfiguration, KueueObjects, run_cycles
from kpreempt.verdict import Assumption
from kpreempt.verdict.kueue import AdmittedPodSet, PreemptedWorkload, Reading, WorkloadOutcome

MOST_CYCLES = 200
# A cycle has a head for each ClusterQueue.
MOST_HEADS = 2_000

_NEVER_HEAD = "it is never head: others are before it, or one that asks for the same was refused"

Cycles = list[dict[str, Any]]


def queue_of(workload: Workload, objects: KueueObjects) -> str:
    """The ClusterQueue to which its LocalQueue leads; nothing where there is no such LocalQueue."""
    asked = (workload.metadata.namespace, workload.spec.queue_name)
    for each in objects.local_queues:
        if (each.metadata.namespace, each.metadata.name) == asked:
            return each.spec.cluster_queue
    return ""


def read_cycles(
    objects: KueueObjects,
    config: KueueConfiguration,
    now: datetime,
    only: Collection[str] = (),
    infos: Sequence[Info] | None = None,
) -> tuple[Decided, list[Assumption]]:
    """What Kueue does with all that wait, or where only some do, with those of these keys."""
    found = run_cycles(objects, config, now=now, cycles=MOST_CYCLES, only=only, heads=MOST_HEADS, infos=infos)
    decided = Decided(found.cycles, objects, len(found.others))
    return decided, [*assumed_of_chance(found), *assumed_of_end(found)]


class Decided:
    """Cycles by the Workloads that were heads in them."""

    def __init__(self, cycles: Cycles, objects: KueueObjects, other_outcomes: int = 0) -> None:
        self._other_outcomes = other_outcomes
        self.cycles = cycles
        self._objects = objects
        self._by_key = {each.key: each for each in objects.workloads}
        # In the order in which each was head first.
        self.entries: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
        for cycle in cycles:
            for entry in (*cycle["entries"], *cycle["inadmissible"]):
                self.entries.setdefault(entry["workload"], []).append((cycle, entry))

    def reading(self, workload: Workload) -> Reading:
        """What becomes of a Workload, and whether it is evicted again after its admission."""
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
        if not admitted_in:
            evicted_in = 0
        else:
            evicted_in = next(
                (each["cycle"] for each in self.cycles[admitted_in:] if workload.key in each["requeued"]), 0
            )
        if not entries or "final" not in entries[-1][1]:
            pod_sets = []
        else:
            told = next((entry for cycle, entry in entries if cycle["cycle"] == admitted_in), entries[-1][1])
            wanted = {each.name: each.count for each in workload.spec.pod_sets}
            pod_sets = [
                AdmittedPodSet(
                    each["name"], each["count"], wanted[each["name"]], each["api"]["flavors"], each["message"]
                )
                for each in told["final"]["podSets"]
            ]
        return Reading(
            outcome=_outcome(bool(entries) or message == _NEVER_HEAD, admitted_in, bool(targets), waits),
            message=message,
            admitted_in=admitted_in,
            waits_for_checks=waits,
            evicted_in=evicted_in,
            targets=[self._preempted(each) for each in targets],
            pod_sets=pod_sets,
            cycles=self.cycles,
            other_outcomes=self._other_outcomes,
        )

    def _preempted(self, target: dict[str, str]) -> PreemptedWorkload:
        workload = self._by_key[target["workload"]]
        pods = self._pods.of(workload)
        return PreemptedWorkload(target["workload"], target["clusterQueue"], target["reason"], pods)

    @cached_property
    def _pods(self) -> PodsOfWorkloads:
        return PodsOfWorkloads(self._objects.cluster)


def _is_admitted(workload: Workload, cycle: dict[str, Any]) -> bool:
    """Whether a cycle that gives it quota admits it, too."""
    told = [each["status"] for each in cycle["conditions"].get(workload.key, ()) if each["type"] == "Admitted"]
    before = [each.status for each in workload.status.conditions if each.type == "Admitted"]
    return [*before, *told][-1:] == ["True"]


def _outcome(is_queued: bool, admitted_in: int, preempts: bool, waits: bool) -> WorkloadOutcome:
    if not is_queued:
        return WorkloadOutcome.NOT_QUEUED
    if preempts:
        return WorkloadOutcome.PREEMPTS
    if waits:
        return WorkloadOutcome.QUOTA_RESERVED
    return WorkloadOutcome.ADMITTED if admitted_in else WorkloadOutcome.PENDING


def why_not_queued(workload: Workload, objects: KueueObjects, cycles: Cycles) -> str:
    """Why nobody decided about a Workload."""
    queue = queue_of(workload, objects)
    if not queue:
        return f"there is no LocalQueue {workload.spec.queue_name!r} in namespace {workload.metadata.namespace}"
    if queue not in {each.name for each in objects.cluster_queues}:
        return f"there is no ClusterQueue {queue}"
    inactive = cycles[0]["inactive"].get(queue, "") if cycles else ""
    if inactive:
        return str(inactive).rpartition("|")[2]
    holding = {each.type for each in workload.status.conditions if each.status == "True"}
    asked = (workload.metadata.namespace, workload.spec.queue_name)
    for is_so, reason in (
        ("Finished" in holding, "it has finished"),
        ("QuotaReserved" in holding, "it has quota already"),
        (not workload.spec.active, "its spec.active is false"),
        (bool(workload.metadata.annotations.get(ADMISSION_GATED_BY)), f"it has the annotation {ADMISSION_GATED_BY}"),
        (
            (
                any(
                    (each.metadata.namespace, each.metadata.name) == asked and each.spec.stop_policy != "None"
                    for each in objects.local_queues
                )
            ),
            f"its LocalQueue {workload.spec.queue_name} is stopped",
        ),
        (workload.status.requeue_state is not None, "it waits until its requeueState lets it back"),
    ):
        if is_so:
            return reason
    return _NEVER_HEAD


class PodsOfWorkloads:
    """The pods of a cluster that have not ended, by what owns them."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        # By namespace, and the UID or kind and name of an owner, or of a pod itself.
        self._pods: dict[tuple[str, str | tuple[str, str]], list[Pod]] = {}
        for pod in cluster.pods:
            if pod.is_terminal:
                continue
            metadata = pod.metadata
            owners = {each.uid or (each.kind, each.name) for each in metadata.owner_references}
            for key in {metadata.uid, ("Pod", metadata.name), *owners}:
                self._pods.setdefault((metadata.namespace, key), []).append(pod)

    def of(self, workload: Workload) -> list[str]:
        """The names of a Workload's pods: its owner, if that is a pod, or those that its owner controls."""
        namespace, found = workload.metadata.namespace, set[str]()
        for owner in workload.metadata.owner_references:
            for key in (owner.uid, (owner.kind, owner.name)):
                found.update(pod.key for pod in self._pods.get((namespace, key), ()) if key)
        return sorted(found)
