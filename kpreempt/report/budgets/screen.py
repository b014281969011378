"""The audit of PodDisruptionBudgets on one screen: a row for each budget with findings, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.report.amounts import count
from kpreempt.report.budgets.words import severity_style, short_spec
from kpreempt.report.closing_section import add_first_assumption
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import COLUMN_GAP, Align, Page, Phrase, Span, strong
from kpreempt.report.options import LEAST_ROWS, RenderOptions
from kpreempt.verdict import Assumption
from kpreempt.verdict.budgets import AuditedBudget, BudgetAudit, Finding, FindingId, Severity

_NARROWEST_FINDINGS = 24
_TITLES = ("BUDGET", "WORST", "SPEC", "READY", "ALLOWED", "FINDINGS")
_ALIGNS: tuple[Align, ...] = ("left", "left", "left", "right", "right", "left")
_SPEC = _TITLES.index("SPEC")
_MORE = "More: -v (each finding with its fix, lowest priorities that break a budget)"


class _Row(NamedTuple):
    """The cells, the severity by which rows are ordered, and all findings that they are about."""

    worst: Severity
    findings: list[FindingId]
    cells: tuple[Phrase, ...]


def add_screen(page: Page, audit: BudgetAudit, assumptions: Sequence[Assumption], options: RenderOptions) -> str:
    """The page, on which the sentence is, with what else fits ``options.height``."""
    closing = Page(options.width)
    add_first_assumption(closing, assumptions)
    if audit.items:
        closing.paragraph(Span(_MORE, "dim"), most=1)
    rows = _rows(audit)
    if rows:
        page.blank()
        room = options.room_of_table(len(page.lines) + len(closing.lines))
        _add_table(page, rows, room)
    if closing.lines:
        page.blank()
        page.lines += closing.lines
    return finished(page, options)


def _rows(audit: BudgetAudit) -> list[_Row]:
    """The budgets and, below those of one severity, the workloads without any."""
    rows: list[_Row] = []
    for item in audit.items:
        if item.findings:
            worst = min((each.severity for each in item.findings), key=lambda each: each.rank)
            rows.append(_Row(worst, [each.id for each in item.findings], _row(worst, item)))
    rows += [
        _Row(each.severity, [each.id], _without_budget(each))
        for each in audit.findings
        if each.id is FindingId.NO_BUDGET
    ]
    return sorted(rows, key=lambda each: each.worst.rank)


def _row(worst: Severity, item: AuditedBudget) -> tuple[Phrase, ...]:
    ids = dict.fromkeys(each.id for each in sorted(item.findings, key=lambda each: each.severity.rank))
    return (
        (strong(item.budget),),
        (Span(worst.upper(), severity_style(worst)),),
        (short_spec(item),),
        (f"{item.healthy:,}/{item.expected:,}",),
        (Span(f"{item.allowed:,}", "warn" if item.allowed <= 0 else "good"),),
        (", ".join(_told(each, item) for each in ids),),
    )


def _told(finding: FindingId, item: AuditedBudget) -> str:
    """The finding, and who preempts where somebody does."""
    if finding is not FindingId.BROKEN_BY_PREEMPTION:
        return finding
    return f"{finding} (by {join_names([each.pod for each in item.breaches], limit=1)})"


def _without_budget(finding: Finding) -> tuple[Phrase, ...]:
    title = (Span(finding.severity.upper(), severity_style(finding.severity)),)
    return ((finding.namespace,), title, ("-",), ("-",), ("-",), (f"{finding.id}: {finding.subject}",))


def _add_table(page: Page, rows: Sequence[_Row], room: int) -> None:
    """As many rows as fit, without the specs where the findings leave no room for them."""
    titles: tuple[Phrase, ...] = tuple((Span(title, "dim"),) for title in _TITLES)
    aligns = _ALIGNS
    table = [titles, *(row.cells for row in rows)]
    if not page.fits([row[:-1] for row in table], indent=_NARROWEST_FINDINGS + COLUMN_GAP):
        table = [(*row[:_SPEC], *row[_SPEC + 1 :]) for row in table]
        aligns = (*_ALIGNS[:_SPEC], *_ALIGNS[_SPEC + 1 :])
    # A row takes a line at least, so that no more of them can fit than there are lines.
    for number in range(min(len(table), max(room, LEAST_ROWS)), 1, -1):
        told = Page(page.width)
        told.table(table[:number], aligns=aligns)
        if rest := rows[number - 1 :]:
            kinds = Counter(each for row in rest for each in row.findings).most_common()
            named = ", ".join(f"{times:,} {kind}" for kind, times in kinds)
            told.paragraph(Span(f"… and {count(len(rest), 'more row')} (-v): {named}", "dim"), indent=COLUMN_GAP)
        if len(told.lines) <= room or number == LEAST_ROWS:
            page.lines += told.lines
            return
