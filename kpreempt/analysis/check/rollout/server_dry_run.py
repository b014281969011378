"""What an API server is sent in a dry run of a change, and what its decisions mean.

``kubectl apply`` creates an object that does not exist, and otherwise patches it with the difference between the
cluster's object and the merged one; if they are equal, it sends nothing (``k8s.io/kubectl`` v0.36.3
``pkg/cmd/apply/apply.go`` and ``patcher.go``). Either way, the object has its manifest in an annotation, whose size
counts. Here, the patch has the same result, but is a JSON merge patch for all kinds, because its lists are merged
already. It needs the same permission as kubectl's, ``patch``, unlike PUT, and does not depend on the version of the
object either. Server-side apply would also reject fields of other managers, so it is not used.

Differences from kubectl: lists outside pods (the ports of a Service) are replaced by those of the manifest. Helm merges
with the manifest of its last release, which the cluster's object does not have; here, fields that a manifest no longer
has are kept.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, Protocol

from kpreempt.admission.validation import Problem
from kpreempt.analysis.check.rollout.apply import LAST_APPLIED, applied, last_applied
from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.analysis.check.rollout.kinds import ADMISSION
from kpreempt.analysis.check.rollout.records import ServerDecisions
from kpreempt.analysis.check.rollout.review import merged_custom
from kpreempt.analysis.document_reader import NEW, Document, describe
from kpreempt.analysis.workload_pods import joined
from kpreempt.model.documents import group_of, mapping_in

# ``spec.containers[0].name``, ``metadata.labels[a.b/c]``.
_FIELD_PARTS = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_BAD_REQUEST, _FORBIDDEN, _NOT_FOUND = 400, 403, 404
# Statuses that say that the object is rejected. Others are about the server, the user or the moment.
_REJECTIONS = frozenset({_BAD_REQUEST, _FORBIDDEN, 405, 413, 422})
_UNSUPPORTED = "does not support dry run"
_DENIED = re.compile(r'admission webhook "[^"]*" denied the request')
# ``k8s.io/apiserver`` v0.36.3 ``pkg/endpoints/handlers/responsewriters/errors.go``.
_NO_PERMISSION = re.compile(r'is forbidden: User ".*" cannot [a-z]+ ')
_NO_NAMESPACE = re.compile(r'namespaces "[^"]*" not found')

_Test = Callable[[Document, Document], bool]


class ServerProblem(Problem):
    """A rejection in the server's words, which name the field, if any."""

    def __str__(self) -> str:
        return self.message


def server_problem(words: str, field: str) -> ServerProblem:
    """Build the problem from the server's words and the field of its first cause, which may be empty."""
    parts = _FIELD_PARTS.findall(field)
    return ServerProblem(tuple(int(key) if key.isdecimal() else name or key for name, key in parts), words)


class Reviewer(Protocol):
    """What ``Review`` and ``DecidedReview`` have in common."""

    def problems(self, document: Document) -> Sequence[Problem]:
        """Why the API server rejects a document; empty if it is accepted."""

    def accept(self, document: Document) -> None:
        """Apply an accepted document, so that later ones are compared with it."""


class DecidedReview:
    """A review of objects about which the API server decided in a dry run; the ``initial`` review accepts none."""

    def __init__(self, review: Reviewer, decisions: ServerDecisions, initial: Reviewer) -> None:
        self._review = review
        self._decisions = decisions
        self._initial = initial

    def accept(self, document: Document) -> None:
        """Apply an accepted document."""
        self._review.accept(document)

    def problems(self, document: Document) -> Sequence[Problem]:
        """Why the API server rejects a document; empty if it is accepted."""
        name = describe(document)
        if name in self._decisions.rejections:
            return [self._decisions.rejections[name]]
        found = self._review.problems(document)
        # The server knows better, except about what the change applies before this object.
        is_wrong = found and name in self._decisions.accepted and self._initial.problems(document)
        return [] if is_wrong else found


def decided_review(review: Reviewer, decisions: ServerDecisions, initial: Callable[[], Reviewer]) -> Reviewer:
    """The review, with the decisions if there are any."""
    is_decided = decisions.accepted or decisions.rejections
    return DecidedReview(review, decisions, initial()) if is_decided else review


def accepted_by_policies(decisions: ServerDecisions, change: Iterable[Document]) -> frozenset[str]:
    """The objects that the API server accepts by all policies and webhooks, which the change leaves as they are."""
    has_policies = any(group_of(each) == ADMISSION for each in change)
    return frozenset() if has_policies else decisions.accepted


def is_rejection(status: int, words: str) -> bool:
    """Whether an error means that the server rejects the object; otherwise, it is unknown whether it does.

    It is unknown if the user lacks a permission, a webhook does not support dry runs or fails, or the object was
    changed meanwhile.
    """
    if _UNSUPPORTED in words:
        return False
    if _DENIED.search(words):
        return True
    if status == _FORBIDDEN:
        return _NO_PERMISSION.search(words) is None
    return status in _REJECTIONS or is_without_namespace(status, words)


def is_without_namespace(status: int, words: str) -> bool:
    """Whether an error means that the namespace of the object does not exist."""
    return status == _NOT_FOUND and _NO_NAMESPACE.fullmatch(words) is not None


def is_new_name(document: Document) -> bool:
    """Whether the server generates the name of an object, so that no such object exists."""
    metadata = document["metadata"]
    stem = metadata.get("generateName")
    generated = joined(str(stem or "").rstrip("-"), NEW)
    return not metadata["name"] or (bool(stem) and f"{metadata['name']}-".startswith(f"{generated}-"))


