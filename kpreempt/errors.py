"""The failures that kpreempt reports to its user, each as one message.

Expected outcomes ("no node fits") are values, not exceptions. These are for input that cannot be read and requests
that make no sense. ``kpreempt.cli`` reports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class KpreemptError(Exception):
    """A failure with one clear message; ``exit_code`` is what the process ends with.

    ``message`` is one line: what, where and which field. ``hint`` is one line of advice, or empty.
    """

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(KpreemptError):
    """The request itself is wrong: an unknown option value, options that exclude each other."""

    exit_code = 2


class InputError(KpreemptError):
    """Input that cannot be read: says the source, the object, the field and what was expected.

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
    """Something that the request names is not in the cluster."""


class PluginFailedError(KpreemptError):
    """An out-of-tree plugin fails where no status can tell it, so that there is no answer; the message names it."""


class ConfigurationError(KpreemptError):
    """A scheduler configuration that the real scheduler rejects; the message carries its reason."""


@contextmanager
def within_calendar(source: str = "", line: int = 0) -> Iterator[None]:
    """Have a time that cannot be reckoned with, at either end of Python's calendar, raise ``InputError``."""
    try:
        yield
    except OverflowError as error:
        if "date value out of range" not in str(error):
            raise
        problem = "a time of the input, or one to reckon with, is before the year 1 or after the year 9999 in UTC"
        raise InputError(problem, source=source, line=line) from None


def nearest(word: str, known: Iterable[str]) -> str:
    """Advice on a word that is none of the ``known`` ones: the one that is meant, most likely, or else all of them."""
    from difflib import get_close_matches  # noqa: PLC0415 - needed where something is wrong only

    names = list(known)
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else ", ".join(names)
