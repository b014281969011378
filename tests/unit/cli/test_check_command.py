"""``kpreempt check`` from its options to its exit code, on small clusters."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.rollouts import QUOTA, Document, nodes, priority_class, running, workload

ROOT = Path(__file__).parents[3]
NOW = "2026-11-21T12:00:00Z"
FORMATS = ["text", "json", "yaml", "jsonl", "name", "markdown", "html", "junit", "sarif", "github", "gitlab"]
# Stands for a password: it must never be written.
SECRET = "s3cr3t-marker"
HIGH = priority_class("high", 1000)
WEB = workload("Deployment", "web", replicas=2)
# It takes the place of both pods of web, against its budget.
GREEDY = workload("Deployment", "greedy", cpu="2", replicas=1, pod={"priorityClassName": "high"})
SMALL = workload("Deployment", "small", cpu="100m", replicas=1)

Kpreempt = Callable[..., Any]
Ask = Callable[..., Any]


def budget(name: str, at_least: Any, app: str = "web") -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"minAvailable": at_least, "selector": {"matchLabels": {"app": app}}},
    }


def full_cluster() -> list[Document]:
    """One node that ``web`` fills, but for a tenth of a core; ``web`` has a budget."""
    return [*nodes(1, "2100m"), HIGH, *running(WEB, ["n1", "n1"]), budget("web", 2), QUOTA]


def written(path: Path, documents: Sequence[Document]) -> str:
    path.write_text("\n---\n".join(json.dumps(each, indent=1) for each in documents) + "\n")
    return str(path)


@pytest.fixture
def ask(kpreempt: Kpreempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Runs ``kpreempt check`` in an empty folder, on ``cluster.json`` of it, with a change unless one is named."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "cluster.json", full_cluster())
    written(tmp_path / "change.json", [GREEDY])

    def run(*arguments: str, stdin: str = "", change: bool = True) -> Any:
        own = ["-f", "change.json"] if change else []
        return kpreempt("check", "--snapshot", "cluster.json", "--now", NOW, *own, *arguments, stdin=stdin)

    return run


def findings(run: Any) -> list[tuple[str, str, str]]:
    """Rule, subject and standing of each finding of an answer in JSON."""
    return [(each["rule"], each["subject"], each.get("status", "Fails")) for each in json.loads(run.stdout)["findings"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "no manifests given\n", id="nothing to check"),
        pytest.param(
            ["-f", "change.json", "--prune"],
            "--prune needs --base: it deletes objects that are only in the base\n",
            id="nothing to prune from",
        ),
        pytest.param(
            ["-f", "change.json", "--worst-case", "--runs", "2"],
            "--worst-case and --runs cannot be used together: one tries all choices, the other samples them\n",
            id="all choices and some",
        ),
        pytest.param(
            ["-f", "-", "--base", "-"],
            "standard input is used twice: for -f and --base\n",
            id="one stream for two",
        ),
        pytest.param(
            ["-f", "change.json", "--waive", "max-luck"],
            '--waive max-luck: unknown rule "max-luck"\n',
            id="a rule that there is not",
        ),
        pytest.param(
            ["-f", "change.json", "--max-victims", "-1"],
            "--max-victims -1: not a number from 0 to 2147483647\n",
            id="a limit below zero",
        ),
        pytest.param(
            ["-f", "change.json", "--max-victims", "10%"],
            "--max-victims 10%: not a number from 0 to 2147483647\n",
            id="a share as a limit",
        ),
        pytest.param(
            ["-f", "change.json", "--max-snapshot-age", "5y"],
            "--max-snapshot-age 5y: not a time\n",
            id="an age of another unit",
        ),
        pytest.param(
            ["-f", "change.json", "--forbid-victims", "shop"],
            "--forbid-victims shop: does not select pods\n",
            id="nobody forbidden",
        ),
        pytest.param(
            ["-f", "change.json", "--write-baseline", "b.json"],
            "--write-baseline needs --expires: findings are not accepted forever\n",
            id="a baseline without an end",
        ),
        pytest.param(
            ["-f", "change.json", "--expires", "2027-01-01"],
            "--expires needs --write-baseline\n",
            id="an end without a baseline",
        ),
        pytest.param(
            ["-f", "change.json", "-o", "table"],
            "-o table: unknown format 'table'\n",
            id="a format that there is not",
        ),
        pytest.param(
            ["-f", "change.json", "-o", "json=a", "-o", "sarif=a"],
            "-o sarif=a: another output uses the same file\n",
            id="two outputs into one file",
        ),
        pytest.param(
            ["-f", "change.json", "--algorithm", "kube-1.99"],
            "unknown algorithm 'kube-1.99'\n",
            id="an algorithm that there is not",
        ),
        pytest.param(
            ["-f", "change.json", "--algorithm", "volcano-1.8", "--feature-gates", "A=true"],
            "--feature-gates does not apply to volcano-1.8, which schedules jobs\n",
            id="gates of another scheduler",
        ),
        pytest.param(
            ["-f", "change.json", "--runs", "0"], "kpreempt check: invalid value for '--runs'", id="no run at all"
        ),
        pytest.param(
            ["-f", "change.json", "--now", "noon"],
            "--now: 'noon' is not a time with a time zone\n",
            id="a time without a zone",
        ),
        pytest.param(
            ["-f", "change.json", "-n", os.fsdecode(b"a\xff")],
            "the namespace given with -n is not valid UTF-8\n",
            id="a namespace of other bytes",
        ),
        pytest.param(["--delete", "Deployment"], '"Deployment" is not an object name\n', id="a kind alone to delete"),
        pytest.param(["--delete", "Wobble/web"], '"Wobble" is not a known kind\n', id="an unknown kind to delete"),
        pytest.param(
            ["-f", "change.json", "--delete", "Deployment/shop/greedy"],
            "Deployment shop/greedy is both in the manifests and in the deletions\n",
            id="applied and deleted",
        ),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(ask: Ask, arguments: list[str], message: str) -> None:
    run = ask(*arguments, change=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.complaint.startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("a: [1,\nb: }\n", "bad.yaml:2: is not YAML: ", id="no YAML"),
        pytest.param("", "bad.yaml: contains no objects\n", id="empty"),
        pytest.param("# nothing\n---\n---\n", "bad.yaml: contains no objects\n", id="only a comment"),
        pytest.param("[" * 20000, "bad.yaml:1: is nested too deeply\n", id="nested too deeply"),
        pytest.param(
            json.dumps(workload("Deployment", "a", replicas=10**8)),
            "bad.yaml:1: Deployment shop/a: spec: the change creates more than 20,000 new pods (100,000,000 so far)\n",
            id="too many pods",
        ),
    ],
)
def test_a_bad_manifest_is_reported_by_file_line_and_path(ask: Ask, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(content)
    run = ask("-f", "bad.yaml", change=False)
    assert (run.returncode, run.stdout) == (3, "")
    assert run.complaint.startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: null\nspec: null\n",
            "Pod without a name cannot be applied: metadata.name: is missing",
            id="without a name",
        ),
        pytest.param(
            json.dumps(workload("Deployment", "a", replicas=-1)),
            "Deployment shop/a cannot be applied: spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            id="fewer than no pods",
        ),
        pytest.param(
            json.dumps(workload("Deployment", "a", selector={"matchLabels": {"app": "b"}})),
            'Deployment shop/a cannot be applied: spec.template.metadata.labels: Invalid value: {"app": "a"}: ',
            id="a selector of other pods",
        ),
        pytest.param(
            json.dumps(workload("Deployment", "a\x1b[31m", replicas="2")),
            "Deployment shop/a\\x1b[31m cannot be applied: cannot unmarshal string into Go struct field ",
            id="a name that would color the terminal",
        ),
    ],
)
def test_what_the_api_server_rejects_fails_the_gate(ask: Ask, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(content)
    run = ask("-f", "bad.yaml", change=False)
    assert (run.returncode, run.complaint) == (1, "")
    shown = " ".join(run.stdout.split())
    assert message in shown
    assert "file bad.yaml:1" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["-f", "none.yaml"], "none.yaml: cannot read: no such file or directory\n", id="no such manifest"),
        pytest.param(
            ["-f", ""],
            "the path is empty\nhint: a file, a directory, or - for standard input\n",
            id="a variable that is not set",
        ),
        pytest.param(
            ["--delete", "Deployment/shop/none"],
            "Deployment shop/none not found\n",
            id="nothing there to delete",
        ),
        pytest.param(
            ["-f", "change.json", "--baseline", "none.json"],
            "none.json: cannot read: no such file or directory\n",
            id="no such baseline",
        ),
        pytest.param(
            ["-f", "change.json", "--baseline", "text"],
            "text: invalid JSON: invalid character (byte 0)\n",
            id="a baseline that is no JSON",
        ),
        pytest.param(["-f", "change.json", "--config", "text"], "text: ", id="a configuration that is no TOML"),
        pytest.param(
            ["-f", "change.json", "-o", "json=none/a"],
            "none/a: cannot write: No such file or directory\n",
            id="no such folder for an output",
        ),
    ],
)
def test_what_cannot_be_read_or_written_is_exit_code_3(
    ask: Ask, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "text").write_text("hello there\n")
    run = ask(*arguments, change=False)
    assert (run.returncode, run.stdout) == (3, "")
    assert run.complaint.startswith(message)


def test_the_exit_code_says_whether_the_gate_is_open(ask: Ask, tmp_path: Path) -> None:
    assert ask().returncode == 1
    written(tmp_path / "small.json", [SMALL])
    run = ask("-f", "small.json", change=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("PASS  harmless: 1 pod is created; no pod is evicted.\n  All enabled rules pass.\n")


def test_a_stream_has_a_file_and_a_line_for_systems_that_ask_for_one(ask: Ask) -> None:
    def places(*options: str) -> set[tuple[str, int]]:
        run = ask("-f", "-", "-o", "sarif", *options, stdin=json.dumps(GREEDY), change=False)
        found = [each["locations"][0]["physicalLocation"] for each in json.loads(run.stdout)["runs"][0]["results"]]
        return {(each["artifactLocation"]["uri"], each.get("region", {}).get("startLine", 0)) for each in found}

    assert places() == {("kpreempt-input.yaml", 1)}
    assert places("--stream-name", "rendered/shop.yaml") == {("rendered/shop.yaml", 1)}


@pytest.mark.parametrize("output", ["json", "text", "markdown", "junit", "sarif", "github", "gitlab", "html"])
def test_a_path_below_the_current_folder_is_seen_from_there(ask: Ask, tmp_path: Path, output: str) -> None:
    shown = ask("-f", str(tmp_path / "change.json"), "-o", output, change=False).stdout
    assert "change.json" in shown
    assert str(tmp_path) not in shown


def test_the_exit_code_follows_errors_alone(ask: Ask) -> None:
    reported = ask("--report-only", "--max-victims", "0", "-o", "json")
    assert reported.returncode == 0
    assert {standing for _, _, standing in findings(reported)} == {"Warns"}
    assert ask("--max-victims", "0", "--severity", "max-victims=warn").returncode == 1


@pytest.mark.parametrize("output", FORMATS)
def test_a_file_whose_name_is_no_text_is_reported_in_every_format(ask: Ask, tmp_path: Path, output: str) -> None:
    name = os.fsdecode(b"we\xffb.json")
    written(tmp_path / name, [GREEDY])
    (tmp_path / os.fsdecode(b"k\xff.toml")).write_text(
        '[[check.waive]]\nrule = "max-pdb-violations"\nreason = "agreed"\n'
    )
    run = ask("-f", name, "--config", os.fsdecode(b"k\xff.toml"), "-o", output, change=False)
    assert (run.returncode, run.complaint) == (1, "")


def test_the_file_that_helm_names_is_where_a_finding_is(ask: Ask) -> None:
    chart = f"---\n# Source: shop/templates/greedy.yaml\n{json.dumps(GREEDY)}\n"

    def answer(output: str) -> str:
        run = ask("-f", "-", "-o", output, stdin=chart, change=False)
        assert (run.returncode, run.complaint) == (1, "")
        return str(run.stdout)

    results = json.loads(answer("sarif"))["runs"][0]["results"]
    places = {place["physicalLocation"]["artifactLocation"]["uri"] for each in results for place in each["locations"]}
    assert places == {"shop/templates/greedy.yaml"}
    assert {each["location"]["path"] for each in json.loads(answer("gitlab"))} == {"shop/templates/greedy.yaml"}
    assert "::error file=shop/templates/greedy.yaml," in answer("github")
    failures = [each.text or "" for each in ET.fromstring(answer("junit")).iter("failure")]
    assert failures
    assert all("shop/templates/greedy.yaml (line 3 of standard input)" in each for each in failures)


def test_what_the_base_brings_about_does_not_count(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    written(tmp_path / "base/greedy.json", [GREEDY])
    run = ask("--base", "base", "-o", "json")
    assert run.returncode == 0
    assert {standing for _, _, standing in findings(run)} == {"NotNew"}


def test_what_only_the_base_has_is_deleted_with_prune(ask: Ask, tmp_path: Path) -> None:
    written(tmp_path / "base.json", [WEB, SMALL])
    written(tmp_path / "now.json", [SMALL])
    kept = json.loads(ask("-f", "now.json", "--base", "base.json", "-o", "json", change=False).stdout)
    assert [(each["object"], each["kind"]) for each in kept["changes"]] == [("Deployment shop/small", "Created")]
    run = ask("-f", "now.json", "--base", "base.json", "--prune", "-o", "json", change=False)
    assert [(each["object"], each["kind"]) for each in json.loads(run.stdout)["changes"]] == [
        ("Deployment shop/small", "Created"),
        ("Deployment shop/web", "Deleted"),
    ]


@pytest.mark.parametrize("form", [form for form in FORMATS if form not in ("name", "jsonl")])
def test_every_format_lists_what_stays_since_only_the_base_has_it(ask: Ask, tmp_path: Path, form: str) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
    gone = workload("Deployment", "gone-already")
    written(tmp_path / "base.json", [WEB, settings, gone, SMALL])
    written(tmp_path / "now.json", [SMALL])
    run = ask("-f", "now.json", "--base", "base.json", "-o", form, change=False)
    assert run.returncode == 0
    shown = " ".join(unescape(run.stdout).split())
    assert "Deployment shop/web" in shown
    assert "ConfigMap shop/settings" in shown
    assert "gone-already" not in shown
    if form in ("json", "yaml"):
        assert "harmless" not in shown
    else:
        assert "2 objects are only in the base" in shown


@pytest.mark.parametrize("text", ["", "# Source: shop/templates/web.yaml\n---\n---\n"], ids=["empty", "comments"])
def test_a_render_of_nothing_deletes_all_of_the_base(ask: Ask, tmp_path: Path, text: str) -> None:
    written(tmp_path / "base.json", [WEB])
    run = ask("-f", "-", "--base", "base.json", "--prune", "-o", "json", change=False, stdin=text)
    assert run.returncode == 1
    assert findings(run) == [("max-deletions", "Deployment shop/web", "Fails")]
    assert ask("-f", "-", "--base", "base.json", change=False, stdin=text).returncode == 3


def test_prune_knows_what_is_in_no_namespace_custom_or_gone_already(ask: Ask, tmp_path: Path) -> None:
    def named(api_version: str, kind: str, name: str, **more: Any) -> Document:
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}

    (there,) = (each for each in full_cluster() if each["kind"] == "PriorityClass")
    base = [
        named("scheduling.k8s.io/v1", "PriorityClass", there["metadata"]["name"], value=there["value"]),
        named("scheduling.k8s.io/v1", "PriorityClass", "gone-already", value=1),
        named("serving.knative.dev/v1", "Service", "web"),
        named("cert-manager.io/v1", "Certificate", "web"),
        named("v1", "ConfigMap", "settings"),
    ]
    written(tmp_path / "base.json", [*base, SMALL])
    written(tmp_path / "now.json", [SMALL])
    run = ask("-f", "now.json", "--base", "base.json", "--prune", "-o", "json", change=False)
    assert (run.returncode, [(each["object"], each["kind"]) for each in json.loads(run.stdout)["changes"]]) == (
        1,
        [
            ("Deployment shop/small", "Created"),
            (f"PriorityClass {there['metadata']['name']}", "Deleted"),
            ("Service.serving.knative.dev default/web", "Deleted"),
            ("Certificate default/web", "Deleted"),
            ("ConfigMap default/settings", "Deleted"),
        ],
    )
    # What its controller takes away with it is not known; nothing has pods because of a certificate.
    assert findings(run) == [("unmodeled-input", "Service.serving.knative.dev default/web", "Fails")]


def bare(name: str) -> Document:
    (pod,) = running(workload("Deployment", name, replicas=1), ["n1"])[-1:]
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": []}}


def lost_cluster() -> list[Document]:
    """A full node with a plain pod and a ``web`` with a quota, in a namespace that may go."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    hard = {"pods": "2"}
    quota = {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q", "namespace": "shop"}}
    quota |= {"spec": {"hard": hard}, "status": {"hard": hard, "used": hard}}
    return [
        *nodes(2, "2"),
        HIGH,
        namespace,
        *running(workload("Deployment", "web", replicas=1), ["n1"]),
        bare("one"),
        quota,
    ]


CUSTOM: Document = {
    "apiVersion": "kafka.strimzi.io/v1",
    "kind": "Kafka",
    "metadata": {"name": "k", "namespace": "shop"},
    "spec": {"template": {"containers": [{"name": "main", "image": "example.com/k:1"}]}},
}


# All but that which lists the pods that have to go, and no more.
TELLING = [form for form in FORMATS if form != "name"]


@pytest.mark.parametrize("form", TELLING)
@pytest.mark.parametrize(
    ("arguments", "change", "rule"),
    [
        pytest.param(["--delete", "node/n1"], SMALL, "lost-pods", id="a node"),
        pytest.param(["--delete", "ns/shop"], SMALL, "max-deletions", id="a namespace"),
        pytest.param([], SMALL, "quota-rejections", id="a quota"),
        pytest.param([], CUSTOM, "unmodeled-input", id="a custom resource"),
    ],
)
def test_every_format_tells_what_is_lost_refused_or_not_known(
    ask: Ask, tmp_path: Path, form: str, arguments: list[str], change: Document, rule: str
) -> None:
    written(tmp_path / "cluster.json", lost_cluster())
    written(tmp_path / "new.json", [change])
    run = ask("-f", "new.json", *arguments, "-o", form, change=False)
    assert run.returncode == 1
    assert rule in run.stdout


@pytest.mark.parametrize("has_budget", [True, False])
def test_evictions_without_any_budget_in_the_dump_say_so(ask: Ask, tmp_path: Path, *, has_budget: bool) -> None:
    cluster = full_cluster()
    without = [each for each in cluster if each["kind"] != "PodDisruptionBudget"]
    written(tmp_path / "cluster.json", cluster if has_budget else without)
    reported = [each["subject"] for each in json.loads(ask("-o", "json").stdout)["assumptions"]]
    assert ("PodDisruptionBudget" in reported) is not has_budget


@pytest.mark.parametrize("form", TELLING)
def test_every_format_tells_how_often_a_rule_breaks(ask: Ask, tmp_path: Path, form: str) -> None:
    web, other = (workload("Deployment", name, replicas=1, cpu="2") for name in ("web", "other"))
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}
    service |= {"spec": {"selector": {"app": "web"}}}
    cluster = [*nodes(3, "2"), HIGH, *running(web, ["n1"]), *running(other, ["n2"]), service]
    written(tmp_path / "cluster.json", cluster)
    change = workload("Deployment", "api", replicas=2, cpu="2", pod={"priorityClassName": "high"})
    written(tmp_path / "new.json", [change])
    run = ask("-f", "new.json", "-o", form, change=False)
    assert run.returncode == 1
    extra_fields = {"json": '"inRuns": 1', "yaml": "inRuns: 1", "jsonl": '"inRuns":1'}
    assert extra_fields.get(form, "in 1 of 2 runs") in run.stdout


