"""The types of what a configuration holds, arguments of plugins included, with the names that messages give them.

Follows ``k8s.io/kube-scheduler`` v0.36.3 ``config/v1``.
"""

from __future__ import annotations

from typing import NamedTuple


class Scalar(NamedTuple):
    """A plain value; ``go_type`` is also what it may hold."""

    go_type: str


class ListOf(NamedTuple):
    """A list of values of one type."""

    item: Type

    @property
    def go_type(self) -> str:
        """The name in messages."""
        return f"[]{self.item.go_type}"


class Struct(NamedTuple):
    """An object with known fields."""

    name: str
    fields: dict[str, Type]

    @property
    def go_type(self) -> str:
        """The name in messages."""
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
# Of label selectors and node selectors.
REQUIREMENT: dict[str, Type] = {"key": STRING, "operator": STRING, "values": STRINGS}
# What several scoring plugins take.
RESOURCES = ListOf(Struct("ResourceSpec", {"name": STRING, "weight": INT64}))
SHAPE = ListOf(Struct("UtilizationShapePoint", {"utilization": INT32, "score": INT32}))
