"""One row for each verdict, for lists of several pods."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.blocks import Phrase, Span
from kpreempt.report.escape import printable
from kpreempt.report.evidence import OUTCOMES, join_names
from kpreempt.report.explain.chance import chance_of_volumes
from kpreempt.report.explain.headline import destinations, pod_name
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Outcome, Verdict

SUMMARY_COLUMNS = ("POD", "PRIORITY", "OUTCOME", "NODE", "VICTIMS", "VIOLATIONS", "REASON")
SUMMARY_ALIGNS = ("left", "right", "left", "left", "right", "right", "left")


def render_wide(verdicts: Sequence[Verdict], _options: RenderOptions) -> str:
    """A table: columns as kubectl's wide output has them, as wide as needed, whatever the terminal."""
    from tabulate import tabulate  # noqa: PLC0415 - loaded when it is asked for

    rows = [[printable(cell) for cell in row] for verdict in verdicts for row in summary_rows(verdict)]
    aligns = SUMMARY_ALIGNS if rows else None
    table = tabulate(rows, headers=SUMMARY_COLUMNS, tablefmt="plain", colalign=aligns, disable_numparse=True)
    return "\n".join(line.rstrip() for line in table.splitlines()) + "\n"


def render_names(verdicts: Sequence[Verdict], _options: RenderOptions) -> str:
    """Every node that a pod can end on, or is nominated to, a line each as kubectl prints names."""
    nodes = (
        [each.node for each in verdict.workload.nodes] if verdict.workload is not None else destinations(verdict)
        for verdict in verdicts
    )
    return "".join(f"node/{printable(node)}\n" for each in nodes for node in each)


def summary_rows(verdict: Verdict) -> list[tuple[str, ...]]:
    """The row of the pod, or one for each replica where all of a workload are asked about."""
    if verdict.workload is None:
        # The cells for ``SUMMARY_COLUMNS``; a tie names its nodes, and its numbers as a range.
        is_stuck = verdict.outcome in (Outcome.NEVER_LANDS, Outcome.NOT_SCHEDULED, Outcome.UNCERTAIN)
        reason = chance_of_volumes(verdict) or verdict.reason or (is_stuck and verdict.message) or "-"
        return [
            (
                pod_name(verdict),
                f"{verdict.pod.priority:,}",
                str(verdict.outcome),
                name_destinations(verdict),
                _range(_victim_numbers(verdict)),
                _range(_violation_numbers(verdict)),
                reason,
            )
        ]
    return [
        (
            each.pod,
            f"{verdict.pod.priority:,}",
            str(each.outcome),
            each.node or "-",
            f"{len(each.victims):,}",
            f"{len(each.violating):,}",
            each.message or "-",
        )
        for each in verdict.workload.items
    ]


def name_subject(verdict: Verdict) -> str:
    """The pod, or the workload where all of its pods are asked about."""
    if verdict.workload is None:
        return pod_name(verdict)
    from kpreempt.report.explain.workload import workload_name  # noqa: PLC0415 - few lists have workloads

    return workload_name(verdict.workload)


def name_destinations(verdict: Verdict) -> str:
    """The node, or the nodes that tie, that the pod ends on; a dash where there is none. Of a workload how many."""
    if verdict.workload is not None and len(verdict.workload.nodes) > 1:
        return f"{len(verdict.workload.nodes):,} nodes"
    nodes = destinations(verdict)
    return join_names(nodes).replace(" and ", " or ", 1) if nodes else "-"


def outcome_in_words(verdict: Verdict) -> Phrase:
    """The outcome in a few words, with what it costs."""
    if verdict.workload is not None:
        from kpreempt.report.explain.workload import totals_in_words  # noqa: PLC0415 - few lists have workloads

        return totals_in_words(verdict.workload)
    words, style, *_ = OUTCOMES[verdict.outcome]
    if verdict.outcome not in (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS):
        return (Span(words, style),)
    victims, violations = _victim_numbers(verdict), _violation_numbers(verdict)
    pods = count(victims[0], "pod") if len(set(victims)) == 1 else f"{_range(victims)} pods"
    broken = f", budget violations: {_range(violations)}" if any(violations) else ""
    return (Span(f"{words} {pods}{broken}", style),)


def _victim_numbers(verdict: Verdict) -> list[int]:
    return [each.num_victims for each in verdict.possible_outcomes]


def _violation_numbers(verdict: Verdict) -> list[int]:
    return [each.num_pdb_violations for each in verdict.possible_outcomes]


def _range(numbers: list[int]) -> str:
    if not numbers:
        return "0"
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"
