"""The audit of PodDisruptionBudgets for a terminal: what is wrong, by severity, who breaks them, and all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.budgets.words import (
    SENTENCES,
    bare_subject,
    breach_in_words,
    fix_in_words,
    without_budget_in_words,
)
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.victims import bare_name
from kpreempt.report.layout import Align, Page, Phrase, Span, Style, plain, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Assumption, Threshold
from kpreempt.verdict.budgets import (
    AuditedBudget,
    Breach,
    BreakingPriority,
    BudgetAudit,
    Finding,
    FindingId,
    Severity,
)
from kpreempt.verdict.unread import are_budgets_unread

_INDENT = 2
# Where the text below a finding's title starts.
_BODY = 4
_NAMES_SHOWN = 3
_BREACHES_SHOWN = 3
_PRIORITIES_SHOWN = 4
_BUDGETS_SHOWN = 12
_SHOWN = {Severity.ERROR: 8, Severity.WARNING: 6, Severity.NOTE: 4}
# Of one kind where not all are shown.
_SHOWN_OF_KIND = 2
_STYLES: dict[Severity, Style] = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "strong"}
_ALIGNS: tuple[Align, ...] = ("left", "left", "right", "right", "right", "right", "left")
_TITLES = ("BUDGET", "AS WRITTEN", "READY", "OF", "STAY", "MAY GO", "PROTECTS")


def render_budgets(audit: BudgetAudit, options: RenderOptions) -> str:
    """A sentence, the findings by severity and namespace, from which priority budgets break, and every budget."""
    page = Page(options.width)
    _add_headline(page, audit)
    items = {item.budget: item for item in audit.items}
    for severity in Severity:
        _add_findings(page, severity, audit, items, options)
    _add_priorities(page, audit, options)
    _add_table(page, audit, options)
    add_assumptions_section(page, _assumptions(audit, options), options)
    return finished(page, options)


def _add_headline(page: Page, audit: BudgetAudit) -> None:
    findings = audit.findings
    numbers = [
        count(number, severity)
        for severity in Severity
        if (number := sum(each.severity is severity for each in findings))
    ]
    if are_budgets_unread(audit.assumptions):
        page.paragraph(Span("What is wrong with budgets is unknown", "warn"), ": they could not be read.")
    elif not audit.items:
        page.paragraph(strong("No budget is asked about"), ": there is none, or none matches.")
    elif numbers:
        page.paragraph(strong(count(len(audit.items), "budget")), ": ", ", ".join(numbers), ".")
    else:
        page.paragraph(strong(count(len(audit.items), "budget")), ", and ", Span("nothing is wrong", "good"), ".")
    if audit.items:
        nodes, pods = count(audit.cluster.nodes, "node"), count(audit.cluster.pods, "pod")
        pending = f"{count(audit.pending, 'pending pod')} asked"
        facts = filter(None, (nodes, pods, audit.algorithm, pending))
        page.paragraph(Span(" · ".join(facts), "dim"), indent=_INDENT)


def _add_findings(
    page: Page, severity: Severity, audit: BudgetAudit, items: dict[str, AuditedBudget], options: RenderOptions
) -> None:
    findings = [each for each in audit.findings if each.severity is severity]
    if not findings:
        return
    page.blank()
    page.paragraph(Span(severity.upper(), _STYLES[severity]), f"  {count(len(findings), 'finding')}")
    rows = _rows(findings, items)
    shown = rows if options.verbose else _of_every_kind(rows, _SHOWN[severity])
    for row in shown:
        _add_row(page, row, items, options)
    hidden = Counter(each.id for row in rows if row not in shown for each in row)
    if hidden:
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in hidden.most_common())
        more = f"… and {count(hidden.total(), 'more finding')}: {kinds} (--verbose lists them)"
        page.paragraph(Span(more, "dim"), indent=_INDENT, hanging=_INDENT)


def _rows(findings: Sequence[Finding], items: dict[str, AuditedBudget]) -> list[list[Finding]]:
    """Findings of a namespace of which the same is to say, together."""
    rows: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        item = _budget_of(finding, items)
        key: tuple[object, ...] = finding.id, finding.namespace
        if finding.id is FindingId.BROKEN_BY_PREEMPTION:
            key = (*key, finding.subject)
        elif item is not None:
            key = (*key, plain(SENTENCES[finding.id](finding, item)), fix_in_words(finding, item))
        rows.setdefault(key, []).append(finding)
    return list(rows.values())


def _of_every_kind(rows: list[list[Finding]], limit: int) -> list[list[Finding]]:
    """All rows where they are few; else so many, in their order: the first of every kind, then the second."""
    if len(rows) <= limit:
        return rows
    seen: Counter[FindingId] = Counter()
    ranks = []
    for place, row in enumerate(rows):
        ranks.append((seen[row[0].id], place))
        seen[row[0].id] += 1
    first = [place for rank, place in sorted(ranks) if rank < _SHOWN_OF_KIND][:limit]
    return [rows[place] for place in sorted(first)]


def _budget_of(finding: Finding, items: dict[str, AuditedBudget]) -> AuditedBudget | None:
    """The budget that a finding is about; a workload without one may have the name of another's."""
    key = f"{finding.namespace}/{bare_subject(finding.subject)}"
    return None if finding.id is FindingId.NO_BUDGET else items.get(key)


