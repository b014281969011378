"""Objects without pods, laid over the cluster: budgets, priority classes, services, volumes and the like."""

from __future__ import annotations

from collections.abc import Iterator, Set
from copy import deepcopy
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.admission import admit_claim, apply_object_defaults
from kpreempt.analysis.check.rollout.apply import below
from kpreempt.analysis.check.rollout.cluster_documents import ClusterObjects, record_document
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS, ClusterKind
from kpreempt.analysis.check.rollout.records import ManifestDocument
from kpreempt.analysis.check.rollout.shape import position
from kpreempt.analysis.document_reader import Document, describe, mapping_in, mappings_in
from kpreempt.analysis.questions import Decode
from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import Candidates, Scales, Selected, failed_status, sync_budget
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus
from kpreempt.model.workloads import ResourceQuota, ResourceQuotaStatus
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change, ChangeKind

_FIELDS_SHOWN = 5
# What a manifest says as a whole, so that a part that it lacks is gone. Of all else the server has filled in what the
# manifest lacks, or somebody else has.
_WHOLE = {
    "PodDisruptionBudget": ("spec",),
    "LimitRange": ("spec",),
    "ResourceQuota": ("spec",),
    "RuntimeClass": ("overhead", "scheduling"),
    "DeviceClass": ("spec",),
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec",),
    "PriorityClass": ("value", "globalDefault"),
}
_IMMUTABLE = {
    "PriorityClass": ("value", "preemptionPolicy"),
    "StorageClass": ("provisioner", "volumeBindingMode", "allowedTopologies"),
    "RuntimeClass": ("handler",),
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec",),
}


