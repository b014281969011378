"""What happens, by the clock: a lane of each workload with how many of its pods are ready, each moment in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from kpreempt.report.amounts import agree, count
from kpreempt.report.html.lanes import lanes, workload_names, workload_of
from kpreempt.report.html.markup import Html, clock, folded_list, join, message, name, names, tag
from kpreempt.report.html.simulation import ENDS
from kpreempt.verdict.simulation import COMPLETED, Simulation, SimulationEnd, SimulationStep, StepKind

_CLOCK_LIMIT = 200_000
_PODS_SHOWN = 4
_NODES_SHOWN = 4
_MOMENTS_SHOWN = 30
_WORKLOADS_SHOWN = 20
_LINES_SHOWN = 20


def timeline(simulation: Simulation) -> Html:
    """The lanes, and below them every moment in words."""
    ends = ENDS[simulation.end]
    summary = f"From the start to the last step: {clock(simulation.seconds)}; it {ends}."
    if simulation.end is SimulationEnd.BROKEN_OFF:
        summary = f"After {clock(simulation.seconds)} it is {ends}."
    told = tag("p", summary)
    if simulation.loop:
        told += tag("p", "Pods of these go round: ", names(simulation.loop, limit=_WORKLOADS_SHOWN), ".")
    if simulation.draws:
        told += tag(
            "p", f"{count(simulation.draws, 'choice')} of a node {agree(simulation.draws, 'is')} left to chance."
        )
    return told + lanes(simulation) + _by_the_clock(simulation)


def _by_the_clock(simulation: Simulation) -> Html:
    if not simulation.steps:
        return tag("p", "Nothing happens.")
    steps = folded_list(
        "ul", _entry, _entries(simulation), limit=_CLOCK_LIMIT, what="moments", shown=_MOMENTS_SHOWN, class_="clock"
    )
    return tag("h3", "By the clock") + steps


class _Alike(NamedTuple):
    """Steps of one moment in which the same happens to pods of one workload."""

    kind: StepKind
    workload: str
    cause: str
    steps: list[SimulationStep]


def _entries(simulation: Simulation) -> list[tuple[float, list[_Alike]]]:
    """The steps by their moments; a moment of very many things is several entries."""
    known = workload_names(simulation)
    found = []
    # Whoever is nominated is named by its victims.
    steps = (step for step in simulation.steps if step.kind is not StepKind.NOMINATED)
    for at, moment in groupby(steps, key=lambda step: step.at):
        alike = [
            _Alike(kind, workload, cause, list(group))
            for (kind, workload, cause, *_), group in groupby(
                moment,
                key=lambda step: (
                    *(step.kind, workload_of(step, known), step.cause, step.message),
                    step.reason == COMPLETED,
                ),
            )
        ]
        found += [(at, alike[start : start + _LINES_SHOWN]) for start in range(0, len(alike), _LINES_SHOWN)]
    return found


def _entry(entry: tuple[float, list[_Alike]]) -> Html:
    at, lines = entry
    return tag("li", tag("b", clock(at)), tag("div", *(tag("p", _words(*line)) for line in lines))) + Html("\n")


def _words(kind: StepKind, workload: str, cause: str, steps: Sequence[SimulationStep]) -> Html:
    several = len(steps)
    pods = _pods(steps)
    if kind is StepKind.SCALES:
        return join(["ReplicaSet ", pods, f" is given a size of {steps[-1].replicas or 0:,}"])
    if kind is StepKind.ARRIVES:
        place = join([", in place of ", name(cause)]) if cause else ""
        return join([pods, f" {agree(several, 'is')} made", place, _of(workload, steps)])
    if kind is StepKind.LANDS:
        nodes = list(dict.fromkeys(step.node for step in steps))
        drawn = sum(bool(step.tied) for step in steps)
        chance = f" ({'a node' if several == 1 else f'{drawn:,} of the nodes'} drawn)" if drawn else ""
        verb = tag("span", agree(several, "lands"), class_="good")
        return join([pods, " ", verb, " on ", names(nodes, limit=_NODES_SHOWN), chance, _of(workload, steps)])
    if kind is StepKind.LEAVES:
        return _leaves(workload, cause, steps)
    if kind is StepKind.GONE:
        did = "completed" if steps[0].reason == COMPLETED else "stopped"
        return join([pods, f" {agree(several, 'has')} {did}", _of(workload, steps)])
    if kind is StepKind.REFUSED:
        why = join([": ", message(steps[0].message)])
        return join([pods, " ", tag("span", "may not be made", class_="bad"), _of(workload, steps), why])
    verb = tag("span", "cannot start" if kind is StepKind.BLOCKED else agree(several, "waits"), class_="bad")
    return join(
        [pods, " ", verb, _of(workload, steps), join([": ", message(steps[0].message)]) if steps[0].message else ""]
    )


def _leaves(workload: str, cause: str, steps: Sequence[SimulationStep]) -> Html:
    pods, several = _pods(steps), len(steps)
    if not cause:
        why = f" ({steps[0].reason})" if steps[0].reason else ""
        return join(
            [pods, f" {agree(several, 'is')} deleted by {agree(several, 'its')} controller{why}", _of(workload, steps)]
        )
    budgets = list(dict.fromkeys(budget for step in steps for budget in step.violated))
    breaks: Html | str = ""
    if budgets:
        words = join(["against ", "budget " if len(budgets) == 1 else "budgets ", names(budgets, limit=_NODES_SHOWN)])
        breaks = join([", ", tag("span", words, class_="bad")])
    done, link = ("deleted", " with ") if steps[0].reason == "node-deleted" else ("preempted", " by ")
    verb = tag("span", f"{agree(several, 'is')} {done}", class_="warn")
    return join([pods, " ", verb, link, name(cause), breaks, _of(workload, steps)])


def _pods(steps: Sequence[SimulationStep]) -> Html:
    return names([step.pod for step in steps], limit=_PODS_SHOWN)


def _of(workload: str, steps: Sequence[SimulationStep]) -> Html:
    """What the pods belong to, in brackets; nothing for a pod that stands alone."""
    return Html("") if workload == f"Pod {steps[0].pod}" else join([" (", name(workload), ")"])
