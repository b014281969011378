"""Limits on the time of a search, as functions that say whether there is time left."""

from __future__ import annotations

import time
from collections.abc import Callable

# How long a command searches for remedies.
SECONDS_OF_SEARCH = 5.0


def time_limit(seconds: float, *, since: float | None = None) -> Callable[[], bool]:
    """Return a function that is true for ``seconds`` after its first call.

    With ``since``, a time of ``time.monotonic``, the limit is longer by the time from then until the first call.
    """
    ends: list[float] = []

    def has_time() -> bool:
        now = time.monotonic()
        if not ends:
            ends.append(now + seconds + (now - since if since is not None else 0))
        return now < ends[0]

    return has_time


def time_for_remedies() -> Callable[[], bool]:
    """Return whether remedies may still be searched: for as long as it took until the first call, plus 5 seconds."""
    return time_limit(SECONDS_OF_SEARCH, since=time.monotonic())
