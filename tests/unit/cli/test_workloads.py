"""``explain`` about workloads: all replicas, those that a workload of the cluster lacks, and how many more fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import DEMO, Kpreempt

ROOT = Path(__file__).parents[3]
SNAPSHOT = ("--snapshot", str(ROOT / "fixtures" / "workloads" / "cluster.yaml"), "--algorithm", "kube-1.36")
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: new, namespace: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: new}}
  template:
    metadata: {labels: {app: new}}
    spec: {containers: [{name: c, image: c, resources: {requests: {cpu: "2"}}}]}
"""


def first_line(kpreempt: Kpreempt, *arguments: str) -> str:
    run = kpreempt("explain", *arguments, *SNAPSHOT)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()[0]


def document(kpreempt: Kpreempt, *arguments: str) -> dict[str, Any]:
    run = kpreempt("explain", *arguments, *SNAPSHOT, "-o", "json")
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(
            ["deploy/web"], "shop/web: all 4 missing replicas land.", id="what waits and what is not made yet"
        ),
        pytest.param(
            ["deployments.apps", "web"], "shop/web: all 4 missing replicas land.", id="two words, with a group"
        ),
        pytest.param(["rs/web-5f7", "--replicas", "1"], "shop/web-5f7: 1 more replica lands.", id="one in addition"),
        pytest.param(
            ["Deployment/web", "--replicas", "9"],
            "shop/web: 5 of 9 more replicas land, and 4 stay pending.",
            id="more than there is room for",
        ),
        pytest.param(["sts/db"], "shop/db: both missing replicas land.", id="the next ordinals of a StatefulSet"),
        pytest.param(["ds/agent"], "shop/agent: both missing replicas land.", id="a DaemonSet's other nodes"),
        pytest.param(
            ["job/report"],
            "shop/report: neither missing replica lands immediately: 2 preempt 2 pods.",
            id="a Job without pods, of its template",
        ),
        pytest.param(
            ["ds/agent", "--without", "node/a", "--without", "node/b"],
            "shop/agent has a pod on its only node.",
            id="a DaemonSet that lacks nothing",
        ),
        pytest.param(["cj", "nightly"], "shop/nightly: both replicas land.", id="a CronJob's next Job"),
        pytest.param(["web-5f7-2", "--replicas", "2"], "shop/web-5f7-2: both replicas land.", id="a pending pod twice"),
        pytest.param(
            ["pod", "web-5f7-1", "--replicas", "2"],
            "shop/web-5f7-1: both more replicas land.",
            id="two more of a pod that runs",
        ),
    ],
)
def test_a_workload_of_the_cluster_is_answered_as_one(kpreempt: Kpreempt, arguments: list[str], expected: str) -> None:
    assert first_line(kpreempt, *arguments, "-n", "shop").startswith(expected)


def test_a_pod_may_have_its_namespace_before_its_name(kpreempt: Kpreempt) -> None:
    assert first_line(kpreempt, "shop/web-5f7-2").startswith("shop/web-5f7-2 lands on c;")


def test_a_manifest_asks_for_all_its_replicas(kpreempt: Kpreempt, tmp_path: Path) -> None:
    manifest = tmp_path / "new.yaml"
    manifest.write_text(DEPLOYMENT, encoding="utf-8")
    workload = document(kpreempt, "-f", str(manifest))["workload"]
    assert workload["totals"] == {
        **dict.fromkeys(("preempts", "evictions", "violations", "uncertain", "rejected", "notCreated"), 0),
        "lands": 2,
        "pending": 2,
    }
    assert sorted(each["node"] for each in workload["items"][:2]) == ["a", "c"]
    assert [each["replicas"] for each in workload["pending"]] == [2]


def test_replicas_of_one_node_are_all_explained_only_if_requested(kpreempt: Kpreempt, tmp_path: Path) -> None:
    manifest = tmp_path / "new.yaml"
    manifest.write_text(DEPLOYMENT, encoding="utf-8")
    assert "workload" not in document(kpreempt, "-f", str(manifest), "--node", "a")


