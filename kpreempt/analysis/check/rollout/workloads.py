"""Plans what a manifest does to a workload or a plain pod: create, roll out, scale, or leave it unchanged.

Fields of a pod template that the cluster's API server drops because their feature gate is off count as unchanged. They
follow ``dropDisabledFields`` in ``k8s.io/kubernetes`` v1.36.3 ``pkg/api/pod/util.go``, for the fields that
``kpreempt/admission/admit.py`` knows.

A workload that the API server would reject is an error; the checks cover what controllers read and common mistakes. A
rejected apply changes nothing, so simulating it would mislead. Follows ``pkg/apis/apps/validation/validation.go`` of
the same version.
"""

from __future__ import annotations

import re
from copy import deepcopy
from itertools import islice
from typing import Any

import msgspec

from kpreempt.admission import apply_api_defaults
from kpreempt.admission.defaults import template_with_defaults, workload_with_defaults
from kpreempt.analysis.check.rollout.apply import (
    Differences,
    applied,
    find_differences,
    is_complete,
    last_applied,
    path_differences,
)
from kpreempt.analysis.check.rollout.cluster_documents import ClusterObjects, LiveDocuments, record_document
from kpreempt.analysis.check.rollout.hooks import Applier, is_recreated
from kpreempt.analysis.check.rollout.kept_documents import alike
from kpreempt.analysis.check.rollout.kinds import SIZE_FIELDS
from kpreempt.analysis.check.rollout.records import ManifestDocument, PlannedWorkload, is_nested_too_deeply, position
from kpreempt.analysis.document_reader import NEW, Document, DocumentReader, describe, mapping_in, mappings_in
from kpreempt.analysis.pod_inputs import Decode
from kpreempt.analysis.workload_pods import PodTemplate, joined, pods_of
from kpreempt.controllers.stateful_set import MAX_ORDINAL
from kpreempt.model.meta import replace_in
from kpreempt.model.pod import Pod, annotations_of, with_annotations
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change, ChangeKind

