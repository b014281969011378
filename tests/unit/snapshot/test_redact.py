"""What redaction takes away, and what it leaves as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kinds import KINDS
from kpreempt.model.labels import is_label_key, is_label_value
from kpreempt.model.pod import Pod, PodCondition, PodMeta, PodStatus
from kpreempt.model.quantity import quantity
from kpreempt.schedulers.kube.framework import csi_translation
from kpreempt.schedulers.kube.plugins.image_locality import normalized_image_name
from kpreempt.schedulers.kube.plugins.node_declared_features import FEATURES
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.snapshot.redact import unlisted_fields, well_known
from kpreempt.snapshot.redact.tokens import Names, Space
from kpreempt.snapshot.write import DumpHeader, dump_pieces
from kpreempt.verdict import Assumption, AssumptionKind
from tests.factories import redaction_of

HEADER = DumpHeader(server_version="", taken_at=datetime(2026, 11, 21, tzinfo=UTC), kpreempt_version="0")
CANARY = "canary"
_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


def redacted(cluster: ClusterSnapshot) -> list[dict[str, Any]]:
    """The objects of the cluster's redacted dump."""
    rewrite = redaction_of(cluster).record
    items: list[dict[str, Any]] = msgspec.json.decode(b"".join(dump_pieces(cluster, HEADER, rewrite, as_lines=False)))[
        "items"
    ]
    return items


def cluster_of(*objects: dict[str, Any]) -> ClusterSnapshot:
    return cluster_from_json([msgspec.json.encode(each) for each in objects], "test")


def pod(name: str = "web-1", namespace: str = "shop", **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, **parts.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **parts}


def node(name: str = "node-a", **parts: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **parts.pop("metadata", {})}, **parts}


class Filled:
    """Records in which every text is another canary."""

    def __init__(self) -> None:
        self._count = 0

    def record(self, record: type[msgspec.Struct]) -> Any:
        info = inspect.type_info(record)
        assert isinstance(info, inspect.StructType)
        return record(**{field.name: self._value(field.type) for field in info.fields})

    def _text(self) -> str:
        self._count += 1
        return f"{CANARY}-{self._count}"

    def _value(self, kind: inspect.Type) -> Any:
        if isinstance(kind, inspect.UnionType):
            kinds = [each for each in kind.types if not isinstance(each, inspect.NoneType | inspect.IntType)]
            return self._value((kinds or list(kind.types))[0])
        if isinstance(kind, inspect.StructType):
            return self.record(kind.cls)
        if isinstance(kind, inspect.ListType):
            return [self._value(kind.item_type)]
        if isinstance(kind, inspect.DictType):
            return {self._value(kind.key_type): self._value(kind.value_type)}
        values: dict[type[inspect.Type], Any] = {
            inspect.IntType: 1,
            inspect.BoolType: True,
            inspect.DateTimeType: datetime(2026, 11, 21, tzinfo=UTC),
            inspect.CustomType: quantity("1"),
        }
        if isinstance(kind, inspect.LiteralType):
            return kind.values[0]
        return values[type(kind)] if type(kind) in values else self._text()


def test_no_text_of_any_field_is_left() -> None:
    filled = Filled()
    cluster = ClusterSnapshot(**{kind.field: [filled.record(kind.record)] for kind in KINDS.values()})
    text = b"".join(dump_pieces(cluster, HEADER, redaction_of(cluster).record, as_lines=False))
    assert CANARY.encode() not in text


