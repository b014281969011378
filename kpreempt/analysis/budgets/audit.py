"""Finds problems with PodDisruptionBudgets (PDBs), and the pending or new pods that would violate them.

The disruption controller follows ``pkg/controller/disruption/disruption.go``, the eviction API
``pkg/registry/core/pod/storage/eviction.go`` (``k8s.io/kubernetes`` v1.36.3). For both, an empty selector selects every
pod of the namespace; for the scheduler it selects none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from kpreempt.admission import fill_budget_statuses
from kpreempt.analysis.algorithms import AnalysisContext, Spread, decide_pending, one_by_one, pending_pods, pods_by_node
from kpreempt.analysis.budgets.protection import NearMisses, Protection, Workloads
from kpreempt.analysis.explain.pods import described
from kpreempt.analysis.hypothetical_pods import PrioritySearch, free_amounts_on
from kpreempt.analysis.pending.pods import queue_positions
from kpreempt.analysis.pod_selection import PodSelection
from kpreempt.analysis.queue.order import FailedAttempts
from kpreempt.analysis.unread import BUDGETS, unread_events, unread_for_budgets
from kpreempt.controllers.actions import SyncError, is_ready
from kpreempt.controllers.disruption import Scales, desired_healthy, needs_scale, owner_scales
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import controller_name, controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kpreempt.verdict import ClusterSummary, PossibleOutcome, Verdict
from kpreempt.verdict.at_risk import SizeName
from kpreempt.verdict.budgets import (
    AuditedBudget,
    BudgetAudit,
    Finding,
    FindingId,
    PossibleViolation,
    ProtectedWorkload,
    Remedy,
    RemedyAction,
    Severity,
    ViolatingPriority,
)

_PERCENTAGE = re.compile(r"[+-]?[0-9]{1,9}%")
# The minimum replicas set by a HorizontalPodAutoscaler, by kind, namespace and name of the workload.
MinimumSizes = Mapping[tuple[str, str, str], int]
NO_MINIMUM_SIZES: MinimumSizes = MappingProxyType({})

_SEVERITIES = {
    FindingId.VIOLATED_BY_PREEMPTION: Severity.ERROR,
    FindingId.NEVER_ALLOWS: Severity.ERROR,
    FindingId.MIN_AVAILABLE_ABOVE_PODS: Severity.ERROR,
    FindingId.OVERLAP: Severity.ERROR,
    FindingId.NO_SCALE: Severity.ERROR,
    FindingId.INVALID_AMOUNT: Severity.ERROR,
    FindingId.INVALID_SELECTOR: Severity.ERROR,
    FindingId.ALLOWS_NONE_NOW: Severity.WARNING,
    FindingId.ALLOWS_NONE_AT_HPA_MINIMUM: Severity.WARNING,
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
    context: AnalysisContext,
    *,
    selection: PodSelection = PodSelection(),  # noqa: B008 - it is immutable
    minimum_sizes: MinimumSizes = NO_MINIMUM_SIZES,
    spread: Spread = one_by_one,
) -> BudgetAudit:
    """Audit the PDBs of a namespace, or those that protect pods with some labels.

    Every PDB of the cluster must have a status (``fill_budget_statuses``); the context's assumptions list those that
    were computed. All pending pods are evaluated, in any namespace; ``spread`` runs several in parallel. Raises
    ``PluginFailedError`` if a plugin cannot order the queue.
    """
    cluster, scheduler, phases, at = context.cluster, context.scheduler, context.phases, context.time
    assumptions = list(context.assumptions)
    with phases.phase("audit"):
        protection = Protection(cluster)
        workloads = Workloads(cluster)
        selected = [
            budget
            for budget in cluster.pod_disruption_budgets
            if selection.namespace in ("", budget.metadata.namespace)
            and (selection.selector.is_empty() or any(map(selection.has, protection.pods_of(budget))))
        ]
        # The names of PDBs whose status was computed, from the assumptions of ``fill_budget_statuses``.
        kind = "PodDisruptionBudget "
        auditor = _Auditor(
            cluster,
            protection,
            workloads,
            frozenset(
                each.subject.removeprefix(kind)
                for each in assumptions
                if each.field == "status" and each.subject.startswith(kind)
            ),
            minimum_sizes,
        )
        items = {budget.key: auditor.audit(budget) for budget in sorted(selected, key=lambda each: each.key)}
        assumptions += unread_for_budgets(cluster, [pod for budget in selected for pod in protection.pods_of(budget)])
        may_be_listed = BUDGETS not in cluster.unread
        unprotected = _unprotected(cluster, protection, workloads, selection) if may_be_listed else []
    pending = [pod for pod in pending_pods(cluster) if pod.metadata.deletion_timestamp is None] if items else []
    decided: list[tuple[Pod, Verdict]] = []
    unsearched = 0
    if items:
        assumptions += unread_events(cluster)
        with phases.phase("prepare"):
            prepared = scheduler.prepare(cluster, now=at)
        decided = list(decide_pending(pending, scheduler, prepared, spread=spread, phases=phases))
        rules = scheduler.queue_rules(lambda: prepared, phases)
        positions = queue_positions(cluster, scheduler, FailedAttempts(cluster.events), rules)
        for key, breaches in breaches_of(decided, positions, protection).items():
            if key in items:
                items[key] = with_violations(items[key], breaches)
        search = PrioritySearch(cluster, scheduler, prepared, phases=phases)
        unsearched = search_priorities(cluster, items, protection, search)
    names = {node.name for node in cluster.nodes}
    num_pods = sum(pod.spec.node_name in names and not pod.is_terminal for pod in cluster.pods)
    counted = decided[0][1].cluster if decided else ClusterSummary(len(names), num_pods)
    own = (assumption for _, verdict in decided for assumption in verdict.assumptions)
    return BudgetAudit(
        algorithm=scheduler.algorithm,
        cluster=described(counted, cluster, context.now),
        at=at,
        pending=len(pending),
        items=list(items.values()),
        unprotected=unprotected,
        unsearched=unsearched,
        assumptions=list(dict.fromkeys([*assumptions, *own])),
    )


def audit_specs(cluster: ClusterSnapshot, minimum_sizes: MinimumSizes = NO_MINIMUM_SIZES) -> list[AuditedBudget]:
    """Audit each PDB without a scheduler, in the order of the cluster."""
    auditor = _Auditor(cluster, Protection(cluster), Workloads(cluster), frozenset(), minimum_sizes)
    return [auditor.audit(budget) for budget in cluster.pod_disruption_budgets]


class _Auditor:
    """Audits each PDB by itself and together with the others."""

    def __init__(
        self,
        cluster: ClusterSnapshot,
        protection: Protection,
        workloads: Workloads,
        without_status: frozenset[str],
        minimum_sizes: MinimumSizes,
    ) -> None:
        self._minimum_sizes, self._protection = minimum_sizes, protection
        self._workloads = workloads
        self._near_misses = NearMisses(workloads)
        self._without_status = without_status
        self._scales = Scales(cluster)
        # The status that the controller would set for PDBs whose latest version it has not observed.
        budgets = cluster.pod_disruption_budgets
        stale = [msgspec.structs.replace(each, status=None) for each in budgets if _is_stale(each)]
        filled, _ = fill_budget_statuses(msgspec.structs.replace(cluster, pod_disruption_budgets=stale))
        self._recomputed = {each.key: each.status for each in filled.pod_disruption_budgets if each.status is not None}

    def audit(self, budget: PodDisruptionBudget) -> AuditedBudget:
        """The PDB's numbers, and all findings that do not need a scheduler."""
        status = budget.status or PodDisruptionBudgetStatus()
        pods = self._protection.pods_of(budget)
        spec, selector = budget.spec, budget.spec.selector
        terminating = [pod for pod in pods if _is_leaving(pod, status)]
        running = [pod for pod in pods if not _is_leaving(pod, status)]
        not_ready = [pod for pod in running if not is_ready(pod)]
        is_explained = len(running) - len(not_ready) == status.current_healthy
        desired_pods = self._desired_pods(pods)
        facts = AuditedBudget(
            budget=budget.key,
            selector=None if selector is None else str(selector),
            min_available=spec.min_available,
            max_unavailable=spec.max_unavailable,
            expected_pods=status.expected_pods,
            desired_healthy=status.desired_healthy,
            current_healthy=status.current_healthy,
            disruptions_allowed=status.disruptions_allowed,
            pods=len(pods),
            workloads=self._protected(pods),
            # If conditions and status disagree, one of them is outdated, and no pod is to blame.
            not_ready=[pod.metadata.name for pod in not_ready] if is_explained else [],
            terminating=[pod.metadata.name for pod in terminating],
            missing=max(desired_pods - len(pods), 0),
            always_allows_unhealthy=spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
            is_counted=selector is not None and selector.is_valid() and not selector.is_empty(),
        )
        return msgspec.structs.replace(facts, findings=list(self._findings(budget, facts, pods, desired_pods)))

    def _findings(
        self, budget: PodDisruptionBudget, facts: AuditedBudget, pods: Sequence[Pod], desired_pods: int
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
        if _is_stale(budget):
            recomputed = self._recomputed[budget.key]
            yield _finding(FindingId.STALE_STATUS, budget, number=recomputed.disruptions_allowed)
        if budget.key in self._without_status:
            yield _finding(FindingId.NO_STATUS, budget)
        if not all(map(_is_amount, (budget.spec.min_available, budget.spec.max_unavailable))):
            yield _finding(FindingId.INVALID_AMOUNT, budget)
        if pods:
            yield from self._about_owners(budget, facts, pods)
            yield from self._about_allowance(budget, facts, pods, desired_pods)
            yield from self._overlap(budget, pods)

    def _about_owners(
        self, budget: PodDisruptionBudget, facts: AuditedBudget, pods: Sequence[Pod]
    ) -> Iterator[Finding]:
        owned = [each for each in facts.workloads if each.workload]
        if len(owned) > 1:
            yield _finding(FindingId.SEVERAL_WORKLOADS, budget, objects=[each.workload for each in owned])
        if not needs_scale(budget.spec):
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
            # If it has no other pods, the controller expects none, so it never allows a disruption.
            is_error = len(unmanaged) == len(pods) and facts.disruptions_allowed <= 0
            yield msgspec.structs.replace(found, severity=Severity.ERROR) if is_error else found

    def _about_allowance(
        self, budget: PodDisruptionBudget, facts: AuditedBudget, pods: Sequence[Pod], desired_pods: int
    ) -> Iterator[Finding]:
        """Why the PDB allows no disruptions, or any number of them."""
        status = self._recomputed.get(budget.key) or budget.status or PodDisruptionBudgetStatus()
        # With a number, the controller counts existing pods; the desired pods determine what it can ever allow.
        expected = status.expected_pods if needs_scale(budget.spec) else desired_pods
        desired = _desired(budget.spec, expected)
        if desired is None or (needs_scale(budget.spec) and self._without_scale(pods)):
            return
        if expected > 0 and desired <= 0:
            yield _finding(FindingId.PROTECTS_NOTHING, budget, number=expected)
        if desired < expected:
            yield from self._about_autoscalers(budget, facts)
        if status.disruptions_allowed > 0 or expected <= 0:
            return
        if desired >= expected:
            # Changes that allow one disruption once all pods are ready.
            remedies = []
            owners = [controller_of(pod.metadata) for pod in pods]
            is_scaled = all(owners) and all(each.replicas is not None for each in facts.workloads)
            if is_scaled:
                remedies.append(_set(budget, "maxUnavailable", 1))
            elif expected > 0:
                remedies.append(_set(budget, "minAvailable", expected - 1))
            replicas = _min_replicas(budget)
            if is_scaled and len(facts.workloads) == 1 and replicas is not None:
                remedies.append(Remedy(action=RemedyAction.SCALE, target=facts.workloads[0].workload, value=replicas))
            yield _finding(
                FindingId.MIN_AVAILABLE_ABOVE_PODS if desired > expected else FindingId.NEVER_ALLOWS,
                budget,
                number=expected,
                remedies=remedies,
            )
        elif not (needs_scale(budget.spec) and all(controller_of(pod.metadata) is None for pod in pods)):
            yield _finding(FindingId.ALLOWS_NONE_NOW, budget, pods=facts.not_ready)

    def _about_autoscalers(self, budget: PodDisruptionBudget, facts: AuditedBudget) -> Iterator[Finding]:
        """Whether the PDB allows no disruptions once autoscalers have scaled its workloads down to their minimum."""
        expected = 0
        scaled: dict[str, int] = {}
        for each in facts.workloads:
            kind, _, name = each.workload.partition(" ")
            size = each.pods if each.replicas is None else each.replicas
            minimum = self._minimum_sizes.get((kind, budget.metadata.namespace, name), size)
            # A workload with a minimum of zero has one pod before it has none.
            scaled |= {each.workload: max(minimum, 1)} if minimum < size else {}
            expected += scaled.get(each.workload, size)
        desired = _desired(budget.spec, expected)
        if not scaled or desired is None or desired < expected:
            return
        remedies = [_set(budget, "maxUnavailable", 1)]
        replicas = _min_replicas(budget)
        if len(scaled) == len(facts.workloads) == 1 and replicas is not None:
            target = f"the HorizontalPodAutoscaler of {facts.workloads[0].workload}"
            remedies.append(Remedy(action=RemedyAction.SET, target=target, field="minReplicas", value=replicas))
        yield _finding(
            FindingId.ALLOWS_NONE_AT_HPA_MINIMUM, budget, number=expected, objects=list(scaled), remedies=remedies
        )

    def _overlap(self, budget: PodDisruptionBudget, pods: Sequence[Pod]) -> Iterator[Finding]:
        shared = [pod for pod in pods if len(self._protection.budgets_of(pod.key)) > 1]
        if shared:
            others = {each.metadata.name for each in self._protection.other_budgets(budget, shared)}
            yield _finding(
                FindingId.OVERLAP,
                budget,
                pods=_names(shared),
                objects=[f"PodDisruptionBudget {name}" for name in sorted(others)],
            )

    def _selects_nothing(self, budget: PodDisruptionBudget, selector: LabelSelector) -> Finding:
        namespace = budget.metadata.namespace
        empty = self._workloads.wanting(namespace, selector)
        pods = self._protection.in_namespace[namespace]
        finding = _finding(
            FindingId.SELECTS_NOTHING,
            budget,
            objects=sorted(each.name for each in empty),
            near_misses=[] if empty else self._near_misses.of(selector, pods),
            remedies=[] if empty else [Remedy(action=RemedyAction.DELETE, target=_title(budget))],
        )
        # The workload is scaled to zero, or its pods are about to be created: the PDB is correct.
        return msgspec.structs.replace(finding, severity=Severity.NOTE) if empty else finding

    def _protected(self, pods: Sequence[Pod]) -> list[ProtectedWorkload]:
        numbers: dict[str, list[int]] = {}
        replicas: dict[str, int | None] = {}
        for pod in pods:
            workload = self._workloads.of(pod)
            replicas[workload.name] = workload.replicas
            number = numbers.setdefault(workload.name, [0, 0])
            number[0] += 1
            number[1] += int(pod.metadata.deletion_timestamp is None and is_ready(pod))
        return [
            ProtectedWorkload(name, number, ready, replicas[name]) for name, (number, ready) in sorted(numbers.items())
        ]

    def _without_scale(self, pods: Sequence[Pod]) -> list[Pod]:
        """The pods whose owners have no scale."""
        known: dict[tuple[str, str], bool] = {}
        found = []
        for pod in pods:
            owner = controller_of(pod.metadata)
            if owner is None:
                continue
            key = owner.kind, owner.name
            if key not in known:
                known[key] = _has_scale(pod, self._scales)
            if not known[key]:
                found.append(pod)
        return found

    def _desired_pods(self, pods: Sequence[Pod]) -> int:
        """The desired number of pods: the replicas of their owners, and pods without one; else the existing pods."""
        try:
            scales = owner_scales(pods, self._scales.scale_of)
        except SyncError:
            return len(pods)
        if any(scale.is_guessed for scale in scales):
            return len(pods)
        return sum(scale.replicas for scale in scales) + sum(controller_of(pod.metadata) is None for pod in pods)


def _is_stale(budget: PodDisruptionBudget) -> bool:
    return budget.status is not None and budget.status.observed_generation < budget.metadata.generation


def _is_leaving(pod: Pod, status: PodDisruptionBudgetStatus) -> bool:
    return pod.metadata.deletion_timestamp is not None or pod.metadata.name in status.disrupted_pods


def _is_amount(amount: int | str | None) -> bool:
    return not isinstance(amount, str) or _PERCENTAGE.fullmatch(amount) is not None


def _desired(spec: PodDisruptionBudgetSpec, expected: int) -> int | None:
    """The desired number of healthy pods; ``None`` if the spec has no valid amount."""
    amount = spec.min_available if spec.max_unavailable is None else spec.max_unavailable
    return desired_healthy(spec, expected) if _is_amount(amount) else None


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


def _min_replicas(budget: PodDisruptionBudget) -> int | None:
    """The minimum number of replicas for which the PDB allows a disruption; ``None`` if there is none."""
    amount = budget.spec.min_available
    if budget.spec.max_unavailable is not None or amount is None:
        return None
    if isinstance(amount, int):
        return amount + 1
    percentage = int(amount.removesuffix("%"))
    # The percentage that must stay is rounded up, so the rest must be a whole pod.
    return -(-100 // (100 - percentage)) if 0 <= percentage < 100 else None


def _unprotected(
    cluster: ClusterSnapshot, protection: Protection, workloads: Workloads, selection: PodSelection
) -> list[Finding]:
    """The workloads with two or more replicas that no PDB protects; workloads without a scale are left out."""
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
        owner_scales([pod], scales.scale_of)
    except SyncError:
        return False
    return True


# The number of PDBs without allowed disruptions for which the violating priority is searched.
_MAX_SEARCHED = 10
_LAST = 2**63


def breaches_of(
    decided: Sequence[tuple[Pod, Verdict]], positions: Mapping[str, int], protection: Protection
) -> dict[str, list[PossibleViolation]]:
    """The pending pods that would violate each PDB, in queue order."""
    found: dict[str, list[PossibleViolation]] = {}
    for pod, verdict in sorted(decided, key=lambda each: positions.get(each[0].key, _LAST)):
        outcomes = verdict.possible_outcomes
        violations: dict[str, list[_Disruptions]] = {}
        for outcome in outcomes:
            for key, taken in _disruptions_of(outcome, protection).items():
                if taken.most > taken.allowed:
                    violations.setdefault(key, []).append(taken)
        for key, outcomes_of_budget in violations.items():
            breach = PossibleViolation(
                pod=pod.key,
                priority=pod.priority,
                owner=controller_name(pod.metadata),
                position=positions.get(pod.key),
                nodes=list(dict.fromkeys(taken.node for taken in outcomes_of_budget)),
                victims=list(dict.fromkeys(victim for taken in outcomes_of_budget for victim in taken.pods)),
                allowed=outcomes_of_budget[0].allowed,
                remaining=min(taken.allowed - taken.most for taken in outcomes_of_budget),
                is_certain=len(outcomes_of_budget) == len(outcomes)
                and all(taken.least > taken.allowed for taken in outcomes_of_budget),
            )
            found.setdefault(key, []).append(breach)
    return found


class _Disruptions(NamedTuple):
    """The disruptions of a PDB in one outcome: the possible victims, and the maximum and minimum of them."""

    node: str
    pods: list[str]
    allowed: int
    most: int
    least: int


def _disruptions_of(outcome: PossibleOutcome, protection: Protection) -> dict[str, _Disruptions]:
    """The disruptions of each PDB in an outcome, except pods that are already terminating."""
    groups = [(len(outcome.victims), outcome.victims), *((choice.count, choice.pods) for choice in outcome.choices)]
    taken: dict[str, _Disruptions] = {}
    for count, pods in groups:
        victims: dict[str, list[str]] = {}
        for pod in pods:
            for budget in protection.budgets_of(pod) if pod not in protection.leaving else ():
                if pod.partition("/")[2] not in (budget.status or PodDisruptionBudgetStatus()).disrupted_pods:
                    victims.setdefault(budget.key, []).append(pod)
        for key, pods_of_budget in victims.items():
            before = taken.get(key, _Disruptions(outcome.node, [], protection.allowed_by(key), 0, 0))
            taken[key] = before._replace(
                pods=before.pods + pods_of_budget,
                most=before.most + min(count, len(pods_of_budget)),
                least=before.least + max(0, count - (len(pods) - len(pods_of_budget))),
            )
    return taken


def with_violations(item: AuditedBudget, breaches: list[PossibleViolation]) -> AuditedBudget:
    """The PDB with the pods that would violate it, which is also a finding."""
    namespace, _, name = item.budget.partition("/")
    priority = max(breach.priority for breach in breaches)
    certain = any(breach.is_certain for breach in breaches)
    victims = dict.fromkeys(victim for breach in breaches for victim in breach.victims)
    finding = Finding(
        id=FindingId.VIOLATED_BY_PREEMPTION,
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
    return msgspec.structs.replace(item, violations=breaches, findings=[finding, *item.findings])


def search_priorities(
    cluster: ClusterSnapshot, items: dict[str, AuditedBudget], protection: Protection, search: PrioritySearch
) -> int:
    """Find the priority from which a new pod violates each PDB without allowed disruptions.

    Returns the number of PDBs that were left out. The search uses the least important pod of each PDB, and a new pod
    that requests everything that pods up to that priority hold on its node; a smaller pod could have other victims.
    """
    nodes = {node.name: node for node in cluster.nodes}
    first_victims: dict[str, Pod] = {}
    for budget in cluster.pod_disruption_budgets:
        if budget.key not in items or items[budget.key].disruptions_allowed > 0:
            continue
        running = [
            pod
            for pod in protection.pods_of(budget)
            if pod.spec.node_name in nodes and pod.metadata.deletion_timestamp is None
        ]
        if running:
            # The first victim: the lowest priority, then the latest start time.
            first_victims[budget.key] = min(
                running,
                key=lambda pod: (
                    pod.priority,
                    -pod.status.start_time.timestamp() if pod.status.start_time else -float(_LAST),
                ),
            )
    chosen = sorted(first_victims, key=lambda key: (first_victims[key].priority, key))[:_MAX_SEARCHED]
    pods_on = pods_by_node(cluster.pods, [first_victims[key].spec.node_name for key in chosen])
    for key in chosen:
        pod = first_victims[key]
        node = pod.spec.node_name
        free = free_amounts_on(pod, nodes[node], [each for each in pods_on[node] if each.priority > pod.priority])
        if free:
            found = ViolatingPriority(pod.key, node, pod.priority, search.threshold(pod, SizeName.OWN_PLUS_FREE, free))
            items[key] = msgspec.structs.replace(items[key], violating_priority=found)
    return len(first_victims) - len(chosen)
