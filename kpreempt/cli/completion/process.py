"""Answers a shell: candidates on standard output, one a line, and nothing else ever."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from kpreempt.cli.completion.values import DEFAULT, Completion, complete


def answer(words: Sequence[str]) -> NoReturn:
    """Print what the last of ``words`` can become, and end the process.

    The lines are those of cobra, which kubectl and the shells' scripts read: ``value`` or ``value``, a tab and what it
    is; then ``:`` and the number of what the shell is to do besides. Whatever fails gives no candidates: a message
    would land in the middle of what the user types.
    """
    # Let nothing read what the user types or write where he types it, credential plugins included.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 2):
        os.dup2(nothing, stream)
    # It would run all through the imports, and nothing lives long here.
    gc.disable()
    found = Completion((), DEFAULT)
    with suppress(BaseException):
        found = _complete(words)
    with suppress(OSError):
        os.write(1, text_of(found).encode(errors="replace"))
    # Not the usual way out, which would wait for whatever still asks the cluster.
    os._exit(0)


def words_of_line(line: str) -> list[str]:
    """The words of a shell's line up to the cursor; the last may be empty, and a quote in it still be open."""
    import shlex

    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        for word in lexer:
            words.append(word)  # noqa: PERF402 - those before an open quote count
    except ValueError:
        return [*words, lexer.token]
    return [*words, ""] if not words or line[-1:].isspace() else words


def text_of(found: Completion) -> str:
    """The lines for a completion. Candidates that a terminal or the lines cannot take are left out."""
    lines = [
        f"{value}\t{help_}" if help_ else value
        for value, help_ in found.candidates
        if value and value.isprintable() and (not help_ or help_.isprintable())
    ]
    return "".join(f"{line}\n" for line in [*lines, f":{found.directive}"])


def _complete(words: Sequence[str]) -> Completion:
    from typer.main import get_command

    from kpreempt.cli.app import make_app
    from kpreempt.cli.completion.cluster import LiveNames, deadline_of_process

    root = get_command(make_app())
    return complete(root, words, LiveNames(deadline_of_process()))  # type: ignore[arg-type]  # Typer's commands are of its own two classes
