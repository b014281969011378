"""Which pods a StatefulSet creates and deletes, in a shorthand.

``0 1p 2!t``: pod 0 is ready, 1 is pending, and 2, of the old template, is on its way out. The states are ``p``
pending, ``n`` running and not ready, ``f`` failed, ``s`` succeeded, ``t`` terminating, ``w`` ready for less than ten
seconds, and ``r``, which is also meant where there is none. ``+3!`` is a pod that is made of the old template, ``-2``
one that is deleted.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kpreempt.controllers.actions import DEFAULT_RULES, Action, ControlledPod, CreatePods, DeletePod, SyncError
from kpreempt.controllers.stateful_set import StatefulSetState, ordinal_of, reconcile_stateful_set

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
GATE_IS_ON = DEFAULT_RULES._replace(max_unavailable_stateful_set=True)
PHASES = {"p": "Pending", "f": "Failed", "s": "Succeeded"}


def pod(text: str) -> ControlledPod:
    matched = re.fullmatch(r"(\d+)(!?)([pnfstwr]?)", text)
    assert matched
    state = matched[3] or "r"
    return ControlledPod(
        f"db-{matched[1]}",
        phase=PHASES.get(state, "Running"),
        is_ready=state in "rwt",
        ready_since=NOW - timedelta(seconds=9 if state == "w" else 3600),
        is_terminating=state == "t",
        revision="old" if matched[2] else "new",
    )


def short(actions: Iterable[Action]) -> str:
    words = []
    for action in actions:
        assert isinstance(action, CreatePods | DeletePod)
        number = action.name.removeprefix("db-")
        if isinstance(action, DeletePod):
            words.append(f"-{number}")
        else:
            words.append(f"+{number}{'!' if action.revision == 'old' else ''}")
    return " ".join(words)


def stateful_set(replicas: int, **fields: Any) -> StatefulSetState:
    return StatefulSetState("db", replicas, **{"current_revision": "old", "update_revision": "new", **fields})


def step(state: StatefulSetState, pods: str) -> str:
    return short(reconcile_stateful_set(state, [pod(text) for text in pods.split()], NOW).actions)


ORDERED = [
    pytest.param(3, "", "+0", id="the first comes first"),
    pytest.param(3, "0p", "", id="the next waits while it is pending"),
    pytest.param(3, "0n", "", id="and while it is not ready"),
    pytest.param(3, "0w", "+1", id="ready is enough where no time is asked for"),
    pytest.param(3, "0", "+1", id="then the next comes"),
    pytest.param(3, "0 2", "+1", id="a gap is filled"),
    pytest.param(3, "0t 1", "", id="one on its way out holds its ordinal, and up the others"),
    pytest.param(3, "0 1t 2", "", id="also in the middle"),
    pytest.param(3, "0f 1p", "-0", id="a failed one is deleted first"),
    pytest.param(3, "0 1s", "-1", id="so is one that ended well"),
    pytest.param(3, "0 1 2", "", id="nothing is left to do"),
    pytest.param(0, "0 1 2", "-2", id="down from the last"),
    pytest.param(1, "0 1 2t", "", id="one at a time"),
    pytest.param(1, "0 1 2n", "-2", id="one that is not well goes where it is the only one"),
    pytest.param(1, "0 1n 2n", "", id="but not before another that is not well"),
    pytest.param(1, "0 1p 2", "-2", id="one that is well goes before it"),
    pytest.param(1, "0p 1 2", "", id="nothing goes while one that stays is not well"),
    pytest.param(2, "1 2", "+0", id="a gap is filled before anything goes"),
    pytest.param(2**31 - 1, "0", "+1", id="an endless set takes no longer"),
]


@pytest.mark.parametrize(("replicas", "pods", "expected"), ORDERED)
def test_ordered(replicas: int, pods: str, expected: str) -> None:
    assert step(stateful_set(replicas), pods) == expected


def test_ready_for_long_enough() -> None:
    assert step(stateful_set(3, min_ready_seconds=10), "0w") == ""
    assert step(stateful_set(3, min_ready_seconds=9), "0w") == "+1"
    assert step(stateful_set(1, min_ready_seconds=10), "0 1w 2w") == ""
    assert step(stateful_set(1, min_ready_seconds=10), "0 1 2w") == "-2"


PARALLEL = [
    pytest.param(3, "", "+0 +1 +2", id="all come at once"),
    pytest.param(3, "0p 2t", "+1", id="what is not well holds up nothing"),
    pytest.param(3, "0f 1", "-0 +2", id="a failed one goes while others come"),
    pytest.param(1, "0p 1 2n 3t", "-2 -1", id="all go at once"),
    pytest.param(2, "1 2 3", "+0 -3 -2", id="some come and some go"),
]


@pytest.mark.parametrize(("replicas", "pods", "expected"), PARALLEL)
def test_parallel(replicas: int, pods: str, expected: str) -> None:
    assert step(stateful_set(replicas, parallel=True), pods) == expected


def test_at_most_500_are_made_at_a_time() -> None:
    assert len(step(stateful_set(2**31 - 1, parallel=True), "").split()) == 500
    gated = stateful_set(2**31 - 1, parallel=True, rules=GATE_IS_ON, max_unavailable="100%")
    assert len(step(gated, "0!").split()) == 501


UPDATES = [
    pytest.param({}, "0! 1! 2!", "-2", id="the last is updated first"),
    pytest.param({}, "0! 1! 2!t", "", id="the next waits until it is gone"),
    pytest.param({}, "0! 1!", "+2", id="until it is made"),
    pytest.param({}, "0! 1! 2p", "", id="and until it is available"),
    pytest.param({}, "0! 1! 2", "-1", id="then it goes"),
    pytest.param({}, "0! 1 2", "-0", id="to the first"),
    pytest.param({"partition": 1}, "0! 1! 2", "-1", id="a partition is how many stay"),
    pytest.param({"partition": 2}, "0! 1! 2", "", id="those keep the old template"),
    pytest.param({"partition": 2}, "0! 2", "+1!", id="also one that is made again"),
    pytest.param({"partition": 2}, "0! 1!", "+2", id="the others are made of the new"),
    pytest.param({"partition": 9}, "0! 1! 2!", "", id="a partition beyond the size keeps all"),
    pytest.param({"partition": None}, "0! 1! 2!", "-2", id="without a partition all are updated"),
    pytest.param({"partition": None, "current_replicas": 2}, "0! 2", "+1!", id="but made again as the status counts"),
    pytest.param({"partition": None, "current_replicas": 1}, "0! 2", "+1", id="of the new beyond that"),
    pytest.param({"strategy": "OnDelete"}, "0! 1! 2!", "", id="OnDelete updates none by itself"),
    pytest.param(
        {"strategy": "OnDelete", "partition": None, "current_replicas": 3}, "0! 1!", "+2", id="only what is made"
    ),
    pytest.param({}, "0! 1! 2!n", "", id="an ordered set does not even replace what is broken"),
    pytest.param({"parallel": True}, "0! 1! 2!n", "-2", id="a parallel one replaces it"),
    pytest.param({"parallel": True}, "0! 1!n 2p", "", id="but waits for the one after it"),
    pytest.param({"parallel": True}, "0! 1! 2! 3!", "-3 -2", id="a parallel one scales and updates at once"),
    pytest.param({"parallel": True}, "0! 1! 2!f", "-2", id="what failed is deleted once"),
    pytest.param(
        {"parallel": True, "partition": None, "current_replicas": 3},
        "0! 1!",
        "+2! -2",
        id="what is made old goes at once",
    ),
    pytest.param({"max_unavailable": 2}, "0! 1! 2!", "-2", id="maxUnavailable means nothing without its gate"),
]


@pytest.mark.parametrize(("fields", "pods", "expected"), UPDATES)
def test_rolling_update(fields: dict[str, Any], pods: str, expected: str) -> None:
    assert step(stateful_set(3, **fields), pods) == expected


GATED = [
    pytest.param(2, "0! 1! 2! 3!", "-3 -2", id="as many as may be missing"),
    pytest.param(2, "0! 1! 2! 3p", "", id="an ordered set still waits for what is not well"),
    pytest.param("50%", "0! 1! 2! 3!", "-3 -2", id="half of four"),
    pytest.param("49%", "0! 1! 2! 3!", "-3", id="rounded down"),
    pytest.param("1%", "0! 1! 2! 3!", "-3", id="but one at least"),
    pytest.param(None, "0! 1! 2! 3!", "-3", id="one where nothing is said"),
]


@pytest.mark.parametrize(("most", "pods", "expected"), GATED)
def test_max_unavailable_with_its_gate(most: int | str | None, pods: str, expected: str) -> None:
    assert step(stateful_set(4, rules=GATE_IS_ON, max_unavailable=most), pods) == expected


def test_max_unavailable_of_a_parallel_set() -> None:
    state = stateful_set(4, rules=GATE_IS_ON, max_unavailable=2, parallel=True)
    assert step(state, "0! 1! 2! 3p") == "-2"
    assert step(state, "0!n 1!n 2! 3") == ""
    assert step(state, "0! 1! 2! 3t") == "-2"
    assert step(state, "0! 1! 2!") == "+3 -2"
    assert step(stateful_set(4, rules=GATE_IS_ON, max_unavailable=2, partition=3), "0! 1! 2! 3!") == "-3"


def test_a_parallel_set_replaces_what_is_unavailable_first_since_1_37() -> None:
    rules = GATE_IS_ON._replace(updates_unavailable_pods_first=True)
    state = stateful_set(4, rules=rules, max_unavailable=2, parallel=True)
    assert step(state, "0!n 1!n 2! 3") == "-1 -0"
    assert step(state, "0!n 1! 2! 3!") == "-0 -3"
    assert step(state, "0! 1! 2! 3t") == "-2"
    assert step(state, "0!n 1!t 2t 3!") == "-0"
    assert step(stateful_set(4, rules=rules, max_unavailable=2), "0!n 1! 2! 3!") == ""


@pytest.mark.parametrize(
    ("waits", "fields", "pods", "expected"),
    [
        pytest.param(True, {"parallel": True}, "0! 1! 2w", "", id="an update waits for minReadySeconds"),
        pytest.param(False, {"parallel": True}, "0! 1! 2w", "-1", id="before 1.34 until pods are ready"),
        pytest.param(False, {"parallel": True}, "0! 1! 2n", "", id="but until then it did"),
        pytest.param(False, {"parallel": True}, "0! 1! 2t", "", id="and for those that leave"),
        pytest.param(False, {}, "0! 1! 2w", "", id="and an ordered set waits longer in any case"),
        pytest.param(True, {"replicas": 1}, "0 1w", "-1", id="the first that is unavailable goes"),
        pytest.param(False, {"replicas": 1}, "0 1w", "", id="before 1.34 the first that is not ready"),
    ],
)
def test_min_ready_seconds_by_version(waits: bool, fields: dict[str, Any], pods: str, expected: str) -> None:
    rules = DEFAULT_RULES._replace(waits_for_min_ready_seconds=waits)
    assert step(stateful_set(**{"replicas": 3, "min_ready_seconds": 10, "rules": rules, **fields}), pods) == expected


def test_a_max_unavailable_that_is_none() -> None:
    with pytest.raises(SyncError, match='"two" is not a percentage'):
        step(stateful_set(1, rules=GATE_IS_ON, max_unavailable="two"), "0!")


def test_ordinals_that_start_later() -> None:
    state = stateful_set(2, start=5)
    assert step(state, "") == "+5"
    assert step(state, "5 6") == ""
    assert step(state, "0 1 5 6 7") == "-7"
    assert step(state, "0 1 5 6") == "-1"
    assert step(stateful_set(2, start=5, partition=1), "5! 6!") == "-6"
    assert step(stateful_set(2, start=5, partition=1), "5! 6") == ""
    assert step(stateful_set(2, start=5, partition=1), "6") == "+5!"


def test_the_status_goes_along() -> None:
    state = stateful_set(3)
    counts = []
    for pods in ("0! 1! 2!", "0! 1! 2!t", "0! 1! 2p", "0! 1! 2", "0! 1 2", "0 1 2"):
        state = reconcile_stateful_set(state, [pod(text) for text in pods.split()], NOW).stateful_set
        counts.append((state.current_revision, state.current_replicas))
    assert counts == [("old", 2), ("old", 2), ("old", 2), ("old", 1), ("old", 0), ("new", 3)]


def test_a_set_without_history_starts_with_the_present_template() -> None:
    state = stateful_set(2, current_revision="", partition=2)
    found = reconcile_stateful_set(state, [], NOW)
    assert short(found.actions) == "+0"
    assert found.stateful_set.current_revision == "new"


def test_pods_of_others_are_left_alone() -> None:
    others = [
        ControlledPod(name, phase="Running", is_ready=True) for name in ("db", "db-x", "my-db-7", "db-a-0", "db-9" * 9)
    ]
    found = reconcile_stateful_set(stateful_set(0), others, NOW)
    assert found.actions == []


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [
        *(("db-0", 0), ("my-db-12", 12), ("db-2147483647", 2**31 - 1)),
        *((name, -1) for name in ("db", "0", "db-", "db-1x", "db-٣", "db-2147483648", "db-" + "1" * 5000)),
    ],
)
def test_ordinals(name: str, ordinal: int) -> None:
    assert ordinal_of(name) == ordinal
