"""The rules of the gate, and each finding with what brings it about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from kpreempt.report.check_html_markup import (
    Html,
    badge,
    cut_note,
    fold,
    join,
    message,
    name,
    names,
    section,
    table,
    tag,
    text,
    within,
)
from kpreempt.report.check_html_words import STANDINGS, clock, place
from kpreempt.report.check_words import finding_text
from kpreempt.verdict.check import Check, GateFinding, GateStanding, RuleResult
from kpreempt.verdict.play import Displaced

_TABLE_LIMIT = 60_000
_FINDINGS_LIMIT = 250_000
_FINDINGS_SHOWN = 30
_PODS_SHOWN = 50
_CHAIN_SHOWN = 40
# Between a victim and what takes its place, in the links of a chain.
_BECOMES = " → "


def rules(check: Check) -> Html:
    """The table of rules, and the findings of each that is broken: first those that shut the gate."""
    columns = ("Rule", "Result", "Measured", "Allowed")
    overview = table("What the gate asks for", columns, _row, check.rules, limit=_TABLE_LIMIT, what="rules")
    return section("rules", "Rules", overview, _findings(check))


def _row(rule: RuleResult) -> list[str]:
    words = rule.rule.row.promise
    title = join([words[:1].upper() + words[1:], " ", tag("small", tag("bdi", rule.rule.value), class_="dim")])
    if not rule.is_on:
        return [title, badge("off", "dim"), "", ""]
    limit = "" if rule.limit is None else f"{rule.limit:,}"
    measured = f"{rule.amount:,}" if rule.limit is not None or rule.amount else ""
    return [title, _result(rule), measured, limit]


def _result(rule: RuleResult) -> Html:
    others = {"waived": rule.waived, "accepted": rule.accepted, "not new": rule.not_new}
    told = ", ".join(f"{number:,} {words}" for words, number in others.items() if number)
    result = badge(f"✗ fails, {rule.failures:,} of it", "bad") if rule.failures else badge("✓ holds", "good")
    if rule.failures:
        result = badge("✗ fails", "bad")
        told = ", ".join(filter(None, [f"{rule.failures:,} new" if told else "", told]))
    return join([result, f" {told}" if told else ""])


def _findings(check: Check) -> Html:
    if not check.findings:
        return tag("p", "Nothing breaks a rule.")
    order = list(STANDINGS)
    victims: dict[str, Displaced] = {}
    for each in check.play.displaced:
        victims.setdefault(each.pod, each)
    ranked = sorted(check.findings, key=lambda finding: order.index(finding.standing))
    cards, left = within(partial(_card, victims=victims), ranked, _FINDINGS_LIMIT)
    # What shuts the gate is seen at once; what is waived or known unfolds where it is much.
    shown = max(_FINDINGS_SHOWN // 3, sum(each.standing is GateStanding.FAILS for each in ranked))
    shown = min(shown, _FINDINGS_SHOWN)
    found = tag("h3", "Findings") + join(cards[:shown])
    if cards[shown:]:
        found += fold(f"{len(cards) - shown:,} more findings", join(cards[shown:]))
    return found + cut_note(left, "findings")


def _card(finding: GateFinding, victims: Mapping[str, Displaced]) -> Html:
    word, tone = STANDINGS[finding.standing]
    fails = finding.standing is GateStanding.FAILS
    sentence = finding_text(finding)
    title = tag("h4", badge(word, tone), " ", sentence)
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
    if finding.pods:
        facts.append(("pods", names(finding.pods, limit=_PODS_SHOWN)))
    if finding.reason or finding.by:
        by = join([" (", name(finding.by), ")"]) if finding.by else Html("")
        facts.append((f"{word} because", join([finding.reason, by])))
    if finding.expires:
        facts.append(("until", text(finding.expires)))
    if len(finding.chain) > 1:
        facts.append(("one after the other", _chain(finding.chain, victims)))
    facts.append(("rule", tag("bdi", finding.rule.value)))
    listed = join(tag("dt", label) + tag("dd", value) for label, value in facts)
    return tag("article", title, tag("dl", listed), class_=f"card {'fails' if fails else 'known'}") + Html("\n")


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
