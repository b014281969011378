"""Objects of a change that create no pods.

Objects of kinds that a snapshot holds (budgets, priority classes, services, volumes and so on) are applied to the
cluster. For other kinds it determines whether the change alters the object, and which pods an admission webhook
affects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from typing import Any

import msgspec

from kpreempt.admission import admit_claim, apply_object_defaults
from kpreempt.admission.policies.matching import selector_of
from kpreempt.analysis.check.rollout.apply import below, last_applied
from kpreempt.analysis.check.rollout.autoscalers import is_autoscaler
from kpreempt.analysis.check.rollout.cluster_documents import ClusterObjects, LiveDocuments, laid_over, record_document
from kpreempt.analysis.check.rollout.kept_documents import alike
from kpreempt.analysis.check.rollout.kinds import (
    ADMISSION,
    CLUSTER_KINDS,
    MUTATING,
    POD_OWNERS,
    is_mutating,
    makes_no_pods,
    unknown_effect,
)
from kpreempt.analysis.check.rollout.records import ManifestDocument, position
from kpreempt.analysis.check.rollout.removed_apis import removed_in
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.pod_inputs import Decode
from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import Candidates, Scales, failed_status, sync_budget
from kpreempt.model.cluster import ClusterSnapshot, KindState, Unread, state_of
from kpreempt.model.documents import group_of, mapping_in, mappings_in
from kpreempt.model.kinds import Kind
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import replace_in
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus
from kpreempt.model.workloads import ResourceQuota, ResourceQuotaStatus
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.unread import LIST, why_unread

_POLICY = "MutatingAdmissionPolicy"
_DEFINITIONS = "apiextensions.k8s.io"
# Removed in Kubernetes 1.25 without a replacement.
# Always reported, even if unchanged: other objects depend on it, or it is not an object of a cluster.
_ALWAYS_REPORTED = frozenset(
    {
        ("kustomize.config.k8s.io", "Kustomization"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
    }
)
_NAMES_SHOWN = 3
_OWN_GROUPS = {group for kind in CLUSTER_KINDS.values() for group in kind.groups} | {
    group for groups in POD_OWNERS.values() for group in groups
}
_NOT_COMPARED = ("apiVersion", "kind", "metadata", "status")


def is_unchanged(document: Document, live: Document) -> bool:
    """Whether ``kubectl apply`` leaves an object of any kind unchanged; its defaults are unknown.

    Fields that only the cluster has remain if they are known not to have been applied. Lists are compared as one value.
    """
    last = last_applied(live)

    def compared(of: Document) -> Document:
        metadata = mapping_in(of, "metadata")
        own = {key: mapping_in(metadata, key) for key in ("labels", "annotations")}
        return {**{key: each for key, each in of.items() if key not in _NOT_COMPARED}, "metadata": own}

    return _is_unchanged_mapping(compared(document), compared(live), compared(last) if last is not None else None)


def _is_unchanged_mapping(manifest: Document, live: Document, last: Document | None) -> bool:
    """Without a last applied manifest (``None``), fields that only the cluster has count as changes."""
    if any(not _is_unchanged_field(value, live.get(key), key, last) for key, value in manifest.items()):
        return False
    removed = live.keys() - manifest.keys()
    return not (removed if last is None else {key for key in removed if last.get(key) is not None})


def _is_unchanged_field(manifest: Any, live: Any, key: str, last: Document | None) -> bool:
    if isinstance(manifest, dict) and isinstance(live, dict):
        return _is_unchanged_mapping(manifest, live, None if last is None else mapping_in(last, key))
    return type(manifest) is type(live) and bool(manifest == live)


class OtherObjects:
    """Collects the objects of a change whose kinds no snapshot holds."""

    def __init__(self, live: LiveDocuments, cluster: ClusterSnapshot, minor: int) -> None:
        """``live`` has the cluster's objects of these kinds; ``minor`` is the minor version of the API server."""
        self._live = live
        self._minor = minor
        self._cluster = cluster
        self._new: list[Document] = []
        self._webhooks = {
            webhook.name: webhook
            for kind in MUTATING
            for each in live.other_kinds(ADMISSION, kind)
            # These kinds are cluster-scoped, even if a document names a namespace.
            if (webhook := pod_webhook(each, f"{kind} {each['metadata']['name']}")) is not None
        }

    def take(self, given: ManifestDocument) -> list[Change]:
        """Add an object; return its change if it is unchanged or an autoscaler, else an empty list."""
        document = given.document
        live = self._live.find_other(document)
        if (
            (group_of(document), document["kind"]) not in _ALWAYS_REPORTED
            and live is not None
            and is_unchanged(alike(document, live), live)
        ):
            return [Change(object=describe(document), kind=ChangeKind.UNCHANGED, **position(given))]
        self._new.append(document)
        if not is_autoscaler(document):
            return []
        is_new = live is None and state_of(self._cluster, document["kind"]) is KindState.READ
        kind = ChangeKind.CREATED if is_new else ChangeKind.UPDATED
        return [Change(object=describe(document), kind=kind, **position(given))]

    def assumptions(self, of_autoscaler: Callable[[Document], str]) -> list[Assumption]:
        """What is unknown; ``of_autoscaler`` returns what is unknown about a new or changed autoscaler."""
        found: dict[Assumption, None] = {}
        missing: dict[tuple[str, str], list[str]] = {}
        with_pods: set[tuple[str, str]] = set()
        for document in self._new:
            subject = describe(document)
            if is_mutating(document) or self._is_not_served(document):
                continue
            key = (group_of(document), str(document["kind"]))
            if is_autoscaler(document):
                if not (message := of_autoscaler(document)):
                    continue
                # Only its bounds matter, and those are part of the change.
                if state_of(self._cluster, key[1]) is not KindState.UNREADABLE:
                    found[Assumption(subject, "spec", message)] = None
                    continue
            if key in _ALWAYS_REPORTED or self._is_known(*key):
                message, field = unknown_effect(document)
                found[Assumption(subject, field, message)] = None
            else:
                missing.setdefault(key, []).append(subject.partition(" ")[2])
                # A custom resource's group has a dot; Kubernetes' own groups have none, or end in its domain.
                is_custom = "." in key[0] and not key[0].endswith(".k8s.io")
                if not is_custom or _has_pod_template(mapping_in(document, "spec")):
                    with_pods.add(key)
        for key, names in missing.items():
            found[self._missing_kind(*key, names, has_pods=key in with_pods)] = None
        return list(found)

    def webhooks(self, namespaces: Sequence[Mapping[str, str] | None]) -> list[str]:
        """The webhooks and mutating policies that may change pods in one of the namespaces, given by their labels.

        ``None`` stands for unknown labels.
        """
        new = {
            subject: webhook
            for each in self._new
            if is_mutating(each) and (webhook := pod_webhook(each, subject := describe(each))) is not None
        }
        return [name for name, each in {**self._webhooks, **new}.items() if each.may_reach(namespaces)]

    def autoscalers(self) -> list[Document]:
        """The new or changed HorizontalPodAutoscalers."""
        return [each for each in self._new if is_autoscaler(each)]

    def _is_not_served(self, document: Document) -> bool:
        """Whether the API server rejects the object because it does not serve its kind in this version anymore."""
        removed = removed_in(str(document.get("apiVersion")), str(document["kind"]))
        return removed is not None and removed <= self._minor and not is_autoscaler(document)

    def _is_known(self, group: str, kind: str) -> bool:
        """Whether the input has all objects of the kind, so that a missing one is new."""
        if self._unread(group, kind) is not None:
            return False
        return kind in self._cluster.skipped or bool({kind, _label(group, kind)} & {*self._cluster.listed})

    def _unread(self, group: str, kind: str) -> Unread | None:
        unread = self._cluster.unread
        return unread.get(_label(group, kind)) or unread.get(kind)

    def _missing_kind(self, group: str, kind: str, names: Sequence[str], *, has_pods: bool) -> Assumption:
        """The assumption for a kind of the change that the input has no objects of.

        Custom resources are informational, unless one has a pod template, because their controllers are not simulated.
        """
        more = len(names) - _NAMES_SHOWN
        shown = ", ".join([*names[:_NAMES_SHOWN], *([f"{more} more"] if more > 0 else [])])
        are = "is" if len(names) == 1 else "are"
        unknown = f"it is unknown whether {shown} {are} new or changed, and how pods are affected"
        unread = self._unread(group, kind)
        if unread is not None:
            # Custom resources are read one by one.
            why = why_unread(unread, "list" if kind in self._cluster.unread else "get")
            return Assumption(_label(group, kind), LIST, f"{why}, so {unknown}")
        # kubectl also accepts the singular, which is the kind in lower case unless its definition says otherwise.
        resource = ".".join(filter(None, (self._plural_of(group, kind) or kind.lower(), group)))
        message = f"the dump has none, so {unknown}; add them with kubectl get {resource} -A -o json"
        about = AssumptionKind.UNMODELED if has_pods else AssumptionKind.NOT_COMPARED
        return Assumption(_label(group, kind), LIST, message, about)

    def _plural_of(self, group: str, kind: str) -> str:
        """The plural of a custom resource according to its definition; empty if the input does not have it."""
        live = self._live.other_kinds(_DEFINITIONS, "CustomResourceDefinition")
        for each in (*self._new, *live):
            spec = mapping_in(each, "spec")
            names = mapping_in(spec, "names")
            if (group_of(each), spec.get("group"), names.get("kind")) == (_DEFINITIONS, group, kind):
                return str(names.get("plural") or "")
        return ""


