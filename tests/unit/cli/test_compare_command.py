"""``kpreempt compare`` on the command line: which pods, which algorithms, outputs, and mistakes."""

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
FULL = ["--snapshot", str(FIXTURES / "compare/cluster.yaml"), *NOW]
ON_CALL = ["--snapshot", str(FIXTURES / "on-call/cluster.yaml"), *NOW]
API = ["-f", str(FIXTURES / "compare/api.yaml")]
BOTH = ["compare", "--algorithms", "kube-1.13,kube-1.36"]
LINE = '{"name": "one", "objects": [], "pod": {"metadata": {"name": "a"}}}\n'

Kpreempt = Callable[..., Any]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([*API, *FULL], id="one pod"),
        pytest.param(ON_CALL, id="every pending pod"),
        pytest.param([*ON_CALL, "-n", "nowhere"], id="none"),
    ],
)
def test_every_format_says_something_and_the_schema_describes_it(kpreempt: Kpreempt, arguments: list[str]) -> None:
    document = json.loads(kpreempt(*BOTH, *arguments, "-o", "json").stdout)
    jsonschema.Draft202012Validator(closed(verdict_schema())).validate(document)
    assert document["kind"] == "Comparison"
    for format_name in ("text", "yaml", "markdown"):
        run = kpreempt(*BOTH, *arguments, "-o", format_name)
        assert (run.returncode, run.stderr) == (0, "")
        assert all(len(line) <= 80 for line in run.stdout.splitlines()) or format_name in ("yaml", "markdown")


def test_names_are_those_of_the_pods_on_which_they_differ(kpreempt: Kpreempt) -> None:
    assert kpreempt(*BOTH, *API, *FULL, "-o", "name").stdout == "pod/api\n"
    assert len(kpreempt(*BOTH, *ON_CALL, "-o", "name").stdout.splitlines()) == 3


def test_a_difference_fails_only_if_that_is_requested(kpreempt: Kpreempt) -> None:
    assert kpreempt(*BOTH, *API, *FULL).returncode == 0
    assert kpreempt(*BOTH, *API, *FULL, "--fail-on-difference").returncode == 1
    same = ["compare", "--algorithms", "kube-1.36,kube-1.36:SchedulerPopFromBackoffQ=false"]
    assert kpreempt(*same, *API, *FULL, "--fail-on-difference").returncode == 0


def test_one_algorithm_is_compared_with_itself_under_another_configuration(kpreempt: Kpreempt, tmp_path: Path) -> None:
    config = tmp_path / "no-preemption.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}\n"
    )
    algorithms = ["--algorithms", f"kube-1.36,kube-1.36@{config}"]
    run = kpreempt("compare", *algorithms, *API, *FULL)
    assert run.returncode == 0
    assert "kube-1.36@no-preemption.yaml differs from kube-1.36" in run.stdout
    assert str(tmp_path) not in run.stdout


def test_a_pod_of_the_cluster_is_compared_by_name(kpreempt: Kpreempt) -> None:
    run = kpreempt(*BOTH, "api-1", "-n", "shop", *ON_CALL, "-o", "json")
    assert [item["pod"] for item in json.loads(run.stdout)["items"]] == ["shop/api-1"]


def test_pending_pods_of_a_namespace(kpreempt: Kpreempt) -> None:
    run = kpreempt(*BOTH, "-n", "shop", *ON_CALL, "-o", "json")
    assert {item["pod"].partition("/")[0] for item in json.loads(run.stdout)["items"]} == {"shop"}


def test_scenarios_are_compared_line_by_line(kpreempt: Kpreempt) -> None:
    run = kpreempt(*BOTH, "--batch", "-", "-o", "json", stdin=LINE + LINE.replace("one", "two"))
    assert [item["name"] for item in json.loads(run.stdout)["items"]] == ["one", "two"]
    assert run.returncode == 0


def test_a_bad_line_is_reported_and_the_others_are_compared(kpreempt: Kpreempt) -> None:
    run = kpreempt(*BOTH, "--batch", "-", stdin=LINE + '{"name": "bad"}\n' + LINE.replace("one", "two"))
    assert run.returncode == 3
    assert "kube-1.13 and kube-1.36 agree on 2 of 3 pods; 1 could not be evaluated." in run.stdout
    assert "1 pod could not be evaluated\n  bad  standard input:2: " in run.stdout


def test_scenarios_without_end_are_reported(kpreempt: Kpreempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpreempt.cli.compare._MAX_SCENARIOS", 2)
    assert kpreempt(*BOTH, "--batch", "-", stdin="{}\n" * 2).stderr == ""
    run = kpreempt(*BOTH, "--batch", "-", stdin="{}\n" * 3)
    assert (run.returncode, run.stdout) == (3, "")
    assert run.complaint.startswith("standard input: more than 2 scenarios")


def test_scenarios_lie_over_a_snapshot(kpreempt: Kpreempt) -> None:
    line = json.dumps({"pod": {"metadata": {"name": "api"}, "spec": {"priority": 1000}}, "objects": []})
    run = kpreempt(*BOTH, "--batch", "-", *FULL, "-o", "json", stdin=line)
    (item,) = json.loads(run.stdout)["items"]
    assert item["decisions"][1]["outcome"] == "Lands"


def test_a_line_for_kueue_is_an_error_of_its_own(kpreempt: Kpreempt) -> None:
    line = json.dumps({"name": "queued", "algorithm": "kueue-0.19", "objects": [], "config": {}})
    run = kpreempt(*BOTH, "--batch", "-", "-o", "json", stdin=f"{line}\n{LINE}")
    first, second = json.loads(run.stdout)["items"]
    assert (run.returncode, first["error"]) == (3, "standard input:1: Object missing required field `pod`")
    assert not second.get("error")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", *API, *FULL], "--algorithms needs two or more schedulers"),
        (["compare", "--algorithms", "kube-1.36", *API, *FULL], "--algorithms needs two or more schedulers"),
        (["compare", "--algorithms", "kube-1.36,kube-1.36", *API, *FULL], "kube-1.36 is listed twice"),
        (["compare", "--algorithms", "kube-1.36,kube-2", *API, *FULL], "unknown algorithm 'kube-2'"),
        (["compare", "--algorithms", "kube-1.36,kube-1.36@", *API, *FULL], "configuration file missing"),
        (["compare", "--algorithms", "kube-1.36,kube-1.36:Nope=true", *API, *FULL], "unrecognized feature gate: Nope"),
        ([*BOTH, "api", *API, *FULL], "the pods are selected twice: by name and by -f"),
        ([*BOTH, "--select", "Pod/api", *FULL], "--select needs a manifest"),
        ([*BOTH, "--batch", "-", "--snapshot", "-"], "standard input is used twice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_in_the_options(kpreempt: Kpreempt, arguments: list[str], message: str) -> None:
    run = kpreempt(*arguments)
    assert message in run.stderr
    assert (run.returncode, run.stdout) == (2, "")


def test_a_pod_that_is_not_there_is_not_found(kpreempt: Kpreempt) -> None:
    run = kpreempt(*BOTH, "nobody", "-n", "shop", *ON_CALL)
    assert (run.returncode, run.stdout) == (3, "")
    assert 'pod "nobody" in namespace "shop" not found' in run.stderr
