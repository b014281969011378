"""Reading input files: opened without blocking forever, and read only up to a size limit."""

from __future__ import annotations

import stat
from pathlib import Path
from threading import Thread
from typing import BinaryIO

from kpreempt.errors import InputError

# For configurations, kubeconfigs, certificates, keys, reports and baselines.
LARGEST_FILE = 32 << 20
# How long a named pipe may have no writer.
PIPE_SECONDS = 30.0


def name_of(path: str) -> str:
    r"""Return the name of a source for messages: its path, with invalid UTF-8 bytes as ``\xNN``."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def unreadable(name: str, error: OSError | ValueError) -> InputError:
    """Build the error for a file that cannot be read; a path with a NUL is a ``ValueError``."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return InputError(f"cannot read: {reason[:1].lower()}{reason[1:]}", source=name)


def open_file(path: str, name: str = "") -> BinaryIO:
    """Open a file for reading; ``name`` is its name in messages.

    Raises ``InputError``, also for a pipe without a writer.
    """
    name = name or name_of(path)
    try:
        if stat.S_ISFIFO(Path(path).stat().st_mode):
            return _open_pipe(path, name)
        return Path(path).open("rb")
    except (OSError, ValueError) as error:
        raise unreadable(name, error) from error


def read_file(path: str, name: str = "") -> bytes:
    """Read a file of at most ``LARGEST_FILE`` bytes; ``name`` is its name in messages.

    Raises ``InputError``.
    """
    name = name or name_of(path)
    with open_file(path, name) as file:
        return read_stream(file, name)


def read_stream(stream: BinaryIO, name: str) -> bytes:
    """Read the rest of a stream of at most ``LARGEST_FILE`` bytes; ``name`` is its name in messages.

    Raises ``InputError``.
    """
    try:
        content = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise unreadable(name, error) from error
    if len(content) > LARGEST_FILE:
        raise InputError(f"larger than {LARGEST_FILE >> 20} MiB", source=name)
    return content


def read_text(path: str) -> str:
    """Read a text file. Raises ``InputError``."""
    try:
        return read_file(path).decode()
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", source=name_of(path)) from None


def _open_pipe(path: str, name: str) -> BinaryIO:
    from concurrent.futures import Future  # noqa: PLC0415 - few inputs are named pipes

    # Opening blocks until there is a writer, and only a thread can be abandoned.
    opened: Future[BinaryIO] = Future()

    def wait() -> None:
        try:
            opened.set_result(Path(path).open("rb"))  # noqa: SIM115 - the caller closes it
        except OSError as error:
            opened.set_exception(error)

    Thread(target=wait, daemon=True).start()
    try:
        return opened.result(PIPE_SECONDS)
    except TimeoutError:
        raise InputError(f"named pipe without a writer (waited {PIPE_SECONDS:g}s)", source=name) from None
