"""What today's scheduling queue remembers of a pod (``QueuedPodInfo`` in ``pkg/scheduler/framework/types.go``)."""

from __future__ import annotations

from datetime import datetime

from kpreempt.model.pod import Pod


class QueuedPodInfo:
    """A pod with its attempts.

    ``timestamp`` is when it came into the queue, or was last given back. ``unschedulable_count`` counts attempts in
    which plugins refused it, ``consecutive_errors_count`` those since that ended with an error. ``gating_plugin`` keeps
    it out of the active queue. ``backoff_expiration`` is set when it is first asked for, and cleared by an attempt.
    """

    def __init__(self, pod: Pod, timestamp: datetime) -> None:
        self.pod = pod
        self.timestamp = timestamp
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors_count = 0
        self.backoff_expiration: datetime | None = None
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.gating_plugin = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self.pod.key

    @property
    def rejector_plugins(self) -> set[str]:
        """The plugins that refused the pod when it was last tried, or that hold it back."""
        return self.unschedulable_plugins | self.pending_plugins


def comes_first(left: QueuedPodInfo, right: QueuedPodInfo) -> bool:
    """The order of plugin PrioritySort: the higher priority, then the earlier timestamp."""
    return (-left.pod.priority, left.timestamp) < (-right.pod.priority, right.timestamp)
