"""The object with which a Workload is changed: its Job, or the Workload itself if no object owns it.

Kueue resets a Workload that differs from its owner (``pkg/controller/jobframework/reconciler.go`` of Kueue v0.19.2),
except for its priority and ``spec.active``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.remedies.edits import merge_patched, nested
from kpreempt.model.documents import mapping_in
from kpreempt.model.kueue import QUEUE_LABEL, Workload
from kpreempt.model.meta import controller_of, replace_in
from kpreempt.verdict.remedies import ObjectEdit

# The fields with the number of pods, and the paths of the pods' specs.
_COUNT_FIELDS = {"Job": "parallelism", "StatefulSet": "replicas"}
_TEMPLATES = dict.fromkeys(("Job", "StatefulSet", "Deployment"), ("spec", "template", "spec")) | {"Pod": ("spec",)}
# Creates the Workload for an object. Raises ``InputError``.
Create = Callable[[Document], Workload]
ChangeSpec = Callable[[Mapping[str, Any]], Document]


class Requester(msgspec.Struct, frozen=True, kw_only=True):
    """The object, with its content if that is known, and how its Workload is created.

    ``manager`` is an owner that reverts changes to the Workload, and whose own fields are unknown.
    """

    object: str
    document: Document | None = None
    create: Create | None = None
    manager: str = ""

    @property
    def kind(self) -> str:
        """The object's kind."""
        return self.object.partition(" ")[0]

    def with_count(self, pod_set: int, count: int) -> tuple[str, ObjectEdit] | None:
        """The field and the edit for another number of pods."""
        if self.kind in _COUNT_FIELDS:
            field = _COUNT_FIELDS[self.kind]
            return f"spec.{field}", ObjectEdit(self.object, {"spec": {field: count}})
        if self.kind != "Workload" or self.document is None:
            return None
        pod_sets = [*mapping_in(self.document, "spec").get("podSets", ())]
        kept = {key: each for key, each in pod_sets[pod_set].items() if key != "minCount"}
        pod_sets[pod_set] = {**kept, "count": count}
        name = kept.get("name", "main")
        return f"spec.podSets[{name}].count", ObjectEdit(self.object, {"spec": {"podSets": pod_sets}})

    def with_spec(self, change: ChangeSpec) -> ObjectEdit | None:
        """The edit that merges a change into the spec of every pod template; ``None`` if templates are unknown."""
        if self.document is None:
            return None
        if self.kind == "Workload":
            pod_sets = [
                merge_patched(each, {"template": {"spec": change(mapping_in(each, "template", "spec"))}})
                for each in mapping_in(self.document, "spec").get("podSets", ())
            ]
            return ObjectEdit(self.object, {"spec": {"podSets": pod_sets}})
        if self.kind not in _TEMPLATES:
            return None
        path = _TEMPLATES[self.kind]
        return ObjectEdit(self.object, nested(path, change(mapping_in(self.document, *path))))

    def with_queue(self, name: str) -> tuple[str, ObjectEdit]:
        """The field and the edit for another LocalQueue."""
        if self.kind == "Workload":
            return "spec.queueName", ObjectEdit(self.object, {"spec": {"queueName": name}})
        field = f"metadata.labels[{QUEUE_LABEL}]"
        return field, ObjectEdit(self.object, {"metadata": {"labels": {QUEUE_LABEL: name}}})

    def changed(self, workload: Workload, edits: Iterable[ObjectEdit]) -> Workload:
        """The Workload after edits of the object."""
        if self.document is not None and self.create is not None:
            document = self.document
            for edit in edits:
                document = merge_patched(document, edit.patch)
            return msgspec.structs.replace(workload, spec=self.create(document).spec)
        for edit in edits:
            count = mapping_in(edit.patch, "spec").get(_COUNT_FIELDS.get(self.kind, ""))
            queue = mapping_in(edit.patch, "metadata", "labels").get(QUEUE_LABEL, workload.spec.queue_name)
            pod_sets = [
                each if count is None else msgspec.structs.replace(each, count=count, min_count=None)
                for each in workload.spec.pod_sets
            ]
            workload = replace_in(workload, "spec", queue_name=queue, pod_sets=pod_sets)
        return workload


def requester_in_cluster(workload: Workload, document: Document | None, create: Create) -> Requester:
    """The object for a Workload of the cluster: its Job if one owns it."""
    name, owner = f"Workload {workload.key}", controller_of(workload.metadata)
    if owner is None:
        return Requester(object=name, document=document, create=create)
    owner_name = f"{owner.kind} {workload.metadata.namespace}/{owner.name}"
    if owner.kind == "Job":
        return Requester(object=owner_name)
    return Requester(object=name, document=document, create=create, manager=owner_name)
