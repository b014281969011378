"""The scheduling queue of Kubernetes 1.36, and what its event handlers do with it."""

from kpreempt.schedulers.queues.v1_36.backoff import BackoffQueue
from kpreempt.schedulers.queues.v1_36.handlers import Queue136
from kpreempt.schedulers.queues.v1_36.queue import PriorityQueue

__all__ = ["BackoffQueue", "PriorityQueue", "Queue136"]
