"""Reports on all pods of a workload, and how many more copies of a pod fit.

The pods are scheduled one after another, each in a cluster with the previous pods on their nodes and without their
victims: the result of the controllers and the scheduler if nothing else happens. Other pending pods are not tried,
victims are not replaced, and evictions use up the budgets' allowed disruptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import AnalysisContext, Scheduler
from kpreempt.analysis.explain.pods import SimulateRest, summed_up
from kpreempt.analysis.missing_pods import MissingPodsFinder
from kpreempt.analysis.naming import some_of
from kpreempt.analysis.pod_inputs import ExplainInputs, with_device_claims
from kpreempt.analysis.remedies.edits import edited
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.analysis.remedies.quotas import larger_quota
from kpreempt.analysis.workload.in_cluster import WorkloadInput, copies_of
from kpreempt.analysis.workload.placing import CHOICES, Placed, Placing
from kpreempt.controllers.stateful_set import ordinal_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.creation_failures import parse_failure
from kpreempt.model.meta import ObjectName
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption, AssumptionKind, Outcome, PodSummary, Verdict
from kpreempt.verdict.remedies import Change, ObjectEdit, Remedy, RemedyStage
from kpreempt.verdict.workload import (
    BudgetViolations,
    Capacity,
    MissingPods,
    MissingReason,
    NodeCapacity,
    Pending,
    Replica,
    ReplicaScope,
    ReplicasOnNode,
    Totals,
    Workload,
)

# Limits of the capacity search: pods per node if nodes are filled independently, and pods in total if they are
# scheduled one by one.
MAX_ON_NODE = 10_000
MAX_ONE_BY_ONE = 500
# Up to this many pods are scheduled again with other choices.
MAX_RETRIES = 100
_MOST_QUOTAS = 3


def going_on(
    batch: ExplainInputs,
    workloads: Sequence[WorkloadInput | None],
    scheduler: Scheduler,
    *,
    with_capacity: bool,
    now: datetime,
    phases: Phases = NO_PHASES,
) -> SimulateRest:
    """Returns a function that adds the workload's result and, if ``with_capacity``, the capacity to each verdict."""

    def extend(index: int, verdict: Verdict, prepared: Any) -> Verdict:
        workload = workloads[index] if workloads else None
        if workload is not None:
            with phases.phase("workload"):
                answer, assumed = workload_answer(batch.cluster, workload, scheduler, prepared, first=verdict, now=now)
            both = dict.fromkeys([*verdict.assumptions, *assumed])
            if not verdict.node_report and (not workload.pods or answer.totals.rejected == len(workload.pods)):
                remedy = _larger_quota(batch.cluster, workload, answer, scheduler, prepared, now)
                verdict = _not_created(verdict, answer, remedy)
            verdict = msgspec.structs.replace(verdict, workload=answer, assumptions=list(both))
        if with_capacity:
            pod = batch.inputs[index].pod
            with phases.phase("capacity"):
                capacity = capacity_answer(batch.cluster, pod, scheduler, prepared, first=verdict, now=now)
            verdict = msgspec.structs.replace(verdict, capacity=capacity)
        return verdict

    return extend


def rejected_workload(context: AnalysisContext, workload: ObjectName, reason: str, replicas: int | None) -> Verdict:
    """The verdict on a workload in the cluster whose pods the API server rejects, for that ``reason``.

    ``replicas`` is the number of pods in question, or ``None`` for the missing ones.
    """
    missing = MissingPodsFinder(context.cluster).of(*workload)
    number = replicas or max(sum(each.missing for each in missing), 1)
    return Verdict(
        algorithm=context.scheduler.algorithm,
        outcome=Outcome.REJECTED,
        reason=reason,
        pod=PodSummary(namespace=workload.namespace, name=workload.name, origin=str(workload)),
        cluster=summed_up(context.cluster, context.now),
        assumptions=list(context.assumptions),
        workload=Workload(
            workload=str(workload),
            scope=ReplicaScope.UNSCHEDULED if replicas is None else ReplicaScope.ADDITIONAL,
            replicas=number,
            totals=Totals(rejected=number),
            pending=[Pending(replicas=number, message=reason, is_rejected=True)],
            missing_pods=missing,
            at=context.time if missing else None,
        ),
    )


