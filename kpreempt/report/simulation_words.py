"""A simulation in words: its steps by time, which pods are displaced, and the effect on budgets.

Text from the input is always in a separate ``Span``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Phrase, Role, Span, strong
from kpreempt.report.evidence import join_names
from kpreempt.report.quoting import name, names
from kpreempt.verdict.simulation import (
    COMPLETED,
    DRAINED,
    Displaced,
    Simulation,
    SimulationEnd,
    SimulationStep,
    StepKind,
)

_Formatter = Callable[[Sequence[SimulationStep]], Phrase]

_OTHERS_SHOWN = 2
# Why a controller deletes pods, in words.
_REASONS = {
    "scale-down": "scale-down",
    "update": "old version",
    "owner-deleted": "owner deleted",
}


class TimelineRow(NamedTuple):
    """A line of the timeline: the clock if the time changes, the kind of the steps, and the words."""

    clock: str
    kind: StepKind
    words: Phrase


def clock(seconds: float) -> str:
    """A time in the simulation: ``45s``, ``1m30s``, ``2h05m``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def simulation_summary(simulation: Simulation) -> Phrase:
    """How the simulation ends, and how many pods are still pending."""
    ends = {
        SimulationEnd.SETTLED: f"settled after {clock(simulation.seconds)}"
        if simulation.seconds
        else "settled immediately",
        SimulationEnd.LOOP: f"loops: returns to an earlier state after {clock(simulation.seconds)}",
        SimulationEnd.NOT_SIMULATED: "not simulated",
        SimulationEnd.ABORTED: f"stopped after {clock(simulation.seconds)}; more would happen",
    }
    waiting = sum(pod.was_running for pod in simulation.pending)
    left = f"; {count(waiting, 'previously running pod')} {agree(waiting, 'stays')} pending" if waiting else ""
    return (
        Span(ends[simulation.end], "" if simulation.end is SimulationEnd.SETTLED else "bad"),
        Span(left, "bad" if left else ""),
    )


def list_steps(steps: Sequence[SimulationStep]) -> list[TimelineRow]:
    """The steps in order; consecutive steps on one node for one pod are combined."""
    lines: list[TimelineRow] = []
    for _, moment in groupby(steps, key=lambda step: step.at):
        groups = [
            list(group)
            for _, group in groupby(
                moment, key=lambda step: (step.kind, step.cause, step.node, step.reason == COMPLETED)
            )
        ]
        lines += _format_groups(groups, _WORDS)
    return lines


def summarize(steps: Sequence[SimulationStep]) -> list[TimelineRow]:
    """One line for what the pods of an owner do at one time, on any node, in the order of the first step of each."""
    lines: list[TimelineRow] = []
    for _, moment in groupby(steps, key=lambda step: step.at):
        lines += _format_groups(_gathered(moment), _WORDS | {StepKind.CREATED: _new_pods_with_owner})
    return lines


def _gathered(moment: Iterable[SimulationStep]) -> list[list[SimulationStep]]:
    """Group the steps at one time that say the same about their pods, unless one would precede its cause."""
    groups: list[list[SimulationStep]] = []
    open_groups: dict[tuple[object, ...], int] = {}
    # The last group that mentions each pod.
    last: dict[str, int] = {}
    for step in moment:
        subject = step.pod if step.kind is StepKind.SCALED else step.pod.partition("/")[0]
        key = (step.kind, subject, step.owner, step.reason, bool(step.cause), step.message)
        place = open_groups.get(key, -1)
        if place < max(last.get(step.pod, -1), last.get(step.cause, -1)) or place < 0:
            place = open_groups[key] = len(groups)
            groups.append([])
        groups[place].append(step)
        last[step.pod] = place
    return groups


def _format_groups(
    groups: Sequence[Sequence[SimulationStep]], words: Mapping[StepKind, _Formatter]
) -> list[TimelineRow]:
    """One line per group of one time. Nominations are not shown: the evictions they cause are."""
    shown = [group for group in groups if group[0].kind is not StepKind.NOMINATED]
    return [
        TimelineRow("" if number else clock(group[0].at), group[0].kind, words[group[0].kind](group))
        for number, group in enumerate(shown)
    ]


def _pods(steps: Sequence[SimulationStep]) -> Phrase:
    return names([step.pod for step in steps])


def _several(texts: Sequence[str], style: Role = "name") -> Phrase:
    """The names in order, without duplicates."""
    return names(list(dict.fromkeys(filter(None, texts))), limit=_OTHERS_SHOWN, style=style)


def _scaled(steps: Sequence[SimulationStep]) -> Phrase:
    last = steps[-1]
    size = f" to {count(last.replicas or 0, 'replica')}"
    if len(steps) > 1:
        # Other lines show what happens in between.
        size += f", in {len(steps):,} steps"
    if last.owner:
        return (name(last.owner), " scales ", strong(last.pod), size)
    return (strong(last.pod), f" is scaled{size}")


