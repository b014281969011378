"""The status of a budget: evictions that were granted, failures, and amounts that cannot be read."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.controllers.actions import SyncError, scaled_value
from kpreempt.controllers.disruption import Candidates, Scale, Scales, failed_status, sync_budget
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import OwnerReference
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def pod(name: str, ready: bool = True, owner: str = "web", kind: str = "StatefulSet", **metadata: Any) -> Pod:
    reference = {"kind": kind, "name": owner, "apiVersion": "apps/v1", "controller": True}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "shop", "ownerReferences": [reference], **metadata},
            "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
        },
        Pod,
    )


def budget(status: dict[str, Any] | None = None, **spec: Any) -> PodDisruptionBudget:
    document = {"metadata": {"namespace": "shop", "generation": 7}, "spec": {"selector": {}, **spec}, "status": status}
    return msgspec.convert(document, PodDisruptionBudget)


def sizes(**replicas: int) -> Any:
    def scale_of(namespace: str, owner: OwnerReference) -> Scale:
        return Scale(namespace, owner.kind, owner.name, replicas[owner.name])

    return scale_of


def granted(seconds: int) -> dict[str, Any]:
    return {"disruptedPods": {"a": (NOW - timedelta(seconds=seconds)).isoformat()}}


@pytest.mark.parametrize(
    ("seconds", "pods", "healthy", "on_the_list"),
    [
        pytest.param(0, [pod("a"), pod("b")], 1, True, id="a pod whose eviction was granted counts as gone"),
        pytest.param(119, [pod("a"), pod("b")], 1, True, id="for two minutes"),
        pytest.param(120, [pod("a"), pod("b")], 2, True, id="at their very end it is healthy, and still on the list"),
        pytest.param(121, [pod("a"), pod("b")], 2, False, id="then it is off the list"),
        pytest.param(5, [pod("b")], 1, False, id="once it is gone it is off the list"),
        pytest.param(
            5,
            [pod("a", deletionTimestamp=NOW), pod("b")],
            1,
            False,
            id="once it leaves it is off the list, and not healthy",
        ),
        pytest.param(-60, [pod("a"), pod("b")], 1, True, id="a clock that is behind is taken"),
    ],
)
def test_evictions_that_were_granted(seconds: int, pods: list[Pod], healthy: int, on_the_list: bool) -> None:
    before = budget(granted(seconds), minAvailable=1)
    status = sync_budget(before, Candidates(pods).of(before), sizes(), NOW).status
    assert (status.current_healthy, status.disruptions_allowed) == (healthy, healthy - 1)
    assert before.status is not None
    assert status.disrupted_pods == (before.status.disrupted_pods if on_the_list else {})
    assert status.observed_generation == 7


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"maxUnavailable": "34%"}, (0, 2, 3, 5), id="what may be missing is rounded up"),
        pytest.param({"maxUnavailable": 9}, (2, 2, 0, 5), id="more than all may be missing"),
        pytest.param({"minAvailable": "50%"}, (0, 2, 3, 5), id="what must stay is rounded up"),
        pytest.param({"minAvailable": "0%"}, (2, 2, 0, 5), id="nothing must stay"),
        pytest.param({"minAvailable": 1}, (1, 2, 1, 3), id="a number counts pods, not owners"),
        pytest.param({"minAvailable": 1, "maxUnavailable": 0}, (0, 2, 5, 5), id="what may be missing comes first"),
        pytest.param({}, (0, 2, 0, 0), id="without a rule nothing may be disrupted"),
    ],
)
def test_status(spec: dict[str, Any], expected: tuple[int, int, int, int]) -> None:
    """Two workloads of 3 and 2 pods, of which there are three, and two of them ready."""
    pods = [pod("a"), pod("b", ready=False), pod("c", owner="db")]
    before = budget(**spec)
    status = sync_budget(before, Candidates(pods).of(before), sizes(web=3, db=2), NOW).status
    found = (status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods)
    assert found == expected


def test_the_workloads_that_were_counted_are_reported() -> None:
    pods = [pod("a"), pod("b"), pod("c", owner="db")]
    scales = Scales(ClusterSnapshot(pods=pods))
    before = budget(maxUnavailable=1)
    sync = sync_budget(before, Candidates(pods).of(before), scales.scale_of, None)
    assert sync.scales == [
        Scale("shop", "StatefulSet", "web", 2, is_guessed=True),
        Scale("shop", "StatefulSet", "db", 1, is_guessed=True),
    ]


@pytest.mark.parametrize(
    ("before", "pods", "message"),
    [
        pytest.param(
            budget(maxUnavailable=1), [pod("a", kind="DaemonSet")], "pod shop/a belongs to DaemonSet web", id="no scale"
        ),
        pytest.param(budget(minAvailable="half"), [pod("a")], '"half" is not a percentage', id="no percentage"),
        pytest.param(budget(minAvailable=""), [pod("a")], '"" is not a percentage', id="an empty text"),
        pytest.param(
            budget(minAvailable="0" * 5000 + "%"), [pod("a")], "is not a percentage", id="more digits than can be read"
        ),
        pytest.param(
            budget({"disruptedPods": {"a": "soon"}}, minAvailable=1),
            [pod("a")],
            "status.disruptedPods of pod shop/a is invalid",
            id="no time",
        ),
        pytest.param(
            budget({"disruptedPods": {"a": "2026-11-21T12:00:00"}}, minAvailable=1),
            [pod("a")],
            "status.disruptedPods of pod shop/a is invalid",
            id="a time that could be anywhere",
        ),
        pytest.param(
            budget(selector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
            [],
            "selector is invalid",
            id="selector",
        ),
    ],
)
def test_failures(before: PodDisruptionBudget, pods: list[Pod], message: str) -> None:
    with pytest.raises(SyncError, match=message):
        sync_budget(before, Candidates(pods).of(before), sizes(web=3), NOW)


def test_after_a_failure_nothing_may_be_disrupted_and_the_rest_stays() -> None:
    before = budget({"disruptionsAllowed": 3, "currentHealthy": 4, "desiredHealthy": 1})
    assert before.status is not None
    after = failed_status(before)
    assert (after.disruptions_allowed, after.current_healthy, after.desired_healthy) == (0, 4, 1)
    assert failed_status(budget()).disruptions_allowed == 0


@pytest.mark.parametrize(
    ("amount", "total", "up", "down"),
    [
        pytest.param(7, 3, 7, 7, id="a number"),
        pytest.param("50%", 4, 2, 2, id="a percentage that comes out even"),
        pytest.param("34%", 5, 2, 1, id="one that does not"),
        pytest.param("1%", 1, 1, 0, id="a small one of one"),
        pytest.param("0%", 9, 0, 0, id="none"),
        pytest.param("200%", 3, 6, 6, id="more than all"),
        pytest.param("+25%", 4, 1, 1, id="with a sign"),
        pytest.param("9223372036854775807%", 100, 2**63 - 1, 2**63 - 1, id="the largest that upstream reads"),
    ],
)
def test_scaled_value(amount: int | str, total: int, up: int, down: int) -> None:
    assert scaled_value(amount, total, round_up=True) == up
    assert scaled_value(amount, total, round_up=False) == down