def test_a_quota_refuses_what_it_has_no_room_for(kpreempt: Kpreempt) -> None:
    answer = document(kpreempt, "--cpu", "100m", "--replicas", "4", "-n", "tight")["workload"]
    assert (answer["totals"]["lands"], answer["totals"]["rejected"]) == (2, 2)
    assert "exceeded quota: few" in answer["pending"][0]["message"]


def test_capacity_is_reported_by_node_and_no_pod_is_evicted(kpreempt: Kpreempt) -> None:
    answer = document(kpreempt, "--cpu", "1", "--priority", "1000", "--capacity")["capacity"]
    assert answer["pods"] == 5
    assert {each["node"]: each["pods"] for each in answer["nodes"]} == {"a": 2, "b": 1, "c": 2}
    assert "isBounded" not in answer


def test_where_pods_look_across_nodes_the_scheduler_is_called_one_by_one(kpreempt: Kpreempt, tmp_path: Path) -> None:
    manifest = tmp_path / "new.yaml"
    apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: disk, "
    apart += "labelSelector: {matchLabels: {app: new}}}]}}, containers"
    manifest.write_text(DEPLOYMENT.replace("containers", apart), encoding="utf-8")
    answer = document(kpreempt, "-f", str(manifest), "--capacity")
    # One in the domain of a, where there is room; c has no such label, and holds one.
    assert answer["capacity"]["pods"] == answer["workload"]["totals"]["lands"] == 2
    assert answer["capacity"]["limit"] == 500


def test_the_numbers_that_chance_changes_are_shown_as_a_range_and_an_assumption(kpreempt: Kpreempt) -> None:
    run = kpreempt(
        *("explain", "--cpu", "2", "--priority-class", "high", "--replicas", "5", "--algorithm", "kube-1.36"),
        *("--snapshot", str(DEMO / "cluster.yaml"), "-o", "json", "--strict"),
    )
    verdict = json.loads(run.stdout)
    reported, others = verdict["workload"]["totals"], verdict["workload"].get("others", [])
    assumed = [each["message"] for each in verdict.get("assumptions", []) if each["field"] == "replicas"]
    assert bool(assumed) == (run.returncode == 1)
    assert all(each != reported for each in others)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["deploy/web", "-n", "shop"], 0, id="all land"),
        pytest.param(["deploy/web", "-n", "shop", "--replicas", "9"], 12, id="one stays pending"),
        pytest.param(["job/report", "-n", "shop"], 10, id="some preempt"),
        pytest.param(["--cpu", "100m", "--replicas", "4", "-n", "tight"], 12, id="a quota refuses some"),
    ],
)
def test_the_exit_code_is_that_of_the_worst_replica(kpreempt: Kpreempt, arguments: list[str], code: int) -> None:
    assert kpreempt("explain", *arguments, *SNAPSHOT, "--assume-none", "pdb", "--exit-code").returncode == code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["deploy/wep", "-n", "shop"],
            'Deployment "wep" in namespace "shop" not found\nhint: deploy/web -n shop\n',
            id="a name that nearly is one",
        ),
        pytest.param(
            ["deploy/web", "-n", "tight"],
            'Deployment "web" in namespace "tight" not found\nhint: deploy/web -n shop\n',
            id="another namespace",
        ),
        pytest.param(
            ["podtemplate/x"],
            "PodTemplate creates no pods\n"
            "hint: Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job, CronJob\n",
            id="a kind without pods",
        ),
        pytest.param(
            ["shop/web-5f7-2", "-n", "batch"],
            "two namespaces given: shop and -n batch\n",
            id="two namespaces",
        ),
        pytest.param(
            ["ds/agent", "-n", "shop", "--replicas", "3"],
            "--replicas: not supported for a DaemonSet, which has one pod per node\nhint: --capacity\n",
            id="replicas of a DaemonSet",
        ),
    ],
)
def test_what_is_not_there_is_one_message(kpreempt: Kpreempt, arguments: list[str], message: str) -> None:
    run = kpreempt("explain", *arguments, *SNAPSHOT)
    assert (run.returncode in (2, 3), run.stdout, run.complaint) == (True, "", message)


