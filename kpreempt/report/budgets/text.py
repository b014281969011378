"""The audit of PodDisruptionBudgets: what is wrong, by severity, which pods break them, and all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from kpreempt.report.amounts import count, format_lowest_priority
from kpreempt.report.blocks import Hint, Report, Section, Sentence, Span, Table, Words, columns, strong, text_of
from kpreempt.report.budgets.words import (
    SENTENCES,
    bare_subject,
    breach_in_words,
    fix_in_words,
    severity_style,
    short_spec,
    without_budget_in_words,
)
from kpreempt.report.closing_section import absent_facts, assumption_sections
from kpreempt.report.evidence import bare_name, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.budgets import AuditedBudget, Breach, BudgetAudit, Finding, FindingId, Severity
from kpreempt.verdict.unread import are_budgets_unread

_ROWS_OF_SCREEN = 12


def report(audit: BudgetAudit, _options: RenderOptions) -> Report:
    """Every finding by severity, from which priority on budgets break, and every budget."""
    facts = absent_facts(audit.assumptions)
    if audit.items:
        nodes, pods = count(audit.cluster.nodes, "node"), count(audit.cluster.pods, "pod")
        pending = f"{count(audit.pending, 'pending pod')} tried"
        facts.append(" · ".join(filter(None, (nodes, pods, audit.algorithm, pending))))
    # A finding says so already.
    told = {
        f"PodDisruptionBudget {item.budget}"
        for item in audit.items
        if any(finding.id is FindingId.NO_STATUS for finding in item.findings)
    }
    others = [each for each in audit.assumptions if each.field != "status" or each.subject not in told]
    # By severity; on a screen a row for each budget or workload that has some, the worst first.
    items = {item.budget: item for item in audit.items}
    shown: list[Section] = []
    for severity in Severity:
        findings = [each for each in audit.findings if each.severity is severity]
        if findings:
            blocks = [_item(row, items) for row in _rows(findings, items)]
            lead = count(len(findings), "finding")
            section = Section(severity.upper(), lead, blocks, style=severity_style(severity))
            # The first stands for all of them on a screen.
            shown.append(section if shown else msgspec.structs.replace(section, priority=1, short=_short(audit)))
    return Report(
        lead=_headline(audit),
        facts=facts,
        sections=[
            *shown,
            _priorities(audit),
            _budgets(audit),
            *assumption_sections(others),
        ],
        more=[("-v", "each finding with its fix, lowest priorities that break a budget")] if audit.items else [],
        command="budgets",
    )


def _headline(audit: BudgetAudit) -> Words:
    findings = audit.findings
    numbers = [
        count(number, severity)
        for severity in Severity
        if (number := sum(each.severity is severity for each in findings))
    ]
    if are_budgets_unread(audit.assumptions):
        return (Span("Findings unknown", "warn"), ": PodDisruptionBudgets were not read.")
    if not audit.items:
        return (strong("No PodDisruptionBudget"), ": there is none, or none matches.")
    result = ", ".join(numbers) if numbers else Span("no finding", "good")
    return (strong(count(len(audit.items), "budget")), ": ", result, ".")


def _short(audit: BudgetAudit) -> Section:
    rows: list[tuple[Severity, list[Words]]] = []
    for item in audit.items:
        if findings := sorted(item.findings, key=lambda each: each.severity.rank):
            worst = findings[0].severity
            by = f" (by {join_names([each.pod for each in item.breaches], limit=1)})"
            ids = dict.fromkeys(
                f"{each.id}{by if each.id is FindingId.BROKEN_BY_PREEMPTION else ''}" for each in findings
            )
            ready = f"{item.healthy:,}/{item.expected:,}"
            rows.append((worst, [strong(item.budget), _worst(worst), ready, _allowed(item), ", ".join(ids)]))
    rows += [
        (each.severity, [each.namespace, _worst(each.severity), "-", "-", f"{each.id}: {each.subject}"])
        for each in audit.findings
        if each.id is FindingId.NO_BUDGET
    ]
    ordered = [cells for _, cells in sorted(rows, key=lambda row: row[0].rank)]
    titles = columns("BUDGET", "WORST", "READY", "ALLOWED", "FINDINGS", right=["READY", "ALLOWED"])
    kinds = Counter(each.id for each in sorted(audit.findings, key=lambda each: each.severity.rank))
    listed = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
    # A screen shows this many rows: of more, every kind is named at least.
    return Section(
        "FINDINGS", listed if len(ordered) > _ROWS_OF_SCREEN else "the worst first", [Table(titles, ordered)]
    )


def _worst(severity: Severity) -> Span:
    return Span(severity.upper(), severity_style(severity))


def _allowed(item: AuditedBudget) -> Span:
    return Span(f"{item.allowed:,}", "warn" if item.allowed <= 0 else "good")


def _rows(findings: Sequence[Finding], items: dict[str, AuditedBudget]) -> list[list[Finding]]:
    """Findings of a namespace of which the same is to say, together."""
    rows: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        item = _budget_of(finding, items)
        key: tuple[object, ...] = finding.id, finding.namespace
        if finding.id is FindingId.BROKEN_BY_PREEMPTION:
            key = (*key, finding.subject)
        elif item is not None:
            key = (*key, text_of(SENTENCES[finding.id](finding, item)), fix_in_words(finding, item))
        rows.setdefault(key, []).append(finding)
    return list(rows.values())


def _budget_of(finding: Finding, items: dict[str, AuditedBudget]) -> AuditedBudget | None:
    """The budget that a finding is about; a workload without one may have the name of another's."""
    key = f"{finding.namespace}/{bare_subject(finding.subject)}"
    return None if finding.id is FindingId.NO_BUDGET else items.get(key)


