"""``kpreempt record``: lists a cluster, then watches it into a directory; also shows what a recording contains."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any, Self

from kpreempt import __version__
from kpreempt.analysis.check.rollout.kept_documents import is_kept, kept
from kpreempt.cli.clusters import live_connection
from kpreempt.cli.output import write_stdout
from kpreempt.cli.snapshot import check_map, map_file, write_map
from kpreempt.cli.terminal import Progress, write_to_stderr
from kpreempt.errors import InputError, KpreemptError, UsageError
from kpreempt.files import name_of
from kpreempt.model.durations import SECOND, parse_duration
from kpreempt.report.escape import printable
from kpreempt.snapshot.archives import parse_size
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.kinds import COMPARED_KINDS, RECORDED
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import connect
from kpreempt.snapshot.live.lists import read_cluster
from kpreempt.snapshot.live.watching import Start, Watches
from kpreempt.snapshot.recording.as_of import RecordingInfo, info_of, missing_from
from kpreempt.snapshot.recording.recorder import Lines, Recorder, Stream, version_number
from kpreempt.snapshot.recording.segments import Limits, Segments, is_recording
from kpreempt.snapshot.write import DumpHeader

if TYPE_CHECKING:
    from kpreempt.cli.requests import RecordRequest
    from kpreempt.model.cluster import ClusterSnapshot
    from kpreempt.snapshot.live.connection import Connection
    from kpreempt.snapshot.live.flags import ConnectionFlags

# Maximum time to wait for a change before checking the clock for work that is due.
_PATIENCE = 0.2
# Suffixes of the directory while it still contains original names, and while it is incomplete.
_CLEAR, _PART = ".clear", ".part"
# Number of random bytes that salt the digests of a recording.
_SALT = 16
# Signals that end a recording: Ctrl-C, a service manager's, and a terminal that closes.
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


def record(request: RecordRequest) -> int:
    """Record, or show what is recorded, and return the exit code."""
    if (request.to is None) == (request.info is None):
        raise UsageError("either --to or --info is required", hint="kpreempt record --to DIR")
    check_map(request.redact_map, redacts=request.redact)
    if request.source is not None and not request.redact:
        raise UsageError("--from needs --redact", hint="--redact")
    if request.source is not None and request.duration is not None:
        raise UsageError("--from and --for cannot be used together: --from reads an existing recording")
    if request.info is not None:
        write_stdout(_describe(request.info, info_of(request.info)))
        return 0
    assert request.to is not None
    if request.redact:
        _reject_existing_recording(request.to)
    limits = Limits(
        keep=_duration("--keep", request.keep),
        max_size=parse_size(request.max_size, "--max-size"),
        base_every=_duration("--base-every", request.base_every),
    )
    seconds = None if request.duration is None else seconds_of("--for", request.duration)
    # A short recording says so at its end.
    note = _note_missing if seconds is None and not request.quiet else _note_nothing
    if request.source is not None:
        _redact(request.source, request)
    elif request.redact:
        clear = request.to.rstrip("/") + _CLEAR
        _reject_existing_recording(clear)
        record_into(clear, request.connection, limits, seconds, note)
        _redact(clear, request)
        shutil.rmtree(clear)
    else:
        record_into(request.to, request.connection, limits, seconds, note)
    if not request.quiet:
        write_to_stderr(_describe(request.to, info_of(request.to)))
    return 0


def seconds_of(option: str, text: str) -> float:
    """Return the seconds in an option's duration. Raises ``UsageError``."""
    return _duration(option, text).total_seconds()


def _note_nothing(_cluster: ClusterSnapshot) -> None:
    """Accept any cluster."""


def _note_missing(cluster: ClusterSnapshot) -> None:
    """Say what the recording will lack."""
    write_to_stderr("".join(f"{printable(line)}\n" for line in missing_from(cluster)))


def _reject_existing_recording(folder: str) -> None:
    """Raise ``InputError`` if the directory already has a recording, whose tokens stand for other names."""
    if is_recording(folder):
        command = f"kpreempt record --redact --from {folder} --to DIR"
        hint = command if folder.endswith(_CLEAR) else "--to DIR, another directory"
        raise InputError("already contains a recording", source=name_of(folder), hint=hint)