def test_volcano_refuses_replicas(kpreempt: Kpreempt) -> None:
    run = kpreempt("explain", "--cpu", "1", "--replicas", "3", "--algorithm", "volcano-1.8", *SNAPSHOT[:2])
    assert run.returncode == 2
    assert run.complaint.startswith("--replicas does not apply to volcano-1.8")


@pytest.mark.parametrize("algorithm", ["kube-1.8", "kube-1.13", "kube-1.18"])
def test_old_schedulers_answer_too(kpreempt: Kpreempt, algorithm: str) -> None:
    run = kpreempt("explain", "deploy/web", "-n", "shop", *SNAPSHOT[:2], "--algorithm", algorithm, "--capacity")
    assert run.stdout.startswith("shop/web: all 4 missing replicas land.")
    assert "5 more pods like this fit on 3 nodes" in run.stdout


def test_a_dump_without_templates_goes_by_pods_or_asks_for_the_manifest(kpreempt: Kpreempt, tmp_path: Path) -> None:
    dump = str(tmp_path / "cluster.json")
    assert kpreempt("snapshot", *SNAPSHOT[:2], "--to", dump).returncode == 0
    document = json.loads(Path(dump).read_text(encoding="utf-8"))
    for each in document["items"]:
        each.get("spec", {}).pop("template", None)
    Path(dump).write_text(json.dumps(document), encoding="utf-8")
    run = kpreempt("explain", "deploy/web", "-n", "shop", "--snapshot", dump, "--algorithm", "kube-1.36")
    assert run.stdout.startswith("shop/web: all 4 missing replicas land.")
    run = kpreempt("explain", "job/report", "-n", "shop", "--snapshot", dump)
    assert run.returncode == 3
    assert "pass the workload's manifest with -f FILE" in run.stderr


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("name", ["node/c", "node/b", "node/a"]),
        ("jsonpath={.workload.totals.lands}", ["4"]),
    ],
)
def test_other_formats(kpreempt: Kpreempt, output: str, expected: list[str]) -> None:
    run = kpreempt("explain", "deploy/web", "-n", "shop", *SNAPSHOT, "-o", output)
    assert run.stdout.split() == expected


def test_wide_and_markdown_and_a_page_tell_every_replica_or_all_together(kpreempt: Kpreempt) -> None:
    wide = kpreempt("explain", "deploy/web", "-n", "shop", *SNAPSHOT, "-o", "wide").stdout.splitlines()
    assert len(wide) == 5
    assert wide[1].split()[:4] == ["shop/web-5f7-2", "0", "Lands", "c"]
    for output in ("markdown", "html"):
        text = kpreempt("explain", "deploy/web", "-n", "shop", "--capacity", *SNAPSHOT, "-o", output).stdout
        assert "all 4 missing replicas" in text
        assert "5 more" in text


@pytest.mark.parametrize(
    "requested",
    [
        pytest.param(["deploy/web", "--replicas", "100000000"], id="more of a workload"),
        pytest.param(["web-5f7-2", "--replicas", "100000000"], id="more of a pod"),
        pytest.param(["--cpu", "1", "--replicas", "100000000"], id="of a pod that is not there"),
        pytest.param(["-f"], id="as a manifest says"),
    ],
)
def test_more_replicas_than_are_tried_are_refused_at_once(
    kpreempt: Kpreempt, tmp_path: Path, requested: list[str]
) -> None:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2**31 - 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    path = tmp_path / "many.json"
    path.write_text(
        json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})
    )
    run = kpreempt("explain", *requested, *([str(path)] if requested == ["-f"] else []), "-n", "shop", *SNAPSHOT)
    assert (run.returncode, run.stdout) == (2, "")
    assert "(maximum 2,000)" in run.stderr


def test_with_others_a_workload_has_a_row_with_all_of_its_replicas(kpreempt: Kpreempt, tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    items = []
    for name, replicas in (("wide", 9), ("small", 1)):
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        items.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    rows = kpreempt("explain", "-f", str(path), "-n", "shop", *SNAPSHOT).stdout.splitlines()
    assert rows[3].split() == ["shop/wide", "3", "nodes", "5", "land,", "4", "unschedulable"]
    assert rows[4].split()[0] == "shop/small-new"
