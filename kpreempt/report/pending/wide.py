"""The pending pods as a table that is as wide as it needs: nodes by reason, and the smallest change for each pod."""

from __future__ import annotations

from tabulate import tabulate

from kpreempt.report.amounts import count
from kpreempt.report.blocks import text_of
from kpreempt.report.escape import printable
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.changes import describe_changes, nothing_found
from kpreempt.report.options import RenderOptions
from kpreempt.report.pending.summary import (
    NO_NODE_FITS,
    brief_fate,
    details_in_words,
    facts_in_words,
    more_nodes_in_words,
    nothing_pending,
    summary,
)
from kpreempt.verdict import Outcome
from kpreempt.verdict.pending import TELLING_STATES, PendingPod, PendingPods, PendingState
from kpreempt.verdict.unread import absent_sentence

_COLUMNS = ("#", "POD", "PRIORITY", "OUTCOME", "NODE", "VICTIMS OR CAUSE", "NODES BY REASON", "SMALLEST CHANGE")
_ALIGNS = ("right", "left", "right", "left", "left", "left", "left", "left")
_NONE = "-"


def render_wide(pending: PendingPods, _options: RenderOptions) -> str:
    """The sentence, a row for each pod, and what the answer rests on."""
    unknown = filter(None, [absent_sentence(pending.assumptions)])
    if not pending.items:
        return "".join(f"{printable(each)}\n" for each in (nothing_pending(pending), *unknown))
    rows = [[printable(cell) or _NONE for cell in _cells(item, pending)] for item in pending.items]
    table = tabulate(rows, headers=_COLUMNS, tablefmt="plain", colalign=_ALIGNS, disable_numparse=True)
    notes = f"{facts_in_words(pending)} · each pod judged alone, as if it came next"
    if pending.assumptions:
        notes += f" · {count(len(pending.assumptions), 'assumption')} (-v)"
    lines = (line.rstrip() for line in table.splitlines())
    heading = [text_of(summary(pending)), *unknown, *filter(None, [text_of(more_nodes_in_words(pending))])]
    return "\n".join([*map(printable, heading), "", *lines, "", printable(notes)]) + "\n"


def _cells(item: PendingPod, pending: PendingPods) -> tuple[str, ...]:
    outcome, node = brief_fate(item)
    is_refused = item.state not in TELLING_STATES and not item.victims and item.outcome != Outcome.LANDS
    cause = text_of(details_in_words(item, pending.at))
    if is_refused and item.reasons:
        # The reasons have a column of their own.
        cause = join_names(item.claims) if item.claims else NO_NODE_FITS if item.refused_for_good else ""
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in item.reasons.items())
    return (
        f"{item.position:,}" if item.position is not None else "",
        item.pod,
        f"{item.priority:,}",
        outcome.text,
        node,
        cause,
        reasons,
        _smallest_change(item),
    )


def _smallest_change(item: PendingPod) -> str:
    """What would let the pod land, and how sure it is that nothing smaller does."""
    if item.state == PendingState.GATED:
        return f"remove {'gate' if len(item.gates) == 1 else 'gates'} {join_names(item.gates)}"
    if item.outcome != Outcome.NEVER_LANDS or item.state in TELLING_STATES:
        return ""
    search = item.proposal_search
    if search is None:
        return "not searched: time was up"
    if not item.proposals:
        return nothing_found(search)
    first = item.proposals[0]
    where = join_names(first.nodes, limit=1).replace(" and ", " or ", 1)
    then = (
        f"lands on {where}"
        if first.outcome == Outcome.LANDS
        else f"preempts {count(len(first.victims), 'pod')} on {where}"
    )
    broken = f", {count(first.num_pdb_violations, 'budget violation')}" if first.num_pdb_violations else ""
    partly = "" if search.is_complete else " (search not finished)"
    return f"{text_of(describe_changes(first.changes))}: {then}{broken}{partly}"
