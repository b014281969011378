"""What else a page tells of a verdict: changes that would help, one node's story, the event, and what was filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import every_write
from kpreempt.report.evidence import describe
from kpreempt.report.explain.changes import (
    describe_answer,
    describe_changes,
    describe_one_more_node,
    join_options,
    nothing_found,
)
from kpreempt.report.explain.devices import devices_by_request, told_nodes
from kpreempt.report.explain.extenders import describe_call
from kpreempt.report.explain.headline import destinations, tie_in_event
from kpreempt.report.explain.node import describe_standing
from kpreempt.report.explain.volumes import competitions
from kpreempt.report.html.markup import (
    TABLE_LIMIT,
    Html,
    badge,
    folded_list,
    join,
    message,
    name,
    names,
    table,
    tag,
    text,
)
from kpreempt.report.html.phrases import paragraph, phrase
from kpreempt.verdict import Admitted, Effect, ExtenderCall, Outcome, Proposal, ProposalSearch, Status, Verdict
from kpreempt.verdict.unread import are_budgets_unread

# The API server cuts the message of an event at 1,024.
_EVENT_LENGTH = 4_000
_LIST_LIMIT = 60_000
_LINES_SHOWN = 12
_PODS_SHOWN = 6
_T = TypeVar("_T")


def event(verdict: Verdict) -> Html:
    """The scheduler's message, word for word; nothing where it says none."""
    said = tie_in_event(verdict)
    note = tag("p", text(said)) if said else Html("")
    message = tag("p", text(verdict.message, limit=_EVENT_LENGTH), class_="event")
    return Html(message + note) if verdict.message else Html("")


def changes(verdict: Verdict) -> Html:
    """The changes with which the pod lands, or lands without preemption; nothing where they were not sought."""
    more = verdict.one_more_node
    node = paragraph(*describe_one_more_node(more), ".") if more is not None else Html("")
    if verdict.proposal_search is None and not verdict.proposals:
        return node
    is_pending = verdict.outcome == Outcome.NEVER_LANDS
    caption = "Each of these alone is enough" if is_pending else "With each of these nobody is evicted"
    return Html(_proposals(caption, verdict.proposals, verdict.proposal_search, verdict) + node)


def node_story(verdict: Verdict) -> Html:
    """What every filter says of the node that was asked about, and with what it would be chosen."""
    story = verdict.node_story
    if story is None:
        return Html("")
    told = paragraph(*describe_standing(story, verdict), ".")
    evaluation = story.evaluation
    if evaluation.pre_filter is not None:
        return told + tag("p", "Refused on all nodes before any filter: ", message(evaluation.pre_filter.message), ".")
    if evaluation.left_out_by:
        told += tag("p", "Left out before any filter by ", names(evaluation.left_out_by, limit=_PODS_SHOWN), ".")
    if evaluation.nominated_pods:
        told += tag("p", "Room is kept for ", names(evaluation.nominated_pods, limit=_PODS_SHOWN), ", nominated there.")
    without = {each.plugin: each for each in evaluation.without_lower}
    columns = ["Filter", "The node as it is"]
    if evaluation.lower_priority_pods:
        columns.append(f"Without its {count(len(evaluation.lower_priority_pods), 'lower-priority pod')}")
    row = partial(_filter, without=without, is_without=len(columns) > 2)
    caption = "What every filter says; the scheduler stops at the first that refuses"
    told += table(caption, columns, row, evaluation.filters, limit=TABLE_LIMIT, what="filters")
    if story.is_chosen:
        return told
    return told + _proposals("With each of these it is chosen", story.proposals, story.search, verdict)


def _filter(status: Status, without: dict[str, Status], is_without: bool) -> list[str]:
    cells: list[str] = [name(status.plugin), _answer(status)]
    if is_without:
        cells.append(_answer(without[status.plugin]) if status.plugin in without else Html(""))
    return cells


