"""One segment as it is read: its base, and the changes after it, up to where the file is no longer whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from kpreempt.errors import InputError
from kpreempt.files import name_of, open_file
from kpreempt.snapshot.archives import Intake
from kpreempt.snapshot.kinds import RECORDED
from kpreempt.snapshot.recording.blocks import BASE, BASE_END, CHANGES, DamageError, read_blocks
from kpreempt.snapshot.recording.changes import BaseEnd, Change, What

_T = TypeVar("_T")

_END = msgspec.json.Decoder(BaseEnd)
_CHANGE = msgspec.json.Decoder(Change)


class Segment:
    """A segment, whose changes can be gone through again and again. ``damage`` is what was found on the way."""

    def __init__(self, path: Path) -> None:
        """Read what is known at the end of its base. Raises ``InputError``, also where the base is not whole."""
        self.name = name_of(str(path))
        self.damage: DamageError | None = None
        self._path = path
        ends = [self._decoded(_END, content) for content in self._contents(BASE_END)]
        if not ends:
            raise InputError("has no whole base", source=self.name)
        self.end: BaseEnd = ends[0]

    @property
    def version(self) -> int:
        """The version up to which the base has all kinds, if it has them up to the same one; of none it is later."""
        return max((number for label, number in self.end.versions.items() if not label.startswith("Event")), default=0)

    def base(self, intake: Intake) -> Iterator[bytes]:
        """The lines of the base, the header first. They count for ``intake``."""
        for content in self._contents(BASE):
            intake.spend(len(content), self.name)
            yield from content.split(b"\n")

    def changes(self) -> Iterator[Change]:
        """What changed after the base, in the order in which it was seen. Raises ``InputError``."""
        for content in self._contents(CHANGES):
            for line in content.split(b"\n"):
                change = self._decoded(_CHANGE, line)
                if change.what not in (What.ALIVE, What.SCHEDULER) and change.kind not in RECORDED:
                    raise InputError(f'"{change.kind[:40]}" is no kind that is recorded', source=self.name)
                yield change

    def _contents(self, kind: bytes) -> Iterator[bytes]:
        with open_file(str(self._path)) as file:
            try:
                for block in read_blocks(file, self._path.stat().st_size):
                    if block.kind == kind:
                        yield block.content()
                    if kind != CHANGES and block.kind == BASE_END:
                        return
            except DamageError as error:
                self.damage = error

    def _decoded(self, decoder: msgspec.json.Decoder[_T], text: bytes) -> _T:
        try:
            return decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise InputError("holds something else than kpreempt writes", source=self.name) from None
