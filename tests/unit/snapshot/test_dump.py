"""What is written is read back as the same cluster, and holds nothing that no scheduler reads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from msgspec import inspect

from kpreempt.admission import cluster_defaults
from kpreempt.errors import InputError, UsageError
from kpreempt.model import storage, volcano
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import EXTENDED_RESOURCE_CLAIM
from kpreempt.model.event import Event
from kpreempt.model.kinds import KINDS
from kpreempt.model.node import STATUS_ANNOTATION
from kpreempt.schedulers.kube.framework import csi_translation as volumes
from kpreempt.snapshot.kinds import RECORDED
from kpreempt.snapshot.load import load_snapshot
from kpreempt.snapshot.minimize import ANNOTATIONS, minimized
from kpreempt.snapshot.write import ENDS, DumpHeader, dump_pieces, form_of, packed
from kpreempt.verdict import Assumption, AssumptionKind
from tests.factories import make_budget, make_node, make_pod

HEADER = DumpHeader(
    server_version="v1.36.3",
    taken_at=datetime(2026, 11, 21, 3, 12, tzinfo=UTC),
    kpreempt_version="0.1.0",
    skipped={"Event": 3},
    listed=sorted(RECORDED),
    assumptions=[
        Assumption("PersistentVolume", "", "may not be listed", AssumptionKind.UNREADABLE),
        Assumption("scheduler", "", "is not known"),
    ],
)
CLUSTER = ClusterSnapshot(
    nodes=[make_node("b", labels={"zone": "z"}), make_node("a", unschedulable=True)],
    pods=[
        make_pod("web-2", node="b", cpu="500m"),
        make_pod("web-1", priority=10),
        make_pod("web-1", namespace="other"),
    ],
    pod_disruption_budgets=[make_budget("web", {"app": "web"}, 1)],
)


# Of nodes, namespaces, pod groups and queues, by their names in the model.
VOLCANO_ANNOTATIONS = (
    "OVERSUBSCRIPTION_CPU",
    "OVERSUBSCRIPTION_MEMORY",
    "OFFLINE_JOB_EVICTING",
    "QUEUE_NAME",
    "PREEMPTABLE",
    "REVOCABLE_ZONE",
    "JDB_MIN_AVAILABLE",
    "JDB_MAX_UNAVAILABLE",
    "SLA_WAITING_TIME",
    "OLD_SLA_WAITING_TIME",
    "HIERARCHY",
    "HIERARCHY_WEIGHTS",
)


def write(path: Path, cluster: ClusterSnapshot, header: DumpHeader = HEADER) -> bytes:
    form = form_of(str(path))
    content = b"".join(packed(dump_pieces(cluster, header, minimized, as_lines=form.as_lines), form))
    path.write_bytes(content)
    return content


@pytest.mark.parametrize("end", ENDS)
def test_every_form_is_read_back_as_the_same_cluster(end: str, tmp_path: Path) -> None:
    write(tmp_path / f"cluster{end}", CLUSTER)
    loaded = load_snapshot([str(tmp_path / f"cluster{end}")])
    header = {"version": "v1.36.3", "taken_at": HEADER.taken_at, "listed": tuple(sorted(RECORDED))}
    assert loaded.cluster == msgspec.structs.replace(CLUSTER, **header)
    assert loaded.assumptions == HEADER.assumptions


@pytest.mark.parametrize("end", ENDS)
def test_the_dump_of_a_dump_has_the_same_bytes(end: str, tmp_path: Path) -> None:
    first = write(tmp_path / f"first{end}", CLUSTER)
    assert write(tmp_path / f"second{end}", load_snapshot([str(tmp_path / f"first{end}")]).cluster) == first


def test_objects_are_those_that_the_api_server_serves(tmp_path: Path) -> None:
    items = json.loads(write(tmp_path / "cluster.json", CLUSTER))["items"]
    assert [(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in items] == [
        ("v1", "Node", "b"),
        ("v1", "Node", "a"),
        ("v1", "Pod", "web-2"),
        ("v1", "Pod", "web-1"),
        ("v1", "Pod", "web-1"),
        ("policy/v1", "PodDisruptionBudget", "web"),
    ]
    assert items[2]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m"}}


def test_packed_forms_are_what_their_names_say(tmp_path: Path) -> None:
    plain = write(tmp_path / "cluster.json", CLUSTER)
    assert gzip.decompress(write(tmp_path / "cluster.json.gz", CLUSTER)) == plain
    unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(write(tmp_path / "cluster.json.zst", CLUSTER))
    assert unpacked == plain


def test_an_object_stands_on_each_line_of_json_lines(tmp_path: Path) -> None:
    header, *lines = write(tmp_path / "cluster.jsonl", CLUSTER).splitlines()
    assert json.loads(header)["items"] == []
    assert [json.loads(line)["kind"] for line in lines] == ["Node", "Node", "Pod", "Pod", "Pod", "PodDisruptionBudget"]


def test_an_empty_cluster_can_be_written_and_read(tmp_path: Path) -> None:
    write(tmp_path / "cluster.json", ClusterSnapshot())
    assert load_snapshot([str(tmp_path / "cluster.json")]).cluster.nodes == []


@pytest.mark.parametrize("name", ["cluster", "cluster.yaml", "cluster.zst", "json", "cluster.json.bz2", ""])
def test_any_other_name_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        form_of(name)
    assert ".json.zst" in caught.value.hint


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("kpreempt.io/skipped", "[1]", id="no counts"),
        pytest.param("kpreempt.io/skipped", '{"Event": "many"}', id="a count that is no number"),
        pytest.param("kpreempt.io/assumptions", "[" * 100_000, id="nested without end"),
        pytest.param("kpreempt.io/assumptions", "[{}]", id="an assumption about nothing"),
    ],
)
def test_a_header_that_kpreempt_did_not_write_is_one_message(key: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    document = {"apiVersion": "v1", "kind": "List", "metadata": {"annotations": {key: value}}, "items": []}
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"metadata\.annotations: .* was not written by kpreempt"):
        load_snapshot([str(path)])


SECRET = "s3cret"
RICH_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "api",
        "namespace": "shop",
        "annotations": {"vault.example/token": SECRET},
        "managedFields": [{"manager": SECRET}],
    },
    "spec": {
        "nodeName": "node-a",
        "containers": [
            {
                "name": "main",
                "command": [SECRET],
                "args": [SECRET],
                "env": [{"name": "TOKEN", "value": SECRET}],
                "envFrom": [{"secretRef": {"name": SECRET}}],
                "livenessProbe": {"exec": {"command": [SECRET]}},
            }
        ],
        "volumes": [
            {"name": "a", "secret": {"secretName": SECRET}},
            {"name": "b", "rbd": {"monitors": ["m"], "image": "i", "secretRef": {"name": SECRET}}},
            {"name": "c", "csi": {"driver": "d", "volumeAttributes": {"key": SECRET}}},
        ],
        "imagePullSecrets": [{"name": SECRET}],
    },
    "status": {
        "phase": "Running",
        "message": SECRET,
        "conditions": [
            {"type": kind, "status": "True", "message": SECRET}
            for kind in ("Ready", "DisruptionTarget", "PodResizePending", "example.com/Custom")
        ],
    },
}
RICH_OBJECTS: list[dict[str, Any]] = [
    RICH_POD,
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"token": SECRET}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"token": SECRET}},
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-a", "annotations": {"vpn.example/key": SECRET}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "message": SECRET}]},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "p",
            "namespace": "shop",
            "annotations": {"pv.kubernetes.io/bind-completed": SECRET, "note": SECRET},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v", "annotations": {"pv.kubernetes.io/provisioned-by": SECRET}},
        "spec": {"csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"key": SECRET}}},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "shop"},
        "status": {"allocation": {"devices": {"config": [{"opaque": {"parameters": SECRET}}]}}},
    },
]


def test_what_may_hold_secrets_is_never_written(tmp_path: Path) -> None:
    source = tmp_path / "rich.json"
    source.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": RICH_OBJECTS}))
    cluster = load_snapshot([str(source)]).cluster
    written = write(tmp_path / "cluster.json", cluster)
    assert SECRET.encode() not in written
    claim = load_snapshot([str(tmp_path / "cluster.json")]).cluster.resource_claims[0]
    assert claim.status.allocation is not None


def test_every_annotation_that_a_scheduler_or_admission_reads_is_kept() -> None:
    read = {
        storage.BETA_STORAGE_CLASS_ANNOTATION,
        storage.BIND_COMPLETED_ANNOTATION,
        storage.SELECTED_NODE_ANNOTATION,
        volumes.MIGRATED_PLUGINS_ANNOTATION,
        EXTENDED_RESOURCE_CLAIM,
        STATUS_ANNOTATION,
        *cluster_defaults._DEFAULT_CLASS_ANNOTATIONS,
        *(getattr(volcano, name) for name in VOLCANO_ANNOTATIONS),
    }
    assert frozenset().union(*ANNOTATIONS.values()) == read


def records_within(kind: inspect.Type) -> Iterator[type[msgspec.Struct]]:
    """All records that a type is made of."""
    if isinstance(kind, inspect.StructType):
        yield kind.cls
        for field in kind.fields:
            yield from records_within(field.type)
    elif isinstance(kind, inspect.ListType):
        yield from records_within(kind.item_type)
    elif isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from records_within(each)


@pytest.mark.parametrize("kind", KINDS)
def test_no_record_is_written_with_fields_that_say_nothing(kind: str) -> None:
    records = set(records_within(inspect.type_info(KINDS[kind].record)))
    assert [each.__name__ for each in records if not each.__struct_config__.omit_defaults] == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Preempted by pod 0a1b-2c on node n1", True),
        ("Preempted by podgroup 0a1b on node n1 (in kube-scheduler memory).", True),
        ("Preempted by a pod on node n1", True),
        ("Preempted by shop/api-1 on node n1.example", True),
        ("Preempted by pod 0a1b on node n1, password s3cret", False),
        ("Preempted by s3cret", False),
        ("Preempted by pod 0a1b on node n1\ns3cret", False),
        ("0/3 nodes are available: s3cret", False),
    ],
)
@pytest.mark.parametrize("field", ["message", "note"])
def test_of_events_only_the_schedulers_own_words_are_written(text: str, kept: bool, field: str) -> None:
    event = Event(reason="Preempted", **{field: text})
    assert getattr(minimized(event), field) == (text if kept else "")
    # One does not hide behind the other.
    both = {"note": "Preempted by a pod on node n1", "message": text}
    assert minimized(Event(reason="Preempted", **both)).message == (text if kept else "")


def test_reports_of_kubelets_and_the_states_of_containers_that_do_not_start_are_kept(tmp_path: Path) -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
    ready = {"type": "Ready", "status": "True", "message": "kubelet is posting ready status"}
    lost = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
    states = {"containerStatuses": [{"name": "main", "state": waiting}]}
    objects = [
        {"kind": "Pod", "metadata": {"name": "new"}, "status": {"phase": "Pending", **states}},
        {"kind": "Pod", "metadata": {"name": "old"}, "status": {"phase": "Running", **states}},
        {
            "kind": "Event",
            "metadata": {"name": "e"},
            "reason": "FailedMount",
            "message": "not bound",
            "type": "Warning",
        },
        {"kind": "Node", "metadata": {"name": "n1"}, "status": {"conditions": [ready]}},
        {"kind": "Node", "metadata": {"name": "n2"}, "status": {"conditions": [lost]}},
    ]
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [{"apiVersion": "v1"} | each for each in objects]})
    )
    write(second, load_snapshot([str(first)]).cluster)
    cluster = load_snapshot([str(second)]).cluster
    new, old = cluster.pods
    assert new.status.container_statuses[0].state.waiting is not None
    assert new.status.container_statuses[0].state.waiting.message == "Back-off pulling image"
    assert old.status.container_statuses == []
    assert [(each.reason, each.type, each.message) for each in cluster.events] == [
        ("FailedMount", "Warning", "not bound")
    ]
    assert [node.status.conditions[0].message for node in cluster.nodes] == ["", "Kubelet stopped posting node status."]
