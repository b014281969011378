"""Extenders in the cycle of today's scheduler: upstream's own cases beyond the recorded ones, and ours.

Each is put to extenders as objects and through a real HTTP server. Upstream's are from v1.36.3: ``extender_test.go``
and ``schedule_one_test.go`` of ``pkg/scheduler``, and ``test/integration/scheduler/extender``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from kpreempt.extenders import connect
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Container, Pod, ResourceRequirements
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.quantity import quantity
from kpreempt.phases import NO_PHASES
from kpreempt.schedulers.extender_protocol import CURRENT, ExtenderError, ExtenderSettings, HttpExtender
from kpreempt.schedulers.kube.configuration.loading import scheduler_from_configuration
from kpreempt.schedulers.kube.extender_session import ExtenderSession
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.interface import NodeToStatus
from kpreempt.schedulers.kube.plugin_table import EnabledPlugin
from kpreempt.schedulers.kube.profile import PointConfig, Profile
from kpreempt.schedulers.kube.scheduler import MIN_PODS_OF_TABLE, KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import Code, Outcome, Status, Verdict
from tests.conformance.made_up_extenders import (
    PREDICATES,
    PRIORITIZERS,
    SOME_ERROR,
    MadeUp,
    Predicate,
    Way,
    codes,
    name_of,
    only,
    prefers,
    reached,
    serving,
)
from tests.conformance.made_up_plugins import registry_of
from tests.factories import NOW, make_budget, make_node, make_pod

WAYS = pytest.mark.parametrize("way", list(Way), ids=lambda way: way.value)
TRUE, FALSE, ERROR, NODE1, NODE2 = (
    [PREDICATES[f"{name}PredicateExtender"]] for name in ("True", "False", "Error", "Node1", "Node2")
)
NODE1_BY_TEN, NODE2_BY_TEN, FAILING_BY_TEN = (
    [(PRIORITIZERS[f"{name}PrioritizerExtender"], 10)] for name in ("Node1", "Node2", "Error")
)
TWO = ("node1", "node2")


def decided(
    made_up: Sequence[MadeUp],
    way: Way,
    *,
    nodes: Sequence[str] = TWO,
    scores: Sequence[EnabledPlugin] = (),
    filters: Sequence[str] = ("TrueFilter",),
) -> Verdict:
    """The verdict on an empty pod, of a scheduler with these extenders and made-up plugins alone."""
    registry = registry_of([*filters, *(each.name for each in scores)], {})
    points = {
        "filter": PointConfig([EnabledPlugin(name) for name in filters]),
        "score": PointConfig(list(scores)),
    }
    asks = any(each.predicates or each.prioritizers for each in made_up)
    profile = Profile(plugins=(), points=points, has_extenders=asks)
    with reached(made_up, way) as extenders:
        scheduler = KubeScheduler([profile], registry=registry, extenders=extenders)
        cluster = ClusterSnapshot(nodes=[make_node(name) for name in nodes])
        return scheduler.decide(scheduler.prepare(cluster, now=NOW), make_pod("p"))


EQUAL = EnabledPlugin("EqualPrioritizerPlugin")


@pytest.mark.parametrize(
    ("made_up", "scores", "nodes", "host", "feasible"),
    [
        pytest.param(
            [MadeUp("e1", TRUE), MadeUp("e2", NODE1)], [EQUAL], TWO, "node1", ["node1"], id="one refuses a node"
        ),
        pytest.param(
            [MadeUp("e1", TRUE, FAILING_BY_TEN)], [], ["node1"], "node1", ["node1"], id="one fails to score a node"
        ),
        pytest.param(
            [MadeUp("e1", TRUE, NODE1_BY_TEN), MadeUp("e2", TRUE, NODE2_BY_TEN, weight=5)],
            [],
            TWO,
            "node2",
            ["node1", "node2"],
            id="the heavier of two wins",
        ),
        pytest.param(
            [MadeUp("e1", TRUE, NODE1_BY_TEN)],
            [EnabledPlugin("Node2Prioritizer", 20)],
            TWO,
            "node2",
            ["node1", "node2"],
            id="a heavy plugin beats an extender",
        ),
        pytest.param(
            [MadeUp("e1", ERROR, FAILING_BY_TEN, is_interested=False)],
            [EnabledPlugin("Node2Prioritizer")],
            TWO,
            "node2",
            ["node1", "node2"],
            id="one that is not interested is not asked",
        ),
        pytest.param(
            [MadeUp("e1", ERROR, ignorable=True), MadeUp("e2", NODE1)],
            [EQUAL],
            TWO,
            "node1",
            ["node1"],
            id="one that fails and may be ignored",
        ),
        pytest.param(
            [MadeUp("e1", TRUE), MadeUp("e2", NODE1)], [], TWO, "node1", ["node1"], id="all nodes are put to a filter"
        ),
    ],
)
@WAYS
def test_scheduler_with_extenders(
    made_up: list[MadeUp], scores: list[EnabledPlugin], nodes: list[str], host: str, feasible: list[str], way: Way
) -> None:
    verdict = decided(made_up, way, nodes=nodes, scores=scores)
    assert (verdict.outcome, verdict.lands_on, verdict.feasible_nodes) == (Outcome.LANDS, [host], feasible)
    assert verdict.sampling is None


@pytest.mark.parametrize(
    ("made_up", "message"),
    [
        pytest.param([MadeUp("e1", TRUE), MadeUp("e2", ERROR)], SOME_ERROR, id="the second fails"),
        pytest.param(
            [MadeUp("e1", TRUE), MadeUp("e2", FALSE)],
            '0/2 nodes are available: 1 FakeExtender: node "node1" failed, 1 FakeExtender: node "node2" failed.',
            id="the second refuses all",
        ),
        pytest.param(
            [MadeUp("e1", NODE2), MadeUp("e2", NODE1)],
            '0/2 nodes are available: 1 FakeExtender: node "node1" failed, 1 FakeExtender: node "node2" failed.',
            id="each refuses what the other does not",
        ),
    ],
)
@WAYS
def test_scheduler_with_extenders_that_leave_no_node(made_up: list[MadeUp], message: str, way: Way) -> None:
    verdict = decided(made_up, way)
    assert (verdict.outcome, verdict.message) == (Outcome.UNSCHEDULABLE, message)


def test_with_an_extender_that_only_binds_one_node_is_found() -> None:
    verdict = decided([MadeUp("e1", preemption="")], Way.OBJECT, filters=())
    assert verdict.sampling is not None
    assert (verdict.sampling.nodes_to_find, verdict.extender_calls) == (1, [])


PRE_FILTER = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ["node(s) didn't satisfy plugin(s) [PreFilter]"])
A_PASSES: list[Predicate] = [codes({"a": Code.SUCCESS}, Code.UNSCHEDULABLE)]
B_MAY_C_MAY_NOT: list[Predicate] = [
    codes({"a": Code.SUCCESS, "b": Code.UNSCHEDULABLE}, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
]


@pytest.mark.parametrize(
    ("made_up", "nodes", "statuses"),
    [
        pytest.param([MadeUp("e1", TRUE)], "a", {}, id="success"),
        pytest.param(
            [MadeUp("e1", A_PASSES)],
            "ab",
            {"b": (Code.UNSCHEDULABLE, 'FakeExtender: node "b" failed')},
            id="unschedulable",
        ),
        pytest.param(
            [
                MadeUp("e1", [codes({"c": Code.UNSCHEDULABLE_AND_UNRESOLVABLE}, Code.SUCCESS)]),
                MadeUp("e2", A_PASSES),
            ],
            "abc",
            {
                "b": (Code.UNSCHEDULABLE, 'FakeExtender: node "b" failed'),
                "c": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 'FakeExtender: node "c" failed and unresolvable'),
            },
            id="multiple extenders",
        ),
    ],
)
@WAYS
def test_find_nodes_that_pass_extenders(made_up: list[MadeUp], nodes: str, statuses: dict[str, Any], way: Way) -> None:
    filtered = NodeToStatus()
    filtered.absent = PRE_FILTER
    state = ClusterState(
        ClusterSnapshot(nodes=[make_node(name) for name in nodes]), behavior(), now=NOW, scheduler_names=frozenset()
    )
    with reached(made_up, way) as extenders:
        passing = ExtenderSession(extenders, state, make_pod("p"), NO_PHASES).filter(list(state.node_infos), filtered)
    assert [node_info.name for node_info in passing] == ["a"]
    assert {name: (status.code, *status.reasons) for name, status in filtered.statuses.items()} == statuses
    assert filtered.absent is PRE_FILTER


EXTENDED = "foo.com/bar"
MACHINES = [f"machine{number}" for number in range(1, 6)]


def test_scheduler_extender() -> None:
    """Upstream's integration test: of those that all three let pass the heaviest extender has its way."""
    first, second = only("machine1", "machine2", "machine3"), only("machine2", "machine3", "machine5")
    made_up = [
        MadeUp("extender1", [first], [(prefers("machine2"), 1)]),
        MadeUp("extender2", [second], [(prefers("machine3"), 1)]),
        MadeUp("extender3", [first], [(prefers("machine2"), 5)]),
    ]
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize"}
    managed = [{"name": EXTENDED, "ignoredByScheduler": True}]
    with serving(made_up) as url:
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [
                {"urlPrefix": f"{url}/extender1", "weight": 3, **verbs},
                {
                    "urlPrefix": f"{url}/extender2",
                    "weight": 4,
                    **verbs,
                    "bindVerb": "bind",
                    "managedResources": managed,
                },
                {"urlPrefix": f"{url}/extender3", "weight": 10, **verbs, "nodeCacheCapable": True},
            ],
        }
        scheduler = scheduler_from_configuration(configuration, connect=partial(connect, environment={}))
        cluster = ClusterSnapshot(nodes=[make_node(name) for name in MACHINES])
        resources = ResourceRequirements(limits={EXTENDED: quantity("1")}, requests={EXTENDED: quantity("1")})
        pod = make_pod("extender-test-pod", containers=[Container(name="container", resources=resources)])
        verdict = scheduler.decide(scheduler.prepare(cluster, now=NOW), pod)
    assert verdict.lands_on == ["machine2"]
    assert verdict.feasible_nodes == ["machine2", "machine3"]
    assert [(name_of(each.extender), each.verb, each.nodes_sent) for each in verdict.extender_calls] == [
        ("extender1", "filter", 5),
        ("extender2", "filter", 3),
        ("extender3", "filter", 2),
        ("extender1", "prioritize", 2),
        ("extender2", "prioritize", 2),
        ("extender3", "prioritize", 2),
    ]
    machine2 = {name_of(name): score for name, score in verdict.plugin_scores["machine2"].items() if "/" in name}
    assert machine2 == {"extender1": 300, "extender2": 40, "extender3": 5000}


