"""The status that the disruption controller would give to a budget."""

from typing import Any

import msgspec
import pytest

from kpreempt.admission import fill_budget_statuses
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.workloads import Deployment, ReplicaSet, StatefulSet
from kpreempt.verdict import AssumptionKind


def read(record: type, document: dict[str, Any]) -> Any:
    return msgspec.convert(document, record)


def meta(name: str, owner: tuple[str, str] | None = None, **labels: str) -> dict[str, Any]:
    references = []
    if owner:
        group = "batch/v1" if owner[0] == "Job" else "apps/v1"
        references = [{"kind": owner[0], "name": owner[1], "apiVersion": group, "controller": True}]
    return {"name": name, "namespace": "shop", "labels": labels, "ownerReferences": references}


def pods(count: int, owner: tuple[str, str] | None = ("ReplicaSet", "web-1"), ready: int | None = None) -> list[Pod]:
    ready = count if ready is None else ready
    return [
        read(
            Pod,
            {
                "metadata": meta(f"web-{index}", owner, app="web"),
                "status": {"conditions": [{"type": "Ready", "status": "True" if index < ready else "False"}]},
            },
        )
        for index in range(count)
    ]


def budget(selector: Any = "web", **spec: Any) -> PodDisruptionBudget:
    selector = {"matchLabels": {"app": selector}} if isinstance(selector, str) else selector
    return read(PodDisruptionBudget, {"metadata": meta("web"), "spec": {"selector": selector, **spec}})


def workload(record: type, name: str, replicas: int | None, owner: tuple[str, str] | None = None) -> Any:
    spec = {} if replicas is None else {"replicas": replicas}
    return read(record, {"metadata": meta(name, owner), "spec": spec})


REPLICA_SET = [workload(ReplicaSet, "web-1", 4, ("Deployment", "web"))]
DEPLOYMENT = [workload(Deployment, "web", 10)]


@pytest.mark.parametrize(
    ("spec", "cluster", "expected"),
    [
        pytest.param({"minAvailable": 3}, {"pods": pods(5)}, (2, 5, 3, 5), id="a number of pods that must stay"),
        pytest.param({"minAvailable": 3}, {"pods": pods(5, ready=2)}, (0, 2, 3, 5), id="never less than none allowed"),
        pytest.param({"minAvailable": 0}, {"pods": []}, (0, 0, 0, 0), id="nothing is allowed without pods"),
        pytest.param({}, {"pods": pods(2)}, (0, 2, 0, 0), id="nothing is allowed without a rule"),
        pytest.param(
            {"maxUnavailable": 1},
            {"pods": pods(4), "replica_sets": REPLICA_SET, "deployments": DEPLOYMENT},
            (0, 4, 9, 10),
            id="a ReplicaSet counts as its Deployment",
        ),
        pytest.param(
            {"maxUnavailable": 1},
            {"pods": pods(4), "replica_sets": REPLICA_SET},
            (1, 4, 3, 4),
            id="a ReplicaSet whose Deployment is not there counts itself",
        ),
        pytest.param(
            {"maxUnavailable": "30%"},
            {"pods": pods(3, ("StatefulSet", "db")), "stateful_sets": [workload(StatefulSet, "db", 3)]},
            (1, 3, 2, 3),
            id="percentages of what may go are rounded up",
        ),
        pytest.param(
            {"minAvailable": "50%"},
            {"pods": pods(3, ("StatefulSet", "db")), "stateful_sets": [workload(StatefulSet, "db", 3)]},
            (1, 3, 2, 3),
            id="percentages of what must stay are rounded up",
        ),
        pytest.param(
            {"maxUnavailable": 1},
            {"pods": pods(1, ("StatefulSet", "db")), "stateful_sets": [workload(StatefulSet, "db", None)]},
            (1, 1, 0, 1),
            id="a workload without replicas wants one",
        ),
        pytest.param({"maxUnavailable": 1}, {"pods": pods(4)}, (1, 4, 3, 4), id="unknown owners count by their pods"),
        pytest.param({"maxUnavailable": 1}, {"pods": pods(4, None)}, (0, 4, 0, 0), id="pods without owner are none"),
        pytest.param({"maxUnavailable": 1}, {"pods": pods(4, ("Job", "j"))}, (0, 0, 0, 0), id="a Job has no scale"),
        pytest.param({"minAvailable": "half"}, {"pods": pods(4)}, (0, 0, 0, 0), id="what is no percentage is none"),
        pytest.param({"minAvailable": 1, "selector": None}, {"pods": pods(4)}, (0, 0, 1, 0), id="no selector, no pods"),
        pytest.param({"minAvailable": 1, "selector": {}}, {"pods": pods(4)}, (3, 4, 1, 4), id="empty selector, all"),
        pytest.param(
            {"minAvailable": 1, "selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            {"pods": pods(4)},
            (0, 0, 0, 0),
            id="a broken selector allows nothing",
        ),
    ],
)
def test_status(spec: dict[str, Any], cluster: dict[str, Any], expected: tuple[int, int, int, int]) -> None:
    filled, assumptions = fill_budget_statuses(ClusterSnapshot(pod_disruption_budgets=[budget(**spec)], **cluster))
    status = filled.pod_disruption_budgets[0].status
    assert status is not None
    assert (
        status.disruptions_allowed,
        status.current_healthy,
        status.desired_healthy,
        status.expected_pods,
    ) == expected
    assert [each.subject for each in assumptions] == ["PodDisruptionBudget shop/web"]


def test_what_was_computed_is_said() -> None:
    cluster = ClusterSnapshot(pod_disruption_budgets=[budget(maxUnavailable=1)], pods=pods(4, ready=3))
    message = fill_budget_statuses(cluster)[1][0].message
    assert "3 of 4 expected pods are healthy, 3 must stay healthy: 0 disruptions allowed" in message
    assert "ReplicaSet shop/web-1 not in the input: its size is the number of its pods" in message


def test_a_status_that_rests_on_a_guess_is_uncertain_and_one_that_is_computed_is_not() -> None:
    guessed = ClusterSnapshot(pod_disruption_budgets=[budget(maxUnavailable=1)], pods=pods(4))
    known = msgspec.structs.replace(guessed, replica_sets=REPLICA_SET, deployments=DEPLOYMENT)
    kinds = [fill_budget_statuses(cluster)[1][0].kind for cluster in (guessed, known)]
    assert kinds == [AssumptionKind.UNCERTAIN, AssumptionKind.INFORMATIONAL]


def test_pods_on_their_way_out_are_not_healthy() -> None:
    leaving = [
        msgspec.structs.replace(
            pod,
            metadata=msgspec.convert(
                {**meta(pod.metadata.name, app="web"), "deletionTimestamp": now}, type(pod.metadata)
            ),
        )
        for pod, now in zip(pods(2), ("2026-01-01T00:00:00Z", None), strict=True)
    ]
    cluster = ClusterSnapshot(pod_disruption_budgets=[budget(minAvailable=1)], pods=leaving)
    status = fill_budget_statuses(cluster)[0].pod_disruption_budgets[0].status
    assert status is not None
    assert (status.current_healthy, status.disruptions_allowed) == (1, 0)


def test_a_status_that_is_there_stays() -> None:
    stated = read(PodDisruptionBudget, {"metadata": meta("web"), "status": {"disruptionsAllowed": 7}})
    cluster = ClusterSnapshot(pod_disruption_budgets=[stated])
    assert fill_budget_statuses(cluster) == (cluster, [])
