"""Files as the inputs that they are: opened without waiting for ever, and read as a whole only up to a bound."""

from __future__ import annotations

import stat
from pathlib import Path
from threading import Thread
from typing import BinaryIO

from kpreempt.errors import InputError

# Of configurations, kubeconfigs, certificates, keys, reports and baselines.
LARGEST_FILE = 32 << 20
# How long a pipe with a name may have nobody who writes to it.
PIPE_SECONDS = 30.0


def name_of(path: str) -> str:
    r"""How sources are called: the path, with a byte that is no UTF-8 as ``\xNN``. Answers are text, and name them."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def unreadable(name: str, error: OSError | ValueError) -> InputError:
    """The error for a file that the operating system does not give; a path that holds a NUL is a ``ValueError``."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return InputError(f"cannot be read: {reason[:1].lower()}{reason[1:]}", source=name)


def open_file(path: str, name: str = "") -> BinaryIO:
    """The file, to be read; messages call it by its ``name``. Raises ``InputError``, also for a pipe without writer."""
    name = name or name_of(path)
    try:
        if stat.S_ISFIFO(Path(path).stat().st_mode):
            return _open_pipe(path, name)
        return Path(path).open("rb")
    except (OSError, ValueError) as error:
        raise unreadable(name, error) from error


def read_file(path: str, name: str = "") -> bytes:
    """The content of a file of no more than ``LARGEST_FILE`` bytes; messages call it by its ``name``.

    Raises ``InputError``.
    """
    name = name or name_of(path)
    with open_file(path, name) as file:
        try:
            content = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise unreadable(name, error) from error
    if len(content) > LARGEST_FILE:
        raise InputError(f"is larger than {LARGEST_FILE >> 20} MiB", source=name)
    return content


def read_text(path: str) -> str:
    """The text of such a file. Raises ``InputError``."""
    try:
        return read_file(path).decode()
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", source=name_of(path)) from None


def _open_pipe(path: str, name: str) -> BinaryIO:
    from concurrent.futures import Future  # noqa: PLC0415 - few inputs are pipes with a name

    # Opening waits until somebody writes, and only a thread that waits can be given up.
    opened: Future[BinaryIO] = Future()

    def wait() -> None:
        try:
            opened.set_result(Path(path).open("rb"))  # noqa: SIM115 - it is closed by who asked
        except OSError as error:
            opened.set_exception(error)

    Thread(target=wait, daemon=True).start()
    try:
        return opened.result(PIPE_SECONDS)
    except TimeoutError:
        raise InputError(f"is a pipe that nobody writes to: waited for {PIPE_SECONDS:g}s", source=name) from None
