"""Objects of custom kinds, and annotations of pods, from a live cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kpreempt.model.extra_fields import ExtraFields, ObjectKind
from kpreempt.model.pod import annotations_of
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import connect
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.snapshot.live.lists import LiveSnapshot, read_cluster
from kpreempt.verdict import AssumptionKind
from tests.fake_api import Answer, Answering, FakeApi, FakeCluster, ReceivedRequest, good, refused, split_namespace

GROUP = "scheduling.x-k8s.io"
QUOTA = ObjectKind("ElasticQuota", GROUP, "v1alpha1")
QUOTAS = f"/apis/{GROUP}/v1alpha1/elasticquotas"
PLUGINS = "their effect on plugins is unknown"


def read(
    answering: Answering, *kinds: ObjectKind, skip_bad_objects: bool = False, **needs: Any
) -> tuple[LiveSnapshot, list[ReceivedRequest]]:
    with FakeApi(answering) as fake:
        api = Api(connect(ConnectionFlags(server=fake.url), {}), sleep=lambda _: None)
        try:
            taken_at = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
            extra_fields = Needs(extra_fields=ExtraFields(kinds, pod_annotations=True), **needs)
            return read_cluster(
                api, taken_at=taken_at, skip_bad_objects=skip_bad_objects, needs=extra_fields
            ), fake.requested
        finally:
            api.close()


def item(name: str, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop", "resourceVersion": "5"}, **parts}


def lists(
    kind: str, path: str, api_version: str, *names: str, page: int = 2
) -> Callable[[ReceivedRequest], Answer | None]:
    """A list of a custom kind in pages."""

    def special(requested: ReceivedRequest) -> Answer | None:
        if requested.path != path:
            return None
        start = int(requested.query.get("continue", "0"))
        metadata: dict[str, Any] = {"resourceVersion": "100"}
        if start + page < len(names):
            metadata["continue"] = str(start + page)
        items = [item(name) for name in names[start : start + page]]
        return good({"kind": f"{kind}List", "apiVersion": api_version, "metadata": metadata, "items": items})

    return special


def reported(reading: LiveSnapshot) -> list[str]:
    return [f"{each.kind}: {each.subject}: {each.field}: {each.message}" for each in reading.assumptions]


def names(reading: LiveSnapshot, key: str) -> list[str]:
    return [each["metadata"]["name"] for each in reading.cluster.documents[key]]


def test_a_custom_kind_is_listed_in_pages_at_the_version_of_all_else() -> None:
    special = lists("ElasticQuota", QUOTAS, f"{GROUP}/v1alpha1", "a", "b", "c")
    reading, requested = read(FakeCluster({}, special=special), QUOTA)
    assert names(reading, QUOTA.key) == ["a", "b", "c"]
    assert reading.cluster.documents[QUOTA.key][0] == {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "ElasticQuota",
        **item("a"),
    }
    assert [each.query for each in requested if each.path == QUOTAS] == [
        {"limit": "500", "resourceVersion": "100", "resourceVersionMatch": "Exact"},
        {"limit": "500", "continue": "2"},
    ]
    assert reading.assumptions == []


def test_what_is_not_wanted_is_not_requested() -> None:
    reading, requested = read(FakeCluster({}))
    assert reading.cluster.documents == {}
    assert not [each for each in requested if "x-k8s" in each.path]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(404, id="a list that is not served"),
        pytest.param(403, id="one that would be refused, of a group that is not served"),
    ],
)
def test_of_a_kind_that_is_not_installed_there_are_none(status: int) -> None:
    reading, _ = read(
        FakeCluster({}, special=lambda requested: refused(status, "no") if requested.path == QUOTAS else None), QUOTA
    )
    assert (reading.cluster.documents, reading.assumptions) == ({QUOTA.key: []}, [])


def test_a_custom_kind_that_may_not_be_listed_is_an_assumption() -> None:
    answers = {QUOTAS: refused(403, "no"), f"/apis/{GROUP}/v1alpha1": good({"kind": "APIResourceList"})}
    reading, _ = read(FakeCluster({}, special=lambda requested: answers.get(split_namespace(requested.path)[0])), QUOTA)
    missing = f"missing permission: list {QUOTA.resource}.{GROUP} (cluster-wide)"
    assert reported(reading) == [f"Unreadable: {QUOTA.key}: list: cannot be listed (403): {PLUGINS}; {missing}"]


def test_a_custom_kind_without_a_version_is_an_assumption() -> None:
    reading, requested = read(FakeCluster({}), ObjectKind("ElasticQuota", GROUP))
    assert reported(reading) == [
        f"Unreadable: {QUOTA.key}: list: the plugin that reads them states no version, so they are not listed: "
        f"{PLUGINS}"
    ]
    assert not [each for each in requested if GROUP in each.path]


def test_two_kinds_of_one_name_do_not_push_each_other_out() -> None:
    """Whichever list comes last: each that begins forgets what was there of its kind."""
    path = f"/apis/{GROUP}/v1alpha1/podgroups"
    special = lists("PodGroup", path, f"{GROUP}/v1alpha1", "a", "b", "c")
    volcanos = [item("v1", spec={}), item("v2", spec={})]
    cluster = FakeCluster({"PodGroup": volcanos}, special=special, page=1)
    kinds = (ObjectKind("PodGroup", GROUP, "v1alpha1"), ObjectKind("PodGroup", "scheduling.volcano.sh"))
    reading, requested = read(cluster, *kinds)
    assert names(reading, kinds[0].key) == ["a", "b", "c"]
    assert names(reading, kinds[1].key) == ["v1", "v2"]
    assert [each.metadata.name for each in reading.cluster.pod_groups] == ["v1", "v2"]
    assert reading.assumptions == []
    assert sum(each.path.endswith("/podgroups") for each in requested) == 4


def test_a_list_that_begins_again_is_kept_once() -> None:
    served = lists("ElasticQuota", QUOTAS, f"{GROUP}/v1alpha1", "a", "b", "c")
    left = [1]

    def special(requested: ReceivedRequest) -> Answer | None:
        if requested.path == QUOTAS and "continue" in requested.query and left[0]:
            left[0] = 0
            return refused(410, "too old")
        return served(requested)

    reading, _ = read(FakeCluster({}, special=special), QUOTA)
    assert names(reading, QUOTA.key) == ["a", "b", "c"]


@pytest.mark.parametrize("compare_kinds", [(), ("CronJob",)])
def test_cron_jobs_are_read_once_for_all_readers(compare_kinds: tuple[str, ...]) -> None:
    extra_fields = ObjectKind("CronJob", "batch")
    cluster = FakeCluster({"CronJob": [item("sum", spec={"schedule": "@daily"})]})
    reading, requested = read(
        cluster, extra_fields, compare_kinds=compare_kinds, keep_document=lambda kind, _: kind == "CronJob"
    )
    assert names(reading, extra_fields.key) == ["sum"]
    assert len(reading.documents) == 1
    assert sum(each.path == "/apis/batch/v1/cronjobs" for each in requested) == 1


def test_kinds_that_are_read_anyway_are_read_once_and_kept_whole() -> None:
    extra_fields = ObjectKind("PriorityClass", "scheduling.k8s.io")
    high = {"metadata": {"name": "high", "annotations": {"note": "x"}}, "value": 10}
    reading, requested = read(FakeCluster({"PriorityClass": [high]}), extra_fields)
    assert reading.cluster.documents[extra_fields.key] == [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **high}
    ]
    assert sum(each.path.endswith("/priorityclasses") for each in requested) == 1


def test_pods_have_all_their_annotations() -> None:
    pod = item("a", spec={"containers": []})
    pod["metadata"]["annotations"] = {"example.com/rack": "r1"}
    reading, _ = read(FakeCluster({"Pod": [pod]}))
    assert annotations_of(reading.cluster.pods[0]) == {"example.com/rack": "r1"}


def test_a_bad_custom_object_is_set_aside_like_any_other() -> None:
    def special(requested: ReceivedRequest) -> Answer | None:
        bad = {"metadata": {"name": "bad", "namespace": "shop", "annotations": {"a": 1}}}
        listed = {"kind": "ElasticQuotaList", "metadata": {"resourceVersion": "100"}, "items": [bad, item("good")]}
        return good(listed) if requested.path == QUOTAS else None

    reading, _ = read(FakeCluster({}, special=special), QUOTA, skip_bad_objects=True)
    assert names(reading, QUOTA.key) == ["good"]
    assert [f"{each.object_name}: {each.path}: {each.problem}" for each in reading.skipped_objects] == [
        "ElasticQuota shop/bad: metadata.annotations.a: expected a string, got 1"
    ]
    assert AssumptionKind.UNREADABLE not in [each.kind for each in reading.assumptions]
