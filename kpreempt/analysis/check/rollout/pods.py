"""What a manifest of a plain pod does: it makes one, or changes the little that can be changed of one."""

from __future__ import annotations

from copy import deepcopy
from itertools import islice
from typing import Any

import msgspec

from kpreempt.admission import apply_api_defaults
from kpreempt.admission.defaults import template_with_defaults
from kpreempt.analysis.check.rollout.apply import Comparison
from kpreempt.analysis.check.rollout.cluster_documents import ClusterObjects, LiveDocuments
from kpreempt.analysis.check.rollout.differences import last_applied
from kpreempt.analysis.check.rollout.kept_documents import alike
from kpreempt.analysis.check.rollout.records import ManifestDocument
from kpreempt.analysis.check.rollout.shape import is_nested_too_deeply, position
from kpreempt.analysis.document_reader import Document, describe, mapping_in, mappings_in
from kpreempt.analysis.questions import Decode
from kpreempt.analysis.workload_pods import PodTemplate, pods_of
from kpreempt.model.pod import Pod, annotations_of, with_annotations
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change, ChangeKind

_FIELDS_SHOWN = 5
_COMPARISON = Comparison()
_CHANGEABLE = frozenset({"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"})


class PodPlan(msgspec.Struct, frozen=True):
    """What becomes of a plain pod: one comes (``template``), one goes (``deleted``), or one stays as ``relabelled``."""

    change: Change
    template: PodTemplate | None = None
    deleted: str = ""
    relabelled: Pod | None = None
    assumptions: list[Assumption] = []


def plan_pod(given: ManifestDocument, objects: ClusterObjects, live: LiveDocuments, decode: Decode) -> PodPlan:
    """What a manifest of a pod does. Raises ``InputError`` for one that the API server refuses."""
    document, metadata = given.document, given.document["metadata"]
    (template,) = pods_of(document, source=given.source, line=given.line)
    wanted: Any = decode("Pod", template.document, source=given.source, line=given.line)
    subject = describe(document)
    record: Pod | None = objects.find("Pod", metadata["namespace"], metadata["name"])
    if record is None:
        return PodPlan(Change(object=subject, kind=ChangeKind.CREATED, **position(given)), template)
    key = f"{metadata['namespace']}/{metadata['name']}"
    before = live.find("Pod", metadata["namespace"], metadata["name"])
    if before is None or not isinstance(before.get("spec"), dict) or is_nested_too_deeply(before):
        message = "the snapshot does not say what it was, so that the pod is assumed to be replaced"
        change = Change(object=subject, kind=ChangeKind.ROLLED, fields=["spec"], **position(given))
        return PodPlan(change, template, key, None, [Assumption(subject, "spec", message)])
    given = msgspec.structs.replace(given, document=alike(document, before))
    return _against(given, before, record, template, wanted)


def _against(given: ManifestDocument, before: Document, record: Pod, template: PodTemplate, wanted: Pod) -> PodPlan:
    document, subject = given.document, describe(given.document)
    fields = _differences(document, before, wanted)
    immutable = [path for path in fields if path.startswith("spec.") and not _can_change(path)]
    where = position(given)
    if immutable:
        message = "cannot be changed in the API, so that the apply is refused; the pod is assumed to be replaced"
        change = Change(object=subject, kind=ChangeKind.ROLLED, fields=fields[:_FIELDS_SHOWN], **where)
        return PodPlan(change, template, record.key, None, [Assumption(subject, immutable[0], message)])
    if not fields:
        return PodPlan(Change(object=subject, kind=ChangeKind.UNCHANGED, **where))
    mine = mapping_in(document["metadata"], "labels")
    applied = mapping_in(last_applied(before) or {}, "metadata", "labels")
    kept = {key: value for key, value in record.metadata.labels.items() if key not in applied}
    labels = {**kept, **mine}
    relabelled = msgspec.structs.replace(record, metadata=msgspec.structs.replace(record.metadata, labels=labels))
    if told := annotations_of(wanted):
        relabelled = with_annotations(relabelled, {**annotations_of(record), **told})
    change = Change(object=subject, kind=ChangeKind.UPDATED, fields=fields[:_FIELDS_SHOWN], **where)
    return PodPlan(change, relabelled=relabelled)


def _differences(document: Document, before: Document, pod: Pod) -> list[str]:
    """The paths that differ. What only the cluster has was put there by admission, and stays."""
    wanted = _with_tolerations(document, before)
    full, live = template_with_defaults(wanted, is_pod=True), template_with_defaults(before, is_pod=True)
    # What the server adds up for the pod as a whole, the record has.
    if (resources := apply_api_defaults(pod).spec.resources) is not None:
        amounts = msgspec.to_builtins(resources, enc_hook=str)
        full = {**full, "spec": {**full["spec"], "resources": {**mapping_in(full["spec"], "resources"), **amounts}}}
    last = last_applied(before) or {}
    found = _COMPARISON.differences(
        wanted["spec"], full["spec"], live["spec"], mapping_in(last, "spec"), "spec", "spec"
    )
    mine = {key: each for key, each in document["metadata"].items() if key in ("labels", "annotations")}
    theirs = {key: each for key, each in mapping_in(before, "metadata").items() if key in ("labels", "annotations")}
    old = {key: each for key, each in mapping_in(last, "metadata").items() if key in ("labels", "annotations")}
    of_metadata = _COMPARISON.differences(mine, mine, theirs, old, "metadata", "metadata")
    return list(islice(found, 50)) + list(islice(of_metadata, 50))


def _with_tolerations(document: Document, before: Document) -> Document:
    """The manifest with the tolerations that admission has added to the pod."""
    result = deepcopy(document)
    spec = result.setdefault("spec", {})
    mine = spec.get("tolerations")
    if isinstance(mine, list) and mine:
        theirs = list(mappings_in(mapping_in(before, "spec"), "tolerations"))
        known = {_text_of(each) for each in theirs}
        if all(isinstance(each, dict) and _text_of(each) in known for each in mine):
            spec["tolerations"] = theirs
    return result


def _text_of(toleration: Document) -> str:
    return repr(sorted(toleration.items()))


def _can_change(path: str) -> bool:
    """Whether the API server lets a field of a pod be changed: images, and a few more."""
    field = path.split(".")[1]
    return field in _CHANGEABLE or (path.endswith("].image") and field.startswith(("containers[", "initContainers[")))
