"""The end of the process: every failure becomes one message on standard error and an exit code."""

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

# Messages of the operating system (about libraries, threads and maps) for which Python raises no MemoryError.
_OUT_OF_MEMORY = ("failed to map segment", "Cannot allocate memory", "cannot allocate memory", "can't start new thread")
COLLECTION_THRESHOLDS = (100_000, 50, 100)


def run(arguments: Sequence[str], program: str = "kpreempt") -> int:
    """Run the command that ``arguments`` select and return the exit code; never raises.

    ``program`` is the program's name in help and messages.

    Exit codes: 0 answered, 1 a gate failed, 2 usage error, 3 bad input, 4 a bug, 130 interrupted, 129 and 143
    terminated by a signal.
    """
    try:
        with _raising_signals(), within_calendar():
            return _run_command(arguments, program)
    except _SignalError as error:
        return 128 + error.number
    except KpreemptError as error:
        complain_of_error(error.message, error.hint)
        return error.exit_code
    except typer.TyperException as error:
        # Report a wrong command line in one line that names the command, with a hint to its help.
        context = getattr(error, "ctx", None)
        command = context.command_path if context else program
        text, _, guess = error.format_message().partition(" Did you mean ")
        possibilities = getattr(error, "possibilities", None)
        if possibilities:
            text = error.message
            guess = ", ".join(sorted(possibilities))
        hint = guess.strip("?'\" ") or f"{command} --help"
        parameters = {each.name: each.param_type_name for each in context.command.params} if context else {}
        if "extra argument" in text and "selector" in parameters and "argument" not in parameters.values():
            hint = f"it takes no name, but -n NS and -l SELECTOR ({hint})"
        text = text.strip().rstrip(".")
        complain_of_error(f"{command}: {text[:1].lower()}{text[1:]}", hint)
        return EXIT_USAGE
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except Exception as error:
        if isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY):
            complain_of_error("not enough memory for this input")
            return EXIT_INPUT
        write_to_stderr(bug_report(error))
        return EXIT_BUG
    finally:
        ACTIVITY.hide()


class _SignalError(BaseException):
    """The process received the signal ``number``."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _raising_signals() -> Iterator[None]:
    """Let signals that end the process raise an exception, so that no half-written file with cluster data remains."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise _SignalError(number)

    # nohup ignores this signal; keep it ignored.
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

    # A verdict consists of a hundred thousand small records without reference cycles; by default, the garbage collector
    # would scan them repeatedly.
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    # NumPy's columns need no threads. If there is no memory for them, OpenBLAS would exit the process with code 1,
    # which means that a gate failed.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, TextIOWrapper):
        # If the terminal or locale lacks a character, print its escape instead of failing.
        sys.stdout.reconfigure(errors="backslashreplace")
    command = typer.main.get_command(make_app(arguments[0] if arguments else ""))
    code = command.main(args=list(arguments), prog_name=program, standalone_mode=False)
    return code if isinstance(code, int) else 0
