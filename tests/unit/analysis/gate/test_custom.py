"""Custom rules: an expression on the printed data that must be true."""

from __future__ import annotations

import json
from datetime import date

import msgspec
import pytest

from kpreempt.analysis.check.gate import (
    VARIABLES,
    CustomRule,
    GateRules,
    Suppressions,
    Waiver,
    baseline_text,
    read_baseline,
    with_custom_rules,
)
from kpreempt.cel.documents import compile_rule
from kpreempt.errors import InputError
from kpreempt.gate_rules import RuleId, RuleSeverity
from kpreempt.report.answers import CHECK_FORMATS, render_answer
from kpreempt.report.document import indented
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, FindingStatus
from tests.checks import passed, quiet_check, replaced, whole_check

TODAY = date(2026, 11, 21)
OPEN = Suppressions(today=TODAY)


def own(expression: str, name: str = "own", severity: RuleSeverity = RuleSeverity.ERROR) -> CustomRule:
    rule = RuleId.of_expression(name, expression, severity)
    return CustomRule(rule=rule, expression=compile_rule(expression, VARIABLES), message="it is so")


def put(check: Check, *rules: CustomRule, gate: GateRules | None = None, suppressions: Suppressions = OPEN) -> Check:
    return with_custom_rules(check, rules, gate or GateRules(), suppressions)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("result.passed", False),
        ("!result.passed && result.simulation.displaced.size() == 3", True),
        ("result.simulation.workloads.all(w, w.workload != 'Deployment shop/web' || w.readyMin > 0)", False),
        ("result.findings.filter(f, f.rule == 'max-victims').all(f, f.amount <= 3)", True),
        ("result.changes.exists(c, c.kind == 'Rolled' && c.replicas > c.replicasBefore)", True),
        ("result.evictions.max < 3", False),
        ("has(result.simulation.displaced[0].violated)", True),
        ("has(result.simulation.displaced[1].violated)", False),
    ],
)
def test_the_expression_is_evaluated_on_what_is_printed(expression: str, holds: bool) -> None:
    check = put(whole_check(), own(expression))
    assert [each.subject for each in check.findings if each.rule == "own"] == ([] if holds else ["cluster"])
    (result,) = (each for each in check.rules if each.rule == "own")
    assert (result.failures, result.is_on) == (0 if holds else 1, True)


def test_what_is_printed_is_the_document_itself() -> None:
    document = json.loads(indented(whole_check()))
    text = json.dumps(document["changes"][0]["object"])
    assert put(whole_check(), own(f"result.changes[0].object == {text}")).findings == whole_check().findings
    assert put(whole_check(), own("result.apiVersion == 'kpreempt.io/v1alpha1'")).findings == whole_check().findings


def test_a_rule_that_does_not_hold_shuts_the_gate_in_all_runs() -> None:
    check = put(replaced(passed(), runs=4), own("false"))
    assert (check.passed, check.failing_runs, check.failing_share) == (False, 4, 1.0)
    (found,) = check.findings
    assert (found.detail, found.status, found.in_runs, found.of_runs) == ("it is so", FindingStatus.FAILS, 4, 4)
    assert put(passed(), own("true")).passed


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("result.nosuch == 1", "no such key: nosuch"),
        ("result.evictions.max / 0 == 1", "division by zero"),
        ("result.changes[9].kind == 'x'", "index out of bounds: 9"),
        ("result.passed == true ? result.seed : result.seed", ""),
        ("result.simulation.steps.all(a, result.simulation.steps.all(b,"
         " result.simulation.steps.all(c, result.simulation.steps.all(d, true))))"
         " && result.simulation.steps.all(a, result.simulation.steps.all(b,"
         " result.simulation.steps.all(c, result.simulation.steps.all(d, "
         "a.at + b.at + c.at + d.at >= 0.0))))", "cost limit"),
    ],
    ids=["a key that is missing", "an arithmetic error", "an index", "no truth", "too much work"],
)  # fmt: skip
def test_an_expression_that_cannot_be_evaluated_fails_closed(expression: str, error: str) -> None:
    check = put(replaced(whole_check(), findings=[], passed=True), own(expression))
    (found,) = check.findings
    assert not check.passed
    assert found.detail.startswith("it is so (uncertain: the expression cannot be evaluated: ")
    assert error in found.detail


def test_what_the_order_of_a_map_decides_fails_closed() -> None:
    check = put(passed(), own("result.free.map(k, k)[0] != ''"))
    assert [each.detail for each in check.findings] == ["it is so (uncertain: depends on the order of a map)"]


def test_a_rule_that_warns_lets_the_change_pass_and_one_that_is_off_is_not_evaluated() -> None:
    warned = put(passed(), own("false", severity=RuleSeverity.WARN))
    assert (warned.passed, [each.status for each in warned.findings]) == (True, [FindingStatus.WARNS])
    rule = own("false")
    off = put(passed(), rule, gate=GateRules(severities={rule.rule: RuleSeverity.OFF}))
    assert (off.passed, off.findings, off.rules[-1].is_on) == (True, [], False)
    assert put(passed(), rule, gate=GateRules(report_only=True)).passed


def test_waivers_and_the_baseline_let_it_pass() -> None:
    rule = own("false")
    waived = put(passed(), rule, suppressions=Suppressions(today=TODAY, waivers=[Waiver(rule=rule.rule, by="--waive")]))
    assert (waived.passed, waived.findings[0].status) == (True, FindingStatus.WAIVED)
    text = baseline_text(put(passed(), rule).findings, TODAY)
    baseline = read_baseline(text.encode(), "b.json", [rule.rule])
    accepted = put(passed(), rule, suppressions=Suppressions(today=TODAY, baseline=baseline))
    assert (accepted.passed, accepted.findings[0].status) == (True, FindingStatus.ACCEPTED)
    with pytest.raises(InputError, match='unknown rule "own"'):
        read_baseline(text.encode(), "b.json")


def test_several_rules_keep_their_order_and_see_the_findings_of_those_that_come_with_kpreempt() -> None:
    check = put(whole_check(), own("false", "b"), own("result.findings.size() == 4", "c"), own("false", "a"))
    assert [str(each.rule) for each in check.findings[4:]] == ["b", "a"]
    assert [str(each.rule) for each in check.rules[-3:]] == ["b", "c", "a"]


@pytest.mark.parametrize("format_", [each for each in CHECK_FORMATS if each != "name"])
def test_every_format_tells_it(format_: str) -> None:
    check = put(quiet_check(), own("1 > 2", "one-is-more"))
    shown = render_answer(check, format_, RenderOptions(width=100))
    assert "one-is-more" in shown
    assert "it is so" in shown


def test_sarif_has_the_rule_and_its_place_in_the_list() -> None:
    (run,) = json.loads(render_answer(put(quiet_check(), own("1 > 2", "one-is-more")), "sarif", RenderOptions()))[
        "runs"
    ]
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (rule["id"], rule["fullDescription"]["text"][-5:]) == ("one-is-more", "1 > 2")


def test_a_rule_of_ones_own_is_none_of_those_that_come_with_kpreempt() -> None:
    rule = RuleId.of_expression("own", "true")
    assert rule not in list(RuleId)
    assert (rule.is_custom, RuleId.MAX_VICTIMS.is_custom) == (True, False)
    assert msgspec.json.encode([rule]) == b'["own"]'
