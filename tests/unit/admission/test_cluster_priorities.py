"""The priorities of pods in a cluster that no API server has admitted."""

from typing import Any

import msgspec
import pytest

from kpreempt.admission import complete_cluster, fill_priorities
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PriorityClass
from kpreempt.verdict import AssumptionKind

CLASSES = [
    msgspec.convert({"metadata": {"name": "high"}, "value": 1000}, PriorityClass),
    msgspec.convert({"metadata": {"name": "quiet"}, "value": 50, "preemptionPolicy": "Never"}, PriorityClass),
]
DEFAULT = msgspec.convert({"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}, PriorityClass)
ZERO = msgspec.convert({"metadata": {"name": "zero"}, "value": 0, "globalDefault": True}, PriorityClass)
TOLD, UNCERTAIN = AssumptionKind.INFORMATIONAL, AssumptionKind.UNCERTAIN


def pod(name: str = "a", phase: str = "Running", **spec: Any) -> Pod:
    document = {"metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": {"phase": phase}}
    return msgspec.convert(document, Pod)


@pytest.mark.parametrize(
    ("spec", "default", "is_created", "expected", "kinds"),
    [
        pytest.param(
            {"priorityClassName": "high"}, None, False, (1000, "PreemptLowerPriority"), [TOLD], id="its class"
        ),
        pytest.param(
            {"priorityClassName": "high"}, DEFAULT, True, (1000, "PreemptLowerPriority"), [TOLD], id="created"
        ),
        pytest.param({"priorityClassName": "quiet"}, None, False, (50, "Never"), [TOLD], id="and the class's policy"),
        pytest.param(
            {"priorityClassName": "quiet", "priority": 3}, None, False, (3, "Never"), [TOLD], id="the policy alone"
        ),
        pytest.param(
            {"priorityClassName": "quiet", "priority": 50, "preemptionPolicy": "PreemptLowerPriority"},
            None,
            False,
            (50, "PreemptLowerPriority"),
            [],
            id="nothing where both are stated",
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 5}, None, False, (5, None), [], id="what it states stays"
        ),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            None,
            False,
            (2_000_001_000, "PreemptLowerPriority"),
            [TOLD],
            id="a class that every cluster has",
        ),
        pytest.param({"priorityClassName": "gone"}, None, False, (None, None), [UNCERTAIN], id="an unknown class"),
        pytest.param({"priorityClassName": "gone"}, DEFAULT, True, (None, None), [UNCERTAIN], id="not the default's"),
        pytest.param({}, None, False, (None, None), [], id="no class, and no default"),
        pytest.param({}, DEFAULT, True, (7, "PreemptLowerPriority"), [TOLD], id="the default, for what comes now"),
        pytest.param({}, DEFAULT, False, (None, None), [UNCERTAIN], id="a default that may be younger than the pod"),
        pytest.param({}, ZERO, False, (None, None), [], id="a default that gives what it has anyway"),
    ],
)
def test_a_pod_gets_the_priority_of(
    spec: dict[str, Any],
    default: PriorityClass | None,
    is_created: bool,
    expected: tuple[int | None, str | None],
    kinds: list[AssumptionKind],
) -> None:
    classes = [*CLASSES, *([default] if default else [])]
    cluster = ClusterSnapshot(pods=[pod(**spec)], priority_classes=classes)
    filled, assumptions = fill_priorities(cluster, ["shop/a"] if is_created else [])
    got = filled.pods[0].spec
    assert (got.priority, got.preemption_policy) == expected
    assert [each.kind for each in assumptions] == kinds
    assert fill_priorities(filled)[0] is filled


def test_pods_of_a_class_are_reported_together_and_finished_ones_not_at_all() -> None:
    gone = [pod(name, priorityClassName="gone") for name in "abc"]
    done = [pod("d", "Succeeded", priorityClassName="gone"), pod("e", "Failed", priorityClassName="high")]
    cluster = ClusterSnapshot(pods=[*gone, *done], priority_classes=CLASSES)
    filled, [assumption] = fill_priorities(cluster)
    assert filled is cluster
    assert (assumption.subject, assumption.field) == ("PriorityClass gone", "value")
    assert assumption.message == (
        "not in the input; pod shop/a (and 2 more) names it without a priority: priority assumed to be 0"
    )


def test_a_cluster_is_completed_once() -> None:
    containers = [{"name": "c", "ports": [{"containerPort": 80}]}]
    old = pod(priorityClassName="high", hostNetwork=True, containers=containers)
    cluster, assumptions = complete_cluster(ClusterSnapshot(pods=[old], priority_classes=CLASSES))
    spec = cluster.pods[0].spec
    assert (spec.priority, spec.containers[0].ports[0].host_port, spec.grace_seconds) == (1000, 80, 30)
    assert [each.message for each in assumptions] == ["pod shop/a names it without a priority; its value is 1000"]
    assert complete_cluster(cluster) == (cluster, [])
    assert complete_cluster(cluster)[0] is cluster
