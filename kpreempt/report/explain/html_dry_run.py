"""Who goes, and why: victims, what equal pods leave open, the dry run step by step, and the refusals of the filters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from kpreempt.report.amounts import count
from kpreempt.report.durations import format_duration, format_since
from kpreempt.report.evidence import describe_shortage
from kpreempt.report.explain.choice import order_by_survival
from kpreempt.report.explain.dry_run import (
    describe_cost,
    describe_dry_run,
    describe_eligibility,
    name_spent,
)
from kpreempt.report.explain.equal_pods import INEXACT, WHY, outcome_in_words
from kpreempt.report.explain.failures import Cause, FailureGroup, group_by_reasons, split_by_hope
from kpreempt.report.explain.filters import describe_fitting, is_hope_unknown
from kpreempt.report.explain.victims import format_running, longest_grace_seconds
from kpreempt.report.html.markup import (
    TABLE_LIMIT,
    Html,
    badge,
    cut_note,
    folded,
    folded_list,
    join,
    message,
    name,
    names,
    table,
    tag,
    within,
)
from kpreempt.report.html.phrases import budget_uses, paragraph, phrase
from kpreempt.report.options import RenderOptions, reference_time
from kpreempt.verdict import Candidate, PossibleOutcome, Reprieve, Status, Verdict, Victim
from kpreempt.verdict.unread import are_budgets_unread

_VICTIMS_LIMIT = 150_000
_STEPS_LIMIT = 200_000
_ONE_TABLE = 40_000
_OUTCOMES_LIMIT = 60_000
_OUTCOMES_SHOWN = 12
_NODES_SHOWN = 6
_CANDIDATES_SHOWN = 3
_CAUSES_SHOWN = 4
_BUDGETS_SHOWN = 6


def victims(verdict: Verdict, options: RenderOptions, level: int) -> Html:
    """A table of the victims on each node that the choice can end with; nothing where nobody goes."""
    nodes = [node for node in verdict.nominated_nodes if verdict.victims.get(node)]
    show = partial(_victims_on, verdict=verdict, options=options, level=level if len(nodes) > 1 else 0)
    tables, cut = within(show, nodes, _VICTIMS_LIMIT)
    return folded(tables, _CANDIDATES_SHOWN, "nodes") + cut_note(cut, "nodes")


def _victims_on(node: str, verdict: Verdict, options: RenderOptions, level: int) -> Html:
    gone = verdict.victims[node]
    seconds = longest_grace_seconds(gone)
    told = [f"{count(len(gone), 'pod')}, most important first" if len(gone) > 1 else count(len(gone), "pod")]
    if verdict.alternatives:
        told.append("these are the likely ones")
    if seconds:
        told.append(f"up to {format_duration(seconds)} to stop")
    if are_budgets_unread(verdict.assumptions):
        told.append("budgets were not read")
    title = tag(f"h{level}", "On ", name(node)) if level else Html("")
    title += tag("p", f"{'; '.join(told)}.")
    columns = ("Pod", "Priority", "Owner", "Running", "Budgets: allowed disruptions")
    row = partial(_victim, verdict=verdict, options=options)
    caption = join(["Victims on ", name(node)])
    return title + table(caption, columns, row, gone, limit=TABLE_LIMIT, what="victims")


def _victim(victim: Victim, verdict: Verdict, options: RenderOptions) -> list[str]:
    unread = "not read" if are_budgets_unread(verdict.assumptions) else "no budget"
    return [
        name(victim.pod),
        f"{victim.priority:,}",
        name(victim.owner) if victim.owner else "no owner",
        format_running(victim, verdict, options),
        budget_uses(victim.budgets) if victim.budgets else unread,
    ]


def possible_outcomes(verdict: Verdict) -> Html:
    """What the order of equal pods leaves open; nothing where it leaves nothing."""
    alternatives = verdict.alternatives
    if alternatives is None:
        return Html("")
    listed = folded_list(
        "ul",
        _possible,
        alternatives.outcomes,
        limit=_OUTCOMES_LIMIT,
        what="outcomes",
        shown=_OUTCOMES_SHOWN,
        class_="outcomes",
    )
    untold = alternatives.untold
    more = tag("p", f"… and {count(untold, 'more outcome')}.", class_="note") if untold else Html("")
    return tag("p", WHY) + listed + more + (Html("") if alternatives.exact else tag("p", INEXACT, class_="warn"))


def _possible(outcome: PossibleOutcome) -> Html:
    return tag("li", phrase(outcome_in_words(outcome))) + Html("\n")


def dry_run(verdict: Verdict, options: RenderOptions, level: int) -> Html:
    """Whether the pod may preempt, each candidate with its reprieves, and the nodes on which no eviction helps."""
    if verdict.eligibility is None:
        return Html("")
    told = paragraph("May the pod preempt? ", *describe_eligibility(verdict), ".")
    if not verdict.eligibility.eligible:
        return told
    told += paragraph(*describe_dry_run(verdict), ".")
    show = partial(_tried, verdict=verdict, options=options, level=level)
    cards, cut = within(show, order_by_survival(verdict), _STEPS_LIMIT)
    told += folded(cards, _CANDIDATES_SHOWN, "candidates") + cut_note(cut, "candidates")
    return told + _refusals("Refused even without those pods", verdict.dry_run)


def _tried(candidate: Candidate, verdict: Verdict, options: RenderOptions, level: int) -> Html:
    is_nominated = candidate.node in verdict.nominated_nodes
    chosen = join([" ", badge("nominated", "good")]) if is_nominated else Html("")
    title = tag(f"h{level}", name(candidate.node), chosen)
    told = paragraph(*describe_cost(candidate, verdict), ".")
    if candidate.outcomes:
        told += tag("p", "That is so in the likely order of equal pods, which only the scheduler knows.", class_="warn")
    if not candidate.steps:
        return tag("article", title, told, class_="card") + Html("\n")
    columns = ("Pod", "Priority", "Running", "Reprieve", "Because")
    row = partial(_step, verdict=verdict, options=options)
    caption = join(["Reprieve order on ", name(candidate.node), ": each pod is put back if there is room for it"])
    steps = table(caption, columns, row, candidate.steps, limit=_ONE_TABLE, what="pods")
    return tag("article", title, told, steps, class_="card") + Html("\n")


def _step(step: Reprieve, verdict: Verdict, options: RenderOptions) -> list[str]:
    spent = name_spent(step) if step.violates_budget else ""
    why: list[str] = []
    if step.kept:
        result = badge("kept", "good")
        why = [f"tried first: {spent} allows no more disruptions"] if spent else ["there is room for it"]
    else:
        result = badge("evicted", "bad" if spent else "warn")
        why = [describe_shortage(step.blocked_by) if step.blocked_by else "no reason given"]
        if spent:
            why += ["; ", tag("span", f"violates {spent}", class_="bad")]
    age = format_since(step.start_time, reference_time(verdict, options))
    return [name(step.pod), f"{step.priority:,}", age, result, tag("span", *why, class_="message")]


def filters(verdict: Verdict) -> Html:
    """How many nodes fit, and the refusals of the others in groups."""
    told = paragraph(*describe_fitting(verdict), ".")
    if verdict.pre_filter is not None:
        return told + tag("p", message(verdict.pre_filter.message), " ", tag("small", verdict.pre_filter.plugin))
    refused = {node: status for node, status in verdict.filter.items() if not status.is_success}
    if not refused:
        return told
    if len(refused) < len(verdict.filter) or is_hope_unknown(verdict):
        return told + _refusals("Nodes that refuse the pod", refused)
    hopeful, hopeless = split_by_hope(verdict)
    return (
        told
        + _refusals("Nodes on which preemption may help", hopeful)
        + _refusals("Nodes on which preemption cannot help", hopeless)
    )


def _refusals(caption: str, statuses: Mapping[str, Status]) -> Html:
    groups = group_by_reasons(statuses)
    if not groups:
        return Html("")
    columns = ("Reason", "Nodes", "Plugin", "What was seen there, the nearest first")
    number = sum(len(group.nodes) for group in groups)
    titled = f"{caption}: {count(number, 'node')}"
    return table(titled, columns, _group, groups, limit=TABLE_LIMIT, what="reasons")


def _group(group: FailureGroup) -> list[str]:
    causes = [
        tag(
            "div", names(cause.nodes, limit=_NODES_SHOWN), f": {cause.phrase}" if cause.phrase else "", class_="message"
        )
        for cause in group.causes[:_CAUSES_SHOWN]
    ]
    if rest := sum(len(cause.nodes) for cause in group.causes[_CAUSES_SHOWN:]):
        causes.append(tag("div", f"… and {count(rest, 'more node')}", class_="dim"))
    reasons = group.reasons or str(group.code)
    return [
        message(reasons),
        f"{len(group.nodes):,}",
        name(group.plugin) if group.plugin else "",
        join(causes),
    ]


def _cause(cause: Cause) -> Html:
    seen = f": {cause.phrase}" if cause.phrase else ""
    return tag("div", names(cause.nodes, limit=_NODES_SHOWN), seen, class_="message")
