"""Big clusters, on which the real scheduler looks at a part of the nodes: odds of a preemption, nodes to score."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.framework.interface import NodeToStatus
from kpreempt.schedulers.kube.preemption.odds import SampledCandidate, outcomes_in_any_order, search_order
from kpreempt.verdict import Code, Odds, Outcome, Sampling, SearchOrder, Status, Verdict
from tests.factories import NOW, decide, make_budget, make_node, make_pod
from tests.parity.answers import kpreempt_answer

SCENARIO = Path(__file__).resolve().parents[4] / "fixtures" / "odds" / "three-hundred-nodes.jsonl.gz"
UNRESOLVABLE = NodeToStatus().absent
RESTRICTED = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ["node(s) didn't satisfy plugin(s) [NodeAffinity]"])


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
    """The verdict if the search needs this number of candidates."""
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": wanted}
    return decide_with(cluster, "DefaultPreemption", args, **top)


def outcomes_of(odds: Odds | None) -> list[tuple[list[str], float]]:
    assert odds is not None
    return [(each.nodes, pytest.approx(each.probability)) for each in odds.outcomes]


@pytest.mark.parametrize(
    ("priorities", "guarded", "outcomes"),
    [
        pytest.param(
            [5, 1, 3, 2],
            frozenset(),
            [(["n1"], 1 / 2), (["n3"], 1 / 2)],
            id="the better of each two neighbours",
        ),
        pytest.param(
            [7, 7, 7, 7],
            frozenset(),
            [(["n0", "n1", "n2", "n3"], 1.0)],
            id="all equal: one of them wins from every start",
        ),
        pytest.param(
            [5, 1, 1, 1],
            frozenset({1, 2, 3}),
            [(["n0"], 1.0)],
            id="the search goes on until a candidate without violations is there",
        ),
        pytest.param(
            [1, 2, 3, 4],
            frozenset({0, 1, 2, 3}),
            [(["n0"], 1 / 2), (["n1"], 1 / 4), (["n2"], 1 / 4)],
            id="without any such candidate only the first ones found are kept",
        ),
        pytest.param(
            [5000, 5000, 2, 5000],
            frozenset(),
            [(["n2"], 1.0)],
            id="too few candidates: all nodes are looked at from every start",
        ),
    ],
)
def test_a_map_of_four_nodes_keeps_their_order_and_starts_anywhere(
    priorities: list[int], guarded: frozenset[int], outcomes: list[tuple[list[str], float]]
) -> None:
    odds = with_candidates(full_cluster(priorities, guarded=guarded), 2).odds
    assert odds is not None
    assert odds.order is SearchOrder.LIST
    assert odds.num_candidates == 2
    assert outcomes_of(odds) == outcomes


@pytest.mark.parametrize(
    ("priorities", "guarded", "wanted", "outcomes"),
    [
        pytest.param(
            [4, 1, 3, 2],
            frozenset(),
            2,
            [(["n1"], 3 / 6), (["n3"], 2 / 6), (["n2"], 1 / 6)],
            id="the best of each pair",
        ),
        pytest.param(
            [4, 1, 1, 2], frozenset(), 2, [(["n1", "n2"], 5 / 6), (["n3"], 1 / 6)], id="equal nodes share an outcome"
        ),
        pytest.param(
            [2, 3, 1, 1],
            frozenset({2, 3}),
            2,
            # Four pairs with just one of the two clean nodes, one with both, one with none, after which either comes.
            [(["n0"], 3 / 6 + 1 / 12), (["n1"], 2 / 6 + 1 / 12)],
            id="candidates with violations take places, and then the search goes on to one without",
        ),
        pytest.param(
            [1, 2, 3],
            frozenset({0, 1, 2}),
            2,
            [(["n0"], 2 / 3), (["n1"], 1 / 3)],
            id="where all violate, the first ones are kept",
        ),
        pytest.param([1, 2, 3], frozenset(), 3, [(["n0"], 1.0)], id="all candidates are found"),
        pytest.param([1, 2, 3], frozenset(), 0, [], id="no candidate is wanted"),
    ],
)
def test_in_any_order_the_sample_is_a_random_subset_of_the_candidates(
    priorities: list[int], guarded: frozenset[int], wanted: int, outcomes: list[tuple[list[str], float]]
) -> None:
    candidates = {
        f"n{index}": SampledCandidate(index in guarded, (-priority,)) for index, priority in enumerate(priorities)
    }
    counted = outcomes_in_any_order(candidates, wanted)
    assert [(each.nodes, pytest.approx(each.probability)) for each in counted] == outcomes


@pytest.mark.parametrize(
    ("refused", "absent", "is_list_known", "order"),
    [
        pytest.param(8, UNRESOLVABLE, True, SearchOrder.LIST, id="eight nodes in a map are not hashed"),
        pytest.param(8, UNRESOLVABLE, False, SearchOrder.SMALL_MAP, id="but one was put in before its turn"),
        pytest.param(8, RESTRICTED, True, SearchOrder.SMALL_MAP, id="but PreFilter chose them, in the order of a map"),
        pytest.param(9, UNRESOLVABLE, True, SearchOrder.SMALL_MAP, id="nine are hashed, in few groups"),
        pytest.param(99, UNRESOLVABLE, True, SearchOrder.SMALL_MAP, id="ninety-nine too"),
        pytest.param(100, UNRESOLVABLE, True, SearchOrder.ANY, id="from a hundred on any order is as likely"),
        pytest.param(0, Status(Code.UNSCHEDULABLE), True, SearchOrder.LIST, id="refused by PreFilter, all in the list"),
    ],
)
def test_the_order_of_the_search(refused: int, absent: Status, is_list_known: bool, order: SearchOrder) -> None:
    filtered = NodeToStatus()
    filtered.absent = absent
    filtered.statuses = {f"n{index}": Status(Code.UNSCHEDULABLE) for index in range(refused)}
    assert search_order(filtered, is_list_known=is_list_known) is order


def test_five_thousand_candidates_are_counted_in_no_time_and_the_odds_add_up() -> None:
    candidates = {f"n{index}": SampledCandidate(index % 3 == 0, (index,)) for index in range(5000)}
    begun = time.perf_counter()
    outcomes = outcomes_in_any_order(candidates, 500)
    assert time.perf_counter() - begun < 0.5
    assert sum(each.probability for each in outcomes) == pytest.approx(1, abs=1e-11)
    assert outcomes[0].nodes == ["n4999"]
    assert outcomes[0].probability == pytest.approx(0.1, abs=1e-12)


# What the scheduler's own code (v1.36.3) chose in 3,000 runs, in percent.
CHOSEN_OF_300 = {"node-0106": 34.3, "node-0231": 21.2, "node-0146": 14.9, "node-0038": 10.4, "node-0194": 6.8}


def test_the_odds_are_those_with_which_the_real_scheduler_chose_among_300_nodes() -> None:
    with gzip.open(SCENARIO, "rt") as lines:
        (scenario,) = map(json.loads, lines)
    odds = kpreempt_answer(scenario)["verdict"]["odds"]
    reported = {
        node: each["probability"] for each in odds["outcomes"] for node in each["nodes"] if len(each["nodes"]) == 1
    }
    assert [each["nodes"] for each in odds["outcomes"]][:5] == [[node] for node in CHOSEN_OF_300]
    for node, percentage in CHOSEN_OF_300.items():
        # Three standard deviations of as many runs.
        error = 3 * (reported[node] * (1 - reported[node]) / 3000) ** 0.5
        assert reported[node] == pytest.approx(percentage / 100, abs=error)
    assert odds["order"] == "any"


def test_there_are_no_odds_where_every_node_is_looked_at() -> None:
    verdict = with_candidates(full_cluster([5, 1, 3, 2]), 4)
    assert verdict.nominated_nodes == ["n1"]
    assert verdict.odds is None


def test_the_nomination_is_the_choice_over_all_nodes() -> None:
    assert with_candidates(full_cluster([5, 1, 3, 2]), 2).nominated_nodes == ["n1"]


def test_a_configuration_that_wants_no_candidate_leaves_no_winner() -> None:
    args = {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 0}
    odds = decide_with(full_cluster([5, 1, 3, 2]), "DefaultPreemption", args).odds
    assert odds is not None
    assert odds.num_candidates == 0
    assert odds.outcomes == []


def test_the_default_search_wants_a_hundred_candidates() -> None:
    odds = decide(full_cluster(list(range(120))), make_pod("new", cpu="4", priority=1000)).odds
    assert odds is not None
    assert odds.num_candidates == 100
    assert outcomes_of(odds)[:2] == [(["n0"], 100 / 120), (["n1"], 20 / 120 * 100 / 119)]
    # Twenty nodes are left out at most.
    assert {node for each in odds.outcomes for node in each.nodes} <= {f"n{index}" for index in range(21)}


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
