"""GitLab's Code Quality report: a JSON list of findings, which a merge request shows beside the lines."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kpreempt.report.check_places import nearest_place, place_of
from kpreempt.report.check_words import finding_text, standing_phrase
from kpreempt.report.escape import printable, printable_json
from kpreempt.report.layout import plain
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, GateFinding, GateStanding, RuleId

# Rules that no running pod pays for at once. What breaks a running service blocks.
_SEVERITIES = {
    RuleId.MAX_VICTIMS: "major",
    RuleId.MAX_VICTIMS_PER_WORKLOAD: "major",
    RuleId.MAX_CASCADE_DEPTH: "major",
    RuleId.QUOTA_REFUSALS: "major",
    RuleId.MAX_SNAPSHOT_AGE: "minor",
    RuleId.BUDGETS_UNREADABLE: "major",
    RuleId.OBJECTS_SET_ASIDE: "major",
    RuleId.FIELDS_NOT_MODELLED: "major",
    RuleId.OUTCOME_UNCERTAIN: "major",
}


def render(check: Check, _options: RenderOptions) -> str:
    """All findings in their order; those that do not shut the gate are of severity ``info``."""
    seen: set[str] = set()
    issues = []
    for finding in check.findings:
        fingerprint = finding.fingerprint or _digest(finding)
        # GitLab shows one of those with the same fingerprint.
        while fingerprint in seen:
            fingerprint = hashlib.sha256(fingerprint.encode()).hexdigest()[:32]
        seen.add(fingerprint)
        issues.append(_issue(finding, fingerprint, check))
    return printable_json(json.dumps(issues, indent=2, ensure_ascii=False)) + "\n"


def _issue(finding: GateFinding, fingerprint: str, check: Check) -> dict[str, Any]:
    place = nearest_place(finding, check)
    stream = place_of(finding).stream_text
    standing = plain(standing_phrase(finding))
    description = f"{finding_text(finding)}{f' ({stream})' if stream else ''}{f'; {standing}' if standing else ''}"
    is_failure = finding.standing is GateStanding.FAILS
    return {
        "description": description,
        "check_name": str(finding.rule),
        "fingerprint": fingerprint,
        "severity": _SEVERITIES.get(finding.rule, "blocker") if is_failure else "info",
        # Both are asked for, so there is always something.
        "location": {"path": printable(place.path or stream or "manifest"), "lines": {"begin": max(place.line, 1)}},
    }


def _digest(finding: GateFinding) -> str:
    text = "\0".join((finding.rule, finding.subject, finding.change))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
