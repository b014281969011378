"""How the node is chosen: among candidates, rule by rule; among nodes that fit, by score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import (
    Block,
    Column,
    Listing,
    Phrase,
    Section,
    Sentence,
    Span,
    Table,
    Words,
    columns,
    strong,
)
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.chance import chance_of_volumes, describe_sampling, is_sampled_preemption, odds_blocks
from kpreempt.scheduler_table import row_of
from kpreempt.verdict import Candidate, TieBreakRound, Verdict

_CANDIDATES_SHOWN = 4
_CANDIDATES_SHOWN_OF_MANY = 2
_NODES_SHOWN = 4
_PRIORITY_OFFSET = 2**31
_RULES = {
    "pdbViolations": "fewest budget violations",
    "highestPriority": "lowest top victim priority",
    "prioritySum": "lowest sum of victim priorities",
    "victims": "fewest victims",
    "latestStart": "latest start of top victims",
}
_SCORES_SHOWN = 3
_PLUGINS_SHOWN = 3
_WHY_THIS_NODE = 75


def choice_section(verdict: Verdict) -> Section:
    """``4 CHOICE``: which candidates each rule eliminates, and whether chance decides the rest."""
    selection = verdict.selection
    if selection is None or not verdict.candidates:
        return Section("4 CHOICE")
    blocks: list[Block] = (
        odds_blocks(verdict.odds) if verdict.odds is not None and is_sampled_preemption(verdict) else []
    )
    if selection.rounds:
        blocks += _rounds(verdict, selection.rounds, selection.tied or verdict.nominated_nodes)
    return Section(
        "4 CHOICE",
        describe_choice(verdict),
        blocks,
        heading="How the node was chosen",
        anchor="choice",
        is_reasoning=True,
        priority=_WHY_THIS_NODE,
        short=Section("WHY THIS NODE", _deciding_rule(verdict) if verdict.nominated_nodes else ""),
    )


def _rounds(verdict: Verdict, rounds: Sequence[TieBreakRound], tied: Sequence[str]) -> list[Block]:
    """The rules in order, and each candidate's value under them; candidates that lasted longest come first."""
    # With many candidates, only the rules that eliminate some are worth a line.
    is_funnel = len(verdict.candidates) > _CANDIDATES_SHOWN
    rules: list[Sequence[Words]] = []
    shown: list[tuple[int, TieBreakRound]] = []
    for number, each in enumerate(rounds, 1):
        eliminated = len(each.values) - len(each.survivors)
        if eliminated or not is_funnel:
            shown.append((number, each))
            eliminates = f": eliminates {eliminated:,} of {len(each.values):,}" if eliminated else ""
            rules.append([f"{number}. {name_of_rule(each.criterion)}{eliminates}"])
    rows = []
    for candidate in order_by_survival(verdict):
        cells: list[Words] = [strong(candidate.node)]
        lost_at = 0
        for number, each in shown:
            if candidate.node not in each.values:
                cells.append("")
                continue
            value = format_value(each.criterion, each.values[candidate.node], len(candidate.victims))
            if candidate.node not in each.survivors:
                lost_at = number
            cells.append(Span(f"✗ {value}", "bad") if lost_at else value)
        if lost_at:
            result: Words = f"eliminated by rule {lost_at}"
        elif candidate.node in tied:
            result = Span("nominated" if len(tied) == 1 else "ties", "good")
        else:
            result = ""
        rows.append([*cells, result])
    titles = [f"{number}." for number, _ in shown]
    table = Table(
        columns("CANDIDATE", *titles, "RESULT", right=titles),
        rows,
        noun="candidate",
        caption="Each candidate's value under each rule, and the rule that eliminates it",
        shown=_CANDIDATES_SHOWN_OF_MANY if is_funnel else _CANDIDATES_SHOWN,
    )
    return [Listing(rules, noun="rule"), table]


def order_by_survival(verdict: Verdict) -> list[Candidate]:
    """The candidates, ordered by how long they lasted in the choice, longest first."""
    rounds = verdict.selection.rounds if verdict.selection else []
    survived = Counter(node for each in rounds for node in each.survivors)
    survived.update(dict.fromkeys(verdict.nominated_nodes, len(rounds) + 1))
    return sorted(verdict.candidates, key=lambda candidate: -survived[candidate.node])


def name_of_rule(criterion: str) -> str:
    """A rule of the choice in words."""
    return _RULES.get(criterion, criterion)


def format_value(criterion: str, value: int | str, victims: int) -> str:
    """A node's value under a rule. Sums of priorities include 2^31 per victim, which is shown separately."""
    if isinstance(value, str):
        return value
    if criterion == "prioritySum" and victims:
        rest = value - victims * _PRIORITY_OFFSET
        return f"{victims:,}·2^31{f'{rest:+,}' if rest else ''}"
    return f"{value:,}"


def describe_choice(verdict: Verdict) -> Phrase:
    """The candidate that wins, the rule that decides, and whether chance plays a part."""
    tied = (verdict.selection.tied if verdict.selection else None) or verdict.nominated_nodes
    if not tied:
        return (count(len(verdict.candidates), "candidate"),)
    if len(verdict.candidates) == 1:
        return (strong(tied[0]), " is the only candidate")
    if len(tied) > 1:
        equal = f" {agree(len(tied), 'is')} tied under every rule: "
        return (strong(join_names(tied)), equal, Span("the scheduler picks one at random", "warn"))
    rounds = verdict.selection.rounds if verdict.selection else []
    decided = f" by rule {len(rounds)}" if rounds else ""
    if is_sampled_preemption(verdict):
        return (strong(tied[0]), decided, Span(", provided that the search reaches this node", "warn"))
    if chance_of_volumes(verdict):
        return (strong(tied[0]), decided, Span(", given this order of tied volumes", "warn"))
    return (strong(tied[0]), decided, "; no choice is random")


