"""Kinds that a dump has no object of: what is said of them, what they fail, and the two ways to settle it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpreempt.snapshot.kinds import RECORDED
from tests.rollouts import QUOTA, Document, nodes, priority_class, running, workload

NOW = ("--now", "2026-11-21T12:00:00Z")
HIGH = priority_class("high", 1000)
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
WEB = workload("Deployment", "web", replicas=2)
FULL = [*nodes(1, "2"), NAMESPACE, HIGH, *running(WEB, ["n1", "n1"])]
ROOMY = [*nodes(2, "8"), NAMESPACE, HIGH, *running(WEB, ["n1", "n2"])]
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "other", "namespace": "elsewhere"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "other"}}},
}
# It evicts a pod of web.
GREEDY = workload("Deployment", "greedy", replicas=1, pod={"priorityClassName": "high"})
NEW = workload("Deployment", "new", cpu="100m", replicas=1)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "urgent", "namespace": "shop"},
    "spec": {
        "priorityClassName": "high",
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
    },
}
FRESH = {**NAMESPACE, "metadata": {"name": "fresh"}}
IN_FRESH = {**NEW, "metadata": {"name": "new", "namespace": "fresh"}}
UNKNOWN = (
    "The snapshot has no PDBs: add them (kubectl get pdb -A -o json), or pass --assume-none pdb if the"
    " cluster has none."
)
ALLOWED = ("--max-victims", "off", "--max-pending", "off", "--min-ready", "off", "--max-broken-dependencies", "off")

Kpreempt = Callable[..., Any]


@pytest.fixture
def on(kpreempt: Kpreempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command on a dump, with ``change.json`` of the objects if there are any."""
    monkeypatch.chdir(tmp_path)

    def run(command: str, cluster: list[Document], *arguments: str, change: list[Document] | None = None) -> Any:
        lists = {"cluster.json": cluster, "change.json": change or []}
        for name, items in lists.items():
            (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        manifest = ["-f", "change.json"] if change else []
        return kpreempt(command, *manifest, "--snapshot", "cluster.json", *NOW, *arguments)

    return run


def one_line(text: str) -> str:
    return " ".join(text.split())


def kinds_of(run: Any) -> dict[str, str]:
    document = json.loads(run.stdout)
    return {each["subject"]: each.get("kind", "") for each in document.get("assumptions", [])}


def broken(run: Any) -> set[tuple[str, str]]:
    return {(each["rule"], each["subject"]) for each in json.loads(run.stdout)["findings"]}


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_the_first_lines_of_explain_name_a_kind_that_could_change_the_answer(on: Any, form: str) -> None:
    shown = on("explain", FULL, "-o", form, change=[POD]).stdout
    words = shown.replace("\\", "")
    assert UNKNOWN in one_line(words)
    assert "no budget is violated" not in shown
    assert UNKNOWN not in one_line(on("explain", ROOMY, "-o", form, change=[POD]).stdout.replace("\\", ""))


@pytest.mark.parametrize("options", [(), ("-v",), ("--brief",)], ids=["screen", "report", "one line"])
def test_every_length_of_explain_names_it(on: Any, options: tuple[str, ...]) -> None:
    shown = one_line(on("explain", FULL, *options, change=[POD]).stdout)
    assert UNKNOWN in shown
    assert "no budget" not in shown


@pytest.mark.parametrize("form", ["text", "wide", "markdown", "html", "json"])
@pytest.mark.parametrize("verbose", [(), ("-v",)], ids=["short", "long"])
def test_pending_names_it(on: Any, form: str, verbose: tuple[str, ...]) -> None:
    shown = on("pending", [*FULL, {**POD, "spec": {**POD["spec"], "priority": 1000}}], "-o", form, *verbose).stdout
    if form == "json":
        assert '"kind": "Absent"' in shown
    else:
        assert UNKNOWN in one_line(shown.replace("\\", ""))


def test_it_fails_strict_and_what_lets_something_pass(on: Any) -> None:
    ask = ("--algorithm", "kube-1.36")
    assert on("explain", FULL, *ask, "--strict", change=[POD]).returncode == 1
    assert on("explain", FULL, *ask, "--exit-code", change=[POD]).returncode == 13
    none = ("--assume-none", "pdb")
    assert on("explain", FULL, *ask, *none, "--strict", change=[POD]).returncode == 0
    assert on("explain", FULL, *ask, *none, "--exit-code", change=[POD]).returncode == 10
    assert on("budgets", FULL, "--fail-on", "error").returncode == 1
    assert on("budgets", FULL, "--fail-on", "error", *none).returncode == 0


def test_what_the_user_assumes_is_a_note_and_a_fact_is_no_assumption(on: Any) -> None:
    assumed = kinds_of(on("explain", FULL, "--assume-none", "pdb", "-o", "json", change=[POD]))
    assert assumed["PodDisruptionBudget"] == "Note"
    there = kinds_of(on("explain", [*FULL, BUDGET], "--assume-none", "pdb", "-o", "json", change=[POD]))
    assert "PodDisruptionBudget" not in there
    shown = on("explain", FULL, "--assume-none", "pdb", change=[POD]).stdout
    assert "no budget is violated" in one_line(shown)


@pytest.mark.parametrize(
    ("cluster", "change", "kind", "word"),
    [
        pytest.param([*FULL, QUOTA], [GREEDY], "PodDisruptionBudget", "pdb", id="PDBs if a pod is evicted"),
        pytest.param([*ROOMY, BUDGET], [NEW], "ResourceQuota", "quota", id="quotas if a workload is new"),
        pytest.param([*ROOMY, BUDGET], [POD], "ResourceQuota", "quota", id="quotas if a pod is new"),
    ],
)
def test_a_gate_fails_by_a_kind_that_could_change_the_verdict(
    on: Any, cluster: list[Document], change: list[Document], kind: str, word: str
) -> None:
    run = on("check", cluster, *ALLOWED, "-o", "json", change=change)
    assert (run.returncode, broken(run) & {("absent-kinds", kind)}) == (1, {("absent-kinds", kind)})
    (detail,) = (each["detail"] for each in json.loads(run.stdout)["findings"] if each["subject"] == kind)
    assert f"kubectl get {word} -A -o json" in detail
    assert f"--assume-none {word}" in detail
    settled = on("check", cluster, *ALLOWED, "--assume-none", word, "-o", "json", change=change)
    assert "absent-kinds" not in {rule for rule, _ in broken(settled)}
    assert kinds_of(settled)[kind] == "Note"


@pytest.mark.parametrize(
    ("cluster", "change"),
    [
        pytest.param(ROOMY, [workload("Deployment", "web", image="two", replicas=2)], id="a new image"),
        pytest.param(ROOMY, [workload("Deployment", "web", replicas=3)], id="one replica more"),
        pytest.param(ROOMY, [WEB], id="nothing"),
        pytest.param(ROOMY, [FRESH, IN_FRESH], id="a workload in a new namespace"),
    ],
)
def test_everyday_changes_pass_unconfigured(on: Any, cluster: list[Document], change: list[Document]) -> None:
    run = on("check", cluster, "-o", "json", change=change)
    assert (run.returncode, broken(run)) == (0, set())


def test_a_larger_size_under_unknown_quotas_is_not_called_harmless(on: Any) -> None:
    larger = [workload("Deployment", "web", replicas=3)]
    assert "harmless" not in on("check", ROOMY, change=larger).stdout
    assert "harmless" in on("check", ROOMY, "--assume-none", "quota", change=larger).stdout


def test_the_rules_file_sets_it_permanently(on: Any, tmp_path: Path) -> None:
    (tmp_path / "kpreempt.toml").write_text('[check]\nassume-none = ["Quota", "pdb"]\n')
    run = on("check", ROOMY, "-o", "json", change=[NEW])
    assert (run.returncode, broken(run)) == (0, set())
    assert on("drain", FULL, "n1", "-o", "json").returncode in (0, 1)
    assert "PodDisruptionBudget" not in {subject for _, subject in broken(on("drain", FULL, "n1", "-o", "json"))}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param('"pdb"', "is not an array of kinds", id="no array"),
        pytest.param('["pdbs"]', "check.assume-none: pdbs: unknown kind", id="an unknown kind"),
        pytest.param("[1]", "is not an array of kinds", id="no kinds"),
    ],
)
def test_a_file_that_is_wrong_is_refused(on: Any, tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "kpreempt.toml").write_text(f"[check]\nassume-none = {text}\n")
    run = on("check", ROOMY, change=[NEW])
    assert run.returncode == 3
    assert problem in run.stderr


