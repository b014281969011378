"""What the plugins of today's scheduler make of its queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kpreempt.analysis.algorithms import Scheduler, scheduler_for
from kpreempt.errors import PluginFailedError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.plugins import (
    SKIP,
    SUCCESS,
    FilterPlugin,
    Plugin,
    PreEnqueuePlugin,
    QueuedPodInfo,
    QueueSortPlugin,
    ScorePlugin,
    Status,
    unschedulable,
)
from kpreempt.schedulers.interface import NO_RULES, QueueRules, WaitingPod
from kpreempt.verdict import Outcome
from tests.factories import NOW, make_node, make_pod
from tests.foreign_plugins import LowestFirst, scheduler_with

CLUSTER = ClusterSnapshot(nodes=[make_node("n1")])
LOW, HIGH = (WaitingPod(make_pod(f"p{priority}", priority=priority), NOW) for priority in (1, 9))


class NoPods(PreEnqueuePlugin):
    def pre_enqueue(self, pod: Pod) -> Status:
        return unschedulable("no pods today")


class NoPodsBesideOthers(PreEnqueuePlugin):
    def pre_enqueue(self, pod: Pod) -> Status:
        return unschedulable("another pod runs") if any(self.handle.snapshot.pods()) else SUCCESS


class AllPods(PreEnqueuePlugin):
    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS


class AllNodes(FilterPlugin):
    def filter(self, state: Any, pod: Pod, node_info: Any) -> Status:
        return SUCCESS


class SameScore(ScorePlugin):
    def score(self, state: Any, pod: Pod, node_info: Any) -> int:
        return 0


def ends_the_process(*_: QueuedPodInfo) -> bool:
    raise SystemExit(1)


def rules_of(scheduler: Scheduler, cluster: ClusterSnapshot = CLUSTER) -> QueueRules:
    return scheduler.queue_rules(lambda: scheduler.prepare(cluster, now=NOW))


EXTENDED = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "extenders": [{"urlPrefix": "http://extender.example", "filterVerb": "filter"}],
}


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        pytest.param(scheduler_for(), (False, False, False), id="none of its own"),
        pytest.param(scheduler_for("kube-1.18"), (False, False, False), id="nor has an old scheduler any"),
        pytest.param(scheduler_with(LowestFirst), (True, False, False), id="an order, which refuses nobody"),
        pytest.param(scheduler_with(NoPods), (False, True, True), id="a plugin that holds pods back and waits for all"),
        pytest.param(scheduler_with(AllNodes), (False, False, True), id="a filter, which waits for every event"),
        pytest.param(scheduler_with(SameScore), (False, False, False), id="a score, which never refuses"),
        pytest.param(scheduler_for(configuration=EXTENDED), (False, False, True), id="an extender waits for all"),
    ],
)
def test_which_rules_there_are(scheduler: Scheduler, expected: tuple[bool, bool, bool]) -> None:
    rules = rules_of(scheduler)
    found = (rules.is_before is not None, rules.blocked_pods is not None, rules.awaits_everything)
    assert found == expected


def test_nothing_is_prepared_for_a_queue_that_no_plugin_from_outside_has_a_say_in() -> None:
    def never() -> Any:
        raise AssertionError

    assert scheduler_for().queue_rules(never) == NO_RULES
    assert scheduler_with(AllNodes).queue_rules(never).awaits_everything


def test_the_plugin_orders_pods() -> None:
    is_before = rules_of(scheduler_with(LowestFirst)).is_before
    assert is_before is not None
    assert (is_before(LOW, HIGH), is_before(HIGH, LOW), is_before(LOW, LOW)) == (True, False, False)


@pytest.mark.parametrize(
    ("plugins", "pod", "expected"),
    [
        pytest.param([NoPods], make_pod("p"), "NoPods", id="the plugin that holds it is named"),
        pytest.param([AllPods, NoPods], make_pod("p"), "NoPods", id="also where another lets it pass"),
        pytest.param([AllPods], make_pod("p"), "", id="none holds it"),
        pytest.param([NoPods], make_pod("p", scheduler_name="other"), "", id="a pod of another scheduler is not asked"),
    ],
)
def test_who_holds_a_pod_back(plugins: list[type[Plugin]], pod: Pod, expected: str) -> None:
    blocked_pods = rules_of(scheduler_with(*plugins)).blocked_pods
    assert blocked_pods is not None
    assert blocked_pods(pod) == expected


def test_a_pod_is_held_back_by_the_cluster_as_it_is_when_the_queue_asks() -> None:
    scheduler = scheduler_with(NoPodsBesideOthers)
    clusters = iter((CLUSTER, ClusterSnapshot(nodes=CLUSTER.nodes, pods=[make_pod("there", node="n1")]), CLUSTER))
    blocked_pods = scheduler.queue_rules(lambda: scheduler.prepare(next(clusters), now=NOW)).blocked_pods
    assert blocked_pods is not None
    assert [blocked_pods(make_pod("p")) for _ in range(3)] == ["", "NoPodsBesideOthers", ""]


@pytest.mark.parametrize(
    ("give", "message"),
    [
        pytest.param(lambda *_: {}["rank"], "Rogue raised KeyError: 'rank'", id="an exception"),
        pytest.param(ends_the_process, "Rogue raised SystemExit", id="that ends a process"),
        pytest.param(lambda *_: None, "less returned nothing, not a bool", id="nothing"),
        pytest.param(lambda *_: 1, "less returned an int, not a bool", id="a number"),
        pytest.param(lambda one, _: setattr(one, "timestamp", NOW), "can't set attribute", id="a pod that it changes"),
        pytest.param(lambda one, _: one.pod.spec.containers.clear(), "is read-only", id="a pod that it empties"),
    ],
)
def test_a_plugin_that_cannot_compare_ends_in_a_message_that_names_it(
    give: Callable[[QueuedPodInfo, QueuedPodInfo], Any], message: str
) -> None:
    class Rogue(QueueSortPlugin):
        def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
            return give(one, other)  # type: ignore[no-any-return]

    is_before = rules_of(scheduler_with(Rogue)).is_before
    assert is_before is not None
    with pytest.raises(PluginFailedError) as raised:
        is_before(LOW, HIGH)
    assert raised.value.message.startswith('comparing pods by QueueSort plugin "Rogue": ')
    assert message in raised.value.message


@pytest.mark.parametrize(
    ("give", "reason"),
    [
        pytest.param(lambda: unschedulable("no quota"), "no quota", id="a refusal is the reason"),
        pytest.param(lambda: SKIP, "", id="anything but success holds the pod"),
        pytest.param(
            lambda: None, 'running PreEnqueue plugin "Rogue": pre_enqueue returned nothing', id="nonsense does"
        ),
        pytest.param(
            lambda: {}["x"], 'running PreEnqueue plugin "Rogue": Rogue raised KeyError', id="an exception does"
        ),
    ],
)
def test_a_verdict_says_who_holds_the_pod_back_and_why(give: Callable[[], Any], reason: str) -> None:
    class Rogue(PreEnqueuePlugin):
        def pre_enqueue(self, pod: Pod) -> Status:
            return give()  # type: ignore[no-any-return]

    scheduler = scheduler_with(Rogue)
    prepared = scheduler.prepare(CLUSTER, now=NOW)
    verdict = scheduler.decide(prepared, make_pod("p"))
    assert (verdict.outcome, verdict.held_by) == (Outcome.NOT_SCHEDULED, "Rogue")
    assert verdict.reason.startswith(reason)
    assert scheduler.decide(prepared, make_pod("p"), is_popped=True).outcome == Outcome.LANDS
