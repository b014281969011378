"""The policies, bindings, webhooks, parameters and namespaces that decide on a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from kpreempt.admission.defaults import NAME_LABEL
from kpreempt.admission.policies.matching import Labels
from kpreempt.admission.policies.requests import ADMISSION_GROUP, UNKNOWN, name_of
from kpreempt.admission.validation.problems import Document
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import group_of, mapping_in

_BINDING: Final = "ValidatingAdmissionPolicyBinding"


class PolicyState:
    """The relevant objects of a cluster, and the accepted objects of a change."""

    def __init__(self, cluster: ClusterSnapshot, documents: Iterable[Document] = ()) -> None:
        self.cluster = cluster
        self._labels: dict[str, Labels] = {each.metadata.name: each.metadata.labels for each in cluster.namespaces}
        self._objects: dict[tuple[str, str], dict[tuple[str, str], Document]] = {}
        # The number of documents that were kept of the cluster, by kind.
        self._kept: Counter[str] = Counter()
        for each in documents:
            self._kept[str(each.get("kind"))] += 1
            self.accept(each)

    def accept(self, document: Document) -> None:
        """Add an object, or replace the one with its name."""
        group, kind = group_of(document), str(document.get("kind"))
        metadata = mapping_in(document, "metadata")
        if (group, kind) == ("", "Namespace"):
            self._labels[name_of(document)] = mapping_in(metadata, "labels")
        # A document of a cluster-scoped kind may name a namespace.
        namespace = "" if group == ADMISSION_GROUP else str(metadata.get("namespace") or "")
        self._objects.setdefault((group, kind), {})[namespace, name_of(document)] = document

    @property
    def is_empty(self) -> bool:
        """Whether there are neither policies nor webhooks."""
        return not any(group == ADMISSION_GROUP for group, _ in self._objects)

    def of_kind(self, kind: str, group: str = ADMISSION_GROUP) -> list[Document]:
        """Return the objects of a kind."""
        return [*self._objects.get((group, kind), {}).values()]

    def bindings_of(self, policy: Document) -> list[Document]:
        """Return the bindings of a policy."""
        name = name_of(policy)
        return [each for each in self.of_kind(_BINDING) if mapping_in(each, "spec").get("policyName") == name]

    @property
    def lacks_bindings(self) -> bool:
        """Whether there may be bindings, none of which was read."""
        return not (self.of_kind(_BINDING) or self.is_complete(ADMISSION_GROUP, _BINDING))

    def is_complete(self, group: str, kind: str) -> bool:
        """Return whether all objects of a kind in the cluster are known: those of a dump are if all were kept."""
        labels, in_dump = {kind, f"{kind}.{group}".rstrip(".")}, self.cluster.skipped.get(kind)
        was_read = labels & {*self.cluster.listed} or (in_dump and self._kept[kind] >= in_dump)
        return bool(was_read) and not labels & self.cluster.unread.keys()

    def labels_of(self, namespace: str) -> Labels | None:
        """Return the labels of a namespace, or ``None`` if they are unknown."""
        return self._labels.get(namespace)

    def namespace(self, name: str) -> Document | None:
        """Return what is known of a namespace, or ``None`` if nothing is."""
        labels = self._labels.get(name)
        if labels is None:
            return None
        metadata: dict[str, Any] = {"name": name, "labels": {**labels, NAME_LABEL: name}}
        unknown = dict.fromkeys(("annotations", "finalizers", "resourceVersion"), UNKNOWN)
        document = {"apiVersion": "v1", "kind": "Namespace", "spec": UNKNOWN, "status": UNKNOWN}
        return {**document, "metadata": {**unknown, **metadata}}
