"""The priority and preemption policy that a pod gets from its PriorityClass.

Follows ``k8s.io/kubernetes`` v1.36.3 ``plugin/pkg/admission/priority`` and the defaults of PriorityClass in
``pkg/apis/scheduling/v1``. Difference: the API server rejects a pod whose own priority or policy differs from its
class. Here the pod's value is kept and reported, so that a query can try another priority, such as 500.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import msgspec

from kpreempt.admission.records import REASON_API_DEFAULT, Admission, UnknownClassError, UnreadClassError
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PriorityClass
from kpreempt.verdict import Assumption, DefaultedField
from kpreempt.verdict.unread import unread_of, why_unread

# The API server creates these two at startup, so they exist even if the input lacks them.
SYSTEM_PRIORITY_CLASSES = (
    PriorityClass(metadata=ObjectMeta(name="system-cluster-critical"), value=2_000_000_000),
    PriorityClass(metadata=ObjectMeta(name="system-node-critical"), value=2_000_001_000),
)

_KIND = "PriorityClass"
_DEFAULT_POLICY = "PreemptLowerPriority"


def admit_priority(pod: Pod, cluster: ClusterSnapshot) -> Admission:
    """Set the pod's priority, class name and preemption policy.

    Raises ``NotFoundError`` for a class that does not exist, listing the existing ones, or that is unknown because
    classes were not read. If classes were not read or do not exist, and the pod sets its priority, that is kept with an
    assumption. Without the classes, no global default is assumed.
    """
    known = known_classes(cluster)
    unread = unread_of(cluster, [_KIND])
    if not pod.spec.priority_class_name:
        default = global_default(cluster.priority_classes)
        by_class = f"PriorityClass {default.metadata.name}, the global default" if default else REASON_API_DEFAULT
        filled = fill_in(pod, default, by_class)
        is_open = bool(unread) and pod.spec.priority is None and may_have_default(cluster)
        return msgspec.structs.replace(filled, assumptions=unread if is_open else [])
    chosen = known.get(pod.spec.priority_class_name)
    if chosen is not None:
        return fill_in(pod, chosen, f"PriorityClass {chosen.metadata.name}")
    if unread and pod.spec.priority is None:
        raise UnreadClassError(
            f'Pod {pod.key}: spec.priorityClassName: the priority of "{pod.spec.priority_class_name}" is '
            f"unknown: PriorityClasses {why_unread(cluster.unread[_KIND])}",
            hint="set it with explain --priority N",
        )
    if pod.spec.priority is None or (cluster.priority_classes and not unread):
        name = pod.spec.priority_class_name
        listed = ", ".join(
            f"{each.metadata.name} ({each.value})"
            for each in sorted(known.values(), key=lambda each: (-each.value, each.metadata.name))
        )
        near = difflib.get_close_matches(name, sorted(known), n=1)
        raise UnknownClassError(pod, listed, hint=near[0] if near else "")
    filled = fill_in(pod, None, REASON_API_DEFAULT)
    assumption = Assumption(
        subject=f"Pod {pod.key}",
        field="spec.priorityClassName",
        message=f'PriorityClass "{pod.spec.priority_class_name}" is not in the input; '
        f"using the pod's own priority {pod.spec.priority}",
    )
    changes = [change for change in filled.changes if change.path == "spec.preemptionPolicy"]
    return msgspec.structs.replace(filled, changes=changes, assumptions=unread or [assumption])


def may_have_default(cluster: ClusterSnapshot) -> bool:
    """Return whether a cluster whose classes were not read may have a global default.

    If no pod names a class, the cluster probably uses none.
    """
    is_absent = state_of(cluster, _KIND) is KindState.ABSENT
    return not is_absent or any(pod.spec.priority_class_name for pod in cluster.pods)


def known_classes(cluster: ClusterSnapshot) -> dict[str, PriorityClass]:
    """Return the cluster's classes and the built-in ones, by name."""
    return {each.metadata.name: each for each in (*SYSTEM_PRIORITY_CLASSES, *cluster.priority_classes)}


def global_default(classes: Sequence[PriorityClass]) -> PriorityClass | None:
    """Return the class for pods that name none. If there are several, upstream takes the one with the lowest value."""
    return min((each for each in classes if each.global_default), key=lambda each: each.value, default=None)


def fill_in(pod: Pod, chosen: PriorityClass | None, reason: str) -> Admission:
    """Set what the class provides, or the default without one, unless the pod sets it itself."""
    spec = pod.spec
    value = chosen.value if chosen is not None else 0
    policy = (chosen.preemption_policy if chosen is not None else None) or _DEFAULT_POLICY
    changes: list[DefaultedField] = []
    name = spec.priority_class_name
    if chosen is not None and not name:
        name = chosen.metadata.name
        changes.append(DefaultedField("spec.priorityClassName", name, reason))
    changes += _change("spec.priority", spec.priority, value, reason)
    changes += _change("spec.preemptionPolicy", spec.preemption_policy, policy, reason)
    filled = msgspec.structs.replace(
        spec,
        priority_class_name=name,
        priority=value if spec.priority is None else spec.priority,
        preemption_policy=spec.preemption_policy or policy,
    )
    return Admission(msgspec.structs.replace(pod, spec=filled), changes)


def _change(path: str, stated: int | str | None, computed: int | str, reason: str) -> list[DefaultedField]:
    if stated is None:
        return [DefaultedField(path, str(computed), reason)]
    if stated == computed:
        return []
    separator = " " if reason == REASON_API_DEFAULT else ": "
    return [DefaultedField(path, str(stated), f"set in the manifest; {reason}{separator}{computed}")]
