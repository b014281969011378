"""Several requests at once, in threads that nobody has to wait for."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Workers(Generic[T]):
    """Threads that do tasks in the order in which they are handed in; results come as they are ready.

    Unlike those of ``concurrent.futures`` they do not keep the process from ending: after an interrupt, or the failure
    of one request, the others may still hang in the network.
    """

    def __init__(self, count: int) -> None:
        self._tasks: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._results: SimpleQueue[T | BaseException] = SimpleQueue()
        self._count = count
        for _ in range(count):
            Thread(target=self._work, daemon=True).start()

    def submit(self, task: Callable[[], T]) -> None:
        """Have a task done."""
        self._tasks.put(task)

    def result(self) -> T:
        """The next result, or what its task raised. There has to be a task that has not been answered."""
        result = self._results.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def end(self) -> None:
        """Let the threads end once they are done with what they have."""
        for _ in range(self._count):
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                self._results.put(task())
            except BaseException as error:
                self._results.put(error)
