"""Finds problems with PodDisruptionBudgets (PDBs) that do not depend on a scheduler.

The disruption controller follows ``pkg/controller/disruption/disruption.go``, the eviction API
``pkg/registry/core/pod/storage/eviction.go`` (``k8s.io/kubernetes`` v1.36.3). For both, an empty selector selects every
pod of the namespace; for the scheduler it selects none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from kpreempt.admission import fill_budget_statuses
from kpreempt.analysis.budgets.protection import NearMisses, Protection, Workloads
from kpreempt.analysis.pod_selection import PodSelection
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.controllers.actions import SyncError, is_ready
from kpreempt.controllers.disruption import Scales, desired_healthy, needs_scale, owner_scales
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import controller_name, controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kpreempt.verdict.budgets import AuditedBudget, Finding, FindingId, ProtectedWorkload, Severity

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


def audit_specs(cluster: ClusterSnapshot, minimum_sizes: MinimumSizes = NO_MINIMUM_SIZES) -> list[AuditedBudget]:
    """Audit each PDB without a scheduler, in the order of the cluster."""
    auditor = Auditor(cluster, Protection(cluster), Workloads(cluster), minimum_sizes)
    return [auditor.audit(budget) for budget in cluster.pod_disruption_budgets]


class Auditor:
    """Audits each PDB by itself and together with the others."""

    def __init__(
        self,
        cluster: ClusterSnapshot,
        protection: Protection,
        workloads: Workloads,
        minimum_sizes: MinimumSizes,
        without_status: frozenset[str] = frozenset(),
    ) -> None:
        """``without_status`` names the PDBs whose status was computed."""
        self._minimum_sizes, self._protection = minimum_sizes, protection
        self._owners = Owners(cluster)
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
            manager=next(filter(None, map(self._owners.manager_of_pod, pods)), ""),
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
            yield _finding(FindingId.NO_SCALE, budget, pods=_names(without_scale), objects=names)
        if unmanaged := [pod for pod in pods if controller_of(pod.metadata) is None]:
            found = _finding(FindingId.UNMANAGED_PODS, budget, pods=_names(unmanaged))
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
            is_above = desired > expected
            yield _finding(
                FindingId.MIN_AVAILABLE_ABOVE_PODS if is_above else FindingId.NEVER_ALLOWS, budget, number=expected
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
        yield _finding(FindingId.ALLOWS_NONE_AT_HPA_MINIMUM, budget, number=expected, objects=list(scaled))

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


def unprotected_workloads(
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
            )
        )
    return found


def _has_scale(pod: Pod, scales: Scales) -> bool:
    try:
        owner_scales([pod], scales.scale_of)
    except SyncError:
        return False
    return True


def min_replicas(budget: PodDisruptionBudget) -> int | None:
    """The minimum number of replicas for which the PDB allows a disruption; ``None`` if there is none."""
    amount = budget.spec.min_available
    if budget.spec.max_unavailable is not None or amount is None or not _is_amount(amount):
        return None
    if isinstance(amount, int):
        return amount + 1
    percentage = int(amount.removesuffix("%"))
    # The percentage that must stay is rounded up, so the rest must be a whole pod.
    return -(-100 // (100 - percentage)) if 0 <= percentage < 100 else None
