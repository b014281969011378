"""The answer of ``check`` and ``drain``: whether the change passes and why, then what would happen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import msgspec

from kpreempt.gate_rules import OptionType, RuleId
from kpreempt.report.amounts import count, format_amount, format_duration, format_snapshot
from kpreempt.report.blocks import (
    Cards,
    Code,
    Count,
    Fold,
    Listing,
    Phrase,
    Picture,
    Report,
    Role,
    Rows,
    Section,
    Sentence,
    Span,
    Table,
    Tone,
    Words,
    columns,
    joined,
    strong,
)
from kpreempt.report.check.causes import Cause, advice, advice_of, cause_phrase, causes, waive_tables
from kpreempt.report.check.facts import (
    change_phrase,
    failing,
    forgiven,
    full_location,
    gate_phrases,
    is_qualified,
    location_of,
    outcome_phrase,
    since_phrase,
    tally,
    verdict_phrase,
    warning,
)
from kpreempt.report.check.summary import summary_phrase
from kpreempt.report.check.words import BECOMES, status_phrase, waive_option
from kpreempt.report.drains import sections
from kpreempt.report.evidence import assumption_sections, size_facts
from kpreempt.report.html.parts import in_order, node_maps
from kpreempt.report.node_health import health_section
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.quoting import message, name, names, plain
from kpreempt.report.simulation_words import clock
from kpreempt.report.simulations import broken_dependencies, budgets, evicted, pending, timeline, workloads
from kpreempt.verdict.check import ChangeKind, Check, DriftKind, FindingStatus, GateFinding, NodeUtilization, RuleResult
from kpreempt.verdict.drain import Drain
from kpreempt.verdict.simulation import Displaced, SimulationEnd
from kpreempt.verdict.unread import absent_sentence, are_budgets_unread

_CHANGES_SHOWN = 8
_FINDINGS_SHOWN, _CARDS_OF_DOCUMENT = 10, 30
_FORGIVEN_SHOWN = 4
_OUTCOMES_SHOWN = 5
_RULES_SHOWN = 8
_DRIFTS_SHOWN = 6
_PODS_SHOWN = 50
_CHAIN_SHOWN = 40
_WAIVERS_SHOWN = 5
_TABLES_SHOWN = 50
_FIELDS_SHOWN = 6
_RESOURCES = ("cpu", "memory", "pods")
# This number of victims, or share of all pods, deserves attention even if no rule forbids it.
_MANY_VICTIMS = 10
_LARGE_SHARE = 0.1
# Priorities on a screen; the other sections of a drain come before and after the findings.
_GATE, _NODE_HEALTH, _FINDINGS, _WARNINGS, _CHANGES, _EVICTED = 120, 115, 100, 95, 40, 30
# Lines of findings that are kept when a screen is cut.
_MAX_LISTED = 5
_MORE = "timeline, victims, budgets, workloads, rules, how to waive a finding"
_STATUSES: dict[FindingStatus, tuple[str, Role]] = {
    FindingStatus.FAILS: ("fails", "bad"),
    FindingStatus.WARNS: ("warns", "warn"),
    FindingStatus.NOT_NEW: ("not new", "dim"),
    FindingStatus.ACCEPTED: ("accepted", "dim"),
    FindingStatus.WAIVED: ("waived", "dim"),
}
_DRIFTS: dict[DriftKind, Role] = {
    DriftKind.NEW: "bad",
    DriftKind.WORSE: "bad",
    DriftKind.BETTER: "good",
    DriftKind.FIXED: "good",
}


def report(check: Check, options: RenderOptions) -> Report:
    """The verdict first, then the rule violations, and what would happen."""
    tone: Tone = "good" if check.passed else "bad"
    mark = Span("PASS" if check.passed else "FAIL", tone)
    gate = gate_phrases(check)
    summary = (*summary_phrase(check), ".")
    verdict = f"{plain(verdict_phrase(check))}."
    if check.simulation.end is SimulationEnd.NOT_SIMULATED:
        verdict = f"{verdict} {absent_sentence(check.assumptions)}"
    sentences = (*summary, f" {verdict}")
    is_document = options.extent is Extent.DOCUMENT
    return Report(
        title=(f"kpreempt {check.kind.lower()}: ", Span("passed" if check.passed else "failed", "heading")),
        tone="warn" if check.passed and _needs_attention(check) else tone,
        lead=_capitalized(sentences) if is_document else (mark, "  ", *summary),
        short_lead=(mark, "  ", *sentences),
        facts=[
            *([] if is_document else [strong(verdict)]),
            " · ".join(tally(check)),
            _cluster(check, has_age=not is_document),
            *gate,
        ],
        short_facts=f"{' · '.join(tally(check))} · {_cluster(check, has_age=True)}",
        always_facts=True,
        folded="What would happen",
        counts=_counts(check),
        page_facts=[
            *([f"Kubernetes {check.cluster.version}"] if check.cluster.version else []),
            *([format_snapshot(check.cluster.taken_at)] if check.cluster.taken_at is not None else []),
        ],
        sections=_sections(check, gate, options),
        statuses=list(dict.fromkeys(_STATUSES[each.status][0] for each in check.findings)),
        more=[("-v", _MORE)],
        command=check.kind.lower(),
    )


def _capitalized(phrase: Phrase) -> Phrase:
    """The phrase with a capital letter, unless it starts with a name from the input."""
    first, *others = phrase
    return (f"{first[:1].upper()}{first[1:]}", *others) if isinstance(first, str) else phrase


def _sections(check: Check, gate: Sequence[Phrase], options: RenderOptions) -> list[Section]:
    simulation = check.simulation
    return [
        Section("GATE", joined(gate, " · "), priority=_GATE, only="screen"),
        health_section(check.cluster, options.now, priority=_NODE_HEALTH),
        *sections(check),
        *_findings(check, options),
        _since(check),
        _changes(check, options),
        timeline(simulation, options),
        evicted(simulation, options, priority=_EVICTED),
        budgets(simulation),
        workloads(simulation, options),
        pending(simulation, options),
        broken_dependencies(simulation),
        _outcomes(check),
        _capacity(check, options),
        _waivers(check, options),
        _rules(check, options),
        *(msgspec.structs.replace(each, is_reasoning=True) for each in assumption_sections(check.assumptions)),
    ]


def _cluster(check: Check, *, has_age: bool) -> str:
    cluster = check.cluster
    facts = [*size_facts(cluster, check.assumptions), check.algorithm]
    if has_age and cluster.age_seconds is not None:
        facts.append(f"read {format_duration(cluster.age_seconds)} ago" if cluster.age_seconds else "read just now")
    if check.runs > 1:
        is_all = check.explored_all
        runs = "both runs" if is_all and check.runs == 2 else f"{'all ' if is_all else ''}{count(check.runs, 'run')}"
        facts.append(f"worst of {runs}, seed {check.seed:,}")
    return " · ".join(filter(None, facts))


def _needs_attention(check: Check) -> bool:
    """Whether a pass deserves attention: there are warnings, a rule is relaxed, or much is evicted."""
    victims = max(len(check.simulation.displaced), check.evictions.max)
    is_much = victims >= _MANY_VICTIMS or (victims > 1 and victims >= check.cluster.pods * _LARGE_SHARE)
    is_down = any(each.ready_before and not each.ready_min and each.victims for each in check.simulation.workloads)
    return is_much or is_down or bool(warning(check)) or is_qualified(check)


def _counts(check: Check) -> list[Count]:
    simulation = check.simulation
    failures = sum(rule.failures for rule in check.rules)
    violations = sum(budget.violations for budget in simulation.budgets)
    waits = sum(pod.was_running for pod in simulation.pending)
    warnings = sum(rule.warnings for rule in check.rules)
    known = sum(rule.waived + rule.accepted + rule.not_new for rule in check.rules)
    return [
        Count("rules fail", sum(rule.failures > 0 for rule in check.rules), failures > 0),
        Count("findings", failures, failures > 0),
        *([Count("warnings", warnings)] if warnings else []),
        *([Count("known or waived", known)] if known else []),
        Count("pods evicted", len(simulation.displaced)),
        *([] if are_budgets_unread(check.assumptions) else [Count("budget violations", violations, violations > 0)]),
        Count("cascade depth", simulation.depth),
        Count("previously running, now pending", waits, waits > 0),
    ]


def _findings(check: Check, options: RenderOptions) -> list[Section]:
    """``FINDINGS`` that fail the gate, ``WARNINGS``, and those that are ``NOT COUNTED``, one card per cause."""
    known = sorted(forgiven(check), key=lambda finding: list(_STATUSES).index(finding.status))
    groups: list[tuple[str, str, list[GateFinding], Role, int]] = [
        ("FINDINGS", "", failing(check), "bad", _FINDINGS),
        ("WARNINGS", "these don't fail the check", warning(check), "warn", _WARNINGS),
        ("NOT COUNTED", f"{count(len(known), 'finding')} waived, accepted or not new", known, "heading", 0),
    ]
    found = []
    for label, lead, findings, style, priority in groups:
        shown = _FINDINGS_SHOWN if priority else _FORGIVEN_SHOWN
        cards = _cards(causes(findings), check, shown, options)
        # A screen doesn't repeat what a section of a drain reports.
        is_reported = isinstance(check, Drain) and bool(check.blocked)
        others = [each for each in findings if not is_reported or each.rule is not RuleId.DRAIN_INCOMPLETE]
        short = Section(label, lead, [_cards(causes(others), check, 0, options)] if others else [], style=style)
        if findings:
            found.append(
                Section(
                    label,
                    lead,
                    [cards],
                    style=style,
                    priority=priority if others else 0,
                    short=short,
                    reserved_lines=_MAX_LISTED,
                    min_lines=_MAX_LISTED,
                )
            )
    if not check.findings:
        found.append(Section("FINDINGS", "No rule is violated.", only="page"))
    return found


def _cards(found: Sequence[Cause], check: Check, shown: int, options: RenderOptions) -> Cards:
    """The causes; each fix is shown with the first cause it applies to."""
    fixed: dict[tuple[RuleId, str], int] = {}
    for each in found:
        fixed.setdefault((each.first.rule, advice_of(each.first)), id(each))
    victims = {each.pod: each for each in reversed(check.simulation.displaced)}
    draw = partial(_card, fixed=set(fixed.values()), victims=victims, options=options)
    shown = _CARDS_OF_DOCUMENT if options.extent is Extent.DOCUMENT else shown
    return Cards(found, draw, "finding", shown, numbers=[len(each.findings) for each in found])


def _card(cause: Cause, fixed: set[int], victims: Mapping[str, Displaced], options: RenderOptions) -> Section:
    """The rule and the violation, the fix, the source, and, in full reports, all other facts."""
    finding = cause.first
    status, style = _STATUSES[finding.status]
    sentence = cause_phrase(cause, limit=None) if options.verbose else cause_phrase(cause)
    rows: list[tuple[str, Words]] = []
    if finding.status.counts and id(cause) in fixed:
        rows += advice(finding)
    place = Span(full_location(finding) if options.is_full else location_of(finding).text, "code")
    by = name(finding.change) if finding.change and finding.change != finding.subject else ""
    rows += [("object", joined([by, place] if place.text else [by]))] if by else [("file", place)] if place.text else []
    rows += [] if finding.status.counts else [("why", status_phrase(finding))]
    if len(finding.chain) > 1 and (options.is_full or finding.rule is not RuleId.MAX_CASCADE_DEPTH):
        rows.append(("cascade", _chain(finding.chain, victims)))
    if options.is_full:
        # Not every rule's sentence contains the detail.
        is_repeated = finding.detail.rstrip().removesuffix(".") in plain(sentence)
        rows += [] if is_repeated else [("detail", message(finding.detail))]
        rows += [("since", clock(finding.since))] if finding.since else []
        rows += (
            [("pods", names(cause.pods, limit=None if options.verbose else _PODS_SHOWN))] if len(cause.pods) > 1 else []
        )
        if finding.status.counts:
            waivable = cause.findings if options.verbose else cause.findings[:_WAIVERS_SHOWN]
            waived = joined((Span(waive_option(each), "code") for each in waivable), " ")
            rest = len(cause.findings) - len(waivable)
            rows.append(("waive with", (*waived, f" and {rest:,} more" if rest > 0 else "")))
        if page := options.page_of(finding.rule):
            rows.append(("rule", Span(str(finding.rule), "name", page)))
    return Section(str(finding.rule), sentence, [Rows(rows)], style=style, status=status)


def _chain(chain: Sequence[str], victims: Mapping[str, Displaced]) -> Phrase:
    """The chain of evictions: for each victim, its node and its replacement."""
    steps: list[Words] = []
    for link in chain[:_CHAIN_SHOWN]:
        pod, _, replacement = link.partition(BECOMES)
        about: list[Phrase] = []
        if victim := victims.get(pod):
            about.append(("evicted from ", name(victim.node), f", priority {victim.priority:,}"))
        if replacement:
            about.append(("replaced by ", name(replacement)))
        steps.append((name(pod), " (", *joined(about, "; "), ")") if about else name(pod))
    rest = len(chain) - _CHAIN_SHOWN
    return joined([*steps, *([f"{rest:,} more"] if rest > 0 else [])], BECOMES)


def _since(check: Check) -> Section:
    """``SINCE``: the differences from a previous run, if one was given."""
    if check.previous_run is None:
        return Section("SINCE")
    rows: list[list[Words]] = [
        [
            (each.rule, " of ", name(each.subject)) if each.rule else each.metric,
            Span(each.kind.value.lower(), _DRIFTS[each.kind]),
            "" if each.kind is DriftKind.NEW else f"{each.before:,}",
            "" if each.kind is DriftKind.FIXED else f"{each.after:,}",
        ]
        for each in check.previous_run.drifts
    ]
    titles = columns("DIFFERENCE", "CHANGE", "BEFORE", "NOW", right=["BEFORE", "NOW"])
    return Section(
        "SINCE",
        since_phrase(check.previous_run, check),
        [Table(titles, rows, noun="difference", caption="Differences, worst first", shown=_DRIFTS_SHOWN)],
        heading="Since the previous run",
    )


def _rules(check: Check, options: RenderOptions) -> Section:
    """``RULES``: the violated rules, or all in full reports, with their limits and measured values."""
    on = [each for each in check.rules if each.is_on]
    broken = {finding.rule for finding in check.findings}
    passing = [str(each.rule) for each in on if each.is_evaluated and each.rule not in broken]
    unknown = [str(each.rule) for each in on if not each.is_evaluated]
    off = [str(each.rule) for each in check.rules if not each.is_on]
    rows: list[list[Words]] = [
        [
            Span(str(each.rule), "name", options.page_of(each.rule)),
            _result(each),
            _measured(each),
            each.rule.row.promise,
        ]
        for each in on
        if options.is_full or each.rule in broken
    ]
    titles = columns("RULE", "RESULT", "MEASURED", "REQUIREMENT")
    return Section(
        "RULES",
        f"{count(len(passing), 'rule')} passed{f', {len(unknown):,} not evaluated' if unknown else ''}"
        f"{f', {len(off):,} off' if off else ''}",
        [
            Table(titles, rows, noun="rule", caption="The rules of the gate", shown=_RULES_SHOWN, is_main=True),
            Sentence((Span("passed: ", "dim"), ", ".join(passing)) if passing and not options.is_full else ""),
            Sentence((Span("not evaluated: ", "dim"), ", ".join(unknown)) if unknown and not options.is_full else ""),
            Sentence((Span("off: ", "dim"), ", ".join(off)) if off and options.is_full else ""),
        ],
    )


def _measured(rule: RuleResult) -> str:
    """``2 (limit 0)``; for a rule without a limit, the number of findings."""
    is_time = rule.rule.row.takes is OptionType.TIME
    amount, limit = (
        "" if number is None else format_duration(number) if is_time else f"{number:,}"
        for number in (rule.amount, rule.limit)
    )
    return f"{amount} (limit {limit})" if limit else amount if rule.amount else ""


def _result(rule: RuleResult) -> Phrase:
    others = ((rule.waived, "waived"), (rule.accepted, "accepted"), (rule.not_new, "not new"))
    suppressed = [f"{number:,} {words}" for number, words in others if number]
    if not rule.is_evaluated:
        return (Span("not evaluated", "warn"),)
    if rule.failures:
        result = Span(f"✗ {count(rule.failures, 'finding')}", "bad")
    elif rule.warnings:
        result = Span(f"! {count(rule.warnings, 'warning')}", "warn")
    else:
        result = Span("✓ passes", "good")
    return joined([result, *suppressed])


def _changes(check: Check, options: RenderOptions) -> Section:
    """``CHANGES``: the change to each object; a drain reports its nodes instead."""
    listed = [each for each in check.changes if each.kind is not ChangeKind.DRAINED]
    changed = [each for each in listed if each.kind is not ChangeKind.UNCHANGED]
    if isinstance(check, Drain) and not listed:
        return Section("CHANGES")
    same = f", {len(listed) - len(changed):,} unchanged" if len(changed) < len(listed) else ""
    rows: list[list[Words]] = [
        [
            strong(each.object),
            change_phrase(each),
            Span(full_location(each) if options.is_full else location_of(each).text, "code"),
        ]
        for each in (listed if options.is_full else changed)
    ]
    limit = None if options.verbose else _FIELDS_SHOWN
    fields = [[(name(each.object), ": ", *names(each.fields, limit=limit))] for each in changed if each.fields]
    table = Table(columns("OBJECT", "CHANGE", "FILE"), rows, noun="object", shown=_CHANGES_SHOWN, is_untitled=True)
    short = Listing([[(strong(each.object), "  ", *change_phrase(each))] for each in changed], noun="object")
    return Section(
        "CHANGES",
        f"{count(len(changed), 'object')}{same}" if listed else "nothing",
        [table, *([Fold("Changed fields", [Listing(fields, "object")])] if fields and options.is_full else [])],
        heading="Changes",
        is_reasoning=True,
        priority=_CHANGES if changed else 0,
        short=Section("CHANGES", blocks=[short]),
    )


def _outcomes(check: Check) -> Section:
    """``OUTCOMES``: the different outcomes of several runs."""
    if not check.outcomes:
        return Section("OUTCOMES")
    low, high = check.evictions.min, check.evictions.max
    between = "or" if high == low + 1 else "to"
    number = f"{'' if low == high else f'{low:,} {between} '}{count(high, 'eviction')}"
    scope = "all possible outcomes" if check.explored_all else "others are possible"
    return Section(
        "OUTCOMES",
        f"{count(len(check.outcomes), 'outcome')}, {number}; {scope}",
        [
            Listing(
                [
                    [(Span("✗ ", "bad") if each.fails else Span("✓ ", "good"), *outcome_phrase(each, check.runs))]
                    for each in check.outcomes
                ],
                noun="outcome",
                shown=_OUTCOMES_SHOWN,
            )
        ],
        heading="Possible outcomes",
        is_reasoning=True,
    )


def _capacity(check: Check, options: RenderOptions) -> Section:
    """``FREE CAPACITY``: the total at the end; in full reports, the nodes on which something changes."""
    free = ", ".join(f"{key} {format_amount(key, check.free[key])}" for key in in_order(check.free))
    titles = ("CPU REQUESTED", "OF", "MEMORY REQUESTED", "OF", "PODS", "OF")
    rows: list[list[Words]] = []
    if options.verbose:
        rows = [[strong(each.node), *_amounts(each)] for each in check.nodes]
    maps = [Picture(partial(node_maps, check.nodes))] if check.nodes else []
    return Section(
        "FREE CAPACITY",
        free,
        [*(maps if options.is_full else []), Table(columns("NODE", *titles, right=titles), rows, noun="node")],
        heading="Free capacity",
        anchor="nodes",
        is_reasoning=True,
    )


def _amounts(node: NodeUtilization) -> Iterable[str]:
    for key in _RESOURCES:
        before, after = (format_amount(key, each.get(key, 0)) for each in (node.before, node.after))
        yield after if before == after else f"{before} → {after}"
        yield format_amount(key, node.allocatable.get(key, 0))


def _waivers(check: Check, options: RenderOptions) -> Section:
    """Entries that waive the findings in ``kpreempt.toml``, to copy from a document."""
    findings = failing(check)
    lines = [line for each in waive_tables(findings[:_TABLES_SHOWN]) for line in each.splitlines()]
    if len(findings) > _TABLES_SHOWN:
        lines.append(f"# and {count(len(findings) - _TABLES_SHOWN, 'more finding')}")
    is_shown = lines and options.extent is Extent.DOCUMENT
    blocks = [Fold("Waivers for kpreempt.toml", [Code(lines)])] if is_shown else []
    return Section("WAIVERS", blocks=blocks, heading="How to waive the findings", is_reasoning=True)
