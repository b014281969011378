"""The pending pods as a page: the summary, then a table for each cause, with a story of each pod that unfolds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kpreempt.report.amounts import count
from kpreempt.report.html.markup import Html, cut_note, fold, join, name, names, table, tag
from kpreempt.report.html.page import Count, Part, banner, footer, whole_page
from kpreempt.report.html.parts import assumptions
from kpreempt.report.html.phrases import paragraph, phrase
from kpreempt.report.options import RenderOptions
from kpreempt.report.pending.html_story import story
from kpreempt.report.pending.more_nodes import more_nodes_in_words
from kpreempt.report.pending.summary import notes_in_words, summary_sentence
from kpreempt.report.pending.text import alike, group_in_words
from kpreempt.report.pending.words import fate_in_words, nothing_pending, state_in_words
from kpreempt.verdict import Outcome
from kpreempt.verdict.pending import PendingGroup, PendingPod, PendingPods, PendingState
from kpreempt.verdict.unread import absent_sentence

# So many bytes of all tables together; each table gets what those before it leave, and a few rows at least.
_LIMIT = 1_400_000
_LEAST = 10_000
_LINKS_SHOWN = 12
_PODS_SHOWN = 40
_VICTIMS_SHOWN = 12
_NODES_SHOWN = 4
_LEAVING_SHOWN = 12
_BAD = (Outcome.NEVER_LANDS, Outcome.PREEMPTS_VIOLATING_BUDGETS)


def render(pending: PendingPods, options: RenderOptions) -> str:
    """The document, below 2 MB however many pods wait: what is cut says so. With ``verbose`` everything is unfolded."""
    title = f"kpreempt pending: {count(len(pending.items), 'pod')}"
    told = summary_sentence(pending) if pending.items else nothing_pending(pending)
    lead = tag("span", told, class_="line")
    heading = join(["Pending pods: ", tag("span", f"{len(pending.items):,}")])
    head = banner(_tone(pending), heading, _counts(pending), _facts(pending, options), lead)
    if unknown := absent_sentence(pending.assumptions):
        head += paragraph(unknown)
    if more := more_nodes_in_words(pending):
        head += paragraph(*more)
    if pending.items:
        head += tag("p", notes_in_words(pending), class_="note")
    parts = [*_groups(pending), Part("assumptions", "Assumptions", "What is assumed", assumptions(pending.assumptions))]
    end = footer("pending", pending.api_version)
    return whole_page(title, head, parts, end, is_unfolded=options.verbose, links=_LINKS_SHOWN)


def _tone(pending: PendingPods) -> str:
    if any(item.outcome in _BAD for item in pending.items):
        return "bad"
    is_known = not pending.assumptions and (pending.has_namespace or not pending.namespace)
    return "good" if is_known and not pending.items else "warn"


def _counts(pending: PendingPods) -> list[Count]:
    """How many pods there are of each label, in the order of the groups."""
    numbers: dict[str, int] = {}
    tones: dict[str, str] = {}
    for group in pending.groups:
        label, style, _ = group_in_words(group, len(group.pods), pending)
        numbers[label] = numbers.get(label, 0) + len(group.pods)
        tones[label] = "bad" if "bad" in (style, tones.get(label)) else style
    return [(label.lower(), number, tones[label] == "bad") for label, number in numbers.items()]


def _facts(pending: PendingPods, options: RenderOptions) -> str:
    cluster = pending.cluster
    facts = [count(cluster.nodes, "node"), count(cluster.pods, "pod")]
    if cluster.version:
        facts.append(f"Kubernetes {cluster.version}")
    facts.append(f"{count(pending.in_queue, 'pod')} in the queue")
    if pending.namespace:
        facts.append(f"namespace {pending.namespace}")
    facts += options.facts_of_time(pending.at)
    return " · ".join(facts)


def _groups(pending: PendingPods) -> list[Part]:
    """A section for each label, with a table for each cause."""
    items = {item.pod: item for item in pending.items}
    tables: dict[str, list[Html]] = {}
    left = _LIMIT
    for group in pending.groups:
        label, _, words = group_in_words(group, len(group.pods), pending)
        shown = (
            _table(group, words, [items[pod] for pod in group.pods], pending, max(left, _LEAST)) if left > 0 else None
        )
        if shown is None:
            shown = cut_note(len(group.pods), "pods")
        left -= len(shown.encode())
        tables.setdefault(label, []).append(shown)
    return [
        Part(f"outcome-{number}", label.capitalize(), label.capitalize(), join(each))
        for number, (label, each) in enumerate(tables.items(), 1)
    ]


def _table(group: PendingGroup, words: str, items: Sequence[PendingPod], pending: PendingPods, limit: int) -> Html:
    caption = f"{words}: {group.cause}" if group.cause else words
    columns = ("Pod", "Place in the queue", "Priority", "Node", "What becomes of it")
    row = partial(_row, pending=pending)
    return table(caption, columns, row, alike(items), limit=limit, what="pods or kinds of them")


def _row(row: Sequence[PendingPod], pending: PendingPods) -> list[str]:
    item = row[0]
    places = [each.position for each in row if each.position is not None]
    place = "" if not places else f"{places[0]:,}" if len(places) == 1 else f"{places[0]:,} to {places[-1]:,}"
    title = name(item.pod)
    if len(row) > 1:
        title += tag("div", f"and {len(row) - 1:,} more of ", name(item.owner), class_="dim")
    class_name = tag("div", name(item.priority_class_name), class_="dim") if item.priority_class_name else Html("")
    told = [fate_in_words(item) if item.state != PendingState.WAITS_FOR_VICTIMS else ()]
    told.append(state_in_words(item, pending.at))
    said = join(tag("div", phrase(each)) for each in told if each)
    nodes = item.nodes or ([item.nominated_node_name] if item.nominated_node_name else [])
    whole = fold("Story", tag("dl", *story(row, pending.at), class_="story"))
    return [title, place, join([f"{item.priority:,}", class_name]), names(nodes, limit=_NODES_SHOWN), said + whole]
