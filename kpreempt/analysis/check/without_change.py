"""What happens without the change: pods that are pending now may evict others, or stay pending, anyway.

The cluster is also simulated without the change (or with the old manifests), with the same draws as each simulation
with it. A finding is excused in a simulation only if the one without the change has it to the same extent. What cannot
be separated counts against the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kpreempt.analysis.check.gate import Facts, GateRules, Suppressions, measured, minimum
from kpreempt.analysis.check.simulations import Simulated, Simulations, SomeSimulated
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.simulation import Simulation, SimulationEnd


class WithoutChange:
    """What suppresses the findings of each simulation with a change: ``given``, and what happens without the change.

    ``all`` suppresses only what occurs in all simulations without the change.
    """

    def __init__(self, given: Suppressions) -> None:
        self._given = given
        self._found: dict[int, tuple[Simulation, Suppressions]] = {}
        self.all = given

    def follow(
        self,
        simulated: Sequence[Simulated],
        changes: Sequence[Change],
        *,
        without: Simulations[SomeSimulated],
        old_changes: Sequence[Change],
        facts: Callable[[SomeSimulated], Facts],
        rules: GateRules,
    ) -> None:
        """Simulate the scenario ``without`` the change like each of these simulations of ``changes``.

        ``old_changes`` are those of the old manifests. ``facts`` returns the facts of a simulation without the change.
        """
        is_same = _effective(changes) == _effective(old_changes)
        amounts = []
        for each, other in zip(simulated, without.like(simulated), strict=True):
            # Without those of the input, which nothing excuses.
            found = msgspec.structs.replace(facts(other), assumptions=other.assumptions)
            base = measured(other.simulation, old_changes, found, rules)
            if is_same and other.simulation.steps == each.simulation.steps:
                # Without an effect, what is unknown about the simulation is unknown anyway.
                unknown = msgspec.structs.replace(found, static_findings=(), is_live=True)
                base |= measured(other.simulation, old_changes, unknown, rules, is_about_input=True)
            amounts.append(base)
            self._found[id(each)] = other.simulation, msgspec.structs.replace(self._given, base=base)
        self.all = msgspec.structs.replace(self._given, base=minimum(amounts))

    def outcome(self, like: Simulated) -> Simulation | None:
        """What happens without the change with the draws of this simulation, without steps; ``None`` for nothing.

        Also ``None`` for old manifests, which may do more than nothing.
        """
        found = self._found[id(like)][0] if id(like) in self._found and not self._given.base_option else None
        if found is None or (
            found.end is SimulationEnd.SETTLED and not (found.displaced or found.pending or found.broken_dependencies)
        ):
            return None
        return msgspec.structs.replace(found, steps=[])

    def suppressions(self, like: Simulated) -> Suppressions:
        """What suppresses the findings of this simulation."""
        return self._found[id(like)][1] if id(like) in self._found else self._given


def _effective(changes: Sequence[Change]) -> list[Change]:
    """What changes, wherever it is written."""
    return [
        msgspec.structs.replace(each, source="", line=0, origin="")
        for each in changes
        if each.kind is not ChangeKind.UNCHANGED
    ]
