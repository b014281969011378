"""``-f URL`` and ``-k DIR``."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kpreempt.errors import InputError
from kpreempt.model.urls import without_secrets
from kpreempt.snapshot.live import download as web
from kpreempt.snapshot.live.download import download
from tests.fake_extender import Dripping, FakeExtender, head

ROOT = Path(__file__).parents[3]
API = (ROOT / "fixtures/demo/api.yaml").read_bytes()
DEMO = ["--snapshot", str(ROOT / "fixtures/demo/cluster.yaml"), "--now", "2026-11-21T03:12:00Z"]
Kpreempt = Callable[..., Any]


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        if path.startswith("/again/"):
            count = int(path.rpartition("/")[2])
            self.send_response(302)
            self.send_header("Location", f"/again/{count - 1}" if count else "/api.yaml")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        bodies = {"/api.yaml": API, "/page": b"\n<!DOCTYPE html><html>", "/empty": b"", "/big": b"#" * 300_000}
        body = bodies.get(path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as running:
        running.seen = []  # type: ignore[attr-defined]
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def address(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


@pytest.mark.parametrize(
    "command",
    [["explain"], ["compare", "--algorithms", "kube-1.18,kube-1.36"], ["check", "--max-victims", "9"]],
    ids=lambda each: each[0],
)
def test_a_manifest_can_be_on_the_web(kpreempt: Kpreempt, address: str, command: list[str]) -> None:
    of_file = kpreempt(*command, *DEMO, "-f", str(ROOT / "fixtures/demo/api.yaml"), "-o", "name")
    of_web = kpreempt(*command, *DEMO, "-f", f"{address}/api.yaml", "-o", "name")
    assert (of_web.returncode, of_web.stdout) == (of_file.returncode, of_file.stdout)
    assert of_web.complaint == of_file.stderr


def test_a_few_redirects_are_followed(kpreempt: Kpreempt, address: str) -> None:
    assert kpreempt("explain", *DEMO, "-f", f"{address}/again/4").returncode == 0
    run = kpreempt("explain", *DEMO, "-f", f"{address}/again/9")
    assert (run.returncode, run.complaint) == (3, f"{address}/again/3: redirects more than 5 times\n")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/nothing", "/nothing: the server returned 404 Not Found\n"),
        ("/page", "/page: an HTML page, not a manifest\nhint: use the URL of the raw file\n"),
        ("/empty", "/empty: contains no objects\n"),
    ],
)
def test_what_is_wrong_is_one_message(kpreempt: Kpreempt, address: str, path: str, message: str) -> None:
    run = kpreempt("explain", *DEMO, "-f", f"{address}{path}")
    assert (run.returncode, run.stdout, run.complaint) == (3, "", f"{address}{message}")


def test_a_server_that_is_not_there_is_one_message(kpreempt: Kpreempt) -> None:
    run = kpreempt("explain", *DEMO, "-f", "http://127.0.0.1:1/x.yaml")
    assert run.returncode == 3
    assert run.complaint.startswith("http://127.0.0.1:1/x.yaml: ")
    assert "Traceback" not in run.stderr


def test_secrets_of_a_url_are_neither_sent_nor_shown(server: ThreadingHTTPServer, kpreempt: Kpreempt) -> None:
    run = kpreempt("explain", *DEMO, "-f", f"http://me:secret@127.0.0.1:{server.server_port}/nothing?token=secret")
    assert "secret" not in run.stderr
    ((path, headers),) = server.seen  # type: ignore[attr-defined]
    assert path == "/nothing?token=secret"
    assert "Authorization" not in headers
    assert without_secrets("https://me:x@h/p?q=1#f") == "https://h/p"


def test_an_answer_is_bounded_in_size(address: str) -> None:
    with pytest.raises(InputError, match="longer than 1,000 bytes"):
        download(f"{address}/big", {}, max_bytes=1000)


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nX: ", head()], ids=["nothing", "headers", "a body"])
def test_an_answer_that_drips_has_an_end(start: bytes) -> None:
    with FakeExtender(Dripping(start, b" ")) as dripping, pytest.raises(InputError) as caught:
        download(f"{dripping.url}/rollout.yaml", {}, seconds=0.1)
    assert caught.value.message == f"{dripping.url}/rollout.yaml: timed out after 0.1s"


@pytest.mark.parametrize("url", ["http://", "https:///x", "http://[x", "http://h:99999/"])
def test_what_is_no_url_is_reported(url: str) -> None:
    with pytest.raises(InputError, match="not a URL with a host"):
        download(url, {})


class _Redirect:
    status = 302
    headers = {"location": "http://h/a"}

    def close(self) -> None:
        return


def test_https_never_becomes_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_request", lambda *_: _Redirect())
    with pytest.raises(InputError, match="redirects from https to another scheme"):
        download("https://h/a", {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "api.yaml").write_bytes(API)
    (tmp_path / "kustomization.yaml").write_text("resources: [api.yaml]\nnameSuffix: -v2\n", encoding="utf-8")
    return tmp_path


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("command", [["explain"], ["check"]], ids=lambda each: each[0])
def test_a_kustomization_is_built(kpreempt: Kpreempt, folder: Path, command: list[str]) -> None:
    run = kpreempt(*command, *DEMO, "-k", str(folder))
    assert run.returncode in (0, 1)
    assert "api-v2" in run.stdout


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_a_folder_without_a_kustomization_is_one_message(kpreempt: Kpreempt, tmp_path: Path) -> None:
    run = kpreempt("explain", *DEMO, "-k", str(tmp_path))
    assert run.returncode == 3
    assert run.complaint.startswith(f"kubectl kustomize {tmp_path}: unable to find one of 'kustomization.yaml'")
    assert run.stderr.count("\n") == 1


def test_without_kubectl_there_is_one_clear_message(
    kpreempt: Kpreempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    run = kpreempt("explain", *DEMO, "-k", "overlay")
    assert run.returncode == 3
    assert run.complaint == (
        "-k needs kubectl, which is not in PATH\nhint: kustomize build overlay | kpreempt explain -f -\n"
    )
