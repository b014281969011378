"""The choice: between candidates, rule by rule, or between nodes that fit, by scores, down to those that are left.

Nodes stand side by side: a row for each rule or plugin, a column for each node; transposed where the nodes are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from kpreempt.report.amounts import agree, count
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.chance import add_odds, chance_of_volumes, describe_sampling, is_sampled_preemption
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, columns_of_numbers, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Candidate, TieBreakRound, Verdict

_COLUMNS = 4
_COLUMNS_OF_MANY = 3
_PRIORITY_OFFSET = 2**31
_RULES = {
    "pdbViolations": "fewest budget violations",
    "highestPriority": "lowest priority of top victim",
    "prioritySum": "lowest sum of priorities",
    "victims": "fewest victims",
    "latestStart": "latest start of top victims",
}
_OUT = "✗"
_TIME_LENGTH = len("2026-11-01T00:00:00Z")

_NODES_SHOWN = 4
_TIED_SHOWN = 2

_INDENT = 2
_MOST_COLUMNS = 6
_FEWEST_COLUMNS = 2

Row = tuple[str, list[Phrase]]


def add_choice_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``4 CHOICE``: what each rule made of the candidates, and whether chance decides the rest."""
    selection = verdict.selection
    if selection is None or not verdict.candidates:
        return
    page.blank()
    page.labelled(Span("4 CHOICE", "heading"), *describe_choice(verdict), column=LABEL_COLUMN)
    if verdict.odds is not None and is_sampled_preemption(verdict):
        add_odds(page, verdict.odds, options)
    if not selection.rounds:
        return
    ordered = order_by_survival(verdict)
    # Nodes that tie have the same values; one of them stands for all.
    others = [candidate for candidate in ordered if candidate.node not in selection.tied]
    winners = [candidate for candidate in ordered if candidate.node in selection.tied]
    all_shown = options.verbose or len(ordered) <= _COLUMNS
    columns = ordered if all_shown else [*winners[:1], *others][:_COLUMNS_OF_MANY]
    _add_rounds(page, selection.rounds, columns, ordered)


def order_by_survival(verdict: Verdict) -> list[Candidate]:
    """The candidates, those that lasted longest in the choice first."""
    rounds = verdict.selection.rounds if verdict.selection else []
    survived: dict[str, int] = {}
    for each in rounds:
        for node in each.survivors:
            survived[node] = survived.get(node, 0) + 1
    for node in verdict.nominated_nodes:
        survived[node] = len(rounds) + 1
    return sorted(verdict.candidates, key=lambda candidate: -survived.get(candidate.node, 0))


def name_of_rule(criterion: str) -> str:
    """A rule of the choice in words."""
    return _RULES.get(criterion, criterion)


def format_value(criterion: str, value: int | str, victims: int) -> str:
    """A node's value under a rule. Sums of priorities count 2^31 a victim besides; that part is shown apart."""
    if isinstance(value, str):
        return value
    if criterion == "prioritySum" and victims:
        rest = value - victims * _PRIORITY_OFFSET
        return f"{victims:,}·2^31{f'{rest:+,}' if rest else ''}"
    return f"{value:,}"


def _values(each: TieBreakRound, columns: Sequence[Candidate]) -> dict[str, str]:
    """The columns' values as text. Times lose the year where all have the same, so that more of them fit."""
    values = {
        candidate.node: format_value(each.criterion, each.values[candidate.node], len(candidate.victims))
        for candidate in columns
        if candidate.node in each.values
    }
    times = [value for value in values.values() if len(value) == _TIME_LENGTH and value.endswith("Z")]
    if each.criterion != "latestStart" or len({time[:5] for time in times}) != 1:
        return values
    return {node: value[5:-1].replace("T", " ") if value in times else value for node, value in values.items()}


