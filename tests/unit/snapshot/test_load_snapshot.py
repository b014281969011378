"""A cluster comes out the same whatever it was written in, and nothing in it is lost, doubled or invented."""

from __future__ import annotations

import gc
import gzip
import io
import json
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
import zstandard

from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.policy import PodDisruptionBudgetStatus
from kpreempt.model.quantity import quantity
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.load import Loaded, cluster_from_json, load_snapshot

Document = dict[str, Any]


def make(kind: str, name: str, namespace: str = "", api_version: str = "v1", **parts: Any) -> Document:
    metadata: Document = {"name": name, "labels": {"app": "x", "numeric": "1"}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": {**metadata, **parts.pop("metadata", {})}, **parts}


NODE = make("Node", "node-a", status={"allocatable": {"cpu": "4", "memory": "16Gi", "pods": 110}})
POD = make(
    "Pod",
    "web-1",
    "shop",
    spec={"containers": [{"name": "main", "resources": {"requests": {"cpu": 0.5, "memory": "1e9"}}}], "priority": 10},
    status={"phase": "Running", "startTime": "2026-11-20T10:00:00Z"},
)
PENDING = make("Pod", "web-2", "shop", spec={"containers": [{"name": "main"}]})
BUDGET = make("PodDisruptionBudget", "web", "shop", "policy/v1", spec={"minAvailable": "50%"})
OBJECTS = [NODE, POD, PENDING, BUDGET]
LIST = {"apiVersion": "v1", "items": OBJECTS, "kind": "List", "metadata": {"resourceVersion": ""}}


def as_json(value: object) -> bytes:
    return json.dumps(value, indent=4).encode()


def as_yaml(value: object) -> bytes:
    return yaml.safe_dump(value).encode()


def tar_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


SHAPES: dict[str, bytes] = {
    "a List in JSON, as kubectl prints it": as_json(LIST),
    "a List in JSON on one line": json.dumps(LIST).encode(),
    "a List in YAML, as kubectl prints it": as_yaml(LIST),
    "a List in YAML with indented items": yaml.safe_dump(LIST, indent=4).encode(),
    "a List in YAML with the kind first": b"apiVersion: v1\nkind: List\nitems:\n" + as_yaml(OBJECTS),
    "a List in YAML without a last newline": (b"apiVersion: v1\nkind: List\nitems:\n" + as_yaml(OBJECTS)).rstrip(),
    "a List in YAML with Windows line ends": as_yaml(LIST).replace(b"\n", b"\r\n"),
    "a List in YAML in flow style": yaml.safe_dump(LIST, default_flow_style=True).encode(),
    "a List within a List": as_json({"apiVersion": "v1", "kind": "List", "items": [LIST]}),
    "several YAML documents": b"---\n" + b"---\n".join(as_yaml(each) for each in OBJECTS),
    "several YAML documents with comments and empty ones": b"# a\n---\n# b\n---\n\n"
    + b"--- \n# c\n".join(as_yaml(each) for each in OBJECTS),
    "YAML documents with directives and end marks": b"...\n".join(
        b"%YAML 1.1\n---\n" + as_yaml(each) for each in OBJECTS
    ),
    "JSON lines": b"\n".join(json.dumps(each).encode() for each in OBJECTS),
    "JSON values one after the other": b"".join(map(as_json, OBJECTS)),
    "JSON documents between dashes": b"\n---\n".join(map(as_json, OBJECTS)),
    "a byte order mark before JSON": b"\xef\xbb\xbf" + as_json(LIST),
    "a byte order mark before YAML": b"\xef\xbb\xbf" + as_yaml(LIST),
    "gzip": gzip.compress(as_json(LIST)),
    "zstandard": zstandard.compress(as_yaml(LIST)),
    "several zstandard frames": b"".join(zstandard.compress(as_json(each)) for each in OBJECTS),
    "gzip in gzip": gzip.compress(gzip.compress(as_json(LIST))),
    "a tar archive": tar_of({"a.json": as_json(NODE), "b/c.yaml": as_yaml([LIST][0] | {"items": OBJECTS[1:]})}),
    "a packed tar archive of packed files": gzip.compress(tar_of({"a": gzip.compress(as_yaml(LIST)), "b": b"notes"})),
    "a tar archive whose names lead elsewhere": tar_of({"../../etc/x": as_json(LIST), "/abs": b"\0"}),
}


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Loaded]:
    def load_contents(*contents: bytes, **options: Any) -> Loaded:
        paths = []
        for index, content in enumerate(contents):
            path = tmp_path / f"input-{index}"
            path.write_bytes(content)
            paths.append(str(path))
        return load_snapshot(paths, **options)

    return load_contents


