"""What watches tell, to changes in a recording; the cluster as it stands makes each new base.

Nothing here connects anywhere: who watches hands in what it was told (``snapshot.live.watching``). Of each object a
recording has the least fields, and of those that a change is compared with the whole document; what of a document may
be written is not known here: whoever records says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot, Unread
from kpreempt.model.kinds import KINDS, Kind
from kpreempt.model.pod import Pod
from kpreempt.snapshot.collect import Keeps, NamedObject
from kpreempt.snapshot.decode import BadObjectError, Json, Record, as_served, decoder_of, parse_json, record_of
from kpreempt.snapshot.kinds import RECORDED, resource_of
from kpreempt.snapshot.minimize import minimized
from kpreempt.snapshot.recording.changes import OBJECT_CHANGES, BaseEnd, Change, ChangeType, Key, RecordedObjects
from kpreempt.snapshot.recording.orders import NodeOrders
from kpreempt.snapshot.recording.pods import observed_pod
from kpreempt.snapshot.recording.segments import Segments
from kpreempt.snapshot.write import DumpHeader, header_line, line_of, status_of

# Nothing may have happened for so long before the recording says that it is still there.
ALIVE_SECONDS = 10.0
# Changes go to the disk this often, so that with the waits before and the writing none is later than a second.
FLUSH_SECONDS = 0.4


class Stream(NamedTuple):
    """What is watched as one: a kind, of events those of one reason."""

    kind: Kind
    reason: str = ""

    @property
    def label(self) -> str:
        """What a recording calls it."""
        return f"{self.kind.name} {self.reason}".rstrip()


class Watched(NamedTuple):
    """An object was added, modified or deleted."""

    what: ChangeType
    object: Json
    api_version: str


class Bookmark(NamedTuple):
    """Nothing of the stream has changed up to a version."""

    version: int


class Listed(NamedTuple):
    """All objects of a stream, read anew because changes were missed."""

    version: int
    objects: list[msgspec.Raw]
    api_version: str


class WatchRejected(NamedTuple):
    """The stream may not be watched any more; the status is HTTP's."""

    status: int


class LeaseHolder(NamedTuple):
    """Who holds the scheduler's lease; empty where that cannot be told."""

    identity: str


class WatchReport(NamedTuple):
    """Something that a watch told, and when. A holder is of no stream."""

    received: datetime
    stream: Stream | None
    news: Watched | Bookmark | Listed | WatchRejected | LeaseHolder


