"""Kueue 0.19: which Workloads get quota, and which Workloads they preempt."""

from kpreempt.schedulers.kueue.cluster_queues import Info
from kpreempt.schedulers.kueue.objects import KueueConfiguration, KueueObjects, adjusted
from kpreempt.schedulers.kueue.run import Outcomes, RequestedQuota, SnapshotQueue, infos_of, run_cycles

__all__ = [
    "Info",
    "KueueConfiguration",
    "KueueObjects",
    "Outcomes",
    "RequestedQuota",
    "SnapshotQueue",
    "adjusted",
    "infos_of",
    "run_cycles",
]
