"""``--context a,b``: one query for several clusters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fake_api import FakeApi

NOW = ("--now", "2026-11-21T03:12:00Z")
Kpreempt = Callable[..., Any]


@pytest.fixture
def config(tmp_path: Path, server: FakeApi) -> list[str]:
    """The option for a kubeconfig: ``a`` and ``b,c`` are the server, and at ``dead`` there is none."""
    clusters = {"live": server.url, "dead": "http://127.0.0.1:1"}
    contexts = {"a": "live", "b": "live", "b,c": "live", "dead": "dead"}
    path = tmp_path / "config"
    document = {
        "clusters": [{"name": name, "cluster": {"server": url}} for name, url in clusters.items()],
        "contexts": [{"name": name, "context": {"cluster": cluster}} for name, cluster in contexts.items()],
        "current-context": "a",
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return ["--kubeconfig", str(path), "--request-timeout", "5s", *NOW]


@pytest.mark.parametrize("command", ["pending", "budgets"])
def test_each_answer_stands_under_the_name_of_its_context(kpreempt: Kpreempt, config: list[str], command: str) -> None:
    # Without -v, the answers share a screen.
    alone = {name: kpreempt(command, *config, "--context", name, "-v") for name in ("a", "b")}
    both = kpreempt(command, *config, "--context", "a,b", "-v")
    assert both.returncode == 0
    assert both.stdout == f"CONTEXT a\n{alone['a'].stdout}\nCONTEXT b\n{alone['b'].stdout}"
    document = json.loads(kpreempt(command, *config, "--context", "a,b", "-o", "json").stdout)
    assert [each["context"] for each in document["items"]] == ["a", "b"]
    one = json.loads(kpreempt(command, *config, "--context", "a", "-o", "json").stdout)
    assert document["items"][0]["answer"]["items"] == one["items"]
    names = kpreempt(command, *config, "--context", "a", "-o", "name").stdout
    assert kpreempt(command, *config, "--context", "a,b", "-o", "name").stdout == names * 2


@pytest.mark.parametrize("command", ["pending", "budgets"])
def test_a_cluster_that_cannot_be_read_is_reported_and_keeps_no_other_back(
    kpreempt: Kpreempt, config: list[str], command: str
) -> None:
    run = kpreempt(command, *config, "--context", "dead,a")
    assert run.returncode == 3
    assert run.stdout.startswith("CONTEXT dead\nerror: http://127.0.0.1:1: ")
    assert "\nCONTEXT a\n" in run.stdout
    document = json.loads(kpreempt(command, *config, "--context", "nowhere,a", "-o", "json").stdout)
    assert "nowhere" in document["items"][0]["error"]
    assert document["items"][1]["answer"]["kind"] in ("PendingPods", "BudgetAudit")


def test_a_gate_does_not_pass_what_could_not_be_read(kpreempt: Kpreempt, config: list[str]) -> None:
    assert kpreempt("budgets", *config, "--context", "dead,a", "--fail-on", "error").returncode != 0


def test_a_context_whose_name_has_a_comma_is_one(kpreempt: Kpreempt, config: list[str]) -> None:
    run = kpreempt("pending", *config, "--context", "b,c")
    assert run.returncode == 0
    assert "CONTEXT" not in run.stdout


@pytest.mark.parametrize("contexts", ["a,", ",", "a,a"])
def test_contexts_that_make_no_sense_are_reported(kpreempt: Kpreempt, config: list[str], contexts: str) -> None:
    run = kpreempt("pending", *config, "--context", contexts)
    assert run.returncode == 2
    assert run.complaint.startswith(f"--context {contexts}: a context is empty or repeated\n")
