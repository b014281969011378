"""What plugins want beyond a snapshot: whole objects by kind, and the annotations of pods."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import ExtraFields, ObjectKind
from kpreempt.model.meta import LAST_APPLIED
from kpreempt.model.pod import PodAnnotations, annotations_of
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.decode import decode_object, object_decoder
from kpreempt.snapshot.load import Loaded, cluster_from_json, load_snapshot, merge_clusters
from kpreempt.snapshot.minimize import minimized
from kpreempt.snapshot.write import DumpHeader, dump_pieces

Document = dict[str, Any]

GROUP = "scheduling.x-k8s.io"
QUOTAS = f"ElasticQuota.{GROUP}"
QUOTA_KIND = ObjectKind("ElasticQuota", GROUP, "v1alpha1")
CLASS_KIND = ObjectKind("PriorityClass", "scheduling.k8s.io", is_namespaced=False)
CLASSES = CLASS_KIND.key
ALL_OF_PODS = ExtraFields(pod_annotations=True)
WANTED = ExtraFields((QUOTA_KIND, CLASS_KIND), pod_annotations=True)
# Stands for a password in a manifest.
SECRET = "s3cr3t-marker"


def quota(name: str, *, version: str = "", api_version: str = f"{GROUP}/v1alpha1", **parts: Any) -> Document:
    metadata: Document = {"name": name, "namespace": "shop", "resourceVersion": version}
    return {"apiVersion": api_version, "kind": "ElasticQuota", "metadata": metadata, **parts}


def priority_class(name: str, **annotations: str) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "resourceVersion": "7", "annotations": annotations},
        "value": 10,
    }


def pod(name: str, annotations: Any = None, version: str = "7") -> Document:
    metadata: Document = {"name": name, "namespace": "shop", "resourceVersion": version}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c"}]}}


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Loaded]:
    """Loads files, each a list of objects or some bytes."""

    def loaded(*files: list[Document] | bytes, extra_fields: ExtraFields = WANTED, **options: Any) -> Loaded:
        paths = []
        for number, content in enumerate(files):
            path = tmp_path / f"file-{number}"
            whole = content if isinstance(content, bytes) else json.dumps({"kind": "List", "items": content}).encode()
            path.write_bytes(whole)
            paths.append(str(path))
        return load_snapshot(paths, needs=Needs(extra_fields=extra_fields), **options)

    return loaded


def names(cluster: ClusterSnapshot, key: str) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.documents[key]]


def test_wanted_objects_are_kept_whole_in_their_order_and_others_are_not(load: Callable[..., Loaded]) -> None:
    spec = {"min": {"cpu": "10"}, "max": {"cpu": 20}}
    other = {**quota("not-ours"), "apiVersion": "elsewhere.io/v1"}
    cluster = load([quota("b", spec=spec), other, priority_class("high", note="x"), quota("a")]).cluster
    assert list(cluster.documents) == [QUOTAS, CLASSES]
    assert names(cluster, QUOTAS) == ["b", "a"]
    assert cluster.documents[QUOTAS][0] == quota("b", spec=spec)
    assert cluster.documents[CLASSES] == [priority_class("high", note="x")]
    assert [each.metadata.name for each in cluster.priority_classes] == ["high"]
    # They count among those that no scheduler reads, whether a plugin does or not.
    assert cluster.skipped == {"ElasticQuota": 3}


def test_a_wanted_kind_of_which_there_are_none_has_an_empty_list(load: Callable[..., Loaded]) -> None:
    assert load([pod("a")]).cluster.documents == {QUOTAS: [], CLASSES: []}


def test_the_namespace_and_the_kind_are_filled_in(load: Callable[..., Loaded]) -> None:
    bare = json.dumps(
        {"kind": "ElasticQuotaList", "apiVersion": f"{GROUP}/v1beta1", "items": [{"metadata": {"name": "q"}}]}
    ).encode()
    (found,) = load(bare).cluster.documents[QUOTAS]
    assert found == {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": "default"},
    }


def test_an_object_without_a_version_is_known_by_its_name(load: Callable[..., Loaded]) -> None:
    unsaid = {"kind": "ElasticQuota", "metadata": {"name": "q"}}
    volcanos = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 1}}
    extra_fields = ExtraFields((QUOTA_KIND, ObjectKind("PodGroup", GROUP, "v1alpha1")))
    cluster = load([unsaid, volcanos], extra_fields=extra_fields).cluster
    assert cluster.documents[QUOTAS][0]["apiVersion"] == f"{GROUP}/v1alpha1"
    # Of two kinds of that name the one that every snapshot keeps is meant.
    assert (len(cluster.pod_groups), cluster.documents[f"PodGroup.{GROUP}"]) == (1, [])


def test_two_kinds_of_one_name_are_kept_apart(load: Callable[..., Loaded]) -> None:
    ours = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "PodGroup", "metadata": {"name": "ours"}}
    volcanos = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "theirs"}}
    kinds = (ObjectKind("PodGroup", GROUP, "v1alpha1"), ObjectKind("PodGroup", "scheduling.volcano.sh"))
    cluster = load([ours, volcanos], extra_fields=ExtraFields(kinds)).cluster
    assert names(cluster, f"PodGroup.{GROUP}") == ["ours"]
    assert names(cluster, "PodGroup.scheduling.volcano.sh") == ["theirs"]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        pytest.param({"version": "9", "n": 1}, {"version": "10", "n": 2}, 2, id="the later version counts"),
        pytest.param({"version": "10", "n": 1}, {"version": "9", "n": 2}, 1, id="also where it comes first"),
        pytest.param({"version": "9", "n": 1}, {"version": "9", "n": 2}, 1, id="of one version the first"),
        pytest.param({"n": 1}, {"n": 1}, 1, id="equal ones without a version"),
    ],
)
def test_each_object_is_kept_once(load: Callable[..., Loaded], first: Document, second: Document, kept: int) -> None:
    cluster = load([quota("q", **first), quota("other")], [quota("q", **second)]).cluster
    assert [(each["metadata"]["name"], each.get("n")) for each in cluster.documents[QUOTAS]] == [
        ("q", kept),
        ("other", None),
    ]


def test_two_different_ones_without_a_version_are_an_error(load: Callable[..., Loaded]) -> None:
    with pytest.raises(InputError, match=r"ElasticQuota shop/q: defined twice, here, with different content"):
        load([quota("q", n=1), quota("q", n=2)])


def test_a_document_follows_the_record_that_counts(load: Callable[..., Loaded]) -> None:
    later = {**priority_class("high", note="new"), "value": 20}
    later["metadata"] = {**later["metadata"], "resourceVersion": "8"}
    cluster = load([priority_class("high", note="old"), later, priority_class("high", note="old")]).cluster
    assert [each.value for each in cluster.priority_classes] == [20]
    assert [each["metadata"]["annotations"] for each in cluster.documents[CLASSES]] == [{"note": "new"}]


@pytest.mark.parametrize("kind", ["ElasticQuota", "PriorityClass", "Pod"])
@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        pytest.param(
            {"annotations": {"a": "x", "b/c.d": 3}}, r"annotations.*: expected a string, got 3", id="a number"
        ),
        pytest.param({"annotations": ["x"]}, r"annotations: expected an object, got a list", id="a list"),
        pytest.param(
            {"annotations": {"a": {"b": "x"}}}, r"annotations\.a: expected a string, got an object", id="deep"
        ),
        pytest.param({"name": ""}, r"metadata\.name: is missing", id="no name"),
    ],
)
def test_a_bad_one_is_one_message_or_set_aside(
    load: Callable[..., Loaded], kind: str, metadata: Document, problem: str
) -> None:
    good = {"ElasticQuota": quota("bad"), "PriorityClass": priority_class("bad"), "Pod": pod("bad")}[kind]
    bad = {**good, "metadata": {**good["metadata"], **metadata}}
    with pytest.raises(InputError, match=rf"file-0:1: {kind}\b.*{problem}"):
        load([bad])
    loaded = load([bad, pod("good")], skip_bad_objects=True)
    assert len(loaded.skipped_objects) == 1
    assert not any(loaded.cluster.documents.values())
    assert [each.metadata.name for each in loaded.cluster.pods] == ["good"]
    assert loaded.cluster.priority_classes == []


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b'{"spec":' + b"[" * 10_000_000, id="lists that never end"),
        pytest.param(b'{"spec":' + b"[" * 50_000_000 + b"]" * 50_000_000 + b"}", id="100 MB of lists within lists"),
        pytest.param(b'{"spec":' + b"9" * 10_000 + b"}", id="a number of ten thousand digits"),
        pytest.param(b'{"spec":"\xff"}', id="no UTF-8"),
    ],
)
def test_a_hostile_one_is_one_message(load: Callable[..., Loaded], bad: bytes) -> None:
    start = b'{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"ElasticQuota","metadata":{"name":"q"},'
    with pytest.raises(InputError) as caught:
        load(start + bad[1:])
    assert len(caught.value.message) < 300


def test_nothing_is_null_in_what_a_plugin_reads_of_metadata(load: Callable[..., Loaded]) -> None:
    odd = quota("q")
    odd["metadata"] |= {"annotations": None, "labels": None}
    cluster = load([odd, pod("a", {"x": None})]).cluster
    assert cluster.documents[QUOTAS][0]["metadata"]["annotations"] == {}
    assert annotations_of(cluster.pods[0]) == {"x": ""}


def test_pods_have_all_their_annotations_but_the_manifest_that_kubectl_notes(load: Callable[..., Loaded]) -> None:
    annotations = {LAST_APPLIED: SECRET, "example.com/rack": "r1", "scheduling.k8s.io/group-name": "g"}
    first, second, third = load([pod("a", annotations), pod("b"), pod("c", {LAST_APPLIED: SECRET})]).cluster.pods
    assert annotations_of(first) == {"example.com/rack": "r1", "scheduling.k8s.io/group-name": "g"}
    # What is always read is where it always is.
    assert first.metadata.annotations is not None
    assert first.metadata.annotations.group_name == "g"
    assert annotations_of(second) == annotations_of(third) == {}
    assert (second.metadata.annotations, third.metadata.annotations) == (None, None)


def test_documents_leave_out_the_manifest_that_kubectl_notes(load: Callable[..., Loaded]) -> None:
    cluster = load([priority_class("high", **{LAST_APPLIED: SECRET, "note": "x"})]).cluster
    assert cluster.documents[CLASSES][0]["metadata"]["annotations"] == {"note": "x"}


def test_without_a_wish_pods_have_the_annotations_that_are_always_read(load: Callable[..., Loaded]) -> None:
    annotations = {"example.com/rack": "r1", "scheduling.k8s.io/group-name": "g", "odd": 3}
    cluster = load([pod("a", annotations), quota("q")], extra_fields=ExtraFields()).cluster
    assert cluster.pods[0].metadata.annotations == PodAnnotations(group_name="g")
    assert annotations_of(cluster.pods[0]) == {}
    assert cluster.documents == {}


def test_a_pod_of_a_manifest_has_them_where_they_are_wanted() -> None:
    document = pod("a", {"example.com/rack": "r1", LAST_APPLIED: SECRET})
    assert annotations_of(object_decoder(ALL_OF_PODS)("Pod", document)) == {"example.com/rack": "r1"}
    assert object_decoder(ExtraFields((QUOTA_KIND,))) is decode_object
    with pytest.raises(InputError, match=r"here:3: Pod shop/a: metadata.annotations.x: expected a string, got true"):
        object_decoder(ALL_OF_PODS)("Pod", pod("a", {"x": True}), source="here", line=3)


def test_objects_laid_over_others_replace_those_of_their_name() -> None:
    def cluster(*documents: Document) -> ClusterSnapshot:
        return cluster_from_json([json.dumps(each).encode() for each in documents], "here", ExtraFields((QUOTA_KIND,)))

    base, over = cluster(quota("a", n=1), quota("b", n=1)), cluster(quota("c", n=2), quota("a", n=2))
    merged = merge_clusters(base, over)
    assert [(each["metadata"]["name"], each["n"]) for each in merged.documents[QUOTAS]] == [
        ("a", 2),
        ("b", 1),
        ("c", 2),
    ]
    assert merge_clusters(base, ClusterSnapshot()) == base
    assert merge_clusters(ClusterSnapshot(), base).documents == base.documents
    assert [each["n"] for each in base.documents[QUOTAS]] == [1, 1]


# Dumps that kpreempt writes, which keep neither.

HEADER = DumpHeader(server_version="v1.36.3", taken_at=datetime(2026, 11, 21, tzinfo=UTC), kpreempt_version="1")
END = "-o yaml as another --snapshot"
OBJECTS = [quota("q"), priority_class("high", note="x"), pod("a", {"example.com/rack": "r1"}), pod("b")]


def dump_of(*objects: Document, as_lines: bool = False) -> bytes:
    cluster = cluster_from_json([json.dumps(each).encode() for each in objects], "here")
    return b"".join(dump_pieces(cluster, HEADER, minimized, as_lines=as_lines))


@pytest.mark.parametrize("as_lines", [False, True], ids=["a list", "lines"])
def test_a_dump_of_our_own_says_what_it_lacks(load: Callable[..., Loaded], as_lines: bool) -> None:
    loaded = load(dump_of(*OBJECTS, as_lines=as_lines))
    assert [f"{each.kind}: {each.subject}: {each.field}: {each.message}" for each in loaded.assumptions] == [
        f"Unmodeled: {QUOTAS}: snapshot: a kpreempt dump keeps none, so plugins do not see any; to include "
        f"them, add the output of kubectl get elasticquota.{GROUP} -A {END}",
        f"Unmodeled: {CLASSES}: snapshot: a kpreempt dump keeps little of each, so plugins do not "
        f"see the rest; to include them, add the output of kubectl get priorityclasses.scheduling.k8s.io {END}",
        "Unmodeled: Pod: metadata.annotations: a kpreempt dump keeps hardly any, so plugins do not "
        f"see the rest; to include them, add the output of kubectl get pods -A {END}",
    ]
    assert load(dump_of(*OBJECTS), extra_fields=ExtraFields()).assumptions == []


@pytest.mark.parametrize("is_first", [False, True], ids=["after the dump", "before the dump"])
def test_what_kubectl_prints_next_to_a_dump_brings_what_it_lacks(load: Callable[..., Loaded], is_first: bool) -> None:
    files = [dump_of(*OBJECTS), OBJECTS]
    loaded = load(*(reversed(files) if is_first else files))
    assert loaded.assumptions == []
    assert loaded.cluster.documents == load(OBJECTS).cluster.documents
    assert loaded.cluster.pods == load(OBJECTS).cluster.pods


def test_pods_that_only_the_dump_has_still_lack_their_annotations(load: Callable[..., Loaded]) -> None:
    loaded = load(dump_of(*OBJECTS), [*OBJECTS[:3]])
    assert [each.subject for each in loaded.assumptions] == ["Pod"]


# Conditions of pods.

CONDITIONS = ExtraFields(pod_conditions=True)
SINCE = "2026-11-21T03:00:00Z"


def conditioned(name: str) -> Document:
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": SINCE} for kind in ("PodScheduled", "Ready")]
    return {**pod(name), "status": {"conditions": [*conditions, {"type": "example.com/warm", "status": "True"}]}}


def test_conditions_are_kept_as_they_are_where_they_are_wanted(load: Callable[..., Loaded]) -> None:
    (whole,) = load([conditioned("a")], extra_fields=CONDITIONS).cluster.pods
    since = datetime(2026, 11, 21, 3, tzinfo=UTC)
    assert [(each.type, each.last_transition_time) for each in whole.status.conditions] == [
        ("PodScheduled", since),
        ("Ready", since),
        ("example.com/warm", None),
    ]
    (plain,) = load([conditioned("a")]).cluster.pods
    assert [(each.type, each.last_transition_time) for each in plain.status.conditions] == [
        ("PodScheduled", None),
        ("Ready", None),
    ]


def test_a_dump_of_our_own_says_that_it_lacks_conditions(load: Callable[..., Loaded]) -> None:
    loaded = load(dump_of(conditioned("a")), extra_fields=CONDITIONS)
    assert [(each.subject, each.field) for each in loaded.assumptions] == [("Pod", "status.conditions")]
    assert loaded.assumptions[0].message.endswith(f"add the output of kubectl get pods -A {END}")


@pytest.mark.parametrize("is_first", [False, True], ids=["after the dump", "before the dump"])
def test_what_kubectl_prints_brings_the_conditions_that_a_dump_lacks(
    load: Callable[..., Loaded], is_first: bool
) -> None:
    files = [dump_of(conditioned("a")), [conditioned("a")]]
    loaded = load(*(reversed(files) if is_first else files), extra_fields=CONDITIONS)
    assert loaded.assumptions == []
    assert loaded.cluster.pods == load([conditioned("a")], extra_fields=CONDITIONS).cluster.pods


def test_a_dump_of_kubectls_lacks_nothing(load: Callable[..., Loaded]) -> None:
    assert load(OBJECTS).assumptions == []


def test_what_was_wanted_is_in_no_dump(load: Callable[..., Loaded]) -> None:
    cluster = load([*OBJECTS[1:], quota("q", password=SECRET)]).cluster
    text = b"".join(dump_pieces(cluster, HEADER, minimized, as_lines=False))
    assert SECRET.encode() not in text
    assert b"ElasticQuota" not in text
