"""The hooks of a preemption: when they are called, in which order, and what their results lead to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kpreempt.model.pod import Pod
from kpreempt.plugins import (
    SUCCESS,
    CycleState,
    NodeInfo,
    PluginError,
    PodInfo,
    PreemptionPlugin,
    Status,
    unschedulable,
)
from kpreempt.schedulers.go_sort import sorted_as_in_go
from kpreempt.verdict import Code, Outcome
from tests.factories import NOW, make_node, make_pod
from tests.foreign_plugins import scheduler_with
from tests.unit.plugins.running import cluster_of, decide_with, victims_of

STARTED = datetime(2026, 11, 1, tzinfo=UTC)
FULL = cluster_of(
    [make_node("node-a", cpu="2"), make_node("node-b", cpu="2")],
    [make_pod(name, node=node, cpu="1") for name, node in (("a1", "node-a"), ("a2", "node-a"), ("b1", "node-b"))]
    + [make_pod("b2", node="node-b", cpu="1", priority=1000)],
)


def requested(cpu: str = "1") -> Pod:
    return make_pod("incoming", cpu=cpu, priority=10)


def test_the_fit_is_checked_without_a_pod_first_and_then_with_each_that_is_put_back() -> None:
    calls: list[tuple[str, str]] = []

    class Fits(PreemptionPlugin):
        def check_fit(self, state: CycleState, pod: Pod, node_info: NodeInfo, put_back: PodInfo | None) -> Status:
            calls.append((node_info.name, put_back.pod.metadata.name if put_back else ""))
            if put_back is not None and put_back.pod.metadata.name == "a2":
                return unschedulable("a2 is not wanted")
            return SUCCESS

    verdict = decide_with(Fits, FULL, requested())
    # The pod put back last leaves no capacity, so the plugin is not called for it.
    assert calls == [("node-a", ""), ("node-a", "a2"), ("node-a", "a1"), ("node-b", "")]
    steps = {step.pod: step for candidate in verdict.candidates for step in candidate.steps}
    assert steps["shop/a2"].blocked_by == Status(Code.UNSCHEDULABLE, ["a2 is not wanted"], plugin="Fits")
    assert victims_of(verdict) == {"node-a": ["a2"], "node-b": ["b1"]}


def test_a_plugin_that_cannot_go_on_at_a_node_leaves_the_others_to_it() -> None:
    class Breaks(PreemptionPlugin):
        def is_eligible_pod(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
            if node_info.name == "node-a":
                raise PluginError("no word about node-a")
            return True

    verdict = decide_with(Breaks, FULL, requested())
    assert victims_of(verdict) == {"node-b": ["b1"]}
    assert verdict.dry_run["node-a"] == Status(Code.ERROR, ["no word about node-a"], plugin="Breaks")


def test_where_it_can_go_on_at_no_node_that_is_the_answer() -> None:
    class Breaks(PreemptionPlugin):
        def may_evict(self, state: CycleState, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
            raise PluginError("no word at all")

    verdict = decide_with(Breaks, FULL, requested())
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert "no word at all" in verdict.message


def test_words_of_its_own_for_a_node_without_victims() -> None:
    class Says(PreemptionPlugin):
        message_prefix = "alas: "

        def is_eligible_pod(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
            return False

        def no_victims_message(self, pod: Pod, node_info: NodeInfo) -> str:
            return f"nobody on {node_info.name} for {pod.metadata.name}"

    verdict = decide_with(Says, FULL, requested())
    assert verdict.dry_run["node-a"].message == "nobody on node-a for incoming"
    expected = "alas: 0/2 nodes are available: 1 nobody on node-a for incoming, 1 nobody on node-b for incoming."
    assert expected in verdict.message


@pytest.mark.parametrize(
    ("started", "number"),
    [
        pytest.param(STARTED, 12, id="that have started at once"),
        pytest.param(STARTED, 40, id="that have started at once, more than insertion sort is used for"),
        pytest.param(None, 12, id="that have not started"),
        pytest.param(None, 40, id="that have not started, more than insertion sort is used for"),
    ],
)
def test_equal_pods_are_evaluated_as_upstream_sorts_them(started: datetime | None, number: int) -> None:
    """Upstream sorts by "not more important": both ways true of pods that started at once, and never of the others."""
    seen: list[str] = []

    class Looks(PreemptionPlugin):
        def may_evict(self, state: CycleState, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
            seen.append(victim.pod.metadata.name)
            return False

    pods = [make_pod(f"p{index}", node="node-a", cpu="1", started=started) for index in range(number)]
    decide_with(Looks, cluster_of([make_node("node-a", cpu=str(number))], pods), requested())
    names = [pod.metadata.name for pod in pods]
    assert seen == sorted_as_in_go(names, lambda one, other: started is not None)


@pytest.mark.parametrize("lets_go", [True, False], ids=["it finds victims itself", "DefaultPreemption does after it"])
def test_the_rule_that_is_reported_is_that_of_the_plugin_whose_dry_run_is_reported(lets_go: bool) -> None:
    class OfItsOwn(PreemptionPlugin):
        def may_evict(self, state: CycleState, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
            return lets_go and victim.priority < pod.priority

    in_turn = [{"name": "OfItsOwn"}, {"name": "DefaultPreemption"}]
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"postFilter": {"disabled": [{"name": "*"}], "enabled": in_turn}}}],
    }
    scheduler = scheduler_with(OfItsOwn, configuration=configuration)
    verdict = scheduler.decide(scheduler.prepare(FULL, now=NOW), requested())
    assert verdict.nominated_nodes
    assert verdict.eviction_rule == ("OfItsOwn" if lets_go else "")
