"""Where the rules of a gate are from, what counts for less than by default, and what is left out, for all formats."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Phrase
from kpreempt.report.quoting import name, names
from kpreempt.verdict.check import Check

_SHOWN = 8
_OBJECTS_SHOWN = 20


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
    if objects := check.only_in_base:
        number = len(objects)
        rest = f"{agree(number, 'is')} only in the base: kubectl apply leaves {'it' if number == 1 else 'them'}"
        found.append((f"{count(number, 'object')} {rest} in the cluster: ", *names(objects, limit=_OBJECTS_SHOWN)))
    return found


def is_qualified(check: Check) -> bool:
    """Whether a rule counts for less than by default, or objects that only the base has are not deleted."""
    gate = check.gate
    return bool(gate.off or gate.warn_only or gate.waived or gate.raised or check.only_in_base)
