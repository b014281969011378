"""Names on the command line: in which namespace they are looked for, and what is suggested for other names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.conftest import Kpreempt


def _pod(namespace: str, name: str, owner: str = "") -> dict[str, object]:
    metadata: dict[str, object] = {"name": name, "namespace": namespace, "labels": {"app": owner or name}}
    if owner:
        metadata["labels"] = {"app": owner, "pod-template-hash": "7f9c"}
        set_name = f"{owner}-7f9c"
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set_name, "uid": "1", "controller": True}
        metadata["ownerReferences"] = [reference]
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def _service(name: str, selector: dict[str, str]) -> dict[str, object]:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector}}


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-a"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
OBJECTS = [
    NODE,
    _pod("shop", "api-7f9c-x2x4z", "api"),
    _pod("shop", "api-7f9c-b8k2p", "api"),
    _pod("shop", "bare"),
    _pod("batch", "both"),
    _pod("shop", "both"),
    _pod("default", "here"),
    _pod("shop", "here"),
    _service("api", {"app": "api"}),
    _service("none", {"app": "nothing"}),
]


@pytest.fixture
def dump(tmp_path: Path) -> tuple[str, str]:
    path = tmp_path / "dump.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    return "--snapshot", str(path)


@pytest.mark.parametrize(
    ("arguments", "namespace"),
    [
        pytest.param(["bare"], "shop", id="the only namespace that has it"),
        pytest.param(["pod/bare"], "shop", id="with its kind"),
        pytest.param(["pod", "bare"], "shop", id="in two words"),
        pytest.param(["here"], "default", id="the context's namespace comes first"),
        pytest.param(["here", "-n", "shop"], "shop", id="another one, if given"),
        pytest.param(["shop/here"], "shop", id="another one, in the name"),
        pytest.param(["deploy/api"], "shop", id="a workload that only its pods show"),
    ],
)
def test_a_name_is_looked_for_in_all_namespaces(
    kpreempt: Kpreempt, dump: tuple[str, str], arguments: list[str], namespace: str
) -> None:
    verdict = json.loads(kpreempt("explain", *arguments, *dump, "-o", "json").stdout)
    assert verdict["pod"]["namespace"] == namespace


@pytest.mark.parametrize("arguments", [["bare"], ["pod/bare"], ["shop/bare"]])
def test_all_commands_find_the_same_pod(kpreempt: Kpreempt, dump: tuple[str, str], arguments: list[str]) -> None:
    compared = kpreempt("compare", *arguments, "--algorithms", "kube-1.33,kube-1.36", *dump).stdout
    assert compared.startswith("shop/bare")
    assert kpreempt("who-evicted", *arguments, *dump).stdout.startswith("shop/bare")


ACCEPTED = "expected a pod or a workload (pod, deploy, sts, ds, rs, rc, job, cj)"


@pytest.mark.parametrize(
    ("arguments", "problem", "hint"),
    [
        pytest.param(
            ["svc/api"],
            "Service shop/api itself has no pods; it selects 2 pods of Deployment shop/api",
            "deploy/api -n shop",
            id="a Service",
        ),
        pytest.param(["svc", "api", "-n", "shop"], "it selects 2 pods", "deploy/api", id="a Service in a namespace"),
        pytest.param(["svc/none"], "Service shop/none selects no pod", "", id="a Service without pods"),
        pytest.param(["service/apo"], 'Service "apo" not found', "svc/api", id="an unknown Service"),
        pytest.param(["node/node-a"], f'"node/node-a" is a Node; {ACCEPTED}', "kpreempt drain node-a", id="a node"),
        pytest.param(["pdb/api"], "is a PodDisruptionBudget", "kpreempt budgets", id="a budget"),
        pytest.param(["ns/shop"], "is a Namespace", "kpreempt pending -n shop", id="a namespace"),
        pytest.param(["pvc/data"], "is a PersistentVolumeClaim", "a pod that uses it", id="a claim"),
        pytest.param(["workload/api"], "is a Workload of Kueue", "deploy/api -n shop", id="a kind of Kueue's"),
        pytest.param(["workload/x"], "is a Workload of Kueue", "--algorithm kueue-0.19", id="only of Kueue's"),
        pytest.param(["bare", "here"], '"bare" is a pod, and "here" is one name too many', "bare", id="two pods"),
        pytest.param(["foo/bar"], '"foo" is neither a namespace with pods nor a kind', "", id="an unknown word"),
        pytest.param(
            ["depoy/api"], '"depoy" is neither a namespace', "deploy/api, deploy/api -n shop", id="a misspelled kind"
        ),
        pytest.param(["shopp/bare"], '"shopp" is neither a namespace', "shop/bare", id="a misspelled namespace"),
        pytest.param(["sts/api"], 'StatefulSet "api"', "deploy/api -n shop", id="the wrong kind of workload"),
        pytest.param(["deploy/apo"], 'Deployment "apo"', "deploy/api -n shop", id="a misspelled workload"),
        pytest.param(["api"], 'pod "api" not found', "deploy/api -n shop", id="a workload without its kind"),
        pytest.param(["bear"], 'pod "bear" not found', "shop/bare", id="a misspelled pod"),
        pytest.param(
            ["bear", "-n", "shop"], 'pod "bear" in namespace "shop" not found', "bare", id="one in a namespace"
        ),
        pytest.param(["bare", "-n", "batch"], "not found", "it is in shop: -n shop", id="another namespace"),
        pytest.param(["both"], 'pod "both" is in several namespaces: batch, shop', "-n batch", id="several pods"),
        pytest.param(["shop/bare", "-n", "batch"], "two namespaces given: shop and -n batch", "", id="two namespaces"),
    ],
)
def test_another_name_is_explained(
    kpreempt: Kpreempt, dump: tuple[str, str], arguments: list[str], problem: str, hint: str
) -> None:
    run = kpreempt("explain", *arguments, *dump)
    assert (run.returncode in (2, 3), run.stdout) == (True, "")
    message, _, found = run.complaint.partition("\nhint: ")
    assert problem in message
    assert hint in found
    assert "\n" not in message.rstrip("\n")


@pytest.mark.parametrize("command", ["who-evicted", "compare"])
def test_other_commands_explain_it_too(kpreempt: Kpreempt, dump: tuple[str, str], command: str) -> None:
    more = ["--algorithms", "kube-1.33,kube-1.36"] if command == "compare" else []
    run = kpreempt(command, "svc/api", *dump, *more)
    assert "it selects 2 pods of Deployment shop/api" in run.complaint


@pytest.mark.parametrize("namespace", [None, "shop"])
def test_history_finds_the_namespace(kpreempt: Kpreempt, namespace: str | None) -> None:
    arguments = ["-n", namespace] if namespace else []
    run = kpreempt("history", "api", *arguments, "--snapshot", "fixtures/recording", "-o", "json")
    assert json.loads(run.stdout)["subject"] == "Pod shop/api"


DRAIN = ("--snapshot", "fixtures/drain/cluster.yaml", "--ignore-daemonsets")


def test_a_node_to_drain_may_have_its_kind(kpreempt: Kpreempt) -> None:
    plain, with_kind = (json.loads(kpreempt("drain", name, *DRAIN, "-o", "json").stdout) for name in ("n1", "node/n1"))
    assert with_kind["drained"] == plain["drained"] != []


def test_the_drain_of_a_pod_is_one_of_its_node(kpreempt: Kpreempt, dump: tuple[str, str]) -> None:
    run = kpreempt("drain", "node-x", *dump)
    assert run.complaint == 'nodes "node-x" not found\nhint: node-a\n'
    run = kpreempt("drain", "web-1", "--snapshot", "fixtures/on-call/cluster.yaml")
    assert run.complaint == 'nodes "web-1" not found\nhint: it is a pod on node-a: kpreempt drain node-a\n'


@pytest.mark.parametrize(
    ("target", "result"),
    [
        pytest.param("pod/bare", "pod/bare: removed", id="the only namespace that has it"),
        pytest.param("bare", "bare: removed", id="without its kind"),
        pytest.param("pod/both", 'pod "both" is in several namespaces: batch, shop', id="several namespaces"),
        pytest.param("pod/nobody", 'pod "default/nobody" not found', id="no such pod"),
    ],
)
def test_an_object_to_remove_may_be_in_any_namespace(
    kpreempt: Kpreempt, dump: tuple[str, str], target: str, result: str
) -> None:
    run = kpreempt("pending", "--without", target, *dump)
    assert result in run.stdout + run.stderr