BUSY = [make_pod(f"low-{node}", node=node, cpu="3", priority=-10) for node in TWO]


class Answering(HttpExtender):
    """An extender whose calls are answered one after the other: by an answer, or by an error that it is."""

    def __init__(self, *answers: Any, **settings: Any) -> None:
        self.requested: list[dict[str, Any]] = []
        self._answers = list(answers)
        verbs = {"filter_verb": "filter", "prioritize_verb": "", "preempt_verb": "", "node_cache_capable": True}
        stated = ExtenderSettings(**{"url_prefix": "http://x", "weight": 1, **verbs, **settings})
        super().__init__(stated, CURRENT, self._said)

    def _said(self, _: str, body: bytes) -> bytes:
        self.requested.append(json.loads(body))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer).encode()


def verdict_of(
    *extenders: HttpExtender, pod: Pod | None = None, nodes: Sequence[str] = TWO, pods: Sequence[Pod] = (), **more: Any
) -> Verdict:
    """The default scheduler's verdict with these extenders."""
    scheduler = KubeScheduler(
        [Profile(has_extenders=any(each.is_filter or each.is_prioritizer for each in extenders), **more)],
        extenders=extenders,
    )
    cluster = ClusterSnapshot(nodes=[make_node(name) for name in nodes], pods=list(pods))
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), pod or make_pod("p", cpu="1"))


