"""Where the time of a command goes, as a file: ``--profile-json``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import msgspec

from kpreempt.cli.output import Output, whole_file
from kpreempt.cli.terminal import ACTIVITY
from kpreempt.errors import UsageError

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
        with whole_file(path) as file:
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
