"""What check and drain assume alike of a cluster, and of the way in which it is simulated."""

from __future__ import annotations

from datetime import datetime

from kpreempt.analysis.algorithms import Scheduler, has_queue
from kpreempt.analysis.explain.pods import described
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict import Assumption, AssumptionKind, ClusterSummary
from kpreempt.verdict.records import SETTING_NOT_MODELLED


def summed_up(cluster: ClusterSnapshot, now: datetime) -> ClusterSummary:
    """How big the cluster is, without pods that have ended, and how old what is known of it."""
    summary = ClusterSummary(nodes=len(cluster.nodes), pods=sum(not pod.is_terminal for pod in cluster.pods))
    return described(summary, cluster, now)


def of_settings(scheduler: Scheduler) -> list[Assumption]:
    """The scheduler's settings that are not modelled; gates are for controllers, too."""
    return [each for each in scheduler.assumptions if each.message == SETTING_NOT_MODELLED]


def of_queue(algorithm: str) -> list[Assumption]:
    """That a scheduler's queue is not modelled."""
    if has_queue(algorithm):
        return []
    message = f"the queue of {algorithm} is not modelled; pods are tried in the order of that of today"
    return [Assumption("scheduler", "queue", message, AssumptionKind.UNCERTAIN)]
