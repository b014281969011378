"""The odds of a sampled search equal a search from every start, one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kpreempt.schedulers.kube.preemption.odds import SampledCandidate, count_odds, num_candidates

# What a search meets on each node: nothing, or the violations and the rank under the other rules.
OUTCOMES = st.lists(st.none() | st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=40).filter(any)


def winners_from(outcomes: list[tuple[int, int] | None], start: int, wanted: int) -> set[int]:
    """Search from one start as upstream's code does with one worker: two lists with room for ``wanted`` each."""
    clean: list[int] = []
    violating: list[int] = []
    for step in range(len(outcomes)):
        index = (start + step) % len(outcomes)
        outcome = outcomes[index]
        if outcome is None:
            continue
        kept = violating if outcome[0] else clean
        if len(kept) < wanted:
            kept.append(index)
        if clean and len(clean) + len(violating) >= wanted:
            break
    ranks = {index: (-outcomes[index][0], outcomes[index][1]) for index in clean + violating}  # type: ignore[index]  # only candidates are kept
    return {index for index, rank in ranks.items() if rank == max(ranks.values())}


@given(outcomes=OUTCOMES, wanted=st.integers(1, 40))
def test_every_start_is_counted_for_the_nodes_that_it_can_end_with(
    outcomes: list[tuple[int, int] | None], wanted: int
) -> None:
    names = [f"n{index}" for index in range(len(outcomes))]
    candidates = {
        names[index]: SampledCandidate(outcome[0] > 0, (-outcome[0], outcome[1]))
        for index, outcome in enumerate(outcomes)
        if outcome is not None
    }
    odds = count_odds(names, candidates, wanted)

    expected = [winners_from(outcomes, start, wanted) for start in range(len(outcomes))]
    counted = {node: count for group in odds.groups for node, count in group.nodes.items()}
    assert counted == {
        name: count for index, name in enumerate(names) if (count := sum(index in winners for winners in expected))
    }
    for group in odds.groups:
        shared = {name for name, candidate in candidates.items() if name in group.nodes}
        assert len({candidates[name].rank for name in shared}) == 1
        assert group.starts == sum({names[index] for index in winners} <= shared for winners in expected)
    assert sum(group.starts for group in odds.groups) == odds.starts == len(outcomes)
    assert [group.starts for group in odds.groups] == sorted((group.starts for group in odds.groups), reverse=True)


@given(nodes=st.integers(1, 20_000), percentage=st.integers(0, 100), absolute=st.integers(0, 1000))
def test_a_search_never_wants_more_candidates_than_there_are_nodes(nodes: int, percentage: int, absolute: int) -> None:
    wanted = num_candidates(nodes, percentage, absolute)
    assert wanted <= nodes
    assert wanted == nodes or wanted >= absolute
    assert wanted == nodes or wanted * 100 > nodes * percentage - 100
