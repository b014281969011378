"""The Workload that Kueue's integrations make of a manifest: of a Workload itself, a Job, or a Pod.

Follows ``pkg/controller/jobs/job`` and ``pod`` of Kueue v0.19.2.
"""

from __future__ import annotations

from typing import Any

from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import KUEUE_GROUP

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
_MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
_TOPOLOGY = {
    "kueue.x-k8s.io/podset-required-topology": "required",
    "kueue.x-k8s.io/podset-preferred-topology": "preferred",
}
_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"

Document = dict[str, Any]


def workload_document(document: Document, namespace: str, cluster: ClusterSnapshot, *, source: str) -> Document | None:
    """The Workload of a manifest's object as plain data; ``None`` for an object that is not queued.

    Raises ``InputError`` for one that Kueue queues and that is not modelled.
    """
    kind, metadata = document.get("kind"), document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    named = {**metadata, "namespace": metadata.get("namespace") or namespace}
    if kind == "Workload" and str(document.get("apiVersion", "")).startswith(f"{KUEUE_GROUP}/"):
        return {**document, "metadata": named}
    queue = _labels(metadata).get(QUEUE_LABEL)
    if not queue:
        return None
    spec = document.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    if kind == "Job":
        pod_set = _job(spec, metadata)
    elif kind == "Pod":
        pod_set = {"name": "main", "count": 1, "template": {"metadata": metadata, "spec": spec}}
    else:
        raise InputError(
            f"what Kueue makes of a {kind} is not modelled", source=source, hint="its Workload, a Job or a Pod"
        )
    template = pod_set["template"]
    if asked := _topology(template):
        pod_set["topologyRequest"] = asked
    priority = _priority(_labels(metadata).get(_PRIORITY_LABEL, ""), template, cluster, source)
    return {
        "apiVersion": f"{KUEUE_GROUP}/v1beta2",
        "kind": "Workload",
        "metadata": {"name": f"{str(kind).lower()}-{metadata.get('name', '')}", "namespace": named["namespace"]},
        "spec": {"queueName": queue, "priority": priority, "podSets": [pod_set]},
    }


def _labels(metadata: Document) -> Document:
    labels = metadata.get("labels")
    return labels if isinstance(labels, dict) else {}


def _job(spec: Document, metadata: Document) -> Document:
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    count = parallelism if isinstance(parallelism, int) else 1
    if isinstance(completions, int):
        count = min(count, completions)
    template = spec.get("template")
    found: Document = {"name": "main", "count": count, "template": template if isinstance(template, dict) else {}}
    annotations = metadata.get("annotations")
    least = annotations.get(_MIN_PARALLELISM) if isinstance(annotations, dict) else None
    if isinstance(least, str) and least.isascii() and least.isdecimal() and len(least) < 10:
        found["minCount"] = int(least)
    return found


def _topology(template: Document) -> Document:
    metadata = template.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    annotations = annotations if isinstance(annotations, dict) else {}
    found = {field: annotations[key] for key, field in _TOPOLOGY.items() if key in annotations}
    return {**found, "unconstrained": True} if annotations.get(_UNCONSTRAINED) == "true" else found


def _priority(name: str, template: Document, cluster: ClusterSnapshot, source: str) -> int:
    if name:
        classes = cluster.documents.get(f"WorkloadPriorityClass.{KUEUE_GROUP}", ())
        value = next((each.get("value") for each in classes if each.get("metadata", {}).get("name") == name), None)
        if not isinstance(value, int):
            raise InputError(f"there is no WorkloadPriorityClass {name!r} in the cluster", source=source)
        return value
    spec = template.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    asked = spec.get("priorityClassName")
    if asked in ("system-cluster-critical", "system-node-critical"):
        return 2_000_000_000 if asked == "system-cluster-critical" else 2_000_001_000
    for each in cluster.priority_classes:
        if each.metadata.name == asked if asked else each.global_default:
            return each.value
    if asked:
        raise InputError(f"there is no PriorityClass {asked!r} in the cluster", source=source)
    return 0
