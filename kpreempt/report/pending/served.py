"""The queue, served in its order, in words: which pods get scheduled, which stay pending, and what is open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Phrase, Role, Section, Span
from kpreempt.report.evidence import join_names
from kpreempt.verdict import Verdict
from kpreempt.verdict.pending import PendingPod
from kpreempt.verdict.served import InTurn, ServedQueue, TurnInQueue, TurnOutcome
from kpreempt.verdict.simulation import SimulationEnd

_NAMES = 3
_LONG_NAMES = 12
_NODES = 3
_NOT_SIMULATED = (
    "Not simulated: nodes from autoscalers, pods that finish, kubelet, image and volume failures, pods created by"
    " anything else, other schedulers' pods, the scheduler's memory of attempts."
)
_NOT_SIMULATED_IN_BRIEF = "Not simulated: autoscalers, pods that finish, failures on nodes (-v)."


def scheduled_parts(items: Sequence[PendingPod], *, is_short: bool) -> Iterator[tuple[str, Role]]:
    """How many pods get scheduled, with and without preemption, and of how many this is open."""
    by_outcome: dict[TurnOutcome, list[PendingPod]] = {}
    for item in items:
        if item.in_turn is not None:
            by_outcome.setdefault(item.in_turn.outcome, []).append(item)
    scheduled = by_outcome.get(TurnOutcome.SCHEDULED, [])
    evicting = [item for item in scheduled if item.in_turn and item.in_turn.may_evict]
    if quiet := [item for item in scheduled if item.in_turn and not item.in_turn.may_evict]:
        yield f"{len(quiet):,} {agree(len(quiet), 'gets')} scheduled{_named(quiet, is_short=is_short)}", "good"
    if evicting:
        violated = sorted({budget for item in evicting if item.in_turn for budget in item.in_turn.violated})
        against = f", violating {join_names(violated)}" if violated else ""
        text = f"{len(evicting):,} {agree(len(evicting), 'gets')} scheduled by preempting {_victims(evicting)}{against}"
        yield f"{text}{_named(evicting, is_short=is_short)}", "bad" if violated else "warn"
    if undecided := by_outcome.get(TurnOutcome.OPEN):
        yield f"{len(undecided):,} {agree(len(undecided), 'is')} open{_named(undecided, is_short=is_short)}", "warn"
    if gone := by_outcome.get(TurnOutcome.REMOVED):
        text = f"{len(gone):,} {agree(len(gone), 'is')} scheduled, then preempted again"
        yield f"{text}{_named(gone, is_short=is_short)}", "bad"


def open_in_words(items: Sequence[PendingPod], served: ServedQueue) -> str:
    """For the listed pods whose outcome is open: how many of which are scheduled."""
    listed = {item.pod for item in items}
    kinds = [each for each in served.open if not listed.isdisjoint(each.pods)]
    named = [pod for each in kinds for pod in each.pods]
    if not named:
        return ""
    if len(kinds) == len(served.open):
        certain = sum(each.outcome is TurnOutcome.SCHEDULED for each in served.in_turn.values())
        number = _range(served.scheduled_min - certain, served.scheduled_max - certain)
        total = f"Of {join_names(named, limit=_NAMES)}, {number} {_get(served.scheduled_max - certain)} scheduled"
        if len(kinds) == 1 or len(named) <= _NAMES:
            return f"{total}."
    else:
        total = "Scheduled"
    parts = [f"{_range(each.at_least, each.at_most)} of {join_names(each.pods)}" for each in kinds[:_NAMES]]
    more = f"; {len(kinds) - _NAMES:,} more kinds" if len(kinds) > _NAMES else ""
    return f"{total}: {'; '.join(parts)}{more}."


def after_in_words(served: ServedQueue) -> Iterator[str]:
    """What else the queue leads to: replacements of evicted pods that stay pending, and how it ends."""
    if served.pending:
        workloads = dict.fromkeys(each.workload or each.pod for each in served.pending)
        number = len(served.pending)
        stay = f"{count(number, 'replacement')} of evicted pods {agree(number, 'stays')} pending"
        yield f"{stay} ({join_names(list(workloads))})."
    if served.ended is SimulationEnd.LOOP:
        yield f"The queue never settles: {join_names(served.loop)} keep displacing each other."
    elif served.ended is SimulationEnd.ABORTED:
        minutes = f"{served.seconds / 60:,.0f} minutes"
        yield f"Stopped after {minutes if served.is_out_of_time else count(served.attempts, 'attempt')}."


def turn_in_brief(item: PendingPod) -> tuple[Span, str]:
    """What becomes of a pod in its turn in a word or two, and its node; if there are several, the first."""
    turn = item.in_turn
    if turn is None or turn.outcome is TurnOutcome.NOT_SERVED:
        return Span("-", "dim"), ""
    others = f" +{len(turn.nodes) - 1:,}" if len(turn.nodes) > 1 else ""
    node = "".join(turn.nodes[:1]) + others
    match turn.outcome:
        case TurnOutcome.SCHEDULED if turn.may_evict:
            return Span(f"preempts {_number(turn)}", "bad" if turn.violated else "warn"), node
        case TurnOutcome.SCHEDULED:
            return Span("scheduled", "good"), node
        case TurnOutcome.OPEN:
            return Span("open", "warn"), node
        case TurnOutcome.REMOVED:
            return Span("preempted", "bad"), ""
    return Span("pending", "bad"), ""


def turn_in_words(turn: InTurn, runs: int) -> Phrase:
    """What becomes of a pod in its turn, in a sentence."""
    nodes = join_names(turn.nodes, limit=_NODES).replace(" and ", " or ", 1)
    after = f" after {turn.seconds:,.0f}s" if turn.seconds else ""
    victims = ""
    if turn.may_evict:
        named = join_names(turn.victims or turn.other_victims)
        others = f" (or {join_names(turn.other_victims)})" if turn.victims and turn.other_victims else ""
        victims = f", preempting {named}{others}"
    why = ", ".join(f"{number:,} {reason}" for reason, number in turn.reasons.items()) or turn.message
    against = Span(f", violating {join_names(turn.violated)}" if turn.violated else "", "bad")
    match turn.outcome:
        case TurnOutcome.SCHEDULED:
            return (Span("gets scheduled", "good"), f" on {nodes}{after}{victims}", against)
        case TurnOutcome.OPEN:
            where = f", on {nodes}" if turn.nodes else ""
            message = f"; otherwise {why}" if why else ""
            times = f"scheduled in {turn.scheduled_runs:,} of {count(runs, 'run')}{where}{victims}"
            return (Span("open", "warn"), f": {times}", against, message)
        case TurnOutcome.REMOVED:
            return (Span("gets scheduled, then preempted again", "bad"),)
        case TurnOutcome.NOT_SERVED:
            return (Span("is not tried", "warn"),)
    return (Span("stays pending", "bad"), f": {why}" if why else "")


def turn_section(place: TurnInQueue, verdict: Verdict, priority: int) -> Section:
    """``IN ITS TURN``: the place in the queue, and what becomes of the pod when the whole queue is served.

    What the verdict on the pod alone already says is not repeated on a screen.
    """
    position = f"#{place.position:,} of {count(place.in_queue, 'pod')} in the queue: " if place.position else ""
    if place.turn is None:
        return Section("IN ITS TURN", f"{position}the queue is too long to serve it here; see kpreempt pending")
    is_open = place.turn.outcome is TurnOutcome.OPEN
    runs = f" (in each of {place.runs:,} runs)" if place.runs > 1 and not (place.is_complete or is_open) else ""
    lead = (position, *turn_in_words(place.turn, place.runs), runs)
    words = _as_alone(place.turn, verdict)
    number = f"#{place.position:,} of {place.in_queue:,} in the queue: " if place.position else ""
    times = f" ({place.runs:,} runs)" if runs else ""
    short = Section("IN ITS TURN", (number, *words, times)) if words else None
    return Section("IN ITS TURN", lead, priority=priority, short=short)


def _as_alone(turn: InTurn, verdict: Verdict) -> Phrase:
    """What becomes of the pod in its turn, if that is the same as if it were next; else empty."""
    if turn.outcome is TurnOutcome.LEFT_PENDING and turn.message and turn.message == verdict.message:
        return (Span("stays pending", "bad"), " for the same reasons")
    victims = [victim.pod for victim in verdict.victims.get(turn.nodes[0], ())] if len(turn.nodes) == 1 else []
    if turn.outcome is not TurnOutcome.SCHEDULED or not victims or set(turn.victims) != set(victims):
        return ()
    if turn.other_victims or turn.violated:
        return ()
    after = f" after {turn.seconds:,.0f}s" if turn.seconds else ""
    pods = "this pod" if len(victims) == 1 else f"these {len(victims):,} pods"
    return (Span("gets scheduled", "good"), f" on {turn.nodes[0]}{after}, preempting {pods}")


def about_runs(served: ServedQueue, *, is_short: bool = False) -> str:
    """How the queue was served: how often, until when, and what was not simulated."""
    if served.is_complete:
        how = "" if served.runs == 1 else f"All {served.runs:,} possible results of chance were simulated."
    elif served.runs == 1:
        how = "Only the likely order was simulated; another order, or chance, could decide otherwise."
    else:
        how = f"Simulated {served.runs:,} times, because the order or chance matters."
    return " ".join(filter(None, (how, _NOT_SIMULATED_IN_BRIEF if is_short else _NOT_SIMULATED)))


def _number(turn: InTurn) -> str:
    """``2``, or ``0-2`` if the pods differ from run to run."""
    return f"{len(turn.victims):,}" if turn.victims else f"up to {len(turn.other_victims):,}"


def _victims(items: Sequence[PendingPod]) -> str:
    """``2 pods``, ``about 2 pods`` if others may be evicted, or ``up to 2 pods`` if none are in the likely run."""
    turns = [item.in_turn for item in items if item.in_turn is not None]
    likely = {victim for turn in turns for victim in turn.victims}
    possible = likely | {victim for turn in turns for victim in turn.other_victims}
    if not likely:
        return f"up to {count(len(possible), 'pod')}"
    return f"{'' if len(possible) == len(likely) else 'about '}{count(len(likely), 'pod')}"


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} or {high:,}" if high == low + 1 else f"{low:,} to {high:,}"


def _get(number: int) -> str:
    return "gets" if number == 1 else "get"


def _named(items: Sequence[PendingPod], *, is_short: bool) -> str:
    names = [item.pod for item in items]
    if is_short and len(names) > _NAMES:
        return ""
    return f" ({join_names(names, limit=_LONG_NAMES)})"
