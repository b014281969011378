"""Converts what watches report to changes in a recording; the current cluster becomes each new base.

Nothing here connects to anything: the caller passes what its watches report (``snapshot.live.watching``). Recordings
keep as few fields of each object as possible, and the complete document if changes are compared with it; the caller
decides which parts of a document may be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot, Unread
from kpreempt.model.event import Event
from kpreempt.model.kinds import KINDS, Kind
from kpreempt.model.pod import Pod
from kpreempt.snapshot.collect import KeepDocument, NamedObject
from kpreempt.snapshot.decode import BadObjectError, Json, Record, as_served, decoder_of, parse_json, record_of
from kpreempt.snapshot.kinds import RECORDED, resource_of
from kpreempt.snapshot.minimize import minimized
from kpreempt.snapshot.recording.changes import OBJECT_CHANGES, BaseEnd, Change, ChangeType, Key, RecordedObjects
from kpreempt.snapshot.recording.orders import NodeOrders
from kpreempt.snapshot.recording.pods import observed_pod
from kpreempt.snapshot.recording.segments import Segments
from kpreempt.snapshot.write import DumpHeader, header_line, line_of, status_of

# The longest time without changes before the recording confirms that it is still running.
ALIVE_SECONDS = 10.0
# How often changes are written to the disk, so that including other delays none is more than a second late.
FLUSH_SECONDS = 0.4


class Stream(NamedTuple):
    """A unit that is watched: a kind, or for events those that a field selector selects."""

    kind: Kind
    selector: str = ""

    @property
    def label(self) -> str:
        """The stream's name in recordings."""
        return f"{self.kind.name} {self.selector}".rstrip()


class Watched(NamedTuple):
    """An object was added, modified or deleted."""

    what: ChangeType
    object: Json
    api_version: str


class Bookmark(NamedTuple):
    """Nothing of the stream has changed up to this version."""

    version: int


class Listed(NamedTuple):
    """All objects of a stream, read again because changes were missed."""

    version: int
    objects: list[msgspec.Raw]
    api_version: str


class WatchRejected(NamedTuple):
    """The stream may not be watched any more; the status is HTTP's."""

    status: int


class LeaseHolder(NamedTuple):
    """The holder of the scheduler's lease, or an empty string if unknown."""

    identity: str


class WatchReport(NamedTuple):
    """Something that a watch reported, and when. A holder belongs to no stream."""

    received: datetime
    stream: Stream | None
    news: Watched | Bookmark | Listed | WatchRejected | LeaseHolder


