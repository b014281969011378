"""What happens without the change: pods that are pending now may evict others, or stay pending, anyway.

The cluster is also simulated without the change (or with the old manifests), with the same draws as each simulation
with it. A finding is excused in a simulation only if the one without the change has it to the same extent. What cannot
be separated counts against the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

import msgspec

from kpreempt.analysis.check.gate import Facts, GateRules, Suppressions, measured, minimum
from kpreempt.analysis.check.simulations import Simulated, Simulations, SomeSimulated
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.simulation import Simulation, SimulationEnd


class WithoutChange(Generic[SomeSimulated]):
    """Simulates ``simulations``, the scenario without the change, like simulations ``with`` it.

    ``changes`` are those of the old manifests. ``facts`` returns the facts of a simulation, with the given assumptions.
    ``all`` suppresses only what occurs in all simulations.
    """

    def __init__(
        self,
        simulations: Simulations[SomeSimulated],
        changes: Sequence[Change],
        facts: Callable[[SomeSimulated, Sequence[Assumption]], Facts],
        rules: GateRules,
        suppressions: Suppressions,
    ) -> None:
        self._simulations = simulations
        self._changes = changes
        self._facts = facts
        self._rules = rules
        self._suppressions = suppressions
        self._found: dict[int, tuple[Simulation, Suppressions]] = {}
        self.all: Suppressions = suppressions

    def follow(self, simulated: Sequence[Simulated], changes: Sequence[Change]) -> None:
        """Simulate the cluster without the change like each of these simulations of ``changes``."""
        is_same = _effective(changes) == _effective(self._changes)
        amounts = []
        for each, other in zip(simulated, self._simulations.like(simulated), strict=True):
            facts = self._facts(other, other.assumptions)
            base = measured(other.simulation, self._changes, facts, self._rules)
            if is_same and other.simulation.steps == each.simulation.steps:
                # Without an effect, what is unknown about the simulation is unknown anyway; nothing excuses the input.
                unknown = msgspec.structs.replace(facts, static_findings=(), is_live=True)
                base |= measured(other.simulation, self._changes, unknown, self._rules, is_about_input=True)
            amounts.append(base)
            found = msgspec.structs.replace(self._suppressions, base=base)
            self._found[id(each)] = other.simulation, found
        self.all = msgspec.structs.replace(self._suppressions, base=minimum(amounts))

    def outcome(self, like: Simulated) -> Simulation | None:
        """What happens without the change with the draws of this simulation, without steps; ``None`` for nothing."""
        found = self._found[id(like)][0]
        if found.end is SimulationEnd.SETTLED and not (found.displaced or found.pending or found.broken_dependencies):
            return None
        return msgspec.structs.replace(found, steps=[])

    def suppressions(self, like: Simulated) -> Suppressions:
        """What suppresses the findings of this simulation."""
        return self._found[id(like)][1]


def _effective(changes: Sequence[Change]) -> list[Change]:
    """What changes, wherever it is written."""
    return [
        msgspec.structs.replace(each, source="", line=0, origin="")
        for each in changes
        if each.kind is not ChangeKind.UNCHANGED
    ]
