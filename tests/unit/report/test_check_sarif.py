"""SARIF: valid by the standard's schema, with stable ids, files and lines, and suppressions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kpreempt import __version__
from kpreempt.report.check.sarif import render
from kpreempt.report.escape import is_hidden
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, GateFinding, RuleId
from tests.checks import failed, finding, hostile, passed, replaced

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
CHECKS = {"one that passes": passed(), "one that fails": failed(), "one of hostile names": hostile()}
_RELATIVE = re.compile(r"(file:///)?([A-Za-z0-9._~/-]|%[0-9A-F]{2})+")


def run_of(check: Check) -> Any:
    return json.loads(render(check, RenderOptions()))["runs"][0]


def results_of(*findings: GateFinding) -> Any:
    return run_of(replaced(failed(), findings=list(findings)))["results"]


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_it_is_valid(check: Check) -> None:
    text = render(check, RenderOptions())
    jsonschema.Draft4Validator(SCHEMA).validate(json.loads(text))
    assert not [character for character in text if is_hidden(character) and character != "\n"]
    assert render(check, RenderOptions(verbose=True, width=40)) == text


def test_a_log_that_is_not_valid_is_distinguished_from_one_that_is() -> None:
    log = json.loads(render(failed(), RenderOptions()))
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(SCHEMA).validate(log)


def test_the_driver_has_every_rule_in_one_order_whatever_is_found() -> None:
    driver = run_of(passed())["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("kpreempt", __version__)
    assert [rule["id"] for rule in driver["rules"]] == list(RuleId)
    assert driver == run_of(failed())["tool"]["driver"]
    assert all(rule["help"]["text"] and rule["fullDescription"]["text"] for rule in driver["rules"])


def test_results_name_their_rule_by_place_and_are_errors_where_they_fail() -> None:
    run = run_of(failed())
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] == ("note" if "suppressions" in result else "error")
    assert [result["suppressions"][0]["kind"] for result in run["results"] if "suppressions" in result] == [
        "inSource",
        "external",
        "external",
    ]
    assert (
        run["results"][-2]["suppressions"][0]["justification"] == "accepted by baseline.json until 2027-01-01: old debt"
    )


def test_a_result_has_the_findings_fingerprint() -> None:
    (result,) = results_of(finding(RuleId.MAX_VICTIMS, fingerprint="0a1b"))
    assert result["partialFingerprints"] == {"kpreempt/v1": "0a1b"}


def test_a_file_has_its_line_and_a_stream_the_file_that_it_was_made_from() -> None:
    in_file, in_stream, in_bare_stream = results_of(
        finding(RuleId.MAX_VICTIMS, source="./a b.yaml", line=7, origin="chart/b.yaml"),
        finding(RuleId.MAX_VICTIMS, source="standard input", line=34, origin="chart/b.yaml"),
        finding(RuleId.MAX_VICTIMS, source="standard input", line=35),
    )
    assert in_file["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 7},
    }
    assert in_file["properties"]["origin"] == "chart/b.yaml"
    assert in_stream["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "chart/b.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1},
    }
    assert in_stream["properties"]["stream"] == {"name": "standard input", "line": 34}
    assert in_stream["message"]["text"].endswith("(line 34 of standard input).")
    assert in_bare_stream["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "kpreempt-input.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 35},
    }
    assert in_bare_stream["properties"]["stream"] == {"name": "standard input", "line": 35}


def test_a_finding_without_a_file_is_at_the_first_of_the_change_and_says_so() -> None:
    check = replaced(failed(), findings=[finding(RuleId.PDBS_UNREADABLE)])
    (location,) = run_of(check)["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "deploy/api%20v2.yaml"
    assert "has no file" in location["message"]["text"]
    (location,) = run_of(replaced(check, changes=[]))["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "kpreempt-input.yaml"
    assert location["logicalLocations"] == [{"fullyQualifiedName": "cluster", "kind": "resource"}]


@pytest.mark.parametrize(
    ("source", "uri", "base"),
    [
        ("deploy/api.yaml", "deploy/api.yaml", "%SRCROOT%"),
        ("././deploy/../api.yaml", "api.yaml", "%SRCROOT%"),
        ("../elsewhere.yaml", "../elsewhere.yaml", None),
        ("/etc/api.yaml", "file:///etc/api.yaml", None),
        ("a:b/c.yaml", "a%3Ab/c.yaml", "%SRCROOT%"),
    ],
)
def test_a_path_counts_from_the_root_unless_it_leads_out_of_it(source: str, uri: str, base: str | None) -> None:
    (result,) = results_of(finding(RuleId.MAX_VICTIMS, source=source, line=1))
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert (location["uri"], location.get("uriBaseId")) == (uri, base)


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_it_has_what_github_asks_for(check: Check) -> None:
    """As GitHub's documentation of SARIF support has it: what is required of a result, and of a rule."""
    run = run_of(check)
    for result in run["results"]:
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"]
        assert location["physicalLocation"]["region"]["startLine"] >= 1
        assert all(result["partialFingerprints"].values())
        assert result["message"]["text"]
        base = location["physicalLocation"]["artifactLocation"].get("uriBaseId")
        assert base is None or base in run["originalUriBaseIds"]
    for rule in run["tool"]["driver"]["rules"]:
        assert len(rule["name"]) <= 255
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["help"]["markdown"]
        assert len(rule["properties"]["tags"]) <= 20


def test_a_finding_without_a_fingerprint_is_known_by_what_it_is_about() -> None:
    one, same, other = results_of(
        finding(RuleId.MAX_VICTIMS, "Pod a/b", fingerprint="", amount=1),
        finding(RuleId.MAX_VICTIMS, "Pod a/b", fingerprint="", amount=2),
        finding(RuleId.MAX_VICTIMS, "Pod a/c", fingerprint=""),
    )
    assert one["partialFingerprints"] == same["partialFingerprints"] != other["partialFingerprints"]


def test_rules_have_a_page_where_it_is_known_where_the_docs_are() -> None:
    options = RenderOptions(docs_url="https://wiki.example/docs/")
    log = json.loads(render(failed(), options))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    rules = {rule["id"]: rule for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert rules["max-victims"]["helpUri"] == "https://wiki.example/docs/rules/max-victims.md"


def test_rules_have_kubernetes_own_page_where_it_is_not_known() -> None:
    rules = {rule["id"]: rule for rule in run_of(failed())["tool"]["driver"]["rules"]}
    assert rules["max-victims"]["helpUri"] == (
        "https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/"
    )
    assert all(rule["helpUri"].startswith("https://kubernetes.io/docs/") for rule in rules.values())


def test_uris_are_relative_or_of_files_and_encoded() -> None:
    results = run_of(hostile())["results"]
    uris = [
        location["physicalLocation"]["artifactLocation"]["uri"]
        for result in results
        for location in result["locations"]
    ]
    assert len(uris) == len(results)
    assert [uri for uri in uris if not _RELATIVE.fullmatch(uri)] == []


def test_what_is_assumed_is_a_notification_and_the_run_succeeded_even_where_the_gate_is_shut() -> None:
    (invocation,) = run_of(failed())["invocations"]
    assert invocation["executionSuccessful"] is True
    assert [each["message"]["text"] for each in invocation["toolExecutionNotifications"]] == [
        "Pod shop/web-5d8f-1 spec.resourceClaims: devices are not allocated"
    ]
