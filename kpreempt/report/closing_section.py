"""What ends a report: the event, what the scheduler then does, what was filled in, and what is not modelled."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.blocks import Listing, Section, Sentence, Words
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.failures import add_causes, find_nearest
from kpreempt.report.explain.headline import acted_on, destinations, tie_in_event
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, plain, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Admitted, Assumption, AssumptionKind, Effect, Outcome, Verdict
from kpreempt.verdict.unread import absent_sentence

# What could not be read comes first; what only informs, or stands in the first lines, last.
_ORDER_SHOWN = {AssumptionKind.UNREADABLE: 0, AssumptionKind.NOTE: 2, AssumptionKind.ABSENT: 2}
# The last sections of a screen.
_ASSUMED = 10
_NEAREST_SHOWN = 3
_DELETIONS_SHOWN = 5
_LINES_SHOWN = 4
_FIELDS_SHOWN = 4
_ADMITTED_LENGTH = 68


def add_nearest_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``NEAREST``: for a pod that lands nowhere, the nodes that lack least."""
    if verdict.outcome != Outcome.NEVER_LANDS:
        return
    after_evictions = find_nearest(verdict.dry_run)
    nearest = after_evictions or find_nearest(verdict.filter)
    if not nearest:
        return
    page.blank()
    when = "without their lower-priority pods, these lack least:" if after_evictions else "these lack least:"
    page.labelled(Span("NEAREST", "heading"), when, column=LABEL_COLUMN)
    add_causes(page, nearest[:_NEAREST_SHOWN], options, indent=2)


def add_event_section(page: Page, verdict: Verdict) -> None:
    """``EVENT``: the scheduler's message, word for word."""
    if not verdict.message:
        return
    page.blank()
    page.labelled(Span("EVENT", "heading"), verdict.message, column=LABEL_COLUMN)
    if said := tie_in_event(verdict):
        page.labelled("", Span(said, "dim"), column=LABEL_COLUMN)


def add_effects_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``THEN``: what the scheduler does, in order; with ``verbose`` every write."""
    lines = [every_write(effect) for effect in verdict.effects] if options.verbose else _in_short(verdict)
    if not lines:
        return
    page.blank()
    nodes = destinations(verdict)
    if len(nodes) > 1:
        page.labelled(Span("THEN", "heading"), f"if {acted_on(verdict) or nodes[0]} is picked:", column=LABEL_COLUMN)
    for number, line in enumerate(lines, 1):
        label = Span("THEN", "heading") if number == 1 and len(nodes) < 2 else ""
        ordinal = f"{number}. " if len(lines) > 1 else ""
        page.labelled(label, ordinal, *line, column=LABEL_COLUMN, hanging=len(ordinal))


def add_admission_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``FILLED IN``: what the API server adds before the scheduler looks, by where it is from."""
    by_reason: dict[str, list[Admitted]] = {}
    for each in verdict.admission:
        by_reason.setdefault(each.reason, []).append(each)
    lines = [_admitted(reason, group) for reason, group in by_reason.items()]
    if options.verbose:
        lines = [(f"{each.path} = {each.value}", Span(f"  ({each.reason})", "dim")) for each in verdict.admission]
    shown = lines if options.verbose else lines[:_LINES_SHOWN]
    _add_listed(page, Span("FILLED IN", "heading"), shown, len(lines) - len(shown), "-v -v")


def _admitted(reason: str, group: Sequence[Admitted]) -> Phrase:
    """The fields with their values, or without where they would fill more than a line."""
    source = Span(f"  ({reason})", "dim")
    settings = ", ".join(f"{each.path} = {each.value}" for each in group)
    if len(settings) <= _ADMITTED_LENGTH:
        return (settings, source)
    return (join_names([each.path for each in group], limit=_FIELDS_SHOWN), source)


def add_assumptions_section(
    page: Page, assumptions: Sequence[Assumption], options: RenderOptions, *, hint: str = "-v"
) -> None:
    """``ASSUMED``: what the answer does not evaluate and could change it; ``hint`` is the option that lists all.

    ``FILES``: those without objects.
    """
    listed, others = _divided(assumptions)
    shown = others if options.verbose else others[:_LINES_SHOWN]
    lines = [_assumption(each) for each in shown]
    _add_listed(page, Span("ASSUMED", "warn"), lines, len(others) - len(shown), hint)
    _add_listed(page, Span("FILES", "heading"), [_assumption(each) for each in listed], 0, hint)


