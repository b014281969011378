"""Objects to a cluster: sorted by kind, each object once, everything in the order of the input."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.cluster import FORBIDDEN, ClusterSnapshot, Unread
from kpreempt.model.event import EventHeader
from kpreempt.model.extra_fields import NO_EXTRAS, ExtraFields, ObjectKind
from kpreempt.model.kinds import KINDS, Kind
from kpreempt.model.meta import DEFAULT_NAMESPACE, SALT, AnnotatedMeta, ObjectMeta, Time
from kpreempt.model.pod import Pod, without_annotations
from kpreempt.snapshot.batches import Batch, batches_of_list, fixed_line, list_within
from kpreempt.snapshot.decode import (
    BadObjectError,
    Json,
    PodDecoder,
    Record,
    annotations_in,
    as_served,
    check_size,
    decode_carefully,
    decoder_of,
    is_later,
    parse_json,
)
from kpreempt.snapshot.kinds import COMPARED_KINDS, RECORDED, find_kind, resource_of
from kpreempt.snapshot.layouts import kubernetes_version, openshift_version
from kpreempt.snapshot.object_store import LACKING_ANNOTATIONS, LACKING_CONDITIONS, ObjectStore, StoredObject
from kpreempt.snapshot.wire_types import shown
from kpreempt.verdict import Assumption
from kpreempt.verdict.unread import LIST

_T = TypeVar("_T")

# Returns the part of a document that is kept for the reader of the cluster.
Packs = Callable[[dict[str, Any]], Any]
# Returns whether to keep the document of a record.
KeepDocument = Callable[[str, Record], bool]

# How kubectl and the API server begin an object, so that its end need not be searched for.
_COMMON_START = re.compile(
    rb'\{\s*"apiVersion":\s*"([\w./-]*)",\s*"kind":\s*"(\w*)",|\{\s*"kind":\s*"(\w*)",\s*"apiVersion":\s*"([\w./-]*)",'
)
_MAX_LISTS = 20
_HAS_ITEMS = re.compile(rb'"items"')
_OPENSHIFT = "config.openshift.io"


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What a request needs from a cluster in addition to what schedulers read, and what it can do without.

    ``keep_document`` gets the kind and the record of each object, and returns whether to keep its document next to the
    cluster, unmodified; documents may contain secrets and must not be written to any file. The
    ``extra_fields``, which plugins read, become part of the cluster.

    The rest applies to live clusters; a dump has what it has. Events are read ``with_events``, what autoscalers report
    ``with_autoscalers``, and what is reported on pods that end ``with_evictions``. Kinds without records
    (``COMPARED_KINDS``) are read if they are in ``compare_kinds``, by name, and only for ``keep_document``. Kinds in
    ``skip_kinds``, by name, are not read, as if there were none.
    """

    keep_document: KeepDocument | None = None
    extra_fields: ExtraFields = NO_EXTRAS
    with_events: bool = False
    with_autoscalers: bool = False
    with_evictions: bool = False
    compare_kinds: Collection[str] = ()
    skip_kinds: Container[str] = ()


NOTHING_MORE = Needs()