# Mutable fields of a spec; for other kinds, everything except the selector.
_CHANGEABLE = {
    "StatefulSet": (
        *("replicas", "ordinals", "template", "updateStrategy", "persistentVolumeClaimRetentionPolicy"),
        *("minReadySeconds", "revisionHistoryLimit"),
    ),
    "Job": (
        *("parallelism", "suspend", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"),
        "maxFailedIndexes",
    ),
}
_CRON_JOB = "CronJob"
# A snapshot has the size of these kinds, even if it lacks the rest of the object.
_SIZED_RECORDS = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
_KEYS = frozenset({"matchLabelKeys", "mismatchLabelKeys"})
_HOLDERS = ("affinity", "topologySpreadConstraints")
_FIELDS_SHOWN = 5
_CHANGEABLE_OF_PODS = frozenset(
    {"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"}
)


class WorkloadPlan(msgspec.Struct, frozen=True):
    """What happens to a workload; ``workload`` is ``None`` if nothing about its pods changes.

    ``new_pods`` is the maximum number of pods that its controller creates.
    """

    change: Change
    workload: PlannedWorkload | None = None
    new_pods: int = 0
    assumptions: list[Assumption] = []


def plan_workload(
    given: ManifestDocument, objects: ClusterObjects, live: LiveDocuments, decode: Decode, applier: Applier
) -> WorkloadPlan:
    """Plan what a manifest of a workload does.

    Raises ``InputError`` if the API server or a controller would reject it.
    """
    document = given.document
    kind, metadata = document["kind"], document["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    _check(given, decode)
    before = live.find(kind, namespace, name)
    record = objects.find(kind, namespace, name)
    if before is None and record is not None:
        before = record_document(kind, record)
    if before is not None and is_nested_too_deeply(before):
        before = {key: value for key, value in before.items() if key in ("apiVersion", "kind", "metadata")}
    if before is not None:
        document = without_dropped(alike(document, before), before)
        given = msgspec.structs.replace(given, document=document)
    if kind == _CRON_JOB:
        return _plan_cron_job(given, before)
    if before is None:
        return _created(given, workload_with_defaults(document), objects)
    return _changed(given, before, objects, live, applier)


def _check(given: ManifestDocument, decode: Decode) -> None:
    """Raise ``InputError`` if the workload or its pods are invalid."""
    document = given.document
    reader = DocumentReader(describe(document), given.source, given.line)
    spec = reader.mapping(document, "spec")
    check_workload(document["kind"], spec, reader)
    if document["kind"] == _CRON_JOB:
        job = reader.mapping(reader.mapping(spec, "jobTemplate", "spec"), "spec", "spec.jobTemplate")
        check_workload("Job", job, reader, "spec.jobTemplate.spec")
    for template in pods_of(document, source=given.source, line=given.line):
        decode("Pod", template.document, source=given.source, line=given.line)
        for claim in template.claims:
            decode("PersistentVolumeClaim", claim, source=given.source, line=given.line)
    reject_workload(document, reader)


def _created(given: ManifestDocument, after: Document, objects: ClusterObjects) -> WorkloadPlan:
    document = given.document
    change = Change(
        object=describe(document),
        kind=ChangeKind.CREATED,
        strategy=_strategy(after),
        replicas=_size(after),
        **position(given),
    )
    metadata = document["metadata"]
    planned = PlannedWorkload(
        change=change, kind=document["kind"], namespace=metadata["namespace"], name=metadata["name"], after=after
    )
    return WorkloadPlan(
        change, planned, len(objects.cluster.nodes) if document["kind"] == "DaemonSet" else _size(after) or 0
    )


def _changed(
    given: ManifestDocument, before: Document, objects: ClusterObjects, live: LiveDocuments, applier: Applier
) -> WorkloadPlan:
    """Plan what a manifest does to an existing workload."""
    document = given.document
    kind, subject, metadata = document["kind"], describe(document), document["metadata"]
    differences = find_differences(document, before)
    # The immutable fields that differ.
    changeable = _CHANGEABLE.get(kind)
    if changeable is None:
        immutable = [path for path in differences.rest if path.startswith("spec.selector")]
    else:
        template = differences.template if "template" not in changeable else []
        # ``spec.updateStrategy.type`` is part of ``updateStrategy``.
        rest = [
            path
            for path in differences.rest
            if path.startswith("spec.") and path.split(".")[1].partition("[")[0] not in changeable
        ]
        immutable = [*template, *rest]
    recreated_by_hook = kind == "Job" and is_recreated(document, applier)
    is_replaced = recreated_by_hook or (kind == "Job" and bool(immutable))
    after = workload_with_defaults(document) if is_replaced else _after(document, before)
    change = Change(
        object=subject,
        kind=ChangeKind.ROLLED if is_replaced else _kind_of_change(kind, differences, before, after),
        strategy=_strategy(after),
        replicas=_size(after),
        replicas_before=_size(before),
        fields=differences.fields,
        **position(given),
    )
    if change.kind is ChangeKind.UNCHANGED:
        return WorkloadPlan(change)
    message = "the snapshot lacks its current template, so it is assumed to change"
    assumptions = [] if is_complete(before) else [Assumption(subject, "spec.template", message)]
    if immutable and not recreated_by_hook:
        consequence = "replaced together with its pods" if is_replaced else "changed anyway"
        message = f"field is immutable, so the API server rejects the apply; assumed to be {consequence}"
        assumptions.append(Assumption(subject, immutable[0], message))
    workload = PlannedWorkload(
        change=change,
        kind=kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        before=before,
        after=after,
        is_same_template=not differences.template and not is_replaced,
        replica_sets=replica_sets_of(metadata["namespace"], metadata["name"], objects, live)
        if kind == "Deployment"
        else [],
    )
    return WorkloadPlan(change, workload, _new_pods(change, kind, objects), assumptions)


def _kind_of_change(kind: str, differences: Differences, before: Document, after: Document) -> ChangeKind:
    # Pods of the old template may remain until something else deletes them.
    keeps_old_pods = (
        kind in ("ReplicaSet", "ReplicationController")
        or _strategy(after) == "OnDelete"
        or (kind == "Deployment" and bool(mapping_in(after, "spec").get("paused")))
    )
    if differences.template and not keeps_old_pods:
        return ChangeKind.ROLLED
    if _size(before) != _size(after):
        return ChangeKind.SCALED
    return ChangeKind.UPDATED if differences.fields else ChangeKind.UNCHANGED


def _after(document: Document, before: Document) -> Document:
    """The object after the change."""
    last = last_applied(before)
    after = applied({key: each for key, each in document.items() if key != "status"}, before, last or {})
    if last is None:
        # Without a last applied manifest, the whole template is assumed to come from the manifest.
        template = dict(document["spec"]["template"])
        annotations = mapping_in(before, "spec", "template", "metadata", "annotations")
        if annotations:
            metadata = mapping_in(template, "metadata")
            template["metadata"] = {**metadata, "annotations": {**annotations, **mapping_in(metadata, "annotations")}}
        after["spec"]["template"] = template
    return workload_with_defaults(after)


def replica_sets_of(namespace: str, name: str, objects: ClusterObjects, live: LiveDocuments) -> list[Document]:
    """The ReplicaSets of a Deployment, as complete documents if available."""
    complete = live.replica_sets_of(namespace, name)
    return complete or [record_document("ReplicaSet", each) for each in objects.owned("ReplicaSet", namespace, name)]


def _plan_cron_job(given: ManifestDocument, before: Document | None) -> WorkloadPlan:
    """Plan one run of a new or changed CronJob, as if it was due at once."""
    document = given.document
    after = document if before is None else applied(document, before, last_applied(before) or {})
    after = workload_with_defaults(after)
    spec = after["spec"]
    job = mapping_in(spec, "jobTemplate")
    is_suspended = bool(spec.get("suspend"))
    differences = find_differences(document, before) if before is not None else None
    kind = ChangeKind.CREATED if differences is None else ChangeKind.UPDATED
    if differences is not None and not differences.fields:
        kind = ChangeKind.UNCHANGED
    run = _run_of(after, job)
    change = Change(
        object=describe(document),
        kind=kind,
        replicas=0 if is_suspended else _size(run),
        replicas_before=_size_of_run(before) if before is not None else None,
        fields=differences.fields if differences is not None else [],
        **position(given),
    )
    if kind is ChangeKind.UNCHANGED or is_suspended:
        return WorkloadPlan(change)
    metadata = run["metadata"]
    planned = PlannedWorkload(
        change=change, kind="Job", namespace=metadata["namespace"], name=metadata["name"], after=run
    )
    return WorkloadPlan(change, planned, _size(run) or 0)


def _size_of_run(cron_job: Document) -> int | None:
    """The number of pods of each Job of a CronJob; 0 if it is suspended."""
    spec = mapping_in(cron_job, "spec")
    job = {"kind": "Job", "spec": mapping_in(spec, "jobTemplate").get("spec")}
    return 0 if spec.get("suspend") is True else _size(job)


def _run_of(cron_job: Document, template: Document) -> Document:
    """The Job that a CronJob creates."""
    metadata = cron_job["metadata"]
    owner = {
        "apiVersion": "batch/v1",
        "kind": _CRON_JOB,
        "name": metadata["name"],
        "uid": metadata.get("uid") or "",
        "controller": True,
    }
    metadata_of_job = {
        key: each for key, each in mapping_in(template, "metadata").items() if key in ("labels", "annotations")
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **metadata_of_job,
            "name": joined(metadata["name"], NEW),
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "spec": mapping_in(template, "spec"),
    }
    return workload_with_defaults(job)


def _new_pods(change: Change, kind: str, objects: ClusterObjects) -> int:
    if kind == "DaemonSet":
        return len(objects.cluster.nodes) if change.kind is ChangeKind.ROLLED else 0
    size, size_before = change.replicas or 0, change.replicas_before or 0
    return size if change.kind is ChangeKind.ROLLED else max(size - size_before, 0)


def _size(document: Document) -> int | None:
    """The desired number of pods of a workload; ``None`` if it does not specify one."""
    field = SIZE_FIELDS.get(str(document.get("kind")))
    if field is None:
        return None
    spec = mapping_in(document, "spec")
    size = 0 if spec.get("suspend") is True else spec.get(field)
    return size if isinstance(size, int) and not isinstance(size, bool) else 1


def size_in_cluster(kind: str, namespace: str, name: str, objects: ClusterObjects, live: LiveDocuments) -> int | None:
    """The desired number of pods of a workload in the cluster; ``None`` if it does not exist or does not specify it."""
    document = live.find(kind, namespace, name)
    if document is None and kind in _SIZED_RECORDS and (record := objects.find(kind, namespace, name)) is not None:
        document = record_document(kind, record)
    return _size(document) if document is not None else None


def _strategy(document: Document) -> str:
    field = STRATEGY_FIELDS.get(str(document.get("kind")))
    kind: Any = mapping_in(document, "spec", field).get("type") if field is not None else None
    return kind if isinstance(kind, str) else ""


def plan_deletion(
    kind: str, namespace: str, name: str, before: Document, objects: ClusterObjects, live: LiveDocuments
) -> WorkloadPlan:
    """Plan the deletion of a workload; ``before`` is all that is known of it."""
    change = Change(
        object=f"{kind} {namespace}/{name}",
        kind=ChangeKind.DELETED,
        strategy=_strategy(before),
        replicas_before=_size(before) if is_complete(before) or kind in _SIZED_RECORDS else None,
    )
    if kind == _CRON_JOB:
        return WorkloadPlan(msgspec.structs.replace(change, replicas_before=_size_of_run(before)))
    replica_sets = replica_sets_of(namespace, name, objects, live) if kind == "Deployment" else []
    planned = PlannedWorkload(
        change=change, kind=kind, namespace=namespace, name=name, before=before, replica_sets=replica_sets
    )
    return WorkloadPlan(change, planned)


def without_dropped(document: Document, live: Document) -> Document:
    """The manifest without fields that were applied before and are missing in ``live``."""
    last = last_applied(live)
    if last is None:
        return document
    manifest_spec, last_spec, live_spec = _pod_spec(document), _pod_spec(last), _pod_spec(live)
    spec = dict(manifest_spec)
    if (
        "resources" in spec
        and spec["resources"] == last_spec.get("resources")
        and live_spec
        and "resources" not in live_spec
    ):
        del spec["resources"]
    for holder in _HOLDERS:
        given = spec.get(holder)
        without = _without_keys(given)
        is_as_before = given == last_spec.get(holder) and given != without
        if is_as_before and holder in live_spec and live_spec[holder] == _without_keys(live_spec[holder]):
            spec[holder] = without
    if spec == manifest_spec:
        return document
    template = {**mapping_in(document, "spec", "template"), "spec": spec}
    return {**document, "spec": {**document["spec"], "template": template}}


def _pod_spec(document: Document) -> Document:
    return mapping_in(document, "spec", "template", "spec")


def _without_keys(value: Any) -> Any:
    """Remove the keys from terms and constraints; selectors are left alone, since their labels can have any name."""
    if isinstance(value, list):
        return [_without_keys(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: each if key.endswith("Selector") else _without_keys(each)
        for key, each in value.items()
        if key not in _KEYS
    }


class PodPlan(msgspec.Struct, frozen=True):
    """What happens to a plain pod: create ``template``, delete ``deleted``, or keep it as ``relabeled``."""

    change: Change
    template: PodTemplate | None = None
    deleted: str = ""
    relabeled: Pod | None = None
    assumptions: list[Assumption] = []


def plan_pod(given: ManifestDocument, objects: ClusterObjects, live: LiveDocuments, decode: Decode) -> PodPlan:
    """Plan what a manifest of a pod does. Raises ``InputError`` if the API server would reject it."""
    document, metadata = given.document, given.document["metadata"]
    (template,) = pods_of(document, source=given.source, line=given.line)
    new_pod: Any = decode("Pod", template.document, source=given.source, line=given.line)
    subject = describe(document)
    record: Pod | None = objects.find("Pod", metadata["namespace"], metadata["name"])
    if record is None:
        return PodPlan(Change(object=subject, kind=ChangeKind.CREATED, **position(given)), template)
    key = f"{metadata['namespace']}/{metadata['name']}"
    before = live.find("Pod", metadata["namespace"], metadata["name"])
    if before is None or not isinstance(before.get("spec"), dict) or is_nested_too_deeply(before):
        message = "the snapshot lacks its current spec, so the pod is assumed to be replaced"
        change = Change(object=subject, kind=ChangeKind.ROLLED, fields=["spec"], **position(given))
        return PodPlan(change, template, key, None, [Assumption(subject, "spec", message)])
    document = alike(document, before)
    fields = _differences(document, before, new_pod)
    immutable = [path for path in fields if path.startswith("spec.") and not _can_change(path)]
    source = position(given)
    if immutable:
        message = "field is immutable, so the API server rejects the apply; the pod is assumed to be replaced"
        change = Change(object=subject, kind=ChangeKind.ROLLED, fields=fields[:_FIELDS_SHOWN], **source)
        return PodPlan(change, template, record.key, None, [Assumption(subject, immutable[0], message)])
    if not fields:
        return PodPlan(Change(object=subject, kind=ChangeKind.UNCHANGED, **source))
    manifest_labels = mapping_in(document["metadata"], "labels")
    applied = mapping_in(last_applied(before) or {}, "metadata", "labels")
    other_labels = {key: value for key, value in record.metadata.labels.items() if key not in applied}
    labels = {**other_labels, **manifest_labels}
    relabeled = replace_in(record, "metadata", labels=labels)
    if annotations := annotations_of(new_pod):
        relabeled = with_annotations(relabeled, {**annotations_of(record), **annotations})
    change = Change(object=subject, kind=ChangeKind.UPDATED, fields=fields[:_FIELDS_SHOWN], **source)
    return PodPlan(change, relabeled=relabeled)


def _differences(document: Document, before: Document, pod: Pod) -> list[str]:
    """The paths that differ. Fields that only the cluster has were set by admission, and remain."""
    manifest = _with_tolerations(document, before)
    full, live = template_with_defaults(manifest, is_pod=True), template_with_defaults(before, is_pod=True)
    # The record has the pod-level resources that the API server computes.
    if (resources := apply_api_defaults(pod).spec.resources) is not None:
        amounts = msgspec.to_builtins(resources, enc_hook=str)
        full = {**full, "spec": {**full["spec"], "resources": {**mapping_in(full["spec"], "resources"), **amounts}}}
    last = last_applied(before) or {}
    found = path_differences(manifest["spec"], full["spec"], live["spec"], mapping_in(last, "spec"), "spec", "spec")
    manifest_metadata = {key: each for key, each in document["metadata"].items() if key in ("labels", "annotations")}
    live_metadata = {
        key: each for key, each in mapping_in(before, "metadata").items() if key in ("labels", "annotations")
    }
    last_metadata = {
        key: each for key, each in mapping_in(last, "metadata").items() if key in ("labels", "annotations")
    }
    of_metadata = path_differences(
        manifest_metadata, manifest_metadata, live_metadata, last_metadata, "metadata", "metadata"
    )
    return list(islice(found, 50)) + list(islice(of_metadata, 50))


def _with_tolerations(document: Document, before: Document) -> Document:
    """The manifest with the tolerations that admission added to the pod."""
    result = deepcopy(document)
    spec = result.setdefault("spec", {})
    tolerations = spec.get("tolerations")
    if isinstance(tolerations, list) and tolerations:
        live_tolerations = list(mappings_in(mapping_in(before, "spec"), "tolerations"))
        known = {repr(sorted(each.items())) for each in live_tolerations}
        if all(isinstance(each, dict) and repr(sorted(each.items())) in known for each in tolerations):
            spec["tolerations"] = live_tolerations
    return result


def _can_change(path: str) -> bool:
    """Whether the API server allows a change of a pod's field: images, and a few others."""
    field = path.split(".")[1]
    return field in _CHANGEABLE_OF_PODS or (
        path.endswith("].image") and field.startswith(("containers[", "initContainers["))
    )


# The field with the update strategy of a kind, and the allowed types.
STRATEGY_FIELDS = {"Deployment": "strategy", "StatefulSet": "updateStrategy", "DaemonSet": "updateStrategy"}
_STRATEGY_TYPES = {
    "Deployment": ("RollingUpdate", "Recreate"),
    "StatefulSet": ("RollingUpdate", "OnDelete"),
    "DaemonSet": ("RollingUpdate", "OnDelete"),
}
_PERCENTAGE = re.compile(r"[0-9]{1,9}%")
_INT32 = 2**31 - 1
_COUNTS = (
    *("minReadySeconds", "replicas", "parallelism", "completions", "backoffLimit", "backoffLimitPerIndex"),
    *("maxFailedIndexes", "activeDeadlineSeconds", "progressDeadlineSeconds", "revisionHistoryLimit"),
)

_WITH_SELECTOR = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def check_workload(kind: str, spec: Document, reader: DocumentReader, path: str = "spec") -> None:
    """Raise ``InputError`` if controllers could not read the spec of a workload of this kind.

    ``path`` is the path of the spec within the object of ``reader``.
    """
    for key in _COUNTS:
        count = reader.int32(spec, key, path)
        if count is not None and count < 0:
            raise reader.error("expected a non-negative integer", f"{path}.{key}")
    for key in ("paused", "suspend"):
        if not isinstance(spec.get(key), (bool, type(None))):
            raise reader.error("expected true or false", f"{path}.{key}")
    if kind in STRATEGY_FIELDS:
        _check_strategy(kind, spec, reader, path)
    if kind == "StatefulSet":
        _check_one_of(spec, "podManagementPolicy", ("OrderedReady", "Parallel"), reader, path)
        start = reader.int32(reader.mapping(spec, "ordinals", path), "start", f"{path}.ordinals") or 0
        if start < 0:
            raise reader.error("expected a non-negative integer", f"{path}.ordinals.start")
        replicas = spec.get("replicas")
        if start + (1 if replicas is None else replicas) - 1 > MAX_ORDINAL:
            # The controller ignores pods with a higher ordinal, so it would never finish.
            raise reader.error(f"results in an ordinal above {MAX_ORDINAL}", f"{path}.ordinals.start")
    if kind == "Job":
        _check_one_of(spec, "completionMode", ("NonIndexed", "Indexed"), reader, path)
        _check_one_of(spec, "podReplacementPolicy", ("TerminatingOrFailed", "Failed"), reader, path)


def _check_strategy(kind: str, spec: Document, reader: DocumentReader, path: str) -> None:
    field = STRATEGY_FIELDS[kind]
    strategy = reader.mapping(spec, field, path)
    path = f"{path}.{field}"
    _check_one_of(strategy, "type", _STRATEGY_TYPES[kind], reader, path)
    rolling = reader.mapping(strategy, "rollingUpdate", path)
    path = f"{path}.rollingUpdate"
    for key in ("maxUnavailable", "maxSurge"):
        value = rolling.get(key)
        is_percentage = isinstance(value, str) and _PERCENTAGE.fullmatch(value) is not None
        is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _INT32
        if value is not None and not (is_percentage or is_count):
            raise reader.error("expected a number of pods or a percentage", f"{path}.{key}")
        if key == "maxUnavailable" and isinstance(value, str) and int(value[:-1]) > 100:
            raise reader.error("is more than 100%", f"{path}.{key}")
    if (reader.int32(rolling, "partition", path) or 0) < 0:
        raise reader.error("expected a non-negative integer", f"{path}.partition")


def _check_one_of(parent: Document, key: str, allowed: tuple[str, ...], reader: DocumentReader, path: str) -> None:
    value = reader.text(parent, key, path)
    if value and value not in allowed:
        raise reader.error(f"is not one of {', '.join(allowed)}", f"{path}.{key}")


def reject_workload(document: Document, reader: DocumentReader) -> None:
    """Raise ``InputError`` if the API server would reject the workload; field types must have been checked."""
    kind, spec = document["kind"], reader.mapping(document, "spec")
    if kind == "CronJob":
        holder = reader.mapping(reader.mapping(spec, "jobTemplate", "spec"), "spec", "spec.jobTemplate")
        _validate_template(holder, reader, "spec.jobTemplate.spec")
        return
    _validate_template(spec, reader, "spec")
    if kind in _WITH_SELECTOR:
        # Reject a selector with labels that the template lacks; expressions are left to the API server.
        selector = reader.mapping(spec, "selector", "spec")
        match_labels = reader.texts(selector, "matchLabels", "spec.selector")
        if not match_labels and not reader.mappings(selector, "matchExpressions", "spec.selector"):
            raise reader.error("is missing", "spec.selector")
        metadata = reader.mapping(reader.mapping(spec, "template", "spec"), "metadata", "spec.template")
        labels = reader.texts(metadata, "labels", "spec.template.metadata")
        for key, value in match_labels.items():
            if labels.get(key) != value:
                has = f"has {key}={labels[key]}" if key in labels else f"has no label {key}"
                raise reader.error(f"requires {key}={value}, but the template {has}", "spec.selector.matchLabels")
    if kind in ("Deployment", "DaemonSet"):
        _validate_strategy(kind, workload_with_defaults(document)["spec"], reader)


def _validate_template(spec: Document, reader: DocumentReader, path: str) -> None:
    pod = reader.mapping(reader.mapping(spec, "template", path), "spec", f"{path}.template")
    path = f"{path}.template.spec"
    if not reader.mappings(pod, "containers", path):
        raise reader.error("must have at least one container", f"{path}.containers")


def _validate_strategy(kind: str, spec: Document, reader: DocumentReader) -> None:
    """``spec`` has its defaults."""
    field = "strategy" if kind == "Deployment" else "updateStrategy"
    if kind == "Deployment" and (spec.get("minReadySeconds") or 0) >= spec["progressDeadlineSeconds"]:
        raise reader.error("must be greater than minReadySeconds", "spec.progressDeadlineSeconds")
    rolling = reader.mapping(reader.mapping(spec, field, "spec"), "rollingUpdate", f"spec.{field}")
    if not rolling:
        return
    path = f"spec.{field}.rollingUpdate"
    surges, allows_unavailable = (
        amount not in (None, 0) and not (isinstance(amount, str) and int(amount.rstrip("%")) == 0)
        for amount in (rolling.get("maxSurge"), rolling.get("maxUnavailable"))
    )
    if not surges and not allows_unavailable:
        raise reader.error("cannot be 0 if maxSurge is 0", f"{path}.maxUnavailable")
    if kind == "DaemonSet" and surges and allows_unavailable:
        raise reader.error("cannot be set unless maxUnavailable is 0 (default 1)", f"{path}.maxSurge")
