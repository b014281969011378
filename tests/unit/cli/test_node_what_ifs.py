"""Nodes that options add and take away, for every command that has such what-ifs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Kpreempt

DEMO = ("explain", "-f", "fixtures/demo/api.yaml", "--snapshot", "fixtures/demo/cluster.yaml")
ON_CALL = ("pending", "--snapshot", "fixtures/on-call/cluster.yaml")
NODE = """
apiVersion: v1
kind: Node
metadata:
  name: fresh
  labels: {kubernetes.io/hostname: fresh, kubernetes.io/os: linux}
status:
  capacity: {cpu: "16", memory: 64Gi, pods: "110"}
"""
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      requirements:
        - {key: karpenter.k8s.aws/instance-cpu, operator: In, values: ["16"], minValues: 1}
        - {key: karpenter.k8s.aws/instance-memory, operator: In, values: ["65536"]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
"""


def test_a_pod_lands_on_a_node_like_another_one(kpreempt: Kpreempt) -> None:
    before = json.loads(kpreempt(*DEMO, "-o", "json").stdout)
    assert before["outcome"] == "Preempts"
    (remedy,) = [each for each in before["remedies"] if each["changes"][0]["kind"] == "addNode"]
    after = json.loads(kpreempt(*DEMO, *remedy["options"], "-o", "json").stdout)
    assert (after["outcome"], after["landsOn"]) == ("Lands", remedy["nodes"])
    assert "remedies" not in after


def test_a_node_of_a_file_or_of_standard_input(kpreempt: Kpreempt, tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(NODE)
    for text, stdin in ((str(path), ""), ("-", NODE)):
        verdict = json.loads(kpreempt(*DEMO, "--add-node", text, "-o", "json", stdin=stdin).stdout)
        assert verdict["landsOn"] == ["fresh"]


def test_a_node_that_is_added_can_be_explained_and_cordoned(kpreempt: Kpreempt) -> None:
    run = kpreempt(*DEMO, "--add-node", "node-e", "--cordon", "node-e-new-1", "--node", "node-e-new-1", "-o", "json")
    verdict = json.loads(run.stdout)
    assert verdict["filter"]["node-e-new-1"]["plugin"] == "NodeUnschedulable"


def test_a_node_that_is_gone_is_reported_with_its_pods(kpreempt: Kpreempt) -> None:
    answer = json.loads(kpreempt(*ON_CALL, "--remove-node", "node-a", "-o", "json").stdout)
    assert answer["cluster"]["nodes"] == 3
    requested, removed, *others = answer["assumptions"]
    assert requested == {"subject": "Node node-a", "field": "", "message": "removed", "kind": "WhatIf"}
    assert removed["subject"] == "Node node-a"
    assert "1 recreated by their controllers and pending" in removed["message"]
    assert ("Pod", "counts 4 nodes, but the input has 3") in {
        (each["subject"], each["message"].partition("1 more) ")[2]) for each in others
    }


def test_what_pending_proposes_places_all_that_wait(kpreempt: Kpreempt) -> None:
    more = json.loads(kpreempt(*ON_CALL, "-o", "json").stdout)["moreNodes"]
    assert more["pods"]
    after = json.loads(kpreempt(*ON_CALL, *more["options"], "-o", "json").stdout)
    outcomes = {item["pod"]: item["outcome"] for item in after["items"]}
    assert {outcomes[pod] for pod in more["pods"]} == {"Lands"}
    assert {outcomes[pod] for pod in more["unplaced"]} == {"Unschedulable"}


def test_a_pool_of_karpenter_s_in_the_snapshot(kpreempt: Kpreempt, tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text(POOL)
    verdict = json.loads(kpreempt(*DEMO, "--snapshot", str(path), "--add-pool", "default=2", "-o", "json").stdout)
    assert verdict["landsOn"] == ["default-new-1", "default-new-2"]
    assert "NodePool default" in {each["subject"] for each in verdict["assumptions"]}
    missing = kpreempt(*DEMO, "--add-pool", "default")
    assert (missing.returncode, missing.stdout) == (3, "")
    assert 'it is unknown whether NodePool "default" exists: NodePools are not in' in missing.stderr
    none = kpreempt(*DEMO, "--add-pool", "default", "--assume-none", "nodepool")
    assert 'NodePool "default" not found' in none.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param((*DEMO, "--add-node", "node-z"), 3, 'node "node-z" not found', id="an unknown node"),
        pytest.param((*DEMO, "--remove-node", "node-z"), 3, 'node "node-z" not found', id="one to remove"),
        pytest.param(
            (*DEMO, "--add-node", "fixtures/demo/api.yaml"), 2, "the file has no Node", id="a file without any"
        ),
        pytest.param(
            (*DEMO, "--add-node", "-", "--with", "-"), 2, "standard input is used twice", id="one input for two"
        ),
        pytest.param((*ON_CALL, "-w", "--add-node", "-"), 2, "can be read only once", id="a watch of standard input"),
        pytest.param((*ON_CALL, "-w", "--with", "-"), 2, "can be read only once", id="a watch of objects to add"),
        pytest.param((*DEMO, "--label-node", "zone=b"), 2, "expected NODE=KEY=VALUE", id="a label without a node"),
        pytest.param((*DEMO, "--label-node", "node-z=a=b"), 3, 'node "node-z" not found', id="a label of no node"),
        pytest.param((*DEMO, "--taint-node", "node-a=a"), 2, "a taint needs an effect", id="a taint without effect"),
        pytest.param((*DEMO, "--set-node", "node-a:spec.x=1"), 2, "cannot be changed here", id="a field of a node"),
        pytest.param(
            ("queue", "--events", "fixtures/queue/events.yaml", "--cordon", "node-a"),
            2,
            "starts with an empty cluster",
            id="a what-if without a cluster",
        ),
    ],
)
def test_what_is_wrong_is_one_message(kpreempt: Kpreempt, arguments: tuple[str, ...], code: int, said: str) -> None:
    run = kpreempt(*arguments)
    assert run.returncode == code
    assert said in run.stderr
    assert run.stdout == ""


