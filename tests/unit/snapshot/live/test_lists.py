from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kpreempt.analysis.kueue.objects import KUEUE_EXTRAS
from kpreempt.errors import InputError
from kpreempt.model.cluster import Unread, within
from kpreempt.model.event import EVENT_SELECTORS
from kpreempt.model.kinds import KINDS
from kpreempt.model.node import STATUS_NAME
from kpreempt.snapshot.collect import NOTHING_MORE, Needs
from kpreempt.snapshot.kinds import COMPARED_KINDS, resource_of
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import connect
from kpreempt.snapshot.live.failures import ClusterError
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.snapshot.live.listing import (
    api_versions_of,
    kinds_to_read,
    path_of,
    plural_of,
)
from kpreempt.snapshot.live.lists import LiveSnapshot, read_cluster
from kpreempt.snapshot.load import load_snapshot
from tests.fake_api import (
    VIEW,
    Answer,
    Answering,
    FakeApi,
    FakeCluster,
    ReceivedRequest,
    Rights,
    good,
    objects_by_kind,
    refused,
    split_namespace,
)

ROOT = Path(__file__).parents[4]
DEMO = ROOT / "fixtures" / "demo" / "cluster.yaml"
TAKEN_AT = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
PODS = "/api/v1/pods"


def pod(name: str, node: str = "n") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"containers": [], "nodeName": node}}


def node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def read(
    answering: Answering, *, needs: Needs = NOTHING_MORE, **options: Any
) -> tuple[LiveSnapshot, list[ReceivedRequest]]:
    """What is read from a server with these answers, and the requests that it got."""
    with FakeApi(answering) as fake:
        api = Api(connect(ConnectionFlags(server=fake.url), {}), sleep=lambda _: None)
        try:
            return read_cluster(api, taken_at=TAKEN_AT, needs=needs, **options), fake.requested
        finally:
            api.close()


def reported(reading: LiveSnapshot) -> list[str]:
    return [f"{each.subject}: {each.field}: {each.message}" for each in reading.assumptions]


def test_a_live_cluster_is_what_its_dump_is() -> None:
    documents = list(yaml.safe_load_all(DEMO.read_text(encoding="utf-8")))
    documents = [item for each in documents for item in each.get("items", [each])]
    reading, _ = read(FakeCluster(objects_by_kind(documents), page=7))
    dumped = load_snapshot([str(DEMO)]).cluster
    for kind in KINDS.values():
        live, dump = getattr(reading.cluster, kind.field), getattr(dumped, kind.field)
        assert sorted(map(repr, live)) == sorted(map(repr, dump)), kind.name
    assert reading.assumptions == []


def test_the_version_of_the_server_and_the_time_of_reading_are_kept() -> None:
    reading, _ = read(FakeCluster({}))
    assert (reading.cluster.version, reading.cluster.taken_at) == ("v1.36.3", TAKEN_AT)


def test_pages_follow_each_other_and_all_kinds_are_read_at_the_version_of_pods() -> None:
    pods = [pod(f"p{number}") for number in range(7)]
    reading, requested = read(FakeCluster({"Pod": pods, "Node": [node("n")]}, page=3, version=42))
    assert [each.metadata.name for each in reading.cluster.pods] == [f"p{number}" for number in range(7)]
    assert [each.query for each in requested if each.path == PODS] == [
        {"limit": "500"},
        {"limit": "500", "continue": "42:3"},
        {"limit": "500", "continue": "42:6"},
    ]
    others = [each.query for each in requested if each.path not in (PODS, "/version")]
    assert others == [{"limit": "500", "resourceVersion": "42", "resourceVersionMatch": "Exact"}] * (
        len(kinds_to_read()) - 1
    )
    assert reading.assumptions == []


def test_every_kind_is_requested_once_if_it_is_served() -> None:
    _, requested = read(FakeCluster({}))
    paths = [path_of(kind, api_versions_of(kind)[0]) for kind in kinds_to_read()]
    assert Counter(each.path for each in requested) == Counter([*paths, "/version"])


