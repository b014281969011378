"""Several algorithms side by side as a page: who decides what, and where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from kpreempt.report.amounts import agree, count
from kpreempt.report.compare import STEPS, agreement, decision_words, differing_groups, place_of, title_of
from kpreempt.report.evidence import join_names
from kpreempt.report.html.markup import (
    TABLE_LIMIT,
    Html,
    badge,
    cut_note,
    fold,
    folded,
    join,
    message,
    name,
    names,
    table,
    tag,
    within,
)
from kpreempt.report.html.page import Count, Part, banner, footer, whole_page
from kpreempt.report.html.parts import assumptions
from kpreempt.report.html.phrases import phrase
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.compare import ComparedPod, Comparison, Decision, Difference, Pair

_TABLE_LIMIT = 300_000
_PARTINGS_LIMIT = 700_000
_ONE_TABLE = 60_000
_PODS_SHOWN = 5
_NAMES_SHOWN = 8


class _Side(NamedTuple):
    """What one algorithm says of a difference."""

    algorithm: str
    said: str
    reason: str


def render(comparison: Comparison, options: RenderOptions) -> str:
    """The document, below 2 MB however many pods there are: what is cut says so.

    With ``verbose`` everything is unfolded.
    """
    parts = [
        Part("pods", "Pods", "What each decides", _matrix(comparison)),
        Part("differences", "Differences", "Where they differ", _differences(comparison)),
        Part("pairs", "Pairs", "Pairs", _pairs(comparison)),
        Part("failed", "Not decided", "What cannot be decided", _failed(comparison)),
        Part("assumptions", "Assumptions", "What is assumed", assumptions(comparison.assumptions)),
    ]
    undecided = any(item.error for item in comparison.items)
    words = "differ" if comparison.differing else "not all decided" if undecided else "agree"
    title = join(["kpreempt compare: ", tag("span", words)]) if comparison.items else Html("kpreempt compare")
    tone = "warn" if comparison.differing or undecided or not comparison.items else "good"
    head = banner(tone, title, _counts(comparison), " · ".join(comparison.algorithms), _lead(comparison))
    end = footer("compare", comparison.api_version)
    return whole_page("kpreempt compare", head, parts, end, is_unfolded=options.verbose)


def _lead(comparison: Comparison) -> Html:
    if not comparison.items:
        return Html("No pod matches.")
    if all(item.error for item in comparison.items):
        return Html("No pod could be decided.")
    return phrase(agreement(comparison))


def _counts(comparison: Comparison) -> list[Count]:
    failed = sum(bool(item.error) for item in comparison.items)
    counts: list[Count] = [
        ("pods", len(comparison.items), False),
        ("decided differently", comparison.differing, comparison.differing > 0),
    ]
    return [*counts, ("not decided", failed, True)] if failed else counts


def _matrix(comparison: Comparison) -> Html:
    """A row for each pod, those first on which not all agree."""
    decided = [item for item in comparison.items if not item.error]
    if not decided:
        return Html("")
    ranked = sorted(decided, key=lambda item: item.is_same)
    columns = ("Pod", "Priority", *comparison.algorithms, "Differ at")
    row = partial(_row, algorithms=comparison.algorithms)
    caption = f"What becomes of each pod; = is as with {comparison.algorithms[0]}"
    return table(caption, columns, row, ranked, limit=_TABLE_LIMIT, what="pods")


def _row(item: ComparedPod, algorithms: Sequence[str]) -> list[str]:
    cells = [_cell(item.decisions_of(algorithm), item) for algorithm in algorithms]
    steps = dict.fromkeys(STEPS[each.differences[0].step] for each in item.decisions if each.differences)
    return [name(title_of(item)), f"{item.priority:,}", *cells, ", ".join(steps)]


def _cell(decisions: Sequence[Decision], item: ComparedPod) -> Html:
    if not decisions:
        return Html("")
    decision, base = decisions[0], item.decisions[0].algorithm
    if decision.algorithm != base and base not in decision.differs_from:
        return Html("=")
    shown = phrase(decision_words(decision))
    return shown if decision.algorithm == base else join([badge("differs", "warn"), " ", shown])


def _differences(comparison: Comparison) -> Html:
    """Of each pod on which they differ the steps at which they do, with what each says there."""
    differing = [item for item in comparison.items if not item.error and not item.is_same]
    cards, cut = within(_card, differing, _PARTINGS_LIMIT)
    return folded(cards, _PODS_SHOWN, "pods") + cut_note(cut, "pods")


def _card(item: ComparedPod) -> Html:
    base = item.decisions[0].algorithm
    told = join(_parting(base, group) for group in differing_groups(item))
    # Others than the first differ from one another.
    if not told:
        told = tag("p", "The algorithms after the first differ from one another.")
    return tag("article", tag("h3", name(title_of(item))), told, class_="card") + Html("\n")


def _parting(base: str, group: Sequence[Decision]) -> Html:
    """The steps at which some algorithms differ from the first one."""
    others = [each.algorithm for each in group]
    differ = f" {agree(len(others), 'differs')} from "
    told = tag("p", names(others, limit=_NAMES_SHOWN), differ, name(base), " at ", _where(group, 0))
    told += _sides(base, group, 0)
    later = range(1, len(group[0].differences))
    if later:
        steps = join_names([STEPS[group[0].differences[index].step] for index in later])
        rest = join(tag("p", "at ", _where(group, index)) + _sides(base, group, index) for index in later)
        told += fold(f"and then at {steps}", rest)
    return told


def _where(group: Sequence[Decision], index: int) -> Html:
    return tag("b", place_of(group[0].differences[index]), dir="auto")


def _sides(base: str, group: Sequence[Decision], index: int) -> Html:
    differences: list[tuple[str, Difference]] = [(each.algorithm, each.differences[index]) for each in group]
    first = differences[0][1]
    sides = [_Side(base, first.base, first.base_reason)]
    sides += [_Side(algorithm, each.other, each.other_reason) for algorithm, each in differences]
    caption = f"What each says at {place_of(first)}"
    return table(caption, ("Algorithm", "Says", "Because"), _side, sides, limit=_ONE_TABLE, what="algorithms")


def _side(side: _Side) -> list[str]:
    return [name(side.algorithm), message(side.said), message(side.reason) if side.reason else ""]


def _pairs(comparison: Comparison) -> Html:
    if len(comparison.algorithms) < 3:
        return Html("")
    caption = "On how many pods two of them differ"
    return table(caption, ("Pair", "Pods"), _pair, comparison.pairs, limit=TABLE_LIMIT, what="pairs")


def _pair(pair: Pair) -> list[str]:
    return [join([name(pair.base), " and ", name(pair.other)]), f"{pair.differing:,}"]


def _failed(comparison: Comparison) -> Html:
    failed = [item for item in comparison.items if item.error]
    if not failed:
        return Html("")
    caption = f"{count(len(failed), 'pod')} that could not be decided"
    return table(caption, ("Pod", "Why"), _failure, failed, limit=TABLE_LIMIT, what="pods")


def _failure(item: ComparedPod) -> list[str]:
    return [name(title_of(item)), message(item.error)]
