"""The Workloads that Kueue's integrations make of a manifest.

Follows ``pkg/controller/jobs`` of Kueue v0.19.2: ``job``, ``jobset``, ``deployment``, ``statefulset`` and ``pod``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpreempt.analysis.document_reader import Document, mapping_in
from kpreempt.analysis.kueue.objects import POD_GROUP
from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ADMISSION_GATED_BY, ELASTIC, KUEUE_GROUP, QUEUE_LABEL
from kpreempt.verdict.unread import missing

_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
_MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
_TOPOLOGY = {
    "kueue.x-k8s.io/podset-required-topology": "required",
    "kueue.x-k8s.io/podset-preferred-topology": "preferred",
    "kueue.x-k8s.io/podset-slice-required-topology": "podSetSliceRequiredTopology",
    "kueue.x-k8s.io/podset-group-name": "podSetGroupName",
}
_SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
_SLICE_LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
_KEPT = (ADMISSION_GATED_BY, ELASTIC)
_GROUP_LABEL = "kueue.x-k8s.io/pod-group-name"
_TOTAL_COUNT = "kueue.x-k8s.io/pod-group-total-count"
_FAST_ADMISSION = "kueue.x-k8s.io/pod-group-fast-admission"
_ROLE_HASH = "kueue.x-k8s.io/role-hash"
_MOST_REPLICAS = 20
_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"


def workload_documents(
    objects: Iterable[tuple[Document, str]], namespace: str, cluster: ClusterSnapshot
) -> list[tuple[Document, str, str]]:
    """The Workloads of a manifest's objects as plain data, each with its kind and source.

    Raises ``InputError`` for an object that Kueue queues and that is not modelled.
    """
    found: list[tuple[Document, str, str]] = []
    groups: dict[tuple[str, str], list[tuple[Document, str]]] = {}
    for document, source in objects:
        kind, metadata = str(document.get("kind")), mapping_in(document, "metadata")
        named = {**metadata, "namespace": metadata.get("namespace") or namespace}
        if kind == "Workload" and str(document.get("apiVersion", "")).startswith(f"{KUEUE_GROUP}/"):
            found.append(({**document, "metadata": named}, kind, source))
            continue
        if not mapping_in(metadata, "labels").get(QUEUE_LABEL):
            continue
        group = mapping_in(metadata, "labels").get(_GROUP_LABEL)
        if kind == "Pod" and group:
            groups.setdefault((named["namespace"], str(group)), []).append(({**document, "metadata": named}, source))
            continue
        for name, pod_sets in _made_of(document, kind, source):
            found.append((_workload(name, named, pod_sets, cluster, source), kind, source))
    for (_, group), pods in groups.items():
        metadata, source = pods[0][0]["metadata"], pods[0][1]
        pod_sets = _pod_sets_of_group(group, [each for each, _ in pods], source)
        found.append((_workload(group, metadata, pod_sets, cluster, source), POD_GROUP, source))
    return found


def _made_of(document: Document, kind: str, source: str) -> Iterator[tuple[str, list[Document]]]:
    """The names and pod sets of what Kueue makes of an object."""
    metadata, spec = mapping_in(document, "metadata"), mapping_in(document, "spec")
    name = metadata.get("name", "")
    template = mapping_in(spec, "template")
    if kind == "Job":
        found = _pod_set("main", _parallel(spec), template)
        least = mapping_in(metadata, "annotations").get(_MIN_PARALLELISM)
        if isinstance(least, str) and _is_count(least):
            found["minCount"] = int(least)
        yield f"job-{name}", [found]
    elif kind == "Pod":
        yield f"pod-{name}", [_pod_set("main", 1, {"metadata": metadata, "spec": spec})]
    elif kind == "StatefulSet":
        if count := _number(spec, "replicas", 1):
            yield f"statefulset-{name}", [_pod_set("main", count, template)]
    elif kind == "Deployment":
        # Each pod is queued by itself.
        count = _number(spec, "replicas", 1)
        if count > _MOST_REPLICAS:
            message = f"each of its {count} pods is a Workload; {_MOST_REPLICAS} at most are put to Kueue"
            raise InputError(message, source=source, path="spec.replicas")
        for number in range(count):
            yield f"pod-{name}-{number}", [_pod_set("main", 1, template)]
    elif kind == "JobSet":
        yield f"jobset-{name}", _replicated_jobs(spec, source)
    else:
        hint = "its Workload, a Job, JobSet, Deployment, StatefulSet or Pod"
        raise InputError(f"what Kueue makes of a {kind} is not modelled", source=source, hint=hint)


def _workload(
    name: str, metadata: Document, pod_sets: list[Document], cluster: ClusterSnapshot, source: str
) -> Document:
    labels, annotations = mapping_in(metadata, "labels"), mapping_in(metadata, "annotations")
    kept = {key: annotations[key] for key in _KEPT if isinstance(annotations.get(key), str)}
    priority = _priority(str(labels.get(_PRIORITY_LABEL, "")), pod_sets, cluster, source)
    return {
        "apiVersion": f"{KUEUE_GROUP}/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {key: each for key, each in labels.items() if isinstance(each, str)},
            "annotations": kept,
        },
        "spec": {"queueName": labels[QUEUE_LABEL], "priority": priority, "podSets": pod_sets},
    }


def _pod_set(name: str, count: int, template: Document) -> Document:
    found: Document = {"name": name, "count": count, "template": template}
    annotations = mapping_in(template, "metadata", "annotations")
    asked: Document = {field: annotations[key] for key, field in _TOPOLOGY.items() if key in annotations}
    size = annotations.get(_SLICE_SIZE)
    if isinstance(size, str) and _is_count(size):
        asked["podSetSliceSize"] = int(size)
    if _SLICE_LAYERS in annotations:
        asked["podsetSliceRequiredTopologyConstraints"] = [{"topology": str(annotations[_SLICE_LAYERS])}]
    if annotations.get(_UNCONSTRAINED) == "true":
        asked["unconstrained"] = True
    return {**found, "topologyRequest": asked} if asked else found


def _replicated_jobs(spec: Document, source: str) -> list[Document]:
    jobs = spec.get("replicatedJobs")
    if not isinstance(jobs, list) or not all(isinstance(each, dict) for each in jobs):
        raise InputError("expected a list of objects", source=source, path="spec.replicatedJobs")
    found = []
    for each in jobs:
        job = mapping_in(each, "template", "spec")
        count = _number(each, "replicas", 1) * _parallel(job)
        found.append(_pod_set(str(each.get("name", "")), count, mapping_in(job, "template")))
    return found


def _pod_sets_of_group(group: str, pods: list[Document], source: str) -> list[Document]:
    """The pod sets of a pod group: pods whose specs are equal are one, by the name of the first.

    Kueue names them after a hash of the spec, and has them in that order.
    """
    annotations = mapping_in(pods[0], "metadata", "annotations")
    total = annotations.get(_TOTAL_COUNT)
    if not isinstance(total, str) or not _is_count(total):
        raise InputError(f"pod group {group}: the annotation {_TOTAL_COUNT} is no number", source=source)
    if annotations.get(_FAST_ADMISSION) == "true":
        template = {"metadata": pods[0]["metadata"], "spec": mapping_in(pods[0], "spec")}
        return [_pod_set(_role(pods[0]), int(total), template)]
    if int(total) != len(pods):
        message = f"pod group {group}: it has {len(pods)} of its {total} pods, and Kueue waits for all of them"
        raise InputError(message, source=source)
    found: list[Document] = []
    for pod in pods:
        spec = mapping_in(pod, "spec")
        same = next((each for each in found if each["template"]["spec"] == spec), None)
        if same is None:
            found.append(_pod_set(_role(pod), 1, {"metadata": pod["metadata"], "spec": spec}))
        else:
            same["count"] += 1
    return sorted(found, key=lambda each: str(each["name"]))


def _role(pod: Document) -> str:
    metadata = pod["metadata"]
    return str(mapping_in(metadata, "annotations").get(_ROLE_HASH) or metadata.get("name", ""))


def _number(document: Document, key: str, default: int) -> int:
    found = document.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**31 else default


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _parallel(spec: Document) -> int:
    """How many pods of a Job run at a time."""
    parallelism = _number(spec, "parallelism", 1)
    return min(parallelism, _number(spec, "completions", parallelism))


def _priority(name: str, pod_sets: list[Document], cluster: ClusterSnapshot, source: str) -> int:
    if name:
        classes = cluster.documents.get(f"WorkloadPriorityClass.{KUEUE_GROUP}", ())
        value = next((each.get("value") for each in classes if each.get("metadata", {}).get("name") == name), None)
        if not isinstance(value, int):
            raise InputError(f"there is no WorkloadPriorityClass {name!r} in the cluster", source=source)
        return value
    specs = [mapping_in(each["template"], "spec") for each in pod_sets]
    asked = next((each["priorityClassName"] for each in specs if each.get("priorityClassName")), None)
    if asked in ("system-cluster-critical", "system-node-critical"):
        return 2_000_000_000 if asked == "system-cluster-critical" else 2_000_001_000
    for each in cluster.priority_classes:
        if each.metadata.name == asked if asked else each.global_default:
            return each.value
    if asked:
        raise InputError(missing(cluster, "PriorityClass", f"PriorityClass {asked!r} in the cluster"), source=source)
    return 0
