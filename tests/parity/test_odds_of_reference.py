"""The odds are those of the real scheduler's sampled search, repeated from every start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parity.answers import kpreempt_answer
from tests.parity.big_clusters import big_scenario
from tests.parity.differences import differences
from tests.parity.reference import Reference


@pytest.fixture(scope="module")
def sampling(reference: Path) -> Iterator[Reference]:
    """The reference program, which repeats the search from every start."""
    running = Reference(reference, ["-offset", "all"])
    yield running
    running.close()


@pytest.mark.go
@pytest.mark.parametrize("seed", range(1, 25))
def test_odds_count_the_starts_of_the_real_search(sampling: Reference, seed: int) -> None:
    scenario = big_scenario(seed)
    genuine, ours = sampling.ask(scenario), kpreempt_answer(scenario)
    assert differences(genuine, ours) == []
    verdict, sampled = ours["verdict"], genuine["verdict"]["sampled"]
    if sampled["numCandidates"] == len(sampled["starts"]) or not verdict.get("candidates"):
        # Every node is looked at from every start, or there is nothing to find.
        assert "odds" not in verdict
        return
    odds = verdict["odds"]
    assert (odds["numCandidates"], odds["starts"]) == (sampled["numCandidates"], len(sampled["starts"]))
    expected = Counter(node for start in sampled["starts"] for node in start["chosen"])
    assert Counter({node: count for group in odds["groups"] for node, count in group["nodes"].items()}) == expected
    by_group = [
        sum(set(start["chosen"]) <= set(group["nodes"]) for start in sampled["starts"]) for group in odds["groups"]
    ]
    assert [group["starts"] for group in odds["groups"]] == by_group


def test_the_big_clusters_leave_something_to_chance() -> None:
    # Otherwise the test above would compare nothing.
    assert sum("odds" in kpreempt_answer(big_scenario(seed))["verdict"] for seed in range(1, 25)) >= 12
