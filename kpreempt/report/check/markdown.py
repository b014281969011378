"""A comment on a pull request: whether the change passes, by which rules, and the rest folded away.

Nothing from the input can become markup, a link or a mention, and none begins a line, where bots look for commands. The
whole stays below what GitHub takes for a comment, 65,536 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kpreempt.gate_rules import RuleId, Takes
from kpreempt.report.amounts import count, format_duration
from kpreempt.report.check.causes import Cause, advice_of, cause_phrase, causes, waive_tables
from kpreempt.report.check.facts import (
    change_phrase,
    failing,
    forgiven,
    outcome_phrase,
    place_of,
    stranded_phrase,
    tally,
    verdict_phrase,
    warning,
)
from kpreempt.report.check.gate import gate_phrases
from kpreempt.report.check.since import WORDS, drift_phrase, since_phrase
from kpreempt.report.check.summary import summary_phrase
from kpreempt.report.check.words import standing_phrase, waive_option
from kpreempt.report.drain.sections import Item, sections
from kpreempt.report.escape import printable
from kpreempt.report.layout import Phrase, Span
from kpreempt.report.markdown import escaped
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import message, name, shortened
from kpreempt.report.simulation_words import budget_phrase, displaced_phrase, tell_in_short
from kpreempt.verdict.check import ChangeKind, Check, GateFinding, RuleResult
from kpreempt.verdict.simulation import SimulatedWorkload

# In bytes of UTF-8, which are at least as many as characters. The parts have room for each; together they stay below.
_ROOM = 64_000
_ROOM_OF_FINDINGS = 24_000
_ROOM_OF_A_PART = 7_000
_DEEPEST_MARK = 6
_LONGEST_CODE = 400
_WAIVERS_SHOWN = 3
_PLAIN = re.compile(r"[^`|\\]*")
_NO_WORD = re.compile(r"[^0-9A-Za-z \u0080-\U0010ffff]")


def render(check: Check, options: RenderOptions) -> str:
    """The verdict, the rules and what fails; changes, victims and the story folded until they are clicked on."""
    word = "passed" if check.passed else "failed"
    verdict = _phrase(verdict_phrase(check))
    figures = escaped(", ".join(tally(check)))
    blocks = [f"### kpreempt {check.kind.lower()}: {word}", f"**{_phrase(summary_phrase(check))}.**"]
    blocks += [f"{_capital(verdict)}. {_capital(figures)}."]
    blocks += _listed(map(_phrase, gate_phrases(check)), _ROOM_OF_A_PART)
    for section in sections(check):
        items = [_item(each) for each in section.items]
        blocks += [f"**{_capital(escaped(section.title))}**", *_listed(items, _ROOM_OF_A_PART)]
    blocks.append(_rules(check, options))
    blocks += _listed(_with_help(failing(check)), _ROOM_OF_FINDINGS)
    if warned := _with_help(warning(check)):
        blocks += ["Warnings, for which the gate stays open:", *_listed(warned, _ROOM_OF_A_PART)]
    if let_by := [f"{_cause(each)} ({_phrase(standing_phrase(each.first))})" for each in causes(forgiven(check))]:
        blocks += ["Not counted:", *_listed(let_by, _ROOM_OF_A_PART)]
    blocks += _since(check)
    blocks += _waivers(failing(check))
    blocks += _changes(check)
    blocks += _victims(check)
    blocks += _story(check)
    blocks += _folded_list("budget", [_phrase(budget_phrase(each)) for each in check.simulation.budgets])
    blocks += _workloads(check.simulation.workloads)
    blocks += _folded_list("stranded object", [_phrase(stranded_phrase(each)) for each in check.simulation.stranded])
    blocks += _folded_list("outcome", [_phrase(outcome_phrase(each, check.runs)) for each in check.outcomes])
    assumed = [
        _phrase((name(f"{each.subject} {each.field}".strip()), ": ", message(each.message)))
        for each in check.assumptions
    ]
    blocks += _folded_list("assumption", assumed)
    return _fitting(blocks)


def _item(item: Item) -> str:
    """What is so, and what helps, on one line."""
    helps = "".join(f" **What helps:** {_phrase(each)}." for each in item.helps)
    return f"{_phrase(item.phrase)}.{helps}"


def _rules(check: Check, options: RenderOptions) -> str:
    rows = [
        [
            _linked(result.rule, options),
            escaped(result.rule.row.promise),
            _limit(result),
            _amount(result),
            _standing(result),
        ]
        for result in check.rules
        if result.is_on
    ]
    return "\n".join(_table(("Rule", "What it asks for", "Limit", "Measured", ""), rows, "llrrl"))


def _linked(rule: RuleId, options: RenderOptions) -> str:
    page = options.page_of(rule)
    return f"[`{rule}`]({page})" if page else f"`{rule}`"


def _limit(result: RuleResult) -> str:
    return "" if result.limit is None else _number(result.rule, result.limit)


def _amount(result: RuleResult) -> str:
    return "" if result.limit is None and not result.amount else _number(result.rule, result.amount)


def _number(rule: RuleId, number: int) -> str:
    return format_duration(number) if rule.row.takes is Takes.TIME else f"{number:,}"


def _standing(result: RuleResult) -> str:
    forgiven_in_words = [
        f"{number:,} {words}"
        for number, words in ((result.waived, "waived"), (result.accepted, "accepted"), (result.not_new, "not new"))
        if number
    ]
    first = f"**{count(result.failures, 'finding')}**" if result.failures else count(result.warnings, "warning")
    if not result.failures and not result.warnings:
        first = "" if forgiven_in_words else "holds"
    return ", ".join(filter(None, [first, *forgiven_in_words]))


def _cause(cause: Cause) -> str:
    place = place_of(cause.first).text
    where = f", at {_code(place)}" if place else ""
    return f"**{_quiet(cause.first.rule)}**: {_phrase(cause_phrase(cause))}{where}"


def _with_help(findings: Sequence[GateFinding]) -> list[str]:
    """The findings by cause, each with how it is waived, and with what helps where nothing before it said so."""
    told: set[str] = set()
    found = []
    for cause in causes(findings):
        advice = advice_of(cause.first)
        helps = "" if advice in told else f" What helps: {_quiet(advice.rstrip('.'))}."
        told.add(advice)
        waived = " ".join(_code(waive_option(each)) for each in cause.findings[:_WAIVERS_SHOWN])
        found.append(f"{_cause(cause)}.{helps} To waive it: {waived}")
    return found


def _waivers(findings: Sequence[GateFinding]) -> list[str]:
    """What waives the findings in ``kpreempt.toml``, to be copied."""
    lines = [f"    {printable(line)}".rstrip() for each in waive_tables(findings) for line in each.splitlines()]
    return _folded("Waivers for the rules file", lines)


def _since(check: Check) -> list[str]:
    """What differs from a former run, where one was given."""
    if check.since is None:
        return []
    told = f"{_capital(_phrase(since_phrase(check.since, check)))}."
    drifts = [f"{WORDS[each.kind]}: {_phrase(drift_phrase(each))}" for each in check.since.drifts]
    return [told, *_listed(drifts, _ROOM_OF_A_PART)]


def _changes(check: Check) -> list[str]:
    rows = [
        [_code(each.object), _phrase(change_phrase(each)), _code(place_of(each).text)]
        for each in check.changes
        if each.kind is not ChangeKind.UNCHANGED
    ]
    return _folded(count(len(rows), "changed object"), _table(("Object", "What changes", "Where"), rows, "lll"))


def _victims(check: Check) -> list[str]:
    rows = [
        [f"{'↳ ' * min(each.depth - 1, _DEEPEST_MARK)}{_phrase(displaced_phrase(each))}", _code(each.cause)]
        for each in check.simulation.displaced
    ]
    number = len(rows)
    title = f"{count(number, 'pod')} evicted"
    return _folded(title, _table(("Evicted", "By"), rows, "ll"))


def _story(check: Check) -> list[str]:
    rows = [[line.clock, _phrase(line.words)] for line in tell_in_short(check.simulation.steps)]
    return _folded("What happens", _table(("At", "What happens"), rows, "rl"))


def _workloads(workloads: Sequence[SimulatedWorkload]) -> list[str]:
    rows = [
        [
            _code(each.workload),
            f"{each.ready_before:,} → {each.ready_least:,} → {each.ready_after:,}",
            f"{each.victims:,}",
            f"{each.pending_after:,}",
        ]
        for each in workloads
    ]
    headers = ("Workload", "Ready before, at worst, in the end", "Victims", "Pending")
    return _folded(count(len(rows), "workload"), _table(headers, rows, "lrrr"))


def _folded_list(noun: str, items: Sequence[str]) -> list[str]:
    return _folded(count(len(items), noun), [f"- {item}" for item in items])


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    """Lines that show once they are clicked on; none where there are no lines."""
    if not lines:
        return []
    return ["\n".join([f"<details><summary>{title}</summary>", "", *_cut(lines, _ROOM_OF_A_PART), "", "</details>"])]


def _listed(items: Iterable[str], room: int) -> list[str]:
    lines = _cut([f"- {item}" for item in items], room)
    return ["\n".join(lines)] if lines else []


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], aligns: str) -> list[str]:
    """The lines of a table; columns are not padded, since that costs room. None without rows."""
    if not rows:
        return []
    rules = ["---:" if align == "r" else "---" for align in aligns]
    return [f"| {' | '.join(row)} |" for row in (headers, rules, *rows)]


def _cut(lines: Sequence[str], room: int) -> list[str]:
    """So many of the lines as there is room for, and how many there are more."""
    kept: list[str] = []
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            return [*kept, "", f"… and {count(len(lines) - len(kept), 'more line')} than there is room for here."]
        kept.append(line)
    return kept


def _fitting(blocks: Sequence[str]) -> str:
    """The blocks for which there is room, with a note where there is none for some."""
    kept: list[str] = []
    room = _ROOM
    for block in blocks:
        room -= len(block.encode()) + 2
        if room < 0:
            kept.append("The rest is left out: there is no room for it in a comment.")
            break
        kept.append(block)
    return "\n\n".join(kept) + "\n"


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _phrase(phrase: Phrase) -> str:
    """A phrase with names from the input as code."""
    parts = []
    for part in phrase:
        if not isinstance(part, Span):
            parts.append(_quiet(part))
        elif part.style in ("", "strong"):
            parts.append(_code(part.text))
        else:
            parts.append(_quiet(part.text))
    return "".join(parts)


def _quiet(text: str) -> str:
    """Text that is no markup, and calls nobody and refers to no issue."""
    return escaped(text).replace("@", "@&#8203;").replace("\\#", "#&#8203;")


def _code(text: str) -> str:
    r"""Code, in a table, too. Where a code span could end early there, each sign is written by its number.

    In tables of GitHub's Markdown ``\\|`` ends a cell within a code span.
    """
    shown = shortened(printable(text), _LONGEST_CODE)
    if not shown.strip():
        return ""
    if _PLAIN.fullmatch(shown):
        return f"`{shown}`"
    numbered = _NO_WORD.sub(lambda match: f"&#{ord(match[0])};", shown)
    return f"<code>{numbered}</code>".replace("&#64;", "&#64;&#8203;")
