"""The choices of one run of a simulation, so that other runs can make the same ones or others."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.analysis.simulation.scheduling import Branch, Choose


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
        chosen = branches[self._prefix[at]] if at < len(self._prefix) else self._others(branches)
        self.widths.append(len(branches))
        self.is_truncated |= any(branch.is_truncated for branch in branches)
        self.chosen.append(next(index for index, branch in enumerate(branches) if branch is chosen))
        self.likelihood *= chosen.weight / sum(branch.weight for branch in branches)
        return chosen
