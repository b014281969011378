"""JUnit XML: valid by the schema of Jenkins, a test for each rule."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema

from kpreempt.report.check.junit import render
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, FindingStatus, RuleId
from tests.checks import failed, finding, hostile, passed, replaced, rule

CHECKS = {"one that passes": passed(), "one that fails": failed(), "one of hostile names": hostile()}


@cache
def schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).parents[2] / "schemas" / "junit-10.xsd")


def suite_of(check: Check) -> ElementTree.Element:
    suite = ElementTree.fromstring(render(check, RenderOptions())).find("testsuite")
    assert suite is not None
    return suite


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_it_is_valid_and_counts_right(check: Check) -> None:
    schema().validate(render(check, RenderOptions()))
    suite = suite_of(check)
    counts = {kind: len(suite.findall(f"testcase/{kind}")) for kind in ("failure", "skipped")}
    assert int(suite.attrib["failures"]) == counts["failure"]
    assert int(suite.attrib["skipped"]) == counts["skipped"]
    assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))


def test_a_report_that_is_not_valid_is_distinguished_from_one_that_is() -> None:
    text = render(failed(), RenderOptions()).replace('<failure type="max-victims"', '<failure kind="max-victims"')
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        schema().validate(text)


def test_a_rule_that_holds_passes_and_one_that_is_off_is_skipped() -> None:
    cases = {case.attrib["name"].partition(":")[0]: case for case in suite_of(passed()).iter("testcase")}
    assert list(cases["max-pdb-violations"]) == []
    (skipped,) = cases["max-victims"]
    assert (skipped.tag, skipped.attrib["message"]) == ("skipped", "the rule is off")


def test_findings_of_a_rule_are_one_failure_that_tells_them_all() -> None:
    both = [
        finding(RuleId.MAX_BROKEN_DEPENDENCIES, f"Service shop/{name}", source="a.yaml", line=line)
        for line, name in enumerate("ab", 1)
    ]
    (failure,) = suite_of(replaced(failed(), rules=[rule(RuleId.MAX_BROKEN_DEPENDENCIES)], findings=both)).iter(
        "failure"
    )
    assert failure.attrib["type"] == "max-broken-dependencies"
    assert failure.attrib["message"] == "Service shop/a has no ready pod (and 1 more finding)"
    assert (failure.text or "").splitlines()[:4] == [
        "Service shop/a has no ready pod",
        "  a.yaml:1",
        "Service shop/b has no ready pod",
        "  a.yaml:2",
    ]


def test_a_rule_all_of_whose_findings_are_waived_is_skipped_and_says_why() -> None:
    waived = finding(RuleId.MAX_VICTIMS, status=FindingStatus.WAIVED, reason="agreed", by="--waive")
    (case,) = suite_of(replaced(passed(), rules=[], findings=[waived])).iter("testcase")
    (skipped,) = case
    assert skipped.attrib == {"type": "Waived", "message": "waived by --waive: agreed"}


def test_control_characters_are_shown_as_text() -> None:
    found = finding(RuleId.FORBID_LOOPS, "a\x00\x1b\ufffe]]>b")
    (failure,) = suite_of(replaced(failed(), rules=[], findings=[found])).iter("failure")
    assert failure.attrib["message"] == "a\\x00\\x1b\\ufffe]]>b never settles"
