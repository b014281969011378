"""Names that a CI system's log or a terminal would obey: no command writes them as they are, in any format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kpreempt.report.answers import ANSWER_FORMATS, CHECK_FORMATS, VERDICT_FORMATS
from tests.harmless import obeyed

Kpreempt = Callable[..., Any]
NOW = "2026-11-21T12:00:00Z"
NAMES = (
    "::set-output name=x::y",
    "a ::add-mask::b",
    "##[group]x",
    "###vso[task.setvariable variable=x]y",
    "##teamcity[blockOpened name='x']",
    "\x9b31m",
    "\u202egnp",
    "zero\u200bwidth",
    "\x1b]0;x\x07",
    "\x7f",
)


def cluster() -> dict[str, Any]:
    """A pod of each name on a node of that name, with an owner, a label and a budget of it, and one that waits."""
    items: list[dict[str, Any]] = []
    for number, name in enumerate(NAMES):
        meta = {"name": name, "namespace": name, "labels": {name: name, "app": "a"}, "uid": f"u{number}"}
        items.append({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}})
        spec = {"containers": [{"name": name, "resources": {"requests": {"cpu": "1"}}}], "nodeName": name}
        items.append({"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}})
        keeps = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
        items.append({"kind": "PodDisruptionBudget", "metadata": meta, "spec": keeps})
        wants = {"containers": spec["containers"], "priority": 9, "nodeSelector": {name: name}}
        items.append({"kind": "Pod", "metadata": {**meta, "name": f"{name}w"}, "spec": wants})
    versions = {"PodDisruptionBudget": "policy/v1"}
    return {"kind": "List", "items": [{"apiVersion": versions.get(each["kind"], "v1"), **each} for each in items]}


def pod(name: str) -> dict[str, Any]:
    spec = {"priority": 9, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": name}, "spec": spec}


COMMANDS = {
    "explain": (["explain", "-f", "pod.json"], VERDICT_FORMATS),
    "explain -v": (["explain", "-f", "pod.json", "-v", "-v"], ("text", "markdown")),
    "pending": (["pending", "-A"], (*ANSWER_FORMATS, "wide", "html")),
    "at-risk": (["at-risk", "-A"], ANSWER_FORMATS),
    "budgets": (["budgets", "-A"], ANSWER_FORMATS),
    "queue": (["queue"], ANSWER_FORMATS),
    "check": (["check", "-f", "pod.json", "--namespace", "x"], tuple(sorted({*CHECK_FORMATS} - {"github"}))),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.json").write_text(json.dumps(cluster()))
    documents = {"apiVersion": "v1", "kind": "List", "items": [pod(each) for each in NAMES]}
    (tmp_path / "pod.json").write_text(json.dumps(documents))
    return tmp_path


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("words", "form"),
    [pytest.param(words, form, id=f"{name} {form}") for name, (words, forms) in COMMANDS.items() for form in forms],
)
def test_nothing_that_would_be_obeyed_is_written(words: list[str], form: str, place: Path, kpreempt: Kpreempt) -> None:
    run = kpreempt(*words, "--snapshot", "cluster.json", "--now", NOW, "-o", form)
    assert run.returncode in (0, 1), run.stderr
    assert obeyed(run.stdout) == []
    assert obeyed(run.stderr) == []
    if form == "yaml":
        assert any(name in json.dumps(list(yaml.safe_load_all(run.stdout)), ensure_ascii=False) for name in NAMES[:1])


def test_annotations_are_the_only_commands(place: Path, kpreempt: Kpreempt) -> None:
    run = kpreempt("check", "-f", "pod.json", "--snapshot", "cluster.json", "--now", NOW, "-o", "github")
    lines = run.stdout.splitlines()
    assert lines
    assert all(re.match(r"::(error|warning|notice) [^:]*::", each) for each in lines)
    assert obeyed(re.sub(r"(?m)^::(error|warning|notice) ", "", run.stdout)) == []


def test_lines_of_a_batch_and_their_errors_have_names_escaped(place: Path, kpreempt: Kpreempt) -> None:
    good = [{"name": each, "pod": pod("p"), "objects": []} for each in NAMES]
    bad = [{"name": each, "pod": pod(each), "objects": [{"kind": each}]} for each in NAMES]
    lines = [msgspec.json.encode(each).decode() for each in [*good, *bad]]
    run = kpreempt("batch", "-", "--now", NOW, stdin="".join(f"{each}\n" for each in [*lines, "{##[x]"]))
    assert obeyed(run.stdout) + obeyed(run.stderr) == []
    assert [json.loads(each)["name"] for each in run.stdout.splitlines()[: len(NAMES)]] == list(NAMES)


@pytest.mark.parametrize("more", [[], ["--redact"]], ids=["as it is", "redacted"])
def test_a_dump_on_standard_output_has_names_escaped(more: list[str], place: Path, kpreempt: Kpreempt) -> None:
    run = kpreempt("snapshot", "--snapshot", "cluster.json", "--to", "-", *more)
    assert run.returncode == 0
    assert obeyed(run.stdout) + obeyed(run.stderr) == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_found_is_named_harmlessly(name: str, place: Path, kpreempt: Kpreempt) -> None:
    run = kpreempt("explain", "-n", name, name + "?", "--snapshot", "cluster.json")
    assert run.returncode in (2, 3)
    assert obeyed(run.stderr) == []
