"""When controllers replace a pod that has to go."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from kpreempt.controllers.job import FIRST_BACKOFF, LONGEST_BACKOFF
from kpreempt.controllers.replacement import is_replaced
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod

# How long the pods of a node that is gone stay: ``quarantineTime`` of ``pkg/controller/podgc`` in v1.36.3, which looks
# again up to 20 seconds later. That their containers end with the node at once is the worse of what may happen.
ORPHANED_SECONDS = 40.0
# Doublings of the first backoff of a Job after which it is the longest for sure.
_MOST_DOUBLINGS = 10


class Moment(Enum):
    """When the next pod is made."""

    AT_ONCE = "as soon as the old one is being deleted"
    AFTER_BACKOFF = "a backoff after the last failure, as which its deletion counts"
    ONCE_GONE = "once the old one is gone"


# ReplicaSets count active pods only; StatefulSets and DaemonSets have one pod per name or node.
_MOMENTS = {
    "ReplicaSet": Moment.AT_ONCE,
    "ReplicationController": Moment.AT_ONCE,
    "Job": Moment.AFTER_BACKOFF,
    "StatefulSet": Moment.ONCE_GONE,
    "DaemonSet": Moment.ONCE_GONE,
}


def moment_of(pod: Pod) -> Moment | None:
    """When the pod is replaced, or ``None`` where no controller that is known would."""
    owner = controller_of(pod.metadata)
    return _MOMENTS[owner.kind] if owner is not None and is_replaced(pod) else None


def is_known_owner(pod: Pod) -> bool:
    """Whether it is known what manages the pod, or that nothing does."""
    return controller_of(pod.metadata) is None or is_replaced(pod)


def is_of_node(pod: Pod) -> bool:
    """Whether the pod is there for its node, and is not missed where that is gone: of a DaemonSet, or static."""
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind in ("DaemonSet", "Node")


class JobBackoffs:
    """The failures of Jobs in a row, by the owner of their pods. Times are in seconds from the start."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], int] = {}
        self._ends: dict[tuple[str, str], float] = {}

    def failed(self, pod: Pod, at: float) -> float:
        """A pod of a Job failed; returns when the Job makes pods again, if no other fails meanwhile."""
        key = _job_of(pod)
        number = self._failures[key] = self._failures.get(key, 0) + 1
        wait: timedelta = min(FIRST_BACKOFF * 2 ** min(number - 1, _MOST_DOUBLINGS), LONGEST_BACKOFF)
        self._ends[key] = at + wait.total_seconds()
        return self._ends[key]

    def end(self, pod: Pod) -> float:
        """When the Job of a pod that failed makes pods again."""
        return self._ends[_job_of(pod)]


def _job_of(pod: Pod) -> tuple[str, str]:
    owner = controller_of(pod.metadata)
    return pod.metadata.namespace, owner.name if owner is not None else ""
