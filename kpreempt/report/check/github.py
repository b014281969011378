"""Workflow commands of GitHub Actions, which shows them as annotations on the files of a change.

GitHub shows ten errors of a step and drops the rest, so the last of them is a summary where there are more.
"""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.check.facts import failing, place_of, tally, verdict_phrase
from kpreempt.report.check.words import finding_text
from kpreempt.report.layout import plain
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, GateFinding

_MOST = 10
_TITLE = "kpreempt check"


def render(check: Check, _options: RenderOptions) -> str:
    """An error for each finding that shuts the gate, ten at most; a notice where it is open."""
    findings = failing(check)
    facts = ", ".join(tally(check))
    if not findings:
        kind = "notice" if check.passed else "error"
        return _command(kind, {"title": _TITLE}, f"{plain(verdict_phrase(check))}: {facts}") + "\n"
    shown = findings if len(findings) <= _MOST else findings[: _MOST - 1]
    lines = [_annotation(finding) for finding in shown]
    if rest := findings[len(shown) :]:
        rules = ", ".join(dict.fromkeys(str(finding.rule) for finding in rest))
        text = f"{count(len(rest), 'more finding')} that GitHub would not show ({rules}); in all: {facts}"
        lines.append(_command("error", {"title": _TITLE}, text))
    return "\n".join(lines) + "\n"


def _annotation(finding: GateFinding) -> str:
    place = place_of(finding)
    properties = {
        "file": place.path,
        "line": str(place.line) if place.line else "",
        "title": f"{_TITLE}: {finding.rule}",
    }
    stream = f" ({place.stream_text})" if place.stream else ""
    return _command("error", properties, f"{finding_text(finding)}{stream}. {finding.rule.row.advice}")


def _command(kind: str, properties: dict[str, str], message: str) -> str:
    """A command, of which no part can end early or begin another one."""
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{kind} {listed}::{_data(message)}"


def _data(text: str) -> str:
    # What would be hidden is shown, but for these three, which the runner turns back.
    return plain((text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"),))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
