"""The errors that kpreempt reports to its user, each as one message.

Expected outcomes ("no node fits") are values, not exceptions. Errors are for unreadable input and invalid requests.
``kpreempt.cli`` reports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager


class KpreemptError(Exception):
    """An error with one clear message; ``exit_code`` is the exit code of the process.

    ``message`` is one line: what is wrong, where, and in which field. ``hint`` is one line of advice, or empty.
    """

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(KpreemptError):
    """An invalid request: an unknown option value, or options that cannot be used together."""

    exit_code = 2


class InputError(KpreemptError):
    """Unreadable input: the source, the object, the field and what was expected.

    Rendered as ``source:line: Kind ns/name: field.path: problem`` with the parts that are known.
    """

    def __init__(
        self, problem: str, *, source: str = "", line: int = 0, object_name: str = "", path: str = "", hint: str = ""
    ) -> None:
        self.problem = problem
        self.source = source
        self.line = line
        self.object_name = object_name
        self.path = path
        where = f"{source}:{line}" if source and line else source
        super().__init__(": ".join(part for part in (where, object_name, path, problem) if part), hint=hint)


class NotFoundError(KpreemptError):
    """An object that the request names is not in the cluster."""


class PluginFailedError(KpreemptError):
    """An out-of-tree plugin failed without returning a status, so there is no answer; the message names the plugin."""


class ConfigurationError(KpreemptError):
    """A scheduler configuration that the real scheduler rejects; the message has its reason."""


@contextmanager
def within_calendar(source: str = "", line: int = 0) -> Iterator[None]:
    """Raise ``InputError`` for times outside Python's calendar in the block."""
    try:
        yield
    except OverflowError as error:
        if "date value out of range" not in str(error):
            raise
        problem = "a time in the input, or computed from it, is before the year 1 or after the year 9999 in UTC"
        raise InputError(problem, source=source, line=line) from None


def listed(names: Sequence[str], most: int = 3) -> str:
    """``a, b, c and 4 more``: up to ``most`` names, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggest the closest of the ``known`` words for an unknown one, or list them all if none is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - only needed for errors

    names = list(known)
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else ", ".join(names)
