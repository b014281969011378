"""Kueue 0.19: which Workloads get quota, and whom they preempt for it."""

from kpreempt.schedulers.kueue.configuration import KueueConfiguration
from kpreempt.schedulers.kueue.objects import KueueObjects, adjusted
from kpreempt.schedulers.kueue.run import Outcomes, infos_of, run_cycles
from kpreempt.schedulers.kueue.standing import Shortage, Standing
from kpreempt.schedulers.kueue.workloads import Info

__all__ = [
    "Info",
    "KueueConfiguration",
    "KueueObjects",
    "Outcomes",
    "Shortage",
    "Standing",
    "adjusted",
    "infos_of",
    "run_cycles",
]
