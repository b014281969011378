# ruff: noqa: E501 - tables of manifests read better in rows
"""Which containers of pods the API server rejects."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.validation.containers import check_containers
from kpreempt.admission.validation.problems import Server

VOLUMES = "volumes: [{name: v, emptyDir: {}}, {name: p, persistentVolumeClaim: {claimName: c}}]"
FULL = """
name: a, image: nginx, imagePullPolicy: Always, terminationMessagePolicy: File,
ports: [{name: http, containerPort: 80, hostPort: 80, protocol: TCP}, {containerPort: 80, hostPort: 80, protocol: UDP}],
env: [{name: A, value: b}], envFrom: [{secretRef: {name: s}}],
volumeMounts: [{name: v, mountPath: /v, subPath: a/b, readOnly: true, recursiveReadOnly: Enabled}],
volumeDevices: [{name: p, devicePath: /dev/a}],
livenessProbe: {exec: {command: [a]}}, lifecycle: {preStop: {exec: {command: [a]}}},
resources: {limits: {cpu: 1}, requests: {cpu: 1}}, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}],
securityContext: {runAsUser: 1}
"""


def found(spec: str | dict[str, Any], minor: int = 36, old: dict[str, Any] | None = None) -> list[str]:
    document = yaml.safe_load(f"{{{spec}, {VOLUMES}}}") if isinstance(spec, str) else spec
    return [str(each) for each in check_containers(document, Server(minor), ("spec",), old=old)]


@pytest.mark.parametrize("minor", range(29, 39))
def test_valid_containers(minor: int) -> None:
    sidecar = "name: s, image: s, restartPolicy: Always, startupProbe: {tcpSocket: {port: 1}}, lifecycle: {preStop: {exec: {command: [a]}}}"
    ephemeral = "name: e, image: e, targetContainerName: a"
    spec = f"containers: [{{{FULL}}}], initContainers: [{{{sidecar}}}, {{name: i, image: i}}], ephemeralContainers: [{{{ephemeral}}}]"
    assert found(spec, minor) == []


REJECTED = {
    "name: '', image: a": "spec.containers[0].name: Required value",
    "name: A, image: a": 'spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label must',
    "name: a": "spec.containers[0].image: Required value",
    "name: a, image: a, imagePullPolicy: Later": 'spec.containers[0].imagePullPolicy: Unsupported value: "Later"',
    "name: a, image: a, terminationMessagePolicy: ''": "spec.containers[0].terminationMessagePolicy: Required value",
    "name: a, image: a, ports: [{name: UP, containerPort: 1}]": 'spec.containers[0].ports[0].name: Invalid value: "UP": must contain only alphanumeric',
    "name: a, image: a, ports: [{name: x, containerPort: 1}, {name: x, containerPort: 2}]": 'spec.containers[0].ports[1].name: Duplicate value: "x"',
    "name: a, image: a, ports: [{hostPort: 1}]": "spec.containers[0].ports[0].containerPort: Required value",
    "name: a, image: a, ports: [{containerPort: 70000}]": "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535",
    "name: a, image: a, ports: [{containerPort: 1, hostPort: -1}]": "spec.containers[0].ports[0].hostPort: Invalid value: -1: must be between",
    "name: a, image: a, ports: [{containerPort: 1, protocol: ICMP}]": 'spec.containers[0].ports[0].protocol: Unsupported value: "ICMP"',
    "name: a, image: a, ports: [{containerPort: 1, hostPort: 5}, {containerPort: 2, hostPort: 5}]": 'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//5"',
    "name: a, image: a, volumeMounts: [{mountPath: /a}]": "spec.containers[0].volumeMounts[0].name: Required value",
    "name: a, image: a, volumeMounts: [{name: x, mountPath: /a}]": 'spec.containers[0].volumeMounts[0].name: Not found: "x"',
    "name: a, image: a, volumeMounts: [{name: v}]": "spec.containers[0].volumeMounts[0].mountPath: Required value",
    "name: a, image: a, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a}]": 'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
    "name: a, image: a, volumeMounts: [{name: v, mountPath: /a, subPath: /b}]": 'spec.containers[0].volumeMounts[0].subPath: Invalid value: "/b": must be a relative path',
    "name: a, image: a, volumeMounts: [{name: v, mountPath: /a, subPathExpr: ../b}]": "spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: \"../b\": must not contain '..'",
    "name: a, image: a, volumeMounts: [{name: v, mountPath: /a, subPath: b, subPathExpr: b}]": 'spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive',
    "name: a, image: a, volumeMounts: [{name: v, mountPath: /a, mountPropagation: Both}]": 'spec.containers[0].volumeMounts[0].mountPropagation: Unsupported value: "Both"',
    "name: a, image: a, volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]": "spec.containers[0].volumeMounts[0].mountPropagation: Forbidden: Bidirectional mount propagation is available only",
    "name: a, image: a, volumeMounts: [{name: v, mountPath: /a, recursiveReadOnly: Maybe}]": 'spec.containers[0].volumeMounts[0].recursiveReadOnly: Unsupported value: "Maybe"',
    "name: a, image: a, volumeMounts: [{name: v, mountPath: /a, recursiveReadOnly: Enabled}]": "spec.containers[0].volumeMounts[0].recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
    "name: a, image: a, volumeMounts: [{name: v, mountPath: /a, recursiveReadOnly: Enabled, readOnly: true, mountPropagation: HostToContainer}]": "spec.containers[0].volumeMounts[0].recursiveReadOnly: Forbidden: may only be specified when mountPropagation",
    "name: a, image: a, volumeDevices: [{name: v, devicePath: /a}]": 'spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type',
    "name: a, image: a, volumeDevices: [{name: x, devicePath: /a}]": 'spec.containers[0].volumeDevices[0].name: Not found: "x"',
    "name: a, image: a, volumeDevices: [{name: p}]": "spec.containers[0].volumeDevices[0].devicePath: Required value",
    "name: a, image: a, volumeDevices: [{name: p, devicePath: a/../b}]": 'spec.containers[0].volumeDevices[0].devicePath: Invalid value: "a/../b": can not contain backsteps',
    "name: a, image: a, volumeDevices: [{name: p, devicePath: /a}, {name: p, devicePath: /b}]": 'spec.containers[0].volumeDevices[1].name: Invalid value: "p": must be unique',
    "name: a, image: a, resizePolicy: [{resourceName: gpu, restartPolicy: NotRequired}]": 'spec.containers[0].resizePolicy[0].resourceName: Unsupported value: "gpu"',
    "name: a, image: a, resizePolicy: [{resourceName: cpu}]": "spec.containers[0].resizePolicy[0].restartPolicy: Required value",
    "name: a, image: a, restartPolicy: Later": 'spec.containers[0].restartPolicy: Unsupported value: "Later"',
    "name: a, image: a, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]": "spec.containers[0].restartPolicy: Required value: must specify restartPolicy",
    "name: a, image: a, restartPolicy: Never, restartPolicyRules: [{action: Stop, exitCodes: {operator: In}}]": 'spec.containers[0].restartPolicyRules[0].action: Unsupported value: "Stop"',
    "name: a, image: a, restartPolicy: Never, restartPolicyRules: [{action: Restart}]": "spec.containers[0].restartPolicyRules[0].exitCodes: Required value",
    "name: a, image: a, restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: Out}}]": 'spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: "Out"',
}


@pytest.mark.parametrize(("container", "problem"), REJECTED.items())
def test_rejected_containers(container: str, problem: str) -> None:
    [only] = found(f"containers: [{{{container}}}]")
    assert only.startswith(problem)


def test_mount_and_device_of_the_same_volume() -> None:
    mounts = "volumeMounts: [{name: p, mountPath: /a}], volumeDevices: [{name: p, devicePath: /a}]"
    where = "spec.containers[0].volume"
    assert found(f"containers: [{{name: a, image: a, {mounts}}}]") == [
        f'{where}Mounts[0].name: Invalid value: "p": must not already exist in volumeDevices',
        f'{where}Mounts[0].mountPath: Invalid value: "/a": must not already exist as a path in volumeDevices',
        f'{where}Devices[0].name: Invalid value: "p": must not already exist in volumeMounts',
        f'{where}Devices[0].devicePath: Invalid value: "/a": must not already exist as a path in volumeMounts',
    ]


OTHER_LISTS = {
    "containers: []": "spec.containers: Required value",
    "containers: [{name: a, image: a}, {name: a, image: a}]": 'spec.containers[1].name: Duplicate value: "a"',
    "containers: [{name: a, image: a}], initContainers: [{name: a, image: a}]": 'spec.initContainers[0].name: Duplicate value: "a"',
    "containers: [{name: a, image: a}], ephemeralContainers: [{name: a, image: a}]": 'spec.ephemeralContainers[0].name: Duplicate value: "a"',
    "containers: [{name: a, image: a, ports: [{containerPort: 1, hostPort: 1}]}, {name: b, image: a, ports: [{containerPort: 1, hostPort: 1}]}]": 'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//1"',
    "containers: [{name: a, image: a}], initContainers: [{name: i, image: a, lifecycle: {}}]": "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
    "containers: [{name: a, image: a}], initContainers: [{name: i, image: a, readinessProbe: {exec: {command: [a]}}}]": "spec.initContainers[0].readinessProbe: Forbidden: may not be set",
    "containers: [{name: a, image: a}], initContainers: [{name: i, image: a, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]": 'spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer"',
    "containers: [{name: a, image: a}], ephemeralContainers: [{name: e, image: a, targetContainerName: x}]": 'spec.ephemeralContainers[0].targetContainerName: Not found: "x"',
    "containers: [{name: a, image: a}], ephemeralContainers: [{name: e, image: ' a'}]": 'spec.ephemeralContainers[0].image: Invalid value: " a": must not have leading or trailing whitespace',
    "containers: [{name: a, image: a}], ephemeralContainers: [{name: e, image: a, ports: [{containerPort: 1}]}]": "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
    "containers: [{name: a, image: a}], ephemeralContainers: [{name: e, image: a, volumeMounts: [{name: v, mountPath: /a, subPath: a}]}]": "spec.ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set",
    "restartPolicy: Never, containers: [{name: a, image: a, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]": "spec.containers[0].resizePolicy[0].restartPolicy: Invalid value: \"RestartContainer\": must be 'NotRequired'",
}


@pytest.mark.parametrize(("spec", "problem"), OTHER_LISTS.items())
def test_rejected_lists(spec: str, problem: str) -> None:
    [only] = found(spec)
    assert only.startswith(problem)


def test_init_containers_may_share_host_ports() -> None:
    ports = "ports: [{containerPort: 1, hostPort: 1}]"
    spec = f"containers: [{{name: a, image: a, {ports}}}], initContainers: [{{name: i, image: a, {ports}}}]"
    assert found(spec) == []


def test_too_many_restart_rules() -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": list(range(300))}}
    container = {"name": "a", "image": "a", "restartPolicy": "Never", "restartPolicyRules": [rule] * 21}
    first, second, *_ = found({"containers": [container]})
    assert first == "spec.containers[0].restartPolicyRules: Too many: 21: must have at most 20 items"
    assert second.endswith("exitCodes.values: Too many: 300: must have at most 255 items")


RULES = "restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [1]}}]"
VERSIONS = [
    ("containers: [{name: a, image: a, restartPolicy: Always}]", 33, "spec.containers[0].restartPolicy: Forbidden: may not be set for non-init containers"),
    ("containers: [{name: a, image: a, restartPolicy: Always}]", 35, None),
    ("containers: [{name: a, image: a}], initContainers: [{name: i, image: a, restartPolicy: Never}]", 33, 'spec.initContainers[0].restartPolicy: Unsupported value: "Never": supported values: "Always"'),
    ("containers: [{name: a, image: a}], initContainers: [{name: i, image: a, restartPolicy: Never}]", 35, None),
    (f"containers: [{{name: a, image: a, restartPolicy: Never, {RULES}}}]", 35, 'spec.containers[0].restartPolicyRules[0].action: Unsupported value: "RestartAllContainers": supported values: "Restart"'),
    (f"containers: [{{name: a, image: a, restartPolicy: Never, {RULES}}}]", 36, None),
    (f"containers: [{{name: a, image: a}}], initContainers: [{{name: i, image: a, restartPolicy: Always, {RULES}}}]", 35, "spec.initContainers[0].restartPolicyRules: Forbidden: restartPolicyRules are not allowed"),
    (f"containers: [{{name: a, image: a}}], initContainers: [{{name: i, image: a, restartPolicy: Always, {RULES}}}]", 36, None),
    ("containers: [{name: a, image: a}], initContainers: [{name: i, image: a, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]", 35, None),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "minor", "problem"), VERSIONS)
def test_versions(spec: str, minor: int, problem: str | None) -> None:
    result = found(spec, minor)
    assert len(result) == (problem is not None)
    assert all(each.startswith(problem or "") for each in result)


def test_problems_of_the_old_spec_are_tolerated() -> None:
    old = {"containers": [{"name": "a", "image": "a", "imagePullPolicy": "Later"}]}
    new = {"containers": [{"name": "A", "image": "b", "imagePullPolicy": "Sometimes"}]}
    [only] = found(new, old=old)
    assert only.startswith("spec.containers[0].name: Invalid value")
