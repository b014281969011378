"""The complete documents of the cluster's objects that a change includes.

A snapshot keeps little of a workload, but planning a change needs the whole object. ``NeededObjects`` selects the
objects whose documents are kept while reading the cluster; ``LiveDocuments`` looks them up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kpreempt.admission.policies.requests import MAX_PARAMS
from kpreempt.admission.published_types import KIND
from kpreempt.analysis.check.rollout.hooks import is_marked
from kpreempt.analysis.check.rollout.kinds import (
    ADMISSION,
    CLUSTER_KINDS,
    MUTATING,
    POD_OWNERS,
    VALIDATING,
    Deletion,
    is_known,
    is_namespaced,
    is_other,
    is_pod_owner,
    parse_deletion,
)
from kpreempt.analysis.check.rollout.records import ManifestDocument
from kpreempt.analysis.document_reader import Document
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import group_of, mapping_in, mappings_in
from kpreempt.model.meta import ObjectMeta, controller_of

Identity = tuple[str, str, str]
# They apply to any object of a change.
_ADMISSION_KINDS = (*MUTATING, *VALIDATING)
# Pods of the change need one.
ACCOUNT = "ServiceAccount"
# They affect the pods of a change, even if the change does not include them.
ALWAYS_RECORDED = ("HorizontalPodAutoscaler", *_ADMISSION_KINDS, ACCOUNT)
_DEFINITION = "CustomResourceDefinition"
# Kinds that no policy has as parameters, and that are not looked up.
_NO_PARAMS = frozenset(
    {
        *("ControllerRevision", "CustomResourceDefinition", "Endpoints", "EndpointSlice", "Event", "Lease", "Secret"),
    }
)
_POLICY, _BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"


class LiveDocuments:
    """Plain documents of objects in the cluster, by kind, namespace and name."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        """Index the documents; the last one with a name counts."""
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
        """The namespaces of the documents."""
        identities = (*self._documents, *(identity for _, identity in self._others))
        return {namespace for _, namespace, _ in identities}

    @property
    def documents(self) -> list[Document]:
        """All documents."""
        return [*self._documents.values(), *self._others.values()]

    def find(self, kind: str, namespace: str, name: str) -> Document | None:
        """The document of an object, or ``None`` if it was not kept."""
        return self._documents.get((kind, namespace, name))

    def find_other(self, document: Document) -> Document | None:
        """The document of an object whose kind no snapshot holds, or ``None`` if it was not kept."""
        group, (kind, namespace, name) = group_of(document), _identity(document)
        found = self._others.get((group, (kind, namespace, name)))
        # Only the cluster knows whether such a kind is namespaced.
        return found if found is not None else self._others.get((group, (kind, "", name)))

    def other_kinds(self, group: str, kind: str) -> list[Document]:
        """The kept documents of a kind that no snapshot holds."""
        return [
            each for (group_name, (name, _, _)), each in self._others.items() if (group_name, name) == (group, kind)
        ]

    def in_namespace(self, kind: str, namespace: str) -> list[Document]:
        """The kept documents of a kind in a namespace."""
        return [each for (name, space, _), each in self._documents.items() if (name, space) == (kind, namespace)]

    def workloads(self) -> list[Document]:
        """The kept documents of workloads."""
        return [each for each in self._documents.values() if is_pod_owner(each)]

    def replica_sets_of(self, namespace: str, deployment: str) -> list[Document]:
        """The ReplicaSets of a Deployment, in the order of the input."""
        return self._replica_sets.get((namespace, deployment), [])


def accounts_of(live: LiveDocuments, cluster: ClusterSnapshot) -> list[Document]:
    """The documents of all ServiceAccounts; none unless the input has all of them."""
    is_listed = ACCOUNT in cluster.skipped or ACCOUNT in cluster.listed
    return live.other_kinds("", ACCOUNT) if is_listed else []


class NeededObject(NamedTuple):
    """An object of a kind that no snapshot holds, as a manifest names it."""

    api_version: str
    kind: str
    namespace: str
    name: str


class NeededObjects:
    """The objects of the cluster that ``plan_change`` needs for some manifests and deletions.

    The default namespace is ``namespace``. Raises ``UsageError`` for an invalid deletion.
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
        self._creates_pods = any(map(_has_pods, given))
        deletions = [*(parse_deletion(text, namespace) for text in deleted), *pruned]
        self._deleted_kinds = {each.kind for each in deletions}
        self._emptied = {each.name for each in deletions if each.kind == "Namespace"}
        # If a change includes PriorityClasses, the templates of all workloads matter.
        self._has_classes = "PriorityClass" in {each.get("kind") for each in given} | self._deleted_kinds
        self._names = {
            _identity(each, namespace if is_namespaced(each) else "")
            for each in given
            if is_known(each) or is_marked(each)
        }
        self._names |= {(each.kind, each.namespace, each.name) for each in deletions}
        self._groups = {group_of(each) for each in given}
        self._others = {_identity(each)[::2] for each in given if not is_known(each)}
        self._counts: Counter[str] = Counter()
        self._deployments = {
            (namespace_name, name) for kind, namespace_name, name in self._names if kind == "Deployment"
        }
        self._namespaces = {namespace_name for namespace_name, _ in self._deployments}
        self._kept_kinds = {kind for kind, _, _ in self._names} | ({"ReplicaSet"} if self._deployments else set())

    def is_needed(self, kind: str, record: Any) -> bool:
        """Whether the document of a record of the cluster is needed."""
        metadata: ObjectMeta = record.metadata
        if kind == KIND or (kind == _DEFINITION and metadata.name.partition(".")[2] in self._groups):
            return True
        if kind in ALWAYS_RECORDED or (self._others and (kind, metadata.name) in self._others):
            return True
        if self._may_be_params(kind):
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

    def _may_be_params(self, kind: str) -> bool:
        """Whether an object may be a parameter of a policy; a kind with many objects is not."""
        if not self._given or kind in CLUSTER_KINDS or kind in POD_OWNERS or kind in _NO_PARAMS:
            return False
        self._counts[kind] += 1
        return self._counts[kind] <= MAX_PARAMS

    @property
    def kinds(self) -> list[str]:
        """The kinds to read that snapshots do not hold: CronJobs of the change, and kinds that affect its objects."""
        kinds = {str(each.get("kind")) for each in self._given if _has_pods(each) or is_other(each)}
        # Snapshots have no CronJobs, including those in a deleted namespace and those that use a PriorityClass.
        kinds |= self._deleted_kinds | ({"CronJob"} if self._emptied or self._has_classes else set())
        return [
            kind
            for kind in ("CronJob", *ALWAYS_RECORDED)
            if kind in kinds
            or (self._creates_pods and kind in ALWAYS_RECORDED)
            or (self._given and kind in _ADMISSION_KINDS)
        ]

    @property
    def api_versions(self) -> list[str]:
        """The versions of the objects of the change."""
        return sorted({each["apiVersion"] for each in self._given if isinstance(each.get("apiVersion"), str)})

    @property
    def objects(self) -> list[NeededObject]:
        """The objects of the change to look up one by one in the cluster, such as custom resources."""
        others = (each for each in self._given if is_other(each))
        found = (NeededObject(str(each.get("apiVersion") or ""), *_identity(each, self._namespace)) for each in others)
        return list(dict.fromkeys(each for each in found if each.name and each.kind not in ALWAYS_RECORDED))

    def for_policies(self, documents: Iterable[Document]) -> list[NeededObject]:
        """The objects to look up if policies or webhooks are among the cluster's ``documents``, or in the change.

        These are the other objects of the change, without Secrets, and the parameters of policies that have names.
        """
        known = [each for each in (*documents, *self._given) if group_of(each) == ADMISSION]
        if not known:
            return []
        others = (
            each
            for each in self._given
            if not (is_known(each) or is_other(each)) and each.get("kind") not in _NO_PARAMS
        )
        found = [NeededObject(str(each.get("apiVersion") or ""), *_identity(each, self._namespace)) for each in others]
        return list(dict.fromkeys(each for each in (*found, *self._params(known)) if each.name))

    def _params(self, known: Sequence[Document]) -> Iterator[NeededObject]:
        """The parameters that bindings name, in the namespaces of the change unless they name one, too."""
        kinds = {
            _identity(each)[2]: mapping_in(each, "spec", "paramKind") for each in known if each.get("kind") == _POLICY
        }
        namespaces = dict.fromkeys(_identity(each, self._namespace)[1] for each in self._given)
        for binding in (each for each in known if each.get("kind") == _BINDING):
            kind = kinds.get(str(mapping_in(binding, "spec").get("policyName")))
            reference = mapping_in(binding, "spec", "paramRef")
            if not kind or not reference.get("name"):
                continue
            own = reference.get("namespace")
            for namespace in [str(own)] if own else namespaces:
                yield NeededObject(
                    str(kind.get("apiVersion")), str(kind.get("kind")), namespace, str(reference["name"])
                )


