# ruff: noqa: E501 - tables of manifests read better in rows
"""Which volumes with projected files the API server rejects."""

from __future__ import annotations

import pytest
import yaml

from kpreempt.admission.validation.problems import Server
from kpreempt.admission.validation.volumes import check_volumes


def of(source: str, minor: int = 36) -> list[str]:
    spec = {"volumes": [{"name": "a", **yaml.safe_load(f"{{{source}}}")}]}
    texts = [str(each) for each in check_volumes(spec, Server(minor), ("spec",))]
    return [text.removeprefix("spec.volumes[0].") for text in texts]


def projected(source: str, minor: int = 38) -> list[str]:
    return [text.removeprefix("projected.sources[0].") for text in of(f"projected: {{sources: [{{{source}}}]}}", minor)]


VALID = [
    "secret: {secretName: A_B, defaultMode: 511, items: [{key: a b, path: a/..b, mode: 0}]}",
    "configMap: {name: A_B, items: [{key: a, path: .a}, {key: b, path: .a}]}",
    """downwardAPI: {items: [{path: a, fieldRef: {fieldPath: "metadata.labels['a']"}}]}""",
    "downwardAPI: {items: [{path: a, resourceFieldRef: {containerName: b, resource: limits.cpu}}]}",
    "projected: {}",
    "projected: {sources: [{}, {secret: {name: a}}, {configMap: {name: a, items: [{key: a, path: a}]}}]}",
    "projected: {sources: [{serviceAccountToken: {path: a}}, {downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.uid}}]}}]}",
    "projected: {sources: [{clusterTrustBundle: {name: 'a:b:c', path: a}}, {clusterTrustBundle: {signerName: a.b/c, path: b, labelSelector: {}}}]}",
    "projected: {sources: [{podCertificate: {signerName: a.b/c.d, keyType: ED25519, keyPath: a, certificateChainPath: b, maxExpirationSeconds: 7862400, userAnnotations: {A.b/C: d}}}]}",
    "projected: {sources: [{podCertificate: {signerName: kubernetes.io/a, keyType: MLDSA44, credentialBundlePath: a, maxExpirationSeconds: 86400}}]}",
]


@pytest.mark.parametrize("source", VALID)
def test_valid_files(source: str) -> None:
    assert of(source, 38) == []


REJECTED = {
    "secret: {}": "secret.secretName: Required value",
    "secret: {secretName: a, defaultMode: 512}": "secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
    "secret: {secretName: a, items: [{path: a}]}": "secret.items[0].key: Required value",
    "configMap: {}": "configMap.name: Required value",
    "configMap: {name: a, defaultMode: -1}": "configMap.defaultMode: Invalid value: -1",
    "configMap: {name: a, items: [{key: a}]}": "configMap.items[0].path: Required value",
    "configMap: {name: a, items: [{key: a, path: a, mode: 512}]}": "configMap.items[0].mode: Invalid value: 512",
    "configMap: {name: a, items: [{key: a, path: /a}]}": 'configMap.items[0].path: Invalid value: "/a": must be a relative path',
    "configMap: {name: a, items: [{key: a, path: a/../b}]}": "configMap.items[0].path: Invalid value: \"a/../b\": must not contain '..'",
    "configMap: {name: a, items: [{key: a, path: ..a}]}": "configMap.items[0].path: Invalid value: \"..a\": must not start with '..'",
    "downwardAPI: {defaultMode: 512}": "downwardAPI.defaultMode: Invalid value: 512",
    "downwardAPI: {items: [{path: a}]}": "downwardAPI.items[0]: Required value: one of fieldRef and resourceFieldRef is required",
    "downwardAPI: {items: [{fieldRef: {fieldPath: metadata.name}}]}": "downwardAPI.items[0].path: Required value",
    "downwardAPI: {items: [{path: a, mode: 512, fieldRef: {fieldPath: metadata.name}}]}": "downwardAPI.items[0].mode: Invalid value: 512",
    "downwardAPI: {items: [{path: a, fieldRef: {fieldPath: status.podIP}}]}": 'downwardAPI.items[0].fieldRef.fieldPath: Unsupported value: "status.podIP"',
    "downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}, resourceFieldRef: {}}]}": 'downwardAPI.items[0]: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously',
    "downwardAPI: {items: [{path: a, resourceFieldRef: {resource: limits.cpu}}]}": "downwardAPI.items[0].resourceFieldRef.containerName: Required value",
    "downwardAPI: {items: [{path: a, resourceFieldRef: {containerName: a, resource: limits.gpu}}]}": 'downwardAPI.items[0].resourceFieldRef.resource: Unsupported value: "limits.gpu"',
    "projected: {defaultMode: 512}": "projected.defaultMode: Invalid value: 512",
    "projected: {sources: [{secret: {name: a}, configMap: {name: b}}]}": "projected.sources[0]: Forbidden: may not specify more than 1 volume type per source",
    "projected: {sources: [{secret: {name: a, items: [{key: a, path: b}]}}, {downwardAPI: {items: [{path: b, fieldRef: {fieldPath: metadata.uid}}]}}]}": 'projected.sources[1].downwardAPI.items[0].path: Invalid value: "b": conflicting duplicate paths',
    "projected: {sources: [{configMap: {}}]}": "projected.sources[0].configMap.name: Required value",
    "projected: {sources: [{serviceAccountToken: {}}]}": "projected.sources[0].serviceAccountToken.path: Required value",
    "projected: {sources: [{serviceAccountToken: {path: a, expirationSeconds: 599}}]}": "projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
    "projected: {sources: [{serviceAccountToken: {path: a, expirationSeconds: 4294967297}}]}": "projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
}  # fmt: skip


