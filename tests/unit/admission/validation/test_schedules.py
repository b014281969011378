"""Which schedules and time zones of CronJobs are valid."""

from __future__ import annotations

import pytest

from kpreempt.admission.validation.schedules import schedule, time_zone


@pytest.mark.parametrize(
    "text",
    [
        "*/15 0-23/2 ? jan-DEC Mon,wed",
        "  5/2 +3 1,,31 12 6 ",
        ", * * * *",
        "*-x * * * *",
        "@hourly",
        "@every 1h30m5.5s",
        "@every -1µs",
        "@every 0",
        "TZ=UTC * * * * *",
        "CRON_TZ=Europe/Berlin @daily",
    ],
)
def test_valid_schedules(text: str) -> None:
    assert schedule(text) == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("@reboot", "unrecognized descriptor: @reboot"),
        ("@every 1d", "failed to parse duration @every 1d: invalid duration"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("0 0 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("0 0 * * fri-mon", "beginning of range (5) beyond end of range (1): fri-mon"),
        ("0 0 * * 7", "end of range (7) above maximum (6): 7"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1_0 * * * *", "failed to parse int from 1_0: invalid syntax"),
        ("*/ * * * *", "failed to parse int from : invalid syntax"),
        ("1-x * * * *", "failed to parse int from x: invalid syntax"),
        ("TZ=UTC", "invalid schedule format: the schedule is missing"),
        ("TZ=Mars/Phobos * * * * *", "provided bad location Mars/Phobos: unknown time zone Mars/Phobos"),
    ],
)
def test_invalid_schedules(text: str, problem: str) -> None:
    assert schedule(text) == problem


def test_numbers_may_be_long() -> None:
    assert schedule(f"{'0' * 5000}7 * * * *") == ""
    assert schedule(f"{'9' * 5000} * * * *").startswith("failed to parse int from 9999")


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "US/Pacific", "Etc/GMT+5", "posixrules", "right/UTC"])
def test_valid_time_zones(name: str) -> None:
    assert time_zone(name) == ""


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "timeZone must be nil or non-empty string"),
        ("local", "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"),
        *((name, f"unknown time zone {name}") for name in ("europe/berlin", "Mars/Phobos", "../UTC", "posix/../UTC")),
    ],
)
def test_invalid_time_zones(name: str, problem: str) -> None:
    assert time_zone(name) == problem
