"""Which sizes a Deployment gives its ReplicaSets."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from kpreempt.controllers.actions import Action, CreateReplicaSet, ScaleReplicaSet, SyncError
from kpreempt.controllers.deployment import (
    DeploymentState,
    ReplicaSetState,
    allowances,
    is_complete,
    reconcile_deployment,
)


def rolling(replicas: int, surge: int | str = 0, unavailable: int | str = 0, **fields: Any) -> DeploymentState:
    return DeploymentState(replicas, max_surge=surge, max_unavailable=unavailable, **fields)


def replica_set(name: str, replicas: int, available: int | None = None, **fields: Any) -> ReplicaSetState:
    """One whose pods are all available, and the older the smaller the number at the end of its name."""
    available = replicas if available is None else available
    created = datetime(2026, 1, 1, int(name[-1]), tzinfo=UTC)
    return ReplicaSetState(name, replicas, replicas, available, replicas, created, **fields)


def sizes(actions: Iterable[Action]) -> dict[str, int]:
    result = {}
    for action in actions:
        assert isinstance(action, ScaleReplicaSet | CreateReplicaSet)
        result[action.name if isinstance(action, ScaleReplicaSet) else "made"] = action.replicas
    return result


@pytest.mark.parametrize(
    ("deployment", "expected"),
    [
        pytest.param(rolling(0, "0%", "0%"), (0, 0), id="nothing may be missing of nothing"),
        pytest.param(rolling(10, "39%", "39%"), (4, 3), id="a surge is rounded up, what may be missing down"),
        pytest.param(rolling(10, 0, 0), (0, 1), id="one may be missing where there is neither"),
        pytest.param(rolling(3, 0, "10%"), (0, 1), id="and where rounding leaves neither"),
        pytest.param(rolling(3, 1, "10%"), (1, 0), id="a surge makes up for what rounding took"),
        pytest.param(rolling(2, 0, 5), (0, 2), id="no more can be missing than there are"),
        pytest.param(rolling(7), (0, 1), id="numbers are taken as they are"),
        pytest.param(DeploymentState(10), (3, 2), id="a quarter each where nothing is said"),
        pytest.param(DeploymentState(10, "Recreate"), (0, 0), id="Recreate has neither"),
    ],
)
def test_allowances(deployment: DeploymentState, expected: tuple[int, int]) -> None:
    found = allowances(deployment)
    assert (found.surge, found.unavailable) == expected


@pytest.mark.parametrize("amount", ["oops", "39", "%", "-%", "1.5%", "٣%", " 3%", "9" * 100_000 + "%"])
def test_what_is_no_percentage_stops_the_controller(amount: str) -> None:
    with pytest.raises(SyncError, match="is not a percentage") as surge:
        reconcile_deployment(rolling(3, amount, 1), replica_set("v2", 0), [replica_set("v1", 3)])
    with pytest.raises(SyncError, match="is not a percentage"):
        reconcile_deployment(rolling(3, 1, amount), replica_set("v2", 0), [replica_set("v1", 3)])
    assert len(surge.value.message) < 100


ROLLING = [
    # What the new ReplicaSet gets.
    pytest.param(rolling(10, 0), 0, None, [(10, 9)], {"v1": 9}, id="without surge the old goes down first"),
    pytest.param(rolling(10, 2), 0, None, [(10, None)], {"new": 2}, id="the surge is for the new"),
    pytest.param(rolling(10, 2), 0, None, [(5, None)], {"new": 7}, id="the new takes all the room that there is"),
    pytest.param(rolling(10, 2), 2, 0, [(10, None)], {}, id="the surge is used up by what is not available yet"),
    pytest.param(rolling(10, 2), 11, None, [(2, None)], {"new": 10}, id="more than there should be goes down"),
    pytest.param(rolling(3, "100%"), 0, None, [(3, None)], {"new": 3}, id="a full surge makes all at once"),
    # What the old ones lose.
    pytest.param(rolling(10, 0, 2), 0, None, [(10, None)], {"v1": 8}, id="as many go as may be missing"),
    pytest.param(rolling(10, 0, 2), 0, None, [(10, 8)], {"v1": 8}, id="what is unhealthy goes first"),
    pytest.param(rolling(10, 0, 2), 0, None, [(10, 9)], {"v1": 8}, id="one unhealthy goes, and one healthy"),
    pytest.param(rolling(10, 0, 2), 2, 0, [(8, None)], {}, id="none more while the new ones are not available"),
    pytest.param(rolling(10, 0, 2), 2, 2, [(8, None)], {"v1": 6}, id="as many more as have become available"),
    pytest.param(rolling(10, 1, 0), 10, 10, [(1, None)], {"v1": 0}, id="in the end the last one goes"),
    pytest.param(rolling(10, 0, 2), 0, None, [(4, None), (6, None)], {"v1": 2}, id="the oldest goes first"),
    pytest.param(rolling(10, 0, 5), 0, None, [(4, None), (6, None)], {"v1": 0, "v2": 5}, id="then the next"),
    pytest.param(
        rolling(10, 0, 2), 0, None, [(4, None), (6, 4)], {"v2": 4}, id="the unhealthy of the younger before the older"
    ),
    pytest.param(rolling(10, 3, 2), 5, 0, [(8, 7)], {}, id="unavailable new ones hold up the unhealthy of the old"),
    pytest.param(rolling(10, 3, 2), 0, 0, [(8, 8), (5, 0)], {"v2": 0}, id="in a roll-over the broken ones go first"),
    pytest.param(rolling(4, 1, 1), 4, 4, [(1, 2)], {}, id="a size that has not taken effect stops the clean-up"),
    pytest.param(rolling(4, 1, 1), 4, 4, [(0, 0)], {}, id="nothing is left to do"),
]


@pytest.mark.parametrize(("deployment", "new", "new_available", "old", "expected"), ROLLING)
def test_rolling_update(
    deployment: DeploymentState,
    new: int,
    new_available: int | None,
    old: list[tuple[int, int | None]],
    expected: dict[str, int],
) -> None:
    olds = [replica_set(f"v{number}", *each) for number, each in enumerate(old, 1)]
    present = replica_set("v9", new, new_available)
    expected = {"v9" if name == "new" else name: size for name, size in expected.items()}
    assert sizes(reconcile_deployment(deployment, present, olds)) == expected


def test_the_order_of_the_old_ones_is_their_age() -> None:
    olds = [replica_set("v2", 6), replica_set("v1", 4)]
    assert sizes(reconcile_deployment(rolling(10, 0, 2), replica_set("v9", 0), olds)) == {"v1": 2}
    same_age = [ReplicaSetState(name, 5, 5, 5) for name in ("b", "a")]
    assert sizes(reconcile_deployment(rolling(10, 0, 2), ReplicaSetState("new"), same_age)) == {"a": 3}


def test_a_new_replica_set_is_made_with_the_surge_and_the_old_goes_down_in_the_same_step() -> None:
    actions = reconcile_deployment(rolling(10, 2, 3), None, [replica_set("v1", 10)])
    assert actions == [CreateReplicaSet(2, 10, 12), ScaleReplicaSet("v1", 7, 10, 12)]


def test_a_first_replica_set_has_all_pods() -> None:
    assert reconcile_deployment(rolling(10, 2, 3), None, []) == [CreateReplicaSet(10, 10, 12)]
    assert reconcile_deployment(rolling(0, "25%", 3), None, []) == [CreateReplicaSet(0, 0, 0)]


RECREATE = DeploymentState(3, "Recreate")


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(None, [replica_set("v1", 3)], {"v1": 0}, id="first all that is old goes"),
        pytest.param(None, [ReplicaSetState("v1", 0, pods=1)], {}, id="nothing comes while an old pod is active"),
        pytest.param(None, [ReplicaSetState("v1", 0, unfinished=1)], {}, id="nor while one still has its grace period"),
        pytest.param(None, [ReplicaSetState("v1", 0)], {"made": 3}, id="then all that is new comes"),
        pytest.param(ReplicaSetState("v2", 1), [ReplicaSetState("v1")], {"v2": 3}, id="also where it already exists"),
        pytest.param(ReplicaSetState("v2", 3), [], {}, id="nothing is left to do"),
    ],
)
def test_recreate(new: ReplicaSetState | None, old: list[ReplicaSetState], expected: dict[str, int]) -> None:
    assert sizes(reconcile_deployment(RECREATE, new, old)) == expected


def noted(deployment: DeploymentState, name: str, replicas: int, available: int | None = None) -> ReplicaSetState:
    surge = allowances(deployment).surge
    most = deployment.replicas + surge
    return replica_set(name, replicas, available, desired_replicas=deployment.replicas, max_replicas=most)


SCALING = [
    pytest.param(10, 12, {"v9": 10}, {"v9": 12}, id="the only one grows"),
    pytest.param(10, 5, {"v9": 10}, {"v9": 5}, id="the only one shrinks"),
    pytest.param(10, 5, {"v1": 10, "v9": 0}, {"v1": 5}, id="the only one with pods, even if it is old"),
    pytest.param(5, 10, {"v9": 2, "v1": 3}, {"v9": 4, "v1": 6}, id="in proportion from 5 to 10"),
    pytest.param(5, 3, {"v9": 2, "v1": 3}, {"v9": 1, "v1": 2}, id="in proportion from 5 to 3"),
    pytest.param(9, 4, {"v9": 8, "v1": 1}, {"v9": 4, "v1": 0}, id="in proportion from 9 to 4"),
    pytest.param(7, 10, {"v9": 2, "v2": 3, "v1": 2}, {"v9": 3, "v2": 4, "v1": 3}, id="three from 7 to 10"),
    pytest.param(13, 8, {"v9": 2, "v2": 8, "v1": 3}, {"v9": 1, "v2": 5, "v1": 2}, id="three from 13 to 8"),
    pytest.param(
        3, 4, {"v9": 1, "v2": 1, "v1": 1}, {"v9": 2, "v2": 1, "v1": 1}, id="what is left over goes to the new"
    ),
    pytest.param(
        3, 2, {"v9": 1, "v2": 1, "v1": 1}, {"v9": 1, "v2": 1, "v1": 0}, id="what is too much, from the oldest"
    ),
    pytest.param(4, 5, {"v2": 2, "v1": 2}, {"v2": 3, "v1": 2}, id="without a new one the youngest grows"),
    pytest.param(6, 0, {"v9": 3, "v2": 2, "v1": 1}, {"v9": 0, "v2": 0, "v1": 0}, id="down to nothing"),
    pytest.param(10, 14, {"v2": 7, "v1": 3}, {"v2": 10, "v1": 4}, id="size and template at once"),
]


@pytest.mark.parametrize(("before", "after", "there", "expected"), SCALING)
def test_scaling(before: int, after: int, there: dict[str, int], expected: dict[str, int]) -> None:
    """Without surge, as in upstream's own table."""
    sets = {name: noted(rolling(before), name, size) for name, size in there.items()}
    new = sets.pop("v9", None)
    actions = reconcile_deployment(rolling(after), new, list(sets.values()))
    assert sizes(actions) == expected
    # The new size is noted, so that there is an end to it.
    assert all(isinstance(each, ScaleReplicaSet) and each.desired_replicas == after for each in actions)


