"""One node's whole story: every filter on it, what the dry run tried there, and its place in the choice."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.blocks import (
    Block,
    Listing,
    Phrase,
    Rows,
    Section,
    Sentence,
    Span,
    Table,
    Words,
    columns,
    phrase_of,
    strong,
)
from kpreempt.report.evidence import describe, describe_shortage, join_names
from kpreempt.report.explain.changes import proposals_section
from kpreempt.report.explain.choice import format_value, name_of_rule
from kpreempt.report.explain.dry_run import candidate_section, describe_cost, screened_victims
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import SUCCESS, Candidate, NodeEvaluation, NodeStory, Status, Verdict
from kpreempt.verdict.unread import are_budgets_unread

_PODS_SHOWN = 4
_NODE, _FILTERS, _DRY_RUN, _INSTEAD = 95, 94, 93, 92
# Of what is on a screen about a node.
LEAST_PRIORITY = _INSTEAD


def node_sections(verdict: Verdict, options: RenderOptions) -> list[Section]:
    """``NODE``: the story of the node that was asked about, and what would make it the chosen one."""
    story = verdict.node_story
    if story is None:
        return []
    sections = [
        Section(
            "NODE",
            describe_standing(story, verdict),
            _evaluation(story.evaluation),
            heading="The node that was asked about",
            is_reasoning=True,
            priority=_NODE,
            short=Section("NODE", describe_standing(story, verdict)),
        ),
        Section("FILTERS", blocks=_screened(story, verdict), only="screen", priority=_FILTERS),
        _dry_run(story, verdict, options),
    ]
    if not story.is_chosen:
        lacks_budgets = are_budgets_unread(verdict.assumptions)
        goal = f"{story.node} is chosen"
        changes = proposals_section(story.proposals, story.search, goal, options, lacks_budgets=lacks_budgets)
        sections.append(
            Section(
                "CHANGES",
                changes.lead,
                changes.blocks,
                heading=f"With what {story.node} is chosen",
                anchor="node-changes",
                is_reasoning=True,
                priority=_INSTEAD,
                short=changes.short,
            )
        )
    return sections


def _dry_run(story: NodeStory, verdict: Verdict, options: RenderOptions) -> Section:
    """Which pods would go there, or why that does not help; of the node that is chosen, which go."""
    candidate = _candidate(verdict, story.node)
    tried = verdict.dry_run.get(story.node)
    if candidate is not None:
        section = candidate_section(candidate, verdict, options)
        lead: Words = ("the dry run there: ", *phrase_of(section.lead))
        blocks: Sequence[Block | Section] = section.blocks
    else:
        lead, blocks = f"the dry run there: {describe_shortage(tried)}" if tried is not None else "", []
    short = Section("DRY RUN")
    if story.node in verdict.nominated_nodes[:1]:
        short = screened_victims(verdict)
    elif candidate is not None:
        priorities = {step.pod: step.priority for step in candidate.steps}
        rows: list[list[Words]] = [
            [strong(pod), f"priority {priorities[pod]:,}" if pod in priorities else ""] for pod in candidate.victims
        ]
        table = Table(columns("POD", "PRIORITY"), rows, noun="victim", is_untitled=True)
        short = Section("DRY RUN", (*describe_cost(candidate, verdict), ":"), [table])
    elif tried is not None:
        short = Section("DRY RUN", f"without its {_lower(story.evaluation)}: {describe_shortage(tried)}")
    return Section("DRY RUN", lead, blocks, anchor="node-dry-run", is_reasoning=True, priority=_DRY_RUN, short=short)


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


def _evaluation(evaluation: NodeEvaluation) -> list[Block]:
    if evaluation.pre_filter is not None:
        return [Sentence(f"refused on all nodes before any filter: {evaluation.pre_filter.message}")]
    left_out = join_names(evaluation.left_out_by, limit=len(evaluation.left_out_by))
    nominated = join_names(evaluation.nominated_pods, limit=_PODS_SHOWN)
    blocks: list[Block] = [
        Sentence(f"left out before any filter by {left_out}" if evaluation.left_out_by else ""),
        Sentence(Span("every filter, where the scheduler stops at the first that refuses:", "dim")),
        _filters(evaluation.filters),
        Sentence(f"with room kept for {nominated}, nominated there" if evaluation.nominated_pods else ""),
    ]
    if evaluation.lower_priority_pods:
        blocks.append(Sentence(Span(f"the same without its {_lower(evaluation)}:", "dim")))
        blocks.append(_filters(evaluation.without_lower))
    return blocks


def _filters(statuses: Sequence[Status]) -> Rows:
    """The filters that refuse the pod with what they saw, and those that let it pass."""
    rows: list[tuple[Words, Words]] = []
    for status in statuses:
        if not status.is_success:
            seen = describe(status.detail)
            reason = strong(status.message or str(status.code))
            plugin = Span(f"  {status.plugin}", "dim")
            rows.append((Span("refuses", "bad"), (reason, plugin, f"  {seen}" if seen else "")))
    passing = [status.plugin for status in statuses if status.is_success]
    if passing or not statuses:
        rows.append((Span("passes", "good"), ", ".join(passing) or "nothing to check"))
    return Rows(rows)


def _screened(story: NodeStory, verdict: Verdict) -> list[Block]:
    """What refuses the pod there; with how many filters pass."""
    evaluation = story.evaluation
    blocks: list[Block] = []
    if evaluation.pre_filter is not None:
        blocks.append(Sentence(f"refused on all nodes before any filter: {evaluation.pre_filter.message}"))
    elif evaluation.left_out_by:
        blocks.append(Sentence(f"left out before any filter by {join_names(evaluation.left_out_by)}"))
    refusals = [status for status in evaluation.filters if not status.is_success]
    items: list[list[Words]] = []
    for status in refusals:
        reason = strong(status.message or str(status.code))
        items.append([(Span("refuses ", "bad"), reason, f"  {describe(status.detail) or status.plugin}")])
    blocks.append(Listing(items, noun="refusal"))
    passing = len(evaluation.filters) - len(refusals)
    if passing and refusals:
        words = f"{count(passing, 'other filter')} {'pass' if passing > 1 else 'passes'}"
        blocks.append(Sentence(Span(words, "dim")))
    elif evaluation.filters and not refusals:
        blocks.append(Sentence(f"all {count(passing, 'filter')} pass" if passing > 1 else "the only filter passes"))
    is_tried = story.node in verdict.dry_run or _candidate(verdict, story.node) is not None
    if evaluation.lower_priority_pods and refusals and not is_tried:
        still = [status.message or status.plugin for status in evaluation.without_lower if not status.is_success]
        told = f"still {join_names(still)}" if still else "all pass"
        blocks.append(Sentence(f"without its {_lower(evaluation)}: {told}"))
    if evaluation.nominated_pods:
        names = join_names(evaluation.nominated_pods, limit=_PODS_SHOWN)
        blocks.append(Sentence(f"room is kept for {names}, nominated there"))
    return blocks


def _lower(evaluation: NodeEvaluation) -> str:
    number = len(evaluation.lower_priority_pods)
    return "only lower-priority pod" if number == 1 else count(number, "lower-priority pod")


def _candidate(verdict: Verdict, node: str) -> Candidate | None:
    return next((candidate for candidate in verdict.candidates if candidate.node == node), None)
