"""Dask does the work: a task for each cluster, on workers of this machine or of a cluster of Dask's that exists.

A worker that dies is replaced, and its task is done again, some times; a cluster that kills each of them is a failure.
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
# After so long without a worker that works, tasks are handed out anew, or there is none left.
_SECONDS_WITHOUT_WORK = 20
_MAX_LOSSES = 5
_SECONDS_TO_CONNECT = 30
# A cluster that ends one worker more than this is under suspicion.
_DEATHS = 1
_KILLED = "it ended each worker that had it alone, perhaps for want of memory"
# Of this machine's memory, what workers may have together.
_SHARE = 0.85
# Of its memory, what a task may be reckoned to need: above it Dask ends the worker.
USABLE = 0.9
# Tasks under way for each thread.
_AHEAD = 2
# A snapshot as most are, for which each worker is to have memory.
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
    """Who works: at an ``address``, or ``number`` processes here with ``memory`` bytes each; 0 is as many as fit."""

    address: str = ""
    number: int = 0
    memory: int = 0


Reporter = Callable[[str], None]


@contextmanager
def connected(workers: Workers, num_targets: int, tell: Reporter) -> Iterator[Any]:
    """A client of the workers; those that were started here are gone afterwards. Raises ``KpreemptError``."""
    distributed = imported("distributed")
    # What Dask logs of workers that come and go is told in rows and lines of our own.
    for each in _LOGGERS:
        logging.getLogger(each).setLevel(logging.CRITICAL)
    if workers.address:
        with _remote(distributed, workers.address) as client:
            tell(f"workers: {len(client.scheduler_info(n_workers=-1)['workers'])} at {workers.address}")
            tell(f"dashboard: {client.dashboard_link}")
            yield client
        return
    dask = imported("dask")
    number, memory = _local(workers, num_targets)
    settings = {
        # Every answer leaves a worker at once: above the bound it is ended, and nothing else helps.
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.terminate": 0.95,
        "distributed.scheduler.allowed-failures": _DEATHS,
        "distributed.scheduler.work-stealing": False,
        # Nobody looks at what they are doing at each moment, and looking takes turns with doing it.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.system-monitor.interval": "5s",
        "distributed.admin.tick.interval": "1s",
        # An answer of a worker that has died is not waited for: it is worked out again.
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
            raise KpreemptError(f"no workers can be started: {error}", hint="--workers 1") from None
        with cluster, distributed.Client(cluster) as client:
            tell(f"workers: {number} with {memory / 2**30:.1f} GiB each")
            tell(f"dashboard: {client.dashboard_link}")
            yield client


def swept(client: Any, plan: Plan, targets: Sequence[Target]) -> Iterator[Done]:
    """What becomes of each cluster, as each is done. Raises ``KpreemptError`` where scheduler or workers are gone."""
    yield from _Sweep(client, plan).done(targets)


class _Sweep:
    """The tasks under way, of which each worker has the next one there when one ends.

    Dask blames all tasks of a worker that dies, the next one with them. Whoever is blamed is tried once more at the
    end, alone.
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
        """What becomes of each, in the order in which they end."""
        waiting, suspects = list(reversed(targets)), []
        self._fill(waiting)
        while waiting or self._running:
            ended = list(self._ended())
            # Whoever hears of these takes a while over them, in which no worker is to be idle.
            self._fill(waiting)
            for target, result in ended:
                if result is None:
                    suspects.append(target)
                else:
                    yield result
        for target in suspects:
            self._submit(target)
            while self._running:
                for _, result in self._ended():
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
        """The threads that work, as far as that is known: to ask the scheduler takes its time."""
        now = time.monotonic()
        if not self._threads or now >= self._known_until:
            self._threads = sum(map(int, self._client.nthreads().values()))
            self._known_until = now + _SECONDS_BETWEEN_CHECKS
        return self._threads

    def _ended(self) -> Iterator[tuple[Target, Done | None]]:
        """Those that have ended by now, or soon; without a result where a worker died of it."""
        distributed = imported("distributed")
        if not self._running:
            # No thread is there.
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
            raise _gone() from error
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
                raise _gone() from None
            return failed(target, self._digest, "Bug", f"{type(error).__name__} in a worker")

    def _check(self) -> None:
        """Nothing has ended for a while: tasks that no worker has are handed out anew."""
        try:
            working = self._client.processing()
        except Exception:
            raise _gone() from None
        self._quiet_checks = 0 if any(working.values()) else self._quiet_checks + 1
        if self._quiet_checks * _SECONDS_BETWEEN_CHECKS < _SECONDS_WITHOUT_WORK:
            return
        if not working:
            raise KpreemptError("no worker is left", hint="--resume, once there are workers again")
        self._quiet_checks = 0
        self._num_losses += 1
        if self._num_losses > _MAX_LOSSES:
            raise KpreemptError("the Dask scheduler loses tasks", hint="--resume, with other workers")
        for future, target in list(self._running.items()):
            del self._running[future]
            future.cancel()
            self._submit(target)


def _gone() -> KpreemptError:
    return KpreemptError("the Dask scheduler is gone", hint="--resume, once it is there again")


def _task(target: Target, packed: bytes, digest: str) -> Done:
    _settle()
    # The bytes that a task of this worker may take.
    worker = imported("distributed").get_worker()
    limit = worker.memory_manager.memory_limit or imported("distributed.system").MEMORY_LIMIT
    return sweep_cluster(target, _unpacked(packed), digest, int(limit * USABLE / max(worker.state.nthreads, 1)))


def _packed(plan: Plan) -> bytes:
    """The plan for each task: queries repeat their manifests, so that it is small."""
    return zlib.compress(msgspec.json.encode(plan))


@lru_cache(maxsize=1)
def _settle() -> None:
    """What a worker has loaded by now stays: nobody need look through it after each cluster."""
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
        told = str(error).partition("\n")[0]
        raise UsageError(f"--scheduler {address}: {told}", hint="tcp://HOST:8786") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_SECONDS_TO_CONNECT)
        except TimeoutError:
            raise UsageError(f"--scheduler {address}: no worker is there", hint=f"dask worker {address}") from None
        mine = version_here()
        for worker, version in client.run(version_here, on_error="return").items():
            if version != mine:
                told = version if isinstance(version, str) else "none"
                raise UsageError(
                    f"--scheduler {address}: the worker {worker} has kpreempt {told}, and this is {mine}",
                    hint="the same version everywhere, with kpreempt[fleet]",
                )
        yield client


def _local(workers: Workers, num_targets: int) -> tuple[int, int]:
    """How many workers, and the bytes of each: as many as there are cores, memory for them, and clusters."""
    total = int(imported("distributed.system").MEMORY_LIMIT * _SHARE)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    least = workers.memory or need_of(_DEFAULT_SIZE)
    number = workers.number or max(min(cores, num_targets, total // least), 1)
    return number, workers.memory or total // number