def passing(*nodes: str) -> dict[str, Any]:
    """An answer that lets these nodes pass."""
    return {"NodeNames": list(nodes)}


NOMINATED = make_pod("p", cpu="1", nominated="node2")
DOWN = ExtenderError("it is down")


def test_a_nominated_node_is_evaluated_alone_and_taken() -> None:
    extender = Answering(passing("node2"), prioritize_verb="prioritize")
    verdict = verdict_of(extender, pod=NOMINATED)
    assert [each["NodeNames"] for each in extender.requested] == [["node2"]]
    assert (verdict.lands_on, verdict.feasible_nodes) == (["node2"], ["node2"])


@pytest.mark.parametrize("first", [passing(), DOWN], ids=["it is refused", "the extender fails"])
def test_where_the_nominated_node_is_refused_alone_all_are_put_to_the_extender_and_scores_decide(first: Any) -> None:
    on_2 = make_pod("low", node="node2", cpu="2")
    extender = Answering(first, passing("node1", "node2"))
    verdict = verdict_of(extender, pod=NOMINATED, pods=[on_2])
    assert [each["NodeNames"] for each in extender.requested] == [["node2"], ["node1", "node2"]]
    # Nothing says any more that it was nominated, and node1 is emptier.
    assert verdict.lands_on == ["node1"]


