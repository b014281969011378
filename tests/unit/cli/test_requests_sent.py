"""No command changes a cluster: each sends GET requests only, apart from the dry runs of ``check --server-dry-run``."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpreempt.cli.requests import COMMANDS
from kpreempt.library.options import options_of
from kpreempt.snapshot.recording.recorder import Recorder, WatchReport
from tests.fake_api import FakeApi, FakeCluster
from tests.unit.cli.conftest import Kpreempt
from tests.unit.cli.test_server_dry_run import DRY_RUN, Server, config_map, pod

DEMO = Path(__file__).parents[3] / "fixtures" / "demo"
API = str(DEMO / "api.yaml")
NODE = "node-b"
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
CALLS = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "pending", "arguments": {}}},
]
# The arguments and the input of every command that can read a live cluster.
RUNS: dict[str, tuple[tuple[str, ...], str]] = {
    "explain": (("-f", API, "--aftermath"), ""),
    "pending": ((), ""),
    "who-evicted": (("report-29381-jp9lx", "-n", "batch"), ""),
    "at-risk": ((), ""),
    "queue": ((), ""),
    "check": (("-f", API, "--delete", "pod/batch/report-29381-jp9lx"), ""),
    "drain": ((NODE, "--ignore-daemonsets", "--force"), ""),
    "compare": (("--algorithms", "kube-1.33,kube-1.36", "-f", API), ""),
    "budgets": ((), ""),
    "plugins": ((), ""),
    "volcano": ((), ""),
    "verify": (("--for", "1m"), ""),
    "snapshot": (("--to", "-"), ""),
    "record": (("--to", "recording"), ""),
    "batch": ((), json.dumps({"name": "a", "pod": {"metadata": {"name": "a"}, "spec": {"containers": []}}})),
    "mcp": ((), "".join(f"{json.dumps(each)}\n" for each in CALLS)),
}


@pytest.fixture(autouse=True)
def ended_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Recordings end with what they hear first."""
    take = Recorder.take

    def take_and_end(self: Recorder, reported: WatchReport) -> None:
        take(self, reported)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Recorder, "take", take_and_end)
    # The tests may run with this signal ignored.
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)
    monkeypatch.chdir(tmp_path)


def live_commands() -> Iterator[str]:
    for name, row in COMMANDS.items():
        module, _, request = row[0].partition(":")
        if "server" in options_of(getattr(importlib.import_module(f"kpreempt.cli.{module}"), request)):
            yield name


@pytest.mark.parametrize("command", list(live_commands()))
def test_a_command_only_reads(kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster, command: str) -> None:
    # It would accept anything.
    cluster.special = Server()
    arguments, stdin = RUNS[command]
    words = (command, *arguments, "--server", server.url)
    if command == "mcp":
        # It needs real files as its input and output.
        program = (sys.executable, "-m", "kpreempt", *words)
        run = subprocess.run(program, input=stdin, capture_output=True, text=True, check=False)
        assert '"id":2,"result"' in run.stdout
    else:
        run = kpreempt(*words, stdin=stdin)
    assert run.returncode in (0, 1), run.stderr
    assert {each.method for each in server.requested} == {"GET"}


def test_a_dry_run_of_a_change_changes_nothing(
    kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster, tmp_path: Path
) -> None:
    cluster.special = api = Server()
    existing = config_map("existing", level="1")
    api.objects["/api/v1/namespaces/shop/configmaps/existing"] = existing
    change: list[dict[str, Any]] = [config_map("existing", level="2"), config_map("added"), pod()]
    (tmp_path / "change.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": change}))
    options = ("--delete", "pod/batch/report-29381-jp9lx", "--create-namespace", "--server-dry-run")
    run = kpreempt("check", "-f", str(tmp_path / "change.json"), *options, "--server", server.url)
    assert run.returncode in (0, 1), run.stderr
    sent = [(each.method, each.query) for each in server.requested if each.method != "GET"]
    assert sorted(method for method, _ in sent) == ["PATCH", "POST", "POST"]
    assert [query for _, query in sent] == [DRY_RUN] * 3
