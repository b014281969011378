"""Findings grouped by cause, so that each cause is reported once, with its fix and how to waive it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from kpreempt.gate_rules import RuleId
from kpreempt.report.blocks import Phrase
from kpreempt.report.check.words import finding_phrase
from kpreempt.report.escape import is_hidden
from kpreempt.report.quoting import names
from kpreempt.verdict.check import GateFinding

_SUBJECTS_SHOWN = 3
_REASON = "why this is acceptable"


class Cause(NamedTuple):
    """Findings of one rule with the same cause about different subjects; ``first`` represents all of them."""

    findings: list[GateFinding]

    @property
    def first(self) -> GateFinding:
        """The finding that is reported in full."""
        return self.findings[0]

    @property
    def pods(self) -> list[str]:
        """The pods of all findings, without duplicates."""
        return list(dict.fromkeys(pod for each in self.findings for pod in each.pods))


def causes(findings: Iterable[GateFinding]) -> list[Cause]:
    """Group findings that have the same status, object and text, keeping their order.

    Numbers differ between subjects, so findings without a detail text are not grouped, except pods that no controller
    owns.
    """
    found: dict[object, Cause] = {}
    for number, each in enumerate(findings):
        is_alone = not each.detail and each.rule is not RuleId.LOST_PODS
        key = number if is_alone else _key(each)
        found.setdefault(key, Cause([])).findings.append(each)
    return list(found.values())


def _key(finding: GateFinding) -> tuple[object, ...]:
    place = (finding.change, finding.source, finding.line, finding.origin)
    suppression = (finding.status, finding.reason, finding.by, finding.expires)
    return (finding.rule, finding.detail, finding.fix, finding.limit, finding.in_runs, *place, *suppression)


def cause_phrase(cause: Cause, *, limit: int | None = _SUBJECTS_SHOWN) -> Phrase:
    """The sentence about the first subject, and the others: ``…; also Pod shop/b and Pod shop/c``."""
    others = list(dict.fromkeys(each.subject for each in cause.findings[1:]))
    more: Phrase = ("; also ", *names(others, limit=limit)) if others else ()
    return (*finding_phrase(cause.first), *more)


def advice_of(finding: GateFinding) -> str:
    """The fix for this object if it is known, else the advice of the rule."""
    return finding.fix or finding.rule.row.advice


def waive_tables(findings: Iterable[GateFinding]) -> list[str]:
    """Entries of ``kpreempt.toml`` that waive the findings, without duplicates; the author fills in the reasons."""
    subjects = dict.fromkeys((str(each.rule), each.subject) for each in findings)
    return [
        f"[[check.waive]]\nrule = {_toml(rule)}\nsubject = {_toml(subject)}\nreason = {_toml(_REASON)}\n"
        for rule, subject in subjects
    ]


def _toml(text: str) -> str:
    """A basic TOML string in which hidden characters and CI commands are escaped."""
    quoted = json.dumps(text, ensure_ascii=False).replace("##", "\\u0023#")
    return "".join(map(_toml_character, quoted))


def _toml_character(character: str) -> str:
    # TOML does not allow lone surrogates; "*" matches any text.
    if "\ud800" <= character <= "\udfff":
        return "*"
    code = ord(character)
    if not is_hidden(character):
        return character
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
