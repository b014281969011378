"""The pending pods in a sentence, what changed since the look before, and what the answer rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Phrase, Role, Span, joined, strong
from kpreempt.report.durations import format_reading, format_time
from kpreempt.report.evidence import join_names
from kpreempt.report.pending.words import brief_fate, outcome_in_brief
from kpreempt.verdict import Outcome
from kpreempt.verdict.pending import (
    TELLING_STATES,
    PendingChange,
    PendingChangeKind,
    PendingPod,
    PendingPods,
    PendingState,
    QueueTimeSource,
)

_CAUSES = 2
_CAUSES_IN_FULL = 8
# How long each cause or list of names may be where a sentence is to be short.
_SHORT = 56
_WHOLE = 1_000_000
_CHANGES_NAMED = 3
_EVICTING = (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)


def summary(pending: PendingPods, *, is_short: bool = False) -> Phrase:
    """How many pods are pending, and in numbers what becomes of them, with the reasons of those that cannot land.

    A short one is cut within its brackets, and has 400 characters at most.
    """
    parts = joined(Span(*part) for part in _parts(pending.items, _SHORT if is_short else _WHOLE))
    return (strong(f"{count(len(pending.items), 'pod')} pending"), ": ", *parts, ".")


def _parts(items: Sequence[PendingPod], longest: int) -> Iterator[tuple[str, Role]]:
    """Each pod is counted once, so the numbers add up."""
    held = Counter(item.state for item in items if item.state in TELLING_STATES)
    free = [item for item in items if item.state not in TELLING_STATES]
    fates = Counter(item.outcome for item in free)
    if number := fates[Outcome.LANDS]:
        yield f"{number:,} {agree(number, 'lands')} now", "good"
    if evicting := [item for item in free if item.outcome in _EVICTING]:
        yield _evictions(evicting)
    if number := held[PendingState.WAITS_FOR_VICTIMS]:
        yield f"{number:,} {agree(number, 'waits')} for {'its' if number == 1 else 'their'} victims", "warn"
    if unschedulable := [item for item in free if item.outcome == Outcome.NEVER_LANDS]:
        yield f"{len(unschedulable):,} unschedulable{_causes(unschedulable, longest)}", "bad"
    if number := fates[Outcome.UNCERTAIN]:
        yield f"{number:,} uncertain", "warn"
    if gated := [item for item in items if item.state == PendingState.GATED]:
        gates = dict.fromkeys(gate for item in gated for gate in item.gates)
        yield f"{len(gated):,} gated ({_cut(join_names(list(gates), limit=_CAUSES), longest)})", ""
    if others := [item for item in items if item.state == PendingState.NO_SCHEDULER]:
        names = dict.fromkeys(item.scheduler_name for item in others)
        yield f"{len(others):,} of another scheduler ({_cut(join_names(list(names), limit=_CAUSES), longest)})", ""
    if waiting := [item for item in items if item.state == PendingState.HELD]:
        plugins = dict.fromkeys(item.held_by for item in waiting if item.held_by)
        by = f" by {_cut(join_names(list(plugins), limit=_CAUSES), longest)}" if plugins else ""
        yield f"{len(waiting):,} held{by}", ""
    if number := held[PendingState.BEING_DELETED]:
        yield f"{number:,} terminating", ""


def _evictions(items: Sequence[PendingPod]) -> tuple[str, Role]:
    """How many evict how many; each is judged alone, so they may evict the same."""
    sets = [{victim.pod for each in item.victims.values() for victim in each} for item in items]
    victims = set().union(*sets)
    number = len(items)
    are_leaving = all(victim.terminating for item in items for each in item.victims.values() for victim in each)
    is_open = any(_is_open(item) for item in items)
    if are_leaving:
        whom = "only pods that are terminating"
    elif len(victims) < sum(map(len, sets)):
        same = "the same " if all(each == victims for each in sets) else ""
        whom = f"{'up to ' if is_open else ''}{same}{count(len(victims), 'pod')}{'' if same else ', some the same'}"
    else:
        whom = f"{'up to ' if is_open else ''}{count(len(victims), 'pod')}"
    violating = sum(item.outcome == Outcome.PREEMPTS_VIOLATING_BUDGETS for item in items)
    budgets = f" ({violating:,} {agree(violating, 'violates')} budgets)" if violating else ""
    return f"{number:,} {agree(number, 'preempts')} {whom}{budgets}", "bad" if violating else "warn"


def _is_open(item: PendingPod) -> bool:
    """Whether the number of its victims hangs on chance, or on the order of equal pods."""
    numbers = {len(each) for each in item.victims.values()}
    told = item.alternatives
    if told is not None:
        numbers |= {each.num_victims for each in told.outcomes}
    return len(item.victims) > 1 or len(numbers) > 1 or (told is not None and bool(told.untold or not told.exact))


def _causes(items: Sequence[PendingPod], longest: int) -> str:
    causes = Counter(item.cause for item in items if item.cause)
    # The reasons of most nodes first.
    words = {item.cause: ", ".join(item.reasons) or item.cause for item in reversed(items)}
    frequent = causes.most_common(_CAUSES if longest == _SHORT else _CAUSES_IN_FULL)
    named = [f"{number:,} {_cut(words[cause], longest)}" for cause, number in frequent]
    if rest := len(items) - sum(number for _, number in frequent):
        named.append(f"{rest:,} more" if named else "")
    return f" ({'; '.join(filter(None, named))})" if any(named) else ""


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def changes_in_words(pending: PendingPods) -> Phrase:
    """What changed since the look before; empty where there was none."""
    changes = pending.changes
    if not changes:
        return ()
    since = f"Since {format_time(changes.since)[11:19]}: " if changes.since is not None else "Since the last look: "
    if not changes.items:
        return (Span(f"{since}no change.", "dim"),)
    items = {item.pod: item for item in pending.items}
    landed = [each for each in changes.items if each.change is PendingChangeKind.LANDED]
    gone = [each for each in changes.items if each.change is PendingChangeKind.GONE]
    new = [each for each in changes.items if each.change is PendingChangeKind.NEW]
    changed = [each for each in changes.items if each.change is PendingChangeKind.CHANGED]
    told: list[Phrase] = []
    if landed:
        told.append((Span("landed", "good"), f" {_named([f'{each.pod} on {each.node}' for each in landed])}"))
    if new:
        told.append((Span("newly pending", "warn"), f" {_named([each.pod for each in new])}"))
    if changed:
        told.append((Span("changed", "warn"), f" {_named([_changed(each, items[each.pod]) for each in changed])}"))
    if gone:
        told.append((f"gone {_named([each.pod for each in gone])}",))
    return (strong(since), *joined(told, "; "), ".")


def _named(names: Sequence[str]) -> str:
    return join_names(names, limit=_CHANGES_NAMED)


def _changed(change: PendingChange, item: PendingPod) -> str:
    before = outcome_in_brief(change.outcome, change.state)[0] if change.outcome is not None else ""
    now, nodes = brief_fate(item)
    where = f" on {nodes}" if nodes else ""
    return f"{item.pod} {now.text}{where} (was {before})" if before != now.text else f"{item.pod} {now.text}{where}"


def facts_in_words(pending: PendingPods, *, has_time: bool = True) -> str:
    """What the answer rests on: the scheduler, the cluster, and when it was read."""
    cluster = pending.cluster
    facts = [pending.algorithm, f"{count(cluster.nodes, 'node')}, {count(cluster.pods, 'pod')}"]
    if pending.at is not None and has_time:
        age = f" ({format_reading(cluster.age_seconds)})" if cluster.age_seconds is not None else ""
        facts.append(f"{format_time(pending.at)}{age}")
    return " · ".join(filter(None, facts))


def notes_in_words(pending: PendingPods) -> str:
    """What the places and the verdicts do not say; empty if no pod is pending."""
    if not pending.items:
        return ""
    meaning = "# is the place in the scheduling queue; each pod is judged alone, as if it came next."
    return f"{meaning} {unknown_in_words(pending)}".rstrip()


def unknown_in_words(pending: PendingPods) -> str:
    """Of how many pods the order is not sure, and how many others are in the queue; empty if there are none."""
    notes = []
    unsure = sum(
        item.queue_time_source in (QueueTimeSource.CONDITION, QueueTimeSource.CREATION)
        and item.state not in (PendingState.NEVER_TRIED, *TELLING_STATES)
        for item in pending.items
    )
    if unsure:
        notes.append(f"Last attempt of {count(unsure, 'pod')} unknown: order within a priority may vary.")
    outside = pending.in_queue - sum(item.position is not None for item in pending.items)
    if outside:
        notes.append(f"{count(outside, 'more pod')} in the queue {agree(outside, 'was')} not asked about.")
    return " ".join(notes)