def _larger_quota(
    cluster: ClusterSnapshot,
    workload_input: WorkloadInput,
    answer: Workload,
    scheduler: Scheduler,
    prepared: Any,
    now: datetime,
) -> Remedy | None:
    """The quotas that reject all pods, with enough for them, if the pods then land without evictions."""
    edits: list[ObjectEdit] = []
    changes: list[Change] = []
    messages = [each.message for each in answer.pending if each.is_rejected]
    while messages and len(edits) < _MOST_QUOTAS:
        name = f"ResourceQuota {workload_input.pods[0].metadata.namespace}/{parse_failure(messages[0]).name}"
        candidate = larger_quota(name, messages[0], len(workload_input.pods))
        if candidate is None or any(each.object == name for each in edits):
            return None
        edits += candidate.edits
        changes += candidate.changes
        # The API server enforces the limits of the status, which a controller copies from the spec.
        copied = [ObjectEdit(each.object, {**each.patch, "status": each.patch["spec"]}) for each in edits]
        placing = Placing(edited(cluster, copied), scheduler, prepared, now)
        placed = _placed(placing, workload_input, None)
        messages = [each.rejected for each in placed if each.rejected]
        landed = [each.branch.node for each in placed if each.branch is not None and not each.victims]
        if not messages and len(landed) == len(workload_input.pods):
            manager = Owners(cluster).manager_of(name)
            nodes = list(dict.fromkeys(landed))
            return Remedy(
                stage=RemedyStage.LIMIT,
                changes=changes,
                edits=edits,
                nodes=nodes,
                scheduled=len(landed),
                pods=len(landed),
                manager=manager,
            )
    return None


def _not_created(verdict: Verdict, workload: Workload, remedy: Remedy | None) -> Verdict:
    """The verdict on a first pod that is not created, so that no scheduler decides about it."""
    return Verdict(
        api_version=verdict.api_version,
        kind=verdict.kind,
        algorithm=verdict.algorithm,
        outcome=Outcome.REJECTED if workload.pending else Outcome.NOT_SCHEDULED,
        reason=workload.pending[0].message if workload.pending else "no pod is missing",
        pod=verdict.pod,
        cluster=verdict.cluster,
        admission=verdict.admission,
        remedies=[remedy] if remedy is not None else [],
    )


def workload_answer(
    cluster: ClusterSnapshot,
    workload_input: WorkloadInput,
    scheduler: Scheduler,
    prepared: Any,
    *,
    now: datetime,
    first: Verdict | None = None,
) -> tuple[Workload, list[Assumption]]:
    """Place the pods one after another; also returns all assumptions.

    ``first`` is the verdict on the first pod, if known. If a choice between equals could lead to other totals, other
    choices are tried, too.
    """
    placing = Placing(cluster, scheduler, prepared, now)
    placed = _placed(placing, workload_input, first)
    assumptions = dict.fromkeys(
        each for replica in placed if replica.verdict is not None for each in replica.verdict.assumptions
    )
    totals = _totals(workload_input, placed)
    others: list[Totals] = []
    if _depends_on_choices(workload_input, placed, scheduler, prepared):
        for choose in CHOICES[1:] if len(workload_input.pods) <= MAX_RETRIES else ():
            again = Placing(cluster, scheduler, prepared, now, choose)
            other = _totals(workload_input, _placed(again, workload_input, first))
            others += [other] if other not in (totals, *others) else []
        assumptions[_by_chance(workload_input, placed, others)] = None
    unsure = _depending_on_retries(placed, workload_input, Placing(cluster, scheduler, prepared, now), first)
    if unsure:
        message = f"which of {some_of([*unsure])} find a node depends on when the scheduler tries them again"
        assumptions[Assumption(workload_input.workload, "replicas", message, AssumptionKind.UNCERTAIN)] = None
    if any(_claims_unbound(each.pod, cluster) for each in placed[:-1]):
        message = "claims of earlier replicas are not bound to volumes here, so later replicas may get other volumes"
        assumptions[Assumption(workload_input.workload, "spec.volumes", message, AssumptionKind.UNCERTAIN)] = None
    allowed = {budget.key: budget.allowed for budget in cluster.pod_disruption_budgets} if placing.violations else {}
    missing = []
    if workload_input.running is not None:
        kind, _, name = workload_input.workload.partition(" ")
        missing = MissingPodsFinder(cluster).of(kind, *name.split("/", 1))
    if workload_input.is_suspended:
        name, number = workload_input.workload, len(workload_input.pods)
        missing = [
            MissingPods(workload=name, controller=name, reason=MissingReason.SUSPENDED, desired=number, missing=number)
        ]
    workload = Workload(
        workload=workload_input.workload,
        scope=workload_input.scope,
        replicas=len(workload_input.pods),
        running=msgspec.UNSET if workload_input.running is None else workload_input.running,
        totals=totals,
        others=others,
        ties=sum(each.is_open for each in placed),
        nodes=_by_node(placed),
        budgets=[
            BudgetViolations(budget=key, allowed=allowed[key], violations=number)
            for key, number in placing.violations.items()
        ],
        pending=_pending(workload_input, placed),
        items=[
            Replica(pod=each.pod.key, outcome=Outcome.UNCERTAIN, ties=unsure[each.pod.key])
            if each.pod.key in unsure
            else _replica(each)
            for each in placed
        ],
        missing_pods=missing,
        excluded_nodes=list(workload_input.excluded_nodes),
        at=now if missing else None,
    )
    return workload, list(assumptions)


