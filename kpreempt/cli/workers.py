"""Work spread over worker processes, with the same results in the same order."""

from __future__ import annotations

import gc
import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from kpreempt.cli.output import Stopwatch
from kpreempt.errors import KpreemptError

Item = TypeVar("Item")
Result = TypeVar("Result")

# Forking pays off once more work remains than this process alone did in this many seconds.
PATIENCE_SECONDS = 0.5
_HINT = "--jobs 1, which needs less memory"
# How many results per worker may wait for an earlier one.
_MAX_WAITING = 4


def num_cores() -> int:
    """Return the number of CPUs that this process may use; 1 if processes cannot share loaded data."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def in_order(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    jobs: int,
    *,
    patience: float | None = None,
    shared: Sequence[object] = (),
) -> Iterator[Result]:
    """Yield the result of ``work`` for each item in order, as soon as it and all earlier ones are done.

    This process works alone for ``patience`` seconds (default ``PATIENCE_SECONDS``; 0 for not at all). Then it forks,
    so that ``jobs`` workers share everything loaded by then. ``items`` are not read far ahead. Items and results must
    be picklable, except for objects in ``shared``, which exist in all processes and are not sent. Raises what ``items``
    and ``work`` raise, and ``KpreemptError`` if a worker is killed, cannot be started, or runs out of memory.
    """
    iterator = iter(items)
    patience = PATIENCE_SECONDS if patience is None else patience
    spent = 0.0
    if jobs > 1 and not patience:
        yield from _Workers(iterator, work, jobs, shared).results()
        return
    for item in iterator:
        start = time.monotonic()
        result = work(item)
        spent += time.monotonic() - start
        yield result
        if jobs > 1 and spent >= patience:
            yield from _Workers(iterator, work, jobs, shared).results()
            return


class Spread:
    """``in_order`` for work that reports its times to a stopwatch; the times of worker processes are added to it."""

    def __init__(self, stopwatch: Stopwatch, jobs: int | None) -> None:
        """``jobs`` defaults to the number of CPUs."""
        self._stopwatch = stopwatch
        self._jobs = num_cores() if jobs is None else jobs

    def __call__(
        self,
        items: Iterable[Item],
        work: Callable[[Item], Result],
        /,
        *,
        is_long: bool = False,
        shared: Sequence[object] = (),
    ) -> Iterator[Result]:
        """Yield the result of ``work`` for each item in order; if items are ``is_long``, fork at once."""

        def measured(item: Item) -> tuple[Result, dict[str, float], int]:
            before = dict(self._stopwatch.seconds)
            result = work(item)
            after = self._stopwatch.seconds
            return result, {name: after[name] - before.get(name, 0.0) for name in after}, os.getpid()

        for result, seconds, process in in_order(
            items, measured, self._jobs, patience=0.0 if is_long else None, shared=shared
        ):
            if process != os.getpid():
                self._stopwatch.add(seconds)
            yield result


class _Failed(Generic[Item]):
    """An item whose work failed. This process repeats it to raise the error."""

    def __init__(self, item: Item) -> None:
        self.item = item


class _Workers(Generic[Item, Result]):
    """Worker processes, each with a thread that reads the next item, sends it and waits for its result."""

    def __init__(
        self, items: Iterator[Item], work: Callable[[Item], Result], jobs: int, shared: Sequence[object]
    ) -> None:
        self._items = enumerate(items)
        self._work = work
        self._jobs = jobs
        self._shared = shared
        self._reading = threading.Lock()
        self._changed = threading.Condition()
        self._results: dict[int, Result | _Failed[Item]] = {}
        # The number of items read, the index of the next result, and the index after the last item.
        self._num_read = 0
        self._next = 0
        self._end: int | None = None
        self._failure: BaseException | None = None
        self._is_stopped = False

    def results(self) -> Iterator[Result]:
        """Yield all results in order. The processes end with this generator, however it ends."""
        with ExitStack() as stack:
            try:
                context = multiprocessing.get_context("fork")
                pairs = [context.Pipe() for _ in range(self._jobs)]
                mine = [own for own, _ in pairs]
                for _, theirs in pairs:
                    process = context.Process(
                        target=_serve, args=(theirs, self._work, pairs, self._shared), daemon=True
                    )
                    process.start()
                    stack.callback(_end, process)
                for _, theirs in pairs:
                    theirs.close()
                for connection in mine:
                    threading.Thread(target=self._feed, args=(connection,), daemon=True).start()
            except (OSError, RuntimeError) as error:
                # Too little memory, or too many processes, files or threads.
                raise KpreemptError(f"cannot start a worker process: {error}", hint=_HINT) from None
            stack.callback(self._stop)
            while (found := self._await_next()) is not None:
                result = found[0]
                yield self._work(result.item) if isinstance(result, _Failed) else result

    def _await_next(self) -> tuple[Result | _Failed[Item]] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._next in self._results or self._next == self._end)
            if self._next in self._results:
                result = self._results.pop(self._next)
                self._next += 1
                self._changed.notify_all()
                return (result,)
            if self._failure is not None:
                raise self._failure
            return None

    def _feed(self, connection: Connection) -> None:
        """Send items and receive results until there are no more; every failure is reported to ``results``."""
        index = 0
        try:
            while (item := self._take()) is not None:
                index, value = item
                connection.send(value)
                is_done, result = _Unpickler(io.BytesIO(connection.recv_bytes()), self._shared).load()
                with self._changed:
                    self._results[index] = result if is_done else _Failed(value)
                    self._changed.notify_all()
        except (OSError, EOFError):
            self._finish(index, KpreemptError("a worker process was killed", hint=_HINT))
        except MemoryError:
            self._finish(index, KpreemptError("not enough memory for this number of workers", hint=_HINT))
        except BaseException as error:
            self._finish(index, error)

    def _take(self) -> tuple[int, Item] | None:
        """Return the next item, once it is close enough to the next result."""
        with self._reading:
            if self._end is not None:
                return None
            try:
                item = next(self._items, None)
            except BaseException as error:
                self._finish(None, error)
                return None
            if item is None:
                self._finish(None, None)
                return None
            self._num_read = item[0] + 1
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopped or item[0] < self._next + _MAX_WAITING * self._jobs)
            return None if self._is_stopped else item

    def _finish(self, index: int | None, failure: BaseException | None) -> None:
        """Record that nothing follows ``index`` (``None``: the items read so far), except possibly a failure."""
        with self._changed:
            end = self._num_read if index is None else index
            if self._end is None or end < self._end:
                self._end, self._failure = end, failure
            self._changed.notify_all()

    def _stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()


class _Pickler(pickle.Pickler):
    """Pickles shared objects as their numbers."""

    def __init__(self, file: io.BytesIO, numbers: Mapping[int, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers = numbers

    def persistent_id(self, value: object) -> int | None:
        return self._numbers.get(id(value))


class _Unpickler(pickle.Unpickler):
    """Reads what ``_Pickler`` wrote."""

    def __init__(self, file: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, number: Any) -> object:
        return self._shared[number]


def _serve(
    connection: Connection,
    work: Callable[[Item], Result],
    pairs: list[tuple[Connection, Connection]],
    shared: Sequence[object],
) -> None:
    """Run a worker until the other end of the connection is closed, for whatever reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for own, theirs in pairs:
        own.close()
        if theirs is not connection:
            theirs.close()
    # Objects that existed before are shared with the other processes and need no garbage collection.
    gc.freeze()
    numbers = {id(value): number for number, value in enumerate(shared)}
    try:
        while True:
            item, packed = connection.recv(), io.BytesIO()
            # Whether the work succeeded, and its result.
            try:
                result: tuple[bool, Result | None] = True, work(item)
            except Exception:
                result = False, None
            _Pickler(packed, numbers).dump(result)
            connection.send_bytes(packed.getbuffer())
    finally:
        # Exit without freeing the cluster's records and without a message: the other end reports that the worker died.
        os._exit(0)


def _end(process: BaseProcess) -> None:
    process.kill()
    process.join()
