"""Plans what a manifest does to a workload or a plain pod: create, roll out, scale, or leave it unchanged.

Fields of a pod template that the cluster's API server drops because their feature gate is off count as unchanged. They
follow ``dropDisabledFields`` in ``k8s.io/kubernetes`` v1.36.3 ``pkg/api/pod/util.go``, for the fields that
``kpreempt/admission/admit.py`` knows.

The API server accepts the manifests (``review``).
"""

from __future__ import annotations

from copy import deepcopy
from itertools import islice
from typing import Any

import msgspec

from kpreempt.admission import apply_api_defaults
from kpreempt.admission.defaults import template_with_defaults, with_defaults
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
from kpreempt.analysis.check.rollout.records import (
    ManifestDocument,
    NotSimulatedError,
    PlannedWorkload,
    is_nested_too_deeply,
    position,
)
from kpreempt.analysis.document_reader import NEW, Document, describe
from kpreempt.analysis.pod_inputs import Decode
from kpreempt.analysis.workload_pods import PodTemplate, joined, pods_of
from kpreempt.controllers.stateful_set import MAX_ORDINAL
from kpreempt.model.documents import mapping_in, mappings_in
from kpreempt.model.meta import replace_in
from kpreempt.model.pod import Pod, annotations_of, with_annotations
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change, ChangeKind

_CRON_JOB = "CronJob"
# A snapshot has the size of these kinds, even if it lacks the rest of the object.
_SIZED_RECORDS = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
_KEYS = frozenset({"matchLabelKeys", "mismatchLabelKeys"})
_HOLDERS = ("affinity", "topologySpreadConstraints")
_FIELDS_SHOWN = 5
# The field with the update strategy of a kind.
_STRATEGY_FIELDS = {"Deployment": "strategy", "StatefulSet": "updateStrategy", "DaemonSet": "updateStrategy"}


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

    Raises ``InputError`` if its pods or claims cannot be read, or would have names that the controller ignores.
    """
    document = given.document
    kind, metadata = document["kind"], document["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    _check_pods(given, decode)
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
        return _created(given, with_defaults(document), objects)
    return _changed(given, before, objects, live, applier)


def _check_pods(given: ManifestDocument, decode: Decode) -> None:
    document = given.document
    for template in pods_of(document, source=given.source, line=given.line):
        decode("Pod", template.document, source=given.source, line=given.line)
        for claim in template.claims:
            decode("PersistentVolumeClaim", claim, source=given.source, line=given.line)
    if document["kind"] != "StatefulSet":
        return
    start = mapping_in(document, "spec", "ordinals").get("start") or 0
    if start + (_size(with_defaults(document)) or 0) - 1 > MAX_ORDINAL:
        # The controller would never finish.
        problem, path = f"results in an ordinal above {MAX_ORDINAL}", "spec.ordinals.start"
        name = describe(document)
        raise NotSimulatedError(problem, source=given.source, line=given.line, object_name=name, path=path)


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
    is_replaced = kind == "Job" and is_recreated(document, applier)
    after = with_defaults(document) if is_replaced else _after(document, before)
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
    return with_defaults(after)


def replica_sets_of(namespace: str, name: str, objects: ClusterObjects, live: LiveDocuments) -> list[Document]:
    """The ReplicaSets of a Deployment, as complete documents if available."""
    complete = live.replica_sets_of(namespace, name)
    return complete or [record_document("ReplicaSet", each) for each in objects.owned("ReplicaSet", namespace, name)]


def _plan_cron_job(given: ManifestDocument, before: Document | None) -> WorkloadPlan:
    """Plan one run of a new or changed CronJob, as if it was due at once."""
    document = given.document
    after = document if before is None else applied(document, before, last_applied(before) or {})
    after = with_defaults(after)
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
    return with_defaults(job)


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
    field = _STRATEGY_FIELDS.get(str(document.get("kind")))
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
    source = position(given)
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