@pytest.mark.parametrize(
    "shaped",
    [
        pytest.param(node(status={"images": [{"names": ["canary.example:5000/canary@sha256:canary"]}]}), id="an image"),
        pytest.param(node(status={"allocatable": {"canary.example/gpu": "1"}}), id="an extended resource"),
        pytest.param(
            node(status={"allocatable": {"attachable-volumes-csi-canary.example": "1"}}), id="a driver in a limit"
        ),
        pytest.param(
            node(status={"allocatable": {"deviceclass.resource.kubernetes.io/canary": "1"}}), id="a class of devices"
        ),
        pytest.param(node(status={"allocatable": {"canarykubernetes.io/x": "1"}}), id="nearly Kubernetes' own domain"),
        pytest.param(node(status={"nodeInfo": {"kubeletVersion": "v1.36.3-canary"}}), id="a vendor's version"),
        pytest.param(node(metadata={"labels": {"canary.kubernetes.io/x": "1"}}), id="a key in a domain of Kubernetes'"),
        pytest.param(node(metadata={"labels": {"x.k8s.io/canary": "1"}}), id="a key in another domain of Kubernetes'"),
        pytest.param(
            node(metadata={"labels": {"app.kubernetes.io/canary": "1"}}), id="a key beside those that all have"
        ),
        pytest.param(node(spec={"taints": [{"key": "canary.kubernetes.io/x", "effect": "NoSchedule"}]}), id="a taint"),
        pytest.param(pod(metadata={"finalizers": ["canary.kubernetes.io/x"]}), id="a finalizer"),
        pytest.param(pod(spec={"schedulingGates": [{"name": "canary.k8s.io/gate"}]}), id="a scheduling gate"),
        pytest.param(node(status={"allocatable": {"canary.kubernetes.io/gpu": "1"}}), id="a resource of that domain"),
        pytest.param(
            pod(metadata={"ownerReferences": [{"apiVersion": "canary.k8s.io/v1", "kind": "Job", "name": "x"}]}),
            id="an owner of a custom group",
        ),
        pytest.param(node(metadata={"labels": {"node-role.kubernetes.io/canary": ""}}), id="a role of nodes"),
        pytest.param(node(metadata={"labels": {"topology.kubernetes.io/zone": "canary"}}), id="a zone"),
        pytest.param(node(metadata={"labels": {"canary": "1"}}), id="a label's key"),
        pytest.param(node(metadata={"labels": {"x": "Not a canary!"}}), id="a label's value that is none"),
        pytest.param(
            pod(metadata={"ownerReferences": [{"apiVersion": "canary.example/v1", "kind": "Canary", "name": "x"}]}),
            id="an owner of a custom kind",
        ),
        pytest.param(
            pod(spec={"volumes": [{"name": "a", "awsElasticBlockStore": {"volumeID": "aws://canary/vol-canary"}}]}),
            id="a disk with its zone",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "v", "labels": {"topology.kubernetes.io/zone": "canary-a-1__canary-a-2"}},
                "spec": {
                    "gcePersistentDisk": {"pdName": "canary"},
                    "csi": {"driver": "d", "volumeHandle": "projects/UNSPECIFIED/zones/canary/disks/canary"},
                },
            },
            id="a volume in two zones",
        ),
        pytest.param(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "b", "namespace": "n"},
                "spec": {"minAvailable": "canary%"},
                "status": {"disruptedPods": {"canary": "canary"}},
            },
            id="a budget that is written wrong",
        ),
    ],
)
def test_no_part_of_a_text_that_is_made_of_others_is_left(shaped: dict[str, Any]) -> None:
    assert CANARY not in str(redacted(cluster_of(shaped))).lower()


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_with_text_is_known_to_redaction(kind: str) -> None:
    assert unlisted_fields(KINDS[kind].record) == []


