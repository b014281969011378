"""One segment as it is read: its base, and the changes after it, up to where the file is no longer whole.

Every line is checked here, once, before it is handed on. A check sum only proves that the file holds what was written;
it may still have been written by something other than kpreempt. Readers decode checked lines without further care.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import msgspec

from kpreempt.errors import InputError
from kpreempt.files import name_of, open_file
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.archives import Intake, check_ratio
from kpreempt.snapshot.batches import TOP_LEVEL, Batch, batch_of_header
from kpreempt.snapshot.collect import Collector
from kpreempt.snapshot.decode import BadObjectError, Json, describe, parse_json, record_of
from kpreempt.snapshot.kinds import KINDS, RECORDED
from kpreempt.snapshot.recording.blocks import BASE, BASE_END, CHANGES, DamageError, read_blocks
from kpreempt.snapshot.recording.changes import OBJECT_CHANGES, BaseEnd, Change, What
from kpreempt.snapshot.recording.kept import Key
from kpreempt.snapshot.recording.pods import pod_line
from kpreempt.verdict import Assumption

_L = TypeVar("_L")
_T = TypeVar("_T")

# Readers add and subtract less than this.
_MARGIN = timedelta(days=1)
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC) + _MARGIN, datetime.max.replace(tzinfo=UTC) - _MARGIN
# Where the line at the end of a base is.
END = (BASE_END, 1)
_NOT_OURS = "holds something else than kpreempt writes"


class _NamedMeta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class NamedLine(msgspec.Struct, frozen=True, rename="camel"):
    """Which object a line is."""

    kind: str
    api_version: str
    metadata: _NamedMeta

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return self.metadata.namespace, self.metadata.name


_END = msgspec.json.Decoder(BaseEnd)
_CHANGE = msgspec.json.Decoder(Change)
_NAMED = msgspec.json.Decoder(NamedLine)


def named_line(line: Json) -> NamedLine:
    """Which object a line is."""
    return _NAMED.decode(line)


class Segment:
    """A segment, whose changes can be gone through again and again. ``damage`` is what was found on the way.

    What is wrong with a line raises ``InputError`` with the segment and the line's number: the lines of the base come
    first, then the one at its end, then those of the changes.
    """

    def __init__(self, path: Path) -> None:
        """Read what is known at the end of its base. Raises ``InputError``, also where the base is not whole."""
        self.name = name_of(str(path))
        self.damage: DamageError | None = None
        self._path = path
        # The line at hand, and how many lines have been checked, by the kind of block.
        self._at = END
        self._checked = {BASE: 0, CHANGES: 0}
        ends = [self._checked_line(line, self._end) for line in self._lines(BASE_END)]
        if not ends:
            raise InputError("has no whole base", source=self.name)
        self.end: BaseEnd = ends[0]

    @property
    def version(self) -> int:
        """The version up to which the base has all kinds, if it has them up to the same one; of none it is later."""
        return max((number for label, number in self.end.versions.items() if not label.startswith("Event")), default=0)

    @cached_property
    def header(self) -> Batch:
        """What the base says of itself, without objects."""
        for line in self._lines(BASE):
            return self._checked_line(line, self._header)
        raise InputError("has no whole base", source=self.name)

    def header_cluster(self) -> tuple[ClusterSnapshot, list[Assumption]]:
        """The cluster of the header, which has no objects, and what was assumed when it was read."""
        collector = Collector(defaults_namespace=True)
        collector.add(self.header)
        return collector.cluster(), collector.assumptions

    def base(self, intake: Intake) -> Iterator[bytes]:
        """The lines of the objects of the base. They count for ``intake``."""
        _ = self.header
        for number, line in enumerate(self._lines(BASE, intake), start=1):
            if number == 1:
                continue
            if number > self._checked[BASE]:
                self._checked_line(line, _check_object)
                self._checked[BASE] = number
            yield line

    def changes(self) -> Iterator[Change]:
        """What changed after the base, in the order in which it was seen."""
        for number, line in enumerate(self._lines(CHANGES), start=1):
            change = self._checked_line(line, _CHANGE.decode)
            if number > self._checked[CHANGES]:
                self._checked_line(change, _check_change)
                self._checked[CHANGES] = number
            yield change

    def bad_line(self, error: BadObjectError, at: tuple[bytes, int] | None = None) -> InputError:
        """The error about the line that was handed out last, or about one ``at`` another place."""
        kind, number = at or self._at
        if kind != BASE:
            number += sum(1 for _ in self._lines(BASE)) + (kind == CHANGES)
        return error.at(self.name, number)

    def _lines(self, kind: bytes, intake: Intake | None = None) -> Iterator[bytes]:
        number = 0
        for content in self._contents(kind, intake or Intake()):
            # A block is split as it is read: it may be little but line breaks.
            for line in BytesIO(content) if content else (b"",):
                number += 1
                self._at = kind, number
                yield line.removesuffix(b"\n")

    def _contents(self, kind: bytes, intake: Intake) -> Iterator[bytes]:
        with open_file(str(self._path)) as file:
            try:
                for block in read_blocks(file, self._path.stat().st_size):
                    if block.kind == kind:
                        content = block.content()
                        check_ratio(len(block.packed), len(content), self.name)
                        if kind == BASE:
                            intake.spend(len(content), self.name)
                        yield content
                    if kind != CHANGES and block.kind == BASE_END:
                        return
            except DamageError as error:
                self.damage = error

    def _checked_line(self, line: _L, check: Callable[[_L], _T]) -> _T:
        """What ``check`` makes of a line. Raises ``InputError`` for whatever it raises."""
        try:
            return check(line)
        except BadObjectError as error:
            raise self.bad_line(error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.bad_line(BadObjectError("", "", _NOT_OURS)) from None

    def _end(self, line: bytes) -> BaseEnd:
        end = _END.decode(line)
        _check_time(end.taken_at)
        return end

    def _header(self, line: bytes) -> Batch:
        header = batch_of_header(self.name, TOP_LEVEL.decode(line))
        if not header.is_own:
            raise BadObjectError("", "", _NOT_OURS)
        try:
            Collector(defaults_namespace=True).add(header)
        except InputError as error:
            raise BadObjectError("", error.path, error.problem) from None
        return header


def _check_object(line: Json) -> tuple[str, str, str]:
    """Check that a line is an object that is recorded. Raises ``BadObjectError`` and what decoders raise."""
    named = named_line(line)
    kind = RECORDED.get(named.kind)
    if kind is None or named.api_version.rpartition("/")[0] not in kind.groups:
        raise BadObjectError("", "", f'"{named.api_version[:40]} {named.kind[:40]}" is not a kind that is recorded')
    if not named.metadata.name:
        raise BadObjectError(named.kind, "metadata.name", "is missing")
    if named.kind in KINDS:
        record_of(kind, line)
    elif not isinstance(parse_json(line), dict):
        raise BadObjectError("", "", _NOT_OURS)
    if named.kind == "Pod":
        pod_line(line)
    return named.kind, *named.key


def _check_change(change: Change) -> None:
    _check_time(change.seen)
    if change.what in (What.ALIVE, What.SCHEDULER):
        return
    if change.kind not in RECORDED:
        raise BadObjectError("", "kind", f'"{change.kind[:40]}" is not a kind that is recorded')
    if change.what not in OBJECT_CHANGES:
        return
    key = (change.kind, change.namespace, change.name)
    name = describe(change.kind, {"metadata": {"namespace": change.namespace, "name": change.name}})
    if not change.name:
        raise BadObjectError(name, "name", "is missing")
    if change.what is not What.DELETED and _check_object(change.object) != key:
        raise BadObjectError(name, "object", "is another object")


def _check_time(time: datetime) -> None:
    if not _EARLIEST <= time <= _LATEST:
        raise BadObjectError("", "", "a time is before the year 1 or after the year 9999 in UTC")