def describe_choice(verdict: Verdict) -> Phrase:
    """Which candidate wins by which rule, and whether chance plays a part."""
    tied = (verdict.selection.tied if verdict.selection else None) or verdict.nominated_nodes
    if not tied:
        return (count(len(verdict.candidates), "candidate"),)
    if len(verdict.candidates) == 1:
        return (strong(tied[0]), " is the only candidate")
    if len(tied) > 1:
        equal = f" {agree(len(tied), 'is')} equal by every rule: "
        return (strong(join_names(tied)), equal, Span("the scheduler picks one at random", "warn"))
    rounds = verdict.selection.rounds if verdict.selection else []
    decided = f" by rule {len(rounds)}" if rounds else ""
    if is_sampled_preemption(verdict):
        return (strong(tied[0]), decided, Span(", if the search reaches it", "warn"))
    if chance_of_volumes(verdict):
        return (strong(tied[0]), decided, Span(", in this order of equal volumes", "warn"))
    return (strong(tied[0]), decided, "; nothing is random")


def _add_rounds(
    page: Page, rounds: Sequence[TieBreakRound], columns: Sequence[Candidate], candidates: Sequence[Candidate]
) -> None:
    """A row for each rule with the columns' values.

    Where not all candidates are shown, the rows are the rules that take some out, and say how many.
    """
    is_funnel = len(candidates) > len(columns)
    rows: list[tuple[str, list[Phrase]]] = []
    eliminated: list[Phrase] = []
    for number, each in enumerate(rounds, 1):
        fell = len(each.values) - len(each.survivors)
        if not fell and is_funnel:
            continue
        values = _values(each, columns)
        cells = [_cell(values.get(candidate.node, ""), candidate.node in each.survivors) for candidate in columns]
        rows.append((f"{number} {name_of_rule(each.criterion)}", cells))
        eliminated.append((f"{fell:,} of {len(each.values):,}",))
    nodes = [candidate.node for candidate in columns]
    add_comparison(page, nodes, rows, ("ELIMINATED", eliminated) if is_funnel else None)


def _cell(value: str, survives: bool) -> Phrase:
    return (value,) if survives or not value else (Span(f"{_OUT} {value}", "bad"),)