def test_a_node_that_comes_back_as_an_object_is_scored_without_its_pods() -> None:
    pods = [make_pod("low", node="node2", cpu="3")]
    nodes = [msgspec.to_builtins(make_node(name), enc_hook=str) for name in TWO]
    whole = Answering({"Nodes": {"items": nodes}}, node_cache_capable=False)
    verdict, by_name = verdict_of(whole, pods=pods), verdict_of(Answering(passing(*TWO)), pods=pods)
    assert by_name.lands_on == ["node1"]
    assert sorted(verdict.lands_on) == list(TWO)
    assert [each.returns_nodes for each in (*verdict.extender_calls, *by_name.extender_calls)] == [True, False]


def test_scores_of_nodes_that_come_back_as_objects_are_the_same_on_a_big_cluster() -> None:
    pods = [make_pod(f"low-{number}", node=TWO[number % 2], cpu="1m") for number in range(MIN_PODS_OF_TABLE + 2)]
    nodes = [msgspec.to_builtins(make_node(name), enc_hook=str) for name in TWO]
    whole = Answering({"Nodes": {"items": nodes}}, node_cache_capable=False)
    large = [make_node(name, pods="9999") for name in TWO]
    scheduler = KubeScheduler(extenders=[whole])
    big = scheduler.decide(scheduler.prepare(ClusterSnapshot(nodes=large, pods=pods), now=NOW), make_pod("p", cpu="1"))
    small = scheduler.decide(scheduler.prepare(ClusterSnapshot(nodes=large), now=NOW), make_pod("p", cpu="1"))
    assert big.plugin_scores == small.plugin_scores


def test_a_node_that_is_refused_without_a_word_names_the_extender() -> None:
    verdict = verdict_of(Answering(passing("node1")))
    assert verdict.filter["node2"] == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [], plugin="http://x")
    assert verdict.lands_on == ["node1"]


def test_what_an_extender_returns_for_a_node_that_was_not_sent_counts_as_upstream_counts_it() -> None:
    full = make_pod("low", node="node2", cpu="4", priority=-10)
    extender = Answering(
        {"NodeNames": [], "FailedNodes": {"node1": "no"}, "FailedAndUnresolvableNodes": {"node2": "never"}}
    )
    verdict = verdict_of(extender, pods=[full])
    assert verdict.filter["node2"] == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ["never"], plugin="http://x")
    assert verdict.potential_nodes == ["node1"]
    assert verdict.message.startswith("0/2 nodes are available: 1 never, 1 no.")


def test_an_extender_that_fails_is_named_and_what_the_filters_said_is_kept() -> None:
    full = make_pod("low", node="node2", cpu="4")
    verdict = verdict_of(Answering(DOWN), pods=[full])
    assert (verdict.outcome, verdict.message) == (Outcome.UNSCHEDULABLE, "it is down")
    assert verdict.reason == "the scheduler fails with an error of extender http://x: it is down"
    assert [status.is_success for status in verdict.filter.values()] == [True, False]
    assert [(each.nodes_sent, each.error) for each in verdict.extender_calls] == [(1, "it is down")]