@pytest.mark.parametrize(
    "word", ["pdb", "PDB", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudgets.policy"]
)
def test_a_kind_is_named_as_kubectl_does(on: Any, word: str) -> None:
    assumed = kinds_of(on("explain", FULL, "--assume-none", word, "-o", "json", change=[POD]))
    assert assumed["PodDisruptionBudget"] == "Note"


def test_an_unknown_kind_is_refused_with_the_nearest(on: Any) -> None:
    run = on("explain", FULL, "--assume-none", "resourcequotaz", change=[POD])
    assert (run.returncode, run.stdout) == (2, "")
    assert "--assume-none resourcequotaz: unknown kind" in run.stderr
    assert "resourcequota" in run.complaint.splitlines()[1]


def test_without_nodes_a_pod_gets_no_verdict(on: Any) -> None:
    lacking = [each for each in FULL if each["kind"] != "Node"]
    run = on("explain", lacking, "--exit-code", change=[POD])
    assert run.returncode == 13
    assert one_line(run.stdout).startswith("No verdict on shop/urgent without nodes. The snapshot has no nodes: add")
    # Nothing is said about nodes that are not known.
    assert "0/0" not in run.stdout
    assert "no nodes available" not in run.stdout


def test_without_nodes_no_change_passes_and_what_needs_none_is_checked(on: Any) -> None:
    lacking = [each for each in [*FULL, BUDGET] if each["kind"] != "Node"]
    weaker = {**BUDGET, "spec": {**BUDGET["spec"], "minAvailable": 0}}
    run = on("check", lacking, "-o", "json", change=[POD, weaker])
    answer = json.loads(run.stdout)
    assert (run.returncode, answer["passed"], answer["simulation"]["end"]) == (1, False, "NotSimulated")
    assert ("absent-kinds", "Node") in broken(run)
    unknown = {each["rule"] for each in answer["rules"] if each.get("isEvaluated") is False}
    assert {"require-schedulable", "max-pdb-violations", "max-pending", "min-ready"} <= unknown
    assert not unknown & {rule for rule, _ in broken(run)}
    waived = on("check", lacking, "--severity", "absent-kinds=warn", change=[weaker])
    assert waived.returncode == 1
    assert "PASS" not in waived.stdout


@pytest.mark.parametrize("command", ["drain", "compare"])
def test_without_nodes_there_is_no_answer(on: Any, command: str) -> None:
    lacking = [each for each in FULL if each["kind"] != "Node"]
    change = [POD] if command != "drain" else None
    more = {"drain": ("n1",), "compare": ("--algorithms", "kube-1.33,kube-1.36")}[command]
    run = on(command, lacking, *more, change=change)
    assert (run.returncode, run.stdout) == (3, "")
    assert "the input has no nodes" in run.stderr
    assert "kubectl get nodes" in run.stderr


CLAIMS = (
    *("the cluster has no nodes", "No pod is pending", "No running pod matches", "no budget is violated"),
    *("none is violated", 'PriorityClass "high" not found'),
)


@pytest.mark.parametrize("command", ["pending", "at-risk", "budgets", "queue"])
@pytest.mark.parametrize("lacks", [("Node",), ("Pod", "ReplicaSet", "Deployment"), ("PodDisruptionBudget",)])
def test_nothing_is_said_of_the_cluster_that_only_the_snapshot_lacks(on: Any, command: str, lacks: Any) -> None:
    waiting = {**POD, "spec": {**POD["spec"], "priority": 1000}}
    cluster = [each for each in [*FULL, waiting] if each["kind"] not in lacks]
    for more in ((), ("-v",), ("-o", "markdown"), ("-o", "json")):
        if command == "queue" and more == ("-v",):
            continue
        everywhere = ("-A",) if command == "at-risk" else ()
        shown = one_line(on(command, cluster, *everywhere, *more).stdout)
        assert not [claim for claim in CLAIMS if claim in shown]


def test_a_kind_that_most_clusters_have_none_of_hides_no_outcome(on: Any) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"storageClassName": "disks", "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    }
    disks = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "disks"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100"}}}]
    big = {**POD, "spec": {"priority": 0, "volumes": volumes, "containers": containers}}
    verdict = json.loads(on("explain", [*ROOMY, claim, disks], "-o", "json", change=[big]).stdout)
    assert verdict["outcome"] == "Unschedulable"
    unclaimed = json.loads(on("explain", [*ROOMY, disks], "-o", "json", change=[big]).stdout)
    assert unclaimed["outcome"] == "Uncertain"


@pytest.mark.parametrize("kind", ["PersistentVolumeClaim", "PriorityClass", "RuntimeClass"])
def test_a_kind_that_a_pod_refers_to_decides(on: Any, kind: str) -> None:
    more = {
        "PersistentVolumeClaim": {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]},
        "PriorityClass": {"priorityClassName": "nope"},
        "RuntimeClass": {"runtimeClassName": "kata"},
    }[kind]
    cluster = [each for each in [*ROOMY, QUOTA] if each["kind"] != kind]
    run = on("check", cluster, "-o", "json", change=[workload("Deployment", "new", cpu="1", replicas=1, pod=more)])
    assert ("absent-kinds", kind) in broken(run)
    assert run.returncode == 1
    plain = on("check", cluster, "-o", "json", change=[NEW])
    assert (plain.returncode, broken(plain)) == (0, set())


