"""What is sent in a dry run of a change, and what can be concluded from the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpreempt.analysis.check.rollout.apply import LAST_APPLIED
from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.analysis.check.rollout.server_dry_run import (
    alters,
    changes_of,
    is_rejection,
    new_object,
    place_of,
    prerequisites,
    secret_values,
    server_problem,
)

Document = dict[str, Any]


def an(kind: str, name: str = "a", group: str = "", namespace: str = "", **fields: Any) -> Document:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": metadata, **fields}


def pod(**spec: Any) -> Document:
    return an("Pod", namespace="shop", spec=spec)


RBAC, POLICIES = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
CLAIM = an("PersistentVolumeClaim", namespace="shop")
ROLE = {"kind": "Role", "name": "a"}


@pytest.mark.parametrize(
    ("document", "other", "is_decided"),
    [
        pytest.param(pod(), an("Namespace", "shop"), True, id="its namespace"),
        pytest.param(pod(), an("Namespace", "other"), False, id="another namespace"),
        pytest.param(CLAIM, an("ResourceQuota", namespace="shop"), True, id="a quota"),
        pytest.param(CLAIM, an("ResourceQuota", namespace="other"), False, id="a quota of another namespace"),
        pytest.param(CLAIM, an("LimitRange", namespace="shop"), True, id="a LimitRange"),
        pytest.param(
            an("ClusterRole", group=RBAC), an("LimitRange", namespace="shop"), False, id="without a namespace"
        ),
        pytest.param(pod(), an("ValidatingAdmissionPolicy", group=POLICIES), True, id="a policy"),
        pytest.param(pod(), an("ServiceAccount", "default", namespace="shop"), True, id="the default account"),
        pytest.param(pod(), an("ServiceAccount", namespace="shop"), False, id="another account"),
        pytest.param(pod(serviceAccountName="a"), an("ServiceAccount", namespace="shop"), True, id="its account"),
        pytest.param(an("Job", namespace="shop"), an("ServiceAccount", "default", namespace="shop"), False, id="a Job"),
        pytest.param(pod(), an("PriorityClass", "b", "scheduling.k8s.io"), True, id="a class that may be the default"),
        pytest.param(an("PriorityClass"), an("PriorityClass", "b"), True, id="two classes"),
        pytest.param(pod(runtimeClassName="a"), an("RuntimeClass"), True, id="its runtime class"),
        pytest.param(pod(), an("RuntimeClass"), False, id="without a runtime class"),
        pytest.param(CLAIM, an("StorageClass"), True, id="a storage class"),
        pytest.param(pod(), an("StorageClass"), False, id="a pod and a storage class"),
        pytest.param(
            an("RoleBinding", namespace="shop", roleRef=ROLE), an("Role", namespace="shop"), True, id="a role"
        ),
        pytest.param(an("RoleBinding", namespace="shop", roleRef=ROLE), an("ClusterRole"), False, id="another role"),
        pytest.param(pod(), an("ConfigMap", namespace="shop"), False, id="a ConfigMap"),
    ],
)
def test_what_else_in_the_change_decides(document: Document, other: Document, is_decided: bool) -> None:
    assert prerequisites(document, [document, other]) == ([other] if is_decided else [])


def test_a_custom_resource_needs_its_definition() -> None:
    names = {"group": "example.com", "names": {"kind": "Thing"}}
    definition = an("CustomResourceDefinition", "things.example.com", spec=names)
    assert place_of(an("Thing", group="example.com"), [an("Namespace"), definition]) is definition
    assert place_of(an("Thing", group="other.com"), [definition]) is None


@pytest.mark.parametrize(
    ("status", "words", "is_rejected"),
    [
        (422, "is invalid", True),
        (400, 'strict decoding error: unknown field "a"', True),
        (400, 'admission webhook "a" does not support dry run', False),
        (403, 'pods "a" is forbidden: exceeded quota', True),
        (403, 'pods is forbidden: User "ci" cannot create resource "pods" in API group "" in the namespace "a"', False),
        (401, "Unauthorized", False),
        (401, 'admission webhook "a" denied the request: not you', True),
        (404, 'namespaces "a" not found', True),
        (404, "the server could not find the requested resource", False),
        (409, "the object has been modified", False),
        (413, "Request entity too large", True),
        (500, "Internal error occurred: failed calling webhook", False),
    ],
)
def test_only_some_errors_are_rejections(status: int, words: str, is_rejected: bool) -> None:
    assert is_rejection(status, words) is is_rejected


@pytest.mark.parametrize("applier", Applier)
def test_helm_adds_no_annotation(applier: Applier) -> None:
    created = new_object(an("ConfigMap", data={"a": "1", "b": None}), applier)
    assert created["data"] == {"a": "1"}
    assert (LAST_APPLIED in created["metadata"].get("annotations", {})) is (applier is not Applier.HELM)


def test_a_change_of_the_annotation_alone_alters_nothing() -> None:
    live = an("ConfigMap", data={"a": "1", "b": "2"})
    live["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(live)}
    same = changes_of(an("ConfigMap", data={"a": "1", "b": "2"}), live, Applier.KUBECTL, merges_lists=True)
    less = changes_of(an("ConfigMap", data={"a": "1"}), live, Applier.KUBECTL, merges_lists=True)
    assert list(same) == ["metadata"]
    assert (alters(same), alters(less), less["data"]) == (False, True, {"b": None})
    # Helm keeps what another tool applied.
    assert changes_of(an("ConfigMap", data={"a": "1"}), live, Applier.HELM, merges_lists=True) == {}


def test_the_values_of_a_secret_are_known_in_both_forms() -> None:
    secret = an("Secret", data={"a": "b3Blbg==", "b": "?"}, stringData={"c": "sesame", "d": 1})
    assert secret_values(secret) == ["b3Blbg==", "?", "sesame", "open"]
    assert secret_values(an("ConfigMap", data={"a": "open"})) == []


def test_the_server_names_a_field() -> None:
    problem = server_problem("is invalid", "spec.containers[0].resources.limits[a.b/c]")
    assert problem.path == ("spec", "containers", 0, "resources", "limits", "a.b/c")
    assert (str(problem), server_problem("is invalid", "").path) == ("is invalid", ())
