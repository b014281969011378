"""What an upgrade changes, for a terminal: the pods by the change of Kubernetes that makes the difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.compare import decision_words
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.screen_frame import clipped
from kpreempt.report.layout import Page, Phrase, Span, Style, strong
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.screen import Block, fill
from kpreempt.verdict.compare import (
    Certainty,
    UpgradeComparison,
    UpgradedPod,
    UpgradeEffect,
    UpgradeGroup,
    VersionChange,
)

_INDENT = 2
_ROWS_SHOWN = 20
_GATES_SHOWN = 4
_LINES_OF_CAUSE = 4
_MORE = "-v (every pod by cause, gates that are not modelled, all assumptions)"
_EFFECTS: dict[UpgradeEffect, tuple[str, str, Style]] = {
    UpgradeEffect.NO_LONGER_LANDS: ("no longer lands", "may no longer land", "bad"),
    UpgradeEffect.EVICTS: ("preempts differently", "may preempt differently", "bad"),
    UpgradeEffect.LANDS_ELSEWHERE: ("lands elsewhere", "may land elsewhere", "warn"),
    UpgradeEffect.EVICTS_NOBODY: ("preempts nobody", "may preempt nobody", "good"),
    UpgradeEffect.LANDS_NOW: ("lands now", "may land now", "good"),
    UpgradeEffect.ATTEMPT: ("tried differently", "may be tried differently", "warn"),
    UpgradeEffect.UNTOLD: ("unknown", "unknown", "warn"),
}


def render_upgrade(answer: UpgradeComparison, options: RenderOptions) -> str:
    """How many pods fare otherwise, then these by cause, and what is not known; or what of it fits a screen."""
    page = Page(options.width)
    _add_headline(page, answer)
    changes = {change.name: change for change in answer.changes}
    if options.extent is Extent.SCREEN:
        return fill(page, _blocks(answer, changes, options), answer.assumptions, _MORE, options)
    for group in answer.groups:
        page.blank()
        _add_cause(page, group, changes)
        _add_pods(page, _of_group(answer.items, group), options)
    unknown = [item for item in answer.items if item.certainty is Certainty.UNKNOWN]
    if unknown:
        page.blank()
        page.paragraph(strong("Unknown"), " to one of the versions:", hanging=_INDENT)
        _add_pods(page, unknown, options)
    if answer.not_modelled:
        page.blank()
        names = join_names(answer.not_modelled, limit=len(answer.not_modelled) if options.verbose else _GATES_SHOWN)
        gates = "gate" if len(answer.not_modelled) == 1 else "gates"
        words = f"{gates} whose default changes in {answer.target}: {names}"
        page.paragraph(Span("NOT MODELLED", "heading"), f"  {words}.", hanging=_INDENT)
    add_assumptions_section(page, answer.assumptions, options)
    return finished(page, options)


def _blocks(answer: UpgradeComparison, changes: dict[str, VersionChange], options: RenderOptions) -> list[Block]:
    """Each cause with its pods, then those of which nothing is known, for a screen."""
    causes: list[tuple[Page, Sequence[UpgradedPod]]] = []
    for group in answer.groups:
        cause = Page(options.width)
        _add_cause(cause, group, changes)
        causes.append((cause, _of_group(answer.items, group)))
    if unknown := [item for item in answer.items if item.certainty is Certainty.UNKNOWN]:
        cause = Page(options.width)
        cause.paragraph(strong("Unknown"), " to one of the versions:")
        causes.append((cause, unknown))
    told = []
    for cause, items in causes:
        rows = Page(options.width).rows(_rows(items), aligns=("left", "left", "left"), indent=_INDENT)
        head = clipped(cause.lines, _LINES_OF_CAUSE, options.width)
        told.append(Block(head, [clipped(row, 2, options.width) for row in rows], "pod"))
    return told


def _add_headline(page: Page, answer: UpgradeComparison) -> None:
    title = strong(f"From {answer.base} to {answer.target}")
    if not answer.asked:
        page.paragraph(title, ": no pod matches.")
        return
    asked = count(answer.asked, "pod")
    if answer.passes:
        every = "the pod keeps its outcome" if answer.asked == 1 else f"all {asked} keep their outcome"
        page.paragraph(title, ": ", Span(every, "good"), ".")
        return
    parts: list[str] = []
    if answer.differing:
        parts.append(f"{answer.differing:,} of {asked} {agree(answer.differing, 'changes')} outcome")
    if answer.possibly_differing:
        number = f"{answer.possibly_differing:,}"
        parts.append(f"{number} more may" if parts else f"{number} of {asked} may change outcome")
    if answer.undecided:
        parts.append(f"{answer.undecided:,} unknown")
    page.paragraph(title, ": ", Span(", ".join(parts), "warn"), ".", hanging=_INDENT)
    if answer.possibly_differing:
        chance = "chance, the order of equal pods, or the node at which the search stops"
        page.paragraph(Span(f"“may”: decided by {chance}.", "dim"))


def _add_cause(page: Page, group: UpgradeGroup, changes: dict[str, VersionChange]) -> None:
    """The changes, each with its sentence and source."""
    if not group.causes:
        page.paragraph(strong("Several changes together"), ", none of them alone.", hanging=_INDENT)
        return
    if len(group.causes) > 1:
        page.paragraph(strong("These changes together:"))
    for name in group.causes:
        change = changes[name]
        source = Span(f" ({change.source})", "dim")
        page.paragraph(strong(change.sentence), source, hanging=_INDENT)


def _add_pods(page: Page, items: Sequence[UpgradedPod], options: RenderOptions) -> None:
    shown = items if options.verbose else items[:_ROWS_SHOWN]
    page.table(_rows(shown), aligns=("left", "left", "left"), indent=_INDENT)
    if rest := len(items) - len(shown):
        page.paragraph(Span(f"… and {count(rest, 'more pod')} (-v)", "dim"), indent=_INDENT)


def _rows(items: Sequence[UpgradedPod]) -> list[tuple[Phrase, ...]]:
    """What changes for each pod."""
    rows: list[tuple[Phrase, ...]] = []
    for item in items:
        certain, possible, style = _EFFECTS[item.effect]
        words = certain if item.certainty is Certainty.CERTAIN else possible
        fate = (*decision_words(item.base), Span(" → ", "dim"), *decision_words(item.target))
        rows.append(((strong(item.origin or item.pod),), (Span(words, style),), fate))
    return rows


def _of_group(items: Iterable[UpgradedPod], group: UpgradeGroup) -> list[UpgradedPod]:
    """Its pods, those that fare worse first."""
    order = list(UpgradeEffect)
    own = [item for item in items if item.causes == group.causes and item.certainty is not Certainty.UNKNOWN]
    return sorted(own, key=lambda item: (order.index(item.effect), item.certainty is not Certainty.CERTAIN))
