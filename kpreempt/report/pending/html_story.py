"""What is known of a pending pod, as terms with what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from kpreempt.report.amounts import count, format_amount
from kpreempt.report.durations import format_since, format_time
from kpreempt.report.explain.chance import alternatives_in_lines
from kpreempt.report.html.markup import Html, join, message, name, names, tag, text
from kpreempt.report.html.phrases import budget_uses, phrase
from kpreempt.report.pending.words import leaving_in_words
from kpreempt.verdict import Victim
from kpreempt.verdict.pending import Agreement, Leaving, PendingPod

_PODS_SHOWN = 40
_VICTIMS_SHOWN = 12
_NODES_SHOWN = 4
_LEAVING_SHOWN = 12
_OUTCOMES_SHOWN = 12
_COMPARED = {
    Agreement.SAME: "the same is expected now",
    Agreement.COUNTS: "the same reasons are expected now, for other numbers of nodes",
}


def story(row: Sequence[PendingPod], at: datetime | None) -> Iterator[Html]:
    """The first pod of a row of alike ones, and the names of all; ages count to ``at``, where it is known."""
    item = row[0]
    if len(row) > 1:
        yield _fact("pods", names([each.pod for each in row], limit=_PODS_SHOWN))
    yield from _origin(item, at)
    if item.waiting_for:
        yield _fact("waits for", _leaving(item.waiting_for, at))
    for node, gone in list(item.victims.items())[:_NODES_SHOWN]:
        yield _fact("victims", join([tag("div", "on ", name(node)), _victims(gone)]))
    if len(item.victims) > _NODES_SHOWN:
        yield _fact("victims", text(f"… and those on {count(len(item.victims) - _NODES_SHOWN, 'more node')}"))
    if item.alternatives is not None:
        lines = alternatives_in_lines(item.alternatives)[:_OUTCOMES_SHOWN]
        yield _fact("equal pods", join(tag("div", phrase(line)) for line in lines))
    if item.claims:
        yield _fact("claims", names(item.claims, limit=_PODS_SHOWN))
    if item.reason:
        yield _fact("reason", message(item.reason))
    yield from _messages(item)


def _fact(term: str, what: Html) -> Html:
    return tag("dt", term) + tag("dd", what)


def _origin(item: PendingPod, at: datetime | None) -> Iterator[Html]:
    if item.owner:
        yield _fact("owner", name(item.owner))
    if item.created is not None:
        age = f" ({format_since(item.created, at)} ago)" if at is not None and at >= item.created else ""
        yield _fact("created", text(f"{format_time(item.created)}{age}"))
    if any(item.requests.values()):
        yield _fact("requests", text(_amounts(item.requests)))
    if item.last_tried is not None:
        yield _fact("last tried", text(format_time(item.last_tried)))


def _amounts(requests: Mapping[str, int]) -> str:
    return ", ".join(f"{resource} {format_amount(resource, amount)}" for resource, amount in requests.items() if amount)


def _leaving(leaving: Sequence[Leaving], at: datetime | None) -> Html:
    lines = [tag("div", phrase(leaving_in_words(each, at))) for each in leaving[:_LEAVING_SHOWN]]
    return join(lines) + _more(len(leaving) - len(lines))


def _victims(gone: Sequence[Victim]) -> Html:
    lines = []
    for victim in gone[:_VICTIMS_SHOWN]:
        budgets = join(["; budget ", budget_uses(victim.budgets)]) if victim.budgets else Html("")
        leaving = ", terminating" if victim.terminating else ""
        lines.append(tag("div", name(victim.pod), f" priority {victim.priority:,}{leaving}", budgets))
    return join(lines) + _more(len(gone) - len(lines))


def _more(rest: int) -> Html:
    return tag("div", f"… and {count(rest, 'more pod')}") if rest else Html("")


def _messages(item: PendingPod) -> Iterator[Html]:
    """What the scheduler said last, and what it is expected to say now."""
    if item.scheduler_message:
        yield _fact("scheduler said", message(item.scheduler_message))
    if item.scheduler_message and item.agreement in _COMPARED:
        yield _fact("now", text(_COMPARED[item.agreement]))
    elif item.message:
        yield _fact("expected now", message(item.message))
