"""Why no node is added, on a real control plane: incidents with a real scheduler, and what an autoscaler wrote to them.

The events, the status and Karpenter's objects are as the autoscalers write them: ``processors/status`` and
``clusterstate`` of ``kubernetes/autoscaler`` 1.36, ``pkg/events`` and ``pkg/apis/v1`` of ``sigs.k8s.io/karpenter``
v1.9.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.eviction import create, events
from tests.live.patience import until
from tests.live.plane import ControlPlane, Object, program
from tests.live.plugin import Ran, kubectl_kpreempt, needs_kubectl
from tests.live.rights import ROLES, bind
from tests.parity.reference import CHECKOUT

pytestmark = pytest.mark.live

SHOP, SYSTEM = "kestrel-shop", "kube-system"
READER, NARROW = "reader", "narrow"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KARPENTER = "/apis/karpenter.sh/v1"
ZONE = "topology.kubernetes.io/zone"
STATUS = """autoscalerStatus: Running
clusterWide:
  health: {status: Healthy}
nodeGroups:
- name: asg-osprey
  health: {status: Healthy, cloudProviderTarget: 1, minSize: 1, maxSize: 1}
  scaleUp: {status: NoActivity}
- name: asg-heron
  health: {status: Healthy, cloudProviderTarget: 0, minSize: 0, maxSize: 9}
  scaleUp: {status: Backoff, backoffInfo: {errorCode: OutOfResource, errorMessage: no capacity}}
"""


def _definition(kind: str) -> Object:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    spec = {"group": "karpenter.sh", "scope": "Cluster", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.karpenter.sh",
            # The group belongs to a project of Kubernetes.
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/karpenter/pull/1"},
        },
        "spec": spec,
    }


def _node(name: str, **labels: str) -> Object:
    amounts = {"pods": "110", "memory": "8Gi", "cpu": "4"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _pod(name: str, cpu: str, **spec: Any) -> Object:
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SHOP},
        "spec": {"containers": [container], **spec},
    }


def _report(
    plane: ControlPlane, subject: Object, reason: str, message: str, component: str, *, warning: bool = False
) -> None:
    """Write an event as client-go's recorder does."""
    metadata, at = subject["metadata"], datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    namespace = metadata.get("namespace", "default")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": namespace},
        "involvedObject": {
            "kind": subject["kind"],
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
        "reason": reason,
        "message": message,
        "type": "Warning" if warning else "Normal",
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    plane.request("POST", f"/api/v1/namespaces/{namespace}/events", event)


def _rejected(plane: ControlPlane, pod: Object) -> Object:
    """Create a pod, and wait until the scheduler has rejected it."""
    made = create(plane, pod)
    name = pod["metadata"]["name"]
    until(lambda: events(plane, "FailedScheduling").get(name), f"an event about {name}")
    return {"kind": "Pod", **made}


def _pool(plane: ControlPlane, name: str, spec: Object, resources: Object) -> Object:
    body = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"resources": resources, "conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]},
    }
    made: Object = until(lambda: _created(plane, f"{KARPENTER}/nodepools", body), "the CustomResourceDefinition")
    return made