def expiring(times: int) -> Answering:
    """A cluster that drops the list of pods ``times`` times when its second page is requested."""
    left = [times]

    def special(requested: ReceivedRequest) -> Answer | None:
        if requested.path != PODS or "continue" not in requested.query or not left[0]:
            return None
        left[0] -= 1
        cluster.version += 1
        cluster.objects = {**cluster.objects, "Pod": cluster.objects["Pod"][1:]}
        return refused(410, "The provided continue parameter is too old")

    pods = [pod(f"p{number}", "gone" if number == 5 else "n") for number in range(6)]
    cluster = FakeCluster({"Pod": pods, "Node": [node("n")]}, page=2, special=special)
    return cluster


def test_a_list_that_expires_begins_again_and_no_pod_is_lost_or_doubled() -> None:
    reading, _ = read(expiring(2))
    assert [each.metadata.name for each in reading.cluster.pods] == ["p2", "p3", "p4", "p5"]
    assert reported(reading) == [
        "cluster: resourceVersion: not all kinds were read at the same time: Pod at 102, the rest at 100; "
        "they may be inconsistent",
        "cluster: nodes: 1 pod is on a node that was not listed: gone",
    ]


def test_a_list_that_expires_again_and_again_is_given_up() -> None:
    with pytest.raises(ClusterError) as caught:
        read(expiring(99))
    assert caught.value.problem.startswith("the list kept expiring while it was read (410)")


@pytest.mark.parametrize("status", [400, 410, 500, 504])
def test_a_kind_that_is_not_had_at_that_version_is_read_as_it_is_now(status: int) -> None:
    def special(requested: ReceivedRequest) -> Answer | None:
        if requested.path != "/api/v1/nodes":
            return None
        if "resourceVersion" in requested.query:
            return refused(status, "no such version")
        return good({"kind": "NodeList", "metadata": {"resourceVersion": "105"}, "items": [node("n")]})

    reading, _ = read(FakeCluster({"Pod": [pod("a")]}, special=special))
    assert [each.metadata.name for each in reading.cluster.nodes] == ["n"]
    assert reported(reading) == [
        "cluster: resourceVersion: not all kinds were read at the same time: Node at 105, the rest at 100; "
        "they may be inconsistent"
    ]


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("Pod", "Node")])
def test_a_kind_that_may_not_be_listed_is_distinguished_from_one_of_which_there_is_none(name: str) -> None:
    versions = api_versions_of(KINDS[name])
    answers = {
        **{path_of(KINDS[name], version): refused(403, "no") for version in versions},
        # What everybody may ask.
        **{f"/apis/{version}": good({"kind": "APIResourceList"}) for version in versions},
    }
    reading, _ = read(
        FakeCluster({}, special=lambda requested: answers.get(split_namespace(requested.path)[0])),
        needs=Needs(with_events=True, with_autoscalers=True),
    )
    assert reading.cluster.unread == {name: Unread(403, resource_of(KINDS[name]))}
    assert reported(reading) == []


def test_a_kind_that_is_refused_in_the_middle_of_its_list_is_not_read() -> None:
    budgets = [{"metadata": {"name": name, "namespace": "shop"}} for name in "abc"]

    def special(request: ReceivedRequest) -> Answer | None:
        return refused(403, "no") if "budgets" in request.path and "continue" in request.query else None

    reading, _ = read(FakeCluster({"PodDisruptionBudget": budgets}, page=1, special=special))
    assert reading.cluster.unread == {"PodDisruptionBudget": Unread(403, "poddisruptionbudgets.policy")}


def event(name: str, reason: str, kind: str = "Normal") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop"}, "type": kind, "reason": reason}


