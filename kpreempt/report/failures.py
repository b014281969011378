"""Groups of nodes that were refused, as lines: every node's numbers where they are few, the nearest where many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kpreempt.report.amounts import count
from kpreempt.report.evidence import describe_shortage
from kpreempt.report.grouping import Cause, FailureGroup, group_failures
from kpreempt.report.layout import Page, Phrase, Span, plain, strong, width_of
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Code, Status

# More nodes than this are told in short.
_CROWD = 12
_GROUPS_SHOWN = 6
_GROUPS_SHOWN_OF_CROWD = 2
_CAUSES_SHOWN = 3
_NAMES_SHOWN = 3


def is_crowd(statuses: Mapping[str, Status], options: RenderOptions) -> bool:
    """Whether there are too many nodes to give each group more than its nearest one."""
    return len(statuses) > _CROWD and not options.verbose


def add_failures(
    page: Page, statuses: Mapping[str, Status], options: RenderOptions, *, indent: int, is_terse: bool
) -> None:
    """Refused nodes in groups of the same plugin and reasons, the largest first."""
    groups = group_failures(statuses)
    limit = len(groups) if options.verbose else _GROUPS_SHOWN_OF_CROWD if is_terse else _GROUPS_SHOWN
    # One more group takes no more room than the line that says it was left out.
    shown = groups if len(groups) == limit + 1 else groups[:limit]
    width = max((len(f"{len(group.nodes):,}") for group in shown), default=0)
    for group in shown:
        reasons = group.reasons or _status_in_words(group.code)
        phrase: Phrase = (strong(reasons), Span(f"  {group.plugin}" if group.plugin else "", "dim"))
        page.labelled(f"{len(group.nodes):,}".rjust(width), *phrase, indent=indent, column=width + 2)
        below = indent + width + 2
        if is_terse:
            _add_nearest(page, group, statuses, indent=below)
        else:
            _add_causes(page, group, options, indent=below)
    if rest := groups[len(shown) :]:
        nodes = sum(len(group.nodes) for group in rest)
        page.paragraph(Span(f"… and {count(nodes, 'node')} for {len(rest):,} other reasons", "dim"), indent=indent)


def name_some(nodes: Sequence[str], options: RenderOptions) -> str:
    """The first few names and how many there are besides; all of them where ``verbose``."""
    shown = nodes if options.verbose else nodes[:_NAMES_SHOWN]
    rest = len(nodes) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest else "")


def add_causes(page: Page, causes: Sequence[Cause], options: RenderOptions, *, indent: int) -> None:
    """Node names with what was seen there, in two columns where the page is wide enough."""
    rows: list[tuple[Phrase, Phrase]] = [((name_some(cause.nodes, options),), (cause.phrase,)) for cause in causes]
    longest = max((width_of(plain(names)) for names, _ in rows), default=0)
    if all(indent + longest + 2 + width_of(plain(phrase)) <= page.width for _, phrase in rows):
        page.table(rows, aligns=("left", "left"), indent=indent)
        return
    for names, phrase in rows:
        page.paragraph(*names, indent=indent, hanging=2)
        if phrase[0]:
            page.paragraph(*phrase, indent=indent + 2, hanging=2)


def _add_causes(page: Page, group: FailureGroup, options: RenderOptions, *, indent: int) -> None:
    shown = group.causes if options.verbose else group.causes[:_CAUSES_SHOWN]
    add_causes(page, shown, options, indent=indent)
    if rest := sum(len(cause.nodes) for cause in group.causes[len(shown) :]):
        page.paragraph(Span(f"… and {count(rest, 'more node')}", "dim"), indent=indent)


def _add_nearest(page: Page, group: FailureGroup, statuses: Mapping[str, Status], *, indent: int) -> None:
    """One line: for resources the node that lacks least, otherwise the commonest cause."""
    cause = group.causes[0]
    if not cause.phrase:
        return
    if group.is_about_resources:
        page.paragraph(
            f"nearest {cause.nodes[0]}: ", describe_shortage(statuses[cause.nodes[0]]), indent=indent, hanging=2
        )
        return
    number = "all" if len(group.causes) == 1 else f"{len(cause.nodes):,}"
    others = f", {len(group.causes) - 1:,} other causes" if len(group.causes) > 1 else ""
    page.paragraph(f"{cause.phrase} ({number}{others})", indent=indent, hanging=2)


def _status_in_words(code: Code) -> str:
    return "refused without a reason" if code in (Code.NONE, Code.UNSCHEDULABLE) else str(code)