def _has_pod_template(value: Any) -> bool:
    """Whether containers are listed anywhere in the value, as in a pod template."""
    open_values = [value]
    while open_values:
        each = open_values.pop()
        if isinstance(each, dict):
            containers = each.get("containers")
            if isinstance(containers, list) and any(
                isinstance(container, dict) and "image" in container for container in containers
            ):
                return True
            open_values += each.values()
        elif isinstance(each, list):
            open_values += each
    return False


def _label(group: str, kind: str) -> str:
    return ".".join(filter(None, (kind, group)))


class PodWebhook(msgspec.Struct, frozen=True):
    """A webhook or policy that may change pods or workloads, with the namespaces in which it applies."""

    name: str
    selectors: list[LabelSelector | None]

    def may_reach(self, namespaces: Sequence[Mapping[str, str] | None]) -> bool:
        """Whether it applies to one of these namespaces, given by their labels, or has no rules yet.

        ``None`` stands for unknown labels.
        """
        return bool(namespaces) and (
            not self.selectors
            or any(
                selector is None or labels is None or selector.matches(labels)
                for labels in namespaces
                for selector in self.selectors
            )
        )


def pod_webhook(document: Document, name: str) -> PodWebhook | None:
    """The webhook or policy if it may change pods, else ``None``.

    One without rules applies to nothing until its own controller adds them, so it affects no namespace yet.
    """
    if document.get("kind") == _POLICY:
        constraints, field = [mapping_in(document, "spec", "matchConstraints")], "resourceRules"
    else:
        constraints, field = list(mappings_in(document, "webhooks")), "rules"
        if len(constraints) != len(document.get("webhooks") or []):
            return PodWebhook(name, [None])
    found = [each for each in constraints if _covers_pods(each.get(field))]
    if not found and all(each.get(field) for each in constraints):
        return None
    return PodWebhook(name, [selector_of(each.get("namespaceSelector")) for each in found])


