"""CEL values: their Python types, names, order and equality.

    bool, string, bytes, double    bool, str, bytes, float
    int, uint                      int, Uint
    null_type                      None
    list, map                      List, Map
    timestamp, duration            Timestamp, Duration
    type, optional_type            TypeValue, OptionalValue
    kubernetes.*, net.*            subclasses of Opaque (``libraries``)
    errors                         Failure: a value, until an operator handles it

Follows cel-go v0.26.0 ``common/types``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1
MAX_UINT: Final = 2**64 - 1
SECOND: Final = 1_000_000_000

# The maximum number of nested elements of a value: a list can be built from itself at almost no cost.
MAX_WEIGHT: Final = 2_000_000

Value = Any


class TooLargeError(Exception):
    """A value, or the work on values, exceeds the limits of an evaluation; ``str`` is the message."""


class FatalError(Exception):
    """An evaluation is aborted, regardless of operators that would absorb an error."""


@dataclass(slots=True, eq=False)
class Failure:
    """An evaluation error, which takes the place of a value.

    ``is_unknown`` means that it is a value that only the API server knows: the result is unknown if it depends on it.
    """

    message: str
    is_unknown: bool = False


NO_SUCH_OVERLOAD: Final = Failure("no such overload")


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class List(list[Value]):
    """A list; ``weight`` is its number of elements at all depths."""

    __slots__ = ("weight",)

    def __init__(self, items: Iterable[Value] = ()) -> None:
        super().__init__(items)
        self.weight = 1
        self.weigh(self)

    def weigh(self, items: Iterable[Value]) -> None:
        """Count added elements. Raises ``TooLargeError``."""
        weight = self.weight
        for item in items:
            weight += item.weight if type(item) in _WEIGHED else 1
        if weight > MAX_WEIGHT:
            raise TooLargeError(f"a value has more than {MAX_WEIGHT} elements")
        self.weight = weight


class Accumulator(List):
    """The list that a comprehension builds in place."""

    __slots__ = ()

    def grow(self, items: List) -> Accumulator:
        self.extend(items)
        self.weigh(items)
        return self


class Map:
    """A map. Keys of different types differ, but equal numbers match (``find``).

    cel-go iterates over a map in random order; here it is insertion order.
    """

    __slots__ = ("entries", "weight")

    def __init__(self, items: Iterable[tuple[Value, Value]] = ()) -> None:
        self.entries: dict[Value, Value] = {}
        self.weight = 1
        for key, value in items:
            self.put(key, value)

    def put(self, key: Value, value: Value) -> None:
        """Set ``key``. Raises ``TooLargeError``."""
        self.entries[hashed(key)] = value
        self.weight += value.weight + 1 if type(value) in _WEIGHED else 1
        if self.weight > MAX_WEIGHT:
            raise TooLargeError(f"a value has more than {MAX_WEIGHT} elements")

    def drop(self, key: Value) -> None:
        self.entries.pop(hashed(key), None)

    def find(self, key: Value) -> Value:
        """Return the value at ``key``, or ``ABSENT``."""
        found = self.entries.get(hashed(key), ABSENT)
        if found is not ABSENT or type(key) not in NUMBERS:
            return found
        for other in _other_numbers(key):
            found = self.entries.get(hashed(other), ABSENT)
            if found is not ABSENT:
                return found
        return ABSENT

    def contains(self, key: Value) -> bool:
        return self.find(key) is not ABSENT

    def keys(self) -> Iterator[Value]:
        return (key if type(key) is str else key[1] for key in self.entries)

    def items(self) -> Iterator[tuple[Value, Value]]:
        return ((key if type(key) is str else key[1], value) for key, value in self.entries.items())

    def __len__(self) -> int:
        return len(self.entries)


class Document(Map):
    """A map from JSON input: its keys are strings, and other keys are not looked up."""

    __slots__ = ()

    def find(self, key: Value) -> Value:
        return self.entries.get(key, ABSENT) if type(key) is str else ABSENT


class DefaultMap(Document):
    """A map in which a lookup of a missing key returns an empty map, without adding it."""

    __slots__ = ()

    def find(self, key: Value) -> Value:
        found = super().find(key)
        return EMPTY_MAP if found is ABSENT else found

    def contains(self, key: Value) -> bool:
        return super().find(key) is not ABSENT


class UnknownValueError(Exception):
    """An evaluation visits all entries of a map, one of which is unknown; ``str`` is the reason."""


class LazyMap(Document):
    """A map in which some entries are computed when they are first looked up, by functions in ``waiting``."""

    __slots__ = ("_waiting",)

    def __init__(self, items: Iterable[tuple[Value, Value]], waiting: Mapping[str, Callable[[], Value]]) -> None:
        super().__init__(items)
        self._waiting = waiting

    def find(self, key: Value) -> Value:
        if type(key) is str and key not in self.entries and key in self._waiting:
            self.entries[key] = self._waiting[key]()
        return super().find(key)

    def keys(self) -> Iterator[Value]:
        """Raises ``UnknownValueError``, like all that visits every entry."""
        return (key for key, _ in self.items())

    def items(self) -> Iterator[tuple[Value, Value]]:
        for key in self._waiting:
            value = self.find(key)
            if type(value) is Failure and value.is_unknown:
                raise UnknownValueError(value.message)
        return super().items()

    def __len__(self) -> int:
        return sum(1 for _ in self.items())


class _Absent:
    __slots__ = ()


ABSENT: Final = _Absent()
_WEIGHED: Final = frozenset({List, Accumulator, Map, Document, DefaultMap, LazyMap})
LISTS: Final = frozenset({List, Accumulator})
MAPS: Final = frozenset({Map, Document, DefaultMap, LazyMap})
NUMBERS: Final = frozenset({int, Uint, float})


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration in nanoseconds."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A timestamp: nanoseconds since 1970 in UTC, and the offset in seconds with which it was written."""

    nanoseconds: int
    offset: int = 0


