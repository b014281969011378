"""No message repeats all of a long value, whichever option, argument or file it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from kpreempt.cli.app import make_app
from kpreempt.report.escape import shortened
from tests.fuzz.cases import NODE, RUNNABLE, UNATTENDED
from tests.unit.cli.conftest import Kpreempt

MOST = 2_000


def options_of(name: str) -> list[str]:
    """The options with a value, and an empty text for arguments."""
    command = typer.main.get_command(make_app(name)).commands[name]  # type: ignore[attr-defined]
    found = [each.opts[-1] for each in command.params if not getattr(each, "is_flag", False)]
    return [each if each.startswith("-") else "" for each in found if each not in UNATTENDED]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("value", ["x" * 10_000, "\u202e" * 10_000, "a=" + "b" * 10_000], ids=["x", "hidden", "a=b"])
@pytest.mark.parametrize("name", RUNNABLE)
def test_a_long_value_of_any_option_is_shortened(
    kpreempt: Kpreempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text(json.dumps(NODE), encoding="utf-8")
    for option in [*options_of(name), "--no-such-option"]:
        run = kpreempt(name, *RUNNABLE[name], f"{option}={value}" if option else value)
        assert run.returncode in (0, 1, 2, 3), (option, run.stderr)
        assert max(map(len, run.complaint.splitlines()), default=0) <= MOST, option


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a short one", "a short one"),
        ("/tmp/" + "x" * 200, "/tmp/" + "x" * 200),
        ("no " + "x" * 1000 + " here", "no " + "x" * 200 + "…" + "x" * 60 + " here"),
        ("word " * 1000, "word " * 300 + "…" + "word " * 80),
    ],
    ids=["short", "a path", "a long word", "many words"],
)
def test_what_is_left_of_a_message(text: str, shown: str) -> None:
    assert shortened(text) == shown
