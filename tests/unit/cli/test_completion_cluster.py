"""Names from a cluster while a line is typed: in time, or not at all, and never a word about why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from typer.main import get_command

from kpreempt.cli.app import make_app
from kpreempt.cli.completion.process import (
    _NEVER_IN,
    SECONDS_CACHED,
    SECONDS_FROM_START,
    ClusterNames,
    deadline_of_process,
)
from kpreempt.cli.completion.values import complete

LONG_SECONDS = 60.0


class Server(ThreadingHTTPServer):
    """An API server that answers every list with a table; ``delay`` holds answers back until it is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.may_answer = Event()
        self.may_answer.set()
        self.status = 200
        self.body: bytes | None = None
        self.requests: list[tuple[str, str]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        path, _, _ = self.path.partition("?")
        self.server.requests.append((path, self.headers.get("Accept", "")))
        self.server.may_answer.wait(LONG_SECONDS)
        kind = path.rpartition("/")[2]
        columns = ["Name", "Ready", "Value" if kind == "priorityclasses" else "Status"]
        rows = [{"cells": [f"{kind}-{number}", None, "x"], "object": None} for number in (1, 2)]
        table = {"kind": "Table", "columnDefinitions": [{"name": each} for each in columns], "rows": rows}
        body = json.dumps(table).encode() if self.server.body is None else self.server.body
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # The client may have given up by now.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.may_answer.set()
        running.shutdown()


@pytest.fixture
def kubeconfig(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubeconfig whose current context is namespace shop on the server of the test."""
    path = tmp_path / "config"
    document = {
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "shop"}},
            {"name": "arn:aws:eks:x/there", "context": {"cluster": "c", "user": "u"}},
        ],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for variable in _NEVER_IN:
        monkeypatch.delenv(variable, raising=False)
    return path


def offered(*words: str, seconds: float = LONG_SECONDS) -> list[str]:
    names = ClusterNames(time.monotonic() + seconds)
    found = complete(get_command(make_app()), words, names)  # type: ignore[arg-type]
    return [each.value for each in found.candidates]


@pytest.mark.parametrize(
    ("words", "path", "names"),
    [
        (["explain", ""], "/api/v1/namespaces/shop/pods", ["pods-1", "pods-2"]),
        (["explain", "-n", "batch", "pod/"], "/api/v1/namespaces/batch/pods", ["pod/pods-1", "pod/pods-2"]),
        (["explain", "-n", "../x", ""], "/api/v1/namespaces/..%2Fx/pods", ["pods-1", "pods-2"]),
        (["explain", "pod", ""], "/api/v1/namespaces/shop/pods", ["pods-1", "pods-2"]),
        (
            ["explain", "deploy/"],
            "/apis/apps/v1/namespaces/shop/deployments",
            ["deploy/deployments-1", "deploy/deployments-2"],
        ),
        (["explain", "sts", ""], "/apis/apps/v1/namespaces/shop/statefulsets", ["statefulsets-1", "statefulsets-2"]),
        (["explain", "cj/cronjobs-2"], "/apis/batch/v1/namespaces/shop/cronjobs", ["cj/cronjobs-2"]),
        (["explain", "--node", ""], "/api/v1/nodes", ["nodes-1", "nodes-2"]),
        (["explain", "-n", ""], "/api/v1/namespaces", ["namespaces-1", "namespaces-2"]),
        (
            ["explain", "--priority-class", "priorityclasses-2"],
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            ["priorityclasses-2"],
        ),
    ],
)
@pytest.mark.usefixtures("kubeconfig")
def test_names_come_from_the_cluster_of_the_kubeconfig(
    server: Server, words: list[str], path: str, names: list[str]
) -> None:
    assert offered(*words) == names
    # Rows without the objects: neither environments nor annotations travel for a TAB.
    assert [(each, "as=Table" in accept) for each, accept in server.requests] == [(path, True)]


@pytest.mark.usefixtures("kubeconfig")
def test_a_snapshot_on_the_line_keeps_the_cluster_out_of_it(server: Server) -> None:
    assert offered("explain", "--snapshot", "cluster.yaml", "") == []
    assert server.requests == []


@pytest.mark.usefixtures("kubeconfig")
def test_a_server_that_does_not_answer_in_time_gives_nothing(server: Server) -> None:
    server.may_answer.clear()
    start = time.monotonic()
    assert offered("explain", "", seconds=0.3) == []
    assert time.monotonic() - start < LONG_SECONDS / 2


@pytest.mark.parametrize(
    ("status", "body"),
    [(401, b"{}"), (403, b"{}"), (429, b""), (500, b"<html>"), (200, b"[]"), (200, b"{"), (200, b'{"rows": [{}]}')],
)
@pytest.mark.usefixtures("kubeconfig")
def test_a_server_that_refuses_or_talks_nonsense_gives_nothing(server: Server, status: int, body: bytes) -> None:
    server.status, server.body = status, body
    assert offered("explain", "") == []


@pytest.mark.parametrize("text", ["", "{", "current-context: nowhere", "clusters: 3", "server: http://127.0.0.1:1"])
def test_a_kubeconfig_that_cannot_be_used_gives_nothing(kubeconfig: Path, text: str) -> None:
    kubeconfig.write_text(text, encoding="utf-8")
    assert offered("explain", "") == []


def test_the_process_ends_without_waiting_for_the_server_and_without_a_word(server: Server, kubeconfig: Path) -> None:
    server.may_answer.clear()
    start = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-m", "kpreempt", "__complete", "explain", ""],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, ":4\n", "")
    assert time.monotonic() - start < LONG_SECONDS / 2


def test_a_credential_plugin_is_neither_heard_nor_waited_for(kubeconfig: Path) -> None:
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never"}
    document = json.loads(kubeconfig.read_text(encoding="utf-8"))
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    document["users"][0]["user"] = {"exec": {**entry, "args": ["-c", "echo log in first >&2; read answer; sleep 60"]}}
    kubeconfig.write_text(json.dumps(document), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "kpreempt", "__complete", "explain", ""],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG_SECONDS / 2,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, ":4\n", "")


def test_the_deadline_counts_from_the_start_of_the_process() -> None:
    # This process has been there for longer than a completion may take.
    assert deadline_of_process() < time.monotonic() + SECONDS_FROM_START


def kept(kubeconfig: Path) -> list[Path]:
    return sorted((kubeconfig.parent / "cache" / "kpreempt" / "names").glob("*"))


def test_names_are_kept_for_the_next_tab(server: Server, kubeconfig: Path) -> None:
    assert offered("explain", "--node", "") == offered("explain", "--node", "") == ["nodes-1", "nodes-2"]
    assert len(server.requests) == 1
    (file,) = kept(kubeconfig)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    # Names and their descriptions: no token, no server, no context.
    assert json.loads(file.read_text(encoding="utf-8")) == [["nodes-1", "x"], ["nodes-2", "x"]]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--context", "arn:aws:eks:x/there"], id="another context"),
        pytest.param(["--user", "other"], id="another user"),
        pytest.param(["-n", "batch"], id="another namespace"),
        pytest.param(["--node"], id="another kind"),
    ],
)
def test_a_different_query_is_sent_again(server: Server, kubeconfig: Path, words: list[str]) -> None:
    document = json.loads(kubeconfig.read_text(encoding="utf-8"))
    document["users"].append({"name": "other", "user": {"token": "t"}})
    kubeconfig.write_text(json.dumps(document), encoding="utf-8")
    offered("explain", "")
    offered("explain", *words, "")
    assert len(server.requests) == 2


def test_another_current_context_is_a_different_query(server: Server, kubeconfig: Path) -> None:
    offered("explain", "")
    text = kubeconfig.read_text(encoding="utf-8").replace('"here", "clusters"', '"arn:aws:eks:x/there", "clusters"')
    kubeconfig.write_text(text, encoding="utf-8")
    offered("explain", "")
    assert [path for path, _ in server.requests] == [f"/api/v1/namespaces/{each}/pods" for each in ("shop", "default")]


@pytest.mark.parametrize(
    "option",
    [["--no-cache"], ["--as", "x"], ["--as", "x", "--as-group", "x"], ["--token", "x"], ["--as", "x", "--as-uid", "1"]],
)
def test_nothing_is_kept_where_it_is_not_wanted(kubeconfig: Path, option: list[str]) -> None:
    assert offered("explain", *option, "") == ["pods-1", "pods-2"]
    assert kept(kubeconfig) == []


@pytest.mark.parametrize("variable", _NEVER_IN)
def test_nothing_is_kept_in_ci_or_for_another_user(
    kubeconfig: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    assert offered("explain", "") == ["pods-1", "pods-2"]
    assert kept(kubeconfig) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[[1]]", b"\xff", b"[" * 100_000])
def test_a_broken_cache_is_no_cache(server: Server, kubeconfig: Path, content: bytes) -> None:
    offered("explain", "")
    (file,) = kept(kubeconfig)
    file.write_bytes(content)
    assert offered("explain", "") == ["pods-1", "pods-2"]
    assert len(server.requests) == 2
    assert json.loads(file.read_bytes()) == [["pods-1", "x"], ["pods-2", "x"]]


def test_names_count_for_a_minute_and_are_swept_then(server: Server, kubeconfig: Path) -> None:
    offered("explain", "")
    (file,) = kept(kubeconfig)
    before = time.time() - SECONDS_CACHED - 1
    os.utime(file, (before, before))
    offered("explain", "--node", "")
    assert not file.exists()
    offered("explain", "")
    assert len(server.requests) == 3


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_a_file_that_others_can_read_or_write_is_not_read(server: Server, kubeconfig: Path, mode: int) -> None:
    offered("explain", "")
    kept(kubeconfig)[0].chmod(mode)
    offered("explain", "")
    assert len(server.requests) == 2


def test_a_folder_that_is_not_the_users_alone_is_not_written_to(kubeconfig: Path) -> None:
    folder = kubeconfig.parent / "cache" / "kpreempt" / "names"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert offered("explain", "") == ["pods-1", "pods-2"]
    assert kept(kubeconfig) == []


def test_a_cache_that_cannot_be_written_is_no_failure(kubeconfig: Path) -> None:
    (kubeconfig.parent / "cache").write_text("", encoding="utf-8")
    assert offered("explain", "") == ["pods-1", "pods-2"]


def names_of(*words: str) -> list[str]:
    found = complete(get_command(make_app()), words, ClusterNames(time.monotonic() + LONG_SECONDS))  # type: ignore[arg-type]
    return [each.value for each in found.candidates]


ON_CALL = "fixtures/on-call/cluster.yaml"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        pytest.param(["drain", "--snapshot", ON_CALL, ""], ["node-a", "node-b", "node-c", "node-d"], id="nodes"),
        pytest.param(["explain", "--snapshot", ON_CALL, "enc"], ["encode-3", "encode-4", "encode-1"], id="pods"),
        pytest.param(["explain", "--snapshot", ON_CALL, "-n", "ml", ""], ["train-1"], id="pods of a namespace"),
        pytest.param(["explain", "--snapshot", ON_CALL, "rs/s"], ["rs/search"], id="workloads that only pods show"),
        pytest.param(
            ["explain", "--snapshot", ON_CALL, "--without", "pdb/"],
            ["pdb/web", "pdb/shop/", "pdb/batch/", "pdb/data/", "pdb/ml/"],
            id="budgets and namespaces",
        ),
        pytest.param(["history", "--snapshot", "fixtures/recording", "node/"], ["node/node-a"], id="a recording"),
        pytest.param(["explain", "--snapshot", "absent.yaml", "w"], [], id="no such file"),
        pytest.param(["explain", "--snapshot", "-", "w"], [], id="standard input"),
    ],
)
def test_names_come_from_a_snapshot(words: list[str], names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    assert names_of(*words) == names


def test_a_snapshot_that_changes_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _NEVER_IN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "dump.json"
    for name in ("first", "second-one"):
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))
        assert [names_of("drain", "--snapshot", str(path), "") for _ in range(2)] == [[name], [name]]
    assert len(list((tmp_path / "cache" / "kpreempt" / "names").iterdir())) == 2


def test_a_pod_of_another_namespace_is_found_in_the_cluster(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPREEMPT_NO_CACHE", "1")
    flags = ("--server", f"http://127.0.0.1:{server.server_port}")
    assert names_of("explain", *flags, "pods-1") == ["pods-1"]
    assert [path for path, _ in server.requests] == ["/api/v1/namespaces/default/pods"]
    names_of("explain", *flags, "x")
    assert [path for path, _ in server.requests[1:]] == ["/api/v1/namespaces/default/pods", "/api/v1/pods"]
    names_of("explain", *flags, "-n", "shop", "x")
    assert [path for path, _ in server.requests[3:]] == ["/api/v1/namespaces/shop/pods"]
