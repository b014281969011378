"""Big clusters, on which the real scheduler looks at a part of the nodes: odds of a preemption, nodes to score."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube import scheduler_from_configuration
from kpreempt.verdict import OddsGroup, Outcome, Sampling, Verdict
from tests.factories import NOW, decide, make_budget, make_node, make_pod


def full_cluster(priorities: list[int], *, guarded: frozenset[int] = frozenset()) -> ClusterSnapshot:
    """One node a priority, each full with one pod; the ``guarded`` ones are under a spent budget."""
    return ClusterSnapshot(
        nodes=[make_node(f"n{index}") for index in range(len(priorities))],
        pods=[
            make_pod(
                f"p{index}",
                node=f"n{index}",
                cpu="4",
                priority=priority,
                started=NOW,
                labels={"guarded": "yes"} if index in guarded else {},
            )
            for index, priority in enumerate(priorities)
        ],
        pod_disruption_budgets=[make_budget("spent", {"guarded": "yes"}, 0)],
    )


def decide_with(cluster: ClusterSnapshot, plugin: str = "", args: dict[str, Any] | None = None, **top: Any) -> Verdict:
    """The verdict on a pod of priority 1000 that fills a node, under a configuration."""
    profile = {"pluginConfig": [{"name": plugin, "args": args}] if plugin else []}
    scheduler = scheduler_from_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile],
            **top,
        }
    )
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), make_pod("new", cpu="4", priority=1000))


def with_candidates(cluster: ClusterSnapshot, wanted: int, **top: Any) -> Verdict:
    """The verdict where the search wants so many candidates."""
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": wanted}
    return decide_with(cluster, "DefaultPreemption", args, **top)


@pytest.mark.parametrize(
    ("priorities", "guarded", "groups"),
    [
        pytest.param(
            [5, 1, 3, 2],
            frozenset(),
            [OddsGroup(2, {"n1": 2}), OddsGroup(2, {"n3": 2})],
            id="the better of each two neighbours",
        ),
        pytest.param(
            [7, 7, 7, 7],
            frozenset(),
            [OddsGroup(4, {"n0": 2, "n1": 2, "n2": 2, "n3": 2})],
            id="all equal: each node is in the search from two starts",
        ),
        pytest.param(
            [5, 1, 1, 1],
            frozenset({1, 2, 3}),
            [OddsGroup(4, {"n0": 4})],
            id="the search goes on until a candidate without violations is there",
        ),
        pytest.param(
            [1, 2, 3, 4],
            frozenset({0, 1, 2, 3}),
            [OddsGroup(2, {"n0": 2}), OddsGroup(1, {"n1": 1}), OddsGroup(1, {"n2": 1})],
            id="without any such candidate only the first ones found are kept",
        ),
        pytest.param(
            [5000, 5000, 2, 5000],
            frozenset(),
            [OddsGroup(4, {"n2": 4})],
            id="too few candidates: all nodes are looked at from every start",
        ),
    ],
)
def test_the_starts_that_each_node_wins_with_two_candidates(
    priorities: list[int], guarded: frozenset[int], groups: list[OddsGroup]
) -> None:
    odds = with_candidates(full_cluster(priorities, guarded=guarded), 2).odds
    assert odds is not None
    assert odds.groups == groups
    assert odds.num_candidates == 2
    assert odds.starts == 4


def test_there_are_no_odds_where_every_node_is_looked_at() -> None:
    verdict = with_candidates(full_cluster([5, 1, 3, 2]), 4)
    assert verdict.nominated_nodes == ["n1"]
    assert verdict.odds is None


def test_the_nomination_is_the_choice_over_all_nodes() -> None:
    assert with_candidates(full_cluster([5, 1, 3, 2]), 2).nominated_nodes == ["n1"]


def test_a_configuration_that_wants_no_candidate_leaves_every_start_without_a_winner() -> None:
    args = {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 0}
    odds = decide_with(full_cluster([5, 1, 3, 2]), "DefaultPreemption", args).odds
    assert odds is not None
    assert odds.num_candidates == 0
    assert odds.groups == []


def test_the_default_search_wants_a_hundred_candidates() -> None:
    odds = decide(full_cluster(list(range(120))), make_pod("new", cpu="4", priority=1000)).odds
    assert odds is not None
    assert odds.num_candidates == 100
    assert odds.groups[0] == OddsGroup(100, {"n0": 100})
    assert {node for group in odds.groups[1:] for node in group.nodes} == {f"n{index}" for index in range(1, 21)}


def test_the_race_is_bounded_by_the_configured_workers() -> None:
    odds = with_candidates(full_cluster([5, 1, 3, 2]), 2, parallelism=3).odds
    assert odds is not None
    assert (odds.parallelism, odds.chunk_size) == (3, 2)


def free_cluster(nodes: int) -> ClusterSnapshot:
    return ClusterSnapshot(nodes=[make_node(f"n{index}") for index in range(nodes)])


@pytest.mark.parametrize(
    ("nodes", "percentage", "sampling"),
    [
        pytest.param(100, 0, None, id="a hundred nodes are all looked at"),
        pytest.param(101, 0, Sampling(101, 100, 50), id="a hundred and one are not"),
        pytest.param(500, 0, Sampling(500, 230, 46), id="the share falls by one percent every 125 nodes"),
        pytest.param(500, 90, Sampling(500, 450, 90), id="the configured share"),
        pytest.param(500, 5, Sampling(500, 100, 5), id="a hundred nodes at least"),
        pytest.param(500, 100, None, id="a share of 100 percent"),
    ],
)
def test_the_nodes_that_are_scored(nodes: int, percentage: int, sampling: Sampling | None) -> None:
    verdict = decide_with(free_cluster(nodes), percentageOfNodesToScore=percentage)
    assert verdict.outcome == Outcome.LANDS
    assert verdict.sampling == sampling
    assert len(verdict.feasible_nodes) == nodes


def test_without_plugins_that_score_the_first_node_is_taken() -> None:
    profile = {"plugins": {"score": {"disabled": [{"name": "*"}]}}}
    verdict = decide_with(free_cluster(3), profiles=[profile])
    assert verdict.sampling == Sampling(3, 1, 50)
    assert set(verdict.scores.values()) == {1}


def test_a_pod_that_fits_on_its_nominated_node_is_not_sampled() -> None:
    verdict = decide(free_cluster(200), make_pod("new", cpu="1", nominated="n7"))
    assert verdict.lands_on == ["n7"]
    assert verdict.sampling is None
