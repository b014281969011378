"""Whether lines of YAML make a plain structure: each line where its indentation belongs, and no key there twice.

Works on outlines (``yaml_lines.outline_of``), of which a dump has few different ones: objects of one kind mostly differ
in their values only.
"""

from __future__ import annotations

from collections.abc import Iterable

# The fast reader's own limit is 64.
_MAX_DEPTH = 60


def is_plain_structure(outline: Iterable[bytes]) -> bool:
    """Whether the lines are block collections that every reader of YAML reads alike."""
    structure = _Structure()
    return all(structure.takes(line) for line in outline)


class _Structure:
    """The collections that are open at a line, outermost first: the column of each, and the keys of a mapping."""

    def __init__(self) -> None:
        self._columns: list[int] = []
        # ``None`` for a sequence.
        self._keys: list[set[bytes] | None] = []
        # Whether the entry before has no value yet, so that a collection may begin.
        self._is_open = True

    def takes(self, line: bytes) -> bool:
        """Whether the line fits; it is then part of the structure."""
        rest = line.lstrip(b" ")
        column = len(line) - len(rest)
        while rest.startswith(b"- "):
            if not self._enters_sequence(column):
                return False
            column, rest = column + 2, rest[2:]
        if rest == b"=":
            self._is_open = False
            return True
        return self._enters_mapping(column, rest)

    def _enters_sequence(self, column: int) -> bool:
        self._close_to(column)
        if self._columns and self._columns[-1] == column and self._keys[-1] is None:
            self._is_open = True
            return True
        # A sequence may stand in the column of the mapping whose value it is.
        if not self._is_open or (self._columns and self._columns[-1] > column):
            return False
        return self._push(column, None)

    def _enters_mapping(self, column: int, rest: bytes) -> bool:
        key, has_value = (rest[:-2], True) if rest.endswith(b":=") else (rest[:-1], False)
        self._close_to(column)
        if self._columns and self._columns[-1] == column and self._keys[-1] is None:
            self._pop()
        keys = self._keys[-1] if self._columns and self._columns[-1] == column else None
        if keys is None:
            keys = set()
            if not self._is_open or not self._push(column, keys):
                return False
        if key[:1] in (b"'", b'"'):
            key = key[1:-1]
        if key in keys:
            return False
        keys.add(key)
        self._is_open = not has_value
        return True

    def _close_to(self, column: int) -> None:
        """End the collections that are further in than ``column``; what was open in them ends without a value."""
        while self._columns and self._columns[-1] > column:
            self._pop()

    def _pop(self) -> None:
        self._columns.pop()
        self._keys.pop()
        self._is_open = False

    def _push(self, column: int, keys: set[bytes] | None) -> bool:
        self._columns.append(column)
        self._keys.append(keys)
        return len(self._columns) <= _MAX_DEPTH
