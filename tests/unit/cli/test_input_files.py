"""Every file of the input counts: it is read, listed, or it fails the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rollouts import Document, nodes, running, workload

NOW = "2026-11-21T12:00:00Z"
Kpreempt = Callable[..., Any]

WEB = workload("Deployment", "web", replicas=2)
# It lands nowhere.
GREEDY = workload("Deployment", "greedy", cpu="64", replicas=1)
BUDGET: Document = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a cluster, ``cluster.json``, and a manifest that is applied there, ``k8s/web.yaml``."""
    monkeypatch.chdir(tmp_path)
    objects = [*nodes(2), *running(WEB, ["n1", "n2"]), BUDGET]
    write("cluster.json", {"apiVersion": "v1", "kind": "List", "items": objects})
    write("k8s/web.yaml", WEB)
    return tmp_path


def write(name: str, content: object) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content) if name.endswith("json") else yaml.dump(content)
    path.write_text(text)


@pytest.fixture
def check(kpreempt: Kpreempt, here: Path) -> Callable[..., Any]:
    def run(*arguments: str, stdin: str = "") -> Any:
        return kpreempt("check", "--snapshot", "cluster.json", "--now", NOW, *arguments, stdin=stdin)

    return run


LISTS: dict[str, object] = {
    "a List": {"kind": "List", "items": [GREEDY]},
    "a List in a List": {"kind": "List", "items": [{"kind": "List", "items": [GREEDY]}]},
    "a ConfigMap with items": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "items": [GREEDY]},
    "a Deployment with items": {**WEB, "items": [GREEDY]},
    "a Deployment with items in a List": {"kind": "List", "items": [{**WEB, "items": [GREEDY]}]},
    "unknown kinds with items": {"kind": "Foo", "items": [{"kind": "Bar", "items": [GREEDY]}]},
}


@pytest.mark.parametrize("document", LISTS.values(), ids=LISTS.keys())
def test_items_are_objects_whatever_the_kind_of_their_list(check: Callable[..., Any], document: object) -> None:
    write("k8s/more.yaml", document)
    assert check("-f", "k8s").returncode == 1
    assert check("-f", "-", stdin=json.dumps(document)).returncode == 1
    assert "Deployment shop/greedy" in check("-f", "k8s/more.yaml", "-o", "json").stdout


