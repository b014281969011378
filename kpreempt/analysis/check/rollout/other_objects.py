"""Objects of kinds that no snapshot holds: whether a change alters one, and whom an admission webhook reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.analysis.check.rollout.autoscalers import is_autoscaler
from kpreempt.analysis.check.rollout.cluster_documents import LiveDocuments
from kpreempt.analysis.check.rollout.differences import last_applied
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
from kpreempt.analysis.check.rollout.records import ManifestDocument
from kpreempt.analysis.check.rollout.shape import position
from kpreempt.analysis.document_reader import Document, describe, mapping_in, mappings_in
from kpreempt.model.cluster import ClusterSnapshot, KindState, Unread, state_of
from kpreempt.model.labels import LabelSelector
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


def _is_left(wanted: Document, live: Document, last: Document | None) -> bool:
    """``last`` is ``None`` where nothing is known of what was applied: then the cluster may have nothing more."""
    if any(not _is_left_field(value, live.get(key), key, last) for key, value in wanted.items()):
        return False
    gone = live.keys() - wanted.keys()
    return not (gone if last is None else {key for key in gone if last.get(key) is not None})


def _is_left_field(wanted: Any, live: Any, key: str, last: Document | None) -> bool:
    if isinstance(wanted, dict) and isinstance(live, dict):
        return _is_left(wanted, live, None if last is None else mapping_in(last, key))
    return type(wanted) is type(live) and bool(wanted == live)


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
            if (webhook := pod_webhook(each, describe(_named_alone(each)))) is not None
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
                if not _is_custom(key[0]) or _has_pod_template(mapping_in(document, "spec")):
                    with_pods.add(key)
        for key, names in lacking.items():
            found[self._lacking(*key, names, has_pods=key in with_pods)] = None
        if told:
            message = f"may change pods as they are made, which is not evaluated: {', '.join(told)}"
            found[Assumption("admission", "webhooks", message, AssumptionKind.TOLD)] = None
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
        about = AssumptionKind.NOT_MODELLED if has_pods else AssumptionKind.NOT_COMPARED
        return Assumption(_label(group, kind), LIST, message, about)


def _is_custom(group: str) -> bool:
    """Whether a definition adds the group to the API: Kubernetes' own have no dot, or end in its domain."""
    return "." in group and not group.endswith(".k8s.io")


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


def _named_alone(document: Document) -> Document:
    """A document of the cluster as a manifest names it: without a namespace, which none of these kinds has."""
    metadata = {key: each for key, each in document["metadata"].items() if key != "namespace"}
    return {**document, "metadata": metadata}


class PodWebhook(msgspec.Struct, frozen=True):
    """What may change pods, or the workloads that they come from, by its object's name; where it reaches them."""

    name: str
    selectors: list[LabelSelector | None]

    def may_reach(self, namespaces: Sequence[Mapping[str, str] | None]) -> bool:
        """Whether it is asked of any, or its rules are not there yet."""
        return bool(namespaces) and (not self.selectors or self.reaches(namespaces))

    def reaches(self, namespaces: Iterable[Mapping[str, str] | None]) -> bool:
        """Whether it is asked in one of the namespaces, given by labels; ``None`` are labels that are not known."""
        return any(
            selector is None or labels is None or selector.matches(labels)
            for labels in namespaces
            for selector in self.selectors
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
