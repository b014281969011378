"""Doing something again and again until the user has seen enough: ``--watch``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from kpreempt.cli.output import write_stdout
from kpreempt.cli.terminal import complain
from kpreempt.errors import KpreemptError

Wait = Callable[[float], None]

# To the top, and clear all below it; then what scrolled away of the look before.
_REDRAW = "\x1b[H\x1b[2J\x1b[3J"


def watch(look: Callable[[bool], bool], seconds: float, *, wait: Wait = time.sleep) -> None:
    """``look`` now and every ``seconds`` after, until it says that nobody reads any more, or Ctrl-C is pressed.

    ``look`` is told whether it is the first time. A failure then ends the watch; a later one, as of a cluster that
    cannot be reached for a while, is said on standard error, and the next look may be better.
    """
    is_first = True
    while True:
        try:
            if not look(is_first):
                return
        except KpreemptError as error:
            if is_first:
                raise
            complain(error.message, error.hint)
        is_first = False
        wait(seconds)


def begin_page(*, is_first: bool) -> bool:
    """Before another look: an empty screen on a terminal, elsewhere a line between. False where nobody reads."""
    if sys.stdout is not None and sys.stdout.isatty():
        return write_stdout(_REDRAW)
    return is_first or write_stdout("\n")