@pytest.mark.parametrize(
    ("given_object", "path", "expected"),
    [
        pytest.param(
            node(metadata={"labels": {"topology.kubernetes.io/zone": "eu-1"}}),
            ("metadata", "labels"),
            {"topology.kubernetes.io/zone": "domain-0001"},
            id="keys of Kubernetes, but not their values",
        ),
        pytest.param(
            node(metadata={"labels": {"kubernetes.io/hostname": "node-a"}}),
            ("metadata", "labels"),
            {"kubernetes.io/hostname": "node-0001"},
            id="that a node's name is its host name",
        ),
        pytest.param(
            node(status={"allocatable": {"cpu": "1", "hugepages-2Mi": "1Gi", "example.com/gpu": "2"}}),
            ("status", "allocatable"),
            {"cpu": "1", "hugepages-2Mi": "1Gi", "d-resource-0001/r": "2"},
            id="amounts and the resources of Kubernetes, in their order",
        ),
        pytest.param(
            node(status={"allocatable": {"attachable-volumes-canary": "1", "hugepages-canary": "1"}}),
            ("status", "allocatable"),
            {"attachable-volumes-b-resource-0001": "1", "hugepages-b-resource-0001": "1"},
            id="what schedulers know resources by",
        ),
        pytest.param(
            node(status={"allocatable": {"nvidia.com/gpu": "4"}}),
            ("status", "allocatable"),
            {"nvidia.com/gpu": "4"},
            id="the resource that Volcano scores by name",
        ),
        pytest.param(
            pod(namespace="kube-system", spec={"priorityClassName": "system-node-critical"}),
            ("spec",),
            {"priorityClassName": "system-node-critical"},
            id="the priority classes that every cluster has",
        ),
        pytest.param(
            node(spec={"taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}),
            ("spec", "taints"),
            [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
            id="the taints of Kubernetes",
        ),
        pytest.param(
            pod(spec={"volumes": [{"name": "data", "ephemeral": {}}]}),
            ("spec", "volumes"),
            [{"name": "volume-0001", "ephemeral": {}}],
            id="what sort a volume is of",
        ),
        pytest.param(
            pod(metadata={"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}]}),
            ("metadata", "ownerReferences"),
            [{"kind": "ReplicaSet", "name": "replicaset-0001", "apiVersion": "apps/v1"}],
            id="kinds of owners that a scheduler knows",
        ),
        pytest.param(
            pod(spec={"containers": [{"ports": [{"hostPort": 80, "hostIP": "127.0.0.1"}, {"hostIP": "10.9.8.7"}]}]}),
            ("spec", "containers"),
            [{"ports": [{"hostPort": 80, "hostIP": "127.0.0.1"}, {"hostIP": "10.0.0.1"}]}],
            id="ports, and addresses that every host has",
        ),
    ],
)
def test_what_survives(given_object: dict[str, Any], path: tuple[str, ...], expected: Any) -> None:
    found: Any = redacted(cluster_of(given_object))[0]
    for step in path:
        found = found[step]
    assert found == expected


def test_numbers_survive_where_they_are_compared_and_only_there() -> None:
    expression = {"key": "gen", "operator": "Gt", "values": ["7"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    tolerations = [{"key": "load", "operator": "Lt", "value": "50"}]
    cluster = cluster_of(
        node(
            metadata={"labels": {"gen": "12", "team": "4711"}},
            spec={"taints": [{"key": "load", "value": "40", "effect": "NoSchedule"}]},
        ),
        pod(spec={"affinity": affinity, "tolerations": tolerations}),
    )
    text = str(redacted(cluster))
    assert all(f"'{number}'" in text for number in ("7", "12", "50", "40"))
    assert "4711" not in text


def test_the_claim_of_an_ephemeral_volume_stays_named_after_its_pod_and_volume() -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "web-1-data", "namespace": "shop"},
    }
    found_pod, found_claim = redacted(cluster_of(pod(spec={"volumes": [{"name": "data", "ephemeral": {}}]}), claim))
    name = f"{found_pod['metadata']['name']}-{found_pod['spec']['volumes'][0]['name']}"
    assert found_claim["metadata"]["name"] == name


def volume(name: str, zones: str = "", **source: Any) -> dict[str, Any]:
    labels = {"labels": {csi_translation.ZONE: zones}} if zones else {}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, **labels}, "spec": source}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            volume("a", awsElasticBlockStore={"volumeID": "aws://eu-1a/vol-7"}),
            volume("b", awsElasticBlockStore={"volumeID": "vol-7"}),
            id="an EBS volume with and without its zone",
        ),
        pytest.param(
            volume("a", "eu-w1-a__eu-w1-b", gcePersistentDisk={"pdName": "disk"}),
            volume("b", "eu-w1-c__eu-w1-b", gcePersistentDisk={"pdName": "disk"}),
            id="a regional disk by different zones of its region",
        ),
        pytest.param(
            volume("a", azureDisk={"diskName": "d", "diskURI": "/d", "kind": "Managed"}),
            volume("b", azureDisk={"diskName": "e", "diskURI": "/d", "kind": "managed"}),
            id="a managed disk",
        ),
    ],
)
def test_disks_that_a_scheduler_takes_for_one_stay_one(one: dict[str, Any], other: dict[str, Any]) -> None:
    before = cluster_of(one, other)
    after = cluster_of(*redacted(before))
    for cluster in (before, after):
        first, second = map(csi_translation.translate_volume, cluster.persistent_volumes)
        assert first == second


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(
            volume("a", awsElasticBlockStore={"volumeID": "aws://eu-1a/7"}), id="an EBS volume of another name"
        ),
        pytest.param(volume("a", "eu-w1-a__eu-w2-b", gcePersistentDisk={"pdName": "disk"}), id="a disk of two regions"),
        pytest.param(volume("a", "a__b", gcePersistentDisk={"pdName": "disk"}), id="zones that name no region"),
        pytest.param(volume("a", azureDisk={"diskURI": "/d"}), id="a disk that is not managed"),
    ],
)
def test_disks_that_a_scheduler_does_not_understand_stay_so(wrong: dict[str, Any]) -> None:
    before = cluster_of(wrong)
    for cluster in (before, cluster_of(*redacted(before))):
        with pytest.raises(csi_translation.TranslationError):
            csi_translation.translate_volume(cluster.persistent_volumes[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "a:latest"),
        ("r.example:5000/a", "r.example:5000/a:latest"),
        ("a:1", "a"),
        ("a:1", "a:1:latest"),
        ("r.example/a@sha256:0", "r.example/a"),
    ],
)
def test_images_that_a_scheduler_takes_for_one_stay_one(one: str, other: str) -> None:
    containers = redacted(cluster_of(pod(spec={"containers": [{"image": one}, {"image": other}]})))[0]["spec"][
        "containers"
    ]
    found = [each["image"] for each in containers]
    assert (normalized_image_name(found[0]) == normalized_image_name(found[1])) == (
        normalized_image_name(one) == normalized_image_name(other)
    )


