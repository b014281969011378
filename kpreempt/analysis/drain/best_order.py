"""The order in which an upgrade displaces least: at each step the node whose drain displaces the fewest pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpreempt.analysis.drain.kubectl import Shift
from kpreempt.analysis.drain.runs import SimulatedDrain
from kpreempt.analysis.drain.shifts import in_order
from kpreempt.verdict.drain import DrainOrder

# So many drains at most are simulated, and so many decisions times nodes they may come to.
_MOST_TRIALS = 200
_MOST_DECISIONS = 3_000_000


def best_order(
    shifts: Sequence[Shift], simulate: Callable[[Sequence[Shift]], SimulatedDrain], *, cluster_size: int
) -> tuple[Sequence[Shift], DrainOrder]:
    """The upgrade in the order that was found, which is that of ``shifts`` where none is better, and what it saves.

    This is greedy: another order might displace fewer. ``simulate`` plays one run, ``cluster_size`` counts nodes.
    """
    rest = [name for shift in shifts for name in shift.nodes]
    given = simulate(shifts)
    found: list[str] = []
    trials, spent = 0, 0
    while len(rest) > 1:
        costs: list[tuple[int, int, int]] = []
        for name in rest:
            if trials == _MOST_TRIALS or spent > _MOST_DECISIONS:
                break
            simulated = simulate(in_order(shifts, [*found, name]))
            trials += 1
            spent += max(simulated.decisions, 1) * cluster_size
            costs.append(_cost(simulated))
        if len(costs) < len(rest):
            break
        found.append(rest.pop(costs.index(min(costs))))
    unsearched = len(rest) if len(rest) > 1 else 0
    best = in_order(shifts, [*found, *rest])
    chosen = simulate(best)
    if _cost(chosen) >= _cost(given):
        best, chosen = list(shifts), given
    return best, DrainOrder(
        nodes=[name for shift in best for name in shift.nodes],
        displaced=_displaced(chosen),
        displaced_as_given=_displaced(given),
        unsearched=unsearched,
    )


def _cost(drain: SimulatedDrain) -> tuple[int, int, int]:
    """Nodes that do not get empty, pods that are left pending, and pods that are displaced: the fewer, the better."""
    stay = sum(not each.drained for each in drain.works)
    pending = sum(not each.waited_before for each in drain.simulation.waiting)
    return stay, pending, _displaced(drain)


def _displaced(drain: SimulatedDrain) -> int:
    return len(drain.simulation.displaced)
