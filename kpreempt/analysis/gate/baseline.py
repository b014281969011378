"""The baseline: findings that are accepted for a while, as a file that is easy to review."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Annotated

import msgspec

from kpreempt.errors import InputError
from kpreempt.gate_rules import RuleId
from kpreempt.verdict import API_VERSION
from kpreempt.verdict.check import GateFinding, GateStanding

_KIND = "CheckBaseline"
# What JSON holds as a number everywhere.
_LARGEST_AMOUNT = 2**53


class Accepted(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """A finding that may be as bad as ``amount``, up to and including the day on which it ``expires``."""

    rule: RuleId
    subject: str
    change: str = ""
    amount: Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_AMOUNT)]
    reason: str = ""
    expires: date
    fingerprint: str


class Baseline(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """All that is accepted."""

    api_version: str = API_VERSION
    kind: str = _KIND
    accepted: list[Accepted] = []

    def entry(self, fingerprint: str) -> Accepted | None:
        """The entry of that fingerprint; of several that which is accepted longest, and then the largest."""
        own = [each for each in self.accepted if each.fingerprint == fingerprint]
        return max(own, key=lambda each: (each.expires, each.amount), default=None)


def read_baseline(content: bytes, source: str) -> Baseline:
    """The baseline in a file. Raises ``InputError`` with ``source`` for anything else."""
    try:
        found = msgspec.json.decode(content, type=Baseline)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise InputError(_lowered(problem), source=source, path=path.strip("`.")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = str(error).removeprefix("JSON is malformed: ")
        raise InputError(f"is not JSON: {_lowered(problem)}", source=source) from None
    if found.kind != _KIND or found.api_version != API_VERSION:
        raise InputError(
            f"is no baseline: {found.api_version} {found.kind}",
            source=source,
            hint=f"a file that --write-baseline wrote: {API_VERSION} {_KIND}",
        )
    return found


def baseline_text(
    findings: Iterable[GateFinding], expires: date, *, reason: str = "", before: Baseline | None = None
) -> str:
    """The file that accepts all findings that fail, until ``expires``.

    Those that ``before`` accepts stay as they are in it. Equal findings make the same text, in whatever order.
    """
    entries: dict[str, Accepted] = {}
    for each in findings:
        if each.standing is GateStanding.ACCEPTED and before is not None:
            kept = before.entry(each.fingerprint)
            if kept is not None:
                entries[each.fingerprint] = kept
        elif each.standing is GateStanding.FAILS:
            entries[each.fingerprint] = Accepted(
                rule=each.rule,
                subject=each.subject,
                change=each.change,
                amount=each.amount,
                reason=reason,
                expires=expires,
                fingerprint=each.fingerprint,
            )
    accepted = sorted(entries.values(), key=lambda each: (each.rule, each.subject, each.change, each.fingerprint))
    return msgspec.json.format(msgspec.json.encode(Baseline(accepted=accepted)), indent=2).decode() + "\n"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
