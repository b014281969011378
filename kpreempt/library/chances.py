"""What chance draws in simulations, by a seed: how long everything takes, and which branch it is."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kpreempt.analysis.simulation.outcomes import Branch, Choose
from kpreempt.analysis.simulation.pace import AT_ONCE, Pace


def paces(seed: int) -> Pace:
    """By the first seed everything is done at once; any other draws how long it takes."""
    return Pace(random.Random(f"pace {seed}").random) if seed else AT_ONCE  # noqa: S311 - no secret


def chances(seed: int) -> Choose:
    """Draws branches by their weights."""
    source = random.Random(seed)  # noqa: S311 - which branch it is is no secret

    def choose(branches: Sequence[Branch]) -> Branch:
        if len({branch.weight for branch in branches}) == 1:
            return source.choice(branches)
        return source.choices(branches, [branch.weight for branch in branches])[0]

    return choose
