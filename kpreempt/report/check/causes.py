"""Findings by what is behind them: what is said of many subjects is told once, with what helps and how it is waived."""

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
_REASON = "why it may pass"


class Cause(NamedTuple):
    """Findings of one rule about several subjects, of which the same is so; ``first`` stands for all of them."""

    findings: list[GateFinding]

    @property
    def first(self) -> GateFinding:
        """The finding that is told in full."""
        return self.findings[0]

    @property
    def pods(self) -> list[str]:
        """The pods of all of them, each once."""
        return list(dict.fromkeys(pod for each in self.findings for pod in each.pods))


def causes(findings: Iterable[GateFinding]) -> list[Cause]:
    """The findings in their order, those together that stand for the same, of the same object, in the same words.

    Numbers differ from subject to subject, so that a finding without words of its own is not put with others; but pods
    that no controller owns are.
    """
    found: dict[object, Cause] = {}
    for number, each in enumerate(findings):
        is_alone = not each.detail and each.rule is not RuleId.LOST_PODS
        key = number if is_alone else _key(each)
        found.setdefault(key, Cause([])).findings.append(each)
    return list(found.values())


def _key(finding: GateFinding) -> tuple[object, ...]:
    where = (finding.change, finding.source, finding.line, finding.origin)
    excuse = (finding.standing, finding.reason, finding.by, finding.expires)
    return (finding.rule, finding.detail, finding.fix, finding.limit, finding.in_runs, *where, *excuse)


def cause_phrase(cause: Cause, *, limit: int | None = _SUBJECTS_SHOWN) -> Phrase:
    """The sentence about the first, and of whom the same is so: ``…; the same of Pod shop/b and Pod shop/c``."""
    others = list(dict.fromkeys(each.subject for each in cause.findings[1:]))
    more: Phrase = ("; the same of ", *names(others, limit=limit)) if others else ()
    return (*finding_phrase(cause.first), *more)


def advice_of(finding: GateFinding) -> str:
    """What helps: what mends this very object, where that is known, else what helps with the rule."""
    return finding.fix or finding.rule.row.advice


def waive_tables(findings: Iterable[GateFinding]) -> list[str]:
    """Entries of ``kpreempt.toml`` that waive the findings, each once; the reason is left to whoever writes it."""
    subjects = dict.fromkeys((str(each.rule), each.subject) for each in findings)
    return [
        f"[[check.waive]]\nrule = {_toml(rule)}\nsubject = {_toml(subject)}\nreason = {_toml(_REASON)}\n"
        for rule, subject in subjects
    ]


def _toml(text: str) -> str:
    """A basic string of TOML, with escapes of TOML's for what does not show as itself, or a CI system would obey."""
    quoted = json.dumps(text, ensure_ascii=False).replace("##", "\\u0023#")
    return "".join(map(_toml_character, quoted))


def _toml_character(character: str) -> str:
    # A lone surrogate is no character of TOML; any text matches it.
    if "\ud800" <= character <= "\udfff":
        return "*"
    code = ord(character)
    if not is_hidden(character):
        return character
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