class _Header(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""


class NamedObject(msgspec.Struct, frozen=True):
    """The metadata of an object whose kind has no records."""

    metadata: ObjectMeta = ObjectMeta()


class _Annotated(msgspec.Struct, frozen=True):
    metadata: AnnotatedMeta = AnnotatedMeta()


_HEADER = msgspec.json.Decoder(_Header)
_EVENT_HEADER = msgspec.json.Decoder(EventHeader)
_ANNOTATED = msgspec.json.Decoder(_Annotated)
_NAME_DECODER = msgspec.json.Decoder(NamedObject)
# Kinds that no snapshot has but that are known to be namespaced.
_NAMESPACED = tuple((kind.name, kind.groups[0]) for kind in COMPARED_KINDS.values() if kind.is_namespaced)


class _KindStore:
    """The records of one kind, in order, each name once."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.records: list[Any] = []
        # By namespace and name.
        self.index_of: defaultdict[str, dict[str, int]] = defaultdict(dict)
        # The index from which records come from each source.
        self._starts: list[int] = []
        self._sources: list[str] = []

    @cached_property
    def decode(self) -> Callable[[Json], Any]:
        """Makes a record from JSON. Decoders take a while to build, and few clusters have objects of all kinds."""
        return decoder_of(self.kind.record).decode

    def begin(self, source: str) -> None:
        """Set the source of the next records."""
        if not self._sources or self._sources[-1] != source:
            self._starts.append(len(self.records))
            self._sources.append(source)

    def source_of(self, index: int) -> str:
        """Return the source of the record at ``index``."""
        return self._sources[bisect_right(self._starts, index) - 1]


class Collector:
    """Collects objects and builds the cluster.

    ``defaults_namespace`` puts objects without a namespace into ``default``, like kubectl. With ``skips_bad_objects``,
    objects that cannot be decoded are kept in ``skipped_objects`` instead of raised. ``assumptions`` are those that a
    dump was made with. ``keep_document`` returns whether to keep an object's document next to the cluster, as plain
    data; without it, none are kept. ``packs`` returns the part of a document to keep. The ``extra_fields``, which
    plugins read, become part of the cluster.
    """

    def __init__(
        self,
        *,
        defaults_namespace: bool,
        skips_bad_objects: bool = False,
        keep_document: KeepDocument | None = None,
        packs: Packs | None = None,
        extra_fields: ExtraFields = NO_EXTRAS,
    ) -> None:
        self.skipped_objects: list[InputError] = []
        self.assumptions: list[Assumption] = []
        self._defaults_namespace = defaults_namespace
        self._skips_bad_objects = skips_bad_objects
        self._keep_document = keep_document
        self._packs = packs
        self._object_store = ObjectStore(extra_fields, defaults_namespace=defaults_namespace)
        self._annotates = extra_fields.pod_annotations
        self._keeps_conditions = extra_fields.pod_conditions
        self._reads_extra_pod_fields = extra_fields.pod_annotations or extra_fields.pod_conditions
        # Sources written by kpreempt, and the indices of their pods, whose annotations and times of conditions are
        # missing.
        self._own_sources: set[str] = set()
        self._bare_pods: set[int] = set()
        # With the API version, by kind, namespace and name.
        self._documents: dict[tuple[str, str, str], tuple[str, Any]] = {}
        self._kind_stores = {kind.name: _KindStore(kind) for kind in KINDS.values()}
        self._pods = PodDecoder(keeps_conditions=extra_fields.pod_conditions)
        self._kind_stores["Pod"].decode = self._pods.decode
        self._skipped: Counter[str] = Counter()
        # By kind, with the source that could not read it.
        self._unread: dict[str, tuple[Unread, str]] = {}
        self._listed: set[str] = set()
        # Kinds of plugins, by ``ObjectKind.key``.
        self._kept_complete: set[str] = set()
        self._known_starts: dict[bytes, _Start] = {}
        self._latest_start: _Start | None = None
        self._source: str | None = None
        self._version = self._openshift = ""
        self._taken_at: datetime | None = None

    def add(self, batch: Batch, *, depth: int = 0) -> None:
        """Add the objects of a batch. Raises ``InputError``."""
        self._note_header(batch)
        if batch.source != self._source:
            self._source = batch.source
            for store in self._kind_stores.values():
                store.begin(batch.source)
        for index, json in enumerate(batch.objects):
            try:
                # The kind of an object, from its first bytes if it begins as usual.
                latest = self._latest_start
                if latest is not None and latest.begins(json):
                    object_type = latest.object_type
                else:
                    match = _COMMON_START.match(json)
                    if match is None:
                        name, api_version = _names(json, batch)
                        object_type = self._object_type(name, api_version)
                    else:
                        text = match[0]
                        start = self._known_starts.get(text)
                        if start is None:
                            found, group = match[2] or match[3] or b"", match[1] or match[4] or b""
                            start = _Start(
                                re.compile(re.escape(text)).match, self._object_type(found.decode(), group.decode())
                            )
                            self._known_starts[text] = start
                        self._latest_start = start
                        object_type = start.object_type
                if object_type.store is None:
                    self._keep_other(object_type, json)
                    self._skip(object_type, json, batch, index, depth)
                else:
                    self._take(object_type, object_type.store, json, batch, index)
            except BadObjectError as error:
                bad = error.at(batch.source, batch.line_of(index))
                if not self._skips_bad_objects:
                    raise bad from None
                self.skipped_objects.append(bad)

    def _note_header(self, batch: Batch) -> None:
        self._version = batch.version or self._version
        self._openshift = batch.openshift or self._openshift
        if batch.is_own:
            self._own_sources.add(batch.source)
        if batch.taken_at:
            try:
                self._taken_at = msgspec.convert(batch.taken_at, Time)
            except msgspec.ValidationError:
                problem = f'"{batch.taken_at[:40]}" is not a time'
                raise InputError(problem, source=batch.source, path="metadata.annotations") from None
        if batch.skipped:
            self._skipped.update(_header_value(batch, batch.skipped, dict[str, int]))
        if batch.assumptions:
            # The assumptions of a dump; old dumps describe kinds that were not read only in words.
            for each in _header_value(batch, batch.assumptions, list[Assumption]):
                if each.field != LIST or each.subject not in KINDS:
                    self.assumptions.append(each)
                elif f"({FORBIDDEN})" in each.message:
                    self.leave_out(each.subject, FORBIDDEN, batch.source)
        if batch.unread:
            for kind, why in _header_value(batch, batch.unread, dict[str, int | tuple[int, str]]).items():
                status, namespace = (why, "") if isinstance(why, int) else why
                self.leave_out(kind, status, batch.source, namespace)
        if batch.listed:
            self.note_listed(_header_value(batch, batch.listed, list[str]))

    def note_listed(self, kinds: Iterable[str]) -> None:
        """Record that these kinds were read completely; they do not count as skipped objects."""
        for kind in kinds:
            (self._listed if kind in RECORDED else self._kept_complete).add(kind)

    def leave_out(self, kind: str, status: int, source: str, namespace: str = "") -> None:
        """Record that some objects of the kind may be missing, because ``source`` got this HTTP status for them.

        ``source`` may be a common prefix of several sources' names. It has the objects of the ``namespace``, if given.
        """
        known = RECORDED.get(kind)
        if known is not None:
            self._unread[kind] = Unread(status, resource_of(known), namespace), source

    def forget(self, kind: str, api_version: str = "") -> None:
        """Remove all objects of a kind, because they are read again."""
        object_type = self._object_type(kind, api_version)
        if object_type.store is not None:
            object_type.store.records = []
            object_type.store.index_of.clear()
        if object_type.store is not None or kind in COMPARED_KINDS:
            self._documents = {key: document for key, document in self._documents.items() if key[0] != kind}
        if object_type.extra_fields is not None:
            self._object_store.forget(object_type.extra_fields)

    def cluster(self) -> ClusterSnapshot:
        """Build the cluster from all objects so far."""
        records: dict[str, Any] = {store.kind.field: store.records for store in self._kind_stores.values()}
        return ClusterSnapshot(
            **records,
            version=self._version or kubernetes_version(self._openshift),
            taken_at=self._taken_at,
            skipped={kind: count for kind, count in self._skipped.items() if kind not in self._listed},
            listed=tuple(sorted(self._listed - self._unread.keys())),
            # Another source may have what one source could not read.
            unread={
                kind: why
                for kind, (why, source) in self._unread.items()
                if (store := self._kind_stores.get(kind)) is None
                or all(store.source_of(index).startswith(source) for index in range(len(store.records)))
            },
            documents=self._object_store.documents(),
        )

    def lacking(self) -> list[Assumption]:
        """List what is wanted but unknown, because kpreempt's dumps do not keep it."""
        found = self._object_store.lacking(self._kept_complete) if self._own_sources else []
        if self._bare_pods and self._annotates:
            found.append(LACKING_ANNOTATIONS)
        if self._bare_pods and self._keeps_conditions:
            found.append(LACKING_CONDITIONS)
        return found

    def documents(self) -> list[Any]:
        """Return the kept documents in the order of the input, each with its kind and namespace, as packed."""
        return [packed for _, packed in self._documents.values()]

    def _object_type(self, name: str, api_version: str) -> _ObjectType:
        kind = find_kind(name, api_version)
        store = self._kind_stores[kind.name] if kind else None
        return _ObjectType(store, name, api_version, self._object_store.kind_of(name, api_version, kind))

    def _take(self, object_type: _ObjectType, store: _KindStore, json: Json, batch: Batch, index: int) -> None:
        """Decode an object and keep it, or decide between two of the same name."""
        if store.kind.reasons:
            try:
                is_kept = _EVENT_HEADER.decode(json).is_recorded
            except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
                is_kept = False
            if not is_kept:
                self._skipped[store.kind.name] += 1
                return
        if store.kind.annotation and not _has_annotation(json, store.kind.annotation):
            self._keep_other(object_type, json)
            self._skipped[store.kind.name] += 1
            return
        check_size(json)
        try:
            record = store.decode(json)
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
            record = decode_carefully(store.kind, json)
            if store.kind.record is Pod:
                record = self._pods.shared(record)
        record = as_served(record, object_type.api_version)
        meta = record.metadata
        if not meta.name:
            raise BadObjectError(f"{store.kind.name} {meta.namespace}".rstrip(), "metadata.name", "is missing")
        if not meta.namespace and store.kind.is_namespaced and self._defaults_namespace:
            meta = msgspec.structs.replace(meta, namespace=DEFAULT_NAMESPACE)
            record = msgspec.structs.replace(record, metadata=meta)
        if self._annotates and store.kind.record is Pod:
            self._pods.annotate(record, annotations_in(json))
        stored = self._extra_object(object_type, json, batch) if object_type.extra_fields is not None else None
        records = store.records
        at = store.index_of[meta.namespace].setdefault(meta.name, len(records))
        if at == len(records):
            records.append(record)
        else:
            self._settle(store, at, record, batch, index)
        if self._reads_extra_pod_fields and store.kind.record is Pod and records[at] is record:
            (self._bare_pods.add if batch.source in self._own_sources else self._bare_pods.discard)(at)
        # Of other objects, kpreempt's dumps have only what schedulers read.
        is_whole = batch.source not in self._own_sources or SALT.encode() in bytes(json)
        is_stored = records[at] is record and is_whole
        if is_stored and self._keep_document is not None and self._keep_document(store.kind.name, record):
            self._keep(store.kind.name, object_type.api_version or batch.api_version, meta, json)
        if stored is not None:
            kind, document = stored
            self._object_store.add_extra(kind, document, is_kept=records[at] is record)

    def _keep(self, kind: str, api_version: str, meta: ObjectMeta, json: Json) -> None:
        document = {"apiVersion": api_version, "kind": kind, **parse_json(json)}
        document["metadata"] = {**document["metadata"], "namespace": meta.namespace}
        packed = document if self._packs is None else self._packs(document)
        self._documents[kind, meta.namespace, meta.name] = document["apiVersion"], packed

    def _keep_other(self, object_type: _ObjectType, json: Json) -> None:
        """Keep the document of an object that is otherwise skipped, if requested."""
        kind = KINDS.get(object_type.name)
        if self._keep_document is None or (kind is not None and not kind.annotation):
            return
        try:
            record = _NAME_DECODER.decode(json)
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
            return
        meta = record.metadata
        if (
            self._defaults_namespace
            and not meta.namespace
            and (object_type.name, _group(object_type.api_version)) in _NAMESPACED
        ):
            meta = msgspec.structs.replace(meta, namespace=DEFAULT_NAMESPACE)
        key = (object_type.name, meta.namespace, meta.name)
        is_other = key in self._documents and _group(self._documents[key][0]) != _group(object_type.api_version)
        if not is_other and self._keep_document(object_type.name, msgspec.structs.replace(record, metadata=meta)):
            self._keep(object_type.name, object_type.api_version, meta, json)

    def _settle(self, store: _KindStore, at: int, record: Record, batch: Batch, index: int) -> None:
        known = store.records[at]
        is_own = batch.source in self._own_sources
        # For pods that differ at most in what kpreempt's dumps leave out: annotations, and most of their conditions.
        is_same_pod = (
            self._reads_extra_pod_fields
            and isinstance(record, Pod)
            and _without_conditions(without_annotations(record)) == _without_conditions(without_annotations(known))
        )
        if is_later(record, known) or (is_same_pod and at in self._bare_pods and not is_own):
            store.records[at] = record
        elif not is_later(known, record) and record != known and not (is_same_pod and is_own):
            other = store.source_of(at)
            there = f" and in {other}" if other != batch.source else ""
            name = f"{store.kind.name} {record.metadata.namespace}/{record.metadata.name}".replace(" /", " ")
            raise _duplicate(name, there, batch, index)

    def _skip(self, object_type: _ObjectType, json: Json, batch: Batch, index: int, depth: int) -> None:
        """Count an object of a kind that is not kept, or add the items of a list within a list."""
        top = list_within(json) if _HAS_ITEMS.search(json) else None
        if top is None:
            if object_type.name == "ClusterVersion" and _group(object_type.api_version) == _OPENSHIFT:
                self._openshift = openshift_version(parse_json(json)) or self._openshift
            stored = self._extra_object(object_type, json, batch)
            if stored is not None and not self._object_store.add(*stored):
                meta = stored[1].names.metadata
                raise _duplicate(
                    f"{object_type.name} {meta.namespace}/{meta.name}".replace(" /", " "), "", batch, index
                )
            # A kpreempt dump states the numbers itself.
            if batch.source not in self._own_sources or object_type.name not in COMPARED_KINDS:
                self._skipped[object_type.name] += 1
            return
        if depth >= _MAX_LISTS:
            raise BadObjectError(object_type.name, "", "is nested too deeply")
        for inner in batches_of_list(batch.source, top, fixed_line(batch.line_of(index))):
            self.add(inner, depth=depth + 1)

    def _extra_object(
        self, object_type: _ObjectType, json: Json, batch: Batch
    ) -> tuple[ObjectKind, StoredObject] | None:
        """Return an object ready to be filed, if it is wanted."""
        if object_type.extra_fields is None:
            return None
        version, is_own = object_type.api_version or batch.api_version, batch.source in self._own_sources
        return object_type.extra_fields, self._object_store.read(
            object_type.extra_fields, version, json, is_partial=is_own
        )


class _ObjectType(msgspec.Struct, frozen=True, gc=False):
    """The type of an object; ``store`` is ``None`` if the kind is not kept, ``extra_fields`` if no plugin reads it."""

    store: _KindStore | None
    name: str
    api_version: str
    extra_fields: ObjectKind | None


class _Start(NamedTuple):
    """The beginning of an object and the resulting type. Most objects begin like the previous one."""

    begins: Callable[[Json], object]
    object_type: _ObjectType


def _without_conditions(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[]))


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _duplicate(object_name: str, there: str, batch: Batch, index: int) -> InputError:
    return InputError(
        f"defined twice, here{there}, with different content and no resourceVersion that shows which is newer",
        source=batch.source,
        line=batch.line_of(index),
        object_name=object_name,
    )