def _answer(status: Status) -> Html:
    if status.is_success:
        return badge("passes", "good")
    seen = describe(status.detail)
    return join(
        [badge("refuses", "bad"), " ", message(status.message or str(status.code)), tag("div", seen) if seen else ""]
    )


def _proposals(caption: str, proposals: Sequence[Proposal], search: ProposalSearch | None, verdict: Verdict) -> Html:
    if not proposals:
        return tag("p", f"Changes: {nothing_found(search or ProposalSearch())}.")
    row = partial(_proposal, lacks_budgets=are_budgets_unread(verdict.assumptions))
    titled = f"{caption}, the least intrusive first"
    whole = table(titled, ("Change", "What it brings", "To try it"), row, proposals, limit=TABLE_LIMIT, what="changes")
    if search is not None and not search.is_complete:
        tried = count(search.verdicts, "verdict")
        whole += tag("p", f"The search gave up after {tried}; there may be others.", class_="note")
    return whole


def _proposal(proposal: Proposal, lacks_budgets: bool) -> list[str]:
    return [
        phrase(describe_changes(proposal.changes)),
        phrase(describe_answer(proposal, lacks_budgets=lacks_budgets)),
        name(join_options(proposal.options)),
    ]


def effects(verdict: Verdict) -> Html:
    """What the scheduler then writes, in order."""
    if not verdict.effects:
        return Html("")
    nodes = destinations(verdict)
    told = tag("p", "If ", name(nodes[0]), " is picked:") if len(nodes) > 1 else Html("")
    return told + _listed("ol", _effect, verdict.effects, "writes")


def _effect(effect: Effect) -> Html:
    return tag("li", phrase(every_write(effect))) + Html("\n")


def extender_calls(verdict: Verdict) -> Html:
    """Every call of an extender and what it changed."""
    return _listed("ul", _call, verdict.extender_calls, "calls") if verdict.extender_calls else Html("")


def _call(call: ExtenderCall) -> Html:
    return tag("li", phrase(describe_call(call))) + Html("\n")


def volumes(verdict: Verdict) -> Html:
    """The claims that compete for equal volumes, and the nodes on which they do."""
    if verdict.volume_choices is None:
        return Html("")
    groups = competitions(verdict.volume_choices)
    caption = "Equal volumes are taken in a random order; this page is about that of the input"
    columns = ("What competes, and for what", "On the nodes")
    return table(caption, columns, _competition, list(groups.items()), limit=TABLE_LIMIT, what="of these")


def devices(verdict: Verdict) -> Html:
    """What each request gets on the nodes on which the pod may end."""
    rows = [
        (node, key, devices)
        for node in told_nodes(verdict)
        for key, devices in devices_by_request(verdict.devices[node]).items()
    ]
    if not rows:
        return Html("")
    columns = ("On node", "For request", "Of claim", "Devices", "From pool")
    return table("The devices that the pod gets", columns, _devices, rows, limit=TABLE_LIMIT, what="requests")


def _devices(row: tuple[str, tuple[str, str, str], list[str]]) -> list[str]:
    node, (claim, request, pool), devices = row
    return [name(node), name(request), name(claim), names(devices, limit=_PODS_SHOWN), name(pool)]


def _competition(item: tuple[str, list[str]]) -> list[str]:
    competition, nodes = item
    return [message(competition), names(nodes, limit=_PODS_SHOWN)]


def filled_in(verdict: Verdict) -> Html:
    """What the API server adds to the pod before the scheduler looks."""
    if not verdict.admission:
        return Html("")
    caption = "What the API server adds before the scheduler sees the pod"
    columns = ("Field", "Value", "From")
    return table(caption, columns, _admitted, verdict.admission, limit=TABLE_LIMIT, what="fields")


def _admitted(each: Admitted) -> list[str]:
    return [name(each.path), name(each.value), message(each.reason)]


def _listed(kind: str, show: Callable[[_T], Html], items: Sequence[_T], what: str) -> Html:
    return folded_list(kind, show, items, limit=_LIST_LIMIT, what=what, shown=_LINES_SHOWN, class_="lines")
