"""Label selectors and node selectors, matched as ``k8s.io/apimachinery`` v0.36.3 ``pkg/labels`` does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from typing import Literal

import msgspec

from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS, Handful, Many

_LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253
_INTEGER = re.compile(r"[+-]?[0-9]+")

LabelSelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
NodeSelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


class LabelSelectorRequirement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One expression of a label selector."""

    key: str
    operator: LabelSelectorOperator
    values: Many[str] = NO_ITEMS


class LabelSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A selector over labels; all parts must hold. An empty selector matches everything."""

    match_labels: dict[str, str] = NO_ENTRIES
    match_expressions: Handful[LabelSelectorRequirement] = NO_ITEMS

    def is_empty(self) -> bool:
        """Return whether the selector has no parts and so matches everything."""
        return not self.match_labels and not self.match_expressions

    def is_valid(self) -> bool:
        """Return whether upstream's ``LabelSelectorAsSelector`` accepts it: only In and NotIn have values."""
        return all(is_label_key(key) and is_label_value(value) for key, value in self.match_labels.items()) and all(
            is_label_key(requirement.key)
            and bool(requirement.values) == (requirement.operator in ("In", "NotIn"))
            and all(map(is_label_value, requirement.values))
            for requirement in self.match_expressions
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether ``labels`` satisfy every part."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        return all(
            matches_requirement(requirement.key, requirement.operator, requirement.values, labels)
            for requirement in self.match_expressions
        )

    def __str__(self) -> str:
        parts = [f"{key}={value}" for key, value in sorted(self.match_labels.items())]
        parts += [
            format_requirement(requirement.key, requirement.operator, requirement.values)
            for requirement in self.match_expressions
        ]
        return ",".join(parts) or "everything"


class NodeSelectorRequirement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One expression of a node selector term, over labels or the field ``metadata.name``."""

    key: str
    operator: NodeSelectorOperator
    values: Many[str] = NO_ITEMS


@lru_cache(maxsize=4096)
def is_label_key(key: str) -> bool:
    """Return whether ``key`` is a qualified name: a name of up to 63 characters after an optional DNS prefix."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _MAX_SUBDOMAIN or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        return False
    return _LABEL_NAME.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def is_label_value(value: str) -> bool:
    """Return whether ``value`` can be the value of a label: empty, or up to 63 characters."""
    return not value or _LABEL_NAME.fullmatch(value) is not None


def matches_requirement(key: str, operator: str, values: list[str], labels: Mapping[str, str]) -> bool:
    """Return whether ``labels`` satisfy one expression.

    ``NotIn`` holds if the key is absent. ``Gt`` and ``Lt`` hold only if both the label and the single value are
    integers (upstream ``labels.Requirement.Matches``).
    """
    value = labels.get(key)
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or len(values) != 1:
        return False
    have, bound = parse_int64(value), parse_int64(values[0])
    if have is None or bound is None:
        return False
    return have > bound if operator == "Gt" else have < bound


def parse_int64(text: str) -> int | None:
    """Parse an integer like Go's ``strconv.ParseInt``, or return ``None`` if that fails."""
    # An int64 has at most 19 digits and a sign, but any number of leading zeros is allowed.
    digits = text.lstrip("+-").lstrip("0")
    if not _INTEGER.fullmatch(text) or len(digits) > 19:
        return None
    number = int(digits or "0") * (-1 if text.startswith("-") else 1)
    return number if -(2**63) <= number < 2**63 else None


def format_requirement(key: str, operator: str, values: list[str]) -> str:
    """Format an expression in the syntax of ``kubectl -l``."""
    if operator == "Exists":
        return key
    if operator == "DoesNotExist":
        return f"!{key}"
    if operator in ("Gt", "Lt"):
        return f"{key} {'>' if operator == 'Gt' else '<'} {','.join(values)}"
    return f"{key} {'in' if operator == 'In' else 'notin'} ({','.join(sorted(values))})"


_DIGITS = bytes.maketrans(b"01", b"\x00\x01")
# Sets of this size or smaller are intersected each time; larger ones are cached.
_SMALL_INDEX = 64