def objects_of(loaded: Loaded) -> ClusterSnapshot:
    """The cluster without what is said of kinds that the input has no object of."""
    return msgspec.structs.replace(loaded.cluster, unread={})


def cluster_of(*objects: Document) -> ClusterSnapshot:
    return cluster_from_json([as_json(each) for each in objects], "here")


@pytest.mark.parametrize("content", SHAPES.values(), ids=SHAPES.keys())
def test_every_shape_gives_the_same_cluster(load: Callable[..., Loaded], content: bytes) -> None:
    assert objects_of(load(content)) == cluster_of(*OBJECTS)


@pytest.mark.parametrize("content", SHAPES.values(), ids=SHAPES.keys())
def test_every_shape_can_come_from_standard_input(content: bytes) -> None:
    assert objects_of(load_snapshot(["-"], stdin=io.BytesIO(content))) == cluster_of(*OBJECTS)


def test_a_typed_list_without_kinds_in_its_items_is_of_the_lists_kind(load: Callable[..., Loaded]) -> None:
    items = [{key: value for key, value in POD.items() if key not in ("kind", "apiVersion")}]
    for content in (as_json, as_yaml):
        assert (
            load(content({"kind": "PodList", "apiVersion": "v1", "items": items})).cluster.pods == cluster_of(POD).pods
        )


def test_what_cluster_info_prints_to_a_terminal_is_read_past_its_logs(load: Callable[..., Loaded]) -> None:
    pods = as_json({"kind": "PodList", "apiVersion": "v1", "items": [POD, PENDING]})
    logs = b"\n==== START logs for container main of pod shop/web-1 ====\n{ not: json\n==== END logs for it ====\n"
    dump = as_json({"kind": "NodeList", "apiVersion": "v1", "items": [NODE]}) + logs + pods + logs + as_json(BUDGET)
    assert objects_of(load(dump)) == cluster_of(*OBJECTS)


@pytest.mark.parametrize("content", [as_json, as_yaml])
def test_a_custom_resource_may_look_like_a_list(
    load: Callable[..., Loaded], content: Callable[[object], bytes]
) -> None:
    menu = {**make("Menu", "a", "shop", "example.com/v1"), "items": {"soup": 1}}
    allow = make("AllowList", "a", "shop", "example.com/v1")
    assert load(content(menu), content({**LIST, "items": [menu, allow, POD]})).cluster.skipped == {
        "Menu": 2,
        "AllowList": 1,
    }


def test_an_empty_list_is_no_mistake(load: Callable[..., Loaded]) -> None:
    for items in ([], None):
        assert load(as_json({"kind": "PodList", "apiVersion": "v1", "items": items})).cluster.pods == []


def test_a_folder_is_read_to_its_depths_and_files_without_objects_are_listed(tmp_path: Path) -> None:
    (tmp_path / "shop" / "web-1").mkdir(parents=True)
    (tmp_path / "nodes.json").write_bytes(as_json({"kind": "NodeList", "apiVersion": "v1", "items": [NODE]}))
    (tmp_path / "shop" / "pods.json").write_bytes(
        as_json({"kind": "PodList", "apiVersion": "v1", "items": [POD, PENDING]})
    )
    (tmp_path / "shop" / "web-1" / "logs.txt").write_text("==== START logs\n{not: json\n\tE1121 boom: [\n")
    (tmp_path / "shop" / "settings.json").write_text('{"level": "info"}\n{"level": 3}')
    (tmp_path / "shop" / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "z.yaml").write_bytes(as_yaml(BUDGET))
    input_limits = InputLimits()
    assert objects_of(load_snapshot([str(tmp_path)], input_limits=input_limits)) == cluster_of(*OBJECTS)
    assert [Path(each).name for each in input_limits.skipped.files] == ["picture.png", "settings.json", "logs.txt"]


def test_a_broken_dump_in_a_folder_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "pods.json").write_bytes(as_json(LIST)[:-40])
    with pytest.raises(InputError, match="ends in the middle of a JSON value"):
        load_snapshot([str(tmp_path)])


def test_kinds_that_no_scheduler_reads_are_counted(load: Callable[..., Loaded]) -> None:
    others = [
        make("Secret", "s", "shop"),
        make("Job", "j", "shop", "example.com/v1"),
        make("Pod", "p", "a", "metrics.k8s.io/v1"),
    ]
    cluster = load(as_yaml({**LIST, "items": [*others, POD, others[0]]})).cluster
    assert cluster.skipped == {"Secret": 2, "Job": 1, "Pod": 1}
    assert [each.key for each in cluster.pods] == ["shop/web-1"]
    assert cluster.jobs == []


