"""How many pods a ReplicaSet makes or deletes, and which of them go first."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kpreempt.controllers.actions import Action, ControlledPod, CreatePods, DeletePod, deletion_cost
from kpreempt.controllers.deployment import (
    ReplicaCounts,
    count_replicas,
    in_deletion_order,
    in_ranked_deletion_order,
    reconcile_replica_set,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def ago(**amount: float) -> datetime:
    return NOW - timedelta(**amount)


def pod(name: str = "a", **fields: Any) -> ControlledPod:
    return ControlledPod(name, **{"uid": name, "phase": "Running", "node_name": "n1", **fields})


def ready(name: str = "a", **fields: Any) -> ControlledPod:
    return pod(name, **{"is_ready": True, "ready_since": ago(hours=3), "created": ago(hours=3), **fields})


UNASSIGNED = {"phase": "Pending", "node_name": ""}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(pod(**UNASSIGNED), pod(phase="Pending"), id="a pod without a node before one with"),
        pytest.param(pod(phase="Pending"), pod(phase="Unknown"), id="a pending one before one that is not heard of"),
        pytest.param(pod(phase="Unknown"), pod(), id="one that is not heard of before a running one"),
        pytest.param(pod(), ready(), id="one that is not ready before a ready one"),
        pytest.param(
            ready(deletion_cost=10, created=ago(days=30)), ready(deletion_cost=100), id="the cheaper to delete first"
        ),
        pytest.param(pod(deletion_cost=100), ready(deletion_cost=10), id="readiness counts for more than the cost"),
        pytest.param(ready(ready_since=None), ready(), id="one that does not say since when it is ready first"),
        pytest.param(ready(ready_since=ago(hours=1)), ready(ready_since=ago(days=30)), id="the later ready first"),
        pytest.param(ready(restarts=9001), ready(), id="the one that restarted more often first"),
        pytest.param(
            ready(restarts=9001, sidecar_restarts=1), ready(restarts=9001), id="restarts of sidecars tell equals apart"
        ),
        pytest.param(ready(created=ago(hours=1)), ready(created=ago(days=30)), id="the younger first"),
        pytest.param(ready(created=None), ready(), id="one without a creation time first"),
    ],
)
def test_which_of_two_goes_first(first: ControlledPod, then: ControlledPod) -> None:
    assert in_ranked_deletion_order([then, first], [], NOW)[0] == first
    assert in_ranked_deletion_order([first, then], [], NOW)[0] == first
    if first.deletion_cost == then.deletion_cost:
        assert in_deletion_order([then, first])[0] == first
        assert in_deletion_order([first, then])[0] == first


def test_the_pod_on_the_more_crowded_node_goes_first() -> None:
    old = ready("old", ready_since=ago(days=30))
    young = ready("young", node_name="n2")
    related = [old, young, ready("sibling"), pod("leaving", node_name="n2", is_terminating=True)]
    assert in_ranked_deletion_order([young, old], related, NOW) == [old, young]
    assert in_ranked_deletion_order([old, young], [], NOW) == [young, old]


def test_ages_of_one_power_of_two_are_distinguished_by_uid() -> None:
    five, eight = ready("z", ready_since=ago(hours=5)), ready("b", ready_since=ago(hours=8))
    assert in_ranked_deletion_order([five, eight], [], NOW) == [eight, five]
    assert in_deletion_order([eight, five]) == [five, eight]


def test_what_no_rule_tells_apart_stays_in_order() -> None:
    pods = [pod(name, uid="") for name in "cab"]
    assert in_ranked_deletion_order(pods, pods, NOW) == pods
    assert in_deletion_order(pods) == pods


def test_a_clock_that_is_behind_is_taken() -> None:
    future, past = ready("a", ready_since=NOW + timedelta(hours=1)), ready("b")
    assert in_ranked_deletion_order([past, future], [], NOW) == [future, past]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        pytest.param("100", 100, id="a number"),
        pytest.param("-100", -100, id="a negative number"),
        pytest.param("0", 0, id="nought"),
        pytest.param("+10", 0, id="a plus is no number"),
        pytest.param("008", 0, id="leading zeros are no number"),
        pytest.param("1.5", 0, id="a fraction is no number"),
        pytest.param("2147483648", 0, id="too large for 32 bits"),
        pytest.param("-2147483648", -(2**31), id="the least of 32 bits"),
        pytest.param("9" * 100_000, 0, id="far too long"),
        pytest.param("-", 0, id="a sign alone"),
        pytest.param("", 0, id="nothing"),
    ],
)
def test_deletion_cost(text: str, cost: int) -> None:
    assert deletion_cost(text) == cost


def reconciled(replicas: int, *pods: ControlledPod) -> list[Action]:
    return reconcile_replica_set(replicas, pods, pods, NOW)


def gone(*names: str) -> list[DeletePod]:
    return [DeletePod(name, "scale-down") for name in names]


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        pytest.param(reconciled(2, ready("a"), ready("b")), [], id="as many as there should be"),
        pytest.param(reconciled(3, ready("a")), [CreatePods(count=2)], id="too few"),
        pytest.param(reconciled(0), [], id="none wanted, none there"),
        pytest.param(
            reconciled(1, ready("a", is_terminating=True)),
            [CreatePods(count=1)],
            id="one that leaves is replaced at once",
        ),
        pytest.param(
            reconciled(1, pod("a", phase="Failed"), pod("b", phase="Succeeded")),
            [CreatePods(count=1)],
            id="those that have finished do not count, and stay",
        ),
        pytest.param(
            reconciled(2, ready("a"), ready("b"), pod("c", **UNASSIGNED)), gone("c"), id="the pending one goes"
        ),
        pytest.param(reconciled(1, ready("a"), pod("b"), pod("c", phase="Pending")), gone("c", "b"), id="two too many"),
        pytest.param(
            reconciled(0, ready("a"), pod("b")), gone("a", "b"), id="where all go their order does not matter"
        ),
        pytest.param(reconciled(2**31 - 1), [CreatePods(count=500)], id="at most 500 at a time"),
    ],
)
def test_reconcile(actions: list[Action], expected: list[Action]) -> None:
    assert actions == expected


def test_at_most_500_are_deleted_at_a_time() -> None:
    pods = [ready(f"p{number}") for number in range(600)]
    assert len(reconcile_replica_set(0, pods, pods, NOW)) == 500


def test_a_replica_set_without_a_deployment_does_not_mind_crowded_nodes() -> None:
    pods = [ready("a", ready_since=ago(days=9)), ready("b", ready_since=ago(days=9)), ready("c", node_name="n2")]
    assert reconcile_replica_set(2, pods, pods, NOW) == gone("a")
    assert reconcile_replica_set(2, pods, [], NOW) == gone("c")


def test_the_status_counts_active_pods() -> None:
    pods = [
        ready("a", ready_since=ago(seconds=30)),
        ready("b", ready_since=ago(seconds=29)),
        ready("c", ready_since=None),
        pod("d"),
        ready("e", is_terminating=True),
        pod("f", phase="Failed", is_terminating=True),
    ]
    assert count_replicas(pods, 30, NOW) == ReplicaCounts(replicas=4, ready=3, available=1, terminating=1)
    assert count_replicas(pods, 0, NOW) == ReplicaCounts(replicas=4, ready=3, available=3, terminating=1)
    assert count_replicas(pods, 2**62, NOW).available == 0
