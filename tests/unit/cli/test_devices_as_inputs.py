"""Devices and pipes in the place of files: each ends in one message, and none is read without end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kpreempt import files
from kpreempt.cli import process, scenarios

DEMO = ["--snapshot", "fixtures/demo/cluster.yaml"]
POD = ["-f", "fixtures/demo/api.yaml"]
INPUTS = {
    "scheduler-config": ["explain", *DEMO, *POD, "--scheduler-config"],
    "policy-config": ["explain", *DEMO, *POD, "--algorithm", "kube-1.13", "--policy-config"],
    "kubeconfig": ["pending", "--kubeconfig"],
    "config": ["check", *DEMO, *POD, "--config"],
    "baseline": ["check", *DEMO, *POD, "--baseline"],
    "compare-with": ["check", *DEMO, *POD, "--compare-with"],
    "snapshot": ["pending", "--snapshot"],
    "manifest": ["explain", *DEMO, "-f"],
    "batch": ["batch"],
}


@pytest.mark.parametrize("name", INPUTS)
def test_a_device_without_end_is_refused(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenarios, "MAX_LINE_BYTES", 2**20)
    assert process.run([*INPUTS[name], "/dev/zero"]) == 3
    said = capsys.readouterr().err
    assert "/dev/zero" in said
    assert any(words in said for words in ("larger than 32 MiB", "contains a NUL", "unterminated line"))


@pytest.mark.parametrize("name", INPUTS)
def test_a_pipe_that_no_one_writes_to_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIPE_SECONDS", 0.01)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert process.run([*INPUTS[name], str(pipe)]) == 3
    assert "pipe: named pipe without a writer" in capsys.readouterr().err


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"all of it",))
    writer.start()
    assert files.read_file(str(pipe)) == b"all of it"
    writer.join()


@pytest.mark.parametrize("field", ["certificate-authority", "client-certificate", "tokenFile"])
def test_what_a_kubeconfig_names_is_bounded(field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = {"cluster": "server: https://127.0.0.1:1", "user": "token: x"}
    about["cluster" if field == "certificate-authority" else "user"] += f"\n    {field}: /dev/zero"
    if field == "tokenFile":
        about["user"] = "tokenFile: /dev/zero"
    path = tmp_path / "config"
    path.write_text(
        "current-context: c\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\n"
        f"clusters:\n- name: c\n  cluster:\n    {about['cluster']}\nusers:\n- name: u\n  user:\n    {about['user']}\n"
    )
    assert process.run(["pending", "--kubeconfig", str(path)]) == 3
    assert "/dev/zero: larger than 32 MiB" in capsys.readouterr().err


def test_an_endless_line_ends_a_batch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "MAX_LINE_BYTES", 2**20)
    assert process.run(["batch", "/dev/zero"]) == 3
    out, said = capsys.readouterr()
    assert "/dev/zero:1: line longer than 1 MiB" in out
    assert "/dev/zero:1: unterminated line" in said
