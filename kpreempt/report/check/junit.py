"""JUnit XML as Jenkins reads it (junit-10.xsd of its xUnit plugin): a suite with one test per rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from kpreempt.gate_rules import RuleId
from kpreempt.report.amounts import count
from kpreempt.report.check.causes import advice_of
from kpreempt.report.check.facts import (
    WORDS,
    drift_phrase,
    files_without_objects,
    gate_phrases,
    location_of,
    since_phrase,
    tally,
)
from kpreempt.report.check.summary import summary
from kpreempt.report.check.words import chain_phrase, finding_text, status_phrase
from kpreempt.report.escape import printable
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import plain
from kpreempt.verdict.check import Check, FindingStatus, GateFinding, RuleResult

_SUITE = "kpreempt check"
_CLASS = "kpreempt.check"
_FINDINGS_SHOWN = 100


def render(check: Check, options: RenderOptions) -> str:
    """A rule with failing findings fails; one that is off, or with only suppressed findings, is skipped with a reason.

    A rule that only warns passes and prints the warnings: JUnit has no warnings. There are no times, because a
    simulation has no meaningful duration.
    """
    since = {}
    if check.previous_run is not None:
        since["since"] = plain(since_phrase(check.previous_run, check))
        for number, each in enumerate(check.previous_run.drifts[:_FINDINGS_SHOWN], 1):
            since[f"since-{number}"] = plain((f"{WORDS[each.kind]}: ", *drift_phrase(each)))
    properties = {
        "passed": str(check.passed).lower(),
        "algorithm": check.algorithm,
        "runs": str(check.runs),
        "failing-runs": str(check.failing_runs),
        **{f"files-{number}": words for number, words in enumerate(files_without_objects(check), 1)},
        **{f"gate-{number}": plain(words) for number, words in enumerate(gate_phrases(check), 1)},
        **since,
    }
    known = {result.rule for result in check.rules}
    # Rules that only occur in findings come last.
    others = dict.fromkeys(finding.rule for finding in check.findings if finding.rule not in known)
    rules = [*check.rules, *(RuleResult(rule=rule) for rule in others)]
    cases = [_case(result, check, options) for result in rules]
    return suite(_SUITE, cases, properties, f"{summary(check)}. {', '.join(tally(check))}")


def suite(name: str, cases: Sequence[str], properties: Mapping[str, str], text: str) -> str:
    """A report with one suite; all text in the ``cases`` must already have been escaped with ``xml_text``."""
    failures, skipped = (sum(f"<{kind} " in case for case in cases) for kind in ("failure", "skipped"))
    numbers = f'tests="{len(cases)}" failures="{failures}" errors="0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="{name}" {numbers}>',
        f'  <testsuite name="{name}" {numbers} skipped="{skipped}">',
        "    <properties>",
        *(f'      <property name="{key}" value="{xml_text(value)}"/>' for key, value in properties.items()),
        "    </properties>",
        *cases,
        f"    <system-out>{xml_text(text)}</system-out>",
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(result: RuleResult, check: Check, options: RenderOptions) -> str:
    page = options.page_of(result.rule)
    findings = [finding for finding in check.findings if finding.rule is result.rule]
    failing = [finding for finding in findings if finding.status is FindingStatus.FAILS]
    name = xml_text(f"{result.rule}: {result.rule.row.promise}")
    start = f'    <testcase classname="{_CLASS}" name="{name}"'
    if failing:
        more = f" (and {count(len(failing) - 1, 'more finding')})" if len(failing) > 1 else ""
        message = xml_text(f"{finding_text(failing[0])}{more}")
        inner = f'<failure type="{result.rule}" message="{message}">{_body(failing, page)}</failure>'
        if forgiven := [finding for finding in findings if finding not in failing]:
            inner += f"\n      <system-out>{_body(forgiven, page)}</system-out>"
    elif warned := [finding for finding in findings if finding.status is FindingStatus.WARNS]:
        inner = (
            "<system-out>warning: "
            f"{_body([*warned, *(each for each in findings if each not in warned)], page)}</system-out>"
        )
    elif findings:
        more = f" (and {count(len(findings) - 1, 'more finding')})" if len(findings) > 1 else ""
        message = xml_text(f"{plain(status_phrase(findings[0]))}{more}")
        inner = f'<skipped type="{findings[0].status}" message="{message}">{_body(findings, page)}</skipped>'
    elif not result.is_evaluated:
        inner = '<skipped type="NotEvaluated" message="not evaluated: the input lacks nodes or pods"/>'
    elif not result.is_on:
        inner = '<skipped type="Off" message="the rule is off"/>'
    else:
        return f"{start}/>"
    return f"{start}>\n      {inner}\n    </testcase>"


def _body(findings: list[GateFinding], page: str) -> str:
    """The findings, each with its place, then the fixes and the page about the rule."""
    lines = []
    for finding in findings[:_FINDINGS_SHOWN]:
        lines.append(xml_text(finding_text(finding)))
        details = [location_of(finding).text, plain(status_phrase(finding))]
        if finding.chain and finding.rule is not RuleId.MAX_CASCADE_DEPTH:
            details.append(plain(chain_phrase(finding.chain)))
        lines += [f"  {xml_text(detail)}" for detail in details if detail]
    if rest := len(findings) - _FINDINGS_SHOWN if len(findings) > _FINDINGS_SHOWN else 0:
        lines.append(f"… and {count(rest, 'more finding')}")
    fixes = [*dict.fromkeys(map(advice_of, findings)), *([page] if page else [])]
    return "\n".join([*lines, *map(xml_text, fixes)])


def xml_text(text: str) -> str:
    """Text for elements and attributes, without characters that XML 1.0 forbids and without markup."""
    return escape(printable(text))
