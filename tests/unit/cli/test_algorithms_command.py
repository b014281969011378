"""``--algorithm`` on the command line, and the list of what it can name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpreempt.scheduler_table import ALL_ALGORITHMS, DEFAULT_ALGORITHM

DEMO = Path(__file__).parents[3] / "fixtures/demo"
SNAPSHOT = ["--snapshot", str(DEMO / "cluster.yaml"), "--now", "2026-11-21T03:12:00Z"]
OLD = ("kube-1.8", "kube-1.13")

Kpreempt = Callable[..., Any]


def test_the_list_names_every_algorithm_once(kpreempt: Kpreempt) -> None:
    assert kpreempt("algorithms", "-o", "name").stdout.split() == list(ALL_ALGORITHMS)
    items = json.loads(kpreempt("algorithms", "-o", "json").stdout)["items"]
    assert [each["name"] for each in items] == list(ALL_ALGORITHMS)
    assert all(each["differences"] for each in items)
    assert "name: kube-1.8\n" in kpreempt("algorithms", "-o", "yaml").stdout


def test_the_list_fits_a_terminal(kpreempt: Kpreempt) -> None:
    run = kpreempt("algorithms")
    assert run.returncode == 0
    assert all(len(line) <= 80 for line in run.stdout.splitlines())


def test_a_format_that_there_is_not_is_refused(kpreempt: Kpreempt) -> None:
    run = kpreempt("algorithms", "-o", "toml")
    assert run.returncode == 2
    assert "unknown format 'toml'" in run.stderr


@pytest.mark.parametrize("algorithm", OLD)
def test_explain_asks_the_scheduler_that_is_named(kpreempt: Kpreempt, algorithm: str) -> None:
    run = kpreempt("explain", "-f", str(DEMO / "api.yaml"), *SNAPSHOT, "--algorithm", algorithm, "-o", "json")
    assert (run.returncode, run.stderr) == (0, "")
    verdict = json.loads(run.stdout)
    assert verdict["algorithm"] == algorithm
    assert verdict["nominatedNodes"] == ["node-b"]


def test_without_the_option_the_default_scheduler_is_used(kpreempt: Kpreempt) -> None:
    run = kpreempt("explain", "-f", str(DEMO / "api.yaml"), *SNAPSHOT, "-o", "json")
    assert json.loads(run.stdout)["algorithm"] == DEFAULT_ALGORITHM


@pytest.mark.parametrize("algorithm", OLD)
@pytest.mark.parametrize("command", [["pending"], ["at-risk", "-A"]], ids=["pending", "at-risk"])
@pytest.mark.parametrize("format_name", ["text", "json", "markdown"])
def test_the_commands_about_many_pods_ask_it_too(
    kpreempt: Kpreempt, algorithm: str, command: list[str], format_name: str
) -> None:
    run = kpreempt(*command, *SNAPSHOT, "--algorithm", algorithm, "-o", format_name, "-v")
    assert (run.returncode, run.stderr) == (0, "")
    assert ("PodPriority" in run.stdout) == (algorithm == "kube-1.8")


def test_the_causes_of_pods_that_never_land_are_reported_without_numbers(kpreempt: Kpreempt) -> None:
    text = " ".join(kpreempt("pending", "-v", *SNAPSHOT, "--algorithm", "kube-1.8").stdout.split())
    assert "Insufficient cpu, NodeUnschedulable, PodToleratesNodeTaints" in text


def test_an_algorithm_that_there_is_not_is_refused_with_the_names(kpreempt: Kpreempt) -> None:
    run = kpreempt("explain", "-f", str(DEMO / "api.yaml"), *SNAPSHOT, "--algorithm", "kube-1.9")
    assert run.returncode == 2
    assert "unknown algorithm 'kube-1.9'" in run.stderr
    assert "kube-1.13" in run.stderr


def test_a_cluster_of_that_version_needs_no_assumption(kpreempt: Kpreempt, tmp_path: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"pods": "5"}}}
    version = {"kpreempt.io/server-version": "v1.13.4"}
    dump = {"apiVersion": "v1", "kind": "List", "metadata": {"annotations": version}, "items": [node]}
    (tmp_path / "cluster.json").write_text(json.dumps(dump), encoding="utf-8")
    ask = ["explain", "--cpu", "0", "--snapshot", str(tmp_path / "cluster.json"), "-o", "json"]
    for algorithm, expected in (("kube-1.13", []), ("kube-1.36", ["version"])):
        verdict = json.loads(kpreempt(*ask, "--algorithm", algorithm).stdout)
        assert [each["field"] for each in verdict.get("assumptions", []) if each["subject"] == "cluster"] == expected


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """A Policy file that only looks at taints, and names an extender."""
    path = tmp_path / "policy.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Policy\npredicates: [{name: PodToleratesNodeTaints}]\n"
        "extenders: [{urlPrefix: http://extender.example, filterVerb: filter, weight: 1}]\n",
        encoding="utf-8",
    )
    return str(path)


@pytest.mark.parametrize("algorithm", [*OLD, "kube-1.18"])
def test_a_policy_file_says_which_predicates_run(kpreempt: Kpreempt, algorithm: str, policy: str) -> None:
    pod = ["explain", "-f", str(DEMO / "api.yaml"), *SNAPSHOT]
    run = kpreempt(*pod, "--algorithm", algorithm, "--policy-config", policy, "-o", "json")
    verdict = json.loads(run.stdout)
    assert verdict["outcome"] == "Lands"
    assert "http://extender.example is not called" in run.stdout
    run = kpreempt("pending", *SNAPSHOT, "--algorithm", algorithm, "--policy-config", policy)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_policy_file_is_wrong_usage_with_todays_scheduler(kpreempt: Kpreempt, policy: str) -> None:
    run = kpreempt("at-risk", "--algorithm", "kube-1.36", *SNAPSHOT, "--policy-config", policy)
    assert run.returncode == 2
    assert "kube-1.36 reads no Policy file" in run.stderr


def test_a_policy_file_that_the_scheduler_refuses_is_bad_input(kpreempt: Kpreempt, policy: str) -> None:
    Path(policy).write_text("kind: Policy\npredicates: [{name: Nonsense}]\n", encoding="utf-8")
    pod = ["explain", "-f", str(DEMO / "api.yaml"), *SNAPSHOT]
    run = kpreempt(*pod, "--algorithm", "kube-1.13", "--policy-config", policy)
    assert run.returncode == 3
    assert "Predicate type not found for Nonsense" in run.stderr