def test_a_class_that_is_not_in_the_dump_is_unknown_and_not_missing(on: Any) -> None:
    lacking = [each for each in ROOMY if each["kind"] != "PriorityClass"]
    run = on("explain", lacking, change=[POD])
    assert run.returncode == 3
    assert 'PriorityClass "high" not found' not in run.stderr
    assert "PriorityClasses are not in the snapshot" in run.stderr
    assumed = on("explain", lacking, "--assume-none", "pc", change=[POD]).stdout
    reason = "the API server rejects shop/urgent: change.json:1: no PriorityClass with name high was found"
    assert " ".join(assumed.split()).startswith(reason)


def test_a_workload_whose_pods_alone_are_there(on: Any) -> None:
    lacking = [each for each in [*ROOMY, QUOTA] if each["kind"] not in ("Deployment", "ReplicaSet")]
    run = on("check", lacking, "-o", "json", change=[WEB])
    assert ("absent-kinds", "Deployment") in broken(run)


def test_pods_on_nodes_that_are_not_in_the_dump_are_one_assumption(on: Any) -> None:
    lacking = [each for each in [*ROOMY, QUOTA, BUDGET] if each["metadata"]["name"] != "n2"]
    run = on("explain", lacking, "--cpu", "1")
    assert "1 pod runs on a node that is not in the input (n2): shop/web-old-b" in one_line(run.stdout)
    assert on("explain", lacking, "--cpu", "1", "--strict").returncode == 1
    assert ("absent-kinds", "Node") in broken(on("check", lacking, "-o", "json", change=[NEW]))
    assert ("absent-kinds", "Node") in broken(on("drain", lacking, "n1", "-o", "json"))
    assert on("budgets", lacking, "--fail-on", "error").returncode == 1


