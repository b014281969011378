# ruff: noqa: E501 - tables of manifests read better in rows
"""Which HorizontalPodAutoscalers the API server rejects."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.validation import Server
from kpreempt.admission.validation.autoscalers import check_autoscaler

TARGET = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}"
BASE = f"{TARGET}, minReplicas: 1, maxReplicas: 5"
CPU = "resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}"
OBJECT = "object: {describedObject: {apiVersion: a/v1, kind: Ingress, name: a}, metric: {name: a}, target: {type: Value, value: 1}}"
EXTERNAL = "external: {metric: {name: a}, target: {type: Value, value: 1}}"
PODS = "pods: {metric: {name: a}, target: {type: AverageValue, averageValue: 1}}"
CONTAINER = "containerResource: {name: cpu, container: web, target: {type: AverageValue, averageValue: 1}}"
ALL = f"metrics: [{{type: Resource, {CPU}}}, {{type: Object, {OBJECT}}}, {{type: External, {EXTERNAL}}}, {{type: Pods, {PODS}}}, {{type: ContainerResource, {CONTAINER}}}]"
RULES = "{stabilizationWindowSeconds: 3600, selectPolicy: Min, tolerance: 0.1, policies: [{type: Pods, value: 1, periodSeconds: 1800}]}"


def autoscaler(spec: str, version: str = "autoscaling/v2") -> dict[str, Any]:
    return {"apiVersion": version, "metadata": {"name": "web"}, "spec": yaml.safe_load(f"{{{spec}}}")}


def found(spec: str, old: str | None = None, *, minor: int = 36, version: str = "autoscaling/v2") -> list[str]:
    before = None if old is None else autoscaler(old)
    return [str(each) for each in check_autoscaler(autoscaler(spec, version), before, Server(minor))]


@pytest.mark.parametrize("minor", range(29, 39))
@pytest.mark.parametrize(
    "spec", [f"{BASE}, {ALL}, behavior: {{scaleUp: {RULES}, scaleDown: {{}}}}", f"{TARGET}, maxReplicas: 1"]
)
def test_valid_autoscalers(spec: str, minor: int) -> None:
    assert found(spec, minor=minor) == found(spec, spec, minor=minor) == []


def metric(kind: str, source: str) -> str:
    return f"{BASE}, metrics: [{{type: {kind}, {source}}}]"


def rules(given: str) -> str:
    return f"{BASE}, behavior: {{scaleUp: {{{given}}}}}"


AT = "spec.metrics[0]"
UP = "spec.behavior.scaleUp"
REJECTED = {
    f"{TARGET}, minReplicas: 0, maxReplicas: 1, metrics: [{{type: Object, {OBJECT}}}]": "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
    TARGET: "spec.maxReplicas: Invalid value: 0: must be greater than or equal to 1",
    f"{TARGET}, minReplicas: 3, maxReplicas: 2": "spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`",
    "maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, name: a}": "spec.scaleTargetRef.kind: Required value",
    "maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a/b}": "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'",
    "maxReplicas: 1, scaleTargetRef: {kind: Deployment, name: a}": 'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
    "maxReplicas: 1, scaleTargetRef: {apiVersion: a/b/c, kind: Deployment, name: a}": 'spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string',
    metric("CPU", CPU): f'{AT}.type: Unsupported value: "CPU"',
    metric("Pods", CPU): f"{AT}.pods: Required value: must populate information",
    metric("Resource", f"{CPU}, {PODS}"): f"{AT}.pods: Forbidden: must populate the given metric source only",
    metric("Resource", CPU.replace("name: cpu, ", "")): f"{AT}.resource.name: Required value",
    metric("Resource", CPU.replace("type: Utilization, ", "")): f"{AT}.resource.target.type: Required value",
    metric("Resource", CPU.replace("Utilization", "Sum", 1)): f'{AT}.resource.target.type: Invalid value: "Sum": must be either',
    metric("Resource", CPU.replace("50", "0")): f"{AT}.resource.target.averageUtilization: Invalid value: 0",
    metric("Resource", CPU.replace("averageUtilization: 50", "value: 1")): f"{AT}.resource.target.averageUtilization: Required value",
    metric("Resource", CPU.replace("50", "50, averageValue: 1")): f"{AT}.resource.target.averageValue: Forbidden: may not set both",
    metric("ContainerResource", CONTAINER.replace("web", "Web")): f'{AT}.containerResource.container: Invalid value: "Web"',
    metric("ContainerResource", CONTAINER.replace("container: web, ", "")): f"{AT}.containerResource.container: Required value",
    metric("ContainerResource", CONTAINER.replace("cpu", "gpu")): f'{AT}.containerResource.name: Invalid value: "gpu": must be a standard resource',
    metric("Pods", PODS.replace("averageValue: 1", "averageValue: 0")): f"{AT}.pods.target.averageValue: Invalid value: 0: must be positive",
    metric("Pods", PODS.replace("metric: {name: a}, ", "")): f"{AT}.pods.metric.name: Required value",
    metric("External", EXTERNAL.replace("name: a", "name: a%b")): f'{AT}.external.metric.name: Invalid value: "a%b"',
    metric("External", EXTERNAL.replace("value: 1", "value: 1, averageValue: 1")): f"{AT}.external.target.value: Forbidden",
    metric("Object", OBJECT.replace("kind: Ingress, ", "")): f"{AT}.object.describedObject.kind: Required value",
    metric("Object", OBJECT.replace("a/v1", "a/b/v1")): f"{AT}.object.describedObject.apiVersion: Invalid value",
    rules("stabilizationWindowSeconds: -1"): f"{UP}.stabilizationWindowSeconds: Invalid value: -1",
    rules("stabilizationWindowSeconds: 3601"): f"{UP}.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
    rules("selectPolicy: Any"): f'{UP}.selectPolicy: Unsupported value: "Any"',
    rules("policies: []"): f"{UP}.policies: Required value",
    rules("policies: [{type: All, value: 1, periodSeconds: 1}]"): f'{UP}.policies[0].type: Unsupported value: "All"',
    rules("policies: [{type: Pods, periodSeconds: 1}]"): f"{UP}.policies[0].value: Invalid value: 0: must be greater than zero",
    rules("policies: [{type: Pods, value: 1, periodSeconds: 1801}]"): f"{UP}.policies[0].periodSeconds: Invalid value: 1801",
    rules("tolerance: -0.1"): f"{UP}.tolerance: Invalid value: -0.1",
}  # fmt: skip


@pytest.mark.parametrize("spec", REJECTED)
def test_rejected_autoscalers(spec: str) -> None:
    assert found(spec)[0].startswith(REJECTED[spec])


NO_GROUP = "maxReplicas: 1, scaleTargetRef: {apiVersion: v1, kind: %s, name: a}"
ZERO = f"{TARGET}, minReplicas: 0, maxReplicas: 1, metrics: [{{type: External, {EXTERNAL}}}]"


@pytest.mark.parametrize(
    ("spec", "rejected", "accepted"),
    [(NO_GROUP % "Deployment", 34, 33), (rules("tolerance: -1"), 35, 34), (ZERO, 36, 37)],
)
def test_versions(spec: str, rejected: int, accepted: int) -> None:
    assert len(found(spec, minor=rejected)) == 1
    assert found(spec, minor=accepted) == []


@pytest.mark.parametrize("spec", [NO_GROUP % "Deployment", ZERO, metric("Object", OBJECT.replace("a/v1", "a/b/v1"))])
def test_what_may_stay(spec: str) -> None:
    assert found(spec, BASE) != []
    assert found(spec, spec) == []


def test_replication_controllers_have_no_group() -> None:
    assert found(NO_GROUP % "ReplicationController") == []


def test_scaling_to_zero_needs_metrics_of_something_else() -> None:
    spec = f"{TARGET}, minReplicas: 0, maxReplicas: 1"
    assert "spec.metrics: Forbidden: must specify at least one Object or External" in found(spec, minor=37)[0]
    assert "spec: Forbidden: must specify" in found(spec, minor=37, version="autoscaling/v1")[0]


def test_the_first_version_of_the_api() -> None:
    spec = f"{BASE}, targetCPUUtilizationPercentage: 0"
    assert found(spec, version="autoscaling/v1") == [
        "spec.targetCPUUtilizationPercentage: Invalid value: 0: must be greater than 0"
    ]
