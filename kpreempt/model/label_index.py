"""Selectors and label sets that both come in thousands: which match, without putting each to each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

import msgspec

from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement

_DIGITS = bytes.maketrans(b"01", b"\x00\x01")
# What fewer label sets have in common is found anew each time; what more have is kept.
_FEW = 64


class LabelIndex:
    """Label sets, of which ``matching`` finds those that a selector matches.

    Some of them are an integer with a bit for each, so that a part of a selector is one step for all.
    """

    def __init__(self, labels: Iterable[Mapping[str, str]]) -> None:
        self._having: dict[str, dict[str, list[int]]] = {}
        self._size = 0
        for index, each in enumerate(labels):
            self._size = index + 1
            for key, value in each.items():
                self._having.setdefault(key, {}).setdefault(value, []).append(index)
        self._all = (1 << self._size) - 1
        self._kept: dict[tuple[str, str | None], int] = {}

    def matching(self, selector: LabelSelector) -> list[int]:
        """The indexes of those that ``LabelSelector.matches``, in order."""
        found = self._all
        for key, value in selector.match_labels.items():
            found &= self._with(key, value)
        for requirement in selector.match_expressions:
            if not found:
                break
            found &= self._fulfilling(requirement)
        return list(_ones(found))

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
        """Those that have the label, or where ``value`` is ``None`` its key."""
        values = self._having.get(key, {})
        if value is not None and len(values.get(value, ())) < _FEW:
            return self._joined(values.get(value, ()))
        kept = self._kept.get((key, value))
        if kept is None:
            groups: Iterable[Sequence[int]] = values.values() if value is None else [values[value]]
            kept = self._kept[key, value] = self._joined(index for group in groups for index in group)
        return kept

    def _joined(self, indexes: Iterable[int]) -> int:
        bits = bytearray(self._size // 8 + 1)
        for index in indexes:
            bits[index >> 3] |= 1 << (index & 7)
        return int.from_bytes(bits, "little")


def _ones(number: int) -> Iterable[int]:
    """Where the bits are set, from the lowest."""
    digits = f"{number:b}"[::-1]
    return compress(range(len(digits)), digits.encode().translate(_DIGITS))


class SelectorIndex:
    """Selectors of which ``matching`` finds those that match a label set. What a label set comes to is kept.

    Selectors with labels to match are asked only where the first of these is there, and equal ones once.
    """

    def __init__(self, selectors: Iterable[LabelSelector]) -> None:
        self._by_label: dict[tuple[str, str], list[_Equal]] = {}
        self._others: list[_Equal] = []
        self._known: dict[frozenset[tuple[str, str]], list[int]] = {}
        groups: dict[bytes, _Equal] = {}
        for index, selector in enumerate(selectors):
            group = groups.setdefault(msgspec.json.encode(selector), _Equal(selector, []))
            group.indexes.append(index)
        for group in groups.values():
            label = next(iter(group.selector.match_labels.items()), None)
            same = self._others if label is None else self._by_label.setdefault(label, [])
            same.append(group)

    def matching(self, labels: Mapping[str, str]) -> list[int]:
        """The indexes of the selectors for which ``LabelSelector.matches``, in order."""
        key = frozenset(labels.items())
        found = self._known.get(key)
        if found is None:
            candidates = [self._others, *(self._by_label.get(label, ()) for label in key)]
            found = self._known[key] = sorted(
                index
                for groups in candidates
                for group in groups
                if group.selector.matches(labels)
                for index in group.indexes
            )
        return found


class _Equal(msgspec.Struct, frozen=True):
    selector: LabelSelector
    indexes: list[int]
