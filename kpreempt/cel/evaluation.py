"""State shared by the parts of a compiled expression during evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kpreempt.cel.libraries.texts import shown
from kpreempt.cel.regex import RegexError, compile_regex
from kpreempt.cel.values import (
    ABSENT,
    LISTS,
    MAPS,
    MAX_INT,
    NUMBERS,
    Accumulator,
    Document,
    Failure,
    List,
    Opaque,
    TooLargeError,
    Uint,
    Value,
    go_name,
    type_name,
)

COST_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
# Limit for work that costs do not count: elements visited in nested values, and characters of long strings.
_MAX_WORK: Final = 100_000_000
_LONG: Final = 1000
_SEARCH: Final = 20
_KEYS: Final = frozenset({str, int, Uint, bool, float})


class CostExceededError(Exception):
    """The evaluation exceeds the cost limit."""


@dataclass(slots=True, eq=False)
class State:
    """One evaluation: its cost so far, and its variables by slot."""

    slots: list[Value]
    limit: int
    cost: int = 0
    work: int = 0
    # Whether a list was made in map order, which is random in cel-go.
    by_chance: bool = False

    def check(self) -> None:
        """Raises ``CostExceededError``."""
        if self.cost > self.limit:
            raise CostExceededError

    def weigh(self, args: Sequence[Value], *, walks: bool) -> None:
        """Count work that a call's cost does not cover: long strings, and elements visited with ``walks``.

        Raises ``TooLargeError``.
        """
        for arg in args:
            kind = type(arg)
            if kind is str:
                if len(arg) > _LONG:
                    self.work += len(arg) >> 5
            elif walks and (kind in LISTS or kind in MAPS):
                self.work += arg.weight
        self.check_work()

    def weigh_sum(self, args: Sequence[Value]) -> None:
        """Like ``weigh``, for concatenated lists. Raises ``TooLargeError``."""
        if type(args[0]) is List:
            self.work += len(args[0]) + (len(args[1]) if type(args[1]) in LISTS else 0)
            self.check_work()

    def weigh_search(self, pattern: Value) -> None:
        """Like ``weigh``, for a completed regular expression search. Raises ``TooLargeError``."""
        try:
            self.work += _SEARCH * compile_regex(pattern).work()
        except RegexError:
            return
        self.check_work()

    def check_work(self) -> None:
        """Raises ``TooLargeError``."""
        if self.work > _MAX_WORK:
            raise TooLargeError("the evaluation takes too long")


Evaluate = Callable[[State], Value]


def lookup(container: Value, key: Value) -> Value:
    """Return the value at a key or an index; ``ABSENT`` if there is none, or cannot be any."""
    kind = type(container)
    if kind in MAPS:
        return container.find(key)
    if kind not in LISTS:
        return ABSENT
    if type(key) is not int:
        if type(key) not in NUMBERS:
            return Failure(f"unsupported index type '{type_name(key)}' in list")
        if (isinstance(key, float) and not key.is_integer()) or abs(key) > MAX_INT:
            return Failure(f"unsupported index value {shown(key)} in list")
        key = int(key)
    return container[key] if 0 <= key < len(container) else ABSENT


def missing(container: Value, key: Value) -> Failure:
    """Return the failure when ``lookup`` finds nothing."""
    problem = "index out of bounds" if type(container) in LISTS else "no such key"
    return Failure(f"{problem}: {shown(key)}")


def bad_key(key: Value) -> Failure | None:
    """Return a failure if a value cannot be an index or key of any container."""
    if type(key) in _KEYS:
        return None
    kind = "map[string]interface {}" if isinstance(key, Document) else go_name(key)
    return Failure(f"invalid qualifier type: {kind}")


def native(value: Value) -> Value:
    """Convert a value from an optional variable: cel-go cannot convert all of Kubernetes' types back."""
    kind = _NATIVE.get(type_name(value)) if isinstance(value, Opaque) else None
    return Failure(f"unsupported conversion to ref.Val: ({kind}){value}") if kind else value


_NATIVE: Final = {
    "kubernetes.Quantity": "*resource.Quantity",
    "kubernetes.Semver": "semver.Version",
    "kubernetes.URL": "*url.URL",
    "net.IP": "netip.Addr",
    "net.CIDR": "netip.Prefix",
}


def settled(value: Value) -> Value:
    """Return a list as others see it, once the comprehension that made it is complete."""
    if type(value) is not Accumulator:
        return value
    made = List()
    made.extend(value)
    made.weight = value.weight
    return made
