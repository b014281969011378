# ruff: noqa: E501 - tables of manifests read better in rows
"""Which resources of containers and pods the API server rejects."""

from __future__ import annotations

import pytest
import yaml

from kpreempt.admission.validation.container_resources import check_pod_resources, check_requirements


def found(resources: str, *claims: str) -> list[str]:
    return [str(each) for each in check_requirements(yaml.safe_load(f"{{{resources}}}"), ("resources",), claims)]


VALID = [
    "limits: {cpu: 1, memory: 1Gi, ephemeral-storage: 1.5Gi}, requests: {cpu: 0.1, memory: 1073741824}",
    "limits: {nvidia.com/gpu: 1, kubernetes.io/foo: '0.5'}, requests: {nvidia.com/gpu: '1', kubernetes.io/foo: '0.1'}",
    "limits: {hugepages-2Mi: 4Mi, cpu: 1}, requests: {hugepages-2Mi: 4194304}",
    "claims: [{name: a, request: x}, {name: a, request: y}, {name: b}]",
]


@pytest.mark.parametrize("resources", VALID)
def test_valid_resources(resources: str) -> None:
    assert found(resources, "a", "b") == []


REJECTED = {
    "limits: {cpu: -1}": 'resources.limits.cpu: Invalid value: "-1": must be greater than or equal to 0',
    "limits: {gpu: 1}": 'resources.limits.gpu: Invalid value: "gpu": must be a standard resource type or fully qualified',
    "limits: {pods: 1}": 'resources.limits.pods: Invalid value: "pods": must be a standard resource for containers',
    "limits: {'a b/c': 1}": 'resources.limits[a b/c]: Invalid value: "a b/c": prefix part',
    "limits: {requests.a.io/b: 1}": "resources.limits[requests.a.io/b]: Invalid value: \"requests.a.io/b\": doesn't follow extended resource name standard",
    "limits: {a.io/b: 1.5}": 'resources.limits[a.io/b]: Invalid value: "1.5": must be an integer',
    "limits: {hugepages-2Mi: 3Mi, cpu: 1}": 'resources.limits.hugepages-2Mi: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
    "limits: {hugepages-x: 3Mi, cpu: 1}": 'resources.limits.hugepages-x: Invalid value: "3Mi"',
    "limits: {hugepages-2Mi: 2Mi}": "resources: Forbidden: HugePages require cpu or memory",
    "limits: {cpu: 1}, requests: {cpu: 1001m}": 'resources.requests.cpu: Invalid value: "1001m": must be less than or equal to cpu limit of 1',
    "limits: {a.io/b: 2}, requests: {a.io/b: 1}": 'resources.requests[a.io/b]: Invalid value: "1": must be equal to a.io/b limit of 2',
    "requests: {a.io/b: 1}": "resources.limits: Required value: Limit must be set for non overcommitable resources",
    "claims: [{}]": "resources.claims[0]: Required value",
    "claims: [{name: a}, {name: a}]": 'resources.claims[1]: Duplicate value: "a"',
    "claims: [{name: a, request: x}, {name: a, request: x}]": 'resources.claims[1]: Duplicate value: "a/x"',
    "claims: [{name: a, request: x}, {name: a}]": 'resources.claims[1]: Duplicate value: "a"',
    "claims: [{name: a, request: X}]": 'resources.claims[0].request: Invalid value: "X"',
    "claims: [{name: z}]": 'resources.claims[0]: Not found: "z": must be one of the names in pod.spec.resourceClaims: a, b',
}  # fmt: skip


@pytest.mark.parametrize(("resources", "problem"), REJECTED.items())
def test_rejected_resources(resources: str, problem: str) -> None:
    [only] = found(resources, "a", "b")
    assert only.startswith(problem)


def of_pod(spec: str, *, is_pod: bool = True) -> list[str]:
    return [str(each) for each in check_pod_resources(yaml.safe_load(f"{{{spec}}}"), ("spec",), is_pod=is_pod)]


CONTAINERS = "containers: [{resources: {requests: {cpu: 1}, limits: {memory: 2Gi, hugepages-2Mi: 2Mi}}}, {resources: {requests: {cpu: 1}, limits: {hugepages-2Mi: 2Mi}}}], initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 3}}}]"
POD_REJECTED = {
    "os: {name: windows}, resources: {}": "spec.resources: Forbidden: may not be set for a windows pod",
    "resources: {claims: [{name: a}]}": "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level",
    "resources: {limits: {ephemeral-storage: 1}}": 'spec.resources.limits.ephemeral-storage: Unsupported value: "ephemeral-storage"',
    "resources: {limits: {gpu: 1}}": 'spec.resources.limits.gpu: Invalid value: "gpu": must be a standard resource type',
    "resources: {limits: {cpu: 1}, requests: {cpu: 2}}": 'spec.resources.requests.cpu: Invalid value: "2": must be less than or equal to cpu limit of 1',
    f"resources: {{requests: {{cpu: 3}}}}, {CONTAINERS}": 'spec.resources.requests.cpu: Invalid value: "3": must be greater than or equal to aggregate container requests of 4',
    f"resources: {{limits: {{cpu: 3}}}}, {CONTAINERS}": 'spec.resources.requests.cpu: Invalid value: "4": must be less than or equal to cpu limit of 3',
    f"resources: {{limits: {{memory: 1Gi}}}}, {CONTAINERS}": 'spec.containers[0].resources.limits.memory: Invalid value: "2Gi": must be less than or equal to pod limits of 1Gi',
    f"resources: {{limits: {{cpu: 4, hugepages-2Mi: 2Mi}}}}, {CONTAINERS}": 'spec.resources.limits.hugepages-2Mi: Invalid value: "2Mi": must be greater than or equal to aggregate container limits of 4Mi',
}  # fmt: skip


@pytest.mark.parametrize(("spec", "problem"), POD_REJECTED.items())
def test_rejected_pod_resources(spec: str, problem: str) -> None:
    [only] = of_pod(spec)
    assert only.startswith(problem)


def test_valid_pod_resources() -> None:
    assert of_pod(CONTAINERS) == []
    assert of_pod(f"resources: {{limits: {{cpu: 4, memory: 2Gi, hugepages-2Mi: 4Mi}}}}, {CONTAINERS}") == []
    # The API server sets missing requests only in pods.
    assert of_pod(f"resources: {{limits: {{cpu: 3}}}}, {CONTAINERS}", is_pod=False) == []
