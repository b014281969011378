"""The answer of ``check`` for a terminal: whether the change passes and why not, then what would happen."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.gate_rules import RuleId
from kpreempt.report.amounts import count, format_amount, format_duration
from kpreempt.report.check.causes import advice_of
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
from kpreempt.report.check.since import TONES, WORDS, drift_phrase, since_phrase
from kpreempt.report.check.summary import summary_phrase
from kpreempt.report.check.words import chain_phrase, finding_phrase, rule_phrase, standing_phrase, waive_option
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.drain.sections import Section, sections
from kpreempt.report.layout import LABEL_COLUMN, Align, Page, Phrase, Span, columns_of_numbers, strong
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.quoting import name, names
from kpreempt.report.screen import Block, fill, paragraph, titled
from kpreempt.report.simulation_words import add_displaced, budget_phrase, clock, simulation_summary, tell_in_short
from kpreempt.verdict.check import ChangeKind, Check, GateFinding, NodeRoom, Range
from kpreempt.verdict.drain import Drain
from kpreempt.verdict.simulation import COMPLETED, SimulatedWorkload, Simulation, SimulationEnd, StepKind

_INDENT = 2
_BODY = 4
_CHANGES_SHOWN = 8
_FINDINGS_SHOWN = 5
_FORGIVEN_SHOWN = 4
_OUTCOMES_SHOWN = 5
_DRIFTS_SHOWN = 6
_ALL = 1000
_LINES_SHOWN = 12
_LINES_OF_FINDING = 3
_LINES_OF_HEAD = 2
_MORE = "-v (timeline, victims, budgets, workloads, rules, how to waive a finding)"
_ROWS_SHOWN = 6
_RESOURCES = ("cpu", "memory")
_READY_COLUMNS: tuple[Align, ...] = ("left", "right", "right", "right", "left")


def render(check: Check, options: RenderOptions) -> str:
    """The verdict first; without ``verbose`` each section is cut to what matters most, on a screen to what fits."""
    page = Page(options.width)
    is_screen = options.extent is Extent.SCREEN
    _add_headline(page, check, most=_LINES_OF_HEAD if is_screen else 0)
    rules = gate_phrases(check)
    if is_screen:
        if rules:
            words = [word for each in rules for word in (" · ", *each)][1:]
            page.lines += paragraph(options, *words, indent=_INDENT, most=1)
        return fill(page, _blocks(check, options), check.assumptions, _MORE, options)
    for each in rules:
        page.paragraph(*each, indent=_INDENT, hanging=_INDENT)
    _add_sections(page, check, options)
    _add_broken(page, check, failing(check), Span("✗ ", "bad"), options)
    _add_broken(page, check, warning(check), Span("! ", "warn"), options)
    _add_forgiven(page, check, options)
    _add_since(page, check, options)
    if not isinstance(check, Drain):
        _add_changes(page, check, options)
    _add_timeline(page, check.simulation, options)
    _add_displaced_section(page, check.simulation, options)
    _add_budgets(page, check.simulation, options)
    _add_workloads(page, check.simulation, options)
    _add_stranded(page, check.simulation, options)
    _add_outcomes(page, check, options)
    _add_nodes(page, check, options)
    _add_other_rules(page, check, options)
    add_assumptions_section(page, check.assumptions, options)
    return finished(page, options)


def _blocks(check: Check, options: RenderOptions) -> list[Block]:
    """The findings, what helps against them, the changes and the victims, for a screen."""
    broken = [(Span("✗ ", "bad"), each) for each in failing(check)]
    broken += [(Span("! ", "warn"), each) for each in warning(check)]
    told = [(each.rule, _section_block(each, options)) for each in sections(check)]
    # What a section tells is not told twice.
    broken = [(mark, each) for mark, each in broken if each.rule not in dict(told)]
    findings = [
        paragraph(options, mark, strong(str(each.rule)), ": ", *finding_phrase(each), indent=0, most=_LINES_OF_FINDING)
        for mark, each in broken
    ]
    rules = dict.fromkeys(each.rule for _, each in broken)
    advice = [paragraph(options, f"{rule}: {rule.row.advice}", most=2) for rule in rules]
    evicted = Page(options.width)
    add_displaced(evicted, check.simulation.displaced, indent=0)
    changed = [each for each in check.changes if each.kind not in (ChangeKind.UNCHANGED, ChangeKind.DRAINED)]
    changes = [paragraph(options, strong(each.object), "  ", *change_phrase(each), most=1) for each in changed]
    return [
        *(block for rule, block in told if rule is RuleId.DRAIN_BLOCKED),
        Block([], findings, "finding", is_needed=True),
        *(block for rule, block in told if rule is not RuleId.DRAIN_BLOCKED),
        Block(titled(options, Span("WHAT HELPS", "good")), advice, "rule"),
        Block(titled(options, Span("CHANGES", "heading")), changes, "object"),
        Block(titled(options, Span("EVICTED", "heading")), [[line] for line in evicted.lines], "line"),
    ]


def _section_block(section: Section, options: RenderOptions) -> Block:
    """A section of what is told beyond a check, each item in as few lines as tell it."""
    items = []
    for each in section.items:
        lines = paragraph(options, *each.phrase, most=_LINES_OF_FINDING)
        for helps in each.helps[:1]:
            lines += paragraph(options, Span("what helps: ", "good"), *helps, indent=_BODY, most=2)
        items.append(lines)
    return Block(
        titled(options, Span(section.title.upper(), section.tone), section.words),
        items,
        section.noun,
        bool(section.rule),
    )


def _add_sections(page: Page, check: Check, options: RenderOptions) -> None:
    """What is told beyond a check, with everything that helps."""
    for section in sections(check):
        page.blank()
        words = f"  {section.words}" if section.words else ""
        page.paragraph(Span(section.title.upper(), section.tone), words, hanging=_INDENT)
        shown = section.items if options.verbose else section.items[:_CHANGES_SHOWN]
        for each in shown:
            page.paragraph(*each.phrase, indent=_INDENT, hanging=_INDENT)
            for detail in each.details:
                page.paragraph(*detail, indent=_BODY, hanging=_INDENT)
            for helps in each.helps:
                page.paragraph(Span("what helps: ", "good"), *helps, indent=_BODY, hanging=_INDENT)
        _add_rest(page, len(section.items) - len(shown), f"more {section.noun}")


def _add_headline(page: Page, check: Check, most: int) -> None:
    """The sentence, the rules, the counts and the cluster, each in ``most`` lines at most, unless that is 0."""
    word = Span("PASS", "good") if check.passed else Span("FAIL", "bad")
    page.paragraph(word, "  ", *summary_phrase(check), ".", hanging=6, most=most)
    page.paragraph(*verdict_phrase(check), ".", indent=_INDENT, hanging=_INDENT, most=most)
    page.paragraph(" · ".join(tally(check)), indent=_INDENT, hanging=_INDENT, most=most)
    cluster = check.cluster
    facts = [count(cluster.nodes, "node"), count(cluster.pods, "pod"), check.algorithm]
    if cluster.age_seconds is not None:
        facts.append(f"read {format_duration(cluster.age_seconds)} ago" if cluster.age_seconds else "read just now")
    if check.runs > 1:
        is_all = check.explored_all
        facts.append(f"the worst of {'all ' if is_all else ''}{count(check.runs, 'run')}, seed {check.seed}")
    page.paragraph(Span(" · ".join(filter(None, facts)), "dim"), indent=_INDENT, hanging=_INDENT, most=most)


def _add_broken(page: Page, check: Check, broken: Sequence[GateFinding], mark: Span, options: RenderOptions) -> None:
    """The rules that do not hold, each with its findings, and what helps."""
    by_rule: dict[RuleId, list[GateFinding]] = {}
    for finding in broken:
        by_rule.setdefault(finding.rule, []).append(finding)
    limits = {result.rule: rule_phrase(result) for result in check.rules}
    for rule, findings in by_rule.items():
        page.blank()
        words = limits.get(rule, (str(rule),))
        page.paragraph(mark, strong(str(words[0])), *words[1:], Span(f"  {rule.row.promise}", "dim"))
        shown = findings if options.verbose else findings[:_FINDINGS_SHOWN]
        for finding in shown:
            _add_finding(page, finding, options)
        _add_rest(page, len(findings) - len(shown), "more finding")
        for advice in dict.fromkeys(map(advice_of, shown)):
            page.paragraph(Span("what helps: ", "good"), Span(advice), indent=_INDENT, hanging=_INDENT)


def _add_finding(page: Page, finding: GateFinding, options: RenderOptions) -> None:
    page.paragraph(*finding_phrase(finding), indent=_INDENT, hanging=_INDENT)
    if finding.chain and finding.rule is not RuleId.MAX_CASCADE_DEPTH:
        page.paragraph(*chain_phrase(finding.chain), indent=_BODY, hanging=_INDENT)
    if options.verbose and len(finding.pods) > 1:
        page.paragraph("pods: ", *names(finding.pods, limit=_ALL), indent=_BODY, hanging=_INDENT)
    place = place_of(finding).text
    by: Phrase = ("for ", Span(finding.change)) if finding.change and finding.change != finding.subject else ()
    where: Phrase = (Span(place, "dim"),) if place else ()
    if by or where:
        page.paragraph(*by, *((", ",) if by and where else ()), *where, indent=_BODY, hanging=_INDENT)
    if options.verbose:
        page.paragraph(Span("to waive it: ", "dim"), Span(waive_option(finding)), indent=_BODY, hanging=_INDENT)


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
    _add_rest(page, len(let_by) - len(shown), "more finding")


def _add_since(page: Page, check: Check, options: RenderOptions) -> None:
    """``SINCE``: what differs from a former run, where one was given."""
    if check.since is None:
        return
    page.blank()
    page.paragraph(Span("SINCE", "heading"), "  ", *since_phrase(check.since, check), indent=0, hanging=_INDENT)
    shown = check.since.drifts if options.verbose else check.since.drifts[:_DRIFTS_SHOWN]
    for each in shown:
        mark = Span(f"{WORDS[each.kind]}  ", "bad" if TONES[each.kind] == "bad" else "good")
        page.paragraph(mark, *drift_phrase(each), indent=_INDENT, hanging=_INDENT)
    _add_rest(page, len(check.since.drifts) - len(shown), "more", is_plain=True)


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
    _add_rest(page, len(changed) - len(shown), "more object")


def _evictions(found: Range) -> str:
    if found.least == found.most:
        return count(found.most, "eviction")
    return f"between {found.least:,} and {count(found.most, 'eviction')}"


def _add_outcomes(page: Page, check: Check, options: RenderOptions) -> None:
    if not check.outcomes:
        return
    page.blank()
    scope = "all that are possible" if check.explored_all else "others are possible"
    kinds = count(len(check.outcomes), "kind")
    page.paragraph(Span("OUTCOMES", "heading"), f"  {kinds}, {_evictions(check.evictions)}; {scope}")
    shown = check.outcomes if options.verbose else check.outcomes[:_OUTCOMES_SHOWN]
    for share in shown:
        mark = Span("✗ ", "bad") if share.fails else Span("✓ ", "good")
        page.paragraph(mark, *outcome_phrase(share, check.runs), indent=_INDENT, hanging=_INDENT)
    _add_rest(page, len(check.outcomes) - len(shown), "more kind")


def _add_timeline(page: Page, simulation: Simulation, options: RenderOptions) -> None:
    """``TIMELINE``: the steps by the clock; when a pod has stopped that was told to go is told with ``verbose``."""
    page.blank()
    is_at_once = simulation.end is SimulationEnd.SETTLED and not simulation.seconds and simulation.steps
    summary: Phrase = ("all at once",) if is_at_once else simulation_summary(simulation)
    page.labelled(Span("TIMELINE", "heading"), *summary, column=LABEL_COLUMN)
    steps = [
        step
        for step in simulation.steps
        if options.verbose or step.kind is not StepKind.GONE or step.reason == COMPLETED
    ]
    lines = tell_in_short(steps)
    shown = lines if options.verbose else lines[:_LINES_SHOWN]
    for line in shown:
        page.labelled(Span(f"  {line.clock}", "dim"), *line.words, column=LABEL_COLUMN, hanging=_INDENT)
    _add_rest(page, len(lines) - len(shown), "more steps", is_plain=True)


def _add_displaced_section(page: Page, simulation: Simulation, options: RenderOptions) -> None:
    """``EVICTED``: the victims, and below each those that have to go for what takes its place."""
    if not simulation.displaced:
        return
    page.blank()
    deep = f", up to {simulation.depth:,} in a chain" if simulation.depth > 1 else ""
    page.labelled(Span("EVICTED", "heading"), f"{len(simulation.displaced):,} in all{deep}", column=LABEL_COLUMN)
    shown = simulation.displaced if options.verbose else simulation.displaced[:_LINES_SHOWN]
    add_displaced(page, shown, indent=0)
    _add_rest(page, len(simulation.displaced) - len(shown), "more", is_plain=True)


def _add_budgets(page: Page, simulation: Simulation, options: RenderOptions) -> None:
    """``BUDGETS``: those that are touched, the broken ones first."""
    if not simulation.budgets:
        return
    page.blank()
    page.paragraph(Span("BUDGETS", "heading"))
    budgets = sorted(simulation.budgets, key=lambda each: -each.violations)
    shown = budgets if options.verbose else budgets[:_ROWS_SHOWN]
    for budget in shown:
        page.paragraph(*budget_phrase(budget), indent=_INDENT, hanging=_INDENT)
    _add_rest(page, len(budgets) - len(shown), "more", is_plain=True)


def _add_workloads(page: Page, simulation: Simulation, options: RenderOptions) -> None:
    """``WORKLOADS``: how many pods are ready before, at the worst moment, and in the end."""
    if not simulation.workloads:
        return
    page.blank()
    page.paragraph(Span("WORKLOADS", "heading"), "  ready pods before, at worst, and in the end")
    # Those that the change is about, and then those that suffer most.
    workloads = sorted(simulation.workloads, key=lambda each: (not each.is_changed, each.is_done, -each.victims))
    shown = workloads if options.verbose else workloads[:_ROWS_SHOWN]
    titles = ("WORKLOAD", "BEFORE", "WORST", "AFTER", "STATUS")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    for each in shown:
        least = Span(f"{each.ready_least:,}", "bad" if each.ready_before and not each.ready_least else "")
        rows.append(((name(each.workload),), (f"{each.ready_before:,}",), (least,), (_after(each),), _standing(each)))
    page.table(rows, aligns=_READY_COLUMNS, indent=_INDENT)
    _add_rest(page, len(workloads) - len(shown), "more", is_plain=True)


def _after(workload: SimulatedWorkload) -> str:
    if workload.wanted_after is None or workload.wanted_after == workload.ready_after:
        return f"{workload.ready_after:,}"
    return f"{workload.ready_after:,} of {workload.wanted_after:,}"


def _standing(workload: SimulatedWorkload) -> Phrase:
    parts: list[Span] = []
    if workload.is_changed:
        parts.append(Span("changed") if workload.is_done else Span("changed, not completed", "bad"))
    if workload.victims:
        parts.append(Span(f"{workload.victims:,} evicted", "warn"))
    if workload.pending_after:
        parts.append(Span(f"{workload.pending_after:,} pending", "bad"))
    if workload.ready_least < workload.ready_before and workload.least_at:
        parts.append(Span(f"worst at {clock(workload.least_at)}", "dim"))
    return tuple(part for number, each in enumerate(parts) for part in ((", ", each) if number else (each,)))


def _add_stranded(page: Page, simulation: Simulation, options: RenderOptions) -> None:
    """``STRANDED``: what is left without something that it needs."""
    if not simulation.stranded:
        return
    page.blank()
    page.paragraph(Span("STRANDED", "heading"))
    shown = simulation.stranded if options.verbose else simulation.stranded[:_ROWS_SHOWN]
    for each in shown:
        page.paragraph(*stranded_phrase(each), indent=_INDENT, hanging=_INDENT)
    _add_rest(page, len(simulation.stranded) - len(shown), "more", is_plain=True)


def _add_nodes(page: Page, check: Check, options: RenderOptions) -> None:
    """``ROOM``: what all nodes have left in the end; with ``verbose`` each node on which something changes."""
    if not check.spare and not (options.verbose and check.nodes):
        return
    page.blank()
    left = ", ".join(f"{key} {format_amount(key, amount)}" for key, amount in check.spare.items())
    page.labelled(Span("ROOM", "heading"), f"free on all nodes: {left}" if left else "", column=LABEL_COLUMN)
    if not options.verbose or not check.nodes:
        return
    titles = ("NODE", "CPU REQUESTED", "OF", "MEMORY REQUESTED", "OF", "PODS", "OF")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    rows += [((strong(each.node),), *((cell,) for cell in _room(each))) for each in check.nodes]
    page.table(rows, aligns=columns_of_numbers(len(titles) - 1), indent=_INDENT)


def _room(node: NodeRoom) -> list[str]:
    cells: list[str] = []
    for key in (*_RESOURCES, "pods"):
        before, after = (format_amount(key, each.get(key, 0)) for each in (node.before, node.after))
        cells.append(after if before == after else f"{before} → {after}")
        cells.append(format_amount(key, node.allocatable.get(key, 0)))
    return cells


def _add_other_rules(page: Page, check: Check, options: RenderOptions) -> None:
    """The rules that hold, and those that are off."""
    broken = {finding.rule for finding in check.findings if finding.standing.counts}
    held = [result for result in check.rules if result.is_on and result.rule not in broken]
    off = [str(result.rule) for result in check.rules if not result.is_on]
    if not held and not off:
        return
    page.blank()
    page.paragraph(Span("RULES", "heading"), f"  {count(len(held), 'rule')} kept{f', {len(off):,} off' if off else ''}")
    if options.verbose:
        rows: list[tuple[Phrase, ...]] = [
            ((Span("✓ ", "good"), *rule_phrase(result)), (Span(result.rule.row.promise, "dim"),)) for result in held
        ]
        if rows:
            page.table(rows, aligns=("left", "left"), indent=_INDENT)
        _add_words(page, "off: ", off)
        return
    _add_words(page, "kept: ", [str(result.rule) for result in held])


def _add_words(page: Page, label: str, words: Sequence[str]) -> None:
    if words:
        page.paragraph(Span(label, "dim"), ", ".join(words), indent=_INDENT, hanging=_INDENT)


def _add_rest(page: Page, rest: int, noun: str, *, is_plain: bool = False) -> None:
    if rest > 0:
        words = f"{rest:,} {noun}" if is_plain else count(rest, noun)
        page.paragraph(Span(f"… and {words} (-v)", "dim"), indent=_INDENT)
