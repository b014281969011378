"""The answer of ``check`` and ``drain``: whether the change passes and why not, then what would happen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import msgspec

from kpreempt.gate_rules import RuleId, Takes
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
from kpreempt.report.check.causes import Cause, advice_of, cause_phrase, causes, waive_tables
from kpreempt.report.check.facts import (
    change_phrase,
    failing,
    forgiven,
    full_place,
    gate_phrases,
    is_qualified,
    outcome_phrase,
    place_of,
    since_phrase,
    tally,
    verdict_phrase,
    warning,
)
from kpreempt.report.check.summary import summary_phrase
from kpreempt.report.check.words import BECOMES, standing_phrase, waive_option
from kpreempt.report.drains import sections
from kpreempt.report.evidence import assumption_sections
from kpreempt.report.html.parts import in_order, node_maps
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.quoting import message, name, names, plain
from kpreempt.report.simulation_words import clock
from kpreempt.report.simulations import budgets, evicted, pending, stranded, timeline, workloads
from kpreempt.verdict.check import ChangeKind, Check, DriftKind, GateFinding, GateStanding, NodeRoom, RuleResult
from kpreempt.verdict.drain import Drain
from kpreempt.verdict.simulation import Displaced
from kpreempt.verdict.unread import are_budgets_unread

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
# So many victims, or so large a share of all pods, are worth a look though nobody forbids them.
_MANY_VICTIMS = 10
_LARGE_SHARE = 0.1
# On a screen, from the first section to the last; those of a drain are around the findings.
_GATE, _FINDINGS, _WARNINGS, _CHANGES, _EVICTED = 120, 100, 95, 40, 30
# Lines of findings that make others give way.
_KEPT = 5
_MORE = "timeline, victims, budgets, workloads, rules, how to waive a finding"
_STANDINGS: dict[GateStanding, tuple[str, Role]] = {
    GateStanding.FAILS: ("fails", "bad"),
    GateStanding.WARNS: ("warns", "warn"),
    GateStanding.NOT_NEW: ("not new", "dim"),
    GateStanding.ACCEPTED: ("accepted", "dim"),
    GateStanding.WAIVED: ("waived", "dim"),
}
_DRIFTS: dict[DriftKind, Role] = {
    DriftKind.NEW: "bad",
    DriftKind.WORSE: "bad",
    DriftKind.BETTER: "good",
    DriftKind.GONE: "good",
}


def report(check: Check, options: RenderOptions) -> Report:
    """The verdict first, then what breaks a rule, and what would happen."""
    tone: Tone = "good" if check.passed else "bad"
    mark = Span("PASS" if check.passed else "FAIL", tone)
    gate = gate_phrases(check)
    summary = (*summary_phrase(check), ".")
    verdict = f"{plain(verdict_phrase(check))}."
    sentences = (*summary, f" {verdict[:1].upper()}{verdict[1:]}")
    is_document = options.extent is Extent.DOCUMENT
    return Report(
        title=(f"kpreempt {check.kind.lower()}: ", Span("passed" if check.passed else "failed", "heading")),
        tone="warn" if check.passed and _is_to_be_looked_at(check) else tone,
        lead=sentences if is_document else (mark, "  ", *summary),
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
        standings=list(dict.fromkeys(_STANDINGS[each.standing][0] for each in check.findings)),
        more=[("-v", _MORE)],
        command=check.kind.lower(),
    )


def _sections(check: Check, gate: Sequence[Phrase], options: RenderOptions) -> list[Section]:
    simulation = check.simulation
    return [
        Section("GATE", joined(gate, " · "), priority=_GATE, only="screen"),
        *sections(check),
        *_findings(check, options),
        _since(check),
        _changes(check, options),
        timeline(simulation, options),
        evicted(simulation, options, priority=_EVICTED),
        budgets(simulation),
        workloads(simulation, options),
        pending(simulation, options),
        stranded(simulation),
        _outcomes(check),
        _room(check, options),
        _waivers(check, options),
        _rules(check, options),
        *(msgspec.structs.replace(each, is_reasoning=True) for each in assumption_sections(check.assumptions)),
    ]


def _cluster(check: Check, *, has_age: bool) -> str:
    cluster = check.cluster
    facts = [count(cluster.nodes, "node"), count(cluster.pods, "pod"), check.algorithm]
    if has_age and cluster.age_seconds is not None:
        facts.append(f"read {format_duration(cluster.age_seconds)} ago" if cluster.age_seconds else "read just now")
    if check.runs > 1:
        is_all = check.explored_all
        facts.append(f"the worst of {'all ' if is_all else ''}{count(check.runs, 'run')}, seed {check.seed:,}")
    return " · ".join(filter(None, facts))


def _is_to_be_looked_at(check: Check) -> bool:
    """Whether a pass is to be looked at: something is warned of, a rule counts for less, or much is evicted."""
    victims = max(len(check.simulation.displaced), check.evictions.most)
    is_much = victims >= _MANY_VICTIMS or (victims > 1 and victims >= check.cluster.pods * _LARGE_SHARE)
    is_down = any(each.ready_before and not each.ready_least and each.victims for each in check.simulation.workloads)
    return is_much or is_down or bool(warning(check)) or is_qualified(check)


def _counts(check: Check) -> list[Count]:
    simulation = check.simulation
    failures = sum(rule.failures for rule in check.rules)
    violations = sum(budget.violations for budget in simulation.budgets)
    waits = sum(pod.was_running for pod in simulation.waiting)
    warnings = sum(rule.warnings for rule in check.rules)
    known = sum(rule.waived + rule.accepted + rule.not_new for rule in check.rules)
    return [
        Count("rules fail", sum(rule.failures > 0 for rule in check.rules), failures > 0),
        Count("findings", failures, failures > 0),
        *([Count("warnings", warnings)] if warnings else []),
        *([Count("known or waived", known)] if known else []),
        Count("pods evicted", len(simulation.displaced)),
        *([] if are_budgets_unread(check.assumptions) else [Count("against budgets", violations, violations > 0)]),
        Count("evictions in a chain", simulation.depth),
        Count("that ran left pending", waits, waits > 0),
    ]


def _findings(check: Check, options: RenderOptions) -> list[Section]:
    """``FINDINGS``, which shut the gate, ``WARNINGS``, and those that are ``NOT COUNTED``, each cause once."""
    known = sorted(forgiven(check), key=lambda finding: list(_STANDINGS).index(finding.standing))
    groups: list[tuple[str, str, list[GateFinding], Role, int]] = [
        ("FINDINGS", "", failing(check), "bad", _FINDINGS),
        ("WARNINGS", "for which the gate stays open", warning(check), "warn", _WARNINGS),
        ("NOT COUNTED", f"{count(len(known), 'finding')} waived, accepted or not new", known, "heading", 0),
    ]
    found = []
    for label, lead, findings, style, priority in groups:
        shown = _FINDINGS_SHOWN if priority else _FORGIVEN_SHOWN
        cards = _cards(causes(findings), check, shown, options)
        # What a section of a drain tells is not told twice on a screen.
        is_told = isinstance(check, Drain) and bool(check.blocked)
        others = [each for each in findings if not is_told or each.rule is not RuleId.DRAIN_BLOCKED]
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
                    keeps=_KEPT,
                    least=_KEPT,
                )
            )
    if not check.findings:
        found.append(Section("FINDINGS", "Nothing breaks a rule.", only="page"))
    return found


def _cards(found: Sequence[Cause], check: Check, shown: int, options: RenderOptions) -> Cards:
    """The causes, with what helps beside the first that it helps with."""
    helped: dict[tuple[RuleId, str], int] = {}
    for each in found:
        helped.setdefault((each.first.rule, advice_of(each.first)), id(each))
    victims = {each.pod: each for each in reversed(check.simulation.displaced)}
    draw = partial(_card, helped=set(helped.values()), victims=victims, options=options)
    shown = _CARDS_OF_DOCUMENT if options.extent is Extent.DOCUMENT else shown
    return Cards(found, draw, "finding", shown, numbers=[len(each.findings) for each in found])


def _card(cause: Cause, helped: set[int], victims: Mapping[str, Displaced], options: RenderOptions) -> Section:
    """A rule and what is wrong, what helps, where it is from, and with ``-v`` all that is known about it."""
    finding = cause.first
    standing, style = _STANDINGS[finding.standing]
    sentence = cause_phrase(cause, limit=None) if options.verbose else cause_phrase(cause)
    rows: list[tuple[str, Words]] = []
    if finding.standing.counts and id(cause) in helped:
        rows.append(("what helps", advice_of(finding)))
    place = Span(full_place(finding) if options.is_full else place_of(finding).text, "code")
    by = name(finding.change) if finding.change and finding.change != finding.subject else ""
    rows += [("for", joined([by, place] if place.text else [by]))] if by else [("in", place)] if place.text else []
    rows += [] if finding.standing.counts else [("why", standing_phrase(finding))]
    if len(finding.chain) > 1 and (options.is_full or finding.rule is not RuleId.MAX_CASCADE_DEPTH):
        rows.append(("one after the other", _chain(finding.chain, victims)))
    if options.is_full:
        # Not every rule's sentence says it.
        is_told = finding.detail.rstrip().removesuffix(".") in plain(sentence)
        rows += [] if is_told else [("detail", message(finding.detail))]
        rows += [("from", f"{clock(finding.since)} on")] if finding.since else []
        rows += (
            [("pods", names(cause.pods, limit=None if options.verbose else _PODS_SHOWN))] if len(cause.pods) > 1 else []
        )
        if finding.standing.counts:
            waivable = cause.findings if options.verbose else cause.findings[:_WAIVERS_SHOWN]
            waived = joined((Span(waive_option(each), "code") for each in waivable), " ")
            rest = len(cause.findings) - len(waivable)
            rows.append(("to waive it", (*waived, f" and {rest:,} more" if rest > 0 else "")))
        if page := options.page_of(finding.rule):
            rows.append(("about the rule", Span(str(finding.rule), "name", page)))
    return Section(str(finding.rule), sentence, [Rows(rows)], style=style, standing=standing)


def _chain(chain: Sequence[str], victims: Mapping[str, Displaced]) -> Phrase:
    """Who has to leave for whom: of a victim where it was, and what takes its place."""
    steps: list[Words] = []
    for link in chain[:_CHAIN_SHOWN]:
        pod, _, replacement = link.partition(BECOMES)
        about: list[Phrase] = []
        if victim := victims.get(pod):
            about.append(("leaves ", name(victim.node), f", priority {victim.priority:,}"))
        if replacement:
            about.append(("in its place: ", name(replacement)))
        steps.append((name(pod), " (", *joined(about, "; "), ")") if about else name(pod))
    rest = len(chain) - _CHAIN_SHOWN
    return joined([*steps, *([f"{rest:,} more"] if rest > 0 else [])], BECOMES)


def _since(check: Check) -> Section:
    """``SINCE``: what differs from a former run, if one was given."""
    if check.since is None:
        return Section("SINCE")
    rows: list[list[Words]] = [
        [
            (each.rule, " of ", name(each.subject)) if each.rule else each.what,
            Span(each.kind.value.lower(), _DRIFTS[each.kind]),
            "" if each.kind is DriftKind.NEW else f"{each.before:,}",
            "" if each.kind is DriftKind.GONE else f"{each.after:,}",
        ]
        for each in check.since.drifts
    ]
    titles = columns("WHAT", "SINCE THEN", "BEFORE", "NOW", right=["BEFORE", "NOW"])
    return Section(
        "SINCE",
        since_phrase(check.since, check),
        [Table(titles, rows, noun="difference", caption="What differs, what is worse first", shown=_DRIFTS_SHOWN)],
        heading="Since the former run",
    )


def _rules(check: Check, options: RenderOptions) -> Section:
    """``RULES``: those that are broken, and all with ``-v``, with what they allow and what was measured."""
    on = [each for each in check.rules if each.is_on]
    broken = {finding.rule for finding in check.findings}
    held = [str(each.rule) for each in on if each.rule not in broken]
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
    titles = columns("RULE", "RESULT", "MEASURED", "WHAT IT ASKS FOR")
    return Section(
        "RULES",
        f"{count(len(held), 'rule')} kept{f', {len(off):,} off' if off else ''}",
        [
            Table(titles, rows, noun="rule", caption="What the gate asks for", shown=_RULES_SHOWN, is_main=True),
            Sentence((Span("kept: ", "dim"), ", ".join(held)) if held and not options.is_full else ""),
            Sentence((Span("off: ", "dim"), ", ".join(off)) if off and options.is_full else ""),
        ],
    )


def _measured(rule: RuleResult) -> str:
    """``2 (limit 0)``; of a rule without a limit what there is to count."""
    is_time = rule.rule.row.takes is Takes.TIME
    amount, limit = (
        "" if number is None else format_duration(number) if is_time else f"{number:,}"
        for number in (rule.amount, rule.limit)
    )
    return f"{amount} (limit {limit})" if limit else amount if rule.amount else ""


def _result(rule: RuleResult) -> Phrase:
    others = ((rule.waived, "waived"), (rule.accepted, "accepted"), (rule.not_new, "not new"))
    told = [f"{number:,} {words}" for number, words in others if number]
    if rule.failures:
        result = Span(f"✗ {count(rule.failures, 'finding')}", "bad")
    elif rule.warnings:
        result = Span(f"! {count(rule.warnings, 'warning')}", "warn")
    else:
        result = Span("✓ holds", "good")
    return joined([result, *told])


def _changes(check: Check, options: RenderOptions) -> Section:
    """``CHANGES``: what becomes of each object; of a drain its nodes tell."""
    listed = [each for each in check.changes if each.kind is not ChangeKind.DRAINED]
    changed = [each for each in listed if each.kind is not ChangeKind.UNCHANGED]
    if isinstance(check, Drain) and not listed:
        return Section("CHANGES")
    same = f", {len(listed) - len(changed):,} unchanged" if len(changed) < len(listed) else ""
    rows: list[list[Words]] = [
        [
            strong(each.object),
            change_phrase(each),
            Span(full_place(each) if options.is_full else place_of(each).text, "code"),
        ]
        for each in (listed if options.is_full else changed)
    ]
    limit = None if options.verbose else _FIELDS_SHOWN
    fields = [[(name(each.object), ": ", *names(each.fields, limit=limit))] for each in changed if each.fields]
    table = Table(
        columns("OBJECT", "WHAT CHANGES", "WHERE"), rows, noun="object", shown=_CHANGES_SHOWN, is_untitled=True
    )
    short = Listing([[(strong(each.object), "  ", *change_phrase(each))] for each in changed], noun="object")
    return Section(
        "CHANGES",
        f"{count(len(changed), 'object')}{same}" if listed else "nothing",
        [table, *([Fold("The fields that differ", [Listing(fields, "object")])] if fields and options.is_full else [])],
        heading="What changes",
        is_reasoning=True,
        priority=_CHANGES if changed else 0,
        short=Section("CHANGES", blocks=[short]),
    )


def _outcomes(check: Check) -> Section:
    """``OUTCOMES``: what came up in several runs."""
    if not check.outcomes:
        return Section("OUTCOMES")
    least, most = check.evictions.least, check.evictions.most
    number = f"{'' if least == most else f'between {least:,} and '}{count(most, 'eviction')}"
    scope = "all that are possible" if check.explored_all else "others are possible"
    return Section(
        "OUTCOMES",
        f"{count(len(check.outcomes), 'kind')}, {number}; {scope}",
        [
            Listing(
                [
                    [(Span("✗ ", "bad") if each.fails else Span("✓ ", "good"), *outcome_phrase(each, check.runs))]
                    for each in check.outcomes
                ],
                noun="kind",
                shown=_OUTCOMES_SHOWN,
            )
        ],
        heading="Possible outcomes",
        is_reasoning=True,
    )


def _room(check: Check, options: RenderOptions) -> Section:
    """``ROOM``: what all nodes have left in the end; each node on which something changes with ``-v`` or as a map."""
    left = ", ".join(f"{key} {format_amount(key, check.spare[key])}" for key in in_order(check.spare))
    titles = ("CPU REQUESTED", "OF", "MEMORY REQUESTED", "OF", "PODS", "OF")
    rows: list[list[Words]] = []
    if options.verbose:
        rows = [[strong(each.node), *_amounts(each)] for each in check.nodes]
    maps = [Picture(partial(node_maps, check.nodes))] if check.nodes else []
    return Section(
        "ROOM",
        f"free on all nodes: {left}" if left else "",
        [*(maps if options.is_full else []), Table(columns("NODE", *titles, right=titles), rows, noun="node")],
        heading="Room on the nodes",
        anchor="nodes",
        is_reasoning=True,
    )


def _amounts(node: NodeRoom) -> Iterable[str]:
    for key in _RESOURCES:
        before, after = (format_amount(key, each.get(key, 0)) for each in (node.before, node.after))
        yield after if before == after else f"{before} → {after}"
        yield format_amount(key, node.allocatable.get(key, 0))


def _waivers(check: Check, options: RenderOptions) -> Section:
    """What waives the findings in ``kpreempt.toml``, to be copied from a document."""
    findings = failing(check)
    lines = [line for each in waive_tables(findings[:_TABLES_SHOWN]) for line in each.splitlines()]
    if len(findings) > _TABLES_SHOWN:
        lines.append(f"# and {count(len(findings) - _TABLES_SHOWN, 'more finding')}")
    is_shown = lines and options.extent is Extent.DOCUMENT
    blocks = [Fold("Waivers for the rules file", [Code(lines)])] if is_shown else []
    return Section("WAIVERS", blocks=blocks, heading="To waive what fails", is_reasoning=True)
