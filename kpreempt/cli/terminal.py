"""The terminal: its width and colours, messages and progress on standard error, and codes of exit."""

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
# Of ``--exit-code``: that the outcome is not certain.
EXIT_UNCERTAIN = 13
EXIT_INTERRUPTED = 130

# What an answer on one screen keeps to, unless it is drawn on one that is known.
SCREEN_HEIGHT = 24

_SECONDS_OF_PATIENCE = 0.5
_SECONDS_BETWEEN_UPDATES = 0.1


def terminal_width() -> int:
    """Columns of the terminal (``$COLUMNS`` first), 80 where there is none."""
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def terminal_height() -> int:
    """Lines of the terminal (``$LINES`` first), ``SCREEN_HEIGHT`` where there is none."""
    return shutil.get_terminal_size((80, SCREEN_HEIGHT)).lines


def wants_color(when: str, stream: TextIO | None) -> bool:
    """Whether to write colour to ``stream`` (``None``: closed): ``when`` is ``auto``, ``always`` or ``never``.

    Raises ``UsageError`` for anything else.
    """
    if when not in ("auto", "always", "never"):
        raise UsageError(f"--color: there is no {when!r}", hint=nearest(when, ("auto", "always", "never")))
    if when != "auto":
        return when == "always"
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Activity:
    """A line on standard error that says what is done and for how long, once that is half a second.

    A thread writes it, for what takes long need not know of it. Where standard error is no terminal there is nothing;
    whoever writes something else hides it first.
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
        """Say that ``what`` is done now; the time counts from the first since nothing was shown."""
        self._doing = what
        if self._since is None:
            self._since = self._clock()
            if self._stream is None and sys.stderr is not None and sys.stderr.isatty():
                self._stream, self._process = sys.stderr, os.getpid()
                threading.Thread(target=self._run, daemon=True).start()

    def hide(self) -> None:
        """Take the line away, until something begins."""
        self._since = None
        # A process that was forked has no thread, and perhaps the lock as it was then.
        if self._stream is None or self._process != os.getpid():
            return
        with self._lock:
            self._erase()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Show nothing within the block, which has a line of its own."""
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
        """Show what is done now, where it is time for it."""
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


# What a phase of an answer is called while it lasts (``kpreempt.phases``).
_DOING = {
    "read": "reading",
    "decode": "reading",
    "admission": "preparing the cluster",
    "prepare": "preparing the scheduler",
    "filter": "filtering nodes",
    "score": "scoring nodes",
    "dryRun": "dry runs of preemption",
    "choice": "choosing a node",
    "proposals": "looking for the smallest change",
    "session": "running the session",
    "simulation": "simulating the rollout",
    "aftermath": "simulating what follows",
    "workload": "placing replicas",
    "capacity": "counting what fits",
    "audit": "auditing budgets",
    "events": "applying events",
    "odds": "drawing what the scheduler would look at",
    "report": "writing",
}
# That of this process.
ACTIVITY = Activity()


class Progress:
    """One line on standard error while something takes long; nothing where that is not a terminal."""

    def __init__(self) -> None:
        self._hold = ExitStack()
        self._hold.enter_context(ACTIVITY.paused())
        self._start = time.monotonic()
        self._next = self._start + _SECONDS_OF_PATIENCE
        self._is_shown = False
        self._is_wanted = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, what: str, share: float) -> None:
        """Say that ``share`` (0 to 1, negative where unknown) of ``what`` is read."""
        percent = f" {share:.0%}" if share >= 0 else ""
        self.show(f"reading {what}{percent}")

    def show(self, what: str) -> None:
        """Say what is done."""
        now = time.monotonic()
        if not self._is_wanted or now < self._next:
            return
        from kpreempt.report.escape import printable

        self._next = now + _SECONDS_BETWEEN_UPDATES
        self._is_shown = True
        line = f"{printable(what)} ..."
        sys.stderr.write(f"\r\x1b[2K{line[: terminal_width() - 1]}")
        sys.stderr.flush()

    def close(self) -> None:
        """Take the line away."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
        self._hold.close()


def complain_of_error(message: str, hint: str = "") -> None:
    """Write an error to standard error: a line that begins with ``error:``, and one with ``hint:`` if there is one."""
    complain(message, hint, label="error")


def complain(message: str, hint: str = "", *, label: str = "") -> None:
    """Write one line to standard error, after ``label:`` if given, and a line with a hint if there is one.

    Control characters show as escapes, and what the input or an option has made long is shortened.
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
    """Write to standard error; where it is closed there is nobody left to tell."""
    ACTIVITY.hide()
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, AttributeError):
        return


def bug_report(error: BaseException) -> str:
    """What to send about an unexpected exception, as lines: where it happened, never what the input held."""
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
        f"kpreempt failed through a bug of its own: {type(error).__name__}\n{''.join(places)}"
        f"  kpreempt {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}\n"
        "  Please send these lines; they hold nothing of the input.\n"
    )
