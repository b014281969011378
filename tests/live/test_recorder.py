"""A recorder next to a real scheduler: its decisions are predicted, and kills and restarts lose nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from kpreempt.cli.process import run
from kpreempt.snapshot.load import load_snapshot
from kpreempt.snapshot.recording.changes import OBJECT_CHANGES
from kpreempt.snapshot.recording.runs import runs_of
from kpreempt.snapshot.recording.segments import Segment, segments_in
from tests.live.bustle import NAMESPACE, begin, happen
from tests.live.patience import until
from tests.live.plane import ControlPlane, program
from tests.live.resting import RESOURCES
from tests.live.second_server import SecondServer

pytestmark = pytest.mark.live

SEED = int(os.environ.get("KPREEMPT_LIVE_SEED", "1"))
# Anything older than this is on disk.
LOST_SECONDS = 1.0


_EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"


class Recording:
    """A recorder's process, which may be killed and restarted."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.folder = str(folder)
        self._kubeconfig = kubeconfig
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start recording, and return once there is one more base."""
        before = len(_segments(self.folder))
        words = ["record", "--to", self.folder, "--kubeconfig", str(self._kubeconfig), "--quiet"]
        self._process = subprocess.Popen([sys.executable, "-m", "kpreempt", *words])
        until(lambda: len(_segments(self.folder)) > before, "a base")

    def end(self, how: signal.Signals) -> None:
        """Stop it this way."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(30)


class Witness:
    """The outcome of pods, from a separate watch, with times."""

    def __init__(self, plane: ControlPlane) -> None:
        self.versions: dict[int, float] = {}
        version = plane.request("GET", RESOURCES["Pod"])["metadata"]["resourceVersion"]
        self._watch = plane.watch(RESOURCES["Pod"], version)
        self._thread = Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        with suppress(OSError, HTTPException):
            for pod in self._watch.objects(300):
                self.versions[int(pod["metadata"]["resourceVersion"])] = time.time()

    def close(self) -> None:
        """Stop watching."""
        self._watch.break_off()
        self._thread.join()
        self._watch.close()


def _segments(folder: str) -> list[Path]:
    return segments_in(folder) if Path(folder).is_dir() else []


