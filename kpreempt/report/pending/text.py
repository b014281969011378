"""The pending pods for a terminal, each in full: by cause, in the order of the queue."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_absent_kinds, add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Page, Phrase, Span, Style, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.pending.more_nodes import add_more_nodes
from kpreempt.report.pending.screen import render_screen
from kpreempt.report.pending.summary import changes_in_words, facts_in_words, notes_in_words, summary
from kpreempt.report.pending.words import (
    NO_NODE_FITS,
    agreement_in_words,
    fate_in_words,
    leaving_in_words,
    nothing_pending,
    state_in_words,
)
from kpreempt.verdict import Outcome
from kpreempt.verdict.pending import PendingGroup, PendingPod, PendingPods, PendingState
from kpreempt.verdict.unread import are_budgets_unread

_INDENT = 2
_LABELS: dict[Outcome, tuple[str, Style]] = {
    Outcome.LANDS: ("LANDS", "good"),
    Outcome.PREEMPTS: ("PREEMPTS", "warn"),
    Outcome.PREEMPTS_VIOLATING_BUDGETS: ("PREEMPTS", "bad"),
    Outcome.NEVER_LANDS: ("UNSCHEDULABLE", "bad"),
    Outcome.NOT_SCHEDULED: ("HELD", "warn"),
    Outcome.UNCERTAIN: ("UNCERTAIN", "warn"),
}
_STATE_LABELS: dict[PendingState, str] = {
    PendingState.BEING_DELETED: "TERMINATING",
    PendingState.NO_SCHEDULER: "OTHER SCHEDULER",
    PendingState.GATED: "GATED",
    PendingState.HELD: "HELD",
    PendingState.WAITS_FOR_VICTIMS: "WAITS",
}
_WORDS: dict[Outcome, str] = {
    Outcome.LANDS: "{} would land; nothing is evicted",
    Outcome.PREEMPTS: "{} would preempt others; no budget is violated",
    Outcome.PREEMPTS_VIOLATING_BUDGETS: "{} would preempt others and violate budgets",
    Outcome.NEVER_LANDS: "{} unschedulable now; preemption doesn't help",
    Outcome.UNCERTAIN: "{} whose outcome is uncertain",
}
_STATE_WORDS: dict[PendingState, str] = {
    PendingState.BEING_DELETED: "{} being deleted",
    PendingState.NO_SCHEDULER: "{} whose schedulerName is not in the configuration",
    PendingState.GATED: "{} with scheduling gates",
    PendingState.HELD: "{} held out of the queue",
    PendingState.WAITS_FOR_VICTIMS: "{} nominated, waiting for victims to terminate",
}


def render(pending: PendingPods, options: RenderOptions) -> str:
    """One screen, or with ``verbose`` every pod in full."""
    return render_pending(pending, options) if options.verbose else render_screen(pending, options)


def render_pending(pending: PendingPods, options: RenderOptions) -> str:
    """The sentence, then all pods by cause, each kind of pod once."""
    page = Page(options.width)
    items = {item.pod: item for item in pending.items}
    page.paragraph(*(summary(pending) if items else (nothing_pending(pending),)))
    add_absent_kinds(page, pending.assumptions)
    if items:
        page.paragraph(Span(facts_in_words(pending), "dim"))
    if changes := changes_in_words(pending):
        page.paragraph(*changes, hanging=_INDENT)
    add_more_nodes(page, pending)
    for group in pending.groups:
        page.blank()
        _add_group(page, group, [items[name] for name in group.pods], pending)
    add_assumptions_section(page, pending.assumptions, options)
    if items:
        page.blank()
        page.paragraph(Span(notes_in_words(pending), "dim"))
    return finished(page, options)


def _add_group(page: Page, group: PendingGroup, items: Sequence[PendingPod], pending: PendingPods) -> None:
    label, style, words = group_in_words(group, len(items), pending)
    cause = f": {group.cause}" if group.cause else ""
    page.paragraph(Span(label, style), "  ", words, cause, hanging=_INDENT)
    for row in alike(items):
        _add_row(page, row, pending)


def group_in_words(group: PendingGroup, pods: int, pending: PendingPods) -> tuple[str, Style, str]:
    """What the pods of a group have in common: a label with its style, and a sentence without a full stop."""
    label, style = _LABELS[group.outcome]
    words = _WORDS.get(group.outcome, "{} not scheduled")
    if group.outcome is Outcome.PREEMPTS and are_budgets_unread(pending.assumptions):
        words = "{} would preempt others; budgets were not read"
    if group.state is not None:
        label, style, words = _STATE_LABELS[group.state], "warn", _STATE_WORDS[group.state]
    elif group.refused_for_good:
        words = f"{words}; {NO_NODE_FITS}"
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


def _add_row(page: Page, row: Sequence[PendingPod], pending: PendingPods) -> None:
    item = row[0]
    places = [each.position for each in row if each.position is not None]
    place = f"{places[0]}. " if places else "- "
    page.paragraph(place, strong(item.pod), *_facts(row), indent=_INDENT, hanging=len(place))
    indent = _INDENT + len(place)
    fate = fate_in_words(item) if item.state != PendingState.WAITS_FOR_VICTIMS else ()
    for phrase in (fate, state_in_words(item, pending.at)):
        if phrase:
            page.paragraph(*phrase, indent=indent, hanging=_INDENT)
    for each in item.waiting_for:
        page.paragraph(*leaving_in_words(each, pending.at), indent=indent + _INDENT, hanging=_INDENT)
    if item.claims:
        page.paragraph(f"claims: {join_names(item.claims, limit=len(item.claims))}", indent=indent, hanging=_INDENT)
    if said := agreement_in_words(item):
        page.paragraph(Span(said, "dim"), indent=indent, hanging=_INDENT)


def _facts(row: Sequence[PendingPod]) -> Phrase:
    item = row[0]
    class_name = f' "{item.priority_class_name}"' if item.priority_class_name else ""
    more = f" and {len(row) - 1:,} more of {item.owner}" if len(row) > 1 else ""
    last = row[-1].position
    until = f", to place {last:,}" if len(row) > 1 and last is not None else ""
    return (Span(f"  priority {item.priority:,}{class_name}", "dim"), f"{more}{until}")