def _redact(source: str, request: RecordRequest) -> None:
    """Write a redacted copy of the recording, which appears when it is complete."""
    from kpreempt.analysis.image_sizes import NamedImages
    from kpreempt.snapshot.recording.redacted import Images, redact_recording

    assert request.to is not None
    named, target = NamedImages(), Path(request.to)
    part = target.with_name(f"{target.name}{_PART}")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with map_file(request.redact_map) as file:
            write_map(file, redact_recording(source, str(part), secrets.token_bytes(), Images(named.add, named.of)))
            part.replace(target)
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror or error}", source=name_of(request.to)) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def record_into(
    folder: str,
    flags: ConnectionFlags,
    limits: Limits,
    seconds: float | None,
    note: Callable[[ClusterSnapshot], None],
) -> None:
    """Record the live cluster into a directory for some seconds, or until Ctrl-C. Raises any read error.

    ``note`` gets the cluster before it is recorded, and may raise an error.
    """
    end = None if seconds is None else time.monotonic() + seconds
    live = live_connection([], flags)
    assert live is not None
    segments = Segments(folder, limits)
    try:
        _record(flags, live, segments, end, note)
    finally:
        segments.close()


def _record(
    flags: ConnectionFlags,
    live: Connection,
    segments: Segments,
    end: float | None,
    note: Callable[[ClusterSnapshot], None],
) -> None:
    """Record until ``end`` (on the monotonic clock) or until Ctrl-C."""
    progress, api = Progress(), Api(live)
    watches = Watches(api, reconnect=lambda: connect(flags, os.environ))
    try:
        recorder = _begin(api, watches, segments, progress, note)
        with _Ending(end) as ending:
            try:
                while not ending.is_due:
                    try:
                        event = watches.news.get(timeout=_PATIENCE)
                    except Empty:
                        pass
                    else:
                        if isinstance(event, KpreemptError):
                            raise event
                        recorder.take(event)
                    recorder.tick(datetime.now(UTC))
                    progress.show(
                        f"recording {live.label}: {len(recorder):,} objects, {recorder.num_changes:,} changes"
                    )
            finally:
                recorder.flush(datetime.now(UTC))
    finally:
        watches.end()
        progress.close()
        api.close()


class _Ending:
    """When to stop: at a time on the monotonic clock, or after a signal, which never interrupts a write.

    A second signal interrupts. A signal other than Ctrl-C is raised again at the end.
    """

    def __init__(self, at: float | None) -> None:
        self._at = at
        self._signal: int | None = None
        self._before: dict[int, Any] = {}

    @property
    def is_due(self) -> bool:
        """Whether to stop now."""
        return self._signal is not None or (self._at is not None and time.monotonic() >= self._at)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name) for name in _ENDING if hasattr(signal, name)):
                # Keep ignored signals ignored: Ctrl-C for background jobs of a shell, and SIGHUP under nohup.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()
        if self._signal not in (None, signal.SIGINT):
            signal.raise_signal(self._signal)

    def _note(self, number: int, _frame: object) -> None:
        self._signal = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}


def _begin(
    api: Api, watches: Watches, segments: Segments, progress: Progress, note: Callable[[ClusterSnapshot], None]
) -> Recorder:
    """List the cluster, write it as the first base, and watch it from there; kinds of one namespace only there."""
    taken_at = datetime.now(UTC)
    lines = Lines(is_kept, partial(kept, salt=secrets.token_hex(_SALT)))
    reading = read_cluster(
        api,
        taken_at=taken_at,
        progress=progress,
        needs=Needs(
            keep_document=is_kept,
            with_events=True,
            with_autoscalers=True,
            with_evictions=True,
            # Cluster Autoscaler writes its status every few seconds.
            skip_kinds=("ConfigMap",),
            compare_kinds=COMPARED_KINDS,
        ),
        packs=lines.of_document,
    )
    note(reading.cluster)
    unread = reading.cluster.unread
    source = api.connection.server
    starts = {
        Stream(RECORDED[kind], selector): Start(
            api_version, version_number(version, source), unread[kind].namespace if kind in unread else ""
        )
        for (kind, selector), (api_version, version) in reading.starts.items()
        if kind in RECORDED
    }
    header = DumpHeader(
        server_version=reading.cluster.version,
        taken_at=taken_at,
        kpreempt_version=__version__,
        assumptions=reading.assumptions,
        unread=unread,
        listed=reading.cluster.listed,
    )
    holder, _ = watches.holder()
    recorder = Recorder(
        segments,
        reading.cluster,
        header,
        {stream.label: start.version for stream, start in starts.items()},
        source=source,
        holder=holder,
        lines=lines,
        documents=reading.documents,
    )
    watches.begin(starts)
    return recorder


def _duration(option: str, text: str) -> timedelta:
    nanoseconds = parse_duration(text)
    if nanoseconds is None or nanoseconds <= 0:
        raise UsageError(f'{option}: "{text[:40]}" is not a duration', hint="10m, 24h")
    return timedelta(seconds=nanoseconds / SECOND)


def _describe(folder: str, info: RecordingInfo) -> str:
    """Describe what a recording contains, as lines of text."""
    return "".join(f"{printable(line)}\n" for line in info.lines(folder))
