"""One row for each verdict, for lists of several pods."""

from __future__ import annotations

from kpreempt.report.evidence import join_names
from kpreempt.report.headline import pod_name
from kpreempt.verdict import Outcome, Verdict

SUMMARY_COLUMNS = ("POD", "PRIORITY", "OUTCOME", "NODE", "VICTIMS", "VIOLATIONS", "REASON")


def summary_row(verdict: Verdict) -> tuple[str, ...]:
    """The cells for ``SUMMARY_COLUMNS``; a tie names its nodes, and its numbers as a range."""
    nodes = verdict.nominated_nodes or verdict.chosen_nodes
    victims = [len(verdict.victims.get(node, [])) for node in verdict.nominated_nodes]
    violations = [
        candidate.num_pdb_violations for candidate in verdict.candidates if candidate.node in verdict.nominated_nodes
    ]
    return (
        pod_name(verdict),
        f"{verdict.pod.priority:,}",
        str(verdict.outcome),
        join_names(nodes).replace(" and ", " or ", 1) if nodes else "-",
        _range(victims),
        _range(violations),
        _reason(verdict),
    )


def _range(numbers: list[int]) -> str:
    if not numbers:
        return "0"
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def _reason(verdict: Verdict) -> str:
    if verdict.outcome in (Outcome.NEVER_LANDS, Outcome.NOT_SCHEDULED, Outcome.UNCERTAIN):
        return verdict.reason or verdict.message or "-"
    return verdict.reason or "-"
