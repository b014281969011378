"""Which pods would evict running ones: pending pods, and hypothetical new ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kpreempt.analysis.algorithms import AnalysisContext, decide_pending, pending_pods, pods_by_node
from kpreempt.analysis.evictions.workloads import PastPreemptions
from kpreempt.analysis.explain.pods import described
from kpreempt.analysis.hypothetical_pods import (
    HIGHEST_PRIORITY,
    PrioritySearch,
    free_amounts_on,
    requests_of,
    typical_requests,
)
from kpreempt.analysis.queue.serving import Draws, Server
from kpreempt.analysis.queue.waiting import queue_of, queue_positions, waiting_pods
from kpreempt.analysis.unread import BUDGETS, unread_events
from kpreempt.model.cluster import is_partial
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, ClusterSummary, Verdict
from kpreempt.verdict.at_risk import NodeOrder, PodAtRisk, PodsAtRisk, RankedVictim, SizeName, Threat
from kpreempt.verdict.served import ServedQueue
from kpreempt.verdict.unread import unread_of

# The highest priority of a user-defined PriorityClass.
_MAX_USER_PRIORITY = 1_000_000_000
_LAST = 2**63


def pods_at_risk(
    context: AnalysisContext, *, is_selected: Callable[[Pod], bool], limit: int, draws: Draws
) -> PodsAtRisk:
    """The pods that would evict the selected running pods, for at most ``limit`` of these, by risk.

    Pods that are evicted when the queue is served come first, then those that a pending pod would evict if it were
    next, by that pod's queue position, then the least important ones. If not all nodes are in the input, there is no
    answer. Raises ``PluginFailedError`` if a plugin cannot order the queue.
    """
    cluster, scheduler, phases = context.cluster, context.scheduler, context.phases
    nodes = {node.name: node for node in cluster.nodes}
    running = [pod for pod in cluster.pods if pod.spec.node_name in nodes and not pod.is_terminal]
    # A part of the nodes shows neither where pending pods land nor which pods they would evict.
    selected = [pod for pod in running if is_selected(pod)] if not is_partial(cluster) else []
    with phases.phase("prepare"):
        prepared = scheduler.prepare(cluster, now=context.time)
    pending = pending_pods(cluster) if selected else []
    decided = list(decide_pending(pending, scheduler, prepared, phases=phases))
    rules = scheduler.queue_rules(lambda: prepared, phases)
    known = {pod.key: verdict for pod, verdict in decided}
    waiting = waiting_pods(cluster, scheduler, lambda: prepared, context.time, known=known) if decided else []
    positions = queue_positions(queue_of(scheduler, waiting, context.time, rules))
    served, assumed = ServedQueue(), list[Assumption]()
    if waiting:
        with phases.phase("queue"):
            served, assumed = Server(context, prepared, waiting, draws).serve()
    threats = _threats(decided, positions, served, {pod.key: pod.spec.node_name for pod in running})
    # Among equal ones, the one that started last.
    by_risk = sorted(
        selected,
        key=lambda pod: (
            _first_position(threats.get(pod.key, ())),
            pod.priority,
            -pod.status.start_time.timestamp() if pod.status.start_time else -float(_LAST),
        ),
    )
    ranked = by_risk[:limit]
    # The eviction order on each node, for a pod above all user priorities, or above the highest if needed.
    highest: dict[str, int] = {}
    for pod in ranked:
        node = pod.spec.node_name
        above = _MAX_USER_PRIORITY if pod.priority < _MAX_USER_PRIORITY else HIGHEST_PRIORITY
        highest[node] = max(highest.get(node, 0), above)
    orders = [
        NodeOrder(node, priority, scheduler.rank_victims(prepared, node, priority))
        for node, priority in highest.items()
    ]
    ranks = {victim.pod: victim for order in orders for victim in order.pods}
    search = PrioritySearch(cluster, scheduler, prepared, phases=phases)
    typical = typical_requests(running) if ranked else {}
    pods_on = pods_by_node(running, [pod.spec.node_name for pod in ranked])
    items = []
    for pod in ranked:
        free = free_amounts_on(pod, nodes[pod.spec.node_name], pods_on[pod.spec.node_name])
        item = _threatened(pod, threats.get(pod.key, []), served)
        items.append(_with_thresholds(item, pod, free, typical, search, ranks.get(pod.key)))
    counted = decided[0][1].cluster if decided else ClusterSummary(len(nodes), len(running))
    own = (assumption for _, verdict in decided for assumption in verdict.assumptions)
    unread = [*unread_events(cluster), *unread_of(cluster, ["Node", "Pod", *([BUDGETS] if items else [])])]
    return PodsAtRisk(
        algorithm=scheduler.algorithm,
        cluster=described(counted, cluster, context.now),
        at=context.time,
        matching=len(selected),
        threatened=sum(pod.key in served.evicted_runs for pod in selected),
        pending=len(pending),
        runs=served.runs if waiting else 0,
        items=sorted(items, key=_risk),
        more_threatened=[
            _threatened(pod, [each for each in threats.get(pod.key, ()) if each.in_turn], served)
            for pod in by_risk[limit:]
            if pod.key in served.evicted_runs
        ],
        nodes=orders,
        preemptions=PastPreemptions(cluster).between(filter(is_selected, cluster.pods), least=2),
        assumptions=list(dict.fromkeys([*context.assumptions, *unread, *own, *assumed])),
    )


def _threats(
    decided: Sequence[tuple[Pod, Verdict]], positions: dict[str, int], served: ServedQueue, nodes: Mapping[str, str]
) -> dict[str, list[Threat]]:
    """The pending pods that evict each pod in their turn, or would if they were next, each in queue order.

    ``nodes`` are those of running pods.
    """
    threats: dict[str, list[Threat]] = {}
    for pod, verdict in sorted(decided, key=lambda each: positions.get(each[0].key, _LAST)):
        position, turn = positions.get(pod.key), served.in_turn.get(pod.key)
        in_turn = dict.fromkeys(turn.victims, not turn.other_victims) if turn is not None else {}
        in_turn |= dict.fromkeys(turn.other_victims, False) if turn is not None else {}
        for victim, is_certain in in_turn.items():
            threat = Threat(pod.key, pod.priority, nodes.get(victim, ""), position, is_certain, in_turn=True)
            threats.setdefault(victim, []).append(threat)
        for node, victims in verdict.pods_at_stake.items():
            for victim in victims:
                if victim not in in_turn:
                    threat = Threat(pod.key, pod.priority, node, position, verdict.surely_evicts(victim))
                    threats.setdefault(victim, []).append(threat)
    return threats


def _first_position(threats: Sequence[Threat]) -> tuple[bool, int]:
    """Sort key: whether no pod evicts it in its turn, then the first position of a pod that does or would."""
    in_turn = [each for each in threats if each.in_turn]
    found = [_LAST - 1 if each.position is None else each.position for each in in_turn or threats]
    return not in_turn, min(found, default=_LAST)


def _threatened(pod: Pod, threats: list[Threat], served: ServedQueue) -> PodAtRisk:
    return PodAtRisk(
        pod=pod.key,
        node=pod.spec.node_name,
        priority=pod.priority,
        owner=controller_name(pod.metadata),
        requests=requests_of(pod),
        is_terminating=pod.metadata.deletion_timestamp is not None,
        evicted_runs=served.evicted_runs.get(pod.key, 0),
        threats=threats,
    )


def _with_thresholds(
    item: PodAtRisk,
    pod: Pod,
    free: dict[str, int],
    typical: dict[str, int],
    search: PrioritySearch,
    victim: RankedVictim | None,
) -> PodAtRisk:
    """The pod with a threshold for each size that requests anything, each size once."""
    sizes = {SizeName.TYPICAL: typical, SizeName.OWN: item.requests, SizeName.OWN_PLUS_FREE: free}
    return msgspec.structs.replace(
        item,
        thresholds=[search.threshold(pod, name, amounts) for name, amounts in sizes.items() if any(amounts.values())],
        eviction_order=victim,
    )


def _risk(item: PodAtRisk) -> tuple[tuple[bool, int], int, int, int]:
    """Sort key: pending pods that evict it, then the lowest priority that would."""
    anywhere = min((each.anywhere for each in item.thresholds if each.anywhere is not None), default=_LAST)
    on_node = min((each.on_node for each in item.thresholds if each.on_node is not None), default=_LAST)
    return _first_position(item.threats), anywhere, on_node, item.priority
