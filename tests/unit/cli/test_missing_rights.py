"""A live cluster of which not every kind may be listed: nothing unread is taken for absent, and none counts in vain."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt.model.kinds import AUTOSCALER_KINDS, KINDS
from kpreempt.snapshot.kinds import resource_of
from kpreempt.snapshot.live.listing import api_versions_of, path_of
from tests.fake_api import FakeApi, FakeCluster, good, refused, split_namespace

ROOT = Path(__file__).parents[3]
DEMO = ROOT / "fixtures" / "demo"
API = ("-f", str(DEMO / "api.yaml"))
UNCERTAIN, GATE, BAD_INPUT = 13, 1, 3
OTHERS = [name for name in KINDS if name not in ("Pod", "Node")]
# What the API server may fill in, or refuse, of any new pod.
OF_EVERY_NEW_POD = {"LimitRange", "PriorityClass"}
# Where one of these is missing, the pod below seems to be refused.
HIDING = {"PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSIStorageCapacity", "Namespace"}
# What depends on more than the pod: sessions, a simulation, and objects with owners of other kinds.
OF_OTHER_QUESTIONS = {"Event", "ResourceQuota", "PodGroup", "Queue", "Deployment", "DaemonSet", "Job"} | {
    *AUTOSCALER_KINDS,
    "PodDisruptionBudget",
    "Service",
    "ReplicationController",
    "ReplicaSet",
    "StatefulSet",
}

DEMANDING = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "demanding", "namespace": "shop", "labels": {"app": "demanding"}},
    "spec": {
        "runtimeClassName": "fast",
        "resourceClaims": [
            {"name": "gpu", "resourceClaimName": "gpu"},
            {"name": "nic", "resourceClaimTemplateName": "nic"},
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "namespaceSelector": {"matchLabels": {"team": "a"}},
                        "labelSelector": {},
                    }
                ]
            }
        },
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "10m"}}}],
    },
}

_REQUESTS = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
CLAIMS = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "shop"},
        "spec": _REQUESTS,
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "nic", "namespace": "shop"},
        "spec": {"spec": _REQUESTS},
    },
]
OF_DEVICES = ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "DeviceTaintRule")

Kpreempt = Callable[..., Any]


def reject(cluster: FakeCluster, *kinds: str, status: int = 403) -> None:
    """The server refuses to list these kinds, and has their groups."""
    versions = {(kind, version) for kind in kinds for version in api_versions_of(KINDS[kind])}
    answers = {path_of(KINDS[kind], version): refused(status, "no") for kind, version in versions}
    answers |= {f"/apis/{version}": good({"kind": "APIResourceList"}) for _, version in versions}
    cluster.special = lambda requested: answers.get(split_namespace(requested.path)[0])


def verdict_on(kpreempt: Kpreempt, server: FakeApi, pod: Path, *more: str) -> tuple[dict[str, Any], Any]:
    run = kpreempt("explain", "-f", str(pod), "--server", server.url, "-o", "json", "--exit-code", *more)
    return json.loads(run.stdout), run


def unread(verdict: dict[str, Any]) -> set[str]:
    return {each["subject"] for each in verdict.get("assumptions", []) if each.get("kind") == "Unreadable"}


def manifest(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", OTHERS)
def test_only_what_may_change_the_answer_about_a_plain_pod_counts(
    kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster, tmp_path: Path, kind: str
) -> None:
    reject(cluster, kind)
    # The only node that the pod may go to, so that no score decides.
    spec = {"nodeSelector": {"kubernetes.io/hostname": "node-e"}, "containers": [{"name": "c", "image": "x"}]}
    plain = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain", "namespace": "shop"}, "spec": spec}
    verdict, run = verdict_on(kpreempt, server, manifest(tmp_path / "pod.yaml", plain))
    assert unread(verdict) == {kind} & OF_EVERY_NEW_POD
    assert run.returncode == (UNCERTAIN if kind in OF_EVERY_NEW_POD else 0)
    assert bool(run.complaint) == (kind in OF_EVERY_NEW_POD)


@pytest.mark.parametrize("kind", [kind for kind in OTHERS if kind not in OF_OTHER_QUESTIONS])
def test_what_a_demanding_pod_needs_is_named_with_the_right_that_is_missing(
    kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster, tmp_path: Path, kind: str
) -> None:
    cluster.objects["RuntimeClass"] = [{"metadata": {"name": "fast"}, "handler": "fast"}]
    reject(cluster, kind)
    document = json.loads(json.dumps(DEMANDING))
    if kind not in OF_DEVICES:
        # Claims that are not there are why the pod never lands.
        del document["spec"]["resourceClaims"]
    more = []
    if kind in OF_DEVICES and "Claim" not in kind:
        # Pods whose claims are not there are not tried.
        claims = {"apiVersion": "v1", "kind": "List", "items": CLAIMS}
        more = ["--with", str(manifest(tmp_path / "claims.yaml", claims))]
    verdict, run = verdict_on(kpreempt, server, manifest(tmp_path / "pod.yaml", document), *more)
    assert unread(verdict) == {kind}
    reported = next(each["message"] for each in verdict["assumptions"] if each["subject"] == kind)
    assert reported.startswith("cannot be listed (403): ")
    assert reported.endswith(f"; missing permission: list {resource_of(KINDS[kind])} (cluster-wide)")
    assert run.returncode == UNCERTAIN
    assert f"--exit-code: the answer is uncertain: {kind}: cannot be listed (403)" in run.stderr
    if kind in HIDING:
        assert verdict["outcome"] == "Uncertain"
        text = kpreempt("explain", "-f", str(tmp_path / "pod.yaml"), "--server", server.url).stdout
        assert " ".join(text.split()).startswith(
            f"The outcome for shop/demanding is uncertain: {kind} cannot be listed (403): "
        )


def test_a_class_that_may_not_be_read_is_not_one_that_is_not_there(
    kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster
) -> None:
    reject(cluster, "PriorityClass")
    run = kpreempt("explain", *API, "--server", server.url)
    assert run.returncode == BAD_INPUT
    assert run.complaint.splitlines()[0] == (
        'Pod shop/api-new: spec.priorityClassName: the priority of "high" is unknown: PriorityClasses cannot '
        "be listed (403); missing permission: list priorityclasses.scheduling.k8s.io (cluster-wide)"
    )
    stated = kpreempt("explain", *API, "--server", server.url, "--priority", "1000", "--exit-code")
    assert (stated.returncode, "preempts 2 pods on node-b" in stated.stdout) == (UNCERTAIN, True)
    assert kpreempt("check", *API, "--server", server.url).returncode == BAD_INPUT


def test_budgets_that_may_not_be_read_are_not_none(kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster) -> None:
    at = ("--server", server.url)
    reject(cluster, "PodDisruptionBudget")
    run = kpreempt("budgets", *at, "--fail-on", "error")
    assert run.returncode == GATE
    assert run.stdout.startswith("Findings unknown: PodDisruptionBudgets were not read.")
    assert "missing permission: list poddisruptionbudgets.policy" in run.stderr
    assert kpreempt("budgets", *at).returncode == 0
    text = " ".join(kpreempt("explain", *API, *at).stdout.split())
    assert "budget violations are unknown" in text
    assert "no budget" not in text
    assert kpreempt("explain", *API, *at, "--exit-code").returncode == UNCERTAIN
    without = kpreempt("explain", *API, *at, "--without", "pdb/shop/web")
    assert without.complaint.startswith('it is unknown whether PodDisruptionBudget "shop/web" exists')
    checked = kpreempt("check", *API, *at, "-o", "json")
    assert checked.returncode == GATE
    rules = {each["rule"] for each in json.loads(checked.stdout)["findings"]}
    assert "pdbs-unreadable" in rules


def test_budgets_do_not_count_for_a_change_that_evicts_no_pod(
    kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster, tmp_path: Path
) -> None:
    reject(cluster, "PodDisruptionBudget", "CSINode", "PersistentVolume", "ResourceSlice", "Job")
    document = yaml.safe_load((DEMO / "api.yaml").read_text(encoding="utf-8"))
    (container,) = document["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "10m", "memory": "1Mi"}}
    run = kpreempt("check", "-f", str(manifest(tmp_path / "api.yaml", document)), "--server", server.url, "-o", "json")
    assert [each for each in json.loads(run.stdout)["findings"] if "unread" in each["rule"]] == []
    assert "may not be listed" not in run.stdout


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_a_change_is_not_held_against_objects_that_may_not_be_read(
    kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster, kind: str
) -> None:
    reject(cluster, kind)
    run = kpreempt("check", *API, "--server", server.url, "-o", "json")
    found = [each for each in json.loads(run.stdout)["findings"] if each["subject"] == kind]
    assert run.returncode == GATE
    assert [each["rule"] for each in found] == ["skipped-objects"]


def test_events_that_may_not_be_read_are_not_none(kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster) -> None:
    reject(cluster, "Event")
    name = cluster.objects["Pod"][0]["metadata"]["name"]
    namespace = cluster.objects["Pod"][0]["metadata"]["namespace"]
    run = kpreempt("who-evicted", name, "-n", namespace, "--server", server.url)
    text = " ".join(run.stdout.split())
    assert "events cannot be listed (403): " in text
    assert "missing permission: list events" in text
    assert "kubectl get events" not in text
    gone = kpreempt("who-evicted", "nobody", "-n", "shop", "--server", server.url)
    assert "events cannot be listed (403); missing permission: list events" in gone.stderr
    assert "kubectl get events" not in gone.stderr


@pytest.mark.parametrize("more", [(), ("--redact",)], ids=["as it is", "redacted"])
def test_a_dump_says_what_could_not_be_read(
    kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster, tmp_path: Path, more: tuple[str, ...]
) -> None:
    reject(cluster, "PodDisruptionBudget", "Event")
    dump = str(tmp_path / "cluster.json")
    assert kpreempt("snapshot", "--to", dump, "--server", server.url, *more).returncode == 0
    run = kpreempt("budgets", "--snapshot", dump, "--fail-on", "error")
    assert run.returncode == GATE
    assert "missing permission: list poddisruptionbudgets.policy" in run.stderr
    # Another source brings what this one could not read.
    run = kpreempt("budgets", "--snapshot", dump, "--snapshot", str(DEMO / "cluster.yaml"))
    assert "could not be read" not in run.stdout or more


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["pending"], id="pending"),
        pytest.param(["compare", "--algorithms", "kube-1.13,kube-1.18,kube-1.36"], id="compare"),
        pytest.param(["at-risk", "-A"], id="at-risk"),
        pytest.param(["budgets"], id="budgets"),
        pytest.param(["explain", "pod/claims", "-n", "shop"], id="explain"),
        pytest.param(["explain", "pod/claims", "-n", "shop", "--algorithm", "kube-1.8"], id="explain as 1.8"),
        pytest.param(["volcano"], id="volcano"),
    ],
)
def test_every_command_tells_what_it_could_not_read(
    kpreempt: Kpreempt, server: FakeApi, cluster: FakeCluster, command: list[str]
) -> None:
    scheduler = {"schedulerName": "volcano"} if command == ["volcano"] else {}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = {"metadata": {"name": "claims", "namespace": "shop"}, "spec": {**scheduler, "volumes": volumes}}
    pod["spec"]["containers"] = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "10m"}}}]
    cluster.objects = {**cluster.objects, "Pod": [*cluster.objects["Pod"], pod]}
    reject(cluster, "PersistentVolumeClaim", "ResourceSlice", "RuntimeClass")
    run = kpreempt(*command, "--server", server.url, "-o", "json", "--strict")
    assert run.returncode == GATE
    reported = " ".join(run.stdout.split())
    assert "missing permission: list persistentvolumeclaims" in reported
    assert "resourceslices" not in reported
    assert "runtimeclasses" not in reported
