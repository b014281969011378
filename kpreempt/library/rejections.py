"""Manifests that the API server rejects because of names that it does not know, with the lines on which these are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from kpreempt.admission.strict_decoding import Document, UnknownName, unknown_names
from kpreempt.errors import InputError
from kpreempt.schedulers.kube.versions import number_of_server

_PROBLEMS_SHOWN = 3


class Given(Protocol):
    """An object of a manifest as plain data; ``text`` is that of its source, empty if it isn't at hand."""

    @property
    def document(self) -> Document: ...

    @property
    def source(self) -> str: ...

    @property
    def line(self) -> int: ...

    @property
    def text(self) -> bytes: ...


class Rejection(NamedTuple):
    """Why an object is rejected, and the line of the first problem."""

    line: int
    reason: str


def rejection_of(given: Given, server_version: str = "") -> Rejection | None:
    """Why the API server of a version rejects an object, if it does; of an unknown version, why all versions do."""
    number = number_of_server(server_version)
    found = list(unknown_names(given.document, number[1] if number and number[0] == 1 else None))
    if not found:
        return None
    problems = sorted((_line_of(given, each), str(each)) for each in found[:_PROBLEMS_SHOWN])
    line = problems[0][0]
    shown = [problem if at == line else f"line {at}: {problem}" for at, problem in problems]
    if more := len(found) - len(shown):
        shown.append(f"and {more:,} more")
    return Rejection(line, "; ".join(shown))


def refuse_rejected(objects: Iterable[Given]) -> None:
    """Raise ``InputError`` for the first object that every version of the API server rejects."""
    for each in objects:
        if rejection := rejection_of(each):
            raise InputError(rejection.reason, source=each.source, line=rejection.line)


def _line_of(given: Given, unknown: UnknownName) -> int:
    if not given.text:
        return given.line
    from kpreempt.snapshot.field_lines import line_of_field

    return line_of_field(given.text, given.line, unknown.path)