def _new_pods(steps: Sequence[SimulationStep]) -> Phrase:
    owner, causes = steps[0].owner, [step.cause for step in steps]
    if any(causes):
        maker: Phrase = (name(owner), " creates ") if owner else ()
        return (*maker, *_pods(steps), " to replace ", *_several(causes))
    return (*_pods(steps), f" {agree(len(steps), 'is')} created")


def _new_pods_with_owner(steps: Sequence[SimulationStep]) -> Phrase:
    """Pods with their owner, even if they replace no other pod."""
    if steps[0].owner and not steps[0].cause:
        return (name(steps[0].owner), " creates ", *_pods(steps))
    return _new_pods(steps)


def _bound(steps: Sequence[SimulationStep]) -> Phrase:
    ties = [len(step.tied) for step in steps if step.tied]
    among = f", picked at random from {max(ties):,} nodes" if ties else ""
    lands = Span(f" {agree(len(steps), 'lands')} on ", "good")
    return (*_pods(steps), lands, *_several([step.node for step in steps], "good"), Span(among, "dim"))


def _evicted(steps: Sequence[SimulationStep]) -> Phrase:
    first = steps[0]
    broken = sorted({budget for step in steps for budget in step.violated})
    violates: Phrase = (Span(", violating budget ", "bad"), Span(join_names(broken), "bad")) if broken else ()
    if first.reason == "node-deleted":
        lost = Span(f" {agree(len(steps), 'is')} lost with ", "warn")
        return (*_pods(steps), lost, *_several([step.cause for step in steps]), " (node deleted)", *violates)
    if first.reason == DRAINED:
        evicted = Span(f" {agree(len(steps), 'is')} evicted from ", "warn")
        return (*_pods(steps), evicted, *_several([step.node for step in steps]), *violates)
    if first.reason:
        why = _REASONS.get(first.reason)
        reason: Phrase = (f" ({why})",) if why else (" (", name(first.reason), ")")
        maker: Phrase = (name(first.owner), " deletes ") if first.owner else ("deleted: ",)
        return (*maker, *_pods(steps), *reason, *violates)
    action = Span(f" {agree(len(steps), 'is')} {'preempted' if first.cause else 'deleted'}", "warn")
    preemptors: Phrase = (" by ", *_several([step.cause for step in steps])) if first.cause else ()
    return (*_pods(steps), action, *preemptors, *violates)


def _terminated(steps: Sequence[SimulationStep]) -> Phrase:
    action = f" {agree(len(steps), 'has')} completed on " if steps[0].reason == COMPLETED else None
    action = action or f" {agree(len(steps), 'has')} terminated on "
    return (*_pods(steps), action, *_several([step.node for step in steps]))


def _pending(steps: Sequence[SimulationStep]) -> Phrase:
    return (*_pods(steps), Span(f" {agree(len(steps), 'stays')} pending", "bad"), ": ", Span(steps[0].message))


def _rejected(steps: Sequence[SimulationStep]) -> Phrase:
    maker: Phrase = (name(steps[0].owner), " cannot create ") if steps[0].owner else ("rejected: ",)
    return (*maker, *_pods(steps), Span(": ", "bad"), Span(steps[0].message))


def _blocked(steps: Sequence[SimulationStep]) -> Phrase:
    on: Phrase = (" on ", *_several([step.node for step in steps]))
    return (*_pods(steps), Span(" cannot start", "bad"), *on, ": ", Span(steps[0].message))


_WORDS: dict[StepKind, _Formatter] = {
    StepKind.SCALED: _scaled,
    StepKind.CREATED: _new_pods,
    StepKind.BOUND: _bound,
    StepKind.TERMINATING: _evicted,
    StepKind.TERMINATED: _terminated,
    StepKind.PENDING: _pending,
    StepKind.REJECTED: _rejected,
    StepKind.BLOCKED: _blocked,
}


def displaced_phrase(displaced: Displaced, *, is_full: bool = False) -> Phrase:
    """The pod that is evicted, its node, violated budgets, and its replacement; if ``is_full``, also the preemptor."""
    about: Phrase = ()
    cause: Phrase = ()
    if is_full:
        of = displaced.workload or displaced.owner
        about = (f" (priority {displaced.priority:,}", *((", ", name(of)) if of else ()), ")")
        cause = (" for ", name(displaced.cause)) if displaced.cause else ()
    broken: Phrase = (
        (Span(", violating budget ", "bad"), Span(join_names(displaced.violated), "bad")) if displaced.violated else ()
    )
    then: Phrase = ()
    if displaced.replacement:
        result = (
            (Span(" lands on ", "good"), Span(displaced.lands_on, "good"))
            if displaced.lands_on
            else (Span(" stays pending", "bad"),)
        )
        then = ("; ", name(displaced.replacement), *result)
    if displaced.lost:
        then = (Span("; no controller recreates it", "bad"),)
    leaves = " is lost with " if displaced.with_node else " is evicted from "
    return (strong(displaced.pod), *about, leaves, name(displaced.node), *cause, *broken, *then)