def _names(json: Json, batch: Batch) -> tuple[str, str]:
    """Return kind and version of an object that does not begin with them."""
    try:
        header = _HEADER.decode(json)
    except (msgspec.ValidationError, UnicodeDecodeError):
        document = parse_json(json)
        if not isinstance(document, dict):
            raise BadObjectError("", "", f"expected an object, got {shown(document)}") from None
        field = next(key for key in ("kind", "apiVersion") if not isinstance(document.get(key, ""), str))
        raise BadObjectError("", field, f"expected a string, got {shown(document[field])}") from None
    except RecursionError:
        raise BadObjectError("", "", "is nested too deeply") from None
    name, api_version = header.kind or batch.kind, header.api_version or batch.api_version
    if not name:
        raise BadObjectError("", "kind", "is missing")
    return name, api_version


def _header_value(batch: Batch, text: str, kind: type[_T]) -> _T:
    """Parse a dump's statement about itself, which is JSON in an annotation. Raises ``InputError``."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problem = f'"{text[:40]}" was not written by kpreempt'
        raise InputError(problem, source=batch.source, path="metadata.annotations") from None


def _has_annotation(json: Json, annotation: str) -> bool:
    """Return whether an object has the annotation; ``False`` if it cannot be decoded."""
    if annotation.encode() not in bytes(json):
        return False
    try:
        return annotation in _ANNOTATED.decode(json).metadata.annotations
    except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        return False
