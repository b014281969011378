"""Workflow commands of GitHub Actions, which shows them as annotations on the files of a change.

GitHub shows ten errors and ten warnings per step and drops the rest, so if there are more, the last one is a summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.report.amounts import count
from kpreempt.report.check.causes import Cause, advice_of, cause_phrase, causes
from kpreempt.report.check.facts import (
    WORDS,
    drift_phrase,
    failing,
    files_without_objects,
    gate_phrases,
    is_qualified,
    location_of,
    since_phrase,
    tally,
    verdict_phrase,
    warning,
)
from kpreempt.report.check.summary import summary_phrase
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import plain
from kpreempt.verdict.check import Check

_MAX_SHOWN = 10
_TITLE = "kpreempt check"


def render(check: Check, options: RenderOptions) -> str:
    """An error per finding that fails the gate, and a warning per finding that warns, at most ten of each.

    If nothing fails, also a notice.
    """
    facts = ", ".join(tally(check))
    lines = [
        line
        for kind, findings in (("error", failing(check)), ("warning", warning(check)))
        for line in commands(kind, [_annotation(each, options) for each in causes(findings)], _TITLE, facts)
    ]
    if not failing(check):
        kind = "notice" if check.passed else "error"
        text = f"{plain(summary_phrase(check))}. {plain(verdict_phrase(check))}: {facts}"
        lines.append(command(kind, {"title": _TITLE}, text))
    if is_qualified(check):
        lines.append(command("notice", {"title": _TITLE}, "Gate: " + "; ".join(map(plain, gate_phrases(check)))))
    lines += [command("notice", {"title": _TITLE}, each) for each in files_without_objects(check)]
    if check.previous_run is not None:
        facts_since = [since_phrase(check.previous_run, check)]
        facts_since += [
            (f"{WORDS[each.kind]}: ", *drift_phrase(each)) for each in check.previous_run.drifts[:_MAX_SHOWN]
        ]
        lines.append(command("notice", {"title": _TITLE}, "; ".join(map(plain, facts_since))))
    return "\n".join(lines) + "\n"


class Annotation(NamedTuple):
    """The message of an annotation, its rule, and the properties that place it."""

    rule: str
    properties: dict[str, str]
    message: str


def commands(kind: str, found: Sequence[Annotation], title: str, facts: str) -> list[str]:
    """A command per annotation, as many as GitHub shows, and one that counts the rest."""
    shown = found if len(found) <= _MAX_SHOWN else found[: _MAX_SHOWN - 1]
    lines = [command(kind, {**each.properties, "title": f"{title}: {each.rule}"}, each.message) for each in shown]
    if rest := found[len(shown) :]:
        rules = ", ".join(dict.fromkeys(each.rule for each in rest))
        text = f"{count(len(rest), 'more finding')} beyond GitHub's limit ({rules}); in total: {facts}"
        lines.append(command(kind, {"title": title}, text))
    return lines


def _annotation(cause: Cause, options: RenderOptions) -> Annotation:
    finding = cause.first
    place = location_of(finding)
    properties = {"file": place.path, "line": str(place.line) if place.line else ""}
    stream = f" ({place.stream_text})" if place.stream else ""
    text = f"{plain(cause_phrase(cause))}{stream}. {advice_of(finding)} {options.page_of(finding.rule)}"
    return Annotation(str(finding.rule), properties, text.rstrip())


def command(kind: str, properties: dict[str, str], message: str) -> str:
    """A command in which no part can end early or start another one."""
    listed = ",".join(
        f"{key}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items() if value
    )
    return f"::{kind} {listed}::{_data(message)}"


def _data(text: str) -> str:
    # Hidden characters are escaped, except these three, which the runner decodes.
    return plain((text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"),))