class LabelIndex:
    """An index of label sets; ``matching`` finds those that a selector matches.

    Subsets are represented as integers with a bit per label set, so that each part of a selector is one operation for
    all.
    """

    def __init__(self, labels: Iterable[Mapping[str, str]]) -> None:
        self._having: dict[str, dict[str, list[int]]] = {}
        self._size = 0
        for index, each in enumerate(labels):
            self._size = index + 1
            for key, value in each.items():
                self._having.setdefault(key, {}).setdefault(value, []).append(index)
        self._all = (1 << self._size) - 1
        self._cache: dict[tuple[str, str | None], int] = {}

    def matching(self, selector: LabelSelector) -> list[int]:
        """Return the indexes of the label sets that match ``selector``, in order."""
        found = self._all
        for key, value in selector.match_labels.items():
            found &= self._with(key, value)
        for requirement in selector.match_expressions:
            if not found:
                break
            found &= self._fulfilling(requirement)
        # The positions of the set bits, from the lowest.
        digits = f"{found:b}"[::-1]
        return list(compress(range(len(digits)), digits.encode().translate(_DIGITS)))

    def _fulfilling(self, requirement: LabelSelectorRequirement) -> int:
        key, operator = requirement.key, requirement.operator
        if operator in ("Exists", "DoesNotExist"):
            having = self._with(key, None)
        else:
            having = 0
            for value in self._having.get(key, {}).keys() & set(requirement.values):
                having |= self._with(key, value)
        return having if operator in ("In", "Exists") else self._all & ~having

    def _with(self, key: str, value: str | None) -> int:
        """Return the label sets with the label, or with its key if ``value`` is ``None``."""
        values = self._having.get(key, {})
        if value is not None and len(values.get(value, ())) < _SMALL_INDEX:
            return self._joined(values.get(value, ()))
        cached = self._cache.get((key, value))
        if cached is None:
            groups: Iterable[Sequence[int]] = values.values() if value is None else [values[value]]
            cached = self._cache[key, value] = self._joined(index for group in groups for index in group)
        return cached

    def _joined(self, indexes: Iterable[int]) -> int:
        bits = bytearray(self._size // 8 + 1)
        for index in indexes:
            bits[index >> 3] |= 1 << (index & 7)
        return int.from_bytes(bits, "little")


class SelectorIndex:
    """An index of selectors; ``matching`` finds those that match a label set, and caches the results.

    Selectors with ``matchLabels`` are only checked if the first of these labels is present, and equal selectors only
    once.
    """

    def __init__(self, selectors: Iterable[LabelSelector]) -> None:
        self._by_label: dict[tuple[str, str], list[_Equal]] = {}
        self._others: list[_Equal] = []
        self._known: dict[frozenset[tuple[str, str]], list[int]] = {}
        groups: dict[bytes, _Equal] = {}
        for index, selector in enumerate(selectors):
            key = msgspec.json.encode(selector)
            if key not in groups:
                groups[key] = _Equal(selector)
            groups[key].indexes.append(index)
        for group in groups.values():
            label = next(iter(group.required), None)
            same = self._others if label is None else self._by_label.setdefault(label, [])
            same.append(group)

    def matching(self, labels: Mapping[str, str]) -> list[int]:
        """Return the indexes of the selectors that match ``labels``, in order."""
        key = frozenset(labels.items())
        found = self._known.get(key)
        if found is None:
            groups = list(self._others)
            for label in self._by_label.keys() & key:
                groups += self._by_label[label]
            found = self._known[key] = [index for each in groups if each.matches(labels) for index in each.indexes]
            found.sort()
        return found


class _Equal:
    """Equal selectors, given by their ``indexes``, in a form that is checked in time linear in the size of a label set.

    Most labels that a selector excludes are absent, and need not be checked one by one.
    """

    __slots__ = ("_excluded", "_excluded_keys", "_others", "indexes", "required")

    def __init__(self, selector: LabelSelector) -> None:
        self.indexes: list[int] = []
        self.required = dict.fromkeys(selector.match_labels.items())
        self._excluded: set[tuple[str, str]] = set()
        self._excluded_keys: set[str] = set()
        self._others: list[LabelSelectorRequirement] = []
        for each in selector.match_expressions:
            if each.operator == "NotIn":
                self._excluded.update((each.key, value) for value in each.values)
            elif each.operator == "DoesNotExist":
                self._excluded_keys.add(each.key)
            else:
                self._others.append(each)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return (
            self.required.keys() <= labels.items()
            and self._excluded.isdisjoint(labels.items())
            and self._excluded_keys.isdisjoint(labels)
            and all(matches_requirement(each.key, each.operator, each.values, labels) for each in self._others)
        )
