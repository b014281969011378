# ruff: noqa: E501 - tables of manifests read better in rows
"""Which tolerations, gates, claims, DNS settings and host aliases of pods the API server rejects."""

from __future__ import annotations

import pytest
import yaml

from kpreempt.admission.validation.placement import check_placement
from kpreempt.admission.validation.problems import Server


def found(spec: str, minor: int = 36) -> list[str]:
    return [str(each) for each in check_placement(yaml.safe_load(f"{{{spec}}}"), Server(minor), ("spec",), {})]


VALID = [
    "",
    "nodeSelector: {a.b/c: d, e: ''}",
    "tolerations: [{operator: Exists}, {key: a, value: b}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: -1}]",
    "schedulingGates: [{name: a}, {name: b.c/d}]",
    "resourceClaims: [{name: a, resourceClaimName: b.c}, {name: b, resourceClaimTemplateName: c}]",
    "dnsPolicy: ClusterFirst, dnsConfig: {}",
    "dnsPolicy: None, dnsConfig: {nameservers: [1.2.3.4, '::1'], searches: [a.b., _c.d_e, .], options: [{name: ndots}]}",
    "hostAliases: [{ip: 1.2.3.4, hostnames: [a.b, c]}, {ip: '::1'}]",
]


@pytest.mark.parametrize("spec", VALID)
def test_valid_placement(spec: str) -> None:
    assert found(spec) == []


REJECTED = {
    "nodeSelector: {a b: c}": 'spec.nodeSelector: Invalid value: "a b": name part must consist',
    "nodeSelector: {a: b c}": 'spec.nodeSelector.a: Invalid value: "b c": a valid label must',
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}": "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value",
    "topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Wait}]": 'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Wait"',
    "tolerations: [{key: -}]": 'spec.tolerations[0].key: Invalid value: "-"',
    "tolerations: [{value: a}]": 'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty',
    "tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 0}]": "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
    "tolerations: [{key: a, effect: Never}]": 'spec.tolerations[0].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "PreferNoSchedule"',
    "tolerations: [{key: a, operator: Equal, value: a b}]": 'spec.tolerations[0].value: Invalid value: "a b": a valid label must',
    "tolerations: [{key: a, operator: Exists, value: b}]": 'spec.tolerations[0].value: Invalid value: "b": value must be empty when `operator` is \'Exists\'',
    "tolerations: [{key: a, operator: In}]": 'spec.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"',
    "schedulingGates: [{}]": 'spec.schedulingGates[0].name: Invalid value: "": name part must be non-empty',
    "schedulingGates: [{name: a}, {name: a}]": 'spec.schedulingGates[1].name: Duplicate value: "a"',
    "resourceClaims: [{resourceClaimName: a}]": "spec.resourceClaims[0].name: Required value",
    "resourceClaims: [{name: A, resourceClaimName: a}]": 'spec.resourceClaims[0].name: Invalid value: "A": a lowercase RFC 1123 label',
    "resourceClaims: [{name: a, resourceClaimName: a}, {name: a, resourceClaimName: b}]": 'spec.resourceClaims[1].name: Duplicate value: "a"',
    "resourceClaims: [{name: a}]": 'spec.resourceClaims[0]: Invalid value: {"name": "a"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
    "resourceClaims: [{name: a, resourceClaimName: a, resourceClaimTemplateName: a}]": 'spec.resourceClaims[0]: Invalid value: {"name": "a", "resourceClaimName": "a", "resourceClaimTemplateName": "a"}: at most one of',
    "resourceClaims: [{name: a, resourceClaimTemplateName: ''}]": 'spec.resourceClaims[0].resourceClaimTemplateName: Invalid value: "": a lowercase RFC 1123 subdomain',
    "dnsPolicy: Cluster": 'spec.dnsPolicy: Unsupported value: "Cluster": supported values: "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"',
    "dnsPolicy: None": "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
    "dnsPolicy: None, dnsConfig: {searches: [a]}": "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None",
    "dnsConfig: {nameservers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4]}": 'spec.dnsConfig.nameservers: Invalid value: ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]: must not have more than 3 nameservers',
    "dnsConfig: {nameservers: [1.1.1.1, dns]}": 'spec.dnsConfig.nameservers[1]: Invalid value: "dns": must be a valid IP address',
    "dnsConfig: {searches: [a_]}": 'spec.dnsConfig.searches[0]: Invalid value: "a_": a lowercase RFC 1123 subdomain',
    "dnsConfig: {options: [{value: a}]}": "spec.dnsConfig.options[0]: Required value: must not be empty",
    "hostAliases: [{hostnames: [a]}]": 'spec.hostAliases[0].ip: Invalid value: "": must be a valid IP address',
    "hostAliases: [{ip: 1.2.3.4, hostnames: [a, a_b]}]": 'spec.hostAliases[0].hostnames[1]: Invalid value: "a_b": a lowercase RFC 1123 subdomain',
}  # fmt: skip


@pytest.mark.parametrize(("spec", "problem"), REJECTED.items())
def test_rejected_placement(spec: str, problem: str) -> None:
    [only] = found(spec)
    assert only.startswith(problem)


@pytest.mark.parametrize(
    ("searches", "problem"),
    [
        (["a"] * 32, ""),
        (["a"] * 33, "must not have more than 32 search paths"),
        ([f"{'a' * 63}.{'b' * 63}"] * 16, ""),
        ([f"{'a' * 63}.{'b' * 63}"] * 17, "must not have more than 2048 characters (including spaces) in the search list"),
        ([".".join(["a" * 63] * 4)], "must be no more than 253 characters"),
    ],
)  # fmt: skip
def test_searches_are_limited(searches: list[str], problem: str) -> None:
    texts = [str(each) for each in check_placement({"dnsConfig": {"searches": searches}}, Server(36), ("spec",), {})]
    assert [text.rpartition(": ")[2] for text in texts] == [problem] * bool(problem)


@pytest.mark.parametrize(
    ("spec", "first", "last", "problem"),
    [
        ("dnsConfig: {searches: [_a.b]}", 29, 32, 'spec.dnsConfig.searches[0]: Invalid value: "_a.b"'),
        ("dnsConfig: {searches: [.]}", 29, 32, 'spec.dnsConfig.searches[0]: Invalid value: "."'),
        ("dnsConfig: {nameservers: [01.2.3.4]}", 36, 38, "spec.dnsConfig.nameservers[0]: Invalid value: \"01.2.3.4\": must not have leading 0s"),
        ("hostAliases: [{ip: '::ffff:1.2.3.4'}]", 36, 38, 'spec.hostAliases[0].ip: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address'),
        ("tolerations: [{key: a, operator: Gt, value: '1'}]", 29, 34, 'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"'),
        ("tolerations: [{key: a, operator: Lt, value: '1'}]", 35, 38, 'spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Gt", "Lt"'),
    ],
)  # fmt: skip
def test_rules_by_version(spec: str, first: int, last: int, problem: str) -> None:
    texts = {minor: "".join(found(spec, minor)) for minor in range(29, 39)}
    assert [minor for minor, text in texts.items() if text.startswith(problem)][:: last - first] == [first, last]
