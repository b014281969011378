"""One node's story on one screen: its standing, what refuses the pod, who would go, and what makes it the one."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.evidence import describe, describe_shortage, join_names
from kpreempt.report.explain.dry_run import describe_cost
from kpreempt.report.explain.node import describe_standing
from kpreempt.report.explain.screen_frame import COLUMN, Room, Section, beside, clipped
from kpreempt.report.explain.screen_parts import proposed, victims
from kpreempt.report.layout import Line, Page, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import NodeStory, Status, Verdict

_PODS_SHOWN = 4


def _standing(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    if (story := verdict.node_story) is None:
        return []
    page = Page(options.width - COLUMN)
    page.paragraph(*describe_standing(story, verdict))
    return clipped(beside("NODE", page), room.elsewhere, options.width)


def _filters(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """What refuses the pod there; with how many filters pass."""
    if (story := verdict.node_story) is None:
        return []
    evaluation = story.evaluation
    page = Page(options.width - COLUMN)
    if evaluation.pre_filter is not None:
        page.paragraph("refused on all nodes before any filter: ", evaluation.pre_filter.message)
    elif evaluation.left_out_by:
        page.paragraph(f"left out before any filter by {join_names(evaluation.left_out_by)}")
    refusals = _refusals(evaluation.filters)
    for status in refusals[: room.groups]:
        seen = describe(status.detail)
        reason = strong(status.message or str(status.code))
        page.paragraph(Span("refuses ", "bad"), reason, f"  {seen or status.plugin}", hanging=2)
    passing = len(evaluation.filters) - len(refusals)
    if passing and refusals:
        page.paragraph(Span(f"{count(passing, 'other filter')} {'pass' if passing > 1 else 'passes'}", "dim"))
    elif evaluation.filters and not refusals:
        page.paragraph(f"all {count(passing, 'filter')} pass" if passing > 1 else "the only filter passes")
    if evaluation.lower_priority_pods and refusals and not _is_dry_run(story.node, verdict):
        still = _refusals(evaluation.without_lower)
        told = f"still {join_names([status.message or status.plugin for status in still])}" if still else "all pass"
        page.paragraph(f"without its {_lower(story)}: {told}", hanging=2)
    if evaluation.nominated_pods:
        names = join_names(evaluation.nominated_pods, limit=_PODS_SHOWN)
        page.paragraph(f"room is kept for {names}, nominated there", hanging=2)
    return clipped(beside("FILTERS", page), room.groups + 2, options.width)


def _is_dry_run(node: str, verdict: Verdict) -> bool:
    """Whether the dry run says what is so without the lower-priority pods."""
    return node in verdict.dry_run or any(candidate.node == node for candidate in verdict.candidates)


def _lower(story: NodeStory) -> str:
    number = len(story.evaluation.lower_priority_pods)
    return "only lower-priority pod" if number == 1 else count(number, "lower-priority pod")


def _refusals(statuses: Sequence[Status]) -> list[Status]:
    return [status for status in statuses if not status.is_success]


def _dry_run(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """Who would go there, or why that doesn't help; of the node that is chosen, who goes."""
    if (story := verdict.node_story) is None:
        return []
    if story.node in verdict.nominated_nodes[:1]:
        return victims(verdict, options, room)
    page = Page(options.width - COLUMN)
    candidate = next((each for each in verdict.candidates if each.node == story.node), None)
    if candidate is not None:
        page.paragraph(*describe_cost(candidate, verdict), ":")
        priorities = {step.pod: step.priority for step in candidate.steps}
        for pod in candidate.victims[: room.victims]:
            page.paragraph(strong(pod), f"  priority {priorities[pod]:,}" if pod in priorities else "")
        if (rest := len(candidate.victims) - room.victims) > 0:
            page.paragraph(Span(f"… and {count(rest, 'more victim')} (-v)", "dim"))
    elif (tried := verdict.dry_run.get(story.node)) is not None:
        page.paragraph(f"without its {_lower(story)}: ", describe_shortage(tried))
    return clipped(beside("DRY RUN", page), room.victims + 2, options.width)


def _instead(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """With what the node is chosen."""
    story: NodeStory | None = verdict.node_story
    if story is None or story.is_chosen:
        return []
    return proposed(story.proposals, story.search, verdict, options, room)


# A verdict that tells a node's story, in order.
SECTIONS: tuple[Section, ...] = (
    ("elsewhere", _standing),
    ("groups", _filters),
    ("victims", _dry_run),
    ("changes", _instead),
)
