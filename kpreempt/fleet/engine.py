"""Runs a sweep with Dask: a task for each cluster, on local workers or on an existing Dask cluster.

A worker that dies is replaced and its task repeated a few times; a cluster that kills every worker is a failure.
"""

from __future__ import annotations

import gc
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import msgspec

from kpreempt.errors import KpreemptError, UsageError
from kpreempt.fleet import imported
from kpreempt.fleet.plan import Plan
from kpreempt.fleet.sources import Size, Target
from kpreempt.fleet.work import HINT, Done, failed, need_of, sweep_cluster, version_here

_SECONDS_BETWEEN_CHECKS = 2
# After this long without a running worker, tasks are handed out again, or the sweep fails.
_SECONDS_WITHOUT_WORK = 20
_MAX_LOSSES = 5
_SECONDS_TO_CONNECT = 30
# A cluster that ends more workers than this is retried alone.
_DEATHS = 1
_KILLED = "each worker that ran it alone died, perhaps for lack of memory"
# The share of this machine's memory for all workers.
_SHARE = 0.85
# The share of a worker's memory that a task may be estimated to need; above it, Dask ends the worker.
USABLE = 0.9
# Tasks in flight per thread.
_AHEAD = 2
# A typical snapshot, for which each worker should have memory.
_DEFAULT_SIZE = Size(32 << 20, 10_000)
_LOGGERS = (
    "distributed",
    "distributed.worker",
    "distributed.nanny",
    "distributed.scheduler",
    "distributed.core",
    "distributed.comm",
    "distributed.client",
    "distributed.batched",
    "bokeh",
    "tornado",
)


class Workers(msgspec.Struct, frozen=True):
    """The workers: at an ``address``, or ``number`` local processes with ``memory`` bytes each; 0 is as many as fit."""

    address: str = ""
    number: int = 0
    memory: int = 0


Report = Callable[[str], None]