def _created(plane: ControlPlane, path: str, body: Object) -> Object | None:
    """The created object; ``None`` while the server does not serve its kind yet."""
    try:
        return plane.request("POST", path, body)
    except json.JSONDecodeError:
        # The server's 404 for a path that it does not know is no JSON.
        return None


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[ControlPlane, ControlPlane]]:
    """A cluster with Cluster Autoscaler, and one with Karpenter; ``reader`` has the shipped role."""
    needs_kubectl()
    with ControlPlane(program()) as scaled, ControlPlane(program()) as provisioned:
        for plane in (scaled, provisioned):
            role = yaml.safe_load((CHECKOUT / "deploy" / "cluster-role.yaml").read_text(encoding="utf-8"))
            plane.request("POST", ROLES, role)
            bind(plane, role["metadata"]["name"], READER)
            about = ("nodeclaims", "nodepools", "configmaps")
            rules = [rule for rule in role["rules"] if not set(rule.get("resources", ())) & set(about)]
            plane.request("POST", ROLES, {**role, "metadata": {"name": NARROW}, "rules": rules})
            bind(plane, NARROW, NARROW)
            create(plane, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
        create(scaled, _node("osprey-1"))
        _play_cluster_autoscaler(scaled)
        create(provisioned, _node("osprey-1", **{"karpenter.sh/nodepool": "general"}))
        _play_karpenter(provisioned)
        yield scaled, provisioned


def _play_cluster_autoscaler(plane: ControlPlane) -> None:
    updated = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.123456789 +0000 UTC")
    metadata = {
        "name": "cluster-autoscaler-status",
        "namespace": SYSTEM,
        "annotations": {"cluster-autoscaler.kubernetes.io/last-updated": updated},
    }
    data = {"status": f"{STATUS}time: {updated}\n"}
    plane.request("POST", f"/api/v1/namespaces/{SYSTEM}/configmaps", {"metadata": metadata, "data": data})
    full = _rejected(plane, _pod("full", "64"))
    message = "pod didn't trigger scale-up: 1 in backoff after failed scale-up, 1 max node group size reached"
    _report(plane, full, "NotTriggerScaleUp", message, "cluster-autoscaler")
    growing = _rejected(plane, _pod("growing", "64"))
    message = "pod triggered scale-up: [{asg-heron 0->1 (max: 9)}]"
    _report(plane, growing, "TriggeredScaleUp", message, "cluster-autoscaler")
    _rejected(plane, _pod("unseen", "64"))


def _play_karpenter(plane: ControlPlane) -> None:
    for kind in ("NodePool", "NodeClaim"):
        plane.request("POST", DEFINITIONS, _definition(kind))
    here = [{"key": ZONE, "operator": "In", "values": ["here"]}]
    general = {"template": {"spec": {"requirements": here}}, "limits": {"cpu": "8"}}
    _pool(plane, "general", general, {"cpu": "4", "memory": "8Gi"})
    taints = [{"key": "example.com/gpu", "value": "true", "effect": "NoSchedule"}]
    _pool(plane, "gpu", {"template": {"spec": {"requirements": [], "taints": taints}}}, {})
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "general-x2lqp", "labels": {"karpenter.sh/nodepool": "general"}},
        "status": {"conditions": [{"type": "Launched", "status": "True", "reason": "Launched"}]},
    }
    until(lambda: _created(plane, f"{KARPENTER}/nodeclaims", claim), "the CustomResourceDefinition")
    large = _rejected(plane, _pod("large", "6", nodeSelector={ZONE: "elsewhere"}))
    message = (
        f"Failed to schedule pod, incompatible requirements, key {ZONE}, {ZONE} In [elsewhere] not in {ZONE} In [here];"
        " did not tolerate taint (taint=example.com/gpu=true:NoSchedule)"
    )
    _report(plane, large, "FailedScheduling", message, "karpenter", warning=True)
    nominated = _rejected(plane, _pod("nominated", "64"))
    _report(plane, nominated, "Nominated", "Pod should schedule on: nodeclaim/general-x2lqp", "karpenter")


