"""The pending pods for a terminal: by cause, in the order of the queue, and a summary at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.durations import format_since, format_time
from kpreempt.report.escape import printable
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Page, Phrase, Span, Style, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.pending.words import agreement_in_words, fate_in_words, leaving_in_words, state_in_words
from kpreempt.verdict import Outcome, PendingGroup, PendingPod, PendingPods, PendingState, QueueTimeSource

_ROWS_SHOWN = 4
_LEAVING_SHOWN = 4
_INDENT = 2
_LABELS: dict[Outcome, tuple[str, Style]] = {
    Outcome.LANDS: ("FIT NOW", "good"),
    Outcome.PREEMPTS: ("EVICT", "warn"),
    Outcome.PREEMPTS_VIOLATING_BUDGETS: ("EVICT", "bad"),
    Outcome.NEVER_LANDS: ("UNSCHEDULABLE", "bad"),
    Outcome.NOT_SCHEDULED: ("HELD", "warn"),
    Outcome.UNCERTAIN: ("UNCERTAIN", "warn"),
}
_STATE_LABELS: dict[PendingState, str] = {
    PendingState.BEING_DELETED: "DELETED",
    PendingState.NO_SCHEDULER: "ELSEWHERE",
    PendingState.GATED: "GATED",
    PendingState.HELD: "HELD",
    PendingState.WAITS_FOR_VICTIMS: "WAIT",
}
_WORDS: dict[Outcome, str] = {
    Outcome.LANDS: "{} would land without evictions",
    Outcome.PREEMPTS: "{} would evict others, within all budgets",
    Outcome.PREEMPTS_VIOLATING_BUDGETS: "{} would evict others and violate budgets",
    Outcome.NEVER_LANDS: "{} cannot land now, and preemption does not help",
    Outcome.UNCERTAIN: "of {} it is uncertain what becomes",
}
_STATE_WORDS: dict[PendingState, str] = {
    PendingState.BEING_DELETED: "{} are being deleted",
    PendingState.NO_SCHEDULER: "{} for a scheduler that is not in the configuration",
    PendingState.GATED: "{} held back by scheduling gates",
    PendingState.HELD: "{} held back",
    PendingState.WAITS_FOR_VICTIMS: "{} nominated, waiting for victims to leave",
}

# The five lines that there can be, with their ends, so stay within 400 characters.
LONGEST_LINE = 79
_EVICTING = (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)
_OUTSIDE = (PendingState.BEING_DELETED, PendingState.NO_SCHEDULER, PendingState.GATED, PendingState.HELD)
_CAUSES = 2


def render_pending(pending: PendingPods, options: RenderOptions) -> str:
    """Groups with their pods, most of them as one line for each kind of pod, then the summary."""
    page = Page(options.width)
    items = {item.pod: item for item in pending.items}
    if not items:
        page.paragraph(nothing_pending(pending))
    for group in pending.groups:
        page.blank()
        _add_group(page, group, [items[name] for name in group.pods], pending, options)
    add_assumptions_section(page, pending.assumptions, options)
    if items:
        _add_notes(page, pending)
        page.blank()
        for line in summary_lines(pending):
            page.paragraph(line)
    return finished(page, options)


def nothing_pending(pending: PendingPods) -> str:
    """That no pod is pending of those asked about, and where others are."""
    namespace, others = pending.namespace, dict(pending.not_asked)
    where = f" in namespace {namespace}" if namespace else ""
    unmatched = others.pop(namespace, 0) if namespace else sum(others.values())
    said = f"No pod is pending{where}."
    if pending.has_namespace is False:
        said = f'There is no namespace "{namespace}".'
    elif unmatched:
        there = f"{count(unmatched, 'other pod')} {agree(unmatched, 'is')} pending"
        said = f"No pending pod{where} matches the selector; {there}."
    elif namespace and pending.has_namespace is None:
        said = f"No pod is pending{where}, and nothing that was read is in it: there may be no such namespace."
    if not namespace or not others:
        return said
    number = sum(others.values())
    named = join_names([f"{name} ({each:,})" for name, each in others.items()])
    elsewhere = "another" if len(others) == 1 else "others"
    return f"{said} {count(number, 'pod')} {agree(number, 'is')} pending in {elsewhere}: {named}."


def _add_group(
    page: Page, group: PendingGroup, items: Sequence[PendingPod], pending: PendingPods, options: RenderOptions
) -> None:
    label, style, words = group_in_words(group, len(items))
    cause = f": {group.cause}" if group.cause else ""
    page.paragraph(Span(label, style), "  ", words, cause, hanging=_INDENT)
    rows = alike(items)
    shown = rows if options.verbose else rows[:_ROWS_SHOWN]
    for row in shown:
        _add_row(page, row, pending, options)
    if rest := sum(map(len, rows[len(shown) :])):
        page.paragraph(Span(f"… and {count(rest, 'more pod')} (--verbose lists them)", "dim"), indent=_INDENT)


def group_in_words(group: PendingGroup, pods: int) -> tuple[str, Style, str]:
    """What the pods of a group have in common: a label with its style, and a sentence without a full stop."""
    label, style = _LABELS[group.outcome]
    words = _WORDS.get(group.outcome, "{} not scheduled")
    if group.state is not None:
        label, style, words = _STATE_LABELS[group.state], "warn", _STATE_WORDS[group.state]
    elif group.refused_for_good:
        label, words = "NEVER", "{} can never land on these nodes"
    return label, style, words.format(count(pods, "pod"))


def alike(items: Sequence[PendingPod]) -> list[list[PendingPod]]:
    """Pods of one owner of which the same is to say, together."""
    rows: dict[tuple[object, ...], list[PendingPod]] = {}
    for item in items:
        key = (
            item.owner or item.pod,
            item.pod.partition("/")[0],
            item.priority,
            item.state,
            item.outcome,
            *item.nodes,
            *(victim.pod for each in item.victims.values() for victim in each),
            "|",
            item.nominated_node_name,
            item.agreement,
            item.message,
        )
        rows.setdefault(key, []).append(item)
    return list(rows.values())


def _add_row(page: Page, row: Sequence[PendingPod], pending: PendingPods, options: RenderOptions) -> None:
    item = row[0]
    places = [each.position for each in row if each.position is not None]
    place = f"{places[0]}. " if places else "- "
    page.paragraph(place, strong(item.pod), *_facts(row), indent=_INDENT, hanging=len(place))
    indent = _INDENT + len(place)
    fate = fate_in_words(item) if item.state != PendingState.WAITS_FOR_VICTIMS else ()
    for phrase in (fate, state_in_words(item, pending.at)):
        if phrase:
            page.paragraph(*phrase, indent=indent, hanging=_INDENT)
    leaving = item.waiting_for if options.verbose else item.waiting_for[:_LEAVING_SHOWN]
    for each in leaving:
        page.paragraph(*leaving_in_words(each, pending.at), indent=indent + _INDENT, hanging=_INDENT)
    if rest := len(item.waiting_for) - len(leaving):
        page.paragraph(Span(f"… and {count(rest, 'more pod')}", "dim"), indent=indent + _INDENT)
    if said := agreement_in_words(item, verbose=options.verbose):
        page.paragraph(Span(said, "dim"), indent=indent, hanging=_INDENT)


def _facts(row: Sequence[PendingPod]) -> Phrase:
    item = row[0]
    class_name = f' "{item.priority_class_name}"' if item.priority_class_name else ""
    more = f" and {len(row) - 1:,} more of {item.owner}" if len(row) > 1 else ""
    last = row[-1].position
    until = f", to place {last:,}" if len(row) > 1 and last is not None else ""
    return (Span(f"  priority {item.priority:,}{class_name}", "dim"), f"{more}{until}")


def _add_notes(page: Page, pending: PendingPods) -> None:
    page.blank()
    page.paragraph(Span(notes_in_words(pending), "dim"))


def notes_in_words(pending: PendingPods) -> str:
    """What the places and the verdicts do not say."""
    notes = ["Each pod is judged alone, as if it came next; the numbers are places in the scheduling queue."]
    unsure = sum(
        item.queue_time_source in (QueueTimeSource.CONDITION, QueueTimeSource.CREATION)
        and item.state not in (PendingState.NEVER_TRIED, *_STATE_WORDS)
        for item in pending.items
    )
    if unsure:
        verb = agree(unsure, "was")
        notes.append(f"When {count(unsure, 'pod')} {verb} last tried is not known: places of one priority may differ.")
    outside = pending.in_queue - sum(item.position is not None for item in pending.items)
    if outside:
        notes.append(f"{count(outside, 'more pod')} in the queue {agree(outside, 'was')} not asked about.")
    return " ".join(notes)


def summary_lines(pending: PendingPods) -> list[str]:
    """At most five lines of at most 79 characters, safe to paste."""
    return [_cut(printable(line)) for line in summary_sentences(pending)]


def summary_sentences(pending: PendingPods) -> list[str]:
    """The summary, whole: counts, evictions, who waits, what is unschedulable, and who is first."""
    items = pending.items
    lines = [_counts(pending), _evictions(pending), _waiting(items), _unschedulable(items), _next(pending)]
    return [line for line in lines if line]


def _counts(pending: PendingPods) -> str:
    number = len(pending.items)
    at = f" at {format_time(pending.at)}" if pending.at else ""
    by = f", {pending.algorithm}" if pending.algorithm else ""
    return f"{count(number, 'pod')} {agree(number, 'is')} pending{at} ({count(pending.cluster.nodes, 'node')}{by})"


def _evictions(pending: PendingPods) -> str:
    evicting = [item for item in pending.items if item.outcome in _EVICTING and item.state not in _OUTSIDE]
    if not evicting:
        return ""
    victims = {
        victim.pod for item in evicting for each in item.victims.values() for victim in each if not victim.terminating
    }
    violating = sum(item.outcome == Outcome.PREEMPTS_VIOLATING_BUDGETS for item in evicting)
    budgets = f", {violating:,} against budgets" if violating else ""
    whom = f"up to {count(len(victims), 'pod')}" if victims else "only pods that are leaving"
    return f"{len(evicting):,} would evict {whom}{budgets}"


def _waiting(items: Iterable[PendingPod]) -> str:
    states = Counter(item.state for item in items)
    lands = sum(item.outcome == Outcome.LANDS and item.state not in _OUTSIDE for item in items)
    parts = [
        (states[PendingState.WAITS_FOR_VICTIMS], "waiting for victims"),
        (lands, "fit now"),
        (states[PendingState.GATED], "gated"),
        (states[PendingState.NO_SCHEDULER], "without a scheduler"),
        (states[PendingState.HELD], "held back"),
        (states[PendingState.BEING_DELETED], "being deleted"),
    ]
    return ", ".join(f"{number:,} {words}" for number, words in parts if number)


def _unschedulable(items: Iterable[PendingPod]) -> str:
    unschedulable = [
        item for item in items if item.outcome == Outcome.NEVER_LANDS and item.state != PendingState.WAITS_FOR_VICTIMS
    ]
    if not unschedulable:
        return ""
    causes = Counter(item.cause for item in unschedulable)
    never = sum(item.refused_for_good for item in unschedulable)
    named = "; ".join(f"{number:,} {cause}" for cause, number in causes.most_common(_CAUSES))
    if never == len(unschedulable):
        return f"{never:,} can never land on these nodes: {named}"
    of_these = f" ({never:,} can never land on these nodes)" if never else ""
    return f"{len(unschedulable):,} unschedulable now{of_these}: {named}"


def _next(pending: PendingPods) -> str:
    first = next((item for item in pending.items if item.position is not None), None)
    if first is None:
        return ""
    age = f", {format_since(first.created, pending.at)} old" if first.created and pending.at else ""
    return f"first: {first.pod} (priority {first.priority:,}{age})"


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
