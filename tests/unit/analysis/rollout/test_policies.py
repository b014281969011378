"""Which objects of a change, and which pods, admission policies decide on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.analysis.rollout.changes import changed, plan_of, served, template, workload

Document = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
NEVER = "ValidatingAdmissionPolicy 'x' with binding 'y' denied request: failed expression: false"


def policies(resource: str, group: str = "apps", action: str = "Deny", expression: str = "false") -> list[Document]:
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": [resource]}
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}
    binding = {"policyName": "x", "validationActions": [action]}
    return [
        {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, name, spec in (
            ("ValidatingAdmissionPolicy", "x", policy),
            ("ValidatingAdmissionPolicyBinding", "y", binding),
        )
    ]


@pytest.mark.parametrize("applied", [False, True])
def test_an_object_that_stays_as_it_is_is_not_sent(*, applied: bool) -> None:
    there = served(workload(), applied=applied)
    assert plan_of(workload(), there, *policies("deployments")).rejections == {}
    assert plan_of(workload(replicas=9), there, *policies("deployments")).rejections == {"Deployment shop/api": NEVER}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job", "CronJob"])
def test_pods_of_new_workloads_are_reviewed(kind: str) -> None:
    made = workload(kind)
    if kind in ("Job", "CronJob"):
        path = "spec.jobTemplate.spec" if kind == "CronJob" else "spec"
        made = changed(made, f"{path}.template.spec.restartPolicy", "Never")
    more = {"serviceName": "api"} if kind == "StatefulSet" else {}
    made["spec"] |= more
    assert plan_of(made, *policies("pods", group="")).rejected_pods == {f"{kind} shop/api": NEVER}


@pytest.mark.parametrize(("replicas", "is_rejected"), [(5, True), (4, False), (3, False)])
def test_pods_are_reviewed_if_the_change_creates_any(replicas: int, *, is_rejected: bool) -> None:
    plan = plan_of(workload(replicas=replicas), served(workload(replicas=4)), *policies("pods", group=""))
    assert bool(plan.rejected_pods) == is_rejected


def test_a_plain_pod_is_an_object_of_the_change() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template()["spec"]}
    on_account = "object.spec.serviceAccountName != 'default'"
    plan = plan_of(pod, *policies("pods", group="", expression=on_account))
    assert list(plan.rejections) == ["Pod shop/p"]
    assert plan.rejected_pods == {}


def test_a_warning_is_a_note() -> None:
    plan = plan_of(workload(), *policies("deployments", action="Warn"))
    warned = "Validation failed for ValidatingAdmissionPolicy 'x' with binding 'y': failed expression: false"
    assert (plan.notes, plan.rejections) == ([f"Deployment shop/api: {warned}"], {})


def test_a_denial_is_open_if_the_object_may_be_there() -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    plan = plan_of(config_map, *policies("configmaps", group=""))
    assert plan.rejections == {}
    (assumption,) = plan.assumptions
    assert assumption.subject == "ConfigMap shop/c"
    assert assumption.message == f"rejected unless it exists and is unchanged, which is unknown: {NEVER}"
    other = {**config_map, "metadata": {"name": "other", "namespace": "shop"}}
    assert list(plan_of(config_map, other, *policies("configmaps", group="")).rejections) == ["ConfigMap shop/c"]


def test_a_policy_of_the_change_decides_on_later_objects_and_on_all_pods() -> None:
    policy, binding = policies("*", group="*")
    plan = plan_of([workload(), policy, binding, workload(name="later")])
    assert plan.rejections == {"Deployment shop/later": NEVER}
    assert plan.rejected_pods == {"Deployment shop/api": NEVER}


def test_a_webhook_for_a_kind_without_pods_that_the_input_lacks_only_informs() -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["ingresses", "deployments"]}
    hook = {"name": "a.b.c", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    configuration = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "x"},
        "webhooks": [{**hook, "clientConfig": {"url": "https://hook.example"}}],
    }
    backend = {"service": {"name": "api", "port": {"number": 80}}}
    ingress = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "api"},
        "spec": {"defaultBackend": backend},
    }
    plan = plan_of([ingress, workload()], configuration)
    found = {each.message.rpartition(": ")[2]: each.kind.only_informs for each in plan.assumptions}
    assert found["Ingress shop/api"]
    assert not found["Deployment shop/api"]
