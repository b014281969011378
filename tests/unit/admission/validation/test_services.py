# ruff: noqa: E501 - tables of manifests read better in rows
"""Which Services the API server rejects, new ones and updates."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.validation import Server
from kpreempt.admission.validation.services import check_service

BALANCED = """
type: LoadBalancer, selector: {app: a}, ports: [{name: http, port: 80, targetPort: web, nodePort: 30080, appProtocol: example.com/x}, {name: dns, port: 53, protocol: UDP}],
clusterIP: 10.96.0.10, ipFamilyPolicy: SingleStack, ipFamilies: [IPv4], sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 600}},
externalTrafficPolicy: Local, internalTrafficPolicy: Cluster, healthCheckNodePort: 31000, externalIPs: [192.0.2.10], loadBalancerClass: example.com/lb,
loadBalancerSourceRanges: [' 10.0.0.0/8'], allocateLoadBalancerNodePorts: true
"""
PLAIN = "ports: [{port: 80}]"
ELSEWHERE = "type: ExternalName, externalName: db.example.com."


def service(spec: str, metadata: str = "") -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(f"{{metadata: {{name: web, {metadata}}}, spec: {{{spec}}}}}")
    return document


def found(spec: str, old: str | None = None, *, minor: int = 36, metadata: str = "") -> list[str]:
    before = None if old is None else service(old)
    return [str(each) for each in check_service(service(spec, metadata), before, Server(minor))]


@pytest.mark.parametrize("minor", range(29, 39))
@pytest.mark.parametrize("spec", [BALANCED, PLAIN, ELSEWHERE, "clusterIP: None", f"{PLAIN}, clusterIPs: [], type: ''"])
def test_valid_services(spec: str, minor: int) -> None:
    assert found(spec, minor=minor) == []
    assert found(spec, spec, minor=minor) == []


REJECTED = {
    "type: ClusterIP": "spec.ports: Required value",
    "type: Ingress, ports: [{port: 1}]": 'spec.type: Unsupported value: "Ingress": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
    "type: NodePort, clusterIP: None, ports: [{port: 1}]": "spec.clusterIP: Invalid value: \"None\": may not be set to 'None' for NodePort services",
    "ports: [{port: 1, nodePort: 30000}]": "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
    "ports: [{port: 0}]": "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
    "ports: [{port: 1}, {port: 2}]": "spec.ports[0].name: Required value",
    "ports: [{port: 1, name: a}, {port: 2, name: a}]": 'spec.ports[1].name: Duplicate value: "a"',
    "ports: [{port: 1, name: a}, {port: 1, name: b}]": "spec.ports[1]: Duplicate value: 1",
    "ports: [{port: 1, name: A}]": 'spec.ports[0].name: Invalid value: "A": a lowercase RFC 1123 label',
    "ports: [{port: 1, protocol: tcp}]": 'spec.ports[0].protocol: Unsupported value: "tcp"',
    "ports: [{port: 1, targetPort: a--b}]": 'spec.ports[0].targetPort: Invalid value: "a--b": must not contain consecutive hyphens',
    "ports: [{port: 1, targetPort: 70000}]": "spec.ports[0].targetPort: Invalid value: 70000: must be between",
    "ports: [{port: 1, appProtocol: ''}]": 'spec.ports[0].appProtocol: Invalid value: "": name part must be non-empty',
    "type: NodePort, ports: [{name: a, port: 1, nodePort: 3}, {name: b, port: 2, nodePort: 3}]": "spec.ports[1].nodePort: Duplicate value: 3",
    f"{PLAIN}, selector: {{app: -}}": 'spec.selector.app: Invalid value: "-": a valid label must',
    f"{PLAIN}, sessionAffinity: Cookie": 'spec.sessionAffinity: Unsupported value: "Cookie"',
    f"{PLAIN}, sessionAffinity: ClientIP, sessionAffinityConfig: {{clientIP: {{timeoutSeconds: 0}}}}": "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0",
    f"{PLAIN}, internalTrafficPolicy: ''": 'spec.internalTrafficPolicy: Unsupported value: ""',
    f"{PLAIN}, externalTrafficPolicy: Local": 'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
    "type: NodePort, ports: [{port: 1}], externalTrafficPolicy: Any": 'spec.externalTrafficPolicy: Unsupported value: "Any"',
    f"{PLAIN}, healthCheckNodePort: 1": "spec.healthCheckNodePort: Invalid value: 1: may only be set when",
    "type: LoadBalancer, ports: [{port: 1}], externalTrafficPolicy: Local, healthCheckNodePort: -1": "spec.healthCheckNodePort: Invalid value: -1: must be between",
    f"{PLAIN}, clusterIP: 10.0.0": 'spec.clusterIPs[0]: Invalid value: "10.0.0": must be a valid IP address',
    f"{PLAIN}, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.2]": "spec.clusterIPs: Invalid value: [\"10.0.0.2\"]: first value must match `clusterIP`",
    f"{PLAIN}, clusterIPs: [10.0.0.2]": 'spec.clusterIPs: Invalid value: ["10.0.0.2"]: must be empty when `clusterIP` is not specified',
    f"{PLAIN}, clusterIP: None, clusterIPs: [None, 10.0.0.1]": "spec.clusterIPs: Invalid value: [\"None\", \"10.0.0.1\"]: 'None' must be the first and only value",
    f"{PLAIN}, ipFamilyPolicy: PreferDualStack, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 10.0.0.2]": 'spec.clusterIPs: Invalid value: ["10.0.0.1", "10.0.0.2"]: may specify no more than one IP for each IP family',
    f"{PLAIN}, ipFamilyPolicy: PreferDualStack, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1', 'fd00::2']": "may only hold up to 2 values",
    f"{PLAIN}, clusterIP: 10.0.0.1, ipFamilies: [IPv6]": 'spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`',
    f"{PLAIN}, ipFamilies: [IPv5]": 'spec.ipFamilies[0]: Unsupported value: "IPv5"',
    f"{PLAIN}, ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv4, IPv4]": 'spec.ipFamilies[1]: Duplicate value: "IPv4"',
    f"{PLAIN}, ipFamilies: [IPv4, IPv6]": "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack'",
    f"{PLAIN}, ipFamilyPolicy: Dual": 'spec.ipFamilyPolicy: Unsupported value: "Dual"',
    f"{PLAIN}, externalIPs: [127.0.0.1]": 'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range',
    f"{PLAIN}, loadBalancerSourceRanges: [10.0.0.0/8]": "spec.loadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
    "type: LoadBalancer, ports: [{port: 1}], loadBalancerSourceRanges: [10.0.0.0/33]": 'spec.loadBalancerSourceRanges[0]: Invalid value: "10.0.0.0/33": must be a valid CIDR value',
    f"{PLAIN}, loadBalancerClass: a/b": "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
    "type: LoadBalancer, ports: [{port: 1}], loadBalancerClass: '/b'": 'spec.loadBalancerClass: Invalid value: "/b": prefix part must be non-empty',
    f"{PLAIN}, allocateLoadBalancerNodePorts: false": "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used",
    "type: ExternalName": "spec.externalName: Required value",
    "type: ExternalName, externalName: A.b": 'spec.externalName: Invalid value: "A.b": a lowercase RFC 1123 subdomain',
    f"{ELSEWHERE}, clusterIP: 10.0.0.1": "spec.clusterIP: Forbidden: may not be set for ExternalName services",
    f"{ELSEWHERE}, ipFamilies: [IPv4]": "spec.ipFamilies: Forbidden: may not be set for ExternalName services",
    f"{ELSEWHERE}, ipFamilyPolicy: SingleStack": "spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services",
}  # fmt: skip


@pytest.mark.parametrize("spec", REJECTED)
def test_rejected_services(spec: str) -> None:
    assert any(REJECTED[spec] in each for each in found(spec))


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ("annotations: {service.kubernetes.io/topology-mode: Auto, service.kubernetes.io/topology-aware-hints: auto}", "must match annotations[service.kubernetes.io/topology-aware-hints]"),
        ("annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: 10.0.0.0/8}", "Forbidden: may only be used when `type` is 'LoadBalancer'"),
        ("namespace: A", "metadata.namespace: Invalid value"),
    ],
)  # fmt: skip
def test_rejected_metadata(metadata: str, problem: str) -> None:
    assert [problem in each for each in found(PLAIN, metadata=metadata)] == [True]


def test_ranges_in_an_annotation_are_checked_when_they_change() -> None:
    document = service(
        "type: LoadBalancer, ports: [{port: 1}]",
        "annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: '10.0.0.0/8, x'}",
    )
    assert len(list(check_service(document, None, Server(36)))) == 1
    assert list(check_service(document, document, Server(36))) == []


@pytest.mark.parametrize(
    ("spec", "rejected", "accepted"),
    [
        (f"{PLAIN}, clusterIP: 010.0.0.1", 36, 35),
        (f"{PLAIN}, externalIPs: ['::ffff:1.2.3.4']", 36, 35),
        ("type: LoadBalancer, ports: [{port: 1}], loadBalancerSourceRanges: [10.0.0.1/8]", 36, 35),
        (f"{PLAIN}, trafficDistribution: PreferSameNode", 33, 34),
        (f"{PLAIN}, trafficDistribution: Any", 31, 30),
        ("type: LoadBalancer, ports: [{port: 10250}]", 32, 33),
    ],
)
def test_versions(spec: str, rejected: int, accepted: int) -> None:
    assert len(found(spec, minor=rejected)) == 1
    assert found(spec, minor=accepted) == []


def test_names_may_begin_with_a_digit_since_1_36() -> None:
    document = {"metadata": {"name": "1a"}, "spec": {"ports": [{"port": 1}]}}
    assert [len(list(check_service(document, None, Server(minor)))) for minor in (35, 36)] == [1, 0]


ADDRESS = "clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack"
TWO = "clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1'], ipFamilies: [IPv4, IPv6]"
HEALTH = "type: LoadBalancer, ports: [{port: 1}], externalTrafficPolicy: Local, healthCheckNodePort"


@pytest.mark.parametrize(
    ("old", "spec", "problem"),
    [
        (ADDRESS, "clusterIP: None", 'spec.clusterIP: Invalid value: ["None"]: may not change once set'),
        ("type: ClusterIP", "clusterIP: None", "may not change once set"),
        (ADDRESS, "clusterIP: 10.0.0.2", "may not change once set"),
        ("clusterIP: None", "clusterIP: 10.0.0.2", "may not change once set"),
        (ADDRESS, f"{ADDRESS}, type: NodePort, ports: [{{port: 1, nodePort: 30000}}], healthCheckNodePort: 5", "spec.healthCheckNodePort: Invalid value: 5"),
        ("clusterIP: None", "type: LoadBalancer", "may not be set to 'None' for LoadBalancer services"),
        (ADDRESS, f"{ELSEWHERE}, clusterIP: 10.0.0.2", "spec.clusterIP: Forbidden"),
        (f"{TWO}, ipFamilyPolicy: PreferDualStack", "clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilyPolicy: PreferDualStack", "must be 'SingleStack' to release the secondary cluster IP"),
        (f"{TWO}, ipFamilyPolicy: PreferDualStack", "ipFamilies: [IPv4], clusterIPs: [10.0.0.1, 'fd00::2']", "spec.clusterIPs[1]: Invalid value"),
        (ADDRESS, "ipFamilies: [IPv6]", "spec.ipFamilies[0]: Invalid value: [\"IPv6\"]: may not change once set"),
        ("type: LoadBalancer, loadBalancerClass: a/b", "type: LoadBalancer, loadBalancerClass: a/c", 'spec.loadBalancerClass: Invalid value: "a/c": may not change once set'),
        (f"{HEALTH}: 31000", f"{HEALTH}: 31001", "spec.healthCheckNodePort: Forbidden: field is immutable"),
    ],
)  # fmt: skip
def test_rejected_updates(old: str, spec: str, problem: str) -> None:
    problems = found(spec if "ports" in spec else f"{PLAIN}, {spec}", old)
    assert problem in problems[0]


@pytest.mark.parametrize(
    ("old", "spec"),
    [
        (ADDRESS, "type: NodePort"),
        ("type: ClusterIP", "clusterIP: 10.0.0.2, ipFamilies: [IPv4], clusterIPs: []"),
        ("type: ClusterIP", "ipFamilies: [IPv6]"),
        ("clusterIPs: [10.0.0.1]", "clusterIP: 10.0.0.1"),
        ("type: ClusterIP", "clusterIPs: [10.0.0.1]"),
        ("type: NodePort, externalTrafficPolicy: ''", "externalTrafficPolicy: Cluster"),
        (f"{ADDRESS}, type: ClusterIP", f"{ADDRESS}, {ELSEWHERE}"),
        (ADDRESS, f"{ADDRESS}, {ELSEWHERE}".replace("clusterIP: 10.0.0.1", "clusterIP: ''")),
        (ELSEWHERE, "clusterIP: None"),
        (f"{TWO}, ipFamilyPolicy: PreferDualStack", f"{TWO}, ipFamilyPolicy: SingleStack"),
        (ADDRESS, f"{TWO}, ipFamilyPolicy: RequireDualStack"),
        (
            BALANCED,
            f"{BALANCED}, type: ClusterIP, loadBalancerSourceRanges: []".replace("externalIPs: [192.0.2.10],", ""),
        ),
        ("externalIPs: [127.0.0.01]", "clusterIPs: []"),
        (f"{HEALTH}: 31000", HEALTH.removesuffix(", healthCheckNodePort")),
    ],
)
def test_accepted_updates(old: str, spec: str) -> None:
    assert found(spec if "ports" in spec else f"{PLAIN}, {spec}", old) == []
