"""What the terminal can take: width, colour, and a line of progress on standard error."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TextIO

from kpreempt.errors import UsageError

_SECONDS_OF_PATIENCE = 0.5
_SECONDS_BETWEEN_UPDATES = 0.1


def terminal_width() -> int:
    """Columns of the terminal (``$COLUMNS`` first), 80 where there is none."""
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def wants_colour(when: str, stream: TextIO | None) -> bool:
    """Whether to write colour to ``stream`` (``None``: closed): ``when`` is ``auto``, ``always`` or ``never``.

    Raises ``UsageError`` for anything else.
    """
    if when not in ("auto", "always", "never"):
        raise UsageError(f"--color: there is no {when!r}", hint="auto, always, never")
    if when != "auto":
        return when == "always"
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Progress:
    """One line on standard error while something takes long; nothing where that is not a terminal."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._next = self._start + _SECONDS_OF_PATIENCE
        self._is_shown = False
        self._is_wanted = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, what: str, share: float) -> None:
        """Say that ``share`` (0 to 1, negative where unknown) of ``what`` is done."""
        now = time.monotonic()
        if not self._is_wanted or now < self._next:
            return
        from kpreempt.report.escape import printable

        self._next = now + _SECONDS_BETWEEN_UPDATES
        self._is_shown = True
        percent = f" {share:.0%}" if share >= 0 else ""
        line = f"reading {printable(what)}{percent} ..."
        sys.stderr.write(f"\r\x1b[2K{line[: terminal_width() - 1]}")
        sys.stderr.flush()

    def close(self) -> None:
        """Take the line away."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
