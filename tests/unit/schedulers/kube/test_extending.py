"""Extenders in the cycle of today's scheduler: upstream's own cases beyond the recorded ones, and ours.

Each is put to extenders as objects and through a real HTTP server. Upstream's are from v1.36.3: ``extender_test.go``
and ``schedule_one_test.go`` of ``pkg/scheduler``, and ``test/integration/scheduler/extender``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from kpreempt.extenders import connect
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Container, ResourceRequirements
from kpreempt.model.quantity import quantity
from kpreempt.phases import NO_PHASES
from kpreempt.schedulers.kube import KubeScheduler
from kpreempt.schedulers.kube.configuration.loading import scheduler_from_configuration
from kpreempt.schedulers.kube.extending import Extending
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.features import FeatureGates
from kpreempt.schedulers.kube.framework.interface import NodeToStatus
from kpreempt.schedulers.kube.profile import PointConfig, Profile
from kpreempt.schedulers.kube.registry import EnabledPlugin
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
from tests.factories import NOW, make_node, make_pod

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
    assert (verdict.outcome, verdict.message) == (Outcome.NEVER_LANDS, message)


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
        ClusterSnapshot(nodes=[make_node(name) for name in nodes]), FeatureGates(), now=NOW, scheduler_names=frozenset()
    )
    with reached(made_up, way) as extenders:
        passing = Extending(extenders, state, make_pod("p"), NO_PHASES).filter(list(state.node_infos), filtered)
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
    assert [(name_of(each.extender), each.verb, each.asked) for each in verdict.extender_calls] == [
        ("extender1", "filter", 5),
        ("extender2", "filter", 3),
        ("extender3", "filter", 2),
        ("extender1", "prioritize", 2),
        ("extender2", "prioritize", 2),
        ("extender3", "prioritize", 2),
    ]
    machine2 = {name_of(name): score for name, score in verdict.plugin_scores["machine2"].items() if "/" in name}
    assert machine2 == {"extender1": 300, "extender2": 40, "extender3": 5000}
