"""Random numbers for simulations, which every seed determines."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from kpreempt.analysis.queue.serving import Draws
from kpreempt.analysis.simulation.scheduling import AT_ONCE, Branch, Choose, Pace


def paces(seed: int) -> Pace:
    """Return the timing for a seed: 0 does everything at once; any other seed draws random durations."""
    return Pace(random.Random(f"pace {seed}").random) if seed else AT_ONCE  # noqa: S311 - not security-relevant


def chances(seed: int) -> Choose:
    """Return a function that draws branches by their weights."""
    source = random.Random(seed)  # noqa: S311 - not security-relevant

    def choose(branches: Sequence[Branch]) -> Branch:
        if len({branch.weight for branch in branches}) == 1:
            return source.choice(branches)
        return source.choices(branches, [branch.weight for branch in branches])[0]

    return choose


def numbers(seed: int) -> Callable[[], float]:
    """Return a function that draws numbers from 0 to 1."""
    return random.Random(f"order {seed}").random  # noqa: S311 - not security-relevant


DRAWS = Draws(chances, paces, numbers)
