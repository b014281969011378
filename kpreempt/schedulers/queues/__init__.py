"""The scheduling queues of several versions: which pod is tried next, where the others wait, and what moves them."""

from kpreempt.schedulers.queues.interface import Attempt, SchedulingQueue
from kpreempt.schedulers.queues.making import QUEUE_ALGORITHMS, queue_for

__all__ = ["QUEUE_ALGORITHMS", "Attempt", "SchedulingQueue", "queue_for"]
