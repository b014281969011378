"""Which priority a pod gets when it is made again, which may be another one than before."""

from __future__ import annotations

import msgspec

from kpreempt.admission import admit_priority
from kpreempt.errors import NotFoundError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod

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