def _has_pods(document: Document) -> bool:
    return is_pod_owner(document) or document.get("kind") == "Pod"


def _identity(document: Document, namespace: str = "") -> Identity:
    metadata = mapping_in(document, "metadata")
    namespace_of_object, name = metadata.get("namespace"), metadata.get("name")
    return (
        str(document.get("kind")),
        namespace_of_object if isinstance(namespace_of_object, str) and namespace_of_object else namespace,
        name if isinstance(name, str) else "",
    )


class ClusterObjects:
    """The records of a cluster by kind, namespace and name; each kind is indexed on first use."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self.cluster = cluster
        self._by_kind: dict[str, dict[tuple[str, str], Any]] = {}
        self._by_owner: dict[str, dict[tuple[str, str, str], list[Any]]] = {}

    def find(self, kind: str, namespace: str, name: str) -> Any | None:
        """The record, or ``None`` if there is none with that name."""
        return self._of_kind(kind).get((namespace, name))

    def owned(self, kind: str, namespace: str, owner: str, owner_kind: str = "Deployment") -> list[Any]:
        """The records of a kind that an owner controls, in the order of the cluster."""
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
    """The cluster with ``new`` records by field, namespace and name; ``None`` deletes one."""
    fields: dict[str, Any] = {}
    for field, records in new.items():
        remaining = dict(records)
        updated = [
            remaining.pop((each.metadata.namespace, each.metadata.name), each) for each in getattr(cluster, field)
        ]
        fields[field] = [each for each in (*updated, *remaining.values()) if each is not None]
    return msgspec.structs.replace(cluster, **fields) if fields else cluster


def record_document(kind: str, record: Any) -> Document:
    """A record as plain data, with the fields that a snapshot holds."""
    group = CLUSTER_KINDS[kind].groups[0]
    plain: Document = msgspec.to_builtins(record, enc_hook=str)
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, **plain}