def _add_row(page: Page, row: Sequence[Finding], items: dict[str, AuditedBudget], options: RenderOptions) -> None:
    finding = row[0]
    item = _budget_of(finding, items)
    if finding.id is FindingId.NO_BUDGET:
        title = finding.namespace
    else:
        names = [
            f"{finding.namespace}/{bare_subject(row[0].subject)}",
            *(bare_subject(each.subject) for each in row[1:]),
        ]
        title = join_names(names, limit=len(names) if options.verbose else _NAMES_SHOWN)
    page.paragraph(strong(title), Span(f"  {finding.id}", "dim"), indent=_INDENT, hanging=_INDENT)
    if finding.id is FindingId.NO_BUDGET:
        page.paragraph(without_budget_in_words(row, options), indent=_BODY)
    elif item is not None and finding.id is FindingId.BROKEN_BY_PREEMPTION:
        _add_breaches(page, item, options)
    elif item is not None:
        page.paragraph(*SENTENCES[finding.id](finding, item), indent=_BODY)
    if fix := fix_in_words(finding, item):
        page.paragraph(Span("fix: ", "good"), fix, indent=_BODY, hanging=5)


def _add_breaches(page: Page, item: AuditedBudget, options: RenderOptions) -> None:
    """Which pending pods would break the budget; those of one owner that do it alike are told together."""
    groups: dict[tuple[object, ...], list[Breach]] = {}
    for breach in item.breaches:
        key = (breach.owner or breach.pod, breach.priority, *breach.nodes, "|", *breach.victims)
        groups.setdefault(key, []).append(breach)
    rows = list(groups.values())
    shown = rows if options.verbose else rows[:_BREACHES_SHOWN]
    for row in shown:
        page.paragraph(*breach_in_words(row), indent=_BODY, hanging=_INDENT)
    if rest := sum(map(len, rows[len(shown) :])):
        page.paragraph(Span(f"… and {count(rest, 'more pod')} (--verbose lists them)", "dim"), indent=_BODY)


def _add_priorities(page: Page, audit: BudgetAudit, options: RenderOptions) -> None:
    searched = [(item, item.breaking_priority) for item in audit.items if item.breaking_priority is not None]
    if not searched:
        return
    page.blank()
    page.paragraph(
        Span("FROM", "heading"),
        "  which priority on a new pod would break a budget that allows nothing, if it needs all that pods up to the"
        " priority of the budget's least important one hold on a node; in brackets: if it has to go to that node",
        hanging=_INDENT,
    )
    shown = searched if options.verbose else searched[:_PRIORITIES_SHOWN]
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in ("BUDGET", "FROM", "EVICTS"))]
    for item, found in shown:
        whom = f"{bare_name(found.pod)} (priority {found.priority:,}) on {found.node}"
        rows.append(((strong(item.budget),), (_priority(found.threshold),), (whom,)))
    page.table(rows, aligns=("left", "right", "left"), indent=_INDENT)
    legend = ["never: no priority evicts it for such a pod"] if any(_is_never(each) for _, each in shown) else []
    if left_out := audit.unsearched + len(searched) - len(shown):
        legend.append(f"{count(left_out, 'more budget')} not shown")
    if legend:
        page.paragraph(Span("; ".join(legend), "dim"), indent=_INDENT)


def _is_never(found: BreakingPriority) -> bool:
    return found.threshold.anywhere is None and found.threshold.on_node is None


def _priority(threshold: Threshold) -> str:
    """``11`` where a pod that may go anywhere evicts it, ``(11)`` where one that has to go to its node does."""
    anywhere, on_node = threshold.anywhere, threshold.on_node
    if anywhere is not None:
        return f"{anywhere:,}" if on_node in (None, anywhere) else f"{anywhere:,} ({on_node:,})"
    return "never" if on_node is None else f"({on_node:,})"


def _add_table(page: Page, audit: BudgetAudit, options: RenderOptions) -> None:
    if not audit.items:
        return
    page.blank()
    page.paragraph(Span("BUDGETS", "heading"), "  how many pods are ready, of how many expected, must stay, and may go")
    # Those about which there is something to say come first where not all are shown.
    items = audit.items
    if not options.verbose and len(items) > _BUDGETS_SHOWN:
        items = sorted(items, key=lambda each: min((x.severity.rank for x in each.findings), default=len(Severity)))
        items = items[:_BUDGETS_SHOWN]
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in _TITLES)]
    for item in items:
        style: Style = "warn" if item.allowed <= 0 else "good"
        rows.append(
            (
                (strong(item.budget),),
                (_short(item),),
                (f"{item.healthy:,}",),
                (f"{item.expected:,}",),
                (f"{item.desired:,}",),
                (Span(f"{item.allowed:,}", style),),
                (_protects(item),),
            )
        )
    page.table(rows, aligns=_ALIGNS, indent=_INDENT)
    if rest := len(audit.items) - len(items):
        page.paragraph(Span(f"… and {count(rest, 'more budget')} (--verbose lists them)", "dim"), indent=_INDENT)


def _short(item: AuditedBudget) -> str:
    if item.max_unavailable is not None:
        return f"max {item.max_unavailable} gone"
    return "nothing" if item.min_available is None else f"min {item.min_available} stay"


def _protects(item: AuditedBudget) -> str:
    names = [each.workload or count(each.pods, "lone pod") for each in item.workloads]
    return join_names(names, limit=2) if names else "no pod"


def _assumptions(audit: BudgetAudit, options: RenderOptions) -> Sequence[Assumption]:
    """Without those that findings tell."""
    if options.verbose:
        return audit.assumptions
    told = {
        f"PodDisruptionBudget {item.budget}"
        for item in audit.items
        if any(finding.id is FindingId.NO_STATUS for finding in item.findings)
    }
    return [each for each in audit.assumptions if each.field != "status" or each.subject not in told]