def _placed(
    placing: Placing, workload_input: WorkloadInput, first: Verdict | None, *, retries_first: bool = False
) -> list[Placed]:
    """The result for each pod, in the order of the input.

    The existing pods are tried in queue order, and those that find no node again after another one has landed: after
    all others, which the backoff makes likely, or at once if the scheduler ``retries_first``. Of a workload whose pods
    are created in order, a new one is created once all existing ones have landed.
    """
    existing, new = workload_input.pods[: workload_input.existing], workload_input.pods[workload_input.existing :]
    results: dict[str, Placed] = {}
    untried, failed = list(existing), list[Pod]()
    while untried:
        pod = untried.pop(0)
        (result,) = placing.place([pod], first=None if results else first)
        is_tried_again = pod.key in results
        results[pod.key] = result._replace(is_tried_again=is_tried_again and result.branch is not None)
        if result.branch is None:
            failed.append(pod)
        else:
            untried = [*failed, *untried] if retries_first else [*untried, *failed]
            failed = []
    placed = [results[pod.key] for pod in existing]
    if workload_input.in_order and any(each.branch is None for each in placed):
        return placed
    return [*placed, *placing.place(new, first=None if existing else first, stops_at_pending=workload_input.in_order)]


def _depending_on_retries(
    placed: Sequence[Placed], workload_input: WorkloadInput, placing: Placing, first: Verdict | None
) -> dict[str, list[str]]:
    """The existing pods that find a node or not depending on when they are tried again, with these nodes."""
    existing = placed[: workload_input.existing]
    if len({each.branch is None for each in existing}) < 2:
        return {}
    found = {}
    for one, other in zip(existing, _placed(placing, workload_input, first, retries_first=True), strict=False):
        landed = one if one.branch is not None else other
        if landed.branch is not None and (one.branch is None or other.branch is None):
            found[one.pod.key] = [*landed.ties] or [landed.branch.node]
    return found


def capacity_answer(
    cluster: ClusterSnapshot,
    pod: Pod,
    scheduler: Scheduler,
    prepared: Any,
    *,
    now: datetime,
    first: Verdict | None = None,
) -> Capacity:
    """The number of additional copies of ``pod`` that fit without evictions; the pod need not be in the cluster.

    ``first`` is the verdict on the pod, if known. If pods on other nodes do not matter, nodes are filled independently;
    otherwise copies are scheduled one by one.
    """
    first = first or scheduler.decide(prepared, pod, records_steps=False)
    if first.outcome is not Outcome.LANDS:
        return Capacity(pods=0, outcome=first.outcome, message=first.message or first.reason)
    pods_by_node = scheduler.capacity_of_nodes(prepared, pod, MAX_ON_NODE)
    if pods_by_node is not None:
        return Capacity(
            pods=sum(pods_by_node.values()),
            nodes=_node_capacities(pods_by_node),
            limit=MAX_ON_NODE,
            is_bounded=any(pods >= MAX_ON_NODE for pods in pods_by_node.values()),
        )
    pods = [pod, *islice(copies_of(pod, {each.key for each in cluster.pods}), MAX_ONE_BY_ONE - 1)]
    cluster, pods = with_device_claims(cluster, pods)
    placing = Placing(cluster, scheduler, prepared, now)
    found: Counter[str] = Counter()
    is_open = False
    for placed in placing.place(pods, first=first):
        if placed.verdict is None or placed.verdict.outcome is not Outcome.LANDS or placed.branch is None:
            return Capacity(
                pods=found.total(),
                nodes=_node_capacities(found),
                limit=MAX_ONE_BY_ONE,
                is_by_choice=is_open,
                outcome=placed.verdict.outcome if placed.verdict is not None else Outcome.NOT_SCHEDULED,
                message=placed.rejected or _message(placed.verdict),
            )
        found[placed.branch.node] += 1
        is_open |= placed.is_open
    return Capacity(
        pods=found.total(), nodes=_node_capacities(found), limit=MAX_ONE_BY_ONE, is_bounded=True, is_by_choice=is_open
    )


def _node_capacities(pods_by_node: Mapping[str, int]) -> list[NodeCapacity]:
    """The nodes with the most capacity first."""
    return [
        NodeCapacity(node=node, pods=pods) for node, pods in sorted(pods_by_node.items(), key=lambda each: -each[1])
    ]


def _message(verdict: Verdict | None) -> str:
    return (verdict.message or verdict.reason) if verdict is not None else ""