@pytest.mark.parametrize(
    ("kind", "api_version", "field"),
    [
        ("PodDisruptionBudget", "policy/v1beta1", "pod_disruption_budgets"),
        ("PriorityClass", "scheduling.k8s.io/v1", "priority_classes"),
        ("Namespace", "v1", "namespaces"),
        ("PersistentVolumeClaim", "v1", "persistent_volume_claims"),
        ("PersistentVolume", "v1", "persistent_volumes"),
        ("StorageClass", "storage.k8s.io/v1", "storage_classes"),
        ("CSINode", "storage.k8s.io/v1", "csi_nodes"),
        ("CSIDriver", "storage.k8s.io/v1", "csi_drivers"),
        ("CSIStorageCapacity", "storage.k8s.io/v1", "csi_storage_capacities"),
        ("VolumeAttachment", "storage.k8s.io/v1", "volume_attachments"),
        ("RuntimeClass", "node.k8s.io/v1", "runtime_classes"),
        ("LimitRange", "v1", "limit_ranges"),
        ("Service", "v1", "services"),
        ("ReplicationController", "v1", "replication_controllers"),
        ("ReplicaSet", "apps/v1", "replica_sets"),
        ("StatefulSet", "apps/v1", "stateful_sets"),
        ("Deployment", "apps/v1", "deployments"),
        ("DaemonSet", "apps/v1", "daemon_sets"),
        ("Job", "batch/v1", "jobs"),
        ("ResourceClaim", "resource.k8s.io/v1", "resource_claims"),
        ("ResourceSlice", "resource.k8s.io/v1beta1", "resource_slices"),
        ("DeviceClass", "resource.k8s.io/v1", "device_classes"),
    ],
)
def test_every_kind_that_a_scheduler_reads_is_kept(kind: str, api_version: str, field: str) -> None:
    (record,) = getattr(cluster_of(make(kind, "a", "shop", api_version)), field)
    assert (record.metadata.name, record.metadata.namespace) == ("a", "shop")


def test_an_object_without_a_namespace_is_in_default_where_its_kind_has_one(load: Callable[..., Loaded]) -> None:
    cluster = load(as_json({**LIST, "items": [make("Pod", "p"), make("Node", "n")]})).cluster
    assert (cluster.pods[0].key, cluster.nodes[0].metadata.namespace) == ("default/p", "")


def test_in_a_batch_an_object_without_a_namespace_has_none() -> None:
    assert cluster_of(make("Pod", "p")).pods[0].key == "/p"


def test_order_is_that_of_the_input(load: Callable[..., Loaded]) -> None:
    names = [f"p{index * 7919 % 5003}" for index in range(5003)]
    for content in (as_json, as_yaml):
        pods = load(content({**LIST, "items": [make("Pod", name, "a") for name in names]})).cluster.pods
        assert [pod.metadata.name for pod in pods] == names


@pytest.mark.parametrize(
    ("first", "second", "priority"),
    [
        pytest.param("9", "10", 2, id="the later one is second"),
        pytest.param("10", "9", 1, id="the later one is first"),
        pytest.param("9223372036854775807", "9223372036854775808", 2, id="beyond int64"),
    ],
)
def test_of_one_object_twice_the_later_version_counts(
    load: Callable[..., Loaded], first: str, second: str, priority: int
) -> None:
    def version(version: str, priority: int) -> bytes:
        return as_json(make("Pod", "p", "a", metadata={"resourceVersion": version}, spec={"priority": priority}))

    pods = load(version(first, 1), as_json(make("Pod", "q", "a")), version(second, 2)).cluster.pods
    assert [(pod.metadata.name, pod.spec.priority) for pod in pods] == [("p", priority), ("q", None)]


def test_the_same_object_twice_is_one(load: Callable[..., Loaded]) -> None:
    assert objects_of(load(as_json(LIST), as_yaml(LIST))) == cluster_of(*OBJECTS)


@pytest.mark.parametrize("versions", [("", "5"), ("x", "y"), ("5", "5")], ids=["one is missing", "no numbers", "equal"])
def test_what_cannot_be_ordered_is_a_contradiction(load: Callable[..., Loaded], versions: tuple[str, str]) -> None:
    contents = [
        as_json(make("Pod", "p", "a", metadata={"resourceVersion": version}, spec={"priority": index}))
        for index, version in enumerate(versions)
    ]
    with pytest.raises(InputError, match="defined twice"):
        load(*contents)


