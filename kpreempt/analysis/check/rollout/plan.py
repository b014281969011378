"""Determines what a change does to a cluster, object by object.

An object's namespace must exist when the object is applied. ``kubectl apply`` applies objects in the order of the input
(``k8s.io/kubectl`` v0.36.3 ``pkg/cmd/apply/apply.go``), continues after a rejected one, and does not create namespaces;
Helm, Kustomize and Argo CD apply namespaces first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import msgspec

from kpreempt.analysis.check.rollout.adoption import adopted
from kpreempt.analysis.check.rollout.apply import last_applied
from kpreempt.analysis.check.rollout.autoscalers import GROUP, KIND, Autoscalers, minimum_sizes
from kpreempt.analysis.check.rollout.cluster_documents import (
    ACCOUNT,
    ClusterObjects,
    LiveDocuments,
    accounts_of,
    record_document,
)
from kpreempt.analysis.check.rollout.hooks import (
    Applier,
    deletion_by_hook,
    hook_of,
    is_omitted,
    not_applied_as_hooks,
    order_of,
    skipped_hook,
)
from kpreempt.analysis.check.rollout.kinds import (
    CLUSTER_KINDS,
    POD_OWNERS,
    Deletion,
    cluster_kind_of,
    is_known,
    is_namespaced,
    is_pod_owner,
    makes_no_pods,
    parse_deletion,
    unknown_effect,
)
from kpreempt.analysis.check.rollout.other_objects import OtherObjects, Overlay
from kpreempt.analysis.check.rollout.records import (
    ApplyOptions,
    ManifestDocument,
    MissingNamespaces,
    NotSimulatedError,
    Plan,
    PlannedWorkload,
    Prepared,
    Reset,
    Safeguards,
    is_nested_too_deeply,
    place,
    position,
)
from kpreempt.analysis.check.rollout.review import Review
from kpreempt.analysis.check.rollout.server_dry_run import Reviewer, accepted_by_policies, decided_review
from kpreempt.analysis.check.rollout.workloads import plan_deletion, plan_pod, plan_workload, size_in_cluster
from kpreempt.analysis.check.unread import unread_pruned, unread_workloads
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.explain.rejections import LineOf, Rejection, rejection_of
from kpreempt.analysis.naming import some_of
from kpreempt.analysis.pod_inputs import Decode
from kpreempt.analysis.simulation.cluster import Workloads
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.errors import InputError, NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import group_of, mapping_in, mappings_in
from kpreempt.model.kueue import QUEUE_LABEL
from kpreempt.model.meta import controller_of, grouped
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import PRUNED, Change, ChangeKind
from kpreempt.verdict.unread import LIST, missing, unreadable_of

__all__ = ["LiveDocuments", "ManifestDocument", "Plan", "PlannedWorkload", "plan_change"]

MAX_NEW_PODS = 20_000
# The API server sets it on every namespace.
NAME_LABEL = "kubernetes.io/metadata.name"
# Deleting a definition deletes all custom resources of its kind.
_DEFINITIONS = ("customresourcedefinition", "customresourcedefinitions")
# The path of the pod spec in a CronJob.
_SPEC_OF_JOBS_PODS = ("spec", "jobTemplate", "spec", "template", "spec")
# Kinds that are usually owned by other workloads, and rarely in manifests.
_CONTROLLED = ("Pod", "ReplicaSet", "Job")
_MESSAGE = (
    "admission by Kueue is not simulated: {}; to see whether it is admitted and what Kueue preempts for it, run "
    "kpreempt explain -f FILE --algorithm kueue-0.19"
)
_ADMITTED_AT_ONCE = "its pods are created as if it were admitted immediately"
_SUSPENDED = "it stays suspended, and its pods are not created"
_NAMESPACE = "Namespace"
# Namespaces that the API server creates itself.
_ALWAYS_THERE = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
# Groups whose namespaced kinds are known.
_OWN_GROUPS = frozenset(
    {
        *("", "apps", "autoscaling", "batch", "coordination.k8s.io", "discovery.k8s.io", "extensions"),
        *("networking.k8s.io", "policy", "rbac.authorization.k8s.io"),
    }
)


class TooManyPodsError(NotSimulatedError):
    """A change that creates more pods than can be simulated."""


def plan_change(
    cluster: ClusterSnapshot,
    manifests: Prepared,
    live: LiveDocuments,
    decode: Decode,
    options: ApplyOptions,
    *,
    deleted: Sequence[str] = (),
    only_in_base: Sequence[Deletion] = (),
) -> Plan:
    """Plan what applying ``manifests``, and then deleting ``deleted``, does to ``cluster``.

    ``only_in_base`` are objects that the manifests no longer have; with pruning, those that exist are deleted, too.
    ``live`` has the complete documents that ``NeededObjects`` requests. A deletion is ``KIND/NAME`` or
    ``KIND/NAMESPACE/NAME``. Raises ``TooManyPodsError`` if more than ``MAX_NEW_PODS`` pods would be created;
    ``UsageError`` for an invalid deletion; and ``NotFoundError`` for a deletion of an object that
    does not exist.
    """
    applier, prunes = options.applier, options.prunes
    deletions = dict.fromkeys(parse_deletion(text, options.namespace) for text in deleted)
    scaled_by = Autoscalers(
        live.other_kinds(GROUP, KIND), (each.document for each in manifests.documents), uses_max=options.max_autoscaled
    )
    listed = {each.described for each in deletions}
    pruned = [each for each in only_in_base if each.described not in listed] if prunes else []

    def new_planner() -> _Planner:
        return _Planner(cluster, live, decode, listed, scaled_by, options)

    planner = new_planner()
    change = [each.document for each in manifests.input]
    review = Review(cluster, live, options, change)
    valid_input = _without_rejected_namespaces(manifests, review)
    missing = missing_namespaces(valid_input, options.namespace, cluster, live, applier)
    if options.creates_namespaces:
        planner.make_namespaces([*missing.absent, *missing.late])
        missing = MissingNamespaces()
    hooked = {describe(each.document): each for each in manifests.hooks if planner.has_as_ordinary_object(each)}
    applied = [each for each in manifests.documents if describe(each.document) not in hooked]
    review = review.expecting(each.document for each in applied)
    for given, error in manifests.invalid:
        planner.reject(given, _reason(given, error))
    valid = [each for each in manifests.replaced if not planner.is_rejected(each[0], review, options.line_of)]
    decided = decided_review(review, options.decisions, lambda: Review(cluster, live, options, change))
    _apply(applied, planner, decided, set(missing.objects), options.line_of)
    applied_names = {describe(each.document) for each in applied}
    of_hooks = {_deletion_of(each.document): deletion_by_hook(each.document, applier) for each in hooked.values()}
    unlisted = {
        each: reason for each, reason in {**of_hooks, **dict.fromkeys(pruned, PRUNED)}.items() if each not in deletions
    }
    planner.deleted_by = {each.described: reason for each, reason in unlisted.items()}
    for deletion in deletions:
        if deletion.described in applied_names:
            raise UsageError(f"{deletion.described} is both in the manifests and in the deletions")
        planner.delete(deletion)
    for deletion in unlisted:
        if planner.has(deletion) or not deletion.has_meaning:
            planner.delete(deletion)
    remaining = [] if prunes else [each.described for each in only_in_base if planner.has(each) or not each.has_meaning]
    duplicates, same = _duplicates(valid, new_planner(), applier)
    order = order_of([each.document for each in applied], applier)
    hooks = [skipped_hook(each.document, applier) for each in manifests.hooks if is_omitted(each.document, applier)]
    if options.applied_by is None:
        hooks += not_applied_as_hooks(each.document for each in manifests.input)
    scalers = live.other_kinds(GROUP, KIND)
    sizes = minimum_sizes(scalers), minimum_sizes([*scalers, *(each.document for each in manifests.documents)])
    plan = planner.plan()
    policies = review.policies
    return msgspec.structs.replace(
        plan,
        rejected_pods=policies.rejected_pods(plan),
        notes=[*plan.notes, *policies.warnings],
        changes=[
            msgspec.structs.replace(each, **position(hooked[each.object])) if each.object in hooked else each
            for each in plan.changes
        ],
        accounts=[*accounts_of(live, cluster), *(each.document for each in applied if _is_account(each.document))],
        safeguards=msgspec.structs.replace(plan.safeguards, minimum_sizes=sizes),
        order=order,
        missing_namespaces=missing,
        job_seconds=options.job_seconds,
        duplicates=duplicates,
        only_in_base=remaining,
        assumptions=[
            *options.decisions.assumptions,
            *hooks,
            *same,
            *plan.assumptions,
            *_without_schema(applied, plan, review),
            *policies.assumptions(accepted_by_policies(options.decisions, change)),
            *_other_webhooks(plan.webhooks, policies.subjects),
            *order.assumptions,
            *unread_pruned(cluster, [(each.kind, each.described) for each in pruned]),
        ],
    )


def _without_schema(applied: Iterable[ManifestDocument], plan: Plan, review: Review) -> list[Assumption]:
    """One note about the new and changed custom resources that cannot be validated."""
    same = {each.object for each in plan.changes if each.kind is ChangeKind.UNCHANGED}
    names = [describe(each.document) for each in applied if review.is_without_schema(each.document)]
    names = [each for each in names if each not in same]
    message = f"no definition of their kinds in the input, so they are not validated: {some_of(names)}"
    return [Assumption("custom resources", "", message, AssumptionKind.INFORMATIONAL)] if names else []


def _apply(
    applied: Sequence[ManifestDocument],
    planner: _Planner,
    review: Reviewer,
    without_namespace: Set[str],
    line_of: LineOf,
) -> None:
    """Process the objects that the API server accepts, in order, and note the others."""
    for given in applied:
        if describe(given.document) in without_namespace:
            planner.reject(given)
        elif not planner.is_rejected(given, review, line_of):
            try:
                planner.apply(given)
            except NotSimulatedError:
                raise
            except InputError as error:
                planner.reject(given, _reason(given, error))
            else:
                review.accept(given.document)


def _without_rejected_namespaces(manifests: Prepared, review: Review) -> list[ManifestDocument]:
    """The input without the namespaces that the API server rejects, so that objects in new ones are not applied."""
    rejected = {
        each.document["metadata"]["name"]
        for each in manifests.documents
        if _is_namespace(each.document) and review.problems(each.document)
    }
    return [
        each
        for each in manifests.input
        if not _is_namespace(each.document) or each.document["metadata"].get("name") not in rejected
    ]


def _is_namespace(document: Document) -> bool:
    return document["kind"] == _NAMESPACE and not group_of(document)


def _reason(given: ManifestDocument, error: InputError) -> Rejection:
    return Rejection(error.line or given.line, f"{error.path}: {error.problem}".removeprefix(": "))


def _other_webhooks(webhooks: Sequence[str], reported: Set[str]) -> Iterator[Assumption]:
    """The note that webhooks may change pods, such as recreated ones; most do not change requests."""
    if names := [each for each in webhooks if each not in reported]:
        message = f"these may change pods, and their effect is not evaluated: {', '.join(names)}"
        yield Assumption("admission", "webhooks", message, AssumptionKind.INFORMATIONAL)


def _is_account(document: Document) -> bool:
    return document["kind"] == ACCOUNT and not group_of(document)


def _node_name_of(document: Document) -> str:
    """The node that the pods of an object name, for any kind of object; empty if they name none."""
    path = {"Pod": ("spec",), "CronJob": _SPEC_OF_JOBS_PODS}.get(
        str(document.get("kind")), ("spec", "template", "spec")
    )
    name = mapping_in(document, *path).get("nodeName")
    return name if isinstance(name, str) else ""


def _deletion_of(document: Document) -> Deletion:
    """The deletion of an object of the change."""
    has_meaning = is_known(document)
    kind = document["kind"] if has_meaning else f"{document['kind']}.{group_of(document)}".rstrip(".")
    metadata = document["metadata"]
    return Deletion(kind, metadata.get("namespace") or "", metadata["name"], has_meaning)


def _duplicates(
    replaced: Sequence[tuple[ManifestDocument, ManifestDocument]], planner: _Planner, applier: Applier
) -> tuple[dict[str, str], list[Assumption]]:
    """What superseded documents of an object do, and notes about those without effect.

    ``planner`` must be a new one; it processes the superseded documents.
    """
    found: dict[str, str] = {}
    notes: list[Assumption] = []
    for earlier, last in replaced:
        name, written = describe(last.document), f"{place(earlier)} is superseded by {place(last)}"
        if _effect(earlier.document, applier) == _effect(last.document, applier):
            message = f"duplicate: {written}; both documents have the same effect"
        elif planner.leaves_as_is(earlier):
            message = f"duplicate: {written}; the earlier document changes nothing in the cluster"
        else:
            found.setdefault(name, f"{written}; the effect of the earlier document is not simulated")
            continue
        notes.append(Assumption(name, "", message, AssumptionKind.INFORMATIONAL))
    return found, notes


def _effect(document: Document, applier: Applier) -> object:
    """A value that is equal for documents of one object if it does not matter which one is applied."""
    if is_nested_too_deeply(document):
        return object()
    rest = {key: value for key, value in document.items() if key not in ("apiVersion", "metadata", "status")}
    return rest, mapping_in(document["metadata"], "labels"), hook_of(document, applier)


class _Planner:
    """Builds the plan."""

    def __init__(
        self,
        cluster: ClusterSnapshot,
        live: LiveDocuments,
        decode: Decode,
        listed: Set[str],
        autoscalers: Autoscalers,
        options: ApplyOptions,
    ) -> None:
        """``listed`` are the descriptions of the objects that the user deletes by name."""
        self._listed = listed
        # What deletes objects that the user did not list, by object.
        self.deleted_by: Mapping[str, str] = {}
        self._applier = options.applier
        self._cluster = cluster
        self._live = live
        self._decode = decode
        self._objects = ClusterObjects(cluster)
        self._overlay = Overlay(cluster, self._objects, decode)
        self._changes: list[Change] = []
        self._workloads: list[PlannedWorkload] = []
        self._pods: list[PodTemplate] = []
        self._deleted_pods: dict[str, None] = {}
        self._deleted_nodes: dict[str, None] = {}
        self._deleted_workloads: set[tuple[str, str, str]] = set()
        self._assumptions: list[Assumption] = []
        self._notes: list[str] = []
        self._ignored: Counter[str] = Counter()
        self._others = OtherObjects(live, cluster, options.assumed_minor if options.minor is None else options.minor)
        self._autoscalers = autoscalers
        self._given_workloads: set[tuple[str, str, str]] = set()
        self._resets: list[Reset] = []
        self._node_names: dict[str, str] = {}
        self._released: dict[str, str] = {}
        self._cron_jobs: dict[str, tuple[Document, Document]] = {}
        self._new_pods = 0
        self._rejections: dict[str, str] = {}
        self._pods_by_workload: dict[str, list[str]] | None = None

    def apply(self, given: ManifestDocument) -> None:
        """Process a manifest."""
        document = given.document
        kind = cluster_kind_of(document)
        self._note_node_name(document)
        if kind is not None and kind.name in _CONTROLLED:
            self._note_released(document)
        if is_pod_owner(document):
            self._apply_workload(given)
        elif kind is None:
            # No snapshot holds objects of this kind; if it affects pods, note what is assumed.
            message, _ = unknown_effect(document)
            if message:
                self._changes += self._others.take(given)
            else:
                self._ignored[str(document["kind"])] += 1
        elif kind.name == "Pod":
            planned = plan_pod(given, self._objects, self._live, self._decode)
            self._changes.append(planned.change)
            self._assumptions += [*planned.assumptions, *admission_assumed(given.document, planned.change)]
            if planned.deleted:
                self._deleted_pods[planned.deleted] = None
            if planned.relabeled is not None:
                self._overlay.put("Pod", planned.relabeled)
            if planned.template is not None:
                self._pods.append(planned.template)
                self._count(given, 1)
        else:
            metadata = document["metadata"]
            live = self._live.find(document["kind"], metadata.get("namespace", ""), metadata["name"])
            # kubectl apply removes the labels that were applied last time and that the manifest no longer has.
            last = mapping_in(last_applied(live or {}) or {}, "metadata", "labels")
            self._changes.append(self._overlay.add(given, kind, {*last} - {*mapping_in(metadata, "labels")}))

    def is_rejected(self, given: ManifestDocument, review: Reviewer, line_of: LineOf) -> bool:
        """Whether the API server rejects a manifest, which is noted."""
        problems = review.problems(given.document)
        if problems:
            self.reject(given, rejection_of(given.text, given.line, problems, line_of))
        return bool(problems)

    def reject(self, given: ManifestDocument, rejection: Rejection | None = None) -> None:
        """Process a manifest that the API server rejects: nothing happens. Without a ``rejection``, it is known."""
        if rejection is not None:
            given = msgspec.structs.replace(given, line=rejection.line)
            self._rejections[describe(given.document)] = rejection.reason
        change = Change(object=describe(given.document), kind=ChangeKind.REJECTED, **position(given))
        self._changes.append(change)

    def _note_released(self, document: Document) -> None:
        """Note a manifest that lacks the built-in controller that the object has in the cluster."""
        kind, metadata = document["kind"], document["metadata"]
        record = self._objects.find(kind, metadata["namespace"], metadata["name"])
        owner = controller_of(record.metadata) if record is not None else None
        if owner is None or owner.kind not in POD_OWNERS:
            return
        is_kept = any(
            (each.get("kind"), each.get("name")) == (owner.kind, owner.name) and each.get("controller")
            for each in mappings_in(metadata, "ownerReferences")
        )
        if not is_kept:
            self._released[describe(document)] = f"{owner.kind} {metadata['namespace']}/{owner.name}"

    def leaves_as_is(self, given: ManifestDocument) -> bool:
        """Process a manifest, and return whether it changes nothing that pods depend on."""
        changes, ignored, resets = len(self._changes), self._ignored.total(), len(self._resets)
        self.apply(given)
        new = self._changes[changes:]
        is_unchanged = bool(new) and all(each.kind is ChangeKind.UNCHANGED for each in new)
        return (is_unchanged and len(self._resets) == resets) or self._ignored.total() > ignored

    def make_namespaces(self, names: Iterable[str]) -> None:
        """Create namespaces before everything else, unless they exist."""
        for name in names:
            document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self._changes.append(self._overlay.add(ManifestDocument(document), CLUSTER_KINDS["Namespace"]))

    def has(self, deletion: Deletion) -> bool:
        """Whether the object of a deletion exists and can affect pods."""
        kind, namespace, name = deletion.kind, deletion.namespace, deletion.name
        record = self._objects.find(kind, namespace, name) if deletion.has_meaning else None
        if record is not None or self._live.find(kind, namespace, name) is not None:
            return True
        # A dump may have the objects in a namespace without the namespace itself.
        return kind == "Namespace" and any(True for _ in self._records_in(name))

    def has_as_ordinary_object(self, hook: ManifestDocument) -> bool:
        """Whether the cluster has the object of a hook, but not as a hook; a Job or Pod must still be running."""
        kind, namespace, name = (each := _deletion_of(hook.document)).kind, each.namespace, each.name
        before = self._live.find(kind, namespace, name) if each.has_meaning else self._live.find_other(hook.document)
        record = self._objects.find(kind, namespace, name) if each.has_meaning else None
        if before is None and record is None:
            return False
        if before is not None and hook_of(before, self._applier)[0]:
            return False
        if kind == "Pod":
            return record is not None and not record.is_terminal
        return kind != "Job" or each.described in self._running()

    def delete(self, deletion: Deletion) -> None:
        """Process a deletion. Raises ``NotFoundError``."""
        if not deletion.has_meaning:
            self._delete_other(deletion)
            return
        kind, namespace, name = deletion.kind, deletion.namespace, deletion.name
        if not self.has(deletion):
            raise NotFoundError(missing(self._cluster, kind, deletion.described))
        change = Change(object=deletion.described, kind=ChangeKind.DELETED)
        if kind in POD_OWNERS:
            self._add_deletion(kind, namespace, name)
            if kind == "CronJob":
                for job in self._objects.owned("Job", namespace, name, owner_kind="CronJob"):
                    self._add_deletion("Job", namespace, job.metadata.name)
            return
        self._add_deleted(change)
        if kind == "Namespace":
            self._empty(name)
        if kind == "Node":
            self._deleted_nodes[name] = None
        if kind == "Pod":
            self._deleted_pods[f"{namespace}/{name}"] = None
        else:
            self._overlay.remove(kind, namespace, name)

    def plan(self) -> Plan:
        """Finish the plan."""
        ignored = [f"{count} {kind}" for kind, count in self._ignored.items()]
        if ignored:
            self._notes.append(f"ignored {', '.join(ignored)} (not relevant to scheduling)")
        cluster, workloads, adoptions = adopted(
            self._cluster,
            self._overlay.cluster(),
            self._workloads,
            self._pods,
            deleted_pods=self._deleted_pods,
            live=self._live,
            decode=self._decode,
        )
        # The labels of the namespaces in which pods are created, if known.
        namespace_labels: list[dict[str, str] | None] = [None]
        if not self._deleted_nodes:
            pod_namespaces = {each.namespace for each in self._workloads if each.after is not None}
            pod_namespaces |= {each.namespace for each in self._pods}
            known = {each.metadata.name: each.metadata.labels for each in cluster.namespaces}
            namespace_labels = [
                {**known[each], NAME_LABEL: each} if each in known else None for each in sorted(pod_namespaces)
            ]
        return Plan(
            changes=self._changes,
            workloads=workloads,
            pods=self._pods,
            deleted_pods=list(self._deleted_pods),
            deleted_nodes=list(self._deleted_nodes),
            cluster=cluster,
            assumptions=[
                *self._assumptions,
                *self._overlay.assumptions,
                *self._others.assumptions(
                    lambda document: self._autoscalers.unknown_effect(document, self._given_workloads)
                ),
                *unread_workloads(self._cluster, self._orphans()),
            ],
            notes=self._notes,
            webhooks=self._others.webhooks(namespace_labels),
            resets=self._resets,
            adoptions=adoptions,
            rejections=self._rejections,
            node_names=self._node_names,
            safeguards=Safeguards(released=self._released, cron_jobs=self._cron_jobs, workloads=self._live.workloads()),
            autoscalers=self._autoscalers.unsimulated(self._others.autoscalers(), self._given_workloads),
        )

    def _orphans(self) -> list[tuple[str, str]]:
        """Workloads of the change that seem new, but have pods or Jobs in the cluster."""
        new = [each for each in self._workloads if each.change.kind is ChangeKind.CREATED]
        found = []
        for each in new:
            kind, _, name = each.change.object.partition(" ")
            namespace, _, own = name.partition("/")
            jobs = kind == "CronJob" and self._objects.owned("Job", namespace, own, owner_kind=kind)
            if jobs or each.change.object in self._running():
                found.append((kind, name))
        return found

    def _note_node_name(self, document: Document) -> None:
        """Note the node that a pod or a pod template names, unless the cluster's object names the same node."""
        node = _node_name_of(document)
        if node:
            metadata = document["metadata"]
            name, namespace = metadata["name"], metadata.get("namespace", "")
            before = self._live.find(document["kind"], namespace, name)
            record = self._objects.find("Pod", namespace, name) if document["kind"] == "Pod" else None
            known = record.spec.node_name if record is not None else _node_name_of(before) if before is not None else ""
            if node != known:
                self._node_names[describe(document)] = node

    def _apply_workload(self, given: ManifestDocument) -> None:
        kind, metadata = given.document["kind"], given.document["metadata"]
        self._given_workloads.add((kind, metadata["namespace"], metadata["name"]))
        current = size_in_cluster(kind, metadata["namespace"], metadata["name"], self._objects, self._live)
        before = self._live.find(kind, metadata["namespace"], metadata["name"])
        if kind == "CronJob" and before is not None:
            self._cron_jobs[describe(given.document)] = (
                mapping_in(before, *_SPEC_OF_JOBS_PODS),
                mapping_in(given.document, *_SPEC_OF_JOBS_PODS),
            )
        reset = self._autoscalers.reset(given, current, before)
        self._resets += [reset] if reset is not None else []
        given, size_assumptions = self._autoscalers.sized(given, current)
        planned = plan_workload(given, self._objects, self._live, self._decode, self._applier)
        self._changes.append(planned.change)
        self._assumptions += [
            *size_assumptions,
            *planned.assumptions,
            *admission_assumed(given.document, planned.change),
        ]
        if planned.workload is not None:
            self._workloads.append(planned.workload)
            self._count(given, planned.new_pods)

    def _count(self, given: ManifestDocument, pods: int) -> None:
        self._new_pods += pods
        if self._new_pods > MAX_NEW_PODS:
            problem = f"the change creates more than {MAX_NEW_PODS:,} new pods ({self._new_pods:,} so far)"
            name = describe(given.document)
            raise TooManyPodsError(problem, source=given.source, line=given.line, object_name=name, path="spec")

    def _delete_other(self, deletion: Deletion) -> None:
        """Record the deletion of an object that no snapshot holds."""
        name, dot, group = deletion.kind.partition(".")
        self._add_deleted(Change(object=deletion.described, kind=ChangeKind.DELETED))
        if name.lower() in _DEFINITIONS:
            message = "all custom resources of its kind are deleted, too; what their controllers then delete is unknown"
            self._assumptions.append(Assumption(deletion.described, "metadata.deletionTimestamp", message))
        # Kinds that are named without a group do not affect scheduling.
        elif not dot or makes_no_pods(group, name):
            self._ignored[name] += 1
        else:
            message = f"the controller of {name} objects is not simulated: its pods are kept"
            self._assumptions.append(Assumption(deletion.described, "metadata.deletionTimestamp", message))

    def _add_deletion(self, kind: str, namespace: str, name: str, deleted_with: str = "") -> None:
        """Record the deletion of a workload, once."""
        if (kind, namespace, name) in self._deleted_workloads:
            return
        self._deleted_workloads.add((kind, namespace, name))
        before = self._live.find(kind, namespace, name)
        if before is None:
            before = record_document(kind, self._objects.find(kind, namespace, name))
        planned = plan_deletion(kind, namespace, name, before, self._objects, self._live)
        self._add_deleted(planned.change, deleted_with)
        if planned.workload is not None:
            self._workloads.append(planned.workload)

    def _add_deleted(self, change: Change, deleted_with: str = "") -> None:
        """Record the deletion of an object, with its running pods."""
        pods = self._running().get(change.object, [])
        self._changes.append(
            msgspec.structs.replace(
                change, deleted_with=deleted_with, deleted_by=self.deleted_by.get(change.object, ""), pods=pods
            )
        )

    def _running(self) -> dict[str, list[str]]:
        """The running pods of each workload."""
        if self._pods_by_workload is None:
            running = grouped((pod for pod in self._cluster.pods if not pod.is_terminal), Workloads(self._cluster).of)
            self._pods_by_workload = {name: [pod.key for pod in pods] for name, pods in running.items()}
        return self._pods_by_workload

    def _empty(self, namespace: str) -> None:
        """Delete everything in a namespace."""
        # Objects that the manifests create in the namespace are deleted with it.
        self._workloads = [each for each in self._workloads if each.namespace != namespace or each.after is None]
        self._pods = [each for each in self._pods if each.namespace != namespace]
        for index, change in enumerate(self._changes):
            is_in_namespace = change.object.rpartition(" ")[2].startswith(f"{namespace}/")
            if is_in_namespace and change.kind is not ChangeKind.DELETED:
                deleted = msgspec.structs.replace(
                    change, kind=ChangeKind.DELETED, deleted_with=f"Namespace {namespace}"
                )
                self._changes[index] = deleted
        reason = f"Namespace {namespace}"
        for kind, record in self._records_in(namespace):
            owner = controller_of(record.metadata)
            if kind == "Pod":
                if owner is None or owner.kind not in POD_OWNERS:
                    self._deleted_pods[record.key] = None
                    name = f"Pod {record.key}"
                    if name not in self._listed and not record.is_terminal:
                        self._add_deleted(Change(object=name, kind=ChangeKind.DELETED), reason)
            elif kind not in POD_OWNERS:
                self._overlay.remove(kind, namespace, record.metadata.name)
            # A Deployment's ReplicaSets are deleted with it.
            elif owner is None or owner.kind != "Deployment":
                above = f"{owner.kind} {namespace}/{owner.name}" if owner is not None else ""
                listed = {f"{kind} {namespace}/{record.metadata.name}", above} & self._listed
                self._add_deletion(kind, namespace, record.metadata.name, "" if listed else reason)
        for document in self._live.in_namespace("CronJob", namespace):
            name = document["metadata"]["name"]
            self._add_deletion("CronJob", namespace, name, "" if describe(document) in self._listed else reason)
        # Objects that are both in the manifests and in the cluster are listed twice.
        self._changes = list({each.object: each for each in self._changes}.values())

    def _records_in(self, namespace: str) -> Iterator[tuple[str, Any]]:
        """All records in a namespace, each with its kind."""
        for kind in CLUSTER_KINDS.values():
            if kind.is_namespaced:
                records = getattr(self._cluster, kind.field)
                yield from ((kind.name, each) for each in records if each.metadata.namespace == namespace)


