"""Kueue's objects as plain data, answers about them, and what is left of a remedy's promise after it is applied."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import msgspec

from kpreempt.analysis.kueue.objects import KUEUE_EXTRAS, KueueSettings
from kpreempt.analysis.remedies.edits import edited_documents
from kpreempt.library.handlers import answer
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.requests import ExplainWorkloads
from kpreempt.library.schedulers import Context, default_scheduler
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import QUEUE_LABEL
from kpreempt.schedulers.kueue import KueueConfiguration
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.snapshot.manifest import ManifestObject
from kpreempt.verdict.kueue import KueueAnswer
from kpreempt.verdict.remedies import ChangeKind, Remedy

Document = dict[str, Any]

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
API = "kueue.x-k8s.io/v1beta2"
_BEFORE = "2026-11-22T08:00:00Z"


def kueue_snapshot(objects: Sequence[Document]) -> ClusterSnapshot:
    """The cluster of these objects."""
    kinds = {each.kind: each.key for each in KUEUE_EXTRAS.kinds}
    documents: dict[str, list[Document]] = {}
    for each in objects:
        if each["apiVersion"].startswith("kueue.x-k8s.io/"):
            documents.setdefault(kinds[each["kind"]], []).append(each)
    others = [each for each in objects if not each["apiVersion"].startswith("kueue.x-k8s.io/")]
    raw = [msgspec.Raw(json.dumps(each).encode()) for each in others]
    return msgspec.structs.replace(cluster_from_json(raw, "scenario"), documents=documents)


def namespace(name: str = "team", **labels: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def flavor(name: str = "main", **spec: Any) -> Document:
    return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def cluster_queue(name: str, cpu: str, *, cohort: str = "", more: Document | None = None, **spec: Any) -> Document:
    """A ClusterQueue of one flavor, with ``more`` fields for its quota of CPU."""
    flavors = [{"name": "main", "resources": [{"name": "cpu", "nominalQuota": cpu, **(more or {})}]}]
    return {
        "apiVersion": API,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {},
            "cohortName": cohort,
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            **spec,
        },
    }


def local_queue(name: str, queue: str = "", **spec: Any) -> Document:
    return {
        "apiVersion": API,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"clusterQueue": queue or name, **spec},
    }


def pod_template(cpu: str, **spec: Any) -> Document:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"restartPolicy": "Never", "containers": [container], **spec}}


def workload(
    name: str,
    queue: str,
    cpu: str,
    *,
    priority: int = 0,
    count: int = 1,
    admitted: str = "",
    created: str = "2026-11-22T11:00:00Z",
    owner: str = "",
    required: str = "",
    **spec: Any,
) -> Document:
    """A Workload with one pod set; it has quota if ``admitted`` is the total of its CPU.

    ``required`` is the topology level at which its pods must be together.
    """
    metadata = {"name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": created}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": owner, "name": name, "uid": f"{owner}-{name}", "controller": True}
        ]
    pod_set: Document = {"name": "main", "count": count, "template": pod_template(cpu)}
    if required:
        pod_set["topologyRequest"] = {"required": required}
    found: Document = {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"queueName": queue, "priority": priority, "active": True, "podSets": [pod_set], **spec},
    }
    if admitted:
        metadata["creationTimestamp"] = _BEFORE
        given = {"name": "main", "count": count, "flavors": {"cpu": "main"}, "resourceUsage": {"cpu": admitted}}
        found["status"] = {
            "conditions": [
                {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": _BEFORE}
                for kind in ("QuotaReserved", "Admitted")
            ],
            "admission": {"clusterQueue": queue, "podSetAssignments": [given]},
        }
    return found


def job(name: str, queue: str, cpu: str, *, parallelism: int = 1, **labels: str) -> Document:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team", "labels": {QUEUE_LABEL: queue, **labels}},
        "spec": {"parallelism": parallelism, "template": pod_template(cpu)},
    }


def node(name: str, cpu: str, **labels: str) -> Document:
    allocatable = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": allocatable, "allocatable": allocatable, "conditions": conditions},
    }


def explained(
    objects: Sequence[Document],
    name: str = "",
    manifest: Document | None = None,
    config: KueueConfiguration = KueueConfiguration(),  # noqa: B008 - frozen
) -> KueueAnswer:
    """The answer about a Workload of the cluster, or about the one that a manifest results in."""
    context = Context(LoadedCluster(kueue_snapshot(objects), []), default_scheduler(), NOW)._replace(namespace="team")
    files = [[ManifestObject("job.yaml", 1, manifest, b"")]] if manifest is not None else []
    request = ExplainWorkloads(
        settings=KueueSettings(config, []), workload=f"workload/{name}" if name else "", manifests=files
    )
    found: KueueAnswer = answer(context, request).record
    return found


def applied(objects: Sequence[Document], remedy: Remedy, key: str) -> list[Document]:
    """The objects after the remedy, and after Kueue has updated the Workloads of changed Jobs."""
    changed = deepcopy(edited_documents(objects, remedy.edits))
    for change in remedy.changes:
        if change.kind is ChangeKind.ADD_NODE:
            [like] = [
                each for each in changed if f"{each['kind']} {each['metadata']['name']}" == f"Node {change.subject}"
            ]
            for number in range(change.after or 1):
                changed.append(deepcopy(like))
                changed[-1]["metadata"]["name"] = f"{change.subject}-new-{number}"
    for each in changed:
        metadata, spec = each["metadata"], each.get("spec", {})
        for edit in remedy.edits:
            owners = [f"{one['kind']} team/{one['name']}" for one in metadata.get("ownerReferences", ())]
            if each["kind"] == "Workload" and edit.object in owners:
                parallelism = edit.patch.get("spec", {}).get("parallelism")
                labels = edit.patch.get("metadata", {}).get("labels", {})
                spec["podSets"][0]["count"] = parallelism or spec["podSets"][0]["count"]
                spec["queueName"] = labels.get(QUEUE_LABEL, spec["queueName"])
        for change in remedy.changes:
            if change.kind is ChangeKind.REPAIR and change.subject == f"{each['kind']} {metadata['name']}":
                each["status"] = {"conditions": [{"type": "Active", "status": "True"}]}
            if change.kind is ChangeKind.PRIORITY and f"team/{metadata['name']}" == key:
                spec["priority"] = change.after
    return changed


def check_promise(before: KueueAnswer, after: KueueAnswer, remedy: Remedy, priorities: dict[str, int]) -> None:
    """Fail unless the remedy does what it promises, and no Workload of the same or a higher priority is worse off."""
    key, own = before.workload, after.priority
    assert after.alone.admitted_in, remedy
    if remedy.solves:
        assert after.together.admitted_in, remedy
        assert not after.together.evicted_in, remedy
    cycles = [before.together.cycles, after.together.cycles]
    evicted = [{each for cycle in found for each in cycle["requeued"]} for found in cycles]
    more = (evicted[1] - evicted[0] | {each.workload for each in after.alone.targets}) - {key}
    assert more <= set(remedy.evicted), remedy
    assert all(priorities[each] < own for each in remedy.evicted), remedy
    lost = _held(before) - _held(after) - {key}
    if not before.together.other_outcomes and not after.together.other_outcomes:
        assert all(priorities[each] < own for each in lost), remedy
    placed = sum(each.placed for each in after.placement)
    tried = sum(each.tried for each in after.placement)
    if remedy.pods:
        assert (placed, tried) == (remedy.scheduled, remedy.pods), remedy


def _held(answer: KueueAnswer) -> set[str]:
    held: set[str] = set()
    for cycle in answer.together.cycles:
        held |= {key for each in cycle["before"] for key in each.get("workloads", ())}
        held |= cycle["admissions"].keys()
        held -= set(cycle["requeued"])
    return held
