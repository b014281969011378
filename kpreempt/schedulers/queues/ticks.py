"""Times at which a queue's own timer runs: every so often, from a start."""

from __future__ import annotations

from datetime import datetime, timedelta


class Ticker:
    """A timer that first runs at ``start`` and then every ``period``."""

    def __init__(self, start: datetime, period: timedelta) -> None:
        self._start = start
        self._period = period

    def first_after(self, time: datetime) -> datetime:
        """The first run later than ``time``."""
        if time < self._start:
            return self._start
        return self._start + ((time - self._start) // self._period + 1) * self._period
