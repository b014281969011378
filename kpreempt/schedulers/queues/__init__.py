"""The interface of scheduling queues, and the queues of 1.8 and 1.13."""

from kpreempt.schedulers.queues.interface import Attempt, SchedulingQueue

__all__ = ["Attempt", "SchedulingQueue"]
