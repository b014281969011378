"""GitLab's Code Quality report: a JSON list of findings, which a merge request shows next to the lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kpreempt.gate_rules import RuleId
from kpreempt.report.check.causes import tested_advice
from kpreempt.report.check.facts import (
    digest,
    files_without_objects,
    fingerprint_of,
    gate_phrases,
    is_qualified,
    location_of,
    nearest_location,
)
from kpreempt.report.check.words import finding_text, status_phrase
from kpreempt.report.escape import printable, printable_json
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import plain
from kpreempt.verdict.check import Check, FindingStatus, GateFinding


def render(check: Check, options: RenderOptions) -> str:
    """All findings in order; warnings have severity ``minor``, and suppressed findings ``info``.

    Then the rules that are relaxed, and the files without objects.
    """
    issues = [_issue(finding, check, options.stream_name) for finding in check.findings]
    notes = [("gate", f"Gate: {'; '.join(map(plain, gate_phrases(check)))}")] if is_qualified(check) else []
    notes += [("files", each) for each in files_without_objects(check)]
    return report_of([*issues, *(_note(*each, check, options.stream_name) for each in notes)])


def report_of(issues: Sequence[dict[str, Any]]) -> str:
    """The list, with a unique fingerprint per issue: GitLab shows only one issue for each fingerprint."""
    seen: set[str] = set()
    for issue in issues:
        while issue["fingerprint"] in seen:
            issue["fingerprint"] = digest(issue["fingerprint"])
        seen.add(issue["fingerprint"])
    return printable_json(json.dumps(issues, indent=2, ensure_ascii=False)) + "\n"


def _note(name: str, words: str, check: Check, stream_name: str) -> dict[str, Any]:
    """A note that is about no object, placed at the first object in the change."""
    place = nearest_location(GateFinding(rule=RuleId.MAX_VICTIMS, subject=""), check, stream_name)
    return {
        "description": words,
        "check_name": name,
        "fingerprint": digest(name, words),
        "severity": "info",
        "location": {"path": printable(place.path), "lines": {"begin": max(place.line, 1)}},
    }


def _issue(finding: GateFinding, check: Check, stream_name: str) -> dict[str, Any]:
    place = nearest_location(finding, check, stream_name)
    stream = location_of(finding).stream_text
    status = plain(status_phrase(finding))
    description = f"{finding_text(finding)}{f' ({stream})' if stream else ''}{f'; {status}' if status else ''}"
    if advice := tested_advice(finding):
        description += f".{advice}"
    severities = {FindingStatus.FAILS: finding.rule.row.gitlab, FindingStatus.WARNS: "minor"}
    return {
        "description": description,
        "check_name": str(finding.rule),
        "fingerprint": fingerprint_of(finding),
        "severity": severities.get(finding.status, "info"),
        # GitLab requires both.
        "location": {"path": printable(place.path), "lines": {"begin": max(place.line, 1)}},
    }
