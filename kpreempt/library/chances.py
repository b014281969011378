"""How questions are simulated, and what chance draws then, by a seed: how long it takes, and which branch it is."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kpreempt.analysis.check.simulations import SimulationContext
from kpreempt.analysis.pending.verdicts import Spread
from kpreempt.analysis.simulation.outcomes import Branch, Choose
from kpreempt.analysis.simulation.pace import AT_ONCE, Pace
from kpreempt.library.schedulers import Ground


def context_of(ground: Ground, spread: Spread) -> SimulationContext:
    """What simulates questions about a cluster."""
    scheduler = ground.configured.scheduler
    return SimulationContext(scheduler, ground.now, ground.at, chances, paces, spread, ground.phases)


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
