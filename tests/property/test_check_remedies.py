"""Every remedy of a check keeps its promise, and one is offered in most situations in which a single edit helps."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from kpreempt.errors import KpreemptError
from kpreempt.gate_rules import RuleId
from kpreempt.verdict.check import Check, GateFinding
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedyStage
from tests.check_remedies import applied, assert_kept, checked
from tests.rollouts import Document, nodes, priority_class, running, workload

BLOCKS, PER_BLOCK = 40, 15
CLASSES = {"low": 10, "high": 1000}
MIN_OFFERED = 0.6
# Rules about effects that single edits can avoid.
AVOIDABLE = frozenset(
    {
        RuleId.REQUIRE_SCHEDULABLE,
        RuleId.ROLLOUT_STUCK,
        RuleId.MAX_PDB_VIOLATIONS,
        RuleId.MAX_PENDING,
        RuleId.MIN_READY,
        RuleId.QUOTA_REJECTIONS,
        RuleId.PDB_BLOCKS_DRAIN,
    }
)


class Scenario(NamedTuple):
    """A cluster and a change to it, as documents."""

    cluster: list[Document]
    change: list[Document]


def scenario_of(seed: int) -> Scenario:
    """Up to three workloads on up to four nodes, of which some are new or rolled out; quotas, budgets, bad nodes."""
    draw = random.Random(f"check remedies {seed}")
    cluster = nodes(draw.randint(1, 4), draw.choice(["2", "3"]))
    for node in cluster:
        if draw.random() < 0.2:
            node["spec"] = draw.choice(
                [
                    {
                        "unschedulable": True,
                        "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
                    },
                    {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
                    {"taints": [{"key": "team", "value": "data", "effect": "NoSchedule"}]},
                ]
            )
        if draw.random() < 0.5:
            node["metadata"]["labels"]["disk"] = draw.choice(["ssd", "hdd"])
    room = {each["metadata"]["name"]: 2000 for each in cluster if not each.get("spec")}
    cluster += [priority_class(name, value) for name, value in CLASSES.items()]
    change: list[Document] = []
    for name in ("a", "b", "c"):
        manifest = _manifest(draw, name)
        fate = draw.choice(["stays", "rolled", "rolled", "new", "resized"])
        if fate != "new":
            cluster += _placed(manifest, room)
        if fate != "stays":
            after = copy.deepcopy(manifest)
            pod = after["spec"]["template"]["spec"]["containers"][0]
            if fate == "rolled":
                pod["image"] = "two"
            if fate == "resized":
                pod["resources"]["requests"]["cpu"] = draw.choice(["500m", "1", "2", "3"])
            change.append(after)
    if draw.random() < 0.3:
        hard = draw.choice([{"pods": "3"}, {"requests.cpu": "3"}, {"limits.memory": "4Gi"}])
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"}}
        cluster.append({**quota, "spec": {"hard": hard}})
    if draw.random() < 0.5:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "of", "namespace": "shop"},
            "spec": {
                "selector": {"matchLabels": {"app": draw.choice("abc")}},
                draw.choice(["minAvailable", "maxUnavailable"]): draw.randint(0, 2),
            },
        }
        draw.choice([cluster, change]).append(budget)
    return Scenario(cluster, change)


def _manifest(draw: random.Random, name: str) -> Document:
    kind = draw.choice(["Deployment", "Deployment", "StatefulSet", "DaemonSet"])
    more: dict[str, Any] = {}
    if kind == "Deployment":
        more["strategy"] = draw.choice(
            [
                {},
                {"type": "Recreate"},
                {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": draw.randint(1, 3)}},
            ]
        )
    if kind == "DaemonSet":
        more["updateStrategy"] = {
            "rollingUpdate": draw.choice([{"maxUnavailable": 1}, {"maxSurge": 1, "maxUnavailable": 0}])
        }
    else:
        more["replicas"] = draw.randint(1, 4)
    if kind == "StatefulSet":
        more["serviceName"] = name
    pod: Document = {}
    if draw.random() < 0.4:
        pod["priorityClassName"] = draw.choice(list(CLASSES))
    if draw.random() < 0.2:
        pod["nodeSelector"] = {"disk": draw.choice(["ssd", "nvme"])}
    manifest = workload(kind, name, cpu=draw.choice(["500m", "1", "2"]), pod=pod, **more)
    if draw.random() < 0.25:
        port = draw.randint(80, 82)
        ports = [{"containerPort": port, "hostPort": port}]
        manifest["spec"]["template"]["spec"]["containers"][0]["ports"] = ports
    return manifest


def _placed(manifest: Document, room: dict[str, int]) -> list[Document]:
    """The workload with its pods placed, reducing the free capacity."""
    cpu = manifest["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    milli = int(cpu.removesuffix("m")) if cpu.endswith("m") else int(cpu) * 1000
    is_daemon, on = manifest["kind"] == "DaemonSet", list[str]()
    for node, free in room.items():
        if free >= milli and (is_daemon or len(on) < manifest["spec"]["replicas"]):
            room[node] = free - milli
            on.append(node)
    priority = CLASSES.get(manifest["spec"]["template"]["spec"].get("priorityClassName", ""), 0)
    return running(manifest, on, priority)


def single_edits(scenario: Scenario, finding: GateFinding) -> Iterator[Remedy]:
    """Single edits of the kinds that are tried, without any knowledge of the cause."""
    name = finding.change or finding.subject
    manifests = {f"{each['kind']} shop/{each['metadata']['name']}": each for each in scenario.change}
    edits: list[ObjectEdit] = []
    if name in manifests:
        kind = name.partition(" ")[0]
        rolling = {"maxSurge": 0, "maxUnavailable": 1}
        if kind == "Deployment":
            edits.append(ObjectEdit(name, {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}))
            edits.append(ObjectEdit(name, {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}}))
        if kind == "DaemonSet":
            edits.append(ObjectEdit(name, {"spec": {"updateStrategy": {"rollingUpdate": rolling}}}))
        if kind in ("Deployment", "StatefulSet", "DaemonSet"):
            edits.append(ObjectEdit(name, {"spec": {"template": {"spec": {"nodeSelector": None}}}}))
        if kind == "PodDisruptionBudget":
            edits.append(ObjectEdit(name, {"spec": {"maxUnavailable": 1, "minAvailable": None}}))
    for node in (each for each in scenario.cluster if each["kind"] == "Node"):
        own = f"Node {node['metadata']['name']}"
        if node.get("spec", {}).get("unschedulable"):
            edits.append(ObjectEdit(own, {"spec": {"unschedulable": None, "taints": []}}, in_cluster=True))
    change = Change(ChangeKind.SET, subject=name)
    for each in edits:
        yield Remedy(stage=RemedyStage.REQUESTER, changes=[change], edits=[each])
    yield Remedy(stage=RemedyStage.CAPACITY, changes=[change], options=["--add-node=n1"])


def _helps(scenario: Scenario, before: Check, finding: GateFinding, edit: Remedy) -> bool:
    try:
        after = applied(scenario.cluster, scenario.change, edit)
        least = {each.workload: each.ready_min for each in after.simulation.workloads}
        evicted = [each.pod for each in after.simulation.displaced]
        assert len(evicted) <= len(before.simulation.displaced)
        subject = finding.subject
        outcome = Remedy(
            stage=edit.stage,
            changes=edit.changes,
            evicted=evicted,
            solves=after.passed,
            least_ready={subject: least[subject]} if subject in least else {},
        )
        assert_kept(before, finding, outcome, after)
    except (AssertionError, KeyError, KpreemptError):
        return False
    return True


@pytest.mark.sampled(1)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_remedy_keeps_its_promise_and_silence_is_rare(block: int) -> None:
    offered = possible = 0
    for seed in range(block * PER_BLOCK, (block + 1) * PER_BLOCK):
        scenario = scenario_of(seed)
        if not scenario.change:
            continue
        before = checked(scenario.cluster, scenario.change)
        for finding in before.findings:
            for remedy in finding.remedies:
                if remedy.clears_after is None:
                    assert_kept(before, finding, remedy, applied(scenario.cluster, scenario.change, remedy))
            if finding.rule in AVOIDABLE and finding.status.counts:
                helps = finding.remedies or any(
                    _helps(scenario, before, finding, each) for each in single_edits(scenario, finding)
                )
                possible, offered = possible + bool(helps), offered + bool(finding.remedies)
    assert offered >= MIN_OFFERED * possible
