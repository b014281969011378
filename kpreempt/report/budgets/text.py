"""The audit of PodDisruptionBudgets for a terminal: what is wrong, by severity, who breaks them, and all of them."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.budgets.screen import add_screen
from kpreempt.report.budgets.words import (
    SENTENCES,
    bare_subject,
    breach_in_words,
    fix_in_words,
    severity_style,
    short_spec,
    without_budget_in_words,
)
from kpreempt.report.closing_section import add_absent_kinds, add_assumptions_section
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
_ALIGNS: tuple[Align, ...] = ("left", "left", "right", "right", "right", "left")
_TITLES = ("BUDGET", "SPEC", "READY", "DESIRED", "ALLOWED", "PROTECTS")


def render(audit: BudgetAudit, options: RenderOptions) -> str:
    """One screen, or with ``verbose`` every finding, from which priority budgets break, and every budget."""
    page = Page(options.width)
    _add_headline(page, audit)
    add_absent_kinds(page, audit.assumptions)
    if not options.verbose:
        return add_screen(page, audit, _assumptions(audit), options)
    items = {item.budget: item for item in audit.items}
    for severity in Severity:
        _add_findings(page, severity, audit, items)
    _add_priorities(page, audit)
    _add_table(page, audit)
    add_assumptions_section(page, audit.assumptions, options)
    return finished(page, options)


def _add_headline(page: Page, audit: BudgetAudit) -> None:
    findings = audit.findings
    numbers = [
        count(number, severity)
        for severity in Severity
        if (number := sum(each.severity is severity for each in findings))
    ]
    if are_budgets_unread(audit.assumptions):
        page.paragraph(Span("Findings unknown", "warn"), ": PodDisruptionBudgets were not read.")
    elif not audit.items:
        page.paragraph(strong("No PodDisruptionBudget"), ": there is none, or none matches.")
    elif numbers:
        page.paragraph(strong(count(len(audit.items), "budget")), ": ", ", ".join(numbers), ".")
    else:
        page.paragraph(strong(count(len(audit.items), "budget")), ": ", Span("no finding", "good"), ".")
    if audit.items:
        nodes, pods = count(audit.cluster.nodes, "node"), count(audit.cluster.pods, "pod")
        pending = f"{count(audit.pending, 'pending pod')} tried"
        facts = filter(None, (nodes, pods, audit.algorithm, pending))
        page.paragraph(Span(" · ".join(facts), "dim"), indent=_INDENT)


def _add_findings(page: Page, severity: Severity, audit: BudgetAudit, items: dict[str, AuditedBudget]) -> None:
    findings = [each for each in audit.findings if each.severity is severity]
    if not findings:
        return
    page.blank()
    page.paragraph(Span(severity.upper(), severity_style(severity)), f"  {count(len(findings), 'finding')}")
    for row in _rows(findings, items):
        _add_row(page, row, items)


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


def _budget_of(finding: Finding, items: dict[str, AuditedBudget]) -> AuditedBudget | None:
    """The budget that a finding is about; a workload without one may have the name of another's."""
    key = f"{finding.namespace}/{bare_subject(finding.subject)}"
    return None if finding.id is FindingId.NO_BUDGET else items.get(key)


def _add_row(page: Page, row: Sequence[Finding], items: dict[str, AuditedBudget]) -> None:
    finding = row[0]
    item = _budget_of(finding, items)
    if finding.id is FindingId.NO_BUDGET:
        title = finding.namespace
    else:
        names = [
            f"{finding.namespace}/{bare_subject(row[0].subject)}",
            *(bare_subject(each.subject) for each in row[1:]),
        ]
        title = join_names(names, limit=len(names))
    page.paragraph(strong(title), Span(f"  {finding.id}", "dim"), indent=_INDENT, hanging=_INDENT)
    if finding.id is FindingId.NO_BUDGET:
        page.paragraph(without_budget_in_words(row), indent=_BODY)
    elif item is not None and finding.id is FindingId.BROKEN_BY_PREEMPTION:
        _add_breaches(page, item)
    elif item is not None:
        page.paragraph(*SENTENCES[finding.id](finding, item), indent=_BODY)
    if fix := fix_in_words(finding, item):
        page.paragraph(Span("fix: ", "good"), fix, indent=_BODY, hanging=5)