def test_null_is_what_go_makes_of_it() -> None:
    pod = make(
        "Pod",
        "p",
        "a",
        metadata={"labels": {"x": None}, "creationTimestamp": None, "finalizers": None, "ownerReferences": [None]},
        spec={
            "containers": [{"name": "c", "resources": {"requests": {"cpu": None}, "limits": None}}],
            "tolerations": [None],
            "nodeName": None,
            "affinity": None,
            "priority": None,
        },
        status=None,
    )
    record = cluster_of(pod).pods[0]
    assert record.metadata.labels == {"x": ""}
    assert record.metadata.owner_references[0].name == ""
    assert record.spec.containers[0].resources.requests == {"cpu": quantity("0")}
    assert record.spec.tolerations[0].operator == ""
    assert (record.spec.node_name, record.spec.priority, record.status.phase) == ("", None, "")


def test_a_budget_without_a_status_has_none_and_one_with_an_empty_status_has_one() -> None:
    def budget(name: str, **parts: Any) -> Document:
        return make("PodDisruptionBudget", name, "a", "policy/v1", **parts)

    budgets = cluster_of(budget("b"), budget("c", status={})).pod_disruption_budgets
    assert [each.status for each in budgets] == [None, PodDisruptionBudgetStatus()]


def test_an_empty_selector_of_policy_v1beta1_selects_nothing() -> None:
    def selector(api_version: str, value: Document | None) -> LabelSelector | None:
        budget = make("PodDisruptionBudget", "b", "a", api_version, spec={"selector": value})
        return cluster_of(budget).pod_disruption_budgets[0].spec.selector

    match_all = {
        "matchExpressions": [
            {"key": "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", "operator": "DoesNotExist"}
        ]
    }
    old, new = selector("policy/v1beta1", {}), selector("policy/v1", {})
    assert old is not None and not old.matches({"app": "x"})
    assert new is not None and new.matches({"app": "x"})
    assert selector("policy/v1beta1", None) is None
    assert selector("policy/v1beta1", match_all) == LabelSelector()


@pytest.mark.parametrize(
    "text", ["0.1", "1e3", "100m", "1Ki", "12E", "5Mi", "+1", "-1", "9223372036854775807", ".5", "1."]
)
def test_quantities_are_exact(text: str) -> None:
    pod = make("Pod", "p", "a", spec={"overhead": {"cpu": text}})
    assert cluster_of(pod).pods[0].spec.overhead["cpu"].nano == quantity(text).nano


@pytest.mark.parametrize("number", ["0.1", "1e3", "100", "1.50", "9223372036854775807", "0.000000001"])
def test_a_quantity_may_be_a_json_number(number: str) -> None:
    text = f'{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"p"}},"spec":{{"overhead":{{"cpu":{number}}}}}}}'
    assert cluster_from_json([text.encode()], "here").pods[0].spec.overhead["cpu"].nano == quantity(number).nano


def test_the_servers_version_is_known_where_the_dump_says_it(load: Callable[..., Loaded]) -> None:
    version = {"clientVersion": {"gitVersion": "v1.30.0"}, "serverVersion": {"gitVersion": "v1.36.3"}}
    for content in (as_json, as_yaml):
        assert load(content(version), as_json(LIST)).cluster.version == "v1.36.3"
    assert load(as_json(LIST)).cluster.version == ""
    assert load(as_json({"clientVersion": {}}), as_json(LIST)).cluster.version == ""


@pytest.mark.parametrize("content", [as_json, as_yaml])
def test_a_list_may_say_version_and_time(load: Callable[..., Loaded], content: Callable[[object], bytes]) -> None:
    annotations = {"kpreempt.io/server-version": "v1.36.3", "kpreempt.io/taken-at": "2026-11-21T03:12:00Z"}
    cluster = load(content({**LIST, "metadata": {"annotations": annotations}})).cluster
    assert cluster.version == "v1.36.3"
    assert cluster.taken_at == datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
    assert load(content(LIST)).cluster.taken_at is None


def test_progress_names_the_source_and_never_runs_back(load: Callable[..., Loaded], tmp_path: Path) -> None:
    seen: list[tuple[str, float]] = []
    pods = [make("Pod", f"p{index}", "a") for index in range(9000)]
    load(as_json({**LIST, "items": pods}), progress=lambda name, share: seen.append((name, share)))
    assert {name for name, _ in seen} == {str(tmp_path / "input-0")}
    shares = [share for _, share in seen]
    assert shares == sorted(shares) and shares[-1] <= 1 and len(shares) > 2


