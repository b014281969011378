"""Finds remedies for the findings about PodDisruptionBudgets (PDBs); each is proven (``trial``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

import msgspec

from kpreempt.analysis.budgets.findings import MinimumSizes, min_replicas
from kpreempt.analysis.budgets.protection import Protection, Workloads
from kpreempt.analysis.budgets.trial import NEVER, Trial, one_more
from kpreempt.analysis.check.rollout.kinds import SCALED_KINDS
from kpreempt.analysis.naming import some_of
from kpreempt.analysis.remedies.edits import edited
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.analysis.remedies.search import Candidate, search
from kpreempt.controllers.disruption import Candidates
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.workloads import Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from kpreempt.verdict.budgets import AuditedBudget, Finding, FindingId, NearMiss
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedySearch, RemedyStage

_BUDGET = "PodDisruptionBudget"
_MIN, _MAX = "minAvailable", "maxUnavailable"
_FIELDS = {_MIN: "min_available", _MAX: "max_unavailable"}
_POLICY = "unhealthyPodEvictionPolicy"
_ALWAYS = "AlwaysAllow"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_TRIED = 12
_MOST_SHOWN = 3
# What the name of a PDB has in addition to that of its workload.
_AFFIX = re.compile(r"^pdb-|[-.](pdb|poddisruptionbudget|disruption-budget|budget)$")
_COMMON_LABELS = ("app.kubernetes.io/", "helm.sh/")
_ADD_ON_LABELS = ("eks.amazonaws.com/", "addonmanager.kubernetes.io/")
_INTEGER = re.compile(r"[0-9]{1,6}")

HasTime = Callable[[], bool]
# Returns whether the scheduler places a new pod without evictions.
Places = Callable[[Pod], bool]


_Budgets = Sequence[PodDisruptionBudget]
_Record = TypeVar("_Record", ReplicaSet, Deployment, StatefulSet, ReplicationController, Job)


def always() -> bool:
    """There is time."""
    return True


def total_of(searches: Iterable[RemedySearch]) -> RemedySearch:
    """How thorough several searches were together."""
    total = RemedySearch()
    for each in searches:
        total = RemedySearch(total.tried + each.tried, total.untried + each.untried, total.reason or each.reason)
    return total


class BudgetRemedies:
    """Finds remedies in a cluster in which every PDB has a status."""

    def __init__(
        self,
        cluster: ClusterSnapshot,
        minimum_sizes: MinimumSizes,
        *,
        owners: Owners | None = None,
        has_time: HasTime = always,
    ) -> None:
        self._cluster, self._minimum_sizes, self._has_time = cluster, minimum_sizes, has_time
        self._owners = owners or Owners(cluster)
        # Without it, no remedy creates pods.
        self.places: Places | None = None
        # Whether, with other PDBs instead of some, pending pods violate none that they don't violate now.
        self.keeps_preemptions: Callable[[_Budgets, _Budgets], bool] = lambda *_: True
        self.searches: list[RemedySearch] = []

    def with_remedies(self, finding: Finding, item: AuditedBudget | None) -> Finding:
        """The finding with its remedies; ``item`` is its PDB, ``None`` for a workload without one."""
        candidates = [*self._candidates(finding, item)]
        if not candidates:
            return finding
        part = self._part_for(finding, item, candidates)
        trial = Trial(part, finding, self._minimum_sizes, self._owners.autoscalers)

        def prove(candidate: Candidate) -> Remedy | None:
            proven = trial.proven(candidate)
            if proven is None:
                return None
            remedy, budgets = proven
            is_kept = not remedy.edits or self.keeps_preemptions(part.pod_disruption_budgets, budgets)
            return remedy if is_kept else None

        found, thorough = search(
            candidates, prove, has_time=self._has_time, most_tried=_MOST_TRIED, most_shown=_MOST_SHOWN
        )
        self.searches.append(thorough)
        # Something is deleted only if nothing else helps.
        found = [each for each in found if each.stage is not RemedyStage.DELETION] or found
        return msgspec.structs.replace(finding, remedies=found)

    # Everything of the cluster that is evaluated more than once.

    @cached_property
    def _protection(self) -> Protection:
        return Protection(self._cluster)

    @cached_property
    def _selected(self) -> Candidates:
        return Candidates(pod for pods in self._pods.values() for pod in pods)

    @cached_property
    def _workloads(self) -> Workloads:
        return Workloads(self._cluster)

    @cached_property
    def _budgets(self) -> dict[str, PodDisruptionBudget]:
        return {each.key: each for each in self._cluster.pod_disruption_budgets}

    @cached_property
    def _pods(self) -> dict[str, list[Pod]]:
        """The unfinished pods by namespace."""
        found: dict[str, list[Pod]] = {}
        for pod in self._cluster.pods:
            if not pod.is_terminal:
                found.setdefault(pod.metadata.namespace, []).append(pod)
        return found

    def _part_for(
        self, finding: Finding, item: AuditedBudget | None, candidates: Iterable[Candidate]
    ) -> ClusterSnapshot:
        """The part of the cluster on which the finding and its remedies depend."""
        namespace, own_budgets = finding.namespace, self._own_budgets(finding, item)
        pods = self._pods.get(namespace, [])
        keys = {pod.key for each in own_budgets for pod in self._protection.pods_of(each)}
        for edit in (edit for each in candidates for edit in each.edits):
            keys |= {pod.key for each in _with_new_selectors(edit, own_budgets) for pod in self._selected.of(each).pods}
        budgets = {each.key for each in own_budgets}
        budgets |= {each.key for key in keys for each in self._protection.budgets_of(key)}
        keys |= {pod.key for key in budgets for pod in self._protection.pods_of(self._budgets[key])}
        return ClusterSnapshot(
            pods=[pod for pod in pods if pod.key in keys],
            pod_disruption_budgets=[each for key, each in self._budgets.items() if key in budgets],
            taken_at=self._cluster.taken_at,
            replica_sets=_of_namespace(self._cluster.replica_sets, namespace),
            deployments=_of_namespace(self._cluster.deployments, namespace),
            stateful_sets=_of_namespace(self._cluster.stateful_sets, namespace),
            replication_controllers=_of_namespace(self._cluster.replication_controllers, namespace),
            jobs=_of_namespace(self._cluster.jobs, namespace),
        )

    def _own_budgets(self, finding: Finding, item: AuditedBudget | None) -> list[PodDisruptionBudget]:
        """The PDBs of the finding: its subject, and those that overlap with it."""
        if item is None:
            return []
        names = [item.budget.partition("/")[2], *(_bare(each) for each in finding.objects if each.startswith(_BUDGET))]
        found = (self._budgets.get(f"{finding.namespace}/{name}") for name in names)
        return [each for each in found if each is not None]

    # Candidates.

    def _candidates(self, finding: Finding, item: AuditedBudget | None) -> Iterable[Candidate]:
        if item is None:
            return self._new_budget(finding)
        budget = self._budgets[item.budget]
        kind = finding.id
        if kind in NEVER:
            return self._for_never(finding, item, budget)
        if kind in (FindingId.NO_SCALE, FindingId.UNMANAGED_PODS):
            return [self._amount(budget, _MIN, max(item.pods - 1, 0))]
        if kind is FindingId.ALLOWS_NONE_NOW:
            return self._for_unready(item, budget)
        if kind is FindingId.ALLOWS_NONE_AT_HPA_MINIMUM:
            return self._for_autoscaler(finding, item, budget)
        if kind is FindingId.OVERLAP:
            return self._for_overlap(finding, item)
        if kind is FindingId.INVALID_AMOUNT:
            return self._for_amount(budget)
        if kind is FindingId.SELECTS_NOTHING:
            return self._for_nothing(finding, budget)
        if kind in (FindingId.NULL_SELECTOR, FindingId.INVALID_SELECTOR, FindingId.SELECTS_EVERY_POD):
            return self._for_selector(finding, budget)
        return []

    def _for_never(self, finding: Finding, item: AuditedBudget, budget: PodDisruptionBudget) -> Iterator[Candidate]:
        expected = finding.number or 0
        owners = [controller_of(pod.metadata) for pod in self._protection.pods_of(budget)]
        is_scaled = all(owners) and all(each.replicas is not None for each in item.workloads)
        # A PDB that lets the only pod go protects nothing, so another replica comes first.
        stage = RemedyStage.LIMIT if expected == 1 else RemedyStage.REQUESTER
        replicas = min_replicas(budget)
        if is_scaled and len(item.workloads) == 1 and replicas is not None:
            yield from self._more_replicas(f"{item.workloads[0].workload}", item, budget, replicas)
        if is_scaled:
            yield self._amount(budget, _MAX, 1, stage)
        elif expected > 0:
            yield self._amount(budget, _MIN, expected - 1, stage)

    def _more_replicas(
        self, workload: str, item: AuditedBudget, budget: PodDisruptionBudget, replicas: int
    ) -> Iterator[Candidate]:
        """One more replica of the PDB's only workload, if that is enough and the scheduler places it."""
        name = _in_namespace(workload, budget.metadata.namespace)
        size = self._owners.size_of(name)
        pods = self._protection.pods_of(budget)
        if size is None or size + 1 != replicas or workload.partition(" ")[0] not in SCALED_KINDS or not pods:
            return
        pod = one_more(pods[0], size)
        if pod is None or self.places is None or not self._has_time() or not self.places(pod):
            return
        scaler = self._owners.autoscaler_of(name)
        scaled = ObjectEdit(name, {"spec": {"replicas": replicas}})
        if scaler is None:
            yield Candidate(
                stage=RemedyStage.CAPACITY,
                changes=[Change(ChangeKind.SCALE, name, before=size, after=replicas)],
                edits=[scaled],
                manager=self._owners.manager_of(name),
            )
        elif replicas <= scaler.max:
            yield self._more_at_minimum(scaler.name, replicas)

    def _more_at_minimum(self, scaler: str, replicas: int) -> Candidate:
        return Candidate(
            stage=RemedyStage.CAPACITY,
            changes=[Change(ChangeKind.SET, scaler, field="spec.minReplicas", value=replicas)],
            edits=[ObjectEdit(scaler, {"spec": {"minReplicas": replicas}})],
            manager=self._owners.manager_of(scaler),
        )

    def _for_autoscaler(
        self, finding: Finding, item: AuditedBudget, budget: PodDisruptionBudget
    ) -> Iterator[Candidate]:
        replicas = min_replicas(budget)
        name = _in_namespace(item.workloads[0].workload, budget.metadata.namespace)
        scaler = self._owners.autoscaler_of(name)
        size = self._owners.size_of(name)
        is_only = len(item.workloads) == len(finding.objects) == 1
        # With more replicas than it has now, the scheduler would also have to place new pods.
        if is_only and scaler is not None and replicas is not None and replicas <= min(scaler.max, size or 0):
            yield self._more_at_minimum(scaler.name, replicas)
        yield self._amount(budget, _MAX, 1, RemedyStage.LIMIT if finding.number == 1 else RemedyStage.REQUESTER)

    def _for_unready(self, item: AuditedBudget, budget: PodDisruptionBudget) -> Iterator[Candidate]:
        pods = {pod.metadata.name: pod for pod in self._protection.pods_of(budget)}
        unready = [pods[name] for name in item.not_ready]
        waiting = [pod.metadata.name for pod in unready if not pod.spec.node_name]
        broken = [pod.metadata.name for pod in unready if pod.spec.node_name]
        changes = [
            Change(kind, f"{'pod' if len(names) == 1 else 'pods'} {some_of(names)}")
            for kind, names in ((ChangeKind.REPAIR, broken), (ChangeKind.PLACE, waiting))
            if names
        ]
        if changes:
            yield Candidate(stage=RemedyStage.REPAIR, changes=changes, is_alone=True)
        if broken and not item.always_allows_unhealthy:
            name = f"{_BUDGET} {budget.key}"
            yield Candidate(
                stage=RemedyStage.LIMIT,
                changes=[Change(ChangeKind.SET, name, field=f"spec.{_POLICY}", value=_ALWAYS)],
                edits=[ObjectEdit(name, {"spec": {_POLICY: _ALWAYS}})],
                manager=self._manager_of(budget),
                is_alone=True,
            )

    def _for_amount(self, budget: PodDisruptionBudget) -> Iterator[Candidate]:
        field = _MIN if budget.spec.max_unavailable is None else _MAX
        text = str(getattr(budget.spec, _FIELDS[field])).strip()
        number = int(text) if _INTEGER.fullmatch(text) else 0
        pods = len(self._protection.pods_of(budget))
        is_meant = number > 0 and (field == _MAX or not pods or number < pods)
        yield self._amount(budget, field, number) if is_meant else self._amount(budget, _MAX, 1)

    def _for_overlap(self, finding: Finding, item: AuditedBudget) -> Iterator[Candidate]:
        budgets = sorted(self._own_budgets(finding, item), key=lambda each: each.key)
        for each in budgets:
            for other in budgets:
                if other is not each:
                    yield from self._without(each, other)
        # One that is not named after the workload, and the newest; only if all come back, one that comes back.
        names = {workload.workload.partition(" ")[2] for workload in item.workloads}
        budgets.sort(key=lambda each: each.metadata.creation_timestamp or _EPOCH, reverse=True)
        budgets.sort(key=lambda each: _AFFIX.sub("", each.metadata.name) in names)
        lasting = [each for each in budgets if not self._manager_of(each) and not _is_of_add_on(each)]
        yield from map(self._deleted, lasting or budgets)

    def _deleted(self, budget: PodDisruptionBudget) -> Candidate:
        name = f"{_BUDGET} {budget.key}"
        return Candidate(
            stage=RemedyStage.DELETION,
            changes=[Change(ChangeKind.DELETE, name)],
            edits=[ObjectEdit(name, deletes=True)],
            manager=self._manager_of(budget),
        )

    def _manager_of(self, budget: PodDisruptionBudget) -> str:
        """The custom resource that owns the PDB, or its pods if the PDB selects them by the custom resource's name."""
        if owner := self._owners.manager_of(f"{_BUDGET} {budget.key}"):
            return owner
        of_pods = {self._owners.manager_of_pod(pod) for pod in self._protection.pods_of(budget)}
        manager = of_pods.pop() if len(of_pods) == 1 else ""
        labels = budget.spec.selector.match_labels if budget.spec.selector is not None else {}
        is_named = any(
            value == manager.rpartition("/")[2] and "/" in key and not key.startswith(_COMMON_LABELS)
            for key, value in labels.items()
        )
        return manager if is_named else ""

    def _without(self, budget: PodDisruptionBudget, other: PodDisruptionBudget) -> Iterator[Candidate]:
        """Let the PDB not select the pods of the other one, by a label that only the other one requires."""
        own, others = budget.spec.selector, other.spec.selector
        if own is None or others is None:
            return
        for key, value in others.match_labels.items():
            if key not in own.match_labels:
                excluded = LabelSelectorRequirement(key, "NotIn", [value])
                yield self._selecting(budget, LabelSelector(own.match_labels, [*own.match_expressions, excluded]))

    def _for_nothing(self, finding: Finding, budget: PodDisruptionBudget) -> Iterator[Candidate]:
        if finding.objects:
            return
        selector = budget.spec.selector or LabelSelector()
        for miss in finding.near_misses:
            if (changed := _selector_with(selector, miss)) is not None:
                yield self._selecting(budget, changed)
        if not finding.near_misses:
            yield from (self._selecting(budget, each) for each in self._selectors_for(budget))
        if self._pods.get(finding.namespace):
            yield self._deleted(budget)

    def _for_selector(self, finding: Finding, budget: PodDisruptionBudget) -> Iterator[Candidate]:
        workloads = self._workloads.in_namespace(finding.namespace)
        only = [each.selector for each in workloads if each.selector is not None] if len(workloads) == 1 else []
        for selector in only or self._selectors_for(budget):
            if not selector.is_empty():
                yield self._selecting(budget, selector)

    def _selectors_for(self, budget: PodDisruptionBudget) -> list[LabelSelector]:
        """The selectors of the workloads that the PDB is named after."""
        names = (_AFFIX.sub("", budget.metadata.name), budget.metadata.name)
        workloads = self._workloads.in_namespace(budget.metadata.namespace)
        return [each.selector for each in workloads if each.selector is not None and _bare(each.name) in names]

    def _selecting(self, budget: PodDisruptionBudget, selector: LabelSelector) -> Candidate:
        name = f"{_BUDGET} {budget.key}"
        old = msgspec.to_builtins(budget.spec.selector or LabelSelector())
        new = msgspec.to_builtins(selector)
        # In a merge patch, labels that are not removed stay.
        labels = {**dict.fromkeys(old.get("matchLabels", {})), **new.get("matchLabels", {})}
        patch = {"matchLabels": labels or None, "matchExpressions": new.get("matchExpressions")}
        patch = {key: value for key, value in patch.items() if value is not None or old.get(key)}
        return Candidate(
            stage=RemedyStage.REQUESTER,
            changes=[Change(ChangeKind.SET, name, field="spec.selector", value=str(selector))],
            edits=[ObjectEdit(name, {"spec": {"selector": patch}})],
            manager=self._manager_of(budget),
        )

    def _amount(
        self,
        budget: PodDisruptionBudget,
        field: str,
        value: int,
        stage: RemedyStage = RemedyStage.REQUESTER,
    ) -> Candidate:
        name = f"{_BUDGET} {budget.key}"
        other = _MAX if field == _MIN else _MIN
        changes = [Change(ChangeKind.SET, name, field=f"spec.{field}", value=value)]
        patch: dict[str, int | None] = {field: value}
        if getattr(budget.spec, _FIELDS[other]) is not None:
            changes.append(Change(ChangeKind.SET, name, field=f"spec.{other}"))
            patch[other] = None
        return Candidate(
            stage=stage,
            changes=changes,
            edits=[ObjectEdit(name, {"spec": patch})],
            manager=self._manager_of(budget),
        )

    def _new_budget(self, finding: Finding) -> Iterator[Candidate]:
        workload = next(
            (each for each in self._workloads.in_namespace(finding.namespace) if each.name == finding.subject), None
        )
        if workload is None or workload.selector is None or workload.selector.is_empty():
            return
        bare = _bare(finding.subject)
        names = (bare, f"{bare}-pdb", f"pdb-{bare}")
        key = next((each for each in names if f"{finding.namespace}/{each}" not in self._budgets), "")
        if not key:
            return
        name = f"{_BUDGET} {finding.namespace}/{key}"
        manifest = {
            "apiVersion": "policy/v1",
            "kind": _BUDGET,
            "metadata": {"name": key, "namespace": finding.namespace},
            "spec": {_MAX: 1, "selector": msgspec.to_builtins(workload.selector)},
        }
        yield Candidate(
            stage=RemedyStage.LIMIT,
            changes=[Change(ChangeKind.CREATE, name, field=f"spec.{_MAX}", value=1)],
            edits=[ObjectEdit(name, manifest, creates=True)],
        )


