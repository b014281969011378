"""Kueue's objects in a cluster, as plain data and in dumps, and what is not modeled.

A dump keeps only the fields that are read here, and no environments, commands or annotations of other programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from kpreempt.analysis.remedies.edits import edited, merge_patched
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import ExtraFields, ObjectKind
from kpreempt.model.kueue import (
    ADMISSION_GATED_BY,
    ELASTIC,
    KUEUE_GROUP,
    PRIORITY_BOOST,
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    Topology,
    Workload,
)
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, Outcomes, adjusted
from kpreempt.schedulers.kueue.cluster_queues import MULTIKUEUE, PROVISIONING
from kpreempt.schedulers.kueue.objects import GATES
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.remedies import ObjectEdit

_RECORDS: dict[str, type[msgspec.Struct]] = {
    "cluster_queues": ClusterQueue,
    "cohorts": Cohort,
    "local_queues": LocalQueue,
    "flavors": ResourceFlavor,
    "topologies": Topology,
    "checks": AdmissionCheck,
    "workloads": Workload,
}
_NAMESPACED = (LocalQueue, Workload)
_FIELDS = {record.__name__: field for field, record in _RECORDS.items()}


_KINDS = {
    field: ObjectKind(
        record.__name__,
        KUEUE_GROUP,
        "v1beta2",
        "topologies" if record is Topology else "",
        is_namespaced=record in _NAMESPACED,
    )
    for field, record in _RECORDS.items()
}
# The kinds to read from a cluster.
KUEUE_EXTRAS = ExtraFields(
    (
        *_KINDS.values(),
        ObjectKind("WorkloadPriorityClass", KUEUE_GROUP, "v1beta2", "workloadpriorityclasses", is_namespaced=False),
    )
)


KUEUE_KINDS = tuple(each.key for each in KUEUE_EXTRAS.kinds)


class KueueSettings(NamedTuple):
    """The configuration of Kueue's manager, what is assumed of it, and queues that replace the cluster's."""

    config: KueueConfiguration
    assumptions: list[Assumption]
    queues: list[tuple[str, Any]] = []


class DecodeDocument(Protocol):
    """Decodes plain data into a record."""

    def __call__(self, kind: str, record: type[msgspec.Struct], document: dict[str, Any], *, source: str = "") -> Any:
        """Decode one object. Raises ``InputError``."""


def kueue_objects(cluster: ClusterSnapshot, decode: DecodeDocument, *, source: str = "") -> KueueObjects:
    """Kueue's objects in a cluster that was read with ``KUEUE_EXTRAS``. Raises ``InputError``."""
    found: dict[str, Any] = {}
    for field, record in _RECORDS.items():
        documents = cluster.documents.get(_KINDS[field].key, ())
        found[field] = [decode(record.__name__, record, each, source=source) for each in documents]
    return adjusted(KueueObjects(cluster=cluster, **found))


def decode_queueing(document: dict[str, Any], decode: DecodeDocument, *, source: str = "") -> tuple[str, Any] | None:
    """The field and record of a Kueue object; ``None`` for any other. Raises ``InputError``."""
    if not str(document.get("apiVersion", "")).startswith(f"{KUEUE_GROUP}/"):
        return None
    for field, record in _RECORDS.items():
        if document.get("kind") == record.__name__:
            return field, decode(record.__name__, record, document, source=source)
    return None


def with_objects(objects: KueueObjects, changed: Iterable[tuple[str, Any]]) -> KueueObjects:
    """The objects with some added, replacing those with the same name."""
    for field, record in changed:
        meta = record.metadata
        name = (meta.namespace, meta.name)
        others = [each for each in getattr(objects, field) if (each.metadata.namespace, each.metadata.name) != name]
        objects = msgspec.structs.replace(objects, **{field: [*others, record]})
    return adjusted(objects)


def document_of(objects: KueueObjects, name: str) -> dict[str, Any]:
    """A Kueue object (``ClusterQueue a``) as the cluster stores it. Raises ``KeyError``."""
    kind, _, rest = name.partition(" ")
    namespace, _, own = rest.rpartition("/")
    field = _FIELDS[kind]
    for document in objects.cluster.documents.get(_KINDS[field].key, ()):
        metadata = document.get("metadata", {})
        if (metadata.get("namespace", ""), metadata.get("name")) == (namespace, own):
            return document
    for record in getattr(objects, field):
        if (record.metadata.namespace, record.metadata.name) == (namespace, own):
            return {"kind": kind, **_plain(record)}
    raise KeyError(name)