def test_the_collector_is_left_as_it_was(load: Callable[..., Loaded]) -> None:
    assert gc.isenabled()
    load(as_json(LIST))
    assert gc.isenabled()


def test_what_is_secret_stays_out(load: Callable[..., Loaded]) -> None:
    container = {"name": "main", "env": [{"name": "TOKEN", "value": "hunter2"}], "args": ["--password=hunter2"]}
    pod = make("Pod", "p", "a", spec={"containers": [container]}, metadata={"annotations": {"x": "hunter2"}})
    secret = make("Secret", "s", "a", stringData={"password": "hunter2"})
    assert "hunter2" not in repr(load(as_json({**LIST, "items": [pod, secret]})))


def test_documents_are_kept_next_to_the_cluster_if_they_are_requested(tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}}
    extra_fields = make("Deployment", "api", "", "apps/v1", spec={"template": template})
    older = {**extra_fields, "metadata": {**extra_fields["metadata"], "resourceVersion": "8"}, "spec": {}}
    newer = {**extra_fields, "metadata": {**extra_fields["metadata"], "resourceVersion": "9"}}
    other = make("Deployment", "other", "shop", "apps/v1", spec={"template": template})
    cron_job = make("CronJob", "api", "default", "batch/v1", spec={"schedule": "@daily"})
    custom = make("CronJob", "api", "default", "example.com/v1", spec={"schedule": "@daily"})
    path = tmp_path / "cluster.json"
    path.write_bytes(
        as_json({"kind": "List", "apiVersion": "v1", "items": [older, newer, older, other, cron_job, custom]})
    )
    loaded = load_snapshot([str(path)], needs=Needs(keep_document=lambda _, record: record.metadata.name == "api"))
    assert [(each["kind"], each["apiVersion"], each["spec"]) for each in loaded.documents] == [
        ("Deployment", "apps/v1", newer["spec"]),
        ("CronJob", "batch/v1", cron_job["spec"]),
    ]
    assert [each["metadata"]["namespace"] for each in loaded.documents] == ["default", "default"]
    assert loaded.cluster == load_snapshot([str(path)]).cluster
    assert load_snapshot([str(path)]).documents == []


def test_documents_of_kinds_that_no_snapshot_has_are_kept_if_they_are_requested(tmp_path: Path) -> None:
    kafka = make("Kafka", "k", "shop", "kafka.strimzi.io/v1", spec={"replicas": 3})
    webhook = make("MutatingWebhookConfiguration", "k", "", "admissionregistration.k8s.io/v1", webhooks=[])
    foreign = make("Job", "k", "shop", "batch.volcano.sh/v1alpha1", spec={})
    others = [make("Kafka", "other", "shop", "kafka.strimzi.io/v1"), make("ConfigMap", "c", "shop")]
    path = tmp_path / "cluster.json"
    path.write_bytes(as_json({"kind": "List", "apiVersion": "v1", "items": [kafka, webhook, foreign, *others]}))
    loaded = load_snapshot([str(path)], needs=Needs(keep_document=lambda _, record: record.metadata.name == "k"))
    found = [(each["kind"], each["metadata"]["namespace"]) for each in loaded.documents]
    assert found == [("Kafka", "shop"), ("MutatingWebhookConfiguration", "")]
    assert loaded.cluster == load_snapshot([str(path)]).cluster


def test_what_decides_which_pod_a_controller_deletes_is_kept(tmp_path: Path) -> None:
    pod = make(
        "Pod",
        "web-1",
        "shop",
        metadata={"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5", "other": "1"}},
        status={"containerStatuses": [{"name": "main", "restartCount": 3}, {"name": "calm", "restartCount": 0}]},
    )
    path = tmp_path / "pod.json"
    path.write_bytes(as_json(pod))
    (found,) = load_snapshot([str(path)]).cluster.pods
    assert found.metadata.annotations is not None
    assert found.metadata.annotations.deletion_cost == "-5"
    assert [(each.name, each.restart_count) for each in found.status.container_statuses] == [("main", 3)]


def test_pods_that_restarted_differently_share_no_statuses() -> None:
    pods = [
        make("Pod", f"web-{index}", "shop", status={"containerStatuses": [{"name": "main", "restartCount": count}]})
        for index, count in enumerate((1, 2, 1))
    ]
    cluster = cluster_from_json(map(as_json, pods), "test")
    assert [pod.status.container_statuses[0].restart_count for pod in cluster.pods] == [1, 2, 1]
