"""How the process ends: every failure becomes one message on standard error and an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import typer

from kpreempt.cli.terminal import (
    ACTIVITY,
    EXIT_BUG,
    EXIT_INPUT,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    bug_report,
    complain,
    write_to_stderr,
)
from kpreempt.errors import KpreemptError

# How the system says it where Python has no MemoryError for it: of libraries, threads and maps.
_OUT_OF_MEMORY = ("failed to map segment", "Cannot allocate memory", "cannot allocate memory", "can't start new thread")
_COLLECTION_THRESHOLDS = (100_000, 50, 100)


def run(arguments: Sequence[str], program: str = "kpreempt") -> int:
    """Run the command that ``arguments`` name and return the exit code; nothing is raised.

    ``program`` is what help and messages call the program.

    0 answered, 1 a gate failed, 2 wrong usage, 3 bad input, 4 a bug, 130 interrupted.
    """
    try:
        return _run_command(arguments, program)
    except KpreemptError as error:
        complain(error.message, error.hint)
        return error.exit_code
    except typer.TyperException as error:
        complain(*_usage_message(error, program))
        return EXIT_USAGE
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except MemoryError:
        return _out_of_memory()
    except Exception as error:
        if any(words in str(error) for words in _OUT_OF_MEMORY):
            return _out_of_memory()
        write_to_stderr(bug_report(error))
        return EXIT_BUG
    finally:
        ACTIVITY.hide()


def _out_of_memory() -> int:
    complain("there is not enough memory for this input")
    return EXIT_INPUT


def _run_command(arguments: Sequence[str], program: str) -> int:
    from kpreempt.cli.app import app

    # A verdict is a hundred thousand small records without cycles; at the usual pace the collector would look through
    # them again and again.
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
    # NumPy's columns need no threads; where there is no memory for them, OpenBLAS would end the process with a code of
    # its own, which is that of a gate that failed.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal or locale without the character gets its code instead of a failure.
        sys.stdout.reconfigure(errors="backslashreplace")
    command = typer.main.get_command(app)
    code = command.main(args=list(arguments), prog_name=program, standalone_mode=False)
    return code if isinstance(code, int) else 0


def _usage_message(error: typer.TyperException, program: str) -> tuple[str, str]:
    """A wrong command line as one line that names the command, and where to look."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else program
    text, _, guess = error.format_message().partition(" Did you mean ")
    possibilities = getattr(error, "possibilities", None)
    if possibilities:
        text = error.message
        guess = ", ".join(sorted(possibilities))
    hint = guess.strip("?'\" ") or f"{command} --help"
    text = text.strip().rstrip(".")
    return f"{command}: {text[:1].lower()}{text[1:]}", hint
