"""Draw Volcano sessions until the two results differ, and shrink the difference."""

from __future__ import annotations

from tests.parity.reference import Answer
from tests.parity.search import Ask, Search, search_among
from tests.parity.volcano_answers import volcano_answer
from tests.parity.volcano_differences import volcano_differences
from tests.parity.volcano_scenarios import SLOW_FEATURES, volcano_scenarios


def volcano_search(
    ask: Ask,
    examples: int,
    start: int,
    *,
    without: frozenset[str] = frozenset(SLOW_FEATURES),
    answer: Ask = volcano_answer,
) -> Search:
    """Draw up to ``examples`` scenarios from the seed ``start``; end with the first difference, shrunk.

    ``without`` names features that no scenario has.
    """
    scenarios = volcano_scenarios(without=without)
    return search_among(scenarios, ask, answer, volcano_differences, _outcomes, examples=examples, start=start)


def _outcomes(real: Answer) -> list[str]:
    """The user-visible effects of a session."""
    verdict = real.get("verdict")
    if verdict is None or verdict["panics"]:
        return ["panic" if verdict else "refused"]
    actions = verdict["actions"]
    seen = {
        "evicts": any(action["evictions"] for action in actions),
        "binds": any(action["binds"] for action in actions),
        "enqueues": any(action["enqueued"] for action in actions),
        "takes back": any(step[0].startswith("un") for action in actions for step in action["trace"]),
    }
    return [name for name, was_seen in seen.items() if was_seen] or ["nothing"]
