r"""Changes to a pod: overrides, and fields by path.

They work on plain data; ``pod_document`` converts a typed pod. Inputs are not modified.

In a path (``spec.containers[0].resources.requests.cpu``) a dot separates keys, ``[0]`` is a list index, and a backslash
escapes the next character (``spec.nodeSelector.kubernetes\.io/arch``). A path must name fields that the model of a pod
has: any other could not change a result, and is most likely misspelled.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec

from kpreempt.analysis.document_reader import Document
from kpreempt.errors import UsageError, nearest
from kpreempt.model.pod import Pod, annotations_of

__all__ = ["Overrides", "override_pod", "pod_document"]

_POLICIES = ("PreemptLowerPriority", "Never")
_INT32 = range(-(2**31), 2**31)


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to a pod; ``None`` and empty values change nothing. ``assignments`` are applied last, in order.

    With ``any_annotation``, they may set annotations that only plugins read.
    """

    priority: int | None = None
    priority_class: str | None = None
    preemption_policy: str | None = None
    assignments: Sequence[Assignment] = ()
    any_annotation: bool = False

    def __bool__(self) -> bool:
        return self != Overrides(any_annotation=self.any_annotation)


def override_pod(document: Document, overrides: Overrides) -> Document:
    """A copy of a pod in plain data, with the overrides.

    A new priority class also removes the old class's priority and policy, unless these are overridden, too. Raises
    ``UsageError`` for an invalid value, or a path that does not exist.
    """
    pod = deepcopy(document)
    spec = pod["spec"] = dict(pod.get("spec") or {})
    if overrides.priority_class is not None:
        spec["priorityClassName"] = overrides.priority_class
        spec.pop("priority", None)
        spec.pop("preemptionPolicy", None)
    if overrides.priority is not None:
        if overrides.priority not in _INT32:
            raise UsageError(f"priority {overrides.priority} is not a 32-bit integer")
        spec["priority"] = overrides.priority
    if overrides.preemption_policy is not None:
        name = overrides.preemption_policy
        policy = next((each for each in _POLICIES if each.lower() == name.lower()), None)
        if policy is None:
            raise UsageError(f'"{name}" is not a preemption policy', hint=nearest(name, _POLICIES))
        spec["preemptionPolicy"] = policy
    for assignment in overrides.assignments:
        assign(pod, assignment, any_annotation=overrides.any_annotation)
    return pod


def pod_document(pod: Pod) -> Document:
    """A typed pod as plain data in the API's format, with the fields that the model keeps."""
    document = {"apiVersion": "v1", "kind": "Pod", **plain_document(pod)}
    if annotations := annotations_of(pod):
        document["metadata"]["annotations"] = dict(annotations)
    return document


def plain_document(record: msgspec.Struct) -> Document:
    """A typed object as plain data in the API's format, without its kind."""
    document: Document = _without_nulls(msgspec.to_builtins(record, enc_hook=str))
    return document


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value


Step = str | int

