"""Commands with plugins that fail, or that look at who a pod is: they answer, say who failed, and measure the time."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Kpreempt

DEMO = Path(__file__).parents[3] / "fixtures/demo"
SNAPSHOT = ("--snapshot", str(DEMO / "cluster.yaml"))
CHANGE = ("-f", str(DEMO / "api.yaml"))
PLUGINS = """
from kpreempt.plugins import *


class Raising(PreFilterPlugin):
    def pre_filter(self, state, pod, nodes):
        raise KeyError("\\x1b[31mrack\\n")


class Answering(FilterPlugin):
    def filter(self, state, pod, node_info):
        return "no"


class Holding(PreEnqueuePlugin):
    def pre_enqueue(self, pod):
        return None


class Scoring(ScorePlugin):
    def score(self, state, pod, node_info):
        return 2**70


class Preempting(PreemptionPlugin):
    def may_evict(self, state, pod, victim, node_info):
        raise PluginError("no quota is known")


class Nominating(PreemptionPlugin):
    def post_filter(self, state, pod, filtered):
        return PostFilterResult(["nowhere"]), SUCCESS


class ByName(FilterPlugin):
    def filter(self, state, pod, node_info):
        return SUCCESS if pod.metadata.name.endswith("-1") else unschedulable(f"it is {pod.metadata.name}")


class Local(FilterPlugin):
    is_local = True

    def filter(self, state, pod, node_info):
        return SUCCESS if len(node_info.pods) < 4 else unschedulable("node(s) were crowded")


class Both(FilterPlugin, PreemptionPlugin):
    def filter(self, state, pod, node_info):
        return SUCCESS

    def check_fit(self, state, pod, node_info, put_back):
        return SUCCESS
"""
COMMANDS = {
    "explain": ("explain", *CHANGE),
    "explain of a pod that finds room": ("explain", "--cpu", "1m"),
    "explain of a node": ("explain", *CHANGE, "--node", "node-b"),
    "explain with what comes after": ("explain", *CHANGE, "--aftermath"),
    "pending": ("pending",),
    "pending with two workers": ("pending", "--jobs", "2"),
    "at-risk": ("at-risk", "-A", "--limit", "1"),
    "budgets": ("budgets",),
    "check": ("check", *CHANGE),
    "compare": ("compare", *CHANGE, "--algorithms", "kube-1.18,kube-1.36@CONFIG"),
    "queue": ("queue",),
}
FAILING = ("Raising", "Answering", "Holding", "Scoring", "Preempting", "Nominating")


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.py"
    path.write_text(PLUGINS, encoding="utf-8")
    return path


def command_with(command: str, plugins: Path, plugin: str) -> list[str]:
    """A command that runs the plugin; one that compares does so where a configuration enables it."""
    config = plugins.with_name("config.yaml")
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        f"- plugins: {{multiPoint: {{enabled: [{{name: {plugin}}}]}}}}\n",
        encoding="utf-8",
    )
    arguments = [argument.replace("CONFIG", str(config)) for argument in COMMANDS[command]]
    return [*arguments, *SNAPSHOT, "--plugin", f"{plugins}:{plugin}"]


@pytest.mark.parametrize("plugin", FAILING)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_plugin_that_fails_ends_no_command(kpreempt: Kpreempt, plugins: Path, command: str, plugin: str) -> None:
    run = kpreempt(*command_with(command, plugins, plugin))
    assert run.returncode in (0, 1), run.stderr
    assert run.stdout and "\x1b" not in run.stdout


@pytest.mark.parametrize("command", ["explain", "pending", "at-risk", "budgets", "check", "compare"])
@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_the_error_of_a_plugin_is_reported_as_one(kpreempt: Kpreempt, plugins: Path, command: str, form: str) -> None:
    run = kpreempt(*command_with(command, plugins, "Raising"), "-o", form)
    reported = " ".join(html.unescape(run.stdout).replace("\\", "").split())
    assert 'the scheduler fails with an error: running PreFilter plugin "Raising": Raising raised KeyError' in reported
    assert "no nodes" not in reported


def pending_pods(tmp_path: Path, number: int, *, cpu: str = "1m") -> str:
    """A cluster of one node with ``number`` tied pending pods."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
    }
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"web-{index}", "namespace": "default"},
            "spec": {"schedulerName": "default-scheduler", "containers": [container]},
        }
        for index in range(number)
    ]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, *pods]}), encoding="utf-8")
    return str(path)


