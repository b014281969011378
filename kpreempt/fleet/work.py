"""The work of a worker: reading one cluster once and running all queries of the plan. Independent of Dask."""

from __future__ import annotations

import gc
import os
import time
from typing import NamedTuple

from kpreempt.errors import InputError, UsageError
from kpreempt.fleet.dataset import Mark, encoded
from kpreempt.fleet.plan import KINDS, Plan, Query, Settings
from kpreempt.fleet.rows import TABLES, Rows, Tables, failure, no_rows, reason_of
from kpreempt.fleet.sources import Size, Target, staged, unpacked_size
from kpreempt.library.cluster import Cluster

# Estimated memory of a worker, per decompressed byte and per object of a snapshot; objects take the same memory once
# read, large or small. A third above measurements with 3,000 to 30,000 pods.
BASE_BYTES = 150 << 20
BYTES_PER_BYTE = 1.5
BYTES_PER_OBJECT = 10 << 10
_CERTAIN = [each.name for each in TABLES["verdicts"]].index("certain")
# Answers are thousands of records without reference cycles, so the garbage collector need not scan them.
_THRESHOLDS = (100_000, 50, 100)
HINT = "a worker with more memory: --worker-memory, or fewer --workers"


class Done(NamedTuple):
    """The result for a cluster: the files of its partition, the number of rows of some tables, time and memory."""

    cluster: str
    files: dict[str, bytes]
    answers: int
    failures: int
    bugs: int
    uncertain: int
    seconds: float
    peak_bytes: int
    worker: str
    has_failed: bool = False


class TooBigError(InputError):
    """A snapshot that needs more memory than a worker has."""


def need_of(size: Size) -> int:
    """Return the maximum memory, in bytes, that a worker needs for a snapshot of that size."""
    return BASE_BYTES + int(BYTES_PER_BYTE * size.num_bytes) + BYTES_PER_OBJECT * size.num_objects


def sweep_cluster(target: Target, plan: Plan, digest: str, memory: int) -> Done:
    """Run all queries against a cluster within ``memory`` bytes (0: unlimited). Only raises for bugs.

    A cluster that cannot be read, or is too big, results in one row of ``failures``.
    """
    start = time.monotonic()
    gc.set_threshold(*_THRESHOLDS)
    mark = Mark(digest, target.fingerprint)
    try:
        cluster, size = _loaded(target, plan.settings, memory)
        tables = _run_queries(cluster, size, target, plan)
        del cluster
    except Exception as error:
        reason = reason_of(error) | ({"reason": "TooBig"} if isinstance(error, TooBigError) else {})
        return failed(target, digest, **reason, seconds=time.monotonic() - start)
    finally:
        gc.collect()
    return Done(
        target.name,
        encoded(tables, mark),
        answers=len({each[1:3] for each in tables["verdicts"]}),
        failures=len(tables["failures"]),
        bugs=sum(each[3] == "Bug" for each in tables["failures"]),
        uncertain=sum(not each[_CERTAIN] for each in tables["verdicts"]),
        seconds=time.monotonic() - start,
        peak_bytes=_peak_bytes(),
        worker=str(os.getpid()),
    )


def failed(target: Target, digest: str, reason: str, message: str, hint: str = "", *, seconds: float = 0.0) -> Done:
    """Return the partition of a cluster that answers nothing."""
    tables = no_rows()
    tables["failures"].append(failure(target.name, reason, message, hint))
    tables["clusters"].append((target.name, target.source, None, None, None, None, None))
    files = encoded(tables, Mark(digest, target.fingerprint, has_failed=True))
    return Done(target.name, files, 0, 1, reason == "Bug", 0, seconds, _peak_bytes(), str(os.getpid()), has_failed=True)


def _loaded(target: Target, settings: Settings, memory: int) -> tuple[Cluster, int | None]:
    if target.context:
        context, skips = target.context, settings.skip_bad_objects
        cluster = Cluster.fetch(context=context, kubeconfig=target.kubeconfig, skip_bad_objects=skips, now=settings.now)
        return cluster, None
    with staged(target, settings.max_unpacked) as path:
        size = unpacked_size(path, settings.max_unpacked)
        if memory and need_of(size) > memory:
            needed, there = _in_words(need_of(size)), _in_words(memory)
            raise TooBigError(f"too big: needs about {needed}, but a worker has {there}", hint=HINT)
        loaded = Cluster.load(
            path,
            skip_bad_objects=settings.skip_bad_objects,
            max_unpacked=settings.max_unpacked,
            now=settings.now,
        )
        return loaded, size.num_bytes


def _run_queries(cluster: Cluster, size: int | None, target: Target, plan: Plan) -> Tables:
    tables = no_rows()
    snapshot = cluster.snapshot
    taken_at = snapshot.taken_at.isoformat() if snapshot.taken_at else None
    tables["clusters"].append(
        (target.name, target.source, snapshot.version, taken_at, len(snapshot.nodes), len(snapshot.pods), size)
    )
    for algorithm in plan.algorithms:
        decided = cluster.with_scheduler(algorithm)
        for query in plan.queries:
            for name, rows in _rows_of(decided, query, target.name, algorithm).items():
                tables[name] += rows
    return tables


def _rows_of(cluster: Cluster, query: Query, name: str, algorithm: str) -> Tables:
    rows = Rows(name, query.id, algorithm)
    try:
        KINDS[query.kind].run(cluster, query, rows)
        if not rows.tables["verdicts"]:
            raise UsageError("the query selects no pods")
    except MemoryError:
        raise
    except Exception as error:
        # Discard partial results.
        rows = Rows(name, query.id, algorithm)
        rows.fail(error)
    return rows.tables


def _peak_bytes() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _in_words(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def version_here() -> str:
    """Return the worker's version of kpreempt."""
    from kpreempt import __version__

    return __version__