_TOKEN = re.compile(r"(\.?)((?:\\.|[^\\.\[\]])+)|\[([0-9]{1,6})\]", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ANNOTATION = ("metadata", "annotations")
_SPECIAL = re.compile(r"[\\.\[\]]")


class Assignment(msgspec.Struct, frozen=True):
    """A path and the value to set, as plain data; ``None`` removes the field."""

    path: str
    value: Any


def split_assignment(text: str) -> tuple[str, str]:
    """The path and the unparsed value of ``PATH=VALUE``. Raises ``UsageError`` without a path or an ``=``."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise UsageError(f'"{text}" is not PATH=VALUE', hint="spec.containers[0].resources.requests.cpu=1500m")
    return path, value


def assign(document: dict[str, Any], assignment: Assignment, *, any_annotation: bool = False) -> None:
    """Set a value at a path of a pod, in place, creating missing mappings and lists.

    An index one past the end of a list appends. With ``any_annotation``, every annotation counts as a field. Raises
    ``UsageError`` if the path does not exist, with the alternatives.
    """
    steps = parse_path(assignment.path)
    if not (any_annotation and len(steps) == len(_ANNOTATION) + 1 and tuple(steps[:-1]) == _ANNOTATION):
        _check_names(steps, assignment.path)
    place: Any = document
    for depth, (step, following) in enumerate(pairwise(steps)):
        parent_path = format_path(steps[:depth])
        existing = _get(place, step, parent_path, assignment.path)
        if existing is None:
            if assignment.value is None:
                return
            existing = [] if isinstance(following, int) else {}
            _set(place, step, existing)
        place = existing
    last, parent_path = steps[-1], format_path(steps[:-1])
    existing = _get(place, last, parent_path, assignment.path)
    if assignment.value is not None:
        _set(place, last, assignment.value)
    elif existing is not None:
        del place[last]


def parse_path(path: str) -> list[Step]:
    """The keys and indexes of a path. Raises ``UsageError`` if it is malformed."""
    steps: list[Step] = []
    place = 0
    while place < len(path):
        token = _TOKEN.match(path, place)
        if token is None:
            raise _malformed(path, place)
        dot, key, index = token.groups()
        # A key follows a dot unless it is the first; an index follows a key or an index.
        if bool(dot) != bool(steps) if key is not None else not steps:
            raise _malformed(path, place)
        steps.append(int(index) if key is None else _ESCAPED.sub(r"\1", key))
        place = token.end()
    if not steps:
        raise _malformed(path, 0)
    return steps


def format_path(steps: list[Step]) -> str:
    """Format steps as a path."""
    parts = [f"[{step}]" if isinstance(step, int) else "." + _SPECIAL.sub(r"\\\g<0>", step) for step in steps]
    return "".join(parts).removeprefix(".")


def _malformed(path: str, place: int) -> UsageError:
    return UsageError(
        f'"{path}" is not a path (at character {place + 1})', hint="spec.containers[0].resources.requests.cpu"
    )


def _get(place: Any, step: Step, parent_path: str, path: str) -> Any:
    """The value at ``step``, or ``None`` if one can be set."""
    if isinstance(step, int):
        if not isinstance(place, list):
            raise UsageError(f"{path}: {parent_path} is {_describe_type(place)}, not a list")
        if step > len(place):
            raise UsageError(f"{path}: {parent_path} has {len(place)} {'entry' if len(place) == 1 else 'entries'}")
        return place[step] if step < len(place) else None
    if not isinstance(place, dict):
        raise UsageError(f"{path}: {parent_path} is {_describe_type(place)}, not a mapping")
    return place.get(step)


def _set(place: Any, step: Step, value: Any) -> None:
    if isinstance(step, int) and step == len(place):
        place.append(value)
    else:
        place[step] = value


def _describe_type(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"{value!r}"


def _check_names(steps: list[Step], path: str) -> None:
    """Check that each key that should be a field of the API is one that the model has."""
    shape = _pod_shape()
    for depth, step in enumerate(steps):
        parent = format_path(steps[:depth]) or "a pod"
        if isinstance(shape, msgspec.inspect.StructType) and isinstance(step, str):
            fields = {field.encode_name: field.type for field in shape.fields}
            if step not in fields:
                near = difflib.get_close_matches(step, sorted(fields), n=1)
                problem = f'"{step}" is not a field of {parent} that affects scheduling'
                raise UsageError(
                    f"{path}: {problem}; expected one of: {', '.join(sorted(fields))}", hint=near[0] if near else ""
                )
            inner = fields[step]
        elif isinstance(shape, msgspec.inspect.ListType) and isinstance(step, int):
            inner = shape.item_type
        elif isinstance(shape, msgspec.inspect.DictType) and isinstance(step, str):
            inner = shape.value_type
        else:
            is_mapping = isinstance(shape, msgspec.inspect.StructType | msgspec.inspect.DictType)
            kind = "a mapping" if is_mapping else "a single value"
            raise UsageError(f"{path}: {parent} is {'a list' if isinstance(shape, msgspec.inspect.ListType) else kind}")
        shape = inner
        if isinstance(inner, msgspec.inspect.UnionType):
            # The type without "or null".
            shape = next(each for each in inner.types if not isinstance(each, msgspec.inspect.NoneType))


@cache
def _pod_shape() -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(Pod)
