"""Limits on the time of a search, as functions that say whether there is time left."""

from __future__ import annotations

import time
from collections.abc import Callable

# How long a command searches for remedies.
SECONDS_OF_SEARCH = 5.0


def time_limit(seconds: float) -> Callable[[], bool]:
    """Return a function that is true for ``seconds`` after its first call."""
    ends: list[float] = []

    def has_time() -> bool:
        if not ends:
            ends.append(time.monotonic() + seconds)
        return time.monotonic() < ends[0]

    return has_time


def time_for_remedies() -> Callable[[], bool]:
    """Return whether remedies may still be searched: for as long as it took until the first call, plus 5 seconds."""
    start = time.monotonic()
    ends: list[float] = []

    def has_time() -> bool:
        now = time.monotonic()
        if not ends:
            ends.append(now + (now - start) + SECONDS_OF_SEARCH)
        return now < ends[0]

    return has_time
