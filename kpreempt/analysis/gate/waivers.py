"""Waivers: who lets a finding pass, and why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import msgspec

from kpreempt.analysis.gate.patterns import matches
from kpreempt.analysis.gate.rules import rule_named
from kpreempt.errors import InputError, UsageError
from kpreempt.gate_rules import RuleId

WAIVE = "kpreempt.io/waive"
WAIVE_REASON = "kpreempt.io/waive-reason"


class Waiver(msgspec.Struct, frozen=True, kw_only=True):
    """Lets what a rule finds pass: all of it, or what is about a ``subject`` (``*`` is any text).

    With ``change`` (``Deployment shop/api``) only what that object brings about. ``by`` is where it is said,
    ``expires`` the last day on which it counts. Where ``lacks_reason`` it does not count, which a finding then says.
    """

    rule: RuleId
    subject: str = ""
    change: str = ""
    reason: str = ""
    by: str = ""
    expires: date | None = None
    lacks_reason: bool = False

    def is_about(self, rule: RuleId, subject: str) -> bool:
        """Whether it names the rule and, if it names any, the subject."""
        return self.rule is rule and (not self.subject or matches(self.subject, subject))

    def objection(self, today: date) -> str:
        """Why it does not count, or an empty text."""
        if self.lacks_reason:
            return f"{self.by}: {WAIVE} does not count without {WAIVE_REASON}"
        if self.expires is not None and today > self.expires:
            return f"waived by {self.by} until {self.expires.isoformat()}, which is over"
        return ""


def waiver_of_option(text: str) -> Waiver:
    """What ``--waive RULE`` or ``--waive RULE=SUBJECT`` says. Raises ``UsageError``."""
    name, equals, subject = text.partition("=")
    rule = rule_named(name.strip(), f"--waive {text}")
    if equals and not subject.strip():
        raise UsageError(f"--waive {text}: the subject is missing", hint=f"--waive {rule}='Deployment shop/*'")
    return Waiver(rule=rule, subject=subject.strip(), by="--waive")


def waivers_of_object(name: str, annotations: Mapping[str, str], *, source: str = "", line: int = 0) -> list[Waiver]:
    """The waivers in the annotations of an object of the change (``Deployment shop/api``), for what it brings about.

    Raises ``InputError`` for a rule that does not exist.
    """
    text = annotations.get(WAIVE, "")
    reason = annotations.get(WAIVE_REASON, "").strip()
    by = f"{source}:{line}" if source and line else source or name
    found = []
    for rule in filter(None, (part.strip() for part in text.split(","))):
        try:
            known = rule_named(rule, WAIVE)
        except UsageError as error:
            raise InputError(
                f'there is no rule "{rule}"',
                source=source,
                line=line,
                object_name=name,
                path=f"metadata.annotations[{WAIVE}]",
                hint=error.hint,
            ) from None
        found.append(Waiver(rule=known, change=name, reason=reason, by=by, lacks_reason=not reason))
    return found