REFUSED: dict[str, tuple[object, str]] = {
    "an object without a kind": ({"metadata": {"name": "a"}}, "1: not a Kubernetes object: missing kind"),
    "an array of objects": ([GREEDY], "1: expected a Kubernetes object, got a list"),
    "values next to an object": (f"{json.dumps(WEB)}\n---\na: 1\n", "3: not a Kubernetes object: missing kind"),
    "a list without a kind": ({"items": [GREEDY]}, "1: not a Kubernetes object: missing kind"),
    "a template": ("kind: A\nmetadata:\n  name: {{ .x }}\n", "3: is a template that was not rendered"),
    "YAML that is cut off": ('kind: "A\n', "2: is not YAML: found unexpected end of stream"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_manifest_that_holds_something_else_is_refused_or_skipped(
    check: Callable[..., Any], content: object, message: str
) -> None:
    write("k8s/other.yml", content)
    for arguments in (["-f", "k8s"], ["-f", "k8s/web.yaml", "--base", "k8s"], ["-f", "k8s/other.yml"]):
        found = check(*arguments)
        assert (found.returncode, found.complaint.splitlines()[0]) == (3, f"k8s/other.yml:{message}")
    skipped = check("-f", "k8s", "--skip-bad-objects", "-o", "json")
    (finding,) = json.loads(skipped.stdout)["findings"]
    assert (skipped.returncode, finding["rule"], finding["subject"]) == (1, "skipped-objects", "k8s/other.yml")


def test_helm_values_and_files_that_are_named_are_manifests_or_refused(check: Callable[..., Any]) -> None:
    for name in ("values.yaml", "values-prod.yml", "settings.yaml"):
        write(f"k8s/{name}", "replicas: 3\n")
        found = check("-f", "k8s" if name.startswith("values") else f"k8s/{name}")
        assert found.returncode == 3
        assert found.complaint.splitlines()[0] == f"k8s/{name}:1: not a Kubernetes object: missing kind"
        if name.startswith("values"):
            Path("k8s", name).unlink()
    found = check("-f", "k8s", "-o", "markdown")
    assert (found.returncode, "k8s/settings.yaml" in found.stdout) == (0, True)


@pytest.mark.parametrize("output", ["text", "json", "yaml", "markdown", "html", "junit", "sarif", "github", "gitlab"])
def test_files_without_objects_are_listed_in_every_format(check: Callable[..., Any], output: str) -> None:
    for name in ("README.md", "OWNERS", "NOTES.txt", "a.tpl"):
        write(f"k8s/{name}", "x\n")
    write("k8s/empty.yaml", "# nothing\n---\n# nothing here, either\n")
    found = check("-f", "k8s", "-o", output)
    assert found.returncode == 0
    for text in (found.stdout, found.stderr):
        flat = " ".join(text.split())
        for name in ("k8s/empty.yaml", "k8s/OWNERS", "1 more"):
            assert name in flat


def test_a_kustomization_that_is_not_built_fails_the_gate(check: Callable[..., Any]) -> None:
    write("k8s/kustomization.yaml", "resources: [web.yaml]\n")
    found = check("-f", "k8s")
    assert found.returncode == 1
    assert "use -k DIR to build it" in " ".join(found.stdout.split())


def test_listed_files_do_not_fail_strict_answers(kpreempt: Kpreempt, here: Path) -> None:
    write("dump/cluster.json", {"kind": "List", "items": [*nodes(2), *running(WEB, ["n1", "n2"])]})
    write("dump/version.json", {"serverVersion": {"gitVersion": "v1.36.3"}})
    write("dump/web.log", "x\n")
    found = kpreempt("pending", "--snapshot", "dump", "--strict", "--now", NOW)
    assert (found.returncode, "dump/web.log" in " ".join(found.stdout.split())) == (0, True)


def test_a_kustomization_and_its_patches_are_not_objects(check: Callable[..., Any]) -> None:
    write("k8s/kustomization.yaml", {"resources": ["web.yaml"], "patches": [{"path": "patch.yaml"}]})
    write("k8s/patch.yaml", {**WEB, "spec": {"replicas": 4}})
    found = check("-f", "k8s")
    assert found.returncode == 3
    assert found.complaint.splitlines() == [
        "k8s/patch.yaml:1: is a patch of k8s/kustomization.yaml, not an object",
        "hint: -k DIR builds it",
    ]
    found = check("-f", "k8s/kustomization.yaml")
    assert found.complaint.splitlines()[0] == "k8s/kustomization.yaml: contains no objects"


def test_an_object_does_not_hide_behind_the_name_of_a_kustomization(check: Callable[..., Any]) -> None:
    write("k8s/kustomization.yaml", GREEDY)
    found = json.loads(check("-f", "k8s", "-o", "json").stdout)
    assert "require-schedulable" in [each["rule"] for each in found["findings"]]
    write("k8s/kustomization.yaml", f"resources: []\n---\n{json.dumps(GREEDY)}")
    assert check("-f", "k8s").returncode == 3


def test_a_lost_budget_does_not_open_the_gate(kpreempt: Kpreempt, here: Path) -> None:
    write("dump/rest.json", {"kind": "List", "items": [*nodes(2), *running(WEB, ["n1", "n2"])]})
    write("dump/budget.yaml", f"--- # c\n{json.dumps({'kind': 'List', 'items': [BUDGET]})}\n")
    found = kpreempt("drain", "n1", "--snapshot", "dump", "--now", NOW)
    assert (found.returncode, "budget shop/web" in found.stdout) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["pending", "--strict"],
        ["explain", "--cpu", "1", "--strict"],
        ["explain", "--cpu", "1", "--exit-code"],
        ["at-risk", "--strict"],
        ["budgets", "--fail-on", "error"],
        ["drain", "n1", "--force"],
        ["check", "-f", "k8s"],
    ],
    ids=" ".join,
)
def test_a_file_that_was_skipped_fails_whatever_can_fail(kpreempt: Kpreempt, here: Path, arguments: list[str]) -> None:
    objects = [*nodes(2), *running(WEB, ["n1", "n2"])]
    write("dump/cluster.json", {"kind": "List", "apiVersion": "v1", "items": objects})
    write("dump/version.json", {"serverVersion": {"gitVersion": "v1.36.3"}})
    command = [*arguments, "--snapshot", "dump", "--now", NOW]
    write("dump/events.yaml", 'apiVersion: v1\nitems:\n- kind: "Ev')
    refused = kpreempt(*command)
    assert (refused.returncode, refused.complaint.splitlines()[0].startswith("dump/events.yaml:")) == (3, True)
    found = kpreempt(*command, "--skip-bad-objects")
    assert found.returncode not in (0, 3, 4)
    assert "skipped: dump/events.yaml:" in found.stderr


def test_a_dump_of_ours_does_not_name_the_files_of_its_input(kpreempt: Kpreempt, here: Path) -> None:
    write("dump/cluster.json", {"kind": "List", "items": [*nodes(2), *running(WEB, ["n1", "n2"])]})
    write("dump/secret-customer.log", "x\n")
    write("dump/broken-customer.yaml", 'a: "\n')
    for options in ([], ["--redact"]):
        found = kpreempt("snapshot", "--snapshot", "dump", "--to", "out.json", "--skip-bad-objects", *options)
        assert found.returncode == 0
        assert "secret-customer" not in Path("out.json").read_text()
        if options:
            assert "customer" not in Path("out.json").read_text()
        again = kpreempt("pending", "--snapshot", "out.json", "--strict", "--now", NOW)
        assert again.returncode == 1
