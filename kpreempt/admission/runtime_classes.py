"""What a RuntimeClass adds to its pods: overhead, a node selector, tolerations.

Follows ``k8s.io/kubernetes`` v1.36.3 ``plugin/pkg/admission/runtimeclass``.
"""

from __future__ import annotations

import difflib

import msgspec

from kpreempt.admission.pod_resources import round_up_to_milli
from kpreempt.admission.records import Admission, rejected
from kpreempt.admission.tolerations import merge_tolerations, toleration_changes
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import RuntimeClass, RuntimeClassScheduling
from kpreempt.verdict import Admitted
from kpreempt.verdict.unread import unread_of

_KIND = "RuntimeClass"


def admit_runtime_class(pod: Pod, cluster: ClusterSnapshot) -> Admission:
    """The pod with its RuntimeClass' overhead and placement.

    Raises ``InputError`` where the API server refuses the pod: an unknown class, an overhead that is not the class's,
    a node selector that contradicts it. If RuntimeClasses were not read, the pod is taken as it is, with an assumption.
    """
    name = pod.spec.runtime_class_name
    if name and _may_be_unread(name, cluster):
        return Admission(pod, assumptions=unread_of(cluster, [_KIND]))
    if not name:
        return Admission(pod)
    runtime_class = _find(pod, cluster)
    overhead = _overhead(pod, runtime_class)
    placed = _placement(overhead.pod, runtime_class)
    return Admission(placed.pod, [*overhead.changes, *placed.changes])


def check_overhead(pod: Pod, cluster: ClusterSnapshot) -> None:
    """Raise ``InputError`` for an overhead that no RuntimeClass gives; unknown ones are not held against the pod."""
    name = pod.spec.runtime_class_name
    if not pod.spec.overhead or (name and _may_be_unread(name, cluster)):
        return
    if not name or _find(pod, cluster).overhead is None:
        reason = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise rejected(pod, reason, path="spec.overhead")


def _may_be_unread(name: str, cluster: ClusterSnapshot) -> bool:
    return _KIND in cluster.unread and all(each.metadata.name != name for each in cluster.runtime_classes)


def _find(pod: Pod, cluster: ClusterSnapshot) -> RuntimeClass:
    name = pod.spec.runtime_class_name
    by_name = {each.metadata.name: each for each in cluster.runtime_classes}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name, sorted(by_name), n=1)
    there = f"; there is: {', '.join(sorted(by_name))}" if by_name else ""
    reason = f'RuntimeClass "{name}" not found{there}'
    raise rejected(pod, reason, path="spec.runtimeClassName", hint=near[0] if near else "")


def _overhead(pod: Pod, runtime_class: RuntimeClass) -> Admission:
    stated = pod.spec.overhead
    if runtime_class.overhead is None:
        return Admission(pod)
    fixed = round_up_to_milli(runtime_class.overhead.pod_fixed)
    if stated and stated != fixed:
        raise rejected(pod, "Pod's Overhead doesn't match RuntimeClass's defined Overhead", path="spec.overhead")
    reason = f"RuntimeClass {runtime_class.metadata.name}"
    changes = [
        Admitted(f"spec.overhead.{name}", str(amount), reason) for name, amount in fixed.items() if name not in stated
    ]
    return Admission(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, overhead=fixed)), changes)


def _placement(pod: Pod, runtime_class: RuntimeClass) -> Admission:
    scheduling = runtime_class.scheduling
    if scheduling is None:
        return Admission(pod)
    reason = f"RuntimeClass {runtime_class.metadata.name}"
    changes = _selector_changes(pod, scheduling, reason)
    tolerations = merge_tolerations(pod.spec.tolerations, scheduling.tolerations)
    changes += toleration_changes(pod.spec.tolerations, tolerations, reason)
    selector = {**pod.spec.node_selector, **scheduling.node_selector}
    spec = msgspec.structs.replace(pod.spec, node_selector=selector, tolerations=tolerations)
    return Admission(msgspec.structs.replace(pod, spec=spec), changes)


def _selector_changes(pod: Pod, scheduling: RuntimeClassScheduling, reason: str) -> list[Admitted]:
    changes = []
    for key, value in sorted(scheduling.node_selector.items()):
        stated = pod.spec.node_selector.get(key)
        if stated is None:
            changes.append(Admitted(f"spec.nodeSelector.{key}", value, reason))
        elif stated != value:
            conflict = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {stated}"
            )
            raise rejected(pod, conflict, path="spec.nodeSelector")
    return changes
