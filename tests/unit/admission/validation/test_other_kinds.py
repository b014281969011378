# ruff: noqa: E501 - tables of manifests read better in rows
"""What is rejected of kinds whose validation is not modeled: missing fields, unknown values, names and labels."""

from __future__ import annotations

import pytest

from kpreempt.admission.schema import decoded
from kpreempt.admission.validation import Server, problems_of
from kpreempt.snapshot.documents import parse_document


def found(version: str, kind: str, rest: str, minor: int = 36) -> list[str]:
    text = f"apiVersion: {version}\nkind: {kind}\n{rest}"
    document, problems = decoded(parse_document(text, "test"), minor)
    assert problems == []
    return [str(each) for each in problems_of(document, None, Server(minor))]


PATH = "metadata: {name: a}\nspec: {rules: [{http: {paths: [%s]}}]}"
BACKEND = "backend: {service: {name: a, port: {number: 80}}}"
ROLE_BINDING = "metadata: {name: 'system:a'}\nroleRef: {kind: ClusterRole, name: a%s}\nsubjects: [%s]"
VOLUME = "metadata: {name: a}\nspec: {accessModes: [%s], iscsi: {iqn: a, targetPortal: b}, persistentVolumeReclaimPolicy: ''}"
WEBHOOK = "metadata: {name: a}\nwebhooks: [{name: a.b.c, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {}, rules: [{operations: [CREATE], scope: %s}]}]"
REJECTED: dict[str, tuple[str, str, str, list[str]]] = {
    "a missing type of path": ("networking.k8s.io/v1", "Ingress", PATH % f"{{{BACKEND}}}", ["spec.rules[0].http.paths[0].pathType: Required value"]),
    "an empty type of path": ("networking.k8s.io/v1", "Ingress", PATH % f"{{pathType: '', {BACKEND}}}", ["spec.rules[0].http.paths[0].pathType: Required value"]),
    "an unknown type of path": ("networking.k8s.io/v1", "Ingress", PATH % f"{{pathType: prefix, {BACKEND}}}", ['spec.rules[0].http.paths[0].pathType: Unsupported value: "prefix": supported values: "Exact", "ImplementationSpecific", "Prefix"']),
    "no paths": ("networking.k8s.io/v1", "Ingress", PATH % "", ["spec.rules[0].http.paths: Required value"]),
    "a policy type": ("networking.k8s.io/v1", "NetworkPolicy", "metadata: {name: a}\nspec: {policyTypes: [Ingress, egress]}", ['spec.policyTypes[1]: Unsupported value: "egress": supported values: "Egress", "Ingress"']),
    "a rule without verbs": ("rbac.authorization.k8s.io/v1", "ClusterRole", "metadata: {name: a}\nrules: [{apiGroups: ['']}]", ["rules[0].verbs: Required value"]),
    "a subject without kind": ("rbac.authorization.k8s.io/v1", "RoleBinding", ROLE_BINDING % ("", "{name: a}"), ["subjects[0].kind: Required value"]),
    "no role": ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "metadata: {name: a}", ["roleRef: Required value"]),
    "a name that is a path": ("rbac.authorization.k8s.io/v1", "Role", "metadata: {name: a/b}", ['metadata.name: Invalid value: "a/b": may not contain \'/\'']),
    "a name of the directory": ("rbac.authorization.k8s.io/v1", "Role", "metadata: {name: ..}", ['metadata.name: Invalid value: "..": may not be \'..\'']),
    "an access mode": ("v1", "PersistentVolume", VOLUME % "RWO", ['spec.accessModes[0]: Unsupported value: "RWO": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"']),
    "a handler": ("node.k8s.io/v1", "RuntimeClass", "metadata: {name: a}", ["handler: Required value"]),
    "the key of a taint": ("v1", "Node", "metadata: {name: a}\nspec: {taints: [{effect: NoSchedule}]}", ["spec.taints[0].key: Required value"]),
    "a finalizer without domain": ("v1", "ConfigMap", "metadata: {name: a, finalizers: [b]}", ['metadata.finalizers[0]: Invalid value: "b": name is neither a standard finalizer name nor is it fully qualified']),
    "no name": ("v1", "ConfigMap", "metadata: {labels: {a: b}}", ["metadata.name: Required value: name or generateName is required"]),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_missing_fields_unknown_values_and_names_are_rejected(name: str) -> None:
    version, kind, rest, expected = REJECTED[name]
    assert found(version, kind, rest) == expected


@pytest.mark.parametrize(
    ("version", "kind", "rest"),
    [
        pytest.param("networking.k8s.io/v1", "Ingress", PATH % f"{{pathType: Prefix, {BACKEND}}}", id="an Ingress"),
        pytest.param("networking.k8s.io/v1", "NetworkPolicy", "metadata: {name: a}\nspec: {}", id="no pod selector"),
        pytest.param("rbac.authorization.k8s.io/v1", "RoleBinding", ROLE_BINDING % ("", "{kind: User, name: a}"), id="a role without group, and a name with a colon"),
        pytest.param("v1", "PersistentVolume", VOLUME % "ReadWriteOnce", id="no unit, and an empty policy that is defaulted"),
        pytest.param("node.k8s.io/v1", "RuntimeClass", "metadata: {name: a, finalizers: [b]}\nhandler: a", id="a finalizer without domain"),
        pytest.param("v1", "Node", "metadata: {name: a}\nstatus: {addresses: [{}]}", id="a status"),
        pytest.param("events.k8s.io/v1", "Event", "metadata: {name: A_}", id="a kind that is not known here"),
        pytest.param("example.com/v1", "Ingress", "spec: {rules: [{http: {}}]}", id="a custom resource"),
    ],
)  # fmt: skip
def test_what_the_api_server_takes_is_taken(version: str, kind: str, rest: str) -> None:
    assert found(version, kind, rest) == []


def test_the_name_is_not_checked_on_updates() -> None:
    given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "A_", "labels": {"a": "?"}}}
    assert [each.path for each in problems_of(given, given, Server(36))] == [("metadata", "labels", "a")]


@pytest.mark.parametrize(("minor", "problems"), [(34, 0), (35, 1), (99, 1)])
def test_enums_are_those_of_the_version(minor: int, problems: int) -> None:
    version, kind = "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"
    assert len(found(version, kind, WEBHOOK % "Pods", minor)) == problems
    assert found(version, kind, WEBHOOK % "Namespaced", minor) == []


@pytest.mark.parametrize(("minor", "problems"), [(35, []), (36, ["spec.policyName: Required value"])])
def test_required_fields_are_those_of_the_version(minor: int, problems: list[str]) -> None:
    rest = "metadata: {name: a}\nspec: {validationActions: [Deny]}"
    assert found("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", rest, minor) == problems
