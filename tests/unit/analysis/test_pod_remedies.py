"""The remedies for a pod and for a node; a property test checks that they keep their promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain import remedies as search
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.explain.single_edits import first_reaching
from kpreempt.errors import NotFoundError
from kpreempt.model.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
)
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector, NodeSelectorRequirement
from kpreempt.model.node import Node
from kpreempt.model.pod import Container, ContainerPort, Pod, ResourceRequirements, TopologySpreadConstraint
from kpreempt.model.quantity import quantity
from kpreempt.model.taints import Taint, Toleration
from kpreempt.verdict import Change, ChangeKind, DefaultedField, Outcome, Verdict
from kpreempt.verdict.remedies import Remedy, RemedyStage
from tests.factories import NOW, make_budget, make_node, make_pod, owned
from tests.remedies import applied

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
API = LabelSelector(match_labels={"app": "api"})
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def explain(cluster: ClusterSnapshot, pod: Pod, **wanted: Any) -> Verdict:
    explain_input = wanted.pop("explain_input", ExplainInput(pod=pod))
    return explain_pods(AnalysisContext(cluster, scheduler_for(), NOW), [explain_input], **wanted)[0]


def remedies_for(cluster: ClusterSnapshot, pod: Pod) -> list[Remedy]:
    """The remedies for an unschedulable pod."""
    verdict = explain(cluster, pod, proposes=True)
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    return verdict.remedies


def remedies_on(node: str, cluster: ClusterSnapshot, pod: Pod) -> list[Remedy]:
    """The remedies with which a pod ends up on the node."""
    report = explain(cluster, pod, node_name=node).node_report
    assert report is not None and not report.is_chosen
    return report.remedies


def one_node(*pods: Pod, **node: Any) -> ClusterSnapshot:
    return ClusterSnapshot(nodes=[make_node("a", **node)], pods=list(pods))


def containers(*requests: dict[str, str], limits: dict[str, str] | None = None) -> list[Container]:
    return [
        Container(
            name=f"c{index}",
            resources=ResourceRequirements(
                requests={name: quantity(amount) for name, amount in each.items()},
                limits={name: quantity(amount) for name, amount in (limits or {}).items()},
            ),
        )
        for index, each in enumerate(requests)
    ]


def wanting(*expressions: NodeSelectorRequirement, preferred: bool = False) -> Affinity:
    term = NodeSelectorTerm(match_expressions=list(expressions))
    if preferred:
        return Affinity(node_affinity=NodeAffinity(preferred=[PreferredSchedulingTerm(10, term)]))
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector([term])))


def expression(key: str, value: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key, "In", [value])


def port(number: int) -> list[Container]:
    return [Container(name="main", ports=[ContainerPort(container_port=number, host_port=number)])]


BUSY = make_pod("busy", node="a", cpu="3", priority=2000)
TAINT = Taint("dedicated", "gpu", "NoSchedule")
AWAY_FROM_API = Affinity(pod_anti_affinity=PodAntiAffinity(required=[PodAffinityTerm(HOSTNAME, API)]))
SPREAD = TopologySpreadConstraint(max_skew=1, topology_key=HOSTNAME, label_selector=API)


@pytest.mark.parametrize(
    ("cluster", "pod", "options"),
    [
        pytest.param(
            one_node(BUSY),
            make_pod("new", cpu="2"),
            ["--set=spec.containers[0].resources.requests.cpu=1"],
            id="the request that is free",
        ),
        pytest.param(
            one_node(BUSY, memory="1Gi"),
            make_pod("new", cpu="2", memory="2Gi"),
            [
                "--set=spec.containers[0].resources.requests.cpu=1",
                "--set=spec.containers[0].resources.requests.memory=1Gi",
            ],
            id="all requests that are too large, together",
        ),
        pytest.param(
            one_node(),
            make_pod("new", containers=containers({"cpu": "1"}, {"cpu": "4"})),
            ["--set=spec.containers[1].resources.requests.cpu=3"],
            id="the largest container gives up what is too much",
        ),
        pytest.param(
            one_node(cpu="2"),
            make_pod("new", containers=containers({"cpu": "2"}, {"cpu": "2"})),
            [
                "--set=spec.containers[0].resources.requests.cpu=1",
                "--set=spec.containers[1].resources.requests.cpu=1",
            ],
            id="all containers their share where one has too little",
        ),
        pytest.param(
            one_node(),
            make_pod("new", containers=containers({"cpu": "1"}), init_containers=containers({"cpu": "5"})),
            ["--set=spec.initContainers[0].resources.requests.cpu=4"],
            id="the init container that is too large",
        ),
        pytest.param(
            one_node(),
            make_pod("new", containers=containers({"cpu": "4"}), overhead={"cpu": quantity("500m")}),
            ["--set=spec.containers[0].resources.requests.cpu=3500m"],
            id="overhead stays",
        ),
        pytest.param(
            one_node(taints=[TAINT]),
            make_pod("new"),
            ['--set=spec.tolerations[0]={"key":"dedicated","operator":"Equal","value":"gpu","effect":"NoSchedule"}'],
            id="a toleration",
        ),
        pytest.param(one_node(unschedulable=True), make_pod("new"), ["--uncordon=a"], id="a cordoned node is opened"),
        pytest.param(
            one_node(labels={"disk": "hdd", "arch": "arm64"}),
            make_pod("new", node_selector={"disk": "ssd", "arch": "arm64"}),
            ["--set=spec.nodeSelector.disk=null"],
            id="the key of a node selector that does not hold",
        ),
        pytest.param(
            one_node(labels={"disk": "hdd", "arch": "arm64"}),
            make_pod("new", affinity=wanting(expression("arch", "arm64"), expression("disk", "ssd"))),
            [f"--set=spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[1]=null"],
            id="the expression of a node affinity that does not hold",
        ),
        pytest.param(
            one_node(),
            make_pod("new", affinity=wanting(expression("disk", "ssd"))),
            [f"--set=spec.affinity.nodeAffinity.{REQUIRED}=null"],
            id="the whole node affinity where nothing of it would remain",
        ),
        pytest.param(
            one_node(),
            make_pod("new", affinity=Affinity(pod_affinity=PodAffinity(required=[PodAffinityTerm(HOSTNAME, API)]))),
            [f"--set=spec.affinity.podAffinity.{REQUIRED}[0]=null"],
            id="a pod affinity term",
        ),
        pytest.param(
            one_node(make_pod("api", node="a", priority=9, labels={"app": "api"})),
            make_pod("new", affinity=AWAY_FROM_API),
            [f"--set=spec.affinity.podAntiAffinity.{REQUIRED}[0]=null"],
            id="an anti-affinity term",
        ),
        pytest.param(
            ClusterSnapshot(
                nodes=[make_node("a"), make_node("b", unschedulable=True)],
                pods=[make_pod(f"api-{index}", node="a", labels={"app": "api"}) for index in range(2)],
            ),
            make_pod("new", labels={"app": "api"}, topology_spread_constraints=[SPREAD]),
            ["--set=spec.topologySpreadConstraints[0].maxSkew=3"],
            id="the skew that would come about",
        ),
        pytest.param(
            one_node(make_pod("web", node="a", priority=9, containers=port(80))),
            make_pod("new", containers=port(80)),
            ["--set=spec.containers[0].ports[0].hostPort=null"],
            id="a host port",
        ),
        pytest.param(
            one_node(BUSY, taints=[TAINT]),
            make_pod("new", cpu="2"),
            [
                '--set=spec.tolerations[0]={"key":"dedicated","operator":"Equal","value":"gpu","effect":"NoSchedule"}',
                "--set=spec.containers[0].resources.requests.cpu=1",
            ],
            id="two changes where no single one is enough",
        ),
    ],
)
def test_the_first_remedy_of_an_unschedulable_pod(cluster: ClusterSnapshot, pod: Pod, options: list[str]) -> None:
    assert remedies_for(cluster, pod)[0].options == options


def test_the_limits_of_an_extended_resource_follow_its_request() -> None:
    gpus = {"example.com/gpu": "2"}
    node = make_node("a")
    offered = {**node.status.allocatable, "example.com/gpu": quantity("1")}
    node = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable=offered))
    remedies = remedies_for(ClusterSnapshot(nodes=[node]), make_pod("new", containers=containers(gpus, limits=gpus)))
    path = "--set=spec.containers[0].resources.{}.example\\.com/gpu=1"
    assert remedies[0].options == [path.format("requests"), path.format("limits")]


def two_candidates() -> list[Node]:
    return [make_node("a", cpu="2"), make_node("b", cpu="2")]


def test_a_candidate_that_violates_a_budget_is_chosen_once_the_budget_allows_it() -> None:
    cluster = ClusterSnapshot(
        nodes=two_candidates(),
        pods=[
            make_pod("web", node="a", cpu="2", priority=1, labels={"app": "web"}),
            make_pod("old", node="b", cpu="2", priority=5),
        ],
        pod_disruption_budgets=[make_budget("web", {"app": "web"}, 0)],
    )
    first = remedies_on("a", cluster, make_pod("new", cpu="2", priority=10))[0]
    assert (first.options, first.evicted) == (["--budget=shop/web=1"], ["shop/web"])


def test_requests_are_lowered_until_the_victims_on_the_node_are_cheap_enough() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("a", cpu="4"), make_node("b", cpu="4")],
        pods=[
            make_pod("a-high", node="a", cpu="1", priority=9),
            make_pod("a-low", node="a", cpu="3", priority=1),
            make_pod("b-mid", node="b", cpu="4", priority=5),
        ],
    )
    remedies = remedies_on("a", cluster, make_pod("new", cpu="4", priority=10))
    assert remedies[0].options == ["--set=spec.containers[0].resources.requests.cpu=3"]
    assert remedies[0].evicted == ["shop/a-low"]


def test_a_node_may_be_reached_by_a_change_and_evictions() -> None:
    cluster = one_node(make_pod("low", node="a", cpu="4"), taints=[TAINT])
    first = remedies_on("a", cluster, make_pod("new", cpu="2", priority=10))[0]
    assert [change.kind for change in first.changes] == [ChangeKind.TOLERATION]
    assert (first.nodes, first.evicted) == (["a"], ["shop/low"])


def test_a_node_that_loses_by_score_is_chosen_without_the_preference_or_without_its_rival() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a", labels={"disk": "hdd"}), make_node("b", labels={"disk": "ssd"})])
    pod = make_pod("new", affinity=wanting(expression("disk", "ssd"), preferred=True))
    assert [each.options for each in remedies_on("a", cluster, pod)] == [
        ["--set=spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution=null"],
        ["--set=spec.nodeSelector.kubernetes\\.io/hostname=a"],
        ["--cordon=b"],
    ]


def test_no_pod_is_removed_so_that_a_node_is_chosen() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("a", cpu="2"), make_node("b", cpu="2")], pods=[make_pod("old", node="a", cpu="2")]
    )
    remedies = remedies_on("a", cluster, make_pod("new", cpu="2", priority=5))
    assert [(each.options, each.evicted) for each in remedies] == [
        (["--set=spec.nodeSelector.kubernetes\\.io/hostname=a"], ["shop/old"]),
        (["--cordon=b"], ["shop/old"]),
    ]


def test_a_pod_is_tied_by_the_name_of_a_node_that_has_no_host_name_label() -> None:
    nodes = [
        msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels={}))
        for node in (make_node("a", cpu="4"), make_node("b", cpu="8"), make_node("c", cpu="8"))
    ]
    field = '{"key":"metadata.name","operator":"In","values":["a"]}'
    remedies = remedies_on("a", ClusterSnapshot(nodes=nodes), make_pod("new", cpu="1"))
    assert [each.options for each in remedies] == [
        [f'--set=spec.affinity.nodeAffinity.{REQUIRED}={{"nodeSelectorTerms":[{{"matchFields":[{field}]}}]}}']
    ]


def test_the_chosen_node_needs_no_change() -> None:
    report = explain(one_node(), make_pod("new"), node_name="a").node_report
    assert report is not None
    assert (report.is_chosen, report.rank, report.remedies, report.search.tried) == (True, 1, [], 0)


def test_the_report_on_a_candidate_says_which_criterion_eliminates_it() -> None:
    cluster = ClusterSnapshot(
        nodes=two_candidates(),
        pods=[make_pod("x", node="a", cpu="2", priority=5), make_pod("y", node="b", cpu="2", priority=1)],
    )
    report = explain(cluster, make_pod("new", cpu="2", priority=10), node_name="a").node_report
    assert report is not None
    assert (report.eliminated_at, report.value, report.best) == ("highestPriority", 5, 1)


def test_no_remedy_is_searched_for_a_pod_that_lands_or_without_a_request() -> None:
    lands = explain(one_node(), make_pod("new"), proposes=True)
    assert (lands.remedies, lands.remedy_search) == ([], None)
    not_requested = explain(one_node(), make_pod("new", cpu="9"))
    assert (not_requested.remedies, not_requested.remedy_search) == ([], None)


def test_a_toleration_is_appended_to_those_of_the_manifest() -> None:
    pod = make_pod("new", tolerations=[Toleration(key="own", operator="Exists"), Toleration(key="added")])
    explain_input = ExplainInput(
        pod=pod, admission=[DefaultedField("spec.tolerations[1]", "added", "an admission plugin")]
    )
    verdict = explain(one_node(taints=[TAINT]), pod, explain_input=explain_input, proposes=True)
    assert verdict.remedies[0].options[0].startswith('--set=spec.tolerations[1]={"key":"dedicated"')


def test_a_node_that_is_not_there_is_named_with_those_that_come_near() -> None:
    with pytest.raises(NotFoundError, match='node "nod-a" not found') as caught:
        explain(ClusterSnapshot(nodes=[make_node("node-a")]), make_pod("new"), node_name="nod-a")
    assert caught.value.hint == "node-a"


AWAY_FROM_X = Affinity(
    pod_anti_affinity=PodAntiAffinity(required=[PodAffinityTerm(HOSTNAME, LabelSelector(match_labels={"app": "x"}))])
)
PARTLY_FREE = ClusterSnapshot(
    nodes=[make_node("a", cpu="4"), make_node("b", cpu="4")],
    pods=[
        make_pod("x", node="a", cpu="3", priority=10, labels={"app": "x"}),
        make_pod("y", node="b", cpu="2500m", priority=10),
    ],
)


def test_a_preempting_pod_could_request_what_is_free_instead() -> None:
    pod = make_pod("new", cpu="2", priority=1000)
    verdict = explain(PARTLY_FREE, pod, proposes=True)
    assert verdict.outcome == Outcome.PREEMPTS
    first = verdict.remedies[0]
    assert first.changes == [Change(ChangeKind.REQUEST, "cpu", 2000, 1500)]
    assert (first.nodes, first.evicted) == (["b"], [])
    lowered = explain(*applied(PARTLY_FREE, pod, first), proposes=True)
    assert (lowered.outcome, lowered.lands_on, lowered.remedies) == (Outcome.LANDS, ["b"], [])


def test_no_remedy_of_a_preempting_pod_evicts() -> None:
    remedies = explain(PARTLY_FREE, make_pod("new", cpu="2", priority=1000), proposes=True).remedies
    assert {each.stage for each in remedies} == {RemedyStage.REQUESTER, RemedyStage.CAPACITY}
    assert not any(each.evicted for each in remedies)


@pytest.mark.parametrize(
    ("cluster", "pod"),
    [
        pytest.param(one_node(make_pod("x", node="a", cpu="3100m")), make_pod("new", cpu="2"), id="more than half"),
        pytest.param(
            one_node(make_pod("x", node="a", cpu="3"), memory="1Gi"),
            make_pod("new", cpu="2", memory="3Gi"),
            id="more than half of one of two resources",
        ),
        pytest.param(one_node(make_pod("x", node="a", cpu="4")), make_pod("new", cpu="2"), id="nothing is free"),
        pytest.param(one_node(make_pod("x", node="a"), pods="1"), make_pod("new", cpu="2"), id="no pod slot"),
        pytest.param(
            one_node(), make_pod("new", containers=containers({"example.com/gpu": "1"})), id="the only device"
        ),
        pytest.param(
            one_node(), make_pod("new", cpu="4", overhead={"cpu": quantity("5")}), id="the overhead alone is too much"
        ),
    ],
)
def test_requests_are_not_lowered_too_far(cluster: ClusterSnapshot, pod: Pod) -> None:
    kinds = {change.kind for each in remedies_for(cluster, pod) for change in each.changes}
    assert ChangeKind.REQUEST not in kinds


# Only pods without a memory request fit on the spare node.
SPARE = make_node("spare", cpu="100", memory="1Gi")


def wide(cpu: str = "2", **spec: Any) -> Pod:
    """A pod that does not fit on the spare node, even with half its requests."""
    return make_pod("new", cpu=cpu, memory="4Gi", **spec)


def running(name: str, node: str, priority: int, *, cpu: str = "2", **spec: Any) -> Pod:
    """A pod that is replaced after an eviction."""
    return owned(make_pod(name, node=node, cpu=cpu, priority=priority, **spec), "ReplicaSet", name)


def full(*priorities: int) -> ClusterSnapshot:
    """A node for each priority, filled by one pod of that priority, and a spare node for evicted pods."""
    return ClusterSnapshot(
        nodes=[*(make_node(f"n{index}", cpu="2") for index in range(len(priorities))), SPARE],
        pods=[running(f"p{index}", f"n{index}", each) for index, each in enumerate(priorities)],
    )


def priorities_of(remedies: Sequence[Remedy]) -> list[int | None]:
    return [change.after for each in remedies for change in each.changes if change.kind is ChangeKind.PRIORITY]


@pytest.mark.parametrize(
    ("cluster", "pod", "expected"),
    [
        pytest.param(full(10_000, 10), wide(priority=10), 11, id="of the node on which it is lowest"),
        pytest.param(full(*range(1000, 1040), 7), wide(), 8, id="of all nodes, not only of the closest ones"),
        pytest.param(
            msgspec.structs.replace(full(50, 60), nodes=[make_node("n0", taints=[TAINT]), *full(50, 60).nodes[1:]]),
            wide(),
            61,
            id="not of a node that rejects the pod at every priority",
        ),
        pytest.param(
            ClusterSnapshot(
                nodes=[make_node("a", cpu="4"), make_node("b", cpu="4"), SPARE],
                pods=[
                    *(running(f"a{each}", "a", each, cpu="1") for each in (1, 2, 3, 40)),
                    *(running(f"b{each}", "b", each) for each in (4, 30)),
                ],
            ),
            wide(cpu="4"),
            31,
            id="higher than all pods that must leave the node",
        ),
    ],
)
def test_the_lowest_priority(cluster: ClusterSnapshot, pod: Pod, expected: int) -> None:
    remedies = remedies_for(cluster, pod)
    assert priorities_of(remedies) == [expected]
    assert remedies[-1].evicted
    after = explain(*applied(cluster, pod, remedies[-1]))
    assert (after.outcome, after.nominated_nodes) == (Outcome.PREEMPTS, remedies[-1].nodes)


@pytest.mark.parametrize("priority", [999_999_999, 1_000_000_000])
def test_no_priority_that_users_cannot_set(priority: int) -> None:
    expected = [1_000_000_000] if priority == 999_999_999 else []
    assert priorities_of(remedies_for(full(priority), wide())) == expected


def test_priorities_are_tried_one_by_one_if_pods_required_by_affinity_may_be_evicted() -> None:
    term = PodAffinityTerm(HOSTNAME, LabelSelector(match_labels={"app": "db"}))
    cluster = ClusterSnapshot(
        nodes=[make_node("a", cpu="3"), SPARE],
        pods=[running("low", "a", 5), running("db", "a", 9, cpu="1", labels={"app": "db"})],
    )
    assert priorities_of(remedies_for(cluster, wide(affinity=Affinity(pod_affinity=PodAffinity(required=[term]))))) == [
        6
    ]


def test_a_pod_may_preempt_if_all_victims_run_again() -> None:
    never = wide(priority=3, preemption_policy="Never")
    last = remedies_for(full(1), never)[-1]
    assert (last.options, last.evicted) == (["--preemption-policy=PreemptLowerPriority"], ["shop/p0"])


def test_remedies_that_evict_come_last() -> None:
    cluster = full(10)
    tainted = make_node("tainted", cpu="2", taints=[TAINT])
    remedies = remedies_for(msgspec.structs.replace(cluster, nodes=[*cluster.nodes, tainted]), wide(priority=10))
    assert [each.stage for each in remedies] == [RemedyStage.REQUESTER, RemedyStage.CAPACITY, RemedyStage.PRIORITY]


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(msgspec.structs.replace(full(1), nodes=full(1).nodes[:1]), id="a victim finds no other node"),
        pytest.param(
            msgspec.structs.replace(full(1), pods=[make_pod("p0", node="n0", cpu="2", priority=1)]),
            id="no controller replaces a victim",
        ),
        pytest.param(
            msgspec.structs.replace(
                full(1),
                pods=[running("p0", "n0", 1, labels={"app": "web"})],
                pod_disruption_budgets=[make_budget("web", {"app": "web"}, 0)],
            ),
            id="a PodDisruptionBudget is violated",
        ),
    ],
)
@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(wide(), id="a higher priority"),
        pytest.param(wide(priority=5, preemption_policy="Never"), id="preemption"),
    ],
)
def test_no_eviction_that_makes_something_worse(cluster: ClusterSnapshot, pod: Pod) -> None:
    assert {each.stage for each in remedies_for(cluster, pod)} <= {RemedyStage.CAPACITY}


def test_a_node_that_is_reserved_for_a_nominated_pod_is_not_taken_from_it() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("a", cpu="2")], pods=[make_pod("first", cpu="2", priority=5, nominated="a")]
    )
    remedies = remedies_for(cluster, make_pod("new", cpu="2", priority=3, preemption_policy="Never"))
    assert {each.stage for each in remedies} == {RemedyStage.CAPACITY}


def test_a_very_large_cluster_is_only_searched_for_a_new_node_or_for_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_MAX_NODES_SEARCHED", 1)
    cluster, pod = full(10_000, 10), make_pod("new", cpu="3", memory="4Gi")
    verdict = explain(cluster, pod, proposes=True)
    assert verdict.remedies == []
    assert verdict.remedy_search is not None and verdict.remedy_search.reason
    assert remedies_on("n1", cluster, make_pod("new", cpu="2", memory="4Gi"))
    monkeypatch.setattr(search, "_MAX_NODES", 1)
    assert explain(cluster, wide(), proposes=True).remedies == []


@pytest.mark.parametrize("only_grows", [True, False])
@pytest.mark.parametrize("number", range(1, 9))
def test_the_search_finds_the_first_priority_that_helps(number: int, only_grows: bool) -> None:
    verdict = explain(full(1), make_pod("new"))
    for first in range(number + 1):
        found = first_reaching(
            range(number), lambda each, first=first: verdict if each >= first else None, only_grows=only_grows
        )
        assert (None if found is None else found[0]) == (first if first < number else None)
