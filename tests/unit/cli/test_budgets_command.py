"""``kpreempt budgets`` on the command line: outputs, the gate, and mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kpreempt.report.schema import verdict_schema
from tests.unit.report.test_formats import closed

CLUSTER = Path(__file__).parents[3] / "fixtures/budgets/cluster.yaml"
BUDGETS = ["budgets", "--snapshot", str(CLUSTER), "--now", "2026-11-21T03:12:00Z"]

Kpreempt = Callable[..., Any]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(BUDGETS, id="all"),
        pytest.param([*BUDGETS, "--verbose"], id="all, verbose"),
        pytest.param([*BUDGETS, "-n", "data"], id="a namespace"),
        pytest.param([*BUDGETS, "-n", "nowhere"], id="none of them"),
        pytest.param([*BUDGETS, "--algorithm", "kube-1.8"], id="a scheduler that asks no budget"),
    ],
)
def test_every_format_says_something_and_the_schema_describes_it(kpreempt: Kpreempt, arguments: list[str]) -> None:
    document = json.loads(kpreempt(*arguments, "-o", "json").stdout)
    jsonschema.Draft202012Validator(closed(verdict_schema())).validate(document)
    assert (document["apiVersion"], document["kind"]) == ("kpreempt.io/v1alpha1", "BudgetAudit")
    for format_name in ("text", "yaml", "markdown"):
        run = kpreempt(*arguments, "-o", format_name)
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.endswith("\n")
        if format_name == "text":
            # Commands never wrap, so that they can be copied.
            lines = (line for line in run.stdout.splitlines() if not line.lstrip().startswith("kubectl "))
            assert all(len(line) <= 80 for line in lines)


def test_names_are_those_of_budgets_with_findings(kpreempt: Kpreempt) -> None:
    assert kpreempt(*BUDGETS, "-n", "data", "-o", "name").stdout == "poddisruptionbudget.policy/db\n"


def test_jsonl_is_a_line_for_each_budget_and_then_for_each_workload_without_one(kpreempt: Kpreempt) -> None:
    lines = [json.loads(line) for line in kpreempt(*BUDGETS, "-n", "shop", "-o", "jsonl").stdout.splitlines()]
    assert [line.get("budget") or line["subject"] for line in lines] == [
        "shop/api",
        "shop/cart",
        "shop/checkout",
        "shop/edge",
        "shop/web",
        "Deployment checkout",
    ]


def test_a_label_picks_the_budgets_of_such_pods(kpreempt: Kpreempt) -> None:
    lines = kpreempt(*BUDGETS, "-l", "app in (web,api)", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line)["budget"] for line in lines] == ["shop/api", "shop/web"]


@pytest.mark.parametrize(
    ("namespace", "severity", "code", "said"),
    [
        pytest.param(
            "data", "error", 1, "error min-available-above-pods: data: PodDisruptionBudget db\n", id="an error"
        ),
        pytest.param("data", "note", 1, "error min-available-above-pods: data: PodDisruptionBudget db\n", id="worse"),
        pytest.param("dev", "error", 0, "", id="only a warning"),
        pytest.param(
            "dev", "note", 1, "warning selects-every-pod: dev: PodDisruptionBudget everything, and 1 more\n", id="two"
        ),
        pytest.param("nowhere", "note", 0, "", id="nothing"),
    ],
)
def test_the_gate_fails_from_a_severity_on(
    kpreempt: Kpreempt, namespace: str, severity: str, code: int, said: str
) -> None:
    run = kpreempt(*BUDGETS, "-n", namespace, "--fail-on", severity, "-o", "name")
    assert (run.returncode, run.complaint) == (code, f"--fail-on {severity}: {said}" if said else "")


def test_without_the_gate_findings_fail_nothing(kpreempt: Kpreempt) -> None:
    assert kpreempt(*BUDGETS, "-o", "name").returncode == 0


def test_strict_fails_for_a_status_that_was_filled_in(kpreempt: Kpreempt, tmp_path: Path) -> None:
    cluster = yaml.safe_load(CLUSTER.read_text())
    for item in cluster["items"]:
        item.pop("status", None) if item["kind"] == "PodDisruptionBudget" else None
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump(cluster))
    run = kpreempt("budgets", "--snapshot", str(path), "--strict", "-n", "data")
    assert run.returncode == 1
    assert "no-status" in run.stdout
    assert "PodDisruptionBudget data/db status" not in run.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["budgets"], 2, "no cluster given", id="no cluster"),
        pytest.param([*BUDGETS, "-n", "a", "-A"], 2, "-n and -A cannot be used together", id="one namespace and all"),
        pytest.param([*BUDGETS, "--fail-on", "fatal"], 2, "--fail-on fatal: unknown severity", id="no severity"),
        pytest.param([*BUDGETS, "-o", "wide"], 2, "-o wide: unknown format 'wide'", id="a format that it has not"),
        pytest.param(["budgets", "--snapshot", "absent.yaml"], 3, "absent.yaml: ", id="no snapshot"),
    ],
)
def test_mistakes_are_one_message(kpreempt: Kpreempt, arguments: list[str], code: int, message: str) -> None:
    run = kpreempt(*arguments)
    assert (run.returncode, run.stdout) == (code, "")
    assert run.complaint.startswith(message)


HOSTILE = "x\x1b[31m\u202e"


def test_hostile_names_and_amounts_are_shown_harmless(kpreempt: Kpreempt, tmp_path: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": HOSTILE, "namespace": HOSTILE},
        "spec": {"minAvailable": HOSTILE, "selector": {"matchLabels": {"app": "web"}}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": HOSTILE, "namespace": HOSTILE, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "env": [{"name": "TOKEN", "value": "s3cret"}]}]},
    }
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [budget, pod]}))
    for format_name in ("text", "json", "jsonl", "name", "markdown"):
        run = kpreempt("budgets", "--snapshot", str(path), "-o", format_name)
        assert run.returncode == 0
        assert not {"\x1b", "\u202e"} & set(run.stdout)
        assert "s3cret" not in run.stdout


@pytest.mark.parametrize(
    "amount", ["200%", "-1", -1, "%", "\u0661%", 2**40, "+5%"], ids=lambda amount: f"minAvailable {amount}"
)
def test_odd_amounts_are_answered(kpreempt: Kpreempt, tmp_path: Path, amount: int | str) -> None:
    cluster = yaml.safe_load(CLUSTER.read_text())
    for item in cluster["items"]:
        if item["kind"] == "PodDisruptionBudget":
            item["spec"] = {**item["spec"], "minAvailable": amount, "maxUnavailable": None}
            item.pop("status", None)
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(cluster, default=str))
    run = kpreempt("budgets", "--snapshot", str(path))
    assert run.returncode in (0, 3)
    assert run.stderr == "" or run.returncode == 3


@pytest.mark.parametrize("format_name", ["sarif", "junit", "github", "gitlab"])
@pytest.mark.parametrize(("options", "code"), [([], 0), (["--fail-on", "error"], 1)])
def test_formats_of_ci_leave_the_exit_code_as_it_is(
    kpreempt: Kpreempt, tmp_path: Path, format_name: str, options: list[str], code: int
) -> None:
    target = tmp_path / "out"
    run = kpreempt(*BUDGETS, *options, "-o", f"{format_name}={target}")
    assert run.returncode == code
    assert "never-allows" in target.read_text(encoding="utf-8")