def _is_of_add_on(budget: PodDisruptionBudget) -> bool:
    """Whether a cloud provider or the add-on manager recreates the PDB."""
    selector = budget.spec.selector
    keys = [*budget.metadata.labels, *(selector.match_labels if selector is not None else ())]
    return any(key.startswith(_ADD_ON_LABELS) for key in keys)


def _bare(subject: str) -> str:
    """``web`` for ``PodDisruptionBudget web``."""
    return subject.partition(" ")[2]


def _in_namespace(workload: str, namespace: str) -> str:
    return workload.replace(" ", f" {namespace}/", 1)


def _selector_with(selector: LabelSelector, miss: NearMiss) -> LabelSelector | None:
    """The selector with the label that the pods have; ``None`` if it cannot be changed in that way."""
    key, equals, value = miss.expected.partition("=")
    if not equals or not miss.found or selector.match_labels.get(key) != value:
        return None
    labels = {name: each for name, each in selector.match_labels.items() if name != key}
    found, _, value = miss.found.partition("=")
    return LabelSelector({**labels, found: value}, selector.match_expressions)


def _with_new_selectors(edit: ObjectEdit, budgets: Sequence[PodDisruptionBudget]) -> list[PodDisruptionBudget]:
    """The PDB that an edit creates, or whose selector it changes."""
    if not edit.object.startswith(f"{_BUDGET} ") or "selector" not in (edit.patch.get("spec") or {}):
        return []
    changed = edited(ClusterSnapshot(pod_disruption_budgets=[*budgets]), [edit]).pod_disruption_budgets
    return [each for each in changed if each.spec.selector is not None and each.spec.selector.is_valid()]


def _of_namespace(records: Iterable[_Record], namespace: str) -> list[_Record]:
    return [each for each in records if each.metadata.namespace == namespace]