def _totals(workload_input: WorkloadInput, placed: Sequence[Placed]) -> Totals:
    found = [each for each in placed if each.branch is not None and each.verdict is not None]
    lands = sum(each.verdict.outcome is Outcome.LANDS for each in found if each.verdict is not None)
    uncertain = sum(each.verdict is not None and each.verdict.outcome is Outcome.UNCERTAIN for each in placed)
    refused = sum(bool(each.rejected) for each in placed)
    return Totals(
        lands=lands,
        preempts=len(found) - lands,
        evictions=sum(len(each.victims) for each in found),
        violations=sum(len(each.violating) for each in found),
        pending=len(placed) - len(found) - uncertain - refused,
        uncertain=uncertain,
        rejected=refused,
        # Pods that were not tried wait for a pending one.
        not_created=len(workload_input.pods) - len(placed),
    )


def _depends_on_choices(
    workload_input: WorkloadInput, placed: Sequence[Placed], scheduler: Scheduler, prepared: Any
) -> bool:
    """Whether other choices between equals could lead to other totals.

    The node on which a pod is placed does not matter if all pods are equal and the capacity of a node does not depend
    on other nodes: all nodes are full at the end.
    """
    opened = [each.verdict for each in placed if each.is_open]
    if any(verdict is not None and verdict.outcome is not Outcome.LANDS for verdict in opened):
        return True
    if not opened or len(placed) < 2:
        return False
    specs = {msgspec.json.encode((each.spec, each.metadata.labels), enc_hook=str) for each in workload_input.pods}
    return len(specs) > 1 or scheduler.capacity_of_nodes(prepared, workload_input.pods[0], 0) is None


def _by_chance(workload_input: WorkloadInput, placed: Sequence[Placed], others: Sequence[Totals]) -> Assumption:
    number = sum(each.is_open for each in placed)
    consequence = "lead to other totals" if others else "may lead to other totals"
    message = (
        f"for {number} of {len(workload_input.pods)} pods, the scheduler chooses between equals at random or in an"
        f" unknown order; the first one is used here, and other choices {consequence}"
    )
    return Assumption(workload_input.workload, "replicas", message, AssumptionKind.UNCERTAIN)


def _by_node(placed: Iterable[Placed]) -> list[ReplicasOnNode]:
    replicas: Counter[str] = Counter()
    evictions: Counter[str] = Counter()
    for each in placed:
        if each.branch is not None:
            replicas[each.branch.node] += 1
            evictions[each.branch.node] += len(each.victims)
    return [
        ReplicasOnNode(node=node, replicas=number, evictions=evictions[node])
        for node, number in sorted(replicas.items(), key=lambda each: -each[1])
    ]


def _pending(workload_input: WorkloadInput, placed: Sequence[Placed]) -> list[Pending]:
    numbers: Counter[tuple[str, bool]] = Counter()
    for each in placed:
        if each.branch is None:
            numbers[each.rejected or _message(each.verdict), bool(each.rejected)] += 1
    found = [
        Pending(replicas=number, message=message, is_rejected=is_rejected)
        for (message, is_rejected), number in numbers.items()
    ]
    if rest := len(workload_input.pods) - len(placed):
        waiting = [each.pod.metadata.name for each in placed if each.branch is None]
        message = f"not created before {min(waiting, key=ordinal_of)} is ready"
        found.append(Pending(replicas=rest, message=message, is_created=False))
    return found


def _replica(placed: Placed) -> Replica:
    verdict = placed.verdict
    if verdict is None:
        return Replica(pod=placed.pod.key, outcome=Outcome.NOT_SCHEDULED, message=placed.rejected)
    outcome = verdict.outcome
    if outcome.preempts:
        outcome = Outcome.PREEMPTS_VIOLATING_BUDGETS if placed.violating else verdict.outcome
    return Replica(
        pod=placed.pod.key,
        outcome=outcome,
        node=placed.branch.node if placed.branch is not None else "",
        victims=list(placed.victims),
        violating=list(placed.violating),
        ties=list(placed.ties) if len(placed.ties) > 1 else [],
        message="" if placed.branch is not None else _message(verdict),
        is_tried_again=placed.is_tried_again,
    )


def _claims_unbound(pod: Pod, cluster: ClusterSnapshot) -> bool:
    """Whether a claim of the pod is bound only when the pod is scheduled."""
    names = {each.persistent_volume_claim.claim_name for each in pod.spec.volumes if each.persistent_volume_claim}
    names |= {f"{pod.metadata.name}-{each.name}" for each in pod.spec.volumes if each.ephemeral is not None}
    return any(
        claim.metadata.name in names
        and claim.metadata.namespace == pod.metadata.namespace
        and not claim.spec.volume_name
        for claim in (cluster.persistent_volume_claims if names else ())
    )
