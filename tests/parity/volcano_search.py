"""Draws Volcano sessions until the two answers differ, and makes what differs small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from tests.parity.reference import Answer, Scenario
from tests.parity.search import Ask, Difference, DifferentError, Search
from tests.parity.volcano_answers import volcano_answer
from tests.parity.volcano_differences import volcano_differences
from tests.parity.volcano_scenarios import SLOW_FEATURES, volcano_scenarios


def volcano_search(
    ask: Ask,
    examples: int,
    start: int,
    *,
    without: frozenset[str] = frozenset(SLOW_FEATURES),
    answer: Callable[[Scenario], Answer] = volcano_answer,
) -> Search:
    """Draw up to ``examples`` scenarios from the seed ``start``; end with the first difference, shrunk.

    ``without`` names features that no scenario has.
    """
    found = Search()
    shrinking = False

    @seed(start)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(volcano_scenarios(without=without))
    def compare(scenario: dict[str, Any]) -> None:
        nonlocal shrinking
        genuine, ours = ask(scenario), answer(scenario)
        if not shrinking:
            found.examples += 1
            found.outcomes.update(_outcomes(genuine))
        lines = volcano_differences(genuine, ours)
        if lines:
            shrinking = True
            found.difference = Difference(scenario, genuine, lines)
            raise DifferentError

    try:
        compare()
    except (DifferentError, Flaky):
        # An answer that changes from one time to the next is a difference, too: the last one is kept.
        return found
    return found


def _outcomes(genuine: Answer) -> Counter[str]:
    """What happens in a session, by what users see of it."""
    verdict = genuine.get("verdict")
    if verdict is None or verdict["panics"]:
        return Counter({"panic" if verdict else "refused": 1})
    actions = verdict["actions"]
    seen = {
        "evicts": any(action["evictions"] for action in actions),
        "binds": any(action["binds"] for action in actions),
        "enqueues": any(action["enqueued"] for action in actions),
        "takes back": any(step[0].startswith("un") for action in actions for step in action["trace"]),
    }
    return Counter([name for name, is_seen in seen.items() if is_seen] or ["nothing"])