def recorded(folder: str) -> set[int]:
    """The versions of pods whose changes are in a recording."""
    return {
        change.version
        for path in segments_in(folder)
        for change in Segment(path).changes()
        if change.kind == "Pod" and change.what in OBJECT_CHANGES
    }


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """A new control plane with controllers and kubelets."""
    with ControlPlane(program(), moving=True) as plane:
        begin(plane)
        yield plane


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run([*words, "-o", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_what_the_scheduler_decides_among_300_pods_is_predicted(
    plane: ControlPlane, tmp_path: Path, compared: Counter[str], capsys: pytest.CaptureFixture[str]
) -> None:
    recording = Recording(plane.kubeconfig, tmp_path / "recording")
    recording.start()
    assert len(list(happen(plane, Random(SEED)))) >= 10
    # Events of the last preemptions may be late.
    time.sleep(11)
    plane.request("DELETE", _EVENTS)
    until(lambda: not load_snapshot([recording.folder]).cluster.events, "no events")
    recording.end(signal.SIGINT)
    pods = {trace.uid for each in runs_of(recording.folder) for trace in each.traces}
    assert len(pods) >= 300
    answer = answered(capsys, "verify", recording.folder)
    unexplained = [each for each in answer["items"] if each["cause"] != "Race" or not each["changes"]]
    assert (unexplained, answer["score"], answer["notCompared"]) == ([], 100.0, {})
    numbers = {each["decision"]: each for each in answer["decisions"]}
    assert numbers["Nominated"]["predicted"] > 20
    assert sum(each["violatingBudgets"] for each in answer["preemptions"]) > 0
    for kind, each in numbers.items():
        compared[f"{kind.lower()} of a recording predicted"] += each["predicted"]
        compared[f"{kind.lower()} of a recording raced"] += each["raced"]
    _explain_a_victim(plane, recording.folder, capsys)
    _check_a_change(plane, recording.folder, tmp_path, capsys)
    redacted = str(tmp_path / "redacted")
    assert run(["record", "--redact", "--from", recording.folder, "--to", redacted, "-q"]) == 0
    other = answered(capsys, "verify", redacted)
    assert (other["items"] == [] or {each["cause"] for each in other["items"]} == {"Race"}) and other["score"] == 100.0
    decided = {each["decision"]: each["predicted"] + each["raced"] for each in other["decisions"]}
    assert decided == {kind: each["predicted"] + each["raced"] for kind, each in numbers.items()}


def _check_a_change(plane: ControlPlane, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A change has the same result on the end of the recording as on the live cluster."""
    live = next(iter(plane.request("GET", "/apis/apps/v1/deployments")["items"]))
    metadata = {key: live["metadata"][key] for key in ("name", "namespace")}
    spec = {**live["spec"], "replicas": live["spec"]["replicas"] + 1}
    path = tmp_path / "change.json"
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    path.write_text(json.dumps(document), encoding="utf-8")
    changes = []
    for source in (["--snapshot", folder], ["--kubeconfig", str(plane.kubeconfig)]):
        capsys.readouterr()
        assert run(["check", "-f", str(path), "--runs", "1", *source, "-o", "json"]) in (0, 1)
        changes.append(json.loads(capsys.readouterr().out)["changes"])
    assert changes[0] == changes[1]
    assert [each["object"] for each in changes[0]] == [f"Deployment {metadata['namespace']}/{metadata['name']}"]


def _explain_a_victim(plane: ControlPlane, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The eviction of a deleted pod without events: the live cluster has nothing about it, the recording everything."""
    assert plane.request("GET", _EVENTS)["items"] == []
    traces = [trace for each in runs_of(folder) for trace in each.traces if trace.decision.victims]
    there = {each["metadata"]["name"] for each in plane.request("GET", RESOURCES["Pod"])["items"]}
    for trace in traces:
        victim = next((each for each in trace.decision.victims if each.partition("/")[2] not in there), None)
        if victim is None:
            continue
        namespace, _, name = victim.partition("/")
        assert run(["who-evicted", name, "-n", namespace, "--kubeconfig", str(plane.kubeconfig)]) != 0
        reported = answered(capsys, "who-evicted", name, "-n", namespace, "--snapshot", folder)
        (preemption,) = [each["preemption"] for each in reported["items"]]
        assert preemption["preemptor"]["pod"] == trace.decision.pod
        assert preemption["reconstruction"]["result"] == "Confirmed"
        return
    raise AssertionError("no victim is gone")


def test_what_a_scheduler_decides_is_verified_while_it_does(
    plane: ControlPlane, tmp_path: Path, compared: Counter[str]
) -> None:
    words = ["verify", "--for", "40s", "--kubeconfig", str(plane.kubeconfig), "-o", "json", "--fail-below", "100"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    verifying = subprocess.Popen(
        [sys.executable, "-m", "kpreempt", *words], stdout=subprocess.PIPE, text=True, env=environment
    )
    with verifying:
        try:
            until(lambda: list(tmp_path.glob("*/*.kprec")), "a base")
            steps = happen(plane, Random(SEED))
            assert [next(steps) for _ in range(4)][-1] == "scaled alert to 8"
            reported, _ = verifying.communicate(timeout=120)
        finally:
            verifying.kill()
    assert verifying.returncode == 0, reported
    numbers = {each["decision"]: each["predicted"] for each in json.loads(reported)["decisions"]}
    assert numbers["Bound"] > 50 and numbers["Nominated"] > 0
    for kind, number in numbers.items():
        compared[f"{kind.lower()} verified while recording"] += number
    # The recording was only for this query.
    assert list(tmp_path.iterdir()) == []


def test_a_kill_loses_the_last_second_and_a_restart_of_the_server_nothing_that_stays(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = SecondServer(plane, tmp_path)
    server.start()
    recording = Recording(server.kubeconfig, tmp_path / "recording")
    witness = Witness(plane)
    try:
        recording.start()
        begun = time.time()
        steps = happen(plane, Random(SEED))
        next(steps), next(steps)
        killed = _meanwhile(steps, lambda: recording.end(signal.SIGKILL), 0.6)
        lost = {
            version
            for version, at in witness.versions.items()
            if begun < at < killed - LOST_SECONDS and version not in recorded(recording.folder)
        }
        assert lost == set()
        next(steps)
        recording.start()
        next(steps)
        _meanwhile(steps, lambda: (server.kill(), server.start()), 0.4)
        next(steps)
        time.sleep(LOST_SECONDS)
        until(lambda: _is_caught_up(plane, recording.folder), "all pods as they are")
        recording.end(signal.SIGINT)
    finally:
        witness.close()
        server.kill()
    answer = answered(capsys, "verify", recording.folder)
    assert [each for each in answer["items"] if each["cause"] != "Race"] == []
    assert len(list(runs_of(recording.folder))) == 2


def _meanwhile(steps: Iterator[str], does: Callable[[], object], seconds: float) -> float:
    """Do something during the next step; return when it was done."""
    times: list[float] = []

    def do() -> None:
        time.sleep(seconds)
        times.append(time.time())
        does()

    thread = Thread(target=do)
    thread.start()
    next(steps)
    thread.join()
    return times[0]


def _is_caught_up(plane: ControlPlane, folder: str) -> bool:
    """Whether the recording ends with the current pods on their nodes."""
    pods = plane.request("GET", RESOURCES["Pod"])["items"]
    known = load_snapshot([folder]).cluster.pods
    there = {(each["metadata"]["name"], each["spec"].get("nodeName", "")) for each in pods}
    return {(each.metadata.name, each.spec.node_name) for each in known} == there
