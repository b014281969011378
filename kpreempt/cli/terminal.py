"""The terminal: its size and colors, messages and progress on standard error, and exit codes."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TextIO

from kpreempt import __version__
from kpreempt.errors import UsageError, nearest

EXIT_GATE = 1
EXIT_USAGE = 2
EXIT_INPUT = 3
EXIT_BUG = 4
# For ``--exit-code``: the outcome is uncertain.
EXIT_UNCERTAIN = 13
EXIT_INTERRUPTED = 130

# The height of an answer that fits on one screen, unless the terminal's height is known.
SCREEN_HEIGHT = 24

_SECONDS_OF_PATIENCE = 0.5
_SECONDS_BETWEEN_UPDATES = 0.1


def terminal_width() -> int:
    """Return the terminal's columns (``$COLUMNS`` first), or 80 without a terminal."""
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def terminal_height() -> int:
    """Return the terminal's lines (``$LINES`` first), or ``SCREEN_HEIGHT`` without a terminal."""
    return shutil.get_terminal_size((80, SCREEN_HEIGHT)).lines


def wants_color(when: str, stream: TextIO | None) -> bool:
    """Return whether to color output to ``stream`` (``None`` if closed); ``when`` is ``auto``, ``always`` or ``never``.

    Raises ``UsageError`` for any other value.
    """
    if when not in ("auto", "always", "never"):
        raise UsageError(f"--color: invalid value {when!r}", hint=nearest(when, ("auto", "always", "never")))
    if when != "auto":
        return when == "always"
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Activity:
    """A line on standard error that shows the current phase and its duration, after half a second.

    A thread writes it, so that long-running code need not know about it. It is only shown on a terminal; code that
    writes anything else must hide it first.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._doing = ""
        self._since: float | None = None
        self._stream: TextIO | None = None
        self._shown = ""
        self._is_held = False
        self._lock = threading.Lock()
        self._process = 0

    def begin(self, what: str = "") -> None:
        """Show ``what`` as the current phase; the duration counts from the first phase since nothing was shown."""
        self._doing = what
        if self._since is None:
            self._since = self._clock()
            if self._stream is None and sys.stderr is not None and sys.stderr.isatty():
                self._stream, self._process = sys.stderr, os.getpid()
                threading.Thread(target=self._run, daemon=True).start()

    def hide(self) -> None:
        """Remove the line until the next phase begins."""
        self._since = None
        # A forked process has no thread, and may have inherited a locked lock.
        if self._stream is None or self._process != os.getpid():
            return
        with self._lock:
            self._erase()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Show nothing within the block, which prints its own line."""
        self.hide()
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.begin(self._doing)

    def _run(self) -> None:
        while True:
            time.sleep(_SECONDS_BETWEEN_UPDATES)
            self.update()

    def update(self) -> None:
        """Show the current phase, if it is time to do so."""
        with self._lock:
            since = self._since
            if since is None or self._is_held:
                self._erase()
            elif (seconds := self._clock() - since) >= _SECONDS_OF_PATIENCE:
                line = f"{_DOING.get(self._doing, 'working')} ... {seconds:.0f}s"
                if line != self._shown:
                    self._write(f"\r\x1b[2K{line[: terminal_width() - 1]}")
                    self._shown = line

    def _erase(self) -> None:
        if self._shown:
            self._write("\r\x1b[2K")
            self._shown = ""

    def _write(self, text: str) -> None:
        assert self._stream is not None
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


# The name of each phase of an answer (``kpreempt.phases``) while it is running.
_DOING = {
    "read": "reading",
    "decode": "reading",
    "admission": "preparing the cluster",
    "prepare": "preparing the scheduler",
    "filter": "filtering nodes",
    "score": "scoring nodes",
    "dryRun": "simulating preemption",
    "choice": "choosing a node",
    "remedies": "looking for remedies",
    "session": "running the session",
    "simulation": "simulating the rollout",
    "aftermath": "simulating the aftermath",
    "queue": "serving the queue",
    "workload": "placing replicas",
    "capacity": "computing capacity",
    "audit": "auditing budgets",
    "events": "applying events",
    "odds": "sampling nodes as the scheduler would",
    "report": "writing",
}
# The activity line of this process.
ACTIVITY = Activity()


class Progress:
    """One line of progress on standard error, if that is a terminal."""

    def __init__(self) -> None:
        self._hold = ExitStack()
        self._hold.enter_context(ACTIVITY.paused())
        self._start = time.monotonic()
        self._next = self._start + _SECONDS_OF_PATIENCE
        self._is_shown = False
        self._is_enabled = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, what: str, share: float) -> None:
        """Show that ``share`` (0 to 1, or negative if unknown) of ``what`` has been read."""
        percent = f" {share:.0%}" if share >= 0 else ""
        self.show(f"reading {what}{percent}")

    def show(self, what: str) -> None:
        """Show what is being done."""
        now = time.monotonic()
        if not self._is_enabled or now < self._next:
            return
        from kpreempt.report.escape import printable

        self._next = now + _SECONDS_BETWEEN_UPDATES
        self._is_shown = True
        line = f"{printable(what)} ..."
        sys.stderr.write(f"\r\x1b[2K{line[: terminal_width() - 1]}")
        sys.stderr.flush()

    def close(self) -> None:
        """Remove the line."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
        self._hold.close()


def complain_of_error(message: str, hint: str = "") -> None:
    """Write an error to standard error: a line that begins with ``error:``, and one with ``hint:`` if there is one."""
    complain(message, hint, label="error")


def complain(message: str, hint: str = "", *, label: str = "") -> None:
    """Write one line to standard error, after ``label:`` if given, and a line with a hint if there is one.

    Control characters are escaped, and long texts from the input or the options are shortened.
    """
    from kpreempt.report.escape import printable, shortened

    message, hint = (shortened(printable(each)) for each in (message, hint))
    is_colored = wants_color("auto", sys.stderr)
    lines = [(label, message), *([("hint", hint)] if hint else [])]
    write_to_stderr("".join(f"{_labeled(each, is_colored=is_colored)}{text}\n" for each, text in lines))


# How a terminal shows the label of a line: bold red and cyan.
_STYLES = {"error": "\x1b[1;31m", "hint": "\x1b[36m"}


def _labeled(label: str, *, is_colored: bool) -> str:
    """The label with its colon, in color on a terminal."""
    if not label:
        return ""
    return f"{_STYLES[label]}{label}:\x1b[0m " if is_colored else f"{label}: "


def write_to_stderr(text: str) -> None:
    """Write to standard error; if it is closed, there is nowhere to report anything."""
    ACTIVITY.hide()
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, AttributeError):
        return


def bug_report(error: BaseException) -> str:
    """Return the lines to send about an unexpected exception: where it happened, but nothing from the input."""
    import platform
    import traceback
    from pathlib import Path

    import kpreempt

    package = str(Path(kpreempt.__file__).parent)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(package)]
    places = [
        f"  at kpreempt{frame.filename.removeprefix(package)}:{frame.lineno} in {frame.name}\n" for frame in frames[-4:]
    ]
    return (
        f"kpreempt failed because of a bug: {type(error).__name__}\n{''.join(places)}"
        f"  kpreempt {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}\n"
        "  Please report these lines; they contain no input data.\n"
    )