def explained(plane: ControlPlane, pod: str, *more: str) -> tuple[Any, str]:
    """What is reported about a pod, as a record and as text at 80 columns."""
    words = ("explain", pod, "-n", SHOP, *more)
    ran = kubectl_kpreempt(plane.kubeconfig, *words, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    verdict = json.loads(ran.out)
    assert verdict["outcome"] == "Unschedulable"
    return verdict.get("autoscaling"), flat(kubectl_kpreempt(plane.kubeconfig, *words, "-v"))


def flat(ran: Ran) -> str:
    assert (ran.code, ran.err) == (0, "")
    return " ".join(ran.out.split())


Clusters = tuple[ControlPlane, ControlPlane]


def test_node_groups_that_are_full_or_in_backoff(clusters: Clusters) -> None:
    found, text = explained(clusters[0], "full", "--as", READER)
    [pod] = found["pods"]
    assert [each["reason"] for each in pod["reports"]] == ["NotTriggerScaleUp"]
    assert [(each["groups"], each["reason"]) for each in pod["reports"][0]["reasons"]] == [
        (1, "in backoff after failed scale-up"),
        (1, "max node group size reached"),
    ]
    assert "notRead" not in found
    assert "pod didn't trigger scale-up 1 node group: in backoff after failed scale-up" in text
    assert "node group asg-osprey: at its maximum of 1 node" in text
    assert "node group asg-heron: in backoff after a failed scale-up (OutOfResource: no capacity)" in text


def test_a_scale_up_that_was_triggered(clusters: Clusters) -> None:
    _, text = explained(clusters[0], "growing", "--as", READER)
    assert "pod triggered scale-up node group asg-heron from 0 to 1 node (maximum 9)" in text
    assert "didn't trigger" not in text


def test_a_pod_about_which_nothing_is_reported(clusters: Clusters) -> None:
    found, text = explained(clusters[0], "unseen")
    assert found["autoscalers"] == ["ClusterAutoscaler"]
    assert "no report about the pod: there was none, or its events have expired" in text


def test_requirements_taints_and_limits_of_node_pools(clusters: Clusters) -> None:
    found, text = explained(clusters[1], "large", "--as", READER)
    [pod] = found["pods"]
    obstacles = {each["pool"]: [obstacle["kind"] for obstacle in each["obstacles"]] for each in pod["pools"]}
    assert obstacles == {"general": ["Requirement", "Limit"], "gpu": ["Taint"]}
    # The scheduler's own event of the same reason is not Karpenter's.
    assert [(each["autoscaler"], each["reason"]) for each in pod["reports"]] == [("Karpenter", "FailedScheduling")]
    assert f"NodePool general: {ZONE}=here, but the pod needs {ZONE}=elsewhere; limit of 8 cpu, 4 used" in text
    assert "NodePool gpu: example.com/gpu=true:NoSchedule is not tolerated" in text
    assert "did not tolerate taint (taint=example.com/gpu=true:NoSchedule)" in text


def test_a_node_claim_that_is_not_registered(clusters: Clusters) -> None:
    found, text = explained(clusters[1], "nominated", "--as", READER)
    assert [(each["name"], each["missing"]) for each in found["claims"]] == [("general-x2lqp", "Registered")]
    assert "Pod should schedule on: nodeclaim/general-x2lqp" in text
    assert "NodeClaim general-x2lqp of NodePool general: not registered" in text


def test_pending_groups_what_is_reported(clusters: Clusters) -> None:
    scaled, provisioned = clusters
    for plane, expected in (
        (scaled, ["full", "growing", "unseen"]),
        (provisioned, ["large", "nominated"]),
    ):
        # The scheduler may try a pod while the cluster is read.
        own = [_attempts(plane)]
        ran = kubectl_kpreempt(plane.kubeconfig, "pending", "-A", "-o", "json")
        found = json.loads(ran.out)
        pods = [pod for each in found["autoscaling"]["pods"] for pod in each["pods"]]
        assert sorted(pods) == [f"{SHOP}/{name}" for name in expected]
        # An attempt that Karpenter reports is not the scheduler's.
        items = {each["pod"].rpartition("/")[2]: each for each in found["items"]}
        if "large" in items:
            own.append(_attempts(plane))
            assert items["large"]["lastAttempt"][:19] in [each["large"] for each in own]


def _attempts(plane: ControlPlane) -> dict[str, str]:
    """The time of each pod's last attempt that the scheduler reported, in whole seconds."""
    own = events(plane, "FailedScheduling&fieldSelector=reason%3DFailedScheduling,source%3Ddefault-scheduler")
    return {name: (each["eventTime"] or each["lastTimestamp"])[:19] for name, each in own.items()}


def test_a_role_that_may_not_read_them(clusters: Clusters) -> None:
    scaled, provisioned = clusters
    found, text = explained(scaled, "full", "--as", NARROW)
    assert [(each["kind"], each["status"]) for each in found["notRead"]] == [("ConfigMap", 403)]
    assert "Cluster Autoscaler's status is not read (403); missing permission: list configmaps" in text
    assert "1 node group: max node group size reached" in text
    found, text = explained(provisioned, "large", "--as", NARROW)
    assert [(each["kind"], each["status"]) for each in found["notRead"]] == [("NodePool", 403), ("NodeClaim", 403)]
    assert "NodePools are not read (403); missing permission: list nodepools.karpenter.sh" in text
    assert "did not tolerate taint (taint=example.com/gpu=true:NoSchedule)" in text


@pytest.mark.parametrize("redacted", [False, True])
def test_a_snapshot_says_the_same(clusters: Clusters, tmp_path: Path, redacted: bool) -> None:
    for number, plane in enumerate(clusters):
        path = tmp_path / f"{number}.json.zst"
        options = ("--redact",) if redacted else ()
        assert kubectl_kpreempt(plane.kubeconfig, "snapshot", "--to", path, *options).code == 0
        live, dump = (
            json.loads(kubectl_kpreempt(plane.kubeconfig, "pending", "-A", *source, "-o", "json").out)["autoscaling"]
            for source in ((), ("--snapshot", str(path)))
        )
        assert [
            [[each["reason"] for each in pods.get("reports", [])] for pods in found["pods"]] for found in (live, dump)
        ] == [[[each["reason"] for each in pods.get("reports", [])] for pods in live["pods"]]] * 2
        assert len(live.get("claims", [])) == len(dump.get("claims", []))
        assert len(live.get("nodeGroups", [])) == len(dump.get("nodeGroups", []))
        if not redacted:
            assert live["pods"] == dump["pods"]