@contextmanager
def connected(workers: Workers, num_targets: int, report: Report) -> Iterator[Any]:
    """Yield a client of the workers; local workers end with the block. Raises ``KpreemptError``."""
    distributed = imported("distributed")
    # Dask's log messages about workers that start and end are replaced by our own rows and lines.
    for each in _LOGGERS:
        logging.getLogger(each).setLevel(logging.CRITICAL)
    if workers.address:
        with _remote(distributed, workers.address) as client:
            report(f"workers: {len(client.scheduler_info(n_workers=-1)['workers'])} at {workers.address}")
            report(f"dashboard: {client.dashboard_link}")
            yield client
        return
    dask = imported("dask")
    number, memory = _local(workers, num_targets)
    settings = {
        # Every answer leaves a worker at once: above the limit the worker is ended, and nothing else helps.
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.terminate": 0.95,
        "distributed.scheduler.allowed-failures": _DEATHS,
        "distributed.scheduler.work-stealing": False,
        # No one watches the workers' tasks in real time, and watching slows them down.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.system-monitor.interval": "5s",
        "distributed.admin.tick.interval": "1s",
        # An answer of a worker that died is computed again instead of waited for.
        "distributed.comm.timeouts.connect": "3s",
    }
    with dask.config.set(settings):
        try:
            cluster = distributed.LocalCluster(
                n_workers=number,
                threads_per_worker=1,
                memory_limit=memory,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
        except (OSError, RuntimeError, TimeoutError) as error:
            raise KpreemptError(f"cannot start workers: {error}", hint="--workers 1") from None
        with cluster, distributed.Client(cluster) as client:
            report(f"workers: {number} with {memory / 2**30:.1f} GiB each")
            report(f"dashboard: {client.dashboard_link}")
            yield client


def swept(client: Any, plan: Plan, targets: Sequence[Target]) -> Iterator[Done]:
    """Yield the result of each cluster as it completes.

    Raises ``KpreemptError`` if the scheduler or all workers are gone.
    """
    yield from _Sweep(client, plan).done(targets)


class _Sweep:
    """The tasks in flight; each worker has its next task ready when one ends.

    Dask blames all tasks of a worker that dies, including the next one. Blamed tasks are retried alone at the end.
    """

    def __init__(self, client: Any, plan: Plan) -> None:
        self._client = client
        self._packed = _packed(plan)
        self._digest = plan.digest
        self._running: dict[Any, Target] = {}
        self._num_tasks = 0
        self._quiet_checks = 0
        self._num_losses = 0
        self._threads = 0
        self._known_until = 0.0

    def done(self, targets: Sequence[Target]) -> Iterator[Done]:
        """Yield the result of each target in order of completion."""
        waiting, suspects = list(reversed(targets)), []
        self._fill(waiting)
        while waiting or self._running:
            ended = list(self._completed())
            # The caller takes a while with each result; keep all workers busy meanwhile.
            self._fill(waiting)
            for target, result in ended:
                if result is None:
                    suspects.append(target)
                else:
                    yield result
        for target in suspects:
            self._submit(target)
            while self._running:
                for _, result in self._completed():
                    yield failed(target, self._digest, "Killed", _KILLED, HINT) if result is None else result

    def _fill(self, waiting: list[Target]) -> None:
        while waiting and len(self._running) < _AHEAD * self._num_threads():
            self._submit(waiting.pop())

    def _submit(self, target: Target) -> None:
        self._num_tasks += 1
        key = f"kpreempt-{self._digest[:8]}-{self._num_tasks}-{target.name}"
        future = self._client.submit(_task, target, self._packed, self._digest, pure=False, key=key)
        self._running[future] = target

    def _num_threads(self) -> int:
        """Return the number of threads that work, as last known: querying the scheduler takes time."""
        now = time.monotonic()
        if not self._threads or now >= self._known_until:
            self._threads = sum(map(int, self._client.nthreads().values()))
            self._known_until = now + _SECONDS_BETWEEN_CHECKS
        return self._threads

    def _completed(self) -> Iterator[tuple[Target, Done | None]]:
        """Yield the targets that have ended by now, or soon; the result is ``None`` if a worker died."""
        distributed = imported("distributed")
        if not self._running:
            # No thread is available.
            self._check()
            time.sleep(_SECONDS_BETWEEN_CHECKS)
            return
        try:
            ended = distributed.wait(
                list(self._running), timeout=_SECONDS_BETWEEN_CHECKS, return_when="FIRST_COMPLETED"
            ).done
        except TimeoutError:
            self._check()
            return
        except Exception as error:
            raise _scheduler_lost() from error
        self._quiet_checks = 0
        for future in ended:
            target = self._running.pop(future)
            yield target, self._result(future, target)
            future.release()

    def _result(self, future: Any, target: Target) -> Done | None:
        distributed = imported("distributed")
        try:
            return future.result()  # type: ignore[no-any-return]
        except distributed.KilledWorker:
            return None
        except Exception as error:
            if future.cancelled() or self._client.status != "running":
                raise _scheduler_lost() from None
            return failed(target, self._digest, "Bug", f"{type(error).__name__} in a worker")

    def _check(self) -> None:
        """After a while without results, hand out tasks again that no worker has."""
        try:
            working = self._client.processing()
        except Exception:
            raise _scheduler_lost() from None
        self._quiet_checks = 0 if any(working.values()) else self._quiet_checks + 1
        if self._quiet_checks * _SECONDS_BETWEEN_CHECKS < _SECONDS_WITHOUT_WORK:
            return
        if not working:
            raise KpreemptError("no workers left", hint="--resume, once there are workers again")
        self._quiet_checks = 0
        self._num_losses += 1
        if self._num_losses > _MAX_LOSSES:
            raise KpreemptError("the Dask scheduler lost tasks", hint="--resume, with other workers")
        for future, target in list(self._running.items()):
            del self._running[future]
            future.cancel()
            self._submit(target)


def _scheduler_lost() -> KpreemptError:
    return KpreemptError("lost the Dask scheduler", hint="--resume, once it is running again")


def _task(target: Target, packed: bytes, digest: str) -> Done:
    _settle()
    # The memory in bytes that a task of this worker may use.
    worker = imported("distributed").get_worker()
    limit = worker.memory_manager.memory_limit or imported("distributed.system").MEMORY_LIMIT
    return sweep_cluster(target, _unpacked(packed), digest, int(limit * USABLE / max(worker.state.nthreads, 1)))


def _packed(plan: Plan) -> bytes:
    """Compress the plan that goes with each task; queries repeat their manifests, so it becomes small."""
    return zlib.compress(msgspec.json.encode(plan))


@lru_cache(maxsize=1)
def _settle() -> None:
    """Exempt what a worker has loaded so far from garbage collection, which runs after each cluster."""
    gc.collect()
    gc.freeze()


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Plan:
    return msgspec.json.decode(zlib.decompress(packed), type=Plan)


@contextmanager
def _remote(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError, TimeoutError) as error:
        text = str(error).partition("\n")[0]
        raise UsageError(f"--scheduler {address}: {text}", hint="tcp://HOST:8786") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_SECONDS_TO_CONNECT)
        except TimeoutError:
            raise UsageError(f"--scheduler {address}: no workers", hint=f"dask worker {address}") from None
        mine = version_here()
        for worker, version in client.run(version_here, on_error="return").items():
            if version != mine:
                text = version if isinstance(version, str) else "none"
                raise UsageError(
                    f"--scheduler {address}: worker {worker} has kpreempt {text}, this is {mine}",
                    hint="the same version everywhere, with kpreempt[fleet]",
                )
        yield client


def _local(workers: Workers, num_targets: int) -> tuple[int, int]:
    """Return the number of workers and the bytes of each, limited by CPUs, memory and clusters."""
    total = int(imported("distributed.system").MEMORY_LIMIT * _SHARE)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    least = workers.memory or need_of(_DEFAULT_SIZE)
    number = workers.number or max(min(cores, num_targets, total // least), 1)
    return number, workers.memory or total // number
