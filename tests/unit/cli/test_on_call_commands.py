"""``pending``, ``who-evicted`` and ``at-risk`` on the command line: outputs, mistakes, and watching."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kpreempt import Cluster
from kpreempt.cli import on_call as watching
from kpreempt.cli.extensions import Extensions
from kpreempt.cli.on_call import pending
from kpreempt.cli.requests import PendingRequest
from kpreempt.errors import InputError
from kpreempt.report.schema import verdict_schema
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.live.flags import ConnectionFlags
from tests.factories import LATER_VERSION
from tests.unit.cli.test_terminal import Terminal
from tests.unit.report.test_formats import closed

ON_CALL = Path(__file__).parents[3] / "fixtures/on-call"
SNAPSHOT = ["--snapshot", str(ON_CALL / "cluster.yaml"), "--now", "2026-11-21T03:12:00Z"]
BEFORE = ["--before", str(ON_CALL / "before.yaml")]
PENDING = ["pending", *SNAPSHOT]
WHO = ["who-evicted", "encode-1", "-n", "batch", *SNAPSHOT]
AT_RISK = ["at-risk", "-n", "batch", *SNAPSHOT]

Kpreempt = Callable[..., Any]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(PENDING, id="pending"),
        pytest.param(["pending", *SNAPSHOT, "-n", "nowhere"], id="pending, none of them"),
        pytest.param(WHO, id="who-evicted"),
        pytest.param([*WHO, *BEFORE], id="who-evicted, reconstructed"),
        pytest.param(["who-evicted", "web-1", "-n", "shop", *SNAPSHOT], id="who-evicted, nobody"),
        pytest.param(AT_RISK, id="at-risk"),
        pytest.param(["at-risk", "-n", "nowhere", *SNAPSHOT], id="at-risk, none"),
    ],
)
def test_every_format_says_something_and_the_schema_describes_it(kpreempt: Kpreempt, arguments: list[str]) -> None:
    document = json.loads(kpreempt(*arguments, "-o", "json").stdout)
    jsonschema.Draft202012Validator(closed(verdict_schema())).validate(document)
    assert document["apiVersion"] == "kpreempt.io/v1alpha1"
    for format_name in ("text", "yaml", "markdown"):
        run = kpreempt(*arguments, "-o", format_name)
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.endswith("\n")
        assert all(len(line) <= 80 for line in run.stdout.splitlines()) or format_name != "text"


@pytest.mark.parametrize("arguments", [PENDING, [*WHO, *BEFORE]], ids=["pending", "who-evicted"])
def test_what_has_a_page_writes_it(kpreempt: Kpreempt, arguments: list[str]) -> None:
    run = kpreempt(*arguments, "-o", "html")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("<!DOCTYPE html>")
    refused = kpreempt(*AT_RISK, "-o", "html")
    assert (refused.returncode, refused.stdout) == (2, "")


def test_names_are_those_of_the_pods(kpreempt: Kpreempt) -> None:
    assert kpreempt(*PENDING, "-n", "shop", "-o", "name").stdout == "pod/api-1\npod/api-2\npod/checkout-1\n"
    assert kpreempt(*WHO, "-o", "name").stdout == "pod/checkout-1\n"
    assert kpreempt(*AT_RISK, "--limit", "1", "-o", "name").stdout == "pod/encode-4\n"


def test_jsonl_is_a_line_for_each_pod(kpreempt: Kpreempt) -> None:
    lines = kpreempt(*PENDING, "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line)["pod"] for line in lines[:2]] == ["shop/api-1", "shop/api-2"]
    assert len(lines) == 9


def test_pending_is_about_all_namespaces_unless_one_is_given(kpreempt: Kpreempt) -> None:
    everything = kpreempt(*PENDING, "-o", "name").stdout
    assert kpreempt(*PENDING, "-A", "-o", "name").stdout == everything
    assert len(kpreempt(*PENDING, "-n", "ml", "-o", "name").stdout.splitlines()) == 1


@pytest.mark.parametrize("command", ["at-risk", "pending", "budgets"])
def test_ages_count_to_the_time_of_the_dump(kpreempt: Kpreempt, command: str) -> None:
    path = ON_CALL / "cluster.yaml"
    document = json.loads(kpreempt(command, "-A", "--snapshot", str(path), "-o", "json").stdout)
    cluster = Cluster.load(path)
    found = {"at-risk": cluster.at_risk, "pending": cluster.pending, "budgets": cluster.budgets}[command]()
    taken_at = cluster.snapshot.taken_at
    assert taken_at is not None
    assert datetime.fromisoformat(document["at"]) == taken_at == found.at


@pytest.mark.parametrize("command", ["pending", "at-risk", "budgets", "who-evicted"])
def test_a_list_covers_all_namespaces_unless_one_is_given(kpreempt: Kpreempt, command: str) -> None:
    everything = kpreempt(command, *SNAPSHOT, "-o", "json").stdout
    assert everything == kpreempt(command, *SNAPSHOT, "-A", "-o", "json").stdout
    assert everything != kpreempt(command, *SNAPSHOT, "-n", "data", "-o", "json").stdout


def test_another_scheduler_configuration_is_heeded(kpreempt: Kpreempt, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: default-scheduler}, {schedulerName: volcano}]\n"
    )
    run = kpreempt(*PENDING, "-n", "ml", "-o", "json", "--scheduler-config", str(config))
    assert json.loads(run.stdout)["items"][0]["state"] == "NeverAttempted"


def test_strict_fails_where_the_version_is_not_modeled(kpreempt: Kpreempt, tmp_path: Path) -> None:
    demo = ON_CALL.parent / "demo/cluster.yaml"
    assert kpreempt("pending", "--snapshot", str(demo), "--strict", "-o", "name").returncode == 0
    other = tmp_path / "other.yaml"
    other.write_text(demo.read_text().replace("v1.36.3", f"v{LATER_VERSION}.0"))
    run = kpreempt("pending", "--snapshot", str(other), "--strict", "-o", "name")
    assert run.returncode == 1
    assert run.complaint.startswith("--strict: the answer depends on an assumption: cluster: version")


def test_strict_fails_if_what_becomes_of_a_pod_depends_on_an_assumption(kpreempt: Kpreempt) -> None:
    run = kpreempt(*PENDING, "--strict", "-o", "name")
    assert run.returncode == 1
    assert "Pod batch/encode-1: metadata.deletionTimestamp: is 30s past its grace period" in run.complaint


@pytest.mark.parametrize("command", [PENDING, WHO, AT_RISK], ids=lambda command: command[0])
def test_the_profile_tells_phases(kpreempt: Kpreempt, tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "profile.json"
    assert kpreempt(*command, "-o", "name", "--profile-json", str(path)).returncode == 0
    assert {"read", "decode", "report"} <= json.loads(path.read_text())["phases"].keys()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["pending"], 2, "no cluster given", id="no cluster"),
        pytest.param([*PENDING, "-n", "a", "-A"], 2, "-n and -A cannot be used together", id="one namespace and all"),
        pytest.param([*PENDING, "-l", "a b"], 2, '-l "a b": "a b" is not a label selector', id="no selector"),
        pytest.param([*AT_RISK, "-o", "wide"], 2, "-o wide: unknown format 'wide'", id="a format that it has not"),
        pytest.param([*PENDING, "-w", "--interval", "0"], 2, "--interval 0: expected", id="no time between looks"),
        pytest.param([*PENDING, "-w", "--interval", "nan"], 2, "--interval nan: expected", id="a time that is none"),
        pytest.param([*PENDING, "-w", "--strict"], 2, "--strict cannot be used with -w", id="a gate on many answers"),
        pytest.param(
            ["pending", "-w", "--snapshot", "-"], 2, "-w cannot be used with standard input", id="watching a pipe"
        ),
        pytest.param([*PENDING, "--color", "red"], 2, "--color: invalid value 'red'", id="a colour"),
        pytest.param([*WHO, "-A"], 2, "-n and -A cannot be used together", id="a victim in one namespace and in all"),
        pytest.param(
            ["who-evicted", "nodes/a", *SNAPSHOT], 2, '"nodes/a" is a Node; expected a pod', id="a kind without pods"
        ),
        pytest.param(["who-evicted", "x", *SNAPSHOT], 3, 'pod "x" not found', id="nobody"),
        pytest.param([*WHO, "--before", "absent.yaml"], 3, "absent.yaml: ", id="no snapshot from before"),
        pytest.param([*AT_RISK, "--limit", "0"], 2, "kpreempt at-risk: invalid value", id="no pods at all"),
        pytest.param(["at-risk"], 2, "no cluster given", id="at-risk without a cluster"),
    ],
)
def test_mistakes_are_one_message(kpreempt: Kpreempt, arguments: list[str], code: int, message: str) -> None:
    run = kpreempt(*arguments)
    assert (run.returncode, run.stdout) == (code, "")
    assert run.complaint.startswith(message)


def test_a_victims_name_may_say_its_kind_and_near_names_are_offered(kpreempt: Kpreempt) -> None:
    assert kpreempt("who-evicted", "pod/encode-1", "-n", "batch", *SNAPSHOT).returncode == 0
    assert "hint: encode-1" in kpreempt("who-evicted", "encode-11", "-n", "batch", *SNAPSHOT).stderr


@pytest.fixture
def watched(tmp_path: Path) -> Callable[..., list[float]]:
    """Watches a snapshot, of which each wait makes the next version, and returns how long it waited."""

    def run(versions: list[str], outputs: Sequence[str] = ("name",)) -> list[float]:
        path = tmp_path / "cluster.yaml"
        path.write_text((ON_CALL / "cluster.yaml").read_text())
        waits: list[float] = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if not versions:
                raise KeyboardInterrupt
            path.write_text(versions.pop(0))

        request = PendingRequest(
            snapshots=[str(path)],
            input_limits=InputLimits(),
            connection=ConnectionFlags(),
            extensions=Extensions(),
            watch=True,
            interval=7,
            outputs=list(outputs),
            color="never",
            jobs=1,
        )
        with pytest.raises(KeyboardInterrupt):
            pending(request, wait=wait)
        return waits

    return run


EMPTY = "apiVersion: v1\nkind: List\nitems: []\n"
ONE = "apiVersion: v1\nkind: Pod\nmetadata: {name: late, namespace: shop}\nspec: {containers: []}\n"


def test_watching_looks_again_after_each_interval(
    watched: Callable[..., list[float]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert watched([EMPTY, ONE]) == [7, 7, 7]
    written = capsys.readouterr().out
    assert written.startswith("pod/api-1\n")
    assert written.endswith("pod/gated-1\npod/train-1\n\n\npod/late\n")


def test_a_look_that_fails_is_said_and_the_watch_goes_on(
    watched: Callable[..., list[float]], capsys: pytest.CaptureFixture[str]
) -> None:
    watched(["{", ONE])
    written = capsys.readouterr()
    assert written.out.endswith("\n\npod/late\n")
    assert "cluster.yaml" in written.err


def test_a_first_look_that_fails_ends_the_watch() -> None:
    def look() -> bool:
        raise InputError("broken", source="cluster.yaml")

    with pytest.raises(InputError):
        watching.watch(look, 1, fail=lambda _: None, wait=lambda _: None)


def test_a_watch_ends_when_no_one_reads_any_more() -> None:
    looks = iter([True, True, False])
    waits: list[float] = []
    watching.watch(lambda: next(looks), 1, fail=lambda _: None, wait=waits.append)
    assert waits == [1, 1]


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard output and standard error, of 24 lines, from now on."""
    monkeypatch.setenv("LINES", "24")
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def frames(shown: Terminal) -> list[list[str]]:
    """The lines of each look, as they were drawn over those before."""
    drawn = [each.partition("\x1b[J")[0] for each in shown.getvalue().split("\x1b[H\x1b[?7l")[1:]]
    return [[line.removeprefix("\x1b[K") for line in each.splitlines()] for each in drawn]


