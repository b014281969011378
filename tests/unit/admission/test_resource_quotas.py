"""Which pods a quota is about, what it counts of them, and what it says to one too many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.admission.resource_quotas import QuotaCounts, counts_pods, covers, rejected_by_quotas, rejection, usage_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import ResourceQuota
from kpreempt.verdict import AssumptionKind

APP = {"name": "app", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}}
BARE = {"name": "bare"}


def pod(*containers: dict[str, Any], **spec: Any) -> Pod:
    document = {
        "metadata": {"name": "one", "namespace": "shop"},
        "spec": {"containers": list(containers or (APP,)), **spec},
    }
    return msgspec.convert(document, Pod, dec_hook=_decoded)


def _decoded(kind: type, value: Any) -> Any:
    return kind(value)


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> ResourceQuota:
    document = {
        "metadata": {"name": "q", "namespace": "shop"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used or {}},
    }
    return msgspec.convert(document, ResourceQuota, dec_hook=_decoded)


def said(found: ResourceQuota, asking: Pod) -> str:
    return rejection(found, found.status.used, asking, usage_of(asking))


@pytest.mark.parametrize(
    ("resource", "is_counted"),
    [
        ("pods", True),
        ("count/pods", True),
        ("cpu", True),
        ("limits.ephemeral-storage", True),
        ("hugepages-2Mi", True),
        ("requests.hugepages-2Mi", True),
        ("requests.nvidia.com/gpu", True),
        ("limits.nvidia.com/gpu", False),
        ("nvidia.com/gpu", False),
        ("requests.storage", False),
        ("services", False),
        ("count/deployments.apps", False),
        ("gold.storageclass.storage.k8s.io/requests.storage", False),
    ],
)
def test_what_is_about_pods(resource: str, is_counted: bool) -> None:
    assert counts_pods(resource) is is_counted


def test_a_pod_takes_what_its_containers_ask_for() -> None:
    reported = {name: str(amount) for name, amount in usage_of(pod()).items()}
    assert reported == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "500m",
        "requests.cpu": "500m",
        "memory": "1Gi",
        "requests.memory": "1Gi",
        "limits.memory": "2Gi",
    }


def test_the_overhead_counts_where_there_is_a_limit_at_all() -> None:
    reported = usage_of(pod(overhead={"cpu": "100m", "memory": "1Gi"}))
    assert (str(reported["cpu"]), str(reported["limits.memory"]), "limits.cpu" in reported) == ("600m", "3Gi", False)


def test_what_the_whole_pod_asks_for_counts_instead_of_its_containers() -> None:
    reported = usage_of(pod(APP, BARE, resources={"requests": {"cpu": "3"}}))
    assert (str(reported["cpu"]), str(reported["memory"])) == ("3", "1Gi")


@pytest.mark.parametrize(
    ("spec", "fields", "is_covered"),
    [
        pytest.param({}, {}, True, id="no scope is about all"),
        pytest.param({"scopes": ["Terminating"]}, {}, False, id="one without a deadline does not terminate"),
        pytest.param({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 0}, True, id="one with a deadline does"),
        pytest.param({"scopes": ["NotTerminating"]}, {"activeDeadlineSeconds": 9}, False, id="and is not among others"),
        pytest.param({"scopes": ["BestEffort"]}, {}, False, id="one that asks for something is no best effort"),
        pytest.param({"scopes": ["BestEffort"]}, {"containers": [BARE]}, True, id="one that asks for nothing is"),
        pytest.param({"scopes": ["NotBestEffort", "NotTerminating"]}, {}, True, id="all scopes have to hold"),
        pytest.param({"scopes": ["PriorityClass"]}, {"priorityClassName": "high"}, True, id="any class"),
        pytest.param({"scopes": ["PriorityClass"]}, {}, False, id="no class"),
        pytest.param({"scopes": ["CrossNamespacePodAffinity"]}, {}, False, id="no affinity"),
    ],
)
def test_scopes(spec: dict[str, Any], fields: dict[str, Any], is_covered: bool) -> None:
    containers = fields.pop("containers", [APP])
    assert covers(quota({"pods": "1"}, **spec), pod(*containers, **fields)) is is_covered


@pytest.mark.parametrize(
    ("operator", "values", "name", "is_covered"),
    [
        ("In", ["high"], "high", True),
        ("In", ["high"], "low", False),
        ("In", ["high"], "", False),
        ("NotIn", ["high"], "low", True),
        ("NotIn", ["high"], "", True),
        ("DoesNotExist", [], "", True),
        ("DoesNotExist", [], "high", False),
    ],
)
def test_scope_selectors(operator: str, values: list[str], name: str, is_covered: bool) -> None:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    found = quota({"pods": "1"}, scopeSelector={"matchExpressions": [expression]})
    assert covers(found, pod(priorityClassName=name)) is is_covered


def test_affinity_that_names_namespaces_reaches_beyond_its_own() -> None:
    term = {"topologyKey": "zone", "namespaces": ["other"]}
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": term}]}}
    assert covers(quota({"pods": "1"}, scopes=["CrossNamespacePodAffinity"]), pod(affinity=affinity))


@pytest.mark.parametrize(
    ("found", "containers", "message"),
    [
        pytest.param(quota({"pods": "2"}, {"pods": "1"}), [APP], "", id="room for one more"),
        pytest.param(
            quota({"pods": "2", "requests.cpu": "1", "cpu": "2"}, {"pods": "2", "requests.cpu": "600m", "cpu": "0"}),
            [APP],
            "exceeded quota: q, requested: pods=1,requests.cpu=500m, used: pods=2,requests.cpu=600m, "
            "limited: pods=2,requests.cpu=1",
            id="what is too much, by name",
        ),
        pytest.param(
            quota({"limits.cpu": "2", "requests.memory": "1Gi"}, {}),
            [BARE, {"name": "a"}],
            "failed quota: q: must specify limits.cpu for: a,bare; requests.memory for: a,bare",
            id="what containers have to say",
        ),
        pytest.param(quota({"ephemeral-storage": "1"}, {}), [BARE], "", id="storage need not be said"),
        pytest.param(
            quota({"pods": "2"}, {}), [APP], "status unknown for quota: q, resources: pods", id="a use nobody knows"
        ),
        pytest.param(quota({"services": "0"}, {"services": "0"}), [APP], "", id="what is not about pods"),
    ],
)
def test_what_it_says(found: ResourceQuota, containers: list[dict[str, Any]], message: str) -> None:
    assert said(found, pod(*containers)) == message


def test_what_is_used_is_counted_of_the_pods_that_it_is_about() -> None:
    ended = msgspec.structs.replace(pod(), status=msgspec.structs.replace(pod().status, phase="Succeeded"))
    used = QuotaCounts([pod(), pod(), ended]).used_of(
        quota({"pods": "9", "count/pods": "9", "cpu": "9", "services": "1"})
    )
    assert {name: str(amount) for name, amount in used.items()} == {"pods": "2", "count/pods": "3", "cpu": "1"}


def test_a_new_pod_that_a_quota_refuses_is_reported_with_the_numbers() -> None:
    full, roomy = quota({"pods": "3"}, {"pods": "3"}), quota({"pods": "3"}, {"pods": "2"})
    elsewhere = msgspec.structs.replace(full, metadata=ObjectMeta(name="q", namespace="other"))
    assert rejected_by_quotas(pod(), ClusterSnapshot(resource_quotas=[roomy, elsewhere])) == []
    (reported,) = rejected_by_quotas(pod(), ClusterSnapshot(resource_quotas=[full, elsewhere]))
    assert (reported.subject, reported.kind) == ("ResourceQuota shop/q", AssumptionKind.UNCERTAIN)
    assert reported.message.endswith("exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3")


@given(
    st.lists(
        st.builds(
            pod,
            priorityClassName=st.sampled_from(["", "high", "low"]),
            activeDeadlineSeconds=st.sampled_from([None, 5]),
            containers=st.sampled_from([[APP], [BARE], [APP, BARE]]),
        ),
        max_size=6,
    ),
    st.lists(
        st.sampled_from(
            [
                {"operator": "Exists", "scopeName": "Terminating"},
                {"operator": "Exists", "scopeName": "NotBestEffort"},
                {"operator": "NotIn", "scopeName": "PriorityClass", "values": ["high"]},
                {"operator": "Exists", "scopeName": "CrossNamespacePodAffinity"},
            ]
        ),
        max_size=2,
    ),
)
def test_pods_that_are_counted_together_come_to_what_each_comes_to(
    pods: list[Pod], scopes: list[dict[str, Any]]
) -> None:
    requested = quota({"pods": "9", "cpu": "9"}, scopeSelector={"matchExpressions": scopes})
    covered = [each for each in pods if covers(requested, each)]
    cpu = sum(usage_of(each)["cpu"].nano for each in covered if "cpu" in usage_of(each))
    used = QuotaCounts(pods).used_of(requested)
    assert (used["pods"].nano, used["cpu"].nano) == (len(covered) * 10**9, cpu)


def test_disruptions_allowed_in_a_status_count_for_no_pod() -> None:
    class Unread(list[Pod]):
        def __iter__(self) -> Iterator[Pod]:
            raise AssertionError

    used = QuotaCounts(Unread()).used_of(quota({"pods": "9", "services": "1"}, {"pods": "3"}))
    assert {name: str(amount) for name, amount in used.items()} == {"pods": "3"}
