"""RackColocation: which nodes are refused, in which way, and which of the others is best."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.errors import ConfigurationError
from kpreempt.model.pod import Pod
from kpreempt.plugins import PluginFinding
from kpreempt.plugins.examples.rack_colocation import (
    REASON_FULL_RACK,
    REASON_NO_RACK,
    REASON_OTHER_RACK,
    RackColocation,
)
from kpreempt.verdict import Code, Outcome, Status, Verdict
from tests.factories import make_node, make_pod
from tests.unit.plugins.running import cluster_of, decide_with, scheduler_with, victims_of

RACKS = {"a1": "r1", "a2": "r1", "b1": "r2", "b2": "r2", "c1": ""}
NODES = [make_node(name, labels={"example.com/rack": rack} if rack else {}) for name, rack in RACKS.items()]
UNSCHEDULABLE, UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def member(name: str, node: str = "", group: str = "ring", **more: Any) -> Pod:
    return make_pod(name, node=node, labels={"example.com/group": group}, **more)


def decide(*pods: Pod, requested: Pod | None = None, max_pods: int = 0, **args: Any) -> Verdict:
    args = {"maxPods": max_pods, **args}
    requested = requested or member("new", priority=100, cpu="1")
    return decide_with(RackColocation, cluster_of(NODES, pods), requested, args)


def rejections(verdict: Verdict) -> dict[str, tuple[Code, str]]:
    return {name: (status.code, status.message) for name, status in verdict.filter.items() if not status.is_success}


NO_RACK = {"c1": (UNRESOLVABLE, REASON_NO_RACK)}
OUTSIDE_R1 = {"b1": (UNRESOLVABLE, REASON_OTHER_RACK), "b2": (UNRESOLVABLE, REASON_OTHER_RACK)}


@pytest.mark.parametrize(
    ("pods", "max_pods", "expected"),
    [
        pytest.param([], 0, NO_RACK, id="the first of a group may go wherever there is a rack"),
        pytest.param([member("m", "a1")], 0, NO_RACK | OUTSIDE_R1, id="others go where the first is"),
        pytest.param([member("m", "a1", namespace="data")], 0, NO_RACK, id="a group is of one namespace"),
        pytest.param([member("m", "a1", group="star")], 0, NO_RACK, id="other groups do not matter"),
        pytest.param([make_pod("m", node="a1")], 0, NO_RACK, id="pods in no group do not matter"),
        pytest.param([member("m", "c1")], 0, NO_RACK, id="a member in no rack does not count"),
        pytest.param([member("m", "a1", phase="Failed")], 0, NO_RACK, id="nor one that has finished"),
        pytest.param([member("m", "a1")], 2, NO_RACK | OUTSIDE_R1, id="one more may be in the rack"),
        pytest.param(
            [member("m", "a1"), member("n", "a2")],
            2,
            NO_RACK | OUTSIDE_R1 | dict.fromkeys(("a1", "a2"), (UNSCHEDULABLE, REASON_FULL_RACK)),
            id="evicting the one on either node may help",
        ),
        pytest.param(
            [member("m", "a1"), member("n", "a1")],
            2,
            NO_RACK | OUTSIDE_R1 | {"a1": (UNSCHEDULABLE, REASON_FULL_RACK), "a2": (UNRESOLVABLE, REASON_FULL_RACK)},
            id="evictions help only on the node that has them",
        ),
        pytest.param(
            [member("m", "a1"), member("n", "a1"), member("o", "a2")],
            2,
            NO_RACK | OUTSIDE_R1 | {"a1": (UNSCHEDULABLE, REASON_FULL_RACK), "a2": (UNRESOLVABLE, REASON_FULL_RACK)},
            id="two would have to go, and a node has but one",
        ),
        pytest.param(
            [member("m", "a1"), member("n", "b1")],
            0,
            NO_RACK | dict.fromkeys(("a1", "a2", "b1", "b2"), (UNRESOLVABLE, REASON_OTHER_RACK)),
            id="a group that is torn already can be joined nowhere",
        ),
    ],
)
def test_the_nodes_that_are_refused(pods: list[Pod], max_pods: int, expected: dict[str, tuple[Code, str]]) -> None:
    assert rejections(decide(*pods, max_pods=max_pods)) == expected


def finding(status: Status) -> PluginFinding:
    assert isinstance(status.detail, PluginFinding)
    return status.detail


def test_a_refusal_says_what_was_found() -> None:
    verdict = decide(member("m", "a1"), member("n", "a1"), max_pods=2)
    assert finding(verdict.filter["a2"]).facts == {"group": "ring", "rack": "r1", "pods": 2, "here": 0}
    assert finding(verdict.filter["b1"]).facts == {"group": "ring", "rack": "r2", "others": "r1"}
    assert finding(verdict.filter["c1"]).facts == {"label": "example.com/rack"}


def test_a_pod_in_no_group_goes_anywhere() -> None:
    verdict = decide(member("m", "a1"), requested=make_pod("new", cpu="1"))
    assert rejections(verdict) == {}
    assert not any("RackColocation" in scores for scores in verdict.plugin_scores.values())


def test_an_eviction_makes_room_in_the_rack() -> None:
    verdict = decide(member("m", "a1", priority=1), member("n", "a2", priority=500), max_pods=2)
    assert verdict.outcome == Outcome.PREEMPTS
    assert victims_of(verdict) == {"a1": ["m"]}
    assert not [each for each in verdict.assumptions if "protects nothing" in each.message]


def test_the_whole_group_is_replaced_where_it_stands_on_one_node() -> None:
    """The only two members go from a1 for want of CPU; the rack is not torn by what is not there any more."""
    pods = [member(name, "a1", cpu="2", priority=1) for name in ("m", "n")]
    verdict = decide(*pods, requested=member("new", cpu="4", priority=100), max_pods=2)
    assert sorted(victims_of(verdict)["a1"]) == ["m", "n"]


def test_nodes_with_more_of_the_group_score_higher() -> None:
    verdict = decide(member("m", "a1"), member("n", "a1"), member("o", "a2"))
    scores = {node: by_plugin["RackColocation"] for node, by_plugin in verdict.plugin_scores.items()}
    assert scores == {"a1": 100, "a2": 50}


def test_the_first_of_a_group_is_not_scored() -> None:
    verdict = decide()
    assert sorted(verdict.plugin_scores) == ["a1", "a2", "b1", "b2"]
    assert not any("RackColocation" in scores for scores in verdict.plugin_scores.values())


def test_a_nominated_member_counts_on_its_node() -> None:
    """As with pod affinity: the rack is full with the nominated pod only when its node is evaluated."""
    nominated = member("n", priority=100, nominated="a2")
    verdict = decide(member("m", "a1"), nominated, max_pods=2)
    assert rejections(verdict) == NO_RACK | OUTSIDE_R1 | {"a2": (UNSCHEDULABLE, REASON_FULL_RACK)}


def test_labels_of_other_names() -> None:
    nodes = [make_node("a", labels={"zone": "z1"}), make_node("b", labels={"zone": "z2"})]
    there = make_pod("m", node="a", labels={"team": "blue"})
    requested = make_pod("new", labels={"team": "blue"})
    args = {"groupLabel": "team", "topologyKey": "zone"}
    verdict = decide_with(RackColocation, cluster_of(nodes, [there]), requested, args)
    assert rejections(verdict) == {"b": (UNRESOLVABLE, REASON_OTHER_RACK)}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param({"groupLabel": ""}, "groupLabel and topologyKey: Required value", id="no group label"),
        pytest.param({"maxPods": -1}, "maxPods: Invalid value: -1: must not be negative", id="a negative number"),
        pytest.param({"maxPods": 1.5}, "Expected `int`, got `float`", id="half a pod"),
        pytest.param({"rack": "r1"}, "unknown field `rack`", id="another field"),
    ],
)
def test_arguments_that_are_refused(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        scheduler_with(RackColocation, args)
    assert message in refused.value.message


def test_hostile_labels_do_no_harm() -> None:
    """Labels that the API would refuse: they are compared, and end up in facts, that reports show harmless."""
    evil = "\x1b[2J" + "x" * 10_000
    verdict = decide(member("m", "a1", group=evil), requested=member("new", group=evil, cpu="1"))
    assert rejections(verdict) == NO_RACK | OUTSIDE_R1
