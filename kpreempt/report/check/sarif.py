"""SARIF 2.1.0, the OASIS standard for static analysis results: a run with all rules, and a result per finding."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from kpreempt import __version__
from kpreempt.gate_rules import RuleId, RuleSeverity
from kpreempt.report.blocks import Phrase
from kpreempt.report.check.causes import tested_advice
from kpreempt.report.check.facts import (
    WORDS,
    drift_phrase,
    fingerprint_of,
    gate_phrases,
    location_of,
    nearest_location,
    since_phrase,
    tally,
)
from kpreempt.report.check.words import finding_text, status_phrase
from kpreempt.report.escape import printable, printable_json
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import plain, shortened
from kpreempt.report.rules import rule_page
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Check, DriftKind, FindingStatus, GateFinding, PreviousRun
from kpreempt.verdict.unread import assumption_text

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "kpreempt/v1"
_ROOT = "%SRCROOT%"
# Limits of lists that are only informational.
_ITEMS_SHOWN = 50
_ASSUMPTIONS_SHOWN = 100
_LONGEST_NAME = 400
_LINK, _IN_LINKS = "](", re.compile(r"[\\\[\]]")
_LEVELS = {FindingStatus.FAILS: "error", FindingStatus.WARNS: "warning"}


def render(check: Check, options: RenderOptions) -> str:
    """A log with one run; a suppressed finding is a note with a suppression and its justification."""
    rules = [*RuleId, *(each.rule for each in check.rules if each.rule.is_custom)]
    properties: dict[str, Any] = {
        "passed": check.passed,
        "algorithm": printable(check.algorithm),
        "summary": ", ".join(tally(check)),
        "runs": check.runs,
        "failingRuns": check.failing_runs,
        **({"gate": [plain(each) for each in gate]} if (gate := gate_phrases(check)) else {}),
        **(
            {"since": [plain(each) for each in _since_phrases(check.previous_run, check)]} if check.previous_run else {}
        ),
    }
    results = [_result(each, rules.index(each.rule), check, options.stream_name) for each in check.findings]
    return log_of([_rule(rule, options) for rule in rules], results, check.assumptions, properties)


def log_of(
    rules: Sequence[dict[str, Any]],
    results: Sequence[dict[str, Any]],
    assumptions: Sequence[Assumption],
    properties: dict[str, Any],
) -> str:
    """A log with one run of this version of kpreempt."""
    driver = {"name": "kpreempt", "version": __version__, "semanticVersion": __version__, "rules": rules}
    notifications = [_notification(each) for each in assumptions[:_ASSUMPTIONS_SHOWN]]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The working directory of kpreempt."}}},
        "results": results,
        "properties": properties,
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_without_links(run)]}
    return printable_json(json.dumps(log, indent=2, ensure_ascii=False)) + "\n"


def _rule(rule: RuleId, options: RenderOptions) -> dict[str, Any]:
    row = rule.row
    # Code scanning links each rule to a page: of kpreempt's docs if their URL is known.
    page = options.page_of(rule) or ("" if rule.is_custom else row.concept_url)
    return {
        "id": str(rule),
        "name": "".join(part.capitalize() for part in rule.split("-")),
        "shortDescription": {"text": printable(f"{row.promise[0].upper()}{row.promise[1:]}.")},
        "fullDescription": {"text": printable(row.meaning)},
        "help": {"text": row.advice, "markdown": rule_page(rule, is_alone=True)},
        **({"helpUri": page} if page else {}),
        "defaultConfiguration": {"level": "warning" if row.severity is RuleSeverity.WARN else "error"},
        "properties": {"tags": ["kubernetes", "scheduling"]},
    }


def _notification(assumption: Assumption) -> dict[str, Any]:
    return {"level": "note", "message": {"text": _shown(assumption_text(assumption))}}


def _result(finding: GateFinding, index: int, check: Check, stream_name: str) -> dict[str, Any]:
    stream = location_of(finding).stream_text
    # The place and the object. Some systems reject the whole log if a result has no file, so there always is one.
    location: dict[str, Any] = {}
    place, own = nearest_location(finding, check, stream_name), location_of(finding)
    # Paths in the repository are relative to its root; paths that lead out of it are not.
    is_below = not place.uri.startswith(("file:", "../"))
    location["physicalLocation"] = {
        "artifactLocation": {"uri": place.uri, **({"uriBaseId": _ROOT} if is_below else {})},
        "region": {"startLine": max(place.line, 1)},
    }
    name = _shown(finding.change or finding.subject or "cluster")
    location["logicalLocations"] = [{"fullyQualifiedName": name, "kind": "resource"}]
    if not own.path and not own.stream:
        location["message"] = {"text": "A file in the change; the object itself has no file."}
    result: dict[str, Any] = {
        "ruleId": str(finding.rule),
        "ruleIndex": index,
        "level": _LEVELS.get(finding.status, "note"),
        "message": {"text": f"{finding_text(finding)}{f' ({stream})' if stream else ''}.{tested_advice(finding)}"},
        "locations": [location],
    }
    if check.previous_run is not None and finding.status.counts:
        result["baselineState"] = _state(finding, check.previous_run)
    result["partialFingerprints"] = {FINGERPRINT: fingerprint_of(finding)}
    if not finding.status.counts:
        why = plain(status_phrase(finding))
        kind = "inSource" if _is_waived_in_source(finding) else "external"
        result["suppressions"] = [{"kind": kind, "justification": why}]
    result["properties"] = _properties(finding)
    return result


def _since_phrases(since: PreviousRun, check: Check) -> list[Phrase]:
    drifts = since.drifts[:_ITEMS_SHOWN]
    return [since_phrase(since, check), *((f"{WORDS[each.kind]}: ", *drift_phrase(each)) for each in drifts)]


def _state(finding: GateFinding, since: PreviousRun) -> str:
    """The finding's SARIF baseline state since the previous run."""
    kinds = {each.kind for each in since.drifts if (each.rule, each.subject) == (finding.rule, finding.subject)}
    if DriftKind.NEW in kinds:
        return "new"
    return "updated" if kinds & {DriftKind.WORSE, DriftKind.BETTER} else "unchanged"