class Recorder:
    """A recording in progress. ``source`` is the cluster's name in messages."""

    def __init__(
        self,
        segments: Segments,
        cluster: ClusterSnapshot,
        header: DumpHeader,
        versions: Mapping[str, int],
        *,
        source: str,
        holder: str = "",
        lines: Lines | None = None,
        documents: Iterable[Line] = (),
    ) -> None:
        """Begin with the cluster as listed, with each stream (by label) at its version.

        ``lines`` formats objects, and ``documents`` are the lines that it made of the list.
        """
        self.num_changes = 0
        self._segments = segments
        self._header = header
        self._versions = dict(versions)
        self._source = source
        self._holder = holder
        self._lines = lines or Lines()
        self._current = RecordedObjects()
        self._orders = NodeOrders()
        self._unread = dict(header.unread)
        self._pending: list[Change] = []
        for kind in KINDS.values():
            for record in getattr(cluster, kind.field):
                line = line_of(kind, minimized(record))
                self._current[kind.name][_key(record)] = line
                if kind.name == "Pod":
                    self._orders.add_existing(observed_pod(line))
        for document_line in documents:
            self._current[document_line.kind][document_line.key] = document_line.text
        self._flushed = header.taken_at
        self._begin(header.taken_at, continues=False)

    def __len__(self) -> int:
        """The current number of objects."""
        return sum(map(len, self._current.values()))

    def take(self, report: WatchReport) -> None:
        """Process what a watch reported. Raises ``InputError`` for an invalid object."""
        seen, stream, news = report
        if isinstance(news, LeaseHolder):
            if news.identity != self._holder:
                self._holder = news.identity
                self._orders.forget()
                self._add([Change(what=ChangeType.SCHEDULER, seen=seen, name=news.identity)])
            return
        assert stream is not None
        if isinstance(news, Bookmark):
            self._versions[stream.label] = max(news.version, self._versions.get(stream.label, 0))
        elif isinstance(news, Watched):
            self._add(list(self._changes(stream, seen, news)))
        elif isinstance(news, Listed):
            self._add(list(self._differences(stream, seen, news)))
        else:
            self._add([Change(what=ChangeType.UNREAD, seen=seen, kind=stream.kind.name, status=news.status)])

    def tick(self, now: datetime) -> None:
        """Write what is due by ``now`` to the disk. Raises ``InputError`` if that fails."""
        waited = (now - self._flushed).total_seconds()
        if not self._pending and waited >= ALIVE_SECONDS:
            self._pending.append(Change(what=ChangeType.ALIVE, seen=now))
        if self._pending and waited >= FLUSH_SECONDS:
            self.flush(now)
            if self._segments.needs_base(now):
                self._begin(now, continues=True)

    def flush(self, now: datetime) -> None:
        """Write everything that is not on the disk yet."""
        if self._pending:
            self._segments.append(self._pending)
            self._pending = []
        self._flushed = now

    def _begin(self, now: datetime, *, continues: bool) -> None:
        listed = [kind for kind in self._header.listed if kind not in self._unread]
        header = msgspec.structs.replace(self._header, taken_at=now, unread=self._unread, listed=listed)
        end = BaseEnd(
            versions=self._versions,
            taken_at=now,
            holder=self._holder,
            orders=dict(self._orders.known()),
            continues=continues,
        )
        self._segments.begin(chain([header_line(header)], self._current.lines()), end)

    def _add(self, changes: list[Change]) -> None:
        for change in changes:
            self._current.apply(change)
            if change.kind == "Pod":
                follow(self._orders, change)
            if change.what is ChangeType.UNREAD:
                self._unread[change.kind] = unread_as(change)
            self.num_changes += change.what in OBJECT_CHANGES
        self._pending += changes

    def _changes(self, stream: Stream, seen: datetime, news: Watched) -> Iterator[Change]:
        """Yield the change, unless it is of an event that is not kept."""
        record, version = self._decoded(stream.kind, news.object, news.api_version)
        is_deleted = news.what is ChangeType.DELETED
        line = b"null" if is_deleted else self._lines.line(stream.kind, record, news.object, news.api_version)
        self._versions[stream.label] = max(version, self._versions.get(stream.label, 0))
        if isinstance(record, Event) and not record.is_recorded:
            return
        namespace, name = _key(record)
        yield Change(
            what=news.what,
            seen=seen,
            kind=stream.kind.name,
            namespace=namespace,
            name=name,
            version=version,
            object=msgspec.Raw(line),
        )

    def _differences(self, stream: Stream, seen: datetime, news: Listed) -> Iterator[Change]:
        """Convert a list that was read again to changes from the known state."""
        kind = stream.kind
        yield Change(
            what=ChangeType.GAP,
            seen=seen,
            kind=kind.name,
            since=self._versions.get(stream.label, 0),
            version=news.version,
        )
        self._versions[stream.label] = news.version
        decode = decoder_of(kind.record).decode
        missing = {
            key
            for key, line in self._current[kind.name].items()
            if not stream.selector or decode(line).matches(stream.selector)
        }
        for json in news.objects:
            record, version = self._decoded(kind, json, news.api_version)
            if isinstance(record, Event) and not record.is_recorded:
                continue
            key = _key(record)
            missing.discard(key)
            line = self._lines.line(kind, record, json, news.api_version)
            known = self._current[kind.name].get(key)
            if line != known:
                what = ChangeType.ADDED if known is None else ChangeType.MODIFIED
                yield Change(
                    what=what,
                    seen=seen,
                    kind=kind.name,
                    namespace=key[0],
                    name=key[1],
                    version=version,
                    object=msgspec.Raw(line),
                )
        for namespace, name in sorted(missing):
            yield Change(
                what=ChangeType.DELETED, seen=seen, kind=kind.name, namespace=namespace, name=name, version=news.version
            )

    def _decoded(self, kind: Kind, json: Json, api_version: str) -> tuple[Record, int]:
        try:
            decode = decoder_of(kind.record if kind.name in KINDS else NamedObject).decode
            record = as_served(record_of(kind, json, decode), api_version)
            if not record.metadata.name:
                raise BadObjectError(kind.name, "metadata.name", "is missing")
        except BadObjectError as error:
            raise error.at(self._source, 0) from None
        return record, version_number(record.metadata.resource_version, self._source)


def version_number(text: str, source: str) -> int:
    """Parse a resource version as a number. Raises ``InputError``."""
    if not text.isascii() or not text.isdecimal() or len(text) > 20:
        raise InputError(f'"{text[:40]}" is not a numeric resource version', source=source)
    return int(text)


def follow(orders: NodeOrders, change: Change) -> None:
    """Apply a change of a pod to the orders."""
    if change.what in (ChangeType.ADDED, ChangeType.MODIFIED):
        orders.change(observed_pod(change.object))
    elif change.what is ChangeType.DELETED:
        orders.delete(f"{change.namespace}/{change.name}")
    elif change.what in (ChangeType.GAP, ChangeType.UNREAD):
        orders.forget()


def unread_as(change: Change) -> Unread:
    """Return the kind of a change as one that cannot be read."""
    return Unread(change.status, resource_of(RECORDED[change.kind]))


def _key(record: Record) -> Key:
    return record.metadata.namespace, record.metadata.name


Document = dict[str, Any]

_ENCODER = msgspec.json.Encoder()
_POD = decoder_of(Pod)


class Line(NamedTuple):
    """The line of an object, and the object's identity."""

    kind: str
    key: Key
    text: bytes


class Lines(NamedTuple):
    """Formats objects.

    ``convert`` converts the documents that ``keep_document`` selects; of the others, only the fields that are read
    are kept.
    """

    keep_document: KeepDocument = lambda _kind, _record: False
    convert: Callable[[Document], Document] = lambda document: document

    def line(self, kind: Kind, record: Record, json: Json, api_version: str) -> bytes:
        """Format an object that was reported as ``json``, served in that API version."""
        if kind.name in KINDS and not self.keep_document(kind.name, record):
            return line_of(kind, minimized(record))
        return self.of_document({"apiVersion": api_version, "kind": kind.name, **parse_json(json)}).text

    def of_document(self, document: Document) -> Line:
        """Format an object whose document is kept."""
        found = self.convert(document)
        metadata = found["metadata"]
        if found["kind"] == "Pod":
            found["status"] = status_of(_POD.decode(_ENCODER.encode(document)))
        if not metadata.get("namespace", "x"):
            found["metadata"] = metadata = {key: each for key, each in metadata.items() if key != "namespace"}
        key = (metadata.get("namespace") or "", metadata["name"])
        return Line(found["kind"], key, _ENCODER.encode(found))
