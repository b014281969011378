"""``kpreempt queue`` on the command line: outputs, and mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kpreempt.report.schema import verdict_schema
from tests.unit.report.test_formats import closed

FIXTURES = Path(__file__).parents[3] / "fixtures"
NOW = ["--now", "2026-11-21T03:12:00Z"]
SNAPSHOT = ["--snapshot", str(FIXTURES / "on-call/cluster.yaml"), *NOW]
EVENTS = ["--events", str(FIXTURES / "queue/events.yaml"), *NOW]
ADD = '{"event": "addPod", "time": "2026-11-21T03:00:00Z", "pod": {"metadata": {"name": "a"}}}\n'

Kpreempt = Callable[..., Any]


@pytest.mark.parametrize("algorithm", ["kube-1.8", "kube-1.13", "kube-1.36"])
@pytest.mark.parametrize("given", [SNAPSHOT, EVENTS], ids=["a cluster", "events"])
def test_every_format_says_something_and_the_schema_describes_it(
    kpreempt: Kpreempt, algorithm: str, given: list[str]
) -> None:
    arguments = ["queue", "--algorithm", algorithm, *given]
    document = json.loads(kpreempt(*arguments, "-o", "json").stdout)
    jsonschema.Draft202012Validator(closed(verdict_schema())).validate(document)
    assert (document["kind"], document["algorithm"]) == ("SchedulingQueue", algorithm)
    for format_name in ("text", "yaml", "markdown", "jsonl", "name"):
        run = kpreempt(*arguments, "-o", format_name)
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.endswith("\n")
        assert format_name != "text" or all(len(line) <= 80 for line in run.stdout.splitlines())


def test_jsonl_is_a_line_for_each_step_or_else_for_each_pod(kpreempt: Kpreempt) -> None:
    steps = [json.loads(line) for line in kpreempt("queue", *EVENTS, "-o", "jsonl").stdout.splitlines()]
    assert [step["event"] for step in steps[:3]] == ["addPod", "addPod", "pop"]
    pods = [json.loads(line) for line in kpreempt("queue", *SNAPSHOT, "-o", "jsonl").stdout.splitlines()]
    assert pods[0]["pod"] == "shop/api-1"


def test_the_same_pods_are_in_the_queue_as_are_pending(kpreempt: Kpreempt) -> None:
    pending = json.loads(kpreempt("pending", *SNAPSHOT, "-o", "json").stdout)
    queue = json.loads(kpreempt("queue", *SNAPSHOT, "-o", "json").stdout)
    waiting = {item["pod"] for item in pending["items"] if item.get("position") or item["state"] == "Gated"}
    assert {item["pod"] for item in queue["items"]} == waiting


def test_events_may_be_json_lines_and_come_from_standard_input(kpreempt: Kpreempt) -> None:
    run = kpreempt("queue", "--events", "-", "-v", stdin=ADD + '{"event": "pop", "time": "+250ms"}\n')
    assert (run.returncode, run.stderr) == (0, "")
    assert "03:00:00.250  pop → default/a" in run.stdout


def test_events_play_on_the_cluster_of_a_snapshot(kpreempt: Kpreempt, tmp_path: Path) -> None:
    events = tmp_path / "events.yaml"
    events.write_text("event: deletePod\npod: batch/encode-1\n")
    run = kpreempt("queue", *SNAPSHOT, "--events", str(events), "-v")
    assert run.returncode == 0
    assert "deletePod batch/encode-1" in run.stdout
    assert "data/etl-1: unschedulable → backoff" in run.stdout


def test_what_refused_a_pod_is_found_out_where_the_event_does_not_say(kpreempt: Kpreempt, tmp_path: Path) -> None:
    events = tmp_path / "events.yaml"
    events.write_text("event: pop\n---\nevent: unschedulable\n")
    document = json.loads(kpreempt("queue", *SNAPSHOT, "--events", str(events), "-o", "json").stdout)
    pod = next(item for item in document["items"] if item["pod"] == "shop/api-1")
    assert "NodeResourcesFit" in pod["rejectedBy"]


def test_strict_fails_where_only_the_scheduler_knows(kpreempt: Kpreempt) -> None:
    assert kpreempt("queue", *SNAPSHOT, "--strict").returncode == 1
    assert kpreempt("queue", *EVENTS, "--algorithm", "kube-1.36", "--strict").returncode == 0


def test_hints_that_are_not_modeled_are_reported(kpreempt: Kpreempt) -> None:
    events = ADD + (
        '{"event": "pop"}\n{"event": "unschedulable", "plugins": ["VolumeBinding"]}\n'
        '{"event": "changeObject", "resource": "StorageClass", "action": "Add"}\n'
    )
    run = kpreempt("queue", "--events", "-", "-v", stdin=events)
    assert "plugin VolumeBinding queueing hint: StorageClassAdd is assumed to help" in " ".join(run.stdout.split())


def test_backoff_is_that_of_the_configuration(kpreempt: Kpreempt, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 20\n"
    )
    events = ADD + '{"event": "pop"}\n{"event": "unschedulable", "error": true}\n'
    run = kpreempt("queue", "--events", "-", "--scheduler-config", str(config), "-o", "json", stdin=events)
    assert json.loads(run.stdout)["items"][0]["backoffUntil"] == "2026-11-21T03:00:05Z"


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "message"),
    [
        (["--algorithm", "kube-1.18", *SNAPSHOT], "", 2, "the queue of algorithm 'kube-1.18' is not modeled"),
        (["--algorithm", "kube-9", *SNAPSHOT], "", 2, "the queue of algorithm 'kube-9' is not modeled"),
        (["--events", "nowhere.yaml"], "", 3, "nowhere.yaml"),
        (["--events", "-", "--snapshot", "-"], "", 2, "standard input is used twice"),
        (["--events", "-"], "", 3, "is empty"),
        (["--events", "-"], "- 1\n", 3, "expected a mapping"),
        (["--events", "-"], '{"event": "jump"}', 3, "event: event: invalid enum value 'jump'"),
        (["--events", "-"], '{"event": "pop", "pid": 1}', 3, "unknown field `pid`"),
        (["--events", "-"], '{"event": "pop", "time": "soon"}', 3, "time: 'soon' is not a time"),
        (["--events", "-"], '{"event": "pop", "time": "+9999999999999999h"}', 3, "is not a time"),
        (["--events", "-"], '{"event": "pop", "time": "9999-12-31T23:59:59Z"}', 3, "is not a time"),
        (["--events", "-"], ADD + '{"event": "pop", "time": "2026-11-21T02:00:00Z"}', 3, "is earlier than the event"),
        (
            ["--events", "-"],
            ADD + '{"event": "nominate", "pod": "default/a"}',
            3,
            "standard input:2: event nominate: node",
        ),
        (["--events", "-"], ADD + '{"event": "unschedulable"}', 3, "no pod was popped"),
        (["--events", "-"], ADD + '{"event":"pop"}\n{"event":"unschedulable"}', 3, "no plugin rejects pod default/a"),
        (["--events", "-"], "a: [", 3, "is not YAML"),
        (["--feature-gates", "NoSuchGate=true", *SNAPSHOT], "", 2, "unrecognized feature gate"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes(kpreempt: Kpreempt, arguments: list[str], stdin: str, code: int, message: str) -> None:
    run = kpreempt("queue", *arguments, stdin=stdin)
    assert message in run.stderr
    assert (run.returncode, run.stdout) == (code, "")


def test_more_steps_than_anyone_can_read_are_refused_in_time(kpreempt: Kpreempt, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    pods = ({"event": "addPod", "pod": {"metadata": {"name": f"p{number}"}}} for number in range(2000))
    events.write_text("".join(json.dumps(each) + "\n" for each in pods))
    run = kpreempt("queue", "--algorithm", "kube-1.8", "--events", str(events), *NOW)
    assert run.returncode == 3
    assert "too much output: a queue of" in run.stderr


PLUGINS = """
from kpreempt.plugins import SUCCESS, PreEnqueuePlugin, QueueSortPlugin, unschedulable

