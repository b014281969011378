"""The scheduling queue of an algorithm, by its name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from kpreempt.errors import UsageError
from kpreempt.schedulers.queue_rules import NO_RULES, QueueRules
from kpreempt.schedulers.queues.interface import SchedulingQueue
from kpreempt.schedulers.queues.v1_8 import Queue18
from kpreempt.schedulers.queues.v1_13 import Queue113
from kpreempt.schedulers.queues.v1_36 import PriorityQueue, Queue136
from kpreempt.schedulers.queues.v1_36.backoff import DEFAULT_INITIAL_BACKOFF, DEFAULT_MAX_BACKOFF

QUEUE_ALGORITHMS = ("kube-1.8", "kube-1.13", "kube-1.36")


def queue_for(
    algorithm: str,
    started: datetime,
    *,
    feature_gates: Mapping[str, bool] | None = None,
    initial_backoff: timedelta = DEFAULT_INITIAL_BACKOFF,
    max_backoff: timedelta = DEFAULT_MAX_BACKOFF,
    rules: QueueRules = NO_RULES,
) -> SchedulingQueue:
    """An empty queue of the algorithm, of a scheduler that started at ``started``.

    Of the gates PodPriority (1.13) and SchedulerPopFromBackoffQ (1.36) count, and backoff can be configured in 1.36
    only, where ``rules`` are what plugins from outside make of it. Raises ``UsageError`` for an algorithm whose queue
    is not modelled.
    """
    gates = feature_gates or {}
    if algorithm == "kube-1.8" or (algorithm == "kube-1.13" and not gates.get("PodPriority", True)):
        return Queue18()
    if algorithm == "kube-1.13":
        return Queue113(started)
    if algorithm != "kube-1.36":
        raise UsageError(f"the queue of {algorithm} is not modelled", hint=", ".join(QUEUE_ALGORITHMS))
    pops = gates.get("SchedulerPopFromBackoffQ", True)
    return Queue136(
        PriorityQueue(
            started, initial_backoff=initial_backoff, max_backoff=max_backoff, pops_from_backoff=pops, rules=rules
        )
    )
