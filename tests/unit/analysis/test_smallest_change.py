"""The changes proposed for a node or for an unschedulable pod; a property test checks that they work."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain import node_report
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
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
from kpreempt.verdict import DefaultedField, Outcome, Proposal, Verdict
from tests.factories import NOW, make_budget, make_node, make_pod

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
API = LabelSelector(match_labels={"app": "api"})
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def explain(cluster: ClusterSnapshot, pod: Pod, **wanted: Any) -> Verdict:
    explain_input = wanted.pop("explain_input", ExplainInput(pod=pod))
    return explain_pods(AnalysisContext(cluster, scheduler_for(), NOW), [explain_input], **wanted)[0]


def with_which_it_lands(cluster: ClusterSnapshot, pod: Pod) -> list[Proposal]:
    verdict = explain(cluster, pod, proposes=True)
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    return verdict.proposals


def with_which_it_ends_on(node: str, cluster: ClusterSnapshot, pod: Pod) -> list[Proposal]:
    story = explain(cluster, pod, node_name=node).node_report
    assert story is not None and not story.is_chosen
    return story.proposals


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
            one_node(
                make_pod("low", node="a", cpu="3", priority=0), make_pod("high", node="a", cpu="700m", priority=99)
            ),
            make_pod("new", cpu="5", priority=50),
            ["--set=spec.containers[0].resources.requests.cpu=3300m"],
            id="the request that is free after evictions, not the smaller one that needs none",
        ),
        pytest.param(
            one_node(BUSY, memory="1Gi"),
            make_pod("new", cpu="2", memory="3Gi"),
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
            one_node(cpu="1"),
            make_pod("new", containers=containers({"cpu": "4"}, {"cpu": "4"})),
            [
                "--set=spec.containers[0].resources.requests.cpu=500m",
                "--set=spec.containers[1].resources.requests.cpu=500m",
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
            one_node(make_pod("api", node="a", priority=2**30, affinity=AWAY_FROM_API)),
            make_pod("new", labels={"app": "api"}),
            ["--without=pod/shop/api"],
            id="a pod whose anti-affinity refuses the pod, and that no user's priority outranks",
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
            one_node(make_pod("old", node="a", priority=7), pods="1"),
            make_pod("new", priority=3),
            ["--priority=8"],
            id="the lowest priority that is enough where the node has no room for another pod",
        ),
        pytest.param(
            one_node(make_pod("old", node="a", priority=1), pods="1"),
            make_pod("new", priority=3, preemption_policy="Never"),
            ["--preemption-policy=PreemptLowerPriority"],
            id="leave to evict",
        ),
        pytest.param(
            one_node(BUSY, taints=[TAINT]),
            make_pod("new", cpu="2"),
            [
                "--set=spec.containers[0].resources.requests.cpu=1",
                '--set=spec.tolerations[0]={"key":"dedicated","operator":"Equal","value":"gpu","effect":"NoSchedule"}',
            ],
            id="two changes where no single one is enough",
        ),
    ],
)
def test_the_smallest_change_for_a_pod_that_never_lands(cluster: ClusterSnapshot, pod: Pod, options: list[str]) -> None:
    assert with_which_it_lands(cluster, pod)[0].options == options


def test_the_limits_of_an_extended_resource_follow_its_request() -> None:
    gpus = {"example.com/gpu": "2"}
    node = make_node("a")
    offered = {**node.status.allocatable, "example.com/gpu": quantity("1")}
    node = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable=offered))
    proposals = with_which_it_lands(
        ClusterSnapshot(nodes=[node]), make_pod("new", containers=containers(gpus, limits=gpus))
    )
    path = "--set=spec.containers[0].resources.{}.example\\.com/gpu=1"
    assert proposals[0].options == [path.format("requests"), path.format("limits")]


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
    first = with_which_it_ends_on("a", cluster, make_pod("new", cpu="2", priority=10))[0]
    assert (first.options, first.victims, first.num_pdb_violations) == (["--budget=shop/web=1"], ["shop/web"], 0)


def test_requests_are_lowered_until_the_victims_on_the_node_are_cheap_enough() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("a", cpu="4"), make_node("b", cpu="4")],
        pods=[
            make_pod("a-high", node="a", cpu="1", priority=9),
            make_pod("a-low", node="a", cpu="3", priority=1),
            make_pod("b-mid", node="b", cpu="4", priority=5),
        ],
    )
    proposals = with_which_it_ends_on("a", cluster, make_pod("new", cpu="4", priority=10))
    assert proposals[0].options == ["--set=spec.containers[0].resources.requests.cpu=3"]
    assert proposals[0].victims == ["shop/a-low"]


def test_a_node_that_loses_by_score_is_chosen_without_the_preference_or_without_its_rival() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a", labels={"disk": "hdd"}), make_node("b", labels={"disk": "ssd"})])
    pod = make_pod("new", affinity=wanting(expression("disk", "ssd"), preferred=True))
    assert [each.options for each in with_which_it_ends_on("a", cluster, pod)] == [
        ["--set=spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution=null"],
        ["--cordon=b"],
        ["--set=spec.nodeSelector.kubernetes\\.io/hostname=a"],
    ]


def test_a_node_that_needs_evictions_while_others_do_not_is_chosen_where_these_are_left_out() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("a", cpu="2"), make_node("b", cpu="2")], pods=[make_pod("old", node="a", cpu="2")]
    )
    proposals = with_which_it_ends_on("a", cluster, make_pod("new", cpu="2", priority=5))
    assert [(each.options, each.victims) for each in proposals] == [
        (["--without=pod/shop/old"], []),
        (["--cordon=b"], ["shop/old"]),
        (["--set=spec.nodeSelector.kubernetes\\.io/hostname=a"], ["shop/old"]),
    ]


def test_a_pod_is_tied_by_the_name_of_a_node_that_has_no_host_name_label() -> None:
    nodes = [
        msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels={}))
        for node in (make_node("a", cpu="4"), make_node("b", cpu="8"), make_node("c", cpu="8"))
    ]
    field = '{"key":"metadata.name","operator":"In","values":["a"]}'
    proposals = with_which_it_ends_on("a", ClusterSnapshot(nodes=nodes), make_pod("new", cpu="1"))
    assert [each.options for each in proposals] == [
        [f'--set=spec.affinity.nodeAffinity.{REQUIRED}={{"nodeSelectorTerms":[{{"matchFields":[{field}]}}]}}']
    ]


def test_a_pod_that_keeps_the_room_by_its_nomination_is_proposed_to_go() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("a", cpu="2"), make_node("b", cpu="2")],
        pods=[make_pod("first", cpu="2", priority=10**9, nominated="a")],
    )
    proposals = with_which_it_ends_on("a", cluster, make_pod("new", cpu="1"))
    assert ["--without=pod/shop/first"] in [each.options for each in proposals]


def test_the_chosen_node_needs_no_change() -> None:
    story = explain(one_node(), make_pod("new"), node_name="a").node_report
    assert story is not None
    assert (story.is_chosen, story.rank, story.proposals, story.search.verdicts) == (True, 1, [], 0)


def test_the_story_says_at_which_rule_a_candidate_drops_out() -> None:
    cluster = ClusterSnapshot(
        nodes=two_candidates(),
        pods=[make_pod("x", node="a", cpu="2", priority=5), make_pod("y", node="b", cpu="2", priority=1)],
    )
    story = explain(cluster, make_pod("new", cpu="2", priority=10), node_name="a").node_report
    assert story is not None
    assert (story.eliminated_at, story.value, story.best) == ("highestPriority", 5, 1)


def test_no_change_is_sought_for_a_pod_that_lands_or_without_a_request() -> None:
    lands = explain(one_node(), make_pod("new"), proposes=True)
    assert (lands.proposals, lands.proposal_search) == ([], None)
    unasked = explain(one_node(), make_pod("new", cpu="9"))
    assert (unasked.proposals, unasked.proposal_search) == ([], None)


def test_very_big_clusters_are_only_searched_for_a_node_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_report, "MAX_NODES_SEARCHED", 1)
    cluster = ClusterSnapshot(nodes=two_candidates())
    skipped = explain(cluster, make_pod("new", cpu="9"), proposes=True)
    assert skipped.proposals == []
    assert skipped.proposal_search is not None and skipped.proposal_search.is_skipped
    named = explain(cluster, make_pod("new", cpu="9"), node_name="b").node_report
    assert named is not None
    assert named.proposals[0].nodes == ["a", "b"]


def test_a_toleration_is_put_behind_those_that_the_manifest_states() -> None:
    pod = make_pod("new", tolerations=[Toleration(key="own", operator="Exists"), Toleration(key="added")])
    explain_input = ExplainInput(
        pod=pod, admission=[DefaultedField("spec.tolerations[1]", "added", "an admission plugin")]
    )
    verdict = explain(one_node(taints=[TAINT]), pod, explain_input=explain_input, proposes=True)
    assert verdict.proposals[0].options[0].startswith('--set=spec.tolerations[1]={"key":"dedicated"')


def test_a_node_that_is_not_there_is_named_with_those_that_come_near() -> None:
    with pytest.raises(NotFoundError, match='node "nod-a" not found') as caught:
        explain(ClusterSnapshot(nodes=[make_node("node-a")]), make_pod("new"), node_name="nod-a")
    assert caught.value.hint == "node-a"
