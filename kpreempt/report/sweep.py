"""A sweep: the clusters, worst first, and the queries that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial

from kpreempt.report.amounts import count
from kpreempt.report.blocks import (
    Count,
    Listing,
    Picture,
    Report,
    Role,
    Section,
    Sentence,
    Span,
    Table,
    Tone,
    Words,
    columns,
    name,
    strong,
)
from kpreempt.report.evidence import OUTCOMES
from kpreempt.report.html.markup import Html, join, tag, text
from kpreempt.report.html.markup import name as marked
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.status import Outcome
from kpreempt.verdict.sweep import Sweep, SweptCluster

_CLUSTERS_SHOWN, _FAILURES_SHOWN = 15, 5
# Priorities on a screen.
_CLUSTERS, _FAILURES, _ASSUMPTIONS = 30, 20, 10
_BARS_SHOWN = 12
_WIDTH, _BAR = 1000, 22
_COLORS: Mapping[Role, str] = {"good": "var(--good)", "bad": "var(--bad)", "warn": "var(--warn)"}


def report(sweep: Sweep, _options: RenderOptions) -> Report:
    """Clusters by outcomes, worst first, failures and assumptions; bars on a page."""
    tone = _tone(sweep)
    failed = sum(bool(each.error) for each in sweep.items)
    parts = [count(len(sweep.items), "cluster"), count(sweep.answers, "answer")]
    parts += [f"{count(failed, 'cluster')} without answers"] if failed else []
    parts += [count(sweep.num_failures, "failure")] if sweep.num_failures else []
    scope = f"{count(len(sweep.queries), 'query')} for {', '.join(sweep.algorithms)}"
    outcomes = [each for each in OUTCOMES if sweep.outcomes.get(each)]
    counts = [Count(OUTCOMES[each].alone, sweep.outcomes[each], OUTCOMES[each].style == "bad") for each in outcomes]
    counts.append(Count("uncertain", sweep.uncertain))
    counts.append(Count("failures", sweep.num_failures, sweep.num_failures > 0))
    left = sweep.num_failures - len(sweep.failures)
    return Report(
        title=("Sweep of ", strong(count(len(sweep.items), "cluster"))),
        tone=tone,
        lead=(Span(", ".join(parts), "bad" if tone == "bad" else "strong"), "."),
        facts=[scope] if sweep.algorithms else [],
        counts=counts,
        sections=[
            Section(
                "OUTCOMES",
                blocks=[Picture(partial(_bars, sweep, outcomes))] if outcomes else [],
                heading="Outcomes of the pods",
                only="page",
            ),
            _clusters(sweep, outcomes),
            Section(
                "SOURCES",
                blocks=[
                    Table(
                        columns("Cluster", "Version", "Nodes", "Pods", "Source", right=["Nodes", "Pods"]),
                        [
                            [name(each.cluster), each.version, _size(each.nodes), _size(each.pods), each.source]
                            for each in sweep.items
                        ],
                        noun="cluster",
                        is_main=True,
                    )
                ],
                heading="The clusters",
                only="page",
            ),
            Section(
                "FAILURES",
                f"{sweep.num_failures:,}" if sweep.num_failures else "",
                [
                    Listing(
                        [
                            [
                                (
                                    strong(" · ".join(filter(None, (each.cluster, each.query, each.algorithm)))),
                                    f": {each.reason}: {each.message}",
                                ),
                                *([(Span("hint: ", "good"), each.hint)] if each.hint else []),
                            ]
                            for each in sweep.failures
                        ],
                        noun="failure",
                        shown=_FAILURES_SHOWN,
                    ),
                    Sentence(Span(f"and {count(left, 'more failure')} in the failures table" if left else "", "dim")),
                ],
                heading="Failures",
                priority=_FAILURES,
            ),
            Section(
                "ASSUMPTIONS",
                blocks=[
                    Table(
                        columns("CLUSTERS", "KIND", "WHAT", right=["CLUSTERS"]),
                        [[f"{each.clusters:,}", each.kind, each.message] for each in sweep.assumptions],
                        noun="assumption",
                        shown=_FAILURES_SHOWN,
                    )
                ],
                heading="Assumptions",
                priority=_ASSUMPTIONS,
            ),
            Section(
                "QUERIES",
                blocks=[Listing([[name(each)] for each in sweep.queries], noun="query")],
                heading="Queries",
                only="page",
            ),
        ],
        more=[("-v", "every cluster, all failures and assumptions")],
        command="sweep",
    )


def _tone(sweep: Sweep) -> Tone:
    bad = (Outcome.UNSCHEDULABLE, Outcome.PREEMPTS_VIOLATING_BUDGETS)
    if sweep.num_failures or any(sweep.outcomes.get(each) for each in bad) or sweep.audits.get("error"):
        return "bad"
    return "warn" if sweep.uncertain or set(sweep.outcomes) - {Outcome.LANDS, "NothingPending"} else "good"


def _clusters(sweep: Sweep, outcomes: list[Outcome]) -> Section:
    has_failures = any(each.error or each.failures for each in sweep.items)
    failed, audits = ["FAILED"] if has_failures else [], ["AUDITS"] if sweep.audits else []
    numbers = [*(OUTCOMES[each].short.upper() for each in outcomes), "EVICTED", "UNSURE", *failed]
    table = Table(
        columns("CLUSTER", *numbers, *audits, right=numbers),
        [_row(each, outcomes, has_failures=has_failures, has_audits=bool(sweep.audits)) for each in sweep.items],
        noun="cluster",
        shown=_CLUSTERS_SHOWN,
        is_main=True,
    )
    return Section("CLUSTERS", "worst first" if sweep.items else "", [table], priority=_CLUSTERS, reserved_lines=6)


def _row(each: SweptCluster, outcomes: list[Outcome], *, has_failures: bool, has_audits: bool) -> list[Words]:
    cells: list[Words] = [strong(each.cluster)]
    cells += [_number(each.outcomes.get(outcome, 0), OUTCOMES[outcome].style) for outcome in outcomes]
    cells += [_number(each.victims), _number(each.uncertain, "warn")]
    if has_failures:
        cells.append(Span(each.error, "bad") if each.error else _number(each.failures, "bad"))
    audits = ", ".join(f"{number:,} {audit}" for audit, number in each.audits.items())
    return [*cells, *([audits or "-"] if has_audits else [])]


def _number(value: int, style: Role = "") -> Span:
    return Span(f"{value:,}", style) if value else Span("-", "dim")


def _size(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _bars(sweep: Sweep, outcomes: list[Outcome]) -> Html:
    """A bar for all clusters, one for the worst outcome in each cluster, and bars for the first clusters."""
    legend = []
    for each in outcomes:
        _, style, words, _ = OUTCOMES[each]
        square = Html(
            f'<svg width="12" height="12" aria-hidden="true" style="display:inline-block">'
            f'<rect width="12" height="12" fill="{_COLORS[style]}"/></svg>'
        )
        legend.append(tag("li", square, f" {words}: {sweep.outcomes[each]:,}"))
    worst: Counter[str] = Counter(
        next(each for each in reversed(list(OUTCOMES)) if cluster.outcomes.get(each))
        for cluster in sweep.items
        if any(cluster.outcomes.get(each) for each in OUTCOMES)
    )
    shown = [tag("ul", *legend, class_="legend"), _bar(sweep.outcomes, "pods")]
    if worst:
        shown += [
            tag("p", "Clusters by their worst outcome:", class_="note"),
            _bar(worst, "clusters"),
        ]
    for cluster in sweep.items[:_BARS_SHOWN]:
        if any(cluster.outcomes.get(each) for each in OUTCOMES):
            shown += [tag("p", marked(cluster.cluster), class_="note"), _bar(cluster.outcomes, "pods")]
    return join(shown)


def _bar(numbers: Mapping[str, int], what: str) -> Html:
    """A stacked bar; hovering shows the number of each part."""
    total = sum(numbers.get(each, 0) for each in OUTCOMES)
    shown, labels, x = [], [], 0.0
    for each, (_, style, words, _) in OUTCOMES.items():
        number = numbers.get(each, 0)
        if not number:
            continue
        wide = _WIDTH * number / total
        title = tag("title", f"{words}: {number:,} of {total:,} {what}")
        shown.append(
            Html(
                f'<rect x="{x:.2f}" y="0" width="{wide:.2f}" height="{_BAR}" fill="{_COLORS[style]}" '
                f'stroke="var(--ground)">{title}</rect>'
            )
        )
        labels.append(f"{words} {number:,}")
        x += wide
    return Html(
        f'<svg role="img" aria-label="{text(", ".join(labels))}" width="100%" height="{_BAR}" '
        f'viewBox="0 0 {_WIDTH} {_BAR}" preserveAspectRatio="none">{join(shown)}</svg>'
    )
