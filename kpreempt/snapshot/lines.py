"""Line numbers of offsets in texts that may be mapped and large."""

from __future__ import annotations

from kpreempt.snapshot.sources import Content

_STEP = 2**20


class LineCounter:
    """Counts lines, and goes on from where it was: many errors in one file must not count it all over each time."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._offset = 0
        self._line = 1

    def line_at(self, offset: int) -> int:
        """The line, from 1, of an offset."""
        if offset < self._offset:
            self._offset, self._line = 0, 1
        for at in range(self._offset, offset, _STEP):
            self._line += self._content[at : min(offset, at + _STEP)].count(b"\n")
        self._offset = offset
        return self._line
