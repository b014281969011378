"""Determines which pods and ReplicaSets without a controller are adopted because of a change.

Follows ``pkg/controller/controller_ref_manager.go`` of v1.36.3: a controller adopts each object in its namespace that
matches its selector and has no controller; a StatefulSet adopts only pods with its own names. From then on the
controller treats adopted objects as its own, and deletes surplus ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.check.rollout.cluster_documents import LiveDocuments, record_document
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS
from kpreempt.analysis.check.rollout.records import Adoption, PlannedWorkload
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.pod_inputs import Decode
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.controllers.actions import JOB_FINALIZER
from kpreempt.controllers.stateful_set import ordinal_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import ObjectMeta, OwnerReference, controller_of, replace_in

# The controllers that adopt objects, in their order of precedence.
_KINDS = ("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job", "Deployment")
_API_VERSIONS = {"ReplicationController": "v1", "Job": "batch/v1"}
_Identity = tuple[str, str, str]


class _Adopter(NamedTuple):
    """A controller with its selector; ``size`` is ``None`` if its desired number of pods is unknown."""

    identity: _Identity
    selector: LabelSelector
    uid: str
    size: int | None
    is_new: bool

    def adopts(self, kind: str, metadata: ObjectMeta, labels: Mapping[str, str]) -> bool:
        """Whether it adopts an object without a controller that has these labels."""
        own_kind, namespace, own_name = self.identity
        is_of_kind = (own_kind == "Deployment") == (kind == "ReplicaSet")
        if not is_of_kind or metadata.namespace != namespace or not self.selector.matches(labels):
            return False
        return own_kind != "StatefulSet" or (
            metadata.name.rpartition("-")[0] == own_name and ordinal_of(metadata.name) >= 0
        )

    def owning(self, record: Any) -> Any:
        """The object with this controller as its owner."""
        kind, _, name = self.identity
        version = _API_VERSIONS.get(kind, "apps/v1")
        owner = OwnerReference(kind=kind, name=name, uid=self.uid, api_version=version, controller=True)
        metadata = record.metadata
        finalizers = [*metadata.finalizers, *([JOB_FINALIZER] if kind == "Job" else [])]
        owners = [*metadata.owner_references, owner]
        return replace_in(record, "metadata", owner_references=owners, finalizers=finalizers)


def adopted(
    before: ClusterSnapshot,
    after: ClusterSnapshot,
    workloads: Sequence[PlannedWorkload],
    new_pods: Iterable[PodTemplate],
    *,
    deleted_pods: Iterable[str],
    live: LiveDocuments,
    decode: Decode,
) -> tuple[ClusterSnapshot, list[PlannedWorkload], list[Adoption]]:
    """Return the cluster with adopted objects, the updated workloads, and all adoptions.

    ``before`` is the cluster before the change, ``after`` the one with all objects of the change except workloads. In
    the result, new controllers, and those with a new selector, own the existing objects they adopt. Objects that the
    change creates or relabels are not owned there; the adoptions only list them.
    """
    search = _Search(before, workloads, decode)
    deleted = set(deleted_pods)
    known = {}
    if before.pods is not after.pods:
        known = {
            old.key: old.metadata.labels for old, new in zip(before.pods, after.pods, strict=False) if old is not new
        }
    pods = [search.owned("Pod", each, known.get(each.key)) if each.key not in deleted else each for each in after.pods]
    sets = [search.owned("ReplicaSet", each, None) for each in after.replica_sets]
    for template in new_pods:
        pod: Any = decode("Pod", template.document, source=template.source, line=template.line)
        search.find_owner("Pod", pod.metadata)
    for workload in workloads:
        if workload.kind == "ReplicaSet" and workload.before is None and workload.after is not None:
            record: Any = decode(workload.kind, workload.after)
            search.find_owner("ReplicaSet", record.metadata)
    if not search.found:
        return after, list(workloads), []
    cluster = msgspec.structs.replace(after, pods=pods, replica_sets=sets)
    adoptions = [search.adoption(*key, objects) for key, objects in search.found.items()]
    return cluster, [_with_sets(each, cluster, live) for each in workloads], adoptions


def _with_sets(workload: PlannedWorkload, cluster: ClusterSnapshot, live: LiveDocuments) -> PlannedWorkload:
    """A Deployment with the ReplicaSets that it owns now."""
    if workload.kind != "Deployment" or workload.after is None:
        return workload
    known = {mapping_in(each, "metadata").get("name") for each in workload.replica_sets}
    more = []
    for each in cluster.replica_sets:
        owner, metadata = controller_of(each.metadata), each.metadata
        is_own = owner is not None and (owner.kind, owner.name) == ("Deployment", workload.name)
        if is_own and metadata.namespace == workload.namespace and metadata.name not in known:
            document = live.find("ReplicaSet", metadata.namespace, metadata.name)
            more.append(document if document is not None else record_document("ReplicaSet", each))
    return msgspec.structs.replace(workload, replica_sets=[*workload.replica_sets, *more]) if more else workload


class _Search:
    """Finds and records the controllers that adopt objects."""

    def __init__(self, cluster: ClusterSnapshot, workloads: Sequence[PlannedWorkload], decode: Decode) -> None:
        self._cluster = cluster
        self._decode = decode
        self._planned = {(each.kind, each.namespace, each.name) for each in workloads}
        of_change = [adopter for each in workloads if (adopter := self._of_change(each)) is not None]
        self._new = [each for each in of_change if each.is_new]
        self._old = [each for each in of_change if not each.is_new]
        self._namespaces = {each.identity[1] for each in self._new}
        self._all: list[_Adopter] | None = None
        # The objects by adopter, and by whether the cluster in the result includes the adoption.
        self.found: dict[tuple[_Identity, bool], list[str]] = {}

    def owned(self, kind: str, record: Any, labels_before: Mapping[str, str] | None) -> Any:
        """An object of the cluster, owned by a new controller if one adopts it."""
        metadata = record.metadata
        if labels_before is None and metadata.namespace not in self._namespaces:
            return record
        if controller_of(metadata) is not None or metadata.deletion_timestamp is not None:
            return record
        if (kind, metadata.namespace, metadata.name) in self._planned or (kind == "Pod" and record.is_terminal):
            return record
        for adopter in self._new:
            if adopter.adopts(kind, metadata, metadata.labels):
                objects = self.found.setdefault((adopter.identity, True), [])
                objects.append(f"{kind} {metadata.namespace}/{metadata.name}")
                return adopter.owning(record)
        if labels_before is not None and labels_before != metadata.labels:
            self.find_owner(kind, metadata, labels_before)
        return record

    def find_owner(self, kind: str, metadata: ObjectMeta, labels_before: Mapping[str, str] | None = None) -> None:
        """Find the controller that adopts an object that is new or has new labels, if any."""
        if controller_of(metadata) is not None:
            return
        if self._all is None:
            self._all = [*self._new, *self._old, *self._unchanged()]
        for adopter in self._all:
            matched_before = labels_before is not None and adopter.adopts(kind, metadata, labels_before)
            if not matched_before and adopter.adopts(kind, metadata, metadata.labels):
                objects = self.found.setdefault((adopter.identity, False), [])
                objects.append(f"{kind} {metadata.namespace}/{metadata.name}")
                return

    def adoption(self, identity: _Identity, is_owned: bool, objects: list[str]) -> Adoption:
        """The adoption by a controller."""
        kind, namespace, name = identity
        owner = f"{kind} {namespace}/{name}"
        change = owner if identity in self._planned else objects[0]
        if is_owned:
            return Adoption(owner=owner, objects=objects, change=change)
        (adopter,) = (each for each in self._all or () if each.identity == identity)
        if adopter.size is None or kind == "Deployment":
            return Adoption(owner=owner, objects=objects, change=change, surplus=len(objects))
        own = sum(
            (reference := controller_of(pod.metadata)) is not None
            and (reference.kind, pod.metadata.namespace, reference.name) == identity
            and not pod.is_terminal
            for pod in self._cluster.pods
        )
        surplus = min(max(own + len(objects) - adopter.size, 0), len(objects))
        return Adoption(owner=owner, objects=objects, change=change, surplus=surplus)

    def _of_change(self, workload: PlannedWorkload) -> _Adopter | None:
        if workload.after is None:
            return None
        selector = self._selector(workload.kind, workload.after)
        if selector is None:
            return None
        before = self._selector(workload.kind, workload.before) if workload.before is not None else None
        spec, metadata = mapping_in(workload.after, "spec"), mapping_in(workload.after, "metadata")
        replicas = spec.get("replicas", 1) if workload.kind not in ("DaemonSet", "Job") else None
        return _Adopter(
            identity=(workload.kind, workload.namespace, workload.name),
            selector=selector,
            uid=str(metadata.get("uid") or ""),
            size=replicas if isinstance(replicas, int) else None,
            is_new=selector != before,
        )

    def _selector(self, kind: str, document: Document) -> LabelSelector | None:
        """The selector of a workload; ``None`` for a Job, for which the API server generates one."""
        spec = mapping_in(document, "spec")
        if kind == "Job" and spec.get("manualSelector") is not True:
            return None
        record: Any = self._decode(kind, document)
        if kind != "ReplicationController":
            selector: LabelSelector | None = record.spec.selector
            return selector
        # Without a selector, the API server uses the template's labels.
        labels = record.spec.selector or mapping_in(spec, "template", "metadata", "labels")
        return LabelSelector(match_labels=labels) if labels else None

    def _unchanged(self) -> Iterator[_Adopter]:
        """The cluster's controllers that the change does not include."""
        for kind in _KINDS:
            for record in getattr(self._cluster, CLUSTER_KINDS[kind].field):
                metadata, selector = record.metadata, record.spec.selector
                if isinstance(selector, dict):
                    selector = LabelSelector(match_labels=selector)
                identity = (kind, metadata.namespace, metadata.name)
                # Without a selector it is unknown what the controller adopts.
                if identity in self._planned or selector is None or selector.is_empty():
                    continue
                replicas = 1 if record.spec.replicas is None else record.spec.replicas
                size = replicas if kind not in ("DaemonSet", "Job") else None
                yield _Adopter(identity, selector, metadata.uid, size, is_new=False)
