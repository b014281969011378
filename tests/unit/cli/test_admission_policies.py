"""A change is checked against the admission policies of a dump, a snapshot, or a live cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fake_api import Answer, FakeApi, FakeCluster, ReceivedRequest, good, objects_by_kind, refused

Document = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
CLUSTER = f"""
apiVersion: v1
kind: Node
metadata: {{name: n1, labels: {{kubernetes.io/hostname: n1}}}}
status: {{allocatable: {{cpu: "8", memory: 64Gi, pods: "110"}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: shop, labels: {{environment: production}}}}
---
apiVersion: {GROUP}/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: replicas}}
spec:
  paramKind: {{apiVersion: v1, kind: ConfigMap}}
  matchConstraints:
    resourceRules: [{{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}}]
  validations:
  - expression: object.spec.replicas <= int(params.data.max)
    messageExpression: "'at most ' + params.data.max + ' replicas'"
---
apiVersion: {GROUP}/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: in-production}}
spec:
  policyName: replicas
  validationActions: [Deny]
  paramRef: {{name: limits, namespace: rules, parameterNotFoundAction: Deny}}
  matchResources: {{namespaceSelector: {{matchLabels: {{environment: production}}}}}}
---
apiVersion: {GROUP}/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: images}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]
  validations:
  - expression: object.spec.containers.all(each, each.image.startsWith('registry.example/'))
    message: images must be from registry.example
---
apiVersion: {GROUP}/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: everywhere}}
spec: {{policyName: images, validationActions: [Deny]}}
"""
PARAMS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "limits", "namespace": "rules"},
    "data": {"max": "2"},
}
CHANGE = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: "{image}"}}]}}
"""
OURS, OTHER = "registry.example/web:1", "docker.io/web:1"
NONE = [option for kind in ("pdb", "pc", "quota", "po", "Deployment") for option in ("--assume-none", kind)]
TOO_MANY = "ValidatingAdmissionPolicy 'replicas' with binding 'in-production' denied request: at most 2 replicas"
FOREIGN = (
    "its pods are rejected: ValidatingAdmissionPolicy 'images' with binding 'everywhere' denied request: "
    "images must be from registry.example"
)

Findings = list[tuple[str, str]]


def documents_of(text: str = CLUSTER) -> list[Document]:
    return [PARAMS, *yaml.safe_load_all(text)]


@pytest.fixture
def check(kpreempt: Callable[..., Any], tmp_path: Path) -> Callable[..., tuple[int, Findings]]:
    """Check the change against a cluster; return the exit code, and rules and details of the findings."""

    def run(*arguments: str, replicas: int = 2, image: str = OURS) -> tuple[int, Findings]:
        (tmp_path / "change.yaml").write_text(CHANGE.format(replicas=replicas, image=image))
        now = ("--now", "2026-11-21T03:12:00Z")
        done = kpreempt("check", "-f", str(tmp_path / "change.yaml"), *now, *arguments, "-o", "json")
        return done.returncode, [(each["rule"], each["detail"]) for each in json.loads(done.stdout)["findings"]]

    return run


@pytest.mark.parametrize(
    ("replicas", "image", "code", "findings"),
    [
        (2, OURS, 0, []),
        (3, OURS, 1, [("apply-rejected", TOO_MANY)]),
        (2, OTHER, 1, [("apply-rejected", FOREIGN)]),
        (3, OTHER, 1, [("apply-rejected", TOO_MANY)]),
    ],
)
def test_a_denial_fails_the_check(
    check: Callable[..., Any], tmp_path: Path, replicas: int, image: str, code: int, findings: Findings
) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": documents_of()}))
    found = check("--snapshot", str(tmp_path / "cluster.json"), *NONE, replicas=replicas, image=image)
    assert found == (code, findings)


WHO = "object.spec.replicas <= 2 || request.userInfo.username == 'me'"


def test_what_is_not_evaluated_fails_the_check_if_it_matters(check: Callable[..., Any], tmp_path: Path) -> None:
    documents = documents_of(CLUSTER.replace("object.spec.replicas <= int(params.data.max)", WHO))
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": documents}))
    snapshot = ("--snapshot", str(tmp_path / "cluster.json"), *NONE)
    assert check(*snapshot) == (0, [])
    code, [(rule, detail)] = check(*snapshot, replicas=3)
    assert (code, rule) == (1, "unmodeled-input")
    assert detail.endswith("is not evaluated (request.userInfo is unknown), and may reject: Deployment shop/web")


def test_a_snapshot_keeps_policies_but_no_parameters(
    kpreempt: Callable[..., Any], check: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": documents_of()}))
    kept = str(tmp_path / "kept.json")
    assert kpreempt("snapshot", "--snapshot", str(tmp_path / "cluster.json"), "--to", kept).returncode == 0
    assert "limits" in Path(kept).read_text() and '"max":"2"' not in Path(kept).read_text()
    assert ("apply-rejected", FOREIGN) in check("--snapshot", kept, *NONE, image=OTHER)[1]
    details = [detail for rule, detail in check("--snapshot", kept, *NONE, replicas=3)[1] if rule == "unmodeled-input"]
    assert [each for each in details if "its parameters (ConfigMap) were not read" in each]


@pytest.mark.parametrize("may_read", [True, False])
def test_parameters_are_read_from_a_live_cluster(
    check: Callable[..., Any], cluster: FakeCluster, server: FakeApi, *, may_read: bool
) -> None:
    cluster.objects = {**cluster.objects, **objects_by_kind(documents_of())}
    path = "/api/v1/namespaces/rules/configmaps/limits"
    resources = [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["get"]}]

    def special(request: ReceivedRequest) -> Answer | None:
        if request.path == "/api/v1":
            return good({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources})
        if request.path == path:
            return good(PARAMS) if may_read else refused(403, "no")
        return None

    cluster.special = special
    _, findings = check("--server", server.url, replicas=3)
    assert [each.path for each in server.requested].count(path) == 1
    assert (("apply-rejected", TOO_MANY) in findings) == may_read
    unread = [each for _, each in findings if "its parameters (ConfigMap) were not read" in each]
    assert bool(unread) != may_read
