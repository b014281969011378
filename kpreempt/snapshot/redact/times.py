"""Times in a redacted cluster: their ages are kept, their dates are removed.

They are relative to a date that is the same in every redacted dump. A time that is compared with the current time keeps
its exact distance from it. A time that is only compared with other times keeps its order among them and its age as
shown in reports: it moves within the precision with which such an age is shown, such as an hour for three days.
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
# The precision with which ages are shown, as in ``report/amounts.py``.
_STEPS = (
    (timedelta(minutes=10), timedelta(seconds=1)),
    (8 * _HOUR, _MINUTE),
    (8 * _DAY, _HOUR),
    (8 * _YEAR, _DAY),
)
_SECOND = timedelta(seconds=1)
_RESOLUTION = timedelta.resolution
# Go's zero time, which means that there is none.
_ZERO = datetime.min.replace(tzinfo=UTC)
_OLDEST = REDACTED_AT - _ZERO - _DAY

# The kinds of which the oldest or the newest comes first. The age of all others, except pods and events, is not read.
_ORDERED_BY_AGE = frozenset(("StorageClass", "DeviceClass", "ReplicaSet", "PodGroup", "Queue"))


class Times:
    """The times that were collected, and once they are ``numbered``, their replacements."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._exact = {timedelta()}
        self._ordered: set[timedelta] = set()
        self._new: dict[timedelta, datetime] = {}

    def collect(self, time: datetime, *, is_ordered_only: bool) -> datetime:
        """Collect a time and return it."""
        (self._ordered if is_ordered_only else self._exact).add(self._now - time)
        return time

    def token(self, time: datetime, *, is_ordered_only: bool) -> datetime:
        """Return the replacement of a collected time, in UTC. Raises ``KeyError`` for any other."""
        return self._new[self._now - time]

    def number(self) -> None:
        """Assign a replacement to every collected time."""
        ages: dict[timedelta, timedelta] = {}
        last, last_new = timedelta(), timedelta()
        for age in sorted(self._exact | self._ordered):
            new = age
            # It is never made older than it was, to leave room for the next one.
            if age not in self._exact and age > timedelta():
                new = max(_shown(age), last_new + (_SECOND if age - last >= _SECOND else _RESOLUTION))
            ages[age] = new
            last, last_new = age, new
        self._new = {age: REDACTED_AT - new for age, new in ages.items() if new < _OLDEST}
        # No object is that old; such times keep their order.
        ancient = sorted(age for age, new in ages.items() if new >= _OLDEST)
        self._new |= {age: _ZERO + place * _RESOLUTION for place, age in enumerate(reversed(ancient), start=1)}
        self._new[self._now - _ZERO] = _ZERO

    def shifted(self, time: datetime) -> datetime:
        """Return the replacement of any time to which others are relative."""
        return REDACTED_AT - (self._now - time)

    def pairs(self) -> Iterator[tuple[datetime, datetime]]:
        """Yield every replaced time with the original one."""
        yield from ((self._new[age], self._now - age) for age in sorted(self._exact | self._ordered))


def _shown(age: timedelta) -> timedelta:
    """Return the smallest age that is shown in the same way."""
    step = next((step for limit, step in _STEPS if age < limit), _YEAR)
    return age // step * step


def creation(renamer: Renamer, kind: str, time: datetime) -> datetime | None:
    """Replace the creation time of an object of a kind, if it matters."""
    if kind == "Pod":
        return renamer.start(time)
    if kind in ("Event", "Workload"):
        return renamer.time(time)
    return renamer.relative_time(time) if kind in _ORDERED_BY_AGE else None


def nothing(_: Renamer, __: datetime) -> None:
    """Remove a time that nothing reads."""
