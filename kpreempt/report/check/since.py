"""What is worse, better or new since a former run, in words."""

from __future__ import annotations

from kpreempt.report.blocks import Phrase, Span
from kpreempt.report.quoting import name
from kpreempt.verdict.check import Check, Drift, DriftKind, Since

WORDS = {DriftKind.NEW: "new", DriftKind.WORSE: "worse", DriftKind.BETTER: "better", DriftKind.GONE: "gone"}


def since_phrase(since: Since, check: Check) -> Phrase:
    """``2 new, 1 worse, 1 gone since the run of 2026-11-20T12:00:00Z, which failed``."""
    numbers = {kind: sum(each.kind is kind for each in since.drifts) for kind in WORDS}
    told = ", ".join(f"{number:,} {WORDS[kind]}" for kind, number in numbers.items() if number)
    of: Phrase = (" of ", Span(since.at)) if since.at else ()
    is_same = since.algorithm in ("", check.algorithm)
    by: Phrase = () if is_same else (" by ", Span(since.algorithm))
    ended = {True: ", which passed", False: ", which failed", None: ""}[since.passed]
    part = "" if since.is_whole else "; its document does not say all of it"
    return (f"{told or 'nothing differs'} since the run", *of, *by, f"{ended}{part}")


def drift_phrase(drift: Drift) -> Phrase:
    """What differs: ``max-victims of Deployment shop/api: 2 → 3``, ``pods evicted: 3 → 1``."""
    if not drift.rule:
        return (f"{drift.what}: {drift.before:,} → {drift.after:,}",)
    about: Phrase = (Span(drift.rule), " of ", name(drift.subject))
    if drift.kind in (DriftKind.NEW, DriftKind.GONE):
        return about
    return (*about, f": {drift.before:,} → {drift.after:,}")
