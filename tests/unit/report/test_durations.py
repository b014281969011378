from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kpreempt.report.amounts import format_duration, format_since

NOW = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (5 * MINUTE + 10, "5m10s"),
        (10 * MINUTE + 59, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 4 * HOUR, "2d4h"),
        (12 * DAY, "12d"),
        (729 * DAY, "729d"),
        (2 * YEAR, "2y"),
        (3 * YEAR + 12 * DAY, "3y12d"),
        (9 * YEAR, "9y"),
    ],
)
def test_durations_read_as_kubectl_prints_them(seconds: int, expected: str) -> None:
    assert format_duration(seconds) == expected


@pytest.mark.parametrize(
    ("start", "now", "expected"),
    [
        pytest.param(None, NOW, "-", id="a pod that has not started"),
        pytest.param(NOW - timedelta(days=12), NOW, "12d", id="a pod that runs"),
        pytest.param(NOW - timedelta(days=12), None, "since 2026-11-09T03:12:00Z", id="at an unknown time"),
        pytest.param(NOW + timedelta(hours=1), NOW, "since 2026-11-21T04:12:00Z", id="a start in the future"),
        pytest.param(
            NOW.astimezone(timezone(timedelta(hours=5))) - timedelta(hours=3), NOW, "3h", id="in another time zone"
        ),
    ],
)
def test_an_age_counts_to_now_or_names_the_start(start: datetime | None, now: datetime | None, expected: str) -> None:
    assert format_since(start, now) == expected
