"""The choice: between candidates, rule by rule, or between nodes that fit, by scores, down to those that are left."""

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
    "highestPriority": "lowest priority of top victim",
    "prioritySum": "lowest sum of priorities",
    "victims": "fewest victims",
    "latestStart": "latest start of top victims",
}
_SCORES_SHOWN = 3
_PLUGINS_SHOWN = 3
_WHY_HERE = 75


def choice_section(verdict: Verdict) -> Section:
    """``4 CHOICE``: what each rule made of the candidates, and whether chance decides the rest."""
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
        priority=_WHY_HERE,
        short=Section("WHY HERE", _deciding_rule(verdict) if verdict.nominated_nodes else ""),
    )


def _rounds(verdict: Verdict, rounds: Sequence[TieBreakRound], tied: Sequence[str]) -> list[Block]:
    """The rules in their order, and each candidate's value under them, those that lasted longest first."""
    # Of many candidates only the rules that eliminate some are worth a line.
    is_funnel = len(verdict.candidates) > _CANDIDATES_SHOWN
    rules: list[Sequence[Words]] = []
    told: list[tuple[int, TieBreakRound]] = []
    for number, each in enumerate(rounds, 1):
        fell = len(each.values) - len(each.survivors)
        if fell or not is_funnel:
            told.append((number, each))
            eliminates = f": eliminates {fell:,} of {len(each.values):,}" if fell else ""
            rules.append([f"{number}. {name_of_rule(each.criterion)}{eliminates}"])
    rows = []
    for candidate in order_by_survival(verdict):
        cells: list[Words] = [strong(candidate.node)]
        lost_at = 0
        for number, each in told:
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
    titles = [f"{number}." for number, _ in told]
    table = Table(
        columns("CANDIDATE", *titles, "RESULT", right=titles),
        rows,
        noun="candidate",
        caption="What each candidate has under each rule, and which one eliminates it",
        shown=_CANDIDATES_SHOWN_OF_MANY if is_funnel else _CANDIDATES_SHOWN,
    )
    return [Listing(rules, noun="rule"), table]


def order_by_survival(verdict: Verdict) -> list[Candidate]:
    """The candidates, those that lasted longest in the choice first."""
    rounds = verdict.selection.rounds if verdict.selection else []
    survived = Counter(node for each in rounds for node in each.survivors)
    survived.update(dict.fromkeys(verdict.nominated_nodes, len(rounds) + 1))
    return sorted(verdict.candidates, key=lambda candidate: -survived[candidate.node])


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


def _deciding_rule(verdict: Verdict) -> Phrase:
    """The candidate, and the rule that leaves it alone: ``lowest sum of priorities (rule 3 of 5)``."""
    tied = (verdict.selection.tied if verdict.selection else None) or verdict.nominated_nodes
    rounds = verdict.selection.rounds if verdict.selection else []
    if len(verdict.candidates) == 1 or not rounds:
        return describe_choice(verdict)
    among = f" of {count(len(verdict.candidates), 'candidate')}: "
    rules = row_of(verdict.algorithm).choice_rules
    if len(tied) > 1:
        equal = f"equal by all {rules} rules; "
        return (strong(join_names(tied)), among, equal, Span("the scheduler picks one at random", "warn"))
    doubts = ["if the search reaches it"] if is_sampled_preemption(verdict) else []
    if verdict.alternatives is not None and len({each.node for each in verdict.alternatives.outcomes}) > 1:
        doubts.append("in the likely order of equal pods")
    doubts += ["in this order of equal volumes"] if chance_of_volumes(verdict) else []
    rule = f"{name_of_rule(rounds[-1].criterion)} (rule {len(rounds)} of {rules})"
    return (strong(tied[0]), among, rule, *(Span(f"; {words}", "warn") for words in doubts))


def score_section(verdict: Verdict) -> Section:
    """``2 SCORES``: a row for each node that fits with what each plugin gives it, weights applied, the best first."""
    if not verdict.feasible_nodes and not verdict.scores:
        return Section("2 SCORES")
    short = Section("")
    if not (verdict.candidates and verdict.nominated_nodes):
        short = Section("WHY HERE", describe_scores(verdict), [Listing([[line] for line in _leading_scores(verdict)])])
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
        caption = "Scores of the nodes that fit, weights applied, the best first"
        blocks.append(Table(titles, rows, noun="node", caption=caption, shown=_NODES_SHOWN, is_lettered=True))
        blocks.append(Sentence(Span(f"0 everywhere: {', '.join(silent)}" if silent else "", "dim")))
    return Section("2 SCORES", describe_scores(verdict), blocks, is_reasoning=True, priority=_WHY_HERE, short=short)


def _leading_scores(verdict: Verdict) -> list[str]:
    """The best totals, and the plugins that set the first node off from the next."""
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
        told = ", ".join(f"{plugin} {lead[plugin]:+,}" for plugin in decisive[:_PLUGINS_SHOWN])
        lines.append(f"against {rest[0]}: {told}")
    return lines


def describe_scores(verdict: Verdict) -> Phrase:
    """Which node has the best score, and what part of the nodes is scored."""
    chosen = verdict.chosen_nodes
    # The scheduler looks at a nominated node before all others.
    if verdict.lands_on == [verdict.pod.nominated_node_name]:
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
