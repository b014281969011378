from __future__ import annotations

import io
import re
import sys
import threading
from pathlib import Path

import pytest

import kpreempt
from kpreempt.cli import output, terminal
from kpreempt.cli.terminal import Progress, terminal_width, wants_color
from kpreempt.errors import UsageError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("when", "stream", "environment", "expected"),
    [
        pytest.param("auto", Terminal(), {}, True, id="a terminal gets colour"),
        pytest.param("auto", io.StringIO(), {}, False, id="a pipe gets none"),
        pytest.param("auto", Terminal(), {"NO_COLOR": "1"}, False, id="NO_COLOR is heeded"),
        pytest.param("auto", Terminal(), {"NO_COLOR": ""}, True, id="an empty NO_COLOR counts as not set"),
        pytest.param("auto", Terminal(), {"TERM": "dumb"}, False, id="a dumb terminal gets none"),
        pytest.param("always", io.StringIO(), {"NO_COLOR": "1"}, True, id="always wins over NO_COLOR and a pipe"),
        pytest.param("never", Terminal(), {}, False, id="never wins over a terminal"),
    ],
)
def test_colour(
    monkeypatch: pytest.MonkeyPatch, when: str, stream: io.StringIO, environment: dict[str, str], expected: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_color(when, stream) is expected


def test_another_word_for_when_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="--color: invalid value 'sometimes'"):
        wants_color("sometimes", io.StringIO())


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        pytest.param("120", 120, id="COLUMNS is heeded"),
        pytest.param("nonsense", 80, id="a COLUMNS that is not a number is passed over"),
        pytest.param("3", 40, id="a very narrow terminal is taken for 40"),
    ],
)
def test_width(monkeypatch: pytest.MonkeyPatch, columns: str, expected: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "__stdout__", None)
    assert terminal_width() == expected


def test_progress_waits_then_shows_and_takes_itself_away(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.4, 0.6, 0.61])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress()
    progress("a.yaml", 0.1)
    assert sys.stderr.getvalue() == ""
    progress("a\x1b.yaml", 0.5)
    progress("a.yaml", 0.6)
    assert sys.stderr.getvalue() == "\r\x1b[2Kreading a\\x1b.yaml 50% ..."
    progress.close()
    assert sys.stderr.getvalue().endswith("...\r\x1b[2K")


def test_progress_is_silent_if_no_one_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    progress = Progress()
    progress("a.yaml", 0.1)
    progress.close()
    assert sys.stderr.getvalue() == ""


def screen_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    # The thread looks once an hour: the tests look themselves.
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_UPDATES", 3600.0)
    return found


def test_what_takes_long_is_shown_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    times = iter([10.0, 10.4, 10.6, 13.2, 20.0, 20.7])
    activity = terminal.Activity(clock=lambda: next(times))
    activity.begin("filter")
    activity.update()
    assert screen.getvalue() == ""
    activity.update()
    assert screen.getvalue() == "\r\x1b[2Kfiltering nodes ... 1s"
    activity.begin("dryRun")
    activity.update()
    assert screen.getvalue().endswith("\r\x1b[2Ksimulating preemption ... 3s")
    activity.hide()
    assert screen.getvalue().endswith("3s\r\x1b[2K")
    written = screen.getvalue()
    activity.update()
    assert screen.getvalue() == written
    activity.begin("filter")
    activity.update()
    assert screen.getvalue().endswith("filtering nodes ... 1s")


def phases_of_answers() -> list[str]:
    sources = [each.read_text(encoding="utf-8") for each in Path(kpreempt.__file__).parent.rglob("*.py")]
    return sorted({name for source in sources for name in re.findall(r'\.phase\("(\w+)"\)', source)})


@pytest.mark.parametrize("phase", phases_of_answers())
def test_every_phase_has_words(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    times = iter([0.0, 9.0])
    activity = terminal.Activity(clock=lambda: next(times))
    activity.begin(phase)
    activity.update()
    assert screen.getvalue() != "\r\x1b[2Kworking ... 9s"


def test_nothing_is_shown_next_to_a_line_of_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    times = iter([0.0, 9.0, 9.0, 9.0])
    activity = terminal.Activity(clock=lambda: next(times))
    activity.begin("read")
    with activity.paused():
        activity.update()
        assert screen.getvalue() == ""


def test_off_a_terminal_there_is_no_progress_and_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    before = threading.active_count()
    activity = terminal.Activity()
    activity.begin("filter")
    activity.hide()
    assert (plain.getvalue(), threading.active_count()) == ("", before)


def test_a_stopwatch_says_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(output.ACTIVITY, "begin", lambda what="": begun.append(what))
    with output.Stopwatch().phase("dryRun"):
        pass
    assert begun == ["", "dryRun"]
