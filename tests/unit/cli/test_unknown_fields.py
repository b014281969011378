# ruff: noqa: E501 - messages read better in one piece
"""Manifests with fields and resources that the API server does not know, and what commands make of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.rollouts import Document, nodes, priority_class, running, workload

Kpreempt = Callable[..., Any]

NOW = "2026-11-21T12:00:00Z"
WEB = workload("Deployment", "web", replicas=2)
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: new
spec:
  containers:
  - name: main
    resuorces:
      requests: {cpu: 1}
    image: x
"""
SECOND = "unknown field spec.containers[0].resuorces (did you mean resources?)"
SECOND_RESOURCE = "unknown resource spec.containers[0].resources.requests.memroy (did you mean memory?)"


def written(path: Path, documents: Sequence[Document]) -> str:
    path.write_text("\n---\n".join(json.dumps(each, indent=1) for each in documents) + "\n")
    return str(path)


@pytest.fixture
def check(kpreempt: Kpreempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kpreempt:
    """Runs ``kpreempt check -o json`` on a cluster of that version with the change that is given as text."""
    monkeypatch.chdir(tmp_path)

    def run(change: str, *arguments: str, version: str = "v1.33.5", stdin: bool = False) -> tuple[int, Any]:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        items = [space, *nodes(2), priority_class("high", 1000), *running(WEB, ["n1", "n2"])]
        for each in items:
            if each["kind"] == "Node":
                each["status"]["nodeInfo"] = {"kubeletVersion": version}
        (tmp_path / "version.json").write_text(json.dumps({"serverVersion": {"gitVersion": version}}))
        written(tmp_path / "cluster.json", items)
        (tmp_path / "change.yaml").write_text(change)
        done = kpreempt(
            *("check", "--snapshot", "cluster.json", "--snapshot", "version.json", "--now", NOW, "-o", "json"),
            *("-f", "-" if stdin else "change.yaml", "--assume-none", "quota", *arguments),
            stdin=change if stdin else "",
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


def rejections(answer: Any) -> list[tuple[str, str, int, str]]:
    """Subject, source, line and detail of each finding that an apply is refused."""
    return [
        (each["subject"], each["source"], each["line"], each["detail"])
        for each in answer["findings"]
        if each["rule"] == "apply-rejected"
    ]


@pytest.mark.parametrize("stdin", [False, True], ids=["a file", "standard input"])
def test_an_unknown_field_fails_the_gate_on_its_line_and_is_not_simulated(check: Kpreempt, stdin: bool) -> None:
    code, answer = check(POD, stdin=stdin)
    source = "standard input" if stdin else "change.yaml"
    assert (code, answer["passed"]) == (1, False)
    assert rejections(answer) == [("Pod default/new", source, 8, SECOND)]
    assert answer["summary"] == "the API server rejects Pod default/new"
    assert [(each["object"], each["kind"], each["line"]) for each in answer["changes"]] == [
        ("Pod default/new", "Rejected", 8)
    ]
    assert answer["simulation"].get("steps", []) == []


def test_a_value_of_another_type_fails_the_gate_on_its_line(check: Kpreempt) -> None:
    code, answer = check(POD.replace("resuorces:\n      requests: {cpu: 1}\n    image: x", "image: 1"))
    words = "cannot unmarshal number into Go struct field Container.spec.containers[0].image of type string"
    assert (code, [found[2:] for found in rejections(answer)]) == (1, [(8, words)])


def test_several_unknown_names_are_one_finding_with_the_line_of_each(check: Kpreempt) -> None:
    rest = "    resources:\n      requests: {memroy: 1Gi}\n  nodename: n1\n  priorityclass: high\n"
    _, answer = check(POD + rest)
    (found,) = rejections(answer)
    assert found[2] == 8
    assert (
        found[3]
        == f"{SECOND}; line 12: {SECOND_RESOURCE}; line 13: unknown field spec.nodename (did you mean nodeName?); and 1 more"
    )


def test_an_unknown_resource_fails_the_gate(check: Kpreempt) -> None:
    code, answer = check(POD.replace("resuorces", "resources").replace("cpu: 1", "cpu: 1, memroy: 1Gi"))
    assert (code, rejections(answer)) == (1, [("Pod default/new", "change.yaml", 9, SECOND_RESOURCE)])


def test_the_rest_of_the_change_is_simulated(check: Kpreempt) -> None:
    greedy = workload("Deployment", "greedy", cpu="2", replicas=2, pod={"priorityClassName": "high"})
    _, answer = check(f"{POD}---\n{json.dumps(greedy)}\n")
    assert {each["rule"] for each in answer["findings"]} >= {"apply-rejected", "min-ready"}
    assert [(each["object"], each["kind"]) for each in answer["changes"]] == [
        ("Pod default/new", "Rejected"),
        ("Deployment shop/greedy", "Created"),
    ]


def test_a_workload_that_runs_stays_as_it_is(check: Kpreempt) -> None:
    """The template differs, too, and would be rolled out."""
    changed = workload("Deployment", "web", image="two", replicas=2, minReadySecond=5)
    code, answer = check(json.dumps(changed, indent=1))
    assert (code, [each["kind"] for each in answer["changes"]]) == (1, ["Rejected"])
    assert answer["simulation"].get("workloads", []) == []


def test_what_is_in_a_rejected_namespace_is_refused_as_well(check: Kpreempt) -> None:
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: new, label: {}}\n"
    pod = POD.replace("name: new", "name: a\n  namespace: new").replace("resuorces", "resources")
    code, answer = check(f"{space}---\n{pod}")
    assert (code, [(each[0], each[3]) for each in rejections(answer)]) == (
        1,
        [
            ("Namespace new", "unknown field metadata.label (did you mean labels?)"),
            ("Namespace new", "neither in the cluster nor in the change; not applied: Pod new/a"),
        ],
    )


@pytest.mark.parametrize(
    ("version", "code", "detail"),
    [
        pytest.param("v1.32.9", 1, "unknown field spec.containers[0].lifecycle.stopSignal (known from 1.33 on)", id="the version before"),
        pytest.param("v1.33.5-gke.100", 0, "", id="the first version that has it"),
    ],
)  # fmt: skip
def test_a_field_is_known_from_its_version_on(check: Kpreempt, version: str, code: int, detail: str) -> None:
    change = POD.replace("resuorces:\n      requests: {cpu: 1}", "lifecycle: {stopSignal: SIGTERM}")
    found, answer = check(change, version=version)
    assert found == code, answer["findings"]
    assert [each[3] for each in rejections(answer)] == ([detail] if detail else [])


def test_a_base_with_unknown_fields_excuses_nothing_and_does_no_harm(check: Kpreempt, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(POD)
    code, answer = check(POD, "--base", "base.yaml")
    assert (code, len(rejections(answer))) == (1, 1)
    known = POD.replace("resuorces", "resources")
    code, answer = check(known, "--base", "base.yaml")
    assert (code, rejections(answer)) == (0, [])


def test_a_dump_may_have_any_field(kpreempt: Kpreempt, tmp_path: Path) -> None:
    cluster = [*nodes(1), {**json.loads(json.dumps(running(WEB, ["n1"])[-1])), "resuorces": 1}]
    cluster[0]["spec"] = {"unheardOf": 1}
    snapshot = written(tmp_path / "cluster.json", cluster)
    (tmp_path / "pod.yaml").write_text(POD.replace("resuorces", "resources"))
    assert kpreempt("explain", "--snapshot", snapshot, "-f", str(tmp_path / "pod.yaml"), "--now", NOW).returncode == 0
    extra = (tmp_path / "node.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n9}\nspec: {taint: []}\n")
    assert extra
    run = kpreempt(
        *("explain", "--snapshot", snapshot, "--with", str(tmp_path / "node.yaml"), "--now", NOW),
        *("-f", str(tmp_path / "pod.yaml")),
    )
    assert run.returncode == 0


@pytest.mark.parametrize("from_stdin", [False, True], ids=["a file", "standard input"])
def test_that_the_api_server_rejects_a_pod_is_the_only_verdict(
    kpreempt: Kpreempt, tmp_path: Path, from_stdin: bool
) -> None:
    snapshot = written(tmp_path / "cluster.json", nodes(1))
    (tmp_path / "pod.yaml").write_text(POD)
    name = "-" if from_stdin else str(tmp_path / "pod.yaml")
    run = kpreempt("explain", "--snapshot", snapshot, "-f", name, "--now", NOW, "-o", "json", stdin=POD)
    answer = json.loads(run.stdout)
    assert (run.returncode, answer["outcome"]) == (1, "Rejected")
    assert answer["reason"] == f"{'standard input' if from_stdin else name}:8: {SECOND}"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["compare", "--algorithms", "kube-1.33,kube-1.36"], id="compare"),
        pytest.param(["explain", "--algorithm", "volcano-1.8"], id="explain with Volcano"),
    ],
)
@pytest.mark.parametrize("from_stdin", [False, True], ids=["a file", "standard input"])
def test_a_pod_that_the_api_server_rejects_has_no_answer(
    kpreempt: Kpreempt, tmp_path: Path, command: list[str], from_stdin: bool
) -> None:
    snapshot = written(tmp_path / "cluster.json", nodes(1))
    file = tmp_path / "pod.yaml"
    file.write_text(POD)
    name = "-" if from_stdin else str(file)
    run = kpreempt(*command, "--snapshot", snapshot, "-f", name, "--now", NOW, stdin=POD if from_stdin else "")
    assert (run.returncode, run.stdout) == (3, "")
    assert run.complaint == f"{'standard input' if from_stdin else file}:8: {SECOND}\n"