def test_all_warnings_are_one_list_and_other_events_are_listed_by_reason() -> None:
    events = [
        event("a", "Preempted"),
        event("b", "Pulled"),
        event("c", "FailedScheduling", "Warning"),
        event("d", "Preempted", "Warning"),
    ]
    reading, requested = read(FakeCluster({"Event": events}, page=1), needs=Needs(with_events=True))
    assert [each.metadata.name for each in reading.cluster.events] == ["a", "c", "d"]
    assert reading.assumptions == []
    requested = [each.query.get("fieldSelector") for each in requested if each.path == "/api/v1/events"]
    assert set(filter(None, requested)) == set(EVENT_SELECTORS)
    assert "type=Warning" in requested
    # Whichever of the lists comes first.
    reading, _ = read(FakeCluster({"Event": events}), needs=Needs(with_events=True))
    assert [each.metadata.name for each in reading.cluster.events] == ["a", "c", "d"]
    reading, requested = read(FakeCluster({"Event": events}))
    assert reading.cluster.events == []
    assert "/api/v1/events" not in [each.path for each in requested]


def test_documents_are_kept_of_the_objects_that_are_requested_and_of_no_others() -> None:
    extra_fields = {
        "metadata": {"name": "api", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": []}}},
    }
    other = {"metadata": {"name": "other", "namespace": "shop"}, "spec": {"template": {}}}
    cron_job = {"metadata": {"name": "sum", "namespace": "shop"}, "spec": {"schedule": "@daily"}}
    cluster = FakeCluster({"Deployment": [other, extra_fields], "CronJob": [cron_job]})
    names = {"Deployment": "api", "CronJob": "sum"}
    reading, _ = read(
        cluster,
        needs=Needs(
            keep_document=lambda kind, record: names.get(kind) == record.metadata.name, compare_kinds=["CronJob"]
        ),
    )
    kept = [(each["kind"], each["apiVersion"], each["spec"]) for each in reading.documents]
    assert sorted(kept, key=str) == [
        ("CronJob", "batch/v1", cron_job["spec"]),
        ("Deployment", "apps/v1", extra_fields["spec"]),
    ]
    assert reading.assumptions == []
    reading, requested = read(cluster)
    assert reading.documents == []
    assert "/apis/batch/v1/cronjobs" not in [each.path for each in requested]


def test_documents_of_a_list_that_begins_again_are_kept_once() -> None:
    deployments = [{"metadata": {"name": name, "namespace": "shop"}, "spec": {"replicas": 1}} for name in "ab"]

    def special(requested: ReceivedRequest) -> Answer | None:
        if "deployments" not in requested.path or "continue" not in requested.query or deployments[0]["spec"] == {}:
            return None
        deployments[0]["spec"] = {}
        return refused(410, "too old")

    cluster = FakeCluster({"Deployment": deployments}, page=1, special=special)
    reading, _ = read(cluster, needs=Needs(keep_document=lambda kind, _: kind == "Deployment"))
    assert [(each["metadata"]["name"], each["spec"]) for each in reading.documents] == [
        ("a", {}),
        ("b", {"replicas": 1}),
    ]


def test_of_a_kind_whose_group_is_not_served_there_is_none() -> None:
    gone = "/apis/node.k8s.io/v1/runtimeclasses"
    reading, _ = read(FakeCluster({}, special=lambda requested: refused(404, "no") if requested.path == gone else None))
    assert (reading.cluster.unread, reported(reading)) == ({}, [])


def test_a_kind_that_its_group_may_have_in_another_version_is_not_read() -> None:
    answers = {
        "/apis/storage.k8s.io/v1/csistoragecapacities": refused(404, "no"),
        "/apis/storage.k8s.io": good({"kind": "APIGroup", "versions": [{"version": "v1beta1"}]}),
    }
    reading, _ = read(FakeCluster({}, special=lambda requested: answers.get(requested.path)))
    assert reading.cluster.unread == {"CSIStorageCapacity": Unread(404, "csistoragecapacities.storage.k8s.io")}


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(404, id="lists that are not served"),
        pytest.param(403, id="lists that would be refused, of a group that is not served"),
    ],
)
def test_without_volcano_there_are_none_of_its_objects(status: int) -> None:
    special = lambda requested: refused(status, "no") if "/scheduling.volcano.sh/v1beta1/" in requested.path else None  # noqa: E731
    reading, _ = read(FakeCluster({}, special=special))
    assert (reading.cluster.pod_groups, reading.cluster.queues, reading.assumptions) == ([], [], [])


