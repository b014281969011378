"""What scheduling queues have in common, and those of 1.8 and 1.13."""

from kpreempt.schedulers.queues.interface import Attempt, SchedulingQueue

__all__ = ["Attempt", "SchedulingQueue"]
