"""Which pods a DaemonSet creates and deletes, in a shorthand.

``a b!p c!t``: on node a is a ready pod, on b a pending one of an old template, and from c an old one is on its way
out. The states are ``p`` pending, ``n`` running and not ready, ``f`` failed, ``s`` succeeded, ``t`` terminating, ``g``
failed and terminating, ``u`` not yet on its node, ``w`` ready for less than ten seconds, and ``r``, which is also meant
where there is none. Of several on a node the first is the oldest, and its name has a 1. ``+a`` is a pod that is made
for the node, ``-a1`` one that is deleted.
"""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kpreempt.controllers.actions import DEFAULT_RULES, Action, ControlledPod, CreatePods, DeletePod, SyncError
from kpreempt.controllers.daemon_set import DaemonNode, DaemonSetState, reconcile_daemon_set

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PHASES = {"p": "Pending", "u": "Pending", "f": "Failed", "g": "Failed", "s": "Succeeded"}


def parse(texts: str) -> list[ControlledPod]:
    numbers: Counter[str] = Counter()
    pods = []
    for text in texts.split():
        matched = re.fullmatch(r"([a-z])(!?)([pnfstwrgu]?)", text)
        assert matched
        node, state = matched[1], matched[3] or "r"
        numbers[node] += 1
        pods.append(
            ControlledPod(
                f"{node}{numbers[node]}",
                phase=PHASES.get(state, "Running"),
                node_name="" if state == "u" else node,
                tied_to=node,
                is_ready=state in "rwt",
                ready_since=NOW - timedelta(seconds=9 if state == "w" else 3600),
                created=NOW - timedelta(hours=9 - numbers[node]),
                is_terminating=state in "tg",
                revision="old" if matched[2] else "new",
            )
        )
    return pods


def short(actions: Iterable[Action]) -> str:
    words = []
    for action in actions:
        assert isinstance(action, CreatePods | DeletePod)
        words.append(f"-{action.name}" if isinstance(action, DeletePod) else f"+{action.node_name}")
    return " ".join(words)


def step(pods: str, nodes: str = "abcd", *, stays: str = "", gone: str = "", **fields: Any) -> str:
    """On ``nodes`` a pod should run, on ``stays`` one may stay, on ``gone`` none may."""
    every = [
        *(DaemonNode(name) for name in nodes),
        *(DaemonNode(name, should_run=False) for name in stays),
        *(DaemonNode(name, should_run=False, may_stay=False) for name in gone),
    ]
    return short(reconcile_daemon_set(DaemonSetState("new", **fields), parse(pods), every, NOW))


MANAGED = [
    pytest.param("", {}, "+a +b +c +d", id="every node gets a pod"),
    pytest.param("a b", {}, "+c +d", id="where there is none yet"),
    pytest.param("ap bn cu d", {}, "", id="one that is not ready, or not bound, is one"),
    pytest.param("a b c dt", {}, "", id="one on its way out is waited for"),
    pytest.param("a b c dg", {}, "+d", id="unless it has ended"),
    pytest.param("a b c df", {}, "-d1", id="a failed one is deleted first"),
    pytest.param("a b c ds", {}, "-d1", id="so is one that ended well"),
    pytest.param("a b c df df ds", {}, "-d1 -d3", id="of several failed ones one at a time"),
    pytest.param("a a b c d", {}, "-a2", id="of two the oldest stays"),
    pytest.param("au a b c d", {}, "-a1", id="but one that is on its node before one that is not"),
    pytest.param("a!  a b c d", {}, "-a2", id="whatever their templates"),
    pytest.param("a b c d", {"nodes": "abc", "gone": "d"}, "-d1", id="where none may stay it goes"),
    pytest.param("a b c dt", {"nodes": "abc", "gone": "d"}, "", id="once"),
    pytest.param("a b c d", {"nodes": "abc", "stays": "d"}, "", id="where one may stay it stays"),
    pytest.param("a b c", {"nodes": "abc", "stays": "d"}, "", id="but none is made"),
    pytest.param("a b c df", {"nodes": "abc", "stays": "d"}, "-d1", id="and a failed one goes"),
    pytest.param("a b c du", {"nodes": "abc"}, "-d1", id="one for a node that is gone goes"),
    pytest.param("a b c d", {"nodes": "abc"}, "", id="one on a node that is gone is not this controller's affair"),
    pytest.param("", {"nodes": ""}, "", id="without nodes nothing is done"),
]


@pytest.mark.parametrize("strategy", ["RollingUpdate", "OnDelete"])
@pytest.mark.parametrize(("pods", "options", "expected"), MANAGED)
def test_every_node_has_its_pod(pods: str, options: dict[str, Any], expected: str, strategy: str) -> None:
    assert step(pods, strategy=strategy, **options) == expected