def _is_waived_in_source(finding: GateFinding) -> bool:
    """Whether an annotation of the object waives it, identified by the object's place or name."""
    places = {f"{finding.source}:{finding.line}", finding.source, finding.change} - {""}
    return finding.status is FindingStatus.WAIVED and finding.by in places


def _properties(finding: GateFinding) -> dict[str, Any]:
    """The finding as properties for programs; for a stream, also its name and line."""
    place = location_of(finding)
    properties: dict[str, Any] = {
        "standing": str(finding.status),
        "subject": _shown(finding.subject),
        "amount": finding.amount,
        "limit": finding.limit,
        "since": finding.since,
    }
    for key, items in (("pods", finding.pods), ("chain", finding.chain)):
        if items:
            properties[key] = [_shown(item) for item in items[:_ITEMS_SHOWN]]
    if place.stream:
        properties["stream"] = {"name": printable(place.stream), "line": place.stream_line}
    elif finding.origin:
        properties["origin"] = _shown(finding.origin)
    if finding.of_runs:
        properties |= {"inRuns": finding.in_runs, "ofRuns": finding.of_runs, "share": finding.share}
    if finding.expires:
        properties["expires"] = _shown(finding.expires)
    return properties


def _without_links(value: Any) -> Any:
    """The log with texts escaped so that nothing is a link: SARIF reads ``[words](place)`` as one (3.11.6)."""
    if isinstance(value, list):
        return [_without_links(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _IN_LINKS.sub(r"\\\g<0>", each)
        if key == "text" and isinstance(each, str) and _LINK in each
        else _without_links(each)
        for key, each in value.items()
    }


def _shown(text: str) -> str:
    return shortened(printable(text), _LONGEST_NAME)
