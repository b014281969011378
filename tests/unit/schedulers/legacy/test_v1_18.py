"""kube-scheduler 1.18: what its filters return, which pods may preempt, which pods budgets protect, and the outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from kpreempt.errors import ConfigurationError
from kpreempt.model.affinity import Affinity, NodeAffinity, NodeSelector, PodAffinity, PodAffinityTerm, PodAntiAffinity
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.node import Node
from kpreempt.model.pod import (
    AWSElasticBlockStore,
    Container,
    ContainerPort,
    Pod,
    PodCondition,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
    Volume,
)
from kpreempt.model.quantity import quantity
from kpreempt.model.taints import Taint, Toleration
from kpreempt.schedulers.legacy.base.extenders import Filtered
from kpreempt.schedulers.legacy.base.node_info import NodeInfo
from kpreempt.schedulers.legacy.base.predicates import LegacyError, Victims
from kpreempt.schedulers.legacy.factory import legacy_scheduler
from kpreempt.verdict import Code, Outcome, Verdict
from tests.factories import NOW, make_budget, make_node, make_pod

FINAL, MENDABLE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE
WEB = LabelSelector(match_labels={"app": "web"})
HOST = "kubernetes.io/hostname"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NO_AFFINITY = "node(s) didn't match pod affinity/anti-affinity"


def decide(cluster: ClusterSnapshot, pod: Pod, **settings: Any) -> Verdict:
    scheduler = legacy_scheduler("kube-1.18", **settings)
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), pod)


def on(node: Node, pod: Pod, *others: Pod, **settings: Any) -> tuple[Code, list[str]]:
    """What the node's status is."""
    status = decide(ClusterSnapshot(nodes=[node], pods=list(others)), pod, **settings).filter["n1"]
    return status.code, status.reasons


def ported(*ports: ContainerPort) -> list[Container]:
    return [Container(name="main", ports=list(ports))]


def affinity(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(required=list(terms)))


def anti_affinity(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti_affinity=PodAntiAffinity(required=list(terms)))


EBS_DISK = [Volume(name="d", aws_elastic_block_store=AWSElasticBlockStore("vol-1", read_only=True))]
BY_HOST = PodAffinityTerm(HOST, WEB)

REFUSALS: list[tuple[str, Pod, Node, list[Pod], Code, list[str]]] = [
    (
        "a full node hides that the selector does not match, and is tried",
        make_pod("p", cpu="5", node_selector={"disk": "ssd"}),
        make_node("n1"),
        [],
        MENDABLE,
        ["Insufficient cpu"],
    ),
    (
        "no pod slot and no CPU are two reasons",
        make_pod("p", cpu="5"),
        make_node("n1", pods="0"),
        [],
        MENDABLE,
        ["Too many pods", "Insufficient cpu"],
    ),
    (
        "a taint is named with its value",
        make_pod("p"),
        make_node("n1", taints=[Taint("team", "a", "NoSchedule")]),
        [],
        FINAL,
        ["node(s) had taint {team: a}, that the pod didn't tolerate"],
    ),
    (
        "a cordoned node is out",
        make_pod("p"),
        make_node("n1", unschedulable=True),
        [],
        FINAL,
        ["node(s) were unschedulable"],
    ),
    (
        "a selector that does not match",
        make_pod("p", node_selector={"disk": "ssd"}),
        make_node("n1"),
        [],
        FINAL,
        ["node(s) didn't match node selector"],
    ),
    (
        "a node affinity without terms matches nothing",
        make_pod("p", affinity=Affinity(node_affinity=NodeAffinity(required=NodeSelector()))),
        make_node("n1"),
        [],
        FINAL,
        ["node(s) didn't match node selector"],
    ),
    (
        "a port on any address collides with one on an address",
        make_pod("p", containers=ported(ContainerPort(host_port=80))),
        make_node("n1"),
        [make_pod("q", node="n1", containers=ported(ContainerPort(host_port=80, host_ip="10.0.0.1")))],
        MENDABLE,
        ["node(s) didn't have free ports for the requested pod ports"],
    ),
    (
        "an EBS disk is never shared",
        make_pod("p", volumes=EBS_DISK),
        make_node("n1"),
        [make_pod("q", node="n1", volumes=EBS_DISK)],
        MENDABLE,
        ["node(s) had no available disk"],
    ),
    (
        "affinity to a pod that is not there",
        make_pod("p", affinity=affinity(BY_HOST)),
        make_node("n1"),
        [],
        FINAL,
        [NO_AFFINITY, "node(s) didn't match pod affinity rules"],
    ),
    (
        "one pod has to match all terms of an affinity",
        make_pod("p", affinity=affinity(BY_HOST, PodAffinityTerm(HOST, LabelSelector(match_labels={"tier": "gold"})))),
        make_node("n1"),
        [make_pod("q", node="n1", labels={"app": "web"}), make_pod("r", node="n1", labels={"tier": "gold"})],
        FINAL,
        [NO_AFFINITY, "node(s) didn't match pod affinity rules"],
    ),
    (
        "its own anti-affinity",
        make_pod("p", affinity=anti_affinity(BY_HOST)),
        make_node("n1"),
        [make_pod("q", node="n1", labels={"app": "web"})],
        MENDABLE,
        [NO_AFFINITY, "node(s) didn't match pod anti-affinity rules"],
    ),
    (
        "the anti-affinity of a pod that is there",
        make_pod("p", labels={"app": "web"}),
        make_node("n1"),
        [make_pod("q", node="n1", affinity=anti_affinity(BY_HOST))],
        MENDABLE,
        [NO_AFFINITY, "node(s) didn't satisfy existing pods anti-affinity rules"],
    ),
    (
        "a node without the topology label of a spread constraint is tried",
        make_pod("p", topology_spread_constraints=[TopologySpreadConstraint(1, "zone", label_selector=WEB)]),
        make_node("n1"),
        [],
        MENDABLE,
        ["node(s) didn't match pod topology spread constraints"],
    ),
]