def test_names_that_come_out_are_names_that_kubernetes_takes() -> None:
    names = [f"{'x' * 50}{number}" for number in range(12_000)]
    cluster = cluster_of(
        *(pod(name, f"ns-{index}", metadata={"labels": {name: name}}) for index, name in enumerate(names))
    )
    for item in redacted(cluster):
        metadata = item["metadata"]
        assert _DNS_NAME.fullmatch(metadata["name"])
        assert _DNS_NAME.fullmatch(metadata["namespace"])
        assert all(is_label_key(key) and is_label_value(value) for key, value in metadata["labels"].items())


@pytest.mark.parametrize("key", ["a b", "a/b/c", "/a", "a/", "UPPER.example/a", f"{'a' * 254}/b", "b" * 64, "é"])
def test_a_key_that_is_none_stays_none(key: str) -> None:
    labels = redacted(cluster_of(node(metadata={"labels": {key: "not a value"}})))[0]["metadata"]["labels"]
    [(new_key, new_value)] = labels.items()
    assert not is_label_key(new_key)
    assert not is_label_value(new_value)


@pytest.mark.parametrize(
    "name", ["\x1b[31mred\x1b[0m", "a\u202eb", "a\x00b", "\U0001f600", "a" * 100_000, "../../etc", '"}', "-", " "]
)
def test_hostile_names_are_replaced_as_any_other(name: str) -> None:
    cluster = cluster_of(
        pod(
            name,
            name,
            metadata={"uid": name, "labels": {name: name}},
            spec={"nodeName": name, "volumes": [{"name": name, "ephemeral": {}}]},
        )
    )
    text = msgspec.json.encode(redacted(cluster)).decode()
    assert text.isascii()
    assert len(text) < 2_000


def test_each_pod_keeps_its_own_conditions() -> None:
    reasons = ["PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager"] * 100
    pods = [
        Pod(
            metadata=PodMeta(name=f"pod-{number}"),
            status=PodStatus(conditions=[PodCondition("DisruptionTarget", "True", reason, message=CANARY)]),
        )
        for number, reason in enumerate(reasons)
    ]
    found = [item["status"]["conditions"][0]["reason"] for item in redacted(ClusterSnapshot(pods=pods))]
    assert found == reasons