REPLACING = [
    pytest.param("a! b! c! d!", {}, "-a1", id="one at a time where nothing is said"),
    pytest.param("a! b! c! d!", {"max_unavailable": 3}, "-a1 -b1 -c1", id="as many as may be missing"),
    pytest.param("a! b! c! d!", {"max_unavailable": "26%"}, "-a1 -b1", id="percentages are rounded up"),
    pytest.param("a! b! c! d!", {"max_unavailable": 0}, "-a1", id="one where none may be missing, nor surge"),
    pytest.param("at b! c! d!", {}, "", id="the next waits until it is gone"),
    pytest.param("b! c! d!", {}, "+a", id="until it is made"),
    pytest.param("ap b! c! d!", {}, "", id="and until it is available"),
    pytest.param("a b! c! d!", {}, "-b1", id="then it goes"),
    pytest.param("a b c d", {}, "", id="nothing is left to do"),
    pytest.param("a! b! c!n d!p", {}, "-c1 -d1", id="old ones that are not available all go at once"),
    pytest.param("a! b!n c! d", {"max_unavailable": 2}, "-b1 -a1", id="and count as missing"),
    pytest.param("aw b! c d", {"min_ready_seconds": 10}, "", id="available is ready for long enough"),
    pytest.param("aw b! c d", {"min_ready_seconds": 9}, "-b1", id="as long as is asked for"),
    pytest.param("a! b! c! d!", {"strategy": "OnDelete"}, "", id="OnDelete updates none by itself"),
    pytest.param("a b! c! d!", {"nodes": "bcd", "stays": "a"}, "-b1", id="one that may only stay does not hold it up"),
    pytest.param("an b! c! d!", {"nodes": "bcd", "stays": "a"}, "", id="unless it is not available"),
    pytest.param("a!", {"nodes": "", "stays": "a", "max_unavailable": "100%"}, "", id="none may be missing of none"),
]


@pytest.mark.parametrize(("pods", "options", "expected"), REPLACING)
def test_update_without_surge(pods: str, options: dict[str, Any], expected: str) -> None:
    assert step(pods, **options) == expected


SURGING = [
    pytest.param("a! b! c! d!", {}, "+a", id="a new one comes beside an old one"),
    pytest.param("a! b! c! d!", {"max_surge": "26%"}, "+a +b", id="percentages are rounded up"),
    pytest.param("a! ap b! c! d!", {}, "", id="the next waits while it is not available"),
    pytest.param("a! a b! c! d!", {}, "-a1", id="once it is available the old one goes"),
    pytest.param("a!t a b! c! d!", {}, "+b", id="and the next comes"),
    pytest.param("a b c d!", {}, "+d", id="to the last"),
    pytest.param("a b c d", {}, "", id="nothing is left to do"),
    pytest.param("a! b!n c!p d!", {}, "+b +c +a", id="beside what is not available one comes at once"),
    pytest.param("a!n ap b! c! d!", {}, "-a1", id="an old one that is not ready goes before the new one is"),
    pytest.param("a! aw b! c! d!", {"min_ready_seconds": 10}, "", id="one that is ready waits until it is available"),
    pytest.param("at b c d", {}, "+a", id="one that leaves is replaced at once"),
    pytest.param("af b c d", {}, "-a1 +a", id="so is one that failed"),
    pytest.param("a! a! ap b c d", {}, "-a2", id="of each template the oldest stays"),
    pytest.param("a! b! c! d!", {"nodes": "abc", "stays": "d"}, "+a -d1", id="misplaced and enough others: it goes"),
    pytest.param("a! b! c!n d!", {"nodes": "abc", "stays": "d"}, "+c +a", id="misplaced and not enough: it stays"),
    pytest.param("a! b! c! d!n", {"nodes": "abc", "stays": "d"}, "+a -d1", id="misplaced and not available: it goes"),
    pytest.param("a! b! c! d!", {"strategy": "OnDelete"}, "", id="OnDelete updates none by itself"),
]


@pytest.mark.parametrize(("pods", "options", "expected"), SURGING)
def test_update_with_surge(pods: str, options: dict[str, Any], expected: str) -> None:
    assert step(pods, **{"max_surge": 1, "max_unavailable": 0, **options}) == expected


def test_replaced_pods_did_not_count_as_missing_of_old() -> None:
    pods, fields = "a! b!n c! d", {"max_unavailable": 2}
    assert step(pods, **fields) == "-b1 -a1"
    assert step(pods, rules=DEFAULT_RULES._replace(counts_replaced_daemon_pods=False), **fields) == "-b1 -a1 -c1"


@pytest.mark.parametrize("field", ["max_surge", "max_unavailable"])
def test_amounts_that_are_none(field: str) -> None:
    with pytest.raises(SyncError, match='"some" is not a percentage'):
        step("a! b! c! d!", **{field: "some"})


def test_a_set_without_a_hash_has_only_old_pods() -> None:
    pods = parse("a b c d")
    nodes = [DaemonNode(name) for name in "abcd"]
    unhashed = [ControlledPod(pod.name, phase="Running", node_name=pod.node_name, is_ready=True) for pod in pods]
    assert short(reconcile_daemon_set(DaemonSetState(""), unhashed, nodes, NOW)) == "-a1"