def test_what_is_deleted_makes_room(ask: Ask) -> None:
    run = ask("--delete", "deploy/web", "-n", "shop", "-o", "json")
    assert (run.returncode, findings(run), json.loads(run.stdout)["simulation"]["displaced"]) == (0, [], [])


def test_a_waiver_of_an_option_names_its_subject(ask: Ask) -> None:
    failing = findings(ask("-o", "json"))
    waive = [f"--waive={rule}={subject}" for rule, subject, _ in failing]
    run = ask(*waive, "-o", "json")
    assert run.returncode == 0
    assert findings(run) == [(rule, subject, "Waived") for rule, subject, _ in failing]
    assert ask(*waive[:-1]).returncode == 1
    assert ask(*(each.replace("shop", "dev") for each in waive)).returncode == 1


def test_a_waiver_of_the_configuration_has_a_reason_and_an_end(ask: Ask, tmp_path: Path) -> None:
    rules = {rule for rule, _, _ in findings(ask("-o", "json"))}
    entries = "".join(
        f'[[check.waive]]\nrule = "{rule}"\nreason = "agreed"\nexpires = 2026-11-21\n' for rule in sorted(rules)
    )
    (tmp_path / "kpreempt.toml").write_text(entries)
    run = ask("-o", "json")
    assert (run.returncode, {each["reason"] for each in json.loads(run.stdout)["findings"]}) == (0, {"agreed"})
    assert ask("--now", "2026-11-22T12:00:00Z").returncode == 1


