"""The scheduling queue of Kubernetes 1.13, and what its event handlers do with it."""

from kpreempt.schedulers.queues.v1_13.handlers import Queue113
from kpreempt.schedulers.queues.v1_13.queue import PriorityQueue

__all__ = ["PriorityQueue", "Queue113"]
