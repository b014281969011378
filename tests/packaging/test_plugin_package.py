"""A plugin as a new user writes it, from an empty folder to a verdict that it changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.plugin_document import DOCUMENT, Folder, files_of

FILES = files_of(DOCUMENT.read_text(encoding="utf-8"))
ASK = "kpreempt explain -f etl.yaml --snapshot cluster.yaml"
CONFIGURED = f"{ASK} --scheduler-config config.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder with the cluster and the pod of docs/writing-plugins.md, and nothing installed."""
    folder = Folder(tmp_path)
    for name in ("cluster.yaml", "etl.yaml"):
        folder.write(name, FILES[name][-1])
    return folder


def enable(folder: Folder, max_per_node: int) -> None:
    folder.write("config.yaml", FILES["config.yaml"][-1].replace("maxPerNode: 3", f"maxPerNode: {max_per_node}"))


def verdict(folder: Folder, command: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(folder.run(f"{command} -o json"))
    return found


def messages(found: dict[str, Any]) -> Sequence[str]:
    """Assumptions other than the version, which nothing in the folder determines, and notes on absent kinds."""
    assumed = [each for each in found.get("assumptions", []) if each.get("kind") not in ("Note", "Absent")]
    return [each["message"] for each in assumed if each["field"] != "version"]


@pytest.mark.slow
def test_a_package_that_a_configuration_enables_changes_the_verdict(folder: Folder) -> None:
    enable(folder, 1)
    plain, without = verdict(folder, ASK), verdict(folder, CONFIGURED)
    for found in (plain, without):
        assert (found["outcome"], found["landsOn"]) == ("Lands", ["node-b"])
    # The configuration enables a plugin that is not installed.
    assert messages(without) == ["plugin QuietDisk is not an in-tree plugin and was omitted"]
    assert "QuietDisk" not in folder.run("kpreempt plugins -o name").split()

    for name in ("quiet_disk.py", "pyproject.toml"):
        folder.write(name, FILES[name][-1])
    folder.run("pip install . && rm quiet_disk.py")

    assert verdict(folder, ASK) == plain
    changed = verdict(folder, CONFIGURED)
    assert (changed["outcome"], changed["nominatedNodes"]) == ("Preempts", ["node-b"])
    assert [victim["pod"] for victim in changed["victims"]["node-b"]] == ["batch/scan-1", "batch/scan-2"]
    assert changed["message"].startswith("0/3 nodes are available: 3 node(s) had a busy disk. preemption: ")
    assert changed["filter"]["node-a"]["plugin"] == "QuietDisk"
    assert changed["filter"]["node-a"]["detail"]["facts"] == {"pods": "shop/db-0"}
    assert messages(changed) == []


@pytest.mark.slow
def test_its_arguments_and_its_scores_count_then(folder: Folder) -> None:
    for name in ("quiet_disk.py", "pyproject.toml"):
        folder.write(name, FILES[name][-1])
    folder.run("pip install .")
    enable(folder, 3)
    found = verdict(folder, CONFIGURED)
    assert (found["outcome"], found["landsOn"]) == ("Lands", ["node-a"])
    assert {node: scores["QuietDisk"] for node, scores in found["pluginScores"].items()} == {
        "node-a": 100,
        "node-b": 0,
        "node-c": 100,
    }


@pytest.mark.slow
def test_the_list_of_plugins_says_which_package_it_is_from(folder: Folder) -> None:
    for name in ("quiet_disk.py", "pyproject.toml"):
        folder.write(name, FILES[name][-1])
    folder.run("pip install .")
    listed = json.loads(folder.run("kpreempt plugins -o json"))
    assert {"name": "QuietDisk", "package": "quiet-disk 1.0"} in listed["available"]
    enable(folder, 1)
    configured = json.loads(folder.run("kpreempt plugins --scheduler-config config.yaml -o json"))
    assert "QuietDisk" not in [each["name"] for each in configured["available"]]
    sources = {each["source"] for point in configured["profiles"][0]["points"] for each in point["plugins"]}
    assert sources == {"kube-scheduler", "entry point QuietDisk of quiet-disk 1.0"}