def test_a_waiver_in_a_manifest_needs_a_reason_and_covers_that_object_alone(ask: Ask, tmp_path: Path) -> None:
    rules = ",".join(sorted({rule for rule, _, _ in findings(ask("-o", "json"))}))

    def answer(annotations: dict[str, str], *more: Document) -> int:
        document = {**GREEDY, "metadata": {**GREEDY["metadata"], "annotations": annotations}}
        written(tmp_path / "waived.json", [document, *more])
        return int(ask("-f", "waived.json", change=False).returncode)

    waived = {"kpreempt.io/waive": rules, "kpreempt.io/waive-reason": "agreed"}
    assert answer(waived) == 0
    assert answer({"kpreempt.io/waive": rules}) == 1
    too_large = workload("Deployment", "huge", cpu="64", replicas=1)
    assert answer(waived, too_large) == 1


def test_a_baseline_accepts_what_fails_until_its_day(ask: Ask, tmp_path: Path) -> None:
    first = ask("--write-baseline", "accepted.json", "--expires", "2026-12-31")
    assert first.returncode == 1
    kept = (tmp_path / "accepted.json").read_bytes()
    run = ask("--baseline", "accepted.json", "-o", "json")
    assert run.returncode == 0
    assert {standing for _, _, standing in findings(run)} == {"Accepted"}
    assert ask("--baseline", "accepted.json", "--now", "2026-12-31T23:59:59Z").returncode == 0
    assert ask("--baseline", "accepted.json", "--now", "2027-01-01T00:00:00Z").returncode == 1
    assert (tmp_path / "accepted.json").read_bytes() == kept
    # What is worse than accepted fails.
    written(tmp_path / "worse.json", [GREEDY, workload("Deployment", "huge", cpu="64", replicas=1)])
    assert ask("--baseline", "accepted.json", "-f", "worse.json", change=False).returncode == 1