def _covers_pods(rules: Any) -> bool:
    """Whether rules include pods, workloads, or other built-in kinds that affect pods."""
    if not rules:
        return False
    if not isinstance(rules, list) or not all(isinstance(each, dict) for each in rules):
        return True
    return any(
        group == "*" or (group in _OWN_GROUPS and not makes_no_pods(group, resource.partition("/")[0]))
        for rule in rules
        for group in _texts(rule.get("apiGroups"))
        for resource in _texts(rule.get("resources"))
    )


def _texts(value: Any) -> Iterator[str]:
    """A value that is not a list of strings may match anything."""
    for each in value if isinstance(value, list) else ["*"]:
        yield each if isinstance(each, str) else "*"


_FIELDS_SHOWN = 5
# Fields for which the manifest is complete, so that a part it lacks is removed. Other fields may have been defaulted by
# the server or set by others.
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


class Overlay:
    """The cluster with the objects of a change applied one by one."""

    def __init__(self, cluster: ClusterSnapshot, objects: ClusterObjects, decode: Decode) -> None:
        self.assumptions: list[Assumption] = []
        self._cluster = cluster
        self._objects = objects
        self._decode = decode
        self._changed_budgets: set[tuple[str, str]] = set()
        # The new record, or ``None`` if it is deleted, by field of the cluster, and by namespace and name.
        self._new: dict[str, dict[tuple[str, str], Any]] = {}

    def add(self, given: ManifestDocument, kind: Kind, removed_labels: Set[str] = frozenset()) -> Change:
        """Apply an object, removing some labels. Raises ``InputError`` if it is invalid for its kind."""
        document, metadata = given.document, given.document["metadata"]
        subject, name, namespace = describe(document), metadata["name"], metadata.get("namespace", "")
        before = self._objects.find(kind.name, namespace, name)
        merged = _with_manifest(document, kind.name, before, removed_labels)
        record: Any = self._decode(kind.name, merged, source=given.source, line=given.line)
        if before is None:
            # The API server taints a new node as not ready, and a manifest creates no machine: no pod ever runs there.
            if kind.name != "Node":
                self.put(kind.name, self._as_stored(record, None, []))
            return Change(object=subject, kind=ChangeKind.CREATED, **position(given))
        served = before
        if kind.name == "LimitRange":
            # Apply the API server's defaults, because a dump may hold a LimitRange that no server has seen.
            current = record_document(kind.name, before)
            _fill_limit_range(current)
            served = self._decode(kind.name, current)
        fields = list(_changed_paths(served, record))
        if kind.name == "Node" and any(
            each.effect == "NoExecute" and each not in before.spec.taints for each in record.spec.taints
        ):
            message = "NoExecute evictions are not simulated: pods that do not tolerate the taint stay"
            self.assumptions.append(Assumption(subject, "spec.taints", message))
        if fields:
            self.put(kind.name, self._as_stored(record, before, fields))
        change_kind = ChangeKind.UPDATED if fields else ChangeKind.UNCHANGED
        return Change(object=subject, kind=change_kind, fields=fields[:_FIELDS_SHOWN], **position(given))

    def put(self, kind: str, record: Any) -> None:
        """Put a record into the cluster, in place of the one with the same name."""
        key = record.metadata.namespace, record.metadata.name
        self._new.setdefault(CLUSTER_KINDS[kind].field, {})[key] = record

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object from the cluster."""
        self._new.setdefault(CLUSTER_KINDS[kind].field, {})[namespace, name] = None

    def cluster(self) -> ClusterSnapshot:
        """The cluster with all added and removed objects.

        A PDB with a changed spec has the status that the disruption controller computes at once, from the pods before
        the change.
        """
        cluster = laid_over(self._cluster, self._new)
        return self._with_statuses(cluster) if self._changed_budgets else cluster

    def _with_statuses(self, cluster: ClusterSnapshot) -> ClusterSnapshot:
        scales, candidates = Scales(cluster), Candidates(cluster.pods)
        budgets = []
        for budget in cluster.pod_disruption_budgets:
            if (budget.metadata.namespace, budget.metadata.name) not in self._changed_budgets:
                budgets.append(budget)
                continue
            try:
                sync = sync_budget(budget, candidates.of(budget), scales.scale_of, cluster.taken_at)
            except SyncError as error:
                status = failed_status(budget)
                message = f"the disruption controller cannot compute it ({error.message}), so no disruption is allowed"
            else:
                status = sync.status
                guessed = [f"{each.kind} {each.namespace}/{each.name}" for each in sync.scales if each.is_guessed]
                message = f"computed from pods, because the input lacks {', '.join(guessed)}" if guessed else ""
            budgets.append(msgspec.structs.replace(budget, status=status))
            if message:
                self.assumptions.append(Assumption(f"PodDisruptionBudget {budget.key}", "status", message))
        return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets)

    def _as_stored(self, record: Any, before: Any | None, fields: list[str]) -> Any:
        """A record as the API server and the controllers store it after an apply."""
        if isinstance(record, PersistentVolumeClaim) and before is None:
            return admit_claim(record, self._cluster)
        if isinstance(record, PersistentVolume) and before is None:
            return msgspec.structs.replace(record, status=PersistentVolumeStatus(phase="Available"))
        if any(path.startswith("spec") for path in fields):
            record = replace_in(record, "metadata", generation=record.metadata.generation + 1)
        if isinstance(record, ResourceQuota):
            hard, used = record.spec.hard, record.status.used
            status = ResourceQuotaStatus(hard=hard, used={key: used[key] for key in used if key in hard})
            record = msgspec.structs.replace(record, status=status)
        if isinstance(record, PodDisruptionBudget) and (before is None or record.spec != before.spec):
            self._changed_budgets.add((record.metadata.namespace, record.metadata.name))
        return apply_object_defaults(record)


def _with_manifest(document: Document, kind: str, before: Any | None, removed_labels: Set[str]) -> Document:
    """Merge the manifest into the existing object; the API server ignores the manifest's status."""
    manifest = deepcopy({key: each for key, each in document.items() if key != "status"})
    metadata = manifest["metadata"]
    if kind == "LimitRange":
        _fill_limit_range(manifest)
    if before is None:
        fields = ("name", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
        return {**manifest, "metadata": {key: each for key, each in metadata.items() if key in fields}}
    current = record_document(kind, before)
    if kind == "LimitRange":
        _fill_limit_range(current)
    if kind == "Service":
        # A selector that the manifest lacks is removed, and an ExternalName does not use one.
        mapping_in(current, "spec").pop("selector", None)
        if mapping_in(manifest, "spec").get("type") == "ExternalName":
            manifest["spec"].pop("selector", None)
    result = _merged(manifest, {key: each for key, each in current.items() if key not in _WHOLE.get(kind, ())})
    own = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key) is not None}
    result["metadata"] = _merged(own, current["metadata"])
    if removed_labels:
        labels = result["metadata"].get("labels", {})
        result["metadata"]["labels"] = {key: labels[key] for key in labels if key not in removed_labels}
    return result


def _merged(manifest: Document, current: Document) -> Document:
    result = dict(current)
    for key, value in manifest.items():
        current_value = current.get(key)
        if isinstance(value, dict) and isinstance(current_value, dict) and key != "selector":
            result[key] = _merged(value, current_value)
        elif value is not None:
            result[key] = value
    return result


def _fill_limit_range(document: Document) -> None:
    """Apply the API server's defaults to a LimitRange (``SetDefaults_LimitRangeItem``)."""
    for item in mappings_in(mapping_in(document, "spec"), "limits"):
        if item.get("type") == "Container":
            limits = {**mapping_in(item, "max"), **mapping_in(item, "default")}
            requests = {**mapping_in(item, "min"), **limits, **mapping_in(item, "defaultRequest")}
            item.update({"default": limits, "defaultRequest": requests})


def _changed_paths(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The paths at which two records differ; lists are compared as one value."""
    if isinstance(before, msgspec.Struct) and type(before) is type(after):
        for field in msgspec.structs.fields(before):
            name = field.name
            yield from _changed_paths(getattr(before, name), getattr(after, name), below(path, field.encode_name))
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _changed_paths(before.get(key), after.get(key), below(path, key))
    elif before != after:
        yield path