@pytest.mark.parametrize(
    "command", [("explain", "pod/waiting", "-n", "shop"), ("pending", "-A")], ids=["explain", "pending"]
)
@pytest.mark.parametrize(
    ("counted", "kind", "field", "message"),
    [
        pytest.param(
            "1 nodes", "Note", "status.conditions",
            "the condition from 60m ago (shop/waiting) counts 1 node, but the input has 2",
            id="fewer: nodes were added since",
        ),
        pytest.param(
            "5 nodes", "Absent", "",
            "the condition of shop/waiting counts 5 nodes, but the input has 2; add all nodes to the dump (kubectl get"
            " nodes -o json)",
            id="more: the input may lack nodes",
        ),
    ],
)  # fmt: skip
def test_a_condition_that_counts_other_nodes(
    on: Any, command: tuple[str, ...], counted: str, kind: str, field: str, message: str
) -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": f"0/{counted} are available: {counted[0]} Insufficient cpu.",
        "lastTransitionTime": "2026-11-21T11:00:00Z",
    }
    waiting = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "waiting", "namespace": "shop"},
        "spec": {"priority": 0, "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending", "conditions": [condition]},
    }
    cluster = [*ROOMY, BUDGET, waiting]
    document = json.loads(on(*command[:1], cluster, *command[1:], "-o", "json").stdout)
    (noted,) = (each for each in document["assumptions"] if "counts" in each["message"])
    assert (noted["kind"], noted["field"], noted["message"]) == (kind, field, message)
    outcome = document["outcome"] if command[0] == "explain" else document["items"][0]["outcome"]
    assert (outcome == "Uncertain") is (kind == "Absent")


