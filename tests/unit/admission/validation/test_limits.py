# ruff: noqa: E501 - tables of manifests read better in rows
"""Which ResourceQuotas and LimitRanges the API server rejects."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.defaults import with_defaults
from kpreempt.admission.validation import Server
from kpreempt.admission.validation.limits import check_limit_range, check_quota


def quota(spec: str) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": yaml.safe_load(f"{{{spec}}}")}


def of_quota(spec: str, old: str | None = None, *, minor: int = 36) -> list[str]:
    before = None if old is None else quota(old)
    return [str(each) for each in check_quota(quota(spec), before, Server(minor))]


def of_limits(*limits: str) -> list[str]:
    spec = {"limits": [yaml.safe_load(f"{{{each}}}") for each in limits]}
    document = with_defaults({"kind": "LimitRange", "metadata": {}, "spec": spec})
    return [str(each) for each in check_limit_range(document, None, Server(36))]


@pytest.mark.parametrize("minor", range(29, 39))
@pytest.mark.parametrize(
    "spec",
    [
        "hard: {cpu: 1500m, requests.hugepages-2Mi: 1, count/deployments.apps: 1, example.com/gpu: 1, requests.example.com/gpu: 1}",
        "hard: {pods: 1, limits.memory: 1Gi}, scopes: [NotBestEffort, Terminating]",
        "hard: {pods: 1}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}, {scopeName: BestEffort, operator: Exists}]}",
        "hard: {pods: '1.9999'}",
    ],
)  # fmt: skip
def test_valid_quotas(spec: str, minor: int) -> None:
    assert of_quota(spec, minor=minor) == of_quota(spec, spec, minor=minor) == []


def selector(requirement: str) -> str:
    return f"hard: {{pods: 1}}, scopeSelector: {{matchExpressions: [{{{requirement}}}]}}"


FIRST = "spec.scopeSelector.matchExpressions[0]"
QUOTAS = {
    "hard: {gpu: 1}": 'spec.hard.gpu: Invalid value: "gpu": must be a standard resource type or fully qualified',
    "hard: {storage: 1}": 'spec.hard.storage: Invalid value: "storage": must be a standard resource for quota',
    "hard: {cpu: -1}": 'spec.hard.cpu: Invalid value: "-1": must be greater than or equal to 0',
    "hard: {pods: 1500m}": 'spec.hard.pods: Invalid value: "1500m": must be an integer',
    "hard: {example.com/gpu: 0.5}": 'spec.hard[example.com/gpu]: Invalid value: "0.5": must be an integer',
    "hard: {pods: 1}, scopes: [Any]": 'spec.scopes: Invalid value: "Any": unsupported scope',
    "hard: {cpu: 1}, scopes: [BestEffort]": 'spec.scopes: Invalid value: "BestEffort": unsupported scope applied to resource',
    "hard: {pods: 1}, scopes: [Terminating, NotTerminating]": 'spec.scopes: Invalid value: ["NotTerminating", "Terminating"]: conflicting scopes',
    selector("scopeName: Any, operator: Exists"): f'{FIRST}.scopeName: Invalid value: "Any": unsupported scope',
    selector("scopeName: Terminating, operator: DoesNotExist"): f"{FIRST}.operator: Invalid value: \"DoesNotExist\": must be 'Exists'",
    selector("scopeName: PriorityClass, operator: In"): f"{FIRST}.values: Required value",
    selector("scopeName: PriorityClass, operator: Exists, values: [a]"): f'{FIRST}.values: Invalid value: ["a"]: must be no value',
    selector("scopeName: PriorityClass, operator: Is"): f'{FIRST}.operator: Invalid value: "Is": not a valid selector operator',
    selector("scopeName: BestEffort, operator: Exists}, {scopeName: NotBestEffort, operator: Exists"): 'spec.scopeSelector.matchExpressions: Invalid value: ["BestEffort", "NotBestEffort"]: conflicting scopes',
    selector("scopeName: PriorityClass, operator: Exists").replace("pods", "secrets"): f'{FIRST}: Invalid value: "PriorityClass": unsupported scope applied to resource',
}  # fmt: skip


@pytest.mark.parametrize("spec", QUOTAS)
def test_rejected_quotas(spec: str) -> None:
    assert [each.startswith(QUOTAS[spec]) for each in of_quota(spec)] == [True]


def test_scopes_never_change() -> None:
    spec = "hard: {pods: 1}, scopes: [Terminating]"
    assert of_quota(spec, "hard: {pods: 1}") == ['spec.scopes: Invalid value: ["Terminating"]: field is immutable']


def test_quotas_of_classes_of_volume_attributes_since_1_33() -> None:
    spec = "hard: {persistentvolumeclaims: 1}, scopes: [VolumeAttributesClass]"
    assert [len(of_quota(spec, minor=minor)) for minor in (32, 33)] == [1, 0]


VALID = "type: Container, min: {cpu: 1}, max: {cpu: 4}, default: {cpu: 3}, defaultRequest: {cpu: 2}, maxLimitRequestRatio: {cpu: 4}"


@pytest.mark.parametrize(
    "limits",
    [
        [VALID],
        ["type: Pod, max: {cpu: 4}", "type: PersistentVolumeClaim, min: {storage: 1Gi}", "type: example.com/a, max: {storage: 1}"],
        ["type: Container, min: {cpu: 0}, max: {cpu: 1}, maxLimitRequestRatio: {cpu: 100}"],
    ],
)  # fmt: skip
def test_valid_limits(limits: list[str]) -> None:
    assert of_limits(*limits) == []


LIMITS = {
    "type: ''": 'type: Invalid value: "": name part must be non-empty',
    "type: Job": 'type: Invalid value: "Job": must be a standard limit type or fully qualified',
    "type: Container, max: {storage: 1}": 'max.storage: Invalid value: "storage": must be a standard resource for containers',
    "type: PersistentVolumeClaim, max: {disk: 1}, min: {storage: 1}": 'max.disk: Invalid value: "disk": must be a standard resource type',
    "type: Pod, default: {cpu: 1}": "default: Forbidden: may not be specified when `type` is 'Pod'",
    "type: Pod, defaultRequest: {cpu: 1}": "defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
    "type: PersistentVolumeClaim": "limits: Required value: either minimum or maximum storage value is required",
    "type: Pod, min: {cpu: 2}, max: {cpu: 1}": 'min.cpu: Invalid value: "2": min value 2 is greater than max value 1',
    VALID.replace("min: {cpu: 1}", "min: {cpu: 2500m}").replace(", maxLimitRequestRatio: {cpu: 4}", ""): 'defaultRequest.cpu: Invalid value: "2": min value 2500m is greater than default request',
    VALID.replace("defaultRequest: {cpu: 2}", "defaultRequest: {cpu: 5}"): 'defaultRequest.cpu: Invalid value: "5": default request value 5 is greater than max value 4',
    VALID.replace("default: {cpu: 3}", "default: {cpu: 1500m}"): 'defaultRequest.cpu: Invalid value: "2": default request value 2 is greater than default limit value 1500m',
    VALID.replace("default: {cpu: 3}", "default: {cpu: 5}"): 'default.cpu: Invalid value: "5": default value 5 is greater than max value 4',
    "type: Container, default: {cpu: 1}, min: {cpu: 2}": 'defaultRequest.cpu: Invalid value: "1": min value 2 is greater than default request value 1',
    "type: Pod, maxLimitRequestRatio: {cpu: 500m}": 'maxLimitRequestRatio.cpu: Invalid value: "500m": ratio 500m is less than 1',
    "type: Pod, min: {cpu: 1}, max: {cpu: 2}, maxLimitRequestRatio: {cpu: 3}": 'maxLimitRequestRatio.cpu: Invalid value: "3": ratio 3 is greater than max/min = 2',
    "type: Container, default: {example.com/gpu: 2}, defaultRequest: {example.com/gpu: 1}": 'defaultRequest[example.com/gpu]: Invalid value: "1": default value 2 must equal to defaultRequest value 1',
    "type: Container, max: {cpu: 1}, defaultRequest: {cpu: 2}": 'defaultRequest.cpu: Invalid value: "2": default request value 2 is greater than max value 1',
}  # fmt: skip


@pytest.mark.parametrize("limit", LIMITS)
def test_rejected_limits(limit: str) -> None:
    assert of_limits(limit)[0].startswith(f"spec.limits[0].{LIMITS[limit]}")


def test_each_type_has_one_limit() -> None:
    assert of_limits("type: Pod", "type: Pod") == ['spec.limits[1].type: Duplicate value: "Pod"']


def test_defaults_of_containers() -> None:
    limit = {"type": "Container", "max": {"cpu": "4"}, "min": {"cpu": "1", "memory": "1"}, "default": {"pods": "1"}}
    filled = with_defaults({"kind": "LimitRange", "spec": {"limits": [limit, {"type": "Pod", "max": {"cpu": "1"}}]}})
    assert filled["spec"]["limits"] == [
        limit | {"default": {"pods": "1", "cpu": "4"}, "defaultRequest": {"cpu": "4", "memory": "1", "pods": "1"}},
        {"type": "Pod", "max": {"cpu": "1"}},
    ]
