"""Where answers go: standard output, or files that are written whole or not at all.

So is the file of ``--profile-json``, which says where the time of a command goes.
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

# These hold all that is known: every step of every candidate, every score. The others show the best.
COMPLETE_FORMATS = ("json", "jsonl", "yaml", "html", *TEMPLATE_FORMATS)
# kubectl's, for which no kept library is known.
_NOT_OFFERED = ("go-template", "go-template-file")


class Output(NamedTuple):
    """A format, its template if it has one, and the file it goes to; an empty path is standard output."""

    format: str
    path: str
    template: str = ""

    def render(self, answer: Answer, options: RenderOptions) -> str:
        """The answer in this format. Raises ``UsageError``."""
        if self.template:
            from kpreempt.report.jsonpath import render_template

            return render_template(answer, self.format, self.template)
        return render_answer(answer, self.format, options)


def parse_outputs(texts: Sequence[str], formats: Sequence[str]) -> list[Output]:
    """The outputs that ``-o FORMAT[=FILE]`` options ask for, in order; the first of ``formats`` without any.

    Where there is JSON, there are ``TEMPLATE_FORMATS``: ``-o FORMAT=TEMPLATE``. Raises ``UsageError`` for an unknown
    format, an empty file name, a file that is named twice, and a template that cannot be read.
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
            raise UsageError(f"-o {name}: Go templates are not offered", hint="-o jsonpath=TEMPLATE, as kubectl has it")
        if name not in formats:
            raise UsageError(f"-o {text}: there is no format {name!r}", hint=nearest(name, formats))
        if equals and not path:
            raise UsageError(f"-o {text}: the file name is missing", hint=f"-o {name}=FILE")
        path = "" if path == "-" else path
        if path and any(Path(path).resolve() == Path(other.path).resolve() for other in outputs if other.path):
            raise UsageError(f"-o {text}: another output goes to the same file")
        outputs.append(Output(name, path))
    return outputs


def write_stdout(text: str) -> bool:
    """Write to standard output and flush. False where the reader has gone away, which is no failure.

    Raises ``KpreemptError`` where nothing can be written, as on a full disk.
    """
    return _to_stdout(lambda stream: stream.write(text)) is not None


def write_stdout_pieces(pieces: Iterable[bytes]) -> int | None:
    """Write bytes to standard output and return how many; ``None`` where the reader has gone away.

    Raises ``KpreemptError`` where nothing can be written, as on a full disk.
    """
    return _to_stdout(lambda stream: sum(map(stream.buffer.write, pieces)))


def _to_stdout(write: Callable[[TextIO], int]) -> int | None:
    ACTIVITY.hide()
    try:
        if sys.stdout is None:
            raise OSError("it is closed")
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
    """Send what is left in the buffer nowhere, so that the interpreter does not complain about it at its end."""
    if sys.stdout is not None:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextmanager
def atomic_file(path: str, *, mode: int | None = None) -> Iterator[TextIO]:
    """A file to write that takes the place of ``path`` when the block ends well, and leaves no trace otherwise.

    Its permissions are ``mode``, else those of the file before, else what a new file gets. The new content is written
    beside the old, then renamed over it; a symbolic link stays and its target is replaced. Devices and pipes are
    written directly. Raises ``KpreemptError`` where that is not possible.
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
        raise KpreemptError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _replacing(target: Path, mode: int | None) -> Iterator[TextIO]:
    descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            yield stream
        if mode is None:
            # Those that the file has, or that a new one would get.
            try:
                mode = stat.S_IMODE(target.stat().st_mode)
            except FileNotFoundError:
                mask = os.umask(0)
                os.umask(mask)
                mode = 0o666 & ~mask
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink()
        raise


# Marks the times of plugins and extenders among those of the phases.
_PART = "plugin "


class Stopwatch:
    """Adds up ``seconds`` by phase, and by out-of-tree plugin and extender, from its making on."""

    def __init__(self) -> None:
        self._start = perf_counter()
        ACTIVITY.begin()
        self._parts: set[str] = set()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str, /) -> Iterator[None]:
        """Add the time of the block to the phase, which is shown while it lasts."""
        if not name.startswith(_PART):
            ACTIVITY.begin(name)
        start = perf_counter()
        try:
            yield
        finally:
            self.add({name: perf_counter() - start})

    @contextmanager
    def part(self, name: str, /) -> Iterator[None]:
        """Add the time of the block to that of a plugin or an extender, once where it is within another of its own.

        So it is with a plugin that preempts and filters: its preemption runs the filters.
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
        """Add what was measured elsewhere."""
        for name, spent in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def write(self, path: str) -> None:
        """Write ``phases``, ``total`` (seconds up to now) and ``peakMemoryBytes`` of this process to a file.

        ``plugins`` are those out-of-tree and extenders, if any ran; their time is part of that of the phases.
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
    """Raise ``UsageError`` for an empty path, and for one that an output goes to."""
    if path == "":
        raise UsageError("--profile-json: the file name is missing", hint="--profile-json profile.json")
    if path and any(output.path and Path(output.path).resolve() == Path(path).resolve() for output in outputs):
        raise UsageError("--profile-json: an output goes to the same file")


def peak_memory_bytes() -> int | None:
    """The most memory that this process ever held; ``None`` where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
