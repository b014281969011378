"""For a pod that preempts: the requests with which it lands and nobody is evicted, proved by a verdict.

What the filters saw says how much is free on the nodes that lack least, so few verdicts are enough. Other changes are
not sought here.
"""

from __future__ import annotations

from typing import Any

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.edits import Stated, edit_pod
from kpreempt.analysis.explain.single_edits import lower_requests
from kpreempt.model.pod import Pod
from kpreempt.verdict import Outcome, Proposal, Verdict
from kpreempt.verdict.details import InsufficientResources

# Nodes whose filters are asked, and verdicts at most.
_LOOKED_AT = 12
_VERDICTS = 3
# On more nodes a verdict takes too long for what nobody asked for.
_MAX_NODES = 3000
# A request that is cut by more than that is another pod.
_MOST_CUT = 0.5

_Amounts = dict[str, tuple[int, int]]


def requests_that_fit(
    scheduler: Scheduler, prepared: Any, pod: Pod, verdict: Verdict, stated: Stated
) -> Proposal | None:
    """The requests with which the pod lands, lowered by the smallest share; ``None`` where none of those tried do.

    None are sought on big clusters, where extenders would be called again, and where the order of volumes decides.
    """
    if len(verdict.filter) > _MAX_NODES or verdict.extender_calls or verdict.volume_choices is not None:
        return None
    verdicts = 0
    for node, amounts in _nearest(verdict)[:_LOOKED_AT]:
        edit = lower_requests(pod, amounts)
        if edit is None or verdicts == _VERDICTS:
            continue
        edited = edit_pod(pod, edit)
        evaluation = scheduler.tell_node(prepared, edited, node)
        if evaluation.pre_filter is not None or not all(status.is_success for status in evaluation.filters):
            continue
        verdicts += 1
        answer = scheduler.decide(prepared, edited, records_steps=False)
        if answer.outcome == Outcome.LANDS and answer.volume_choices is None:
            return Proposal(
                node=node,
                changes=list(edit.changes),
                options=edit.options(stated),
                outcome=answer.outcome,
                nodes=answer.lands_on,
            )
    return None


def _nearest(verdict: Verdict) -> list[tuple[str, _Amounts]]:
    """Nodes that lack resources, with what is requested and what is free of each; the least cut first."""
    found = []
    for node, status in verdict.filter.items():
        if not isinstance(status.detail, InsufficientResources):
            continue
        amounts = {each.resource: (each.requested, each.allocatable - each.used) for each in status.detail.shortfalls}
        cut = max((1 - after / max(before, 1) for before, after in amounts.values()), default=1.0)
        if "pods" not in amounts and cut <= _MOST_CUT:
            found.append((cut, node, amounts))
    return [(node, amounts) for _, node, amounts in sorted(found, key=lambda each: each[0])]
