"""A real API server as a source: the same results as from its dump, with the shipped permissions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt.cli.process import run
from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.live import listing as paging
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import connect
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.snapshot.live.listing import CUSTOM, api_versions_of, path_of
from kpreempt.snapshot.live.lists import LiveSnapshot, read_cluster
from kpreempt.snapshot.load import load_snapshot
from tests.live import cluster
from tests.live.plane import VERSION, ControlPlane, Object, RefusedError, program
from tests.live.rights import ROLES, bind
from tests.parity.reference import CHECKOUT

pytestmark = pytest.mark.live

DEMO = CHECKOUT / "fixtures" / "demo"
NOW = "2026-11-21T03:12:00Z"

# From an API that is off by default.
UNSERVED = ("DeviceTaintRule",)


@pytest.fixture(scope="module")
def guarded() -> Iterator[ControlPlane]:
    """A separate control plane with the example cluster; ``reader`` has the shipped role."""
    with ControlPlane(program()) as plane:
        lists = yaml.safe_load_all((DEMO / "cluster.yaml").read_text())
        fill(plane, [item for each in lists for item in each.get("items", [each])])
        role = yaml.safe_load((CHECKOUT / "deploy" / "cluster-role.yaml").read_text())
        plane.request("POST", ROLES, role)
        bind(plane, "kpreempt", "reader")
        some = {**role, "metadata": {"name": "some"}}
        some["rules"] = [{"apiGroups": [""], "resources": ["pods", "nodes", "namespaces"], "verbs": ["list"]}]
        plane.request("POST", ROLES, some)
        bind(plane, "some", "half")
        yield plane


def fill(plane: ControlPlane, documents: list[Object]) -> None:
    """Create the objects with their statuses; the scheduler has nothing to do with them."""
    order = ["Namespace", "PriorityClass", "Node", *KINDS]
    for document in sorted(documents, key=lambda each: order.index(each["kind"])):
        if document["kind"] == "Pod" and "nodeName" not in document["spec"]:
            continue
        status, metadata = document.get("status"), document["metadata"]
        for key in ("uid", "resourceVersion", "creationTimestamp"):
            metadata.pop(key, None)
        path = path_of(KINDS[document["kind"]], document["apiVersion"])
        if "namespace" in metadata:
            group, _, plural = path.rpartition("/")
            path = f"{group}/namespaces/{metadata['namespace']}/{plural}"
        try:
            plane.request("POST", path, cluster.completed(document))
        except RefusedError as refused:
            # A new API server has some objects itself.
            assert " 409 " in str(refused)
        if status and document["kind"] in ("Pod", "PodDisruptionBudget"):
            plane.request("PATCH", f"{path}/{metadata['name']}/status", {"status": status})


def dumped(plane: ControlPlane) -> Object:
    """All objects of the kinds that are read, as ``kubectl get -o json`` prints them."""
    items: list[Object] = []
    for kind in KINDS.values():
        if kind.name in (*CUSTOM, *UNSERVED):
            continue
        answer = plane.request("GET", path_of(kind, api_versions_of(kind)[0]))
        items += [{"apiVersion": answer["apiVersion"], "kind": kind.name, **item} for item in answer["items"]]
    return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}


def read(plane: ControlPlane, **flags: Any) -> LiveSnapshot:
    api = Api(connect(ConnectionFlags(kubeconfig=str(plane.kubeconfig), **flags), os.environ))
    try:
        return read_cluster(api, taken_at=datetime.now(UTC))
    finally:
        api.close()


def explained(folder: Path, *options: str) -> dict[str, Any]:
    """The verdict on the pod of the example."""
    answer = folder / "verdict.json"
    code = run(["explain", "-f", str(DEMO / "api.yaml"), "--now", NOW, "-o", f"json={answer}", *options])
    assert code == 0
    verdict: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    for key in ("version", "takenAt", "ageSeconds", "skipped"):
        verdict["cluster"].pop(key, None)
    return verdict


def test_the_answer_is_that_of_the_dump(guarded: ControlPlane, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(dumped(guarded)), encoding="utf-8")
    live = explained(tmp_path, "--kubeconfig", str(guarded.kubeconfig))
    assumption, *others = (of_dump := explained(tmp_path, "--snapshot", str(dump))).pop("assumptions")
    # kubectl's list does not contain the server's version.
    assert (assumption["field"], assumption["kind"], others) == ("version", "Informational", [])
    assert live == of_dump
    assert live["nominatedNodes"]


def test_all_kinds_are_read_at_one_version_and_nothing_is_assumed(guarded: ControlPlane) -> None:
    reading = read(guarded)
    assert reading.assumptions == []
    assert reading.cluster.version.startswith(f"v{VERSION}.")


def test_small_pages_make_the_same_cluster(guarded: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(guarded).cluster
    monkeypatch.setattr(paging, "PAGE_SIZE", 3)
    assert all(getattr(read(guarded).cluster, kind.field) == getattr(whole, kind.field) for kind in KINDS.values())


def test_what_changes_while_it_is_read_is_not_in_it(guarded: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(guarded).cluster
    monkeypatch.setattr(paging, "PAGE_SIZE", 10)
    turn = paging.Listing.next_page
    victim = before.pods[-1]
    path = f"/api/v1/namespaces/{victim.metadata.namespace}/pods/{victim.metadata.name}"

    def meddling(listing: paging.Listing, api: Api) -> paging.Page:
        page = turn(listing, api)
        if listing.kind.name == "Pod" and page.begins:
            guarded.request("DELETE", f"{path}?gracePeriodSeconds=0")
            guarded.request("POST", cluster.RESOURCES["Node"], {"metadata": {"name": "late"}})
        return page

    monkeypatch.setattr(paging.Listing, "next_page", meddling)
    during = read(guarded)
    monkeypatch.undo()
    guarded.request("DELETE", f"{cluster.RESOURCES['Node']}/late")
    assert [pod.key for pod in during.cluster.pods] == [pod.key for pod in before.pods]
    assert [node.metadata.name for node in during.cluster.nodes] == [node.metadata.name for node in before.nodes]
    assert during.assumptions == []
    assert [pod.key for pod in read(guarded).cluster.pods] == [pod.key for pod in before.pods[:-1]]


def test_the_shipped_role_is_enough(guarded: ControlPlane) -> None:
    reading = read(guarded, as_user="reader")
    assert reading.assumptions == []
    assert reading.cluster.pods == read(guarded).cluster.pods


def test_kinds_without_permission_are_assumptions(guarded: ControlPlane) -> None:
    reading = read(guarded, as_user="half")
    # Events and the status of Cluster Autoscaler are only read on request, and Volcano is not installed.
    allowed = {"Pod", "Node", "Namespace", "Event", "ConfigMap", *CUSTOM, *UNSERVED}
    assert {kind for kind, why in reading.cluster.unread.items() if why.status == 403} == set(KINDS) - allowed


def test_without_permission_there_is_one_message(guarded: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--kubeconfig", str(guarded.kubeconfig), "--as", "nobody", "--as-group", "idle"]
    assert run(["explain", "-f", str(DEMO / "api.yaml"), *options]) == 3
    message, hint = capsys.readouterr().err.splitlines()
    assert 'not allowed (403): pods is forbidden: User "nobody" cannot list resource' in message
    assert "deploy/cluster-role.yaml" in hint


def test_the_reader_can_change_nothing(guarded: ControlPlane) -> None:
    review = {"spec": {"namespace": "shop"}}
    rights = guarded.request(
        "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review, headers={"Impersonate-User": "reader"}
    )
    verbs = {verb for rule in rights["status"]["resourceRules"] for verb in rule["verbs"]}
    assert verbs <= {"list", "create"}


def test_kubectl_writes_a_dump_that_says_the_same(guarded: ControlPlane, tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    wanted = ",".join(("pods", "nodes", "pdb", "priorityclasses", "namespaces"))
    command = [kubectl, "--kubeconfig", guarded.kubeconfig, "get", wanted, "-A", "-o", "json"]
    dump = tmp_path / "dump.json"
    dump.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    dumped, live = load_snapshot([str(dump)]).cluster, read(guarded).cluster
    assert dumped.pods == live.pods
    assert dumped.nodes == live.nodes
    assert dumped.pod_disruption_budgets == live.pod_disruption_budgets
