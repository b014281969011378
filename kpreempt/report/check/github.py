"""Workflow commands of GitHub Actions, which shows them as annotations on the files of a change.

GitHub shows ten errors and ten warnings of a step and drops the rest, so the last of them is a summary where there are
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.report.amounts import count
from kpreempt.report.check.facts import failing, place_of, tally, verdict_phrase, warning
from kpreempt.report.check.words import finding_text
from kpreempt.report.layout import plain
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import Check, GateFinding

_MOST = 10
_TITLE = "kpreempt check"


def render(check: Check, _options: RenderOptions) -> str:
    """An error for each finding that shuts the gate, a warning for each that does not, ten at most of each.

    A notice where the gate is open.
    """
    facts = ", ".join(tally(check))
    lines = [
        line
        for kind, findings in (("error", failing(check)), ("warning", warning(check)))
        for line in commands(kind, [_annotation(each) for each in findings], _TITLE, facts)
    ]
    if not failing(check):
        kind = "notice" if check.passed else "error"
        lines.append(command(kind, {"title": _TITLE}, f"{plain(verdict_phrase(check))}: {facts}"))
    return "\n".join(lines) + "\n"


class Annotation(NamedTuple):
    """What an annotation says, of which rule, and the properties that place it."""

    rule: str
    properties: dict[str, str]
    message: str


def commands(kind: str, found: Sequence[Annotation], title: str, facts: str) -> list[str]:
    """A command for each, as many as GitHub shows, and one that counts the rest."""
    shown = found if len(found) <= _MOST else found[: _MOST - 1]
    lines = [command(kind, {**each.properties, "title": f"{title}: {each.rule}"}, each.message) for each in shown]
    if rest := found[len(shown) :]:
        rules = ", ".join(dict.fromkeys(each.rule for each in rest))
        text = f"{count(len(rest), 'more finding')} that GitHub would not show ({rules}); in all: {facts}"
        lines.append(command(kind, {"title": title}, text))
    return lines


def _annotation(finding: GateFinding) -> Annotation:
    place = place_of(finding)
    properties = {"file": place.path, "line": str(place.line) if place.line else ""}
    stream = f" ({place.stream_text})" if place.stream else ""
    return Annotation(str(finding.rule), properties, f"{finding_text(finding)}{stream}. {finding.rule.row.advice}")


def command(kind: str, properties: dict[str, str], message: str) -> str:
    """A command, of which no part can end early or begin another one."""
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{kind} {listed}::{_data(message)}"


def _data(text: str) -> str:
    # What would be hidden is shown, but for these three, which the runner turns back.
    return plain((text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"),))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
