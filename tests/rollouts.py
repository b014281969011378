"""Shortcuts to build clusters and changes for tests of rollouts."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kpreempt.admission import apply_cluster_defaults, fill_budget_statuses
from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.check.gate import GateRules, Suppressions
from kpreempt.analysis.check.report import CheckInput, check_rollout
from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.analysis.check.rollout.plan import LiveDocuments, ManifestDocument, Plan, plan_change
from kpreempt.analysis.check.rollout.records import ApplyOptions
from kpreempt.analysis.check.simulations import SimulationContext
from kpreempt.analysis.simulation.scheduling import AT_ONCE, Branch, Choose, Pace
from kpreempt.library.check import only_in_base
from kpreempt.model.cluster import ABSENT, ClusterSnapshot, Unread
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.verdict.check import Check
from kpreempt.verdict.simulation import SimulatedWorkload

Document = dict[str, Any]
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BEFORE = "2026-11-20T12:00:00Z"


def nodes(number: int, cpu: str = "2") -> list[Document]:
    """``n1``, ``n2`` and so on."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{index}", "labels": {"kubernetes.io/hostname": f"n{index}"}},
            "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"}},
        }
        for index in range(1, number + 1)
    ]


def priority_class(name: str, value: int, **more: Any) -> Document:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    } | more


# A ResourceQuota in another namespace: a dump that has it includes ResourceQuotas.
QUOTA: Document = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "pods", "namespace": "elsewhere"},
    "spec": {"hard": {"pods": "100"}},
}


def workload(kind: str, name: str, *, cpu: str = "1", image: str = "one", **more: Any) -> Document:
    """A manifest; ``pod`` goes to its pod's spec, everything else to its own."""
    pod = {"containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}}]}
    pod |= more.pop("pod", {})
    labels = {"app": name}
    spec: Document = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    if kind == "Job":
        pod["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": labels}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec | more,
    }


def running(manifest: Document, on: Sequence[str], priority: int = 0) -> list[Document]:
    """The workload of a manifest in a cluster, with a ready pod on each of the nodes."""
    document = json.loads(json.dumps(manifest))
    kind, name, spec = document["kind"], document["metadata"]["name"], document["spec"]
    document["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": BEFORE}
    found = [document]
    owner, labels = document, dict(spec["template"]["metadata"]["labels"])
    if kind == "Deployment":
        labels["pod-template-hash"] = "old"
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{name}-old",
                "namespace": "shop",
                "uid": f"uid-{name}-old",
                "creationTimestamp": BEFORE,
                "labels": labels,
                "ownerReferences": [_owner(document)],
            },
            "spec": {
                "replicas": spec.get("replicas", 1),
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec["template"]["spec"]},
            },
        }
        found.append(owner)
    if kind in ("StatefulSet", "DaemonSet"):
        labels["controller-revision-hash"] = "old"
    if kind == "StatefulSet":
        document["status"] = {"currentRevision": "old", "updateRevision": "old", "currentReplicas": len(on)}
    return [*found, *(_pod(owner, labels, index, node, priority) for index, node in enumerate(on))]


def _pod(owner: Document, labels: Document, index: int, node: str, priority: int) -> Document:
    template = owner["spec"]["template"]["spec"]
    end = str(index) if owner["kind"] == "StatefulSet" else "abcdefgh"[index]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{owner['metadata']['name']}-{end}",
            "namespace": "shop",
            "uid": f"uid-{owner['metadata']['name']}-{end}",
            "creationTimestamp": BEFORE,
            "labels": labels,
            "ownerReferences": [_owner(owner)],
        },
        "spec": {"nodeName": node, "priority": priority, "terminationGracePeriodSeconds": 30, **template},
        "status": {
            "phase": "Running",
            "startTime": BEFORE,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": BEFORE}],
        },
    }


def _owner(document: Document) -> Document:
    metadata = document["metadata"]
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def snapshot_of(cluster: Sequence[Document], absent: Sequence[str] = ()) -> ClusterSnapshot:
    """The cluster of these documents, prepared like the commands do, from a dump without ``absent`` kinds."""
    read = cluster_from_json([msgspec.Raw(json.dumps(each).encode()) for each in cluster], "cluster")
    snapshot, _ = fill_budget_statuses(apply_cluster_defaults(read))
    return msgspec.structs.replace(snapshot, unread={kind: Unread(ABSENT) for kind in absent})


def planned(
    cluster: Sequence[Document],
    change: Sequence[Document],
    deleted: Sequence[str] = (),
    job_seconds: int | None = None,
    applied_by: Applier | None = None,
    *,
    base: Sequence[Document] = (),
    prunes: bool = False,
    absent: Sequence[str] = (),
) -> Plan:
    """The plan of the change for the cluster of these documents."""
    documents, before = ([ManifestDocument(each, "change.yaml", 1) for each in given] for given in (change, base))
    options = ApplyOptions(namespace="shop", prunes=prunes, job_seconds=job_seconds, applied_by=applied_by)
    return plan_change(
        snapshot_of(cluster, absent),
        options.prepared(documents),
        LiveDocuments(cluster),
        decode_object,
        options,
        deleted=deleted,
        only_in_base=only_in_base(before, documents, "shop"),
    )


def checked(
    cluster: Sequence[Document],
    change: Sequence[Document],
    *,
    deleted: Sequence[str] = (),
    pruned_from: Sequence[Document] = (),
    absent: Sequence[str] = (),
    **more: Any,
) -> Check:
    """The result for the change, which deletes what only ``pruned_from`` has.

    ``more`` goes to the request, except what the plan and the scheduler take.
    """
    plan = planned(
        cluster,
        change,
        deleted,
        more.pop("job_seconds", None),
        more.pop("applied_by", None),
        base=pruned_from,
        prunes=bool(pruned_from),
        absent=absent,
    )
    scheduler = scheduler_for(more.pop("algorithm", ""), None, more.pop("gates", None))
    check_input = CheckInput(
        cluster=snapshot_of(cluster, absent),
        plan=plan,
        rules=more.pop("rules", GateRules()),
        suppressions=more.pop("excuses", Suppressions(today=NOW.date())),
        **more,
    )
    return check_rollout(check_input, decode_object, SimulationContext(scheduler, NOW, NOW, chances, paces)).check


def chances(seed: int) -> Choose:
    """Draw branches by their weights."""
    drawing = random.Random(seed)

    def choose(branches: Sequence[Branch]) -> Branch:
        return drawing.choices(branches, [branch.weight for branch in branches])[0]

    return choose


def paces(seed: int) -> Pace:
    """Everything at once for seed 0, and at random times for all others."""
    return Pace(random.Random(seed).random) if seed else AT_ONCE


def tale(check: Check) -> list[str]:
    """The steps in short form."""
    return [
        f"{step.at:g} {step.kind} {step.pod.removeprefix('shop/')}"
        + (f" {step.replicas}" if step.replicas is not None else "")
        + (f" {step.node}" if step.kind == "Bound" else "")
        for step in check.simulation.steps
    ]


def end_of(check: Check, name: str) -> SimulatedWorkload:
    """The outcome of a workload (``Deployment shop/api``)."""
    return next(each for each in check.simulation.workloads if each.workload == name)