def with_edits(objects: KueueObjects, edits: Iterable[ObjectEdit], decode: DecodeDocument) -> KueueObjects:
    """The objects after edits of Kueue's objects and of namespaces. Raises ``InputError``."""
    documents: dict[str, dict[str, Any]] = {}
    others = []
    for edit in edits:
        if edit.object.partition(" ")[0] not in _FIELDS:
            others.append(edit)
        elif edit.creates:
            documents[edit.object] = edit.patch
        else:
            before = documents.get(edit.object) or document_of(objects, edit.object)
            documents[edit.object] = merge_patched(before, edit.patch)
    changed = []
    for name, document in documents.items():
        kind = name.partition(" ")[0]
        changed.append((_FIELDS[kind], decode(kind, record_of(kind), document)))
    cluster = edited(objects.cluster, others) if others else objects.cluster
    return with_objects(msgspec.structs.replace(objects, cluster=cluster), changed)


def record_of(kind: str) -> type[msgspec.Struct]:
    """The record type of a kind. Raises ``KeyError``."""
    return {each.__name__: each for each in _RECORDS.values()}[kind]


_ANNOTATIONS = frozenset({ADMISSION_GATED_BY, ELASTIC, PRIORITY_BOOST})
_PRIORITY_CLASS = "WorkloadPriorityClass"
# Renames a record.
Redact = Callable[[Any], Any]


def recorded_kueue(
    cluster: ClusterSnapshot, decode: DecodeDocument, redact: Redact | None = None
) -> list[dict[str, Any]]:
    """Kueue's objects of a cluster that was read with ``KUEUE_EXTRAS``, as stored in a dump. Raises ``InputError``.

    ``redact`` renames the ``redactable`` ones; nothing else is kept then.
    """
    if redact is not None:
        return [
            {"apiVersion": f"{KUEUE_GROUP}/v1beta2", "kind": type(each).__name__, **_plain(redact(each))}
            for each in redactable(cluster, decode)
        ]
    return [
        _recorded(kind.kind, document, decode)
        for kind in KUEUE_EXTRAS.kinds
        for document in cluster.documents.get(kind.key, ())
    ]


def redactable(cluster: ClusterSnapshot, decode: DecodeDocument) -> list[Any]:
    """The records of Kueue's objects, with only those annotations that are read. Raises ``InputError``."""
    return [
        _trimmed(decode(kind.kind, record_of(kind.kind), document))
        for kind in KUEUE_EXTRAS.kinds
        if kind.kind != _PRIORITY_CLASS
        for document in cluster.documents.get(kind.key, ())
    ]


def _trimmed(record: Any) -> Any:
    meta = record.metadata
    annotations = {key: each for key, each in meta.annotations.items() if key in _ANNOTATIONS}
    return msgspec.structs.replace(record, metadata=msgspec.structs.replace(meta, annotations=annotations))


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record, enc_hook=str)
    return found


def _recorded(kind: str, document: dict[str, Any], decode: DecodeDocument) -> dict[str, Any]:
    head = {"apiVersion": document["apiVersion"], "kind": document["kind"]}
    if kind == _PRIORITY_CLASS:
        return {**head, "metadata": {"name": document["metadata"]["name"]}, "value": document.get("value")}
    return {**head, **_plain(_trimmed(decode(kind, record_of(kind), document)))}


# The origin of a Workload that was created from several pods of a manifest.
POD_GROUP = "pod group"
# What Kueue's second pass on an admitted Workload would change, by controller of an admission check.
_SECOND_PASS = {
    PROVISIONING: "it may provision new nodes, which is not modeled",
    MULTIKUEUE: "its Workloads run in another cluster, which is not modeled",
}


def assumed_of(objects: KueueObjects, config: KueueConfiguration) -> list[Assumption]:
    """What is not evaluated, with the object that has it."""
    found = [
        Assumption("KueueConfiguration", f"featureGates.{gate}", "this feature gate is not modeled")
        for gate in sorted(config.feature_gates.keys() - GATES.keys())
    ]
    controllers = {each.metadata.name: each.spec.controller_name for each in objects.checks}
    for queue in objects.cluster_queues:
        found += _of_queue(queue, controllers)
    for workload in objects.workloads:
        found += _of_workload(workload)
    return found


