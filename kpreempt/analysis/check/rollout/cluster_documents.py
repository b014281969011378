"""The cluster's own documents of the objects that a change is about.

A snapshot keeps little of a workload. To tell what a change does to one, the whole object is needed. ``NeededObjects``
says of which objects, so that whoever reads the cluster keeps those and no others; ``LiveDocuments`` finds them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.check.rollout.hooks import is_marked
from kpreempt.analysis.check.rollout.kinds import (
    CLUSTER_KINDS,
    MUTATING,
    POD_OWNERS,
    Deletion,
    group_of,
    is_known,
    is_namespaced,
    is_other,
    is_pod_owner,
    parse_deletion,
)
from kpreempt.analysis.check.rollout.records import ManifestDocument
from kpreempt.analysis.document_reader import Document, mapping_in, mappings_in
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import ObjectMeta, controller_of

Identity = tuple[str, str, str]
# They act on pods that a change makes, whether or not it has them.
ALWAYS_KEPT = ("HorizontalPodAutoscaler", *MUTATING)


class LiveDocuments:
    """Plain documents of objects in the cluster, found by kind, namespace and name."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        """Take documents in, of which the last of one name counts."""
        self._documents: dict[Identity, Document] = {}
        self._others: dict[tuple[str, Identity], Document] = {}
        for each in documents:
            if is_known(each):
                self._documents[_identity(each)] = each
            else:
                self._others[group_of(each), _identity(each)] = each
        self._replica_sets: dict[tuple[str, str], list[Document]] = {}
        for (kind, namespace, _), document in self._documents.items():
            if kind == "ReplicaSet":
                for owner in mappings_in(document["metadata"], "ownerReferences"):
                    if owner.get("kind") == "Deployment" and owner.get("controller"):
                        self._replica_sets.setdefault((namespace, str(owner.get("name"))), []).append(document)

    @property
    def namespaces(self) -> set[str]:
        """The namespaces that they are in."""
        identities = (*self._documents, *(identity for _, identity in self._others))
        return {namespace for _, namespace, _ in identities}

    def find(self, kind: str, namespace: str, name: str) -> Document | None:
        """The document of an object, or ``None`` where it was not kept."""
        return self._documents.get((kind, namespace, name))

    def find_other(self, document: Document) -> Document | None:
        """The cluster's document of an object of a kind that no snapshot holds, or ``None`` where it was not kept."""
        group, (kind, namespace, name) = group_of(document), _identity(document)
        found = self._others.get((group, (kind, namespace, name)))
        # Whether an object of such a kind has a namespace, only the cluster knows.
        return found if found is not None else self._others.get((group, (kind, "", name)))

    def others(self, group: str, kind: str) -> list[Document]:
        """All documents of a kind that no snapshot holds, as far as they were kept."""
        return [each for (where, (name, _, _)), each in self._others.items() if (where, name) == (group, kind)]

    def in_namespace(self, kind: str, namespace: str) -> list[Document]:
        """The documents of a kind in a namespace, as far as they were kept."""
        return [each for (name, where, _), each in self._documents.items() if (name, where) == (kind, namespace)]

    def workloads(self) -> list[Document]:
        """All documents of workloads, as far as they were kept."""
        return [each for each in self._documents.values() if is_pod_owner(each)]

    def replica_sets_of(self, namespace: str, deployment: str) -> list[Document]:
        """The ReplicaSets of a Deployment, in the order in which they were read."""
        return self._replica_sets.get((namespace, deployment), [])


class NeededObject(NamedTuple):
    """An object of a kind that no snapshot holds, as a manifest names it."""

    api_version: str
    kind: str
    namespace: str
    name: str