def test_scaling_counts_the_surge_before_and_after() -> None:
    before, after = rolling(10, 3), rolling(50, 6)
    actions = reconcile_deployment(after, noted(before, "v2", 5), [noted(before, "v1", 8)])
    assert sizes(actions) == {"v2": 22, "v1": 34}
    assert all(isinstance(each, ScaleReplicaSet) and each.max_replicas == 56 for each in actions)


@pytest.mark.parametrize(
    ("largest_before", "pods", "expected"),
    [
        pytest.param(None, 5, {"v2": 4, "v1": 6}, id="without a note the pods that there are count"),
        pytest.param(0, 5, {"v2": 4, "v1": 6}, id="so they do for a note of nought"),
        pytest.param(None, 0, {"v2": 2, "v1": 8}, id="without either all goes to the biggest"),
    ],
)
def test_scaling_after_the_note_was_tampered_with(
    largest_before: int | None, pods: int, expected: dict[str, int]
) -> None:
    sets = [
        replica_set(name, size, desired_replicas=5, max_replicas=largest_before)
        for name, size in (("v2", 2), ("v1", 3))
    ]
    assert sizes(reconcile_deployment(rolling(10, status_replicas=pods), sets[0], sets[1:])) == expected


def test_a_saturated_new_one_ends_the_old_ones() -> None:
    now = rolling(2, 1, 1)
    old = [noted(rolling(3, 1, 1), "v1", 1)]
    assert sizes(reconcile_deployment(now, noted(now, "v2", 2), old)) == {"v1": 0}
    # A broken one does not: the old pod keeps serving, and only what is noted on its ReplicaSet is renewed.
    assert sizes(reconcile_deployment(now, noted(now, "v2", 2, available=0), old)) == {"v1": 1}


