"""Rules of one's own, as expressions over the answer: what ``-o json`` prints is ``result``, and they must be true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from kpreempt.analysis.check.gate.case import CLUSTER, Measure, Part
from kpreempt.analysis.check.gate.evaluate import judged_apart, passes
from kpreempt.analysis.check.gate.excuses import Excuses
from kpreempt.analysis.check.gate.rules import GateRules
from kpreempt.gate_rules import RuleId
from kpreempt.verdict.check import Check

if TYPE_CHECKING:
    from kpreempt.cel.documents import Rule

VARIABLES = ("result",)
SomeCheck = TypeVar("SomeCheck", bound=Check)


class CustomRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule by its name: the ``expression`` that must be true, and the ``message`` of its finding where it is not."""

    rule: RuleId
    expression: Rule
    message: str


def with_custom_rules(check: SomeCheck, custom: Sequence[CustomRule], rules: GateRules, excuses: Excuses) -> SomeCheck:
    """The answer with these rules put to it, after those that come with kpreempt, of which ``result`` has the findings.

    Whether one holds is asked once, of the answer over all runs. An expression that cannot be evaluated is a finding.
    """
    if not custom:
        return check
    # What is printed, without what is not written because it has its default.
    result = msgspec.json.decode(msgspec.json.encode(check))
    broken = list(_measures(custom, result, rules))
    results, findings = judged_apart([each.rule for each in custom], broken, rules, excuses)
    findings = [msgspec.structs.replace(each, in_runs=check.runs, of_runs=check.runs) for each in findings]
    fails = not passes(results)
    return msgspec.structs.replace(
        check,
        passed=check.passed and not fails,
        rules=[*check.rules, *results],
        findings=[*check.findings, *findings],
        failing_runs=check.runs if fails else check.failing_runs,
        failing_share=1.0 if fails else check.failing_share,
    )


def _measures(custom: Sequence[CustomRule], result: object, rules: GateRules) -> Iterable[Measure]:
    from kpreempt.cel import EvaluationError  # noqa: PLC0415 - few gates have rules of their own

    for each in custom:
        if not rules.is_on(each.rule):
            continue
        try:
            is_true = each.expression.evaluate({"result": result})
            if is_true and not each.expression.by_chance:
                continue
            detail = f"{each.message}, or not: the order of a map decides" if is_true else each.message
        except EvaluationError as error:
            detail = f"{each.message}, or not: the expression cannot be evaluated: {error}"
        yield Measure(rule=each.rule, subject=CLUSTER, parts=[Part(amount=1)], is_broken=True, detail=detail)