def test_a_terminal_is_drawn_in_place_and_never_scrolls(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    screen = watching.Screen()
    screen.show("one\n")
    screen.show("".join(f"line {number}\n" for number in range(100)))
    short, long = frames(shown)
    assert short == ["one"]
    assert (long[0], len(long), long[-1]) == ("line 0", 23, "… 78 more lines; enlarge the terminal to see them")


def test_a_look_that_fails_leaves_the_one_before_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    screen = watching.Screen()
    screen.show("".join(f"line {number}\n" for number in range(22)))
    screen.fail(InputError("cannot be reached", source="cluster"))
    before, after = frames(shown)
    assert after == [*before, "last refresh failed: cluster: cannot be reached"]


def test_a_pipe_gets_a_block_for_each_look(capsys: pytest.CaptureFixture[str]) -> None:
    screen = watching.Screen()
    screen.show("one\n")
    screen.show("two\n")
    assert capsys.readouterr().out == "one\n\ntwo\n"


def test_a_watch_says_what_changed_since_the_last_look(
    watched: Callable[..., list[float]], capsys: pytest.CaptureFixture[str]
) -> None:
    now = (ON_CALL / "cluster.yaml").read_text()
    watched([now.replace("name: gated-1", "name: later-1")] * 2, outputs=["text"])
    lines = capsys.readouterr().out.splitlines()
    reported = [line.removeprefix("CHANGES").strip() for line in lines if line.startswith("CHANGES")]
    assert reported == [
        "Since 03:12:00: newly pending batch/later-1; gone batch/gated-1.",
        "Since 03:12:00: no change.",
    ]


def test_an_earlier_cluster_without_nodes_explains_no_preemption(kpreempt: Kpreempt, tmp_path: Path) -> None:
    before = yaml.safe_load((ON_CALL / "before.yaml").read_text(encoding="utf-8"))
    before["items"] = [each for each in before["items"] if each["kind"] != "Node"]
    (tmp_path / "before.json").write_text(json.dumps(before, default=str), encoding="utf-8")
    result = kpreempt(*WHO, "--before", str(tmp_path / "before.json"), "-o", "json")
    (item,) = json.loads(result.stdout)["items"]
    assert "preemptor" in item["preemption"]
    assert "reconstruction" not in item["preemption"]
    text = " ".join(kpreempt(*WHO, "--before", str(tmp_path / "before.json")).stdout.split())
    assert "No nodes in the snapshot" in text
