"""Who has to go for whom, and what comes of it: victims below the pod that takes their room."""

from __future__ import annotations

from functools import partial

from kpreempt.report.amounts import count
from kpreempt.report.check_html_markup import Html, folded_list, join, name, names, section, tag
from kpreempt.verdict.play import Displaced, Play

_SECTION_LIMIT = 400_000
_VICTIMS_SHOWN = 60
_BUDGETS_SHOWN = 6
# Longer chains go on below one another; how deep each is stands before it.
_DEEPEST_INDENT = 8


def displacement(play: Play) -> Html:
    """All victims, each followed by those that have to go for what takes its place."""
    if not play.displaced:
        return section("victims", "Who has to go", tag("p", "Nobody has to go."))
    number = count(len(play.displaced), "pod")
    summary = f"{number} {'has' if len(play.displaced) == 1 else 'have'} to go for others"
    if play.depth > 1:
        summary += f"; up to {play.depth:,} evictions follow from one another. The number before a pod says which it is"
    show = partial(_item, depth=play.depth)
    victims = folded_list(
        "ol", show, play.displaced, limit=_SECTION_LIMIT, what="victims", shown=_VICTIMS_SHOWN, class_="tree"
    )
    return section("victims", "Who has to go", tag("p", f"{summary}."), victims)


def _item(victim: Displaced, depth: int) -> Html:
    return tag("li", _victim(victim, depth), class_=f"d{min(victim.depth, _DEEPEST_INDENT)}") + Html("\n")


def _victim(victim: Displaced, depth: int) -> Html:
    parts: list[str] = [tag("span", f"{victim.depth:,}", class_="badge dim")] if depth > 1 else []
    parts += [tag("strong", name(victim.pod)), " leaves ", name(victim.node), " for ", name(victim.cause)]
    if victim.violated:
        which = "budget " if len(victim.violated) == 1 else "budgets "
        parts += [", ", tag("span", "against ", which, names(victim.violated, limit=_BUDGETS_SHOWN), class_="bad")]
    of = victim.workload or victim.owner
    about = join([f"priority {victim.priority:,}", *([", ", name(of)] if of else [])])
    return join([*parts, tag("div", about, _aftermath(victim), class_="dim")])


def _aftermath(victim: Displaced) -> Html:
    """What is made in the victim's place, and where that ends."""
    if not victim.replacement:
        return Html("; nothing takes its place")
    ends = tag("span", "is left waiting", class_="bad")
    if victim.lands_on:
        ends = join([tag("span", "lands", class_="good"), " on ", name(victim.lands_on)])
    made = join([name(victim.replacement), " "]) if victim.replacement != victim.pod else Html("its like ")
    return join(["; ", made, ends])
