"""``auto``, the default of every command: the rules are those of the version that the cluster runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt.scheduler_table import DEFAULT_ALGORITHM, LATEST_ALGORITHM, RELEASES
from tests.factories import LATER_VERSION
from tests.fake_api import FakeApi, FakeCluster, good
from tests.rollouts import QUOTA
from tests.unit.cli.test_completion import offered

ON_CALL = Path(__file__).parents[3] / "fixtures" / "on-call"
NOW = ["--now", "2026-11-21T03:12:00Z"]
VERSION = "kpreempt.io/server-version"

Kpreempt = Callable[..., Any]


def node(name: str, kubelet: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "nodeInfo": {"kubeletVersion": kubelet},
        },
    }


def dump(folder: Path, server: str = "", kubelet: str = "", *objects: dict[str, Any]) -> str:
    """A dump of one node, a pod and a quota elsewhere, and objects, with the versions in it that are not empty."""
    metadata = {"annotations": {VERSION: server, "kpreempt.io/kpreempt-version": "0.1.0"}} if server else {}
    items = [node("n", kubelet), RUNNING, QUOTA, *objects]
    path = folder / f"dump-{server}-{kubelet}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items}))
    return str(path)


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m"}}}]},
        },
    },
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]},
}


RUNNING: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "dns", "namespace": "kube-system"},
    "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]},
    "status": {"phase": "Running"},
}


def of_version(version: str, path: Path, folder: Path) -> str:
    """The dump of another version."""
    target = folder / path.name
    target.write_text(path.read_text(encoding="utf-8").replace("v1.36.3", version), encoding="utf-8")
    return str(target)


@pytest.mark.parametrize(
    ("server", "kubelet", "algorithm", "has_assumption"),
    [
        pytest.param("v1.33.9-eks-abc", "v1.32.1", "kube-1.33", False, id="the server's"),
        pytest.param("v1.34.1", "", "kube-1.34.1", False, id="a patch that matters"),
        pytest.param("", "v1.33.5-eks-abc", "kube-1.33", True, id="that of kubelets"),
        pytest.param("", "", LATEST_ALGORITHM, True, id="none"),
    ],
)
def test_explain_says_which_version_it_goes_by(
    kpreempt: Kpreempt, tmp_path: Path, server: str, kubelet: str, algorithm: str, has_assumption: bool
) -> None:
    ask = ["explain", "--cpu", "1", "--snapshot", dump(tmp_path, server, kubelet)]
    verdict = json.loads(kpreempt(*ask, "-o", "json").stdout)
    assert verdict["algorithm"] == algorithm
    subjects = [(each["subject"], each["field"], each["kind"]) for each in verdict.get("assumptions", [])]
    assert (("cluster", "version", "Informational") in subjects) == has_assumption
    assert f" {algorithm} · " in kpreempt(*ask).stdout


@pytest.mark.parametrize("minor", RELEASES)
@pytest.mark.parametrize("place", ["server", "kubelet"])
def test_a_harmless_rollout_passes_on_every_version_unconfigured(
    kpreempt: Kpreempt, tmp_path: Path, minor: str, place: str
) -> None:
    manifest = tmp_path / "web.json"
    manifest.write_text(json.dumps(DEPLOYMENT))
    snapshot = dump(tmp_path, **{place: f"v{minor}.0"})
    run = kpreempt("check", "-f", str(manifest), "--snapshot", snapshot, "-o", "json")
    check = json.loads(run.stdout)
    assert (run.returncode, check["findings"]) == (0, [])
    assert check["algorithm"].startswith(f"kube-{minor}")


@pytest.mark.parametrize(
    ("server", "kubelet"), [("v1.28.1", ""), (f"v{LATER_VERSION}.2", ""), ("", f"v{LATER_VERSION}.2")]
)
def test_a_version_that_is_not_modeled_fails_the_gate(
    kpreempt: Kpreempt, tmp_path: Path, server: str, kubelet: str
) -> None:
    manifest = tmp_path / "web.json"
    manifest.write_text(json.dumps(DEPLOYMENT))
    ask = ["check", "-f", str(manifest), "--snapshot", dump(tmp_path, server, kubelet)]
    run = kpreempt(*ask, "-o", "json")
    assert run.returncode == 1
    (finding,) = json.loads(run.stdout)["findings"]
    assert (finding["rule"], finding["subject"]) == ("unmodeled-input", "cluster")
    # The same is reported if an algorithm is given, even that of the nearest version.
    assert kpreempt(*ask, "--algorithm", LATEST_ALGORITHM).returncode == (1 if server else 0)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["pending"], id="pending"),
        pytest.param(["queue"], id="queue"),
        pytest.param(["at-risk", "-n", "batch"], id="at-risk"),
        pytest.param(["budgets"], id="budgets"),
        pytest.param(["plugins"], id="plugins"),
        pytest.param(["explain", "pod/api-1", "-n", "shop"], id="explain"),
    ],
)
def test_every_command_goes_by_the_clusters_version(kpreempt: Kpreempt, tmp_path: Path, arguments: list[str]) -> None:
    snapshot = of_version("v1.31.14", ON_CALL / "cluster.yaml", tmp_path)
    now = [] if arguments == ["plugins"] else NOW
    ask = [*arguments, "--snapshot", snapshot, *now]
    answer = json.loads(kpreempt(*ask, "-o", "json").stdout)
    assert answer["algorithm"] == "kube-1.31"
    assert not [each for each in answer.get("assumptions", []) if each["field"] == "version"]
    if arguments != ["budgets"]:
        assert "kube-1.31" in kpreempt(*ask).stdout
    named = json.loads(kpreempt(*ask, "--algorithm", "kube-1.35", "-o", "json").stdout)
    assert named["algorithm"] == "kube-1.35"
    if arguments != ["plugins"]:
        assert [each["field"] for each in named["assumptions"] if each["subject"] == "cluster"] == ["version"]
    same = json.loads(kpreempt(*ask, "--algorithm", "auto", "-o", "json").stdout)
    assert same["algorithm"] == "kube-1.31"


def test_an_eviction_is_reconstructed_by_the_version_of_that_time(kpreempt: Kpreempt, tmp_path: Path) -> None:
    before = of_version("v1.30.14", ON_CALL / "before.yaml", tmp_path)
    ask = ["who-evicted", "encode-1", "-n", "batch", "--snapshot", str(ON_CALL / "cluster.yaml"), *NOW]
    found = json.loads(kpreempt(*ask, "--before", before, "-o", "json").stdout)
    assert found["items"][0]["preemption"]["reconstruction"]["algorithm"] == "kube-1.30"
    assert "confirmed by kube-1.30" in " ".join(kpreempt(*ask, "--before", before).stdout.split())


def test_a_line_of_a_batch_is_recorded_or_that_of_its_objects(kpreempt: Kpreempt) -> None:
    lines = [
        {"name": "recorded", "objects": [node("n", "v1.30.1")], "pod": POD},
        {"name": "own", "algorithm": "auto", "objects": [node("n", "v1.30.1")], "pod": POD},
        {"name": "newer", "algorithm": "auto", "objects": [node("n", "v1.34.1")], "pod": POD},
        {"name": "none", "algorithm": "auto", "objects": [node("n")], "pod": POD},
        {"name": "named", "algorithm": "kube-1.34.1", "objects": [node("n")], "pod": POD},
    ]
    run = kpreempt("batch", "-", stdin="".join(json.dumps(each) + "\n" for each in lines))
    verdicts = {each["name"]: each["verdict"] for each in map(json.loads, run.stdout.splitlines())}
    assert {name: each["algorithm"] for name, each in verdicts.items()} == {
        "recorded": DEFAULT_ALGORITHM,
        "own": "kube-1.30",
        "newer": "kube-1.34",
        "none": LATEST_ALGORITHM,
        "named": "kube-1.34.1",
    }
    assert [name for name, each in verdicts.items() if each.get("assumptions")] == ["own", "newer", "none"]


def test_the_own_version_is_compared_under_its_name(kpreempt: Kpreempt, tmp_path: Path) -> None:
    snapshot = dump(tmp_path, "v1.33.9", "", {**POD, "status": {"phase": "Pending"}})
    run = kpreempt("compare", "--algorithms", "auto,kube-1.36", "--snapshot", snapshot, "-o", "json")
    assert json.loads(run.stdout)["algorithms"] == ["kube-1.33", "kube-1.36"]
    # Both are the same here, which is no mistake of who asks.
    run = kpreempt("compare", "--algorithms", "kube-1.33,auto", "--snapshot", snapshot, "-o", "json")
    answer = json.loads(run.stdout)
    assert (run.returncode, answer["algorithms"], answer["differing"]) == (0, ["kube-1.33", "auto"], 0)


def test_lines_are_compared_by_the_version_of_each(kpreempt: Kpreempt, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    tainted = node("n", "v1.33.1")
    tainted["spec"] = {"taints": [{"key": "a", "effect": "NoSchedule"}]}
    lines.write_text(json.dumps({"name": "a", "objects": [tainted], "pod": POD}) + "\n")
    ask = ["compare", "--algorithms", "auto,kube-1.37", "--batch", str(lines), "-o", "json"]
    answer = json.loads(kpreempt(*ask).stdout)
    (item,) = answer["items"]
    assert "untolerated taint {a: }" in item["decisions"][0]["message"]
    assert [each["field"] for each in answer["assumptions"]] == ["version"]


def test_the_version_of_a_live_cluster_is_requested(kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster) -> None:
    reported = {"major": "1", "minor": "33+", "gitVersion": "v1.33.9-eks-1a2b3c"}
    cluster.special = lambda requested: good(reported) if requested.path == "/version" else None
    live = ["--server", server.url]
    verdict = json.loads(kpreempt("explain", "--cpu", "1", *live, "-o", "json").stdout)
    assert (verdict["algorithm"], verdict["cluster"]["version"]) == ("kube-1.33", "v1.33.9-eks-1a2b3c")
    listed = json.loads(kpreempt("plugins", *live, "-o", "json").stdout)
    assert (listed["algorithm"], listed.get("assumptions", [])) == ("kube-1.33", [])


def test_gates_and_configurations_are_those_of_the_version(kpreempt: Kpreempt, tmp_path: Path) -> None:
    old, new = dump(tmp_path, "v1.31.14"), dump(tmp_path, "v1.36.3")

    def requested(snapshot: str, *options: str) -> Any:
        return kpreempt("explain", "--cpu", "1", "--snapshot", snapshot, *options)

    run = requested(old, "--feature-gates", "StorageCapacityScoring=true")
    assert run.returncode == 2
    assert "unrecognized feature gate: StorageCapacityScoring" in run.stderr
    assert "the cluster's version selects kube-1.31" in run.stderr
    assert requested(new, "--feature-gates", "StorageCapacityScoring=true").returncode == 0
    run = requested(new, "--feature-gates", "DRAAdminAccess=false")
    assert (run.returncode, "feature is locked to true" in run.complaint) == (2, True)
    assert requested(old, "--feature-gates", "MinDomainsInPodTopologySpread=true").returncode == 0
    # What no version takes is refused before a cluster is read.
    run = kpreempt("explain", "--cpu", "1", "--snapshot", "absent.json", "--feature-gates", "Nonsense=true")
    assert "unrecognized feature gate: Nonsense" in run.stderr

    config = tmp_path / "config.yaml"
    plugins = {"multiPoint": {"enabled": [{"name": "EBSLimits"}]}}
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"plugins": plugins}],
            }
        )
    )
    assert requested(old, "--scheduler-config", str(config)).returncode == 0
    run = requested(new, "--scheduler-config", str(config))
    assert (run.returncode, "EBSLimits" in run.complaint) == (3, True)


def test_the_versions_are_completed_one_by_one() -> None:
    found = offered("explain", "--algorithm", "")[0]
    assert found[0] == "auto"
    assert {f"kube-1.{minor}" for minor in range(29, 38)} | {"kube-1.8", "volcano-1.8"} <= set(found)
    assert "kube-1.18" not in offered("queue", "--algorithm", "")[0]
    assert offered("compare", "--algorithms", "au")[0] == ["auto"]
    assert not [each for each in found if "..." in each]