PASSES: list[tuple[str, Pod, Node, list[Pod]]] = [
    (
        "a pod that asks for nothing is checked for a slot only",
        make_pod("p"),
        make_node("n1", cpu="1"),
        [make_pod("q", node="n1", cpu="3")],
    ),
    (
        "a cordoned node whose taint is tolerated",
        make_pod("p", tolerations=[Toleration(UNSCHEDULABLE, "Exists")]),
        make_node("n1", unschedulable=True),
        [],
    ),
    (
        "a taint that only asks pods to stay away",
        make_pod("p"),
        make_node("n1", taints=[Taint("team", "a", "PreferNoSchedule")]),
        [],
    ),
    (
        "one port on two addresses",
        make_pod("p", containers=ported(ContainerPort(host_port=80, host_ip="10.0.0.2"))),
        make_node("n1"),
        [make_pod("q", node="n1", containers=ported(ContainerPort(host_port=80, host_ip="10.0.0.1")))],
    ),
    (
        "the first of a group whose affinity is to itself, even without the topology label",
        make_pod("p", labels={"app": "web"}, affinity=affinity(PodAffinityTerm("rack", WEB))),
        make_node("n1"),
        [],
    ),
    (
        "a terminating pod does not count for the spread",
        make_pod("p", labels={"app": "web"}, topology_spread_constraints=[TopologySpreadConstraint(1, HOST)]),
        make_node("n1"),
        [],
    ),
]


@pytest.mark.parametrize(
    ("pod", "node", "others", "code", "reasons"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS]
)
def test_refusal(pod: Pod, node: Node, others: list[Pod], code: Code, reasons: list[str]) -> None:
    assert on(node, pod, *others) == (code, reasons)


@pytest.mark.parametrize(("pod", "node", "others"), [row[1:] for row in PASSES], ids=[row[0] for row in PASSES])
def test_node_that_fits(pod: Pod, node: Node, others: list[Pod]) -> None:
    verdict = decide(ClusterSnapshot(nodes=[node], pods=others), pod)
    assert (verdict.outcome, verdict.lands_on) == (Outcome.LANDS, ["n1"])


OVERHEAD = {"overhead": {"cpu": quantity("3")}}
INIT = [Container(name="init", resources=ResourceRequirements(requests={"cpu": quantity("3")}))]


@pytest.mark.parametrize(
    ("running", "gates", "fits"),
    [
        pytest.param(
            make_pod("q", node="n1", cpu="1", **OVERHEAD), {}, False, id="the overhead of running pods counts"
        ),
        pytest.param(
            make_pod("q", node="n1", cpu="1", **OVERHEAD), {"PodOverhead": False}, True, id="but not without its gate"
        ),
        pytest.param(
            make_pod("q", node="n1", cpu="1", init_containers=INIT), {}, False, id="and so does a big init container"
        ),
    ],
)
def test_what_running_pods_take(running: Pod, gates: Mapping[str, bool], fits: bool) -> None:
    verdict = decide(
        ClusterSnapshot(nodes=[make_node("n1")], pods=[running]), make_pod("p", cpu="2"), feature_gates=gates
    )
    assert (verdict.outcome == Outcome.LANDS) == fits


