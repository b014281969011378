"""Finds problems with PodDisruptionBudgets (PDBs), and the pending or new pods that would violate them.

The disruption controller follows ``pkg/controller/disruption/disruption.go``, the eviction API
``pkg/registry/core/pod/storage/eviction.go`` (``k8s.io/kubernetes`` v1.36.3). For both, an empty selector selects every
pod of the namespace; for the scheduler it selects none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import (
    AnalysisContext,
    Scheduler,
    Spread,
    decide_pending,
    one_by_one,
    pending_pods,
    pods_by_node,
)
from kpreempt.analysis.budgets.findings import Auditor, unprotected_workloads
from kpreempt.analysis.budgets.preemptions import PreemptionRemedies, breaches_of
from kpreempt.analysis.budgets.protection import Protection, Workloads
from kpreempt.analysis.budgets.remedies import BudgetRemedies, always, total_of
from kpreempt.analysis.check.rollout.autoscalers import minimum_sizes
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.explain.pods import described, summed_up
from kpreempt.analysis.hypothetical_pods import PrioritySearch, free_amounts_on
from kpreempt.analysis.pod_selection import PodSelection
from kpreempt.analysis.queue.waiting import queue_of, queue_positions, waiting_pods
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.analysis.unread import BUDGETS, unread_events, unread_for_budgets
from kpreempt.model.cluster import ClusterSnapshot, is_partial, lacks_all_nodes
from kpreempt.model.meta import replace_in
from kpreempt.model.pod import Pod
from kpreempt.verdict import ClusterSummary, Outcome, Verdict
from kpreempt.verdict.at_risk import SizeName
from kpreempt.verdict.budgets import (
    AuditedBudget,
    BudgetAudit,
    Finding,
    FindingId,
    PossibleViolation,
    Severity,
    ViolatingPriority,
)
from kpreempt.verdict.unread import unread_of


def audit_budgets(
    context: AnalysisContext,
    *,
    selection: PodSelection = PodSelection(),  # noqa: B008 - it is immutable
    documents: Iterable[Document] = (),
    spread: Spread = one_by_one,
    has_time: Callable[[], bool] = always,
) -> BudgetAudit:
    """Audit the PDBs of a namespace, or those that protect pods with some labels.

    Every PDB of the cluster must have a status (``fill_budget_statuses``); the context's assumptions list those that
    were computed. All pending pods are evaluated, in any namespace; ``spread`` runs several in parallel. ``documents``
    are plain objects; the HorizontalPodAutoscalers among them count. Remedies are searched while ``has_time``. Raises
    ``PluginFailedError`` if a plugin cannot order the queue.
    """
    cluster, scheduler, phases, at = context.cluster, context.scheduler, context.phases, context.time
    assumptions, documents = list(context.assumptions), list(documents)
    sizes, owners = minimum_sizes(documents), Owners(cluster, documents)
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
        without_status = frozenset(
            each.subject.removeprefix(kind)
            for each in assumptions
            if each.field == "status" and each.subject.startswith(kind)
        )
        auditor = Auditor(cluster, protection, workloads, sizes, without_status)
        items = {budget.key: auditor.audit(budget) for budget in sorted(selected, key=lambda each: each.key)}
        assumptions += unread_for_budgets(cluster, [pod for budget in selected for pod in protection.pods_of(budget)])
        may_be_listed = BUDGETS not in cluster.unread
        unprotected = unprotected_workloads(cluster, protection, workloads, selection) if may_be_listed else []
    # Without all nodes and pods, it is unknown what pending pods would preempt.
    is_known = not is_partial(cluster)
    assumptions += [] if is_known else unread_of(cluster, ["Node", "Pod"])
    pending = [pod for pod in pending_pods(cluster) if items and is_known and pod.metadata.deletion_timestamp is None]
    decided: list[tuple[Pod, Verdict]] = []
    unsearched = 0
    remedies = BudgetRemedies(cluster, sizes, owners=owners, has_time=has_time)
    preemptions: PreemptionRemedies | None = None
    if items and is_known:
        assumptions += unread_events(cluster)
        with phases.phase("prepare"):
            prepared = scheduler.prepare(cluster, now=at)
        decided = list(decide_pending(pending, scheduler, prepared, spread=spread, phases=phases))
        rules = scheduler.queue_rules(lambda: prepared, phases)
        known = {pod.key: verdict for pod, verdict in decided}
        waiting = waiting_pods(cluster, scheduler, lambda: prepared, at, known=known)
        positions = queue_positions(queue_of(scheduler, waiting, at, rules))
        for key, breaches in breaches_of(decided, positions, protection).items():
            if key in items:
                items[key] = with_violations(items[key], breaches)
        search = PrioritySearch(cluster, scheduler, prepared, phases=phases)
        unsearched = search_priorities(cluster, items, protection, search)
        preemptions = PreemptionRemedies(context, decided, positions, owners, spread=spread, has_time=has_time)
        remedies.places = partial(
            _is_placed, cluster=cluster, scheduler=scheduler, prepared=prepared, leaves_room=preemptions.leaves_room
        )
        remedies.keeps_preemptions = preemptions.keeps
    with phases.phase("remedies"):
        # If there is too little time, errors come first.
        for severity in Severity:
            for key, item in items.items():
                findings = [
                    each
                    if each.severity is not severity
                    else preemptions.with_remedies(each, item)
                    if preemptions is not None and each.id is FindingId.VIOLATED_BY_PREEMPTION
                    else remedies.with_remedies(each, item)
                    for each in item.findings
                ]
                items[key] = msgspec.structs.replace(item, findings=findings)
        # A PDB that misses a workload by one label is fixed instead.
        missed = {
            (each.namespace, miss.workload)
            for item in items.values()
            for each in item.findings
            for miss in each.near_misses
        }
        unprotected = [
            each if (each.namespace, each.subject) in missed else remedies.with_remedies(each, None)
            for each in unprotected
        ]
    searches = [remedies.searches, *([preemptions.searches] if preemptions is not None else [])]
    names = {node.name for node in cluster.nodes}
    num_pods = sum(pod.spec.node_name in names and not pod.is_terminal for pod in cluster.pods)
    counted = decided[0][1].cluster if decided else ClusterSummary(len(names), num_pods)
    if lacks_all_nodes(cluster):
        counted = summed_up(cluster, context.now)
    own = (assumption for _, verdict in decided for assumption in verdict.assumptions)
    return BudgetAudit(
        algorithm=scheduler.algorithm,
        cluster=described(counted, cluster, context.now),
        at=at,
        pending=len(pending),
        items=list(items.values()),
        unprotected=unprotected,
        unsearched=unsearched,
        search=total_of(each for found in searches for each in found),
        assumptions=list(dict.fromkeys([*assumptions, *own])),
    )


def _is_placed(
    pod: Pod,
    *,
    cluster: ClusterSnapshot,
    scheduler: Scheduler,
    prepared: Any,
    leaves_room: Callable[[Pod, str], bool],
) -> bool:
    """Whether the scheduler places a new pod without evictions, and no pending pod has to preempt because of it.

    Claims of a StatefulSet are created with the pod.
    """
    claims = {each.key for each in cluster.persistent_volume_claims}
    volumes = [
        each
        for each in pod.spec.volumes
        if each.persistent_volume_claim is None
        or f"{pod.metadata.namespace}/{each.persistent_volume_claim.claim_name}" in claims
    ]
    pod = replace_in(pod, "spec", volumes=volumes)
    verdict = scheduler.decide(prepared, pod, records_steps=False)
    nodes = verdict.lands_on or verdict.chosen_nodes
    return verdict.outcome is Outcome.LANDS and all(leaves_room(pod, node) for node in nodes)


# The number of PDBs without allowed disruptions for which the violating priority is searched.
_MAX_SEARCHED = 10
_LAST = 2**63


def with_violations(item: AuditedBudget, breaches: list[PossibleViolation]) -> AuditedBudget:
    """The PDB with the pods that would violate it, which is also a finding."""
    namespace, _, name = item.budget.partition("/")
    certain = any(breach.is_certain for breach in breaches)
    victims = dict.fromkeys(victim for breach in breaches for victim in breach.victims)
    finding = Finding(
        id=FindingId.VIOLATED_BY_PREEMPTION,
        severity=Severity.ERROR if certain else Severity.WARNING,
        namespace=namespace,
        subject=f"PodDisruptionBudget {name}",
        pods=[victim.partition("/")[2] for victim in victims],
        objects=[f"Pod {breach.pod}" for breach in breaches],
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
