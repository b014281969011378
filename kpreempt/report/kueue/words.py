"""What becomes of Workloads, in words that all reports about Kueue share."""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Phrase, Span, Style
from kpreempt.verdict.kueue import WorkloadFate, WorkloadOutcome

_NAMED = 3
RULES = {
    "InClusterQueue": "prioritization in the ClusterQueue",
    "InCohortReclamation": "reclamation within the cohort",
    "InCohortFairSharing": "Fair Sharing within the cohort",
    "InCohortReclaimWhileBorrowing": "reclamation within the cohort while borrowing",
}
_OUTCOMES: dict[WorkloadOutcome, tuple[str, Style]] = {
    WorkloadOutcome.ADMITTED: ("admitted", "good"),
    WorkloadOutcome.QUOTA_RESERVED: ("gets quota", "warn"),
    WorkloadOutcome.PREEMPTS: ("preempts", "warn"),
    WorkloadOutcome.PENDING: ("pending", "bad"),
    WorkloadOutcome.NOT_QUEUED: ("not queued", "bad"),
}


def outcome_span(outcome: WorkloadOutcome) -> Span:
    """An outcome in a word or two."""
    return Span(*_OUTCOMES[outcome])


def with_flavors(names: Iterable[str]) -> str:
    """``with flavor spot``, with a space before; nothing without any."""
    found = sorted(set(names))
    if not found:
        return ""
    return f" with {'flavor' if len(found) == 1 else 'flavors'} {join_names(found, limit=_NAMED)}"


def fate_in_words(fate: WorkloadFate) -> Phrase:
    """What becomes of a Workload: with which flavors, when, and whom it preempts."""
    told = with_flavors(flavor for each in fate.flavors.values() for flavor in each.values())
    gone = join_names([each.workload for each in fate.targets], limit=_NAMED)
    again = f", and is preempted again in cycle {fate.evicted_in}" if fate.evicted_in else ""
    word = outcome_span(fate.outcome)
    if fate.outcome is WorkloadOutcome.PREEMPTS:
        then = f", then admitted{told} in cycle {fate.admitted_in}" if fate.admitted_in else ", and is not admitted"
        return (word, f" {gone}{then}{again}")
    if fate.outcome is WorkloadOutcome.QUOTA_RESERVED:
        return (word, f"{told} in cycle {fate.admitted_in}, and waits for its admission checks{again}")
    if fate.admitted_in:
        return (word, f"{told} in cycle {fate.admitted_in}{again}")
    return (word,)
