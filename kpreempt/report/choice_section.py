"""The choice between candidates, rule by rule, down to the node, or the nodes, that are left."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.chance import add_odds, chance_of_volumes, is_sampled_preemption
from kpreempt.report.comparison import add_comparison
from kpreempt.report.dry_run_section import order_by_survival
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Candidate, TieBreakRound, Verdict

_COLUMNS = 4
_COLUMNS_OF_MANY = 3
_PRIORITY_OFFSET = 2**31
_RULES = {
    "pdbViolations": "fewest budget violations",
    "highestPriority": "lowest top priority",
    "prioritySum": "lowest sum of priorities",
    "victims": "fewest victims",
    "latestStart": "latest start, top victims",
}
_OUT = "✗"
_TIME_LENGTH = len("2026-11-01T00:00:00Z")


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
        return (strong(tied[0]), decided, Span(", if the search comes to it", "warn"))
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
    falls: list[Phrase] = []
    for number, each in enumerate(rounds, 1):
        fell = len(each.values) - len(each.survivors)
        if not fell and is_funnel:
            continue
        values = _values(each, columns)
        cells = [_cell(values.get(candidate.node, ""), candidate.node in each.survivors) for candidate in columns]
        rows.append((f"{number} {name_of_rule(each.criterion)}", cells))
        falls.append((f"{fell:,} of {len(each.values):,}",))
    nodes = [candidate.node for candidate in columns]
    add_comparison(page, nodes, rows, ("FALL", falls) if is_funnel else None)


def _cell(value: str, survives: bool) -> Phrase:
    return (value,) if survives or not value else (Span(f"{_OUT} {value}", "bad"),)
