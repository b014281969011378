"""From which priority on a pod of some size would evict a running one: verdicts on hypothetical pods, tried in turn.

What the scheduler decides changes with the priority of the incoming pod only where that passes the priority of another
pod. So it is enough to try the priorities just above those, from the lowest on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.hypothetical_pods import Requests, hypothetical_pod, options_for, tied_to
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Outcome, SizeName, Threshold, Verdict

# That of system-node-critical; no pod has a higher one.
HIGHEST_PRIORITY = 2_000_001_000
_MOST_TRIED = 32


class _Answer(msgspec.Struct, frozen=True):
    """What matters of a verdict: whom it evicts, from every node that it can end with."""

    outcome: Outcome
    nodes: list[str]
    victims: frozenset[str]


class PrioritySearch:
    """Verdicts on hypothetical pods in one cluster, each asked for once."""

    def __init__(
        self, cluster: ClusterSnapshot, scheduler: Scheduler, prepared: Any, *, phases: Phases = NO_PHASES
    ) -> None:
        self._cluster = cluster
        self._scheduler = scheduler
        self._prepared = prepared
        self._phases = phases
        self._answers: dict[tuple[str, tuple[tuple[str, int], ...], int], _Answer] = {}
        counting = [pod for pod in cluster.pods if not pod.is_terminal]
        self._priorities = sorted({pod.priority for pod in counting})
        self._on_node: dict[str, set[int]] = {}
        for pod in counting:
            node = pod.spec.node_name or pod.status.nominated_node_name
            self._on_node.setdefault(node, set()).add(pod.priority)

    def threshold(self, pod: Pod, size: SizeName, requests: Requests) -> Threshold:
        """The lowest priorities of pods of that size that evict ``pod``, free to go anywhere or tied to its node."""
        node = pod.spec.node_name
        anywhere, last = self._lowest(pod, requests, "", tried_priorities(self._priorities, pod.priority))
        priorities = tried_priorities(sorted(self._on_node.get(node, ())), pod.priority)
        on_node, last_on_node = self._lowest(pod, requests, node, priorities)
        return Threshold(
            size=size,
            requests=dict(requests),
            anywhere=anywhere,
            on_node=on_node,
            highest=max(priorities, default=pod.priority),
            outcome=last.outcome if last else None,
            outcome_on_node=last_on_node.outcome if last_on_node else None,
            nodes=last.nodes if last else [],
            options=[] if anywhere is None else options_for(requests, anywhere),
            options_on_node=[] if on_node is None else options_for(requests, on_node, node),
        )

    def _lowest(
        self, pod: Pod, requests: Requests, node: str, priorities: Sequence[int]
    ) -> tuple[int | None, _Answer | None]:
        """The first of ``priorities`` at which the pod is evicted, and the answer there, or the last one tried."""
        answer = None
        for priority in priorities:
            answer = self._ask(requests, priority, node)
            if pod.key in answer.victims:
                return priority, answer
            if answer.outcome == Outcome.LANDS:
                # With a higher priority fewer nominated pods count, so it lands all the more.
                break
        return None, answer

    def _ask(self, requests: Requests, priority: int, node: str) -> _Answer:
        key = node, tuple(requests.items()), priority
        known = self._answers.get(key)
        if known is None:
            pod = hypothetical_pod(self._cluster, requests, priority)
            pod = tied_to(pod, node) if node else pod
            known = self._answers[key] = _answer(
                self._scheduler.decide(self._prepared, pod, records_steps=False, phases=self._phases)
            )
        return known


def tried_priorities(priorities: Iterable[int], above: int) -> list[int]:
    """The lowest priorities just above those of ``priorities`` that are at least ``above``, in ascending order."""
    wanted = [priority + 1 for priority in priorities if above <= priority < HIGHEST_PRIORITY]
    return wanted[:_MOST_TRIED]


def _answer(verdict: Verdict) -> _Answer:
    return _Answer(
        verdict.outcome,
        verdict.nominated_nodes or verdict.lands_on,
        frozenset(pod for pods in verdict.pods_at_stake.values() for pod in pods),
    )
