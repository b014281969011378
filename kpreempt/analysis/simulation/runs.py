"""The choices of one run of a simulation, so that other runs can make the same ones or others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from kpreempt.analysis.simulation.scheduling import Branch, Choose, first_branch


class Traced(Protocol):
    """A run with its choices, and the number of branches of each; ``is_truncated``: there may have been more."""

    @property
    def chosen(self) -> tuple[int, ...]:
        """The index of each chosen branch."""

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of branches of each choice."""

    @property
    def is_truncated(self) -> bool:
        """Whether a choice had more branches than were enumerated."""


SomeTraced = TypeVar("SomeTraced", bound=Traced)


def run_exhaustive(
    run: Callable[[int, DecisionTrace], SomeTraced], limit: int, first: SomeTraced | None = None
) -> tuple[list[SomeTraced], bool]:
    """Simulate every possible choice, up to ``limit`` runs; also returns whether these were all.

    The first run takes the first branch of every choice (or is ``first``, already simulated), followed by those that
    differ from it in one choice, and so on. ``run`` gets the number of the run, from 0, and its choices.
    """
    found: list[SomeTraced] = []
    waiting: deque[tuple[int, ...]] = deque([()])
    while waiting and len(found) < limit:
        prefix = waiting.popleft()
        is_known = first is not None and not found
        simulated = first if first is not None and is_known else run(len(found), DecisionTrace(prefix, first_branch))
        found.append(simulated)
        for place in range(len(prefix), len(simulated.widths)):
            others = (branch for branch in range(simulated.widths[place]) if branch != simulated.chosen[place])
            waiting.extend((*simulated.chosen[:place], branch) for branch in others)
    return found, not waiting and not any(simulated.is_truncated for simulated in found)


class DecisionTrace:
    """Makes the choices in ``prefix``, then those of ``others``, and records the number of branches of each."""

    def __init__(self, prefix: Sequence[int], others: Choose) -> None:
        self._prefix = prefix
        self._others = others
        self.widths: list[int] = []
        self.chosen: list[int] = []
        self.likelihood = 1.0
        self.is_truncated = False

    def choose(self, branches: Sequence[Branch]) -> Branch:
        at = len(self.widths)
        # Another scenario may have fewer branches.
        is_given = at < len(self._prefix) and self._prefix[at] < len(branches)
        chosen = branches[self._prefix[at]] if is_given else self._others(branches)
        self.widths.append(len(branches))
        self.is_truncated |= any(branch.is_truncated for branch in branches)
        self.chosen.append(next(index for index, branch in enumerate(branches) if branch is chosen))
        self.likelihood *= chosen.weight / sum(branch.weight for branch in branches)
        return chosen
