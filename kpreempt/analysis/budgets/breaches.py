"""Which pending pods would break a PodDisruptionBudget, and from which priority on a new pod would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from kpreempt.analysis.budgets.protection import Protection
from kpreempt.analysis.hypothetical_pods import PrioritySearch, room_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudgetStatus
from kpreempt.verdict import PossibleOutcome, SizeName, Verdict
from kpreempt.verdict.budgets import (
    AuditedBudget,
    Breach,
    BreakingPriority,
    Finding,
    FindingId,
    Remedy,
    RemedyAction,
    Severity,
)

# For so many budgets that allow nothing it is sought from which priority on a new pod would break them.
_MOST_SEARCHED = 10
_LAST = 2**63


def breaches_of(
    decided: Sequence[tuple[Pod, Verdict]], positions: Mapping[str, int], protection: Protection
) -> dict[str, list[Breach]]:
    """The pending pods that would break a budget, by its name, in the order of the queue."""
    found: dict[str, list[Breach]] = {}
    for pod, verdict in sorted(decided, key=lambda each: positions.get(each[0].key, _LAST)):
        outcomes = verdict.possible_outcomes
        broken: dict[str, list[_Taken]] = {}
        for outcome in outcomes:
            for key, taken in _taken_by(outcome, protection).items():
                if taken.most > taken.allowed:
                    broken.setdefault(key, []).append(taken)
        for key, breaking in broken.items():
            breach = Breach(
                pod=pod.key,
                priority=pod.priority,
                owner=controller_name(pod.metadata),
                position=positions.get(pod.key),
                nodes=list(dict.fromkeys(taken.node for taken in breaking)),
                victims=list(dict.fromkeys(victim for taken in breaking for victim in taken.pods)),
                allowed=breaking[0].allowed,
                left=min(taken.allowed - taken.most for taken in breaking),
                is_certain=len(breaking) == len(outcomes) and all(taken.least > taken.allowed for taken in breaking),
            )
            found.setdefault(key, []).append(breach)
    return found


class _Taken(NamedTuple):
    """What an outcome takes from a budget: the pods that go or may, and how many of them at the most and at least."""

    node: str
    pods: list[str]
    allowed: int
    most: int
    least: int


def _taken_by(outcome: PossibleOutcome, protection: Protection) -> dict[str, _Taken]:
    """What an outcome takes from each budget; pods that are leaving anyway are lost to it already."""
    groups = [(len(outcome.victims), outcome.victims), *((choice.count, choice.pods) for choice in outcome.choices)]
    taken: dict[str, _Taken] = {}
    for count, pods in groups:
        going: dict[str, list[str]] = {}
        for pod in pods:
            for budget in protection.budgets_of(pod) if pod not in protection.leaving else ():
                if pod.partition("/")[2] not in (budget.status or PodDisruptionBudgetStatus()).disrupted_pods:
                    going.setdefault(budget.key, []).append(pod)
        for key, protected in going.items():
            before = taken.get(key, _Taken(outcome.node, [], protection.allowed_by(key), 0, 0))
            taken[key] = before._replace(
                pods=before.pods + protected,
                most=before.most + min(count, len(protected)),
                least=before.least + max(0, count - (len(pods) - len(protected))),
            )
    return taken


def with_breaches(item: AuditedBudget, breaches: list[Breach]) -> AuditedBudget:
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


def search_priorities(
    cluster: ClusterSnapshot, items: dict[str, AuditedBudget], protection: Protection, search: PrioritySearch
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