def _deciding_rule(verdict: Verdict) -> Phrase:
    """The winning candidate and the deciding rule: ``lowest sum of victim priorities (rule 3 of 5)``."""
    tied = (verdict.selection.tied if verdict.selection else None) or verdict.nominated_nodes
    rounds = verdict.selection.rounds if verdict.selection else []
    if len(verdict.candidates) == 1 or not rounds:
        return describe_choice(verdict)
    among = f" of {count(len(verdict.candidates), 'candidate')}: "
    rules = row_of(verdict.algorithm).choice_rules
    if len(tied) > 1:
        equal = f"tied under all {rules} rules; "
        return (strong(join_names(tied)), among, equal, Span("the scheduler picks one at random", "warn"))
    doubts = ["provided that the search reaches this node"] if is_sampled_preemption(verdict) else []
    if verdict.alternatives is not None and len({each.node for each in verdict.alternatives.outcomes}) > 1:
        doubts.append("given the likely order of tied pods")
    doubts += ["given this order of tied volumes"] if chance_of_volumes(verdict) else []
    rule = f"{name_of_rule(rounds[-1].criterion)} (rule {len(rounds)} of {rules})"
    return (strong(tied[0]), among, rule, *(Span(f", {words}", "warn") for words in doubts))


def score_section(verdict: Verdict) -> Section:
    """``2 SCORES``: a row per node that fits with each plugin's weighted score, best first."""
    if not verdict.feasible_nodes and not verdict.scores:
        return Section("2 SCORES")
    short = Section("")
    if not (verdict.candidates and verdict.nominated_nodes):
        leaders: list[list[Words]] = [[line] for line in _leading_scores(verdict)]
        short = Section("WHY THIS NODE", describe_scores(verdict), [Listing(leaders)])
    blocks: list[Block] = []
    if len(verdict.scores) > 1:
        given_by = dict.fromkeys(plugin for scores in verdict.plugin_scores.values() for plugin in scores)
        plugins = [each for each in given_by if any(scores.get(each) for scores in verdict.plugin_scores.values())]
        # The plugins that rate every node 0.
        silent = [each for each in given_by if each not in plugins]
        rows: list[list[Words]] = []
        for node in sorted(verdict.scores, key=lambda node: -verdict.scores[node]):
            total = Span(f"{verdict.scores[node]:,}", "good" if node in verdict.chosen_nodes else "strong")
            given = verdict.plugin_scores.get(node, {})
            rows.append([strong(node), total, *(f"{given.get(plugin, 0):,}" for plugin in plugins)])
        titles = columns("NODE", "TOTAL", right=["TOTAL"]) + [Column(plugin, "right") for plugin in plugins]
        caption = "Weighted scores of the nodes that fit, best first"
        blocks.append(Table(titles, rows, noun="node", caption=caption, shown=_NODES_SHOWN, is_lettered=True))
        blocks.append(Sentence(Span(f"0 on every node: {', '.join(silent)}" if silent else "", "dim")))
    return Section(
        "2 SCORES", describe_scores(verdict), blocks, is_reasoning=True, priority=_WHY_THIS_NODE, short=short
    )


def _leading_scores(verdict: Verdict) -> list[str]:
    """The best totals, and the plugins that explain the lead of the first node over the next."""
    if len(verdict.scores) < 2 or not verdict.plugin_scores or not verdict.chosen_nodes:
        return []
    ranked = sorted(verdict.scores, key=lambda node: (node not in verdict.chosen_nodes, -verdict.scores[node]))
    lines = [", ".join(f"{node} {verdict.scores[node]:,}" for node in ranked[:_SCORES_SHOWN])]
    best, rest = ranked[0], [node for node in ranked if node not in verdict.chosen_nodes]
    if not rest:
        return lines
    mine, next_best = (verdict.plugin_scores.get(node, {}) for node in (best, rest[0]))
    lead = {plugin: mine.get(plugin, 0) - next_best.get(plugin, 0) for plugin in (*mine, *next_best)}
    decisive = sorted((plugin for plugin in lead if lead[plugin]), key=lambda plugin: -abs(lead[plugin]))
    if decisive:
        differences = ", ".join(f"{plugin} {lead[plugin]:+,}" for plugin in decisive[:_PLUGINS_SHOWN])
        lines.append(f"compared with {rest[0]}: {differences}")
    return lines


def describe_scores(verdict: Verdict) -> Phrase:
    """The node with the best score, and how many nodes are scored."""
    chosen = verdict.chosen_nodes
    # The scheduler evaluates the nominated node before all others.
    if verdict.lands_on == [verdict.pod.nominated_node_name]:
        return (
            strong(verdict.pod.nominated_node_name),
            " is the nominated node and fits: the scheduler picks it without scoring",
        )
    if not chosen:
        return (f"{count(len(verdict.feasible_nodes), 'node')} {agree(len(verdict.feasible_nodes), 'fits')}",)
    if len(verdict.scores) < 2 and len(chosen) > 1:
        return (Span(f"no scores for {verdict.algorithm}", "warn"), f": one of {count(len(chosen), 'node')}")
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
    lead = f" has the best score, {best:,}"
    return (strong(chosen[0]), lead, *(describe_sampling(verdict) or (" (weights applied)",)))
