"""GitLab's Code Quality report: a JSON list of findings, which a merge request shows beside the lines."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kpreempt.report.check.facts import fingerprint_of, nearest_place, place_of
from kpreempt.report.check.words import finding_text, standing_phrase
from kpreempt.report.escape import printable, printable_json
from kpreempt.report.layout import plain
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, GateFinding, GateStanding


def render(check: Check, options: RenderOptions) -> str:
    """All findings in their order; a warning is of severity ``minor``, and what is excused of ``info``."""
    seen: set[str] = set()
    issues = []
    for finding in check.findings:
        fingerprint = fingerprint_of(finding)
        # GitLab shows one of those with the same fingerprint.
        while fingerprint in seen:
            fingerprint = hashlib.sha256(fingerprint.encode()).hexdigest()[:32]
        seen.add(fingerprint)
        issues.append(_issue(finding, fingerprint, check, options.stream_name))
    return printable_json(json.dumps(issues, indent=2, ensure_ascii=False)) + "\n"


def _issue(finding: GateFinding, fingerprint: str, check: Check, stream_name: str) -> dict[str, Any]:
    place = nearest_place(finding, check, stream_name)
    stream = place_of(finding).stream_text
    standing = plain(standing_phrase(finding))
    description = f"{finding_text(finding)}{f' ({stream})' if stream else ''}{f'; {standing}' if standing else ''}"
    severities = {GateStanding.FAILS: finding.rule.row.gitlab, GateStanding.WARNS: "minor"}
    return {
        "description": description,
        "check_name": str(finding.rule),
        "fingerprint": fingerprint,
        "severity": severities.get(finding.standing, "info"),
        # Both are asked for, so there is always something.
        "location": {"path": printable(place.path), "lines": {"begin": max(place.line, 1)}},
    }
