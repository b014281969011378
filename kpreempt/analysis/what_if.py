"""What if the pod or the cluster were a little different: the overrides of a question.

Those on a pod work on plain data; ``pod_document`` turns a typed pod into that. Nothing that is passed in is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.field_paths import Assignment, assign
from kpreempt.errors import UsageError, nearest
from kpreempt.model.pod import Pod, annotations_of
from kpreempt.model.quantity import Quantity

__all__ = ["Overrides", "override_pod", "pod_document"]

_POLICIES = ("PreemptLowerPriority", "Never")
_INT32 = range(-(2**31), 2**31)


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """What to change in a pod; ``None`` and empty leave it as it is. ``assignments`` are applied last, in order.

    With ``any_annotation`` they may be of annotations that only plugins read.
    """

    priority: int | None = None
    priority_class: str | None = None
    preemption_policy: str | None = None
    assignments: Sequence[Assignment] = ()
    any_annotation: bool = False

    def __bool__(self) -> bool:
        return self != Overrides(any_annotation=self.any_annotation)


def override_pod(document: Document, overrides: Overrides) -> Document:
    """A copy of a pod, given as plain data, with the overrides.

    A new priority class also drops the priority and policy that came from the old one, unless they are overridden, too.
    Raises ``UsageError`` for a value that the field cannot have, or a path that leads nowhere.
    """
    pod = deepcopy(document)
    spec = pod["spec"] = dict(pod.get("spec") or {})
    if overrides.priority_class is not None:
        spec["priorityClassName"] = overrides.priority_class
        spec.pop("priority", None)
        spec.pop("preemptionPolicy", None)
    if overrides.priority is not None:
        if overrides.priority not in _INT32:
            raise UsageError(f"the priority {overrides.priority} does not fit 32 bits")
        spec["priority"] = overrides.priority
    if overrides.preemption_policy is not None:
        spec["preemptionPolicy"] = _policy(overrides.preemption_policy)
    for assignment in overrides.assignments:
        assign(pod, assignment, any_annotation=overrides.any_annotation)
    return pod


def pod_document(pod: Pod) -> Document:
    """A typed pod as plain data, in the API's words. Only what the model keeps is in it."""
    document = {"apiVersion": "v1", "kind": "Pod", **plain_document(pod)}
    if annotations := annotations_of(pod):
        document["metadata"]["annotations"] = dict(annotations)
    return document


def plain_document(record: msgspec.Struct) -> Document:
    """A typed object as plain data, in the API's words, without its kind."""
    document: Document = _without_nulls(msgspec.to_builtins(record, enc_hook=_plain))
    return document


def _policy(text: str) -> str:
    matching = [policy for policy in _POLICIES if policy.lower() == text.lower()]
    if not matching:
        raise UsageError(f'"{text}" is not a preemption policy', hint=nearest(text, _POLICIES))
    return matching[0]


def _plain(value: object) -> str:
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no plain form")


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value
