"""When controllers replace a pod that has to go, and which priority the new one gets, which may be another."""

from __future__ import annotations

from enum import Enum

import msgspec

from kpreempt.admission import admit_priority
from kpreempt.controllers.replacement import is_replaced
from kpreempt.errors import NotFoundError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod

# How long the pods of a node that is gone stay: ``quarantineTime`` of ``pkg/controller/podgc`` in v1.36.3, which looks
# again up to 20 seconds later. That their containers end with the node at once is the worse of what may happen.
ORPHANED_SECONDS = 40.0
# Doublings of the first backoff of a Job after which it is the longest for sure.
MOST_DOUBLINGS = 10


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


_Named = tuple[str, int | None, str | None]


class Readmission:
    """Looks priorities up anew for pods whose template is read off an old one.

    A template without a priority class gets the default of today, and not that of the day on which the old pod was
    made: where a default was brought in since, whatever is evicted and made again is worth more than before. A pod
    without a class whose priority is not 0 was not admitted as it is, and keeps what it has.
    """

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._classes = ClusterSnapshot(priority_classes=cluster.priority_classes, unread=cluster.unread)
        self._known: dict[_Named, _Named] = {}

    def admitted_again(self, pod: Pod) -> Pod:
        """The pod with the priority of a new one."""
        spec = pod.spec
        key = (spec.priority_class_name, spec.priority, spec.preemption_policy)
        if key not in self._known:
            self._known[key] = self._looked_up(pod)
        name, priority, policy = self._known[key]
        if (name, priority, policy) == key:
            return pod
        spec = msgspec.structs.replace(spec, priority_class_name=name, priority=priority, preemption_policy=policy)
        return msgspec.structs.replace(pod, spec=spec)

    def _looked_up(self, pod: Pod) -> _Named:
        spec = pod.spec
        kept = spec.priority_class_name, spec.priority, spec.preemption_policy
        if not spec.priority_class_name and pod.priority != 0:
            return kept
        bare = msgspec.structs.replace(spec, priority=None, preemption_policy=None)
        try:
            new = admit_priority(msgspec.structs.replace(pod, spec=bare), self._classes).pod.spec
        except NotFoundError:
            return kept
        return new.priority_class_name, new.priority, new.preemption_policy
