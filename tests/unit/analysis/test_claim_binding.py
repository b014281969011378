# ruff: noqa: E501 - tables read better in rows
"""Claims of a change: bound at once, with a pod, or to nothing, which is a finding that says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kpreempt.verdict.check import RuleId
from tests.rollouts import Document, checked, nodes, workload

NONE = "kubernetes.io/no-provisioner"
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def storage_class(name: str, provisioner: str = "disk.example.com", mode: str = "Immediate", **more: Any) -> Document:
    annotations = more.pop("annotations", {})
    metadata = {"name": name, "annotations": annotations}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata}
    return {**kind, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def claim(of: str | None = "fast", size: str = "10Gi", **more: Any) -> Document:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}
    spec |= {"storageClassName": of} if of is not None else {}
    metadata = {"name": "data", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def volume(
    name: str, of: str = "fast", size: str = "10Gi", on: str = "", phase: str = "Available", **more: Any
) -> Document:
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": of, **more}
    if on:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    document = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
    return {**document, "status": {"phase": phase}}


def csi_node(name: str) -> Document:
    drivers = [{"name": "disk.example.com", "nodeID": name, "topologyKeys": ["kubernetes.io/hostname"]}]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": drivers},
    }


def bounds(**storage: str) -> Document:
    item = {"type": "PersistentVolumeClaim", **{name: {"storage": amount} for name, amount in storage.items()}}
    metadata = {"name": "b", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [item]}}


API = workload(
    "Deployment", "api", replicas=1, pod={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
)
TEMPLATE = {**claim(), "metadata": {"name": "data"}}
DB = workload("StatefulSet", "db", replicas=2, serviceName="db", volumeClaimTemplates=[TEMPLATE])
FAST, LOCAL, LATE = (
    storage_class("fast"),
    storage_class("fast", NONE),
    storage_class("fast", NONE, "WaitForFirstConsumer"),
)
NO_CLASS = "no volume matches, the claim has no storage class, and the cluster has no default class"
STUCK = "storage class fast provisions no volumes, and none of its {} is available with 10Gi"


@pytest.mark.parametrize(
    ("cluster", "claims", "why"),
    [
        pytest.param([FAST], [claim()], "", id="the class makes one"),
        pytest.param([storage_class("fast", annotations=DEFAULT)], [claim(None)], "", id="the default class makes one"),
        pytest.param([LOCAL, volume("v")], [claim()], "", id="one that is there"),
        pytest.param([LOCAL], [claim(), volume("v")], "", id="one that the change makes"),
        pytest.param([volume("v", "")], [claim("")], "", id="one without a class"),
        pytest.param([LOCAL, volume("v", claimRef={"namespace": "shop", "name": "data"})], [claim()], "", id="one that is kept for it"),
        pytest.param([LOCAL, volume("v")], [claim(volumeName="v")], "", id="one that it names"),
        pytest.param([LOCAL], [claim()], STUCK.format(0), id="none is there"),
        pytest.param([LOCAL, volume("v", size="5Gi")], [claim()], STUCK.format(1), id="one that is too small"),
        pytest.param([LOCAL, volume("v", phase="Released")], [claim()], STUCK.format(1), id="one that is not free"),
        pytest.param([LOCAL, volume("v")], [claim(accessModes=["ReadWriteMany"])], STUCK.format(1), id="one of other modes"),
        pytest.param([LOCAL, volume("v", claimRef={"namespace": "x", "name": "y"})], [claim()], STUCK.format(1), id="one that is kept for another"),
        pytest.param([FAST], [claim(None)], NO_CLASS, id="no class at all"),
        pytest.param([FAST], [claim("slow")], "its storage class slow does not exist", id="a class that is nowhere"),
        pytest.param([], [claim()], "its storage class fast does not exist (the dump has none; kubectl get storageclasses -o json adds them)", id="a dump without classes"),
        pytest.param([FAST], [claim(volumeName="v")], "its volume v does not exist", id="it names one that is nowhere"),
        pytest.param([FAST, volume("v", size="5Gi")], [claim(volumeName="v")], "its volume v does not match in size, class or modes", id="it names one that does not suit"),
        pytest.param([FAST, bounds(min="1Gi", max="10Gi")], [claim()], "", id="within a LimitRange"),
        pytest.param([LATE], [claim()], STUCK.format(0), id="one that waits for its pod in vain"),
    ],
)  # fmt: skip
def test_a_claim_of_a_change_is_bound_or_says_why_not(
    cluster: Sequence[Document], claims: Sequence[Document], why: str
) -> None:
    found = checked([*nodes(1), *cluster], [*claims, API])
    assert [(each.rule, each.subject) for each in found.findings] == (
        [(RuleId.REQUIRE_SCHEDULABLE, "Deployment shop/api")] if why else []
    )
    assert not why or found.findings[0].detail.endswith(f"; PersistentVolumeClaim shop/data: {why}")


@pytest.mark.parametrize(
    ("of", "words"),
    [
        pytest.param(bounds(min="20Gi"), "minimum storage usage per PersistentVolumeClaim is 20Gi", id="it wants more"),
        pytest.param(bounds(max="5Gi"), "maximum storage usage per PersistentVolumeClaim is 5Gi", id="it allows less"),
    ],
)
def test_a_claim_that_a_limit_range_does_not_allow_is_rejected(of: Document, words: str) -> None:
    found = checked([*nodes(1), FAST, of], [claim(), API])
    (unschedulable, rejected) = found.findings
    assert (unschedulable.rule, unschedulable.subject) == (RuleId.REQUIRE_SCHEDULABLE, "Deployment shop/api")
    assert 'persistentvolumeclaim "data" not found' in unschedulable.detail
    assert (rejected.rule, rejected.subject) == (RuleId.APPLY_REJECTED, "PersistentVolumeClaim shop/data")
    assert rejected.detail == f"spec.resources.requests: LimitRange shop/b: {words}, but request is 10Gi"


def test_a_claim_without_a_pod_is_a_finding_of_its_own_unless_it_waits_for_one() -> None:
    (finding,) = checked([*nodes(1), LOCAL], [claim()]).findings
    assert (finding.rule, finding.subject) == (RuleId.REQUIRE_SCHEDULABLE, "PersistentVolumeClaim shop/data")
    assert finding.detail == STUCK.format(0)
    assert checked([*nodes(1), LATE], [claim()]).passed


@pytest.mark.parametrize(
    ("cluster", "passes"),
    [
        pytest.param([FAST], True, id="the class makes them"),
        pytest.param([LOCAL, volume("v"), volume("w")], True, id="two are there"),
        pytest.param([LOCAL, volume("v")], False, id="one is there"),
    ],
)
def test_claims_of_a_stateful_set_are_bound_each_to_its_own(cluster: Sequence[Document], *, passes: bool) -> None:
    found = checked([*nodes(2), *cluster], [DB])
    assert found.passed is passes
    if not passes:
        assert [each.subject for each in found.findings] == ["StatefulSet shop/db"]
        assert "PersistentVolumeClaim shop/data-db-1: " in found.findings[0].detail


EPHEMERAL = workload(
    "Deployment",
    "api",
    replicas=2,
    pod={"volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}]},
)


@pytest.mark.parametrize(
    ("cluster", "passes"),
    [
        pytest.param([FAST], True, id="the class makes them"),
        pytest.param([LOCAL, volume("v"), volume("w")], True, id="two are there"),
        pytest.param([LOCAL, volume("v"), volume("w", size="5Gi")], False, id="one is too small"),
    ],
)
def test_claims_of_ephemeral_volumes_are_bound_with_their_pods(cluster: Sequence[Document], *, passes: bool) -> None:
    found = checked([*nodes(2), *cluster], [EPHEMERAL])
    assert found.passed is passes
    if not passes:
        assert [each.subject for each in found.findings] == ["Deployment shop/api"]
        assert found.findings[0].detail.endswith(STUCK.format(2))


def test_the_volume_decides_where_the_pod_goes() -> None:
    found = checked([*nodes(3), LOCAL, volume("v", on="n2")], [claim(), API])
    assert found.passed
    assert [each.node for each in found.simulation.steps if each.node] == ["n2"]


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param([LOCAL, volume("v", on="n1"), volume("w", on="n2")], id="volumes that suit alike"),
        pytest.param([FAST, csi_node("n1"), csi_node("n2")], id="a driver with topologies"),
    ],
)
def test_the_outcome_is_uncertain_if_the_nodes_that_reach_a_volume_are_unknown(
    cluster: Sequence[Document],
) -> None:
    found = checked([*nodes(2), *cluster], [claim(), API])
    assert [(each.rule, each.subject) for each in found.findings] == [
        (RuleId.OUTCOME_UNCERTAIN, "PersistentVolumeClaim shop/data")
    ]


def test_a_class_for_some_nodes_makes_volumes_for_these() -> None:
    topology = [{"matchLabelExpressions": [{"key": "kubernetes.io/hostname", "values": ["n3"]}]}]
    found = checked([*nodes(3), storage_class("fast", allowedTopologies=topology)], [claim(), API])
    assert [each.node for each in found.simulation.steps if each.node] == ["n3"]
    assert found.passed
