from __future__ import annotations

import io
import sys

import pytest

from kpreempt.cli import terminal
from kpreempt.cli.terminal import Progress, terminal_width, wants_colour
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
    assert wants_colour(when, stream) is expected


def test_another_word_for_when_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="--color: there is no 'sometimes'"):
        wants_colour("sometimes", io.StringIO())


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        pytest.param("120", 120, id="COLUMNS is heeded"),
        pytest.param("nonsense", 80, id="a COLUMNS that is no number is passed over"),
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


def test_progress_is_silent_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    progress = Progress()
    progress("a.yaml", 0.1)
    progress.close()
    assert sys.stderr.getvalue() == ""