@pytest.mark.parametrize(("source", "problem"), REJECTED.items())
def test_rejected_files(source: str, problem: str) -> None:
    [only] = of(source)
    assert only.startswith(problem)


CERTIFICATE = "signerName: a.b/c, keyType: RSA3072"
SIGNER = "a.b/c"
CERTIFICATES = {
    "clusterTrustBundle: {name: a}": "clusterTrustBundle.path: Required value",
    "clusterTrustBundle: {path: a}": "clusterTrustBundle: Required value: either name or signerName must be specified",
    "clusterTrustBundle: {path: a, name: a, signerName: a.b/c}": 'clusterTrustBundle: Invalid value: {"path": "a", "name": "a", "signerName": "a.b/c"}: only one of name and signerName may be used',
    "clusterTrustBundle: {path: a, name: ':a'}": 'clusterTrustBundle.name: Invalid value: ":a": not a valid clustertrustbundlename: ClusterTrustBundle without signer name must not have ":" in its name',
    "clusterTrustBundle: {path: a, name: 'a:B'}": 'clusterTrustBundle.name: Invalid value: "a:B": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain',
    "clusterTrustBundle: {path: a, name: a, labelSelector: {}}": "clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified",
    "clusterTrustBundle: {path: a, signerName: ''}": "clusterTrustBundle.signerName: Required value",
    "clusterTrustBundle: {path: a, signerName: a.b}": 'clusterTrustBundle.signerName: Invalid value: "a.b": must be a fully qualified domain and path',
    "clusterTrustBundle: {path: a, signerName: a/b}": 'clusterTrustBundle.signerName: Invalid value: "a": should be a domain with at least two segments',
    "clusterTrustBundle: {path: a, signerName: a.B/c}": 'clusterTrustBundle.signerName: Invalid value: "a.B": validating label "B": a lowercase RFC 1123 label',
    "clusterTrustBundle: {path: a, signerName: a.b/C.D}": 'clusterTrustBundle.signerName: Invalid value: "C.D": validating label "C": a lowercase RFC 1123 subdomain',
    f"clusterTrustBundle: {{path: a, signerName: {'a.' * 127}a/b}}": "clusterTrustBundle.signerName: Too long: may not be more than 253 bytes",
    f"clusterTrustBundle: {{path: a, signerName: a.b/{'a.' * 290}a}}": "clusterTrustBundle.signerName: Too long: may not be more than 571 bytes",
    "clusterTrustBundle: {path: a, signerName: a.b/c, labelSelector: {matchLabels: {a: b c}}}": "clusterTrustBundle.labelSelector.matchLabels.a: Invalid value",
    "clusterTrustBundle: {path: a, signerName: a.b/c, user: -1}": "clusterTrustBundle.user: Invalid value: -1: must be between 0 and 2147483647, inclusive",
    "podCertificate: {keyType: RSA3072, keyPath: a}": "podCertificate.signerName: Required value",
    "podCertificate: {signerName: a.b/c, keyType: RSA, keyPath: a}": 'podCertificate.keyType: Unsupported value: "RSA"',
    f"podCertificate: {{{CERTIFICATE}}}": "podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
    f"podCertificate: {{{CERTIFICATE}, keyPath: ../a}}": "podCertificate.keyPath: Invalid value: \"../a\": must not contain '..'",
    f"podCertificate: {{{CERTIFICATE}, keyPath: a, credentialBundlePath: a}}": 'podCertificate.keyPath: Invalid value: "a": conflicting duplicate paths',
    f"podCertificate: {{{CERTIFICATE}, keyPath: a, maxExpirationSeconds: 3599}}": "podCertificate.maxExpirationSeconds: Invalid value: 3599: if provided, maxExpirationSeconds must be >= 3600",
    f"podCertificate: {{{CERTIFICATE}, keyPath: a, maxExpirationSeconds: 7862401}}": "podCertificate.maxExpirationSeconds: Invalid value: 7862401: if provided, maxExpirationSeconds must be <= 7862400",
    "podCertificate: {signerName: a.kubernetes.io/b, keyType: RSA3072, keyPath: a, maxExpirationSeconds: 86401}": "podCertificate.maxExpirationSeconds: Invalid value: 86401: if provided, maxExpirationSeconds must be <= 86400",
    f"podCertificate: {{{CERTIFICATE}, keyPath: a, userAnnotations: {{a: b}}}}": 'podCertificate.userAnnotations: Invalid value: "a": must be a domain-prefixed key',
    f"podCertificate: {{{CERTIFICATE}, keyPath: a, userAnnotations: {{a/: b}}}}": 'podCertificate.userAnnotations: Invalid value: "a/": name part must be non-empty',
    f"podCertificate: {{{CERTIFICATE}, keyPath: a, userAnnotations: {{a/b: {'c' * 262142}}}}}": "podCertificate.userAnnotations: Too long: may not be more than 262144 bytes",
}  # fmt: skip


