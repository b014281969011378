"""A redacted recording: each name has the same token everywhere, and all times are shifted by the same amount.

Tokens that sort like the names need all names at once, so a recording is redacted afterwards, not while it is written:
one pass collects data about all objects, one collects their names, and one writes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec

from kpreempt.errors import InputError
from kpreempt.files import name_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kinds import KINDS
from kpreempt.model.pod import Pod
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.decode import BadObjectError, Record, record_of
from kpreempt.snapshot.kinds import COMPARED_KINDS
from kpreempt.snapshot.recording.changes import BaseEnd, Change, ChangeType, Order
from kpreempt.snapshot.recording.pods import pod_line, redacted_rejection
from kpreempt.snapshot.recording.segments import (
    END,
    Limits,
    Segment,
    Segments,
    is_recording,
    object_name_of_line,
    segments_in,
)
from kpreempt.snapshot.redact import Redaction
from kpreempt.snapshot.redact.spaces import KnownNames, RoundedImages, public_version
from kpreempt.snapshot.write import DumpHeader, header_line, line_of
from kpreempt.version import __version__

_T = TypeVar("_T")

_TOGETHER = 4096
_UNKNOWN = BadObjectError("", "", "refers to an object that the recording does not have")
# The result is not larger than its source.
_NO_LIMITS = Limits(keep=timedelta.max, max_size=2**62, base_every=timedelta.max)


class Images(NamedTuple):
    """``add`` receives pods, one cluster at a time; ``of`` returns the images of a node that any of them names."""

    add: Callable[[ClusterSnapshot], None]
    of: RoundedImages


def redact_recording(folder: str, to: str, key: bytes, images: Images) -> Redaction:
    """Write a redacted copy of the recording in ``folder``, and return its tokens.

    ``key`` is that of ``Redaction``. Raises ``InputError``, also if ``to`` already contains a recording.
    """
    paths = segments_in(folder)
    if not paths:
        raise InputError("not a recording", source=name_of(folder), hint="use kpreempt record --to DIR")
    if is_recording(to):
        raise InputError("already contains a recording", source=name_of(to), hint="--to another directory")
    known, end, kinds = KnownNames(), Segment(paths[0]).end.taken_at, set[str]()
    for segment in map(Segment, paths):
        kinds |= segment.header_cluster()[0].skipped.keys()
        end = max([end, segment.end.taken_at, *(change.seen for change in segment.changes())])
        for records in _together(_records(segment)):
            by_kind: dict[str, list[Record]] = {}
            for each in records:
                by_kind.setdefault(_FIELD_OF[type(each)], []).append(each)
            cluster = ClusterSnapshot(**by_kind)  # type: ignore[arg-type]
            known.add(cluster)
            images.add(cluster)
    every = (record for path in paths for record in _records(Segment(path)))
    redaction = Redaction(every, known, end, key, images.of, kinds=kinds)
    _Writer(redaction).write(map(Segment, paths), to)
    return redaction


def _together(items: Iterable[_T]) -> Iterator[list[_T]]:
    remaining = iter(items)
    while found := list(islice(remaining, _TOGETHER)):
        yield found


_FIELD_OF = {kind.record: kind.field for kind in KINDS.values()}


def _records(segment: Segment) -> Iterator[Record]:
    """Yield all objects of a segment, each in its state after every change."""
    for kind, line in _lines(segment):
        yield record_of(KINDS[kind], line)
    for change in segment.changes():
        if change.what in (ChangeType.ADDED, ChangeType.MODIFIED) and change.kind in KINDS:
            yield record_of(KINDS[change.kind], change.object)


def _lines(segment: Segment) -> Iterator[tuple[str, bytes]]:
    for line in segment.base(InputLimits()):
        kind = object_name_of_line(line).kind
        if kind in KINDS:
            yield kind, line


class _Writer:
    """Writes redacted segments; texts that are only compared are numbered across all segments."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._holders: dict[str, str] = {"": ""}
        self._rejections: dict[str, int] = {}

    def write(self, segments: Iterable[Segment], to: str) -> None:
        """Write all segments. Raises ``InputError``."""
        written = Segments(to, _NO_LIMITS)
        is_complete = True
        try:
            for segment in segments:
                end = self._end(segment)
                # What follows damaged data does not continue it.
                written.begin(
                    self._base(segment), msgspec.structs.replace(end, continues=end.continues and is_complete)
                )
                recorded = (each for each in segment.changes() if each.kind not in COMPARED_KINDS)
                for changes in _together(self._change(segment, each) for each in recorded):
                    written.append(changes)
                is_complete = segment.damage is None
        finally:
            written.close()

    def _base(self, segment: Segment) -> Iterator[bytes]:
        cluster, assumptions = segment.header_cluster()
        redaction = self._redaction
        yield header_line(
            DumpHeader(
                server_version=public_version(cluster.version),
                taken_at=redaction.time(segment.end.taken_at),
                kpreempt_version=__version__,
                skipped=redaction.skipped(cluster.skipped),
                assumptions=redaction.assumptions(assumptions),
                unread={kind: each for kind, each in cluster.unread.items() if kind in KINDS},
                listed=[kind for kind in cluster.listed if kind in KINDS],
            )
        )
        for kind, line in _lines(segment):
            yield self._line(kind, line)

    def _end(self, segment: Segment) -> BaseEnd:
        end = segment.end
        try:
            orders = {
                self._redaction.key("Node", "", node)[1]: Order(
                    [each and self._pod(each) for each in order.places], [self._pod(each) for each in order.unplaced]
                )
                for node, order in end.orders.items()
            }
        except KeyError:
            raise segment.bad_line(_UNKNOWN, END) from None
        versions: Mapping[str, int] = {
            label: each for label, each in end.versions.items() if label not in COMPARED_KINDS
        }
        return BaseEnd(
            versions=versions,
            taken_at=self._redaction.time(end.taken_at),
            holder=self._holder(end.holder),
            orders=orders,
            continues=end.continues,
        )

    def _pod(self, key: str) -> str:
        namespace, _, name = key.partition("/")
        return "/".join(self._redaction.key("Pod", namespace, name))

    def _holder(self, identity: str) -> str:
        return self._holders.setdefault(identity, f"holder-{len(self._holders)}")

    def _change(self, segment: Segment, change: Change) -> Change:
        seen = self._redaction.time(change.seen)
        if change.what is ChangeType.SCHEDULER:
            return msgspec.structs.replace(change, seen=seen, name=self._holder(change.name))
        if not change.name:
            return msgspec.structs.replace(change, seen=seen)
        try:
            namespace, name = self._redaction.key(change.kind, change.namespace, change.name)
        except KeyError:
            raise segment.bad_line(_UNKNOWN) from None
        line = (
            change.object if change.what is ChangeType.DELETED else msgspec.Raw(self._line(change.kind, change.object))
        )
        return msgspec.structs.replace(change, seen=seen, namespace=namespace, name=name, object=line)

    def _line(self, kind: str, line: bytes | msgspec.Raw) -> bytes:
        record = self._redaction.record(record_of(KINDS[kind], line))
        if isinstance(record, Pod) and (rejection := pod_line(line).rejection):
            message = redacted_rejection(rejection, self._rejections.setdefault(rejection, len(self._rejections) + 1))
            conditions = [
                msgspec.structs.replace(each, message=message) if each.type == "PodScheduled" else each
                for each in record.status.conditions
            ]
            record = msgspec.structs.replace(
                record, status=msgspec.structs.replace(record.status, conditions=conditions)
            )
        return line_of(KINDS[kind], record)