@dataclass(slots=True, eq=False)
class OptionalValue:
    """A value that may be missing, in which case it is ``ABSENT``."""

    value: Value


NONE: Final = OptionalValue(ABSENT)
EMPTY_MAP: Final = Map()


class Opaque:
    """A value of a type defined by Kubernetes."""

    __slots__ = ()
    type_name = ""

    def equals(self, other: Value) -> bool | Failure:
        raise NotImplementedError

    def size(self) -> int:
        """The size that costs are based on."""
        return 1


_TYPE_NAMES: Final = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    List: "list",
    Accumulator: "list",
    Map: "map",
    Document: "map",
    DefaultMap: "map",
    LazyMap: "map",
    TypeValue: "type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    OptionalValue: "optional_type",
}


def type_name(value: Value) -> str:
    """Return the name of the value's type, as in messages and ``type()``."""
    return _TYPE_NAMES.get(type(value)) or value.type_name


_GO_NAMES: Final = {
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "list": "*types.baseList",
    "map": "*types.baseMap",
    "type": "*types.Type",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "optional_type": "*types.Optional",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.URL": "cel.URL",
    "kubernetes.NamedFormat": "cel.Format",
    "net.IP": "cel.IP",
    "net.CIDR": "cel.CIDR",
}


def go_name(value: Value) -> str:
    """Return the name of cel-go's own type for the value, which some messages use."""
    return _GO_NAMES[type_name(value)]


def hashed(key: Value) -> Value:
    """Return a dict key for ``key``: equal for equal keys of the same type, and never otherwise.

    Raises ``FatalError`` for types that cannot be keys in Go, which make cel-go panic.
    """
    if type(key) is str:
        return key
    if type(key) in _HASHABLE:
        return type(key), key
    if type_name(key) in _UNHASHABLE:
        raise FatalError(f"internal error: runtime error: hash of unhashable type {go_name(key)}")
    return None, id(key)


