"""``kpreempt drain`` as users call it: options as of ``kubectl drain``, exit codes, formats."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Kpreempt = Callable[..., Any]
CLUSTER = Path(__file__).parents[3] / "fixtures" / "drain" / "cluster.yaml"
SNAPSHOT = ["--snapshot", str(CLUSTER), "--now", "2026-11-21T08:00:00Z"]
ALLOWED = ["--ignore-daemonsets", "--delete-emptydir-data"]
_FORMATS = ("text", "json", "yaml", "jsonl", "name", "markdown", "html", "junit", "sarif", "github", "gitlab")


def answer(kpreempt: Kpreempt, *arguments: str, code: int = 0) -> Any:
    """The document."""
    run = kpreempt("drain", *arguments, *SNAPSHOT, "-o", "json")
    assert run.returncode == code, run.stderr
    return json.loads(run.stdout)


def test_a_blocked_drain_fails_and_one_that_finishes_passes(kpreempt: Kpreempt) -> None:
    blocked = answer(kpreempt, "n1", *ALLOWED, code=1)
    assert (blocked["kind"], blocked["finishes"], blocked["minSeconds"]) == ("Drain", False, None)
    assert blocked["command"] == "kubectl drain n1 --ignore-daemonsets --delete-emptydir-data"
    assert [each["reason"] for each in blocked["blocked"]] == ["SingleReplica"]
    assert [each["rule"] for each in blocked["findings"]] == ["drain-incomplete"]
    kinds = [[change["kind"] for change in remedy["changes"]] for remedy in blocked["remedies"]]
    assert kinds == [["cordon", "restart"], ["cordon", "scale"], ["set"]]
    assert blocked["findings"][0]["remedies"] == blocked["remedies"]
    free = answer(kpreempt, "n2", *ALLOWED)
    assert (free["finishes"], free["minSeconds"], free["moved"]) == (True, 30.0, 2)


def test_a_waiver_lets_a_blocked_drain_pass(kpreempt: Kpreempt) -> None:
    waived = answer(kpreempt, "n1", *ALLOWED, "--waive", "drain-incomplete=PodDisruptionBudget shop/checkout")
    assert waived["passed"] is True
    assert waived["finishes"] is False
    answer(kpreempt, "n1", *ALLOWED, "--no-drain-incomplete")


def test_rules_about_manifests_are_not_evaluated(kpreempt: Kpreempt) -> None:
    rules = {each["rule"] for each in answer(kpreempt, "n2", *ALLOWED)["rules"]}
    assert "drain-incomplete" in rules
    assert not rules & {"require-schedulable", "apply-rejected", "rollout-stuck", "pdb-blocks-drain"}


def test_what_was_forgotten_helps(kpreempt: Kpreempt) -> None:
    refused = answer(kpreempt, "n2", code=1)
    assert [each["options"] for each in refused["remedies"]] == [ALLOWED]
    answer(kpreempt, "n2", *refused["remedies"][0]["options"])


def test_nodes_are_named_by_label_in_the_order_of_names(kpreempt: Kpreempt) -> None:
    by_pool = answer(kpreempt, "--pool", "pool=general", *ALLOWED, code=1)
    assert [each["node"] for each in by_pool["drained"]] == ["n1", "n2", "n3"]
    assert answer(kpreempt, "-l", "pool in (general)", *ALLOWED, code=1)["drained"] == by_pool["drained"]
    assert [each["node"] for each in answer(kpreempt, "n3", "n2", "n3", *ALLOWED, code=1)["drained"]] == ["n3", "n2"]


def test_what_if_an_object_were_not_there(kpreempt: Kpreempt) -> None:
    assert answer(kpreempt, "n1", *ALLOWED, "--without", "pdb/shop/checkout")["finishes"] is True


def test_what_if_there_were_one_more_node(kpreempt: Kpreempt) -> None:
    two = [*ALLOWED, "--without", "pdb/shop/checkout", "--runs", "1"]
    assert answer(kpreempt, "n1", "n2", *two, code=1)["pendingAfter"] > 0
    assert answer(kpreempt, "n1", "n2", *two, "--add-node", "n3")["pendingAfter"] == 0


def test_a_pool_is_upgraded_with_new_nodes_first(kpreempt: Kpreempt) -> None:
    upgrade = ["--pool", "pool=general", "--surge", "1", "--kubelet-version", "v1.37.0", "--runs", "1"]
    done = answer(kpreempt, *upgrade, *ALLOWED, "--without", "pdb/shop/checkout")
    assert done["finishes"] is True
    assert {each["landsOn"] for each in done["simulation"]["displaced"]} & {"n1-new-1", "n2-new-1", "n3-new-1"}


@pytest.mark.parametrize("output", _FORMATS)
def test_every_format_of_a_check_tells_of_a_drain(kpreempt: Kpreempt, output: str) -> None:
    run = kpreempt("drain", "n1", *ALLOWED, *SNAPSHOT, "-o", output)
    assert run.returncode == 1, run.stderr
    assert ("checkout" in run.stdout) is (output != "name")


def test_the_order_that_displaces_least_is_said_with_what_it_saves(kpreempt: Kpreempt) -> None:
    words = ["n3", "n1", "n2", "--one-by-one", "--best-order", "--without", "pdb/shop/checkout"]
    run = kpreempt("drain", *words, *ALLOWED, *SNAPSHOT)
    assert run.returncode == 0, run.stderr
    assert "in the order found to displace the fewest pods" in " ".join(run.stdout.split())
    (line,) = re.findall(r"DRAIN ORDER   .*\n(?:  .*\n)+", run.stdout)
    assert "greedy" in line and "displaced in one simulation run" in " ".join(line.split())


REFUSED = {
    "no node": ([], 2, "no nodes given"),
    "a node and a selector": (["n1", "-l", "a=b"], 2, "cannot specify both a node name and a --selector option"),
    "a selector and a pool": (["-l", "a=b", "--pool", "a=b"], 2, "cannot be used together"),
    "a script as the docs' address": (["n1", "--docs-url", "javascript:alert(1)"], 2, "--docs-url"),
    "a pool without a value": (["--pool", "pool"], 2, "expected LABEL=VALUE"),
    "an unknown node": (["n9"], 3, 'nodes "n9" not found'),
    "labels that no node has": (["-l", "pool=other"], 3, "no node matches pool=other"),
    "a pod selector that is none": (["n1", "--pod-selector", "=="], 2, "must be a valid label selector"),
    "a time that is none": (["n1", "--timeout", "soon"], 2, 'time: invalid duration "soon"'),
    "a kubelet without new nodes": (["n1", "--kubelet-version", "v1.37.0"], 2, "needs new nodes"),
    "an order without an upgrade": (["n1", "--best-order"], 2, "--best-order needs an upgrade"),
    "an order of nodes that go for good": (["n1", "--best-order", "--remove"], 2, "--best-order needs an upgrade"),
    "two ways of an upgrade": (["n1", "--one-by-one", "--surge", "1"], 2, "cannot be used"),
}


@pytest.mark.parametrize(("arguments", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused(kpreempt: Kpreempt, arguments: list[str], code: int, words: str) -> None:
    run = kpreempt("drain", *arguments, *SNAPSHOT)
    assert run.returncode == code
    assert words in run.stderr
    assert run.stdout == ""


SINGLE = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1}
  status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
- apiVersion: v1
  kind: Node
  metadata: {name: n2}
  status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
- apiVersion: apps/v1
  kind: KIND
  metadata: {name: web, namespace: shop, uid: w}
  spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {}}}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-0
    namespace: shop
    uid: w0
    labels: {app: web}
    ownerReferences: [{apiVersion: apps/v1, kind: KIND, name: web, uid: w, controller: true}]
  spec: {nodeName: n1, containers: [{name: web, image: "web:1", resources: {requests: {cpu: "1"}}}]}
  status: {phase: Running, startTime: "2026-11-21T07:00:00Z", conditions: [{type: Ready, status: "True"}]}
- apiVersion: v1
  kind: Service
  metadata: {name: web, namespace: shop}
  spec: {selector: {app: web}}
"""


@pytest.mark.parametrize("runs", [[], ["--runs", "1"], ["--runs", "5", "--seed", "3"]])
@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_a_single_pod_behind_a_service_moves_with_a_warning(
    kpreempt: Kpreempt, tmp_path: Path, kind: str, runs: list[str]
) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(SINGLE.replace("KIND", kind), encoding="utf-8")
    request = ["drain", "n1", "--snapshot", str(cluster), "--assume-none", "pdb", *runs]
    run = kpreempt(*request)
    text = " ".join(run.stdout.split())
    assert run.returncode == 0, text
    assert "1 pod is evicted, 1 Service is briefly interrupted." in text
    assert "! brief-interruption Service shop/web has no ready pod" in text
    assert kpreempt(*request, "--severity", "brief-interruption=error").returncode == 1
