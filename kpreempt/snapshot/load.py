"""Snapshots: files of every form to one cluster, and merging clusters."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from kpreempt.errors import InputError, UsageError
from kpreempt.model.cluster import ABSENT, ClusterSnapshot, Unread
from kpreempt.model.extra_fields import NO_EXTRAS, ExtraFields
from kpreempt.model.frozen import NO_ENTRIES
from kpreempt.model.kinds import KINDS
from kpreempt.phases import NO_PHASES, Phases, timed_items
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.batches import Batch
from kpreempt.snapshot.collect import NOTHING_MORE, Collector, Needs
from kpreempt.snapshot.kinds import RECORDED, resource_of
from kpreempt.snapshot.layouts import DumpLayout, check_complete
from kpreempt.snapshot.read import read_batches
from kpreempt.snapshot.sources import STDIN, STDIN_NAME, Source, read_sources
from kpreempt.verdict import Assumption

if TYPE_CHECKING:
    from kpreempt.snapshot.recording.as_of import PastCluster

Progress = Callable[[str, float], None]


class Loaded(msgspec.Struct, frozen=True):
    """A cluster, and the invalid objects that were skipped.

    ``assumptions`` are those that dumps were made with. ``documents`` are the requested plain objects.
    """

    cluster: ClusterSnapshot
    skipped_objects: list[InputError]
    assumptions: list[Assumption] = []
    documents: list[dict[str, Any]] = []


def load_snapshot(
    paths: Sequence[str],
    *,
    stdin: BinaryIO | None = None,
    skip_bad_objects: bool = False,
    progress: Progress | None = None,
    phases: Phases = NO_PHASES,
    needs: Needs = NOTHING_MORE,
    input_limits: InputLimits | None = None,
    at: str | None = None,
) -> Loaded:
    """Read and merge files, directories and, for ``-``, ``stdin``. Unpacked bytes count for ``input_limits``.

    ``input_limits.skipped`` gets the files without objects and, with ``skip_bad_objects``, unreadable files, which are
    errors otherwise.

    ``progress`` gets the name of what is read and the share of it (0 to 1) that is done; ``phases`` gets ``read`` and
    ``decode``. If a kpreempt dump lacks data that plugins read, that is an assumption. For recordings, the result is
    the cluster ``at`` a time (``recording.as_of``), or at their end, without documents. Raises ``InputError``.
    """
    collector = Collector(
        defaults_namespace=True,
        skips_bad_objects=skip_bad_objects,
        keep_document=needs.keep_document,
        extra_fields=needs.extra_fields,
    )
    input_limits = input_limits or InputLimits()
    skipped = input_limits.skipped
    skipped.skips_bad = skip_bad_objects
    recordings = list(filter(_is_recording, paths))
    if at is not None and not recordings:
        raise UsageError("--at needs a recording", hint="--snapshot DIR, of kpreempt record --to DIR")
    past_clusters: list[PastCluster] = []
    with without_collection():
        for path in paths:
            if path in recordings:
                with phases.phase("read"):
                    from kpreempt.snapshot.recording.as_of import point_in_time, state_before  # noqa: PLC0415 - few are recordings

                    past_clusters.append(state_before(path, point_in_time(path, at), input_limits))
                with phases.phase("decode"):
                    for batch in past_clusters[-1].batches:
                        collector.add(batch)
                continue
            has_objects, layout, bad_before = False, DumpLayout(), len(skipped.bad)
            for source in timed_items(phases, "read", read_sources(path, stdin, input_limits)):
                batches = skipped.objects_of(source.name, _batches_of(source, layout))
                for batch in timed_items(phases, "read", batches):
                    has_objects = True
                    if progress is not None:
                        progress(source.name, batch.share)
                    with phases.phase("decode"):
                        collector.add(batch)
            for error in layout.errors():
                skipped.skip(error)
                skipped.files[:] = [each for each in skipped.files if each != error.source]
            if not has_objects:
                problem = InputError("contains no objects", source=STDIN_NAME if path == STDIN else path)
                raise next(iter(skipped.bad[bad_before:]), problem)
    with phases.phase("decode"):
        cluster = collector.cluster()
        # Kinds without objects count as ``unread`` unless the input claims to have them all.
        known = {*cluster.listed, *cluster.skipped}
        absent = {
            kind.name: Unread(ABSENT, resource_of(kind))
            for kind in RECORDED.values()
            if not getattr(cluster, kind.field, ()) and kind.name not in known
        }
        cluster = msgspec.structs.replace(cluster, unread={**absent, **cluster.unread})
    assumptions = [
        *collector.assumptions,
        *collector.lacking(),
        *(each for past in past_clusters for each in past.assumptions),
    ]
    if len(paths) == 1 and past_clusters and (orders := past_clusters[0].orders):
        # Pods in the order of each node, if known, else in the likely order.
        place_of = {key: place for order in orders.values() for place, key in enumerate(order.places) if key}
        pods = sorted(cluster.pods, key=lambda pod: place_of.get(pod.key, -1))
        cluster = msgspec.structs.replace(cluster, pods=pods, pod_orders=orders)
    return Loaded(cluster, collector.skipped_objects, assumptions, collector.documents())


def _batches_of(source: Source, layout: DumpLayout) -> Iterator[Batch]:
    check_complete(source)
    yield from read_batches(source, layout)


def _is_recording(path: str) -> bool:
    if path == STDIN or not os.path.isdir(path):  # noqa: PTH112 - a path may hold a NUL
        return False
    from kpreempt.snapshot.recording.segments import is_recording  # noqa: PLC0415 - few inputs are folders

    return is_recording(path)


def cluster_from_json(
    items: Iterable[bytes | msgspec.Raw], source: str, extra_fields: ExtraFields = NO_EXTRAS
) -> ClusterSnapshot:
    """Build the cluster from JSON objects, in order; ``source`` is used in errors.

    Namespaces are not defaulted: an object without one has none. Raises ``InputError``.
    """
    collector = Collector(defaults_namespace=False, extra_fields=extra_fields)
    collector.add(Batch(source, list(items), lambda _: 0))
    return collector.cluster()


# Whether the garbage collector was enabled before each block that disables it; there may be several threads.
_RAN_BEFORE: list[bool] = []
_COLLECTION_LOCK = Lock()


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable the cyclic garbage collector, which would scan all the records repeatedly."""
    with _COLLECTION_LOCK:
        _RAN_BEFORE.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _COLLECTION_LOCK:
            # The first entry is the last to be removed, whichever block ends last.
            if _RAN_BEFORE.pop():
                gc.enable()