def _item(row: Sequence[Finding], items: dict[str, AuditedBudget]) -> Section:
    """Findings of which the same is to say, with what helps."""
    finding = row[0]
    item = _budget_of(finding, items)
    words: list[Words]
    if finding.id is FindingId.NO_BUDGET:
        title, words = finding.namespace, [without_budget_in_words(row)]
    else:
        first, *others = (bare_subject(each.subject) for each in row)
        names = [f"{finding.namespace}/{first}", *others]
        title = join_names(names, limit=len(names))
        words = [] if item is None else _in_words(finding, item)
    fix = fix_in_words(finding, item)
    return Section(
        title,
        Span(finding.id, "dim"),
        [*map(Sentence, words), *([Sentence((Span("fix: ", "good"), fix))] if fix else [])],
        noun="finding",
    )


def _in_words(finding: Finding, item: AuditedBudget) -> list[Words]:
    """What is wrong; pending pods of one owner that break a budget alike stand together."""
    if finding.id is not FindingId.BROKEN_BY_PREEMPTION:
        return [SENTENCES[finding.id](finding, item)]
    groups: dict[tuple[object, ...], list[Breach]] = {}
    for breach in item.breaches:
        key = (breach.owner or breach.pod, breach.priority, *breach.nodes, "|", *breach.victims)
        groups.setdefault(key, []).append(breach)
    return [breach_in_words(row) for row in groups.values()]


def _priorities(audit: BudgetAudit) -> Section:
    searched = [(item, item.breaking_priority) for item in audit.items if item.breaking_priority is not None]
    rows: list[list[Words]] = [
        [
            strong(item.budget),
            format_lowest_priority(found.threshold.anywhere, found.threshold.on_node) or "none",
            f"{bare_name(found.pod)} (priority {found.priority:,}) on {found.node}",
        ]
        for item, found in searched
    ]
    is_any_never = any(each.threshold.anywhere is each.threshold.on_node is None for _, each in searched)
    legend = ["none: such a pod evicts it at no priority"] if is_any_never else []
    if left_out := audit.unsearched:
        legend.append(f"{count(left_out, 'more budget')} not searched")
    return Section(
        "LOWEST PRIORITY",
        "that would break a budget that allows no disruption now, for a new pod as big as all pods up to that of the"
        " budget on the node; (n) = only if pinned to this node"
        if rows
        else "",
        [
            Table(columns("BUDGET", "PRIORITY", "EVICTS", right=["PRIORITY"]), rows, "budget"),
            *([Hint("; ".join(legend))] if rows and legend else []),
        ],
    )


def _budgets(audit: BudgetAudit) -> Section:
    rows: list[list[Words]] = []
    for item in audit.items:
        names = [each.workload or count(each.pods, "bare pod") for each in item.workloads]
        protects = join_names(names, limit=2) if names else "no pod"
        ready = f"{item.healthy:,}/{item.expected:,}"
        rows.append([strong(item.budget), short_spec(item), ready, f"{item.desired:,}", _allowed(item), protects])
    numbers = ("READY", "DESIRED", "ALLOWED")
    return Section(
        "BUDGETS",
        "pods ready of expected, desired healthy, allowed disruptions" if rows else "",
        [Table(columns("BUDGET", "SPEC", *numbers, "PROTECTS", right=numbers), rows, "budget")],
    )
