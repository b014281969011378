"""What becomes of all pods of a workload, as a record, and how many more of a pod fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.pods import GoesOn
from kpreempt.analysis.questions import Asked, with_device_claims
from kpreempt.analysis.simulation.chance import FINDS_A_NODE
from kpreempt.analysis.workload.placing import CHOICES, Placed, Placing
from kpreempt.analysis.workload.pods import WorkloadQuestion, copies_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption, AssumptionKind, Outcome, Verdict
from kpreempt.verdict.workload import (
    BudgetViolations,
    Capacity,
    Pending,
    Replica,
    ReplicasOnNode,
    Room,
    Totals,
    Workload,
)

# A node's pods are counted up to here where each node is filled on its own; where the scheduler is asked about one pod
# after the other, up to so many in all.
MOST_ON_NODE = 10_000
MOST_ONE_BY_ONE = 500
# So many pods are put to the scheduler once more with other choices.
MOST_TRIED_AGAIN = 100


def going_on(
    asked: Asked,
    workloads: Sequence[WorkloadQuestion | None],
    scheduler: Scheduler,
    *,
    with_capacity: bool,
    now: datetime,
    phases: Phases = NO_PHASES,
) -> GoesOn:
    """What adds to the verdict on each question the answer about its workload and, if asked for, the capacity."""

    def go_on(place: int, verdict: Verdict, prepared: Any) -> Verdict:
        workload = workloads[place] if workloads else None
        if workload is not None:
            with phases.phase("workload"):
                answer, assumed = workload_answer(asked.cluster, workload, scheduler, prepared, first=verdict, now=now)
            both = dict.fromkeys([*verdict.assumptions, *assumed])
            verdict = msgspec.structs.replace(verdict, workload=answer, assumptions=list(both))
        if with_capacity:
            pod = asked.questions[place].pod
            with phases.phase("capacity"):
                capacity = capacity_answer(asked.cluster, pod, scheduler, prepared, first=verdict, now=now)
            verdict = msgspec.structs.replace(verdict, capacity=capacity)
        return verdict

    return go_on


def workload_answer(
    cluster: ClusterSnapshot,
    question: WorkloadQuestion,
    scheduler: Scheduler,
    prepared: Any,
    *,
    now: datetime,
    first: Verdict | None = None,
) -> tuple[Workload, list[Assumption]]:
    """What becomes of the pods, one after the other, and what is assumed of any of them.

    ``first`` is the verdict on the first, where it is known. Where the scheduler's choice between equals may come to
    other numbers, other choices are tried, too.
    """
    placing = Placing(cluster, scheduler, prepared, now)
    placed = list(placing.place(question.pods, first=first, stops_at_pending=question.in_order))
    assumptions = dict.fromkeys(each for one in placed if one.verdict is not None for each in one.verdict.assumptions)
    told = _totals(question, placed)
    others: list[Totals] = []
    if _hangs_on_choices(question, placed, scheduler, prepared):
        for choose in CHOICES[1:] if len(question.pods) <= MOST_TRIED_AGAIN else ():
            again = Placing(cluster, scheduler, prepared, now, choose)
            told_again = again.place(question.pods, first=first, stops_at_pending=question.in_order)
            other = _totals(question, list(told_again))
            others += [other] if other not in (told, *others) else []
        assumptions[_by_chance(question, placed, others)] = None
    if any(_claims_unbound(each.pod, cluster) for each in placed[:-1]):
        message = "claims of the replicas before one are not bound to volumes here, which may leave it other volumes"
        assumptions[Assumption(question.workload, "spec.volumes", message, AssumptionKind.UNCERTAIN)] = None
    allowed = {budget.key: budget.allowed for budget in cluster.pod_disruption_budgets} if placing.violations else {}
    workload = Workload(
        workload=question.workload,
        asked=question.which,
        replicas=len(question.pods),
        running=msgspec.UNSET if question.running is None else question.running,
        totals=told,
        others=others,
        ties=sum(each.is_open for each in placed),
        nodes=_by_node(placed),
        budgets=[
            BudgetViolations(budget=key, allowed=allowed[key], violations=number)
            for key, number in placing.violations.items()
        ],
        pending=_pending(question, placed),
        items=[_replica(each) for each in placed],
    )
    return workload, list(assumptions)


def capacity_answer(
    cluster: ClusterSnapshot,
    pod: Pod,
    scheduler: Scheduler,
    prepared: Any,
    *,
    now: datetime,
    first: Verdict | None = None,
) -> Capacity:
    """How many more of ``pod``, which need not be in the cluster, fit without an eviction.

    ``first`` is the verdict on it, where it is known. Where nothing beyond a node matters to what that holds, nodes are
    filled one by one; else the scheduler is asked about one pod after the other.
    """
    first = first or scheduler.decide(prepared, pod, records_steps=False)
    if first.outcome is not Outcome.LANDS:
        return Capacity(pods=0, outcome=first.outcome, message=first.message or first.reason)
    room = scheduler.room_of_nodes(prepared, pod, MOST_ON_NODE)
    if room is not None:
        return Capacity(
            pods=sum(room.values()),
            nodes=_rooms(room),
            limit=MOST_ON_NODE,
            is_bounded=any(pods >= MOST_ON_NODE for pods in room.values()),
        )
    pods = [pod, *islice(copies_of(pod, {each.key for each in cluster.pods}), MOST_ONE_BY_ONE - 1)]
    cluster, pods = with_device_claims(cluster, pods)
    placing = Placing(cluster, scheduler, prepared, now)
    found: Counter[str] = Counter()
    is_open = False
    for placed in placing.place(pods, first=first):
        if placed.verdict is None or placed.verdict.outcome is not Outcome.LANDS or placed.branch is None:
            return Capacity(
                pods=found.total(),
                nodes=_rooms(found),
                limit=MOST_ONE_BY_ONE,
                is_by_choice=is_open,
                outcome=placed.verdict.outcome if placed.verdict is not None else Outcome.NOT_SCHEDULED,
                message=placed.refused or _message(placed.verdict),
            )
        found[placed.branch.node] += 1
        is_open |= placed.is_open
    return Capacity(
        pods=found.total(), nodes=_rooms(found), limit=MOST_ONE_BY_ONE, is_bounded=True, is_by_choice=is_open
    )


def _rooms(room: Mapping[str, int]) -> list[Room]:
    """Most room first; nodes with as much in their order."""
    return [Room(node=node, pods=pods) for node, pods in sorted(room.items(), key=lambda each: -each[1])]


def _message(verdict: Verdict | None) -> str:
    return (verdict.message or verdict.reason) if verdict is not None else ""


def _totals(question: WorkloadQuestion, placed: Sequence[Placed]) -> Totals:
    found = [each for each in placed if each.branch is not None and each.verdict is not None]
    lands = sum(each.verdict.outcome is Outcome.LANDS for each in found if each.verdict is not None)
    uncertain = sum(each.verdict is not None and each.verdict.outcome is Outcome.UNCERTAIN for each in placed)
    refused = sum(bool(each.refused) for each in placed)
    return Totals(
        lands=lands,
        preempts=len(found) - lands,
        evictions=sum(len(each.victims) for each in found),
        violations=sum(len(each.violating) for each in found),
        # Those that were not looked at wait for one that is pending.
        pending=len(question.pods) - len(found) - uncertain - refused,
        uncertain=uncertain,
        refused=refused,
    )


def _hangs_on_choices(
    question: WorkloadQuestion, placed: Sequence[Placed], scheduler: Scheduler, prepared: Any
) -> bool:
    """Whether other choices between equals could come to other numbers.

    On which of the nodes that fit a pod lands changes nothing where all pods are alike and nodes hold what they hold
    whatever is on others: each node is full in the end.
    """
    opened = [each.verdict for each in placed if each.is_open]
    if any(verdict is not None and verdict.outcome is not Outcome.LANDS for verdict in opened):
        return True
    if not opened or len(placed) < 2:
        return False
    specs = {msgspec.json.encode((each.spec, each.metadata.labels), enc_hook=str) for each in question.pods}
    return len(specs) > 1 or scheduler.room_of_nodes(prepared, question.pods[0], 0) is None


def _by_chance(question: WorkloadQuestion, placed: Sequence[Placed], others: Sequence[Totals]) -> Assumption:
    number = sum(each.is_open for each in placed)
    tried = "come to other numbers" if others else "may come to other numbers"
    message = (
        f"for {number} of {len(question.pods)} the scheduler chooses between equals by chance, or in an order that is"
        f" not known; here the first is taken, and other choices {tried}"
    )
    return Assumption(question.workload, "replicas", message, AssumptionKind.UNCERTAIN)


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


def _pending(question: WorkloadQuestion, placed: Sequence[Placed]) -> list[Pending]:
    messages: Counter[str] = Counter()
    for each in placed:
        if each.branch is None:
            messages[each.refused or _message(each.verdict)] += 1
    if rest := len(question.pods) - len(placed):
        messages[f"not created before {placed[-1].pod.metadata.name} is ready"] += rest
    return [Pending(replicas=number, message=message) for message, number in messages.items()]


def _replica(placed: Placed) -> Replica:
    verdict = placed.verdict
    if verdict is None:
        return Replica(pod=placed.pod.key, outcome=Outcome.NOT_SCHEDULED, message=placed.refused)
    outcome = verdict.outcome
    if outcome in FINDS_A_NODE and outcome is not Outcome.LANDS:
        outcome = Outcome.PREEMPTS_VIOLATING_BUDGETS if placed.violating else verdict.outcome
    return Replica(
        pod=placed.pod.key,
        outcome=outcome,
        node=placed.branch.node if placed.branch is not None else "",
        victims=list(placed.victims),
        violating=list(placed.violating),
        ties=list(placed.ties) if len(placed.ties) > 1 else [],
        message="" if placed.branch is not None else _message(verdict),
    )


def _claims_unbound(pod: Pod, cluster: ClusterSnapshot) -> bool:
    """Whether a claim of the pod is bound only once it lands."""
    names = {each.persistent_volume_claim.claim_name for each in pod.spec.volumes if each.persistent_volume_claim}
    names |= {f"{pod.metadata.name}-{each.name}" for each in pod.spec.volumes if each.ephemeral is not None}
    return any(
        claim.metadata.name in names
        and claim.metadata.namespace == pod.metadata.namespace
        and not claim.spec.volume_name
        for claim in (cluster.persistent_volume_claims if names else ())
    )
