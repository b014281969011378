"""What ended a pod, from its conditions and status, events, its node and owner, and an audit log."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.evictions import queries
from kpreempt.errors import NotFoundError
from kpreempt.model.audit import AuditedObject, AuditLog, AuditRequest, AuditStatus, AuditUser
from kpreempt.model.cluster import ClusterSnapshot, Unread
from kpreempt.model.event import Event, EventSource, ObjectReference
from kpreempt.model.meta import ObjectName, OwnerReference, replace_in
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.model.taints import Taint
from kpreempt.model.terminations import TerminationCause, is_known_text, pressure_of, with_names
from kpreempt.report import evicted_pods, who_evicted
from kpreempt.report.blocks import text_of
from kpreempt.report.options import RenderOptions
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.audit_log import read_audit_log
from kpreempt.snapshot.load import load_snapshot
from kpreempt.verdict.who_evicted import EvictionsOfPod
from tests.factories import NOW, make_node, make_pod

FIXTURES = Path(__file__).parents[3] / "fixtures" / "evictions"
CLUSTER = load_snapshot([str(FIXTURES / "cluster.yaml")]).cluster
AUDIT = read_audit_log([str(FIXTURES / "audit.log")], InputLimits())
# The fixture's.
LATER = NOW.replace(hour=3, minute=12)
OPTIONS = RenderOptions(now=LATER)


def sentence(answer: EvictionsOfPod) -> str:
    return text_of(who_evicted.report(answer, OPTIONS).lead)


@pytest.mark.parametrize(
    ("name", "cause", "expected"),
    [
        (
            "critical",
            TerminationCause.CRITICAL_POD,
            "The kubelet on node-a evicted shop/critical 7m ago to admit a critical pod.",
        ),
        (
            "pressure",
            TerminationCause.NODE_PRESSURE,
            "The kubelet on node-a evicted shop/pressure 7m ago because the node was low on memory (container app used "
            "1181116006 and requested 256Mi; 52Mi was available, the threshold is 100Mi).",
        ),
        (
            "storage",
            TerminationCause.LOCAL_STORAGE_LIMIT,
            "The kubelet on node-a evicted shop/storage because container app exceeded its limit of ephemeral storage "
            "of 1Gi.",
        ),
        (
            "shutdown",
            TerminationCause.NODE_SHUTDOWN,
            "The kubelet on node-a ended shop/shutdown 7m ago because the node was shutting down.",
        ),
        (
            "tainted",
            TerminationCause.NO_EXECUTE_TAINT,
            "The taint eviction controller evicted shop/tainted 7m ago because of a NoExecute taint on node-c "
            "(node.kubernetes.io/unreachable:NoExecute, tolerated for 300s).",
        ),
        (
            "drained",
            TerminationCause.EVICTION_API,
            "shop/drained was evicted through the Eviction API on node-b 7m ago, probably by a drain of the "
            "node (the node is cordoned).",
        ),
        (
            "evicted",
            TerminationCause.EVICTION_API,
            "shop/evicted was evicted through the Eviction API on node-a 7m ago; nothing shows which client requested "
            "it, such as kubectl drain or an autoscaler.",
        ),
        (
            "orphan",
            TerminationCause.NODE_GONE,
            "PodGC deleted shop/orphan 7m ago because its node node-x no longer exists.",
        ),
        (
            "loop-0",
            TerminationCause.REJECTED,
            "shop/loop-0 never ran: the kubelet on node-a rejected it 7m59s ago, OutOfcpu: Node didn't have enough "
            "resource: cpu, requested: 500, used: 3800, capacity: 4000. 2 more pods of ReplicaSet loop were "
            "rejected in "
            "the same way on node-a since 2026-11-21T03:04:00Z.",
        ),
        (
            "oom",
            TerminationCause.OOM_KILLED,
            "shop/oom was not evicted: its container app was OOM-killed 4m ago (exit code 137); 3 restarts.",
        ),
        (
            "probed",
            TerminationCause.FAILED_PROBE,
            "shop/probed was not evicted: the kubelet on node-a restarted its container app 3m ago because its "
            "liveness "
            "probe failed.",
        ),
        (
            "crashed",
            TerminationCause.CONTAINERS_EXITED,
            "shop/crashed was not evicted: its container app exited with code 2 4m ago.",
        ),
        (
            "leaving",
            TerminationCause.DELETED,
            "shop/leaving was deleted 60s ago; it has no DisruptionTarget condition, which evictions set since "
            "Kubernetes 1.26. Its owner or a client deleted it; only an audit log shows which.",
        ),
        (
            "collected",
            TerminationCause.OWNER_DELETED,
            "shop/collected was not evicted: it was deleted 60s ago, probably because its owner, ReplicaSet gone, was "
            "deleted.",
        ),
        (
            "karpenter",
            TerminationCause.EVICTION_API,
            "Karpenter evicted shop/karpenter 10m ago (Underutilized).",
        ),
        (
            "descheduled",
            TerminationCause.EVICTION_API,
            "The descheduler evicted shop/descheduled on node-a 10m ago (LowNodeUtilization).",
        ),
        ("autoscaled", TerminationCause.EVICTION_API, "Cluster Autoscaler evicted shop/autoscaled 10m ago."),
        (
            "scaled-down",
            TerminationCause.DELETED_BY_OWNER,
            "shop/scaled-down was not evicted: its owner, ReplicaSet web, deleted it 9m ago.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_each_cause_is_stated_in_a_sentence(name: str, cause: TerminationCause, expected: str) -> None:
    answer = queries.evictions_of_pod(CLUSTER, "shop", name)
    assert (answer.items[0].cause, sentence(answer)) == (cause, expected)
    assert answer.items[0].is_eviction is cause.is_eviction


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("evicted", "alice evicted shop/evicted on node-a 7m ago with kubectl drain.", id="an eviction"),
        pytest.param(
            "leaving",
            "shop/leaving was not evicted: bob deleted it 60s ago with kubectl.",
            id="a pod that still exists",
        ),
        pytest.param(
            "removed", "shop/removed was not evicted: bob deleted it 6m ago with kubectl.", id="a pod that is gone"
        ),
        pytest.param(
            "replaced",
            "shop/replaced was not evicted: its owner, a ReplicaSet, deleted it 5m ago.",
            id="a controller of kube-controller-manager",
        ),
        pytest.param(
            "kept",
            "shop/kept is gone, and nothing shows what ended it: neither an eviction nor anything else is excluded.",
            id="a rejected request ended nothing",
        ),
    ],
)
def test_an_audit_log_names_the_user_and_the_program(name: str, expected: str) -> None:
    assert sentence(queries.evictions_of_pod(CLUSTER, "shop", name, AUDIT)) == expected


def test_rejected_eviction_requests_are_counted() -> None:
    item = queries.evictions_of_pod(CLUSTER, "shop", "evicted", AUDIT).items[0]
    assert item.rejected_requests == 1
    assert item.client is not None
    assert (item.client.user, item.client.user_agent) == ("alice", "kubectl/v1.36.3 (linux/amd64) kubernetes/0123abc")


def test_an_announced_eviction_that_was_canceled_is_none() -> None:
    assert queries.evictions_of_pod(CLUSTER, "shop", "canceled").items == []


def test_a_pod_that_goes_on_was_not_evicted_but_one_of_its_name_may_have_been() -> None:
    assert sentence(queries.evictions_of_pod(CLUSTER, "shop", "db-0")) == (
        "shop/db-0 was not evicted: it is running on node-a. Whether an earlier pod of this name was evicted is "
        "unknown: "
        "events are kept for an hour."
    )


def test_a_pod_in_another_namespace_is_offered() -> None:
    with pytest.raises(NotFoundError, match='pod "oom" in namespace "default" not found') as caught:
        queries.evictions_of_pod(CLUSTER, "default", "oom")
    assert caught.value.hint == "it is in shop: -n shop"
    found = queries.evictions_everywhere(CLUSTER, "oom")
    assert isinstance(found, EvictionsOfPod)
    assert found.victim.pod == "shop/oom"


def test_pods_of_a_workload_include_those_that_are_gone() -> None:
    workload = ObjectName("ReplicaSet", "shop", "loop")
    gone = Event(
        reason="OutOfmemory",
        regarding=ObjectReference("Pod", "shop", "loop-x7z5k", "uid-gone"),
        note="Node didn't have enough resource: memory, requested: 5, used: 3, capacity: 4",
        event_time=LATER,
        reporting_controller="kubelet",
    )
    cluster = msgspec.structs.replace(CLUSTER, events=[*CLUSTER.events, gone])
    answer = queries.evictions_of_workload(cluster, workload)
    assert [(each.victim.pod, each.is_by_name) for each in answer.items] == [
        ("shop/loop-x7z5k", True),
        *((f"shop/loop-{number}", False) for number in range(3)),
    ]
    assert text_of(evicted_pods.report(answer, OPTIONS).lead) == (
        "No pod of ReplicaSet shop/loop was evicted, but 4 ended or restarted: most often rejected by the kubelet: "
        "OutOfcpu; 1 is gone; 0 pods are running."
    )
    with pytest.raises(NotFoundError):
        queries.evictions_of_workload(CLUSTER, ObjectName("ReplicaSet", "shop", "absent"))


def test_all_pods_of_a_namespace_are_listed() -> None:
    answer = queries.all_evictions(CLUSTER, "shop")
    ended = {each.victim.pod.partition("/")[2] for each in answer.items}
    assert {"critical", "oom", "karpenter", "scaled-down"} <= ended
    assert not {"db-0", "canceled"} & ended
    assert queries.all_evictions(CLUSTER, "other").items == []
    assert len(queries.all_evictions(CLUSTER, "").items) == len(answer.items)


def condition(reason: str, status: str = "True", message: str = "") -> PodCondition:
    return PodCondition("DisruptionTarget", status, reason, message, NOW)


def evicted_pod(name: str = "web", node: str = "node-a", **changes: Any) -> Pod:
    return replace_in(make_pod(name, node=node), "status", **changes)


@pytest.mark.parametrize(
    ("reason", "status", "cause"),
    [
        pytest.param("EvictionByEvictionAPI", "True", TerminationCause.EVICTION_API, id="it is set"),
        pytest.param("EvictionByEvictionAPI", "False", None, id="the eviction did not happen, and it was reset"),
        pytest.param("DeletionByDeviceTaintManager", "True", TerminationCause.DEVICE_TAINT, id="a device taint"),
        pytest.param("NovelReason", "True", TerminationCause.OTHER_DISRUPTION, id="a reason that is unknown"),
    ],
)
def test_a_condition_counts_if_it_is_true(reason: str, status: str, cause: TerminationCause | None) -> None:
    cluster = ClusterSnapshot(pods=[evicted_pod(conditions=[condition(reason, status)])])
    items = queries.evictions_of_pod(cluster, "shop", "web").items
    assert [each.cause for each in items] == ([cause] if cause else [])


@pytest.mark.parametrize(
    ("taints", "likely"),
    [
        pytest.param([("karpenter.sh/disrupted", "NoSchedule")], "Karpenter", id="Karpenter's taint"),
        pytest.param([("ToBeDeletedByClusterAutoscaler", "NoSchedule")], "Cluster Autoscaler", id="an autoscaler's"),
        pytest.param([("dedicated", "NoSchedule")], "", id="any other taint"),
    ],
)
def test_the_node_s_taints_point_to_the_client(taints: list[tuple[str, Any]], likely: str) -> None:
    node = replace_in(make_node("node-a"), "spec", taints=[Taint(key, effect=effect) for key, effect in taints])
    cluster = ClusterSnapshot(nodes=[node], pods=[evicted_pod(conditions=[condition("EvictionByEvictionAPI")])])
    client = queries.evictions_of_pod(cluster, "shop", "web").items[0].client
    assert (client.name if client else "", bool(client and client.is_likely)) == (likely, bool(likely))


def document(kind: str, name: str, *entries: tuple[str, str, Any], **metadata: Any) -> dict[str, Any]:
    """A complete object with managed fields: the manager, the time and the fields of the spec."""
    managed = [
        {"manager": manager, "time": time, "fieldsV1": {"f:spec": {f"f:{each}": {} for each in fields}}}
        for manager, time, fields in entries
    ]
    namespace = {} if kind == "Node" else {"namespace": "shop"}
    return {"kind": kind, "metadata": {"name": name, **namespace, "managedFields": managed, **metadata}}


@pytest.mark.parametrize(
    ("manager", "likely"),
    [
        pytest.param("kubectl", "kubectl drain", id="kubectl"),
        pytest.param("karpenter", "Karpenter", id="Karpenter"),
        pytest.param("node-termination-handler", "node-termination-handler", id="any other program"),
    ],
)
def test_what_cordoned_the_node_probably_drains_it(manager: str, likely: str) -> None:
    node = replace_in(make_node("node-a"), "spec", unschedulable=True)
    cluster = ClusterSnapshot(nodes=[node], pods=[evicted_pod(conditions=[condition("EvictionByEvictionAPI")])])
    cordoned = document("Node", "node-a", (manager, "2026-11-21T00:00:00Z", ["unschedulable"]))
    client = queries.evictions_of_pod(cluster, "shop", "web", documents=[cordoned]).items[0].client
    assert client is not None
    assert (client.name, client.is_likely) == (likely, True)
    assert client.signs == [f"{manager} cordoned the node at 2026-11-21T00:00:00Z"]


@pytest.mark.parametrize(
    ("documents", "changes"),
    [
        pytest.param(
            [document("ReplicaSet", "web", ("kubectl", "2026-11-21T03:02:58Z", ["replicas"]))],
            [("ReplicaSet web", "kubectl")],
            id="the owner's size",
        ),
        pytest.param(
            [
                document(
                    "ReplicaSet",
                    "web",
                    ("kube-controller-manager", "2026-11-21T03:02:59Z", ["replicas"]),
                    ownerReferences=[{"kind": "Deployment", "name": "shop", "controller": True}],
                ),
                document("Deployment", "shop", ("argocd", "2026-11-21T03:02:58Z", ["template"])),
            ],
            [("Deployment shop", "argocd")],
            id="the template of the owner's owner",
        ),
        pytest.param(
            [document("ReplicaSet", "web", ("helm", "2026-11-21T01:00:00Z", ["replicas"]))], [], id="a change long ago"
        ),
        pytest.param(
            [document("ReplicaSet", "web", ("helm", "2026-11-21T03:10:00Z", ["replicas"]))], [], id="a later change"
        ),
        pytest.param([{"kind": "ReplicaSet", "metadata": {"managedFields": "damaged"}}], [], id="a damaged object"),
        pytest.param([document("ReplicaSet", "web", ("helm", "no time", ["replicas"]))], [], id="a damaged time"),
    ],
)
def test_the_last_change_of_the_owner_is_shown(documents: list[dict[str, Any]], changes: list[tuple[str, str]]) -> None:
    item = queries.evictions_of_pod(CLUSTER, "shop", "scaled-down", documents=documents).items[0]
    assert [(each.object, each.manager) for each in item.owner_changes] == changes


def test_a_condition_of_a_pod_that_goes_on_only_announces_its_end() -> None:
    marked = evicted_pod(conditions=[condition("EvictionByEvictionAPI", message="Eviction API: evicting")])
    assert sentence(queries.evictions_of_pod(ClusterSnapshot(pods=[marked]), "shop", "web")) == (
        "shop/web is not terminating, although it has the condition DisruptionTarget (EvictionByEvictionAPI: Eviction "
        "API: evicting): it is about to be evicted, or its eviction failed."
    )


def reported(reason: str, note: str, reporter: str, *, uid: str = "uid-shop-web", at: Any = NOW) -> Event:
    subject = ObjectReference("Pod", "shop", "web", uid)
    return Event(reason=reason, regarding=subject, note=note, event_time=at, reporting_controller=reporter)


def test_an_event_of_another_pod_with_the_same_name_is_told_apart() -> None:
    events = [reported("Evicted", "The node was low on resource: memory. ", "kubelet", uid="uid-old")]
    cluster = ClusterSnapshot(pods=[make_pod("web", node="node-b")], events=events)
    answer = queries.evictions_of_pod(cluster, "shop", "web")
    assert [(each.uid, each.cause) for each in answer.items] == [("uid-old", TerminationCause.NODE_PRESSURE)]
    assert sentence(answer).startswith("An earlier pod of this name ended: The kubelet evicted shop/web")


def test_an_event_without_a_uid_belongs_to_the_pod_that_existed_then() -> None:
    event = reported("TaintManagerEviction", "Marking for deletion Pod shop/web", "taint-eviction-controller", uid="")
    older = replace_in(make_pod("web", node="node-b"), "metadata", creation_timestamp=NOW - timedelta(minutes=1))
    newer = replace_in(make_pod("web", node="node-b"), "metadata", creation_timestamp=NOW + timedelta(minutes=1))
    for pod, uid in ((older, "uid-shop-web"), (newer, "")):
        answer = queries.evictions_of_pod(ClusterSnapshot(pods=[pod], events=[event]), "shop", "web")
        assert [each.uid for each in answer.items] == [uid]


def test_karpenter_and_the_kubelet_use_the_same_reason() -> None:
    source = EventSource(component="kubelet", host="node-7")
    old = Event(
        reason="Evicted",
        involved_object=ObjectReference("Pod", "shop", "web", "u"),
        message="The node was low on resource: memory. ",
        last_timestamp=NOW,
        source=source,
    )
    item = queries.evictions_of_pod(ClusterSnapshot(events=[old]), "shop", "web").items[0]
    assert (item.cause, item.node, item.client) == (TerminationCause.NODE_PRESSURE, "node-7", None)
    new = reported("Evicted", "Evicted pod: Drifted", "karpenter")
    item = queries.evictions_of_pod(ClusterSnapshot(events=[new]), "shop", "web").items[0]
    assert item.cause is TerminationCause.EVICTION_API
    assert item.client is not None
    assert (item.client.name, item.client.detail) == ("Karpenter", "Drifted")


@pytest.mark.parametrize(
    ("events", "requests", "expected"),
    [
        pytest.param(
            [("DisruptionTerminating", "Disrupting Node: Drifted", "karpenter")],
            [],
            "; Karpenter probably removed it (event on the node: Disrupting Node: Drifted)",
            id="Karpenter reports it",
        ),
        pytest.param(
            [("ScaleDown", "marked the node as toBeDeleted/unschedulable", "cluster-autoscaler")],
            [],
            "; Cluster Autoscaler probably removed it (event on the node: marked the node as "
            "toBeDeleted/unschedulable)",
            id="Cluster Autoscaler reports it",
        ),
        pytest.param([], [("delete", 200)], "; carol deleted it with kubectl", id="a user deleted it"),
        pytest.param([], [("delete", 403), ("patch", 200)], "", id="a user was not allowed to"),
        pytest.param([], [], "", id="nothing shows it"),
    ],
)
def test_what_removed_a_node_is_named(
    events: list[tuple[str, str, str]], requests: list[tuple[str, int]], expected: str
) -> None:
    about = ObjectReference("Node", "", "node-x", "uid-node-x")
    reported_ones = [
        Event(reason=reason, regarding=about, note=note, event_time=LATER, reporting_controller=reporter)
        for reason, note, reporter in events
    ]
    made = [
        AuditRequest(
            verb=verb,
            user=AuditUser("carol"),
            user_agent="kubectl/v1.36.3",
            object_ref=AuditedObject(resource="nodes", name="node-x"),
            response_status=AuditStatus(code),
        )
        for verb, code in requests
    ]
    cluster = msgspec.structs.replace(CLUSTER, events=reported_ones)
    answer = queries.evictions_of_pod(cluster, "shop", "orphan", AuditLog(made))
    assert sentence(answer) == (f"PodGC deleted shop/orphan 7m ago because its node node-x no longer exists{expected}.")


def test_a_failed_descheduling_is_no_eviction() -> None:
    note = "pod eviction from n1 node by sigs.k8s.io/descheduler failed: total eviction limit exceeded (3)"
    event = reported("EvictionFailed", note, "sigs.k8s.io.descheduler")
    cluster = ClusterSnapshot(pods=[make_pod("web", node="n1")], events=[event])
    assert queries.evictions_of_pod(cluster, "shop", "web").items == []


def test_without_the_kind_of_the_owner_its_deletion_is_not_assumed() -> None:
    owner = OwnerReference("ReplicaSet", "web", "uid-web", "apps/v1", controller=True)
    pod = replace_in(make_pod("web", node="n1"), "metadata", owner_references=[owner], deletion_timestamp=NOW)
    read = ClusterSnapshot(pods=[pod])
    unread = ClusterSnapshot(pods=[pod], unread={"ReplicaSet": Unread(403, "replicasets.apps")})
    causes = [queries.evictions_of_pod(each, "shop", "web").items[0].cause for each in (read, unread)]
    assert causes == [TerminationCause.OWNER_DELETED, TerminationCause.DELETED]


@pytest.mark.parametrize(
    ("message", "resource", "used", "requested"),
    [
        pytest.param(
            "The node was low on resource: ephemeral-storage. Container a was using 3Gi, request is 0, has larger "
            "consumption of ephemeral-storage. ",
            "ephemeral-storage",
            "3Gi",
            "0",
            id="a container",
        ),
        pytest.param(
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 99276Ki. Pod web was "
            "using 3Gi, "
            "request is 1Gi, has larger consumption of memory. ",
            "memory",
            "3Gi",
            "1Gi",
            id="a pod with resources of its own, since 1.34",
        ),
        pytest.param("The node was low on resource: inodes. ", "inodes", "", "", id="no usage"),
    ],
)
def test_kubelets_state_the_resource_and_maybe_the_usage(
    message: str, resource: str, used: str, requested: str
) -> None:
    found = pressure_of(message)
    assert found is not None
    assert found.resource == resource
    assert [(each.used, each.requested) for each in found.usage] == ([(used, requested)] if used else [])
    assert is_known_text(message)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Eviction API: evicting", "Eviction API: evicting", id="fixed words"),
        pytest.param(
            "Pod was rejected: Node didn't have enough resource: example.com/gpu, requested: 1, used: 0, capacity: 0",
            "Pod was rejected: Node didn't have enough resource: RESOURCE, requested: 1, used: 0, capacity: 0",
            id="a resource",
        ),
        pytest.param("Marking for deletion Pod shop/web-1", "Marking for deletion Pod NAMESPACE/POD", id="a pod"),
        pytest.param("Container app failed liveness probe", "Container CONTAINER failed liveness probe", id="a probe"),
        pytest.param(
            "The node was low on resource: memory. Threshold quantity: 1Mi, available: 2Mi. Container app was "
            "using 3Mi, "
            "request is 4Mi, has larger consumption of memory. ",
            "The node was low on resource: RESOURCE. Threshold quantity: 1Mi, available: 2Mi. Container CONTAINER was "
            "using 3Mi, request is 4Mi, has larger consumption of RESOURCE. ",
            id="several pieces",
        ),
        pytest.param("Allocate failed due to token s3cret, which is unexpected", "", id="a text of a plugin"),
        pytest.param("Eviction API: evicting, token s3cret", "", id="a known text with more behind it"),
    ],
)
def test_names_in_known_texts_can_be_replaced(text: str, expected: str) -> None:
    assert with_names(text, lambda kind, _name: kind.upper()) == expected
