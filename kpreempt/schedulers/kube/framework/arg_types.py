"""The types of configuration values, including plugin arguments, with the names used for them in messages.

Follows ``k8s.io/kube-scheduler`` v0.36.3 ``config/v1``.

Validation errors use the words of ``field.Error`` (``k8s.io/apimachinery`` v0.36.3 ``pkg/util/validation/field``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kpreempt.errors import ConfigurationError


class Scalar(NamedTuple):
    """A plain value; ``go_type`` also determines the allowed values."""

    go_type: str


class ListOf(NamedTuple):
    """A list of values of one type."""

    item: Type

    @property
    def go_type(self) -> str:
        """The name used in messages."""
        return f"[]{self.item.go_type}"


class Struct(NamedTuple):
    """An object with known fields."""

    name: str
    fields: dict[str, Type]

    @property
    def go_type(self) -> str:
        """The name used in messages."""
        return f"v1.{self.name}"


Type = Scalar | ListOf | Struct

STRING = Scalar("string")
BOOL = Scalar("bool")
INT32 = Scalar("int32")
INT64 = Scalar("int64")
FLOAT32 = Scalar("float32")
DURATION = Scalar("duration")
BYTES = Scalar("[]uint8")
STRING_MAP = Scalar("map[string]string")

STRINGS = ListOf(STRING)
# For label selectors and node selectors.
REQUIREMENT: dict[str, Type] = {"key": STRING, "operator": STRING, "values": STRINGS}
# Arguments that several scoring plugins share.
RESOURCES = ListOf(Struct("ResourceSpec", {"name": STRING, "weight": INT64}))
SHAPE = ListOf(Struct("UtilizationShapePoint", {"utilization": INT32, "score": INT32}))


def invalid(path: str, value: object, detail: str) -> str:
    """Format the error for a value that is not allowed."""
    return f"{path}: Invalid value: {_shown(value)}: {detail}"


def required(path: str, detail: str = "") -> str:
    """Format the error for a missing value."""
    return f"{path}: Required value" + (f": {detail}" if detail else "")


def forbidden(path: str, detail: str) -> str:
    """Format the error for a field that must not be set."""
    return f"{path}: Forbidden: {detail}"


def duplicate(path: str, value: object) -> str:
    """Format the error for a duplicate value."""
    return f"{path}: Duplicate value: {_shown(value)}"


def unsupported(path: str, value: str, supported: Sequence[str]) -> str:
    """Format the error for a value outside a fixed set."""
    listed = ", ".join(map(_shown, supported))
    return f"{path}: Unsupported value: {_shown(value)}: supported values: {listed}"


def child(path: str, field: str) -> str:
    """Return the path of a field; ``path`` may be empty."""
    return f"{path}.{field}" if path else field


def aggregate(problems: Iterable[str], prefix: str = "") -> None:
    """Raise ``ConfigurationError`` with all problems, without duplicates, if there are any."""
    distinct = list(dict.fromkeys(problems))
    if distinct:
        raise ConfigurationError(prefix + (distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"))


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
