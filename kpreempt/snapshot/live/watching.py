"""Watches: the changes in a live cluster, stream by stream, each in a thread that recovers from any failure.

A watch continues at the last version that it received. If the server has dropped that version (410), the kind is listed
again. Only GET requests are sent.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from queue import Queue
from threading import Thread

import msgspec

from kpreempt.errors import InputError, KpreemptError
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import Connection
from kpreempt.snapshot.live.failures import ClusterError
from kpreempt.snapshot.live.listing import INDISPENSABLE, Listing, path_of
from kpreempt.snapshot.recording.changes import ChangeType
from kpreempt.snapshot.recording.recorder import (
    Bookmark,
    LeaseHolder,
    Listed,
    Stream,
    Watched,
    WatchRejected,
    WatchReport,
    version_number,
)

# The server ends a watch after this many seconds, and another begins.
_WATCH_SECONDS = 300
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 30.0
# The maximum number of changes that may wait to be written before watches pause.
_QUEUED = 10_000
_HTTP_GONE = 410
_UNKNOWN_USER = 401
_HTTP_REJECTED = (403, 404, 405)

_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_LEASE_QUERY = {"fieldSelector": "metadata.name=kube-scheduler"}

News = Queue[WatchReport | KpreemptError]


class Start(msgspec.Struct, frozen=True):
    """The start of a watch: the API version that serves the stream, and the resource version of its list.

    Only objects of the ``namespace`` are watched, if it is given.
    """

    api_version: str
    version: int
    namespace: str = ""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    code: int = 0


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str = ""


class _Lease(msgspec.Struct, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()
    metadata: _Meta = _Meta()


class _Leases(msgspec.Struct, frozen=True):
    items: list[_Lease]
    metadata: _Meta = _Meta()


class _ExpiredError(Exception):
    """The server no longer has the version at which a watch should continue."""


class Watches:
    """The watches of all streams. ``news`` has their changes, and the error of a watch that cannot continue."""

    def __init__(
        self,
        api: Api,
        *,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        reconnect: Callable[[], Connection] | None = None,
    ) -> None:
        """``sleep`` takes seconds, ``jitter`` returns a number from 0 to 1 by which waits are extended.

        ``reconnect`` returns a connection with new credentials, if the old ones have expired.
        """
        self.news: News = Queue(_QUEUED)
        self._api = api
        self._sleep = sleep
        self._jitter = jitter
        self._clock = clock
        self._reconnect = reconnect
        self._is_over = False

    def begin(self, starts: Mapping[Stream, Start]) -> None:
        """Watch every stream from its list on, and the scheduler's lease. Threads end with the process."""
        for stream, start in starts.items():
            Thread(target=self._run, args=(self._watch, stream, start), daemon=True).start()
        Thread(target=self._run, args=(self._watch_lease,), daemon=True).start()

    def end(self) -> None:
        """Let the threads end, each after the next change that it waits for."""
        self._is_over = True

    def holder(self) -> tuple[str, str]:
        """Return the holder of the scheduler's lease, and the version of the list; both empty if it cannot be read."""
        try:
            found = msgspec.json.decode(self._api.get(_LEASE, _LEASE_QUERY), type=_Leases)
        except (ClusterError, msgspec.DecodeError, UnicodeDecodeError):
            return "", ""
        holder = found.items[0].spec.holder_identity if len(found.items) == 1 else ""
        return holder, found.metadata.resource_version

    def _run(self, watch: Callable[..., None], *arguments: object) -> None:
        try:
            watch(*arguments)
        except KpreemptError as error:
            self.news.put(error)

    def _report(self, stream: Stream | None, news: Watched | Bookmark | Listed | WatchRejected | LeaseHolder) -> None:
        self.news.put(WatchReport(self._clock(), stream, news))

    def _watch(self, stream: Stream, start: Start) -> None:
        version, failures = start.version, 0
        path = path_of(stream.kind, start.api_version, start.namespace)
        query = {"fieldSelector": stream.selector} if stream.selector else {}
        while not self._is_over:
            is_running = False
            try:
                for line in self._lines(path, query, version):
                    is_running, failures = True, 0
                    meta = _object(line.object).metadata
                    version = version_number(meta.resource_version, f"{self._api.connection.server}{path}")
                    if line.type == "BOOKMARK":
                        self._report(stream, Bookmark(version))
                    else:
                        self._report(stream, Watched(ChangeType(line.type), line.object, start.api_version))
                if not is_running:
                    self._wait(failures)
                    failures += 1
            except _ExpiredError:
                version = self._relist(stream, start.namespace)
            except ClusterError as error:
                if error.status in _HTTP_REJECTED and stream.kind.name in INDISPENSABLE:
                    raise
                if error.status in _HTTP_REJECTED:
                    self._report(stream, WatchRejected(error.status))
                    return
                self._wait(failures, error)
                failures += 1

    def _relist(self, stream: Stream, namespace: str) -> int:
        """List the stream again, retrying as often as necessary, and return its version."""
        failures = 0
        while not self._is_over:
            try:
                listing = Listing(stream.kind, "", selector=stream.selector, namespace=namespace)
                objects: list[msgspec.Raw] = []
                while True:
                    page = listing.next_page(self._api)
                    if page.rejection is not None:
                        raise page.rejection
                    objects = [*page.items] if page.begins else [*objects, *page.items]
                    if page.ends:
                        break
                version = version_number(listing.version, page.source)
            except ClusterError as error:
                if error.status in _HTTP_REJECTED:
                    raise
                self._wait(failures, error)
                failures += 1
            else:
                self._report(stream, Listed(version, objects, page.api_version))
                return version
        return 0

    def _watch_lease(self) -> None:
        """Report whenever another scheduler holds the lease, or the holder is no longer known."""
        failures = 0
        while not self._is_over:
            holder, version = self.holder()
            self._report(None, LeaseHolder(holder))
            if not holder:
                return
            try:
                for line in self._lines(_LEASE, _LEASE_QUERY, int(version)):
                    failures = 0
                    if line.type != "BOOKMARK":
                        lease = msgspec.json.decode(line.object, type=_Lease)
                        self._report(None, LeaseHolder("" if line.type == "DELETED" else lease.spec.holder_identity))
            except _ExpiredError:
                continue
            except (ClusterError, msgspec.DecodeError, ValueError) as error:
                self._wait(failures, error)
                failures += 1

    def _lines(self, path: str, query: Mapping[str, str], version: int) -> Iterator[_Line]:
        """Yield the lines of one watch, until the server ends it. Raises ``ClusterError`` and ``_ExpiredError``."""
        query_parameters = {
            **query,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(version),
            "timeoutSeconds": str(int(_WATCH_SECONDS * (1 + self._jitter()))),
        }
        source = f"{self._api.connection.server}{path}"
        try:
            for text in self._api.lines(path, query_parameters, seconds=2 * _WATCH_SECONDS):
                try:
                    line = msgspec.json.decode(text, type=_Line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    line = None
                if line is None or line.type not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"):
                    # Lines that were cut off are sent again.
                    raise ClusterError("returned something other than changes", source=source)
                if line.type == "ERROR":
                    code = _object(line.object).code
                    if code == _HTTP_GONE:
                        raise _ExpiredError
                    raise ClusterError(f"the watch failed ({code})", source=source, status=code if code >= 500 else 0)
                yield line
        except ClusterError as error:
            if error.status == _HTTP_GONE:
                raise _ExpiredError from None
            raise

    def _wait(self, failures: int, error: Exception | None = None) -> None:
        if isinstance(error, ClusterError) and error.status == _UNKNOWN_USER and self._reconnect is not None:
            self._api.connection = self._reconnect()
        self._sleep(min(_FIRST_WAIT_SECONDS * 2 ** min(failures, 10), _LONGEST_WAIT_SECONDS) * (1 + self._jitter()))


def _object(json: msgspec.Raw) -> _Object:
    try:
        return msgspec.json.decode(json, type=_Object)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"contains an object without metadata: {error}", source="the watch") from None
