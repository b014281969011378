"""One node's whole story: every filter on it, what the dry run tried there, and its place in the choice."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.evidence import describe, describe_shortage, join_names
from kpreempt.report.explain.changes import add_proposals
from kpreempt.report.explain.choice import format_value, name_of_rule
from kpreempt.report.explain.dry_run import add_candidate
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import SUCCESS, Candidate, NodeEvaluation, NodeStory, Status, Verdict
from kpreempt.verdict.unread import are_budgets_unread

_PODS_SHOWN = 3


def add_node_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``NODE``: the story of the node that was asked about, and what would make it the chosen one."""
    story = verdict.node_story
    if story is None:
        return
    page.blank()
    page.labelled(Span("NODE", "heading"), *describe_standing(story, verdict), column=LABEL_COLUMN)
    _add_evaluation(page, story.evaluation)
    candidate = _candidate(verdict, story.node)
    tried = verdict.dry_run.get(story.node)
    if candidate is not None:
        page.paragraph(Span("the dry run there:", "dim"), indent=2)
        add_candidate(page, candidate, verdict, options)
    elif tried is not None:
        page.paragraph(Span("the dry run there: ", "dim"), describe_shortage(tried), indent=2, hanging=2)
    if not story.is_chosen:
        lacks_budgets = are_budgets_unread(verdict.assumptions)
        goal = f"{story.node} is chosen"
        add_proposals(page, story.proposals, story.search, goal, options, lacks_budgets=lacks_budgets)


def describe_standing(story: NodeStory, verdict: Verdict) -> Phrase:
    """Whether the pod ends on the node, and otherwise where it drops out."""
    name = strong(story.node)
    nodes = verdict.nominated_nodes or verdict.lands_on
    if story.is_chosen:
        tie = f", one of {count(len(nodes), 'node')} that tie" if len(nodes) > 1 else ""
        return (name, Span(" is chosen", "good"), tie)
    score = verdict.scores.get(story.node)
    if score is not None and story.rank is not None:
        best = max(verdict.scores.values())
        return (
            name,
            f" fits and is number {story.rank:,} of {len(verdict.scores):,}: {score:,}, the best has {best:,}",
        )
    if story.lost_at and story.value is not None and story.best is not None:
        mine, best_value = _values(story, verdict)
        rule = name_of_rule(story.lost_at)
        return (
            name,
            " is a candidate, ",
            Span("eliminated", "bad"),
            f" by {rule}: {mine}, the best has {best_value}",
        )
    if by_extender := _said_by_extender(story.node, verdict):
        return (name, *by_extender)
    refusals = [status for status in story.evaluation.filters if not status.is_success]
    if story.evaluation.pre_filter is not None or refusals:
        return (name, Span(" refuses the pod", "bad"))
    return (name, " passes all filters, and is not chosen")


def _said_by_extender(node: str, verdict: Verdict) -> Phrase:
    """How an extender puts the node out, if one does."""
    for call in verdict.extender_calls:
        if node in call.dropped:
            return (f" is a candidate, which extender {call.extender} ", Span("drops", "bad"))
        if node in call.refused and not verdict.filter.get(node, SUCCESS).is_success:
            reason = f": {call.refused[node]}" if call.refused[node] else " without a reason"
            return (f" passes all filters, and extender {call.extender} ", Span("refuses", "bad"), f" it{reason}")
    return ()


def _values(story: NodeStory, verdict: Verdict) -> tuple[str, str]:
    """The node's value at the rule that put it out, and the best one."""
    mine = _candidate(verdict, story.node)
    best = _candidate(verdict, verdict.nominated_nodes[0]) if verdict.nominated_nodes else None
    return (
        format_value(story.lost_at, story.value or 0, len(mine.victims) if mine else 0),
        format_value(story.lost_at, story.best or 0, len(best.victims) if best else 0),
    )


def _add_evaluation(page: Page, evaluation: NodeEvaluation) -> None:
    if evaluation.pre_filter is not None:
        page.paragraph("refused on all nodes before any filter: ", evaluation.pre_filter.message, indent=2, hanging=2)
        return
    if evaluation.left_out_by:
        page.paragraph(f"left out before any filter by {join_names(evaluation.left_out_by)}", indent=2, hanging=2)
    page.paragraph(Span("every filter, where the scheduler stops at the first that refuses:", "dim"), indent=2)
    _add_filters(page, evaluation.filters)
    if evaluation.nominated_pods:
        names = join_names(evaluation.nominated_pods, limit=_PODS_SHOWN)
        page.paragraph(f"with room kept for {names}, nominated there", indent=4, hanging=2)
    if evaluation.lower_priority_pods:
        number = len(evaluation.lower_priority_pods)
        removed = "only lower-priority pod" if number == 1 else count(number, "lower-priority pod")
        page.paragraph(Span(f"the same without its {removed}:", "dim"), indent=2)
        _add_filters(page, evaluation.without_lower)


def _add_filters(page: Page, statuses: Sequence[Status]) -> None:
    refusals = [status for status in statuses if not status.is_success]
    for status in refusals:
        label = Span("refuses", "bad")
        reason = (strong(status.message or str(status.code)), Span(f"  {status.plugin}", "dim"))
        page.labelled(label, *reason, indent=4, column=9)
        if evidence := describe(status.detail):
            page.paragraph(evidence, indent=15, hanging=2)
    passing = [status.plugin for status in statuses if status.is_success]
    if passing or not statuses:
        everything = "nothing to check" if not statuses else ", ".join(passing)
        page.labelled(Span("passes", "good"), everything, indent=4, column=9)


def _candidate(verdict: Verdict, node: str) -> Candidate | None:
    return next((candidate for candidate in verdict.candidates if candidate.node == node), None)