def test_that_a_running_scheduler_puts_fewer_nodes_to_extenders_is_an_assumption() -> None:
    nodes = [f"n{number:03}" for number in range(200)]
    verdict = verdict_of(Answering(passing("n000", "n001")), nodes=nodes)
    assert verdict.lands_on == ["n000", "n001"]
    assert verdict.sampling is None
    (assumption,) = verdict.assumptions
    assert assumption.message == (
        "they were called with all 200 nodes that pass the filters; a running scheduler stops its search at 100 nodes"
        " and sends only those"
    )


@pytest.mark.parametrize(
    ("score", "weight", "given"),
    [
        pytest.param(2, 3, 60, id="ten times its weight"),
        pytest.param(-5, 1, -50, id="less than nothing"),
        pytest.param(2**62, 1, -(2**63), id="more than fits goes round, as in Go"),
    ],
)
def test_scores_count_as_go_counts_them(score: int, weight: int, given: int) -> None:
    extender = Answering(
        [{"Host": "node1", "Score": score}], filter_verb="", prioritize_verb="prioritize", weight=weight
    )
    assert verdict_of(extender).plugin_scores["node1"]["http://x"] == given


def victims(*pods: Pod, violations: int = 0) -> dict[str, Any]:
    """Victims on a node, as an extender names them."""
    return {"Pods": [{"UID": pod.metadata.uid} for pod in pods], "NumPDBViolations": violations}


def preempted(answer: dict[str, Any], pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget] = ()) -> Verdict:
    """The verdict on a pod that fits nowhere, with an extender that answers about its candidates."""
    extender = Answering({"NodeNameToMetaVictims": answer}, filter_verb="", preempt_verb="preempt")
    scheduler = KubeScheduler(extenders=[extender])
    cluster = ClusterSnapshot(
        nodes=[make_node(name) for name in TWO], pods=list(pods), pod_disruption_budgets=list(budgets)
    )
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), make_pod("p", cpu="4"))


GUARDED = make_pod("guarded", node="node1", cpu="3", priority=-10, labels={"app": "x"})
BUDGET = make_budget("b", {"app": "x"}, 0)


@pytest.mark.parametrize(
    ("answer", "outcome", "reported"),
    [
        pytest.param(
            {"node1": victims(GUARDED, violations=1)},
            Outcome.PREEMPTS_VIOLATING_BUDGETS,
            {},
            id="what it is told comes back",
        ),
        pytest.param(
            {"node1": victims(GUARDED)},
            Outcome.PREEMPTS_VIOLATING_BUDGETS,
            {"node1": 0},
            id="a number that is forgotten unmakes no violation",
        ),
        pytest.param(
            {"node2": victims(BUSY[1], violations=-1)},
            Outcome.PREEMPTS,
            {"node2": -1},
            id="a negative number makes none",
        ),
        pytest.param(
            {"node2": victims(BUSY[1], violations=7)}, Outcome.PREEMPTS, {"node2": 7}, id="nor does an invented one"
        ),
    ],
)
def test_budgets_are_violated_whatever_an_extender_counts(
    answer: dict[str, Any], outcome: Outcome, reported: dict[str, int]
) -> None:
    verdict = preempted(answer, [GUARDED, BUSY[1]], [BUDGET])
    assert (verdict.outcome, verdict.nominated_nodes) == (outcome, list(answer))
    assert verdict.extender_calls[0].violations == reported


def test_steps_are_reported_where_the_victims_are_those_that_were_found() -> None:
    other = make_pod("other", node="node1", cpu="1", priority=-10)
    changed = preempted({"node1": victims(other), "node2": victims(BUSY[1])}, [*BUSY, other])
    steps = {each.node: bool(each.steps) for each in changed.candidates}
    assert steps == {"node1": False, "node2": True}
    assert changed.extender_calls[0].changed == {"node1": ["shop/other"]}
