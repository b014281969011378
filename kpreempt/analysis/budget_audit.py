"""What is wrong with PodDisruptionBudgets, and which pending or new pods would break them.

What the disruption controller makes of a budget follows ``pkg/controller/disruption/disruption.go``, what the eviction
API does ``pkg/registry/core/pod/storage/eviction.go`` (``k8s.io/kubernetes`` v1.36.3). Both take an empty selector to
select every pod of the namespace; the scheduler takes it to select none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

import msgspec

from kpreempt.admission import fill_budget_statuses
from kpreempt.admission.scales import ScaleError, Scales
from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain import described, version_assumptions
from kpreempt.analysis.hypothetical_pods import room_of
from kpreempt.analysis.pending import queue_positions
from kpreempt.analysis.pending_verdicts import Spread, decide_pending, one_by_one, pending_pods
from kpreempt.analysis.pod_selection import PodSelection
from kpreempt.analysis.priority_search import PrioritySearch
from kpreempt.analysis.queue_order import FailedAttempts
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.meta import OwnerReference, controller_name, controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kpreempt.model.workloads import ReplicaSet
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption, ClusterSummary, SizeName, Verdict
from kpreempt.verdict.budget_audit import (
    AuditedBudget,
    Breach,
    BreakingPriority,
    BudgetAudit,
    Finding,
    FindingId,
    NearMiss,
    ProtectedWorkload,
    Remedy,
    RemedyAction,
    Severity,
)

_PERCENTAGE = re.compile(r"[+-]?[0-9]{1,9}%")
_TEMPLATE_HASH = "pod-template-hash"
# For so many budgets that allow nothing it is sought from which priority on a new pod would break them.
_MOST_SEARCHED = 10
_NEAR_MISSES = 3
# How alike two labels are of which one may be a slip of the other, and how many are held side by side.
_ALIKE = 0.75
_MOST_COMPARED = 1000
_LAST = 2**63

_SEVERITIES = {
    FindingId.BROKEN_BY_PREEMPTION: Severity.ERROR,
    FindingId.NEVER_ALLOWS: Severity.ERROR,
    FindingId.MIN_AVAILABLE_ABOVE_PODS: Severity.ERROR,
    FindingId.OVERLAP: Severity.ERROR,
    FindingId.NO_SCALE: Severity.ERROR,
    FindingId.INVALID_AMOUNT: Severity.ERROR,
    FindingId.INVALID_SELECTOR: Severity.ERROR,
    FindingId.ALLOWS_NONE_NOW: Severity.WARNING,
    FindingId.UNMANAGED_PODS: Severity.WARNING,
    FindingId.SELECTS_EVERY_POD: Severity.WARNING,
    FindingId.NULL_SELECTOR: Severity.WARNING,
    FindingId.SELECTS_NOTHING: Severity.WARNING,
    FindingId.STALE_STATUS: Severity.WARNING,
    FindingId.NO_STATUS: Severity.NOTE,
    FindingId.SEVERAL_WORKLOADS: Severity.NOTE,
    FindingId.PROTECTS_NOTHING: Severity.NOTE,
    FindingId.NO_BUDGET: Severity.NOTE,
}


def audit_budgets(
    cluster: ClusterSnapshot,
    scheduler: Scheduler,
    *,
    now: datetime,
    at: datetime,
    selection: PodSelection = PodSelection(),  # noqa: B008 - it is immutable
    assumptions: Iterable[Assumption] = (),
    spread: Spread = one_by_one,
    phases: Phases = NO_PHASES,
) -> BudgetAudit:
    """What is to say of the budgets of a namespace, or of those that protect pods with some labels.

    ``cluster`` has a status for every budget (``fill_budget_statuses``), and ``assumptions`` say which were filled in.
    All pending pods are asked, wherever they are: ``now`` stands for missing start times, ``at`` is the time that the
    answer is for. ``spread`` does that work for several pods.
    """
    said = list(assumptions)
    with phases.phase("audit"):
        protection = _Protection(cluster)
        workloads = _Workloads(cluster)
        asked = [budget for budget in cluster.pod_disruption_budgets if _is_asked(budget, selection, protection)]
        auditor = _Auditor(cluster, protection, workloads, _filled_in(said))
        items = {budget.key: auditor.audit(budget) for budget in sorted(asked, key=lambda each: each.key)}
        may_be_listed = not any(each.subject == "PodDisruptionBudget" and each.field == "list" for each in said)
        unprotected = _unprotected(cluster, protection, workloads, selection) if may_be_listed else []
    pending = [pod for pod in pending_pods(cluster) if pod.metadata.deletion_timestamp is None] if items else []
    decided: list[tuple[Pod, Verdict]] = []
    unsearched = 0
    if items:
        with phases.phase("prepare"):
            prepared = scheduler.prepare(cluster, now=now)
        decided = list(decide_pending(pending, scheduler, prepared, spread=spread, phases=phases))
        positions = queue_positions(cluster, scheduler, FailedAttempts(cluster.events))
        for key, breaches in _breaches(decided, positions, protection).items():
            if key in items:
                items[key] = _with_breaches(items[key], breaches)
        search = PrioritySearch(cluster, scheduler, prepared, phases=phases)
        unsearched = _search_priorities(cluster, items, protection, search)
    counted = decided[0][1].cluster if decided else _counted(cluster)
    own = (assumption for _, verdict in decided for assumption in verdict.assumptions)
    return BudgetAudit(
        cluster=described(counted, cluster, now),
        at=at,
        pending=len(pending),
        items=list(items.values()),
        unprotected=unprotected,
        unsearched=unsearched,
        assumptions=list(dict.fromkeys([*version_assumptions(cluster.version, scheduler.algorithm), *said, *own])),
    )


class _Protection:
    """Which unfinished pods each budget selects, as the disruption controller sees it, and the other way round."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        budgets = cluster.pod_disruption_budgets
        namespaces = {budget.metadata.namespace for budget in budgets}
        self.in_namespace: dict[str, list[Pod]] = {namespace: [] for namespace in namespaces}
        by_label: dict[tuple[str, str, str], list[Pod]] = {}
        wanted = {
            (budget.metadata.namespace, *label)
            for budget in budgets
            if budget.spec.selector is not None
            for label in budget.spec.selector.match_labels.items()
        }
        for pod in cluster.pods:
            namespace = pod.metadata.namespace
            if namespace not in namespaces or pod.is_terminal:
                continue
            self.in_namespace[namespace].append(pod)
            for label in pod.metadata.labels.items():
                if (namespace, *label) in wanted:
                    by_label.setdefault((namespace, *label), []).append(pod)
        self._pods = {budget.key: self._selected(budget, by_label) for budget in budgets}
        self._budgets: dict[str, list[PodDisruptionBudget]] = {}
        for budget in budgets:
            for pod in self._pods[budget.key]:
                self._budgets.setdefault(pod.key, []).append(budget)

    def pods_of(self, budget: PodDisruptionBudget) -> Sequence[Pod]:
        """The budget's pods that have not finished, in the order of the input."""
        return self._pods[budget.key]

    def budgets_of(self, key: str) -> Sequence[PodDisruptionBudget]:
        """The budgets that select the pod of that name."""
        return self._budgets.get(key, ())

    def _selected(
        self, budget: PodDisruptionBudget, by_label: Mapping[tuple[str, str, str], list[Pod]]
    ) -> Sequence[Pod]:
        selector, namespace = budget.spec.selector, budget.metadata.namespace
        if selector is None or not selector.is_valid():
            return ()
        candidates = [by_label.get((namespace, *label), []) for label in selector.match_labels.items()]
        fewest = min(candidates, key=len, default=self.in_namespace[namespace])
        return [pod for pod in fewest if selector.matches(pod.metadata.labels)]