@pytest.mark.parametrize(("source", "problem"), CERTIFICATES.items())
def test_rejected_certificates(source: str, problem: str) -> None:
    [only] = projected(source)
    assert only.startswith(problem)


@pytest.mark.parametrize("source", ["clusterTrustBundle: {}", "podCertificate: {}, secret: {name: a}"])
def test_certificates_are_ignored_before_1_37(source: str) -> None:
    assert projected(source, 36) == []
    assert projected(source, 37) != []


@pytest.mark.parametrize(
    ("source", "minor"),
    [
        ("secret: {secretName: a, defaultUser: -1}", 38),
        ("configMap: {name: a, items: [{key: a, path: a, user: 2147483648}]}", 38),
        ("projected: {sources: [{serviceAccountToken: {path: a, user: -1}}]}", 38),
        ("projected: {sources: [{serviceAccountToken: {path: /a}}]}", 30),
    ],
)
def test_rules_since_a_version(source: str, minor: int) -> None:
    assert of(source, minor - 1) == []
    assert len(of(source, minor)) == 1


def test_new_types_of_keys_are_unknown_before_1_38() -> None:
    [only] = projected("podCertificate: {signerName: a.b/c, keyType: MLDSA65, keyPath: a}", 37)
    assert only.startswith('podCertificate.keyType: Unsupported value: "MLDSA65": supported values: "ECDSAP256"')