def _add_breaches(page: Page, item: AuditedBudget) -> None:
    """Which pending pods would break the budget; those of one owner that do it alike are told together."""
    groups: dict[tuple[object, ...], list[Breach]] = {}
    for breach in item.breaches:
        key = (breach.owner or breach.pod, breach.priority, *breach.nodes, "|", *breach.victims)
        groups.setdefault(key, []).append(breach)
    for row in groups.values():
        page.paragraph(*breach_in_words(row), indent=_BODY, hanging=_INDENT)


def _add_priorities(page: Page, audit: BudgetAudit) -> None:
    searched = [(item, item.breaking_priority) for item in audit.items if item.breaking_priority is not None]
    if not searched:
        return
    page.blank()
    page.paragraph(
        Span("LOWEST PRIORITY", "heading"),
        "  that would break a budget that allows no disruption now, for a new pod as big as all pods up to that of the"
        " budget on the node; (n) = only if pinned to this node",
        hanging=_INDENT,
    )
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in ("BUDGET", "PRIORITY", "EVICTS"))]
    for item, found in searched:
        whom = f"{bare_name(found.pod)} (priority {found.priority:,}) on {found.node}"
        rows.append(((strong(item.budget),), (_priority(found.threshold),), (whom,)))
    page.table(rows, aligns=("left", "right", "left"), indent=_INDENT)
    legend = ["none: such a pod evicts it at no priority"] if any(_is_never(each) for _, each in searched) else []
    if left_out := audit.unsearched:
        legend.append(f"{count(left_out, 'more budget')} not searched")
    if legend:
        page.paragraph(Span("; ".join(legend), "dim"), indent=_INDENT)


def _is_never(found: BreakingPriority) -> bool:
    return found.threshold.anywhere is None and found.threshold.on_node is None


def _priority(threshold: Threshold) -> str:
    """``11`` where a pod that may go anywhere evicts it, ``(11)`` where one that has to go to its node does."""
    anywhere, on_node = threshold.anywhere, threshold.on_node
    if anywhere is not None:
        return f"{anywhere:,}" if on_node in (None, anywhere) else f"{anywhere:,} ({on_node:,})"
    return "none" if on_node is None else f"({on_node:,})"


def _add_table(page: Page, audit: BudgetAudit) -> None:
    if not audit.items:
        return
    page.blank()
    page.paragraph(
        Span("BUDGETS", "heading"),
        "  pods ready of expected, desired healthy, allowed disruptions",
        hanging=_INDENT,
    )
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in _TITLES)]
    for item in audit.items:
        style: Style = "warn" if item.allowed <= 0 else "good"
        rows.append(
            (
                (strong(item.budget),),
                (short_spec(item),),
                (f"{item.healthy:,}/{item.expected:,}",),
                (f"{item.desired:,}",),
                (Span(f"{item.allowed:,}", style),),
                (_protects(item),),
            )
        )
    page.table(rows, aligns=_ALIGNS)


def _protects(item: AuditedBudget) -> str:
    names = [each.workload or count(each.pods, "bare pod") for each in item.workloads]
    return join_names(names, limit=2) if names else "no pod"


def _assumptions(audit: BudgetAudit) -> Sequence[Assumption]:
    """Without those that findings tell."""
    told = {
        f"PodDisruptionBudget {item.budget}"
        for item in audit.items
        if any(finding.id is FindingId.NO_STATUS for finding in item.findings)
    }
    return [each for each in audit.assumptions if each.field != "status" or each.subject not in told]
