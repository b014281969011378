"""Without extra fields the cluster is unchanged; extra fields only change documents and pod annotations."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import ExtraFields, ObjectKind
from kpreempt.model.pod import Pod, without_annotations
from kpreempt.snapshot.load import cluster_from_json

Document = dict[str, Any]

KINDS = {
    "v1": ("Pod", "Node", "Namespace", "Service", "Endpoints"),
    "scheduling.k8s.io/v1": ("PriorityClass",),
    "scheduling.volcano.sh/v1beta1": ("PodGroup",),
    "scheduling.x-k8s.io/v1alpha1": ("PodGroup", "ElasticQuota"),
    "apps/v1": ("Deployment",),
}
EACH = [(version, kind) for version, kinds in KINDS.items() for kind in kinds]
OBJECT_KINDS = [
    ObjectKind(kind, version.rpartition("/")[0], version.rpartition("/")[2], is_namespaced=False)
    for version, kind in EACH
]

annotations = st.dictionaries(
    st.sampled_from(["a", "example.com/rack", "scheduling.k8s.io/group-name", "volcano.sh/preemptable"]),
    st.sampled_from(["", "x", "true"]),
    max_size=3,
)


@st.composite
def objects(draw: st.DrawFn) -> list[Document]:
    """Objects of some kinds; several may have the same name, each with another version."""
    found = []
    for number in range(draw(st.integers(0, 12))):
        version, kind = draw(st.sampled_from(EACH))
        name = draw(st.sampled_from("abc"))
        metadata = {"name": name, "resourceVersion": str(draw(st.integers(0, 3)) * 100 + number)}
        if draw(st.booleans()):
            metadata["annotations"] = draw(annotations)
        found.append({"apiVersion": version, "kind": kind, "metadata": metadata})
        if kind == "Pod":
            condition = {"type": draw(st.sampled_from(["Ready", "Warm"])), "status": "True"}
            found[-1]["status"] = {"conditions": [{**condition, "lastTransitionTime": "2026-11-21T03:00:00Z"}]}
    return found


wanteds = st.builds(
    lambda kinds, annotated, conditioned: ExtraFields(tuple(kinds), annotated, conditioned),
    st.lists(st.sampled_from(OBJECT_KINDS), unique=True),
    st.booleans(),
    st.booleans(),
)


def unconditioned(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[]))


def read(documents: list[Document], wanted: ExtraFields | None = None) -> ClusterSnapshot:
    items = [json.dumps(each).encode() for each in documents]
    return cluster_from_json(items, "here") if wanted is None else cluster_from_json(items, "here", wanted)


@given(objects())
def test_wanting_nothing_changes_nothing(documents: list[Document]) -> None:
    assert read(documents, ExtraFields()) == read(documents)
    assert read(documents).documents == {}


@given(objects(), wanteds)
def test_wanting_something_changes_nothing_else(documents: list[Document], wanted: ExtraFields) -> None:
    plain, full = read(documents), read(documents, wanted)
    bare = [without_annotations(pod) for pod in full.pods]
    if wanted.pod_conditions:
        bare = [unconditioned(pod) for pod in bare]
        plain = msgspec.structs.replace(plain, pods=[unconditioned(pod) for pod in plain.pods])
    assert msgspec.structs.replace(full, pods=bare, documents={}) == plain
    assert list(full.documents) == [kind.key for kind in wanted.kinds]


@given(objects(), wanteds)
def test_the_latest_object_of_each_name_is_kept_unchanged(documents: list[Document], wanted: ExtraFields) -> None:
    full = read(documents, wanted)
    for kind in wanted.kinds:
        mine = [each for each in documents if each["apiVersion"].rpartition("/")[0] == kind.group]
        mine = [each for each in mine if each["kind"] == kind.kind]
        latest: dict[str, Document] = {}
        for each in mine:
            name = each["metadata"]["name"]
            if name not in latest or _version(each) > _version(latest[name]):
                latest[name] = each
        assert full.documents[kind.key] == list(latest.values())


def _version(document: Document) -> int:
    return int(document["metadata"]["resourceVersion"])