def test_pod_groups_and_queues_are_read_where_volcano_is() -> None:
    group = {"metadata": {"name": "g", "namespace": "shop"}, "spec": {"minMember": 2, "queue": "q"}}
    reading, _ = read(FakeCluster({"PodGroup": [group], "Queue": [{"metadata": {"name": "q"}}]}))
    assert [(each.key, each.spec.min_member) for each in reading.cluster.pod_groups] == [("shop/g", 2)]
    assert [each.metadata.name for each in reading.cluster.queues] == ["q"]


def test_an_older_version_of_a_group_is_read_where_the_newest_is_not_served() -> None:
    special = lambda requested: refused(404, "no") if "/resource.k8s.io/v1/" in requested.path else None  # noqa: E731
    reading, _ = read(FakeCluster({"DeviceClass": [{"metadata": {"name": "gpu"}}]}, special=special))
    assert [each.metadata.name for each in reading.cluster.device_classes] == ["gpu"]
    assert reading.assumptions == []


@pytest.mark.parametrize(
    "version",
    [
        pytest.param("v1", id="as 1.37 serves them"),
        pytest.param("v1beta2", id="as 1.36 serves them where the gate is on"),
        pytest.param("v1alpha3", id="as 1.34 and 1.35 serve them where the gate is on"),
    ],
)
def test_rules_that_taint_devices_are_read_in_the_version_that_is_served(version: str) -> None:
    def special(requested: ReceivedRequest) -> Answer | None:
        is_rules = requested.path.endswith("/devicetaintrules") and f"/{version}/" not in requested.path
        return refused(404, "no") if is_rules else None

    spec = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": {"key": "broken", "effect": "NoSchedule"}}
    reading, _ = read(FakeCluster({"DeviceTaintRule": [{"metadata": {"name": "r"}, "spec": spec}]}, special=special))
    assert [each.spec.taint.key for each in reading.cluster.device_taint_rules] == ["broken"]
    assert (reading.cluster.unread, reading.assumptions) == ({}, [])


@pytest.mark.parametrize("path", [PODS, "/api/v1/nodes"])
@pytest.mark.parametrize("status", [401, 404])
def test_what_is_no_kubernetes_or_does_not_know_the_user_is_not_read(path: str, status: int) -> None:
    with pytest.raises(ClusterError) as caught:
        read(FakeCluster({}, special=lambda requested: refused(status, "no") if requested.path == path else None))
    assert caught.value.status == status
    assert caught.value.source.endswith(path)


def test_without_permission_to_list_pods_anywhere_nothing_is_known() -> None:
    with pytest.raises(ClusterError) as caught:
        read(FakeCluster({}, special=Rights(["nodes"])))
    assert caught.value.status == 403
    assert caught.value.source.endswith("/api/v1/namespaces/default/pods")
    assert "missing permission: list pods and nodes (cluster-wide), or at least pods in namespace default" in str(
        caught.value
    )


def test_nodes_that_may_not_be_listed_are_not_none() -> None:
    reading, _ = read(FakeCluster({"Pod": [pod("a")]}, special=Rights(VIEW)))
    assert [each.key for each in reading.cluster.pods] == ["shop/a"]
    assert reading.cluster.unread["Node"] == Unread(403, "nodes")
    assert {kind for kind, why in reading.cluster.unread.items() if why.namespace} == set()