class _Workload(msgspec.Struct, frozen=True):
    """Something that owns pods: kind and name, how many pods it is to have if that is known, and its selector."""

    name: str
    replicas: int | None = None
    selector: LabelSelector | None = None


class _Workloads:
    """The workloads of a cluster, found by their pods: a ReplicaSet of a Deployment counts as that."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._replica_sets: dict[tuple[str, str], ReplicaSet] = {
            (each.metadata.namespace, each.metadata.name): each for each in cluster.replica_sets
        }
        self._known: dict[tuple[str, str], _Workload] = {}
        kinds = (
            ("Deployment", cluster.deployments),
            ("StatefulSet", cluster.stateful_sets),
            ("ReplicaSet", cluster.replica_sets),
        )
        for kind, group in kinds:
            for each in group:
                if kind == "ReplicaSet" and controller_of(each.metadata) is not None:
                    continue
                name = f"{kind} {each.metadata.name}"
                replicas = 1 if each.spec.replicas is None else each.spec.replicas
                self._known[each.metadata.namespace, name] = _Workload(name, replicas, each.spec.selector)
        for old in cluster.replication_controllers:
            name = f"ReplicationController {old.metadata.name}"
            selector = LabelSelector(match_labels=old.spec.selector) if old.spec.selector else None
            replicas = 1 if old.spec.replicas is None else old.spec.replicas
            self._known[old.metadata.namespace, name] = _Workload(name, replicas, selector)

    def of(self, pod: Pod) -> _Workload:
        """What the pod belongs to; without a name where it has no controller."""
        owner = controller_of(pod.metadata)
        if owner is None:
            return _Workload("")
        name = self._name(pod, owner)
        return self._known.get((pod.metadata.namespace, name)) or _Workload(name)

    def wanting(self, namespace: str, selector: LabelSelector) -> list[_Workload]:
        """The workloads of the namespace whose pods the selector would select, as far as their own selectors say."""
        return [
            workload
            for (where, _), workload in self._known.items()
            if where == namespace
            and workload.selector is not None
            and workload.selector.match_labels
            and selector.matches(workload.selector.match_labels)
        ]

    def _name(self, pod: Pod, owner: OwnerReference) -> str:
        own = f"{owner.kind} {owner.name}"
        if owner.kind != "ReplicaSet":
            return own
        replica_set = self._replica_sets.get((pod.metadata.namespace, owner.name))
        if replica_set is not None:
            return controller_name(replica_set.metadata) or own
        # A Deployment names its ReplicaSets so; without them in the input several would pass for several workloads.
        ending = f"-{pod.metadata.labels.get(_TEMPLATE_HASH, '')}"
        is_of_deployment = len(ending) > 1 and owner.name.endswith(ending)
        return f"Deployment {owner.name.removesuffix(ending)}" if is_of_deployment else own


class _Auditor:
    """What is to say of each budget on its own, and beside the others."""

    def __init__(
        self,
        cluster: ClusterSnapshot,
        protection: _Protection,
        workloads: _Workloads,
        without_status: frozenset[str],
    ) -> None:
        self._protection = protection
        self._workloads = workloads
        self._without_status = without_status
        self._scales = Scales(cluster)
        self._recomputed = _recomputed(cluster)

    def audit(self, budget: PodDisruptionBudget) -> AuditedBudget:
        """The budget's numbers, and all that can be said without a scheduler."""
        status = budget.status or PodDisruptionBudgetStatus()
        pods = self._protection.pods_of(budget)
        spec, selector = budget.spec, budget.spec.selector
        leaving = [pod for pod in pods if _is_leaving(pod, status)]
        staying = [pod for pod in pods if not _is_leaving(pod, status)]
        not_ready = [pod for pod in staying if not _is_ready(pod)]
        is_explained = len(staying) - len(not_ready) == status.current_healthy
        to_be = self._to_be(pods)
        facts = AuditedBudget(
            budget=budget.key,
            selector=None if selector is None else str(selector),
            min_available=spec.min_available,
            max_unavailable=spec.max_unavailable,
            expected=status.expected_pods,
            desired=status.desired_healthy,
            healthy=status.current_healthy,
            allowed=status.disruptions_allowed,
            pods=len(pods),
            workloads=self._protected(pods),
            # Where conditions and status differ, one of them is not up to date, and no pod is to blame.
            not_ready=[pod.metadata.name for pod in not_ready] if is_explained else [],
            leaving=[pod.metadata.name for pod in leaving],
            missing=max(to_be - len(pods), 0),
            is_counted=selector is not None and selector.is_valid() and not selector.is_empty(),
        )
        findings = list(self._findings(budget, facts, pods, to_be))
        return msgspec.structs.replace(facts, findings=findings)

    def _findings(
        self, budget: PodDisruptionBudget, facts: AuditedBudget, pods: Sequence[Pod], to_be: int
    ) -> Iterator[Finding]:
        selector = budget.spec.selector
        if selector is None:
            yield _finding(FindingId.NULL_SELECTOR, budget)
        elif not selector.is_valid():
            yield _finding(FindingId.INVALID_SELECTOR, budget)
        elif selector.is_empty():
            yield _finding(FindingId.SELECTS_EVERY_POD, budget)
        elif not pods:
            yield self._selects_nothing(budget, selector)
        yield from self._about_status(budget)
        if pods:
            yield from self._about_owners(budget, facts, pods)
            yield from self._about_allowance(budget, facts, pods, to_be)
            yield from self._overlap(budget, pods)

    def _about_status(self, budget: PodDisruptionBudget) -> Iterator[Finding]:
        if _is_stale(budget):
            recomputed = self._recomputed[budget.key]
            yield _finding(FindingId.STALE_STATUS, budget, number=recomputed.disruptions_allowed)
        if budget.key in self._without_status:
            yield _finding(FindingId.NO_STATUS, budget)
        if not all(map(_is_amount, (budget.spec.min_available, budget.spec.max_unavailable))):
            yield _finding(FindingId.INVALID_AMOUNT, budget)

    def _about_owners(
        self, budget: PodDisruptionBudget, facts: AuditedBudget, pods: Sequence[Pod]
    ) -> Iterator[Finding]:
        owned = [each for each in facts.workloads if each.workload]
        if len(owned) > 1:
            yield _finding(FindingId.SEVERAL_WORKLOADS, budget, objects=[each.workload for each in owned])
        if not _asks_for_scale(budget):
            return
        without_scale = self._without_scale(pods)
        if without_scale:
            names = sorted({controller_name(pod.metadata) for pod in without_scale})
            yield _finding(
                FindingId.NO_SCALE,
                budget,
                pods=_names(without_scale),
                objects=names,
                remedies=[_set(budget, "minAvailable", max(len(pods) - 1, 0))],
            )
        if unmanaged := [pod for pod in pods if controller_of(pod.metadata) is None]:
            remedies = [_set(budget, "minAvailable", max(len(pods) - 1, 0))]
            found = _finding(FindingId.UNMANAGED_PODS, budget, pods=_names(unmanaged), remedies=remedies)
            # Without any other pods it expects none, and so allows nothing, ever.
            is_error = len(unmanaged) == len(pods) and facts.allowed <= 0
            yield msgspec.structs.replace(found, severity=Severity.ERROR) if is_error else found

    def _about_allowance(
        self, budget: PodDisruptionBudget, facts: AuditedBudget, pods: Sequence[Pod], to_be: int
    ) -> Iterator[Finding]:
        """Why the budget allows nothing, or that it allows everything."""
        judged = self._recomputed.get(budget.key) or budget.status or PodDisruptionBudgetStatus()
        # By number the controller counts the pods that there are; how many there are to be decides what can ever be.
        expected = judged.expected_pods if _asks_for_scale(budget) else to_be
        desired = _desired(budget, expected)
        if desired is None or (_asks_for_scale(budget) and self._without_scale(pods)):
            return
        if expected > 0 and desired <= 0:
            yield _finding(FindingId.PROTECTS_NOTHING, budget, number=expected)
        if judged.disruptions_allowed > 0 or expected <= 0:
            return
        if desired >= expected:
            yield _finding(
                FindingId.MIN_AVAILABLE_ABOVE_PODS if desired > expected else FindingId.NEVER_ALLOWS,
                budget,
                number=expected,
                remedies=_loosened(budget, facts, pods, expected),
            )
        elif not (_asks_for_scale(budget) and all(controller_of(pod.metadata) is None for pod in pods)):
            yield _finding(FindingId.ALLOWS_NONE_NOW, budget, pods=facts.not_ready)

    def _overlap(self, budget: PodDisruptionBudget, pods: Sequence[Pod]) -> Iterator[Finding]:
        shared: list[Pod] = []
        others: set[str] = set()
        for pod in pods:
            budgets = self._protection.budgets_of(pod.key)
            if len(budgets) > 1:
                shared.append(pod)
                others.update(each.metadata.name for each in budgets if each is not budget)
        if shared:
            yield _finding(
                FindingId.OVERLAP,
                budget,
                pods=_names(shared),
                objects=[f"PodDisruptionBudget {name}" for name in sorted(others)],
            )

    def _selects_nothing(self, budget: PodDisruptionBudget, selector: LabelSelector) -> Finding:
        namespace = budget.metadata.namespace
        empty = self._workloads.wanting(namespace, selector)
        finding = _finding(
            FindingId.SELECTS_NOTHING,
            budget,
            objects=sorted(each.name for each in empty),
            near_misses=[] if empty else self._near_misses(namespace, selector),
            remedies=[] if empty else [Remedy(action=RemedyAction.DELETE, target=_title(budget))],
        )
        # Scaled to zero, or its pods are about to be made: the budget is what it should be.
        return msgspec.structs.replace(finding, severity=Severity.NOTE) if empty else finding

    def _near_misses(self, namespace: str, selector: LabelSelector) -> list[NearMiss]:
        """The pods that the selector would select if one label were another, those with most pods first."""
        parts = _parts(selector)
        counts: Counter[tuple[str, str, str]] = Counter()
        slips: dict[tuple[str, str], bool] = {}
        for pod in self._protection.in_namespace[namespace]:
            labels = pod.metadata.labels
            unmet = [part for part in parts if not _single(part).matches(labels)]
            if len(unmet) != 1:
                continue
            wanted, found = _wanted_and_found(unmet[0], labels)
            if len(parts) == 1:
                # Every pod misses a selector of one label by one label; only likely slips are worth telling.
                pair = wanted, found
                if pair not in slips:
                    slips[pair] = len(slips) < _MOST_COMPARED and _is_slip(wanted, found)
                if not slips[pair]:
                    continue
            counts[self._workloads.of(pod).name or f"Pod {pod.metadata.name}", wanted, found] += 1
        return [NearMiss(name, number, *labels) for (name, *labels), number in counts.most_common(_NEAR_MISSES)]

    def _protected(self, pods: Sequence[Pod]) -> list[ProtectedWorkload]:
        numbers: dict[str, list[int]] = {}
        replicas: dict[str, int | None] = {}
        for pod in pods:
            workload = self._workloads.of(pod)
            replicas[workload.name] = workload.replicas
            number = numbers.setdefault(workload.name, [0, 0])
            number[0] += 1
            number[1] += int(pod.metadata.deletion_timestamp is None and _is_ready(pod))
        return [
            ProtectedWorkload(name, number, ready, replicas[name]) for name, (number, ready) in sorted(numbers.items())
        ]

    def _without_scale(self, pods: Sequence[Pod]) -> list[Pod]:
        """The pods of owners that have no size."""
        known: dict[tuple[str, str], bool] = {}
        found = []
        for pod in pods:
            owner = controller_of(pod.metadata)
            if owner is None:
                continue
            key = owner.kind, owner.name
            if key not in known:
                try:
                    self._scales.expected([pod])
                    known[key] = False
                except ScaleError:
                    known[key] = True
            if known[key]:
                found.append(pod)
        return found

    def _to_be(self, pods: Sequence[Pod]) -> int:
        """How many pods there are to be: what their owners want, and those without one; else those that there are."""
        try:
            expected, guessed = self._scales.expected(pods)
        except ScaleError:
            return len(pods)
        if guessed:
            return len(pods)
        return expected + sum(controller_of(pod.metadata) is None for pod in pods)


