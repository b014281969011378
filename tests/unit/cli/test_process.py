from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kpreempt.cli import process
from kpreempt.errors import InputError

ROOT = Path(__file__).parents[3]


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    def broken(_: object) -> object:
        raise error

    monkeypatch.setattr(process.typer.main, "get_command", broken)
    return process.run(["explain"])


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_process_leaves_no_partial_file(tmp_path: Path, number: int) -> None:
    program = (
        "import signal, sys\n"
        # The tests may run with this signal ignored, which programs inherit.
        f"signal.signal({int(number)}, signal.SIG_DFL)\n"
        "from kpreempt.cli import process\n"
        "from kpreempt.cli.output import atomic_file\n"
        "def write(*_):\n"
        "    with atomic_file(sys.argv[1]) as file:\n"
        "        file.write('secret')\n"
        "        print('written', flush=True)\n"
        "        signal.pause()\n"
        "process._run_command = write\n"
        "raise SystemExit(process.run([]))\n"
    )
    writing = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "cluster.json")], stdout=subprocess.PIPE, text=True
    )
    with writing:
        assert writing.stdout is not None and writing.stdout.readline() == "written\n"
        assert len(list(tmp_path.iterdir())) == 1
        writing.send_signal(number)
        try:
            assert writing.wait(60) == 128 + number
        finally:
            writing.kill()
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_one_line_and_its_hint_and_control_characters_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = InputError("bad\x1b[31m\n", source="a.yaml", line=3, object_name="Pod a/b", path="spec", hint="this")
    assert fail_with(monkeypatch, error) == 3
    assert capsys.readouterr().err == "error: a.yaml:3: Pod a/b: spec: bad\\x1b[31m\\x0a\nhint: this\n"


@pytest.mark.parametrize(("is_terminal", "environment"), [(True, {}), (True, {"NO_COLOR": "1"}), (False, {})])
def test_the_labels_are_in_color_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, environment: dict[str, str]
) -> None:
    is_colored = is_terminal and not environment
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr("os.environ", environment)
    assert fail_with(monkeypatch, InputError("bad", hint="this")) == 3
    error, hint = ("\x1b[1;31merror:\x1b[0m", "\x1b[36mhint:\x1b[0m") if is_colored else ("error:", "hint:")
    assert written.getvalue() == f"{error} bad\n{hint} this\n"


def test_a_bug_is_reported_by_place_and_never_by_content(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail_with(monkeypatch, KeyError("secret")) == 4
    report = capsys.readouterr().err
    assert report.startswith("kpreempt failed because of a bug: KeyError\n  at kpreempt/cli/process.py:")
    assert "secret" not in report
    assert "Traceback" not in report


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(KeyboardInterrupt(), 130, id="an interruption is quiet"),
        pytest.param(MemoryError(), 3, id="too little memory is the input's fault"),
    ],
)
def test_other_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int
) -> None:
    assert fail_with(monkeypatch, error) == code
    assert "Traceback" not in capsys.readouterr().err


def test_ctrl_c_while_reading_ends_quietly_with_130() -> None:
    command = [sys.executable, "-m", "kpreempt", "batch", "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        # An answer shows that the program is up and waits for the next line.
        child.stdin.write(b'{"name": "a"}\n')
        child.stdin.flush()
        answer = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, complaint = child.communicate(timeout=60)
    assert b"error" in answer
    assert (child.returncode, complaint) == (130, b"")


def test_closed_standard_streams_are_no_crash() -> None:
    run = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m kpreempt batch - <&- >&-', sys.executable],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert run.returncode == 3
    assert run.stderr == "error: standard input: closed\n"


def test_a_closed_standard_output_is_reported() -> None:
    manifest, snapshot = (str(ROOT / "fixtures" / "demo" / name) for name in ("api.yaml", "cluster.yaml"))
    run = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m kpreempt explain -f "$1" --snapshot "$2" >&-', sys.executable, manifest, snapshot],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert run.returncode == 3
    assert run.stderr == "error: standard output: closed\n"
