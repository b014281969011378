"""Volcano's objects as plain data, answers about jobs, and whether a remedy keeps its promise after it is applied."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import msgspec

from kpreempt.analysis.remedies.edits import edited_documents
from kpreempt.analysis.volcano.jobs import read_volcano_job
from kpreempt.analysis.volcano.remedies import is_bound
from kpreempt.analysis.volcano.sessions import Volcano, VolcanoManifest
from kpreempt.library.handlers import answer
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.requests import ExplainJobs
from kpreempt.library.schedulers import Context, default_scheduler
from kpreempt.model.volcano import GROUP_NAME
from kpreempt.schedulers.volcano import configuration_of
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.verdict.remedies import ChangeKind, Remedy
from kpreempt.verdict.volcano import GangAnswer

Document = dict[str, Any]

NOW = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
_SCHEDULING, _BATCH = "scheduling.volcano.sh/v1beta1", "batch.volcano.sh/v1alpha1"
_BEFORE = "2026-11-20T08:00:00Z"
PLUGINS = ("priority", "gang", "conformance"), ("overcommit", "drf", "predicates", "proportion", "nodeorder")


def node(name: str, cpu: str, *, cordoned: bool = False, **labels: str) -> Document:
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {"unschedulable": True, "taints": taints} if cordoned else {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def queue(name: str, *, state: str = "Open", **spec: Any) -> Document:
    return {
        "apiVersion": _SCHEDULING,
        "kind": "Queue",
        "metadata": {"name": name, "creationTimestamp": _BEFORE},
        "spec": {"weight": 1, "reclaimable": True, **spec},
        "status": {"state": state},
    }


def priority_class(name: str, value: int) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _spec(cpu: str, **spec: Any) -> Document:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {"restartPolicy": "Never", "containers": [container], **spec}


def job(
    name: str, cpu: str, *, tasks: int = 1, needs: int | None = None, queue: str = "default", **spec: Any
) -> Document:
    """A Volcano job of one task that needs all its pods, or ``needs`` of them."""
    return {
        "apiVersion": _BATCH,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {
            "schedulerName": "volcano",
            "queue": queue,
            "minAvailable": tasks if needs is None else needs,
            "tasks": [{"name": "worker", "replicas": tasks, "template": {"spec": _spec(cpu, **spec)}}],
        },
    }


def gang(
    name: str,
    cpu: str,
    nodes: Sequence[str],
    *,
    queue: str = "default",
    needs: int = 1,
    priority: str = "",
    value: int = 0,
    owner: str = "",
) -> list[Document]:
    """A pod group with a pod for each of the nodes; a pod without a node is pending."""
    is_running = all(nodes)
    owners = [{"apiVersion": _BATCH, "kind": owner, "name": name, "uid": name, "controller": True}] if owner else []
    group = {
        "apiVersion": _SCHEDULING,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ml", "creationTimestamp": _BEFORE, "ownerReferences": owners},
        "spec": {
            "minMember": needs,
            "queue": queue,
            "priorityClassName": priority,
            "minResources": {"cpu": str(int(cpu) * needs)},
        },
        "status": {"phase": "Running" if is_running else "Inqueue"},
    }
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{index}",
                "namespace": "ml",
                "uid": f"{name}-{index}",
                "creationTimestamp": _BEFORE,
                "annotations": {GROUP_NAME: name},
            },
            "spec": {
                **_spec(cpu, schedulerName="volcano", priority=value),
                **({"priorityClassName": priority} if priority else {}),
                **({"nodeName": each} if each else {}),
            },
            "status": {"phase": "Running" if each else "Pending"},
        }
        for index, each in enumerate(nodes)
    ]
    return [group, *pods]


def configuration(actions: str = "enqueue, allocate, backfill", without: Sequence[str] = ()) -> Document:
    tiers = [{"plugins": [{"name": name} for name in tier if name not in without]} for tier in PLUGINS]
    return {"actions": actions, "tiers": tiers}


def explained(
    objects: Sequence[Document], manifest: Document | None = None, pod: str = "", conf: Document | None = None
) -> GangAnswer:
    """The answer about a job's manifest, or about the job of a pod in the cluster."""
    raw = [msgspec.Raw(json.dumps(each).encode()) for each in objects]
    loaded = LoadedCluster(cluster_from_json(raw, "scenario"), [])
    context = Context(loaded, default_scheduler(), NOW)._replace(namespace="ml")
    jobs = [read_volcano_job(manifest, "ml")] if manifest is not None else []
    request = ExplainJobs(
        pod=f"pod/{pod}" if pod else "",
        namespace="ml",
        manifest=VolcanoManifest(jobs=jobs),
        volcano=Volcano(configuration_of(conf or configuration()), NOW),
    )
    found: GangAnswer = answer(context, request).record
    return found


def applied(
    objects: Sequence[Document], manifest: Document | None, conf: Document | None, remedy: Remedy
) -> tuple[list[Document], Document | None, Document | None]:
    """The objects, the manifest and the configuration after the remedy."""
    changed = edited_documents(objects, remedy.edits)
    if manifest is not None:
        changed_manifest = edited_documents([manifest], [each for each in remedy.edits if not each.creates])
        [manifest] = changed_manifest
    for change in remedy.changes:
        if change.kind is ChangeKind.ADD_NODE:
            [like] = [each for each in changed if each["kind"] == "Node" and each["metadata"]["name"] == change.subject]
            for number in range(change.after or 1):
                new = deepcopy(like)
                new["metadata"]["name"] = f"{change.subject}-new-{number + 1}"
                new["metadata"]["labels"]["kubernetes.io/hostname"] = new["metadata"]["name"]
                changed.append(new)
    for option in remedy.options:
        assert option.startswith("--actions="), option
        conf = {**(conf or configuration()), "actions": option.partition("=")[2]}
    return changed, manifest, conf


def check_promise(before: GangAnswer, after: GangAnswer, remedy: Remedy, priorities: dict[str, int]) -> None:
    """Fail unless the job is bound as promised, and no job of the same or a higher priority loses a task.

    ``priorities`` are those of the running tasks.
    """
    assert is_bound(after), remedy
    placed = [task for task in after.tasks if task.status in ("Bound", "Pipelined", "Running")]
    assert len(placed) == remedy.scheduled, remedy
    own = after.sessions[-1].opening.jobs[after.job].priority if after.sessions[-1].opening else 0
    evicted = [
        {each.task for session in found.sessions for action in session.actions for each in action.evictions}
        for found in (before, after)
    ]
    assert evicted[1] - evicted[0] == set(remedy.evicted), remedy
    assert all(priorities[each] < own for each in remedy.evicted), remedy
