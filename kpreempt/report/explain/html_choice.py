"""How the node was chosen: candidates by the rules of the choice, nodes that fit by their scores, and chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from kpreempt.report.amounts import agree, count
from kpreempt.report.explain.chance import percent
from kpreempt.report.explain.choice import (
    describe_choice,
    describe_scores,
    format_value,
    name_of_rule,
    order_by_survival,
    scoring_plugins,
    silent_plugins,
)
from kpreempt.report.html.markup import TABLE_LIMIT, Html, badge, name, names, table, tag
from kpreempt.report.html.phrases import paragraph
from kpreempt.verdict import Candidate, OddsOutcome, TieBreakRound, Verdict

_NODES_SHOWN = 6


def choice(verdict: Verdict) -> Html:
    """A row for each candidate with its value under each rule; nothing where there is none to choose from."""
    selection = verdict.selection
    if selection is None or not verdict.candidates:
        return Html("")
    told = paragraph(*describe_choice(verdict), ".") + _odds(verdict)
    if not selection.rounds:
        return told
    rules = [f"{number}. {name_of_rule(each.criterion)}" for number, each in enumerate(selection.rounds, 1)]
    columns = ("Candidate", *rules, "Result")
    caption = "The rules of the choice, in their order: what each candidate has, and by which rule it is eliminated"
    row = partial(_candidate, rounds=selection.rounds, tied=selection.tied or verdict.nominated_nodes)
    return told + table(caption, columns, row, order_by_survival(verdict), limit=TABLE_LIMIT, what="candidates")


def _candidate(candidate: Candidate, rounds: Sequence[TieBreakRound], tied: Sequence[str]) -> list[str]:
    node, cells, lost_at = candidate.node, [], 0
    for number, each in enumerate(rounds, 1):
        if node not in each.values:
            cells.append("")
            continue
        value = format_value(each.criterion, each.values[node], len(candidate.victims))
        if node not in each.survivors:
            lost_at = number
        cells.append(tag("span", f"✗ {value}", class_="badge bad message") if lost_at else value)
    result: str = f"eliminated by rule {lost_at}" if lost_at else ""
    if node in tied and not lost_at:
        result = badge("nominated" if len(tied) == 1 else "ties", "good")
    return [name(node), *cells, result]


def _odds(verdict: Verdict) -> Html:
    """What a search that stops early can end with."""
    odds = verdict.odds
    if odds is None or len(odds.outcomes) < 2:
        return Html("")
    stop = f"The search stops at {count(odds.num_candidates, 'candidate')}, so chance decides which nodes it reaches."
    caption = "How often the search ends on which nodes"
    return tag("p", stop) + table(caption, ("Nodes", "Share"), _share, odds.outcomes, limit=TABLE_LIMIT, what="ends")


def _share(outcome: OddsOutcome) -> list[str]:
    return [names(outcome.nodes, limit=_NODES_SHOWN), percent(outcome.probability)]


def scores(verdict: Verdict) -> Html:
    """A row for each node that fits with what each plugin gives it; nothing where none fits."""
    if not verdict.feasible_nodes and not verdict.scores:
        return Html("")
    told = paragraph(*describe_scores(verdict), ".")
    if len(verdict.scores) < 2:
        return told
    silent = silent_plugins(verdict)
    plugins = [plugin for plugin in scoring_plugins(verdict) if plugin not in silent]
    if silent:
        told += tag("p", f"{', '.join(silent)} {agree(len(silent), 'gives')} every node 0.", class_="dim")
    ranked = sorted(verdict.scores.items(), key=lambda item: -item[1])
    row = partial(_scored, plugins=plugins, verdict=verdict)
    caption = "Scores of the nodes that fit, weights applied, the best first"
    return told + table(caption, ("Node", "Total", *plugins), row, ranked, limit=TABLE_LIMIT, what="nodes")


def _scored(item: tuple[str, int], plugins: Sequence[str], verdict: Verdict) -> list[str]:
    node, total = item
    given: Mapping[str, int] = verdict.plugin_scores.get(node, {})
    shown: str = badge(f"{total:,}", "good") if node in verdict.chosen_nodes else f"{total:,}"
    return [name(node), shown, *(f"{given.get(plugin, 0):,}" for plugin in plugins)]
