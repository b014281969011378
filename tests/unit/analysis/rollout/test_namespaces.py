# ruff: noqa: E501 - tables read better in rows
"""Namespaces that a change needs: there, made by it in time, or nowhere."""

from __future__ import annotations

import pytest

from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.check import RuleId
from tests.rollouts import Document, checked, nodes, workload
from tests.unit.analysis.rollout.changes import plan_of

ABSENT = "neither in the cluster nor in the change; not applied: {}"
LATE = "the change creates it only after the objects in it; not applied: {}"


def make(kind: str, name: str, namespace: str = "", **more: object) -> Document:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    versions = {"Widget": "example.com/v1", "ClusterRole": "rbac.authorization.k8s.io/v1"}
    return {"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": metadata, **more}


def api(namespace: str, name: str = "api") -> Document:
    document = workload("Deployment", name, replicas=1)
    document["metadata"]["namespace"] = namespace
    return document


HOOKED = api("x")
HOOKED["metadata"]["annotations"] = {"helm.sh/hook": "pre-install"}
TEST = api("x")
TEST["metadata"]["annotations"] = {"helm.sh/hook": "test"}
SHOP, X = make("Namespace", "shop"), make("Namespace", "x")


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        pytest.param([api("shop")], "", id="one of the cluster"),
        pytest.param([api("kube-system"), api("default")], "", id="those that are always there"),
        pytest.param([api("x")], ABSENT.format("Deployment x/api"), id="one that is nowhere"),
        pytest.param([make("ConfigMap", "c", "x")], ABSENT.format("ConfigMap x/c"), id="for an object without pods"),
        pytest.param([make("Widget", "w", "x")], ABSENT.format("Widget x/w"), id="for a custom resource that says it"),
        pytest.param([make("ClusterRole", "r")], "", id="an object that has none"),
        pytest.param([X, api("x")], "", id="one of the change"),
        pytest.param([api("x"), X], LATE.format("Deployment x/api"), id="one of the change that comes too late"),
        pytest.param([X, api("x"), X], "", id="one that is there twice"),
        pytest.param([HOOKED, X], LATE.format("Deployment x/api"), id="a hook that kubectl applies as it comes"),
        pytest.param([api("x", name) for name in "abcde"], ABSENT.format("Deployment x/a, Deployment x/b, Deployment x/c, 2 more"), id="for many"),
    ],
)  # fmt: skip
def test_a_namespace_that_is_not_there_is_a_refusal(change: list[Document], missing: str) -> None:
    assert plan_of(change, SHOP).missing_namespaces.detail == missing
    found = checked([SHOP, *nodes(6)], change).findings
    reported = [(each.rule, each.subject, each.detail) for each in found if each.rule is RuleId.APPLY_REJECTED]
    assert reported == ([(RuleId.APPLY_REJECTED, "Namespace x", missing)] if missing else [])


@pytest.mark.parametrize("applied_by", [Applier.HELM, Applier.ARGOCD])
@pytest.mark.parametrize(
    "change",
    [[HOOKED, X], [api("x"), X], [TEST]],
    ids=["a hook before its namespace", "an object before it", "a hook that no rollout runs"],
)
def test_other_tools_apply_namespaces_first(change: list[Document], applied_by: Applier) -> None:
    assert plan_of(change, SHOP, applied_by=applied_by).missing_namespaces.detail == ""


def test_one_finding_names_all_of_them_and_where_the_first_is_needed() -> None:
    found = checked([SHOP, *nodes(6)], [api("x"), api("y"), make("ConfigMap", "c", "x")]).findings
    (finding,) = found
    assert (finding.subject, finding.change) == ("Namespace x, y", "Deployment x/api")
    assert finding.source == "change.yaml"


def test_they_are_made_first_if_that_is_requested() -> None:
    plan = plan_of([api("x"), X, api("y")], SHOP, creates_namespaces=True)
    assert plan.missing_namespaces.objects == []
    assert {each.metadata.name for each in plan.cluster.namespaces} == {"shop", "x", "y"}


def test_a_dump_without_namespaces_is_an_assumption() -> None:
    plan = plan_of([api("x"), api("shop")], make("ConfigMap", "c", "shop"), make("Service", "s", "shop", spec={}))
    assert plan.missing_namespaces.detail == ""
    assert [(each.subject, each.message, each.kind) for each in plan.missing_namespaces.assumptions] == [
        ("Namespace", "the snapshot has no namespaces; assumed to exist: x", AssumptionKind.INFORMATIONAL)
    ]
