"""The odds match the real scheduler's sampled search, and so does the scoring."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpreempt.schedulers.kube.preemption.odds import SampledCandidate, outcomes_from_a_start
from tests.parity.answers import kpreempt_answer
from tests.parity.big_clusters import STARTS, Object, big_scenario, few_nodes, free_scenario
from tests.parity.differences import differences
from tests.parity.reference import Reference, Scenario

SCENARIO = Path(__file__).parents[2] / "fixtures" / "odds" / "three-hundred-nodes.jsonl.gz"
RUNS = 3000
# A correct count deviates by more standard deviations once in two million times.
SIGMAS = 5
# How far the order of a map, or the race of workers, may move an outcome: a percentage point.
SLACK = 0.01
# In a map of 9 to 99 nodes, as reported in the verdict.
SLACK_OF_SMALL_MAPS = 0.06


@pytest.fixture(scope="module")
def sampling(reference: Path) -> Iterator[Reference]:
    """The reference program, which repeats the search from every start."""
    running = Reference(reference, ["-offset", "all"])
    yield running
    running.close()


@pytest.fixture(scope="module")
def drawing(reference: Path) -> Iterator[Reference]:
    """The reference program, which repeats the entire search with all random choices."""
    running = Reference(reference, ["-draws", str(RUNS)])
    yield running
    running.close()


@pytest.fixture(scope="module")
def scoring(reference: Path) -> Iterator[Reference]:
    """The reference program, which searches for nodes to score from every start."""
    running = Reference(reference, ["-starts"])
    yield running
    running.close()


def off(probability: float, frequency: float, slack: float) -> bool:
    """Whether a frequency is too far from a probability to be random, beyond a known slack."""
    deviation = math.sqrt(max(probability * (1 - probability), 1 / RUNS) / RUNS)
    return abs(probability - frequency) > slack + SIGMAS * deviation


def check_frequencies(drawing: Reference, scenario: Scenario) -> str:
    """Compare the odds with how often the real search ends with each node; return the reported order."""
    real, ours = drawing.ask(scenario), kpreempt_answer(scenario)
    assert differences(real, ours) == []
    verdict, chosen = ours["verdict"], Counter(real["verdict"].get("drawn", {}).get("chosen", {}))
    if not verdict.get("candidates"):
        assert not chosen
        return "none"
    assert chosen.total() == RUNS
    # Without odds the choice is over all nodes.
    odds = verdict.get("odds", {"order": "all", "outcomes": [{"nodes": verdict["nominatedNodes"], "probability": 1}]})
    slack = {"any": SLACK, "smallMap": SLACK_OF_SMALL_MAPS, "list": SLACK, "all": 0.0}[odds["order"]]
    wrong = {
        each["nodes"][0]: (each["probability"], frequency)
        for each in odds["outcomes"]
        if off(each["probability"], frequency := sum(chosen[node] for node in each["nodes"]) / RUNS, slack)
    }
    assert not wrong
    reported = {node for each in odds["outcomes"] for node in each["nodes"]}
    assert sum(count for node, count in chosen.items() if node not in reported) <= slack * RUNS
    return str(odds["order"])


@pytest.mark.go
@pytest.mark.parametrize("seed", range(1, 17))
def test_the_real_search_matches_the_reported_odds(drawing: Reference, seed: int) -> None:
    assert check_frequencies(drawing, big_scenario(seed)) != "smallMap"


@pytest.mark.go
@pytest.mark.parametrize(
    ("parallelism", "nodes"),
    # In list order the count is for one worker: how many workers race depends on the machine.
    [*((1, nodes) for nodes in (3, 6, 8, 9, 14, 28, 60, 112)), *((16, nodes) for nodes in (9, 14, 28, 60, 112))],
)
def test_few_nodes_have_a_fixed_order(drawing: Reference, nodes: int, parallelism: int) -> None:
    expected = "list" if nodes <= 8 else "smallMap" if nodes < 100 else "any"
    assert check_frequencies(drawing, few_nodes(nodes, nodes // 3, parallelism)) == expected


@pytest.mark.go
def test_three_hundred_nodes_with_budgets(drawing: Reference) -> None:
    with gzip.open(SCENARIO, "rt") as lines:
        (scenario,) = map(json.loads, lines)
    assert check_frequencies(drawing, scenario) == "any"


@pytest.mark.go
@pytest.mark.parametrize("seed", range(1, 25))
def test_from_every_start_of_the_list_the_real_search_ends_as_counted(sampling: Reference, seed: int) -> None:
    scenario = big_scenario(seed)
    real, ours = sampling.ask(scenario)["verdict"], kpreempt_answer(scenario)["verdict"]
    sampled = real["sampled"]
    candidates = {each["node"]: _sampled(each, scenario) for each in ours.get("candidates", [])}
    outcomes = outcomes_from_a_start(real["potentialNodes"], candidates, sampled["numCandidates"])
    starts = [set(start["chosen"]) for start in sampled["starts"]]
    counted = {
        tuple(each.nodes): sum(start <= set(each.nodes) for start in starts if start) / len(starts) for each in outcomes
    }
    assert counted == {tuple(each.nodes): pytest.approx(each.probability) for each in outcomes}
    assert sum(counted.values()) == pytest.approx(1 if candidates else 0)


def _sampled(candidate: Object, scenario: Scenario) -> SampledCandidate:
    """A candidate with its rank by the rules of the choice after the first."""
    pods = {f"default/{each['metadata']['name']}": each for each in scenario["objects"] if each["kind"] == "Pod"}
    victims = [pods[key] for key in candidate["victims"]]
    priorities = [each["spec"]["priority"] for each in victims]
    starts = [
        STARTS.index(each["status"]["startTime"]) for each in victims if each["spec"]["priority"] == max(priorities)
    ]
    total = sum(priority + 2**31 for priority in priorities)
    violations = candidate["numPDBViolations"]
    return SampledCandidate(violations > 0, (-violations, -max(priorities), -total, -len(victims), min(starts)))


def test_the_big_clusters_leave_something_to_chance() -> None:
    # Otherwise the tests above would compare nothing.
    assert sum("odds" in kpreempt_answer(big_scenario(seed))["verdict"] for seed in range(1, 25)) >= 12


@pytest.mark.go
@pytest.mark.parametrize("parallelism", [1, 16])
@pytest.mark.parametrize("seed", [1, 2])
def test_scored_nodes_depend_on_where_the_last_search_ended(scoring: Reference, seed: int, parallelism: int) -> None:
    scenario = free_scenario(seed, parallelism)
    real, ours = scoring.ask(scenario)["verdict"], kpreempt_answer(scenario)["verdict"]
    sampling, starts = ours["sampling"], real["starts"]
    assert sampling["order"] == "list"
    assert {len(start["found"]) for start in starts} == {sampling["nodesToFind"]}
    # Each node that fits is scored from some start, none from all; and others than the best of all may be chosen.
    fits = set(ours["feasibleNodes"])
    assert set().union(*(start["found"] for start in starts)) == fits
    assert not set.intersection(*(set(start["found"]) for start in starts))
    assert any(not set(start["chosen"]) & set(ours["chosenNodes"]) for start in starts)
    if parallelism == 1:
        names = real["feasibleNodes"] * 2
        assert all(start["found"] == _round(names, start["found"][0], len(start["found"])) for start in starts)


def _round(names: list[str], first: str, number: int) -> list[str]:
    at = names.index(first)
    return names[at : at + number]