def test_assumptions_and_skipped_kinds_say_no_names() -> None:
    cluster = ClusterSnapshot(skipped={"Secret": 2, "Canary": 1})
    redaction = redaction_of(cluster)
    assert redaction.skipped(cluster.skipped) == {"Secret": 2, "kind-0001": 1}
    assumed = [
        Assumption("Pod shop/canary", "spec.canary", "canary", AssumptionKind.SKIPPED),
        Assumption("canary", "", ""),
    ]
    said = redaction.assumptions(assumed)
    assert [each.subject for each in said] == ["Pod", "cluster"]
    assert [each.kind for each in said] == [each.kind for each in assumed]
    assert CANARY not in str(said)


def test_the_well_known_names_are_those_that_the_scheduler_knows() -> None:
    assert set(FEATURES) == well_known.NODE_FEATURES
    assert set(csi_translation.DRIVERS.values()) == well_known.DRIVERS
    assert set(csi_translation._TOPOLOGY_KEYS.values()) == set(well_known.CSI_ZONES)


_names = st.text("abcz019.-", min_size=1, max_size=5).filter(lambda text: text[0] not in ".-")


def order_of(texts: list[str]) -> Iterator[bool]:
    return (one < other for one, other in pairwise(texts))


@given(st.lists(_names, unique=True, max_size=12), st.frozensets(_names, max_size=4))
def test_tokens_sort_as_names_do_among_each_other_and_next_to_known_names(
    texts: list[str], known: frozenset[str]
) -> None:
    space = Space("stem", known.__contains__)
    names = Names(b"a key")
    for text in texts:
        names.collect(space, text)
    names.number()
    tokens = [names.token(space, text) for text in texts]
    assert len(set(tokens)) == len(texts)
    seen = sorted(known & set(texts))
    # Between a name and the same with a dash or a dot there is no room.
    if all(other[len(one) : len(one) + 1] not in ("-", ".") for one in seen for other in seen if other.startswith(one)):
        assert list(order_of(tokens)) == list(order_of(texts))


def tokens_of(space: Space, texts: list[str], key: bytes) -> list[str]:
    names = Names(key)
    for text in texts:
        names.collect(space, text)
    names.number()
    return [names.token(space, text) for text in texts]


def test_unsorted_tokens_are_in_an_order_that_depends_on_the_key() -> None:
    texts = [f"name-{number:03}" for number in range(40)]
    space = Space("stem", is_sorted=False)
    one, same, other = (tokens_of(space, texts, key) for key in (b"one", b"one", b"other"))
    assert one == same
    assert sorted(one) == sorted(other) == sorted(tokens_of(Space("stem"), texts, b"one"))
    assert len({*map(tuple, (one, other, sorted(one)))}) == 3


def test_images_containers_and_what_labels_say_are_not_in_the_order_of_their_names() -> None:
    names = [f"name-{number:02}" for number in range(30)]
    containers = [{"name": name, "image": name} for name in names]
    labels = {"app": "x"} | {f"key-{name}": name for name in names}
    spec = redacted(cluster_of(pod(metadata={"labels": labels}, spec={"containers": containers})))[0]
    found = spec["spec"]["containers"]
    for tokens in ([each["name"] for each in found], [each["image"] for each in found]):
        assert sorted(tokens) != tokens
    values = [value for key, value in sorted(spec["metadata"]["labels"].items())]
    assert sorted(values) != values


def test_what_places_nodes_and_what_taints_say_stays_in_order() -> None:
    zones, racks, values = ([f"{stem}{number:02}" for number in range(30)] for stem in ("z", "r", "t"))
    constraint = {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    nodes = [
        node(
            f"node-{zone}",
            metadata={"labels": {"topology.kubernetes.io/zone": zone, "rack": rack}},
            spec={"taints": [{"key": "dedicated", "value": value, "effect": "NoSchedule"}]},
        )
        for zone, rack, value in zip(zones, racks, values, strict=True)
    ]
    found = redacted(cluster_of(*nodes, pod(spec={"topologySpreadConstraints": [constraint]})))[:-1]
    for key in found[0]["metadata"]["labels"]:
        tokens = [each["metadata"]["labels"][key] for each in found]
        assert sorted(tokens) == tokens
    taints = [each["spec"]["taints"][0]["value"] for each in found]
    assert sorted(taints) == taints
