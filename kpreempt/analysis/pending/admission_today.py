"""What admission would set to other values if an existing pod were created again today.

Only differences that its own fields prove: the value of its PriorityClass, the overhead of its RuntimeClass, and
default requests of a LimitRange that the pod lacks. Kinds that the input does not have prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpreempt.admission.limit_ranges import admit_limit_ranges
from kpreempt.admission.pod_resources import round_up_to_milli
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict.waiting import AdmissionDifference


def differences_today(pod: Pod, cluster: ClusterSnapshot) -> list[AdmissionDifference]:
    """The fields of the pod that a new pod like it would not have, in the order of admission."""
    return [*_of_limit_ranges(pod, cluster), *_of_priority(pod, cluster), *_of_overhead(pod, cluster)]


def _of_limit_ranges(pod: Pod, cluster: ClusterSnapshot) -> Iterator[AdmissionDifference]:
    if not any(each.metadata.namespace == pod.metadata.namespace for each in cluster.limit_ranges):
        return
    for change in admit_limit_ranges(pod, cluster).changes:
        yield AdmissionDifference(path=change.path, current="", today=change.value, source=change.reason)


def _of_priority(pod: Pod, cluster: ClusterSnapshot) -> Iterator[AdmissionDifference]:
    name = pod.spec.priority_class_name
    priority_class = next((each for each in cluster.priority_classes if each.metadata.name == name), None)
    if priority_class is None or pod.spec.priority is None:
        return
    source = f"PriorityClass {name}"
    if priority_class.value != pod.spec.priority:
        current, today = str(pod.spec.priority), str(priority_class.value)
        yield AdmissionDifference(path="spec.priority", current=current, today=today, source=source)
    policy = priority_class.preemption_policy
    if policy and pod.spec.preemption_policy and policy != pod.spec.preemption_policy:
        path, current = "spec.preemptionPolicy", pod.spec.preemption_policy
        yield AdmissionDifference(path=path, current=current, today=policy, source=source)


def _of_overhead(pod: Pod, cluster: ClusterSnapshot) -> Iterator[AdmissionDifference]:
    name = pod.spec.runtime_class_name
    runtime_class = next((each for each in cluster.runtime_classes if each.metadata.name == name), None)
    if runtime_class is None:
        return
    overhead = runtime_class.overhead
    today = round_up_to_milli(overhead.pod_fixed) if overhead is not None else {}
    for resource in sorted({*pod.spec.overhead, *today}):
        amounts = (pod.spec.overhead.get(resource), today.get(resource))
        if amounts[0] != amounts[1]:
            before, after = ("" if each is None else str(each) for each in amounts)
            path = f"spec.overhead.{resource}"
            yield AdmissionDifference(path=path, current=before, today=after, source=f"RuntimeClass {name}")
