"""In which order the pods of a node would go (``SelectVictimsOnNode``, ``default_preemption.go``, v1.36.3).

Victim selection takes all pods of lower priority off the node, then puts them back: those whose eviction violates a
budget first, each part most important first. So the last to be put back is the first to go, as long as it frees what
the incoming pod lacks; one that frees nothing of that stays wherever it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby

from msgspec import UNSET

from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex, PodWithBudgets
from kpreempt.schedulers.kube.preemption.importance import sort_by_importance, tie_of
from kpreempt.verdict.at_risk import Standing


def rank_victims(
    node_info: NodeInfo,
    priority: int,
    budgets: BudgetIndex,
    now: datetime,
    *,
    has_scheduler_order: bool,
    reads_starts_once: bool = False,
) -> list[Standing]:
    """The node's pods below ``priority``, the first to go first."""
    potential = [info for info in node_info.pods if info.priority < priority]
    counted = budgets.count(
        sort_by_importance(potential, now, has_scheduler_order=has_scheduler_order, reads_starts_once=reads_starts_once)
    )
    put_back = [*(each for each in counted if each.violates), *(each for each in counted if not each.violates)]
    places = {each.pod_info.key: place for place, each in enumerate(reversed(put_back), start=1)}
    spans = {} if has_scheduler_order else _spans(counted, places)
    return [
        Standing(
            pod=each.pod_info.key,
            priority=each.pod_info.priority,
            place=spans.get(each.pod_info.key, (place, UNSET))[0],
            last_place=spans.get(each.pod_info.key, (place, UNSET))[1],
            start_time=each.pod_info.start,
            violates_budget=each.violates,
            budgets=each.budgets,
        )
        for place, each in enumerate(reversed(put_back), start=1)
    ]


def _spans(counted: Sequence[PodWithBudgets], places: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """The first and the last place of each pod that has equals. Of these, too, any may be the one that violates."""
    spans: dict[str, tuple[int, int]] = {}
    for _, tie in groupby(counted, lambda each: tie_of(each.pod_info)):
        keys = [each.pod_info.key for each in tie]
        if len(keys) > 1:
            taken = [places[key] for key in keys]
            spans |= dict.fromkeys(keys, (min(taken), max(taken)))
    return spans
