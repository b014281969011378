"""Doing something again and again until the user has seen enough: ``--watch``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from kpreempt.cli.output import write_stdout
from kpreempt.cli.terminal import complain, terminal_height
from kpreempt.errors import KpreemptError
from kpreempt.report.escape import printable

Wait = Callable[[float], None]

# To the top, where lines that are too long are not to go on below.
_BEGIN = "\x1b[H\x1b[?7l"
_CLEAR_LINE = "\x1b[K"
_END = "\x1b[J\x1b[?7h"
_LEAST_HEIGHT = 5


class Screen:
    """Standard output, for one look after the other.

    A terminal is drawn anew in place, and what does not fit it is left out, so that nothing scrolls; elsewhere, or
    where the looks are ``as_blocks``, they follow each other with a line between.
    """

    def __init__(self, *, as_blocks: bool = False) -> None:
        self.is_drawn = not as_blocks and sys.stdout is not None and sys.stdout.isatty()
        self._is_first = True
        self._text = ""

    @property
    def height(self) -> int | None:
        """How many lines there are, where that matters."""
        return max(terminal_height(), _LEAST_HEIGHT) if self.is_drawn else None

    def show(self, text: str) -> bool:
        """Show a look. False where nobody reads."""
        before = "" if self._is_first else "\n"
        if self.is_drawn:
            # What the terminal showed goes where it can be scrolled back to.
            before = "\n" * terminal_height() if self._is_first else ""
            self._text, text = text, self._frame(text)
        self._is_first = False
        return write_stdout(before + text)

    def fail(self, error: KpreemptError) -> None:
        """Say why there was nothing to look at, below what was seen last."""
        if not self.is_drawn or not sys.stderr.isatty():
            complain(error.message, error.hint)
        if self.is_drawn:
            write_stdout(self._frame(self._text, f"last look failed: {printable(error.message)}"))

    def _frame(self, text: str, note: str = "") -> str:
        """The text and a note below it, without what there is no room for; the cursor has the last line."""
        room = max(terminal_height(), _LEAST_HEIGHT) - 1 - bool(note)
        lines = text.splitlines()
        if len(lines) > room:
            lines = [*lines[: room - 1], f"… {len(lines) - room + 1:,} more lines: a higher terminal shows them"]
        return _BEGIN + "".join(f"{_CLEAR_LINE}{line}\n" for line in [*lines, *([note] if note else [])]) + _END


def watch(
    look: Callable[[], bool], seconds: float, *, fail: Callable[[KpreemptError], None], wait: Wait = time.sleep
) -> None:
    """``look`` now and every ``seconds`` after, until it says that nobody reads any more, or Ctrl-C is pressed.

    A first failure ends the watch; a later one, as of a cluster that cannot be reached for a while, goes to ``fail``,
    and the next look may be better.
    """
    is_first = True
    while True:
        try:
            if not look():
                return
        except KpreemptError as error:
            if is_first:
                raise
            fail(error)
        is_first = False
        wait(seconds)