def merge_clusters(base: ClusterSnapshot, over: ClusterSnapshot) -> ClusterSnapshot:
    """Add the objects of ``over`` to ``base``: those of the same identity are replaced in place, new ones come last.

    The identity is kind, namespace and name. Version and time of ``base`` are kept, if it has them. A kind that
    ``base`` was taken without remains incomplete.
    """
    changes: dict[str, Any] = {}
    for kind in KINDS.values():
        added = getattr(over, kind.field)
        if added:
            changes[kind.field] = _laid_over(
                getattr(base, kind.field), added, lambda each: (each.metadata.namespace, each.metadata.name)
            )
    documents = {
        key: _laid_over(
            base.documents.get(key, []),
            over.documents.get(key, []),
            lambda document: (document["metadata"].get("namespace") or "", document["metadata"]["name"]),
        )
        for key in {**base.documents, **over.documents}
    }
    return msgspec.structs.replace(
        base,
        **changes,
        version=base.version or over.version,
        taken_at=base.taken_at or over.taken_at,
        skipped=dict(Counter(base.skipped) + Counter(over.skipped)),
        documents=documents or NO_ENTRIES,
    )


def _laid_over(below: list[Any], above: list[Any], identity: Callable[[Any], tuple[str, str]]) -> list[Any]:
    latest = {identity(each): each for each in above}
    return [*[latest.pop(identity(each), each) for each in below], *latest.values()]
