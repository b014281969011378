"""The audit of PodDisruptionBudgets: findings by severity, the pods that violate budgets, and all budgets.

Also the sentences for findings, violations and fixes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import agree, count, format_lowest_priority
from kpreempt.report.blocks import (
    Code,
    Hint,
    Phrase,
    Report,
    Role,
    Section,
    Sentence,
    Span,
    Table,
    Words,
    columns,
    strong,
    text_of,
)
from kpreempt.report.evidence import absent_facts, assumption_sections, bare_name, join_names, size_facts
from kpreempt.report.options import RenderOptions
from kpreempt.report.remedies import action, commands, not_tried
from kpreempt.verdict.budgets import (
    AuditedBudget,
    BudgetAudit,
    Finding,
    FindingId,
    NearMiss,
    PossibleViolation,
    Severity,
)
from kpreempt.verdict.remedies import ChangeKind, Remedy, RemedyStage
from kpreempt.verdict.unread import are_budgets_unread, lacks_nodes, lacks_pods

_ROWS_OF_SCREEN = 12
_COMMANDS_LISTED = 3
_STYLES: dict[Severity, Role] = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "strong"}


def report(audit: BudgetAudit, _options: RenderOptions) -> Report:
    """Every finding by severity, the lowest priorities that violate budgets, and every budget."""
    facts = absent_facts(audit.assumptions)
    if audit.items:
        pending = f"{count(audit.pending, 'pending pod')} tried"
        if lacks_nodes(audit.assumptions) or lacks_pods(audit.assumptions):
            pending = "preemptions are unknown: no pending pod was tried"
        sizes = size_facts(audit.cluster, audit.assumptions)
        facts.append(" · ".join(filter(None, (*sizes, audit.algorithm, pending))))
    if untried := not_tried(audit.search):
        facts.append(untried)
    # A finding already reports a missing status.
    reported = {
        f"PodDisruptionBudget {item.budget}"
        for item in audit.items
        if any(finding.id is FindingId.NO_STATUS for finding in item.findings)
    }
    others = [each for each in audit.assumptions if each.field != "status" or each.subject not in reported]
    # By severity; on a screen, one row for each budget or workload with findings, worst first.
    items = {item.budget: item for item in audit.items}
    shown: list[Section] = []
    for severity in Severity:
        findings = [each for each in audit.findings if each.severity is severity]
        if findings:
            blocks = [_item(row, items) for row in _rows(findings, items)]
            lead = count(len(findings), "finding")
            section = Section(severity.upper(), lead, blocks, style=_STYLES[severity])
            # On a screen, the first section stands for all of them.
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
        more=[("-v", "each finding with its fix, lowest priorities that violate a budget")] if audit.items else [],
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
        return (strong("No matching PodDisruptionBudget"), " found.")
    result = ", ".join(numbers) if numbers else Span("no findings", "good")
    return (strong(count(len(audit.items), "budget")), ": ", result, ".")


def _short(audit: BudgetAudit) -> Section:
    rows: list[tuple[Severity, list[Words]]] = []
    for item in audit.items:
        if findings := sorted(item.findings, key=lambda each: each.severity.rank):
            worst = findings[0].severity
            by = f" (by {join_names([each.pod for each in item.violations], limit=1)})"
            ids = dict.fromkeys(
                f"{each.id}{by if each.id is FindingId.VIOLATED_BY_PREEMPTION else ''}" for each in findings
            )
            ready = f"{item.current_healthy:,}/{item.expected_pods:,}"
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
    # A screen shows this many rows; if there are more, the lead counts every kind of finding.
    return Section("FINDINGS", listed if len(ordered) > _ROWS_OF_SCREEN else "worst first", [Table(titles, ordered)])


def _worst(severity: Severity) -> Span:
    return Span(severity.upper(), _STYLES[severity])


def _allowed(item: AuditedBudget) -> Span:
    return Span(f"{item.disruptions_allowed:,}", "warn" if item.disruptions_allowed <= 0 else "good")


def _rows(findings: Sequence[Finding], items: dict[str, AuditedBudget]) -> list[list[Finding]]:
    """Group the findings of a namespace that have the same text."""
    rows: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        item = _budget_of(finding, items)
        key: tuple[object, ...] = finding.id, finding.namespace
        if finding.id is FindingId.VIOLATED_BY_PREEMPTION:
            key = (*key, finding.subject)
        else:
            text = "" if item is None else text_of(SENTENCES[finding.id](finding, item))
            key = (*key, text, fix_in_words(finding))
        rows.setdefault(key, []).append(finding)
    return list(rows.values())


def _budget_of(finding: Finding, items: dict[str, AuditedBudget]) -> AuditedBudget | None:
    """The budget of a finding; a workload without budget may have the same name as a budget."""
    key = f"{finding.namespace}/{bare_subject(finding.subject)}"
    return None if finding.id is FindingId.NO_BUDGET else items.get(key)


def _item(row: Sequence[Finding], items: dict[str, AuditedBudget]) -> Section:
    """Findings with the same text, with their fix."""
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
    fix = fix_in_words(finding)
    if len(row) > 1 and finding.id is FindingId.NO_BUDGET and fix:
        fix += " for each"
    typed = list(dict.fromkeys(each for finding in row for each in _commands(finding)))
    return Section(
        title,
        Span(finding.id, "dim"),
        [
            *map(Sentence, words),
            *([Sentence((Span("fix: ", "good"), fix))] if fix else []),
            *([Code(typed, is_command=True)] if 0 < len(typed) <= _COMMANDS_LISTED else []),
        ],
        noun="finding",
    )


def _commands(finding: Finding) -> list[str]:
    """What applies the first remedy; nothing if an operator would revert it."""
    first = finding.remedies[:1]
    return [text for each in first if not each.manager for text in commands(each)]


def _in_words(finding: Finding, item: AuditedBudget) -> list[Words]:
    """The problem; pending pods of one owner that violate a budget in the same way are grouped."""
    if finding.id is not FindingId.VIOLATED_BY_PREEMPTION:
        return [SENTENCES[finding.id](finding, item)]
    groups = grouped(
        item.violations,
        lambda breach: (breach.owner or breach.pod, breach.priority, *breach.nodes, "|", *breach.victims),
    )
    return list(map(breach_in_words, groups.values()))


def _priorities(audit: BudgetAudit) -> Section:
    searched = [(item, item.violating_priority) for item in audit.items if item.violating_priority is not None]
    rows: list[list[Words]] = [
        [
            strong(item.budget),
            format_lowest_priority(found.threshold.anywhere, found.threshold.on_node) or "none",
            f"{bare_name(found.pod)} (priority {found.priority:,}) on {found.node}",
        ]
        for item, found in searched
    ]
    is_any_never = any(each.threshold.anywhere is each.threshold.on_node is None for _, each in searched)
    legend = ["none = no priority evicts it"] if is_any_never else []
    if left_out := audit.unsearched:
        legend.append(f"{count(left_out, 'more budget')} not searched")
    return Section(
        "LOWEST PRIORITY",
        "at which a new pod would violate a budget that allows no disruptions now, if it requests all capacity of the"
        " node that is free or used by pods of at most the victim's priority; (n) = only if pinned to this node"
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
        ready = f"{item.current_healthy:,}/{item.expected_pods:,}"
        spec = "-" if item.min_available is item.max_unavailable is None else _written(item)
        rows.append([strong(item.budget), spec, ready, f"{item.desired_healthy:,}", _allowed(item), protects])
    numbers = ("READY", "DESIRED", "ALLOWED")
    return Section(
        "BUDGETS",
        "pods ready of expected, desired healthy, allowed disruptions" if rows else "",
        [Table(columns("BUDGET", "SPEC", *numbers, "PROTECTS", right=numbers), rows, "budget")],
    )


def breach_in_words(row: Sequence[PossibleViolation]) -> Phrase:
    """The pods that evict, their victims, and the allowed disruptions, for pods of one owner with the same effect."""
    breach = row[0]
    more = f" and {len(row) - 1:,} more of {breach.owner}" if len(row) > 1 else ""
    place = f", queue position {breach.position:,}" if breach.position is not None else ""
    nodes = join_names(breach.nodes).replace(" and ", " or ", 1)
    verb = "would evict" if breach.is_certain else "may evict"
    victims = [bare_name(each) for each in breach.victims]
    if breach.remaining == breach.allowed - len(victims):
        allowance = f"{count(breach.allowed, 'disruption')} allowed" if breach.allowed > 0 else "no disruption allowed"
    else:
        allowance = f"{breach.allowed - breach.remaining:,} on one node, {count(breach.allowed, 'disruption')} allowed"
    return (
        strong(breach.pod),
        f"{more} (priority {breach.priority:,}{place}) ",
        Span(verb, "bad" if breach.is_certain else "warn"),
        f" {join_names(victims)} on {nodes}: {allowance}",
    )


def without_budget_in_words(row: Sequence[Finding]) -> str:
    """The workloads of a namespace without a budget, with their replicas."""
    names = [f"{each.subject} ({each.number or 0:,})" for each in row]
    listed = join_names(names, limit=len(names))
    have = (
        "has several replicas and no PodDisruptionBudget"
        if len(row) == 1
        else "have several replicas and no PodDisruptionBudget"
    )
    return f"{listed} {have}"


def bare_subject(subject: str) -> str:
    """``web`` for ``PodDisruptionBudget web``."""
    return subject.partition(" ")[2]


def _written(item: AuditedBudget) -> str:
    if item.max_unavailable is not None:
        return f"maxUnavailable: {item.max_unavailable}"
    return "an empty spec" if item.min_available is None else f"minAvailable: {item.min_available}"


def _in_pods(item: AuditedBudget, number: int) -> str:
    """A percentage, and the number of pods it amounts to."""
    amount = item.min_available if item.max_unavailable is None else item.max_unavailable
    if not isinstance(amount, str):
        return _written(item)
    meant = -(-int(amount.removesuffix("%")) * number // 100)
    return f"{_written(item)} of {count(number, 'pod')} is {meant:,}"


def _never_allows(finding: Finding, item: AuditedBudget) -> Phrase:
    number = finding.number or 0
    if item.min_available is None and item.max_unavailable is None:
        why = "neither minAvailable nor maxUnavailable is set"
    elif isinstance(item.min_available, int) and item.max_unavailable is None:
        why = f"minAvailable: {item.min_available:,} equals the number of replicas"
    else:
        why = _in_pods(item, number)
    return (f"{why}: no disruption is ever allowed; {_drain_of(item)}",)


def _drain_of(item: AuditedBudget) -> str:
    """What a drain does if the PDB never allows a disruption; an operator may move its pods when a node is cordoned."""
    drain = f"a drain of {_their_nodes(item)}"
    if item.manager:
        return f"{drain} waits until the operator of {item.manager} moves {'it' if item.pods == 1 else 'them'}"
    return f"{drain} never finishes"


def _their_nodes(item: AuditedBudget) -> str:
    return "its pod's node" if item.pods == 1 else "its pods' nodes"


def _allows_none_now(finding: Finding, item: AuditedBudget) -> Phrase:
    reasons = []
    if finding.pods:
        reasons.append(f"{join_names(finding.pods)} {agree(len(finding.pods), 'is')} not ready")
    if item.terminating:
        reasons.append(f"{join_names(item.terminating)} {agree(len(item.terminating), 'is')} terminating")
    if item.missing:
        reasons.append(f"{count(item.missing, 'pod')} {agree(item.missing, 'is')} not created yet")
    why = f": {'; '.join(reasons)}" if reasons else ""
    return (
        f"allows no disruptions now: {item.current_healthy:,} of {count(item.expected_pods, 'pod')} ready,"
        f" {item.desired_healthy:,} desired{why}",
    )


def _overlap(finding: Finding, _: AuditedBudget) -> Phrase:
    both = "both" if len(finding.objects) == 1 else "all"
    names = join_names(sorted([bare_subject(finding.subject), *map(bare_subject, finding.objects)]))
    pods = f"{count(len(finding.pods), 'pod')} ({join_names(finding.pods)})"
    return (
        f"{names} {both} select {pods}: the eviction API rejects pods with several budgets, so a drain never finishes;"
        " the scheduler counts every budget",
    )


def _unmanaged(finding: Finding, item: AuditedBudget) -> Phrase:
    if len(finding.pods) == item.pods:
        return (f"{_written(item)} requires a controller's replicas, but none of its pods has a controller",)
    have = "has no controller and does" if len(finding.pods) == 1 else "have no controller and do"
    return (f"{join_names(finding.pods)} {have} not count for {_written(item)}",)


def _selects_nothing(finding: Finding, item: AuditedBudget) -> Phrase:
    if finding.objects:
        return (f"selects no pods yet: {join_names(finding.objects)} {agree(len(finding.objects), 'has')} none",)
    text = f"selects no pod: {item.selector}"
    if finding.near_misses:
        text += f"; {'; '.join(map(_near_miss, finding.near_misses))}"
    return (text,)


def _near_miss(miss: NearMiss) -> str:
    found = f"has {miss.found}" if miss.found else "has no such label"
    return f"{miss.workload} ({count(miss.pods, 'pod')}) {found}, not {miss.expected}"


SENTENCES: dict[FindingId, Callable[[Finding, AuditedBudget], Phrase]] = {
    FindingId.NEVER_ALLOWS: _never_allows,
    FindingId.MIN_AVAILABLE_ABOVE_PODS: lambda finding, item: (
        f"{_written(item)} exceeds the {count(finding.number or 0, 'expected pod')}: no disruption is ever allowed;"
        f" {_drain_of(item)}",
    ),
    FindingId.OVERLAP: _overlap,
    FindingId.NO_SCALE: lambda finding, item: (
        f"{_written(item)} requires the scale subresource of the controller, but {join_names(finding.objects)}"
        f" {agree(len(finding.objects), 'has')} none: the disruption controller fails, and no disruption is allowed",
    ),
    FindingId.INVALID_AMOUNT: lambda _, item: (f"{_written(item)} is neither a number nor a percentage",),
    FindingId.INVALID_SELECTOR: lambda _, item: (f"invalid selector, so it selects no pod: {item.selector}",),
    FindingId.ALLOWS_NONE_NOW: _allows_none_now,
    FindingId.ALLOWS_NONE_AT_HPA_MINIMUM: lambda finding, item: (
        f"{_in_pods(item, finding.number or 0)}: no disruption is allowed once the HorizontalPodAutoscaler of"
        f" {join_names(finding.objects)} has scaled down to its minReplicas, {count(finding.number or 0, 'pod')} in"
        " total; a drain then never finishes",
    ),
    FindingId.UNMANAGED_PODS: _unmanaged,
    FindingId.SELECTS_EVERY_POD: lambda _, item: (
        f"empty selector: the eviction API applies the budget to every pod of the namespace ({item.pods:,}), but the"
        " scheduler preempts them as if they had no budget",
    ),
    FindingId.NULL_SELECTOR: lambda *_: ("no selector, so it selects no pod",),
    FindingId.SELECTS_NOTHING: _selects_nothing,
    FindingId.STALE_STATUS: lambda finding, item: (
        "status older than the spec: the eviction API rejects evictions until the disruption controller catches up; the"
        f" scheduler uses the old disruptionsAllowed, {item.disruptions_allowed:,}; the spec allows"
        f" {finding.number or 0:,}",
    ),
    FindingId.NO_STATUS: lambda *_: ("no status; computed as the disruption controller would",),
    FindingId.SEVERAL_WORKLOADS: lambda finding, _: (
        f"shared by {join_names(finding.objects)}: a rollout of one uses up the disruptions of the others",
    ),
    FindingId.PROTECTS_NOTHING: lambda finding, item: (
        f"{_in_pods(item, finding.number or 0)}: all pods may be disrupted simultaneously",
    ),
}
_VIOLATIONS_LISTED = 3


def finding_text(finding: Finding, item: AuditedBudget | None) -> str:
    """The problem in one sentence without a period; ``item`` is ``None`` for a workload without a budget."""
    if item is None:
        return without_budget_in_words([finding])
    if finding.id is not FindingId.VIOLATED_BY_PREEMPTION:
        return text_of(SENTENCES[finding.id](finding, item))
    parts = [text_of(breach_in_words([each])) for each in item.violations[:_VIOLATIONS_LISTED]]
    if rest := len(item.violations) - len(parts):
        parts.append(f"and {count(rest, 'more pod')}")
    return "; ".join(parts)


def fix_in_words(finding: Finding) -> str:
    """The remedies of the finding, the best first; empty if none was found."""
    own = finding.subject.replace(" ", f" {finding.namespace}/", 1)
    return ", or ".join(_remedy(each, finding, own) for each in finding.remedies)


def _remedy(remedy: Remedy, finding: Finding, own: str) -> str:
    changes = remedy.changes
    if [each.kind for each in changes] == [ChangeKind.CREATE]:
        # The same for all workloads of a namespace.
        words = f"create a PodDisruptionBudget with {changes[0].field.removeprefix('spec.')}: {changes[0].value}"
    else:
        words = action(remedy, own)
    notes = [f"through {remedy.manager}: its operator may revert other changes"] if remedy.manager else []
    if remedy.stage is RemedyStage.LIMIT and finding.number == 1 and finding.id is not FindingId.NO_BUDGET:
        notes.append("its only pod can then be evicted")
    if not remedy.solves:
        notes.append("a drain can then evict the pods that are not ready, no others")
    if waiting := remedy.pods - remedy.scheduled:
        them = "the pod" if remedy.pods == 1 else f"{waiting:,} of {remedy.pods:,} pods"
        notes.append(f"{them} then {agree(waiting, 'stays')} pending")
    return f"{words} ({'; '.join(notes)})" if notes else words