def test_an_object_that_is_set_aside_shuts_the_gate_unless_it_is_waived(ask: Ask, tmp_path: Path) -> None:
    bad = budget("bad", 1)
    bad["spec"]["selector"] = "app=web"
    written(tmp_path / "cluster.json", [*full_cluster(), bad])
    written(tmp_path / "small.json", [SMALL])
    assert ask("-f", "small.json", change=False).returncode == 3
    run = ask("-f", "small.json", "--skip-bad-objects", "-o", "json", change=False)
    assert run.returncode == 1
    failing = findings(run)
    assert {rule for rule, _, _ in failing} <= {"skipped-objects", "pdbs-unreadable"}
    assert "shop/bad" in run.stderr
    waive = [f"--waive={rule}" for rule, _, _ in failing]
    assert ask("-f", "small.json", "--skip-bad-objects", *waive, change=False).returncode == 0
    assert ask("-f", "small.json", "--skip-bad-objects", "--waive=max-victims", change=False).returncode == 1


@pytest.mark.parametrize("output", ["text", "json", "html", "sarif"])
def test_the_same_seed_makes_the_same_bytes(ask: Ask, tmp_path: Path, output: str) -> None:
    written(tmp_path / "cluster.json", [*nodes(4, "1"), HIGH, *running(WEB, ["n1", "n2"])])
    first = ask("--seed", "7", "--runs", "3", "-o", output)
    assert ask("--seed", "7", "--runs", "3", "--jobs", "1", "-o", output) == first


