"""The Workloads that Kueue's integrations create for a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.kueue.objects import POD_GROUP
from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in
from kpreempt.model.kueue import ADMISSION_GATED_BY, ELASTIC, KUEUE_GROUP, QUEUE_LABEL
from kpreempt.verdict.unread import missing

PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
_MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
_TOPOLOGY = {
    "kueue.x-k8s.io/podset-required-topology": "required",
    "kueue.x-k8s.io/podset-preferred-topology": "preferred",
    "kueue.x-k8s.io/podset-slice-required-topology": "podSetSliceRequiredTopology",
    "kueue.x-k8s.io/podset-group-name": "podSetGroupName",
}
_SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
_SLICE_LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
_KEPT_FIELDS = (ADMISSION_GATED_BY, ELASTIC)
_GROUP_LABEL = "kueue.x-k8s.io/pod-group-name"
_TOTAL_COUNT = "kueue.x-k8s.io/pod-group-total-count"
_FAST_ADMISSION = "kueue.x-k8s.io/pod-group-fast-admission"
_ROLE_HASH = "kueue.x-k8s.io/role-hash"
_MAX_REPLICAS = 20
_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"


class CreatedWorkload(NamedTuple):
    """A Workload as plain data, with the kind, source and object that it is created for.

    ``owner`` is ``None`` for a pod group, which has several.
    """

    document: Document
    kind: str
    source: str
    owner: Document | None


def workload_documents(
    objects: Iterable[tuple[Document, str]], namespace: str, cluster: ClusterSnapshot
) -> list[CreatedWorkload]:
    """The Workloads for a manifest's objects.

    Raises ``InputError`` for an object that Kueue queues and that is not modeled.
    """
    found: list[CreatedWorkload] = []
    groups: dict[tuple[str, str], list[tuple[Document, str]]] = {}
    for document, source in objects:
        kind, metadata = str(document.get("kind")), mapping_in(document, "metadata")
        with_namespace = {**metadata, "namespace": metadata.get("namespace") or namespace}
        if kind == "Workload" and str(document.get("apiVersion", "")).startswith(f"{KUEUE_GROUP}/"):
            found.append(CreatedWorkload({**document, "metadata": with_namespace}, kind, source, document))
            continue
        if not mapping_in(metadata, "labels").get(QUEUE_LABEL):
            continue
        group = mapping_in(metadata, "labels").get(_GROUP_LABEL)
        if kind == "Pod" and group:
            groups.setdefault((with_namespace["namespace"], str(group)), []).append(
                ({**document, "metadata": with_namespace}, source)
            )
            continue
        for name, pod_sets in _workloads_for(document, kind, source):
            made = _workload(name, with_namespace, pod_sets, cluster, source)
            found.append(CreatedWorkload(made, kind, source, document))
    for (_, group), pods in groups.items():
        metadata, source = pods[0][0]["metadata"], pods[0][1]
        pod_sets = _pod_sets_of_group(group, [each for each, _ in pods], source)
        made = _workload(group, metadata, pod_sets, cluster, source)
        found.append(CreatedWorkload(made, POD_GROUP, source, None))
    return found


def _workloads_for(document: Document, kind: str, source: str) -> Iterator[tuple[str, list[Document]]]:
    """The names and pod sets of the Workloads that Kueue creates for an object."""
    metadata, spec = mapping_in(document, "metadata"), mapping_in(document, "spec")
    name = metadata.get("name", "")
    template = mapping_in(spec, "template")
    if kind == "Job":
        found = _pod_set("main", _parallel(spec), template)
        min_parallelism = mapping_in(metadata, "annotations").get(_MIN_PARALLELISM)
        if isinstance(min_parallelism, str) and _is_count(min_parallelism):
            found["minCount"] = int(min_parallelism)
        yield f"job-{name}", [found]
    elif kind == "Pod":
        yield f"pod-{name}", [_pod_set("main", 1, {"metadata": metadata, "spec": spec})]
    elif kind == "StatefulSet":
        if count := _number(spec, "replicas", 1):
            yield f"statefulset-{name}", [_pod_set("main", count, template)]
    elif kind == "Deployment":
        # Each pod is queued separately.
        count = _number(spec, "replicas", 1)
        if count > _MAX_REPLICAS:
            message = f"each of its {count} pods is a Workload; at most {_MAX_REPLICAS} are supported"
            raise InputError(message, source=source, path="spec.replicas")
        for number in range(count):
            yield f"pod-{name}-{number}", [_pod_set("main", 1, template)]
    elif kind == "JobSet":
        yield f"jobset-{name}", _replicated_jobs(spec, source)
    else:
        hint = "pass its Workload, or a Job, JobSet, Deployment, StatefulSet or Pod"
        raise InputError(f"Kueue's Workload for a {kind} is not modeled", source=source, hint=hint)


def _workload(
    name: str, metadata: Document, pod_sets: list[Document], cluster: ClusterSnapshot, source: str
) -> Document:
    labels, annotations = mapping_in(metadata, "labels"), mapping_in(metadata, "annotations")
    kept = {key: annotations[key] for key in _KEPT_FIELDS if isinstance(annotations.get(key), str)}
    priority = _priority(str(labels.get(PRIORITY_LABEL, "")), pod_sets, cluster, source)
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
    request: Document = {field: annotations[key] for key, field in _TOPOLOGY.items() if key in annotations}
    size = annotations.get(_SLICE_SIZE)
    if isinstance(size, str) and _is_count(size):
        request["podSetSliceSize"] = int(size)
    if _SLICE_LAYERS in annotations:
        request["podsetSliceRequiredTopologyConstraints"] = [{"topology": str(annotations[_SLICE_LAYERS])}]
    if annotations.get(_UNCONSTRAINED) == "true":
        request["unconstrained"] = True
    return {**found, "topologyRequest": request} if request else found


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
    """The pod sets of a pod group: pods with equal specs form one, named after the first.

    Kueue names them after a hash of the spec, and orders them by name.
    """
    annotations = mapping_in(pods[0], "metadata", "annotations")
    total = annotations.get(_TOTAL_COUNT)
    if not isinstance(total, str) or not _is_count(total):
        raise InputError(f"pod group {group}: annotation {_TOTAL_COUNT} is not a number", source=source)
    if annotations.get(_FAST_ADMISSION) == "true":
        template = {"metadata": pods[0]["metadata"], "spec": mapping_in(pods[0], "spec")}
        return [_pod_set(_role(pods[0]), int(total), template)]
    if int(total) != len(pods):
        message = (
            f"pod group {group}: only {len(pods)} of its {total} pods are present, and Kueue waits for all of them"
        )
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
    """The number of pods of a Job that run in parallel."""
    parallelism = _number(spec, "parallelism", 1)
    return min(parallelism, _number(spec, "completions", parallelism))


def _priority(name: str, pod_sets: list[Document], cluster: ClusterSnapshot, source: str) -> int:
    if name:
        classes = cluster.documents.get(f"WorkloadPriorityClass.{KUEUE_GROUP}", ())
        value = next((each.get("value") for each in classes if each.get("metadata", {}).get("name") == name), None)
        if not isinstance(value, int):
            raise InputError(f"WorkloadPriorityClass {name!r} does not exist in the cluster", source=source)
        return value
    specs = [mapping_in(each["template"], "spec") for each in pod_sets]
    class_name = next((each["priorityClassName"] for each in specs if each.get("priorityClassName")), None)
    if class_name in ("system-cluster-critical", "system-node-critical"):
        return 2_000_000_000 if class_name == "system-cluster-critical" else 2_000_001_000
    for each in cluster.priority_classes:
        if each.metadata.name == class_name if class_name else each.global_default:
            return each.value
    if class_name:
        raise InputError(missing(cluster, "PriorityClass", f"PriorityClass {class_name!r}"), source=source)
    return 0