class Overlay:
    """The cluster as the objects of a change come in, one after the other."""

    def __init__(self, cluster: ClusterSnapshot, objects: ClusterObjects, decode: Decode) -> None:
        self.assumptions: list[Assumption] = []
        self._cluster = cluster
        self._objects = objects
        self._decode = decode
        self._changed_budgets: set[tuple[str, str]] = set()
        # By field of the cluster, and by namespace and name: the new record, or ``None`` for one that is gone.
        self._new: dict[str, dict[tuple[str, str], Any]] = {}

    def add(self, given: ManifestDocument, kind: ClusterKind, removed_labels: Set[str] = frozenset()) -> Change:
        """Lay an object over the cluster, without some labels. Raises ``InputError`` if it is not what its kind has."""
        document, metadata = given.document, given.document["metadata"]
        subject, name, namespace = describe(document), metadata["name"], metadata.get("namespace", "")
        before = self._objects.find(kind.name, namespace, name)
        laid_over = _laid_over(document, kind.name, before, removed_labels)
        record = self._decode(kind.name, laid_over, source=given.source, line=given.line)
        if before is None:
            # The API server taints a new node as not ready, and a manifest is no machine: no pod ever runs there.
            if kind.name != "Node":
                self.put(kind.name, self._as_stored(record, None, []))
            return Change(object=subject, kind=ChangeKind.CREATED, **position(given))
        fields = list(_changed_paths(self._as_served(kind.name, before), record))
        immutable = [path for path in fields if path.startswith(_IMMUTABLE.get(kind.name, ("\0",)))]
        if immutable:
            message = "cannot be changed in the API, so that the apply is refused; assumed to be made anew"
            self.assumptions.append(Assumption(subject, immutable[0], message))
        if kind.name == "Node" and _evicts(record, before):
            message = "a taint that evicts is not simulated: pods that do not tolerate it stay here"
            self.assumptions.append(Assumption(subject, "spec.taints", message))
        if fields:
            self.put(kind.name, self._as_stored(record, before, fields))
        change_kind = ChangeKind.UPDATED if fields else ChangeKind.UNCHANGED
        return Change(object=subject, kind=change_kind, fields=fields[:_FIELDS_SHOWN], **position(given))

    def put(self, kind: str, record: Any) -> None:
        """Lay a record over the cluster, in the place of the one of its name."""
        self._of(kind)[record.metadata.namespace, record.metadata.name] = record

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Take an object out of the cluster."""
        self._of(kind)[namespace, name] = None

    def cluster(self) -> ClusterSnapshot:
        """The cluster with all that was added and removed.

        A budget whose terms are new has the status that the disruption controller gives it at once, while the pods are
        still those from before.
        """
        fields: dict[str, Any] = {}
        for field, new in self._new.items():
            waiting = dict(new)
            kept = []
            for record in getattr(self._cluster, field):
                latest = waiting.pop((record.metadata.namespace, record.metadata.name), record)
                if latest is not None:
                    kept.append(latest)
            fields[field] = [*kept, *(each for each in waiting.values() if each is not None)]
        cluster = msgspec.structs.replace(self._cluster, **fields) if fields else self._cluster
        return self._with_statuses(cluster) if self._changed_budgets else cluster

    def _with_statuses(self, cluster: ClusterSnapshot) -> ClusterSnapshot:
        scales = Scales(cluster)
        candidates = Candidates(cluster.pods)
        budgets = []
        for budget in cluster.pod_disruption_budgets:
            is_changed = (budget.metadata.namespace, budget.metadata.name) in self._changed_budgets
            budgets.append(
                self._with_status(budget, candidates.of(budget), scales, cluster.taken_at) if is_changed else budget
            )
        return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets)

    def _with_status(
        self, budget: PodDisruptionBudget, selected: Selected, scales: Scales, now: datetime | None
    ) -> PodDisruptionBudget:
        subject = f"PodDisruptionBudget {budget.key}"
        try:
            sync = sync_budget(budget, selected, scales.scale_of, now)
        except SyncError as error:
            message = f"the disruption controller can compute none ({error.message}), so that 0 may be disrupted"
            self.assumptions.append(Assumption(subject, "status", message))
            return msgspec.structs.replace(budget, status=failed_status(budget))
        guessed = [f"{each.kind} {each.namespace}/{each.name}" for each in sync.scales if each.is_guessed]
        if guessed:
            message = f"counted by pods, as {', '.join(guessed)} is not in the input"
            self.assumptions.append(Assumption(subject, "status", message))
        return msgspec.structs.replace(budget, status=sync.status)

    def _of(self, kind: str) -> dict[tuple[str, str], Any]:
        return self._new.setdefault(CLUSTER_KINDS[kind].field, {})

    def _as_stored(self, record: Any, before: Any | None, fields: list[str]) -> Any:
        """A record as the API server and the controllers have it once it is applied."""
        if isinstance(record, PersistentVolumeClaim) and before is None:
            return admit_claim(record, self._cluster)
        if isinstance(record, PersistentVolume) and before is None:
            return msgspec.structs.replace(record, status=PersistentVolumeStatus(phase="Available"))
        if any(path.startswith("spec") for path in fields):
            metadata = msgspec.structs.replace(record.metadata, generation=record.metadata.generation + 1)
            record = msgspec.structs.replace(record, metadata=metadata)
        if isinstance(record, ResourceQuota):
            hard, used = record.spec.hard, record.status.used
            status = ResourceQuotaStatus(hard=hard, used={key: used[key] for key in used if key in hard})
            record = msgspec.structs.replace(record, status=status)
        if isinstance(record, PodDisruptionBudget) and (before is None or record.spec != before.spec):
            self._changed_budgets.add((record.metadata.namespace, record.metadata.name))
        return apply_object_defaults(record)

    def _as_served(self, kind: str, record: Any) -> Any:
        """A record as the API server has it; a dump may hold one that no server has seen."""
        if kind != "LimitRange":
            return record
        document = record_document(kind, record)
        _fill_limit_range(document)
        return self._decode(kind, document)


def _evicts(node: Any, before: Any) -> bool:
    """Whether pods have to go for a taint of the node that was not there."""
    return any(each.effect == "NoExecute" and each not in before.spec.taints for each in node.spec.taints)


def _laid_over(document: Document, kind: str, before: Any | None, removed_labels: Set[str]) -> Document:
    """The manifest over what is there, without a status, which the API server does not take from it."""
    wanted = deepcopy({key: each for key, each in document.items() if key != "status"})
    metadata = wanted["metadata"]
    if kind == "LimitRange":
        _fill_limit_range(wanted)
    if before is None:
        kept = ("name", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
        return {**wanted, "metadata": {key: each for key, each in metadata.items() if key in kept}}
    there = record_document(kind, before)
    if kind == "LimitRange":
        _fill_limit_range(there)
    if kind == "Service":
        # A selector that the manifest lacks is taken away, and an ExternalName does not use one.
        mapping_in(there, "spec").pop("selector", None)
        if mapping_in(wanted, "spec").get("type") == "ExternalName":
            wanted["spec"].pop("selector", None)
    result = _merged(wanted, {key: each for key, each in there.items() if key not in _WHOLE.get(kind, ())})
    own = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key) is not None}
    result["metadata"] = _merged(own, there["metadata"])
    if removed_labels:
        labels = result["metadata"].get("labels", {})
        result["metadata"]["labels"] = {key: labels[key] for key in labels if key not in removed_labels}
    return result


def _merged(wanted: Document, there: Document) -> Document:
    result = dict(there)
    for key, value in wanted.items():
        below_there = there.get(key)
        if isinstance(value, dict) and isinstance(below_there, dict) and key != "selector":
            result[key] = _merged(value, below_there)
        elif value is not None:
            result[key] = value
    return result


def _fill_limit_range(document: Document) -> None:
    """What the API server fills in to a LimitRange: defaults from bounds (``SetDefaults_LimitRangeItem``)."""
    for item in mappings_in(mapping_in(document, "spec"), "limits"):
        if item.get("type") == "Container":
            limits = {**mapping_in(item, "max"), **mapping_in(item, "default")}
            requests = {**mapping_in(item, "min"), **limits, **mapping_in(item, "defaultRequest")}
            item.update({"default": limits, "defaultRequest": requests})


def _changed_paths(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The paths at which two records differ; lists count as a whole."""
    if isinstance(before, msgspec.Struct) and type(before) is type(after):
        for field in msgspec.structs.fields(before):
            name = field.name
            yield from _changed_paths(getattr(before, name), getattr(after, name), below(path, field.encode_name))
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _changed_paths(before.get(key), after.get(key), below(path, key))
    elif before != after:
        yield path
