"""Whom a pod was evicted for, as a page: who, when, and why."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from kpreempt.report.amounts import count
from kpreempt.report.durations import format_snapshot, format_time
from kpreempt.report.evidence import describe
from kpreempt.report.html.markup import Html, cut_note, folded, join, message, name, names, tag, text, within
from kpreempt.report.html.page import Part, banner, footer, whole_page
from kpreempt.report.html.parts import assumptions
from kpreempt.report.html.phrases import budget_uses, phrase
from kpreempt.report.layout import plain
from kpreempt.report.options import RenderOptions
from kpreempt.report.who_preempted import (
    name_of_preemptor,
    preempted_by,
    preemptor_facts,
    result_in_words,
    victim_facts,
    where_in_words,
)
from kpreempt.verdict import Evidence, Preemption, PreemptionsOfPod, Reconstruction
from kpreempt.verdict.unread import are_budgets_unread

_LIMIT = 1_000_000
_SHOWN = 10
_PODS_SHOWN = 50
_SUSPECTS_SHOWN = 20


def render(answer: PreemptionsOfPod, options: RenderOptions) -> str:
    """The document. With ``verbose`` everything is unfolded."""
    was = "was preempted" if answer.preemptions else "was not preempted, as far as is known"
    title = join([name(answer.victim.pod), " ", tag("span", was)])
    # Without events little is known.
    tone = "warn" if answer.preemptions or answer.assumptions or not answer.has_events else "good"
    facts = " · ".join([plain(victim_facts(answer, options)), *options.facts_of_time(options.now)])
    number = len(answer.preemptions)
    counts = [("evictions", number, False)] if number > 1 else []
    head = banner(tone, title, counts, facts, phrase(preempted_by(answer, options)))
    parts = [
        Part("evictions", "Evictions", count(number, "eviction") if number > 1 else "The eviction", _evictions(answer)),
        Part("assumptions", "Assumptions", "What is assumed", assumptions(answer.assumptions)),
    ]
    end = footer("who-preempted", answer.api_version)
    return whole_page(f"{answer.victim.pod} {was}", head, parts, end, is_unfolded=options.verbose)


def _evictions(answer: PreemptionsOfPod) -> Html:
    show = partial(_card, lacks_budgets=are_budgets_unread(answer.assumptions))
    cards, cut = within(show, answer.preemptions, _LIMIT)
    return folded(cards, _SHOWN, "evictions") + cut_note(cut, "evictions")


def _card(preemption: Preemption, lacks_budgets: bool) -> Html:
    when = format_time(preemption.at) if preemption.at else "At a time that is not known"
    listed = join(tag("dt", label) + tag("dd", value) for label, value in _facts(preemption, lacks_budgets))
    return tag("article", tag("h3", when), tag("dl", listed), class_="card") + Html("\n")


def _facts(preemption: Preemption, lacks_budgets: bool) -> Iterable[tuple[str, Html]]:
    """Who, where, what says so, and why, as terms with what they are."""
    if preemption.preemptor is not None:
        yield "by", phrase((*name_of_preemptor(preemption), preemptor_facts(preemption.preemptor)))
    if preemption.suspects:
        shown = preemption.suspects[:_SUSPECTS_SHOWN]
        lines = [tag("div", name(each.pod), f" ({where_in_words(each)})") for each in shown]
        if rest := len(preemption.suspects) - len(shown):
            lines.append(tag("div", f"… and {count(rest, 'more pod')}"))
        yield "perhaps by", join(lines)
    if preemption.node:
        yield "on", name(preemption.node)
    yield ("condition" if preemption.evidence == Evidence.CONDITION else "event"), message(preemption.message)
    if preemption.also:
        yield "also preempted", names(preemption.also, limit=_PODS_SHOWN)
    if preemption.reconstruction is not None:
        yield from _reconstruction(preemption.reconstruction, lacks_budgets)


def _reconstruction(found: Reconstruction, lacks_budgets: bool) -> Iterable[tuple[str, Html]]:
    """What the snapshot from before says of it."""
    when = f"in the {format_snapshot(found.taken_at)}"
    there = " (preemptor added: it was not there yet)" if found.is_preemptor_laid_over else ""
    yield "before", join([text(f"{when}{there}: "), phrase(result_in_words(found))])
    if found.victims:
        yield "victims there", names(found.victims, limit=_PODS_SHOWN)
    if found.refusal is not None and not found.refusal.is_success:
        seen = describe(found.refusal.detail)
        words = join([message(found.refusal.message), tag("div", seen) if seen else ""])
        yield "no room", join([name(found.node), " did not fit the preemptor: ", words])
    step = found.step
    if step is None:
        return
    if step.kept:
        yield "reprieve", text(f"reprieved on {found.node}")
    else:
        blocked = step.blocked_by
        why = (describe(blocked.detail) or blocked.message) if blocked is not None else "no room"
        yield "reprieve", join([tag("span", "evicted", class_="badge warn"), f" not reprieved: {why}"])
    if step.budgets:
        yield "budgets", budget_uses(step.budgets)
    else:
        yield "budgets", text("were not read" if lacks_budgets else "no budget")
