"""What a command makes of a plugin: what time it tells it, and that it runs at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rollouts import nodes

Kpreempt = Callable[..., Any]

TAKEN = "2026-11-01T10:00:00Z"
PLUGIN = """
from kpreempt.plugins import FilterPlugin, unschedulable


class Clock(FilterPlugin):
    def filter(self, state, pod, node_info):
        return unschedulable(f"it is {self.handle.snapshot.now:%Y-%m-%d %H:%M}")
"""
CONFIGURATION = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "profiles: [{plugins: {multiPoint: {enabled: [{name: Clock}]}}}]\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("clock.py").write_text(PLUGIN, encoding="utf-8")
    waiting = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": [{"name": "c"}]},
    }
    Path("objects.json").write_text("\n---\n".join(map(json.dumps, [*nodes(1, "4"), waiting])), encoding="utf-8")
    return tmp_path


@pytest.fixture
def dump(folder: Path, kpreempt: Kpreempt) -> str:
    """A dump that was taken three weeks ago."""
    assert kpreempt("snapshot", "--snapshot", "objects.json", "--to", "dump.json").returncode == 0
    text = Path("dump.json").read_text(encoding="utf-8")
    document = json.loads(text)
    annotations = document["metadata"]["annotations"]
    key = next(key for key in annotations if key.endswith("taken-at"))
    Path("dump.json").write_text(text.replace(annotations[key], TAKEN), encoding="utf-8")
    return "dump.json"


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "pod/web", "-n", "shop", "-o", "json"],
        ["pending", "-o", "json"],
        ["compare", "--algorithms", "kube-1.18,kube-1.36@clock.yaml", "-o", "json"],
    ],
    ids=["explain", "pending", "compare"],
)
def test_a_dump_is_evaluated_as_of_its_time(kpreempt: Kpreempt, dump: str, command: list[str]) -> None:
    Path("clock.yaml").write_text(CONFIGURATION, encoding="utf-8")
    arguments = [*command, "--snapshot", dump, "--plugin", "clock.py:Clock"]
    assert "it is 2026-11-01 10:00" in kpreempt(*arguments).stdout
    if command[0] != "compare":
        assert "it is 2030-05-06 07:08" in kpreempt(*arguments, "--now", "2030-05-06T07:08:00Z").stdout


def test_a_plugin_that_no_compared_configuration_enables_is_a_mistake(kpreempt: Kpreempt, folder: Path) -> None:
    arguments = ["compare", "--algorithms", "kube-1.18,kube-1.36", "--snapshot", "objects.json"]
    run = kpreempt(*arguments, "--plugin", "clock.py:Clock")
    assert run.returncode == 2
    assert run.complaint == "--plugin clock.py:Clock: no configuration enables Clock\nhint: kube-1.36@FILE\n"


def test_the_file_of_a_plugin_is_run_once_however_many_schedulers_have_it(kpreempt: Kpreempt, folder: Path) -> None:
    Path("counted.py").write_text(f"print('the file is run')\n{PLUGIN}", encoding="utf-8")
    Path("clock.yaml").write_text(CONFIGURATION, encoding="utf-8")
    arguments = ["compare", "--algorithms", "kube-1.36,kube-1.36@clock.yaml", "--snapshot", "objects.json"]
    run = kpreempt(*arguments, "--plugin", "counted.py:Clock")
    assert run.returncode == 0
    assert run.complaint == "the file is run\n"