def test_with_permissions_in_one_namespace_only_that_one_is_read_and_nothing_is_tried_twice() -> None:
    everywhere = {
        "Pod": [pod("a"), {**pod("b"), "metadata": {"name": "b", "namespace": "default"}}],
        "PodDisruptionBudget": [{"metadata": {"name": each, "namespace": each}} for each in ("default", "shop")],
    }
    rights = Rights(["priorityclasses"], namespace="default", there=VIEW)
    reading, requested = read(FakeCluster(everywhere, special=rights), needs=Needs(with_events=True))
    cluster = reading.cluster
    assert [each.key for each in cluster.pods] == ["default/b"]
    assert [each.key for each in cluster.pod_disruption_budgets] == ["default/default"]
    assert cluster.unread["Pod"] == Unread(403, "pods", "default")
    assert cluster.unread["Event"] == Unread(403, "events", "default")
    assert cluster.unread["Node"] == Unread(403, "nodes")
    assert "PriorityClass" not in cluster.unread
    # Only pods are requested in all namespaces first, and nothing is requested twice.
    sent = Counter((each.path, each.query.get("fieldSelector")) for each in requested)
    assert max(sent.values()) == 1
    assert [
        each.path for each in requested if split_namespace(each.path)[0] == "/apis/policy/v1/poddisruptionbudgets"
    ] == ["/apis/policy/v1/namespaces/default/poddisruptionbudgets"]
    # Questions about the namespace lack only what concerns others.
    assert set(within(cluster, {"default"}).unread) >= {"Pod", "PodDisruptionBudget", "Node"}
    assert "ResourceQuota" not in within(cluster, {"default"}).unread
    assert "ResourceQuota" in within(cluster, {"shop"}).unread


def test_a_kind_that_may_only_be_listed_in_the_namespace_is_read_there() -> None:
    budgets = [{"metadata": {"name": each, "namespace": each}} for each in ("default", "shop")]
    rights = Rights([*VIEW - {"poddisruptionbudgets"}, "nodes"], namespace="default", there=["poddisruptionbudgets"])
    reading, _ = read(FakeCluster({"Pod": [pod("a")], "PodDisruptionBudget": budgets}, special=rights))
    assert [each.key for each in reading.cluster.pod_disruption_budgets] == ["default/default"]
    assert reading.cluster.unread["PodDisruptionBudget"] == Unread(403, "poddisruptionbudgets.policy", "default")
    assert "Pod" not in reading.cluster.unread


def test_a_server_that_does_not_tell_its_version_is_an_assumption() -> None:
    reading, _ = read(
        FakeCluster({}, special=lambda requested: refused(403, "no") if requested.path == "/version" else None)
    )
    assert reported(reading) == ["cluster: version: the server does not report its version"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(b'{"kind":"PodLi', "returned something other than a list of Pod objects", id="half of JSON"),
        pytest.param(b"[]", "returned something other than a list of Pod objects", id="another JSON"),
        pytest.param(b'{"kind":"NodeList"}', "returned something other than a list of Pod objects", id="another list"),
        pytest.param(b"[" * 100_000, "returned something other than a list of Pod objects", id="nested without end"),
        pytest.param(
            b'{"kind":"PodList","metadata":{"continue":"x","resourceVersion":"1"},"items":[]}',
            "the list repeats the same page forever",
            id="pages without end",
        ),
    ],
)
def test_a_server_that_answers_rubbish_is_reported(body: bytes, problem: str) -> None:
    with pytest.raises(ClusterError) as caught:
        read(FakeCluster({}, special=lambda requested: Answer(body=body) if requested.path == PODS else None))
    assert caught.value.problem == problem


def test_a_bad_object_is_named_or_set_aside() -> None:
    cluster = FakeCluster({"Pod": [pod("a"), {"metadata": {"name": "b", "namespace": "shop"}, "spec": 5}]})
    with pytest.raises(InputError, match=r"/api/v1/pods: Pod shop/b: spec: expected an object, got 5"):
        read(cluster)
    reading, _ = read(cluster, skip_bad_objects=True)
    assert [each.metadata.name for each in reading.cluster.pods] == ["a"]
    assert [each.object_name for each in reading.skipped_objects] == ["Pod shop/b"]


