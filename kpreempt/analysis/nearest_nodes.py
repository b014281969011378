"""The nodes that come nearest to taking a pod which no node takes."""

from __future__ import annotations

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.change_search import Situation, is_preemptor, refusals_of
from kpreempt.verdict import Status, Verdict
from kpreempt.verdict.details import InsufficientResources

_LOOKED_AT = 12
_ALIKE = 3


def nearest_nodes(scheduler: Scheduler, situation: Situation, most: int) -> list[str]:
    """At most ``most`` nodes: the fewest refusals without lower-priority pods first, then the least that is missing.

    Of nodes that are refused alike one is enough, and only a few are looked at closely.
    """
    may_evict = is_preemptor(situation.pod)
    ranked = []
    for order, name in enumerate(_sample(situation.verdict)):
        evaluation = scheduler.tell_node(situation.prepared, situation.pod, name)
        refusals = refusals_of(evaluation, may_evict=may_evict)
        ranked.append((len(refusals), sum(map(_distance, refusals)), order, name))
    return [name for *_, name in sorted(ranked)[:most]]


def _sample(verdict: Verdict) -> list[str]:
    """For each kind of refusal the few nodes that lack least, with different details."""
    kinds: dict[tuple[str, str], dict[object, tuple[float, str]]] = {}
    for name, before in verdict.filter.items():
        after = verdict.dry_run.get(name)
        # A node without lower-priority pods has nothing better to say after the dry run.
        status = after if after is not None and after.plugin else before
        alike = kinds.setdefault((status.plugin, status.message), {})
        alike.setdefault(repr(status.detail), (_distance(status), name))
    picked = [sorted(alike.values())[:_ALIKE] for alike in kinds.values()]
    rounds = [sorted(each[number] for each in picked if number < len(each)) for number in range(_ALIKE)]
    return [name for each in rounds for _, name in each][:_LOOKED_AT]


def _distance(status: Status) -> float:
    """The largest missing share of a request; 1 for what is no matter of amounts."""
    detail = status.detail
    if not isinstance(detail, InsufficientResources) or not detail.shortfalls:
        return 1.0
    return max(each.missing_share for each in detail.shortfalls)
