# ruff: noqa: E501 - tables of manifests read better in rows
"""Which environment variables the API server rejects."""

from __future__ import annotations

import pytest
import yaml

from kpreempt.admission.validation.environment import check_environment, check_file_volumes
from kpreempt.admission.validation.problems import Server


def found(container: str, minor: int = 36) -> list[str]:
    return [str(each) for each in check_environment(yaml.safe_load(f"{{{container}}}"), Server(minor), ())]


VALID = [
    "env: [{name: A, value: ''}, {name: A.b-c_1, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}]",
    """env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.annotations['A.b/C']"}}}]""",
    "env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.host}}}]",
    "env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1000m}}}]",
    "env: [{name: A, valueFrom: {resourceFieldRef: {resource: requests.hugepages-2Mi, divisor: 1024Ki}}}]",
    "env: [{name: A, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 1000}}}]",
    "env: [{name: A, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: '0'}}}]",
    "env: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: A_b.c}}}, {name: B, valueFrom: {secretKeyRef: {name: a, key: k}}}]",
    "env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: a/b, key: 1 x}}}]",
    "envFrom: [{prefix: P_, configMapRef: {name: a-}}, {secretRef: {name: b.c}}]",
]


@pytest.mark.parametrize("container", VALID)
def test_valid_variables(container: str) -> None:
    assert found(container) == []


REJECTED = {
    "env: [{value: a}]": "env[0].name: Required value",
    "env: [{name: A=B}]": 'env[0].name: Invalid value: "A=B": a valid environment variable name must consist only',
    "env: [{name: A, valueFrom: {}}]": 'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`',
    "env: [{name: A, value: a, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]": 'env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
    "env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}, secretKeyRef: {name: a, key: a}}}]": 'env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time',
    "env: [{name: A, valueFrom: {fieldRef: {}}}]": "env[0].valueFrom.fieldRef.fieldPath: Required value",
    "env: [{name: A, valueFrom: {fieldRef: {apiVersion: '', fieldPath: metadata.name}}}]": "env[0].valueFrom.fieldRef.apiVersion: Required value",
    "env: [{name: A, valueFrom: {fieldRef: {apiVersion: v2, fieldPath: metadata.name}}}]": 'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2',
    "env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.foo}}}]": 'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.foo": error converting fieldPath: field label not supported',
    "env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}]": 'env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels"',
    """env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['-']"}}}]""": 'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "-": name part must consist',
    """env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.name['a']"}}}]""": "env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field label does not support subscript",
    "env: [{name: A, valueFrom: {resourceFieldRef: {}}}]": "env[0].valueFrom.resourceFieldRef.resource: Required value",
    "env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}]": 'env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu"',
    "env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 2m}}}]": "env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"2m\": only divisor's values 1m and 1 are supported with the cpu resource",
    "env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1024}}}]": "env[0].valueFrom.resourceFieldRef.divisor: Invalid value: 1024: only divisor's values 1, 1k",
    "env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1e3}}}]": "env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"1e3\": only divisor's values 1, 1k",
    "env: [{name: A, valueFrom: {configMapKeyRef: {key: a}}}]": 'env[0].valueFrom.configMapKeyRef.name: Invalid value: "": a lowercase RFC 1123 subdomain',
    "env: [{name: A, valueFrom: {secretKeyRef: {name: a}}}]": "env[0].valueFrom.secretKeyRef.key: Required value",
    "env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: a/b}}}]": 'env[0].valueFrom.secretKeyRef.key: Invalid value: "a/b": a valid config key',
    "env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: ../b, key: a}}}]": "env[0].valueFrom.fileKeyRef.path: Invalid value: \"../b\": must not contain '..'",
    "env: [{name: A, valueFrom: {fileKeyRef: {path: b, key: a}}}]": "env[0].valueFrom.fileKeyRef.volumeName: Required value",
    "envFrom: [{}]": 'envFrom[0]: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
    "envFrom: [{configMapRef: {name: a}, secretRef: {name: a}}]": 'envFrom[0]: Invalid value: "": may not have more than one field specified at a time',
    "envFrom: [{configMapRef: {}}]": "envFrom[0].configMapRef.name: Required value",
    "envFrom: [{secretRef: {name: A}}]": 'envFrom[0].secretRef.name: Invalid value: "A"',
    "envFrom: [{prefix: a=, secretRef: {name: a}}]": 'envFrom[0].prefix: Invalid value: "a="',
}  # fmt: skip


@pytest.mark.parametrize(("container", "problem"), REJECTED.items())
def test_rejected_variables(container: str, problem: str) -> None:
    [only] = found(container)
    assert only.startswith(problem)


@pytest.mark.parametrize(("minor", "count"), [(31, 1), (32, 0)])
def test_names_are_relaxed_by_version(minor: int, count: int) -> None:
    assert len(found("env: [{name: 1 a}]", minor)) == count


@pytest.mark.parametrize(
    ("volumes", "problem"),
    [
        ({}, 'env[0].valueFrom.fileKeyRef.volumeName: Not found: "v"'),
        ({"v": {"secret": {}}}, 'env[0].valueFrom.fileKeyRef.volumeName: Invalid value: "v": referenced volume must'),
    ],
)
def test_files_are_in_empty_dirs(volumes: dict[str, dict[str, object]], problem: str) -> None:
    container = {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v"}}}]}
    [only] = check_file_volumes(container, volumes, ())
    assert str(only).startswith(problem)
    assert list(check_file_volumes(container, {"v": {"emptyDir": {}}}, ())) == []
