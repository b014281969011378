# ruff: noqa: E501 - tables of manifests read better in rows
"""Which probes and hooks the API server rejects."""

from __future__ import annotations

import pytest
import yaml

from kpreempt.admission.validation.probes import check_lifecycle, check_probes
from kpreempt.admission.validation.problems import Server

VALID = """
livenessProbe: {httpGet: {path: /, port: http, scheme: HTTPS, httpHeaders: [{name: X-A}]}, terminationGracePeriodSeconds: 1}
readinessProbe: {tcpSocket: {port: 80}, successThreshold: 2, initialDelaySeconds: 0}
startupProbe: {grpc: {port: 80}, successThreshold: 1}
"""


def test_valid_probes() -> None:
    assert list(check_probes(yaml.safe_load(VALID), ())) == []


REJECTED = {
    "livenessProbe: {}": "livenessProbe: Required value: must specify a handler type",
    "livenessProbe: {exec: {command: [a]}, grpc: {port: 1}}": "livenessProbe.grpc: Forbidden: may not specify more than 1 handler type",
    "startupProbe: {exec: {}}": "startupProbe.exec.command: Required value",
    "startupProbe: {httpGet: {path: '', port: 1}}": "startupProbe.httpGet.path: Required value",
    "startupProbe: {httpGet: {}}": "startupProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535",
    "startupProbe: {httpGet: {port: HTTP}}": 'startupProbe.httpGet.port: Invalid value: "HTTP": must contain only',
    "startupProbe: {httpGet: {port: 1, scheme: https}}": 'startupProbe.httpGet.scheme: Unsupported value: "https"',
    "startupProbe: {httpGet: {port: 1, httpHeaders: [{name: 'a b'}]}}": 'startupProbe.httpGet.httpHeaders[0].name: Invalid value: "a b": a valid HTTP header',
    "readinessProbe: {tcpSocket: {port: 70000}}": "readinessProbe.tcpSocket.port: Invalid value: 70000",
    "readinessProbe: {grpc: {port: 0}}": "readinessProbe.grpc.port: Invalid value: 0",
    "readinessProbe: {grpc: {port: 1}, periodSeconds: -1}": "readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
    "readinessProbe: {grpc: {port: 1}, terminationGracePeriodSeconds: 1}": "readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes",
    "livenessProbe: {grpc: {port: 1}, terminationGracePeriodSeconds: 0}": "livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
    "livenessProbe: {grpc: {port: 1}, successThreshold: 2}": "livenessProbe.successThreshold: Invalid value: 2: must be 1",
}  # fmt: skip


@pytest.mark.parametrize(("container", "problem"), REJECTED.items())
def test_rejected_probes(container: str, problem: str) -> None:
    [only] = check_probes(yaml.safe_load(container), ())
    assert str(only).startswith(problem)


HOOKS = [
    ("postStart: {exec: {command: [a]}}, preStop: {sleep: {seconds: 30}}", 36, None),
    ("preStop: {}", 36, "preStop: Required value: must specify a handler type"),
    ("preStop: {httpGet: {port: 1}, tcpSocket: {port: 1}}", 36, "preStop.tcpSocket: Forbidden"),
    ("preStop: {sleep: {seconds: 31}}", 36, "preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)"),
    ("preStop: {sleep: {seconds: -1}}", 36, "preStop.sleep: Invalid value: -1: must be non-negative"),
    ("preStop: {sleep: {seconds: 0}}", 33, None),
    ("preStop: {sleep: {seconds: 0}}", 32, "preStop.sleep: Invalid value: 0: must be greater than 0"),
]  # fmt: skip


@pytest.mark.parametrize(("lifecycle", "minor", "problem"), HOOKS)
def test_hooks(lifecycle: str, minor: int, problem: str | None) -> None:
    result = [str(each) for each in check_lifecycle(yaml.safe_load(f"{{{lifecycle}}}"), 30, Server(minor), ())]
    assert len(result) == (problem is not None)
    assert all(each.startswith(problem or "") for each in result)
