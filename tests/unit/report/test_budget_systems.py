"""What systems of CI get of an audit of budgets: valid by their schemas, every finding, nothing unread as a pass."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import msgspec
import pytest
import xmlschema

from kpreempt.report.answers import BUDGET_FORMATS, render_answer
from kpreempt.report.escape import is_hidden
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.budgets import AuditedBudget, BudgetAudit, Finding, FindingId, Severity
from tests.checks import HOSTILE

SCHEMAS = Path(__file__).parents[2] / "schemas"
GOLDEN = Path(__file__).parents[3] / "fixtures/golden-answers/budgets.json"
EMPTY = BudgetAudit(algorithm="kube-1.36")
UNREAD = BudgetAudit(
    algorithm="kube-1.36",
    assumptions=[Assumption("PodDisruptionBudget", "list", "could not be read", AssumptionKind.UNREADABLE)],
)


@cache
def audited() -> BudgetAudit:
    """Errors, warnings and notes, of most kinds."""
    return msgspec.json.decode(GOLDEN.read_bytes(), type=BudgetAudit)


def finding(finding_id: FindingId, severity: Severity, **fields: Any) -> Finding:
    return Finding(id=finding_id, severity=severity, namespace="shop", subject="PodDisruptionBudget web", **fields)


def hostile() -> BudgetAudit:
    items = [
        AuditedBudget(
            budget=f"{text}/{text}",
            selector=text,
            findings=[
                Finding(
                    id=each, severity=severity, namespace=text, subject=f"PodDisruptionBudget {text}", pods=[text, text]
                )
                for each in (FindingId.SELECTS_NOTHING, FindingId.ALLOWS_NONE_NOW, FindingId.OVERLAP)
                for severity in Severity
            ],
        )
        for text in HOSTILE
    ]
    return BudgetAudit(items=items, assumptions=[Assumption(text, text, text) for text in HOSTILE])


AUDITS = {"of a cluster": audited, "empty": lambda: EMPTY, "unread": lambda: UNREAD, "of hostile names": hostile}
each_audit = pytest.mark.parametrize("audit", AUDITS.values(), ids=AUDITS.keys())


def written(audit: BudgetAudit, format_name: str) -> str:
    return render_answer(audit, format_name, RenderOptions())


def suite_of(audit: BudgetAudit) -> ElementTree.Element:
    suite = ElementTree.fromstring(written(audit, "junit")).find("testsuite")
    assert suite is not None
    return suite


@each_audit
def test_sarif_is_valid_and_has_every_finding(audit: Any) -> None:
    text = written(audit(), "sarif")
    schema = json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(schema).validate(json.loads(text))
    [run] = json.loads(text)["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert {*FindingId} < {rule["id"] for rule in rules}
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    reported = [result["ruleId"] for result in run["results"] if result["ruleId"] != "not-read"]
    assert reported == [each.id for each in audit().findings]


@each_audit
def test_junit_is_valid_and_fails_for_errors(audit: Any) -> None:
    xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd").validate(written(audit(), "junit"))
    suite = suite_of(audit())
    failing = {
        case.attrib["name"].partition(":")[0] for case in suite.iter("testcase") if case.find("failure") is not None
    }
    errors = {each.id for each in audit().findings if each.severity is Severity.ERROR}
    assert failing - {"not-read"} == errors
    assert int(suite.attrib["failures"]) == len(failing)
    assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))


@each_audit
def test_gitlab_has_an_issue_with_a_fingerprint_of_its_own_for_each(audit: Any) -> None:
    issues = json.loads(written(audit(), "gitlab"))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    assert len([issue for issue in issues if issue["check_name"] != "not-read"]) == len(audit().findings)
    for issue in issues:
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert issue["location"]["path"]
        assert issue["location"]["lines"]["begin"] == 1


@each_audit
def test_github_has_a_command_a_line_and_ten_of_a_kind_at_most(audit: Any) -> None:
    lines = written(audit(), "github").splitlines()
    for kind in ("error", "warning", "notice"):
        assert sum(line.startswith(f"::{kind} title=kpreempt budgets") for line in lines) <= 10
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)
    assert (
        any(line.startswith("::error ") for line in lines)
        == any(each.severity is Severity.ERROR for each in audit().findings)
        or audit() is UNREAD
    )


@each_audit
@pytest.mark.parametrize("format_name", ["sarif", "junit", "github", "gitlab"])
def test_no_format_hides_a_character(audit: Any, format_name: str) -> None:
    assert not [each for each in written(audit(), format_name) if is_hidden(each) and each != "\n"]


@pytest.mark.parametrize(
    ("format_name", "words"),
    [
        pytest.param("sarif", '"level": "error"', id="sarif"),
        pytest.param("junit", '<failure type="not-read"', id="junit"),
        pytest.param("github", "::error title=kpreempt budgets%3A not-read::", id="github"),
        pytest.param("gitlab", '"check_name": "not-read"', id="gitlab"),
    ],
)
def test_what_could_not_be_read_is_an_error_and_never_a_pass(format_name: str, words: str) -> None:
    assert words in written(UNREAD, format_name)
    assert words not in written(EMPTY, format_name)


def test_a_fingerprint_is_the_same_whatever_the_finding_says() -> None:
    def fingerprint(*pods: str) -> str:
        found = finding(FindingId.ALLOWS_NONE_NOW, Severity.WARNING, pods=list(pods))
        audit = BudgetAudit(items=[AuditedBudget(budget="shop/web", findings=[found])])
        [issue] = json.loads(written(audit, "gitlab"))
        return str(issue["fingerprint"])

    assert fingerprint("a") == fingerprint("b", "c")


def test_all_formats_are_offered() -> None:
    assert {"sarif", "junit", "github", "gitlab"} < {*BUDGET_FORMATS}
