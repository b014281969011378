"""Draw scenarios until the two results differ, and shrink the difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

from kpreempt.scheduler_table import DEFAULT_VERSION
from tests.parity.answers import kpreempt_answer
from tests.parity.differences import differences
from tests.parity.reference import Answer, Scenario
from tests.strategies_whole import whole_scenarios

# How often a scenario is run again if our result says that it is random.
_TRIES = 40

Ask = Callable[[Scenario], Answer]
# The differences between the real result and ours, one line each.
Compare = Callable[[Answer, Answer], list[str]]


class DifferentError(AssertionError):
    """Two results for one scenario that differ."""


@dataclass
class Difference:
    """The smallest scenario found, the real scheduler's result, and the differences."""

    scenario: Scenario
    real: Answer
    lines: list[str]


@dataclass
class Search:
    """The result of drawing ``examples`` scenarios."""

    examples: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    difference: Difference | None = None


def search(
    ask: Ask, examples: int, start: int, version: str = DEFAULT_VERSION, always: frozenset[str] = frozenset()
) -> Search:
    """Draw up to ``examples`` scenarios from the seed ``start``; end with the first difference, shrunk.

    ``version`` is the minor version of the real scheduler. All scenarios have the features of ``always``.
    """
    scenarios = whole_scenarios(version=version, always=always)
    return search_among(scenarios, ask, kpreempt_answer, differences, _outcome, examples=examples, start=start)


def search_among(
    scenarios: SearchStrategy[Scenario],
    ask: Ask,
    answer: Ask,
    compare: Compare,
    outcomes: Callable[[Answer], Iterable[str]],
    *,
    examples: int,
    start: int,
) -> Search:
    """Draw up to ``examples`` of ``scenarios`` from the seed ``start``; end with the first difference, shrunk.

    ``ask`` returns the real result, ``answer`` ours, and ``outcomes`` the names under which a real result is counted.
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
    @given(scenarios)
    def put(scenario: Scenario) -> None:
        nonlocal shrinking
        real, ours = ask(scenario), answer(scenario)
        if not shrinking:
            found.examples += 1
            found.outcomes.update(outcomes(real))
        lines = compare(real, ours)
        # What we report as random may go the other way the next time.
        if lines and _tells_chance(ours) and any(not compare(ask(scenario), ours) for _ in range(_TRIES)):
            lines = []
        if lines:
            shrinking = True
            found.difference = Difference(scenario, real, lines)
            raise DifferentError

    try:
        put()
    except (DifferentError, Flaky):
        # A result that changes from one run to the next is a difference, too: the last one is kept.
        return found
    return found


def _tells_chance(ours: Answer) -> bool:
    return any(
        "device that ends it with an error" in each["message"]
        for each in ours.get("verdict", {}).get("assumptions", [])
    )


def _outcome(real: Answer) -> list[str]:
    verdict = real.get("verdict")
    if verdict is None or "preEnqueue" in verdict:
        return ["no cycle" if verdict else "error"]
    if verdict.get("feasibleNodes"):
        return ["lands"]
    return ["preempts" if verdict.get("nominatedNodes") else "never lands"]
