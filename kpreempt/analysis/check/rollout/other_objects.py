"""Objects of a change that make no pods.

Those of kinds that a snapshot holds are laid over the cluster: budgets, priority classes, services, volumes and the
like. Of others it is found out whether the change alters one, and which pods an admission webhook reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from typing import Any

import msgspec

from kpreempt.admission import admit_claim, apply_object_defaults
from kpreempt.analysis.check.rollout.apply import below, last_applied
from kpreempt.analysis.check.rollout.autoscalers import is_autoscaler
from kpreempt.analysis.check.rollout.cluster_documents import ClusterObjects, LiveDocuments, laid_over, record_document
from kpreempt.analysis.check.rollout.kept_documents import alike
from kpreempt.analysis.check.rollout.kinds import (
    ADMISSION,
    CLUSTER_KINDS,
    MUTATING,
    POD_OWNERS,
    group_of,
    is_mutating,
    makes_no_pods,
    plural_of,
    what_is_not_known,
)
from kpreempt.analysis.check.rollout.records import ManifestDocument, position
from kpreempt.analysis.document_reader import Document, describe, mapping_in, mappings_in
from kpreempt.analysis.questions import Decode
from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import Candidates, Scales, failed_status, sync_budget
from kpreempt.model.cluster import ClusterSnapshot, KindState, Unread, state_of
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
# What no comparison makes harmless: pods of other objects hang on it, or it is no object of a cluster.
_NEVER_TOLD = frozenset(
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
    """Whether ``kubectl apply`` leaves an object of any kind as it is; nothing is known of its defaults.

    What only the cluster has stays where it is known that it was never applied. Lists are alike as a whole.
    """
    last = last_applied(live)

    def compared(of: Document) -> Document:
        metadata = mapping_in(of, "metadata")
        own = {key: mapping_in(metadata, key) for key in ("labels", "annotations")}
        return {**{key: each for key, each in of.items() if key not in _NOT_COMPARED}, "metadata": own}

    return _is_left(compared(document), compared(live), compared(last) if last is not None else None)


def _is_left(desired: Document, live: Document, last: Document | None) -> bool:
    """``last`` is ``None`` where nothing is known of what was applied: then the cluster may have nothing more."""
    if any(not _is_left_field(value, live.get(key), key, last) for key, value in desired.items()):
        return False
    gone = live.keys() - desired.keys()
    return not (gone if last is None else {key for key in gone if last.get(key) is not None})


def _is_left_field(desired: Any, live: Any, key: str, last: Document | None) -> bool:
    if isinstance(desired, dict) and isinstance(live, dict):
        return _is_left(desired, live, None if last is None else mapping_in(last, key))
    return type(desired) is type(live) and bool(desired == live)


class OtherObjects:
    """The objects of a change that are of such kinds, as they come in."""

    def __init__(self, live: LiveDocuments, cluster: ClusterSnapshot) -> None:
        """``live`` has the objects that ``cluster`` has of kinds beyond those of snapshots."""
        self._live = live
        self._cluster = cluster
        self._new: list[Document] = []
        self._webhooks = {
            webhook.name: webhook
            for kind in MUTATING
            for each in live.others(ADMISSION, kind)
            # None of these kinds is in a namespace, whatever a document says.
            if (webhook := pod_webhook(each, f"{kind} {each['metadata']['name']}")) is not None
        }

    def take(self, given: ManifestDocument) -> list[Change]:
        """The object's change, if it stays as it is or is an autoscaler; what else is new or changed is remembered."""
        document = given.document
        live = self._live.find_other(document)
        if (
            (group_of(document), document["kind"]) not in _NEVER_TOLD
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

    def assumptions(
        self, namespaces: Sequence[Mapping[str, str] | None], of_autoscaler: Callable[[Document], str]
    ) -> list[Assumption]:
        """What is not known; ``namespaces`` are the labels of those in which pods are made, ``None`` if not known.

        ``of_autoscaler`` says what is not known of one that is new or changed.
        """
        found: dict[Assumption, None] = {}
        told = dict.fromkeys(name for name, each in self._webhooks.items() if each.may_reach(namespaces))
        lacking: dict[tuple[str, str], list[str]] = {}
        with_pods: set[tuple[str, str]] = set()
        for document in self._new:
            subject = describe(document)
            if is_mutating(document):
                webhook = pod_webhook(document, subject)
                # As those that are there already: they may change pods, and most leave requests as they are.
                told.update({subject: None} if webhook is not None and webhook.may_reach(namespaces) else {})
                continue
            key = (group_of(document), str(document["kind"]))
            if is_autoscaler(document):
                if not (message := of_autoscaler(document)):
                    continue
                # New or changed: its bounds are all that counts, and they are the change's.
                if state_of(self._cluster, key[1]) is not KindState.UNREADABLE:
                    found[Assumption(subject, "spec", message)] = None
                    continue
            if key in _NEVER_TOLD or self._is_known(*key):
                message, field = what_is_not_known(document)
                found[Assumption(subject, field, message)] = None
            else:
                lacking.setdefault(key, []).append(subject.partition(" ")[2])
                # A definition adds a group to the API: Kubernetes' own have no dot, or end in its domain.
                is_custom = "." in key[0] and not key[0].endswith(".k8s.io")
                if not is_custom or _has_pod_template(mapping_in(document, "spec")):
                    with_pods.add(key)
        for key, names in lacking.items():
            found[self._lacking(*key, names, has_pods=key in with_pods)] = None
        if told:
            message = f"may change pods as they are made, which is not evaluated: {', '.join(told)}"
            found[Assumption("admission", "webhooks", message, AssumptionKind.INFORMATIONAL)] = None
        return list(found)

    def autoscalers(self) -> list[Document]:
        """The HorizontalPodAutoscalers that are new or changed."""
        return [each for each in self._new if is_autoscaler(each)]

    def _is_known(self, group: str, kind: str) -> bool:
        """Whether an object of the kind that is not among the cluster's is not there."""
        if self._unread(group, kind) is not None:
            return False
        return kind in self._cluster.skipped or bool({kind, _label(group, kind)} & {*self._cluster.listed})

    def _unread(self, group: str, kind: str) -> Unread | None:
        unread = self._cluster.unread
        return unread.get(_label(group, kind)) or unread.get(kind)

    def _lacking(self, group: str, kind: str, names: Sequence[str], *, has_pods: bool) -> Assumption:
        """That nothing of a kind is in the input, though the change has it.

        Custom resources are the matter of their controllers, and are no more than told of, unless one says what its
        pods are like.
        """
        more = len(names) - _NAMES_SHOWN
        shown = ", ".join([*names[:_NAMES_SHOWN], *([f"{more} more"] if more > 0 else [])])
        unknown = f"whether {shown} {'is' if len(names) == 1 else 'are'} new or changed, and what follows for pods"
        unread = self._unread(group, kind)
        if unread is not None:
            # Custom resources are read one by one.
            why = why_unread(unread, "list" if kind in self._cluster.unread else "get")
            return Assumption(_label(group, kind), LIST, f"{why}, so {unknown}, is not known")
        resource = ".".join(filter(None, (plural_of(kind), group)))
        message = f"the cluster's dump has none: {unknown}, is not known; kubectl get {resource} -A -o json adds them"
        about = AssumptionKind.UNMODELED if has_pods else AssumptionKind.NOT_COMPARED
        return Assumption(_label(group, kind), LIST, message, about)


def _has_pod_template(value: Any) -> bool:
    """Whether containers are listed anywhere in it, as in a pod template."""
    open_values = [value]
    while open_values:
        each = open_values.pop()
        if isinstance(each, dict):
            containers = each.get("containers")
            if isinstance(containers, list) and any(isinstance(one, dict) and "image" in one for one in containers):
                return True
            open_values += each.values()
        elif isinstance(each, list):
            open_values += each
    return False


def _label(group: str, kind: str) -> str:
    return ".".join(filter(None, (kind, group)))


class PodWebhook(msgspec.Struct, frozen=True):
    """What may change pods, or the workloads that they come from, by its object's name; where it reaches them."""

    name: str
    selectors: list[LabelSelector | None]

    def may_reach(self, namespaces: Sequence[Mapping[str, str] | None]) -> bool:
        """Whether it is asked in one of the namespaces, given by labels, or its rules are not there yet.

        ``None`` are labels that are not known.
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
    """The webhook or policy where it may change pods, else ``None``.

    One without rules is asked of nothing, until its own controller fills them in: it reaches no namespace yet.
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
    return PodWebhook(name, [_selector(each.get("namespaceSelector")) for each in found])


def _covers_pods(rules: Any) -> bool:
    """Whether rules name pods, workloads, or something else of Kubernetes' own that decides about pods."""
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
    """What is not a list of texts may be anything."""
    for each in value if isinstance(value, list) else ["*"]:
        yield each if isinstance(each, str) else "*"


def _selector(value: Any) -> LabelSelector | None:
    """The selector, or ``None`` where it is not known what it selects; a missing one selects all."""
    try:
        found = msgspec.convert(value or {}, LabelSelector)
    except msgspec.ValidationError:
        return None
    return found if found.is_valid() else None


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

    def add(self, given: ManifestDocument, kind: Kind, removed_labels: Set[str] = frozenset()) -> Change:
        """Lay an object over the cluster, without some labels. Raises ``InputError`` if it is not what its kind has."""
        document, metadata = given.document, given.document["metadata"]
        subject, name, namespace = describe(document), metadata["name"], metadata.get("namespace", "")
        before = self._objects.find(kind.name, namespace, name)
        desired = _with_manifest(document, kind.name, before, removed_labels)
        record: Any = self._decode(kind.name, desired, source=given.source, line=given.line)
        if before is None:
            # The API server taints a new node as not ready, and a manifest is no machine: no pod ever runs there.
            if kind.name != "Node":
                self.put(kind.name, self._as_stored(record, None, []))
            return Change(object=subject, kind=ChangeKind.CREATED, **position(given))
        served = before
        if kind.name == "LimitRange":
            # As the API server has it; a dump may hold one that no server has seen.
            there = record_document(kind.name, before)
            _fill_limit_range(there)
            served = self._decode(kind.name, there)
        fields = list(_changed_paths(served, record))
        immutable = [path for path in fields if path.startswith(_IMMUTABLE.get(kind.name, ("\0",)))]
        if immutable:
            message = "cannot be changed in the API, so that the apply is refused; assumed to be made anew"
            self.assumptions.append(Assumption(subject, immutable[0], message))
        if kind.name == "Node" and any(
            each.effect == "NoExecute" and each not in before.spec.taints for each in record.spec.taints
        ):
            message = "a taint that evicts is not simulated: pods that do not tolerate it stay here"
            self.assumptions.append(Assumption(subject, "spec.taints", message))
        if fields:
            self.put(kind.name, self._as_stored(record, before, fields))
        change_kind = ChangeKind.UPDATED if fields else ChangeKind.UNCHANGED
        return Change(object=subject, kind=change_kind, fields=fields[:_FIELDS_SHOWN], **position(given))

    def put(self, kind: str, record: Any) -> None:
        """Lay a record over the cluster, in the place of the one of its name."""
        key = record.metadata.namespace, record.metadata.name
        self._new.setdefault(CLUSTER_KINDS[kind].field, {})[key] = record

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Take an object out of the cluster."""
        self._new.setdefault(CLUSTER_KINDS[kind].field, {})[namespace, name] = None

    def cluster(self) -> ClusterSnapshot:
        """The cluster with all that was added and removed.

        A budget whose terms are new has the status that the disruption controller gives it at once, while the pods are
        still those from before.
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
                message = f"the disruption controller can compute none ({error.message}), so that 0 may be disrupted"
            else:
                status = sync.status
                guessed = [f"{each.kind} {each.namespace}/{each.name}" for each in sync.scales if each.is_guessed]
                message = f"counted by pods, as {', '.join(guessed)} is not in the input" if guessed else ""
            budgets.append(msgspec.structs.replace(budget, status=status))
            if message:
                self.assumptions.append(Assumption(f"PodDisruptionBudget {budget.key}", "status", message))
        return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets)

    def _as_stored(self, record: Any, before: Any | None, fields: list[str]) -> Any:
        """A record as the API server and the controllers have it once it is applied."""
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
    """The manifest over what is there, without a status, which the API server does not take from it."""
    desired = deepcopy({key: each for key, each in document.items() if key != "status"})
    metadata = desired["metadata"]
    if kind == "LimitRange":
        _fill_limit_range(desired)
    if before is None:
        kept = ("name", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
        return {**desired, "metadata": {key: each for key, each in metadata.items() if key in kept}}
    there = record_document(kind, before)
    if kind == "LimitRange":
        _fill_limit_range(there)
    if kind == "Service":
        # A selector that the manifest lacks is taken away, and an ExternalName does not use one.
        mapping_in(there, "spec").pop("selector", None)
        if mapping_in(desired, "spec").get("type") == "ExternalName":
            desired["spec"].pop("selector", None)
    result = _merged(desired, {key: each for key, each in there.items() if key not in _WHOLE.get(kind, ())})
    own = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key) is not None}
    result["metadata"] = _merged(own, there["metadata"])
    if removed_labels:
        labels = result["metadata"].get("labels", {})
        result["metadata"]["labels"] = {key: labels[key] for key in labels if key not in removed_labels}
    return result


def _merged(desired: Document, there: Document) -> Document:
    result = dict(there)
    for key, value in desired.items():
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
