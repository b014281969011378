"""The priorities of pods that are in a cluster and state none, though their PriorityClass tells.

A pod that an API server hands out states its priority; this is for clusters written by hand. What a class gives is as
in ``kpreempt/admission/priority.py``. Departure: a pod without a class that was there before keeps no priority, which
counts as 0, since the global default may be younger than the pod; that is said.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kpreempt.admission.priority import global_default, known_classes, with_class
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PriorityClass
from kpreempt.verdict import Assumption, AssumptionKind

_NEVER = "Never"
_VALUE, _POLICY, _DEFAULT = "value", "preemptionPolicy", "globalDefault"
_LACK = {
    _VALUE: "names it and states no priority",
    _POLICY: "names it and states no preemption policy",
    _DEFAULT: "states neither priority nor class",
}


class _Case(NamedTuple):
    """What pods lack that a class has a say in, and whether it gives it to them."""

    class_name: str
    field: str
    is_given: bool


def fill_priorities(
    cluster: ClusterSnapshot, created: Collection[str] = ()
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster whose pods have the priority and the policy of their class where they state none, and what to say.

    ``created`` are the keys of the pods that come now, to which the global default applies. What a class gives is sure,
    and only told. A class that is not in the input, or a global default that may have come later than the pod, leaves
    a pod at 0, and the answer is uncertain. Pods that have finished stay as they are. The very same cluster comes back
    where nothing is filled in.
    """
    classes = known_classes(cluster)
    never = {name for name, each in classes.items() if each.preemption_policy == _NEVER}
    default = global_default(cluster.priority_classes)
    changed: dict[int, Pod] = {}
    cases: dict[_Case, list[str]] = {}
    for index, pod in enumerate(cluster.pods):
        spec = pod.spec
        if spec.priority is not None and not (
            never and spec.preemption_policy is None and spec.priority_class_name in never
        ):
            continue
        case = _case_of(pod, classes, default, created)
        if case is not None:
            cases.setdefault(case, []).append(pod.key)
            if case.is_given:
                changed[index] = with_class(pod, classes[case.class_name])
    if changed:
        pods = [changed.get(index, pod) for index, pod in enumerate(cluster.pods)]
        cluster = msgspec.structs.replace(cluster, pods=pods)
    return cluster, [_assumption(case, classes.get(case.class_name), pods) for case, pods in cases.items()]


def _case_of(
    pod: Pod, classes: Mapping[str, PriorityClass], default: PriorityClass | None, created: Collection[str]
) -> _Case | None:
    """What there is to say of a pod that lacks its priority or policy; nothing where 0 is what it would get, too."""
    if pod.is_terminal:
        return None
    name = pod.spec.priority_class_name
    if name:
        return _Case(name, _VALUE if pod.spec.priority is None else _POLICY, name in classes)
    if default is None or (default.value == 0 and default.preemption_policy != _NEVER):
        return None
    return _Case(default.metadata.name, _DEFAULT, pod.key in created)


def _assumption(case: _Case, chosen: PriorityClass | None, pods: Sequence[str]) -> Assumption:
    more = f" (and {len(pods) - 1:,} more)" if len(pods) > 1 else ""
    lack = f"pod {pods[0]}{more} {_LACK[case.field]}"
    kind = AssumptionKind.TOLD if case.is_given else AssumptionKind.UNCERTAIN
    if chosen is None:
        message = f"not in the input; {lack}, and is taken at 0"
    elif case.is_given:
        message = f"{lack}; it gives {chosen.preemption_policy if case.field == _POLICY else chosen.value}"
    else:
        message = f"{lack}, and is taken at 0; created now, it would get {chosen.value}"
    return Assumption(f"PriorityClass {case.class_name}", case.field, message, kind)
