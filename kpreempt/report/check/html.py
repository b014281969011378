"""A check as a page: one file that needs nothing else, can be searched, and reads on a screen and on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from kpreempt.gate_rules import RuleId
from kpreempt.report.amounts import count, format_snapshot
from kpreempt.report.check.causes import Cause, advice_of, cause_phrase, causes, waive_tables
from kpreempt.report.check.gate import gate_phrases, is_qualified
from kpreempt.report.check.html_tables import changes, drifts, node_maps, outcomes
from kpreempt.report.check.summary import summary_phrase
from kpreempt.report.check.words import waive_option
from kpreempt.report.drain.sections import Item, Section, sections
from kpreempt.report.html.markup import (
    Html,
    badge,
    clock,
    cut_note,
    fold,
    join,
    message,
    name,
    names,
    place,
    table,
    tag,
    text,
    within,
)
from kpreempt.report.html.page import Part, banner, footer, whole_page
from kpreempt.report.html.parts import assumptions
from kpreempt.report.html.phrases import phrase
from kpreempt.report.html.search import search_box
from kpreempt.report.html.simulation import budgets, displacement, stranded, waiting, workloads
from kpreempt.report.html.timeline import timeline
from kpreempt.report.layout import plain
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, GateStanding, RuleResult
from kpreempt.verdict.simulation import Displaced
from kpreempt.verdict.unread import are_budgets_unread

_RULES_LIMIT = 60_000
_FINDINGS_LIMIT = 250_000
_FINDINGS_SHOWN = 30
_PODS_SHOWN = 50
_CHAIN_SHOWN = 40
_WAIVERS_SHOWN = 5
_WAIVER_SHOWN = 400
# So many victims, or so large a share of all pods, are worth a look though nobody forbids them.
_MANY_VICTIMS = 10
_LARGE_SHARE = 0.1
# Between a victim and what takes its place, in the links of a chain.
_BECOMES = " → "
_ONLY_IF_ANY = frozenset({"warnings", "known or waived"})
STANDINGS = {
    GateStanding.FAILS: ("fails", "bad"),
    GateStanding.WARNS: ("warns", "warn"),
    GateStanding.NOT_NEW: ("not new", "warn"),
    GateStanding.ACCEPTED: ("accepted", "warn"),
    GateStanding.WAIVED: ("waived", "warn"),
}


def render(check: Check, options: RenderOptions) -> str:
    """The whole document, below 2 MB whatever the check holds: what is cut says so. Equal checks give equal bytes.

    With ``verbose`` everything is unfolded. Otherwise ``options`` do not matter: a page fits its window, has its own
    colours, and tells times as they are.
    """
    simulation = check.simulation
    parts = [
        *map(_section, sections(check)),
        Part("findings", "Findings", "Findings", findings(check, options)),
        Part("since", "Since", "Since the former run", drifts(check)),
        Part("rules", "Rules", "Rules", rules(check, options)),
        Part("changes", "What changes", "What changes", changes(check)),
        Part("timeline", "Timeline", "Timeline", timeline(simulation)),
        Part("victims", "Evicted", "Evicted pods", displacement(simulation)),
        Part("nodes", "Nodes", "Nodes that change", node_maps(check.nodes, check.spare)),
        Part("budgets", "Budgets", "Disruption budgets", budgets(simulation)),
        Part("workloads", "Workloads", "Workloads", workloads(simulation)),
        Part("waiting", "Pending", "What is pending in the end", waiting(simulation)),
        Part("stranded", "Stranded", "What is stranded", stranded(simulation)),
        Part("outcomes", "Outcomes", "Possible outcomes", outcomes(check)),
        Part("assumptions", "Assumptions", "Assumptions", assumptions(check.assumptions)),
    ]
    title = f"kpreempt {check.kind.lower()}: {_verdict(check)}"
    ends = footer(check.kind.lower(), check.api_version)
    standings = dict.fromkeys(STANDINGS[each.standing][0] for each in check.findings)
    search = search_box(standings)
    return whole_page(title, _banner(check, options), parts, ends, is_unfolded=options.verbose, search=search)


def _section(section: Section) -> Part:
    """What is told beyond a check."""
    title = section.title.capitalize()
    shown, rest = within(_told, section.items, _RULES_LIMIT)
    head = [tag("p", text(section.words))] if section.words else []
    return Part(
        section.title.replace(" ", "-"), title, title, join([*head, tag("ul", *shown), cut_note(rest, section.noun)])
    )


def _told(item: Item) -> Html:
    """What is so, and what helps."""
    details = [tag("div", phrase(each)) for each in item.details]
    helps = [tag("div", tag("strong", "what helps: "), phrase(each)) for each in item.helps]
    return tag("li", phrase(item.phrase), *details, *helps)


def _verdict(check: Check) -> str:
    return "passed" if check.passed else "failed"


def _banner(check: Check, options: RenderOptions) -> Html:
    tone, sign = ("good", "✓") if check.passed else ("bad", "✗")
    if check.passed and _is_to_be_looked_at(check):
        tone, sign = "warn", "!"
    title = join([f"kpreempt {check.kind.lower()}: ", tag("span", f"{sign} {_verdict(check)}")])
    return banner(tone, title, _counts(check), _facts(check, options), join([phrase(summary_phrase(check)), "."]))


def _is_to_be_looked_at(check: Check) -> bool:
    """Whether a pass is to be looked at: something is warned of, a rule counts for less, or much is evicted."""
    victims = max(len(check.simulation.displaced), check.evictions.most)
    is_much = victims >= _MANY_VICTIMS or (victims > 1 and victims >= check.cluster.pods * _LARGE_SHARE)
    is_down = any(each.ready_before and not each.ready_least and each.victims for each in check.simulation.workloads)
    warns = any(each.standing is GateStanding.WARNS for each in check.findings)
    return is_much or is_down or warns or is_qualified(check)


def _counts(check: Check) -> list[tuple[str, int, bool]]:
    simulation = check.simulation
    failures = sum(rule.failures for rule in check.rules)
    violations = sum(budget.violations for budget in simulation.budgets)
    waits = sum(pod.was_running for pod in simulation.waiting)
    known = sum(rule.waived + rule.accepted + rule.not_new for rule in check.rules)
    counts = [
        ("rules fail", sum(rule.failures > 0 for rule in check.rules), failures > 0),
        ("findings", failures, failures > 0),
        ("warnings", sum(rule.warnings for rule in check.rules), False),
        ("known or waived", known, False),
        ("pods evicted", len(simulation.displaced), False),
        *([] if are_budgets_unread(check.assumptions) else [("against budgets", violations, violations > 0)]),
        ("evictions in a chain", simulation.depth, False),
        ("that ran left pending", waits, waits > 0),
    ]
    return [(label, number, is_bad) for label, number, is_bad in counts if number or label not in _ONLY_IF_ANY]


def _facts(check: Check, options: RenderOptions) -> str:
    cluster = check.cluster
    facts = [f"{count(cluster.nodes, 'node')}, {count(cluster.pods, 'pod')}"]
    if cluster.version:
        facts.append(f"Kubernetes {cluster.version}")
    facts.append(f"algorithm {check.algorithm}")
    if cluster.taken_at is not None:
        facts.append(format_snapshot(cluster.taken_at))
    facts += options.facts_of_time(check.at)
    if check.runs > 1:
        facts.append(f"the worst of {check.runs:,} runs (seed {check.seed:,})")
    facts += map(plain, gate_phrases(check))
    return " · ".join(facts)


def rules(check: Check, options: RenderOptions) -> Html:
    """The table of rules."""
    columns = ("Rule", "Result", "Measured", "Allowed")
    return table(
        "What the gate asks for", columns, partial(_row, options=options), check.rules, limit=_RULES_LIMIT, what="rules"
    )


def _row(rule: RuleResult, options: RenderOptions) -> list[str]:
    words = rule.rule.row.promise
    title = join([words[:1].upper() + words[1:], " ", tag("small", _linked(rule.rule, options), class_="dim")])
    if not rule.is_on:
        return [title, badge("off", "dim"), "", ""]
    limit = "" if rule.limit is None else f"{rule.limit:,}"
    measured = f"{rule.amount:,}" if rule.limit is not None or rule.amount else ""
    return [title, _result(rule), measured, limit]


def _linked(rule: RuleId, options: RenderOptions) -> Html:
    page = options.page_of(rule)
    return tag("a", tag("bdi", str(rule)), href=page) if page else tag("bdi", str(rule))


def _result(rule: RuleResult) -> Html:
    others = {"waived": rule.waived, "accepted": rule.accepted, "not new": rule.not_new}
    told = ", ".join(f"{number:,} {words}" for words, number in others.items() if number)
    result = badge(f"! warns, {rule.warnings:,} of it", "warn") if rule.warnings else badge("✓ holds", "good")
    if rule.failures:
        result = badge("✗ fails", "bad")
        told = ", ".join(filter(None, [f"{rule.failures:,} new" if told else "", told]))
    return join([result, f" {told}" if told else ""])


def findings(check: Check, options: RenderOptions) -> Html:
    """A card for each cause, those first that shut the gate."""
    if not check.findings:
        return tag("p", "Nothing breaks a rule.")
    order = list(STANDINGS)
    victims: dict[str, Displaced] = {}
    for each in check.simulation.displaced:
        victims.setdefault(each.pod, each)
    ranked = causes(sorted(check.findings, key=lambda finding: order.index(finding.standing)))
    cards, left = within(partial(_card, victims=victims, options=options), ranked, _FINDINGS_LIMIT)
    # What shuts the gate is seen at once; what is waived or known unfolds where it is much.
    shown = max(_FINDINGS_SHOWN // 3, sum(each.first.standing.counts for each in ranked))
    shown = min(shown, _FINDINGS_SHOWN)
    found = join(cards[:shown])
    if cards[shown:]:
        found += fold(f"{len(cards) - shown:,} more findings", join(cards[shown:]))
    return found + cut_note(left, "findings")


def _card(cause: Cause, victims: Mapping[str, Displaced], options: RenderOptions) -> Html:
    finding = cause.first
    word, tone = STANDINGS[finding.standing]
    sentence = plain(cause_phrase(cause))
    title = tag("h3", badge(word, tone), " ", sentence)
    facts: list[tuple[str, Html]] = []
    # Not every rule's sentence says it.
    if finding.detail.rstrip().removesuffix(".") not in sentence:
        facts.append(("detail", message(finding.detail)))
    if finding.change:
        facts.append(("brought about by", name(finding.change)))
    if written := place(finding.source, finding.line, finding.origin):
        facts.append(("written in", name(written)))
    if finding.since:
        facts.append(("from", text(f"{clock(finding.since)} on")))
    if cause.pods:
        facts.append(("pods", names(cause.pods, limit=_PODS_SHOWN)))
    if finding.standing.counts:
        facts.append(("what helps", text(advice_of(finding))))
        facts.append(("to waive it", _waivers(cause)))
    if finding.reason or finding.by:
        by = join([" (", name(finding.by), ")"]) if finding.by else Html("")
        facts.append((f"{word} because", join([finding.reason, by])))
    if finding.expires:
        facts.append(("until", text(finding.expires)))
    if len(finding.chain) > 1:
        facts.append(("one after the other", _chain(finding.chain, victims)))
    facts.append(("rule", _linked(finding.rule, options)))
    listed = join(tag("dt", label) + tag("dd", value) for label, value in facts)
    look = "known" if tone == "warn" and word != "warns" else word
    article = tag("article", title, tag("dl", listed), class_=f"card {look}", data_standing=word)
    return article + Html("\n")


def _waivers(cause: Cause) -> Html:
    """What waives each of its findings, to be copied: the option, or entries of kpreempt.toml."""
    shown = cause.findings[:_WAIVERS_SHOWN]
    options = tag("pre", join((tag("bdi", waive_option(each)) for each in shown), Html("\n")))
    lines = "\n".join(waive_tables(shown)).splitlines()
    entries = tag("pre", tag("bdi", join((text(line, limit=_WAIVER_SHOWN) for line in lines), Html("\n"))))
    return join([options, fold("in kpreempt.toml", entries), cut_note(len(cause.findings) - len(shown), "waivers")])


def _chain(pods: Sequence[str], victims: Mapping[str, Displaced]) -> Html:
    """The links as steps with arrows between them: of a victim where it was, and what takes its place."""
    steps = [tag("li", tag("span", _link(link, victims))) for link in pods[:_CHAIN_SHOWN]]
    if len(pods) > _CHAIN_SHOWN:
        steps.append(tag("li", tag("span", f"{len(pods) - _CHAIN_SHOWN:,} more")))
    return tag("ol", *steps, class_="chain")


def _link(link: str, victims: Mapping[str, Displaced]) -> Html:
    pod, _, replacement = link.partition(_BECOMES)
    victim = victims.get(pod)
    was = tag("small", f"has to leave {victim.node}, priority {victim.priority:,}") if victim else Html("")
    then = tag("small", f"in its place: {replacement}") if replacement else Html("")
    return name(pod) + was + then
