"""The answer of ``check`` for a terminal: whether the change passes and why not, then what would happen."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.check_facts import (
    change_phrase,
    failing,
    forgiven,
    outcome_phrase,
    tally,
    verdict_phrase,
)
from kpreempt.report.check_places import place_of
from kpreempt.report.check_play_sections import (
    add_budgets,
    add_displaced_section,
    add_nodes,
    add_stranded,
    add_timeline,
    add_workloads,
)
from kpreempt.report.check_rules import RULES
from kpreempt.report.check_words import chain_phrase, finding_phrase, rule_phrase, standing_phrase
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.durations import format_duration
from kpreempt.report.layout import Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import names
from kpreempt.verdict.check import ChangeKind, Check, GateFinding, RuleId

_INDENT = 2
_BODY = 4
_CHANGES_SHOWN = 8
_FINDINGS_SHOWN = 5
_FORGIVEN_SHOWN = 4
_OUTCOMES_SHOWN = 5
_ALL = 1000


def render(check: Check, options: RenderOptions) -> str:
    """The verdict first; without ``verbose`` each section is cut to what matters most."""
    page = Page(options.width)
    _add_headline(page, check)
    _add_failures(page, check, options)
    _add_forgiven(page, check, options)
    _add_changes(page, check, options)
    add_timeline(page, check.play, options)
    add_displaced_section(page, check.play, options)
    add_budgets(page, check.play, options)
    add_workloads(page, check.play, options)
    add_stranded(page, check.play, options)
    _add_outcomes(page, check, options)
    add_nodes(page, check, options)
    _add_other_rules(page, check, options)
    add_assumptions_section(page, check.assumptions, options)
    return finished(page, options)


def _add_headline(page: Page, check: Check) -> None:
    word = Span("PASS", "good") if check.passed else Span("FAIL", "bad")
    page.paragraph(word, "  ", *verdict_phrase(check), ".", hanging=6)
    page.paragraph(" · ".join(tally(check)), indent=_INDENT, hanging=_INDENT)
    cluster = check.cluster
    facts = [count(cluster.nodes, "node"), count(cluster.pods, "pod"), check.algorithm]
    if cluster.age_seconds is not None:
        facts.append(f"as it was {format_duration(cluster.age_seconds)} ago")
    if check.runs > 1:
        is_all = check.explored_all
        facts.append(f"the worst of {'all ' if is_all else ''}{count(check.runs, 'run')}, seed {check.seed}")
    page.paragraph(Span(" · ".join(filter(None, facts)), "dim"), indent=_INDENT, hanging=_INDENT)


def _add_failures(page: Page, check: Check, options: RenderOptions) -> None:
    """The rules that do not hold, each with its findings, and what helps."""
    by_rule: dict[RuleId, list[GateFinding]] = {}
    for finding in failing(check):
        by_rule.setdefault(finding.rule, []).append(finding)
    limits = {result.rule: rule_phrase(result) for result in check.rules}
    for rule, findings in by_rule.items():
        page.blank()
        words = limits.get(rule, (str(rule),))
        page.paragraph(Span("✗ ", "bad"), strong(str(words[0])), *words[1:], Span(f"  {RULES[rule].title}", "dim"))
        shown = findings if options.verbose else findings[:_FINDINGS_SHOWN]
        for finding in shown:
            _add_finding(page, finding, options)
        _add_rest(page, len(findings) - len(shown), "more finding", indent=_INDENT)
        page.paragraph(Span("what helps: ", "good"), RULES[rule].advice, indent=_INDENT, hanging=_INDENT)


def _add_finding(page: Page, finding: GateFinding, options: RenderOptions) -> None:
    page.paragraph(*finding_phrase(finding), indent=_INDENT, hanging=_INDENT)
    if finding.chain and finding.rule is not RuleId.MAX_CASCADE_DEPTH:
        page.paragraph(*chain_phrase(finding.chain), indent=_BODY, hanging=_INDENT)
    if options.verbose and len(finding.pods) > 1:
        page.paragraph("pods: ", *names(finding.pods, limit=_ALL), indent=_BODY, hanging=_INDENT)
    place = place_of(finding).text
    by: Phrase = ("for ", Span(finding.change), ", ") if finding.change and finding.change != finding.subject else ()
    if place or by:
        where = Span(place, "dim") if place else Span("not in a file", "dim")
        page.paragraph(*by, where, indent=_BODY, hanging=_INDENT)


def _add_forgiven(page: Page, check: Check, options: RenderOptions) -> None:
    let_by = forgiven(check)
    if not let_by:
        return
    page.blank()
    page.paragraph(Span("NOT COUNTED", "heading"), f"  {count(len(let_by), 'finding')} waived, accepted or not new")
    shown = let_by if options.verbose else let_by[:_FORGIVEN_SHOWN]
    for finding in shown:
        page.paragraph(Span(str(finding.rule), "dim"), "  ", *finding_phrase(finding), indent=_INDENT, hanging=_INDENT)
        page.paragraph(*standing_phrase(finding), indent=_BODY, hanging=_INDENT)
    _add_rest(page, len(let_by) - len(shown), "more finding", indent=_INDENT)


def _add_changes(page: Page, check: Check, options: RenderOptions) -> None:
    changed = [each for each in check.changes if each.kind is not ChangeKind.UNCHANGED]
    unchanged = len(check.changes) - len(changed)
    page.blank()
    same = f", {unchanged:,} unchanged" if unchanged else ""
    what = f"  {count(len(changed), 'object')}{same}" if check.changes else "  nothing"
    page.paragraph(Span("CHANGES", "heading"), what)
    shown = changed if options.verbose else changed[:_CHANGES_SHOWN]
    rows: list[tuple[Phrase, ...]] = [
        ((strong(each.object),), change_phrase(each), (Span(place_of(each).text, "dim"),)) for each in shown
    ]
    if rows:
        page.table(rows, aligns=("left", "left", "left"), indent=_INDENT)
    for each in shown if options.verbose else ():
        if each.fields:
            page.paragraph(Span(each.object), ": ", *names(each.fields, limit=_ALL), indent=_BODY, hanging=_INDENT)
    _add_rest(page, len(changed) - len(shown), "more object", indent=_INDENT)


def _add_outcomes(page: Page, check: Check, options: RenderOptions) -> None:
    if not check.outcomes:
        return
    page.blank()
    scope = "these are all that can come up" if check.explored_all else "others may come up, too"
    page.paragraph(Span("OUTCOMES", "heading"), f"  {count(len(check.outcomes), 'kind')}; {scope}")
    shown = check.outcomes if options.verbose else check.outcomes[:_OUTCOMES_SHOWN]
    for share in shown:
        mark = Span("✗ ", "bad") if share.fails else Span("✓ ", "good")
        page.paragraph(mark, *outcome_phrase(share, check.runs), indent=_INDENT, hanging=_INDENT)
    _add_rest(page, len(check.outcomes) - len(shown), "more kind", indent=_INDENT)


def _add_other_rules(page: Page, check: Check, options: RenderOptions) -> None:
    """The rules that hold, and those that are off."""
    broken = {finding.rule for finding in failing(check)}
    held = [result for result in check.rules if result.is_on and result.rule not in broken]
    off = [str(result.rule) for result in check.rules if not result.is_on]
    if not held and not off:
        return
    page.blank()
    page.paragraph(Span("RULES", "heading"), f"  {count(len(held), 'rule')} kept{f', {len(off):,} off' if off else ''}")
    if options.verbose:
        rows: list[tuple[Phrase, ...]] = [
            ((Span("✓ ", "good"), *rule_phrase(result)), (Span(RULES[result.rule].title, "dim"),)) for result in held
        ]
        if rows:
            page.table(rows, aligns=("left", "left"), indent=_INDENT)
        _add_words(page, "off: ", off)
        return
    _add_words(page, "kept: ", [str(result.rule) for result in held])


def _add_words(page: Page, label: str, words: Sequence[str]) -> None:
    if words:
        page.paragraph(Span(label, "dim"), ", ".join(words), indent=_INDENT, hanging=_INDENT)


def _add_rest(page: Page, rest: int, noun: str, *, indent: int) -> None:
    if rest > 0:
        page.paragraph(Span(f"… and {count(rest, noun)} (--verbose)", "dim"), indent=indent)
