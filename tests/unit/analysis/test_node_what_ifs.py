"""Remedies of a check that change nodes: the options that they show make the same changes."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from kpreempt import Cluster
from kpreempt.report.remedies import commands
from tests.rollouts import NOW

Document = dict[str, Any]
FULL = [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]


def requesting(cpu: str, **spec: Any) -> Document:
    return {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}], **spec}


def node(name: str, **spec: Any) -> Document:
    amounts = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": {"allocatable": amounts}}


def deployment(**spec: Any) -> Document:
    template = {"metadata": {"labels": {"app": "api"}}, "spec": requesting("1", **spec)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "api", "namespace": "shop"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "api"}}, "template": template},
    }


BUSY = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "busy", "namespace": "shop"},
    "spec": requesting("2", nodeName="n1", priority=10),
    "status": {"phase": "Running"},
}


def with_options(cluster: Cluster, options: str) -> Cluster:
    for option, _, value in (each.partition("=") for each in shlex.split(options)):
        if option == "--uncordon":
            cluster = cluster.uncordon(value)
        else:
            assert option == "--taint-node"
            cluster = cluster.edit_nodes(taints=[value])
    return cluster


@pytest.mark.parametrize("key", ["karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"])
@pytest.mark.parametrize("is_cordoned", [False, True])
def test_a_node_that_an_autoscaler_removes_is_not_repaired(key: str, is_cordoned: bool) -> None:
    removed = node("n2", unschedulable=is_cordoned, taints=[{"key": key, "effect": "NoSchedule"}])
    found = Cluster.of([node("n1"), removed, BUSY], now=NOW).check([deployment()]).findings
    assert all(change.subject != "Node n2" for each in found for fix in each.remedies for change in fix.changes)
    assert all(edit.object != "Node n2" for each in found for fix in each.remedies for edit in fix.edits)


@pytest.mark.parametrize(
    ("spec", "typed"),
    [
        ({"unschedulable": True}, ["--uncordon=n2", "kubectl uncordon n2"]),
        ({"taints": FULL}, ["--taint-node=n2=node.kubernetes.io/disk-pressure-"]),
        (
            {"unschedulable": True, "taints": FULL},
            ["--uncordon=n2 --taint-node=n2=node.kubernetes.io/disk-pressure-"],
        ),
    ],
    ids=["cordoned", "under pressure", "both"],
)
def test_the_options_of_a_remedy_that_changes_a_node_do_the_same(spec: Document, typed: list[str]) -> None:
    cluster = Cluster.of([node("n1"), node("n2", **spec), BUSY], now=NOW)
    [finding] = [each for each in cluster.check([deployment()]).findings if each.rule == "require-schedulable"]
    assert commands(finding.remedies[0]) == typed
    after = with_options(cluster, typed[0]).check([deployment()])
    assert all(each.rule != "require-schedulable" for each in after.findings)