def test_a_pool_is_known_in_a_dump_with_other_names(kpreempt: Kpreempt, tmp_path: Path) -> None:
    written, read = tmp_path / "cluster.yaml", tmp_path / "redacted.json"
    of_pool = NODE.replace("{kubernetes.io/hostname: fresh,", "{karpenter.sh/nodepool: default,")
    written.write_text(f"{of_pool}---{POOL}")
    assert kpreempt("snapshot", "--snapshot", str(written), "--redact", "--to", str(read)).returncode == 0
    assert "default" not in read.read_text()
    items = json.loads(read.read_text())["items"]
    (name,) = [each["metadata"]["name"] for each in items if each["kind"] == "NodePool"]
    run = kpreempt("explain", "--cpu", "1", "--snapshot", str(read), "--add-pool", name, "-o", "json")
    (node,) = [each["metadata"]["name"] for each in items if each["kind"] == "Node"]
    assert any(f"like {node}" in each["message"] for each in json.loads(run.stdout)["assumptions"])


ON_CALL_CLUSTER = ("--snapshot", "fixtures/on-call/cluster.yaml")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(DEMO, id="explain"),
        pytest.param(ON_CALL, id="pending"),
        pytest.param(("queue", *ON_CALL_CLUSTER), id="queue"),
        pytest.param(("at-risk", *ON_CALL_CLUSTER), id="at-risk"),
        pytest.param(("budgets", *ON_CALL_CLUSTER), id="budgets"),
        pytest.param(("drain", "node-b", *ON_CALL_CLUSTER), id="drain"),
        pytest.param(("check", "-f", "fixtures/demo/api.yaml", *ON_CALL_CLUSTER), id="check"),
    ],
)
def test_every_command_about_the_queue_lists_the_edits_of_nodes(kpreempt: Kpreempt, arguments: tuple[str, ...]) -> None:
    edits = ("--label-node", "node-a=disk=ssd", "--taint-node", "node-a=spot=yes:NoSchedule", "--set-node")
    edits = (*edits, "node-a:status.allocatable.example.com/fpga=2")
    document = json.loads(kpreempt(*arguments, *edits, "-o", "json").stdout)
    requested = [each for each in document["assumptions"] if each.get("kind") == "WhatIf"]
    assert {each["subject"] for each in requested} == {"Node node-a"}
    words = ["label disk=ssd added", "taint spot=yes:NoSchedule added", "resource example.com/fpga: 2 added"]
    assert [each["message"] for each in requested] == words
    assert "WHAT IF       Node node-a: label disk=ssd added" in kpreempt(*arguments, *edits).stdout
    text = " ".join(kpreempt(*arguments, *edits, "-v").stdout.split())
    assert all(each in text for each in words)


def test_a_what_if_is_not_an_assumption(kpreempt: Kpreempt) -> None:
    strict = kpreempt(*DEMO, "--cordon", "node-b", "--strict")
    assert (strict.returncode, strict.stderr) == (0, "")
    assert "nothing assumed" in strict.stdout
    assert "WHAT IF       Node node-b: cordoned" in strict.stdout


def test_the_option_of_a_repair_makes_it(kpreempt: Kpreempt, tmp_path: Path) -> None:
    node = """
apiVersion: v1
kind: Node
metadata: {name: node-a}
spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}]}
status:
  allocatable: {cpu: "4", memory: 8Gi, pods: "110", nvidia.com/gpu: "1"}
  capacity: {cpu: "4", memory: 8Gi, pods: "110", nvidia.com/gpu: "2"}
"""
    path = tmp_path / "node.yaml"
    path.write_text(node)
    pod = ("explain", "--cpu", "1", "--resource", "nvidia.com/gpu=2", "--snapshot", str(path), "-o", "json")
    remedy, *_ = json.loads(kpreempt(*pod).stdout)["remedies"]
    assert remedy["options"] == [
        "--taint-node=node-a=node.kubernetes.io/not-ready:NoSchedule-",
        "--set-node=node-a:status.allocatable.nvidia.com/gpu=2",
    ]
    after = json.loads(kpreempt(*pod, *remedy["options"]).stdout)
    assert (after["outcome"], after["landsOn"]) == ("Lands", ["node-a"])
    assert "--taint-node=node-a=node.kubernetes.io/not-ready:NoSchedule-" in kpreempt(*pod[:-2], "-v").stdout