def test_a_disruption_condition_is_quoted(on: Any) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    condition["message"] = "Eviction API: evicting"
    gone = {**POD, "spec": {**POD["spec"], "nodeName": "n1"}, "status": {"phase": "Running", "conditions": [condition]}}
    for form in ("text", "html"):
        shown = one_line(on("who-evicted", [*ROOMY, gone], "pod/urgent", "-n", "shop", "-o", form).stdout)
        assert "no DisruptionTarget condition" not in shown
        assert "EvictionByEvictionAPI: Eviction API: evicting" in shown


def test_what_a_snapshot_of_ours_lists_is_a_fact(on: Any, kpreempt: Kpreempt, tmp_path: Path) -> None:
    on("explain", FULL, change=[POD])
    dump = ("snapshot", "--snapshot", "cluster.json", "--assume-none", "pdb", "--to", "own.json")
    assert kpreempt(*dump).returncode == 0
    listed = json.loads((tmp_path / "own.json").read_text())["metadata"]["annotations"]["kpreempt.io/listed"]
    assert json.loads(listed) == ["PodDisruptionBudget"]
    ask = ("explain", "-f", "change.json", "--snapshot", "own.json", *NOW, "-o", "json")
    (tmp_path / "change.json").write_text(json.dumps(POD))
    assert kinds_of(kpreempt(*ask)).get("PodDisruptionBudget") != "Absent"


HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"minReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}


@pytest.mark.parametrize(("most", "fits"), [(4, True), (30, False)])
@pytest.mark.parametrize(
    "others", [[], [{**HPA, "metadata": {"name": "x", "namespace": "other"}}]], ids=["the first", "one more"]
)
def test_a_new_autoscaler_is_judged_at_its_maximum(on: Any, others: list[Document], *, most: int, fits: bool) -> None:
    scaled = {**WEB, "spec": {key: value for key, value in WEB["spec"].items() if key != "replicas"}}
    scaler = {**HPA, "spec": {**HPA["spec"], "maxReplicas": most}}
    run = on("check", [*ROOMY, *others], "-o", "json", change=[scaled, scaler])
    assert run.returncode == 0
    assert broken(run) == (set() if fits else {("autoscaled-maximum", "Deployment shop/web")})


def test_every_recorded_kind_can_be_assumed_to_be_none(on: Any) -> None:
    options = [word for kind in RECORDED if kind not in ("Node", "Pod") for word in ("--assume-none", kind)]
    run = on("check", FULL, *ALLOWED, *options, "-o", "json", change=[GREEDY])
    assert "absent-kinds" not in {rule for rule, _ in broken(run)}
