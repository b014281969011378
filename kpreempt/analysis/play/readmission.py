"""Which priority a pod gets when it is made again, after PriorityClasses may have changed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.admission import admit_priority
from kpreempt.errors import NotFoundError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PriorityClass


class Readmission:
    """Looks priorities up anew for pods whose template is read off an old one.

    A template without a priority class gets the default of today, and not that of the day on which the old pod was
    made: where a change brings a new default, whatever is evicted and made again is worth another priority. ``before``
    are the classes before the change; without them all stays as it is.
    """

    def __init__(self, cluster: ClusterSnapshot, before: Sequence[PriorityClass] | None) -> None:
        self._after = ClusterSnapshot(priority_classes=cluster.priority_classes)
        self._before = ClusterSnapshot(priority_classes=list(before)) if before is not None else None
        self._known: dict[tuple[str, int | None, str | None], tuple[str, int | None, str | None]] = {}

    def admitted_again(self, pod: Pod) -> Pod:
        """The pod with the priority of a new one; a priority that the old classes do not explain is kept."""
        if self._before is None:
            return pod
        spec = pod.spec
        key = (spec.priority_class_name, spec.priority, spec.preemption_policy)
        if key not in self._known:
            self._known[key] = self._looked_up(pod)
        name, priority, policy = self._known[key]
        return msgspec.structs.replace(
            pod,
            spec=msgspec.structs.replace(spec, priority_class_name=name, priority=priority, preemption_policy=policy),
        )

    def _looked_up(self, pod: Pod) -> tuple[str, int | None, str | None]:
        """What a template that names the pod's class, or none where the pod has none, comes to today."""
        spec = pod.spec
        bare = msgspec.structs.replace(pod, spec=msgspec.structs.replace(spec, priority=None, preemption_policy=None))
        try:
            old = admit_priority(bare, self._before or self._after).pod.spec
            new = admit_priority(bare, self._after).pod.spec
        except NotFoundError:
            return spec.priority_class_name, spec.priority, spec.preemption_policy
        if old.priority_class_name != spec.priority_class_name or (old.priority or 0) != pod.priority:
            return spec.priority_class_name, spec.priority, spec.preemption_policy
        return new.priority_class_name, new.priority, new.preemption_policy