def admission_assumed(document: Document, change: Change) -> Iterator[Assumption]:
    """The assumption that a changed object with a LocalQueue is admitted at once, or never if it is suspended."""
    spec = mapping_in(document, "spec")
    labels = [mapping_in(each, "metadata", "labels") for each in (document, mapping_in(spec, "jobTemplate"))]
    if change.kind is not ChangeKind.UNCHANGED and any(each.get(QUEUE_LABEL) for each in labels):
        message = _MESSAGE.format(_SUSPENDED if spec.get("suspend") else _ADMITTED_AT_ONCE)
        yield Assumption(change.object, f"metadata.labels[{QUEUE_LABEL}]", message)


def missing_namespaces(
    documents: Sequence[ManifestDocument],
    namespace: str,
    cluster: ClusterSnapshot,
    live: LiveDocuments,
    applier: Applier,
) -> MissingNamespaces:
    """Find the namespaces that a change needs and that do not exist; ``namespace`` is the default one.

    kubectl applies objects in the order of the input; the other tools apply namespaces first.
    """
    created_at: dict[str, int] = {}
    for index, each in enumerate(documents):
        if _is_namespace(each.document):
            created_at.setdefault(str(mapping_in(each.document, "metadata").get("name")), index)
    absent: dict[str, list[str]] = {}
    late: dict[str, list[str]] = {}
    existing = _ALWAYS_THERE | {each.metadata.name for each in cluster.namespaces}
    for index, given in enumerate(documents):
        document = given.document
        if not is_namespaced(document) or is_omitted(document, applier):
            continue
        target = mapping_in(document, "metadata").get("namespace")
        if not isinstance(target, str) or not target:
            # In other groups it is unknown which kinds are namespaced.
            target = namespace if is_known(document) or group_of(document) in _OWN_GROUPS else ""
        if not target or target in existing:
            continue
        name = describe({**document, "metadata": {**mapping_in(document, "metadata"), "namespace": target}})
        if target not in created_at:
            absent.setdefault(target, []).append(name)
        elif applier is Applier.KUBECTL and index < created_at[target]:
            late.setdefault(target, []).append(name)
    if absent or late:
        # A namespace exists if the cluster has objects in it.
        in_use = live.namespaces | {
            record.metadata.namespace
            for kind in CLUSTER_KINDS.values()
            if kind.is_namespaced
            for record in getattr(cluster, kind.field)
        }
        absent = {target: own for target, own in absent.items() if target not in in_use}
        late = {target: own for target, own in late.items() if target not in in_use}
    if cluster.namespaces or not (absent or late):
        return MissingNamespaces(absent, late)
    if assumed := unreadable_of(cluster, [_NAMESPACE]):
        return MissingNamespaces(assumptions=assumed)
    # Every cluster has namespaces, so these were not part of the snapshot.
    message = f"the snapshot has no namespaces; assumed to exist: {some_of([*absent, *late])}"
    return MissingNamespaces(assumptions=[Assumption(_NAMESPACE, LIST, message, AssumptionKind.INFORMATIONAL)])
