"""A sweep as a page: clusters against outcomes, the worst first, with plots, failures and what is assumed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from kpreempt.report.amounts import count
from kpreempt.report.html.markup import Html, join, message, name, names, table, tag, text
from kpreempt.report.html.page import Count, Part, banner, footer, whole_page
from kpreempt.report.layout import Style
from kpreempt.report.options import RenderOptions
from kpreempt.report.sweep.words import (
    OUTCOMES,
    audits_in_words,
    facts_of,
    headline,
    outcomes_of,
    subject_of,
    tone_of,
)
from kpreempt.verdict.status import Outcome
from kpreempt.verdict.sweep import Sweep, SweepAssumption, SweepFailure, SweptCluster

# So many bytes of each table.
_CLUSTERS_LIMIT, _LIMIT = 900_000, 300_000
_NAMES_SHOWN = 20
_WIDTH, _BAR = 1000, 22
_COLOURS: Mapping[Style, str] = {"good": "var(--good)", "bad": "var(--bad)", "warn": "var(--warn)"}


def render(sweep: Sweep, options: RenderOptions) -> str:
    """The document, below 2 MB however many clusters there are: what is cut says so."""
    title = f"kpreempt sweep: {count(len(sweep.items), 'cluster')}"
    asked = f"{count(len(sweep.questions), 'question')} · {', '.join(sweep.algorithms)}"
    lead = tag("span", headline(sweep), class_="line")
    head = banner(tone_of(sweep), f"Sweep of {count(len(sweep.items), 'cluster')}", _counts(sweep), asked, lead)
    parts = [
        Part("outcomes", "Outcomes", "What becomes of the pods", _outcomes(sweep)),
        Part("clusters", "Clusters", "Clusters, the worst first", _clusters(sweep)),
        Part("failures", "Failures", "What has no answer", _failures(sweep)),
        Part("assumptions", "Assumptions", "What is assumed", _assumptions(sweep)),
        Part("questions", "Questions", "What was asked", _questions(sweep)),
    ]
    return whole_page(title, head, parts, footer("sweep", sweep.api_version), is_unfolded=options.verbose)


def _counts(sweep: Sweep) -> list[Count]:
    bad = {one for one, (_, style) in OUTCOMES.items() if style == "bad"}
    counts = [(OUTCOMES[each][0], sweep.outcomes[each], each in bad) for each in outcomes_of(sweep)]
    counts.append(("may come out otherwise", sweep.uncertain, False))
    return [*counts, ("failures", sweep.num_failures, sweep.num_failures > 0)]


def _outcomes(sweep: Sweep) -> Html:
    """A bar for all clusters together, and how clusters are spread over the worst that they have."""
    total = sum(sweep.outcomes.get(each, 0) for each in outcomes_of(sweep))
    if not total:
        return Html("")
    legend = join(
        tag("li", _square(OUTCOMES[each][1]), f" {OUTCOMES[each][0]}: {sweep.outcomes[each]:,}")
        for each in outcomes_of(sweep)
    )
    worst: dict[str, int] = {}
    for cluster in sweep.items:
        found = [each for each in OUTCOMES if cluster.outcomes.get(each)]
        if found:
            worst[found[-1]] = worst.get(found[-1], 0) + 1
    spread = tag("p", "Clusters by the worst that becomes of a pod there:", class_="note") if worst else Html("")
    return join([
        tag("ul", legend, class_="legend"), _bar(sweep.outcomes, total, "pods"), spread,
        _bar(worst, sum(worst.values()), "clusters") if worst else Html(""),
    ])  # fmt: skip


def _bar(numbers: Mapping[str, int], total: int, what: str) -> Html:
    """A bar of parts, each with its number where the pointer is."""
    shown, x = [], 0.0
    for each, (words, style) in OUTCOMES.items():
        number = numbers.get(each, 0)
        if not number:
            continue
        wide = _WIDTH * number / total
        title = tag("title", f"{words}: {number:,} of {total:,} {what}")
        shown.append(
            Html(
                f'<rect x="{x:.2f}" y="0" width="{wide:.2f}" height="{_BAR}" fill="{_COLOURS[style]}" '
                f'stroke="var(--ground)">{title}</rect>'
            )
        )
        x += wide
    said = text(", ".join(f"{OUTCOMES[each][0]} {numbers[each]:,}" for each in OUTCOMES if numbers.get(each)))
    return Html(
        f'<svg role="img" aria-label="{said}" width="100%" height="{_BAR}" viewBox="0 0 {_WIDTH} {_BAR}" '
        f'preserveAspectRatio="none">{join(shown)}</svg>'
    )


def _square(style: Style) -> Html:
    return Html(
        f'<svg width="12" height="12" aria-hidden="true" style="display:inline-block">'
        f'<rect width="12" height="12" fill="{_COLOURS[style]}"/></svg>'
    )


def _clusters(sweep: Sweep) -> Html:
    outcomes = outcomes_of(sweep)
    heads = ["Cluster", *(OUTCOMES[each][0].capitalize() for each in outcomes), "Evicted", "Uncertain", "Failed"]
    heads += ["Audits"] if sweep.audits else []
    row = partial(_cluster, outcomes=outcomes, has_audits=bool(sweep.audits))
    return table("Clusters", heads, row, sweep.items, limit=_CLUSTERS_LIMIT, what="clusters")


def _cluster(each: SweptCluster, outcomes: list[Outcome], has_audits: bool) -> list[str]:
    title = name(each.cluster)
    title += tag("div", facts_of(each) or message(each.source), class_="dim")
    if total := sum(each.outcomes.get(one, 0) for one in OUTCOMES):
        title += _bar(each.outcomes, total, "pods")
    cells: list[str] = [_number(each.outcomes.get(one, 0), OUTCOMES[one][1]) for one in outcomes]
    cells += [_number(each.victims, "warn"), _number(each.uncertain, "warn")]
    cells.append(tag("span", each.failed, class_="bad") if each.failed else _number(each.failures, "bad"))
    return [title, *cells, *([audits_in_words(each.audits)] if has_audits else [])]


def _number(number: int, style: Style) -> Html:
    return tag("span", f"{number:,}", class_=style) if number else tag("span", "0", class_="dim")


def _failures(sweep: Sweep) -> Html:
    if not sweep.failures:
        return Html("")
    shown = table("Failures", ("What", "Why", "Message"), _failure, sweep.failures, limit=_LIMIT, what="failures")
    left = sweep.num_failures - len(sweep.failures)
    return shown + (tag("p", f"{count(left, 'more failure')} in the table failures.", class_="note") if left else "")


def _failure(each: SweepFailure) -> list[str]:
    advice = tag("div", "try: ", message(each.hint), class_="dim") if each.hint else Html("")
    return [name(subject_of(each)), each.reason, message(each.message) + advice]


def _assumptions(sweep: Sweep) -> Html:
    if not sweep.assumptions:
        return Html("")
    return table(
        "Assumptions", ("What", "Kind", "Clusters"), _assumption, sweep.assumptions, limit=_LIMIT, what="assumptions"
    )


def _assumption(each: SweepAssumption) -> list[str]:
    return [message(each.message), each.kind, f"{each.clusters:,}"]


def _questions(sweep: Sweep) -> Html:
    return tag("p", names(sweep.questions, limit=_NAMES_SHOWN)) if sweep.questions else Html("")