class NeededObjects:
    """What ``plan_change`` wants to see of the cluster for some manifests and deletions.

    Objects that say no namespace are in ``namespace``. Raises ``UsageError`` for a deletion that names nothing.
    """

    def __init__(
        self,
        documents: Sequence[ManifestDocument],
        namespace: str,
        deleted: Sequence[str] = (),
        pruned: Sequence[Deletion] = (),
    ) -> None:
        self._given = given = [each.document for each in documents]
        self._namespace = namespace
        deletions = [*(parse_deletion(text, namespace) for text in deleted), *pruned]
        self._deleted_kinds = {each.kind for each in deletions}
        self._emptied = {each.name for each in deletions if each.kind == "Namespace"}
        # If a change is about PriorityClasses, the templates of all workloads matter.
        self._has_classes = "PriorityClass" in {each.get("kind") for each in given} | self._deleted_kinds
        # Which labels were applied to a Namespace decides which ones go.
        compared = (each for each in given if _has_pods(each) or is_marked(each) or each.get("kind") == "Namespace")
        self._names = {_identity(each, namespace if is_namespaced(each) else "") for each in compared}
        self._names |= {(each.kind, each.namespace, each.name) for each in deletions}
        self._others = {_identity(each)[::2] for each in given if is_other(each)}
        self._deployments = {(where, name) for kind, where, name in self._names if kind == "Deployment"}
        self._namespaces = {where for where, _ in self._deployments}
        self._kept_kinds = {kind for kind, _, _ in self._names} | ({"ReplicaSet"} if self._deployments else set())

    def keeps(self, kind: str, record: Any) -> bool:
        """Whether the document of a record of the cluster is needed."""
        metadata: ObjectMeta = record.metadata
        if kind in ALWAYS_KEPT or (self._others and (kind, metadata.name) in self._others):
            return True
        if (kind == "CronJob" and metadata.namespace in self._emptied) or (self._has_classes and kind in POD_OWNERS):
            return True
        if kind not in self._kept_kinds:
            return False
        if (kind, metadata.namespace, metadata.name) in self._names:
            return True
        owner = controller_of(metadata) if kind == "ReplicaSet" else None
        if owner is None and kind == "ReplicaSet" and metadata.namespace in self._namespaces:
            # A Deployment may adopt it.
            return True
        return (
            owner is not None and owner.kind == "Deployment" and (metadata.namespace, owner.name) in self._deployments
        )

    @property
    def kinds(self) -> list[str]:
        """The kinds without records to read: CronJobs that a change is about, and what acts on pods."""
        kinds = {str(each.get("kind")) for each in self._given if _has_pods(each) or is_other(each)}
        # No snapshot has the CronJobs of a namespace, or those that name a PriorityClass.
        kinds |= self._deleted_kinds | ({"CronJob"} if self._emptied or self._has_classes else set())
        makes_pods = any(map(_has_pods, self._given))
        return [kind for kind in ("CronJob", *ALWAYS_KEPT) if kind in kinds or (makes_pods and kind in ALWAYS_KEPT)]

    @property
    def objects(self) -> list[NeededObject]:
        """The objects of the change that only the cluster can tell of, custom resources above all, each once."""
        others = (each for each in self._given if is_other(each))
        found = (NeededObject(str(each.get("apiVersion") or ""), *_identity(each, self._namespace)) for each in others)
        return list(dict.fromkeys(each for each in found if each.name and each.kind not in ALWAYS_KEPT))


def _has_pods(document: Document) -> bool:
    return is_pod_owner(document) or document.get("kind") == "Pod"


def _identity(document: Document, namespace: str = "") -> Identity:
    metadata = mapping_in(document, "metadata")
    where, name = metadata.get("namespace"), metadata.get("name")
    return (
        str(document.get("kind")),
        where if isinstance(where, str) and where else namespace,
        name if isinstance(name, str) else "",
    )


class ClusterObjects:
    """The records of a cluster, found by kind, namespace and name; each kind is looked through when it is asked for."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self.cluster = cluster
        self._by_kind: dict[str, dict[tuple[str, str], Any]] = {}
        self._by_owner: dict[str, dict[tuple[str, str, str], list[Any]]] = {}

    def find(self, kind: str, namespace: str, name: str) -> Any | None:
        """The record, or ``None`` where there is none of that name, or of that kind."""
        return self._of_kind(kind).get((namespace, name))

    def owned(self, kind: str, namespace: str, owner: str, owner_kind: str = "Deployment") -> list[Any]:
        """The records of a kind that an owner manages, in the order of the cluster."""
        owned = self._by_owner.get(kind)
        if owned is None:
            owned = self._by_owner[kind] = {}
            for record in self._of_kind(kind).values():
                above = controller_of(record.metadata)
                if above is not None:
                    owned.setdefault((record.metadata.namespace, above.kind, above.name), []).append(record)
        return owned.get((namespace, owner_kind, owner), [])

    def _of_kind(self, kind: str) -> dict[tuple[str, str], Any]:
        known = self._by_kind.get(kind)
        if known is None:
            records = getattr(self.cluster, CLUSTER_KINDS[kind].field) if kind in CLUSTER_KINDS else []
            known = {(each.metadata.namespace, each.metadata.name): each for each in records}
            self._by_kind[kind] = known
        return known


def laid_over(cluster: ClusterSnapshot, new: Mapping[str, Mapping[tuple[str, str], Any]]) -> ClusterSnapshot:
    """The cluster with ``new`` records by field, and by namespace and name; ``None`` is for one that is gone."""
    fields: dict[str, Any] = {}
    for field, records in new.items():
        left = dict(records)
        there = [left.pop((each.metadata.namespace, each.metadata.name), each) for each in getattr(cluster, field)]
        fields[field] = [each for each in (*there, *left.values()) if each is not None]
    return msgspec.structs.replace(cluster, **fields) if fields else cluster


def record_document(kind: str, record: Any) -> Document:
    """A record as plain data, as far as a snapshot has it."""
    group = CLUSTER_KINDS[kind].groups[0]
    plain: Document = msgspec.to_builtins(record, enc_hook=str)
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, **plain}
