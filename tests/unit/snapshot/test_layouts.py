"""Dumps whose objects state no kind are known by their layout, and nothing else without a kind is ignored."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot, KindState
from kpreempt.model.quantity import quantity
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.load import load_snapshot

Document = dict[str, Any]

NODE: Document = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2", "pods": "110"}}}
POD: Document = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"nodeName": "n1", "containers": []}}
BUDGET: Document = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"minAvailable": 1}}
SERVED = {"name": "web", "namespace": "shop", "uid": "1"}


def write(folder: Path, files: dict[str, object]) -> str:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(folder)


def names(cluster: ClusterSnapshot) -> list[str]:
    kinds = ("nodes", "pods", "pod_disruption_budgets", "priority_classes")
    return [each.metadata.name for kind in kinds for each in getattr(cluster, kind)]


LAYOUTS: dict[str, tuple[dict[str, object], list[str], str]] = {
    "an Insights archive": (
        {
            "config/alerts.json": [{"name": "Watchdog"}],
            "config/apiserver.json": {"metadata": {"name": "cluster"}, "spec": {}},
            "config/node/n1.json": NODE,
            "config/pod/shop/web.json": POD,
            "config/pdbs/shop/web.json": BUDGET,
            "config/version.json": {"metadata": {"name": "version"}, "status": {"desired": {"version": "4.20.3"}}},
            "events/shop.json": {"items": [{"namespace": "shop", "reason": "Killing"}]},
        },
        ["n1", "web", "web"],
        "v1.33",
    ),
    "a support bundle of lists": (
        {
            "cluster-info/cluster_version.json": {"info": {"gitVersion": "v1.33.4+k3s1"}, "string": "v1.33.4+k3s1"},
            "cluster-resources/nodes.json": {"items": [NODE]},
            "cluster-resources/pods/shop.json": {"items": [POD]},
            "cluster-resources/pod-disruption-budgets/shop.json": {"items": [BUDGET]},
            "cluster-resources/groups.json": [{"name": "apps", "versions": []}],
            "cluster-resources/auth-cani-list/shop.json": {"resourceRules": []},
        },
        ["n1", "web", "web"],
        "v1.33.4+k3s1",
    ),
    "a support bundle of arrays": (
        {
            "cluster-resources/nodes.json": [NODE],
            "cluster-resources/pods/shop.json": [POD],
            "cluster-resources/pdbs/shop.json": [],
            "cluster-resources/custom-resources/a.example.com/shop.yaml": [{**POD, "kind": "A", "apiVersion": "a/v1"}],
        },
        ["n1", "web"],
        "",
    ),
    "an export of kube-scheduler-simulator": (
        {
            "export.json": {
                "pods": [POD],
                "nodes": [{**NODE, "kind": "Node", "apiVersion": "v1"}],
                "pvs": [],
                "pvcs": None,
                "storageClasses": [],
                "priorityClasses": [{"metadata": {"name": "high"}, "value": 10}],
                "namespaces": [],
                "schedulerConfig": {"kind": "KubeSchedulerConfiguration"},
            }
        },
        ["n1", "web", "high"],
        "",
    ),
    "a must-gather": (
        {
            "a/cluster-scoped-resources/config.openshift.io/clusterversions/version.yaml": "---\n"
            "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata:\n  name: version\n"
            "status:\n  desired:\n    version: 4.9.1\n",
            "a/cluster-scoped-resources/core/nodes/n1.yaml": {"apiVersion": "v1", "kind": "Node", **NODE},
            "a/namespaces/shop/pods/web/main/current.log": 'apiVersion: v1\n{"apiVersion": [\n',
        },
        ["n1"],
        "v1.22",
    ),
}


@pytest.mark.parametrize(("files", "objects", "version"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_a_dump_is_known_by_its_layout(
    tmp_path: Path, files: dict[str, object], objects: list[str], version: str
) -> None:
    cluster = load_snapshot([write(tmp_path, files)]).cluster
    assert (names(cluster), cluster.version) == (objects, version)


@pytest.mark.parametrize("metadata", [{"ObjectMeta": SERVED, "TypeMeta": {}}, SERVED, {"metadata": SERVED}])
def test_what_old_kubectl_printed_is_known_by_the_names_of_go(tmp_path: Path, metadata: Document) -> None:
    pod = {
        **metadata,
        "Spec": {
            "Volumes": None,
            "Containers": [{"Name": "main", "Resources": {"Requests": {"cpu": "100m"}}, "Ports": [{"HostPort": 80}]}],
            "NodeName": "n1",
            "NodeSelector": {"Disk": "SSD"},
            "SecurityContext": {"HostNetwork": True},
        },
        "Status": {"Phase": "Running", "HostIP": "10.0.0.1"},
    }
    node = {
        "name": "n1",
        "Spec": {"PodCIDR": "", "Unschedulable": True, "Taints": [{"Key": "A", "Effect": "NoSchedule"}]},
        "Status": {"Allocatable": {"cpu": "2"}, "NodeInfo": {"KubeletVersion": "v1.8.0"}},
    }
    dump = "".join(
        json.dumps(each, indent=4) + "\n==== START logs for container main of pod shop/web ====\n==== END logs ====\n"
        for each in (
            {"selfLink": "/api/v1/nodes", "Items": [node]},
            {"ListMeta": {"selfLink": "/api/v1/namespaces/shop/replicationcontrollers"}, "Items": None},
            {"Items": [pod]},
        )
    )
    (tmp_path / "dump.json").write_text(dump)
    (found,) = load_snapshot([str(tmp_path / "dump.json")]).cluster.pods
    (there,) = load_snapshot([str(tmp_path)]).cluster.nodes
    assert (found.key, found.metadata.uid, found.spec.node_name, found.status.phase) == (
        "shop/web",
        "1",
        "n1",
        "Running",
    )
    assert found.spec.node_selector == {"Disk": "SSD"} and found.spec.host_network
    assert found.spec.containers[0].resources.requests == {"cpu": quantity("100m")}
    assert found.spec.containers[0].ports[0].host_port == 80
    assert (there.spec.unschedulable, there.spec.taints[0].key) == (True, "A")
    assert there.status.node_info.kubelet_version == "v1.8.0"


SUSPICIOUS: dict[str, object] = {
    "a list without a kind": {"items": [POD]},
    "an empty list without a kind": {"items": []},
    "a list that is cut off": "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n",
    "an array of objects": [{"kind": "Pod", "apiVersion": "v1", **POD}],
    "an object without a kind": POD,
    "a spec without a kind": {"spec": {"replicas": 3}},
    "a version without a kind": {"apiVersion": "v1"},
    "Go's names of nothing known": {"Items": [{"name": "a", "Spec": {}}]},
    "a list whose items are none": {"kind": "PodList", "items": 3},
    "JSON that is cut off": '{"apiVersion": "v1", "kind": "List", "items": [',
    "YAML that is cut off": 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: "a',
    "YAML that is cut off within a line": "apiVersion: v1\nkind: Pod\nmetadata:\n  uid: b\n  name: a",
    "NULs": "apiVersion: v1\0\nkind: Pod\n",
}


@pytest.mark.parametrize("content", SUSPICIOUS.values(), ids=SUSPICIOUS.keys())
@pytest.mark.parametrize("name", ["cluster.yaml", "shop/cluster.JSON", "config/cluster.yml"])
def test_what_could_be_an_object_is_an_error_or_skipped_and_listed(tmp_path: Path, content: object, name: str) -> None:
    folder = write(tmp_path, {name: content, "version.json": {"serverVersion": {"gitVersion": "v1.36.0"}}})
    for path in (folder, str(tmp_path / name)):
        with pytest.raises(InputError) as caught:
            load_snapshot([path])
        assert caught.value.source == str(tmp_path / name)
    input_limits = InputLimits()
    assert load_snapshot([folder], skip_bad_objects=True, input_limits=input_limits).cluster.version == "v1.36.0"
    assert [each.source for each in input_limits.skipped.bad] == [str(tmp_path / name)]


def test_other_files_are_listed(tmp_path: Path) -> None:
    others = {
        "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
        "README.md": "```\napiVersion: v1\n```\n",
        "a.log": "x",
        "empty.yaml": "# nothing\n---\n",
        "logs.json": '{"level": "info"}\n{"level": 3}\n',
        "picture.png": "\x89PNG\r\n\x1a\n\0\0",
        "text": "The field\napiVersion: is [\n",
        "values.yaml": "replicas: 3\n",
    }
    input_limits = InputLimits()
    folder = write(tmp_path, {**others, "x-common.yaml": f"x-a: &a 1\n---\n{json.dumps({'kind': 'Node', **NODE})}\n"})
    assert names(load_snapshot([folder], input_limits=input_limits).cluster) == ["n1"]
    assert [Path(each).name for each in input_limits.skipped.files] == sorted(others)
    assert input_limits.skipped.bad == []


@pytest.mark.parametrize(
    ("errors", "status"),
    [
        (["forbidden: cannot list pdb"], 403),
        ({"shop": "poddisruptionbudgets.policy is forbidden"}, 403),
        (["the server could not find the requested resource"], 404),
        (["timeout"], 500),
        ([], 0),
        ({}, 0),
    ],
)
def test_a_support_bundle_says_which_kinds_were_not_read(tmp_path: Path, errors: object, status: int) -> None:
    budgets = {"kind": "PodDisruptionBudgetList", "apiVersion": "policy/v1", "items": [BUDGET]}
    bundle = write(
        tmp_path / "bundle",
        {
            "cluster-resources/nodes.json": [NODE],
            "cluster-resources/pod-disruption-budgets/shop.json": budgets,
            "cluster-resources/pod-disruption-budgets-errors.json": errors,
        },
    )
    unread = load_snapshot([bundle]).cluster.unread
    refused = {kind: each.status for kind, each in unread.items() if each.state is KindState.UNREADABLE}
    assert refused == ({"PodDisruptionBudget": status} if status else {})
    other = {**budgets, "items": [{**BUDGET, "metadata": {"name": "api", "namespace": "shop"}}]}
    write(tmp_path, {"budgets.json": other})
    assert "PodDisruptionBudget" not in load_snapshot([bundle, str(tmp_path / "budgets.json")]).cluster.unread


def test_an_archive_that_ends_early_gives_what_is_before(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number in range(2):
            content = json.dumps({"kind": "Node", "metadata": {"name": f"n{number}"}, "x": "y" * 600}).encode()
            entry = tarfile.TarInfo(f"n{number}.json")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    path = tmp_path / "dump.tar"
    path.write_bytes(buffer.getvalue()[:2400])
    with pytest.raises(InputError, match="ends early"):
        load_snapshot([str(path)])
    input_limits = InputLimits()
    assert names(load_snapshot([str(path)], skip_bad_objects=True, input_limits=input_limits).cluster) == ["n0"]
    assert len(input_limits.skipped.bad) == 1
