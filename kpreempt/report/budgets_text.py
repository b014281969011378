"""The audit of PodDisruptionBudgets for a terminal: what is wrong, by severity, who breaks them, and all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.evidence import join_names
from kpreempt.report.format_text import finished
from kpreempt.report.layout import Align, Page, Phrase, Span, Style, plain, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.victims_section import bare_name
from kpreempt.verdict import Assumption, Threshold
from kpreempt.verdict.budget_audit import (
    AuditedBudget,
    Breach,
    BreakingPriority,
    BudgetAudit,
    Finding,
    FindingId,
    NearMiss,
    Remedy,
    RemedyAction,
    Severity,
)

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
    if not audit.items:
        page.paragraph(strong("No budget is asked about"), ": there is none, or none matches.")
    elif numbers:
        page.paragraph(strong(count(len(audit.items), "budget")), ": ", ", ".join(numbers), ".")
    else:
        page.paragraph(strong(count(len(audit.items), "budget")), ", and ", Span("nothing is wrong", "good"), ".")
    if audit.items:
        nodes, pods = count(audit.cluster.nodes, "node"), count(audit.cluster.pods, "pod")
        pending = f"{count(audit.pending, 'pending pod')} asked"
        page.paragraph(Span(f"{nodes} · {pods} · {pending}", "dim"), indent=_INDENT)


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
            key = (*key, plain(_SENTENCES[finding.id](finding, item)), _fix(finding, item))
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
    return None if finding.id is FindingId.NO_BUDGET else items.get(f"{finding.namespace}/{_bare(finding.subject)}")


def _add_row(page: Page, row: Sequence[Finding], items: dict[str, AuditedBudget], options: RenderOptions) -> None:
    finding = row[0]
    item = _budget_of(finding, items)
    if finding.id is FindingId.NO_BUDGET:
        title = finding.namespace
    else:
        names = [f"{finding.namespace}/{_bare(row[0].subject)}", *(_bare(each.subject) for each in row[1:])]
        title = join_names(names, limit=len(names) if options.verbose else _NAMES_SHOWN)
    page.paragraph(strong(title), Span(f"  {finding.id}", "dim"), indent=_INDENT, hanging=_INDENT)
    if finding.id is FindingId.NO_BUDGET:
        page.paragraph(_without_budget(row, options), indent=_BODY)
    elif item is not None and finding.id is FindingId.BROKEN_BY_PREEMPTION:
        _add_breaches(page, item, options)
    elif item is not None:
        page.paragraph(*_SENTENCES[finding.id](finding, item), indent=_BODY)
    if fix := _fix(finding, item):
        page.paragraph(Span("fix: ", "good"), fix, indent=_BODY, hanging=5)


def _fix(finding: Finding, item: AuditedBudget | None) -> str:
    """What would do away with the finding; the easiest first."""
    labels = dict.fromkeys(miss.found for miss in finding.near_misses if miss.found)
    remedies = dict.fromkeys(_remedy(each, item) for each in finding.remedies)
    advice = _ADVICE.get(finding.id, "")
    return ", or ".join([*(f"select {each}" for each in labels), *remedies, *([advice] if advice else [])])


def _add_breaches(page: Page, item: AuditedBudget, options: RenderOptions) -> None:
    """Which pending pods would break the budget; those of one owner that do it alike are told together."""
    groups: dict[tuple[object, ...], list[Breach]] = {}
    for breach in item.breaches:
        key = (breach.owner or breach.pod, breach.priority, *breach.nodes, "|", *breach.victims)
        groups.setdefault(key, []).append(breach)
    rows = list(groups.values())
    shown = rows if options.verbose else rows[:_BREACHES_SHOWN]
    for row in shown:
        page.paragraph(*_breach(row), indent=_BODY, hanging=_INDENT)
    if rest := sum(map(len, rows[len(shown) :])):
        page.paragraph(Span(f"… and {count(rest, 'more pod')} (--verbose lists them)", "dim"), indent=_BODY)


def _breach(row: Sequence[Breach]) -> Phrase:
    breach = row[0]
    more = f" and {len(row) - 1:,} more of {breach.owner}" if len(row) > 1 else ""
    place = f", place {breach.position:,}" if breach.position is not None else ""
    nodes = join_names(breach.nodes).replace(" and ", " or ", 1)
    verb = "would evict" if breach.is_certain else "may evict"
    victims = [bare_name(each) for each in breach.victims]
    if breach.left == breach.allowed - len(victims):
        allowance = f"{breach.allowed:,} of them may go" if breach.allowed > 0 else "none may go"
    else:
        allowance = f"of which {breach.allowed - breach.left:,} on one node, and {breach.allowed:,} may go"
    return (
        strong(breach.pod),
        f"{more} (priority {breach.priority:,}{place}) ",
        Span(verb, "bad" if breach.is_certain else "warn"),
        f" {join_names(victims)} on {nodes}: {allowance}",
    )


def _without_budget(row: Sequence[Finding], options: RenderOptions) -> str:
    names = [f"{each.subject} ({each.number or 0:,})" for each in row]
    listed = join_names(names, limit=len(names) if options.verbose else _NAMES_SHOWN)
    have = "has several replicas and no budget" if len(row) == 1 else "have several replicas and no budget"
    return f"{listed} {have}"


def _bare(subject: str) -> str:
    """``web`` of ``PodDisruptionBudget web``."""
    return subject.partition(" ")[2]


def _written(item: AuditedBudget) -> str:
    if item.max_unavailable is not None:
        return f"maxUnavailable {item.max_unavailable}"
    return "nothing" if item.min_available is None else f"minAvailable {item.min_available}"


def _comes_to(item: AuditedBudget, number: int) -> str:
    """A percentage, and what it comes to."""
    amount = item.min_available if item.max_unavailable is None else item.max_unavailable
    if not isinstance(amount, str):
        return _written(item)
    meant = -(-int(amount.removesuffix("%")) * number // 100)
    return f"{_written(item)} of {count(number, 'pod')} comes to {meant:,}"


def _never_allows(finding: Finding, item: AuditedBudget) -> Phrase:
    number = finding.number or 0
    if item.min_available is None and item.max_unavailable is None:
        why = "neither minAvailable nor maxUnavailable is set"
    elif isinstance(item.min_available, int) and item.max_unavailable is None:
        why = f"minAvailable {item.min_available:,} is as many pods as there are to be"
    else:
        why = _comes_to(item, number)
    return (f"{why}: no pod may ever be evicted, and a drain of {_their_nodes(item)} never ends",)


def _their_nodes(item: AuditedBudget) -> str:
    return "its pod's node" if item.pods == 1 else "its pods' nodes"


def _above_pods(finding: Finding, item: AuditedBudget) -> Phrase:
    number = finding.number or 0
    wanted = f"{_written(item)} is more than the {count(number, 'pod')} that there {agree(number, 'is')} to be"
    return (f"{wanted}: none may ever be evicted, and a drain of {_their_nodes(item)} never ends",)


def _allows_none_now(finding: Finding, item: AuditedBudget) -> Phrase:
    reasons = []
    if finding.pods:
        reasons.append(f"{join_names(finding.pods)} {agree(len(finding.pods), 'is')} not ready")
    if item.leaving:
        reasons.append(f"{join_names(item.leaving)} {agree(len(item.leaving), 'is')} leaving")
    if item.missing:
        reasons.append(f"{count(item.missing, 'pod')} {agree(item.missing, 'is')} still to be made")
    why = f": {'; '.join(reasons)}" if reasons else ""
    return (
        f"allows nothing now: {item.healthy:,} of {count(item.expected, 'pod')} ready, {item.desired:,} must stay{why}",
    )


def _overlap(finding: Finding, _: AuditedBudget) -> Phrase:
    both = "both" if len(finding.objects) == 1 else "all"
    names = join_names(sorted([_bare(finding.subject), *map(_bare, finding.objects)]))
    pods = f"{count(len(finding.pods), 'pod')} ({join_names(finding.pods)})"
    return (
        f"{names} {both} select {pods}: the API server refuses to evict such pods, so a drain never ends;"
        " the scheduler counts every budget",
    )


def _no_scale(finding: Finding, item: AuditedBudget) -> Phrase:
    owners = f"{join_names(finding.objects)} {agree(len(finding.objects), 'has')}"
    return (
        f"{_written(item)} needs the number of pods that there are to be, and {owners} none: the disruption controller"
        " gives up, and nothing is allowed",
    )


def _unmanaged(finding: Finding, item: AuditedBudget) -> Phrase:
    if len(finding.pods) == item.pods:
        return (f"{_written(item)} goes by what controllers want, and none of its pods has a controller",)
    have = "has no controller and counts" if len(finding.pods) == 1 else "have no controller and count"
    return (f"{join_names(finding.pods)} {have} nothing in {_written(item)}, which goes by what controllers want",)


def _selects_nothing(finding: Finding, item: AuditedBudget) -> Phrase:
    if finding.objects:
        return (f"selects no pod yet: {join_names(finding.objects)} {agree(len(finding.objects), 'has')} none",)
    text = f"selects no pod: {item.selector}"
    if finding.near_misses:
        text += f"; {'; '.join(map(_near_miss, finding.near_misses))}"
    return (text,)


def _near_miss(miss: NearMiss) -> str:
    found = f"has {miss.found}" if miss.found else "has no such label"
    return f"{miss.workload} ({count(miss.pods, 'pod')}) {found}, not {miss.wanted}"


def _stale(finding: Finding, item: AuditedBudget) -> Phrase:
    return (
        "its status is older than its spec: the API server refuses evictions until the disruption controller has seen"
        f" it; the scheduler goes by the old allowance of {item.allowed:,}, by the spec it is {finding.number or 0:,}",
    )


def _several(finding: Finding, _: AuditedBudget) -> Phrase:
    return (
        f"one allowance for the pods of {join_names(finding.objects)}: a rollout of one uses up that of the others",
    )


def _fixed(text: str) -> Callable[[Finding, AuditedBudget], Phrase]:
    return lambda _finding, _item: (text,)


_SENTENCES: dict[FindingId, Callable[[Finding, AuditedBudget], Phrase]] = {
    FindingId.NEVER_ALLOWS: _never_allows,
    FindingId.MIN_AVAILABLE_ABOVE_PODS: _above_pods,
    FindingId.OVERLAP: _overlap,
    FindingId.NO_SCALE: _no_scale,
    FindingId.INVALID_AMOUNT: lambda _, item: (f"{_written(item)} is neither a number nor a percentage",),
    FindingId.INVALID_SELECTOR: lambda _, item: (f"its selector is invalid, and selects no pod: {item.selector}",),
    FindingId.ALLOWS_NONE_NOW: _allows_none_now,
    FindingId.UNMANAGED_PODS: _unmanaged,
    FindingId.SELECTS_EVERY_POD: lambda _, item: (
        f"its empty selector selects every pod of the namespace ({item.pods:,}) for the eviction API, and none for the"
        " scheduler, which evicts them as if there were no budget",
    ),
    FindingId.NULL_SELECTOR: _fixed("has no selector, and so selects no pod"),
    FindingId.SELECTS_NOTHING: _selects_nothing,
    FindingId.STALE_STATUS: _stale,
    FindingId.NO_STATUS: _fixed("has no status; it was computed as the disruption controller would"),
    FindingId.SEVERAL_WORKLOADS: _several,
    FindingId.PROTECTS_NOTHING: lambda finding, item: (
        f"{_comes_to(item, finding.number or 0)}: all its pods may go at once",
    ),
}
# What helps, where that is no single change.
_ADVICE = {
    FindingId.BROKEN_BY_PREEMPTION: "make room elsewhere",
    FindingId.OVERLAP: "narrow the selectors until each pod has one budget",
    FindingId.INVALID_AMOUNT: "write a number, or a percentage as 50%",
    FindingId.INVALID_SELECTOR: "mend the selector",
    FindingId.ALLOWS_NONE_NOW: "wait until its pods are ready; with unhealthyPodEvictionPolicy AlwaysAllow a drain may"
    " evict those that are not",
    FindingId.SELECTS_EVERY_POD: "select the pods by their labels",
    FindingId.NULL_SELECTOR: "select the pods by their labels",
}


def _remedy(remedy: Remedy, item: AuditedBudget | None) -> str:
    if remedy.action is RemedyAction.SET:
        other = "minAvailable" if remedy.field == "maxUnavailable" else "maxUnavailable"
        is_other_set = item is not None and (
            item.min_available is not None if other == "minAvailable" else item.max_unavailable is not None
        )
        instead = f" instead of {other}" if is_other_set else ""
        return f"set {remedy.field} to {remedy.value}{instead}"
    if remedy.action is RemedyAction.SCALE:
        return f"scale {remedy.target} to {remedy.value}"
    if remedy.action is RemedyAction.RAISE_PRIORITY:
        return f"give {remedy.target} priority {remedy.value:,} or more"
    if remedy.action is RemedyAction.CREATE_BUDGET:
        return f"make a budget with {remedy.field} {remedy.value}"
    return f"delete {remedy.target}"


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