class LowestFirst(QueueSortPlugin):
    def less(self, one, other):
        return one.pod.priority < other.pod.priority

class Fails(QueueSortPlugin):
    def less(self, one, other):
        raise ValueError("no rank")

class OneAtATime(PreEnqueuePlugin):
    def pre_enqueue(self, pod):
        busy = any(self.handle.snapshot.pods())
        return unschedulable("another pod runs") if busy else SUCCESS
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[[str], list[str]]:
    """``--plugin`` for one of the plugins above."""
    (tmp_path / "orders.py").write_text(PLUGINS)
    return lambda name: ["--plugin", f"{tmp_path / 'orders.py'}:{name}"]


def test_a_plugin_orders_the_queue(kpreempt: Kpreempt, plugin: Any) -> None:
    events = "".join(
        ADD.replace('"a"', f'"{name}"').replace("}}}", f'}}, "spec": {{"priority": {priority}}}}}}}')
        for name, priority in (("high", 9), ("low", 1))
    )
    popped = '{"event": "pop"}\n'
    for options, first in (([], "high"), (plugin("LowestFirst"), "low")):
        run = kpreempt("queue", *options, "--events", "-", stdin=events + popped)
        assert (run.returncode, run.stderr) == (0, "")
        assert f"pop → default/{first}" in run.stdout


@pytest.mark.parametrize("command", ["queue", "pending", "at-risk", "budgets"])
def test_a_plugin_that_cannot_order_the_queue_is_named_in_one_message(
    kpreempt: Kpreempt, plugin: Any, command: str
) -> None:
    where = ["-A"] if command == "at-risk" else []
    run = kpreempt(command, *SNAPSHOT, *where, *plugin("Fails"))
    assert (run.returncode, run.stdout) == (3, "")
    message, hint = run.complaint.splitlines()
    assert message.startswith(
        'comparing pods by QueueSort plugin "Fails": Fails raised ValueError: no rank (orders.py,'
    )
    assert hint.startswith("hint: ")


def test_a_plugin_holds_pods_back_by_the_cluster_as_the_events_leave_it(kpreempt: Kpreempt, plugin: Any) -> None:
    node = '{"event": "addNode", "time": "2026-11-21T03:00:00Z", "node": {"metadata": {"name": "n"}}}\n'
    there = ADD.replace("}}}", '}, "spec": {"nodeName": "n"}}}').replace('"a"', '"there"')
    options = [*plugin("OneAtATime"), "--events", "-", "-v"]
    run = kpreempt("queue", *options, stdin=node + there + ADD)
    assert "GATED         1 pod, held by OneAtATime" in run.stdout
    assert "moved by: any event or pod update, if OneAtATime then" in run.stdout
    run = kpreempt("queue", *options, stdin=node + there + ADD + '{"event": "deletePod", "pod": "there"}\n')
    assert "default/a: gated → active" in run.stdout
