"""Simulations in which out-of-tree plugins order the queue and hold pods back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.analysis.simulation.engine import Limits, SimulationStart, simulate
from kpreempt.errors import PluginFailedError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import OwnerReference
from kpreempt.model.pod import Pod, PodSchedulingGate
from kpreempt.plugins import (
    SUCCESS,
    Plugin,
    PreEnqueuePlugin,
    QueuedPodInfo,
    QueueSortPlugin,
    Status,
    unschedulable,
)
from kpreempt.verdict.simulation import Simulation, SimulationEnd, StepKind
from tests.factories import NOW, make_node, make_pod
from tests.foreign_plugins import Fails, LowestFirst, scheduler_with


class Contradictory(QueueSortPlugin):
    def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        return True


class OneOfATeam(PreEnqueuePlugin):
    """One running pod of a team at a time."""

    def pre_enqueue(self, pod: Pod) -> Status:
        team = pod.metadata.labels.get("team")
        busy = any(each.pod.metadata.labels.get("team") == team for each in self.handle.snapshot.pods())
        return unschedulable("the team runs a pod already") if team and busy else SUCCESS


def simulate_scenario(there: list[Pod], *coming: Pod, plugins: list[type[Plugin]], **start: Any) -> Simulation:
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu="2")], pods=there)
    found, *_ = simulate(
        cluster,
        SimulationStart(arriving=coming, **start),
        scheduler_with(*plugins),
        now=NOW,
        limits=Limits(attempts=200),
    )
    return found


def tale(found: Simulation) -> list[str]:
    """The steps in short."""
    return [f"{step.at:g} {step.kind} {step.pod.removeprefix('shop/')}" for step in found.steps]


def whole(name: str, priority: int = 0, **spec: Any) -> Pod:
    """A pod that needs a whole node, and evicts no pod."""
    return make_pod(name, cpu="2", priority=priority, preemption_policy="Never", **spec)


def of_team(name: str, **spec: Any) -> Pod:
    return make_pod(name, cpu="500m", labels={"team": "red"}, **spec)


@pytest.mark.parametrize(
    ("plugins", "lands", "waits"),
    [
        pytest.param([], "high", "low", id="the highest priority first"),
        pytest.param([LowestFirst], "low", "high", id="turned round by a plugin"),
    ],
)
def test_who_comes_first_gets_the_room(plugins: list[type[Plugin]], lands: str, waits: str) -> None:
    found = simulate_scenario([], whole("low", 1), whole("high", 9), plugins=plugins)
    assert found.starts_at == {f"shop/{lands}": 0}
    assert [pod.pod for pod in found.pending] == [f"shop/{waits}"]


def test_pods_that_have_waited_all_along_are_tried_in_the_plugins_order() -> None:
    there = [whole("low", 1), whole("high", 9), whole("old", node="n1", termination_grace_period_seconds=5)]
    found = simulate_scenario(there, plugins=[LowestFirst], leaving=["shop/old"])
    assert [step.pod for step in found.steps if step.kind is StepKind.BOUND] == ["shop/low"]


def test_an_order_that_contradicts_itself_ends() -> None:
    coming = [make_pod(f"p{index}", cpu="500m") for index in range(6)]
    found = simulate_scenario([], *coming, plugins=[Contradictory])
    assert (found.end, len(found.starts_at), len(found.pending)) == (SimulationEnd.SETTLED, 4, 2)


def test_without_an_order_there_is_no_simulation() -> None:
    with pytest.raises(PluginFailedError, match='QueueSort plugin "Fails": Fails raised ValueError: no rank'):
        simulate_scenario([], whole("a"), whole("b"), plugins=[Fails])


def test_a_pod_waits_as_long_as_a_plugin_holds_it_back() -> None:
    old = of_team("old", node="n1", termination_grace_period_seconds=40)
    found = simulate_scenario([old], of_team("new"), plugins=[OneOfATeam], leaving=["shop/old"])
    assert tale(found) == ["0 Terminating old", "0 Created new", "40 Terminated old", "40 Bound new"]


def test_a_pod_that_is_held_to_the_end_is_reported_with_the_plugin_and_keeps_nothing_going() -> None:
    too_big = make_pod("big", cpu="4")
    found = simulate_scenario([of_team("old", node="n1")], of_team("new"), too_big, plugins=[OneOfATeam])
    assert (found.end, found.seconds) == (SimulationEnd.SETTLED, 0)
    assert {pod.pod: pod.message for pod in found.pending}["shop/new"] == "held back by plugin OneOfATeam"


def test_a_pod_that_was_let_in_is_not_held_back_when_its_turn_comes() -> None:
    found = simulate_scenario([], of_team("a"), of_team("b"), plugins=[OneOfATeam])
    assert found.starts_at == {"shop/a": 0, "shop/b": 0}


def test_a_gate_comes_before_the_plugin() -> None:
    gated = of_team("new", scheduling_gates=[PodSchedulingGate("example.com/quota")])
    found = simulate_scenario([of_team("old", node="n1")], gated, plugins=[OneOfATeam])
    assert [pod.message for pod in found.pending] == ["scheduling gates: example.com/quota"]


def test_a_replacement_is_held_back_while_its_predecessor_leaves() -> None:
    owner = OwnerReference(kind="ReplicaSet", name="red", uid="red", api_version="apps/v1", controller=True)
    victim = of_team("old", node="n1", termination_grace_period_seconds=20)
    victim = msgspec.structs.replace(
        victim, metadata=msgspec.structs.replace(victim.metadata, owner_references=[owner])
    )
    found = simulate_scenario([victim], make_pod("new", cpu="1800m", priority=9), plugins=[OneOfATeam])
    replaced = [step for step in found.steps if step.pod.startswith("shop/red-")]
    assert [(step.at, step.kind) for step in replaced] == [(0, StepKind.CREATED), (20, StepKind.PENDING)]
