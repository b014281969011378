"""``kpreempt record`` against an API server of the test's own: lists, watches, and what goes wrong on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kpreempt.errors import KpreemptError
from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import Connection
from kpreempt.snapshot.live.watching import Start, Watches
from kpreempt.snapshot.load import load_snapshot
from kpreempt.snapshot.recording.changes import Change, ChangeType
from kpreempt.snapshot.recording.recorder import (
    Bookmark,
    LeaseHolder,
    Listed,
    Recorder,
    Stream,
    Watched,
    WatchRejected,
    WatchReport,
)
from kpreempt.snapshot.recording.segments import Segments
from tests.fake_api import Answer, FakeApi, FakeCluster, ReceivedRequest, refused
from tests.unit.snapshot.recording.making import Making, a_node, a_pod

Kpreempt = Callable[..., Any]
PODS = Stream(KINDS["Pod"])


@pytest.fixture
def cluster() -> FakeCluster:
    pods = [each | {"metadata": each["metadata"] | {"resourceVersion": "7"}} for each in (a_pod("a"), a_pod("b"))]
    nodes = [a_node("n1") | {"metadata": {"name": "n1", "resourceVersion": "8"}}]
    return FakeCluster({"Pod": pods, "Node": nodes}, holder="one")


_WATCHES: list[Watches] = []


@pytest.fixture
def server(cluster: FakeCluster) -> Iterator[FakeApi]:
    with FakeApi(cluster) as server:
        yield server
        while _WATCHES:
            _WATCHES.pop().end()
        cluster.end()


class Watching:
    """Watches of a server, whose waits are noted and take no time."""

    def __init__(self, server: FakeApi, *streams: Stream, version: int = 100) -> None:
        self.waits: list[float] = []
        self.watches = Watches(
            Api(Connection(server=server.url), retries=0), sleep=self.waits.append, jitter=lambda: 0.0
        )
        _WATCHES.append(self.watches)
        self.watches.begin({stream: Start("v1", version) for stream in streams})

    def next(self, stream: Stream = PODS) -> Any:
        """What the stream tells next."""
        while True:
            reported = self.watches.news.get(timeout=20)
            if isinstance(reported, KpreemptError):
                return reported
            assert isinstance(reported, WatchReport)
            if reported.stream == stream:
                return reported.news


def test_changes_come_as_they_happen(cluster: FakeCluster, server: FakeApi) -> None:
    watching = Watching(server, PODS)
    cluster.change("ADDED", "Pod", a_pod("c"))
    cluster.change("MODIFIED", "Node", a_node("n1", "8"))
    cluster.change("DELETED", "Pod", a_pod("a"))
    assert [watching.next().what for _ in range(2)] == [ChangeType.ADDED, ChangeType.DELETED]
    requested = next(each for each in server.requested if each.query.get("watch") and each.path == "/api/v1/pods")
    assert (requested.query["resourceVersion"], requested.query["allowWatchBookmarks"]) == ("100", "true")


@pytest.mark.parametrize("way", ["status", "event"])
def test_what_the_server_has_let_go_of_is_listed_again(cluster: FakeCluster, server: FakeApi, way: str) -> None:
    gone = b'{"type":"ERROR","object":{"kind":"Status","code":410}}\n'

    def special(requested: ReceivedRequest) -> Answer | None:
        if (
            requested.path == "/api/v1/pods"
            and requested.query.get("watch")
            and requested.query["resourceVersion"] == "100"
        ):
            return refused(410, "too old") if way == "status" else Answer(stream=[gone])
        return None

    cluster.change("ADDED", "Pod", a_pod("c"))
    cluster.special = special
    watching = Watching(server, PODS)
    listed = watching.next()
    assert isinstance(listed, Listed)
    assert (listed.version, len(listed.objects)) == (101, 3)
    cluster.change("ADDED", "Pod", a_pod("d"))
    assert isinstance(watching.next(), Watched)


def test_a_watch_that_breaks_off_goes_on_where_it_was_after_ever_longer_waits(
    cluster: FakeCluster, server: FakeApi
) -> None:
    pieces = iter(
        [
            [b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"105"}}}\n', b'{"type":"ADDED","obj'],
            [],
            [b"<html>\n"],
            [b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"106"}}}\n'],
        ]
    )
    cluster.version = 105
    versions: list[str] = []

    def special(requested: ReceivedRequest) -> Answer | None:
        if requested.path != "/api/v1/pods" or not requested.query.get("watch"):
            return None
        versions.append(requested.query["resourceVersion"])
        if len(versions) == 3:
            return refused(503, "starting")
        found = next(pieces, None)
        return Answer(stream=found) if found is not None else None

    cluster.special = special
    watching = Watching(server, PODS)
    assert [watching.next(), watching.next()] == [Bookmark(105), Bookmark(106)]
    assert versions[:5] == ["100", "105", "105", "105", "105"]
    assert watching.waits[:3] == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(("kind", "simulate_rest"), [("PodDisruptionBudget", True), ("Pod", False)])
def test_a_kind_that_may_not_be_watched(cluster: FakeCluster, server: FakeApi, kind: str, simulate_rest: bool) -> None:
    cluster.special = lambda requested: refused(403, "no") if requested.query.get("watch") else None
    stream = Stream(KINDS[kind])
    watches = Watches(Api(Connection(server=server.url), retries=0))
    _WATCHES.append(watches)
    watches.begin({stream: Start("policy/v1" if simulate_rest else "v1", 100)})
    while isinstance(reported := watches.news.get(timeout=20), WatchReport) and isinstance(reported.news, LeaseHolder):
        pass
    if simulate_rest:
        assert isinstance(reported, WatchReport)
        assert reported.news == WatchRejected(403)
    else:
        assert isinstance(reported, KpreemptError)
        assert "not allowed (403)" in reported.message


def test_who_holds_the_lease_is_reported_as_it_changes(cluster: FakeCluster, server: FakeApi) -> None:
    watching = Watching(server)
    assert watching.watches.news.get(timeout=20).news == LeaseHolder("one")  # type: ignore[union-attr]
    cluster.change("MODIFIED", "Lease", {"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "two"}})
    assert watching.watches.news.get(timeout=20).news == LeaseHolder("two")  # type: ignore[union-attr]


def test_a_cluster_is_recorded_and_read_back(
    kpreempt: Kpreempt, cluster: FakeCluster, server: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = []
    take = Recorder.take

    def take_and_end(self: Recorder, reported: WatchReport) -> None:
        take(self, reported)
        if isinstance(reported.news, Watched):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Recorder, "take", take_and_end)
    # The tests may run with this signal ignored.
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)

    def special(requested: ReceivedRequest) -> None:
        if requested.path == "/api/v1/pods" and requested.query.get("watch") and not changed:
            changed.append(cluster.change("ADDED", "Pod", a_pod("c")))

    cluster.special = special
    folder = str(tmp_path / "rec")
    result = kpreempt("record", "--to", folder, "--server", server.url)
    assert result.returncode == 0
    assert "1 change: Pod 1" in result.stderr
    assert [pod.metadata.name for pod in load_snapshot([folder]).cluster.pods] == ["a", "b", "c"]
    info = kpreempt("record", "--info", folder)
    assert info.stdout == result.stderr
    assert all(each.path and set(each.query) <= READING for each in server.requested)


def test_a_live_recording_is_redacted_at_its_end(
    kpreempt: Kpreempt, cluster: FakeCluster, server: FakeApi, tmp_path: Path
) -> None:
    to, names = tmp_path / "rec", tmp_path / "names.json"
    words = ("--redact", "--redact-map", str(names), "--for", "1s", "--server", server.url)
    result = kpreempt("record", "--to", str(to), *words)
    assert result.returncode == 0, result.stderr
    assert result.complaint.startswith(f"{to}: redacted, ")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["names.json", "rec"]
    assert names.stat().st_mode & 0o777 == 0o600
    found = json.loads(names.read_text(encoding="utf-8"))["names"]
    (node,) = load_snapshot([str(to)]).cluster.nodes
    assert found[node.metadata.name] == "n1"
    again = kpreempt("record", "--to", str(to), *words)
    assert again.returncode == 3
    assert again.complaint == f"{to}: already contains a recording\nhint: --to DIR, another directory\n"


def test_what_was_killed_before_it_was_redacted_is_there(kpreempt: Kpreempt, server: FakeApi, tmp_path: Path) -> None:
    shutil.copytree("fixtures/recording", tmp_path / "rec.clear")
    result = kpreempt("record", "--to", str(tmp_path / "rec"), "--redact", "--server", server.url)
    assert result.returncode == 3
    assert result.complaint.splitlines()[1] == f"hint: kpreempt record --redact --from {tmp_path}/rec.clear --to DIR"
    done = kpreempt("record", "--redact", "--from", f"{tmp_path}/rec.clear", "--to", str(tmp_path / "rec"), "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert not server.requested


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "fixtures/recording"), "--from needs --redact\n"),
        (("--redact-map", "x"), "--redact-map needs --redact\n"),
        (("--redact", "--from", "fixtures/recording", "--redact-map", "-"), "--redact-map: file name missing\n"),
        (
            ("--redact", "--from", "fixtures/recording", "--for", "1s"),
            "--from and --for cannot be used together",
        ),
    ],
)
def test_options_of_redaction_that_make_no_sense_are_reported(
    kpreempt: Kpreempt, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    result = kpreempt("record", "--to", str(tmp_path / "rec"), *words)
    assert result.returncode == 2
    assert result.complaint.startswith(message)


def test_a_recording_that_tells_of_what_it_has_not_is_refused(kpreempt: Kpreempt, tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")]})
    making.recorder._add(
        [Change(what=ChangeType.DELETED, seen=making.now, kind="Pod", namespace="a", name="b", version=9)]
    )
    making.end()
    result = kpreempt("record", "--redact", "--from", making.folder, "--to", str(tmp_path / "to"))
    assert result.returncode == 3
    name = min(Path(making.folder).glob("*.kprec")).name
    assert result.complaint == f"{making.folder}/{name}:4: refers to an object that the recording does not have\n"
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 0)])
def test_a_signal_amid_writing_has_nothing_written_twice(
    kpreempt: Kpreempt,
    cluster: FakeCluster,
    server: FakeApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
) -> None:
    append = Segments.append

    def append_and_end(self: Segments, changes: Sequence[Change]) -> None:
        append(self, changes)
        if any(each.name == "c" for each in changes):
            signal.raise_signal(number)

    def special(requested: ReceivedRequest) -> None:
        if requested.path == "/api/v1/pods" and requested.query.get("watch") and not changed:
            changed.append(cluster.change("ADDED", "Pod", a_pod("c")))

    changed: list[int] = []
    cluster.special = special
    monkeypatch.setattr(Segments, "append", append_and_end)
    # The tests may run with this signal ignored.
    before = signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    try:
        result = kpreempt("record", "--to", str(tmp_path / "rec"), "--server", server.url)
    finally:
        signal.signal(number, before)
    assert result.returncode == code
    assert "1 change: Pod 1" in kpreempt("record", "--info", str(tmp_path / "rec")).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)])
def test_a_terminated_recorder_has_recorded_all_reported_changes(
    cluster: FakeCluster, server: FakeApi, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    result, names = _recorded_until(cluster, server, tmp_path, f"{int(number)}", number)
    assert (result, names) == (code, ["a", "b", "c"])


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such signals")
def test_in_the_background_where_ctrl_c_is_ignored_sigterm_ends_it(
    cluster: FakeCluster, server: FakeApi, tmp_path: Path
) -> None:
    result, names = _recorded_until(cluster, server, tmp_path, "", signal.SIGINT, signal.SIGTERM)
    assert (result, names) == (143, ["a", "b", "c"])


def _recorded_until(
    cluster: FakeCluster, server: FakeApi, tmp_path: Path, heeded: str, *numbers: signal.Signals
) -> tuple[int, list[str]]:
    """The exit code and the pods of a recording that these signals end, while a pod comes.

    All but the signals that are ``heeded`` are ignored in the process from the start, or may be.
    """
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "heeded = sys.argv.pop(1)\n"
        "if heeded:\n"
        "    usual = signal.default_int_handler if int(heeded) == signal.SIGINT else signal.SIG_DFL\n"
        "    signal.signal(int(heeded), usual)\n"
        "from kpreempt.cli.process import run\n"
        "from kpreempt.snapshot.recording.recorder import Recorder, Watched\n"
        "take = Recorder.take\n"
        "def tell(self, told):\n"
        "    take(self, told)\n"
        "    if isinstance(told.news, Watched):\n"
        "        print('taken', flush=True)\n"
        # What was reported is written at the end, and not before.
        "Recorder.tick = lambda *_: None\n"
        "Recorder.take = tell\n"
        "raise SystemExit(run(sys.argv[1:]))\n"
    )

    def special(requested: ReceivedRequest) -> None:
        if requested.path == "/api/v1/pods" and requested.query.get("watch") and not changed:
            changed.append(cluster.change("ADDED", "Pod", a_pod("c")))

    changed: list[int] = []
    cluster.special = special
    folder = str(tmp_path / "rec")
    words = [sys.executable, "-c", program, heeded, "record", "--to", folder, "--server", server.url]
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "none")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "taken\n"
            for number in numbers:
                process.send_signal(number)
            code = process.wait(60)
        finally:
            process.kill()
    return code, [pod.metadata.name for pod in load_snapshot([folder]).cluster.pods]


READING = {
    *("limit", "resourceVersion", "resourceVersionMatch", "fieldSelector", "watch", "allowWatchBookmarks"),
    *("timeoutSeconds", "continue"),
}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "either --to or --info is required"),
        (["--to", "a", "--info", "b"], "either --to or --info is required"),
        (["--to", "a", "--for", "soon"], '--for: "soon" is not a duration'),
        (["--to", "a", "--keep", "0s"], '--keep: "0s" is not a duration'),
        (["--to", "a", "--max-size", "much"], '--max-size: "much" is not a size'),
    ],
)
def test_wrong_usage_is_reported(kpreempt: Kpreempt, options: list[str], words: str) -> None:
    result = kpreempt("record", *options)
    assert result.returncode == 2
    assert words in result.stderr


def test_a_folder_without_a_recording_is_reported(kpreempt: Kpreempt, tmp_path: Path) -> None:
    result = kpreempt("record", "--info", str(tmp_path))
    assert result.returncode == 3
    assert "not a recording" in result.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["pending", "--snapshot", "fixtures/demo/cluster.yaml"], "--at needs a recording"),
        (["pending", "--server", "http://127.0.0.1:1"], "--at needs a recording, not a live cluster"),
    ],
)
def test_a_moment_is_one_of_a_recording(kpreempt: Kpreempt, command: list[str], words: str) -> None:
    result = kpreempt(*command, "--at", "2026-11-21T03:12:00Z")
    assert result.returncode == 2
    assert words in result.stderr
