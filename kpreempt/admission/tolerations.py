"""The tolerations that every pod gets, and how two lists of tolerations become one.

Follows ``k8s.io/kubernetes`` v1.36.3 ``plugin/pkg/admission/defaulttolerationseconds`` (with the API server's default
of 300 seconds) and ``pkg/util/tolerations``. The toleration of memory pressure comes from a plugin that is off by
default (PodTolerationRestriction), so it is not added here.
"""

from __future__ import annotations

import msgspec

from kpreempt.admission.records import Admission
from kpreempt.model.pod import Pod
from kpreempt.model.taints import Toleration
from kpreempt.verdict import Admitted

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"

_DEFAULT_SECONDS = 300
_REASON = "admission plugin DefaultTolerationSeconds"


def admit_default_tolerations(pod: Pod) -> Admission:
    """The pod with five minutes' tolerance of nodes that are not ready or not reachable, unless it has its own."""
    added = [
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=_DEFAULT_SECONDS)
        for key in (NOT_READY, UNREACHABLE)
        if not any(_covers_no_execute(toleration, key) for toleration in pod.spec.tolerations)
    ]
    if not added:
        return Admission(pod)
    tolerations = [*pod.spec.tolerations, *added]
    changes = toleration_changes(pod.spec.tolerations, tolerations, _REASON)
    return Admission(
        msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, tolerations=tolerations)), changes
    )


def merge_tolerations(first: list[Toleration], second: list[Toleration]) -> list[Toleration]:
    """Both lists in order, without those that another one covers; of equal ones the first stays."""
    together = [*first, *second]
    merged: list[Toleration] = []
    for index, toleration in enumerate(together):
        is_redundant = any(_is_superset(kept, toleration) for kept in merged) or any(
            later != toleration and _is_superset(later, toleration) for later in together[index + 1 :]
        )
        if not is_redundant:
            merged.append(toleration)
    return merged


def toleration_changes(before: list[Toleration], after: list[Toleration], reason: str) -> list[Admitted]:
    """A change for each toleration of ``after`` that is not in ``before``, at its new place."""
    return [
        Admitted(f"spec.tolerations[{index}]", describe_toleration(toleration), reason)
        for index, toleration in enumerate(after)
        if toleration not in before
    ]


def describe_toleration(toleration: Toleration) -> str:
    """A toleration as people write it: ``key=value:Effect``, with its seconds where it has some."""
    text = toleration.key or "*"
    if toleration.operator in ("", "Equal"):
        text += f"={toleration.value}"
    elif toleration.operator != "Exists":
        text += f" {toleration.operator} {toleration.value}"
    if toleration.effect:
        text += f":{toleration.effect}"
    if toleration.toleration_seconds is not None:
        text += f" for {toleration.toleration_seconds}s"
    return text


def _covers_no_execute(toleration: Toleration, key: str) -> bool:
    return toleration.key in (key, "") and toleration.effect in ("NoExecute", "")


def _is_superset(wide: Toleration, narrow: Toleration) -> bool:
    """Whether ``wide`` tolerates all that ``narrow`` does (upstream's ``isSuperset``, with its blind spots)."""
    if wide == narrow:
        return True
    if narrow.key != wide.key and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect and narrow.effect != wide.effect:
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator in ("", "Equal"):
        return narrow.operator == "Equal" and narrow.value == wide.value
    return wide.operator == "Exists"
