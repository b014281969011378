"""Where the rules are from, and which count for less than by default: every format of the report tells."""

from __future__ import annotations

from datetime import date

import pytest

from kpreempt.analysis.check.gate import ForbiddenVictims, GateRules, Override, Suppressions, Waiver, source_of
from kpreempt.gate_rules import RuleId, RuleSeverity
from kpreempt.report.answers import render_answer
from kpreempt.report.check.facts import verdict_phrase
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import plain
from kpreempt.verdict.check import GateSource
from tests.checks import passed, replaced, rule

TODAY = date(2026, 11, 21)
LOOSE = GateSource(
    config="HEAD^1:kpreempt.toml",
    baseline="HEAD^1:accepted.json",
    off=["max-broken-dependencies", "max-pending (namespace dev)"],
    warn_only=["lost-pods"],
    waived=["max-victims (Deployment shop/api)"],
    raised=["max-cascade-depth 9"],
)


def reported(rules: GateRules, *waivers: Waiver) -> GateSource:
    return source_of(rules, Suppressions(today=TODAY, waivers=waivers), config="", baseline="")


@pytest.mark.parametrize("form", ["text", "json", "yaml", "markdown", "html", "junit", "sarif", "github", "gitlab"])
def test_every_report_tells_of_the_gate(form: str) -> None:
    shown = render_answer(replaced(passed(), gate=LOOSE), form, RenderOptions(width=400))
    for words in ("kpreempt.toml", "max-broken-dependencies", "lost-pods", "max-victims", "max-cascade-depth 9"):
        assert words in shown


def test_a_pass_with_rules_that_are_off_does_not_keep_all_rules() -> None:
    whole = replaced(passed(), rules=[rule(each) for each in RuleId])
    assert plain(verdict_phrase(whole)) == "All rules pass"
    assert plain(verdict_phrase(replaced(whole, gate=LOOSE))) == "All enabled rules pass"


def test_the_rules_by_default_are_loosened_by_nothing() -> None:
    assert reported(GateRules()) == GateSource()
    assert (
        reported(GateRules(limits={RuleId.MAX_VICTIMS: 7}, forbidden=[ForbiddenVictims(namespace="a")])) == GateSource()
    )


def test_what_is_off_raised_or_only_warns_is_listed_with_what_it_is_for() -> None:
    rules = GateRules(
        limits={RuleId.MAX_BROKEN_DEPENDENCIES: None, RuleId.MAX_CASCADE_DEPTH: 9},
        overrides=[Override(namespace="dev", limits={RuleId.MAX_PENDING: None})],
        severities={RuleId.LOST_PODS: RuleSeverity.WARN, RuleId.FORBID_LOOPS: RuleSeverity.OFF},
    )
    found = reported(rules)
    assert set(found.off) == {"max-broken-dependencies", "max-pending (namespace dev)", "forbid-loops"}
    assert (found.warn_only, found.raised) == (["lost-pods"], ["max-cascade-depth 9"])


def test_a_waiver_that_does_not_count_waives_nothing() -> None:
    counts = Waiver(rule=RuleId.MAX_PENDING, subject="Deployment dev/*", by="kpreempt.toml")
    over = Waiver(rule=RuleId.MAX_BROKEN_DEPENDENCIES, by="kpreempt.toml", expires=date(2026, 11, 20))
    passed_over = Waiver(rule=RuleId.MAX_BROKEN_DEPENDENCIES, change="Deployment dev/api", reason="x", is_ignored=True)
    assert reported(GateRules(), counts, over, passed_over).waived == ["max-pending (Deployment dev/*)"]


def test_report_only_is_a_gate_of_which_every_rule_only_warns() -> None:
    found = reported(GateRules(report_only=True))
    assert str(RuleId.MAX_BROKEN_DEPENDENCIES) in found.warn_only