def test_outputs_go_to_files_whole_and_the_input_stays_as_it_is(ask: Ask, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    outputs = [f"-o{each}=out.{each}" for each in FORMATS]
    run = ask(*outputs, "-o", "name")
    assert run.returncode == 1
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {name: content for name, content in after.items() if name in before} == before
    assert sorted(after.keys() - before.keys()) == sorted(f"out.{each}" for each in FORMATS)
    assert after["out.name"].decode() == run.stdout
    assert json.loads(after["out.json"])["passed"] is False


def test_where_one_output_cannot_be_written_none_is(ask: Ask, tmp_path: Path) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    run = ask("-o", "json=a.json", "-o", "sarif=none/b.sarif", "-o", "text")
    assert (run.returncode, run.stdout) == (3, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("output", FORMATS)
def test_no_value_that_may_be_secret_is_written(ask: Ask, tmp_path: Path, output: str) -> None:
    def marked(document: Document) -> Document:
        copy: Document = json.loads(json.dumps(document))
        copy["metadata"].setdefault("annotations", {})["example.com/token"] = SECRET
        pod = copy["spec"]["template"]
        pod["metadata"]["annotations"] = {"example.com/token": SECRET}
        (container,) = pod["spec"]["containers"]
        container |= {"command": ["run", f"--password={SECRET}"], "args": [SECRET]}
        container["env"] = [{"name": "TOKEN", "value": SECRET}]
        return copy

    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login", "namespace": "shop"},
        "stringData": {"password": SECRET},
    }
    settings = {**secret, "kind": "ConfigMap", "data": {"password": SECRET}}
    written(
        tmp_path / "cluster.json", [*nodes(1, "2100m"), HIGH, *running(marked(WEB), ["n1", "n1"]), secret, settings]
    )
    other = marked(WEB)
    other["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "MORE", "value": f"{SECRET}-2"})
    written(tmp_path / "secret.json", [marked(GREEDY), other, secret, settings])
    run = ask("-f", "secret.json", "-o", output, "--verbose", change=False)
    assert run.returncode == 1
    assert SECRET not in run.stdout + run.stderr


def test_volcano_takes_a_pod_of_the_change_for_itself(ask: Ask, tmp_path: Path) -> None:
    written(tmp_path / "small.json", [SMALL])
    run = ask("-f", "small.json", "--algorithm", "volcano-1.8", "-o", "json", change=False)
    assert "metadata.name" not in {each["field"] for each in json.loads(run.stdout)["assumptions"]}


def test_a_reader_that_goes_away_is_no_failure_of_the_program(tmp_path: Path) -> None:
    written(tmp_path / "cluster.json", full_cluster())
    written(tmp_path / "change.json", [GREEDY])
    command = [sys.executable, "-m", "kpreempt", "check", "-f", "change.json", "--snapshot", "cluster.json"]
    reader, writer = os.pipe()
    os.close(reader)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, env=environment, check=False)
    os.close(writer)
    assert (run.returncode, run.stderr) == (1, b"")


def test_what_differs_since_a_former_run_is_reported(ask: Ask, tmp_path: Path) -> None:
    written(tmp_path / "small.json", [SMALL])
    assert ask("-f", "small.json", "-o", "json=former.json", change=False).returncode == 0
    run = ask("--compare-with", "former.json")
    assert run.returncode == 1
    assert re.search(rf"SINCE         \d new, \d worse since the run of {NOW}, which\s+passed", run.stdout)
    assert re.search(r"budget violations +worse +0 +2$", run.stdout, re.MULTILINE)
    same = ask("--compare-with", "former.json", "-f", "small.json", change=False)
    assert "SINCE         no difference since the run" in same.stdout
    (tmp_path / "former.json").write_text("[]")
    refused = ask("--compare-with", "former.json")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "former.json: expected `object`" in refused.stderr


@pytest.mark.parametrize("url", ["javascript:alert(1)", "wiki", 'https://x/"><b>', "https://a b"])
def test_the_address_of_the_docs_is_one_of_the_web(ask: Ask, url: str) -> None:
    run = ask("--docs-url", url)
    assert (run.returncode, run.stdout) == (2, "")
    assert "--docs-url" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "config", "seconds"),
    [
        pytest.param([], "", "10m", id="ten minutes by default"),
        pytest.param(["--job-duration", "2h"], "", "2h", id="by the option"),
        pytest.param([], '[check]\njob-duration = "90s"\n', "1m30s", id="by the file"),
        pytest.param(["--job-duration", "5m"], '[check]\njob-duration = "90s"\n', "5m", id="the option wins"),
    ],
)
def test_how_long_a_job_runs(ask: Ask, tmp_path: Path, arguments: list[str], config: str, seconds: str) -> None:
    written(tmp_path / "job.json", [workload("Job", "sums", cpu="100m")])
    (tmp_path / "kpreempt.toml").write_text(config)
    answer = json.loads(ask("-f", "job.json", "-o", "json", *arguments, change=False).stdout)
    reported = json.dumps(answer["assumptions"])
    assert f"succeed after {seconds}" in reported


