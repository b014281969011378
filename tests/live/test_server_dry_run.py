"""Dry runs on a real API server: it decides as about ``kubectl apply --dry-run=server``, and stores nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt.analysis.check.rollout.records import ApplyOptions, ManifestDocument, ServerDecisions
from kpreempt.analysis.document_reader import describe
from kpreempt.library.server_dry_run import dry_run
from kpreempt.snapshot.live.connection import connect
from kpreempt.snapshot.live.flags import ConnectionFlags
from tests.live.plane import ControlPlane, Object
from tests.live.plugin import needs_kubectl
from tests.live.rights import ROLES, bind
from tests.parity.reference import CHECKOUT

pytestmark = pytest.mark.live

SPACE = "dry-run"


def labeled(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": SPACE}, **fields}


def deployment(name: str = "web", app: str = "web", **container: Any) -> Object:
    template = {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "web:1", "ports": [{"containerPort": 80}], **container}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": app}}, "template": template}
    return labeled("Deployment", name, "apps/v1", spec=spec)


def pod(**spec: Any) -> Object:
    return labeled("Pod", "single", spec={"containers": [{"name": "main", "image": "web:1"}], **spec})


SERVICE = labeled("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
SECRET = labeled("Secret", "login", stringData={"password": "swordfish-swordfish"})
SETTINGS = labeled("ConfigMap", "settings", data={"a": "1", "b": "2"})
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 3}}}
                        },
                    }
                },
            }
        ],
    },
}


def thing(size: int) -> Object:
    return labeled("Thing", "one", "example.com/v1", spec={"size": size})


EXISTING = (deployment(), SERVICE, SECRET, SETTINGS, thing(1))
CHANGES = {
    "all unchanged": (deployment(), SERVICE, SETTINGS, thing(1)),
    "a new image": (deployment(image="web:2"),),
    "a removed field": (deployment(ports=[]),),
    "a removed key": (labeled("ConfigMap", "settings", data={"b": "3"}),),
    "an immutable field": (deployment(app="other"),),
    "an invalid new object": (deployment("new", resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),),
    "an unknown field": (deployment("new", resuorces={}),),
    "a wrong type": (labeled("ConfigMap", "new", data={"a": 1}),),
    "a new secret": (labeled("Secret", "new", stringData={"a": "swordfish-swordfish"}),),
    "an old secret": (labeled("Secret", "login", stringData={"password": "other-other-other"}),),
    "a pod": (pod(),),
    "a pod with an unknown class": (pod(priorityClassName="unknown"),),
    "a service with another port": ({**SERVICE, "spec": {**SERVICE["spec"], "ports": [{"port": 81}]}},),
    "a headless service": ({**SERVICE, "spec": {**SERVICE["spec"], "clusterIP": "None"}},),
    "a custom resource": (thing(2),),
    "an invalid custom resource": (thing(4),),
    "too large an annotation": (labeled("ConfigMap", "new", data={"a": "x" * 270_000}),),
    "another namespace": ({**SETTINGS, "metadata": {"name": "settings", "namespace": "missing"}},),
    "nulls": ({**SETTINGS, "data": {"a": "1", "b": None}, "metadata": {**SETTINGS["metadata"], "labels": None}},),
}


def kubectl(plane: ControlPlane, folder: Path, *documents: Object, dry_run: str = "none") -> str:
    """Apply the documents; return why not."""
    path = folder / "change.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    command = ["kubectl", "--kubeconfig", plane.kubeconfig, "apply", "-f", path, f"--dry-run={dry_run}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.stderr if ran.returncode else ""


def decided(plane: ControlPlane, *documents: Object, user: str = "") -> ServerDecisions:
    live = connect(ConnectionFlags(kubeconfig=str(plane.kubeconfig), as_user=user), os.environ)
    return dry_run(live, [ManifestDocument(each) for each in documents], ApplyOptions(namespace="default"))


@pytest.fixture(scope="module")
def filled(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    needs_kubectl()
    folder = tmp_path_factory.mktemp("objects")
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
    plane.request("POST", f"/api/v1/namespaces/{SPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    assert kubectl(plane, folder, DEFINITION) == ""
    condition = "--for=condition=Established"
    wait = ["kubectl", "--kubeconfig", plane.kubeconfig, "wait", condition, "crd/things.example.com"]
    subprocess.run(wait, check=True, capture_output=True)
    assert kubectl(plane, folder, *EXISTING) == ""
    for name in ("cluster-role", "dry-run-cluster-role"):
        plane.request("POST", ROLES, yaml.safe_load((CHECKOUT / "deploy" / f"{name}.yaml").read_text()))
    bind(plane, "kpreempt", "reader")
    bind(plane, "kpreempt-dry-run", "pipeline")
    yield plane
    plane.request("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{DEFINITION['metadata']['name']}")
    plane.request("DELETE", f"/api/v1/namespaces/{SPACE}")


def stored(plane: ControlPlane) -> dict[str, list[tuple[str, str]]]:
    """The names and versions of all objects that the changes could create or change."""
    paths = [f"/api/v1/namespaces/{SPACE}/{each}" for each in ("configmaps", "secrets", "services", "pods")]
    paths += [f"/apis/apps/v1/namespaces/{SPACE}/deployments", f"/apis/example.com/v1/namespaces/{SPACE}/things"]
    metadata = {path: [each["metadata"] for each in plane.request("GET", path)["items"]] for path in paths}
    return {path: [(each["name"], each["resourceVersion"]) for each in found] for path, found in metadata.items()}


@pytest.mark.parametrize("name", CHANGES)
def test_the_decision_is_that_about_kubectl_apply(filled: ControlPlane, tmp_path: Path, name: str) -> None:
    change = CHANGES[name]
    before = stored(filled)
    refusal = kubectl(filled, tmp_path, *change, dry_run="server")
    decisions = decided(filled, *change)
    assert stored(filled) == before
    assert decisions.assumptions == []
    assert decisions.accepted == (set() if refusal else {describe(each) for each in change})
    for problem in decisions.rejections.values():
        # kubectl leaves out the group, and writes several causes as a list.
        words = re.sub(r"^(\w+)\.\S+ ", r"\1 ", str(problem)).replace("[", "").replace("]", "").split()
        assert set(words) <= set(refusal.replace("[", "").replace("]", "").split())


def test_the_shipped_role_is_enough(filled: ControlPlane) -> None:
    change = CHANGES["a new image"] + CHANGES["a new secret"]
    assert decided(filled, *change, user="pipeline").accepted == {describe(each) for each in change}
    refused = decided(filled, *change, user="reader")
    assert (refused.accepted, len(refused.assumptions)) == (frozenset(), len(change))
    assert all("not allowed (403)" in each.message for each in refused.assumptions)


def test_a_new_namespace_is_not_there(filled: ControlPlane) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}}
    settings = {**SETTINGS, "metadata": {"name": "settings", "namespace": "fresh"}}
    decisions = decided(filled, namespace, settings)
    assert (decisions.accepted, [each.subject for each in decisions.assumptions]) == (
        {"Namespace fresh"},
        ["ConfigMap fresh/settings"],
    )


def test_a_secret_stays_in_the_server(filled: ControlPlane) -> None:
    bad = labeled("Secret", "new", stringData={"swordfish swordfish": "swordfish-swordfish"})
    (problem,) = decided(filled, bad).rejections.values()
    assert "swordfish-swordfish" not in json.dumps([str(problem)])