@pytest.mark.parametrize(
    ("gates", "outcome"),
    [
        pytest.param({}, Outcome.PREEMPTS, id="without the gate the policy means nothing"),
        pytest.param({"NonPreemptingPriority": True}, Outcome.UNSCHEDULABLE, id="with it the pod preempts nobody"),
    ],
)
def test_preemption_policy_never(gates: Mapping[str, bool], outcome: Outcome) -> None:
    cluster = ClusterSnapshot(nodes=[make_node("n1")], pods=[make_pod("q", node="n1", cpu="4")])
    pod = make_pod("p", cpu="4", priority=9, preemption_policy="Never", nominated="n1")
    verdict = decide(cluster, pod, feature_gates=gates)
    assert verdict.outcome == outcome
    assert not verdict.nominations_to_clear


def test_budgets_are_counted_down_until_one_is_violated() -> None:
    labels = {"app": "web", "tier": "gold"}
    pods = [make_pod(name, node="n1", cpu="1", labels=labels, started=NOW) for name in ("a", "b")]
    budgets = [make_budget("none", {"app": "web"}, 0), make_budget("one", {"tier": "gold"}, 1)]
    last = make_pod("c", node="n1", cpu="1", labels={"tier": "gold"}, priority=-1)
    cluster = ClusterSnapshot(nodes=[make_node("n1")], pods=[*pods, last], pod_disruption_budgets=budgets)
    verdict = decide(cluster, make_pod("p", cpu="4", priority=9))
    # "one" comes behind "none", so nothing is taken from it, and c violates nothing.
    assert verdict.candidates[0].num_pdb_violations == 2
    assert verdict.outcome == Outcome.PREEMPTS_VIOLATING_BUDGETS
    assert [each.subject for each in verdict.assumptions] == ["PodDisruptionBudgets"]


def test_no_word_of_the_order_of_budgets_where_it_decides_nothing() -> None:
    pods = [make_pod("a", node="n1", cpu="4", labels={"app": "web", "tier": "gold"})]
    budgets = [make_budget("none", {"app": "web"}, 0), make_budget("one", {"tier": "gold"}, 1)]
    cluster = ClusterSnapshot(nodes=[make_node("n1")], pods=pods, pod_disruption_budgets=budgets)
    assert not decide(cluster, make_pod("p", cpu="4", priority=9)).assumptions


def test_latest_start_of_the_highest_victims_wins() -> None:
    nodes = [make_node("n1"), make_node("n2"), make_node("n3")]
    starts = {"n1": NOW - timedelta(hours=3), "n2": NOW - timedelta(hours=1), "n3": NOW - timedelta(hours=2)}
    pods = [make_pod(f"q-{node}", node=node, cpu="4", started=start) for node, start in starts.items()]
    verdict = decide(ClusterSnapshot(nodes=nodes, pods=pods), make_pod("p", cpu="4", priority=9))
    assert verdict.nominated_nodes == ["n2"]
    assert verdict.selection is not None
    assert verdict.selection.rounds[-1].criterion == "latestStart"


def test_effects_come_in_order() -> None:
    waiting = make_pod("q", node="n1", cpu="2", started=NOW)
    condition = PodCondition(type="PodScheduled", status="False")
    assumed = Pod(waiting.metadata, waiting.spec, PodStatus(phase="Pending", start_time=NOW, conditions=[condition]))
    pods = [assumed, make_pod("r", node="n1", cpu="2"), make_pod("low", cpu="1", priority=1, nominated="n1")]
    verdict = decide(ClusterSnapshot(nodes=[make_node("n1")], pods=pods), make_pod("p", cpu="4", priority=9))
    message = "0/1 nodes are available: 1 Insufficient cpu."
    assert [(effect.action, effect.target, effect.text) for effect in verdict.effects] == [
        ("nominate", "pod shop/p", "status.nominatedNodeName=n1"),
        ("delete", "pod shop/q", "grace period 30 s"),
        ("rejectWaiting", "pod shop/q", "preempted"),
        ("event", "pod shop/q", "Normal Preempted: Preempted by shop/p on node n1"),
        ("delete", "pod shop/r", "grace period 30 s"),
        ("event", "pod shop/r", "Normal Preempted: Preempted by shop/p on node n1"),
        ("clearNomination", "pod shop/low", "status.nominatedNodeName is cleared"),
        ("event", "pod shop/p", f"Warning FailedScheduling: {message}"),
        ("setCondition", "pod shop/p", f"PodScheduled=False Unschedulable: {message}"),
    ]


def test_event_is_cut_and_the_condition_is_not() -> None:
    taints = [Taint(f"{'long' * 60}-{index}", "", "NoSchedule") for index in range(5)]
    nodes = [make_node(f"n{index}", taints=[taint]) for index, taint in enumerate(taints)]
    verdict = decide(ClusterSnapshot(nodes=nodes), make_pod("p"))
    event, condition = verdict.effects
    assert event.text.endswith(" ...")
    assert len(event.text.removeprefix("Warning FailedScheduling: ")) == 1024
    assert condition.text.endswith(verdict.message)