def _of_queue(queue: ClusterQueue, controllers: Mapping[str, str]) -> Iterator[Assumption]:
    subject = f"ClusterQueue {queue.name}"
    strategy = queue.spec.admission_checks_strategy.admission_checks
    for check in dict.fromkeys([*queue.spec.admission_checks, *(each.name for each in strategy)]):
        if message := _SECOND_PASS.get(controllers.get(check, "")):
            yield Assumption(subject, f"AdmissionCheck {check}", message)
    if queue.spec.admission_scope is not None:
        message = "the usage of its LocalQueues is only known to the manager, and is ignored"
        yield Assumption(subject, "spec.admissionScope", message)
    if queue.spec.concurrent_admission_policy is not None:
        yield Assumption(subject, "spec.concurrentAdmissionPolicy", "variants of Workloads are not modeled")


def _of_workload(workload: Workload) -> Iterator[Assumption]:
    subject = f"Workload {workload.key}"
    if workload.spec.preemption_gates:
        yield Assumption(subject, "spec.preemptionGates", "gates are ignored: it is assumed to preempt")
    if workload.metadata.annotations.get(ELASTIC) == "true":
        yield Assumption(subject, f"metadata.annotations.{ELASTIC}", "slices of Workloads are not modeled")
    if workload.status.unhealthy_nodes:
        yield Assumption(subject, "status.unhealthyNodes", "the replacement of nodes is not modeled")
    groups: dict[str, int] = {}
    for index, each in enumerate(workload.spec.pod_sets):
        request = each.topology_request
        path = f"spec.podSets[{index}]"
        if request is not None and request.podset_slice_required_topology_constraints:
            field = f"{path}.topologyRequest.podsetSliceRequiredTopologyConstraints"
            yield Assumption(subject, field, "slices in several layers are not modeled")
        if request is not None and request.pod_set_group_name is not None:
            groups[request.pod_set_group_name] = groups.get(request.pod_set_group_name, 0) + 1
            if groups[request.pod_set_group_name] == 2:
                message = "leaders are placed with their group, and their own capacity is not counted"
                yield Assumption(subject, f"{path}.topologyRequest.podSetGroupName", message)
        if each.template.spec.resource_claims:
            yield Assumption(
                subject, f"{path}.template.spec.resourceClaims", "Kueue's quota for devices is not modeled"
            )


def assumed_of_chance(outcomes: Outcomes) -> list[Assumption]:
    """The assumption that one of several outcomes was used, or that not all are known."""
    if not outcomes.alternatives and outcomes.are_all:
        return []
    message = "some heads or shares are tied, and their order is random; the answer lists every outcome found"
    if not outcomes.are_all:
        message += ", and there may be more"
    return [Assumption("Kueue", "order of ties", message, AssumptionKind.UNCERTAIN)]


def assumed_of_outcomes(outcomes: Outcomes) -> list[Assumption]:
    """The same, and the assumption that more would happen than was simulated."""
    found = assumed_of_chance(outcomes)
    if outcomes.is_cut:
        message = f"the simulation ends after cycle {len(outcomes.cycles)}, but more would happen"
        found.append(Assumption("Kueue", "cycles", message, AssumptionKind.UNCERTAIN))
    return found


def assumed_of_memory() -> Assumption:
    """The assumption that the manager has just started."""
    message = (
        "the manager is assumed to have just started; flavors already tried, preemptions in progress and inadmissible"
        " Workloads are unknown"
    )
    return Assumption("Kueue", "memory", message, AssumptionKind.INFORMATIONAL)


def assumed_of_default(why: str) -> Assumption:
    """The assumption that the manager has the default configuration, and why."""
    message = f"{why}; the manager is assumed to have the default configuration"
    return Assumption("KueueConfiguration", "fairSharing", message)


def assumed_of_made(workload: Workload, origin: str) -> list[Assumption]:
    """What is unknown about a Workload that does not exist yet, and about its origin."""
    subject = f"Workload {workload.key}"
    found = []
    if workload.metadata.creation_timestamp is None:
        message = (
            "the Workload is assumed to be created now, after all other Workloads with the same priority; ties within"
            " a second are broken by UID"
        )
        found.append(Assumption(subject, "metadata.uid", message, AssumptionKind.INFORMATIONAL))
    if origin.startswith(POD_GROUP) and len(workload.spec.pod_sets) > 1:
        message = "Kueue orders the roles of a pod group by hash; here they are ordered by annotation or by name"
        found.append(Assumption(subject, "spec.podSets", message, AssumptionKind.UNCERTAIN))
    return found