def _is_asked(budget: PodDisruptionBudget, selection: PodSelection, protection: _Protection) -> bool:
    if selection.namespace not in ("", budget.metadata.namespace):
        return False
    return selection.selector.is_empty() or any(map(selection.has, protection.pods_of(budget)))


def _filled_in(assumptions: Iterable[Assumption]) -> frozenset[str]:
    """The budgets without a status of their own, by name: ``fill_budget_statuses`` says so of each."""
    kind = "PodDisruptionBudget "
    return frozenset(
        each.subject.removeprefix(kind)
        for each in assumptions
        if each.field == "status" and each.subject.startswith(kind)
    )


def _recomputed(cluster: ClusterSnapshot) -> dict[str, PodDisruptionBudgetStatus]:
    """What the controller would now say of the budgets that it has not seen in their latest form."""
    stale = [msgspec.structs.replace(each, status=None) for each in cluster.pod_disruption_budgets if _is_stale(each)]
    filled, _ = fill_budget_statuses(msgspec.structs.replace(cluster, pod_disruption_budgets=stale))
    return {each.key: each.status for each in filled.pod_disruption_budgets if each.status is not None}


def _is_stale(budget: PodDisruptionBudget) -> bool:
    return budget.status is not None and budget.status.observed_generation < budget.metadata.generation


