"""What autoscalers report, from a live cluster: what is requested, and what is said if it may not be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.documents import objects_of
from tests.fake_api import Answer, FakeApi, FakeCluster, ReceivedRequest, good, objects_by_kind, refused
from tests.unit.cli.conftest import Kpreempt

FIXTURES = Path(__file__).parents[3] / "fixtures"
AUTOSCALING = FIXTURES / "autoscaling"
NOW = "2026-11-21T03:10:00Z"
# The lists that only say what autoscalers do.
LISTS = ("nodepools", "nodeclaims", "configmaps", "events")


def autoscaler_requests(server: FakeApi) -> list[str]:
    """The last part of the path, and the selector, of each request that is only about autoscalers."""
    found = []
    for each in server.requested:
        name, selector = each.path.rpartition("/")[2], each.query.get("fieldSelector", "")
        if name in LISTS and (name != "events" or selector.startswith("source=")):
            found.append(f"{name} {selector}".rstrip())
    return sorted(found)


ALL = [
    "configmaps metadata.name=cluster-autoscaler-status",
    "events source=cluster-autoscaler",
    "events source=eks-auto-mode/compute",
    "events source=karpenter",
    "nodeclaims",
    "nodepools",
]


@pytest.fixture(params=["karpenter.yaml", "cluster-autoscaler.yaml"])
def autoscaled(request: pytest.FixtureRequest) -> Iterator[tuple[str, FakeApi, FakeCluster]]:
    """A server with the objects of a fixture."""
    cluster = FakeCluster(objects_by_kind(objects_of(AUTOSCALING / request.param)))
    with FakeApi(cluster) as running:
        yield request.param, running, cluster


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        pytest.param("explain", ("web-7", "-n", "shop"), id="explain"),
        pytest.param("pending", (), id="pending"),
    ],
)
def test_a_live_cluster_says_the_same_as_a_dump(
    kpreempt: Kpreempt,
    autoscaled: tuple[str, FakeApi, FakeCluster],
    command: str,
    arguments: tuple[str, ...],
) -> None:
    name, server, _ = autoscaled
    options = (*arguments, "--now", NOW, "-o", "json")
    live = json.loads(kpreempt(command, *options, "--server", server.url).stdout)
    dump = json.loads(kpreempt(command, *options, "--snapshot", str(AUTOSCALING / name)).stdout)
    # A dump does not say that it is complete.
    dump["autoscaling"].pop("notRead", None)
    assert live["autoscaling"] == dump["autoscaling"]
    assert autoscaler_requests(server) == ALL


def test_nothing_is_requested_unless_a_pod_is_unschedulable(
    kpreempt: Kpreempt, server: FakeApi, tmp_path: Path
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "small", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1m"}}}]},
    }
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(pod), encoding="utf-8")
    assert kpreempt("explain", "-f", str(path), "--server", server.url).returncode == 0
    assert autoscaler_requests(server) == []
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1000"  # type: ignore[index]
    path.write_text(json.dumps(pod), encoding="utf-8")
    run = kpreempt("explain", "-f", str(path), "--server", server.url)
    assert "AUTOSCALER" not in run.stdout
    assert autoscaler_requests(server) == ALL


@pytest.mark.parametrize("status", [403, 500])
def test_what_may_not_be_read_is_said_where_an_autoscaler_is(
    kpreempt: Kpreempt, autoscaled: tuple[str, FakeApi, FakeCluster], status: int
) -> None:
    name, server, cluster = autoscaled

    def special(request: ReceivedRequest) -> Answer | None:
        if request.path == "/apis/karpenter.sh/v1":
            return good({"kind": "APIResourceList"})
        is_about = request.path.endswith(("/nodepools", "/nodeclaims", "/configmaps"))
        return refused(status, "no") if is_about else None

    cluster.special = special
    run = kpreempt("explain", "web-7", "-n", "shop", "-v", "--now", NOW, "--server", server.url)
    words = " ".join(run.stdout.split())
    denied = {
        "karpenter.yaml": "NodePools are not read (403); missing permission: list nodepools.karpenter.sh",
        "cluster-autoscaler.yaml": "Cluster Autoscaler's status is not read (403); missing permission: list configmaps",
    }[name]
    failed = (
        "NodePools could not be read" if name == "karpenter.yaml" else "Cluster Autoscaler's status could not be read"
    )
    assert (denied if status == 403 else failed) in words
    assert "shop/web-7 is unschedulable now" in words


def test_a_pod_that_stays_pending_for_others_in_the_queue_counts(kpreempt: Kpreempt, tmp_path: Path) -> None:
    def pod(name: str, created: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": created},
            "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "3"}}}]},
            "status": {"phase": "Pending"},
        }

    amounts = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    labels = {"kubernetes.io/hostname": "n1", "karpenter.sh/nodepool": "a"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    items = [node, pod("first", "2026-11-21T03:00:00Z"), pod("last", "2026-11-21T03:05:00Z")]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    source = ("--snapshot", str(path), "--now", NOW, "-o", "json")
    pending = json.loads(kpreempt("pending", *source).stdout)
    assert [each["pods"] for each in pending["autoscaling"]["pods"]] == [["shop/last"]]
    for name, is_reported in (("first", False), ("last", True)):
        verdict = json.loads(kpreempt("explain", name, "-n", "shop", *source).stdout)
        assert verdict["outcome"] == "Lands"
        assert ("autoscaling" in verdict) is is_reported


def test_a_cluster_without_autoscalers_shows_nothing_about_them(kpreempt: Kpreempt, server: FakeApi) -> None:
    for command in (("pending",), ("explain", "--cpu", "1000")):
        run = kpreempt(*command, "--server", server.url)
        assert "AUTOSCALER" not in run.stdout
        found: dict[str, Any] = json.loads(kpreempt(*command, "--server", server.url, "-o", "json").stdout)
        assert "autoscaling" not in found


def test_a_snapshot_of_a_live_cluster_has_what_autoscalers_report(
    kpreempt: Kpreempt, autoscaled: tuple[str, FakeApi, FakeCluster], tmp_path: Path
) -> None:
    _, server, _ = autoscaled
    path = tmp_path / "snapshot.json"
    assert kpreempt("snapshot", "--to", str(path), "--server", server.url).returncode == 0
    live = json.loads(kpreempt("pending", "--now", NOW, "--server", server.url, "-o", "json").stdout)
    again = json.loads(kpreempt("pending", "--now", NOW, "--snapshot", str(path), "-o", "json").stdout)
    assert again["autoscaling"] == live["autoscaling"]


def test_a_redacted_snapshot_says_the_same_about_other_names(
    kpreempt: Kpreempt, autoscaled: tuple[str, FakeApi, FakeCluster], tmp_path: Path
) -> None:
    _, server, _ = autoscaled
    path = tmp_path / "snapshot.json"
    assert kpreempt("snapshot", "--redact", "--to", str(path), "--server", server.url).returncode == 0
    text = path.read_text(encoding="utf-8")
    for name in ("web-7", "train-0", "general", "asg-", "gpu", "team", "m5.4xlarge", "zone-b"):
        assert name not in text
    live = json.loads(kpreempt("pending", "--server", server.url, "--now", NOW, "-o", "json").stdout)["autoscaling"]
    again = json.loads(kpreempt("pending", "--snapshot", str(path), "-o", "json").stdout)["autoscaling"]
    shapes = [
        [
            (
                len(pods["pods"]),
                [
                    (each["reason"], [reason["groups"] for reason in each.get("reasons", [])])
                    for each in pods.get("reports", [])
                ],
                sorted(sorted(obstacle["kind"] for obstacle in pool["obstacles"]) for pool in pods.get("pools", [])),
            )
            for pods in found["pods"]
        ]
        for found in (live, again)
    ]
    assert shapes[0] == shapes[1]
