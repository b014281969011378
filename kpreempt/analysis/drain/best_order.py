"""The order in which an upgrade displaces least: at each step the node whose drain displaces the fewest pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpreempt.analysis.drain.kubectl import Shift
from kpreempt.analysis.drain.runs import SimulatedDrain
from kpreempt.analysis.drain.shifts import in_order
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict.drain import DrainOrder

# So many drains at most are simulated, and so many decisions times nodes they may come to. To prepare a simulation
# takes as long as so many for each node and pod.
_MOST_TRIALS = 200
_MOST_DECISIONS = 1_500_000
_TO_PREPARE = 2


def best_order(
    shifts: Sequence[Shift], simulate: Callable[[Sequence[Shift]], SimulatedDrain], cluster: ClusterSnapshot
) -> tuple[Sequence[Shift], DrainOrder]:
    """The upgrade in the order that was found, which is that of ``shifts`` where none is better, and what it saves.

    This is greedy: another order might displace fewer. ``simulate`` plays one run of the cluster.
    A step is taken only where every node that is left can be tried.
    """
    rest = [name for shift in shifts for name in shift.nodes]
    given = simulate(shifts)
    found: list[str] = []
    least = _TO_PREPARE * (len(cluster.nodes) + len(cluster.pods))
    each_node = given.decisions * len(cluster.nodes) // len(rest)
    trials, spent = 0, 0
    while len(rest) > 1:
        # Every step simulates one node more.
        step = len(rest) * (least + each_node * (len(found) + 1))
        if trials + len(rest) > _MOST_TRIALS or spent + step > _MOST_DECISIONS:
            break
        trials, spent = trials + len(rest), spent + step
        costs = [_cost(simulate(in_order(shifts, [*found, name]))) for name in rest]
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
