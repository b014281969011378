"""Where the rules of a gate are from, and which count for less than by default, in the words that all formats share."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.layout import Phrase
from kpreempt.report.quoting import name, names
from kpreempt.verdict.check import Check

_SHOWN = 8


def gate_phrases(check: Check) -> list[Phrase]:
    """``rules of HEAD^1:kpreempt.toml``, ``off: max-stranded``: what there is to say, each without a full stop."""
    gate = check.gate
    found: list[Phrase] = []
    if gate.config:
        found.append(("rules of ", name(gate.config)))
    if gate.baseline:
        found.append(("accepted by ", name(gate.baseline)))
    rows: Sequence[tuple[str, list[str]]] = (
        ("off", gate.off),
        ("warn only", gate.warn_only),
        ("waived", gate.waived),
        ("higher limit", gate.raised),
    )
    found += [(f"{label}: ", *names(those, limit=_SHOWN)) for label, those in rows if those]
    return found


def is_loosened(check: Check) -> bool:
    """Whether a rule counts for less than by default."""
    gate = check.gate
    return bool(gate.off or gate.warn_only or gate.waived or gate.raised)