def assumption_sections(assumptions: Sequence[Assumption], *, shown: int = _LINES_SHOWN) -> list[Section]:
    """``ASSUMED``: what the answer does not evaluate and could change it. ``FILES``: those without objects."""
    listed, others = _divided(assumptions)
    first: Words = ""
    if others:
        weightiest = _assumption(min(others, key=lambda each: _ORDER_SHOWN.get(each.kind, 1)))
        first = (f"{len(others):,} things (-v); the first: " if len(others) > 1 else "", *weightiest)
    return [
        Section(
            "ASSUMED",
            blocks=[Listing([[_assumption(each)] for each in others], noun="assumption", shown=shown)],
            heading="What is assumed",
            anchor="assumptions",
            is_beside=True,
            style="warn",
            priority=_ASSUMED,
            short=Section("ASSUMED", blocks=[Sentence(first)], is_beside=True, style="warn"),
        ),
        Section(
            "FILES",
            blocks=[Listing([[_assumption(each)] for each in listed], noun="file")],
            is_beside=True,
            priority=_ASSUMED - 1,
        ),
    ]


def add_first_assumption(page: Page, assumptions: Sequence[Assumption]) -> None:
    """How many assumptions there are, and one, in two lines at most: of what could not be read, if anything was.

    Files without objects are listed after it.
    """
    listed, others = _divided(assumptions)
    if others:
        first = min(others, key=lambda each: _ORDER_SHOWN.get(each.kind, 1))
        label = f"Assumed (1 of {len(others):,}, -v): " if len(others) > 1 else "Assumed: "
        page.paragraph(Span(label, "warn"), *_assumption(first), hanging=2, most=2)
    for each in listed:
        page.paragraph(Span(plain(_assumption(each)), "dim"), hanging=2, most=2)


def _divided(assumptions: Sequence[Assumption]) -> tuple[list[Assumption], list[Assumption]]:
    """The files without objects, and what is assumed."""
    listed = [each for each in assumptions if each.lists_files]
    return listed, [each for each in assumptions if not each.lists_files]


def add_absent_kinds(page: Page, assumptions: Sequence[Assumption]) -> None:
    """Which kinds the input has none of though they could change the answer, in three lines at most."""
    if unknown := absent_sentence(assumptions):
        page.paragraph(Span(unknown, "warn"), hanging=2, most=3)


def _assumption(assumption: Assumption) -> Phrase:
    subject = " ".join(part for part in (assumption.subject, assumption.field) if part)
    return (f"{subject}: " if subject else "", assumption.message)


def _add_listed(page: Page, label: Span, lines: Sequence[Phrase], rest: int, hint: str) -> None:
    if not lines:
        return
    page.blank()
    for number, line in enumerate(lines):
        page.labelled("" if number else label, *line, column=LABEL_COLUMN)
    if rest:
        page.labelled("", Span(f"… and {rest:,} more ({hint})", "dim"), column=LABEL_COLUMN)


def every_write(effect: Effect) -> Phrase:
    """What is written to which object."""
    before, between = _EVERY.get(effect.action, (f"{effect.action} ", ": "))
    return (before, strong(effect.target), f"{between}{effect.text}" if effect.text else "")


def _in_short(verdict: Verdict) -> list[Phrase]:
    """The effects without the conditions and events that go with them, the deletions together."""
    lines: list[Phrase] = []
    deletions = [effect.target for effect in verdict.effects if effect.action == "delete"]
    for effect in verdict.effects:
        if effect.action == "delete":
            if deletions:
                lines.append(_deletions(deletions))
                deletions = []
        elif effect.action in _SHORT:
            before, between = _SHORT[effect.action]
            lines.append((before, strong(effect.target), f"{between}{effect.text}" if effect.text else ""))
    return lines


# What stands before the object, and between it and the rest.
_SHORT = {
    "nominate": ("nominates ", ": "),
    "clearNomination": ("takes back the nomination of ", ": "),
    "keepNomination": ("leaves the nomination of ", ": "),
    "rejectWaiting": ("rejects the waiting ", ": "),
    "bind": ("binds ", " to "),
    "deallocate": ("takes the devices back from ", ""),
    "deleteClaim": ("deletes ", ""),
}


# The same for what is only shown write by write.
_EVERY = _SHORT | {
    "delete": ("deletes ", ", "),
    "setCondition": ("sets a condition on ", ": "),
    "event": ("records an event on ", ": "),
}


def _deletions(targets: Sequence[str]) -> Phrase:
    """The pods to delete; the last one goes after all others."""
    *first, last = (target.removeprefix("pod ") for target in targets)
    if not first:
        return ("deletes pod ", strong(last))
    named = join_names(first, limit=_DELETIONS_SHOWN)
    return (f"deletes {'pod' if len(first) == 1 else 'pods'} ", strong(named), ", and then ", strong(last))
