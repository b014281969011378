"""The worked examples as they are shipped: by entry points, and by name on the command line."""

from __future__ import annotations

import json
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from kpreempt.cli import process
from kpreempt.plugins import Plugin

PROJECT = Path(__file__).parents[3]
ENTRY_POINTS: dict[str, str] = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "entry-points"
]["kpreempt.plugins"]


def plugins_in(module: str) -> list[str]:
    """The plugins that a module makes."""
    made = vars(import_module(module)).items()
    return [
        name
        for name, value in made
        if isinstance(value, type) and issubclass(value, Plugin) and value.__module__ == module
    ]


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_an_entry_point_is_called_as_its_plugin(name: str) -> None:
    module, _, attribute = ENTRY_POINTS[name].partition(":")
    plugin = getattr(import_module(module), attribute)
    assert issubclass(plugin, Plugin)
    assert plugin.name == name


def test_every_example_has_an_entry_point() -> None:
    folder = PROJECT / "kpreempt" / "plugins" / "examples"
    modules = [f"kpreempt.plugins.examples.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"]
    assert {f"{module}:{name}" for module in modules for name in plugins_in(module)} == set(ENTRY_POINTS.values())


@pytest.mark.parametrize(
    ("name", "warns"),
    [("capacity-scheduling", True), ("preemption-toleration", False), ("rack-colocation", False)],
)
def test_only_a_preemption_that_goes_not_by_priority_says_that_nominations_protect_nothing(
    name: str, warns: bool
) -> None:
    report = (PROJECT / "fixtures" / "plugins" / name / "report.txt").read_text(encoding="utf-8")
    assert ("so the nomination protects nothing" in report) == warns
    assert "2 ELIGIBLE    yes" in report


def test_pending_pods_that_are_alike_are_each_refused_by_their_own_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason of CapacityScheduling has the pod's name in it."""
    case = PROJECT / "fixtures" / "plugins" / "capacity-scheduling"
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "research"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}]},
        }
        for name in ("one", "two")
    ]
    waiting = tmp_path / "waiting.json"
    waiting.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}), encoding="utf-8")
    snapshots = ["--snapshot", str(case / "cluster.yaml"), "--snapshot", str(waiting)]
    plugin = "kpreempt.plugins.examples.capacity_scheduling:CapacityScheduling"
    process.run(["pending", *snapshots, "--plugin", plugin, "--now", "2026-11-21T03:12:00Z", "-o", "json"])
    said = capsys.readouterr().out
    for name in ("one", "two"):
        assert f"Pod research/{name} is rejected in PreFilter because ElasticQuota research is more than Max" in said


def test_names_in_a_bad_quota_are_shown_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both the object's name and what it holds come from the input."""
    case = PROJECT / "fixtures" / "plugins" / "capacity-scheduling"
    quota = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: "evil\\e[2J", namespace: other}
spec: {max: {"cpu\\e[31m": "\\e]0;title\\a"}}
"""
    bad = tmp_path / "bad.yaml"
    bad.write_text(quota, encoding="utf-8")
    plugin = "kpreempt.plugins.examples.capacity_scheduling:CapacityScheduling"
    files = ["-f", str(case / "pod.yaml"), "--snapshot", str(case / "cluster.yaml"), "--snapshot", str(bad)]
    assert process.run(["explain", *files, "--plugin", plugin, "--now", "2026-11-21T03:12:00Z"]) == 0
    said = capsys.readouterr()
    assert "research/train cannot be scheduled: the scheduler fails with an error: " in said.out
    assert "ElasticQuota other/evil" in " ".join(said.out.split())
    assert not {"\x1b", "\x07"} & set(said.out + said.err)
