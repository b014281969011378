"""Times of a redacted cluster: as old as before, and without the date.

They count back from a date that is the same in every redacted dump. A time that is compared with the present one stays
exactly as far from it as it was. Of one that is only compared with other times the order to all others stays, and the
age as reports show it: it moves within what an age of that length is told to, an hour for three days.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from kpreempt.model.cluster import REDACTED_AT
from kpreempt.snapshot.redact.spaces import Renamer

_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_YEAR = timedelta(days=365)
# What ages up to so long are shown to, as in ``report/amounts.py``.
_STEPS = (
    (timedelta(minutes=10), timedelta(seconds=1)),
    (8 * _HOUR, _MINUTE),
    (8 * _DAY, _HOUR),
    (8 * _YEAR, _DAY),
)
_SECOND = timedelta(seconds=1)
_RESOLUTION = timedelta.resolution
# Go's zero time, which says that there is none.
_ZERO = datetime.min.replace(tzinfo=UTC)
_OLDEST = REDACTED_AT - _ZERO - _DAY

# The kinds of which the oldest or the newest comes first. Of all others but pods and events nobody reads the age.
_ORDERED_BY_AGE = frozenset(("StorageClass", "DeviceClass", "ReplicaSet", "PodGroup", "Queue"))


class Times:
    """The times that were seen, and once they are ``numbered`` the one that stands for each."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._exact = {timedelta()}
        self._ordered: set[timedelta] = set()
        self._new: dict[timedelta, datetime] = {}

    def collect(self, time: datetime, *, is_ordered_only: bool) -> datetime:
        """Remember a time, and give it back."""
        (self._ordered if is_ordered_only else self._exact).add(self._now - time)
        return time

    def token(self, time: datetime, *, is_ordered_only: bool) -> datetime:
        """What stands for a time that was collected, in UTC. Raises ``KeyError`` for any other."""
        return self._new[self._now - time]

    def number(self) -> None:
        """Give every time that was collected another."""
        ages: dict[timedelta, timedelta] = {}
        last, last_new = timedelta(), timedelta()
        for age in sorted(self._exact | self._ordered):
            new = age
            # It is never made older than it was, so that the next one has room.
            if age not in self._exact and age > timedelta():
                new = max(_shown(age), last_new + (_SECOND if age - last >= _SECOND else _RESOLUTION))
            ages[age] = new
            last, last_new = age, new
        self._new = {age: REDACTED_AT - new for age, new in ages.items() if new < _OLDEST}
        # No object is as old as that; what says so keeps its order.
        ancient = sorted(age for age, new in ages.items() if new >= _OLDEST)
        self._new |= {age: _ZERO + place * _RESOLUTION for place, age in enumerate(reversed(ancient), start=1)}
        self._new[self._now - _ZERO] = _ZERO

    def shifted(self, time: datetime) -> datetime:
        """What stands for any time from which others are told exactly."""
        return REDACTED_AT - (self._now - time)

    def pairs(self) -> Iterator[tuple[datetime, datetime]]:
        """Every time, and the one that it stands for."""
        yield from ((self._new[age], self._now - age) for age in sorted(self._exact | self._ordered))


def _shown(age: timedelta) -> timedelta:
    """The least age that is shown as the same one."""
    step = next((step for limit, step in _STEPS if age < limit), _YEAR)
    return age // step * step


def creation(renamer: Renamer, kind: str, time: datetime) -> datetime | None:
    """When an object of a kind was made, as far as anything hangs on it."""
    if kind == "Pod":
        return renamer.start(time)
    if kind in ("Event", "Workload"):
        return renamer.time(time)
    return renamer.relative_time(time) if kind in _ORDERED_BY_AGE else None


def nothing(_: Renamer, __: datetime) -> None:
    """A time that nobody reads."""
