"""Where a change or a finding is written: as people read it, as a URI, and for systems that know files and lines."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from kpreempt.report.escape import printable
from kpreempt.verdict.check import Change, Check, GateFinding

_STREAMS = frozenset({"-", "standard input"})
# What a shell puts in the place of a file.
_STREAM_FOLDERS = ("/dev/", "/proc/")


class Place(NamedTuple):
    """A file, empty where there is none, with a line that is 0 where it is not of that file.

    Of a stream, ``stream`` is its name, ``stream_line`` the line in it, and ``path`` the file that it says it is from.
    """

    path: str = ""
    line: int = 0
    stream: str = ""
    stream_line: int = 0

    @property
    def uri(self) -> str:
        """The path as a reference: relative as it was given, percent-encoded, ``file:`` where it is absolute."""
        # A lone surrogate stands for a byte that is no text.
        encoded = quote(self.path, safe="/", errors="surrogatepass")
        return f"file:///{encoded.lstrip('/')}" if encoded.startswith("/") else encoded

    @property
    def stream_text(self) -> str:
        """``line 34 of standard input``, or nothing for a file."""
        if not self.stream:
            return ""
        return printable(f"line {self.stream_line} of {self.stream}" if self.stream_line else self.stream)

    @property
    def text(self) -> str:
        """``deploy/api.yaml:12``, or ``chart/api.yaml (line 34 of standard input)``; made safe to show."""
        if not self.path:
            return self.stream_text
        shown = printable(self.path)
        if self.stream:
            return f"{shown} ({self.stream_text})"
        return f"{shown}:{self.line}" if self.line else shown


def place_of(record: Change | GateFinding) -> Place:
    """Where the record is written. A file keeps its own lines, even where it says that it was made from another."""
    line = max(record.line, 0)
    if not record.source:
        return Place(_plain_path(record.origin))
    if record.source in _STREAMS or record.source.startswith(_STREAM_FOLDERS):
        return Place(_plain_path(record.origin), 0, record.source, line)
    return Place(_plain_path(record.source), line)


def nearest_place(finding: GateFinding, check: Check) -> Place:
    """The finding's place; where it has none, that of the object that brings it about, or of the first of the change.

    For systems that show nothing, or refuse all, where a finding has no file.
    """
    changes = sorted(check.changes, key=lambda change: change.object != finding.change)
    places = [place_of(finding), *map(place_of, changes)]
    return next((place for place in places if place.path), Place())


def _plain_path(path: str) -> str:
    """A path without the ``./`` that stands for where one is."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path