@pytest.mark.parametrize("text", ["0s", "8d", "169h", "soon", "-1m"])
def test_a_job_runs_from_a_second_to_a_week(ask: Ask, tmp_path: Path, text: str) -> None:
    run = ask("--job-duration", text)
    assert (
        run.returncode,
        run.complaint.splitlines()[0].endswith("expected a time from 1s to 168h, or never"),
    ) == (2, True)
    (tmp_path / "kpreempt.toml").write_text(f'[check]\njob-duration = "{text}"\n')
    run = ask()
    assert (run.returncode, "check.job-duration" in run.complaint) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param([], 1, id="an error, whatever its annotations say"),
        pytest.param(["--base", "twice.json"], 1, id="also if the base has both documents"),
        pytest.param(["--waive", "duplicate-objects"], 0, id="waived by an option"),
        pytest.param(["--no-duplicate-objects"], 0, id="switched off by an option"),
    ],
)
def test_only_an_option_lets_an_object_be_in_the_change_twice(
    ask: Ask, tmp_path: Path, arguments: list[str], code: int
) -> None:
    waived = {"kpreempt.io/waive": "duplicate-objects", "kpreempt.io/waive-reason": "trust me"}
    last = {**SMALL, "metadata": {**SMALL["metadata"], "annotations": waived}}
    first = {**last, "spec": {**last["spec"], "replicas": 0}}
    written(tmp_path / "twice.json", [first, last])
    run = ask("-f", "twice.json", *arguments, change=False)
    assert run.returncode == code
    assert ("✗ duplicate-objects" in run.stdout) is (code == 1)


