"""How the process ends: every failure becomes one message on standard error and an exit code."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper

import typer

from kpreempt.cli.terminal import (
    ACTIVITY,
    EXIT_BUG,
    EXIT_INPUT,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    bug_report,
    complain_of_error,
    write_to_stderr,
)
from kpreempt.errors import KpreemptError, within_calendar

# How the system says it where Python has no MemoryError for it: of libraries, threads and maps.
_OUT_OF_MEMORY = ("failed to map segment", "Cannot allocate memory", "cannot allocate memory", "can't start new thread")
COLLECTION_THRESHOLDS = (100_000, 50, 100)


def run(arguments: Sequence[str], program: str = "kpreempt") -> int:
    """Run the command that ``arguments`` name and return the exit code; nothing is raised.

    ``program`` is what help and messages call the program.

    0 answered, 1 a gate failed, 2 wrong usage, 3 bad input, 4 a bug, 130 interrupted, 129 and 143 told to end.
    """
    try:
        with _ended_in_order(), within_calendar():
            return _run_command(arguments, program)
    except _TerminationError as error:
        return 128 + error.number
    except KpreemptError as error:
        complain_of_error(error.message, error.hint)
        return error.exit_code
    except typer.TyperException as error:
        # A wrong command line as one line that names the command, and where to look.
        context = getattr(error, "ctx", None)
        command = context.command_path if context else program
        text, _, guess = error.format_message().partition(" Did you mean ")
        possibilities = getattr(error, "possibilities", None)
        if possibilities:
            text = error.message
            guess = ", ".join(sorted(possibilities))
        hint = guess.strip("?'\" ") or f"{command} --help"
        text = text.strip().rstrip(".")
        complain_of_error(f"{command}: {text[:1].lower()}{text[1:]}", hint)
        return EXIT_USAGE
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except Exception as error:
        if isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY):
            complain_of_error("there is not enough memory for this input")
            return EXIT_INPUT
        write_to_stderr(bug_report(error))
        return EXIT_BUG
    finally:
        ACTIVITY.hide()


class _TerminationError(BaseException):
    """The signal ``number`` has come."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Have signals that end the process raise, so that no half-written file with a cluster in it is left."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise _TerminationError(number)

    # Under nohup it is ignored, and stays so.
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {each: signal.SIG_DFL for each in numbers if signal.getsignal(each) is signal.SIG_DFL}
    for each in before:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _run_command(arguments: Sequence[str], program: str) -> int:
    from kpreempt.cli.app import make_app

    # A verdict is a hundred thousand small records without cycles; at the usual pace the collector would look through
    # them again and again.
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    # NumPy's columns need no threads; where there is no memory for them, OpenBLAS would end the process with a code of
    # its own, which is that of a gate that failed.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal or locale without the character gets its code instead of a failure.
        sys.stdout.reconfigure(errors="backslashreplace")
    command = typer.main.get_command(make_app(arguments[0] if arguments else ""))
    code = command.main(args=list(arguments), prog_name=program, standalone_mode=False)
    return code if isinstance(code, int) else 0
