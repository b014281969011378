"""The pod groups that Volcano's controller makes for pods that name none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.admission.volcano import admit_pod_group, quota_usage, with_pod_groups
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import AnnotatedMeta, OwnerReference
from kpreempt.model.pod import Container, Pod, PodAnnotations, PodSpec, ResourceList, ResourceRequirements
from kpreempt.model.quantity import quantity
from kpreempt.model.volcano import PREEMPTABLE, QUEUE_NAME, REVOCABLE_ZONE, PodGroup, PodGroupSpec
from kpreempt.model.workloads import Namespace
from tests.factories import make_pod

REPLICA_SET = OwnerReference(kind="ReplicaSet", name="web-5d", uid="rs-1", api_version="apps/v1", controller=True)


def pod(name: str, owner: OwnerReference | None = None, *, reported: PodAnnotations | None = None, **parts: Any) -> Pod:
    made = make_pod(name, cpu="1", **{"scheduler_name": "volcano", **parts})
    owners = [owner] if owner else []
    return msgspec.structs.replace(
        made, metadata=msgspec.structs.replace(made.metadata, owner_references=owners, annotations=reported)
    )


def grouped(*pods: Pod, **parts: Any) -> ClusterSnapshot:
    return with_pod_groups(ClusterSnapshot(pods=list(pods), **parts))


def groups_of(cluster: ClusterSnapshot) -> list[str]:
    """The group that each pod names."""
    return [each.metadata.annotations.group_name if each.metadata.annotations else "" for each in cluster.pods]


@pytest.mark.parametrize(
    ("pods", "named", "made"),
    [
        pytest.param([pod("a"), pod("b")], ["podgroup-uid-shop-a", "podgroup-uid-shop-b"], 2, id="a pod alone"),
        pytest.param(
            [pod("a", REPLICA_SET), pod("b", REPLICA_SET)],
            ["podgroup-rs-1"] * 2,
            1,
            id="pods of one owner share it",
        ),
        pytest.param(
            [pod("a", REPLICA_SET), pod("a", REPLICA_SET, namespace="other")],
            ["podgroup-rs-1"] * 2,
            2,
            id="but not across namespaces",
        ),
        pytest.param(
            [pod("a", msgspec.structs.replace(REPLICA_SET, controller=False))],
            ["podgroup-uid-shop-a"],
            1,
            id="an owner that does not manage it",
        ),
        pytest.param(
            [pod("a", msgspec.structs.replace(REPLICA_SET, uid=""))],
            ["podgroup-web-5d"],
            1,
            id="a controller that does not exist yet",
        ),
        pytest.param(
            [pod("a", reported=PodAnnotations(group_name="own"))], ["own"], 0, id="a pod that names its group"
        ),
        pytest.param([pod("a", scheduler_name="default-scheduler")], [""], 0, id="a pod of another scheduler"),
    ],
)
def test_which_pods_get_a_group(pods: list[Pod], named: list[str], made: int) -> None:
    cluster = grouped(*pods)
    assert groups_of(cluster) == named
    assert len(cluster.pod_groups) == made


def test_a_cluster_in_which_all_pods_have_groups_stays_the_same() -> None:
    cluster = ClusterSnapshot(pods=[pod("a", reported=PodAnnotations(group_name="own")), make_pod("b")])
    assert with_pod_groups(cluster) is cluster


def test_groups_that_are_there_stay_as_they_are() -> None:
    there = PodGroup(metadata=AnnotatedMeta(name="podgroup-rs-1", namespace="shop"), spec=PodGroupSpec(min_member=7))
    cluster = grouped(pod("a", REPLICA_SET), pod_groups=[there])
    assert cluster.pod_groups == [there]
    assert groups_of(cluster) == ["podgroup-rs-1"]


def test_what_a_group_takes_over_from_its_pod() -> None:
    reported = PodAnnotations(preemptable="false", revocable_zone="*", task_spec="x", queue_name="q")
    first = pod("a", reported=reported, labels={PREEMPTABLE: "true", "app": "x"}, priority_class_name="high")
    cluster = grouped(first)
    [group] = cluster.pod_groups
    assert group.metadata.annotations == {PREEMPTABLE: "false", REVOCABLE_ZONE: "*"}
    assert group.metadata.labels == {PREEMPTABLE: "true"}
    assert group.metadata.owner_references == [
        OwnerReference(kind="Pod", name="a", uid="uid-shop-a", api_version="v1", controller=True)
    ]
    spec = group.spec
    assert (spec.min_member, spec.min_task_member, spec.queue, spec.priority_class_name) == (1, {}, "q", "high")
    assert spec.min_resources == quota_usage(first.spec)
    assert group.status.phase == "Pending"
    assert cluster.pods[0].metadata.annotations == msgspec.structs.replace(reported, group_name="podgroup-uid-shop-a")


NAMESPACES = [
    Namespace(metadata=AnnotatedMeta(name="shop", annotations={QUEUE_NAME: "of-shop"})),
    Namespace(metadata=AnnotatedMeta(name="plain")),
]


@pytest.mark.parametrize(
    ("namespace", "queue", "expected"),
    [
        pytest.param("shop", "own", "own", id="its own"),
        pytest.param("shop", "", "of-shop", id="that of its namespace"),
        pytest.param("plain", "", "default", id="the default one, in a namespace that names none"),
        pytest.param("gone", "", "default", id="the default one, in a namespace that is not known"),
    ],
)
def test_in_which_queue_a_new_group_waits(namespace: str, queue: str, expected: str) -> None:
    cluster = ClusterSnapshot(namespaces=NAMESPACES)
    group = PodGroup(metadata=AnnotatedMeta(name="g", namespace=namespace), spec=PodGroupSpec(queue=queue))
    assert admit_pod_group(group, cluster).spec.queue == expected
    requested = pod("a", namespace=namespace, reported=PodAnnotations(queue_name=queue))
    assert grouped(requested, namespaces=NAMESPACES).pod_groups[0].spec.queue == expected


def amounts(**texts: str) -> ResourceList:
    return {name.replace("__", "/").replace("_", "."): quantity(text) for name, text in texts.items()}


def container(requests: ResourceList, limits: ResourceList | None = None) -> Container:
    return Container(resources=ResourceRequirements(requests=requests, limits=limits or {}))


@pytest.mark.parametrize(
    ("spec", "count", "expected"),
    [
        pytest.param(PodSpec(), 1, {"pods": "1", "count/pods": "1"}, id="nothing but being there"),
        pytest.param(
            PodSpec(containers=[container(amounts(cpu="500m", memory="1Gi"), amounts(cpu="1"))] * 2),
            1,
            {"cpu": "1", "requests.cpu": "1", "limits.cpu": "2", "memory": "2Gi", "requests.memory": "2Gi"},
            id="containers together",
        ),
        pytest.param(
            PodSpec(containers=[container(amounts(cpu="1"))], init_containers=[container(amounts(cpu="3"))] * 2),
            1,
            {"cpu": "3"},
            id="an init container alone",
        ),
        pytest.param(
            PodSpec(
                containers=[container(amounts(cpu="1"))],
                init_containers=[Container(resources=container(amounts(cpu="2")).resources, restart_policy="Always")],
            ),
            1,
            {"cpu": "2"},
            id="a sidecar as any other init container",
        ),
        pytest.param(
            PodSpec(containers=[container(amounts(cpu="1"))], overhead=amounts(cpu="250m", memory="64Mi")),
            1,
            {"cpu": "1250m", "memory": "64Mi", "limits.cpu": "250m", "limits.memory": "64Mi"},
            id="overhead, also as a limit",
        ),
        pytest.param(
            PodSpec(containers=[container(amounts(nvidia_com__gpu="2"), amounts(nvidia_com__gpu="2"))]),
            3,
            {"nvidia.com/gpu": "6", "requests.nvidia.com/gpu": "6", "limits.nvidia.com/gpu": None, "pods": "3"},
            id="extended resources under both names, three times",
        ),
        pytest.param(
            PodSpec(containers=[container({"hugepages-2Mi": quantity("4Mi"), "ephemeral-storage": quantity("1G")})]),
            2,
            {"hugepages-2Mi": "8Mi", "requests.hugepages-2Mi": "8Mi", "ephemeral-storage": "2G"},
            id="huge pages and local storage",
        ),
        pytest.param(
            PodSpec(containers=[container({"kubernetes.io/x": quantity("1"), "tape": quantity("1")})]),
            1,
            {"kubernetes.io/x": None, "tape": None, "requests.tape": None},
            id="not what is of Kubernetes' own domain",
        ),
    ],
)
def test_what_pods_take_of_a_quota(spec: PodSpec, count: int, expected: dict[str, str | None]) -> None:
    found = quota_usage(spec, count)
    assert {name: str(found[name]) if name in found else None for name in expected} == expected