class Recorder:
    """A recording under way. ``source`` names the cluster in messages."""

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
        """Begin with the cluster as it was listed, each stream (by label) at its version.

        ``lines`` says how objects are written, and ``documents`` are those that it has made of the list.
        """
        self.num_changes = 0
        self._segments = segments
        self._header = header
        self._versions = dict(versions)
        self._source = source
        self._holder = holder
        self._lines = lines or Lines()
        self._kept = RecordedObjects()
        self._orders = NodeOrders()
        self._unread = dict(header.unread)
        self._pending: list[Change] = []
        for kind in KINDS.values():
            for record in getattr(cluster, kind.field):
                line = line_of(kind, minimized(record))
                self._kept[kind.name][_key(record)] = line
                if kind.name == "Pod":
                    self._orders.put(observed_pod(line))
        for kept in documents:
            self._kept[kept.kind][kept.key] = kept.text
        self._flushed = header.taken_at
        self._begin(header.taken_at, continues=False)

    def __len__(self) -> int:
        """How many objects there are now."""
        return sum(map(len, self._kept.values()))

    def take(self, told: WatchReport) -> None:
        """Follow what a watch told. Raises ``InputError`` for an object that is bad."""
        seen, stream, news = told
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
            self._add([self._change(stream, seen, news)])
        elif isinstance(news, Listed):
            self._add(list(self._differences(stream, seen, news)))
        else:
            self._add([Change(what=ChangeType.UNREAD, seen=seen, kind=stream.kind.name, status=news.status)])

    def tick(self, now: datetime) -> None:
        """Bring to the disk what is due by ``now``. Raises ``InputError`` where it cannot be written."""
        waited = (now - self._flushed).total_seconds()
        if not self._pending and waited >= ALIVE_SECONDS:
            self._pending.append(Change(what=ChangeType.ALIVE, seen=now))
        if self._pending and waited >= FLUSH_SECONDS:
            self.flush(now)
            if self._segments.needs_base(now):
                self._begin(now, continues=True)

    def flush(self, now: datetime) -> None:
        """Bring all to the disk that is not there yet."""
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
        self._segments.begin(chain([header_line(header)], self._kept.lines()), end)

    def _add(self, changes: list[Change]) -> None:
        for change in changes:
            self._kept.apply(change)
            if change.kind == "Pod":
                follow(self._orders, change)
            if change.what is ChangeType.UNREAD:
                self._unread[change.kind] = unread_as(change)
            self.num_changes += change.what in OBJECT_CHANGES
        self._pending += changes

    def _change(self, stream: Stream, seen: datetime, news: Watched) -> Change:
        record, version = self._decoded(stream.kind, news.object, news.api_version)
        is_deleted = news.what is ChangeType.DELETED
        line = b"null" if is_deleted else self._lines.line(stream.kind, record, news.object, news.api_version)
        self._versions[stream.label] = max(version, self._versions.get(stream.label, 0))
        namespace, name = _key(record)
        return Change(
            what=news.what,
            seen=seen,
            kind=stream.kind.name,
            namespace=namespace,
            name=name,
            version=version,
            object=msgspec.Raw(line),
        )

    def _differences(self, stream: Stream, seen: datetime, news: Listed) -> Iterator[Change]:
        """A list that was read anew, as changes from what was known."""
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
        gone = {
            key
            for key, line in self._kept[kind.name].items()
            if not stream.reason or decode(line).reason == stream.reason
        }
        for json in news.objects:
            record, version = self._decoded(kind, json, news.api_version)
            key = _key(record)
            gone.discard(key)
            line = self._lines.line(kind, record, json, news.api_version)
            known = self._kept[kind.name].get(key)
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
        for namespace, name in sorted(gone):
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
    """A resource version as the number that it is. Raises ``InputError``."""
    if not text.isascii() or not text.isdecimal() or len(text) > 20:
        raise InputError(f'"{text[:40]}" is no resource version that counts changes', source=source)
    return int(text)


def follow(orders: NodeOrders, change: Change) -> None:
    """Follow a change of pods."""
    if change.what in (ChangeType.ADDED, ChangeType.MODIFIED):
        orders.change(observed_pod(change.object))
    elif change.what is ChangeType.DELETED:
        orders.delete(f"{change.namespace}/{change.name}")
    elif change.what in (ChangeType.GAP, ChangeType.UNREAD):
        orders.forget()


def unread_as(change: Change) -> Unread:
    """The kind of a change as one that cannot be read."""
    return Unread(change.status, resource_of(RECORDED[change.kind]))


def _key(record: Record) -> Key:
    return record.metadata.namespace, record.metadata.name


Document = dict[str, Any]

_ENCODER = msgspec.json.Encoder()
_POD = decoder_of(Pod)


class Line(NamedTuple):
    """The line of an object, and which object that is."""

    kind: str
    key: Key
    text: bytes


class Lines(NamedTuple):
    """Objects whose documents ``keeps`` wants are written as ``kept`` makes them, the others with least fields."""

    keeps: Keeps = lambda _kind, _record: False
    kept: Callable[[Document], Document] = lambda document: document

    def line(self, kind: Kind, record: Record, json: Json, api_version: str) -> bytes:
        """The line of an object that was told as ``json``, as it is served in that version."""
        if kind.name in KINDS and not self.keeps(kind.name, record):
            return line_of(kind, minimized(record))
        return self.of_document({"apiVersion": api_version, "kind": kind.name, **parse_json(json)}).text

    def of_document(self, document: Document) -> Line:
        """The line of an object whose document is kept."""
        found = self.kept(document)
        metadata = found["metadata"]
        if found["kind"] == "Pod":
            found["status"] = status_of(_POD.decode(_ENCODER.encode(document)))
        if not metadata.get("namespace", "x"):
            found["metadata"] = metadata = {key: each for key, each in metadata.items() if key != "namespace"}
        key = (metadata.get("namespace") or "", metadata["name"])
        return Line(found["kind"], key, _ENCODER.encode(found))