def test_pods_that_a_plugin_tells_apart_share_no_verdict(kpreempt: Kpreempt, plugins: Path, tmp_path: Path) -> None:
    snapshot = pending_pods(tmp_path, 3)
    run = kpreempt("pending", "--snapshot", snapshot, "--plugin", f"{plugins}:ByName", "-o", "json")
    outcomes = {item["pod"]: item["outcome"] for item in json.loads(run.stdout)["items"]}
    assert outcomes == {"default/web-0": "Unschedulable", "default/web-1": "Lands", "default/web-2": "Unschedulable"}


def test_a_local_plugin_counts_what_a_simulation_puts_on_a_node(
    kpreempt: Kpreempt, plugins: Path, tmp_path: Path
) -> None:
    manifest = tmp_path / "web.json"
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}
    manifest.write_text(
        json.dumps(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {
                    "replicas": 6,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
                },
            }
        ),
        encoding="utf-8",
    )
    change = ("check", "-f", str(manifest), "--snapshot", pending_pods(tmp_path, 0))
    change += ("--assume-none", "pods", "--assume-none", "quota")
    run = kpreempt(*change, "--plugin", f"{plugins}:Local")
    assert run.returncode == 1
    assert "2 pods unschedulable" in " ".join(run.stdout.split())
    assert kpreempt(*change).returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("explain", *CHANGE), id="explain"),
        pytest.param(("pending", "--jobs", "1"), id="pending"),
        pytest.param(("pending", "--jobs", "2"), id="pending with two workers"),
        pytest.param(("check", *CHANGE), id="check"),
    ],
)
def test_the_time_of_a_plugin_is_part_of_the_whole(
    kpreempt: Kpreempt, plugins: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = tmp_path / "profile.json"
    run = kpreempt(*command, *SNAPSHOT, "--plugin", f"{plugins}:Both", "--profile-json", str(path))
    profile = json.loads(path.read_text(encoding="utf-8"))
    assert run.returncode in (0, 1), run.stderr
    assert profile["plugins"].keys() == {"Both"}
    assert 0 < profile["plugins"]["Both"] <= sum(profile["phases"].values())


def test_workers_tell_the_time_of_a_plugin(
    kpreempt: Kpreempt, plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpreempt.cli.workers.PATIENCE_SECONDS", 0.0)
    path = tmp_path / "profile.json"
    plugins.write_text(
        PLUGINS.replace("return SUCCESS if len", "sum(range(100_000)); return SUCCESS if len").replace("True", "False")
    )
    snapshot = pending_pods(tmp_path, 9)
    options = ("--plugin", f"{plugins}:Local", "--profile-json", str(path), "--jobs", "2", "-o", "name")
    run = kpreempt("pending", "--snapshot", snapshot, *options)
    assert run.returncode == 0, run.stderr
    alone = kpreempt("pending", "--snapshot", snapshot, *options[:-4], "--jobs", "1", "-o", "name")
    assert alone.stdout == run.stdout
    assert json.loads(path.read_text(encoding="utf-8"))["plugins"]["Local"] > 0


def test_batch_tells_the_time_of_a_plugin_once(kpreempt: Kpreempt, plugins: Path, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    pod = {
        "metadata": {"name": "p"},
        "spec": {"priority": 9000, "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]},
    }
    lines = "".join(json.dumps({"name": name, "pod": pod}) + "\n" for name in "abc")
    options = ("--plugin", f"{plugins}:Both", "--profile-json", str(path), "--jobs", "2")
    run = kpreempt("batch", *SNAPSHOT, *options, stdin=lines)
    profile = json.loads(path.read_text(encoding="utf-8"))
    assert run.returncode == 0 and len(run.stdout.splitlines()) == 3
    assert 0 < profile["plugins"]["Both"] <= sum(profile["phases"].values())
