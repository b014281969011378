"""Which file each document of a YAML stream was rendered from, where comments say it.

Helm writes ``# Source: chart/templates/x.yaml`` before each document. Comments never reach a reader of YAML, so that
they are looked for in the text itself: at the beginning of a line no value of YAML can look like one.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from kpreempt.snapshot.lines import LineCounter
from kpreempt.snapshot.sources import Content

_SIGN = b"# Source:"
_MARK_OR_SIGN = re.compile(rb"^(?:---(?=[ \t\r\n]|\Z)|# Source:[ \t]*([^\r\n]*))", re.MULTILINE)
_NOTHING = re.compile(rb"(?:[ \t\r]*(?:#[^\n]*)?(?:\n|\Z))*+\Z")
_LONGEST = 300


class Origins:
    """The origins of a text's documents, in order."""

    def __init__(self, starts: list[int], names: list[str]) -> None:
        """Take in the lines on which documents start, and what each is from."""
        self._starts = starts
        self._names = names

    def at(self, line: int) -> str:
        """What the document that has the line is from; empty where nothing says it."""
        return self._names[max(bisect_right(self._starts, line) - 1, 0)]


def find_origins(content: Content | None) -> Origins | None:
    """The origins of a text's documents, or ``None`` where it says none.

    Of several comments in one document the first counts. One that stands before the mark of a document, with nothing
    but comments since the mark before, is that document's.
    """
    if content is None or content.find(_SIGN) < 0:
        return None
    lines = LineCounter(content)
    starts, names = [1], [""]
    begin, has_own = 0, False
    for match in _MARK_OR_SIGN.finditer(content):
        name = match[1]
        if name is None:
            starts.append(lines.line_at(match.start()))
            names.append(names[-1] if _NOTHING.match(content[begin : match.start()]) else "")
            begin, has_own = match.end(), False
        elif not has_own:
            names[-1], has_own = name[:_LONGEST].decode(errors="replace").strip(), True
    return Origins(starts, names)