def _is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def _is_leaving(pod: Pod, status: PodDisruptionBudgetStatus) -> bool:
    return pod.metadata.deletion_timestamp is not None or pod.metadata.name in status.disrupted_pods


def _is_amount(amount: int | str | None) -> bool:
    return not isinstance(amount, str) or _PERCENTAGE.fullmatch(amount) is not None


def _asks_for_scale(budget: PodDisruptionBudget) -> bool:
    """Whether the controller has to know how many pods there are to be."""
    return budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)


def _desired(budget: PodDisruptionBudget, expected: int) -> int | None:
    """How many of the expected pods have to stay by the budget's spec; ``None`` where that is no amount.

    Percentages are rounded up. A budget that says nothing allows nothing.
    """
    spec = budget.spec
    amount = spec.min_available if spec.max_unavailable is None else spec.max_unavailable
    if not _is_amount(amount):
        return None
    if amount is None:
        return expected
    number = -(-int(amount.removesuffix("%")) * expected // 100) if isinstance(amount, str) else amount
    return number if spec.max_unavailable is None else max(expected - number, 0)


def _title(budget: PodDisruptionBudget) -> str:
    return f"PodDisruptionBudget {budget.metadata.name}"


def _names(pods: Iterable[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


def _finding(kind: FindingId, budget: PodDisruptionBudget, **evidence: Any) -> Finding:
    return Finding(
        id=kind,
        severity=_SEVERITIES[kind],
        namespace=budget.metadata.namespace,
        subject=_title(budget),
        **evidence,
    )


def _set(budget: PodDisruptionBudget, field: str, value: int) -> Remedy:
    return Remedy(action=RemedyAction.SET, target=_title(budget), field=field, value=value)


def _loosened(budget: PodDisruptionBudget, facts: AuditedBudget, pods: Sequence[Pod], expected: int) -> list[Remedy]:
    """What lets a budget allow one disruption once all its pods are ready."""
    remedies = []
    owners = [controller_of(pod.metadata) for pod in pods]
    is_scaled = all(owners) and all(each.replicas is not None for each in facts.workloads)
    if is_scaled:
        remedies.append(_set(budget, "maxUnavailable", 1))
    elif expected > 0:
        remedies.append(_set(budget, "minAvailable", expected - 1))
    replicas = _enough_replicas(budget)
    if is_scaled and len(facts.workloads) == 1 and replicas is not None:
        remedies.append(Remedy(action=RemedyAction.SCALE, target=facts.workloads[0].workload, value=replicas))
    return remedies


def _enough_replicas(budget: PodDisruptionBudget) -> int | None:
    """The fewest replicas of which the budget lets one go; ``None`` where no number will do."""
    amount = budget.spec.min_available
    if budget.spec.max_unavailable is not None or amount is None:
        return None
    if isinstance(amount, int):
        return amount + 1
    percentage = int(amount.removesuffix("%"))
    # The share that stays is rounded up: it has to leave a whole pod.
    return -(-100 // (100 - percentage)) if 0 <= percentage < 100 else None


def _parts(selector: LabelSelector) -> list[LabelSelectorRequirement]:
    equal = [LabelSelectorRequirement(key, "In", [value]) for key, value in selector.match_labels.items()]
    return [*equal, *selector.match_expressions]


def _single(part: LabelSelectorRequirement) -> LabelSelector:
    return LabelSelector(match_expressions=[part])


def _wanted_and_found(part: LabelSelectorRequirement, labels: Mapping[str, str]) -> tuple[str, str]:
    """A part of a selector, and what a pod has instead: another value of the key, or the value under another key."""
    if part.operator != "In" or len(part.values) != 1:
        found = f"{part.key}={labels[part.key]}" if part.key in labels else ""
        return str(_single(part)), found
    value = part.values[0]
    if part.key in labels:
        found = f"{part.key}={labels[part.key]}"
    else:
        found = next((f"{key}={value}" for key in sorted(labels) if labels[key] == value), "")
    return f"{part.key}={value}", found


def _is_slip(wanted: str, found: str) -> bool:
    """Whether one label may have been written for the other: under another key, or misspelt."""
    if not found:
        return False
    key, _, value = wanted.partition("=")
    other_key, _, other = found.partition("=")
    return key != other_key or SequenceMatcher(None, value, other, autojunk=False).ratio() >= _ALIKE


def _unprotected(
    cluster: ClusterSnapshot, protection: _Protection, workloads: _Workloads, selection: PodSelection
) -> list[Finding]:
    """The workloads of two replicas and more that no budget protects; those without a size are left out."""
    scales = Scales(cluster)
    members: dict[tuple[str, str], list[Pod]] = {}
    replicas: dict[tuple[str, str], int | None] = {}
    for pod in cluster.pods:
        if pod.is_terminal or controller_of(pod.metadata) is None or not selection.has(pod):
            continue
        workload = workloads.of(pod)
        key = pod.metadata.namespace, workload.name
        members.setdefault(key, []).append(pod)
        replicas[key] = workload.replicas
    found = []
    for (namespace, name), pods in sorted(members.items()):
        size = replicas[namespace, name]
        number = len(pods) if size is None else size
        if number < 2 or any(protection.budgets_of(pod.key) for pod in pods) or not _has_scale(pods[0], scales):
            continue
        found.append(
            Finding(
                id=FindingId.NO_BUDGET,
                severity=_SEVERITIES[FindingId.NO_BUDGET],
                namespace=namespace,
                subject=name,
                number=number,
                remedies=[Remedy(action=RemedyAction.CREATE_BUDGET, target=name, field="maxUnavailable", value=1)],
            )
        )
    return found


def _has_scale(pod: Pod, scales: Scales) -> bool:
    try:
        scales.expected([pod])
    except ScaleError:
        return False
    return True


def _breaches(
    decided: Sequence[tuple[Pod, Verdict]], positions: Mapping[str, int], protection: _Protection
) -> dict[str, list[Breach]]:
    """The pending pods that would break a budget, by its name, in the order of the queue."""
    found: dict[str, list[Breach]] = {}
    for pod, verdict in sorted(decided, key=lambda each: positions.get(each[0].key, _LAST)):
        broken: dict[str, dict[str, list[str]]] = {}
        left: dict[str, int] = {}
        allowed: dict[str, int] = {}
        for node, victims in verdict.victims.items():
            # Those that are leaving anyway are lost to the budget already.
            going = [victim.pod for victim in victims if not victim.terminating]
            taken: dict[str, list[str]] = {}
            for victim in going:
                for budget in protection.budgets_of(victim):
                    status = budget.status or PodDisruptionBudgetStatus()
                    if victim.partition("/")[2] not in status.disrupted_pods:
                        allowed[budget.key] = status.disruptions_allowed
                        taken.setdefault(budget.key, []).append(victim)
            for key, pods in taken.items():
                rest = allowed[key] - len(pods)
                if rest < 0:
                    broken.setdefault(key, {})[node] = pods
                    left[key] = min(left.get(key, 0), rest)
        for key, nodes in broken.items():
            breach = Breach(
                pod=pod.key,
                priority=pod.priority,
                owner=controller_name(pod.metadata),
                position=positions.get(pod.key),
                nodes=list(nodes),
                victims=list(dict.fromkeys(victim for pods in nodes.values() for victim in pods)),
                allowed=allowed[key],
                left=left[key],
                is_certain=len(nodes) == len(verdict.victims),
            )
            found.setdefault(key, []).append(breach)
    return found


def _with_breaches(item: AuditedBudget, breaches: list[Breach]) -> AuditedBudget:
    """The budget with those who would break it, which is a finding, too."""
    namespace, _, name = item.budget.partition("/")
    priority = max(breach.priority for breach in breaches)
    certain = any(breach.is_certain for breach in breaches)
    victims = dict.fromkeys(victim for breach in breaches for victim in breach.victims)
    finding = Finding(
        id=FindingId.BROKEN_BY_PREEMPTION,
        severity=Severity.ERROR if certain else Severity.WARNING,
        namespace=namespace,
        subject=f"PodDisruptionBudget {name}",
        pods=[victim.partition("/")[2] for victim in victims],
        objects=[f"Pod {breach.pod}" for breach in breaches],
        remedies=[
            Remedy(action=RemedyAction.RAISE_PRIORITY, target=each.workload, value=priority)
            for each in item.workloads
            if each.workload
        ],
    )
    return msgspec.structs.replace(item, breaches=breaches, findings=[finding, *item.findings])


def _search_priorities(
    cluster: ClusterSnapshot, items: dict[str, AuditedBudget], protection: _Protection, search: PrioritySearch
) -> int:
    """Note for budgets that allow nothing from which priority on a new pod breaks them; how many were left out.

    The least important pod of each is asked about, and a new pod that needs all that pods up to its priority hold on
    its node: a smaller one may find other victims there.
    """
    nodes = {node.name: node for node in cluster.nodes}
    least: dict[str, Pod] = {}
    for budget in cluster.pod_disruption_budgets:
        if budget.key not in items or items[budget.key].allowed > 0:
            continue
        running = [
            pod
            for pod in protection.pods_of(budget)
            if pod.spec.node_name in nodes and pod.metadata.deletion_timestamp is None
        ]
        if running:
            least[budget.key] = min(running, key=_importance)
    chosen = sorted(least, key=lambda key: (least[key].priority, key))[:_MOST_SEARCHED]
    wanted = {least[key].spec.node_name for key in chosen}
    beside: dict[str, list[Pod]] = {name: [] for name in wanted}
    for pod in cluster.pods:
        if pod.spec.node_name in wanted and not pod.is_terminal:
            beside[pod.spec.node_name].append(pod)
    for key in chosen:
        pod = least[key]
        node = pod.spec.node_name
        room = room_of(pod, nodes[node], [each for each in beside[node] if each.priority > pod.priority])
        if room:
            threshold = search.threshold(pod, SizeName.ROOM, room)
            found = BreakingPriority(pod.key, node, pod.priority, threshold)
            items[key] = msgspec.structs.replace(items[key], breaking_priority=found)
    return len(least) - len(chosen)


def _importance(pod: Pod) -> tuple[int, float]:
    """The lower the sooner a pod goes: by priority, then the one that started last."""
    started = pod.status.start_time
    return pod.priority, -started.timestamp() if started else -float(_LAST)


def _counted(cluster: ClusterSnapshot) -> ClusterSummary:
    nodes = {node.name for node in cluster.nodes}
    return ClusterSummary(len(nodes), sum(pod.spec.node_name in nodes and not pod.is_terminal for pod in cluster.pods))
