# ruff: noqa: E501 - tables read better in rows
"""Objects of kinds that no snapshot holds: what of them a change leaves as it is, and which webhooks reach its pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpreempt.analysis.check.rollout.apply import LAST_APPLIED
from kpreempt.analysis.check.rollout.kinds import plural_of
from kpreempt.verdict import AssumptionKind
from tests.unit.analysis.rollout.changes import assumed, changed, plan_of, served, workload

Document = dict[str, Any]


def resource(kind: str = "Kafka", api_version: str = "kafka.strimzi.io/v1", **parts: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "k", "namespace": "shop"}, **parts}


def stored(document: Document, *, applied: bool = True, **more: Any) -> Document:
    metadata: Document = {**document["metadata"], "uid": "u", "generation": 3}
    if applied:
        metadata["annotations"] = {LAST_APPLIED: json.dumps(document)}
    return {**document, "metadata": metadata, "status": {"ready": True}, **more}


def failing(plan: Any) -> list[tuple[str, str]]:
    return [(each.subject, each.field) for each in plan.assumptions if each.kind is not AssumptionKind.INFORMATIONAL]


KAFKA = resource(spec={"kafka": {"replicas": 3, "storage": [{"size": "1Gi"}]}})


@pytest.mark.parametrize(
    ("wanted", "live", "red"),
    [
        pytest.param(KAFKA, stored(KAFKA), [], id="as it was applied"),
        pytest.param(KAFKA, stored(KAFKA, spec={**KAFKA["spec"], "defaulted": True}), [], id="with a default that was never applied"),
        pytest.param(KAFKA, stored(KAFKA, applied=False), [], id="as it is, by whomever"),
        pytest.param(KAFKA, stored(KAFKA, applied=False, spec={**KAFKA["spec"], "more": 1}), [("Kafka shop/k", "spec")], id="with more, of which nobody knows whose it is"),
        pytest.param(changed(KAFKA, "spec.kafka.replicas", 9), stored(KAFKA), [("Kafka shop/k", "spec")], id="more replicas"),
        pytest.param(changed(KAFKA, "spec.kafka.replicas", 0), stored(changed(KAFKA, "spec.kafka.replicas", ...)), [("Kafka shop/k", "spec")], id="a zero where there was nothing"),
        pytest.param(changed(KAFKA, "spec.kafka.replicas", ...), stored(KAFKA), [("Kafka shop/k", "spec")], id="a field that was applied and is gone"),
        pytest.param(KAFKA, stored(KAFKA, spec={"kafka": {"replicas": 1, "storage": [{"size": "1Gi"}]}}), [("Kafka shop/k", "spec")], id="changed by hand since, which the apply takes back"),
        pytest.param(changed(KAFKA, "spec.kafka.storage.0.size", "2Gi"), stored(KAFKA), [("Kafka shop/k", "spec")], id="another element of a list"),
        pytest.param(changed(KAFKA, "metadata.labels", {"strimzi.io/cluster": "x"}), stored(KAFKA), [("Kafka shop/k", "spec")], id="a label, which operators read"),
        pytest.param(changed(KAFKA, "metadata.name", "new"), stored(KAFKA), [("Kafka shop/new", "spec")], id="a new one of a kind that the dump has"),
        pytest.param(KAFKA, stored({**KAFKA, "apiVersion": "elsewhere.io/v1"}), [("Kafka shop/k", "spec")], id="one of another group"),
        pytest.param(KAFKA, served(workload()), [("Kafka.kafka.strimzi.io", "list")], id="a kind that the dump lacks"),
    ],
)  # fmt: skip
def test_a_custom_resource_counts_unless_it_stays_as_it_is(wanted: Document, live: Document, red: list[Any]) -> None:
    plan = plan_of(wanted, live)
    assert failing(plan) == red
    assert [each.kind.value for each in plan.changes] == ([] if red else ["Unchanged"])


def test_a_kind_that_the_dump_lacks_is_one_finding_with_what_adds_it() -> None:
    (found,) = assumed(plan_of([changed(KAFKA, "metadata.name", f"k{number}") for number in range(5)]))
    assert "shop/k0, shop/k1, shop/k2, 2 more" in found.message
    assert found.message.endswith("add them with kubectl get kafka.kafka.strimzi.io -A -o json")


@pytest.mark.parametrize(
    ("kind", "api_version", "minor", "command"),
    [
        # kubectl resolves a kind in lower case with its group (client-go restmapper.NewDiscoveryRESTMapper); it does
        # not know guessed plurals such as gatewaies or redises.
        pytest.param("Gateway", "networking.istio.io/v1", 33, "gateway.networking.istio.io", id="gateways, not gatewaies"),
        pytest.param("Redis", "databases.spotahome.com/v1", 33, "redis.databases.spotahome.com", id="a kind that ends in s"),
        pytest.param("Widget", "v1", 33, "widget", id="without a group"),
        pytest.param("PodSecurityPolicy", "policy/v1beta1", 33, "", id="a kind that this server does not have"),
        pytest.param("PodSecurityPolicy", "policy/v1beta1", 25, "", id="a kind that it has no longer"),
        pytest.param("PodSecurityPolicy", "policy/v1beta1", 24, "podsecuritypolicy.policy", id="a kind that it still has"),
        pytest.param("Ingress", "extensions/v1beta1", 29, "", id="a group that it has no longer"),
    ],
)  # fmt: skip
def test_only_commands_that_kubectl_accepts_are_suggested(
    kind: str, api_version: str, minor: int, command: str
) -> None:
    plan = plan_of(resource(kind, api_version, spec={"x": 1}), minor=minor)
    suggested = [each.message.partition("kubectl get ")[2] for each in plan.assumptions if "kubectl" in each.message]
    assert suggested == ([f"{command} -A -o json"] if command else [])


def webhook(*rules: Document, **more: Any) -> Document:
    common = {"clientConfig": {"url": "https://hook.example"}, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    hook = {"name": "a.b.c", "failurePolicy": "Fail", **common, **({"rules": list(rules)} if rules else {}), **more}
    document = resource("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", webhooks=[hook])
    return changed(document, "metadata.namespace", ...)


def rule(group: str, *resources: str) -> Document:
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": list(resources)}


NAME = "MutatingWebhookConfiguration k"
INJECTED = {"namespaceSelector": {"matchLabels": {"inject": "yes"}}}


NOT_CALLED = "is not called, and may change or reject: {}"


@pytest.mark.parametrize(
    ("document", "labels", "fails", "is_noted"),
    [
        pytest.param(webhook(rule("kafka.strimzi.io", "kafkas")), {}, "", False, id="custom resources"),
        pytest.param(webhook(rule("", "secrets", "configmaps")), {}, "", False, id="what has no pods"),
        pytest.param(webhook(), {}, "", True, id="no rules yet"),
        pytest.param(webhook(rule("", "pods")), {}, "pods of Deployment shop/api", False, id="pods"),
        pytest.param(webhook(rule("apps", "replicasets")), {}, "", True, id="other workloads"),
        pytest.param(webhook(rule("", "*/*")), {}, "pods of Deployment shop/api", False, id="everything of the core group"),
        pytest.param(webhook(rule("", "pods"), **INJECTED), {}, "", False, id="pods of other namespaces"),
        pytest.param(webhook(rule("", "pods"), **INJECTED), {"inject": "yes"}, "pods of Deployment shop/api", False, id="pods of this namespace"),
    ],
)  # fmt: skip
def test_a_new_webhook_fails_if_it_applies_to_pods_of_the_change(
    document: Document, labels: Document, fails: str, *, is_noted: bool
) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}
    plan = plan_of([document, workload()], namespace)
    webhooks = [each for each in plan.assumptions if each.subject == NAME]
    assert [each.message for each in webhooks] == ([NOT_CALLED.format(fails)] if fails else [])
    assert failing(plan) == [(NAME, "")] * bool(fails)
    noted = [each.message for each in plan.assumptions if each.subject == "admission"]
    assert noted == [f"these may change pods, and their effect is not evaluated: {NAME}"] * is_noted


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(webhook(rule("", "pods"), namespaceSelector={"matchLabels": 3}), id="a selector"),
        pytest.param(webhook(rule("", "pods"), rules="all"), id="rules"),
        pytest.param(webhook(rule("apps", "deployments")), id="workloads"),
        pytest.param(webhook(rule("*", "*")), id="everything"),
    ],
)
def test_a_webhook_that_may_apply_to_the_workload_fails(document: Document) -> None:
    assert failing(plan_of([workload()], stored(document))) == [(NAME, "")]


def test_a_new_webhook_fails_if_the_labels_of_the_namespace_are_not_known() -> None:
    (reported,) = plan_of([webhook(rule("", "pods"), **INJECTED), workload()]).assumptions
    assert (reported.subject, reported.kind) == (NAME, AssumptionKind.UNMODELED)


def test_a_webhook_without_new_pods_counts_for_nothing() -> None:
    assert plan_of([webhook(rule("", "pods")), workload()], served(workload())).assumptions == []


def test_webhooks_that_are_there_are_reported_once_where_pods_are_made() -> None:
    there = stored(webhook(rule("", "pods")))
    other = stored(changed(webhook(rule("", "pods")), "metadata.name", "other"))
    plan = plan_of([webhook(rule("", "pods")), workload()], there, other)
    assert failing(plan) == [(NAME, ""), ("MutatingWebhookConfiguration other", "")]
    assert plan_of([webhook(rule("", "pods"))], there, other).assumptions == []


def test_a_webhook_that_becomes_another_counts_as_it_will_be() -> None:
    there = stored(webhook(rule("", "pods"), objectSelector={"matchLabels": {"a": "b"}}))
    assert failing(plan_of([webhook(rule("", "pods")), workload()], there)) == [(NAME, "")]
    assert failing(plan_of([workload()], there)) == []


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Gateway", "gateways"),
        ("NetworkPolicy", "networkpolicies"),
        ("PriorityClass", "priorityclasses"),
        ("Mesh", "meshes"),
        ("Endpoints", "endpoints"),
        ("Kafka", "kafkas"),
    ],
)
def test_the_likely_plural_of_a_kind_is_the_english_one(kind: str, expected: str) -> None:
    assert plural_of(kind) == expected