HOOK = workload("Job", "test", cpu="100m")
HOOK["metadata"]["annotations"] = {"helm.sh/hook": "test"}


@pytest.mark.parametrize(
    ("arguments", "config", "changes", "hint"),
    [
        pytest.param([], "", 1, True, id="kubectl by default, which is reported"),
        pytest.param(["--applied-by", "kubectl"], "", 1, False, id="kubectl by the option"),
        pytest.param(["--applied-by", "helm"], "", 0, False, id="helm by the option"),
        pytest.param([], '[check]\napplied-by = "helm"\n', 0, False, id="helm by the file"),
        pytest.param(["--applied-by", "argocd"], '[check]\napplied-by = "kubectl"\n', 0, False, id="the option wins"),
    ],
)
def test_hooks_count_for_the_tool_that_applies_the_change(
    ask: Ask, tmp_path: Path, arguments: list[str], config: str, changes: int, *, hint: bool
) -> None:
    written(tmp_path / "hook.json", [HOOK])
    (tmp_path / "kpreempt.toml").write_text(config)
    answer = json.loads(ask("-f", "hook.json", "-o", "json", *arguments, change=False).stdout)
    assert len(answer["changes"]) == changes
    assert ("--applied-by helm" in json.dumps(answer["assumptions"])) is hint


