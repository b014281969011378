"""What is wrong with an object, in the API server's words.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/util/validation/field/errors.go`` for the texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kpreempt.model.documents import Path, path_text

Document = Mapping[str, Any]
_LONGEST_VALUE = 200
_DEPTH_SHOWN = 3


class Problem(NamedTuple):
    """A reason for the API server to reject an object: the ``path`` of a field, and what is wrong with it."""

    path: Path
    message: str

    def __str__(self) -> str:
        """``spec.replicas: Invalid value: -1: must be greater than or equal to 0``; without a path, the message."""
        return f"{path_text(self.path)}: {self.message}".removeprefix(": ")


# The version whose rules apply if a cluster's version is unknown.
DEFAULT_MINOR = 36


class Server(NamedTuple):
    """The API server that validates: version 1.``minor``, with the feature gates it has by default."""

    minor: int


Problems = Iterator[Problem]


def required(path: Path, detail: str = "") -> Problem:
    """A value is missing."""
    return Problem(path, _with_detail("Required value", detail))


def invalid(path: Path, value: object, detail: str) -> Problem:
    """A value has the wrong form, or is out of range."""
    return Problem(path, _with_detail(f"Invalid value: {_written(value)}", detail))


def forbidden(path: Path, detail: str) -> Problem:
    """A field may not be set, or may not be set like this."""
    return Problem(path, _with_detail("Forbidden", detail))


def unsupported(path: Path, value: object, known: Iterable[str]) -> Problem:
    """A value is not one of the known ones."""
    names = ", ".join(f'"{each}"' for each in sorted(known))
    return Problem(path, _with_detail(f"Unsupported value: {_written(value)}", names and f"supported values: {names}"))


def duplicate(path: Path, value: object) -> Problem:
    """A value that must be unique is used twice."""
    return Problem(path, f"Duplicate value: {_written(value)}")


def not_found(path: Path, value: object) -> Problem:
    """A value refers to something that does not exist."""
    return Problem(path, f"Not found: {_written(value)}")


def too_long(path: Path, limit: int) -> Problem:
    """A text is longer than ``limit`` bytes."""
    return Problem(path, f"Too long: may not be more than {limit} bytes")


def too_many(path: Path, count: int, limit: int) -> Problem:
    """A list has more than ``limit`` elements."""
    return Problem(path, f"Too many: {count}: must have at most {limit} items")


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def _written(value: object) -> str:
    text = json.dumps(_outlined(value, _DEPTH_SHOWN), ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _outlined(value: object, levels: int) -> object:
    """A value of at most that many levels: deeper ones may be secret, such as variables of containers in a template."""
    if isinstance(value, Mapping):
        return {key: _outlined(each, levels - 1) for key, each in value.items()} if levels else "…"
    if isinstance(value, list):
        return [_outlined(each, levels - 1) for each in value] if levels else "…"
    return value
