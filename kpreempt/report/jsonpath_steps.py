"""What the steps of a JSONPath do: values to values (``walk`` of client-go's ``util/jsonpath/jsonpath.go``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple

# More would fill the memory; no answer has as many.
MOST_VALUES = 1_000_000

Values = list[Any]
Run = Callable[[Values], Values]


class JsonPathError(ValueError):
    """A template that cannot be read, or that does not fit the document; the text says at which character."""


class TemplateText(str):
    """Text of the template itself, as its author wrote it."""

    __slots__ = ()


class Step(NamedTuple):
    """One step of an action, and the character of the template at which it starts, from 0."""

    at: int
    run: Run


class Action(NamedTuple):
    """What stands in braces: steps, and whether it is ``range`` or ``end``; a text outside of braces is one, too."""

    at: int
    steps: list[Step]
    keyword: str = ""

    def run(self, values: Values) -> Values:
        """What the steps make of the values. Raises ``JsonPathError``."""
        for step in self.steps:
            try:
                values = step.run(values)
            except ValueError as error:
                if isinstance(error, JsonPathError):
                    raise
                raise error_at(step.at, str(error)) from None
            if len(values) > MOST_VALUES:
                raise error_at(step.at, f"more than {MOST_VALUES:,} values")
        return values


def error_at(at: int, problem: str) -> JsonPathError:
    """The failure at a character of the template, counted from 0."""
    return JsonPathError(f"character {at + 1}: {problem}")


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def bounded(values: Iterable[Any]) -> Values:
    """The values, or enough of them to see that they are too many."""
    return list(islice(values, MOST_VALUES + 1))


def constant(value: Any) -> Run:
    """The value for each one; a text of the template once."""
    return lambda values: [value] * (1 if isinstance(value, TemplateText) else len(values))


def field(name: str) -> Run:
    """The values of a key, of those that have it."""
    return lambda values: [each[name] for each in values if isinstance(each, dict) and name in each]


def _parts(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def children(values: Values) -> Values:
    """``*``: the values of maps and the elements of lists."""
    return bounded(part for each in values for part in _parts(each))


def descendants(values: Values) -> Values:
    """``..``: all values that have parts, each before its parts, and the texts."""
    return bounded(_descendants(values))


def _descendants(values: Values) -> Iterator[Any]:
    for each in values:
        if parts := _parts(each):
            yield each
            yield from _descendants(parts)
        elif isinstance(each, str) and each:
            yield each


def picking(first: str, last: str | None, every: str | None) -> Run:
    """What ``[first:last:every]`` or ``[first]`` picks. Raises ``ValueError``, as what is returned does."""
    start = int(first) if first else None
    stop = int(last[1:]) if last and last != ":" else None
    step = int(every[1:]) if every and every != ":" else 1
    is_index = last is None

    def pick(values: Values) -> Values:
        found: Values = []
        for each in values:
            if each is None:
                continue
            if not isinstance(each, list):
                raise ValueError(f"{_kind(each)} has no elements")
            low, high = _bounds(start, (start or 0) + 1 if is_index else stop, len(each), is_index)
            if low == high or len(found) > MOST_VALUES:
                return found
            if step <= 0:
                raise ValueError("a step is above 0")
            found += each[low:high:step]
        return found

    return pick


def _bounds(start: int | None, stop: int | None, length: int, is_index: bool) -> tuple[int, int]:
    low = start or 0
    low += length if low < 0 else 0
    high = length if stop is None else stop
    high += length if high < 0 or (high == 0 and is_index) else 0
    if low != high:
        if not 0 <= low < length:
            raise ValueError(f"index {low} is out of bounds: the length is {length}")
        if not 0 <= high <= length:
            raise ValueError(f"index {high - 1} is out of bounds: the length is {length}")
        if low > high:
            raise ValueError(f"the start {low} is after the end {high}")
    return low, high


def _elements(values: Values) -> Iterator[Any]:
    for each in values:
        if not isinstance(each, list):
            raise ValueError(f"{_kind(each)} has no elements to filter")
        yield from each


def existing(path: Action) -> Run:
    """``[?(path)]``: the elements that have it."""
    return lambda values: [each for each in _elements(values) if path.run([each])]


def comparing(left: Action, operator: str, right: Action) -> Run:
    """``[?(left operator right)]``: the elements of which it holds; both sides are of the same kind."""

    def holds(element: Any) -> bool:
        sides = [left.run([element]), right.run([element])]
        if any(len(each) > 1 for each in sides):
            raise ValueError("one value is compared with one other, and there are several")
        if not all(sides):
            return False
        (first,), (second,) = sides
        kinds = {_kind(first), _kind(second)}
        if len(kinds) > 1 or not kinds <= _COMPARABLE or (kinds == {"a boolean"} and operator not in ("==", "!=")):
            raise ValueError(f"{_kind(first)} {operator} {_kind(second)} cannot be compared")
        return COMPARISONS[operator](first, second)

    return lambda values: [each for each in _elements(values) if holds(each)]


_COMPARABLE = {"a text", "an integer", "a number", "a boolean"}


def _kind(value: Any) -> str:
    for kind, name in ((bool, "a boolean"), (int, "an integer"), (float, "a number"), (str, "a text"), (dict, "a map")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "a list"