def test_selector_that_cannot_be_parsed_ends_the_attempt() -> None:
    broken = LabelSelector(match_expressions=[LabelSelectorRequirement("app", "In")])
    pod = make_pod("p", cpu="9", priority=9, affinity=affinity(PodAffinityTerm(HOST, broken)))
    verdict = decide(ClusterSnapshot(nodes=[make_node("n1")], pods=[make_pod("q", node="n1")]), pod)
    problem = "for 'in', 'notin' operators, values set can't be empty"
    assert verdict.message == f'rejected by "InterPodAffinity" at prefilter: calculating preFilterState: {problem}'
    assert (verdict.outcome, verdict.eligibility) == (Outcome.UNSCHEDULABLE, None)


class OnlyNode:
    """An extender that leaves one node, or fails."""

    name = "only"
    supports_preemption = True
    is_prioritizer = False

    def __init__(self, node: str, *, is_ignorable: bool = False) -> None:
        self._node = node
        self.is_ignorable = is_ignorable

    def is_interested(self, pod: Pod) -> bool:
        return True

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Filtered:
        names = [info.name for info in nodes]
        return Filtered([name for name in names if name == self._node], dict.fromkeys(names, "not this one"))

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims], node_infos: Mapping[str, NodeInfo]
    ) -> dict[str, Victims]:
        if not self._node:
            raise LegacyError("out of order")
        return {node: victims for node, victims in candidates.items() if node == self._node}


@pytest.mark.parametrize(
    ("extenders", "nominated"),
    [
        pytest.param([OnlyNode("n2")], ["n2"], id="an extender leaves the worse node"),
        pytest.param([OnlyNode("n3")], [], id="an extender leaves none"),
        pytest.param([OnlyNode("", is_ignorable=True)], ["n1"], id="one that fails may be ignored"),
        pytest.param([OnlyNode("")], [], id="or ends the preemption"),
    ],
)
def test_extenders_are_called_before_the_choice(extenders: list[OnlyNode], nominated: list[str]) -> None:
    pods = [make_pod("q", node="n1", cpu="4"), make_pod("r", node="n2", cpu="4", priority=1)]
    cluster = ClusterSnapshot(nodes=[make_node("n1"), make_node("n2")], pods=pods)
    assert decide(cluster, make_pod("p", cpu="4", priority=9), extenders=extenders).nominated_nodes == nominated


def test_extender_refuses_a_node_that_fits() -> None:
    verdict = decide(ClusterSnapshot(nodes=[make_node("n1")]), make_pod("p"), extenders=[OnlyNode("n2")])
    assert verdict.message == "0/1 nodes are available: 1 not this one."
    assert verdict.potential_nodes == ["n1"]


@pytest.mark.parametrize(
    ("predicates", "reasons"),
    [
        pytest.param(None, ["Insufficient cpu"], id="without predicates the default ones"),
        pytest.param([], ["node(s) were unschedulable"], id="two come always, and before the others"),
        pytest.param([{"name": "HostName"}], ["node(s) were unschedulable"], id="one predicate more"),
    ],
)
def test_predicates_of_a_policy(predicates: list[dict[str, Any]] | None, reasons: list[str]) -> None:
    node = make_node("n1", unschedulable=predicates is not None)
    policy = {"kind": "Policy"} if predicates is None else {"kind": "Policy", "predicates": predicates}
    assert on(node, make_pod("p", cpu="9"), policy=policy)[1] == reasons


def test_policy_may_ask_for_all_reasons_and_for_labels() -> None:
    presence = {"labelsPresence": {"labels": ["retiring"], "presence": False}}
    policy = {
        "predicates": [{"name": "NotRetiring", "argument": presence}, {"name": "GeneralPredicates"}],
        "alwaysCheckAllPredicates": True,
    }
    node = make_node("n1", labels={"retiring": "soon"})
    reasons = ["Insufficient cpu", "node(s) didn't have the requested labels"]
    assert on(node, make_pod("p", cpu="9"), policy=policy) == (FINAL, reasons)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param(["NoSuchThing"], 'Predicate type not found for "NoSuchThing"', id="a predicate that there is not"),
        pytest.param(
            ["GeneralPredicates", "PodFitsResources"], '"NodeResourcesFit" already registered', id="one plugin twice"
        ),
    ],
)
def test_policy_with_which_the_scheduler_ends(names: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        legacy_scheduler("kube-1.18", policy={"predicates": [{"name": name} for name in names]})