def test_a_tool_that_is_not_known_is_an_error(ask: Ask, tmp_path: Path) -> None:
    run = ask("--applied-by", "Helm")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.complaint.splitlines()[:2] == ["--applied-by Helm: unknown tool", "hint: kubectl, helm, argocd"]
    (tmp_path / "kpreempt.toml").write_text('[check]\napplied-by = ["helm"]\n')
    run = ask()
    assert run.returncode == 3
    assert "check.applied-by: an array is not a known tool" in run.stderr


def test_rules_of_ones_own_shut_the_gate_and_are_named_by_options(ask: Ask, tmp_path: Path) -> None:
    written(tmp_path / "small.json", [SMALL])
    (tmp_path / "kpreempt.toml").write_text(
        '[[check.rule]]\nname = "no-small"\nexpression = "result.changes.all(c, !c.object.endsWith(\'small\'))"\n'
        'message = "nothing is called small"\n'
    )
    run = ask("-f", "small.json", change=False)
    assert run.returncode == 1
    assert "✗ no-small" in run.stdout
    assert "nothing is called small" in run.stdout
    for option in (["--waive", "no-small"], ["--severity", "no-small=warn"], ["--severity", "no-small=off"]):
        assert ask("-f", "small.json", *option, change=False).returncode == 0
    (tmp_path / "kpreempt.toml").write_text('[[check.rule]]\nname = "a"\nexpression = "1 +"\nmessage = "b"\n')
    broken = ask("-f", "small.json", change=False)
    assert (broken.returncode, broken.stdout) == (3, "")
    assert "kpreempt.toml: check.rule[0].expression: invalid expression" in broken.stderr


def test_a_snapshot_of_kpreempt_rejects_nothing_because_of_fields_that_it_lacks(
    kpreempt: Kpreempt, tmp_path: Path
) -> None:
    headless = {"selector": {"app": "web"}, "clusterIP": "None", "clusterIPs": ["None"], "ports": [{"port": 80}]}
    stored = {
        "Service": ("v1", {"spec": {**headless, "type": "ClusterIP", "ipFamilies": ["IPv4"]}}),
        "StorageClass": ("storage.k8s.io/v1", {"provisioner": "disk.example.com", "parameters": {"type": "fast"}}),
        "PersistentVolumeClaim": (
            "v1",
            {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "volumeMode": "Block",
                    "volumeName": "pv-1",
                    "storageClassName": "fast",
                    "resources": {"requests": {"storage": "1Gi"}},
                },
                "status": {"phase": "Bound"},
            },
        ),
    }
    objects = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "fast", "namespace": "shop"}, **rest}
        for kind, (version, rest) in stored.items()
    ]
    source = written(tmp_path / "source.yaml", [*nodes(1), *objects])
    dump = str(tmp_path / "dump.json")
    assert kpreempt("snapshot", "--snapshot", source, "--to", dump).returncode == 0
    change = written(tmp_path / "change.yaml", objects)
    for snapshot in (source, dump):
        run = kpreempt("check", "-f", change, "--snapshot", snapshot, "-n", "shop", "-o", "json", "--now", NOW)
        assert [each for each in json.loads(run.stdout)["findings"] if each["rule"] == "apply-rejected"] == []