def test_a_paused_deployment_scales_and_does_not_roll() -> None:
    paused = rolling(4, 1, 1, paused=True)
    assert reconcile_deployment(paused, None, [noted(paused, "v1", 4)]) == []
    assert sizes(reconcile_deployment(paused, None, [noted(paused, "v1", 3)])) == {"v1": 4}
    assert sizes(reconcile_deployment(paused, None, [replica_set("v1", 0), replica_set("v2", 0)])) == {"v2": 4}
    assert reconcile_deployment(paused, None, []) == []


def test_a_size_that_is_right_by_chance_holds_up_the_rollout_until_the_next_scaling() -> None:
    """As the real controller does: it notes a size only where it changes one."""
    before, after = rolling(7), rolling(6)
    old = [noted(before, "v1", 6)]
    assert reconcile_deployment(after, noted(before, "v2", 0), old) == []
    assert sizes(reconcile_deployment(rolling(5), noted(before, "v2", 0), old)) == {"v1": 5}


def test_recreate_scales_several_only_when_the_new_one_is_saturated() -> None:
    sets = [noted(DeploymentState(4, "Recreate"), name, 2) for name in ("v2", "v1")]
    assert reconcile_deployment(RECREATE, sets[0], sets[1:]) == []


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(replica_set("v2", 3), [replica_set("v1", 0)], True, id="all are new and available"),
        pytest.param(replica_set("v2", 3, 2), [], False, id="one is not available"),
        pytest.param(replica_set("v2", 3), [ReplicaSetState("v1", 0, pods=1)], False, id="an old one is still there"),
        pytest.param(None, [replica_set("v1", 3)], False, id="there is no new one yet"),
    ],
)
def test_completion(new: ReplicaSetState | None, old: list[ReplicaSetState], expected: bool) -> None:
    assert is_complete(rolling(3), new, old) is expected
