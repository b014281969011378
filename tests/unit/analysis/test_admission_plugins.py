"""What admission plugins of the API server reject of a change, and of a pod that is explained."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt import Cluster
from kpreempt.verdict import Outcome
from kpreempt.verdict.check import Check

Document = dict[str, Any]
ENFORCE = "pod-security.kubernetes.io/enforce"
RULE = "apply-rejected"
SECURITY = 'violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'


def node() -> Document:
    status = {
        "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
        "nodeInfo": {"kubeletVersion": "v1.36.2"},
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}


def deployment(namespace: str = "shop", image: str = "web:1", **pod: Any) -> Document:
    labels = {"app": "web"}
    container = {"name": "web", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **pod}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def pod(**spec: Any) -> Document:
    metadata = {"name": "job", "namespace": "shop"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": deployment(**spec)["spec"]["template"]["spec"],
    }


def namespace(level: str = "", **fields: Any) -> Document:
    labels = {ENFORCE: level} if level else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}, **fields}


def account(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "shop"}}


def priority_class(name: str, *, default: bool) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 5,
        "globalDefault": default,
    }


def check(there: list[Document], change: list[Document], **options: Any) -> Check:
    return Cluster.of([node(), *there]).check(change, **options)


def rejections(answer: Check) -> list[tuple[str, str]]:
    return [(each.subject, each.detail) for each in answer.findings if str(each.rule) == RULE]


@pytest.mark.filterwarnings("ignore:ignored 1 ServiceAccount")
@pytest.mark.parametrize(
    ("there", "change", "found"),
    [
        pytest.param(
            [namespace("baseline")],
            [deployment(hostPID=True)],
            [("Deployment shop/web", f"its pods are rejected: {SECURITY}")],
            id="a new workload",
        ),
        pytest.param(
            [namespace("baseline"), deployment(hostPID=True)],
            [deployment(hostPID=True, image="web:2")],
            [("Deployment shop/web", f"its pods are rejected: {SECURITY}")],
            id="a workload with a new image",
        ),
        pytest.param(
            [namespace("baseline"), deployment(hostPID=True)], [deployment(hostPID=True)], [], id="nothing changes"
        ),
        pytest.param([namespace("baseline")], [deployment()], [], id="a workload that conforms"),
        pytest.param([namespace("baseline")], [pod(hostPID=True)], [("Pod shop/job", SECURITY)], id="a pod"),
        pytest.param(
            [namespace("baseline")], [namespace("privileged"), deployment(hostPID=True)], [], id="new labels allow it"
        ),
        pytest.param(
            [namespace()],
            [namespace("baseline"), deployment(hostPID=True)],
            [("Deployment shop/web", f"its pods are rejected: {SECURITY}")],
            id="new labels forbid it",
        ),
        pytest.param(
            [namespace(status={"phase": "Terminating"})],
            [deployment()],
            [
                (
                    "Deployment shop/web",
                    "metadata.namespace: unable to create new content in namespace shop because it is being terminated",
                )
            ],
            id="a namespace that is being deleted",
        ),
        pytest.param(
            [namespace(), account("default")],
            [deployment(serviceAccountName="web")],
            [
                (
                    "Deployment shop/web",
                    'its pods are rejected: error looking up service account shop/web: serviceaccount "web" not found',
                )
            ],
            id="an account that does not exist",
        ),
        pytest.param(
            [namespace(), account("default")],
            [deployment(serviceAccountName="web"), account("web")],
            [],
            id="an account of the change",
        ),
        pytest.param(
            [namespace(), account("default"), account("web")],
            [deployment(serviceAccountName="web")],
            [],
            id="an account of the cluster",
        ),
        pytest.param(
            [namespace()], [deployment(serviceAccountName="web")], [], id="an account where accounts are unknown"
        ),
        pytest.param(
            [namespace(), account("web")],
            [deployment(serviceAccountName="other")],
            [],
            id="an account where only some are known",
        ),
    ],
)
def test_rejected_objects(there: list[Document], change: list[Document], found: list[tuple[str, str]]) -> None:
    answer = check(there, change)
    assert rejections(answer) == found


def test_the_default_class_can_move_if_the_old_one_is_changed_first() -> None:
    there = [namespace(), priority_class("old", default=True)]
    first, second = priority_class("old", default=False), priority_class("new", default=True)
    message = "globalDefault: PriorityClass old is already marked as default. Only one default can exist"
    assert rejections(check(there, [first, second])) == []
    assert rejections(check(there, [second, first])) == [("PriorityClass new", message)]
    # The order in which other tools apply classes is not known.
    assert rejections(check(there, [second, first], applied_by="helm")) == []


def test_other_tools_apply_namespaces_first() -> None:
    there, change = [namespace("baseline")], [pod(hostPID=True), namespace("privileged")]
    assert rejections(check(there, change)) == [("Pod shop/job", SECURITY)]
    assert rejections(check(there, change, applied_by="argocd")) == []


def test_a_pod_that_is_explained_is_rejected() -> None:
    cluster = Cluster.of([node(), namespace("baseline")])
    rejected = cluster.explain(deployment(hostPID=True))
    assert (rejected.outcome, rejected.reason) == (Outcome.REJECTED, SECURITY)
    assert cluster.explain(deployment()).feasible_nodes == ["n1"]


def test_a_standard_that_only_warns_is_a_note_in_the_servers_words() -> None:
    labels = {"pod-security.kubernetes.io/warn": "baseline"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}
    cluster = Cluster.of([node(), space])
    with pytest.warns(UserWarning, match="^Deployment shop/web: would violate PodSecurity"):
        found = cluster.check(deployment(hostPID=True))
    assert RULE not in [each.rule for each in found.findings]


def test_a_custom_resource_without_a_definition_is_one_note_that_fails_nothing() -> None:
    kinds = [{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": each}} for each in ("a", "b")]
    found = Cluster.of([node(), namespace()]).check(kinds)
    notes = [each for each in found.assumptions if "they are not validated" in each.message]
    assert [each.message.rpartition(": ")[2] for each in notes] == ["Widget default/a, Widget default/b"]
    assert RULE not in [each.rule for each in found.findings]
