"""Outputs of answers: standard output, or files that are replaced atomically.

The timing profile of ``--profile-json`` is written in the same way.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, TextIO

import msgspec

from kpreempt.cli.terminal import ACTIVITY
from kpreempt.errors import KpreemptError, UsageError, nearest
from kpreempt.report.answers import TEMPLATE_FORMATS, Answer, render_answer
from kpreempt.report.options import RenderOptions

# These formats contain everything: every step of every candidate, every score. The others show the most important.
COMPLETE_FORMATS = ("json", "jsonl", "yaml", "html", *TEMPLATE_FORMATS)
# kubectl's formats for which no maintained library is known.
_NOT_OFFERED = ("go-template", "go-template-file")


class Output(NamedTuple):
    """A format, its template if it has one, and the output file; an empty path is standard output."""

    format: str
    path: str
    template: str = ""

    def render(self, answer: Answer, options: RenderOptions) -> str:
        """Render the answer in this format. Raises ``UsageError``."""
        if self.template:
            from kpreempt.report.jsonpath import render_template

            return render_template(answer, self.format, self.template)
        return render_answer(answer, self.format, options)


def parse_outputs(texts: Sequence[str], formats: Sequence[str]) -> list[Output]:
    """Parse the ``-o FORMAT[=FILE]`` options, in order; without any, the first of ``formats``.

    If ``formats`` has JSON, ``TEMPLATE_FORMATS`` are accepted as well: ``-o FORMAT=TEMPLATE``. Raises ``UsageError``
    for an unknown format, an empty or repeated file name, and an invalid template.
    """
    outputs: list[Output] = []
    for text in texts or formats[:1]:
        name, equals, path = text.partition("=")
        if name in TEMPLATE_FORMATS and "json" in formats:
            from kpreempt.report.jsonpath import check_template

            check_template(name, path)
            outputs.append(Output(name, "", path))
            continue
        if name in _NOT_OFFERED and "json" in formats:
            raise UsageError(f"-o {name}: Go templates are not supported", hint="-o jsonpath=TEMPLATE, as in kubectl")
        if name not in formats:
            raise UsageError(f"-o {text}: unknown format {name!r}", hint=nearest(name, formats))
        if equals and not path:
            raise UsageError(f"-o {text}: file name missing", hint=f"-o {name}=FILE")
        path = "" if path == "-" else path
        if path and any(Path(path).resolve() == Path(other.path).resolve() for other in outputs if other.path):
            raise UsageError(f"-o {text}: another output uses the same file")
        outputs.append(Output(name, path))
    return outputs


def write_stdout(text: str) -> bool:
    """Write to standard output and flush. Return ``False`` if the reader is gone, which is not an error.

    Raises ``KpreemptError`` if writing fails, as on a full disk.
    """
    return _to_stdout(lambda stream: stream.write(text)) is not None


def write_stdout_pieces(pieces: Iterable[bytes]) -> int | None:
    """Write bytes to standard output and return their number, or ``None`` if the reader is gone.

    Raises ``KpreemptError`` if writing fails, as on a full disk.
    """
    return _to_stdout(lambda stream: sum(map(stream.buffer.write, pieces)))


def _to_stdout(write: Callable[[TextIO], int]) -> int | None:
    ACTIVITY.hide()
    try:
        if sys.stdout is None:
            raise OSError("closed")
        size = write(sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()
        return None
    except OSError as error:
        discard_stdout()
        raise KpreemptError(f"standard output: {error.strerror or error}") from error
    return size


def discard_stdout() -> None:
    """Discard what is left in the buffer, so that the interpreter does not complain about it on exit."""
    if sys.stdout is not None:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextmanager
def atomic_file(path: str, *, mode: int | None = None) -> Iterator[TextIO]:
    """Open a file for writing that replaces ``path`` when the block succeeds, and is discarded otherwise.

    Its permissions are ``mode``, else those of the existing file, else the default for new files. The content is
    written to a temporary file in the same directory and renamed. A symbolic link stays and its target is replaced.
    Devices and pipes are written directly. Raises ``KpreemptError`` if that is not possible.
    """
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            with target.open("w", encoding="utf-8") as stream:
                yield stream
            return
        with _replacing(target, mode) as stream:
            yield stream
    except BrokenPipeError:
        return
    except OSError as error:
        raise KpreemptError(f"{path}: cannot write: {error.strerror or error}") from error


@contextmanager
def _replacing(target: Path, mode: int | None) -> Iterator[TextIO]:
    descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            yield stream
        if mode is None:
            # The permissions of the existing file, or those that a new one would get.
            try:
                mode = stat.S_IMODE(target.stat().st_mode)
            except FileNotFoundError:
                umask = os.umask(0)
                os.umask(umask)
                mode = 0o666 & ~umask
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink()
        raise


# Marks the times of plugins and extenders, to tell them from the phases.
_PART = "plugin "


class Stopwatch:
    """Adds up ``seconds`` by phase, and by out-of-tree plugin and extender, starting when it is created."""

    def __init__(self) -> None:
        self._start = perf_counter()
        ACTIVITY.begin()
        self._parts: set[str] = set()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str, /) -> Iterator[None]:
        """Add the duration of the block to the phase, which is shown as progress."""
        if not name.startswith(_PART):
            ACTIVITY.begin(name)
        start = perf_counter()
        try:
            yield
        finally:
            self.add({name: perf_counter() - start})

    @contextmanager
    def part(self, name: str, /) -> Iterator[None]:
        """Add the duration of the block to a plugin or extender, only once if its blocks are nested.

        They are nested if a plugin both preempts and filters, because its preemption runs the filters.
        """
        if name in self._parts:
            yield
            return
        self._parts.add(name)
        try:
            with self.phase(f"{_PART}{name}"):
                yield
        finally:
            self._parts.remove(name)

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add times that were measured elsewhere."""
        for name, spent in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def write(self, path: str) -> None:
        """Write ``phases``, ``total`` (seconds so far) and ``peakMemoryBytes`` of this process to a file.

        ``plugins`` has the times of out-of-tree plugins and extenders, if any ran; the phases include them.
        """
        seconds = {name: round(spent, 6) for name, spent in self.seconds.items()}
        plugins = {name.removeprefix(_PART): spent for name, spent in seconds.items() if name.startswith(_PART)}
        profile = {
            "phases": {name: spent for name, spent in seconds.items() if not name.startswith(_PART)},
            **({"plugins": plugins} if plugins else {}),
            "total": round(perf_counter() - self._start, 6),
            "peakMemoryBytes": peak_memory_bytes(),
        }
        with atomic_file(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(profile)).decode() + "\n")


def check_profile_path(path: str | None, outputs: list[Output]) -> None:
    """Raise ``UsageError`` if the path is empty or already used by an output."""
    if path == "":
        raise UsageError("--profile-json: file name missing", hint="--profile-json profile.json")
    if path and any(output.path and Path(output.path).resolve() == Path(path).resolve() for output in outputs):
        raise UsageError("--profile-json: an output uses the same file")


def peak_memory_bytes() -> int | None:
    """The peak memory use of this process; ``None`` if the operating system does not report it."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
