"""Why no node is added: what autoscalers reported, and what in their objects is in the way of a pod."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.autoscaling.answer import autoscaling_of
from kpreempt.analysis.autoscaling.events import counted_reasons
from kpreempt.analysis.autoscaling.node_pools import Volumes, obstacles_of
from kpreempt.analysis.queue.order import FailedAttempts
from kpreempt.model.cluster import ClusterSnapshot, Unread
from kpreempt.model.event import Event
from kpreempt.model.node import NodeClaim, NodePool
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import quantity
from kpreempt.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kpreempt.report.autoscaling import autoscaling_section
from kpreempt.report.blocks import Report
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.terminal import render_text
from kpreempt.verdict.autoscaling import Autoscaling, IgnoredBecause
from tests.factories import NOW, make_node, make_pod, owned

ZONE, ARCH, HOST = "topology.kubernetes.io/zone", "kubernetes.io/arch", "kubernetes.io/hostname"


def as_record(document: dict[str, Any], kind: Any) -> Any:
    return msgspec.convert(document, kind, dec_hook=lambda _, text: quantity(str(text)))


def requirement(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def make_pool(
    *requirements: dict[str, Any],
    name: str = "general",
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    status: dict[str, Any] | None = None,
    deleted: bool = False,
    **spec: Any,
) -> NodePool:
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"requirements": list(requirements), "taints": taints or []},
    }
    metadata = {"name": name, **({"deletionTimestamp": NOW} if deleted else {})}
    document = {"metadata": metadata, "spec": {"template": template, **spec}, "status": status or {}}
    found: NodePool = as_record(document, NodePool)
    return found


def affine(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def pod_with(cpu: str = "1", priority: int = 0, **spec: Any) -> Pod:
    document = {
        "metadata": {"name": "p", "namespace": "shop", "uid": "u"},
        "spec": {
            "priority": priority,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}],
            **spec,
        },
    }
    found: Pod = as_record(document, Pod)
    return found


GPU = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
AMD = requirement(ARCH, "In", "amd64")
CPUS = "karpenter.k8s.aws/instance-cpu"


@pytest.mark.parametrize(
    ("pool", "pod", "expected"),
    [
        pytest.param(make_pool(AMD), pod_with(), [], id="nothing is in the way"),
        pytest.param(
            make_pool(AMD),
            pod_with(nodeSelector={ARCH: "arm64"}),
            [("Requirement", f"{ARCH}=arm64", f"{ARCH}=amd64")],
            id="another architecture",
        ),
        pytest.param(
            make_pool(AMD),
            pod_with(nodeSelector={"beta.kubernetes.io/arch": "arm64"}),
            [("Requirement", f"{ARCH}=arm64", f"{ARCH}=amd64")],
            id="an old name of the label",
        ),
        pytest.param(
            make_pool(),
            pod_with(nodeSelector={"team": "ml"}),
            [("Requirement", "team=ml", "")],
            id="a label that the pool does not define",
        ),
        pytest.param(make_pool(labels={"team": "ml"}), pod_with(nodeSelector={"team": "ml"}), [], id="its own label"),
        pytest.param(
            make_pool(), pod_with(nodeSelector={"karpenter.k8s.aws/instance-family": "m5"}), [], id="a cloud's label"
        ),
        pytest.param(make_pool(), pod_with(nodeSelector={ZONE: "a"}), [], id="a zone, if the pool allows all"),
        pytest.param(
            make_pool(),
            pod_with(nodeSelector={HOST: "n1"}),
            [("Requirement", f"{HOST}=n1", "")],
            id="a node by its name, which no new node has",
        ),
        pytest.param(
            make_pool(),
            pod_with(nodeSelector={"karpenter.sh/nodepool": "gpu"}),
            [("Requirement", "karpenter.sh/nodepool=gpu", "karpenter.sh/nodepool=general")],
            id="another pool by its name",
        ),
        pytest.param(
            make_pool(requirement(ZONE, "In", "a", "b")),
            pod_with(**affine([requirement(ZONE, "NotIn", "a", "b")])),
            [("Requirement", f"{ZONE} notin (a,b)", f"{ZONE} in (a,b)")],
            id="every zone of the pool is excluded",
        ),
        pytest.param(
            make_pool(requirement(ZONE, "In", "a")),
            pod_with(**affine([requirement(ZONE, "In", "b")], [requirement(ZONE, "In", "a", "c")])),
            [],
            id="one of several terms is enough",
        ),
        pytest.param(
            make_pool(requirement("size", "Gt", "4"), requirement("size", "Lt", "9")),
            pod_with(**affine([requirement("size", "Gt", "7")])),
            [],
            id="ranges that meet",
        ),
        pytest.param(
            make_pool(requirement("size", "Lte", "8")),
            pod_with(**affine([requirement("size", "Gt", "8")])),
            [("Requirement", "size > 8", "size <= 8")],
            id="ranges that do not meet",
        ),
        pytest.param(
            make_pool(requirement("team", "DoesNotExist")),
            pod_with(**affine([requirement("team", "NotIn", "ml")])),
            [],
            id="neither needs the label",
        ),
        pytest.param(make_pool(taints=[GPU]), pod_with(), [("Taint", "", "gpu=true:NoSchedule")], id="a taint"),
        pytest.param(
            make_pool(taints=[GPU]), pod_with(tolerations=[{"key": "gpu", "operator": "Exists"}]), [], id="tolerated"
        ),
        pytest.param(make_pool(taints=[{**GPU, "effect": "PreferNoSchedule"}]), pod_with(), [], id="a mere preference"),
        pytest.param(
            make_pool(limits={"cpu": "10"}, status={"resources": {"cpu": "8"}}),
            pod_with(cpu="3"),
            [("Limit", "cpu", (3000, 8000, 10000))],
            id="the limit leaves less than the request",
        ),
        pytest.param(
            make_pool(limits={"cpu": "10"}, status={"resources": {"cpu": "8"}}), pod_with(cpu="2"), [], id="just enough"
        ),
        pytest.param(
            make_pool(limits={"nodes": "2"}, status={"resources": {"nodes": "2"}}),
            pod_with(),
            [("Limit", "nodes", (0, 2, 2))],
            id="no further node",
        ),
        pytest.param(
            make_pool(limits={"nvidia.com/gpu": "8"}, status={"resources": {"nvidia.com/gpu": "8"}}),
            pod_with(),
            [],
            id="no GPU is left, and none is requested",
        ),
        pytest.param(make_pool(limits={"cpu": "10"}), pod_with(cpu="10"), [], id="a limit without a usage"),
        pytest.param(
            make_pool(requirement(CPUS, "In", "4", "8")),
            pod_with(cpu="9"),
            [("Size", "cpu", (9000, 0, 8000))],
            id="machines that are too small",
        ),
        pytest.param(
            make_pool(requirement(CPUS, "Lt", "9")),
            pod_with(cpu="9"),
            [("Size", "cpu", (9000, 0, 8000))],
            id="machines below a size",
        ),
        pytest.param(make_pool(requirement(CPUS, "Gt", "4")), pod_with(cpu="90"), [], id="machines of any larger size"),
        pytest.param(make_pool(replicas=2), pod_with(), [("Static", "", "")], id="a pool of a fixed size"),
        pytest.param(make_pool(deleted=True), pod_with(), [("BeingDeleted", "", "")], id="a pool that is deleted"),
        pytest.param(
            make_pool(status={"conditions": [{"type": "Ready", "status": "False", "message": "no NodeClass"}]}),
            pod_with(),
            [("NotReady", "", "no NodeClass")],
            id="a pool that is not ready",
        ),
        pytest.param(
            make_pool(requirement(ZONE, "Somehow", "a")),
            pod_with(nodeSelector={ZONE: "b"}),
            [],
            id="an unknown operator",
        ),
    ],
)
def test_what_is_in_the_way_on_nodes_of_a_pool(pool: NodePool, pod: Pod, expected: list[tuple[Any, ...]]) -> None:
    found = []
    for each in obstacles_of(pool, pod, []).obstacles:
        if each.limit:
            found.append((str(each.kind), each.key, (each.requested, each.used, each.limit)))
        else:
            found.append((str(each.kind), each.wanted, each.offered or each.message))
    assert found == expected


def volume_cluster(pv_zone: str = "", class_zone: str = "") -> ClusterSnapshot:
    claim = {"metadata": {"name": "data", "namespace": "shop"}, "spec": {"storageClassName": "fast"}}
    disks = []
    if pv_zone:
        claim["spec"]["volumeName"] = "pv-1"  # type: ignore[index]
        terms = [{"matchExpressions": [requirement("topology.ebs.csi.aws.com/zone", "In", pv_zone)]}]
        spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
        disks = [as_record({"metadata": {"name": "pv-1"}, "spec": spec}, PersistentVolume)]
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": [class_zone]}]}] if class_zone else []
    storage = {"metadata": {"name": "fast"}, "allowedTopologies": topologies}
    return ClusterSnapshot(
        persistent_volume_claims=[as_record(claim, PersistentVolumeClaim)],
        persistent_volumes=disks,
        storage_classes=[as_record(storage, StorageClass)],
    )


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param(volume_cluster(pv_zone="a"), [], id="a volume in a zone of the pool"),
        pytest.param(volume_cluster(pv_zone="b"), ["PersistentVolume pv-1"], id="a volume in another zone"),
        pytest.param(volume_cluster(class_zone="b"), ["StorageClass fast"], id="a class for another zone"),
        pytest.param(volume_cluster(), [], id="a volume that may be anywhere"),
        pytest.param(ClusterSnapshot(), [], id="a claim that is not known"),
    ],
)
def test_volumes_may_be_in_the_way(cluster: ClusterSnapshot, expected: list[str]) -> None:
    pod = pod_with(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    found = obstacles_of(make_pool(requirement(ZONE, "In", "a")), pod, Volumes(cluster).of(pod))
    assert [each.volume for each in found.obstacles] == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(
            "pod didn't trigger scale-up: 1 Insufficient cpu, 2 max node group size reached",
            [(2, "max node group size reached"), (1, "Insufficient cpu")],
            id="the most frequent first",
        ),
        pytest.param(
            "pod didn't trigger scale-up (it wouldn't fit if a new node is added): 3 Insufficient memory",
            [(3, "Insufficient memory")],
            id="the text of old versions",
        ),
        pytest.param("pod didn't trigger scale-up: max total nodes in cluster reached", [], id="no counts"),
        pytest.param("pod didn't trigger scale-up: ", [], id="no reason"),
        pytest.param("", [], id="no text"),
    ],
)
def test_reasons_are_counted_by_node_group(message: str, expected: list[tuple[int, str]]) -> None:
    found = [(each.groups, each.reason) for each in counted_reasons(message)]
    assert sorted(found) == sorted(expected)
    assert [groups for groups, _ in found] == sorted((groups for groups, _ in found), reverse=True)


def event(
    reason: str,
    message: str = "",
    *,
    minutes: int = 5,
    component: str = "cluster-autoscaler",
    about: tuple[str, str, str, str] = ("Pod", "shop", "p", "u"),
    modern: bool = False,
) -> Event:
    kind, namespace, name, uid = about
    subject = {"kind": kind, "namespace": namespace, "name": name, "uid": uid}
    at = (NOW - timedelta(minutes=minutes)).isoformat()
    document: dict[str, Any] = {"metadata": {"name": f"{name}.{reason}.{minutes}", "namespace": namespace or "default"}}
    if modern:
        document |= {"regarding": subject, "note": message, "eventTime": at, "reportingController": component}
    else:
        document |= {
            "involvedObject": subject,
            "message": message,
            "lastTimestamp": at,
            "source": {"component": component},
        }
    return msgspec.convert({**document, "reason": reason}, Event)


NOT_TRIGGERED = "pod didn't trigger scale-up: 1 max node group size reached"
FAILED = "Failed to schedule pod, did not tolerate gpu:NoSchedule; no instance type has enough resources"


def answer(*events: Event, pods: list[Pod] | None = None, **cluster: Any) -> Autoscaling | None:
    pods = [pod_with()] if pods is None else pods
    return autoscaling_of(ClusterSnapshot(events=list(events), pods=pods, **cluster), pods, NOW)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([event("NotTriggerScaleUp", NOT_TRIGGERED)], ["NotTriggerScaleUp"], id="core/v1"),
        pytest.param(
            [event("NotTriggerScaleUp", NOT_TRIGGERED, modern=True)], ["NotTriggerScaleUp"], id="events.k8s.io"
        ),
        pytest.param(
            [
                event("TriggeredScaleUp", minutes=9),
                event("NotTriggerScaleUp", NOT_TRIGGERED, minutes=30),
                event("NotTriggerScaleUp", NOT_TRIGGERED, minutes=3),
            ],
            ["NotTriggerScaleUp", "TriggeredScaleUp"],
            id="the latest of each reason, the latest first",
        ),
        pytest.param(
            [event("FailedScheduling", FAILED, component="karpenter")], ["FailedScheduling"], id="Karpenter's own"
        ),
        pytest.param(
            [event("FailedScheduling", FAILED, component="eks-auto-mode/compute")],
            ["FailedScheduling"],
            id="Karpenter in EKS Auto Mode",
        ),
        pytest.param([event("FailedScheduling", FAILED, component="")], ["FailedScheduling"], id="by its text"),
        pytest.param(
            [event("NotTriggerScaleUp", NOT_TRIGGERED, about=("Pod", "shop", "p", "earlier"))],
            [],
            id="about an earlier pod of that name",
        ),
    ],
)
def test_what_is_reported_about_a_pod(events: list[Event], expected: list[str]) -> None:
    found = answer(*events)
    assert found is not None
    [pod] = found.pods
    assert [each.reason for each in pod.reports] == expected


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([], id="no event"),
        pytest.param([event("FailedScheduling", "0/1 nodes", component="default-scheduler")], id="the scheduler's"),
        pytest.param([event("ScaleDown", "x", component="some-operator")], id="another program's"),
        pytest.param([event("Nominated", component="kueue")], id="another program's of the same reason"),
    ],
)
def test_without_a_sign_of_an_autoscaler_there_is_no_answer(events: list[Event]) -> None:
    assert answer(*events, nodes=[make_node("n1")], unread={"NodePool": Unread(403)}) is None


@pytest.mark.parametrize(
    ("cluster", "unread", "expected"),
    [
        pytest.param(
            {"nodes": [make_node("n1", labels={"karpenter.sh/nodepool": "a"})]},
            {"NodePool": Unread(0), "NodeClaim": Unread(403)},
            [("NodePool", 0), ("NodeClaim", 403)],
            id="nodes of Karpenter, without its objects",
        ),
        pytest.param(
            {"node_pools": [make_pool()]}, {"ConfigMap": Unread(403)}, [], id="the status of another autoscaler"
        ),
        pytest.param(
            {"events": [event("NotTriggerScaleUp")]},
            {"ConfigMap": Unread(403), "NodePool": Unread(0)},
            [("ConfigMap", 403)],
            id="its own status",
        ),
        pytest.param({"node_pools": [make_pool()]}, {"Event": Unread(0)}, [("Event", 0)], id="a dump without events"),
    ],
)
def test_what_was_not_read_is_listed_if_the_cluster_shows_its_autoscaler(
    cluster: dict[str, Any], unread: dict[str, Unread], expected: list[tuple[str, int]]
) -> None:
    found = autoscaling_of(ClusterSnapshot(pods=[pod_with()], unread=unread, **cluster), [pod_with()], NOW)
    assert found is not None
    assert [(each.kind, each.status) for each in found.not_read] == expected


def test_pods_with_the_same_answer_are_one_group_with_the_latest_time() -> None:
    pods = [make_pod(name, cpu="1") for name in ("a", "b", "c")]
    events = [
        event("NotTriggerScaleUp", NOT_TRIGGERED, minutes=minutes, about=("Pod", "shop", name, f"uid-shop-{name}"))
        for name, minutes in (("a", 9), ("b", 4), ("c", 7))
    ]
    older = event("TriggeredScaleUp", minutes=20, about=("Pod", "shop", "a", "uid-shop-a"))
    other = event("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 x", about=("Pod", "shop", "c", "uid-shop-c"))
    found = answer(*events[:2], older, other, pods=pods)
    assert found is not None
    assert [each.pods for each in found.pods] == [["shop/a", "shop/b"], ["shop/c"]]
    [report] = found.pods[0].reports
    assert report.at == NOW - timedelta(minutes=4)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(owned(make_pod("p"), "DaemonSet", "d"), [IgnoredBecause.DAEMON_SET], id="of a DaemonSet"),
        pytest.param(make_pod("p", nominated="n1"), [IgnoredBecause.NOMINATED], id="nominated"),
        pytest.param(make_pod("p", priority=-11), [IgnoredBecause.LOW_PRIORITY], id="of a priority below the cutoff"),
        pytest.param(make_pod("p", priority=-10), [], id="at the cutoff"),
    ],
)
def test_pods_for_which_no_node_is_added_whatever_they_need(pod: Pod, expected: list[IgnoredBecause]) -> None:
    found = answer(event("MaxNodesTotalReached", about=("ConfigMap", "kube-system", "s", "")), pods=[pod])
    assert found is not None
    assert found.pods[0].ignored == expected


def test_a_report_from_before_the_last_change_is_marked() -> None:
    pod = pod_with()
    created = msgspec.structs.replace(pod.metadata, uid="", creation_timestamp=NOW - timedelta(minutes=10))
    pod = msgspec.structs.replace(pod, metadata=created)
    reports = [
        event("NotTriggerScaleUp", NOT_TRIGGERED, minutes=minutes, about=("Pod", "shop", "p", ""))
        for minutes in (8, 12)
    ]
    found = answer(*reports, pods=[pod])
    assert found is not None
    # The one from before the pod was created is about another pod.
    [report] = found.pods[0].reports
    assert (report.at, report.is_outdated) == (NOW - timedelta(minutes=8), False)
    cluster = ClusterSnapshot(events=reports[:1], pods=[pod])
    changed = autoscaling_of(cluster, [pod], NOW, changed=[pod.key])
    assert changed is not None
    assert changed.pods[0].is_changed
    assert words(changed)[0].startswith("Cluster Autoscaler, 8m ago, about the pod without these changes: ")


REMOVED = "Scale-down: node n9 removed with drain"
CONFIG_MAP = ("ConfigMap", "kube-system", "cluster-autoscaler-status", "")


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        pytest.param([event("ScaleDown", REMOVED, about=CONFIG_MAP)], [REMOVED], id="a node that was removed"),
        pytest.param([event("ScaleDown", REMOVED, minutes=90, about=CONFIG_MAP)], [], id="long ago"),
        pytest.param(
            [event("ScaleDown", REMOVED, about=CONFIG_MAP), event("ScaleDown", "x", about=("Node", "", "n9", ""))],
            [REMOVED],
            id="reported about the node, too",
        ),
        pytest.param(
            [
                event("DisruptionTerminating", f"Disrupting {kind}", component="karpenter", about=(kind, "", "n9", ""))
                for kind in ("Node", "NodeClaim")
            ],
            ["Disrupting Node"],
            id="by Karpenter",
        ),
        pytest.param(
            [event("FailedToScaleUpGroup", "Scale-up failed for group a: b", minutes=90, about=CONFIG_MAP)],
            ["Scale-up failed for group a: b"],
            id="a scale-up that failed",
        ),
        pytest.param(
            [
                event(
                    "MaxNodesTotalReached", "Max total nodes in cluster reached: 9", minutes=minutes, about=CONFIG_MAP
                )
                for minutes in (9, 3)
            ],
            ["Max total nodes in cluster reached: 9"],
            id="once, however often it was reported",
        ),
    ],
)
def test_what_is_reported_about_nodes_and_node_groups(reports: list[Event], expected: list[str]) -> None:
    found = answer(*reports)
    assert found is not None
    assert [each.message for each in found.reports] == expected


def claim(**conditions: str) -> NodeClaim:
    listed = [{"type": name, "status": status, "reason": "Why"} for name, status in conditions.items()]
    metadata = {"name": "general-x", "labels": {"karpenter.sh/nodepool": "general"}}
    found: NodeClaim = as_record({"metadata": metadata, "status": {"conditions": listed}}, NodeClaim)
    return found


@pytest.mark.parametrize(
    ("node_claim", "missing"),
    [
        pytest.param(claim(), "Launched", id="without conditions"),
        pytest.param(claim(Launched="True", Registered="Unknown"), "Registered", id="launched"),
        pytest.param(claim(Launched="True", Registered="True", Initialized="False"), "Initialized", id="registered"),
        pytest.param(claim(Launched="True", Registered="True", Initialized="True", Ready="True"), "", id="ready"),
    ],
)
def test_claims_whose_nodes_are_not_ready(node_claim: NodeClaim, missing: str) -> None:
    found = answer(node_claims=[node_claim])
    assert found is not None
    assert [each.missing for each in found.claims] == ([missing] if missing else [])


@pytest.mark.parametrize(
    ("scheduler", "component", "message", "counts"),
    [
        pytest.param("default-scheduler", "default-scheduler", "0/1 nodes", True, id="its scheduler's"),
        pytest.param("default-scheduler", "", "0/1 nodes", True, id="unknown"),
        pytest.param("default-scheduler", "karpenter", FAILED, False, id="Karpenter's"),
        pytest.param("default-scheduler", "", FAILED, False, id="Karpenter's by its text"),
        pytest.param("default-scheduler", "eks-auto-mode/compute", FAILED, False, id="EKS Auto Mode's"),
        pytest.param("gpu-scheduler", "gpu-scheduler", "0/1 nodes", True, id="of a profile"),
        pytest.param("gpu-scheduler", "default-scheduler", "0/1 nodes", False, id="another scheduler's"),
    ],
)
@pytest.mark.parametrize("modern", [False, True])
def test_only_attempts_of_the_pod_s_scheduler_count(
    scheduler: str, component: str, message: str, counts: bool, modern: bool
) -> None:
    attempts = FailedAttempts([event("FailedScheduling", message, component=component, modern=modern)])
    last = attempts.last_of(pod_with(schedulerName=scheduler))
    assert last == (NOW - timedelta(minutes=5) if counts else None)


def words(found: Autoscaling | None, *, is_brief: bool = False) -> list[str]:
    assert found is not None
    section = autoscaling_section(found, NOW, priority=1)
    report = Report(lead="", sections=[section.short if is_brief and section.short is not None else section])
    options = RenderOptions(width=200, extent=Extent.REPORT, verbose=True, now=NOW)
    return [
        line.removeprefix("AUTOSCALER").strip() for line in render_text(report, options).splitlines() if line.strip()
    ]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            answer(event("NotTriggerScaleUp", NOT_TRIGGERED)),
            [
                "Cluster Autoscaler, 5m ago: pod didn't trigger scale-up",
                "1 node group: max node group size reached",
            ],
            id="a reason per line",
        ),
        pytest.param(
            answer(event("NotTriggerScaleUp", "pod didn't trigger scale-up: max total nodes in cluster reached")),
            ["Cluster Autoscaler, 5m ago: pod didn't trigger scale-up: max total nodes in cluster reached"],
            id="no counts",
        ),
        pytest.param(
            answer(event("NotTriggerScaleUp", "pod didn't trigger scale-up: ")),
            ["Cluster Autoscaler, 5m ago: pod didn't trigger scale-up; it considered no node group"],
            id="no reason",
        ),
        pytest.param(
            answer(event("TriggeredScaleUp", "pod triggered scale-up: [{asg 1->3 (max: 5)}]")),
            [
                "Cluster Autoscaler, 5m ago: pod triggered scale-up",
                "node group asg from 1 to 3 nodes (maximum 5)",
            ],
            id="a scale-up",
        ),
        pytest.param(
            answer(event("FailedScheduling", FAILED, component="karpenter")),
            [
                "Karpenter, 5m ago: Failed to schedule pod",
                "did not tolerate gpu:NoSchedule",
                "no instance type has enough resources",
            ],
            id="Karpenter's errors",
        ),
        pytest.param(
            answer(node_pools=[make_pool(taints=[GPU], limits={"cpu": "4"}, status={"resources": {"cpu": "4"}})]),
            [
                "no report about the pod: there was none, or its events have expired (after 1h by default)",
                "NodePool general: gpu=true:NoSchedule is not tolerated; limit of 4 cpu, 4 used, the pod requests 1",
            ],
            id="a pool",
        ),
        pytest.param(
            answer(node_pools=[make_pool()], unread={"NodeClaim": Unread(403), "Event": Unread(0)}),
            [
                "no report about the pod: there was none, or its events have expired (after 1h by default)",
                "NodePool general: nothing in the way (instance types are not checked)",
                "events are not in the snapshot (kubectl get events -A -o yaml)",
                "NodeClaims are not read (403); missing permission: list nodeclaims.karpenter.sh",
            ],
            id="what was not read",
        ),
    ],
)
def test_the_words(found: Autoscaling | None, expected: list[str]) -> None:
    assert words(found) == expected