def new_object(document: Document, applier: Applier) -> Document:
    """The object to create."""
    result: Document = _without_nulls(_annotated(document, applier))
    for key in ("resourceVersion", *(("name",) if is_new_name(document) else ())):
        result["metadata"].pop(key, None)
    return result


def changes_of(document: Document, live: Document, applier: Applier, *, merges_lists: bool) -> Document:
    """The JSON merge patch that applies a document to the cluster's object; empty if nothing changes.

    ``merges_lists`` is true for built-in kinds.
    """
    desired = _annotated(document, applier)
    last = {} if applier is Applier.HELM else last_applied(live) or {}
    return _difference(live, (applied if merges_lists else merged_custom)(desired, live, last))


def alters(patch: Document) -> bool:
    """Whether a patch changes more than the annotation with the manifest."""
    metadata = mapping_in(patch, "metadata")
    annotations = mapping_in(metadata, "annotations")
    return bool(patch.keys() - {"metadata"} or metadata.keys() - {"annotations"} or annotations.keys() - {LAST_APPLIED})


def prerequisites(document: Document, altered: Iterable[Document]) -> list[Document]:
    """The ``altered`` (new or changed) objects of the change that decide whether the server accepts a document.

    In a dry run, the server does not see these changes.
    """
    namespace = document["metadata"].get("namespace")
    return [
        each
        for each in altered
        if each is not document
        and each["metadata"].get("namespace", namespace) == namespace
        and (group_of(each) == ADMISSION or _DECIDES.get(str(each["kind"]), _never)(each, document))
    ]


def _never(_other: Document, _document: Document) -> bool:
    return False


def _always(_other: Document, _document: Document) -> bool:
    return True


def _is_its_namespace(other: Document, document: Document) -> bool:
    return bool(other["metadata"]["name"] == document["metadata"].get("namespace"))


def _defines(other: Document, document: Document) -> bool:
    spec = mapping_in(other, "spec")
    return (spec.get("group"), mapping_in(spec, "names").get("kind")) == (group_of(document), document["kind"])


def _is_named_by_pod(*fields: str, default: str) -> _Test:
    """Controllers create the pods of workloads later, so only the fields of plain pods count."""

    def is_named(other: Document, document: Document) -> bool:
        spec = mapping_in(document, "spec")
        name = next((spec[each] for each in fields if spec.get(each)), default)
        return bool(document["kind"] == "Pod" and name == other["metadata"]["name"])

    return is_named


def _is_bound(other: Document, document: Document) -> bool:
    role = mapping_in(document, "roleRef")
    return (role.get("kind"), role.get("name")) == (other["kind"], other["metadata"]["name"])


def _is_of(kind: str) -> _Test:
    return lambda _, document: bool(document["kind"] == kind)


# By the kind of the other object.
_PLACES: dict[str, _Test] = {"Namespace": _is_its_namespace, "CustomResourceDefinition": _defines}
_DECIDES: dict[str, _Test] = {
    **_PLACES,
    "ResourceQuota": _always,
    "LimitRange": _always,
    "ServiceAccount": _is_named_by_pod("serviceAccountName", "serviceAccount", default="default"),
    # One class may be the default, for other pods and classes.
    "PriorityClass": lambda _, document: document["kind"] in ("Pod", "PriorityClass"),
    "RuntimeClass": _is_named_by_pod("runtimeClassName", default=""),
    "StorageClass": _is_of("PersistentVolumeClaim"),
    "Role": _is_bound,
    "ClusterRole": _is_bound,
}


def place_of(document: Document, new: Iterable[Document]) -> Document | None:
    """The ``new`` object of the change without which the server cannot decide: its namespace, or its definition."""
    return next((each for each in new if _PLACES.get(str(each["kind"]), _never)(each, document)), None)


def secret_values(document: Document) -> list[str]:
    """The values in a Secret, which the server's words must not repeat."""
    if document["kind"] != "Secret":
        return []
    data, plain = (
        [each for each in mapping_in(document, key).values() if isinstance(each, str)] for key in ("data", "stringData")
    )
    return [*data, *plain, *filter(None, map(_from_base64, data))]


def _from_base64(text: str) -> str:
    try:
        return b64decode(text).decode(errors="replace")
    except ValueError:
        return ""


def _annotated(document: Document, applier: Applier) -> Document:
    """The document with its manifest as an annotation, as kubectl and Argo CD add it."""
    document = deepcopy(document)
    metadata = document["metadata"]
    annotations = {key: each for key, each in mapping_in(metadata, "annotations").items() if key != LAST_APPLIED}
    if annotations or applier is not Applier.HELM:
        metadata["annotations"] = annotations
    if applier is not Applier.HELM:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
        metadata["annotations"] = {**annotations, LAST_APPLIED: f"{text}\n"}
    return document


def _without_nulls(value: Any) -> Any:
    """The value without fields that are null; elements of lists remain."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _difference(live: Document, merged: Document) -> Document:
    """The JSON merge patch (RFC 7386) from ``live`` to ``merged``."""
    patch: Document = {key: None for key in live if key not in merged}
    for key, value in merged.items():
        before = live.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := _difference(before, value):
                patch[key] = inner
        elif key not in live or type(value) is not type(before) or value != before:
            patch[key] = value
    return patch