def test_progress_counts_objects_up_to_all_of_them() -> None:
    seen: list[tuple[str, float]] = []
    pods = [pod(f"p{number}") for number in range(5)]
    read(FakeCluster({"Pod": pods}, page=2), progress=lambda what, share: seen.append((what, share)))
    assert all(0 <= share <= 1 for _, share in seen)
    assert seen[-1][0].endswith(": 5 objects")
    assert seen[-1][1] == 1


def test_only_fields_in_use_are_kept() -> None:
    secret = pod("a")
    secret["spec"]["containers"] = [{"name": "c", "env": [{"name": "PASSWORD", "value": "hunter2"}]}]
    reading, _ = read(FakeCluster({"Pod": [secret]}))
    assert b"hunter2" not in msgspec.json.encode(reading.cluster)


def test_the_cluster_role_that_is_shipped_has_just_the_rights_that_are_used() -> None:
    role = yaml.safe_load((ROOT / "deploy" / "cluster-role.yaml").read_text(encoding="utf-8"))
    rules = [rule for rule in role["rules"] if "resources" in rule]
    granted = sorted((group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"])
    listed = [(kind.groups[0], plural_of(kind)) for kind in (*KINDS.values(), *COMPARED_KINDS.values())]
    assert granted == sorted([*listed, *((kind.group, kind.resource) for kind in KUEUE_EXTRAS.kinds)])
    assert [rule["resourceNames"] for rule in rules if rule["resources"] == ["configmaps"]] == [[STATUS_NAME]]
    assert {tuple(rule["verbs"]) for rule in rules} == {("list",)}
    others = [rule for rule in role["rules"] if "resources" not in rule]
    assert others == [{"nonResourceURLs": ["/version"], "verbs": ["get"]}]


@pytest.mark.parametrize("served", ["v1beta2", "v1beta1"])
def test_kueues_objects_are_read_in_the_version_that_the_server_has(served: str) -> None:
    group = "/apis/kueue.x-k8s.io"
    queue = {"metadata": {"name": "vision", "uid": "u-1"}, "spec": {"cohort": "research"}}
    cluster = FakeCluster({})

    def answer(requested: ReceivedRequest) -> Answer:
        if not requested.path.startswith(group):
            return cluster(requested)
        if requested.path != f"{group}/{served}/clusterqueues":
            return refused(404, "the server could not find the requested resource")
        metadata = {"resourceVersion": "100"}
        kind = "ClusterQueueList"
        return good({"apiVersion": f"{group[6:]}/{served}", "kind": kind, "metadata": metadata, "items": [queue]})

    reading, _ = read(answer, needs=Needs(extra_fields=KUEUE_EXTRAS))
    (found,) = reading.cluster.documents["ClusterQueue.kueue.x-k8s.io"]
    assert (found["apiVersion"], found["spec"]) == (f"kueue.x-k8s.io/{served}", queue["spec"])
    assert reported(reading) == []


@pytest.mark.parametrize("served", ["v1beta2", "v1beta1"])
def test_who_may_not_read_kueues_objects_is_reported_in_either_version(served: str) -> None:
    cluster = FakeCluster({})

    def answer(requested: ReceivedRequest) -> Answer:
        if not requested.path.startswith("/apis/kueue.x-k8s.io"):
            return cluster(requested)
        if requested.path == f"/apis/kueue.x-k8s.io/{served}":
            return good({"kind": "APIResourceList", "resources": []})
        is_version = requested.path.count("/") == 3
        return refused(404, "not found") if is_version else refused(403, "forbidden")

    reading, _ = read(answer, needs=Needs(extra_fields=KUEUE_EXTRAS))
    assert sum("ClusterQueue" in each for each in reported(reading)) == 1
