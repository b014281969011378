"""What the parts of a compiled expression share while it is evaluated."""

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
# What may be done beyond what costs count: elements of nested values that are walked, and characters of long strings.
_MAX_WORK: Final = 100_000_000
_LONG: Final = 1000
_SEARCH: Final = 20
_KEYS: Final = frozenset({str, int, Uint, bool, float})


class CostExceededError(Exception):
    """The evaluation costs more than it may."""


@dataclass(slots=True, eq=False)
class State:
    """One evaluation: what it has cost so far, and its variables, each at a number of its own."""

    slots: list[Value]
    limit: int
    cost: int = 0
    work: int = 0
    # Whether a list was made in the order of a map, which in cel-go is chance.
    by_chance: bool = False

    def check(self) -> None:
        """Raises ``CostExceededError``."""
        if self.cost > self.limit:
            raise CostExceededError

    def weigh(self, args: Sequence[Value], *, walks: bool) -> None:
        """Count what a call does that its cost does not tell: long strings, and what it ``walks`` through.

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
        """As ``weigh``, for lists that are copied one after the other. Raises ``TooLargeError``."""
        if type(args[0]) is List:
            self.work += len(args[0]) + (len(args[1]) if type(args[1]) in LISTS else 0)
            self.check_work()

    def weigh_search(self, pattern: Value) -> None:
        """As ``weigh``, for a search for a regular expression that was made. Raises ``TooLargeError``."""
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
    """The value at a key or an index; ``ABSENT`` where there is none, also where there can be none."""
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
    """What is said where ``lookup`` finds nothing."""
    where = "index out of bounds" if type(container) in LISTS else "no such key"
    return Failure(f"{where}: {shown(key)}")


def bad_key(key: Value) -> Failure | None:
    """What is wrong with a value in brackets, whatever is before them."""
    if type(key) in _KEYS:
        return None
    kind = "map[string]interface {}" if isinstance(key, Document) else go_name(key)
    return Failure(f"invalid qualifier type: {kind}")


def native(value: Value) -> Value:
    """A value that was taken out of a variable that is optional: cel-go cannot take all of Kubernetes' types back."""
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
    """A list as others see it, once the comprehension that made it is done."""
    if type(value) is not Accumulator:
        return value
    made = List()
    made.extend(value)
    made.weight = value.weight
    return made