_HASHABLE: Final = frozenset({bool, int, Uint, float, type(None), Duration, Timestamp, TypeValue})
_UNHASHABLE: Final = frozenset({"bytes", "kubernetes.Semver", "kubernetes.NamedFormat"})


def _other_numbers(number: int | float) -> Iterator[Value]:
    """Yield the same number in the other number types that represent it exactly."""
    if isinstance(number, float) and not number.is_integer():
        return
    whole = int(number)
    if type(number) is not int and MIN_INT <= whole <= MAX_INT:
        yield whole
    if type(number) is not Uint and 0 <= whole <= MAX_UINT:
        yield Uint(whole)
    if type(number) is not float and int(float(whole)) == whole:
        yield float(whole)


def equal(left: Value, right: Value) -> bool | Failure:
    """``left == right``: by value, numbers across types; a failure if a Kubernetes type meets another type."""
    kind = type(left)
    if kind is str:
        return type(right) is str and left == right
    if kind in NUMBERS:
        return type(right) in NUMBERS and left == right
    if left is None or right is None:
        return left is right
    if kind in LISTS:
        if type(right) not in LISTS or len(left) != len(right):
            return False
        # A failure inside counts as equal, like in cel-go.
        return all(equal(one, other) is not False for one, other in zip(left, right, strict=True))
    if kind in MAPS:
        if type(right) not in MAPS or len(left) != len(right):
            return False
        for key, value in left.items():
            other = right.find(key)
            if other is ABSENT or equal(value, other) is False:
                return False
        return True
    if isinstance(left, Opaque):
        return left.equals(right)
    if kind is OptionalValue:
        if type(right) is not OptionalValue:
            return False
        if left.value is ABSENT or right.value is ABSENT:
            return left.value is right.value
        return equal(left.value, right.value)
    if type(right) is not kind:
        return False
    if isinstance(left, Timestamp) and isinstance(right, Timestamp):
        return left.nanoseconds == right.nanoseconds
    return bool(left == right)


_ORDERED: Final = frozenset({str, bytes, bool})


def compare(left: Value, right: Value) -> int | Failure | None:
    """Return -1, 0 or 1, or a failure; ``None`` if the type of ``left`` has no order."""
    kind = type(left)
    if kind in NUMBERS:
        if type(right) not in NUMBERS:
            return NO_SUCH_OVERLOAD
        if math.isnan(left) or math.isnan(right):
            return Failure("NaN values cannot be ordered")
        return bool(left > right) - bool(left < right)
    if kind in _ORDERED:
        return bool(left > right) - bool(left < right) if type(right) is kind else NO_SUCH_OVERLOAD
    if kind is Timestamp or kind is Duration:
        if type(right) is not kind:
            return NO_SUCH_OVERLOAD
        return bool(left.nanoseconds > right.nanoseconds) - bool(left.nanoseconds < right.nanoseconds)
    return None


def is_zero(value: Value) -> bool:
    """Return whether a value is its type's zero: empty, 0, false or null."""
    if type(value) in NUMBERS or type(value) in (str, bytes, bool, type(None)):
        return not value
    if type(value) in LISTS or type(value) in MAPS:
        return len(value) == 0
    if type(value) is Duration:
        return value.nanoseconds == 0
    return type(value) is Timestamp and value.nanoseconds == -62135596800 * SECOND


def from_json(document: Value) -> Value:
    """Convert a JSON document to values, with keys in document order. Raises ``TooLargeError``."""
    if isinstance(document, dict):
        return Document((str(key), from_json(value)) for key, value in document.items())
    if isinstance(document, list | tuple):
        return List(from_json(item) for item in document)
    if isinstance(document, int) and not isinstance(document, bool) and not MIN_INT <= document <= MAX_INT:
        return float(document)
    return document
