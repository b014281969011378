"""Annotations for GitHub, the Code Quality report for GitLab, and which formats there are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpreempt.errors import UsageError
from kpreempt.report.answers import CHECK_FORMATS, render_answer
from kpreempt.report.check.github import render as render_github
from kpreempt.report.check.gitlab import render as render_gitlab
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, Drift, DriftKind, FindingStatus, PreviousRun, RuleId
from tests.checks import HOSTILE, failed, finding, hostile, passed, replaced, rule


def annotations(check: Check) -> list[str]:
    return render_github(check, RenderOptions()).splitlines()


def with_findings(number: int) -> Check:
    findings = [finding(RuleId.FORBID_LOOPS, f"Deployment shop/a-{place}") for place in range(number)]
    return replaced(failed(), findings=findings)


def test_a_pass_is_one_notice() -> None:
    assert annotations(passed()) == [
        "::notice title=kpreempt check::harmless: 3 pods are replaced; no pod is evicted."
        " All enabled rules pass: no pod evicted, settled"
    ]


def test_a_finding_is_an_error_on_its_file_and_line() -> None:
    found = finding(RuleId.FORBID_LOOPS, "Deployment shop/a", source="./a,b:c.yaml", line=7)
    assert annotations(replaced(failed(), findings=[found])) == [
        "::error file=a%2Cb%3Ac.yaml,line=7,title=kpreempt check%3A forbid-loops::"
        "Deployment shop/a never settles. Give these workloads the same priority, or add capacity for both."
    ]


def test_of_a_stream_the_line_is_said_and_not_given_as_one_of_the_file() -> None:
    found = finding(RuleId.FORBID_LOOPS, "a", source="standard input", line=7, origin="chart/a.yaml")
    (line,) = annotations(replaced(failed(), findings=[found]))
    assert line.startswith("::error file=chart/a.yaml,title=")
    assert "never settles (line 7 of standard input)." in line


def test_ten_findings_are_ten_errors() -> None:
    lines = annotations(with_findings(10))
    assert len(lines) == 10
    assert all("never settles" in line for line in lines)


def test_of_more_than_ten_the_last_is_a_summary() -> None:
    lines = annotations(with_findings(11))
    assert len(lines) == 10
    assert lines[-1].startswith("::error title=kpreempt check::2 more findings beyond GitHub's")


def test_what_is_waived_is_no_error() -> None:
    waived = finding(RuleId.MAX_VICTIMS, status=FindingStatus.WAIVED)
    (line,) = annotations(replaced(passed(), findings=[waived]))
    assert line.startswith("::notice ")


def test_no_name_begins_a_command_or_ends_one_early() -> None:
    for text in HOSTILE:
        found = finding(RuleId.MAX_VICTIMS, text, amount=1, source=text, change=text)
        (line,) = annotations(replaced(failed(), findings=[found]))
        properties = line.removeprefix("::error ").partition("::")[0]
        assert [part.partition("=")[0] for part in properties.split(",")] in (["file", "title"], ["title"])
    assert all(line.startswith("::error ") for line in annotations(hostile()))


def test_a_warning_is_one_in_every_system() -> None:
    found = finding(RuleId.FORBID_LOOPS, "Deployment shop/a", status=FindingStatus.WARNS, amount=1)
    check = replaced(passed(), findings=[found], rules=[rule(RuleId.FORBID_LOOPS, warnings=1)])
    first, last = annotations(check)
    assert first.startswith("::warning title=kpreempt check%3A forbid-loops::Deployment shop/a never settles")
    assert last.startswith("::notice ")
    assert "1 warning: forbid-loops" in last
    (issue,) = issues(check)
    assert issue["severity"] == "minor"
    (result,) = json.loads(render_answer(check, "sarif", RenderOptions()))["runs"][0]["results"]
    assert result["level"] == "warning"
    assert "suppressions" not in result
    junit = render_answer(check, "junit", RenderOptions())
    assert 'failures="0"' in junit
    assert "<system-out>warning: Deployment shop/a never settles" in junit
    for form, said in (("text", "! forbid-loops"), ("markdown", "! 1 warning"), ("html", "! 1 warning")):
        assert said in render_answer(check, form, RenderOptions())


def test_percent_signs_of_the_input_stay_what_they_are() -> None:
    found = finding(RuleId.FORBID_LOOPS, "a%0Ab", source="c%3Ad")
    (line,) = annotations(replaced(failed(), findings=[found]))
    assert line.startswith("::error file=c%253Ad,")
    assert "::a%250Ab never" in line


def issues(check: Check) -> Any:
    return json.loads(render_gitlab(check, RenderOptions()))


def test_gitlab_gets_a_list_with_all_that_it_asks_for() -> None:
    assert issues(passed()) == []
    for issue in issues(failed()) + issues(hostile()):
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert issue["location"]["path"]
        assert issue["location"]["lines"]["begin"] >= 1


def test_what_breaks_running_pods_blocks_and_what_is_waived_informs() -> None:
    severities = {issue["fingerprint"]: issue["severity"] for issue in issues(failed())}
    assert severities[f"{list(RuleId).index(RuleId.MAX_PDB_VIOLATIONS):032x}"] == "blocker"
    assert severities[f"{list(RuleId).index(RuleId.MAX_SNAPSHOT_AGE):032x}"] == "minor"
    assert [severities[key] for key in ("f1", "f2", "f3")] == ["info"] * 3


def test_no_two_have_one_fingerprint_and_each_keeps_its_own() -> None:
    same = [finding(RuleId.MAX_VICTIMS, fingerprint="f"), finding(RuleId.MAX_PENDING, fingerprint="f")]
    none = [finding(RuleId.MAX_VICTIMS, fingerprint=""), finding(RuleId.MAX_PENDING, fingerprint="")]
    found = [issue["fingerprint"] for issue in issues(replaced(failed(), findings=same + none))]
    assert len(set(found)) == 4
    assert found[0] == "f"


def test_a_finding_without_a_file_is_at_one_of_the_change() -> None:
    check = replaced(failed(), findings=[finding(RuleId.MAX_VICTIMS)])
    assert issues(check)[0]["location"] == {"path": "deploy/api v2.yaml", "lines": {"begin": 12}}
    assert issues(replaced(check, changes=[]))[0]["location"] == {"path": "kpreempt-input.yaml", "lines": {"begin": 1}}


@pytest.mark.parametrize("format_name", CHECK_FORMATS)
def test_every_format_writes_every_answer_and_ends_it_with_a_newline(format_name: str) -> None:
    texts = [text for text in HOSTILE if not any("\ud800" <= character <= "\udfff" for character in text)]
    for check in (passed(), failed(), hostile(texts)):
        text = render_answer(check, format_name, RenderOptions())
        assert text.endswith("\n") or (not text and format_name in ("jsonl", "name"))


def test_a_line_of_jsonl_is_a_finding_and_names_are_the_victims() -> None:
    lines = render_answer(failed(), "jsonl", RenderOptions()).splitlines()
    assert [json.loads(line)["rule"] for line in lines] == [each.rule for each in failed().findings]
    assert render_answer(failed(), "name", RenderOptions()) == "pod/web-5d8f-1\npod/crunch-66b-9\npod/web-5d8f-2\n"


def test_a_format_that_there_is_not_is_named_next_to_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="unknown output format 'xml'") as caught:
        render_answer(passed(), "xml", RenderOptions())
    assert "sarif" in (caught.value.hint or "")


@pytest.mark.parametrize("format_", ["github", "junit", "markdown", "html", "sarif"])
def test_the_page_about_a_rule_is_linked_where_it_is_known(format_: str) -> None:
    page = "https://wiki.example/docs/rules/max-victims.md"
    shown = render_answer(failed(), format_, RenderOptions(docs_url="https://wiki.example/docs"))
    assert page in shown.replace("%3A", ":")
    assert "://wiki.example" not in render_answer(failed(), format_, RenderOptions())


@pytest.mark.parametrize("format_", [each for each in CHECK_FORMATS if each not in ("jsonl", "name", "gitlab")])
def test_what_differs_from_a_former_run_is_reported(format_: str) -> None:
    drifts = [
        Drift(kind=DriftKind.NEW, rule="max-victims", subject="Deployment shop/api", after=3),
        Drift(kind=DriftKind.WORSE, metric="pods evicted", before=3, after=9),
    ]
    check = replaced(
        failed(), previous_run=PreviousRun(passed=True, at="2026-11-20", algorithm="kube-1.35", drifts=drifts)
    )
    shown = " ".join(render_answer(check, format_, RenderOptions(width=200)).split())
    if format_ in ("json", "yaml"):
        assert "since" in shown
        return
    for said in ("1 new, 1 worse since the run", "2026-11-20", "which passed", "pods evicted"):
        assert said.lower() in shown.lower()
    without = render_answer(failed(), format_, RenderOptions(width=200))
    assert "since the run" not in without