def add_score_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``2 SCORES``: a row for each plugin, a column for each of the best nodes, weights applied."""
    if not verdict.feasible_nodes and not verdict.scores:
        return
    page.blank()
    page.labelled(Span("2 SCORES", "heading"), *describe_scores(verdict), column=LABEL_COLUMN)
    if len(verdict.scores) < 2 or (_is_taken_unscored(verdict) and not options.verbose):
        return
    ranked = sorted(verdict.scores, key=lambda node: -verdict.scores[node])
    others = [node for node in ranked if node not in verdict.chosen_nodes]
    tied = verdict.chosen_nodes[: max(_TIED_SHOWN, _NODES_SHOWN - len(others))]
    nodes = ranked if options.verbose else [*tied, *others][:_NODES_SHOWN]
    _add_table(page, verdict, nodes)
    silent = silent_plugins(verdict)
    if silent:
        page.paragraph(Span(f"0 everywhere: {', '.join(silent)}", "dim"), indent=2, hanging=2)
    if rest := len(ranked) - len(nodes):
        page.paragraph(Span(f"… and {count(rest, 'more node')} with the same or less", "dim"), indent=2)


def _is_taken_unscored(verdict: Verdict) -> bool:
    """Whether the pod lands on its nominated node, which the scheduler looks at before all others."""
    return verdict.lands_on == [verdict.pod.nominated_node_name]


def describe_scores(verdict: Verdict) -> Phrase:
    """Which node has the best score, and what part of the nodes is scored."""
    chosen = verdict.chosen_nodes
    if _is_taken_unscored(verdict):
        return (
            strong(verdict.pod.nominated_node_name),
            " is nominated and fits: the scheduler takes it without scoring",
        )
    if not chosen:
        return (f"{count(len(verdict.feasible_nodes), 'node')} {agree(len(verdict.feasible_nodes), 'fits')}",)
    if len(verdict.scores) < 2 and len(chosen) > 1:
        return (Span(f"not computed for {verdict.algorithm}", "warn"), f": any of {count(len(chosen), 'node')}")
    if len(verdict.scores) < 2:
        return (strong(chosen[0]), " is the only node that fits; it is not scored")
    best = verdict.scores.get(chosen[0], 0)
    if len(chosen) > 1:
        equal = f" have the best score, {best:,}: "
        return (
            strong(join_names(chosen)),
            equal,
            Span("the scheduler picks one at random", "warn"),
            *describe_sampling(verdict),
        )
    scored = f" has the best score, {best:,}"
    return (strong(chosen[0]), scored, *(describe_sampling(verdict) or (" (weights applied)",)))


def _add_table(page: Page, verdict: Verdict, nodes: Sequence[str]) -> None:
    silent = set(silent_plugins(verdict))
    rows: list[Row] = [
        (plugin, [(f"{verdict.plugin_scores.get(node, {}).get(plugin, 0):,}",) for node in nodes])
        for plugin in scoring_plugins(verdict)
        if plugin not in silent
    ]
    rows.append(("total", [(strong(f"{verdict.scores.get(node, 0):,}"),) for node in nodes]))
    add_comparison(page, nodes, rows)


def scoring_plugins(verdict: Verdict) -> list[str]:
    """All plugins that give scores."""
    return list(dict.fromkeys(plugin for scores in verdict.plugin_scores.values() for plugin in scores))


def silent_plugins(verdict: Verdict) -> list[str]:
    """The plugins that rate every node 0."""
    return [
        plugin
        for plugin in scoring_plugins(verdict)
        if not any(scores.get(plugin) for scores in verdict.plugin_scores.values())
    ]


def add_comparison(
    page: Page, nodes: Sequence[str], rows: Sequence[Row], last: tuple[str, list[Phrase]] | None = None
) -> None:
    """Print the rows, with ``last`` (a title and a cell for each row) as one more column.

    Names that are too long for columns get letters, explained above. Where even so the page is too narrow, columns are
    left out from the right if there is a ``last`` that speaks for them; otherwise each node gets a row.
    """
    most = len(nodes) if len(nodes) <= _MOST_COLUMNS else 0
    fewest = most if last is None else _FEWEST_COLUMNS
    for shown in range(most, fewest - 1, -1):
        for headings in (nodes[:shown], ascii_uppercase[:shown]):
            table = _table(headings, rows, last)
            if shown and page.fits(table, indent=_INDENT):
                _add_legend(page, headings, nodes[:shown])
                page.table(table, aligns=columns_of_numbers(len(table[0]) - 1), indent=_INDENT)
                return
    _add_transposed(page, nodes, rows)


def _table(headings: Sequence[str], rows: Sequence[Row], last: tuple[str, list[Phrase]] | None) -> list[list[Phrase]]:
    table: list[list[Phrase]] = [[("",), *((strong(heading),) for heading in headings)]]
    table += [[(label,), *cells[: len(headings)]] for label, cells in rows]
    if last is not None:
        for line, cell in zip(table, [(Span(last[0], "dim"),), *last[1]], strict=True):
            line.append(cell)
    return table


def _add_legend(page: Page, headings: Sequence[str], names: Sequence[str]) -> None:
    for heading, name in zip(headings, names, strict=False):
        if heading != name:
            page.paragraph(strong(heading), "  ", name, indent=_INDENT, hanging=3)


def _add_transposed(page: Page, nodes: Sequence[str], rows: Sequence[Row]) -> None:
    headings = ascii_uppercase[: len(rows)]
    _add_legend(page, headings, [label for label, _ in rows])
    table: list[list[Phrase]] = [[("",), *((strong(heading),) for heading in headings)]]
    table += [[(strong(node),), *(cells[at] for _, cells in rows)] for at, node in enumerate(nodes)]
    page.table(table, aligns=columns_of_numbers(len(rows)), indent=_INDENT)
